//! Huang et al., figures 18 to 20: the phone's timestamp clock, and the available bandwidth
//! estimated from it.

use airmile_emulate::Scenario;
use airmile_model::Direction;
use airmile_model::flow::{BandwidthSample, PacketRow};
use airmile_wire::tcp::{SendRateThreshold, StudyOptions};

use super::estimate::{Estimate, mean};
use super::figure::{Axis, Figure, Series};
use super::monitor::{Observation, watch};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "huang-fig18-20",
    source: "Huang et al., SIGCOMM 2013, figures 18 to 20",
    what: "error of G by delta_G, and of the bandwidth by time stamps",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/huang-bandwidth.toml");

/// The paper's G: 1 and 10 ms a tick.
const TICKS_MS: [i64; 2] = [1, 10];
/// delta_G in ms.
const DELTAS_MS: [i64; 6] = [100, 300, 1_000, 2_000, 3_000, 5_000];
const MS: i64 = 1_000_000;

/// Errors of G in percent (equation 3), from consecutive pairs that are `delta_ns` apart or
/// a little more.
fn tick_errors(stamps: &[(i64, u32)], delta_ns: i64, true_ns: i64) -> Vec<f64> {
    let mut errors = Vec::new();
    let Some((mut at_ns, mut ts_val)) = stamps.first().copied() else { return errors };
    for &(later_ns, later_val) in stamps {
        let ticks = f64::from(later_val.wrapping_sub(ts_val));
        if later_ns - at_ns >= delta_ns && ticks > 0.0 {
            let found = (later_ns - at_ns) as f64 / ticks;
            errors.push(100.0 * (found / true_ns as f64 - 1.0).abs());
            (at_ns, ts_val) = (later_ns, later_val);
        }
    }
    errors
}

/// A window of one run: the estimate, and the data that the phone received.
struct Compared {
    /// Middle of the window in seconds since the first data.
    middle_s: f64,
    /// The sample nearest to its middle, in bit/s, as compared in the paper.
    nearest_bps: f64,
    /// Mean of the samples within it.
    mean_bps: f64,
    /// Received in the window.
    received_bps: f64,
    /// Received in 250 ms at its middle: the value of an error-free sample, since samples
    /// cover windows of this length.
    middle_bps: f64,
}

/// The length of a sample's window (`airmile_wire::tcp::BIN_NS`).
const SAMPLE_NS: i64 = 250 * MS;

/// Windows that slide by 100 ms over a run.
fn compare(seen: &Observation, window_ns: i64) -> Vec<Compared> {
    let samples: Vec<&BandwidthSample> = seen
        .rows
        .iter()
        .filter_map(|row| match row {
            PacketRow::Bandwidth(sample) if sample.dir == Direction::Dl => Some(sample),
            _ => None,
        })
        .collect();
    let (Some(first), Some(last)) = (seen.arrivals.first(), seen.arrivals.last()) else {
        return Vec::new();
    };
    let received_bps = |from: i64, length: i64| {
        let start = seen.arrivals.partition_point(|(at, _)| *at < from);
        let end = seen.arrivals.partition_point(|(at, _)| *at < from + length);
        let bytes: u64 = seen.arrivals[start..end].iter().map(|(_, n)| u64::from(*n)).sum();
        bytes as f64 * 8e9 / length as f64
    };
    let mut compared = Vec::new();
    let mut from = first.0;
    while from + window_ns <= last.0 {
        let middle = from + window_ns / 2;
        let near = samples.iter().min_by_key(|s| (s.time_ns - middle).abs());
        let received = received_bps(from, window_ns);
        // A window without a sample near it carries no information.
        let reach = window_ns.max(SAMPLE_NS) / 2;
        if let Some(sample) = near.filter(|s| (s.time_ns - middle).abs() <= reach)
            && received > 0.0
        {
            let within = samples.iter().filter(|s| (s.time_ns - middle).abs() <= reach);
            let within: Vec<f64> = within.map(|s| s.r_rcv_bps).collect();
            compared.push(Compared {
                middle_s: (middle - first.0) as f64 / 1e9,
                nearest_bps: sample.r_rcv_bps,
                mean_bps: mean(&within).value,
                received_bps: received,
                middle_bps: received_bps(middle - SAMPLE_NS / 2, SAMPLE_NS),
            });
        }
        from += 100 * MS;
    }
    compared
}

/// Mean of absolute errors in percent, over runs; n counts windows, which overlap, so that
/// the runs are the sample.
fn error_of(runs: &[Vec<Compared>], of: fn(&Compared) -> f64) -> Estimate {
    let error = |c: &Compared| 100.0 * (of(c) / c.received_bps - 1.0).abs();
    let per_run: Vec<f64> = runs
        .iter()
        .filter(|run| !run.is_empty())
        .map(|run| mean(&run.iter().map(error).collect::<Vec<_>>()).value)
        .collect();
    let windows: usize = runs.iter().map(Vec::len).sum();
    Estimate { n: windows as u64, ..mean(&per_run) }
}

/// Minimum sender rate of a window, and its name.
const BARS: [(&str, SendRateThreshold); 2] =
    [("C = 30 Mbit/s", SendRateThreshold::Fixed(30e6)), ("ours", SendRateThreshold::Auto)];

/// Whether the link varies within a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Fading, and users that come and go, as in the scenario.
    Fades,
    /// Neither.
    Steady,
}

/// A run, and its link condition.
struct RecordedRun {
    tick_ms: i64,
    bar: usize,
    link: Link,
    seen: Observation,
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let mut cases = Vec::new();
    for (tick_ms, link) in
        [(1, Link::Fades), (10, Link::Fades), (1, Link::Steady), (10, Link::Steady)]
    {
        for (bar, (_, send_rate_threshold)) in BARS.iter().enumerate() {
            for n in 0..work.size.of(1, 5, 10) {
                let mut scenario = Scenario { seed: 53_000 + n, ..base.clone() };
                scenario.phone_tcp.timestamp_tick_ns = tick_ms * MS;
                if link == Link::Steady {
                    scenario.link.shadowing_sigma_db = 0.0;
                    scenario.competing.clear();
                }
                let send_rate_threshold = *send_rate_threshold;
                let options = StudyOptions { send_rate_threshold, ..StudyOptions::default() };
                cases.push((tick_ms, bar, link, scenario, options));
            }
        }
    }
    let runs = work.for_each(&cases, |(tick_ms, bar, link, scenario, options)| {
        let seen = watch(scenario, options)?;
        Ok(RecordedRun { tick_ms: *tick_ms, bar: *bar, link: *link, seen })
    })?;
    let (mut rows, figure) = ticks(&runs);
    let mut figures = vec![figure];
    let (more, drawn) = bandwidth(&runs);
    rows.extend(more);
    figures.extend(drawn);
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

/// Figure 18.
fn ticks(runs: &[RecordedRun]) -> (Vec<Row>, Figure) {
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "ticks",
        "Error of the phone's timestamp clock by its evidence",
        Axis::log("delta_G (s)"),
        Axis::log("mean error of G (%)"),
    )
    .paper_point("under 0.1 % at 3 s", 3.0, 0.1);
    let mut n = 0;
    for (place, stamps) in [
        (
            "at the gateway",
            (|seen: &Observation| &seen.stamps) as fn(&Observation) -> &Vec<(i64, u32)>,
        ),
        ("at the phone itself", |seen| &seen.phone_stamps),
    ] {
        for tick_ms in TICKS_MS {
            let mut curve = Vec::new();
            for delta_ms in DELTAS_MS {
                let own = runs
                    .iter()
                    .filter(|run| (run.tick_ms, run.bar, run.link) == (tick_ms, 0, Link::Fades));
                n = own.clone().count();
                let errors: Vec<f64> = own
                    .flat_map(|run| tick_errors(stamps(&run.seen), delta_ms * MS, tick_ms * MS))
                    .collect();
                let seconds = delta_ms as f64 / 1e3;
                curve.push((seconds, mean(&errors).value));
                let at_gateway = place == "at the gateway";
                if !at_gateway && delta_ms != 3_000 {
                    continue;
                }
                let which = if at_gateway { "" } else { ", no uplink between" };
                let what = format!("mean error of G = {tick_ms} ms, delta_G {seconds} s{which}");
                let row = Row::new(what, "%", mean(&errors));
                rows.push(match (delta_ms, at_gateway) {
                    (3_000, true) => row.paper(0.1).note(UPLINK),
                    (_, false) => row.note(GRANULARITY),
                    _ => row,
                });
            }
            figure = figure.with(Series::curve(format!("G = {tick_ms} ms, {place}"), curve));
        }
    }
    let caption = format!(
        "n = {n} runs for each G. Pairs of stamps follow each other. Zero values are not drawn."
    );
    (rows, figure.caption(caption))
}

const UPLINK: &str = "the paper: less than that. The error is the uplink's delay of the later \
    stamp less that of the earlier, over delta_G: waits for grants differ by some 6.6 ms, 0.22 % \
    of 3 s. The tick's part is at most G over delta_G, shown in the row without an uplink; the \
    study itself uses the whole flow";
const GRANULARITY: &str = "an arm added after the first results: stamps where they leave the \
    phone, so that only the clock's own tick remains";
const NEAREST: &str = "n counts windows, the interval is over runs. A sample covers 250 ms, and \
    within the second our link fades and other users arrive: the row of an error-free sample \
    shows this part. The mean of all samples within the second is the value to use, but not the \
    figure's";

/// Figures 19 and 20.
fn bandwidth(runs: &[RecordedRun]) -> (Vec<Row>, Vec<Figure>) {
    let mut rows = Vec::new();
    let compared = |tick_ms: i64, bar: usize, link: Link, window_ns: i64| -> Vec<Vec<Compared>> {
        let own =
            runs.iter().filter(|run| (run.tick_ms, run.bar, run.link) == (tick_ms, bar, link));
        own.map(|run| compare(&run.seen, window_ns)).collect()
    };
    const SECOND: i64 = 1_000 * MS;
    for (bar, (words, _)) in BARS.iter().enumerate() {
        for tick_ms in TICKS_MS {
            let found = error_of(&compared(tick_ms, bar, Link::Fades, SECOND), |c| c.nearest_bps);
            let what = format!("mean error of the bandwidth, 1 s, G = {tick_ms} ms, {words}");
            rows.push(Row::new(what, "%", found).paper(7.9).note(NEAREST));
        }
    }
    let fading = compared(1, 1, Link::Fades, SECOND);
    let tenth = compared(1, 1, Link::Fades, 100 * MS);
    let steady = compared(1, 1, Link::Steady, SECOND);
    rows.extend([
        Row::new("the same, 0.1 s, G = 1 ms, ours", "%", error_of(&tenth, |c| c.nearest_bps)),
        Row::new("the same, 1 s, a sample without error", "%", error_of(&fading, |c| c.middle_bps)),
        Row::new(
            "the same, 1 s, mean of the samples within",
            "%",
            error_of(&fading, |c| c.mean_bps),
        ),
        Row::new(
            "the same, 1 s, a link that does not change",
            "%",
            error_of(&steady, |c| c.nearest_bps),
        )
        .paper(7.9),
        Row::new(
            "the same, a link that does not change, a sample without error",
            "%",
            error_of(&steady, |c| c.middle_bps),
        ),
    ]);
    let all = |runs: &[Vec<Compared>], of: fn(&Compared) -> f64| -> Vec<f64> {
        runs.iter().flatten().map(of).collect()
    };
    let error: fn(&Compared) -> f64 = |c| 100.0 * (c.nearest_bps / c.received_bps - 1.0).abs();
    let caption = format!(
        "n = {} windows of 1 s of {} runs, G = 1 ms.",
        all(&fading, error).len(),
        fading.len()
    );
    let rates = Figure::new(
        "bandwidth",
        "Bandwidth as estimated and as received, windows of 1 s",
        Axis::new("bandwidth (Mbit/s)"),
        Axis::cdf("windows up to this (%)"),
    )
    .with(Series::cdf("estimated", &all(&fading, |c| c.nearest_bps / 1e6)))
    .with(Series::cdf("received by the phone", &all(&fading, |c| c.received_bps / 1e6)))
    .caption(caption.clone());
    let errors = Figure::new(
        "bandwidth-error",
        "Error of the bandwidth, windows of 1 s",
        Axis::new("absolute error (%)").from(0.0, 100.0),
        Axis::cdf("windows up to this (%)"),
    )
    .with(Series::cdf("estimated", &all(&fading, error)))
    .with(Series::cdf(
        "a sample without error",
        &all(&fading, |c| 100.0 * (c.middle_bps / c.received_bps - 1.0).abs()),
    ))
    .with(Series::cdf("estimated, a link that does not change", &all(&steady, error)))
    .paper_x("mean error 7.9 %", 7.9)
    .caption(caption);
    let one = fading.first().map_or(&[][..], Vec::as_slice);
    let over_time = |of: fn(&Compared) -> f64| {
        one.iter().map(|c| (c.middle_s, of(c) / 1e6)).collect::<Vec<_>>()
    };
    let time = Figure::new(
        "bandwidth-time",
        "Bandwidth over time, windows of 1 s",
        Axis::new("time since the first data (s)"),
        Axis::new("bandwidth (Mbit/s)"),
    )
    .with(Series::curve("received by the phone", over_time(|c| c.received_bps)))
    .with(Series::scatter("estimated", over_time(|c| c.nearest_bps)))
    .paper_y("some 10 Mbit/s, errors within 1", 10.0)
    .caption("One run.");
    (rows, vec![rates, errors, time])
}
