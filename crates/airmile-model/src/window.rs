//! A sliding window of TTIs, for records that wait for other records of the same TTI.

use std::collections::BTreeMap;

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
/// Records arrive nearly in order, and leave in order. So the newest TTIs have a ring of
/// slots, in which a TTI is found by its number, and which lies in memory in the order in
/// which it is filled and emptied. TTIs of earlier timing segments, and those too far before
/// the newest for the ring, are in a map.
#[derive(Debug, Clone)]
pub struct TtiWindow<S> {
    /// A power of two of slots, each of the TTIs with its number modulo that.
    ring: Vec<S>,
    /// A bit for each slot of the ring: whether it is in use.
    used: Vec<u64>,
    /// Timing segment of the TTIs in the ring.
    segment: u32,
    /// The first TTI in the ring, [`NEVER`] if there is none.
    first: i64,
    /// The last one.
    last: i64,
    /// All of these are before those in the ring.
    earlier: BTreeMap<SegmentTti, S>,
}

/// First and last TTI of an empty ring: any TTI is before one and after the other.
const NEVER: (i64, i64) = (i64::MAX, i64::MIN);
/// Maximum number of slots in a ring (chosen here: more TTIs than wait in LTE, and in NR up to
/// 60 kHz; a hostile log can fill one for each subscription).
const MAX_RING: u64 = 4_096;
/// Slots in a word of `used`, and in the smallest ring.
const WORD: usize = 64;

impl<S: Slot> Default for TtiWindow<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Slot> TtiWindow<S> {
    /// Without slots.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ring: Vec::new(),
            used: Vec::new(),
            segment: 0,
            first: NEVER.0,
            last: NEVER.1,
            earlier: BTreeMap::new(),
        }
    }

    /// The slot of a TTI.
    #[inline]
    pub fn at(&mut self, at: SegmentTti) -> &mut S {
        let (segment, TtiIndex(tti)) = at;
        let (first, last) = (self.first.min(tti), self.last.max(tti));
        if segment != self.segment || first.abs_diff(last) >= self.ring.len() as u64 {
            return self.beside_ring(at);
        }
        (self.first, self.last) = (first, last);
        let index = self.index(tti);
        self.used[index / WORD] |= 1 << (index % WORD);
        &mut self.ring[index]
    }

    const fn is_ring_empty(&self) -> bool {
        self.first > self.last
    }

    const fn index(&self, tti: i64) -> usize {
        tti as usize & self.ring.len().wrapping_sub(1)
    }

    /// The slot of a TTI for which the ring is too small, or of another segment.
    #[cold]
    fn beside_ring(&mut self, at: SegmentTti) -> &mut S {
        let (segment, TtiIndex(tti)) = at;
        if segment > self.segment || self.first().is_none() {
            while !self.is_ring_empty() {
                self.put_aside();
            }
            self.segment = segment;
        }
        let is_early = self.last > tti && self.last.abs_diff(tti) >= MAX_RING;
        if segment < self.segment || is_early {
            return self.earlier.entry(at).or_default();
        }
        while self.first < tti && self.first.abs_diff(tti) >= MAX_RING {
            self.put_aside();
        }
        let slots = self.first.min(tti).abs_diff(self.last.max(tti)) as usize + 1;
        self.grow(slots.next_power_of_two().max(WORD));
        self.at(at)
    }

    /// Moves the first slot of the ring to the earlier ones.
    fn put_aside(&mut self) {
        let at = (self.segment, TtiIndex(self.first));
        let index = self.free_first();
        self.earlier.insert(at, std::mem::take(&mut self.ring[index]));
    }

    fn grow(&mut self, slots: usize) {
        if slots <= self.ring.len() {
            return;
        }
        let mut larger = Self::new();
        larger.ring.resize_with(slots, S::default);
        larger.used.resize(slots / WORD, 0);
        larger.segment = self.segment;
        while !self.is_ring_empty() {
            let at = (self.segment, TtiIndex(self.first));
            let index = self.free_first();
            *larger.at(at) = std::mem::take(&mut self.ring[index]);
        }
        larger.earlier = std::mem::take(&mut self.earlier);
        *self = larger;
    }

    /// Marks the first slot of the ring as free and returns its index; the next one is now the
    /// first.
    #[inline]
    fn free_first(&mut self) -> usize {
        let index = self.index(self.first);
        self.used[index / WORD] &= !(1 << (index % WORD));
        if self.first == self.last {
            (self.first, self.last) = NEVER;
            return index;
        }
        // The last one is after it, so there is one; mostly the next.
        let next = self.index(self.first + 1);
        if self.used[next / WORD] & 1 << (next % WORD) != 0 {
            self.first += 1;
        } else {
            self.first = self.next_used(index);
        }
        index
    }

    /// The next used TTI after the first one, at this index.
    fn next_used(&self, index: usize) -> i64 {
        let (mut word, bit) = (index / WORD, index % WORD);
        let mut ahead = self.used[word] >> bit;
        let mut from = self.first;
        if ahead == 0 {
            from += (WORD - bit) as i64;
            word = self.index(from) / WORD;
            while self.used[word] == 0 {
                from += WORD as i64;
                word = self.index(from) / WORD;
            }
            ahead = self.used[word];
        }
        from + i64::from(ahead.trailing_zeros())
    }

    /// The oldest TTI that has a slot.
    #[must_use]
    pub fn first(&self) -> Option<SegmentTti> {
        let in_ring = || (!self.is_ring_empty()).then_some((self.segment, TtiIndex(self.first)));
        self.earlier.first_key_value().map(|(at, _)| *at).or_else(in_ring)
    }

    /// The oldest slot, if it is before `until`.
    #[inline]
    pub fn first_before(&mut self, until: SegmentTti) -> Option<(SegmentTti, &mut S)> {
        if !self.earlier.is_empty() {
            return self.earlier_before(until);
        }
        let at = (self.segment, TtiIndex(self.first));
        if self.is_ring_empty() || at >= until {
            return None;
        }
        let index = self.index(self.first);
        Some((at, &mut self.ring[index]))
    }

    #[cold]
    fn earlier_before(&mut self, until: SegmentTti) -> Option<(SegmentTti, &mut S)> {
        let earlier = self.earlier.first_entry()?;
        let at = *earlier.key();
        (at < until).then(|| (at, earlier.into_mut()))
    }

    /// Removes the oldest slot.
    #[inline]
    pub fn remove_first(&mut self) {
        if !self.earlier.is_empty() {
            self.earlier.pop_first();
        } else if !self.is_ring_empty() {
            let index = self.free_first();
            self.ring[index].clear();
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

    /// Near each other, or further apart than a ring holds.
    fn tti() -> impl Strategy<Value = i64> {
        prop_oneof![
            6 => -30_i64..60,
            2 => 0..3 * MAX_RING as i64,
            1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, -(MAX_RING as i64), i64::MAX]),
        ]
    }

    proptest! {
        #[test]
        fn finds_what_a_map_would(
            steps in prop::collection::vec((0_u32..2, tti(), 0_u8..8), 1..200)
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

        /// As in a log: TTIs advance, some records are late, and the oldest leave. Each TTI leaves
        /// once, in order, with all of its records.
        #[test]
        fn records_of_a_log_leave_in_order(
            start in prop::sample::select(vec![i64::MIN, -500, 0, i64::MAX - 9_000]),
            steps in prop::collection::vec((0_i64..30, 0_i64..40), 1..300),
            waiting in prop::sample::select(vec![0_usize, 3, 40]),
        ) {
            let mut window = TtiWindow::<Count>::new();
            let mut expected = BTreeMap::new();
            let mut newest = start;
            for (ahead, late) in steps {
                newest += ahead;
                for tti in [newest, newest.saturating_sub(late).max(start)] {
                    let at = (0, TtiIndex(tti));
                    window.at(at).0 += 1;
                    *expected.entry(at).or_insert(0_u32) += 1;
                }
                while expected.len() > waiting {
                    let first = window.first_before((1, TtiIndex(0))).map(|(at, slot)| (at, slot.0));
                    prop_assert_eq!(first, expected.pop_first());
                    window.remove_first();
                }
            }
            while let Some(oldest) = expected.pop_first() {
                let first = window.first_before((1, TtiIndex(0))).map(|(at, slot)| (at, slot.0));
                prop_assert_eq!(first, Some(oldest));
                window.remove_first();
            }
            prop_assert_eq!(window.first(), None);
        }
    }
}
