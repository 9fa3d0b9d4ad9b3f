//! Figures 20 and 21: an upload alone.

use airmile_control::qcut::Limit;
use airmile_emulate::{Discipline, Scenario, run_into};

use super::watch::QueueMonitor;
use super::{BOUND_OF_LOG, FAIR, NO_VALUES, STRONG, Signal, Variant, WEAK, variants};
use crate::reproduce::estimate::{Estimate, mean, quantile};
use crate::reproduce::figure::{Axis, Figure, Series};
use crate::reproduce::runs::{Work, cannot, only, read};
use crate::reproduce::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(in crate::reproduce) const FIGURE_20: Experiment = Experiment {
    name: "qcut-fig20",
    source: "QCut, section 7, figure 20",
    what: "an upload's round trip from the firmware, against CoDel's target above it",
    run: figure_20,
};

pub(in crate::reproduce) const FIGURE_21: Experiment = Experiment {
    name: "qcut-fig21",
    source: "QCut, section 7, figure 21",
    what: "an upload's throughput against its round trip from the firmware",
    run: figure_21,
};

pub(super) const SCENARIO: &str = include_str!("../../../experiments/qcut-upload.toml");

/// Slow start and the first filling of the buffer are left out, in ms.
const SETTLED_MS: i64 = 10_000;

/// A run's throughput and median RTT_F, and how often the gate rejected the modem's log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Throughput {
    pub(super) mbps: f64,
    pub(super) rtt_f_ms: f64,
    pub(super) log_rejections: u64,
}

pub(super) fn measure(scenario: &Scenario) -> Result<Throughput> {
    let start_ns = scenario.epoch_ns + i64::from(scenario.first_tti) * 1_000_000;
    let settled_ms = SETTLED_MS.min(i64::from(scenario.duration_ms) / 2);
    let mut watch = QueueMonitor::from_ns(start_ns + settled_ms * 1_000_000);
    run_into(scenario, &mut watch).map_err(cannot)?;
    let log_rejections = watch.log_rejections;
    Ok(Throughput { mbps: watch.mbps(), rtt_f_ms: watch.rtt_f_ms(), log_rejections })
}

/// All runs of an application: signals, variants, seeds, in this order.
fn run(
    work: &Work<'_>,
    app: &str,
    signals: &[Signal],
    variants: &[Variant],
) -> Result<Vec<Vec<Vec<Throughput>>>> {
    let seeds = work.size.of(1, 6, 20);
    let mut scenarios = Vec::new();
    for signal in signals {
        for variant in variants {
            for seed in 0..seeds {
                let mut scenario = only(&read(SCENARIO)?, app);
                scenario.seed = 52_000 + seed;
                scenario.duration_ms = work.size.of(6_000, 45_000, 90_000) as u32;
                signal.set(&mut scenario);
                variant.set(&mut scenario);
                scenarios.push(scenario);
            }
        }
    }
    let mut points = work.for_each(&scenarios, measure)?.into_iter();
    let mut take = |_| points.by_ref().take(seeds as usize).collect::<Vec<Throughput>>();
    Ok(signals.iter().map(|_| (0..variants.len()).map(&mut take).collect()).collect())
}

fn values(points: &[Throughput], of: fn(&Throughput) -> f64) -> Vec<f64> {
    points.iter().map(of).collect()
}

fn rtt_f(points: &[Throughput]) -> Estimate {
    quantile(&values(points, |p| p.rtt_f_ms), 0.5)
}

fn figure_20(work: &Work<'_>) -> Result<ExperimentResult> {
    let codel = |target_ms| Discipline::Codel { target_ms };
    let variants = [
        Variant::new("no CoDel", Discipline::Fifo),
        Variant::new("CoDel, target 1 ms", codel(1)),
        Variant::new("CoDel, target 5 ms", codel(5)),
        Variant::new("CoDel, target 25 ms", codel(25)),
    ];
    let signals = [Signal { name: "good signal", ..STRONG }, FAIR];
    let runs = run(work, "upload", &signals, &variants)?;
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "rtt",
        "RTT_F of an upload against the target of CoDel at the Qdisc",
        Axis::new("target (ms); 0: no CoDel").from(-1.0, 26.0),
        Axis::new("RTT_F (ms), median"),
    )
    .caption(format!("n = {} runs each. {NO_VALUES}: 0 to 1000 ms.", runs[0][0].len()));
    for (signal, by_variant) in signals.iter().zip(&runs) {
        let targets = [0.0, 1.0, 5.0, 25.0];
        let medians = by_variant.iter().map(|points| rtt_f(points).value);
        figure =
            figure.with(Series::scatter(signal.name, targets.into_iter().zip(medians).collect()));
        for (variant, points) in variants.iter().zip(by_variant) {
            let what = format!("{}, {}: RTT_F, median", signal.name, variant.name);
            rows.push(Row::new(what, "ms", rtt_f(points)).note(NO_VALUES));
        }
    }
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// Thresholds: share of Cubic's throughput, in percent, and excess over the idle path's
/// RTT_F, in ms.
pub(super) const MIN_SHARE: f64 = 95.0;
pub(super) const MAX_OVER_MS: f64 = 30.0;

/// Found by the path of an uplink packet in the emulator: a report each 5 ms, 4 ms to the grant, 4 to
/// the block.
const BOUND_OF_BYTES: &str = "bound: 5 KB in the 10.5 ms (mean) from data to the block that \
    carries it are about 4 Mbit/s, with any gate";

/// For the gate by round trips.
const BOUND_OF_TRIPS: &str = "bound: the same gate told the idle path's round trip, and the rate \
    by a log that tells each TTI when it ends";

/// Whether the thresholds apply to a variant: QCut-D, and QCut-B if its bytes take less
/// than 30 ms at the link's rate.
fn is_judged(variant: &Variant, link_mbps: f64) -> bool {
    match variant.discipline {
        _ if variant.is_bound => false,
        Discipline::Qcut { limit: Limit::DelayMs(_) } | Discipline::RoundTrips { .. } => true,
        Discipline::Qcut { limit: Limit::Bytes(bytes) } => {
            bytes as f64 * 8e-3 / link_mbps < MAX_OVER_MS
        }
        _ => false,
    }
}

/// No other variant has both more throughput and a shorter round trip, by more than the
/// variation of runs: 1 % and 1 ms.
fn is_on_front(of: (f64, f64), all: &[(f64, f64)]) -> bool {
    !all.iter().any(|other| other.0 > of.0 * 1.01 && other.1 < of.1 - 1.0)
}

/// The gate by round trips with the idle path's round trip, and the rate by a log that tells at
/// once.
fn told_round_trips(idle_ms: f64) -> Variant {
    let told_base_ms = Some(idle_ms.round() as u32);
    let discipline = Discipline::RoundTrips { limit: Limit::DelayMs(20), told_base_ms };
    Variant::bound("gate by round trips (20 ms) told path and rate", discipline)
}

fn figure_21(work: &Work<'_>) -> Result<ExperimentResult> {
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for signal in &[WEAK, STRONG] {
        let name = signal.name;
        let mut variants = variants();
        let idle = run(work, "idle", &[*signal], &variants[..1])?;
        let idle_ms = rtt_f(&idle[0][0]);
        variants.push(told_round_trips(idle_ms.value));
        let by_variant = &run(work, "upload", &[*signal], &variants)?[0];
        rows.push(Row::new(format!("{name}, idle path: RTT_F, median"), "ms", idle_ms));
        let points: Vec<(f64, f64)> = by_variant
            .iter()
            .map(|points| (mean(&values(points, |p| p.mbps)).value, rtt_f(points).value))
            .collect();
        let mut figure = Figure::new(
            if *signal == WEAK { "weak" } else { "strong" },
            format!("Throughput against RTT_F, {name}"),
            Axis::log("RTT_F (ms), median"),
            Axis::new("uplink throughput (Mbit/s)"),
        )
        .paper_x("the idle path and 30 ms", idle_ms.value + 30.0)
        .caption(format!("n = {} runs each; up and to the left is better.", by_variant[0].len()));
        for (at, variant) in variants.iter().enumerate() {
            let of = |what: &str| format!("{name}, {}: {what}", variant.name);
            let runs = &by_variant[at];
            let mbps = mean(&values(runs, |p| p.mbps));
            rows.push(Row::new(of("throughput"), "Mbit/s", mbps).note(NO_VALUES));
            rows.push(Row::new(of("RTT_F, median"), "ms", rtt_f(runs)).note(NO_VALUES));
            // The same seeds have the same fading: each run is compared with its own.
            let shares: Vec<f64> = runs
                .iter()
                .zip(&by_variant[0])
                .map(|(run, cubic)| 100.0 * run.mbps / cubic.mbps)
                .collect();
            let is_judged = is_judged(variant, mean(&values(&by_variant[0], |p| p.mbps)).value);
            let share = Row::new(of("throughput of Cubic's"), "%", mean(&shares));
            let is_short = *signal == STRONG
                && matches!(variant.discipline, Discipline::Qcut { limit: Limit::Bytes(5_000) });
            let is_by_trips = matches!(variant.discipline, Discipline::RoundTrips { .. });
            let bound = if is_by_trips { BOUND_OF_TRIPS } else { BOUND_OF_LOG };
            let judge = |row: Row, judge: fn(Row) -> Row| {
                if is_judged { judge(row).note(bound) } else { row }
            };
            let share = judge(share, |row| row.at_least(MIN_SHARE));
            rows.push(if is_judged && is_short { share.note(BOUND_OF_BYTES) } else { share });
            let over: Vec<f64> = runs.iter().map(|run| run.rtt_f_ms - idle_ms.value).collect();
            let over = Row::new(of("RTT_F over the idle path"), "ms", quantile(&over, 0.5));
            rows.push(judge(over, |row| row.at_most(MAX_OVER_MS)));
            // A bound is no rival.
            let rivals = points.iter().zip(&variants).filter(|(_, other)| !other.is_bound);
            let rivals: Vec<(f64, f64)> = rivals.map(|(point, _)| *point).collect();
            let front = f64::from(u8::from(is_on_front(points[at], &rivals)));
            let front = Estimate { value: front, n: runs.len() as u64, interval: None };
            let front = Row::new(of("on the Pareto front (1: yes)"), "", front);
            // A gate without a log has less to go by.
            rows.push(if is_by_trips { front } else { judge(front, |row| row.at_least(1.0)) });
            let point = vec![(points[at].1, points[at].0)];
            figure = figure.with(Series::scatter(variant.name, point));
        }
        figures.push(figure);
    }
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_for_what_is_worth_less_than_30_ms() {
        let limit = |limit| Variant::new("", Discipline::Qcut { limit });
        // 20 KB are 40 ms of 4 Mbit/s and 20 of 8.
        for (variant, mbps, expected) in [
            (limit(Limit::DelayMs(20)), 1.0, true),
            (limit(Limit::Bytes(20_000)), 4.0, false),
            (limit(Limit::Bytes(20_000)), 8.0, true),
            (Variant::new("", Discipline::Fifo), 8.0, false),
            (Variant::bound("", Discipline::Qcut { limit: Limit::DelayMs(20) }), 1.0, false),
        ] {
            assert_eq!(is_judged(&variant, mbps), expected, "{variant:?}");
        }
    }

    #[test]
    fn fronts_by_hand() {
        let all = [(4.0, 800.0), (3.9, 60.0), (3.0, 70.0), (2.0, 50.0), (3.91, 59.5)];
        let front = all.map(|point| is_on_front(point, &all));
        assert_eq!(front, [true, true, false, true, true]);
    }
}
