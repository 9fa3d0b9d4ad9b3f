//! Huang et al., section 6.3: TCP's utilisation of a varying bandwidth.

use std::sync::Arc;

use airmile_emulate::{LinkTrace, Scenario};
use airmile_wire::tcp::StudyOptions;

use super::estimate::mean;
use super::figure::{Axis, Figure, Series};
use super::monitor::watch;
use super::runs::{Work, cannot, read};
use super::{Experiment, ExperimentResult, Row, Size};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "huang-rtt-utilisation",
    source: "Huang et al., SIGCOMM 2013, section 6.3",
    what: "utilisation of a bandwidth that changes every 500 ms, by RTT and variation",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/huang-utilisation.toml");

/// Round trips in ms.
const RTTS_MS: [u32; 6] = [20, 50, 100, 200, 400, 600];
/// Half width of the bandwidth's range over its mean.
const VARIATIONS: [f64; 2] = [0.3, 0.9];
/// The paper changes the bandwidth every 500 ms.
const STEP_MS: u64 = 500;
/// Mean in packets of 1,500 bytes a ms: 9.6 Mbit/s (the paper's median for LTE
/// is of that order).
const MEAN_PER_MS: f64 = 0.8;
/// Initial time that is ignored, as slow start is not the subject.
const SETTLE_MS: u64 = 5_000;

/// A link whose rate is drawn anew every 500 ms, in Mahimahi's format.
fn link(seed: u64, variation: f64, duration_ms: u64) -> Result<LinkTrace> {
    let mut lines = String::new();
    let (mut state, mut due) = (seed, 0.0);
    let mut rate = MEAN_PER_MS;
    for ms in 0..=duration_ms {
        if ms % STEP_MS == 0 {
            // Numerical Recipes' 64-bit congruence: a trace, not cryptography.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            rate = MEAN_PER_MS * (1.0 + variation * (2.0 * uniform - 1.0));
        }
        due += rate;
        while due >= 1.0 {
            due -= 1.0;
            lines.push_str(&format!("{ms}\n"));
        }
    }
    LinkTrace::parse(&lines).map_err(cannot)
}

/// A TTI of LTE, which the scenario is.
const LTE_TTI_NS: i64 = 1_000_000;

/// Bytes that reached the phone over the possible ones, in percent.
fn utilisation(scenario: &Scenario, trace: &LinkTrace) -> Result<f64> {
    let seen = watch(scenario, &StudyOptions::default())?;
    let start_ns = seen.arrived_ip_bytes.first().map_or(0, |(at, _)| *at);
    let settled_ns = start_ns + SETTLE_MS as i64 * 1_000_000;
    let end_ns = seen.arrived_ip_bytes.last().map_or(0, |(at, _)| *at);
    let bytes: u64 = seen
        .arrived_ip_bytes
        .iter()
        .filter(|(at, _)| *at >= settled_ns)
        .map(|(_, bytes)| u64::from(*bytes))
        .sum();
    // The trace starts with the run, not with TTI 0.
    let run_ns = scenario.epoch_ns + i64::from(scenario.first_tti) * LTE_TTI_NS;
    let [first_ms, last_ms] = [settled_ns, end_ns].map(|at_ns| (at_ns - run_ns) / 1_000_000);
    let offered: u64 = (first_ms..last_ms).map(|ms| u64::from(trace.bytes_at(ms))).sum();
    Ok(100.0 * bytes as f64 / offered as f64)
}

/// Queues in bytes: the scenario's, and one of an arm added after the first results, 50
/// packets, about the bandwidth times 60 ms.
const QUEUES: [(&str, Option<u64>); 2] = [("", None), (", queue of 50 packets", Some(75_000))];

/// A point of the figure.
#[derive(Clone, Copy, PartialEq)]
struct UtilisationPoint {
    queue: usize,
    variation: f64,
    rtt_ms: u32,
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let mut points = Vec::new();
    for queue in 0..QUEUES.len() {
        for variation in VARIATIONS {
            points.extend(RTTS_MS.map(|rtt_ms| UtilisationPoint { queue, variation, rtt_ms }));
        }
    }
    let mut cases = Vec::new();
    for point in &points {
        for n in 0..work.size.of(1, 6, 10) {
            let seed = 54_000 + n;
            let mut scenario = Scenario { seed, ..base.clone() };
            scenario.core.rtt_ms = point.rtt_ms;
            if let Some(bytes) = QUEUES[point.queue].1 {
                scenario.cell.queue_bytes = bytes;
            }
            if work.size == Size::Quick {
                scenario.duration_ms = 8_000;
            }
            let trace = Arc::new(link(seed, point.variation, u64::from(base.duration_ms))?);
            scenario.link.dl_trace = Some(Arc::clone(&trace));
            cases.push((*point, scenario, trace));
        }
    }
    let found = work
        .for_each(&cases, |(point, scenario, trace)| Ok((*point, utilisation(scenario, trace)?)))?;
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "utilisation",
        "Utilisation of a bandwidth that changes every 500 ms",
        Axis::new("round trip (ms)"),
        Axis::new("utilisation (%)").from(0.0, 102.0),
    )
    .paper_point("over 95 % under small round trips", 50.0, 95.0)
    .paper_point("below 50 % beyond 400 ms", 400.0, 50.0)
    .caption(format!("n = {} runs for each point; means.", work.size.of(1, 6, 10)));
    for curve in points.chunk_by(|a, b| (a.queue, a.variation) == (b.queue, b.variation)) {
        let mut drawn = Vec::new();
        let Some(UtilisationPoint { queue, variation, .. }) = curve.first().copied() else {
            continue;
        };
        let name = format!("bandwidth +-{:.0} %{}", 100.0 * variation, QUEUES[queue].0);
        for point in curve {
            let values: Vec<f64> = found.iter().filter(|(p, _)| p == point).map(|f| f.1).collect();
            let rtt_ms = point.rtt_ms;
            drawn.push((f64::from(rtt_ms), mean(&values).value));
            let row = Row::new(format!("utilisation, RTT {rtt_ms} ms, {name}"), "%", mean(&values));
            rows.push(match rtt_ms {
                ..=50 => {
                    let row = row.paper(95.0).note("the paper: over 95 % under small RTTs");
                    if queue == 0 { row.not_below(95.0) } else { row }
                }
                401.. => row.paper(50.0).note(if queue == 0 { DEEP } else { SHALLOW }),
                _ => row,
            });
        }
        figure = figure.with(Series::curve(name, drawn));
    }
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

const DEEP: &str = "the paper: below 50 % beyond 400 ms. The rest depends on the queue, which it \
    does not give: a deep one bridges the time that TCP needs (rows of 50 packets)";
const SHALLOW: &str = "an arm added after the first results, to see the effect of the queue";
