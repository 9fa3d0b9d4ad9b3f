//! Summaries of application logs: sums and sentences.

use airmile_model::{
    AppTransfer, ApplicationLog, Direction, PlayerEvent, PlayerEventKind, TimeBase,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{bits_per_s, ms};
use crate::session::Application;
use airmile_io::plural;

/// The contents of an application's log, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ApplicationSummary {
    /// The path it was opened with.
    pub path: String,
    /// Its format.
    pub kind: &'static str,
    /// The program that wrote it, as stated in it.
    pub made_by: Option<String>,
    /// The origin of its times.
    pub clock: TimeBase,
    /// Precision of its start, in ms.
    pub placed_within_ms: f64,
    /// Whether the transfers above are from this log.
    pub gave_transfers: bool,
    /// Transfers over the network.
    pub transfers: u64,
    /// Number of failed ones.
    pub failed: u64,
    /// Requests served from the cache.
    pub from_cache: u64,
    /// Bytes of its transfers.
    pub bytes: u64,
    /// Time with at least one transfer, in ms.
    pub busy_ms: f64,
    /// Bytes over that time, in bits per second.
    pub busy_bps: Option<f64>,
    /// Number of stalls.
    pub stalls: u64,
    /// Total length of stalls, in ms; a stall without an end in the log counts as zero.
    pub stalled_ms: f64,
    /// Changes of the bitrate.
    pub switches: u64,
    /// Mean bitrate of the media segments, in bits per second.
    pub mean_bitrate_bps: Option<f64>,
    /// Minimum of the player's buffer after the start, in ms.
    pub least_buffer_ms: Option<f64>,
    /// Events of the player, in order.
    pub events: Vec<EventPoint>,
    /// Rates of a speed test, or of QUIC in each second.
    pub rates: Vec<RateOver>,
    /// The log in a sentence.
    pub says: String,
}

/// An event of a player.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EventPoint {
    /// Its time, in microseconds by the log's clock.
    pub time_us: i64,
    /// Its kind.
    pub kind: PlayerEventKind,
    /// Its value: ms of a stall or in the buffer, bits per second of a switch or an estimate.
    pub value: Option<f64>,
}

/// The rate in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RateOver {
    /// Start in microseconds by the log's clock.
    pub start_us: i64,
    /// End in microseconds (exclusive).
    pub end_us: i64,
    /// Direction.
    pub dir: Direction,
    /// Bits per second.
    pub bps: f64,
    /// Segments retransmitted, or packets lost.
    pub retransmits: Option<u64>,
    /// Mean round trip in microseconds.
    pub rtt_us: Option<f64>,
}

pub(super) fn summary(application: &Application) -> ApplicationSummary {
    let Application { path, format, log, gave_transfers } = application;
    let busy_ns = busy(&log.transfers);
    let (stalls, stalled_ms) = stalls(log);
    let of = |kind| log.events.iter().filter(move |event: &&PlayerEvent| event.kind == kind);
    let started = of(PlayerEventKind::Started).map(|event| event.at_ns).next();
    let buffer =
        of(PlayerEventKind::Buffer).filter(|event| started.is_none_or(|at| event.at_ns > at));
    let bitrates: Vec<f64> = log.transfers.iter().filter_map(|t| t.bitrate_bps).collect();
    let mean = bitrates.iter().sum::<f64>() / bitrates.len().max(1) as f64;
    let point = |event: &PlayerEvent| EventPoint {
        time_us: event.at_ns.div_euclid(1_000),
        kind: event.kind,
        value: event.value,
    };
    ApplicationSummary {
        path: path.clone(),
        kind: format.name(),
        made_by: log.made_by.clone(),
        clock: log.scale.base,
        placed_within_ms: ms(log.scale.placed_within_ns),
        gave_transfers: *gave_transfers,
        transfers: log.transfers.len() as u64,
        failed: log.transfers.iter().filter(|transfer| transfer.failed).count() as u64,
        from_cache: log.from_cache,
        bytes: bytes_of(log),
        busy_ms: ms(busy_ns),
        busy_bps: (busy_ns > 0).then(|| bits_per_s(bytes_of(log), busy_ns)),
        stalls,
        stalled_ms,
        switches: of(PlayerEventKind::Switch).count() as u64,
        mean_bitrate_bps: (!bitrates.is_empty()).then_some(mean),
        least_buffer_ms: buffer.filter_map(|event| event.value).reduce(f64::min),
        events: log.events.iter().map(point).collect(),
        rates: log
            .rates
            .iter()
            .map(|rate| RateOver {
                start_us: rate.start_ns.div_euclid(1_000),
                end_us: rate.end_ns.div_euclid(1_000),
                dir: rate.dir,
                bps: bits_per_s(rate.bytes, rate.end_ns.saturating_sub(rate.start_ns)),
                retransmits: rate.retransmits,
                rtt_us: rate.rtt_us,
            })
            .collect(),
        says: format!("{}: {}", format.title(), words(log, busy_ns)),
    }
}

/// The sentence about a log.
pub(super) fn words(log: &ApplicationLog, busy_ns: i64) -> String {
    let n = log.transfers.len() as u64;
    let mut out = format!("{n} transfer{}", plural(n));
    let failed = log.transfers.iter().filter(|transfer| transfer.failed).count();
    let open = log.transfers.iter().filter(|one| one.unfinished && !one.failed).count();
    let parts = [(failed, "failed"), (open, "unfinished")].into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
    if !parts.is_empty() {
        out.push_str(&format!(" ({})", parts.join(", ")));
    }
    if busy_ns > 0 {
        let bytes = bytes_of(log);
        out.push_str(&format!(
            ", {:.2} MB in {} of transfers, {:.2} Mbit/s",
            bytes as f64 / 1e6,
            crate::wording::time(ms(busy_ns)),
            bits_per_s(bytes, busy_ns) / 1e6
        ));
    }
    if log.from_cache > 0 {
        out.push_str(&format!("; {} more from the cache", log.from_cache));
    }
    let (stalls, stalled_ms) = stalls(log);
    if stalls > 0 {
        out.push_str(&format!("; playback stalled {stalls} time{}", plural(stalls)));
        if stalled_ms > 0.0 {
            out.push_str(&format!(", {:.1} s", stalled_ms / 1e3));
        }
    } else if log.events.iter().any(|event| event.kind == PlayerEventKind::Started) {
        out.push_str("; playback never stalled");
    }
    let switches = log.events.iter().filter(|e| e.kind == PlayerEventKind::Switch).count() as u64;
    if switches > 0 {
        out.push_str(&format!("; {switches} change{} of bitrate", plural(switches)));
    }
    out.push('.');
    out
}

pub(super) const fn length_ns(transfer: &AppTransfer) -> i64 {
    transfer.end_ns.saturating_sub(transfer.start_ns)
}

pub(super) fn before_first_byte_ns(transfers: &[AppTransfer]) -> i64 {
    let of = |transfer: &AppTransfer| {
        let ns = length_ns(transfer);
        super::before_first_byte_ns(transfer).unwrap_or(0).clamp(0, ns.max(0))
    };
    transfers.iter().map(of).fold(0, i64::saturating_add)
}

/// For each transfer (in the order of their starts), whether another overlaps it.
pub(super) fn overlaps(transfers: &[AppTransfer]) -> Vec<bool> {
    let mut out = Vec::with_capacity(transfers.len());
    let mut busy_until = i64::MIN;
    for (number, transfer) in transfers.iter().enumerate() {
        let next = transfers.get(number + 1).map_or(i64::MAX, |next| next.start_ns);
        out.push(transfer.start_ns < busy_until || next < transfer.end_ns);
        busy_until = busy_until.max(transfer.end_ns);
    }
    out
}

/// Time with at least one transfer, in nanoseconds. The bytes of an unfinished one may be unknown: its
/// time is left out.
pub(super) fn busy(transfers: &[AppTransfer]) -> i64 {
    let (mut total, mut until) = (0_i64, i64::MIN);
    let is_known = |one: &&AppTransfer| !one.unfinished || one.bytes.is_some_and(|bytes| bytes > 0);
    for transfer in transfers.iter().filter(is_known) {
        let from = transfer.start_ns.max(until);
        total = total.saturating_add(transfer.end_ns.saturating_sub(from).max(0));
        until = until.max(transfer.end_ns);
    }
    total
}

fn bytes_of(log: &ApplicationLog) -> u64 {
    log.transfers.iter().filter_map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
}

/// Number and total length of stalls, in ms.
fn stalls(log: &ApplicationLog) -> (u64, f64) {
    let stalls = log.events.iter().filter(|event| event.kind == PlayerEventKind::Stall);
    stalls.fold((0, 0.0), |(n, ms), stall| (n + 1, ms + stall.value.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(spans: &[(i64, i64)]) -> Vec<AppTransfer> {
        let one =
            |(n, &(from, to)): (usize, &(i64, i64))| AppTransfer::new(n.to_string(), from, to);
        spans.iter().enumerate().map(one).collect()
    }

    #[test]
    fn overlaps_and_busy_time() {
        let check = |spans: &[(i64, i64)], expected: &[bool], busy_ns: i64| {
            let transfers = transfers(spans);
            assert_eq!((overlaps(&transfers).as_slice(), busy(&transfers)), (expected, busy_ns));
        };
        check(&[(0, 10), (10, 20)], &[false, false], 20);
        check(&[(0, 50), (10, 20), (30, 40), (60, 70)], &[true, true, true, false], 60);
        check(&[(0, 10), (5, 20), (30, 31)], &[true, true, false], 21);
        check(&[], &[], 0);
    }

    #[test]
    fn an_unfinished_transfer_without_bytes_has_no_rate() {
        let mut log =
            ApplicationLog { transfers: transfers(&[(0, 70_000_000)]), ..Default::default() };
        log.transfers[0].unfinished = true;
        assert_eq!(words(&log, busy(&log.transfers)), "1 transfer (1 unfinished).");
        log.transfers[0].bytes = Some(70_000);
        let says = "1 transfer (1 unfinished), 0.07 MB in 70 ms of transfers, 8.00 Mbit/s.";
        assert_eq!(words(&log, busy(&log.transfers)), says);
    }

    #[test]
    fn a_short_time_is_not_rounded_to_zero() {
        let log = ApplicationLog { transfers: transfers(&[(0, 12_000_000)]), ..Default::default() };
        assert!(words(&log, busy(&log.transfers)).contains(" MB in 12 ms of transfers, "));
    }
}
