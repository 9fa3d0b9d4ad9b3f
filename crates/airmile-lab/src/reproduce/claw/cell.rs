//! Figures 6 and 10: RSRQ against allocated RBs, and the estimation of a changing load.

use airmile_emulate::net::IpPacket;
use airmile_emulate::workload::Workload;
use airmile_emulate::{AppConfig, CapturePoint, RunSink, Scenario, TransportKind};
use airmile_model::Record;
use airmile_radio::load::{Fit, LoadEstimator, LoadOptions, plain_rsrq_db};

use super::{Axis, Experiment, ExperimentResult, Figure, Row, SEEDS, Series, Work, mean, read};
use crate::reproduce::runs::cannot;
use crate::run;
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "claw-fig6-10",
    source: "CLAW, MobiSys 2017, figures 6 and 10",
    what: "RSRQ against allocated RBs; the estimated load during a growing stream",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../../experiments/claw-growing.toml");

/// Increase per second (6.1).
const STEP_BPS: u64 = 500_000;
/// The first stream's start, after all earlier traffic has ended.
const START_MS: u32 = 4_000;
/// The smoothing window (figure 10).
const WINDOW_MS: i64 = 200;

/// Records of the modem, and data that arrived at the phone.
#[derive(Default)]
struct PhoneRecords {
    records: Vec<Record>,
    arrived: Vec<(i64, u32)>,
}

impl RunSink for PhoneRecords {
    fn record(&mut self, record: Record) {
        if matches!(record, Record::Grant(_) | Record::Measurement(_) | Record::CellInfo(_)) {
            self.records.push(record);
        }
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        if point == CapturePoint::Phone && !packet.src.ip().is_private() {
            self.arrived.push((at_ns, packet.ip_bytes()));
        }
    }
}

/// A stream for each second, which continues until the end.
fn growing(seed: u64, seconds: u64) -> Result<Scenario> {
    let mut scenario = read(SCENARIO)?;
    (scenario.seed, scenario.duration_ms) = (seed, START_MS + 1_000 * (seconds as u32 + 2));
    let stream = |n: u64| AppConfig {
        name: format!("stream-{n}"),
        start_ms: START_MS + 1_000 * n as u32,
        port: 443,
        transport: TransportKind::Tcp,
        workload: Workload::Paced {
            bytes: (seconds - n) * STEP_BPS / 8,
            rate_bps: STEP_BPS,
            block_bytes: None,
        },
    };
    scenario.apps.extend((0..seconds).map(stream));
    Ok(scenario)
}

/// Results of a run.
struct Followed {
    /// Correlation of the estimated load with the traffic, and with the true load.
    traffic: f64,
    truth: f64,
    /// Correlation of the true load with the traffic, and of the estimated rate with it.
    ceiling: f64,
    rate: f64,
    /// Mean absolute error of the load in points.
    error: f64,
    /// Correlation of RSRQ in dB with equation 6 at the true share of the subframe.
    rsrq: f64,
    /// Load and Mbit/s by time in s; RSRQ by RBs.
    load: Vec<(f64, f64)>,
    mbps: Vec<(f64, f64)>,
    by_rbs: Vec<(f64, f64)>,
}

pub(super) fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let sums = pairs.iter().fold((0.0, 0.0, 0.0), |(xy, xx, yy), p| {
        let (dx, dy) = (p.0 - x, p.1 - y);
        (xy + dx * dy, xx + dx * dx, yy + dy * dy)
    });
    sums.0 / (sums.1 * sums.2).sqrt()
}

fn follow(scenario: &Scenario) -> Result<Followed> {
    let mut seen = PhoneRecords::default();
    let outcome = run::run(scenario, &mut seen).map_err(cannot)?;
    let start_ns = outcome.epoch_ns + outcome.first_tti.0 * outcome.slot_ns;
    let mut used = vec![0_u16; outcome.n_tti as usize];
    for run in &outcome.truth.cell_use {
        let from = run.tti.since(outcome.first_tti) as usize;
        used.iter_mut().skip(from).take(run.n_tti as usize).for_each(|n_prb| *n_prb = run.n_prb);
    }
    let cell_prb = f64::from(scenario.cell.n_prb);
    let options = LoadOptions { window_ms: WINDOW_MS, fit: Fit::Past, ..LoadOptions::default() };
    let mut estimator = LoadEstimator::new(options);
    seen.records.iter().for_each(|record| estimator.push(record));
    let (mut load, mut mbps, mut traffic, mut truth) = (vec![], vec![], vec![], vec![]);
    let (mut ceiling, mut rates) = (vec![], vec![]);
    for estimate in estimator.finish() {
        let Some(estimated) = estimate.load else { continue };
        let from = estimate.tti.since(outcome.first_tti);
        let Ok(at) = usize::try_from(from) else { continue };
        let within: Vec<f64> =
            used.iter().skip(at).take(WINDOW_MS as usize).map(|n| f64::from(*n)).collect();
        if within.len() < WINDOW_MS as usize || from < i64::from(START_MS) {
            continue;
        }
        let from_ns = start_ns + from * 1_000_000;
        let span = from_ns..from_ns + WINDOW_MS * 1_000_000;
        let bytes: u32 =
            seen.arrived.iter().filter(|(t, _)| span.contains(t)).map(|(_, b)| b).sum();
        let rate = f64::from(bytes) * 8.0 / (WINDOW_MS as f64 * 1e3);
        let true_load = within.iter().sum::<f64>() / cell_prb / WINDOW_MS as f64;
        let seconds = from as f64 / 1e3;
        load.push((seconds, 100.0 * estimated));
        mbps.push((seconds, rate));
        traffic.push((estimated, rate));
        truth.push((estimated, true_load));
        ceiling.push((true_load, rate));
        // Equation 12 with the PRBs in use instead of the free ones.
        if let (Some(free_bps), Some(free)) = (estimate.capacity_bps, estimate.n_free_prb) {
            rates.push((free_bps * estimated * estimate.n_total_prb / free.max(1.0), rate));
        }
    }
    let mut rsrq = Vec::new();
    let mut by_rbs = Vec::new();
    for record in &seen.records {
        let Record::Measurement(m) = record else { continue };
        let (Some(db), at) = (m.rsrq_rx0_db, m.position.tti.since(outcome.first_tti)) else {
            continue;
        };
        let Some(n_prb) = usize::try_from(at).ok().and_then(|at| used.get(at)) else { continue };
        let share = f64::from(*n_prb) / cell_prb;
        rsrq.push((f64::from(db), plain_rsrq_db(share, scenario.cell.n_tx_antennas)));
        by_rbs.push((f64::from(*n_prb), f64::from(db)));
    }
    let errors: Vec<f64> = truth.iter().map(|(a, b)| 100.0 * (a - b).abs()).collect();
    Ok(Followed {
        traffic: correlation(&traffic),
        truth: correlation(&truth),
        ceiling: correlation(&ceiling),
        rate: correlation(&rates),
        error: mean(&errors).value,
        rsrq: correlation(&rsrq),
        load,
        mbps,
        by_rbs,
    })
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let seconds = work.size.of(6, 28, 28);
    let runs = work.size.of(1, 8, 20);
    let scenarios: Vec<Scenario> =
        (0..runs).map(|n| growing(SEEDS + n, seconds)).collect::<Result<_>>()?;
    let found = work.for_each(&scenarios, follow)?;
    let of = |value: fn(&Followed) -> f64| mean(&found.iter().map(value).collect::<Vec<_>>());
    let rows = vec![
        Row::new(
            "correlation of the estimated load with the traffic at the phone",
            "",
            of(|f| f.traffic),
        )
        .at_least(0.95)
        .note("bound: the true load's own correlation, two rows below"),
        Row::new("correlation of the estimated load with the true one", "", of(|f| f.truth)),
        Row::new("correlation of the true load with the traffic", "", of(|f| f.ceiling))
            .note("an upper bound for any load analyzer"),
        Row::new("correlation of the estimated rate with the traffic", "", of(|f| f.rate))
            .note("the estimated load, by equation 12 at the MCS of its window"),
        Row::new("error of the estimated load, mean", "points", of(|f| f.error)),
        Row::new("correlation of RSRQ with equation 6 by the RBs in use", "", of(|f| f.rsrq)),
    ];
    let mut figures = Vec::new();
    if let Some(first) = found.first() {
        let rbs = Figure::new(
            "rsrq",
            "RSRQ by the RBs in use",
            Axis::new("RB pairs in use (number)"),
            Axis::new("RSRQ (dB)").from(-20.0, 0.0),
        )
        .with(Series::scatter("measured", first.by_rbs.clone()))
        .caption("The first run; one antenna's readings.");
        let load = Figure::new(
            "load",
            "The estimated load and the traffic",
            Axis::new("time (s)"),
            Axis::new("load (%), traffic (Mbit/s)"),
        )
        .with(Series::curve("load", first.load.clone()))
        .with(Series::curve("traffic", first.mbps.clone()))
        .caption(format!("The first of n = {runs} runs; windows of 200 ms."));
        figures.extend([rbs, load]);
    }
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_by_hand() {
        assert!((correlation(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)])).abs() < 1e-12);
    }
}
