//! Estimates how much the modem holds: bytes passed to it less bytes that the radio sent,
//! within bounds that the modem's reports narrow.
//!
//! If reports are honest, the true value is always within the bounds: for a time without
//! reports the radio may have sent anything from nothing to its peak rate. Reports may be
//! late, missing, duplicated or out of order; they leave the bounds open until the next
//! report of the buffer itself closes them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::handover_log::HandoverLog;
use super::rate::{RateWindow, bytes_in};

/// A report from the modem's log, with times on the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModemReport {
    /// Blocks with new data were sent in `[from_ns, to_ns)`. Their capacity is a range, as
    /// only the minimum and maximum of the headers are known; they took the waiting data up
    /// to it.
    Sent {
        /// Start, in ns.
        from_ns: i64,
        /// End, in ns.
        to_ns: i64,
        /// Minimum capacity in bytes.
        low_bytes: u64,
        /// Maximum capacity in bytes.
        high_bytes: u64,
        /// The largest of the blocks in bytes.
        largest_bytes: u64,
    },
    /// Bytes waiting in the modem: a buffer status report, whose index is a range (TS
    /// 36.321, table 6.1.3.1-1), or a sample of the buffer.
    Waiting {
        /// Time of the report, in ns.
        at_ns: i64,
        /// Minimum waiting, in bytes.
        low_bytes: u64,
        /// Maximum waiting; `u64::MAX`: the table's last index, which is open-ended.
        high_bytes: u64,
    },
}

/// Parameters of the estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EstimateConfig {
    /// Error of the modem's times on the host's clock, in either direction, in ns,
    /// including the time that a packet takes to the modem's buffer (chosen here: 2 ms).
    pub clock_error_ns: i64,
    /// Peak rate of the radio, in bytes per second (TS 36.306, table 4.1-2, category 5:
    /// 75,376 bits in a TTI).
    pub peak_bytes_per_s: u64,
    /// Bytes that the modem adds to a packet (PDCP: 2, TS 36.323, 6.2.3).
    pub overhead_bytes: u32,
    /// Time over which the rate is measured, in ns (chosen here: several batches, so that a
    /// retransmitted block has little weight).
    pub rate_window_ns: i64,
    /// Initial rate before the first measurement, in bytes per second (chosen here: 1
    /// Mbit/s).
    pub start_bytes_per_s: u64,
}

impl Default for EstimateConfig {
    fn default() -> Self {
        Self {
            clock_error_ns: 2_000_000,
            peak_bytes_per_s: 9_422_000,
            overhead_bytes: 2,
            rate_window_ns: 100_000_000,
            start_bytes_per_s: 125_000,
        }
    }
}

/// Bytes in the modem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Lower bound.
    pub low_bytes: u64,
    /// The best estimate, between the bounds.
    pub likely_bytes: u64,
    /// Upper bound.
    pub high_bytes: u64,
}

/// Counts of reports by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportCounts {
    /// Used.
    pub used: u64,
    /// Covered a time that was reported before or that later reports have closed.
    pub late: u64,
    /// Implausible: an end before its start, or bounds in the wrong order.
    pub bad: u64,
    /// Contradicted the reports before it; the new report was used and the earlier ones
    /// dropped.
    pub disagreed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    from_ns: i64,
    to_ns: i64,
    low_bytes: u64,
    high_bytes: u64,
}

/// The occupancy at a time. `low` includes packets passed up to the clock's error after it,
/// `high` up to the error before, `likely` up to the time itself.
#[derive(Debug, Clone, Copy)]
struct TimedOccupancy {
    at_ns: i64,
    occupancy: Occupancy,
}

/// Maximum age of a report; older ones count with this age, in ns (chosen here: the most
/// that a gate can compensate).
const MAX_AGE_NS: i64 = 1_000_000_000;

/// The initial and the maximum time between two batches, in ns (0xB139: 11 transmissions,
/// or 10 ms without one; lost batches included).
const START_GAP_NS: i64 = 40_000_000;
const MAX_GAP_NS: i64 = 300_000_000;

/// Without a batch for 1.5 times the longest recent gap, but at least this time in ns,
/// nothing is assumed to be sent (chosen here: a modem that sends reports it).
const MIN_HORIZON_NS: i64 = 20_000_000;

/// Transmissions of the last 50 ms may be unreported: at least a batch of 11, one every
/// four TTIs, in ns.
const MIN_BATCH_NS: i64 = 50_000_000;

/// Maximum number of intervals kept after the last report of the buffer.
const MAX_INTERVALS: usize = 64;

/// The estimator.
#[derive(Debug, Clone)]
pub struct Estimator {
    config: EstimateConfig,
    handed: HandoverLog,
    /// Known state from which the intervals continue.
    anchor: TimedOccupancy,
    /// Intervals after the anchor, ordered and disjoint.
    intervals: VecDeque<Interval>,
    rate: RateWindow,
    /// When the last report arrived, by the host's clock.
    reported_ns: Option<i64>,
    /// Age of transmissions when they are reported, in ns, as a moving average.
    age_ns: i64,
    /// When transmissions were last reported.
    batch_ns: Option<i64>,
    /// The longest recent time between two such batches, in ns.
    gap_ns: i64,
    /// Bytes that the radio sent over those in the log, at least 1.
    coverage: f64,
    counts: ReportCounts,
}

impl Estimator {
    /// An estimator before the first packet. The initial content of the modem becomes known
    /// with the first report of its buffer.
    #[must_use]
    pub fn new(config: EstimateConfig) -> Self {
        let rate = RateWindow::new(config.start_bytes_per_s, config.rate_window_ns);
        Self {
            config,
            handed: HandoverLog::default(),
            anchor: TimedOccupancy { at_ns: i64::MIN / 4, occupancy: Occupancy::default() },
            intervals: VecDeque::new(),
            rate,
            reported_ns: None,
            age_ns: 0,
            batch_ns: None,
            gap_ns: START_GAP_NS,
            coverage: 1.0,
            counts: ReportCounts::default(),
        }
    }

    /// Accounts for a packet passed to the modem.
    pub fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) {
        let bytes = u64::from(ip_bytes) + u64::from(self.config.overhead_bytes);
        self.handed.push(now_ns, bytes);
    }

    /// Processes a report that arrives at `now_ns`.
    pub fn push(&mut self, now_ns: i64, report: ModemReport) {
        match report {
            ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes } => {
                if from_ns >= to_ns
                    || low_bytes > high_bytes
                    || to_ns > now_ns.saturating_add(self.slack_ns())
                {
                    self.counts.bad += 1;
                    return;
                }
                self.reported_ns = Some(now_ns);
                self.note_batch(now_ns);
                // The rate also counts transmissions reported after a later sample of the
                // buffer: the sample fixes what is left in the buffer, not what was sent.
                let bytes = likely(low_bytes, high_bytes);
                let is_new = self.rate.sent_once((from_ns, to_ns), bytes, largest_bytes);
                let interval = Interval { from_ns, to_ns, low_bytes, high_bytes };
                if !self.insert(interval) {
                    self.counts.late += 1;
                    if is_new {
                        self.measure();
                    }
                    return;
                }
                self.counts.used += 1;
                // Moving average with weight 1/8 (as in RFC 6298), at most a second.
                let age_ns = now_ns.saturating_sub(to_ns).clamp(0, MAX_AGE_NS);
                self.age_ns += (age_ns - self.age_ns) / 8;
                self.measure();
            }
            ModemReport::Waiting { at_ns, low_bytes, high_bytes } => {
                if low_bytes > high_bytes || at_ns > now_ns.saturating_add(self.slack_ns()) {
                    self.counts.bad += 1;
                    return;
                }
                self.reported_ns = Some(now_ns);
                if at_ns <= self.anchor.at_ns {
                    self.counts.late += 1;
                    return;
                }
                self.counts.used += 1;
                self.set_anchor(at_ns, low_bytes, high_bytes);
                self.measure();
            }
        }
    }

    /// Registers a batch of transmissions, whose parts arrive at the same time.
    fn note_batch(&mut self, now_ns: i64) {
        let last_ns = self.batch_ns.replace(now_ns);
        let Some(last_ns) = last_ns.filter(|last| *last < now_ns) else { return };
        let gap_ns = now_ns.saturating_sub(last_ns).min(MAX_GAP_NS);
        self.gap_ns = gap_ns.max(self.gap_ns - self.gap_ns / 8);
    }

    /// How long after a known state the rate is assumed to continue.
    fn horizon_ns(&self) -> i64 {
        (self.gap_ns / 2 * 3).max(MIN_HORIZON_NS)
    }

    /// The longest recent time between two batches, in ns.
    pub(super) const fn gap_ns(&self) -> i64 {
        self.gap_ns
    }

    /// Sets the coverage: the log contains the share `1 / coverage` of the radio's
    /// transmissions.
    pub(super) const fn set_coverage(&mut self, coverage: f64) {
        self.coverage = coverage;
    }

    /// Bytes in the log for a time, if it is still in the history.
    pub(super) fn logged_bytes(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        self.rate.bytes_between(from_ns, to_ns)
    }

    /// The end of the last transmission in the log.
    pub(super) fn logged_until_ns(&self) -> Option<i64> {
        self.rate.until_ns()
    }

    fn covered(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.coverage) as u64
    }

    /// The modem's occupancy at a time not before the previous call's.
    #[must_use]
    pub fn occupancy(&self, now_ns: i64) -> Occupancy {
        let known = self.walk(i64::MAX);
        let now_ns = now_ns.max(known.at_ns);
        let gap_ns = now_ns.saturating_sub(known.at_ns);
        let state = self.pass(known, now_ns, (0, self.peak_bytes(gap_ns)), 0);
        let all = self.handed.total_bytes();
        let unseen = |at_ns: i64| all.saturating_sub(self.handed.until(at_ns));
        let Occupancy { low_bytes, high_bytes, .. } = state.occupancy;
        let low_bytes = low_bytes.saturating_add(unseen(self.late(now_ns)));
        let high_bytes = high_bytes.saturating_add(unseen(self.early(now_ns))).max(low_bytes);
        let likely_bytes = self.likely(known, now_ns).clamp(low_bytes, high_bytes);
        Occupancy { low_bytes, likely_bytes, high_bytes }
    }

    /// Estimates the rest at a time, assuming that the radio continued at its rate for the
    /// horizon plus the reports' delay after a known state, or after the packet that filled
    /// an empty buffer.
    fn likely(&self, known: TimedOccupancy, now_ns: i64) -> u64 {
        let rate = self.covered(self.rate.drain_bytes_per_s());
        let mut left = known.occupancy.likely_bytes;
        let mut at_ns = known.at_ns;
        let horizon_ns = self.horizon_ns().saturating_add(self.age_ns);
        let mut end_ns = known.at_ns.saturating_add(horizon_ns);
        let mut waited = left > 0;
        let drain = |left: u64, from_ns: i64, to_ns: i64, end_ns: i64| {
            left.saturating_sub(bytes_in(to_ns.min(end_ns).saturating_sub(from_ns), rate))
        };
        for (step_ns, bytes) in self.handed.since(known.at_ns) {
            left = drain(left, at_ns, step_ns, end_ns);
            if !waited {
                waited = true;
                end_ns = step_ns.saturating_add(horizon_ns);
            }
            left = left.saturating_add(bytes);
            at_ns = step_ns;
        }
        drain(left, at_ns, now_ns, end_ns)
    }

    /// The radio's rate while data waits, in bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> u64 {
        self.covered(self.rate.bytes_per_s())
    }

    /// Sets whether the gate keeps the buffer too small to fill grants: low usage then does
    /// not lower the rate.
    pub const fn set_starved(&mut self, starved: bool) {
        self.rate.set_starved(starved);
    }

    /// The rate to convert a time limit into bytes; it probes for more bandwidth at times.
    #[must_use]
    pub fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        self.covered(self.rate.sought_bytes_per_s(now_ns))
    }

    /// The rate of the last grants, if more waits than it soon carries.
    #[must_use]
    pub fn short_bytes_per_s(&self) -> Option<u64> {
        self.rate.short_bytes_per_s().map(|rate| self.covered(rate))
    }

    /// The mean rate over some fades of the link, in bytes per second.
    #[must_use]
    pub fn mean_bytes_per_s(&self) -> u64 {
        self.covered(self.rate.mean_bytes_per_s())
    }

    /// The largest recent block.
    #[must_use]
    pub fn largest_block_bytes(&self) -> u64 {
        self.rate.largest_block_bytes()
    }

    /// When the last report arrived.
    #[must_use]
    pub const fn reported_ns(&self) -> Option<i64> {
        self.reported_ns
    }

    /// Counts of reports by their outcome.
    #[must_use]
    pub const fn counts(&self) -> ReportCounts {
        self.counts
    }

    /// How far ahead of the host's clock a report may lie.
    const fn slack_ns(&self) -> i64 {
        self.config.clock_error_ns.saturating_add(1_000_000)
    }

    const fn late(&self, at_ns: i64) -> i64 {
        at_ns.saturating_add(self.config.clock_error_ns)
    }

    const fn early(&self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(self.config.clock_error_ns)
    }

    fn peak_bytes(&self, time_ns: i64) -> u64 {
        // Blocks are sent whole: one more than fits the time.
        bytes_in(time_ns.saturating_add(1_000_000), self.config.peak_bytes_per_s)
    }

    /// Advances a state to `to_ns`, with a radio capacity within the given bounds, most
    /// probably `likely`. Arriving packets are served as late as possible for `high` and as
    /// early as possible for `low`.
    fn pass(
        &self,
        from: TimedOccupancy,
        to_ns: i64,
        room: (u64, u64),
        likely: u64,
    ) -> TimedOccupancy {
        let came = |shift: fn(&Self, i64) -> i64| {
            let before = self.handed.until(shift(self, from.at_ns));
            self.handed.until(shift(self, to_ns)).saturating_sub(before)
        };
        let Occupancy { low_bytes, likely_bytes, high_bytes } = from.occupancy;
        let occupancy = Occupancy {
            low_bytes: low_bytes.saturating_add(came(Self::late)).saturating_sub(room.1),
            likely_bytes: likely_bytes.saturating_add(came(|_, at| at)).saturating_sub(likely),
            high_bytes: high_bytes.saturating_sub(room.0).saturating_add(came(Self::early)),
        };
        TimedOccupancy { at_ns: to_ns, occupancy }
    }

    /// Advances over one interval and the unknown time before it.
    fn through(&self, from: TimedOccupancy, interval: &Interval) -> TimedOccupancy {
        let mut state = from;
        if interval.from_ns > state.at_ns {
            let gap_ns = interval.from_ns.saturating_sub(state.at_ns);
            // If reports are missing rather than transmissions, the rate continued.
            let missing = gap_ns > self.horizon_ns();
            let likely = if missing { bytes_in(gap_ns, self.bytes_per_s()) } else { 0 };
            state = self.pass(state, interval.from_ns, (0, self.peak_bytes(gap_ns)), likely);
        }
        // For an interval that began before the state, it is unknown what was sent since.
        let whole = interval.from_ns >= state.at_ns;
        let low_bytes = if whole { interval.low_bytes } else { 0 };
        let likely = self.covered(likely(low_bytes, interval.high_bytes));
        self.pass(state, interval.to_ns, (low_bytes, interval.high_bytes), likely)
    }

    /// The state at the end of the last interval up to a time.
    fn walk(&self, until_ns: i64) -> TimedOccupancy {
        let intervals = self.intervals.iter().take_while(|interval| interval.to_ns <= until_ns);
        intervals.fold(self.anchor, |state, interval| self.through(state, interval))
    }

    /// Inserts an interval in order. Returns false if part of its time is already covered.
    fn insert(&mut self, interval: Interval) -> bool {
        if interval.to_ns <= self.anchor.at_ns {
            return false;
        }
        let at = self.intervals.partition_point(|other| other.to_ns <= interval.from_ns);
        if self.intervals.get(at).is_some_and(|next| next.from_ns < interval.to_ns) {
            return false;
        }
        self.intervals.insert(at, interval);
        if self.intervals.len() > MAX_INTERVALS
            && let Some(first) = self.intervals.pop_front()
        {
            self.anchor = self.through(self.anchor, &first);
            self.forget();
        }
        true
    }

    /// Processes a report of the buffer: combines it with the previous bounds if both are
    /// consistent.
    fn set_anchor(&mut self, at_ns: i64, low_bytes: u64, high_bytes: u64) {
        let mut before = self.walk(at_ns);
        if at_ns > before.at_ns {
            // An interval that extends past the report may have begun before it.
            let gap_ns = at_ns.saturating_sub(before.at_ns);
            before = self.pass(before, at_ns, (0, self.peak_bytes(gap_ns)), 0);
        }
        let known = before.occupancy;
        // The lower bound counts packets passed within the clock's error as arrived; the
        // upper bound does not.
        let unsure = self.handed.until(self.late(at_ns)) - self.handed.until(self.early(at_ns));
        let (mut low, mut high) =
            (low_bytes.max(known.low_bytes), high_bytes.min(known.high_bytes));
        if low > high.saturating_add(unsure) {
            self.counts.disagreed += 1;
            (low, high) = (low_bytes, high_bytes);
        }
        let likely_bytes = if high == u64::MAX {
            known.likely_bytes.max(low)
        } else {
            // Between the bounds, the previous estimate is as good as any.
            known.likely_bytes.max(low).min(high)
        };
        let occupancy = Occupancy { low_bytes: low, likely_bytes, high_bytes: high };
        self.anchor = TimedOccupancy { at_ns, occupancy };
        while self.intervals.front().is_some_and(|interval| interval.to_ns <= at_ns) {
            self.intervals.pop_front();
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.handed.forget_before(self.early(self.anchor.at_ns));
    }

    /// Updates the rate from the current state.
    fn measure(&mut self) {
        let known = self.walk(i64::MAX);
        let batch_ns = (self.gap_ns / 4 * 5).max(MIN_BATCH_NS);
        self.rate.measure(known.at_ns, known.occupancy.likely_bytes, batch_ns);
    }
}

/// Likely capacity of a block: headers are seldom at their maximum (chosen here: three
/// quarters of the range).
const fn likely(low_bytes: u64, high_bytes: u64) -> u64 {
    high_bytes - (high_bytes - low_bytes) / 4
}

#[cfg(test)]
mod tests;
