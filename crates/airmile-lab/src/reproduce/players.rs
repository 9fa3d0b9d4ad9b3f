//! Huang et al., figures 23 and 24: players that leave bandwidth unused.

use airmile_emulate::{Scenario, workload::Workload};
use airmile_model::flow::{FlowRow, PacketRow};
use airmile_wire::tcp::StudyOptions;

use super::estimate::{Estimate, quantile};
use super::figure::{Axis, Figure, Series};
use super::kernel::{self, fetch, with_kernel};
use super::monitor::{Observation, watch};
use super::runs::{Work, only, read};
use super::{Experiment, ExperimentResult, Row, Size};
use airmile::Result;

pub(super) const FIGURE_23: Experiment = Experiment {
    name: "huang-fig23",
    source: "Huang et al., SIGCOMM 2013, figure 23",
    what: "a player that reads slowly: the receive window is full",
    run: figure_23,
};

pub(super) const FIGURE_24: Experiment = Experiment {
    name: "huang-fig24",
    source: "Huang et al., SIGCOMM 2013, figure 24",
    what: "a player with a request every 10 s: the radio is never idle",
    run: figure_24,
};

const SLOW_READER: &str = include_str!("../../experiments/huang-slow-reader.toml");
const PERIODIC: &str = include_str!("../../experiments/huang-periodic.toml");

fn flows(seen: &Observation) -> impl Iterator<Item = &FlowRow> {
    seen.rows.iter().filter_map(|row| match row {
        PacketRow::Flow(flow) if flow.dl_bytes > 0 => Some(&**flow),
        _ => None,
    })
}

fn seeds(base: &Scenario, first: u64, n: u64) -> Vec<Scenario> {
    (0..n).map(|n| Scenario { seed: first + n, ..base.clone() }).collect()
}

fn median_of(seen: &[Observation], of: impl Fn(&Observation) -> f64) -> Estimate {
    quantile(&seen.iter().map(of).collect::<Vec<_>>(), 0.5)
}

/// Duration of a run's download in seconds.
fn download_s(seen: &Observation) -> f64 {
    seen.download_ms.map_or(f64::NAN, |ms| ms / 1e3)
}

/// kB at the phone by seconds since its first.
fn received_kb(seen: &Observation) -> Vec<(f64, f64)> {
    let first_ns = seen.arrivals.first().map_or(0, |(at, _)| *at);
    let mut sum = 0.0;
    let arrivals = seen.arrivals.iter();
    let points = arrivals.map(|(at, bytes)| {
        sum += f64::from(*bytes) / 1e3;
        ((at - first_ns) as f64 / 1e9, sum)
    });
    points.collect()
}

/// Mbit/s at the phone in steps of `step_ms`, by seconds since its first data.
pub(super) fn received_mbps(seen: &Observation, step_ms: i64) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (seen.arrivals.first(), seen.arrivals.last()) else {
        return Vec::new();
    };
    let step_ns = step_ms * 1_000_000;
    let mut bytes = vec![0.0; usize::try_from((last.0 - first.0) / step_ns + 1).unwrap_or(0)];
    for (at, n) in &seen.arrivals {
        let step = usize::try_from((at - first.0) / step_ns).unwrap_or(0);
        if let Some(sum) = bytes.get_mut(step) {
            *sum += f64::from(*n);
        }
    }
    let seconds = step_ms as f64 / 1e3;
    let steps = bytes.iter().enumerate();
    steps.map(|(at, bytes)| (at as f64 * seconds, bytes * 8.0 / 1e6 / seconds)).collect()
}

fn figure_23(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SLOW_READER)?;
    let found = slow_readers(work, &base)?;
    with_kernel(found, work, |hosts| {
        // curl limits its reading to this rate, in bytes per second.
        let bytes = work.size.of(300_000, 1_000_000, 1_000_000);
        let mut arms = Vec::new();
        let (mut lateness, mut failed) = (Vec::new(), Vec::new());
        for words in ["--limit-rate 100000", "--limit-rate 37500", ""] {
            let runs = work.size.of(1, 2, 5);
            let cases: Vec<_> = seeds(&base, 55_000, runs)
                .into_iter()
                .map(|scenario| (scenario, fetch(bytes, words, "")))
                .collect();
            let runs = kernel::watch(work, hosts, &cases)?;
            lateness.extend(runs.lateness);
            failed.extend(runs.failed);
            arms.push(runs.results.into_iter().flatten().collect::<Vec<Observation>>());
        }
        let mut rows = match arms.as_slice() {
            [slow, slower, ideal] => rows_23(slow, slower, ideal),
            _ => Vec::new(),
        };
        for row in &mut rows {
            // The other notes are about the emulated reader.
            row.note = row.what.starts_with("download").then_some(BUFFERED);
        }
        Ok(ExperimentResult { rows, lateness, failed, ..ExperimentResult::default() })
    })
}

const BUFFERED: &str = "ends when the last byte is in the phone's buffer, before it is read";

fn slow_readers(work: &Work<'_>, base: &Scenario) -> Result<ExperimentResult> {
    let n = work.size.of(1, 5, 20);
    let watch_all = |app: &str| {
        work.for_each(&seeds(&only(base, app), 55_000, n), |scenario| {
            watch(scenario, &StudyOptions::default())
        })
    };
    let (slow, ideal) = (watch_all("player")?, watch_all("ideal")?);
    let slower = watch_all("slower")?;
    let seconds = Axis::new("time since the first data (s)");
    let mut figure =
        Figure::new("progress", "A music file of 1 MB", seconds, Axis::new("received (kB)"))
            .paper_point("with bandwidth used, 2.5 s", 2.5, 1_000.0)
            .paper_point("the player, 9 s", 9.0, 1_000.0)
            .paper_x("its window is full from 2 s on", 2.0)
            .caption(format!("One of n = {n} runs each."));
    for (name, seen) in [("slow reader", slow.first()), ("a reader that keeps up", ideal.first())] {
        figure = figure.with(Series::curve(name, seen.map_or_else(Vec::new, received_kb)));
    }
    let rows = rows_23(&slow, &slower, &ideal);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// Rows of figure 23.
fn rows_23(slow: &[Observation], slower: &[Observation], ideal: &[Observation]) -> Vec<Row> {
    let flow =
        |of: fn(&FlowRow) -> f64| move |seen: &Observation| flows(seen).next().map_or(f64::NAN, of);
    let window = flow(|f| f.client_min_window_bytes.map_or(f64::NAN, |bytes| bytes as f64));
    let initial = flow(|f| f.client_initial_window_bytes.map_or(f64::NAN, |bytes| bytes as f64));
    let full = flow(|f| 100.0 * f.window_full_ns as f64 / f.duration_ns as f64);
    const INPUT: &str = "the reader's rate is chosen for it: an input, not a result";
    vec![
        Row::new("first receive window", "bytes", median_of(slow, initial))
            .paper(131_800.0)
            .note("an input, too"),
        Row::new("smallest receive window", "bytes", median_of(slow, window)).paper(816.0).note(
            "ours reads at a steady rate: in the round trip from a full window to the next data \
                it reads 100 kB/s times 70 ms, 7 kB; the paper's player almost stopped",
        ),
        Row::new("the same, read at 300 kbit/s", "bytes", median_of(slower, window))
            .paper(816.0)
            .note("an arm added after the first results: the window follows the reader's rate"),
        Row::new("time with a full window", "% of the flow", median_of(slow, full)).note(
            "the paper, by its figure: from 2 s of 9 s on. Ours waits for room of a segment each \
                 time, and is rarely below it: the limit shows in the duration",
        ),
        Row::new("download, slow reader", "s", median_of(slow, download_s)).paper(9.0).note(INPUT),
        Row::new("download, a reader that keeps up", "s", median_of(ideal, download_s))
            .paper(2.5)
            .note("the paper's is from its bandwidth estimate; ours from a second run"),
    ]
}

fn figure_24(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(PERIODIC)?;
    let found = periodic(work, base.clone())?;
    with_kernel(found, work, |hosts| {
        let bytes = work.size.of(100_000, 2_500_000, 2_500_000);
        // Every 10 s over the same connection.
        let query = format!("?[1-{}]", work.size.of(4, 6, 12));
        let job = fetch(bytes, "--rate 6/m", &query);
        let cases: Vec<_> = seeds(&base, 56_000, work.size.of(1, 1, 3))
            .into_iter()
            .map(|scenario| (scenario, job.clone()))
            .collect();
        let runs = kernel::watch(work, hosts, &cases)?;
        let seen: Vec<Observation> = runs.results.into_iter().flatten().collect();
        let rows = rows_24(&seen);
        let (lateness, failed) = (runs.lateness, runs.failed);
        Ok(ExperimentResult { rows, lateness, failed, ..ExperimentResult::default() })
    })
}

fn periodic(work: &Work<'_>, mut base: Scenario) -> Result<ExperimentResult> {
    if work.size == Size::Quick {
        for app in &mut base.apps {
            if let Workload::Periodic { bytes, .. } = &mut app.workload {
                *bytes = 100_000;
            }
        }
    }
    let scenarios = seeds(&base, 56_000, work.size.of(1, 5, 10));
    let seen = work.for_each(&scenarios, |scenario| watch(scenario, &StudyOptions::default()))?;
    let figure = Figure::new(
        "throughput",
        "A player with a request every 10 s",
        Axis::new("time since the first data (s)"),
        Axis::new("throughput, 0.5 s (Mbit/s)"),
    )
    .with(Series::curve(
        "at the phone",
        seen.first().map_or_else(Vec::new, |s| received_mbps(s, 500)),
    ))
    .paper_y("peaks of up to 30 Mbit/s", 30.0)
    .caption(format!("One of n = {} runs.", seen.len()));
    let rows = rows_24(&seen);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// Rows of figure 24.
fn rows_24(seen: &[Observation]) -> Vec<Row> {
    let period =
        |seen: &Observation| seen.summary.periodic.first().map_or(f64::NAN, |p| p.period_s);
    let idle = |seen: &Observation| {
        seen.summary.periodic.first().map_or(f64::NAN, |p| 100.0 * p.idle_share)
    };
    // The tail of the paper's network and of the study's model is 10 s.
    let radio = |seen: &Observation| {
        let users = seen.rows.iter().filter_map(|row| match row {
            PacketRow::User(user) => Some(user),
            _ => None,
        });
        let (on, of) = users.fold((0, 0), |(on, of), u| (on + u.radio_on_ns, of + u.duration_ns));
        100.0 * on as f64 / of as f64
    };
    let peak = |seen: &Observation| {
        let mut bins = std::collections::HashMap::<i64, u64>::new();
        for (at_ns, bytes) in &seen.arrivals {
            *bins.entry(at_ns / 100_000_000).or_default() += u64::from(*bytes);
        }
        bins.values().max().map_or(f64::NAN, |bytes| *bytes as f64 * 8.0 / 1e5)
    };
    vec![
        Row::new("period of the requests, as found", "s", median_of(seen, period)).paper(10.0),
        Row::new("time without traffic between them", "%", median_of(seen, idle))
            .note("the paper: idle for most of the time"),
        Row::new("radio connected, tail of 10 s", "% of the session", median_of(seen, radio))
            .paper(100.0)
            .note("the tail after the last download is beyond the session: a little over 100 %"),
        Row::new("peak throughput, 100 ms", "Mbit/s", median_of(seen, peak)).paper(30.0),
    ]
}
