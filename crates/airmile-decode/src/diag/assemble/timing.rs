//! Where in time a record belongs: timing segments and unwrapped TTIs.
//!
//! A log writes some messages at once (0xB126, 0xB130, 0xB193: within a few
//! ms) and others in batches (0xB173: up to 300 ms after the air). Only the
//! prompt ones set the relation of TTIs to the clock; the batched ones are
//! placed by it.

use airmile_model::tti::{Position, Tti, TtiIndex, TtiUnwrapper};

/// A batch may follow its first record by this much (seen: up to 307 ms; the
/// rest is room).
const MAX_BATCH_DELAY_TTIS: i64 = 600;
/// A batch is not written before its air time, but for jitter.
const MAX_LEAD_TTIS: i64 = 60;

/// The cell that timing belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellId {
    pub(super) pci: u16,
    pub(super) earfcn: Option<u32>,
}

impl CellId {
    /// Whether both can be the same cell: an EARFCN that is not known matches any.
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

#[derive(Debug, Clone)]
struct Segment {
    number: u32,
    unwrapper: TtiUnwrapper,
    /// A prompt message has set the relation; before that it is only bounded.
    exact: bool,
    cell: Option<CellId>,
    began_ns: i64,
}

/// The timing of one subscription's serving cell.
#[derive(Debug, Default)]
pub(super) struct Timing {
    current: Option<Segment>,
    previous: Option<Segment>,
}

impl Timing {
    /// Places a record of a message that is written within a few ms of the
    /// air; `cell` is the primary cell's identity where the message has it.
    pub(super) fn place_prompt(
        &mut self,
        at_ns: i64,
        tti: Tti,
        cell: Option<CellId>,
    ) -> (Position, Option<Change>) {
        let Some(segment) = &mut self.current else {
            self.current = Some(Segment {
                number: 0,
                unwrapper: TtiUnwrapper::new(at_ns, tti),
                exact: true,
                cell,
                began_ns: at_ns,
            });
            return (position(0, TtiIndex(i64::from(tti.count()))), None);
        };
        let residual = segment.unwrapper.residual(at_ns, tti);
        let moved = segment.exact && residual.abs() > TtiUnwrapper::tolerance();
        let handover = matches!((cell, segment.cell), (Some(new), Some(old)) if !new.agrees(old));
        if moved || handover {
            let change = if handover { Change::Handover } else { Change::Reset };
            return (self.begin(at_ns, tti, cell), Some(change));
        }
        let index = segment.unwrapper.unwrap_at(at_ns, tti);
        segment.unwrapper.follow(at_ns, index);
        segment.exact = true;
        segment.cell = match (segment.cell, cell) {
            (Some(old), Some(new)) => Some(CellId { earfcn: new.earfcn.or(old.earfcn), ..new }),
            (old, new) => new.or(old),
        };
        (position(segment.number, index), None)
    }

    /// Places a record of a message that is written some time after the air.
    pub(super) fn place_batched(&mut self, at_ns: i64, tti: Tti) -> Position {
        let Some(segment) = &mut self.current else {
            self.current = Some(Segment {
                number: 0,
                unwrapper: TtiUnwrapper::new(at_ns, tti),
                exact: false,
                cell: None,
                began_ns: at_ns,
            });
            return position(0, TtiIndex(i64::from(tti.count())));
        };
        let index = segment.unwrapper.unwrap_at(at_ns, tti);
        let lead = index.since(segment.unwrapper.predict(at_ns));
        if !segment.exact && lead > 0 {
            // Only batches so far: the least delayed record bounds the relation.
            segment.unwrapper.follow(at_ns, index);
        }
        let fits = |lead: i64| (-MAX_BATCH_DELAY_TTIS..=MAX_LEAD_TTIS).contains(&lead);
        if fits(lead) || at_ns - segment.began_ns > MAX_BATCH_DELAY_TTIS * 1_000_000 {
            return position(segment.number, index);
        }
        // Written just after a change, of before it.
        match &self.previous {
            Some(previous) => {
                let old = previous.unwrapper.unwrap_at(at_ns, tti);
                if fits(old.since(previous.unwrapper.predict(at_ns))) {
                    position(previous.number, old)
                } else {
                    position(segment.number, index)
                }
            }
            None => position(segment.number, index),
        }
    }

    /// The number of the current segment, and the TTI that the clock predicts.
    pub(super) fn now(&self, at_ns: i64) -> Option<(u32, TtiIndex)> {
        self.current.as_ref().map(|s| (s.number, s.unwrapper.predict(at_ns)))
    }

    /// A position on the primary cell at a time of the clock.
    pub(super) fn at(&self, at_ns: i64) -> Position {
        let (number, tti) = self.now(at_ns).unwrap_or_default();
        position(number, tti)
    }

    /// The clock's time of a position, in nanoseconds.
    pub(super) fn time_ns(&self, position: Position) -> Option<i64> {
        [&self.current, &self.previous]
            .into_iter()
            .flatten()
            .find(|s| s.number == position.timing_segment)
            .map(|s| s.unwrapper.time_ns(position.tti))
    }

    fn begin(&mut self, at_ns: i64, tti: Tti, cell: Option<CellId>) -> Position {
        let (number, unwrapper) = match &self.current {
            Some(old) => (old.number + 1, old.unwrapper.resumed(at_ns, tti)),
            None => (0, TtiUnwrapper::new(at_ns, tti)),
        };
        let index = unwrapper.unwrap_at(at_ns, tti);
        let segment = Segment { number, unwrapper, exact: true, cell, began_ns: at_ns };
        self.previous = self.current.replace(segment);
        position(number, index)
    }
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
    fn handover_and_reset_begin_segments_that_go_on_by_the_clock() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        let (after, change) = timing.place_prompt(100 * MS, tti(7_777), cell(2));
        assert_eq!((after.timing_segment, change), (1, Some(Change::Handover)));
        let (after, change) = timing.place_prompt(200 * MS, tti(1_000), cell(2));
        assert_eq!((after.timing_segment, change), (2, Some(Change::Reset)));
        assert!(after.tti.0 > 0);
    }

    #[test]
    fn a_batch_written_after_a_handover_goes_to_the_old_cell() {
        let mut timing = Timing::default();
        timing.place_prompt(0, tti(5), cell(1));
        timing.place_prompt(100 * MS, tti(7_777), cell(2));
        let late = timing.place_batched(110 * MS, tti(65));
        assert_eq!((late.timing_segment, late.tti.0), (0, 65));
        let fresh = timing.place_batched(120 * MS, tti(7_790));
        assert_eq!(fresh.timing_segment, 1);
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
}
