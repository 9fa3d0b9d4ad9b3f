//! What has been read and waits for what else speaks of its TTI.
//!
//! This is the store that every record passes: a window of
//! [`HORIZON_TTIS`](super::HORIZON_TTIS) that moves on. Slots are used again
//! with the room that they have, and a message mostly finds its own by a look
//! at the last ones.

use std::cmp::Ordering;
use std::collections::VecDeque;

use airmile_model::tti::TtiIndex;
use airmile_model::{Record, RntiType};

use super::downlink::DlParts;
use super::uplink::UlParts;

/// Timing segment and TTI.
pub(super) type At = (u32, TtiIndex);

/// What one cell sends to, or gets from, one kind of RNTI in a TTI.
pub(super) type Place = (u8, RntiType);

/// What waits of one TTI.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Downlink assignments, by place.
    pub(super) dl: Vec<(Place, DlParts)>,
    /// Uplink grants, by place.
    pub(super) ul: Vec<(Place, UlParts)>,
    /// Records that nothing joins, as they came.
    pub(super) other: Vec<Record>,
    /// Whether a downlink assignment of the user was decoded.
    pub(super) is_assigned: bool,
}

impl Slot {
    pub(super) fn dl_parts(&mut self, place: Place) -> &mut DlParts {
        entry(&mut self.dl, place)
    }

    pub(super) fn ul_parts(&mut self, place: Place) -> &mut UlParts {
        entry(&mut self.ul, place)
    }
}

/// The entry of a place in a list that is sorted by it: one or two long.
fn entry<T: Default>(list: &mut Vec<(Place, T)>, place: Place) -> &mut T {
    let at = match list.binary_search_by_key(&place, |(p, _)| *p) {
        Ok(at) => at,
        Err(at) => {
            list.insert(at, (place, T::default()));
            at
        }
    };
    &mut list[at].1
}

/// The slots of all TTIs that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In order of time, with the place in `slots`.
    order: VecDeque<(At, u32)>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Where in `order` the last one was found.
    last: usize,
}

impl Waiting {
    /// The slot of a TTI.
    pub(super) fn at(&mut self, at: At) -> &mut Slot {
        let here = match self.find(at) {
            Ok(here) => here,
            Err(here) => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.slots.push(Slot::default());
                    (self.slots.len() - 1) as u32
                });
                self.order.insert(here, (at, slot));
                here
            }
        };
        self.last = here;
        &mut self.slots[self.order[here].1 as usize]
    }

    /// Where a TTI is, or belongs. Messages go through a batch TTI by TTI, and
    /// no two slots are of the same one: so it is no further from the last one
    /// found than its number is.
    fn find(&self, at: At) -> Result<usize, usize> {
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

    /// Looks at `from` up to `to`; most often it is at one end of it.
    fn search(&self, at: At, from: usize, to: usize) -> Result<usize, usize> {
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

    /// Takes the oldest slot, if it is before `until`; give it back to
    /// [`recycle`](Self::recycle).
    pub(super) fn pop_before(&mut self, until: At) -> Option<(At, Slot)> {
        let (at, slot) = *self.order.front().filter(|(at, _)| *at < until)?;
        self.order.pop_front();
        self.last = self.last.saturating_sub(1);
        self.free.push(slot);
        Some((at, std::mem::take(&mut self.slots[slot as usize])))
    }

    /// Takes back a slot, for its room.
    pub(super) fn recycle(&mut self, mut slot: Slot) {
        slot.dl.clear();
        slot.ul.clear();
        slot.other.clear();
        slot.is_assigned = false;
        if let Some(free) = self.free.last() {
            self.slots[*free as usize] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn order_of(ttis: &[(u32, i64)]) -> Vec<(u32, i64)> {
        let mut waiting = Waiting::default();
        for &(segment, tti) in ttis {
            waiting.at((segment, TtiIndex(tti))).is_assigned = true;
        }
        let mut out = Vec::new();
        while let Some((at, slot)) = waiting.pop_before((u32::MAX, TtiIndex(0))) {
            assert!(slot.is_assigned);
            waiting.recycle(slot);
            out.push((at.0, at.1.0));
        }
        out
    }

    #[test]
    fn gives_each_tti_once_in_order() {
        let check = |ttis: &[_], expected: &[_]| assert_eq!(order_of(ttis), expected);
        check(&[(0, 5), (0, 6), (0, 5), (0, 7)], &[(0, 5), (0, 6), (0, 7)]);
        // A late one goes between, one of an older segment to the front.
        check(&[(0, 5), (0, 9), (0, 7), (0, 8)], &[(0, 5), (0, 7), (0, 8), (0, 9)]);
        check(&[(1, 5), (0, 9), (1, 4)], &[(0, 9), (1, 4), (1, 5)]);
    }

    proptest! {
        #[test]
        fn finds_what_a_map_would(
            steps in prop::collection::vec((0_u32..2, -30_i64..60, 0_u8..8), 1..200)
        ) {
            let mut waiting = Waiting::default();
            let mut expected = BTreeMap::new();
            for (segment, tti, step) in steps {
                let at = (segment, TtiIndex(tti));
                if step == 0 {
                    let popped = waiting.pop_before(at).map(|(at, slot)| {
                        waiting.recycle(slot);
                        at
                    });
                    let first = expected.keys().next().copied().filter(|first| *first < at);
                    prop_assert_eq!(popped, first);
                    first.map(|first| expected.remove(&first));
                } else {
                    let count = expected.entry(at).or_insert(0);
                    let slot = waiting.at(at);
                    prop_assert_eq!(slot.dl.len(), *count);
                    slot.dl_parts((*count as u8, RntiType::C));
                    *count += 1;
                }
            }
        }
    }

    #[test]
    fn what_was_taken_is_not_there_again() {
        let mut waiting = Waiting::default();
        waiting.at((0, TtiIndex(1))).is_assigned = true;
        let (_, slot) = waiting.pop_before((0, TtiIndex(2))).unwrap();
        waiting.recycle(slot);
        assert!(waiting.pop_before((0, TtiIndex(9))).is_none());
        assert!(!waiting.at((0, TtiIndex(1))).is_assigned);
    }

    #[test]
    fn places_are_in_order_of_cell() {
        let mut slot = Slot::default();
        for cell in [2, 0, 1, 0] {
            slot.dl_parts((cell, RntiType::C));
        }
        assert_eq!(slot.dl.iter().map(|((cell, _), _)| *cell).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
