//! The finding of one transfer: its measures, its verdict and what limits it.

use airmile_model::{
    Direction, Evidence, Transfer, TransferFinding, TtiIndex, Verdict, VerdictThresholds,
    counted_ms,
};

use super::Timeline;
use crate::meter::TransferMeter;

/// Minimum missing share of a transfer's bytes: a smaller one may come from a different
/// way of counting in the application (chosen here: headers make the log's larger, by 3
/// to 5 %).
const MIN_MISSING_SHARE: f64 = 0.03;

/// Minimum bytes for this check: below it, clock errors at the ends weigh as much as a
/// hole (chosen here).
const MIN_CLAIMED_BYTES: u64 = 200_000;

/// Whether bytes may be given in another unit: the modem saw a hundred times as much (chosen here:
/// kilobytes, or kilobits).
const fn may_be_kilobytes(given: u64, seen: u64) -> bool {
    given > 0 && seen >= MIN_CLAIMED_BYTES && seen / given >= 100
}

/// The part of a transfer in which the state of the queue is not known.
struct Unknown {
    share: f64,
    why: &'static str,
}

impl Timeline {
    pub(super) fn finding(
        &self,
        transfer: &Transfer,
        meter: Option<&TransferMeter>,
        overlapped: bool,
        thresholds: &VerdictThresholds,
    ) -> TransferFinding {
        let placed = meter.is_some();
        let nowhere = TransferMeter::new(TtiIndex(0), TtiIndex(0));
        let meter = meter.unwrap_or(&nowhere);
        let (start, end) = (meter.start, meter.end);
        let mut notes = Vec::new();
        let n_tti = end.saturating_sub(start);
        let tti_ms = self.tti_ms();
        let judged = self.evidence.is_some() && placed && n_tti > 0;
        let ms = |ttis: i64| ttis as f64 * tti_ms;
        let duration_ms = ms(n_tti.max(0));
        let outside = self.covered.map_or(0, |(first, last)| {
            n_tti.max(0) - (end.min(last).saturating_sub(start.max(first))).max(0)
        });
        let claimed = transfer.bytes.filter(|_| !transfer.unfinished);
        // Bytes that the log lacks passed in time that it lacks.
        let missing = self.missing_share(claimed, meter);
        let lacking_ms = ms((meter.holes + outside).min(n_tti.max(0))).max(missing * duration_ms);
        let unclear_ms = ms(meter.unclear);
        let unknown_ms = (lacking_ms + unclear_ms).min(duration_ms);
        // Of a time without records nothing is known.
        let is_seen =
            n_tti <= 0 || lacking_ms < duration_ms || meter.in_burst + meter.scheduled > 0;
        let active_time_ms = (placed && is_seen).then(|| ms(meter.scheduled));
        let throughput_time_ms = (judged && is_seen).then(|| ms(meter.in_burst));
        // What an application wrote until then need not have crossed the air.
        let most =
            if transfer.unfinished && meter.sent_bytes > 0 { meter.sent_bytes } else { u64::MAX };
        let bytes = transfer.bytes.map(|bytes| bytes.min(most));
        let bytes = bytes.or_else(|| placed.then_some(meter.sent_bytes));
        let link_demand = throughput_time_ms.map(|t| t / duration_ms);
        let waited_ms = ms(meter.in_burst);
        let measured_ms = ms((meter.in_burst - meter.granted - meter.ungauged).max(0));
        let limited_ms = throughput_time_ms.map(|_| measured_ms);
        // Nothing shows it if all that is known is that some is unknown.
        let is_shown = self.dir == Direction::Ul && (meter.granted > 0 || meter.ungauged == 0);
        let granted_ms = throughput_time_ms.filter(|_| is_shown).map(|_| ms(meter.granted));
        let ungauged_ms = limited_ms.map_or(0.0, |_| ms(meter.ungauged));
        let [radio_ms, alone_ms, either_ms] = counted_ms(waited_ms, measured_ms, ms(meter.granted));
        let part_ms = (either_ms - ungauged_ms).max(0.0);
        let either_ms = if limited_ms.is_some() { either_ms } else { 0.0 };
        let unknown = Unknown {
            share: (unknown_ms + either_ms) / duration_ms,
            why: match unclear_ms > 0.0 {
                true => "some of it is unclear",
                false if either_ms > 0.0 => {
                    "it is not known what all of the uplink's data waited for"
                }
                false => "records are missing",
            },
        };
        let radio_share = limited_ms.map(|_| radio_ms / duration_ms);
        let (mut verdict, mut confidence) =
            self.verdict(radio_share, &unknown, overlapped, thresholds, &mut notes);
        if let Some(granted_ms) = granted_ms.filter(|_| alone_ms + part_ms > 0.0) {
            notes.push(format!(
                "during {granted_ms:.0} of the {waited_ms:.0} ms in which data waited, the base station had \
                 granted all that the phone had reported, so that the phone's data were the limit, not the \
                 cell: {alone_ms:.0} ms for certain (not counted as the radio's), {part_ms:.0} ms possibly \
                 (counted as unknown)"
            ));
        }
        if ungauged_ms > 0.05 * duration_ms {
            notes.push(format!(
                "for {ungauged_ms:.0} of the {waited_ms:.0} ms in which data waited, no full block and no \
                 recent buffer status report show whether it waited for capacity or for a grant"
            ));
        }
        // A throughput time that may be any is none.
        let is_unclear = unclear_ms > 0.0 && verdict == Verdict::Unknown;
        let throughput_time_ms = throughput_time_ms.filter(|_| !is_unclear);
        let link_demand = link_demand.filter(|_| !is_unclear);
        if let Some(note) = self.pauses_may_be_holes(verdict, claimed, meter) {
            notes.push(note);
            (verdict, confidence) = (Verdict::Unknown, 0.0);
        }
        if transfer.unfinished {
            notes.insert(0, "still in progress: figures so far".into());
        }
        if let Some(note) = self.uncovered(start, end) {
            notes.push(note);
        }
        if duration_ms > 0.0 {
            confidence *= 1.0 - (unknown_ms / duration_ms).clamp(0.0, 1.0);
        }
        if confidence <= 0.0 {
            // Nothing of its time is known.
            verdict = Verdict::Unknown;
        }
        if let Some(seen) = self.misses_bytes(claimed, meter) {
            notes.push(format!(
                "the modem saw {seen} bytes then, not {}: are its times on the modem's clock, or \
                 did it go by Wi-Fi?",
                transfer.bytes.unwrap_or(0)
            ));
            (verdict, confidence) = (Verdict::Unknown, 0.0);
        }
        let seen = meter.sent_bytes;
        if let Some(given) = claimed.filter(|given| !overlapped && may_be_kilobytes(*given, seen)) {
            notes.push(format!(
                "the modem saw {seen} bytes then, not {given}: are the given ones kilobytes, or \
                 did other traffic pass?"
            ));
        }
        if !placed {
            notes.push("its times cannot be placed on the log's TTIs".into());
        } else if !judged {
            let lacking = match self.dir {
                Direction::Dl => "the log holds no evidence of this kind",
                Direction::Ul => {
                    "the log does not hold both the uplink's blocks and the phone's buffer: 0xB139 \
                     with 0xB066, or 0xB064; of NR, 0xB872"
                }
            };
            notes.push(lacking.into());
        }
        if unclear_ms > 0.0 {
            notes.push(format!(
                "for {unclear_ms:.0} ms, the log does not show whether data waited: by allocations \
                 alone a sender's pace and a small share of a busy cell look the same, as do its pause and \
                 a time without service, and a wait \
                 for the first grant of a leg of a split bearer leaves no record"
            ));
        }
        if lacking_ms > 0.0 && outside == 0 {
            notes
                .push(format!("records are missing for {lacking_ms:.0} ms of {duration_ms:.0} ms"));
        }
        let seen_us = meter.times_us.or_else(|| self.us_of(start).zip(self.us_of(end)));
        let burst_throughput_bps = self.burst_throughput_bps(meter);
        TransferFinding {
            id: transfer.id.clone(),
            dir: self.dir,
            start_us: transfer.time.map(|t| t.0.micros()).or(seen_us.map(|t| t.0)),
            end_us: transfer.time.map(|t| t.1.micros()).or(seen_us.map(|t| t.1)),
            start_tti: TtiIndex(start),
            end_tti: TtiIndex(end),
            duration_ms,
            bytes,
            throughput_time_ms,
            // Data that waits at the base station before its first departure leaves no
            // trace at the phone.
            sched_wait_ms: (self.knows_waits && judged && is_seen).then(|| ms(meter.waits)),
            limited_ms,
            granted_ms,
            active_time_ms,
            unknown_ms,
            link_demand,
            link_throughput_bps: link_throughput_bps(bytes, throughput_time_ms, duration_ms)
                .filter(|bps| is_of_bursts(*bps, burst_throughput_bps)),
            burst_throughput_bps,
            evidence: self.evidence,
            verdict,
            confidence,
            overlapped,
            notes,
        }
    }

    /// The part of a span that the log does not cover. If it is large, the clocks may
    /// differ; a log of grants alone begins with the first grant, a little after a
    /// transfer's request.
    fn uncovered(&self, start: i64, end: i64) -> Option<String> {
        let (first, last) = self.covered?;
        let ms = |ttis: i64| ttis as f64 * self.tti_ms();
        let n_tti = (end - start).max(0);
        let (before, after) = ((first - start).clamp(0, n_tti), (end - last).clamp(0, n_tti));
        // A tenth: chosen here, far more than a request takes of a long transfer.
        let of = match (before, after) {
            (0, 0) => return None,
            _ if before + after > n_tti / 10 => {
                return Some(format!(
                    "the log does not cover {:.0} of its {:.0} ms: are its times on the modem's \
                     clock?",
                    ms((before + after).min(n_tti)),
                    ms(n_tti)
                ));
            }
            (_, 0) => format!("begins {:.0} ms after it", ms(before)),
            (0, _) => format!("ends {:.0} ms before it", ms(after)),
            _ => format!("lacks its first {:.0} and last {:.0} ms", ms(before), ms(after)),
        };
        Some(format!("the log {of}: they are unknown"))
    }

    /// Share of a transfer's bytes that the log lacks; 0 if it is small.
    fn missing_share(&self, claimed: Option<u64>, meter: &TransferMeter) -> f64 {
        let Some(claimed) = claimed.filter(|claimed| *claimed > 0) else { return 0.0 };
        let seen = meter.sent_bytes;
        let share = 1.0 - seen as f64 / claimed as f64;
        if seen > 0 && share > MIN_MISSING_SHARE { share } else { 0.0 }
    }

    /// With allocations alone, pauses show an empty queue. If blocks are missing, each
    /// pause may be a hole: then it is unknown whether the radio was not the bottleneck,
    /// or not the only one.
    fn pauses_may_be_holes(
        &self,
        verdict: Verdict,
        claimed: Option<u64>,
        meter: &TransferMeter,
    ) -> Option<String> {
        let by_pauses = self.evidence == Some(Evidence::Grants)
            && matches!(verdict, Verdict::NotRadio | Verdict::Mixed);
        // Blocks also hold headers: in a complete log they sum to more than the
        // application's bytes.
        let claimed = claimed.filter(|claimed| by_pauses && *claimed >= MIN_CLAIMED_BYTES)?;
        let seen = meter.sent_bytes;
        (seen < claimed).then(|| {
            format!(
                "the log has {seen} of its {claimed} bytes, although blocks also hold headers, and \
                 allocations alone do not separate a pause from missing records"
            )
        })
    }

    /// The bytes logged, if they are far fewer than a transfer claims.
    fn misses_bytes(&self, claimed: Option<u64>, meter: &TransferMeter) -> Option<u64> {
        let seen = meter.sent_bytes;
        let sizes_known = self.sizes_known || seen > 0;
        // Half: chosen here; headers add to what was claimed, losses take a few
        // percent at most.
        claimed.filter(|&claimed| sizes_known && seen < claimed / 2).map(|_| seen)
    }

    fn burst_throughput_bps(&self, meter: &TransferMeter) -> Option<f64> {
        let (bytes, ttis) = (meter.bursts().bytes, meter.bursts().n_tti);
        (ttis > 0 && bytes > 0).then(|| bytes as f64 * 8_000.0 / (ttis as f64 * self.tti_ms()))
    }

    /// What the verdict judges.
    const fn measure(&self) -> &'static str {
        match self.dir {
            Direction::Dl => "link demand",
            Direction::Ul => "the time in which data waited for capacity",
        }
    }

    fn verdict(
        &self,
        link_demand: Option<f64>,
        unknown: &Unknown,
        overlapped: bool,
        thresholds: &VerdictThresholds,
        notes: &mut Vec<String>,
    ) -> (Verdict, f64) {
        let Some(demand) = link_demand else { return (Verdict::Unknown, 0.0) };
        let verdict = thresholds.judge(demand);
        // The unknown part may have been all throughput time.
        let highest = (demand + unknown.share).min(1.0);
        let (demand, verdict) = match thresholds.judge(highest) == verdict {
            true => (demand, verdict),
            false => {
                notes.push(format!(
                    "{} is between {:.1} and {:.1} %, as {}",
                    self.measure(),
                    demand * 100.0,
                    highest * 100.0,
                    unknown.why
                ));
                if unknown.share > SMALL_UNKNOWN_SHARE {
                    return (Verdict::Unknown, 0.0);
                }
                let middle = f64::midpoint(demand, highest);
                (middle, thresholds.judge(middle))
            }
        };
        if overlapped && matches!(verdict, Verdict::Radio | Verdict::Mixed) {
            // BurstTracker, section 2.1.2: queues are per user.
            notes.push(format!(
                "another transfer overlaps it: {} is {:.1} % for all of the user's, and whose data waited \
                 is unknown",
                self.measure(),
                demand * 100.0
            ));
            return (Verdict::Unknown, 0.0);
        }
        let least = sureness_at(demand, thresholds).min(sureness_at(highest, thresholds));
        (verdict, least * reliability(self.evidence))
    }
}

/// Distance of a link demand from the limits, as a share of 5 points (chosen
/// here: several times the median error of the fused estimate).
pub(crate) fn sureness_at(demand: f64, thresholds: &VerdictThresholds) -> f64 {
    let limits = [thresholds.radio_at_least, thresholds.not_radio_below];
    let distance = limits.map(|limit| (demand - limit).abs()).into_iter().fold(f64::MAX, f64::min);
    // At a limit it may be on either side.
    0.5 + 0.5 * (distance / 0.05).min(1.0)
}

/// Link throughput has a value from this share of throughput time on (chosen here): of a
/// transfer whose blocks each emptied the queue, bytes over a few TTIs are no rate of the link.
const MIN_BUSY_SHARE: f64 = 0.05;

/// With a link throughput above this multiple of the rate inside bursts, many bytes came outside of
/// bursts or emptied the queue, and it is no rate of the link (chosen here, as links differ by as much
/// at another time).
const OUTSIDE_BURSTS: f64 = 1.25;

fn is_of_bursts(link_bps: f64, within_bps: Option<f64>) -> bool {
    within_bps.is_none_or(|within_bps| link_bps <= OUTSIDE_BURSTS * within_bps)
}

/// Bytes over throughput time (BurstTracker, section 3), in bit/s.
fn link_throughput_bps(
    bytes: Option<u64>,
    throughput_time_ms: Option<f64>,
    duration_ms: f64,
) -> Option<f64> {
    let busy_ms =
        throughput_time_ms.filter(|ms| *ms > 0.0 && *ms >= MIN_BUSY_SHARE * duration_ms)?;
    Some(bytes? as f64 * 8_000.0 / busy_ms)
}

/// A verdict whose limit lies within what is missing is given, with the confidence of one
/// at a limit, where less than this part is missing (chosen here: a few TTIs before the
/// first record); else it is unknown.
const SMALL_UNKNOWN_SHARE: f64 = 0.02;

/// Agreement of verdicts with the truth on simulated logs (`make accuracy`), rounded
/// down; for the uplink, which needs no inference, chosen here.
pub(crate) const fn reliability(evidence: Option<Evidence>) -> f64 {
    match evidence {
        Some(Evidence::Fused | Evidence::Padding | Evidence::BufferStatus) => 0.99,
        Some(Evidence::Poll) => 0.98,
        Some(Evidence::Grants) => 0.95,
        Some(Evidence::Paper) => 0.7,
        _ => 0.0,
    }
}
