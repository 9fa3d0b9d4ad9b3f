//! Sets of bytes of a stream, as few ranges.

/// Maximum number of ranges kept; a larger scoreboard is implausible (chosen here).
const MAX_RANGES: usize = 256;

/// Disjoint ranges in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    /// The highest end.
    pub(super) fn end(&self) -> Option<i64> {
        self.0.last().map(|range| range.1)
    }

    /// Bytes in all.
    pub(super) fn bytes(&self) -> i64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether all of `start..end` is in it.
    pub(super) fn covers(&self, start: i64, end: i64) -> bool {
        let after = self.0.partition_point(|range| range.0 <= start);
        after > 0 && self.0.get(after - 1).is_some_and(|range| end <= range.1)
    }

    /// Adds `start..end`; returns the highest new part, if any.
    pub(super) fn insert(&mut self, start: i64, end: i64) -> Option<(i64, i64)> {
        if start >= end || self.covers(start, end) {
            return None;
        }
        let first = self.0.partition_point(|range| range.1 < start);
        let last = self.0.partition_point(|range| range.0 <= end);
        let touched = self.0.get(first..last).unwrap_or_default();
        let fresh = fresh_part(touched, start, end);
        let low = touched.first().map_or(start, |range| range.0.min(start));
        let high = touched.last().map_or(end, |range| range.1.max(end));
        self.0.splice(first..last, [(low, high)]);
        if self.0.len() > MAX_RANGES {
            self.0.remove(0);
        }
        fresh
    }

    /// Removes what is below `edge`.
    pub(super) fn forget_below(&mut self, edge: i64) {
        if self.0.first().is_none_or(|first| first.0 >= edge) {
            return;
        }
        self.0.retain_mut(|range| {
            range.0 = range.0.max(edge);
            range.0 < range.1
        });
    }
}

/// The highest part of `start..end` that is in none of `touched`.
fn fresh_part(touched: &[(i64, i64)], start: i64, end: i64) -> Option<(i64, i64)> {
    let mut high = end;
    for &(low, up) in touched.iter().rev() {
        if up < high {
            return Some((up.max(start), high)).filter(|(a, b)| a < b);
        }
        high = high.min(low);
    }
    (start < high).then_some((start, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_new_part_of_a_range() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(10, 20), Some((10, 20)));
        assert_eq!(ranges.insert(10, 25), Some((20, 25)));
        assert_eq!(ranges.insert(5, 25), Some((5, 10)));
        assert_eq!(ranges.insert(6, 24), None);
        assert_eq!(ranges.insert(40, 50), Some((40, 50)));
        assert_eq!(ranges.insert(20, 60), Some((50, 60)));
        assert_eq!(ranges.0, [(5, 60)]);
        ranges.forget_below(30);
        assert_eq!(ranges.0, [(30, 60)]);
    }

    proptest! {
        #[test]
        fn as_a_set_of_bytes(ops in prop::collection::vec((any::<bool>(), 0_i64..60, 1_i64..20), 1..40)) {
            let mut ranges = Ranges::default();
            let mut set = std::collections::BTreeSet::new();
            for (add, start, length) in ops {
                let bytes = start..start + length;
                if add {
                    let fresh = ranges.insert(bytes.start, bytes.end);
                    let highest = bytes.clone().rev().find(|b| !set.contains(b));
                    prop_assert_eq!(fresh.map(|f| f.1 - 1), highest);
                    set.extend(bytes.clone());
                } else {
                    ranges.forget_below(start);
                    set.retain(|b| *b >= start);
                }
                prop_assert_eq!(ranges.bytes() as usize, set.len());
                prop_assert!(bytes.clone().all(|b| ranges.covers(b, b + 1) == set.contains(&b)));
                prop_assert!(ranges.0.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }
}
