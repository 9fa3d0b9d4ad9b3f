//! The time of a record: timing segments and unwrapped TTIs.
//!
//! A log writes some messages at once (0xB126, 0xB130, 0xB193: within a few ms) and
//! others in batches (0xB173: up to 300 ms after the transmission). Only the prompt ones
//! set the relation of TTIs to the clock; batched ones are placed by it.

use airmile_model::tti::{Position, Tti, TtiIndex, TtiUnwrapper, nearest};
use airmile_model::window::SegmentTti;

/// Maximum delay of a batch after its first record (up to 307 ms in logs; the rest is
/// margin).
const MAX_BATCH_DELAY_TTIS: i64 = 600;
/// A batch is not written before its air time, apart from jitter.
const MAX_LEAD_TTIS: i64 = 60;
/// An NR slot that deviates from the clock by more than this is another timing (chosen here: a
/// batch is written within 2 s, and the smallest delay is known only later).
const MAX_OFF_TTIS: i64 = 1_000;

/// Maximum backward step of the log's clock (messages of several tasks are not written in
/// order; a few ms in logs); a larger one is a jump.
pub(super) const MAX_CLOCK_BACK_NS: i64 = 1_000_000_000;

/// The cell that timing belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellId {
    pub(super) pci: u16,
    pub(super) earfcn: Option<u32>,
}

impl CellId {
    /// Whether both may be the same cell: an unknown EARFCN matches any.
    fn agrees(self, other: Self) -> bool {
        self.pci == other.pci
            && match (self.earfcn, other.earfcn) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
    }
}

/// Why a new timing segment began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Another cell became the serving one.
    Handover,
    /// The SFN jumped against the clock.
    Reset,
}

/// TTI indexes of a log follow its clock across segments, while the SFN of another cell
/// (or after a reset) has its own phase: `offset_ttis` is the difference between the
/// unwrapped SFN and the log's index.
#[derive(Debug, Clone)]
struct Segment {
    number: u32,
    unwrapper: TtiUnwrapper,
    offset_ttis: i64,
    /// A prompt message has set the relation; until then it is only bounded.
    exact: bool,
    cell: Option<CellId>,
    began_ns: i64,
    /// The clock jumped before it: a batch is not placed by the clock of the previous one.
    after_jump: bool,
}

/// The timing of one subscription's serving cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing {
    current: Option<Segment>,
    previous: Option<Segment>,
    /// A residual that occurred once: one odd stamp is not yet a reset.
    odd: Option<i64>,
    /// The latest index reached by the clock.
    latest: TtiIndex,
    /// Number and first index of the segment to begin with the next record.
    next: Option<SegmentTti>,
}

impl Timing {
    /// Places a record of a message written within a few ms of the transmission; `cell`
    /// is the primary cell's identity, if the message has it.
    pub(super) fn place_prompt(
        &mut self,
        at_ns: i64,
        tti: Tti,
        cell: Option<CellId>,
    ) -> (Position, Option<Change>) {
        let Some(segment) = &mut self.current else {
            return (self.begin_anew(at_ns, tti, true, cell), None);
        };
        let predicted = segment.unwrapper.predict(at_ns);
        let index = nearest(predicted, tti);
        let residual = index.since(predicted);
        let moved = segment.exact && residual.abs() > TtiUnwrapper::tolerance();
        if segment.is_left_for(cell) {
            return (self.begin(at_ns, tti, true, cell), Some(Change::Handover));
        }
        if moved {
            if confirms(&mut self.odd, residual) {
                return (self.begin(at_ns, tti, true, cell), Some(Change::Reset));
            }
            return (segment.position(index), None);
        }
        self.odd = None;
        segment.unwrapper.follow(at_ns, index);
        segment.exact = true;
        segment.learn(cell);
        let position = segment.position(index);
        self.latest = self.latest.max(position.tti);
        (position, None)
    }

    /// Places a record of a message that is written within a few ms of the transmission
    /// and states a frame without the subframe: the subframe is the one of that frame
    /// nearest to the time of writing.
    pub(super) fn place_in_frame(
        &mut self,
        at_ns: i64,
        sfn: u16,
        cell: Option<CellId>,
    ) -> Position {
        let Some(middle) = Tti::new(sfn, 5) else { return self.at(at_ns) };
        let Some(segment) = &mut self.current else {
            return self.begin_anew(at_ns, middle, false, cell);
        };
        let predicted = segment.unwrapper.predict(at_ns);
        let index = nearest(predicted, middle);
        let residual = index.since(predicted);
        let moved = residual.abs() > TtiUnwrapper::tolerance();
        let confirmed = moved && confirms(&mut self.odd, residual);
        if segment.is_left_for(cell) || (confirmed && segment.exact) {
            return self.begin(at_ns, middle, false, cell);
        }
        segment.cell = segment.cell.or(cell);
        if moved {
            return segment.position(predicted);
        }
        self.odd = None;
        let first = index.plus(-5);
        segment.position(predicted.clamp(first, first.plus(9)))
    }

    /// Records the writing time of a packet; returns true if the clock jumped back by
    /// more than messages do: then a timing segment begins.
    pub(super) fn note_clock(&mut self, last_ns: i64, now_ns: i64) -> bool {
        if last_ns.saturating_sub(now_ns) <= MAX_CLOCK_BACK_NS {
            return false;
        }
        let Some(old) = self.current.take() else { return false };
        let reached = old.position(old.unwrapper.predict(last_ns)).tti.max(self.latest);
        self.next = Some((old.number + 1, reached.plus(1)));
        self.previous = Some(old);
        self.odd = None;
        true
    }

    /// The first segment, or the one after the clock jumped back.
    fn begin_anew(&mut self, at_ns: i64, tti: Tti, exact: bool, cell: Option<CellId>) -> Position {
        let unwrapper = TtiUnwrapper::new(at_ns, tti);
        let start = TtiIndex(i64::from(tti.count()));
        let after_jump = self.next.is_some();
        let (number, from) = self.next.take().unwrap_or((0, start));
        let offset_ttis = from.since(start);
        let began_ns = at_ns;
        let segment = Segment { number, unwrapper, offset_ttis, exact, cell, began_ns, after_jump };
        let position = segment.position(start);
        self.latest = self.latest.max(position.tti);
        self.current = Some(segment);
        position
    }

    /// Places a record of a message written some time after the transmission.
    pub(super) fn place_batched(&mut self, at_ns: i64, tti: Tti) -> Position {
        let Some(segment) = &self.current else {
            return self.begin_anew(at_ns, tti, false, None);
        };
        let (index, lead) = segment.nearest(at_ns, tti);
        if !segment.fits(lead)
            && let Some(old) = self.of_previous(at_ns, tti)
        {
            return old;
        }
        let Some(segment) = &mut self.current else { return Position::default() };
        if !segment.exact && lead > 0 {
            // Only batches so far: the record with the smallest delay bounds the
            // relation.
            segment.unwrapper.follow(at_ns, index);
        }
        segment.position(index)
    }

    /// Places a slot of NR by its subframe. NR has batches alone, so they show handovers and
    /// resets, too; `cell` is the primary cell's identity, if the message has it.
    pub(super) fn place_slot(&mut self, at_ns: i64, tti: Tti, cell: Option<CellId>) -> Position {
        let begins = self.current.as_ref().is_some_and(|segment| {
            let is_off = || segment.nearest(at_ns, tti).1.abs() > MAX_OFF_TTIS;
            segment.is_left_for(cell) || (is_off() && self.of_previous(at_ns, tti).is_none())
        });
        if begins {
            return self.begin(at_ns, tti, false, cell);
        }
        // What does not name the cell may be of the one before or, at any time, already of the next one: it
        // bounds no relation but that of a log's first batches.
        if let Some(segment) = &self.current
            && segment.cell.is_some()
            && cell.is_none()
            && (segment.is_settled(at_ns) || self.previous.is_some())
            && let (index, 1..) = segment.nearest(at_ns, tti)
        {
            return segment.position(index);
        }
        let position = self.place_batched(at_ns, tti);
        if let Some(segment) = &mut self.current
            && segment.number == position.timing_segment
        {
            segment.learn(cell);
        }
        self.latest = self.latest.max(position.tti);
        position
    }

    /// The place of a record that was written just after a change, about the time before it.
    fn of_previous(&self, at_ns: i64, tti: Tti) -> Option<Position> {
        let (segment, previous) = self.current.as_ref().zip(self.previous.as_ref())?;
        let (old, lead) = previous.nearest(at_ns, tti);
        let fits = !segment.is_settled(at_ns) && !segment.after_jump && previous.fits(lead);
        fits.then(|| previous.position(old))
    }

    /// The number of the current segment, and the TTI that the clock predicts.
    pub(super) fn now(&self, at_ns: i64) -> Option<SegmentTti> {
        self.current.as_ref().map(|s| (s.number, s.position(s.unwrapper.predict(at_ns)).tti))
    }

    /// As [`Self::now`], or where the segment after a jump of the clock begins: nothing about the time
    /// before it is to come.
    pub(super) fn reached(&self, at_ns: i64) -> Option<SegmentTti> {
        self.now(at_ns).or(self.next)
    }

    /// A position on the primary cell at a time of the clock.
    pub(super) fn at(&self, at_ns: i64) -> Position {
        let (number, tti) = self.now(at_ns).unwrap_or_default();
        position(number, tti)
    }

    /// The clock's time of a position, in nanoseconds.
    pub(super) fn time_ns(&self, position: Position) -> Option<i64> {
        let is_of = |s: &&Segment| s.number == position.timing_segment;
        let current = self.current.as_ref().filter(is_of);
        let segment = current.or_else(|| self.previous.as_ref().filter(is_of))?;
        Some(segment.unwrapper.time_ns(position.tti.plus(-segment.offset_ttis)))
    }

    fn begin(&mut self, at_ns: i64, tti: Tti, exact: bool, cell: Option<CellId>) -> Position {
        let unwrapper = TtiUnwrapper::new(at_ns, tti);
        let start = TtiIndex(i64::from(tti.count()));
        let (number, offset_ttis) = match &self.current {
            Some(old) => {
                let reached = old.position(old.unwrapper.predict(at_ns)).tti;
                (old.number + 1, reached.max(self.latest.plus(1)).since(start))
            }
            None => (0, 0),
        };
        let (began_ns, after_jump) = (at_ns, false);
        let segment = Segment { number, unwrapper, offset_ttis, exact, cell, began_ns, after_jump };
        let position = segment.position(start);
        self.previous = self.current.replace(segment);
        self.odd = None;
        self.latest = self.latest.max(position.tti);
        position
    }
}

impl Segment {
    /// Whether it began longer ago than any batch waits.
    const fn is_settled(&self, at_ns: i64) -> bool {
        at_ns.saturating_sub(self.began_ns) > MAX_BATCH_DELAY_TTIS * 1_000_000
    }

    /// Whether a message of this cell shows a handover.
    fn is_left_for(&self, cell: Option<CellId>) -> bool {
        matches!((cell, self.cell), (Some(new), Some(old)) if !new.agrees(old))
    }

    /// Takes what a message states about the cell.
    fn learn(&mut self, cell: Option<CellId>) {
        self.cell = match (self.cell, cell) {
            (Some(old), Some(new)) => Some(CellId { earfcn: new.earfcn.or(old.earfcn), ..new }),
            (old, new) => new.or(old),
        };
    }

    /// The unwrapped TTI nearest to the clock's prediction, and how far it is ahead of that.
    fn nearest(&self, at_ns: i64, tti: Tti) -> (TtiIndex, i64) {
        let predicted = self.unwrapper.predict(at_ns);
        let index = nearest(predicted, tti);
        (index, index.since(predicted))
    }

    /// Whether a batch can be as far ahead of the clock's prediction.
    fn fits(&self, lead: i64) -> bool {
        // Until the smallest delay is known, any batch can have a smaller one.
        let max = if self.exact { MAX_LEAD_TTIS } else { MAX_BATCH_DELAY_TTIS };
        (-MAX_BATCH_DELAY_TTIS..=max).contains(&lead)
    }

    /// The position of an unwrapped TTI of this segment on the log's axis.
    fn position(&self, unwrapped: TtiIndex) -> Position {
        position(self.number, unwrapped.plus(self.offset_ttis))
    }
}

/// Whether a deviation from the clock's prediction agrees with the odd one before it.
fn confirms(odd: &mut Option<i64>, residual: i64) -> bool {
    let agrees = |odd: i64| (odd - residual).abs() <= TtiUnwrapper::tolerance();
    odd.replace(residual).is_some_and(agrees)
}

fn position(timing_segment: u32, tti: TtiIndex) -> Position {
    Position { timing_segment, tti, ..Position::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn tti(count: i64) -> Tti {
        TtiIndex(count).wrapped()
    }

    fn cell(pci: u16) -> Option<CellId> {
        Some(CellId { pci, earfcn: None })
    }

    #[test]
    fn jitter_and_long_sleep_stay_in_the_segment() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        let (slept, change) = timing.place_prompt(60_003 * MS, tti(60_005), cell(1));
        assert_eq!((slept.tti.0, change), (60_005, None));
    }

    #[test]
    fn indexes_go_on_by_the_clock_over_handover_and_reset() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        let (after, change) = timing.place_prompt(100 * MS, tti(7_777), cell(2));
        assert_eq!((after.timing_segment, change), (1, Some(Change::Handover)));
        assert_eq!(after.tti.0, 105);
        let (next, change) = timing.place_prompt(104 * MS, tti(7_781), cell(2));
        assert_eq!((next.tti.0, change), (109, None));
        // One odd record may be a bad stamp; the second one confirms it.
        let (_, change) = timing.place_prompt(200 * MS, tti(1_000), cell(2));
        assert_eq!(change, None);
        let (after, change) = timing.place_prompt(201 * MS, tti(1_001), cell(2));
        assert_eq!((after.timing_segment, change), (2, Some(Change::Reset)));
        assert_eq!(after.tti.0, 206);
        assert_eq!(timing.time_ns(after), Some(201 * MS));
    }

    #[test]
    fn one_bad_stamp_changes_nothing() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(0), cell(1));
        timing.place_prompt(86_400_000 * MS, tti(1), cell(1));
        let (after, change) = timing.place_prompt(2 * MS, tti(2), cell(1));
        assert_eq!((after.tti.0, change), (2, None));
    }

    #[test]
    fn a_clock_that_jumps_back_goes_on_in_a_new_segment() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        timing.place_prompt(9_000 * MS, tti(9_005), cell(1));
        assert!(!timing.note_clock(9_000 * MS, 8_500 * MS));
        assert!(timing.note_clock(9_000 * MS, 10 * MS));
        let (first, _) = timing.place_prompt(10 * MS, tti(15), cell(1));
        let (second, change) = timing.place_prompt(20 * MS, tti(25), cell(1));
        assert_eq!((first.timing_segment, change), (1, None));
        assert_eq!(first.tti.0, 9_006);
        assert_eq!(second.tti.since(first.tti), 10);
    }

    #[test]
    fn a_batch_written_after_a_handover_goes_to_the_old_cell() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        timing.place_prompt(100 * MS, tti(7_777), cell(2));
        let late = timing.place_batched(110 * MS, tti(65));
        assert_eq!((late.timing_segment, late.tti.0), (0, 65));
        let fresh = timing.place_batched(120 * MS, tti(7_790));
        assert_eq!((fresh.timing_segment, fresh.tti.0), (1, 118));
    }

    #[test]
    fn batches_alone_are_bounded_by_the_least_delayed() {
        let mut timing = Timing::default();
        let first = timing.place_batched(300 * MS, tti(10));
        assert_eq!(first.tti.0, 10);
        let (prompt, change) = timing.place_prompt(310 * MS, tti(310), cell(1));
        assert_eq!((prompt.tti.0, change), (310, None));
        assert_eq!(timing.time_ns(first), Some(10 * MS));
    }

    #[test]
    fn slots_without_a_cell_bound_the_first_batches_alone() {
        let mut timing = Timing::default();
        // Written 50 ms, then 40 ms late.
        timing.place_slot(50 * MS, tti(0), cell(1));
        let at = |timing: &Timing| timing.now(10_000 * MS).map(|(_, tti)| tti.0);
        assert_eq!(at(&timing), Some(9_950));
        timing.place_slot(140 * MS, tti(100), None);
        assert_eq!(at(&timing), Some(9_960));
        // At any later time, the slot may be of the next cell.
        let place = timing.place_slot(5_000 * MS, tti(4_990), None);
        assert_eq!((place.tti.0, at(&timing)), (4_990, Some(9_960)));
        timing.place_slot(5_000 * MS, tti(4_970), cell(1));
        assert_eq!(at(&timing), Some(9_970));
    }
}
