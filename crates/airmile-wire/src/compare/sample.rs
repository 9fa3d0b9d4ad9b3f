//! Transfers of a group, and their statistics.

use std::collections::BTreeSet;

use airmile_model::median::median;
use schemars::JsonSchema;
use serde::Serialize;

use super::growth::{Growth, Start};
use super::resample::{Estimate, estimate, share};

/// A pause this long exceeds any sender's RTO, after which it may restart (RFC 5681,
/// 4.1); chosen here: RTOs are a round trip and 200 ms in Linux, at least 1 s by RFC 6298
/// (2.4).
pub const PAUSE_NS: i64 = 1_000_000_000;

/// What is known of a transfer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// When it began, in nanoseconds.
    pub start_ns: i64,
    /// How long it took, in nanoseconds.
    pub duration_ns: i64,
    /// Its bytes.
    pub bytes: u64,
    /// From the request to the first byte.
    pub wait_ns: Option<i64>,
    /// Throughput time: how long the downlink's queue was not empty.
    pub queued_ns: Option<i64>,
    /// Time since the previous transfer of its connection; `None` for the first.
    pub pause_ns: Option<i64>,
    /// How its rate developed.
    pub growth: Option<Growth>,
    /// The connection's round trip, in nanoseconds.
    pub rtt_ns: Option<i64>,
    /// Rate inside bursts in bits per second, if they are long: what the link carried while data waited.
    pub link_bps: Option<f64>,
    /// Load of the cell by others, 0 to 1.
    pub others_load: Option<f64>,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f64>,
    /// Whether its log has no time of day.
    pub is_timeless: bool,
    /// Its turn within the group: transfers with the same number were taken together.
    pub turn: usize,
}

impl Sample {
    /// Whether its sender had reason to restart.
    #[must_use]
    pub fn is_behind_pause(&self) -> bool {
        self.pause_ns.is_some_and(|pause_ns| pause_ns >= PAUSE_NS)
    }

    fn start(&self) -> Option<Start> {
        self.growth.map(|growth| growth.start)
    }
}

/// Whether a group's senders restart slow start after pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restarts {
    /// In two of three transfers after pauses, or more.
    Yes,
    /// In one of three, or less.
    No,
    /// Undetermined.
    Unknown,
}

/// Statistics of a group's transfers, with 95 % intervals.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupFinding {
    /// Transfers.
    pub transfers: usize,
    /// Those after a pause of a second or more.
    pub behind_pauses: usize,
    /// Of the classifiable transfers after pauses, the share that began in slow start.
    pub restarts: Option<Estimate>,
    /// Whether its senders restart slow start.
    pub restarts_slow_start: Restarts,
    /// Throughput time / duration, over all.
    pub link_demand: Option<Estimate>,
    /// Bytes / duration in bits per second, over all.
    pub throughput_bps: Option<Estimate>,
    /// Median rate of the second half of a transfer after a pause, in bits per second.
    pub late_rate_bps: Option<Estimate>,
    /// Mean cost of the growth of the rate after a pause, in ms.
    pub growth_ms: Option<Estimate>,
    /// Median time from the request to the first byte, in ms.
    pub wait_ms: Option<Estimate>,
    /// Median duration in ms.
    pub duration_ms: Option<Estimate>,
    /// Median unevenness of arrivals: standard deviation over mean of the bytes per
    /// round trip.
    pub unevenness: Option<f64>,
    /// Median round trip of handshakes, in ms.
    pub rtt_ms: Option<f64>,
    /// Median rate inside bursts in bits per second, of transfers with long ones: what the link carried
    /// while data waited.
    pub link_throughput_bps: Option<f64>,
    /// Median share of the cell held by other users, 0 to 1.
    pub others_load: Option<f64>,
    /// Median RSRP in dBm.
    pub rsrp_dbm: Option<f64>,
    /// Median bytes of a transfer.
    pub bytes: Option<f64>,
    /// Median pause before a transfer, in ms.
    pub pause_ms: Option<f64>,
}

/// Measures a group.
#[must_use]
pub fn measure(samples: &[Sample], seed: u64) -> GroupFinding {
    let all: Vec<&Sample> = samples.iter().collect();
    let behind: Vec<&Sample> = behind_pauses(samples);
    let starts = |wanted| behind.iter().filter(|sample| sample.start() == Some(wanted)).count();
    let (slow, open) = (starts(Start::SlowStart), starts(Start::Open));
    let restarts = share(slow, slow + open);
    GroupFinding {
        transfers: samples.len(),
        behind_pauses: behind.len(),
        restarts_slow_start: restarts_of(restarts),
        restarts,
        link_demand: estimate(&all, &link_demand, seed),
        throughput_bps: estimate(&all, &throughput_bps, seed),
        late_rate_bps: estimate(&behind, &late_bps, seed),
        growth_ms: estimate(&behind, &growth_ms, seed),
        wait_ms: estimate(&all, &|of: &[&Sample]| middle(of, |s| s.wait_ns.map(ms)), seed),
        duration_ms: estimate(
            &all,
            &|of: &[&Sample]| middle(of, |s| Some(ms(s.duration_ns))),
            seed,
        ),
        unevenness: middle(&all, |s| s.growth?.unevenness),
        rtt_ms: middle(&all, |s| s.rtt_ns.map(ms)),
        link_throughput_bps: middle(&all, |s| s.link_bps),
        others_load: middle(&all, |s| s.others_load),
        rsrp_dbm: middle(&all, |s| s.rsrp_dbm),
        bytes: middle(&all, |s| Some(s.bytes as f64)),
        pause_ms: middle(&all, |s| s.pause_ns.map(ms)),
    }
}

/// From this share of transfers on a group restarts, and up to one minus it does not
/// (chosen here: one transfer in three may be delayed by something else; the permutation
/// test decides whether two groups differ).
const MAJORITY_SHARE: f64 = 2.0 / 3.0;
/// Minimum number of classifiable transfers (chosen here).
const MIN_KNOWN: usize = 4;

fn restarts_of(share: Option<Estimate>) -> Restarts {
    match share.filter(|share| share.n >= MIN_KNOWN).map(|share| share.value) {
        Some(value) if value >= MAJORITY_SHARE - 1e-9 => Restarts::Yes,
        Some(value) if value <= 1.0 - MAJORITY_SHARE + 1e-9 => Restarts::No,
        _ => Restarts::Unknown,
    }
}

/// Restarts of slow start after pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartsSeen {
    /// Transfers that began in slow start.
    pub restarted: usize,
    /// Classifiable transfers.
    pub known: usize,
    /// What the growth of those that restarted cost, in nanoseconds.
    pub cost_ns: i64,
}

/// The restarts among transfers after pauses, by how their rates grew; `None` if they are not the
/// rule, or too few are known.
#[must_use]
pub fn restarts_after_pauses(grown: &[Growth]) -> Option<RestartsSeen> {
    let starts = |wanted| grown.iter().filter(move |one| one.start == wanted);
    let restarted = starts(Start::SlowStart).count();
    let known = restarted + starts(Start::Open).count();
    let cost_ns = starts(Start::SlowStart).map(|one| one.lag_ns.max(0)).sum();
    let is_rule = restarts_of(share(restarted, known)) == Restarts::Yes;
    is_rule.then_some(RestartsSeen { restarted, known, cost_ns })
}

/// The transfers after pauses.
pub(super) fn behind_pauses(samples: &[Sample]) -> Vec<&Sample> {
    samples.iter().filter(|sample| sample.is_behind_pause()).collect()
}

/// Throughput time over duration.
pub(super) fn link_demand(samples: &[&Sample]) -> Option<f64> {
    let known = samples.iter().filter_map(|s| Some((s.queued_ns?, s.duration_ns)));
    let (queued, duration) =
        known.fold((0, 0), |(q, d), (queued, duration)| (q + queued, d + duration));
    (duration > 0).then(|| queued as f64 / duration as f64)
}

/// Bits over duration.
pub(super) fn throughput_bps(samples: &[&Sample]) -> Option<f64> {
    let bytes: u64 = samples.iter().map(|s| s.bytes).sum();
    let ns: i64 = samples.iter().map(|s| s.duration_ns).sum();
    (ns > 0 && bytes > 0).then(|| bytes as f64 * 8e9 / ns as f64)
}

/// Median of late rates.
pub(super) fn late_bps(samples: &[&Sample]) -> Option<f64> {
    middle(samples, |s| Some(s.growth?.late_bps))
}

/// Mean cost of growth.
pub(super) fn growth_ms(samples: &[&Sample]) -> Option<f64> {
    let lags: Vec<f64> = samples.iter().filter_map(|s| Some(ms(s.growth?.lag_ns))).collect();
    (!lags.is_empty()).then(|| lags.iter().sum::<f64>() / lags.len() as f64)
}

/// Share that began in slow start, of the classifiable ones.
pub(super) fn restart_share(samples: &[&Sample]) -> Option<f64> {
    let starts = |wanted| samples.iter().filter(|s| s.start() == Some(wanted)).count();
    let (slow, open) = (starts(Start::SlowStart), starts(Start::Open));
    (slow + open > 0).then(|| slow as f64 / (slow + open) as f64)
}

fn middle(samples: &[&Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(samples.iter().filter_map(|s| of(s)))
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Transfers of one turn begin within this time (chosen here: ten ports with a segment of
/// some seconds each).
const TURN_NS: i64 = 60_000_000_000;

/// Whether groups were measured alternately: there are at least two turns, and in two thirds of them
/// every group has a transfer, one after the other within a minute, and after the turn before. Then
/// changes over time affect all groups.
#[must_use]
pub fn is_by_turns(groups: &[Vec<Sample>]) -> bool {
    if groups.iter().flatten().any(|sample| sample.is_timeless) {
        return false;
    }
    let turns: BTreeSet<usize> = groups.iter().flatten().map(|sample| sample.turn).collect();
    let mut before_ns = i64::MIN;
    let mut alternates = |turn: &&usize| {
        let of = |group: &Vec<Sample>| group.iter().find(|sample| sample.turn == **turn).cloned();
        let Some(mut all) = groups.iter().map(of).collect::<Option<Vec<Sample>>>() else {
            return false;
        };
        all.sort_by_key(|sample| sample.start_ns);
        let apart = |a: &Sample, b: &Sample| a.start_ns.saturating_add(a.duration_ns) <= b.start_ns;
        let (Some(first), Some(last)) = (all.first(), all.last()) else { return false };
        let is_turn = last.start_ns.saturating_sub(first.start_ns) <= TURN_NS
            && before_ns < first.start_ns
            && all.is_sorted_by(apart);
        if is_turn {
            before_ns = last.start_ns;
        }
        is_turn
    };
    turns.len() > 1 && 3 * turns.iter().filter(|turn| alternates(turn)).count() >= 2 * turns.len()
}
