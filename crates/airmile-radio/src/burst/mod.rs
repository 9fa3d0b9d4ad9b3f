//! Bursts of a user's downlink: spans in which the queue at the base station was not
//! empty (BurstTracker, MobiCom 2019, sections 2.1 and 3, with extensions).
//!
//! [`BurstTracker`] takes records and assembles rows of TTIs after a watermark
//! ([`BurstOptions::lateness_ms`]). Each TTI with user data gets one decision: whether it
//! emptied the queue. The decision uses RLC poll bits, MAC padding, allocations and
//! pauses, whichever the log has ([`EvidenceChoice`]). Limits and thresholds are learnt
//! from the log, an epoch ([`BurstOptions::epoch_rows`]) at a time, so memory is bounded
//! and the result does not depend on how the input is split.
//!
//! ```
//! use airmile_radio::burst::{BurstOptions, BurstTracker};
//! use airmile_model::{Direction, Grant, Position, Record};
//!
//! let mut tracker = BurstTracker::new(BurstOptions::default());
//! for tti in 0..5 {
//!     let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 48);
//!     grant.tbs_bytes = Some(4395);
//!     grant.padding_bytes = Some(if tti == 4 { 900 } else { 0 });
//!     tracker.push(&Record::Grant(grant));
//! }
//! let bursts = tracker.finish();
//! assert_eq!((bursts[0].start_tti.0, bursts[0].end_tti.0), (0, 4));
//! ```

mod allocation;
mod assemble;
mod collect;
mod counters;
mod cut;
mod dl_slots;
mod epoch;
mod fuse;
mod gap;
mod grants;
mod newest_sdu;
mod pace;
mod padding;
mod paper;
mod placing;
mod poll_model;
mod starved;
#[cfg(test)]
mod tests;
mod tti_row;
mod unpadded;
mod waiting;

use std::collections::VecDeque;

use airmile_model::{Bound, Burst, Direction, Evidence, Grant, Record, RlcPdu, TtiIndex};

pub use allocation::CellHabit;
use assemble::Assembler;
use collect::Collector;
use epoch::Epoch;
pub use fuse::Learnt;
use fuse::{decide_auto, decide_grants, decide_padding, decide_poll};
use placing::RowSink;
pub use poll_model::PollLimits;
use starved::Wait;
use tti_row::{PlainTti, TtiRow};

use crate::decided::Decided;

/// Which evidence to use (`--evidence`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvidenceChoice {
    /// All evidence in the log.
    #[default]
    Auto,
    /// Poll bits of RLC PDUs and pauses.
    Poll,
    /// MAC padding.
    Padding,
    /// Allocations alone, fitted to the log.
    Grants,
    /// BurstTracker's literal rule.
    Paper,
}

impl EvidenceChoice {
    /// Parses a name as given on the command line.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "poll" => Some(Self::Poll),
            "padding" => Some(Self::Padding),
            "grants" => Some(Self::Grants),
            "paper" => Some(Self::Paper),
            _ => None,
        }
    }
}

/// Maximum lateness of a record in ms: 0xB173 items come 300 ms late; three times that.
pub(crate) const LATENESS_MS: i64 = 1_000;

/// Settings of a [`BurstTracker`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstOptions {
    /// Which evidence to use.
    pub evidence: EvidenceChoice,
    /// `paper`: a burst begins above this share of the cell's PRBs.
    pub start_threshold: f64,
    /// `paper`: a burst may end below this share of the cell's PRBs.
    pub end_threshold: f64,
    /// Maximum lateness of a record, in ms.
    pub lateness_ms: i64,
    /// Number of scheduled TTIs judged together.
    pub epoch_rows: usize,
}

impl Default for BurstOptions {
    /// Thresholds of BurstTracker, section 3.2. Epoch: chosen here, minutes of a busy
    /// link, enough for every distribution, a few megabytes of rows.
    fn default() -> Self {
        Self {
            evidence: EvidenceChoice::Auto,
            start_threshold: 0.9,
            end_threshold: 0.4,
            lateness_ms: LATENESS_MS,
            epoch_rows: 32_768,
        }
    }
}

/// A run of scheduled TTIs, or of TTIs in which records are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Timing segment of its TTIs.
    pub timing_segment: u32,
    /// NR numerology (0: LTE).
    pub numerology: u8,
    /// First TTI.
    pub start_tti: TtiIndex,
    /// Number of TTIs.
    pub n_tti: i64,
    /// Time of the first TTI on the log's clock, in nanoseconds.
    pub at_ns: Option<i64>,
    /// Data bytes sent in it.
    pub bytes: u64,
    /// Whether this is a hole in the log.
    pub unknown: bool,
}

/// A tracker's state apart from bursts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BurstSummary {
    /// The evidence of the bursts; `None` before any decision.
    pub evidence: Option<Evidence>,
    /// TTIs with user data that were judged.
    pub data_ttis: u64,
    /// Parameters learnt from the last epoch.
    pub learnt: Learnt,
    /// Records that arrived later than the lateness allows, and were left out.
    pub late_records: u64,
    /// Whether waits before bursts are known.
    pub knows_waits: bool,
}

/// Finds the bursts of one user's downlink. See the [module](self).
///
/// Call [`push`](Self::push) for every record, take findings with
/// [`poll`](Self::poll) and [`poll_activity`](Self::poll_activity) at any time,
/// and [`finish`](Self::finish) at the end. Uplink and other records are ignored.
#[derive(Debug, Clone)]
pub struct BurstTracker {
    collector: Collector,
    judge: Judge,
}

impl BurstTracker {
    /// A tracker without records.
    #[must_use]
    pub fn new(options: BurstOptions) -> Self {
        Self {
            collector: Collector::new(options.lateness_ms.max(0)),
            judge: Judge {
                options,
                is_leg: false,
                epoch: Epoch::new(matches!(
                    options.evidence,
                    EvidenceChoice::Auto | EvidenceChoice::Poll
                )),
                assembler: Assembler::default(),
                bursts: VecDeque::new(),
                activities: VecDeque::new(),
                summary: BurstSummary::default(),
            },
        }
    }

    /// The queue is that of one of two legs: where its cell starves it, pauses before bursts are
    /// returned as unclear bursts.
    pub const fn set_leg(&mut self) {
        self.judge.is_leg = true;
    }

    /// Takes a record; records of one TTI may come in any order.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Dl => self.push_grant(grant),
            Record::Rlc(pdu) if pdu.dir == Direction::Dl => self.push_rlc(pdu),
            _ => self.push_other(record),
        }
    }

    #[inline(never)]
    fn push_grant(&mut self, grant: &Grant) {
        self.collector.push_grant(grant, &mut self.judge);
        self.collector.drain(&mut self.judge);
    }

    #[inline(never)]
    fn push_rlc(&mut self, pdu: &RlcPdu) {
        self.collector.push_rlc(pdu);
        self.collector.drain(&mut self.judge);
    }

    #[inline(never)]
    fn push_other(&mut self, record: &Record) {
        let Self { collector, judge } = self;
        match record {
            Record::Hole(hole) => collector.push_hole(hole),
            Record::CellInfo(info) => collector.push_cell_info(info, judge),
            // Only allocations are to be used.
            Record::NrStats(stats) if judge.options.evidence != EvidenceChoice::Grants => {
                collector.push_counters(stats);
            }
            _ => return,
        }
        collector.drain(judge);
    }

    /// Judges what is complete.
    fn settle(&mut self) -> &mut Judge {
        self.collector.place_closed(&mut self.judge);
        &mut self.judge
    }

    /// Returns the next burst, which is final.
    pub fn poll(&mut self) -> Option<Burst> {
        self.settle().bursts.pop_front()
    }

    /// Returns the next run of scheduled or missing TTIs.
    pub fn poll_activity(&mut self) -> Option<Activity> {
        self.settle().activities.pop_front()
    }

    /// How far the output of [`poll`](Self::poll) and
    /// [`poll_activity`](Self::poll_activity) is complete.
    pub fn decided(&mut self) -> Decided {
        self.settle();
        let row = self.judge.epoch.rows().first().map(TtiRow::first_tti);
        let Some(next) = self.collector.given_before() else { return Decided::NOTHING };
        self.judge.assembler.decided(row.map_or(next, |row| row.min(next)))
    }

    /// Ends the log: returns the remaining bursts.
    pub fn finish(&mut self) -> Vec<Burst> {
        let Self { collector, judge } = self;
        collector.finish(judge);
        judge.judge_all(Bound::End);
        judge.bursts.drain(..).collect()
    }

    /// The state apart from bursts.
    pub fn summary(&mut self) -> BurstSummary {
        let summary = self.settle().summary;
        BurstSummary { late_records: self.collector.late_records(), ..summary }
    }
}

/// Judges rows, an epoch at a time, and assembles the decisions.
#[derive(Debug, Clone)]
struct Judge {
    options: BurstOptions,
    /// Whether the phone has another leg.
    is_leg: bool,
    epoch: Epoch,
    assembler: Assembler,
    bursts: VecDeque<Burst>,
    activities: VecDeque<Activity>,
    summary: BurstSummary,
}

impl RowSink for Judge {
    #[inline(never)]
    fn take_row(&mut self, row: TtiRow) {
        self.enter(row.segment);
        self.epoch.push(row);
        self.judge_full_epoch();
    }

    #[inline]
    fn take_plain(&mut self, tti: &PlainTti<'_>) {
        self.enter(tti.segment);
        self.epoch.push_plain(tti);
        self.judge_full_epoch();
    }

    fn take_hole(&mut self, segment: u32, tti: i64, n_tti: i64) {
        self.epoch.add_hole();
        self.assembler.add_hole(segment, tti, n_tti);
    }
}

impl Judge {
    /// Enters the timing segment of the next row.
    #[inline]
    fn enter(&mut self, segment: u32) {
        if self.epoch.rows().first().is_some_and(|first| first.segment != segment) {
            self.judge_all(Bound::Handover);
        }
    }

    #[inline]
    fn judge_full_epoch(&mut self) {
        if self.epoch.n_tti() > self.options.epoch_rows.max(1) {
            self.judge_epoch();
        }
    }

    /// Judges the rows so far, except the last data TTI and what follows: its pause is
    /// not known yet.
    #[cold]
    fn judge_epoch(&mut self) {
        let (decisions, silences) = self.decide();
        let cut = decisions.iter().rposition(|d| d.data).unwrap_or(0);
        let is_first = cut == 0 && self.epoch.rows().first().is_none_or(|row| row.n_tti() == 1);
        let n = if is_first { self.epoch.rows().len() - 1 } else { cut };
        self.emit_rows(&decisions, silences, n);
        if let Some(before) = self.epoch.take_continued() {
            self.summary.data_ttis += before.n_data();
            self.assembler.continued(&before, &mut self.bursts, &mut self.activities);
        }
    }

    /// Judges all rows: the segment or the log ends after them.
    #[cold]
    fn judge_all(&mut self, end: Bound) {
        let (decisions, silences) = self.decide();
        self.emit_rows(&decisions, silences, self.epoch.rows().len());
        self.assembler.end(end, &mut self.bursts, &mut self.activities);
    }

    /// Passes the first `n` rows on to the assembler, and removes them. Data may have waited in silences.
    fn emit_rows(&mut self, decisions: &[fuse::Decision], silences: Vec<Wait>, n: usize) {
        let (bursts, activities) = (&mut self.bursts, &mut self.activities);
        let rows = self.epoch.rows();
        let possible =
            self.is_leg.then(|| starved::possible_waits(rows, decisions, &self.assembler));
        let possible = possible.into_iter().flatten().map(|wait| (wait, Bound::Gap));
        // A whole block opens a silence, whatever legs there are.
        let silences = silences.into_iter().map(|wait| (wait, Bound::Fraction));
        let mut waits: Vec<(Wait, Bound)> = silences.chain(possible).collect();
        waits.sort_by_key(|((row, ..), _)| *row);
        waits.dedup_by_key(|((row, ..), _)| *row);
        let mut waits = waits.into_iter().peekable();
        for (i, (row, decision)) in rows.iter().zip(decisions).enumerate().take(n) {
            if let Some(before) = &row.continued {
                self.summary.data_ttis += before.n_data();
                self.assembler.continued(before, bursts, activities);
            }
            self.summary.data_ttis += u64::from(decision.data);
            if self.options.evidence == EvidenceChoice::Paper {
                let gap = rows.get(i + 1).map(|next| next.tti.saturating_sub(row.tti));
                self.assembler.paper_row(row, gap, &self.options, bursts, activities);
            } else {
                self.assembler.row(row, decision, bursts, activities);
            }
            if let Some(((_, from, to), by)) = waits.next_if(|((of, ..), _)| *of == i) {
                let parts = self.assembler.outside_holes(row.segment, from, to).into_iter();
                let wait = |(from, to)| Assembler::possible_wait(row.segment, from, to, by);
                bursts.extend(parts.map(wait));
            }
        }
        self.epoch.remove(n);
    }

    fn decide(&mut self) -> (Vec<fuse::Decision>, Vec<Wait>) {
        let mut learnt = Learnt::default();
        let rows = self.epoch.rows();
        let (evidence, mut decisions) = match self.options.evidence {
            EvidenceChoice::Auto => decide_auto(rows, &mut learnt),
            EvidenceChoice::Poll => (Evidence::Poll, decide_poll(rows, false, &mut learnt)),
            EvidenceChoice::Padding => (Evidence::Padding, decide_padding(rows, &mut learnt)),
            EvidenceChoice::Grants => (Evidence::Grants, decide_grants(rows, &mut learnt)),
            EvidenceChoice::Paper => (Evidence::Paper, fuse::by_paper(rows)),
        };
        let silences = match self.options.evidence {
            EvidenceChoice::Paper => Vec::new(),
            _ => fuse::end_before_silences(rows, &mut decisions, learnt.cell_habit),
        };
        if decisions.iter().any(|d| d.data) {
            self.summary.evidence = match self.summary.evidence {
                Some(before) if before != evidence => Some(Evidence::Fused),
                _ => Some(evidence),
            };
            self.summary.learnt = learnt;
        }
        (decisions, silences)
    }
}
