//! Holds records back until late ones have arrived.
//!
//! Logs are nearly in order. An estimator that needs all records of a TTI at once waits
//! until the newest record is [`lateness_ms`](ReorderBuffer::new) ahead. After a new
//! timing segment (a handover) the old one closes only after the same wait, as batches
//! from before it may follow.

use airmile_model::window::{SegmentTti, Slot, TtiWindow};
use airmile_model::{TtiIndex, TtiSpan};

/// The state of TTIs that are not closed yet.
#[derive(Debug, Clone)]
pub(crate) struct ReorderBuffer<S> {
    lateness_ms: i64,
    /// The same in TTIs of the records' numerology.
    lateness_ttis: i64,
    window: TtiWindow<S>,
    newest: Option<SegmentTti>,
    /// Whether the newest TTI or the lateness changed since the last [`mark`](Self::mark).
    moved: bool,
    segment_first: TtiIndex,
    closed: Option<SegmentTti>,
    /// Records that arrived after their TTI was closed.
    pub(crate) late_records: u64,
}

impl<S: Slot> ReorderBuffer<S> {
    pub(crate) const fn new(lateness_ms: i64) -> Self {
        Self {
            lateness_ms,
            lateness_ttis: lateness_ms,
            window: TtiWindow::new(),
            newest: None,
            moved: false,
            segment_first: TtiIndex(0),
            closed: None,
            late_records: 0,
        }
    }

    /// Takes the numerology of a record: how many TTIs the lateness is.
    pub(crate) const fn set_numerology(&mut self, numerology: u8) {
        let lateness_ttis = TtiSpan::from_ms(self.lateness_ms, numerology).0;
        self.moved |= lateness_ttis != self.lateness_ttis;
        self.lateness_ttis = lateness_ttis;
    }

    /// The slot of a record's TTI; `None`, and counted, if that is closed.
    #[inline]
    pub(crate) fn at(&mut self, at: SegmentTti) -> Option<&mut S> {
        if self.closed.is_some_and(|closed| at < closed) {
            self.late_records += 1;
            return None;
        }
        if self.newest.is_none_or(|newest| at > newest) {
            if self.newest.is_none_or(|newest| newest.0 < at.0) {
                self.segment_first = at.1;
            }
            self.newest = Some(at);
            self.moved = true;
        }
        Some(self.window.at(at))
    }

    /// The TTI before which records are no longer waited for; `None`: the same as before.
    #[inline]
    pub(crate) fn mark(&mut self) -> Option<SegmentTti> {
        if !std::mem::take(&mut self.moved) {
            return None;
        }
        let (segment, tti) = self.newest?;
        let waited = tti.since(self.segment_first) >= self.lateness_ttis;
        let mark = (segment, tti.plus(-self.lateness_ttis));
        (waited && self.closed.is_none_or(|closed| mark > closed)).then_some(mark)
    }

    /// The TTI before which all is closed.
    pub(crate) const fn closed(&self) -> Option<SegmentTti> {
        self.closed
    }

    /// The oldest TTI before `mark`, to be [removed](Self::remove_first); `None`: there
    /// are none, and those before `mark` are now closed.
    #[inline]
    pub(crate) fn first_before(&mut self, mark: SegmentTti) -> Option<(SegmentTti, &mut S)> {
        let first = self.window.first_before(mark);
        if first.is_none() {
            match &mut self.closed {
                Some(closed) if *closed >= mark => {}
                closed => *closed = Some(mark),
            }
        }
        first
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
        while let Some((closed, _)) = buffer.first_before(END) {
            assert_eq!(closed, at);
            buffer.remove_first();
        }
        assert!(buffer.at(at).is_none());
        assert!(buffer.at((0, TtiIndex(6))).is_none());
        assert_eq!(buffer.late_records, 2);
    }
}
