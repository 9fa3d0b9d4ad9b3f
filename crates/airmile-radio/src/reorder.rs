//! Holds records back until late ones have arrived.
//!
//! Logs are nearly in order. An estimator that needs all records of a TTI at once waits
//! until the newest record is [`lateness_ms`](Watermark::new) ahead. After a new
//! timing segment (a handover) the old one closes only after the same wait, as batches
//! from before it may follow.

use airmile_model::window::{SegmentTti, Slot, TtiWindow};
use airmile_model::{TtiIndex, TtiSpan};

/// Up to which TTI records are no longer waited for.
#[derive(Debug, Clone)]
pub(crate) struct Watermark {
    lateness_ms: i64,
    /// The same in TTIs of the records' numerology.
    lateness_ttis: i64,
    newest: Option<SegmentTti>,
    /// How often the newest TTI or the lateness changed since the last [`mark`](Self::mark).
    n_moves: u32,
    segment_first: TtiIndex,
    closed: Option<SegmentTti>,
    /// Records that arrived after their TTI was closed.
    pub(crate) late_records: u64,
}

impl Watermark {
    pub(crate) const fn new(lateness_ms: i64) -> Self {
        Self {
            lateness_ms,
            lateness_ttis: lateness_ms,
            newest: None,
            n_moves: 0,
            segment_first: TtiIndex(0),
            closed: None,
            late_records: 0,
        }
    }

    /// Takes the numerology of a record: how many TTIs the lateness is.
    pub(crate) const fn set_numerology(&mut self, numerology: u8) {
        let lateness_ttis = TtiSpan::from_ms(self.lateness_ms, numerology).0;
        self.n_moves += (lateness_ttis != self.lateness_ttis) as u32;
        self.lateness_ttis = lateness_ttis;
    }

    /// Closes what the records so far close, then takes the TTI of the next one; false, and counted,
    /// if that is closed. For the newest TTI there is nothing to close.
    #[inline]
    pub(crate) fn admits(&mut self, at: SegmentTti) -> bool {
        match &mut self.newest {
            Some((segment, newest)) if *segment == at.0 && at.1 >= *newest => {
                self.n_moves += u32::from(at.1 > *newest);
                *newest = at.1;
                true
            }
            _ => {
                self.advance();
                self.admits_now(at)
            }
        }
    }

    /// Takes the TTI of a record; false, and counted, if that was closed.
    pub(crate) fn admits_now(&mut self, at: SegmentTti) -> bool {
        if self.closed.is_some_and(|closed| at < closed) {
            self.late_records += 1;
            return false;
        }
        if self.newest.is_none_or(|newest| at > newest) {
            if self.newest.is_none_or(|newest| newest.0 < at.0) {
                self.segment_first = at.1;
            }
            self.newest = Some(at);
            self.n_moves += 1;
        }
        true
    }

    /// Closes the TTIs that are no longer waited for; false if there are none.
    pub(crate) fn advance(&mut self) -> bool {
        let Some((segment, tti)) = self.newest.filter(|_| self.n_moves > 0) else { return false };
        let waited = tti.since(self.segment_first) >= self.lateness_ttis;
        let mark = (segment, tti.plus(-self.lateness_ttis));
        if !waited || self.closed.is_some_and(|closed| mark <= closed) {
            return false;
        }
        self.closed = Some(mark);
        true
    }

    /// The TTI before which records are no longer waited for; `None`: the same as before.
    #[inline]
    pub(crate) fn mark(&mut self) -> Option<SegmentTti> {
        let advanced = self.advance();
        self.n_moves = 0;
        self.closed.filter(|_| advanced)
    }

    /// How often the newest TTI or the lateness changed since the last [`mark`](Self::mark).
    pub(crate) const fn n_moves(&self) -> u32 {
        self.n_moves
    }

    /// Ends the log: closes all.
    pub(crate) const fn close_all(&mut self) {
        self.closed = Some(END);
        self.newest = None;
    }

    /// The TTI before which all is closed.
    pub(crate) const fn closed(&self) -> Option<SegmentTti> {
        self.closed
    }
}

/// The state of TTIs that are not closed yet.
#[derive(Debug, Clone)]
pub(crate) struct ReorderBuffer<S> {
    pub(crate) watermark: Watermark,
    window: TtiWindow<S>,
}

impl<S: Slot> ReorderBuffer<S> {
    pub(crate) const fn new(lateness_ms: i64) -> Self {
        Self { watermark: Watermark::new(lateness_ms), window: TtiWindow::new() }
    }

    /// The slot of a record's TTI; `None`, and counted, if that is closed.
    #[inline]
    pub(crate) fn at(&mut self, at: SegmentTti) -> Option<&mut S> {
        self.watermark.admits_now(at).then(|| self.window.at(at))
    }

    /// The oldest TTI before a mark, to be [removed](Self::remove_first).
    #[inline]
    pub(crate) fn first_before(&mut self, mark: SegmentTti) -> Option<(SegmentTti, &mut S)> {
        self.window.first_before(mark)
    }

    /// Removes the oldest TTI.
    #[inline]
    pub(crate) fn remove_first(&mut self) {
        self.window.remove_first();
    }
}

/// The mark of the log's end: everything closes.
pub(crate) const END: SegmentTti = (u32::MAX, TtiIndex(i64::MAX));

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Filled(u32);

    impl Slot for Filled {
        fn clear(&mut self) {
            self.0 = 0;
        }
    }

    /// As `finish` of a tracker closes all.
    #[test]
    fn a_record_after_the_end_is_late() {
        let mut buffer = ReorderBuffer::<Filled>::new(0);
        let at = (0, TtiIndex(5));
        buffer.at(at).unwrap().0 += 1;
        buffer.watermark.close_all();
        while let Some((closed, _)) = buffer.first_before(END) {
            assert_eq!(closed, at);
            buffer.remove_first();
        }
        for late in [at, (0, TtiIndex(6)), (0, TtiIndex(i64::MAX))] {
            assert!(buffer.at(late).is_none());
        }
        assert_eq!(buffer.watermark.late_records, 3);
    }

    #[test]
    fn a_segment_closes_after_the_same_wait() {
        let mut mark = Watermark::new(10);
        let mut step = |segment, tti| (mark.admits((segment, TtiIndex(tti))), mark.mark());
        assert_eq!(step(0, 100), (true, None));
        assert_eq!(step(0, 112), (true, Some((0, TtiIndex(102)))));
        assert_eq!(step(0, 101), (false, None));
        // A handover: what was sent before it may follow.
        assert_eq!(step(1, 50), (true, None));
        assert_eq!(step(0, 113), (true, None));
        assert_eq!(step(0, 101), (false, None));
        assert_eq!(step(1, 60), (true, Some((1, TtiIndex(50)))));
        assert_eq!(step(0, 113), (false, None));
        assert_eq!(step(1, 49), (false, None));
        assert_eq!(mark.late_records, 4);
    }
}
