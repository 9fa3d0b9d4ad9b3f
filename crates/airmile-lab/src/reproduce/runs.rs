//! Scenarios of experiments: parsed, varied, run on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airmile_emulate::{EmulatedTransfer, Scenario, SchedulerKind};
use airmile_model::{Direction, Record, Transfer, VerdictThresholds};
use airmile_radio::burst::BurstOptions;
use airmile_radio::transfer::Timeline;

use super::Size;
use super::follow::RunCount;
use super::hosts::Hosts;
use airmile::{Error, Result};

/// Every scheduler of the emulator.
pub(super) const SCHEDULERS: [(&str, SchedulerKind); 5] = [
    ("whole TTIs", SchedulerKind::WholeTti),
    ("round robin", SchedulerKind::RoundRobin),
    ("PF in frequency", SchedulerKind::PfFrequency),
    ("max C/I", SchedulerKind::MaxCi),
    ("blind equal", SchedulerKind::BlindEqual),
];

/// Parses an experiment's scenario.
pub(super) fn read(text: &str) -> Result<Scenario> {
    Scenario::from_toml(text).map_err(|e| Error::Option(format!("an experiment's scenario: {e}")))
}

/// The scenario with only one of its applications.
pub(super) fn only(scenario: &Scenario, app: &str) -> Scenario {
    let mut one = scenario.clone();
    one.apps.retain(|config| config.name == app);
    one
}

/// Converts an emulator error.
pub(super) fn cannot(error: impl std::fmt::Display) -> Error {
    Error::Option(format!("an experiment cannot be run: {error}"))
}

/// Amount of work of an experiment, and its progress counter.
pub(super) struct Work<'a> {
    pub(super) size: Size,
    /// Runs jobs between real hosts.
    pub(super) hosts: Option<&'a dyn Hosts>,
    pub(super) runs: &'a RunCount,
}

impl Work<'_> {
    /// Processes items on all cores; results are in the items' order.
    pub(super) fn for_each<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        self.runs.expect(items.len());
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let take = || {
            while let Some((at, item)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                items.get(at).map(|item| (at, item))
            } {
                let result = work(item);
                self.runs.ended();
                let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                done.push((at, result));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores.min(items.len()) {
                scope.spawn(take);
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// Estimated throughput time and Active time in ms, summed over a run's downlink transfers;
/// `None`: no such evidence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimated {
    pub(super) throughput_ms: Option<f64>,
    pub(super) active_ms: Option<f64>,
}

/// Estimates from the phone's log of a run.
pub(super) fn estimate(
    records: &[Record],
    transfers: &[EmulatedTransfer],
    options: &BurstOptions,
) -> Estimated {
    let timeline = Timeline::from_downlink_records(records, options);
    let downlink: Vec<Transfer> = downlink(transfers).map(|t| t.transfer.clone()).collect();
    let findings = timeline.findings(&downlink, &VerdictThresholds::default());
    Estimated {
        throughput_ms: findings.iter().map(|finding| finding.throughput_time_ms).sum(),
        active_ms: findings.iter().map(|finding| finding.active_time_ms).sum(),
    }
}

/// True throughput time and duration in ms of a run's downlink transfers.
pub(super) fn truth(transfers: &[EmulatedTransfer]) -> (f64, f64) {
    let add = |(throughput, duration): (f64, f64), t: &EmulatedTransfer| {
        let (ms, of) = (t.truth.throughput_time_ms, t.truth.duration_ms.unwrap_or(0.0));
        (throughput + ms, duration + of)
    };
    downlink(transfers).fold((0.0, 0.0), add)
}

/// A run's downlink transfers.
pub(super) fn downlink(transfers: &[EmulatedTransfer]) -> impl Iterator<Item = &EmulatedTransfer> {
    transfers.iter().filter(|transfer| transfer.dir == Direction::Dl)
}

/// Absolute error in percent of the truth.
pub(super) fn error_percent(estimate_ms: Option<f64>, truth_ms: f64) -> f64 {
    estimate_ms.map_or(f64::NAN, |estimate| 100.0 * (estimate - truth_ms).abs() / truth_ms)
}
