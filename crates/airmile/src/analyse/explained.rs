//! Findings of transfers from the trackers' measurements, for given and detected transfers, alone
//! and joined with those at the same time.

use airmile_model::{Direction, Transfer, TransferFinding};
use airmile_radio::detect::judge_guess;
use airmile_radio::meter::TransferMeter;
use airmile_radio::usage::Usage;

use super::radio::{RadioOptions, TransferTrace};
use super::subscription::TrackDone;
use super::together::{self, Together};
use airmile_io::limits::LimitFilter;
use airmile_radio::watch::{OpenTransfer, direction};

/// A detected activity below this rate is no transfer: a voice call has 10 to 40 kbit/s with its
/// headers (TS 26.201, and RFC 4867 over RTP; chosen here above that).
const CHATTER_BPS: f64 = 64_000.0;
/// The rate limit applies to activities of at least this duration (chosen here: a short one is not
/// slow).
const CHATTER_MS: f64 = 2_000.0;
/// Nor does it apply if data waited for the radio for at least this share of the time.
const WAITS: f64 = 0.5;
/// Share of acknowledgements for data in the other direction: 52 bytes for one or two segments of
/// 1500 (RFC 5681, 4.2). In small blocks they are more, with the headers of each (chosen here: those of QUIC
/// and of SACK, in a slot each, take up to a fifth).
const ACKS_PART: u64 = 25;
const SMALL_ACKS_PART: u64 = 5;
const SMALL_BLOCK_BYTES: f64 = 500.0;

/// Whether a detected activity is no transfer: its rate is too low, or it consists of
/// acknowledgements for data in the other direction.
pub(super) fn is_chatter(finding: &TransferFinding, all: &[TransferFinding]) -> bool {
    let Some(bytes) = finding.bytes else { return false };
    // An activity that waits for the radio is slow because of it.
    let waits = finding.link_demand.is_none_or(|demand| demand >= WAITS);
    let slow = !waits
        && finding.duration_ms >= CHATTER_MS
        && bytes as f64 * 8_000.0 / finding.duration_ms < CHATTER_BPS;
    let other_way = all.iter().filter(|other| {
        other.dir != finding.dir
            && other.start_tti < finding.end_tti
            && other.end_tti > finding.start_tti
    });
    let carried: u64 = other_way.filter_map(|other| other.bytes).fold(0, u64::saturating_add);
    let n_tti = finding.end_tti.since(finding.start_tti) as f64;
    let blocks = finding.active_time_ms.unwrap_or(0.0) * n_tti / finding.duration_ms;
    let small = !waits && bytes as f64 <= SMALL_BLOCK_BYTES * blocks;
    let part = if small { SMALL_ACKS_PART } else { ACKS_PART };
    slow || carried >= bytes.saturating_mul(part)
}

/// The finding of a transfer with its explanation.
pub(super) struct ExplainedTransfer {
    pub(super) finding: TransferFinding,
    pub(super) usage: Usage,
    pub(super) seen: TransferTrace,
}

/// Findings of transfers of one direction.
fn conclude_all(
    track: &TrackDone,
    watched: &[&OpenTransfer],
    options: &RadioOptions,
) -> impl Iterator<Item = ExplainedTransfer> {
    let gauged: Vec<(&Transfer, Option<&TransferMeter>)> =
        watched.iter().map(|w| (&w.transfer, w.gauge.as_ref())).collect();
    let findings = track.timeline.conclude(&gauged, &options.thresholds);
    findings.into_iter().zip(watched).map(|(finding, watched)| ExplainedTransfer {
        finding,
        usage: track.usage.conclude(&watched.usage),
        seen: TransferTrace {
            bursts: watched.gauge.as_ref().map(|gauge| gauge.bursts().clone()),
            others: watched.others,
        },
    })
}

pub(super) fn findings_of_detected(
    track: &TrackDone,
    options: &RadioOptions,
) -> Vec<(usize, ExplainedTransfer)> {
    let watched: Vec<&OpenTransfer> = track.watched.iter().collect();
    let found = conclude_all(track, &watched, options).zip(&watched);
    let guessed = found.map(|(mut found, watched)| {
        judge_guess(&mut found.finding, watched.guess_ttis, &options.thresholds);
        found
    });
    guessed.enumerate().collect()
}

/// The findings on the timeline of each direction that start within the limits; a transfer that
/// cannot be placed is kept, so that it is reported.
pub(super) fn findings_of_given(
    dl: &TrackDone,
    ul: &TrackDone,
    mut filter: LimitFilter,
    n_given: usize,
    options: &RadioOptions,
) -> Vec<(usize, ExplainedTransfer)> {
    let both = dl.watched.iter().zip(&ul.watched).take(n_given);
    let kept = both.filter(|(dl, _)| dl.start_ns().is_none_or(|ns| filter.keeps_ns(ns)));
    let (up, down): (Vec<_>, Vec<_>) =
        kept.partition(|(dl, ul)| direction(dl, ul) == Direction::Ul);
    let mut out = Vec::new();
    for (track, part) in [(dl, down), (ul, up)] {
        let of = |(dl, ul)| if track.timeline.dir() == Direction::Dl { dl } else { ul };
        let watched: Vec<&OpenTransfer> = part.into_iter().map(of).collect();
        let found = conclude_all(track, &watched, options);
        out.extend(watched.iter().map(|watched| watched.number).zip(found));
    }
    out.sort_by_key(|(number, _)| *number);
    out
}

/// Each group of given transfers whose members were all found in its direction.
pub(super) fn findings_of_groups(
    dl: &TrackDone,
    ul: &TrackDone,
    given: &[Transfer],
    found: &[(usize, ExplainedTransfer)],
    options: &RadioOptions,
) -> Vec<Together> {
    let measured = dl.watched.iter().zip(&ul.watched).skip(given.len());
    let groups = together::groups(given).into_iter().zip(measured);
    groups
        .filter_map(|(group, (down, up))| {
            let dir = group.transfer.dir?;
            let (track, watched) = if dir == Direction::Dl { (dl, down) } else { (ul, up) };
            let place = |number: &usize| {
                let at = found.binary_search_by_key(number, |(number, _)| *number).ok()?;
                found.get(at).filter(|(_, one)| one.finding.dir == dir).map(|_| at)
            };
            let members = group.members.iter().map(place).collect::<Option<Vec<usize>>>()?;
            let ExplainedTransfer { finding, usage, .. } =
                conclude_all(track, &[watched], options).next()?;
            Some(Together { finding, usage, members })
        })
        .collect()
}
