//! Players: each stall and each change of bitrate, with the cause of the segment's delay.

pub use crate::fact::SegmentWait;
use std::collections::BTreeMap;

use airmile_model::{AppTransfer, ApplicationLog, PlayerEvent, PlayerEventKind, TimeBase, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::diagnose::{Diagnosis, TransferDiagnosis};
use super::radio::RadioAnalysis;
use crate::wording;

/// An analysed transfer matches a segment if it starts within this time of it (chosen here: clocks
/// that could not be aligned differ by more).
const NEAR_US: i64 = 1_000_000;

/// The events of a player, with their network causes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlayerSession {
    /// The log's name.
    pub path: String,
    /// Stalls of the playback.
    pub stalls: Vec<PlayerStall>,
    /// Changes of the bitrate.
    pub switches: Vec<PlayerSwitch>,
    /// Time of the segments that stalls waited for, by cause, in ms.
    pub shares: BTreeMap<&'static str, f64>,
    /// A summary in a sentence.
    pub says: String,
}

/// A stall of the playback.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlayerStall {
    /// Its start, in microseconds by the log's clock.
    pub at_us: i64,
    /// Its length in ms; null if the log does not have its end.
    pub duration_ms: Option<f64>,
    /// The segment that it waited for.
    pub segment: Option<SegmentWait>,
    /// The same as a sentence.
    pub says: String,
}

/// A change of the bitrate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlayerSwitch {
    /// Its time, in microseconds by the log's clock.
    pub at_us: i64,
    /// The old bitrate in bits per second; null for the first.
    pub from_bps: Option<f64>,
    /// The new bitrate in bits per second.
    pub to_bps: Option<f64>,
    /// The last segment that arrived before.
    pub segment: Option<SegmentWait>,
    /// The same as a sentence.
    pub says: String,
}

/// The players of application logs, with the verdicts on their segments.
pub(super) fn players(diagnosis: &Diagnosis, analysis: &RadioAnalysis) -> Vec<PlayerSession> {
    let of_player = |kind| matches!(kind, PlayerEventKind::Stall | PlayerEventKind::Switch);
    let logs = analysis
        .applications
        .iter()
        .filter(|one| one.log.events.iter().any(|event| of_player(event.kind)));
    logs.map(|one| session(&one.path, &one.log, &diagnosis.transfers)).collect()
}

fn session(path: &str, log: &ApplicationLog, judged: &[TransferDiagnosis]) -> PlayerSession {
    let by_id: BTreeMap<&str, &TransferDiagnosis> =
        judged.iter().map(|one| (one.id.as_str(), one)).collect();
    let wait = |segment: &AppTransfer| wait(segment, log, &by_id, judged);
    let (mut stalls, mut switches) = (Vec::new(), Vec::new());
    let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
    let mut bitrate: Option<f64> = None;
    for event in &log.events {
        let at_us = event.at_ns.div_euclid(1_000);
        match event.kind {
            PlayerEventKind::Stall => {
                let segment = waited_for(log, event).map(wait);
                for (cause, ms) in segment.iter().flat_map(|one| &one.shares) {
                    *shares.entry(cause).or_default() += ms;
                }
                let says = wording::stall(event.value, segment.as_ref());
                stalls.push(PlayerStall { at_us, duration_ms: event.value, segment, says });
            }
            PlayerEventKind::Switch => {
                let segment = come_before(log, event).map(wait);
                let (from_bps, to_bps) = (bitrate, event.value);
                let says = wording::switch(from_bps, to_bps, segment.as_ref());
                switches.push(PlayerSwitch { at_us, from_bps, to_bps, segment, says });
                bitrate = event.value.or(bitrate);
            }
            _ => {}
        }
    }
    let stalled_ms: f64 = stalls.iter().filter_map(|stall| stall.duration_ms).sum();
    let down = switches.iter().filter(|one| one.from_bps > one.to_bps).count();
    let says = wording::player(stalls.len(), stalled_ms, switches.len(), down, &shares);
    PlayerSession { path: path.to_owned(), stalls, switches, shares, says }
}

/// The segment in transfer during a stall; if several, the one whose request the stall was reported
/// for, else the one that started first.
fn waited_for<'a>(log: &'a ApplicationLog, stall: &PlayerEvent) -> Option<&'a AppTransfer> {
    let at_ns = stall.at_ns;
    let mut under_way =
        log.transfers.iter().filter(|one| (one.start_ns..one.end_ns).contains(&at_ns));
    let own = under_way.clone().find(|one| one.start_ns == at_ns);
    own.or_else(|| under_way.next()).or_else(|| come_before(log, stall))
}

/// The last segment that arrived before an event.
fn come_before<'a>(log: &'a ApplicationLog, event: &PlayerEvent) -> Option<&'a AppTransfer> {
    let before = log.transfers.iter().filter(|one| one.end_ns <= event.at_ns);
    before.max_by_key(|one| one.end_ns)
}

fn wait(
    segment: &AppTransfer,
    log: &ApplicationLog,
    by_id: &BTreeMap<&str, &TransferDiagnosis>,
    judged: &[TransferDiagnosis],
) -> SegmentWait {
    let start_us = segment.start_ns.div_euclid(1_000);
    let is_near = |one: &TransferDiagnosis| match one.finding.start_us {
        Some(us) => us.abs_diff(start_us) <= NEAR_US.unsigned_abs(),
        None => log.scale.base == TimeBase::Unplaced,
    };
    let own = by_id.get(segment.id.as_str()).copied().filter(|one| is_near(one));
    // The analysed transfers may be those of packets; then they are matched by time.
    let touching = || {
        let overlap_us = |one: &&TransferDiagnosis| {
            let (from, to) = one.finding.start_us.zip(one.finding.end_us)?;
            let end_us = segment.end_ns.div_euclid(1_000);
            Some(to.min(end_us) - from.max(start_us)).filter(|us| *us > 0)
        };
        let with = judged.iter().filter_map(|one| Some((overlap_us(&one)?, one)));
        with.max_by_key(|(us, _)| *us).map(|(_, one)| one)
    };
    let found = own.or_else(touching);
    let ns = segment.end_ns.saturating_sub(segment.start_ns).max(1);
    SegmentWait {
        id: segment.id.clone(),
        name: segment.name(),
        duration_ms: ns as f64 / 1e6,
        bps: segment.bytes.map(|bytes| bytes as f64 * 8e9 / ns as f64),
        bitrate_bps: segment.bitrate_bps,
        verdict: found.map_or(Verdict::Unknown, |one| one.verdict),
        shares: found.map(|one| one.shares.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn event(at_s: i64, kind: PlayerEventKind, value: f64) -> PlayerEvent {
        PlayerEvent { at_ns: at_s * S, kind, value: Some(value) }
    }

    #[test]
    fn a_stall_waits_for_the_segment_under_way_and_a_switch_follows_the_last() {
        let mut log = ApplicationLog::default();
        for (id, from, to) in [("a", 0, 2), ("b", 2, 9)] {
            let mut segment = AppTransfer::new(id.into(), from * S, to * S);
            segment.bytes = Some(1_000_000);
            log.transfers.push(segment);
        }
        log.events = vec![
            event(0, PlayerEventKind::Switch, 3e6),
            event(7, PlayerEventKind::Stall, 2_000.0),
            event(9, PlayerEventKind::Switch, 1e6),
        ];
        let found = session("p.jsonl", &log, &[]);
        let [stall] = found.stalls.as_slice() else { panic!() };
        let segment = stall.segment.as_ref().unwrap();
        assert_eq!((segment.id.as_str(), segment.duration_ms), ("b", 7_000.0));
        assert_eq!(segment.bps, Some(8e6 / 7.0));
        let [_, down] = found.switches.as_slice() else { panic!() };
        assert_eq!((down.from_bps, down.to_bps), (Some(3e6), Some(1e6)));
        assert_eq!(down.segment.as_ref().unwrap().id, "b");
        assert!(found.says.contains("stalled once") && found.says.contains("1 of them down"));
    }
}
