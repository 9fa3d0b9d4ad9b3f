//! Assembles decisions per TTI into bursts and runs of activity.

use std::collections::VecDeque;

use airmile_model::{Bound, Burst, Direction, TtiIndex, TtiSpan};

use super::fuse::Decision;
use super::paper::{PaperRule, PaperStep};
use super::poll_model::PollMark;
use super::tti_row::{Continued, TtiRow, TtiSequence};
use super::{Activity, BurstOptions};
use crate::decided::Decided;

/// Confidence of an end that was not observed: the log or the cell's timing ended.
const UNSEEN_END: f64 = 0.5;
/// Confidence of the literal rule (chosen here: its median error with shared TTIs is over
/// a half).
const PAPER_RULE: f64 = 0.5;

/// A pause with missing PDUs is a hole in the log from this length on (chosen here: a PDU
/// that HARQ gave up leaves the others within a few round trips of 8 TTIs).
const MIN_HOLE_TTIS: i64 = 30;

/// A pause with missing PDUs of RLC UM may be that after a lost block if it is shorter than this, in ms
/// (chosen here: in less time, 10-bit sequence numbers of one block in each TTI do not wrap, TS 36.322,
/// 6.2.3.3, so that the number of missing PDUs is known).
const MAX_LOSS_PAUSE_MS: i64 = 1_000;

#[derive(Debug, Clone, Copy)]
struct OpenBurst {
    start: i64,
    bytes: u64,
    scheduled: u32,
    opened_by: Bound,
    /// Whether data may not have waited between its blocks.
    unclear: bool,
}

/// Assembles the rows' decisions.
#[derive(Debug, Clone, Default)]
pub(super) struct Assembler {
    segment: u32,
    numerology: u8,
    open: Option<OpenBurst>,
    /// The last row taken.
    last_tti: Option<i64>,
    /// Blocks since the last PDU that were not received: they may have had the PDUs that are missing
    /// next.
    lost_blocks: u32,
    run: Option<Activity>,
    /// Holes ahead: segment, first TTI, length.
    holes: VecDeque<(u32, i64, i64)>,
    /// End of the holes passed. A hole is timed by when the log was written, and records
    /// written after it reach back into it.
    hole_end: Option<i64>,
    paper: PaperRule,
}

impl Assembler {
    pub(super) fn add_hole(&mut self, segment: u32, tti: i64, n_tti: i64) {
        self.holes.push_back((segment, tti, n_tti));
    }

    /// Handles a row at which RLC sequence numbers jump: after a long pause, records are
    /// missing, and the state of the queue in between is unknown. A lost block is no missing record: it
    /// had one PDU of a bearer of RLC UM (TS 36.322, 4.2.1.2.2), which is not sent again.
    fn take_missing(&mut self, row: &TtiRow) {
        let lost = self.lost_blocks;
        self.lost_blocks = match row.marks.is_empty() {
            true => lost.saturating_add(row.grants.lost_blocks.into()),
            false => 0,
        };
        let Some(last) = self.last_tti.filter(|_| row.segment == self.segment) else { return };
        let pause = row.tti.saturating_sub(last);
        let max_loss = TtiSpan::from_ms(MAX_LOSS_PAUSE_MS, row.grants.numerology).0;
        let is_lost = |mark: &PollMark| mark.is_um && mark.missing <= lost && pause < max_loss;
        let mut unseen = row.marks.iter().filter(|mark| mark.missing > 0 && !is_lost(mark));
        if pause < MIN_HOLE_TTIS || unseen.next().is_none() {
            return;
        }
        let known = self.hole_end.is_some_and(|end| end > last)
            || self.holes.front().is_some_and(|(_, tti, _)| *tti < row.tti);
        if !known {
            self.holes.push_front((row.segment, last.saturating_add(1), pause - 1));
        }
    }

    /// Whether records are missing between two rows that were not taken yet.
    pub(super) fn misses(&self, row: &TtiRow, next: &TtiRow) -> bool {
        let until = (next.segment, next.first_tti());
        let n = self.holes.partition_point(|(segment, tti, _)| (*segment, *tti) < until);
        let hole = n.checked_sub(1).and_then(|last| self.holes.get(last));
        let hole = hole.is_some_and(|(segment, tti, n_tti)| {
            *segment == row.segment && tti.saturating_add(*n_tti) > row.tti
        });
        hole || next.marks.iter().any(|mark| mark.missing > 0)
    }

    /// How far the findings are complete, given that rows are still to come from `next`
    /// on.
    pub(super) fn decided(&self, next: i64) -> Decided {
        let hole = self.holes.front().map(|(_, tti, _)| *tti);
        let run = self.run.map(|run| run.start_tti.0);
        Decided {
            runs: TtiIndex([hole, run].into_iter().flatten().fold(next, i64::min)),
            bursts: TtiIndex(self.open.map_or(next, |open| open.start.min(next))),
        }
    }

    /// Takes a row of the rule that decides per data TTI.
    pub(super) fn row(
        &mut self,
        row: &TtiRow,
        decision: &Decision,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        let ttis = self.begin_row(row, bursts, activities);
        let mut closed = false;
        if decision.data {
            self.add_data(&ttis).unclear |= decision.is_unclear();
            if decision.empty {
                self.close((row.tti, ttis.bytes), decision.by, decision.confidence, bursts);
                closed = true;
            }
        }
        if let Some(open) = self.open.as_mut().filter(|_| !closed) {
            open.scheduled += u32::from(row.grants.has_grant);
        }
    }

    /// Takes the TTIs before a row that it continues: each left data.
    pub(super) fn continued(
        &mut self,
        before: &Continued,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        self.lost_blocks = 0;
        self.begin_ttis(&before.ttis, bursts, activities);
        let open = self.add_data(&before.ttis);
        open.scheduled += before.ttis.n_tti;
    }

    fn add_data(&mut self, ttis: &TtiSequence) -> &mut OpenBurst {
        let open = self.open.get_or_insert(OpenBurst {
            start: ttis.first_tti,
            bytes: 0,
            scheduled: 0,
            opened_by: Bound::FirstData,
            unclear: false,
        });
        open.bytes = open.bytes.saturating_add(ttis.bytes);
        open
    }

    /// Takes a row of the paper's rule.
    pub(super) fn paper_row(
        &mut self,
        row: &TtiRow,
        gap: Option<i64>,
        options: &BurstOptions,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        self.begin_row(row, bursts, activities);
        let step = self.paper.step(row, gap, options.start_threshold, options.end_threshold);
        if step == PaperStep::Opens {
            self.open = Some(OpenBurst {
                start: row.tti,
                bytes: 0,
                scheduled: 0,
                opened_by: Bound::Fraction,
                unclear: false,
            });
        }
        if let Some(open) = &mut self.open {
            open.bytes = open.bytes.saturating_add(row.grants.data_bytes(row.rlc_bytes));
            open.scheduled += u32::from(row.grants.has_grant);
        }
        if let PaperStep::Closes { end, .. } = step {
            self.close((end, 0), Bound::Fraction, PAPER_RULE, bursts);
        }
    }

    /// The segment or the log ends: an open burst ends without an observed end.
    pub(super) fn end(
        &mut self,
        by: Bound,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        self.take_holes(i64::MAX, bursts, activities);
        if let Some(last) = self.last_tti.take() {
            self.close((last.saturating_add(1), 0), by, UNSEEN_END, bursts);
        }
        self.paper.take_open();
        self.hole_end = None;
        activities.extend(self.run.take());
    }

    fn begin_row(
        &mut self,
        row: &TtiRow,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) -> TtiSequence {
        self.take_missing(row);
        let ttis = row.own_tti();
        self.begin_ttis(&ttis, bursts, activities);
        ttis
    }

    fn begin_ttis(
        &mut self,
        ttis: &TtiSequence,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        self.segment = ttis.segment;
        self.numerology = ttis.numerology;
        self.take_holes(ttis.first_tti, bursts, activities);
        // Between two rows of a hole nothing is known.
        if let Some(last) = self.last_tti
            && self.hole_end.is_some_and(|end| last < end)
            && ttis.first_tti > last.saturating_add(1)
        {
            self.close((last.saturating_add(1), 0), Bound::LogHole, UNSEEN_END, bursts);
            self.paper.take_open();
        }
        let n_tti = i64::from(ttis.n_tti);
        self.last_tti = Some(ttis.first_tti + (n_tti - 1));
        if !ttis.has_grant {
            return;
        }
        match &mut self.run {
            Some(run) if run.start_tti.0 + run.n_tti == ttis.first_tti => {
                run.n_tti += n_tti;
                run.bytes = run.bytes.saturating_add(ttis.bytes);
            }
            run => {
                activities.extend(run.take());
                *run = Some(Activity {
                    timing_segment: ttis.segment,
                    numerology: ttis.numerology,
                    start_tti: TtiIndex(ttis.first_tti),
                    n_tti,
                    at_ns: ttis.at_ns,
                    bytes: ttis.bytes,
                    unknown: false,
                });
            }
        }
    }

    /// A hole is unknown, never contention: a burst ends where it begins.
    fn take_holes(
        &mut self,
        until: i64,
        bursts: &mut VecDeque<Burst>,
        activities: &mut VecDeque<Activity>,
    ) {
        while let Some(&(segment, tti, n_tti)) = self.holes.front() {
            if segment > self.segment || (segment == self.segment && tti > until) {
                break;
            }
            self.holes.pop_front();
            if segment == self.segment {
                let hole_end = tti.saturating_add(n_tti);
                self.hole_end = Some(self.hole_end.map_or(hole_end, |end| end.max(hole_end)));
                let end = self.last_tti.map_or(tti, |last| tti.max(last.saturating_add(1)));
                self.close((end, 0), Bound::LogHole, UNSEEN_END, bursts);
                self.paper.take_open();
            }
            activities.push_back(Activity {
                timing_segment: segment,
                numerology: self.numerology,
                start_tti: TtiIndex(tti),
                n_tti: n_tti.max(0),
                at_ns: None,
                bytes: 0,
                unknown: true,
            });
        }
    }

    /// The parts of TTIs after the last row for which the log has records, as far as holes are known.
    pub(super) fn outside_holes(&self, segment: u32, from: i64, to: i64) -> Vec<(i64, i64)> {
        let mut at = self.hole_end.map_or(from, |end| end.max(from));
        let mut parts = Vec::new();
        for (_, start, n_tti) in self.holes.iter().filter(|hole| hole.0 == segment) {
            parts.push((at, (*start).min(to)));
            at = at.max(start.saturating_add(*n_tti));
        }
        parts.push((at, to));
        parts.retain(|(from, to)| from < to);
        parts
    }

    /// A wait before a burst that may be none.
    pub(super) fn possible_wait(segment: u32, start: i64, end: i64, opened_by: Bound) -> Burst {
        Burst {
            dir: Direction::Dl,
            timing_segment: segment,
            start_tti: TtiIndex(start),
            end_tti: TtiIndex(end),
            bytes: 0,
            last_bytes: 0,
            scheduled_ttis: 0,
            unknown_ttis: u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX),
            opened_by,
            closed_by: Bound::FirstData,
            confidence: UNSEEN_END,
        }
    }

    /// Closes the open burst before `end`, in which the last bytes left.
    fn close(
        &mut self,
        (end, last_bytes): (i64, u64),
        by: Bound,
        confidence: f64,
        bursts: &mut VecDeque<Burst>,
    ) {
        let Some(open) = self.open.take() else { return };
        // A queue emptied by one TTI has no throughput time: no burst.
        if end <= open.start {
            return;
        }
        let n_tti = u32::try_from(end.saturating_sub(open.start)).unwrap_or(u32::MAX);
        bursts.push_back(Burst {
            dir: Direction::Dl,
            timing_segment: self.segment,
            start_tti: TtiIndex(open.start),
            end_tti: TtiIndex(end),
            bytes: open.bytes,
            last_bytes,
            scheduled_ttis: open.scheduled,
            unknown_ttis: if open.unclear { n_tti } else { 0 },
            opened_by: open.opened_by,
            closed_by: by,
            confidence: if open.unclear { confidence.min(UNSEEN_END) } else { confidence },
        });
    }
}
