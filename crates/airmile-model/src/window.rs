//! A sliding window of TTIs, for records that wait for other records of the same TTI.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::tti::TtiIndex;

/// Timing segment and TTI: the order of time in a log.
pub type SegmentTti = (u32, TtiIndex);

/// The state of a TTI: when cleared, its capacity is reused.
pub trait Slot: Default {
    /// Empties it, but keeps its capacity; only the part that most TTIs need, since a
    /// slot lives as long as the window.
    fn clear(&mut self);
}

/// The slots of waiting TTIs, in order of time.
///
/// Records arrive nearly in order, and leave in order; a slot is searched from the
/// position of the last one found. Insertion between others moves the shorter side:
/// records in random order take time quadratic in their number.
#[derive(Debug, Clone, Default)]
pub struct TtiWindow<S> {
    /// In order of time, with the index in `slots`.
    order: VecDeque<(SegmentTti, u32)>,
    slots: Vec<S>,
    free: Vec<u32>,
    /// Index in `order` of the last one found.
    last: usize,
}

impl<S: Slot> TtiWindow<S> {
    /// Without slots.
    #[must_use]
    pub const fn new() -> Self {
        Self { order: VecDeque::new(), slots: Vec::new(), free: Vec::new(), last: 0 }
    }

    /// The slot of a TTI.
    pub fn at(&mut self, at: SegmentTti) -> &mut S {
        // Most records are of the TTI of the one before.
        let slot = match self.order.get(self.last) {
            Some(&(last, slot)) if last == at => slot,
            _ => self.find_or_insert(at),
        };
        &mut self.slots[slot as usize]
    }

    fn find_or_insert(&mut self, at: SegmentTti) -> u32 {
        // Most others open the next one.
        let is_newest = self.order.back().is_none_or(|(newest, _)| *newest < at);
        let here = if is_newest { Err(self.order.len()) } else { self.find(at) };
        let here = match here {
            Ok(here) => {
                self.last = here;
                return self.order[here].1;
            }
            Err(here) => here,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(S::default());
            (self.slots.len() - 1) as u32
        });
        if is_newest {
            self.order.push_back((at, slot));
        } else {
            self.order.insert(here, (at, slot));
        }
        self.last = here;
        slot
    }

    /// The position of a TTI, or where to insert it. Messages proceed through a batch TTI
    /// by TTI, and no two slots have the same one: so it is no further from the last one
    /// found than the difference of their numbers.
    fn find(&self, at: SegmentTti) -> Result<usize, usize> {
        let Some((last, _)) = self.order.get(self.last) else {
            return self.search(at, 0, self.order.len());
        };
        if last.0 != at.0 {
            return self.search(at, 0, self.order.len());
        }
        let by = usize::try_from(at.1.since(last.1).unsigned_abs()).unwrap_or(usize::MAX);
        if at < *last {
            self.search(at, self.last.saturating_sub(by), self.last)
        } else {
            self.search(at, self.last, self.last.saturating_add(by).saturating_add(1))
        }
    }

    /// Searches `from` up to `to`; most often it is at one end.
    fn search(&self, at: SegmentTti, from: usize, to: usize) -> Result<usize, usize> {
        let (mut from, mut to) = (from, to.min(self.order.len()));
        for near in [from, to.wrapping_sub(1)] {
            if self.order.get(near).is_some_and(|(there, _)| *there == at) {
                return Ok(near);
            }
        }
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.order[middle].0.cmp(&at) {
                Ordering::Less => from = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// The oldest TTI that has a slot.
    #[must_use]
    pub fn first(&self) -> Option<SegmentTti> {
        self.order.front().map(|(at, _)| *at)
    }

    /// The oldest slot, if it is before `until`.
    pub fn first_before(&mut self, until: SegmentTti) -> Option<(SegmentTti, &mut S)> {
        let (at, slot) = *self.order.front().filter(|(at, _)| *at < until)?;
        Some((at, &mut self.slots[slot as usize]))
    }

    /// Removes the oldest slot.
    pub fn remove_first(&mut self) {
        if let Some((_, slot)) = self.order.pop_front() {
            self.slots[slot as usize].clear();
            self.free.push(slot);
            self.last = self.last.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default)]
    struct Count(u32);

    impl Slot for Count {
        fn clear(&mut self) {
            self.0 = 0;
        }
    }

    fn order_of(ttis: &[(u32, i64)]) -> Vec<(u32, i64)> {
        let mut window = TtiWindow::<Count>::new();
        for &(segment, tti) in ttis {
            window.at((segment, TtiIndex(tti))).0 += 1;
        }
        let mut out = Vec::new();
        while let Some((at, slot)) = window.first_before((u32::MAX, TtiIndex(0))) {
            assert!(slot.0 > 0);
            window.remove_first();
            out.push((at.0, at.1.0));
        }
        out
    }

    #[test]
    fn gives_each_tti_once_in_order() {
        let check = |ttis: &[_], expected: &[_]| assert_eq!(order_of(ttis), expected);
        check(&[(0, 5), (0, 6), (0, 5), (0, 7)], &[(0, 5), (0, 6), (0, 7)]);
        // A late one is inserted between, one of an older segment at the front.
        check(&[(0, 5), (0, 9), (0, 7), (0, 8)], &[(0, 5), (0, 7), (0, 8), (0, 9)]);
        check(&[(1, 5), (0, 9), (1, 4)], &[(0, 9), (1, 4), (1, 5)]);
    }

    #[test]
    fn what_was_taken_is_not_there_again() {
        let mut window = TtiWindow::<Count>::new();
        window.at((0, TtiIndex(1))).0 = 7;
        assert!(window.first_before((0, TtiIndex(2))).is_some());
        window.remove_first();
        assert!(window.first_before((0, TtiIndex(9))).is_none());
        assert_eq!(window.at((0, TtiIndex(1))).0, 0);
    }

    proptest! {
        #[test]
        fn finds_what_a_map_would(
            steps in prop::collection::vec((0_u32..2, -30_i64..60, 0_u8..8), 1..200)
        ) {
            let mut window = TtiWindow::<Count>::new();
            let mut expected = BTreeMap::new();
            for (segment, tti, step) in steps {
                let at = (segment, TtiIndex(tti));
                if step == 0 {
                    let popped = window.first_before(at).map(|(at, slot)| (at, slot.0));
                    if popped.is_some() {
                        window.remove_first();
                    }
                    let first = expected.first_key_value().filter(|(first, _)| **first < at);
                    let first = first.map(|(at, count)| (*at, *count));
                    prop_assert_eq!(popped, first);
                    if let Some((at, _)) = first {
                        expected.remove(&at);
                    }
                } else {
                    *expected.entry(at).or_insert(0_u32) += 1;
                    window.at(at).0 += 1;
                }
                prop_assert_eq!(window.first(), expected.keys().next().copied());
            }
        }
    }
}
