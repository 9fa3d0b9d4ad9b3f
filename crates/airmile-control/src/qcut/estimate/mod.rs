//! How much the modem holds: bytes handed to it less bytes that the radio sent,
//! between bounds that reports of the modem keep together.
//!
//! Whatever the radio may have done since the last report, the truth lies between
//! the bounds as long as reports are honest: a time of which nothing was reported
//! lets the radio send anything from nothing to the most that it can. Reports may
//! be late, missing, twice or out of order: what they leave open stays open, and
//! the next report of the buffer itself closes it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::handover_log::HandoverLog;
use super::rate::{RateWindow, bytes_in};

/// Something that the modem's log tells, its times set to the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModemReport {
    /// Blocks for new data were sent in `[from_ns, to_ns)`. They had room for
    /// between so many bytes (headers are known by their least and most only), and
    /// took what waited up to that.
    Sent {
        /// Begin, in ns.
        from_ns: i64,
        /// End, in ns.
        to_ns: i64,
        /// Least room in bytes.
        low_bytes: u64,
        /// Most room in bytes.
        high_bytes: u64,
        /// The largest of the blocks in bytes.
        largest_bytes: u64,
    },
    /// So much waited in the modem: a buffer status report, whose index is a range
    /// (TS 36.321, table 6.1.3.1-1), or a sample of the buffer.
    Waiting {
        /// When, in ns.
        at_ns: i64,
        /// Least that waited, in bytes.
        low_bytes: u64,
        /// Most that waited; `u64::MAX`: the table's last index, which is open.
        high_bytes: u64,
    },
}

/// Parameters of the estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EstimateConfig {
    /// Error of the modem's times on the host's clock, either way, in ns, with the
    /// time that a packet takes to the modem's buffer (chosen here: 2 ms).
    pub clock_error_ns: i64,
    /// Most that the radio sends, in bytes per second (TS 36.306, table 4.1-2,
    /// category 5: 75,376 bits in a TTI).
    pub peak_bytes_per_s: u64,
    /// Bytes that the modem adds to a packet (PDCP: 2, TS 36.323, 6.2.3).
    pub overhead_bytes: u32,
    /// Over so long the rate is measured, in ns (chosen here: several batches, so
    /// that a block that is sent again counts little).
    pub rate_window_ns: i64,
    /// The rate before one was measured, in bytes per second (chosen here:
    /// 1 Mbit/s).
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
    /// No less than this.
    pub low_bytes: u64,
    /// The best guess, between the two.
    pub likely_bytes: u64,
    /// No more than this.
    pub high_bytes: u64,
}

/// Reports by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportCounts {
    /// Used.
    pub used: u64,
    /// Told of a time that was told of before, or that later reports have closed.
    pub late: u64,
    /// Made no sense: an end before its begin, bounds the wrong way round.
    pub bad: u64,
    /// Said of the buffer what cannot be by the reports before it; they were
    /// believed, and what came before was not.
    pub disagreed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    from_ns: i64,
    to_ns: i64,
    low_bytes: u64,
    high_bytes: u64,
}

/// The occupancy at a time. `low` has seen hand-overs up to the clock's error
/// after it, `high` up to the error before, `likely` up to the time itself.
#[derive(Debug, Clone, Copy)]
struct TimedOccupancy {
    at_ns: i64,
    occupancy: Occupancy,
}

/// Reports that are later count as so late, in ns (chosen here: what a gate by them
/// can hold at all).
const MAX_AGE_NS: i64 = 1_000_000_000;

/// The time between two batches before one is known, and the longest that counts, in ns
/// (0xB139: 11 transmissions, or 10 ms without one; lost ones among them).
const START_GAP_NS: i64 = 40_000_000;
const MAX_GAP_NS: i64 = 300_000_000;

/// Without a batch for one and a half of the longest gap of late, but not less than this in
/// ns, nothing is sent (chosen here: a modem that sends reports it).
const MIN_HORIZON_NS: i64 = 20_000_000;

/// Transmissions of the last ms may still be reported: no less than a batch of 11, one each
/// four TTIs, in ns.
const MIN_BATCH_NS: i64 = 50_000_000;

/// Intervals that are kept at most behind the last report of the buffer.
const MAX_INTERVALS: usize = 64;

/// The estimator.
#[derive(Debug, Clone)]
pub struct Estimator {
    config: EstimateConfig,
    handed: HandoverLog,
    /// Known state, from which the intervals lead on.
    anchor: TimedOccupancy,
    /// Behind the anchor, in order, apart.
    intervals: VecDeque<Interval>,
    rate: RateWindow,
    /// When the last report came, by the host's clock.
    reported_ns: Option<i64>,
    /// How old what was sent is when it is reported, in ns: a mean of late.
    age_ns: i64,
    /// When transmissions were reported last.
    batch_ns: Option<i64>,
    /// The longest time between two such batches of late, in ns.
    gap_ns: i64,
    /// Bytes that the radio sent over those that the log has, 1 and more.
    coverage: f64,
    counts: ReportCounts,
}

impl Estimator {
    /// Before the first packet. What is in the modem already is known with the
    /// first report of its buffer.
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

    /// A packet of so many IP bytes goes to the modem.
    pub fn hand_over(&mut self, now_ns: i64, ip_bytes: u32) {
        let bytes = u64::from(ip_bytes) + u64::from(self.config.overhead_bytes);
        self.handed.push(now_ns, bytes);
    }

    /// A report comes at `now_ns`.
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
                // The rate counts it, too, where a later sample of the buffer was reported
                // before it: what is left in the buffer is known, not what was sent.
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
                // An eighth of each (as RFC 6298 smooths), no more than a second.
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

    /// A batch of transmissions comes; its parts come at the same time.
    fn note_batch(&mut self, now_ns: i64) {
        let last_ns = self.batch_ns.replace(now_ns);
        let Some(last_ns) = last_ns.filter(|last| *last < now_ns) else { return };
        let gap_ns = now_ns.saturating_sub(last_ns).min(MAX_GAP_NS);
        self.gap_ns = gap_ns.max(self.gap_ns - self.gap_ns / 8);
    }

    /// For how long after a known state the rate is taken to go on.
    fn horizon_ns(&self) -> i64 {
        (self.gap_ns / 2 * 3).max(MIN_HORIZON_NS)
    }

    /// The longest time between two batches of late, in ns.
    pub(super) const fn gap_ns(&self) -> i64 {
        self.gap_ns
    }

    /// The log has only this part, `1 / coverage`, of what the radio sends.
    pub(super) const fn set_coverage(&mut self, coverage: f64) {
        self.coverage = coverage;
    }

    /// Bytes that the log has of a time, as far as it is remembered.
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

    /// What the modem holds at a time that is not before the last call's.
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

    /// What is left at a time if the radio went on at its rate, for as long as the
    /// horizon and what reports are late by behind a known state, or behind the packet
    /// that filled an empty buffer after it.
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

    /// The rate at which the radio sends while something waits, in bytes per
    /// second.
    #[must_use]
    pub fn bytes_per_s(&self) -> u64 {
        self.covered(self.rate.bytes_per_s())
    }

    /// Whether the gate lets less wait than fills grants: the rate is then not lowered
    /// by what little is sent.
    pub const fn set_starved(&mut self, starved: bool) {
        self.rate.set_starved(starved);
    }

    /// The rate of which a limit in time is to be, which looks for more at times.
    #[must_use]
    pub fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        self.covered(self.rate.sought_bytes_per_s(now_ns))
    }

    /// The rate of the last grants, where more waits than it carries soon.
    #[must_use]
    pub fn short_bytes_per_s(&self) -> Option<u64> {
        self.rate.short_bytes_per_s().map(|rate| self.covered(rate))
    }

    /// The largest block of late.
    #[must_use]
    pub fn largest_block_bytes(&self) -> u64 {
        self.rate.largest_block_bytes()
    }

    /// When the last report came.
    #[must_use]
    pub const fn reported_ns(&self) -> Option<i64> {
        self.reported_ns
    }

    /// Reports by what became of them.
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
        // Blocks are whole: one more than fits the time.
        bytes_in(time_ns.saturating_add(1_000_000), self.config.peak_bytes_per_s)
    }

    /// Leads a state on to `to_ns`, in which the radio had room for between so many
    /// bytes, `likely` of them most probably. What came is served at the latest
    /// for `high`, at the earliest for `low`.
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

    /// One interval, with the unknown time before it.
    fn through(&self, from: TimedOccupancy, interval: &Interval) -> TimedOccupancy {
        let mut state = from;
        if interval.from_ns > state.at_ns {
            let gap_ns = interval.from_ns.saturating_sub(state.at_ns);
            // Where reports are missing, and not transmissions, the rate went on.
            let missing = gap_ns > self.horizon_ns();
            let likely = if missing { bytes_in(gap_ns, self.bytes_per_s()) } else { 0 };
            state = self.pass(state, interval.from_ns, (0, self.peak_bytes(gap_ns)), likely);
        }
        // Of one that began before the state it is not known what came since.
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

    /// Puts an interval in its place. False: of its time something is known.
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

    /// The buffer was reported: what was known before holds beside it, if both can
    /// be.
    fn set_anchor(&mut self, at_ns: i64, low_bytes: u64, high_bytes: u64) {
        let mut before = self.walk(at_ns);
        if at_ns > before.at_ns {
            // An interval that goes on behind the report may have begun by then.
            let gap_ns = at_ns.saturating_sub(before.at_ns);
            before = self.pass(before, at_ns, (0, self.peak_bytes(gap_ns)), 0);
        }
        let known = before.occupancy;
        // The lower bound counts what was handed over within the clock's error as
        // arrived, the upper one does not.
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
            // Between the bounds the old sum is as good a guess as any.
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

    /// The rate, by all that is known now.
    fn measure(&mut self) {
        let known = self.walk(i64::MAX);
        let batch_ns = (self.gap_ns / 4 * 5).max(MIN_BATCH_NS);
        self.rate.measure(known.at_ns, known.occupancy.likely_bytes, batch_ns);
    }
}

/// Of a block's room: headers are seldom at their largest (chosen here: three
/// quarters of the way).
const fn likely(low_bytes: u64, high_bytes: u64) -> u64 {
    high_bytes - (high_bytes - low_bytes) / 4
}

#[cfg(test)]
mod tests;
