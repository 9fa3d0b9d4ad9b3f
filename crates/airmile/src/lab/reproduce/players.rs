//! Huang et al., figures 23 and 24: players that leave bandwidth unused.

use airmile_emulate::{Scenario, workload::Workload};
use airmile_infer::tcp::StudyOptions;
use airmile_model::flow::{FlowRow, PacketRow};

use super::estimate::{Estimate, quantile};
use super::monitor::{Seen, watch};
use super::runs::{downlink, for_each, only, read};
use super::{Experiment, Row, Size};
use crate::error::Result;

pub(super) const FIGURE_23: Experiment = Experiment {
    name: "huang-fig23",
    source: "Huang et al., SIGCOMM 2013, figure 23",
    what: "a player that reads slowly: the receive window is full",
    run: figure_23,
};

pub(super) const FIGURE_24: Experiment = Experiment {
    name: "huang-fig24",
    source: "Huang et al., SIGCOMM 2013, figure 24",
    what: "a player that asks every 10 s: the radio never rests",
    run: figure_24,
};

const SLOW_READER: &str = include_str!("../../../experiments/huang-slow-reader.toml");
const PERIODIC: &str = include_str!("../../../experiments/huang-periodic.toml");

fn flows(seen: &Seen) -> impl Iterator<Item = &FlowRow> {
    seen.rows.iter().filter_map(|row| match row {
        PacketRow::Flow(flow) if flow.dl_bytes > 0 => Some(&**flow),
        _ => None,
    })
}

fn seeds(base: &Scenario, first: u64, n: u64) -> Vec<Scenario> {
    (0..n).map(|n| Scenario { seed: first + n, ..base.clone() }).collect()
}

fn median_of(seen: &[Seen], of: impl Fn(&Seen) -> f64) -> Estimate {
    quantile(&seen.iter().map(of).collect::<Vec<_>>(), 0.5)
}

/// Duration of a run's download in seconds.
fn download_s(seen: &Seen) -> f64 {
    let ended = downlink(&seen.outcome.transfers).next();
    ended.and_then(|t| t.truth.duration_ms).map_or(f64::NAN, |ms| ms / 1e3)
}

fn figure_23(size: Size) -> Result<Vec<Row>> {
    let base = read(SLOW_READER)?;
    let n = size.of(1, 5, 20);
    let watch_all = |app: &str| {
        for_each(&seeds(&only(&base, app), 55_000, n), |scenario| {
            watch(scenario, &StudyOptions::default())
        })
    };
    let (slow, ideal) = (watch_all("player")?, watch_all("ideal")?);
    let flow = |of: fn(&FlowRow) -> f64| move |seen: &Seen| flows(seen).next().map_or(f64::NAN, of);
    let window = flow(|f| f.client_min_window_bytes.map_or(f64::NAN, |bytes| bytes as f64));
    let initial = flow(|f| f.client_initial_window_bytes.map_or(f64::NAN, |bytes| bytes as f64));
    let full = flow(|f| 100.0 * f.window_full_ns as f64 / f.duration_ns as f64);
    const INPUT: &str = "the reader's rate is chosen for it: an input, not a result";
    Ok(vec![
        Row::new("first receive window", "bytes", median_of(&slow, initial))
            .paper(131_800.0)
            .note("an input, too"),
        Row::new("smallest receive window", "bytes", median_of(&slow, window)).paper(816.0).note(
            "ours reads at a steady rate, so each ACK finds some room; the paper's player stopped",
        ),
        Row::new("time with a full window", "% of the flow", median_of(&slow, full)).note(
            "the paper, by its figure: from 2 s of 9 s on. Ours waits for room of a segment each \
                 time, and is rarely below it: the limit shows in the duration",
        ),
        Row::new("download, slow reader", "s", median_of(&slow, download_s)).paper(9.0).note(INPUT),
        Row::new("download, a reader that keeps up", "s", median_of(&ideal, download_s))
            .paper(2.5)
            .note("the paper's is its bandwidth estimate's; ours is the run again"),
    ])
}

fn figure_24(size: Size) -> Result<Vec<Row>> {
    let mut base = read(PERIODIC)?;
    if size == Size::Quick {
        for app in &mut base.apps {
            if let Workload::Periodic { bytes, .. } = &mut app.workload {
                *bytes = 100_000;
            }
        }
    }
    let scenarios = seeds(&base, 56_000, size.of(1, 3, 10));
    let seen = for_each(&scenarios, |scenario| watch(scenario, &StudyOptions::default()))?;
    let period = |seen: &Seen| seen.summary.periodic.first().map_or(f64::NAN, |p| p.period_s);
    let idle =
        |seen: &Seen| seen.summary.periodic.first().map_or(f64::NAN, |p| 100.0 * p.idle_share);
    // The tail of the paper's network is 10 s, and the study's model has it.
    let radio = |seen: &Seen| {
        let users = seen.rows.iter().filter_map(|row| match row {
            PacketRow::User(user) => Some(user),
            _ => None,
        });
        let (on, of) = users.fold((0, 0), |(on, of), u| (on + u.radio_on_ns, of + u.duration_ns));
        100.0 * on as f64 / of as f64
    };
    let peak = |seen: &Seen| {
        let mut bins = std::collections::HashMap::<i64, u64>::new();
        for (at_ns, bytes) in &seen.arrivals {
            *bins.entry(at_ns / 100_000_000).or_default() += u64::from(*bytes);
        }
        bins.values().max().map_or(f64::NAN, |bytes| *bytes as f64 * 8.0 / 1e5)
    };
    Ok(vec![
        Row::new("period of the requests, as found", "s", median_of(&seen, period)).paper(10.0),
        Row::new("time without traffic between them", "%", median_of(&seen, idle))
            .note("the paper: idle for most of the time"),
        Row::new("radio connected, tail of 10 s", "% of the session", median_of(&seen, radio))
            .paper(100.0)
            .note("the tail behind the last download is beyond the session: a little over 100 %"),
        Row::new("peak throughput, 100 ms", "Mbit/s", median_of(&seen, peak)).paper(30.0),
    ])
}
