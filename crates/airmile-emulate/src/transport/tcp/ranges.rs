//! A set of stream positions, as ranges.

use std::ops::Range;

/// Disjoint ranges in order; adjacent ranges are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Adds a range; returns its parts that were not in the set.
    pub fn insert(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut fresh = Vec::new();
        if range.is_empty() {
            return fresh;
        }
        // The ranges that overlap or touch: from..to.
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        let mut at = range.start;
        let mut merged = range.clone();
        for r in &self.ranges[from..to] {
            if at < r.start {
                fresh.push(at..r.start.min(range.end));
            }
            at = at.max(r.end);
            merged = merged.start.min(r.start)..merged.end.max(r.end);
        }
        if at < range.end {
            fresh.push(at..range.end);
        }
        self.ranges.splice(from..to, [merged]);
        fresh
    }

    /// The range that contains a position.
    pub(crate) fn containing(&self, position: u64) -> Option<Range<u64>> {
        let index = self.ranges.partition_point(|r| r.end <= position);
        self.ranges.get(index).filter(|r| r.start <= position).cloned()
    }

    /// Removes everything below a position.
    pub(crate) fn remove_below(&mut self, position: u64) {
        let whole = self.ranges.partition_point(|r| r.end <= position);
        self.ranges.drain(..whole);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_a_set(steps in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 0..40)) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, length, remove) in steps {
                if remove && length == 0 {
                    set.remove_below(start);
                    model = model.split_off(&start);
                } else {
                    let range = start..start + length;
                    let expected: Vec<u64> = range.clone().filter(|p| !model.contains(p)).collect();
                    let fresh: Vec<u64> = set.insert(range.clone()).into_iter().flatten().collect();
                    prop_assert_eq!(fresh, expected);
                    model.extend(range);
                }
                let got: Vec<u64> = set.ranges().iter().cloned().flatten().collect();
                prop_assert_eq!(&got, &model.iter().copied().collect::<Vec<_>>());
                prop_assert!(set.ranges().windows(2).all(|w| w[0].end < w[1].start));
                for position in 0..75 {
                    prop_assert_eq!(set.containing(position).is_some(), model.contains(&position));
                }
            }
        }
    }
}
