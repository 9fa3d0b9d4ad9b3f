//! Spans of TTIs with sums over any window of them in logarithmic time.

/// TTIs `[start, end)` on which something holds: disjoint spans in order, with
/// the TTIs covered before each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    spans: Vec<Covered>,
    /// TTIs covered by removed spans.
    forgotten: i64,
}

#[derive(Debug, Clone, Copy)]
struct Covered {
    start: i64,
    end: i64,
    before: i64,
}

impl Coverage {
    pub(crate) const fn new() -> Self {
        Self { spans: Vec::new(), forgotten: 0 }
    }

    /// Removes the spans that end at or before a TTI; windows that begin before it can no
    /// longer be queried.
    pub(crate) fn forget_before(&mut self, tti: i64) {
        let n = self.spans.partition_point(|s| s.end <= tti);
        if let Some(last) = worth_forgetting(n, self.spans.len()).then(|| self.spans[n - 1]) {
            self.forgotten = last.covered_to(i64::MAX);
            self.spans.drain(..n);
        }
    }

    /// Adds a span; parts that are already covered count once. Spans in order cost no
    /// more than a search.
    pub(crate) fn add(&mut self, start: i64, end: i64) {
        if end <= start {
            return;
        }
        let first = self.spans.partition_point(|s| s.end < start);
        let past = self.spans.partition_point(|s| s.start <= end);
        let touched = &self.spans[first..past];
        let start = touched.first().map_or(start, |s| s.start.min(start));
        let end = touched.last().map_or(end, |s| s.end.max(end));
        self.spans.splice(first..past, [Covered { start, end, before: 0 }]);
        let mut before =
            first.checked_sub(1).map_or(self.forgotten, |i| self.spans[i].covered_to(i64::MAX));
        for span in &mut self.spans[first..] {
            span.before = before;
            before = span.covered_to(i64::MAX);
        }
    }

    /// TTIs covered inside `[start, end)`.
    pub(crate) fn within(&self, start: i64, end: i64) -> i64 {
        self.before(end.max(start)).saturating_sub(self.before(start))
    }

    /// TTIs covered before one.
    fn before(&self, tti: i64) -> i64 {
        let begun = self.spans.partition_point(|s| s.start < tti);
        begun.checked_sub(1).map_or(self.forgotten, |last| self.spans[last].covered_to(tti))
    }
}

impl Covered {
    /// TTIs covered by this span and those before it, up to a TTI after its start.
    const fn covered_to(&self, tti: i64) -> i64 {
        let end = if tti < self.end { tti } else { self.end };
        self.before.saturating_add(end.saturating_sub(self.start))
    }
}

/// Bytes carried by runs of TTIs, disjoint and in order, with the bytes before
/// each.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByteRuns {
    runs: Vec<ByteRun>,
    /// Bytes of all runs.
    total: u128,
}

#[derive(Debug, Clone, Copy)]
struct ByteRun {
    start: i64,
    end: i64,
    bytes: u64,
    before: u128,
}

impl ByteRuns {
    pub(crate) const fn new() -> Self {
        Self { runs: Vec::new(), total: 0 }
    }

    /// Adds the next run.
    pub(crate) fn add(&mut self, start: i64, end: i64, bytes: u64) {
        self.runs.push(ByteRun { start, end, bytes, before: self.total });
        self.total += u128::from(bytes);
    }

    /// The latest TTI at or before one at which no run is cut in two.
    pub(crate) fn cut_at(&self, tti: i64) -> i64 {
        let past = self.runs.partition_point(|r| r.start < tti);
        let last = past.checked_sub(1).map(|i| self.runs[i]);
        last.filter(|run| run.end > tti).map_or(tti, |run| run.start)
    }

    /// Removes the runs that end at or before a TTI; windows that begin before it can no
    /// longer be queried.
    pub(crate) fn forget_before(&mut self, tti: i64) {
        let n = self.runs.partition_point(|r| r.end <= tti);
        if worth_forgetting(n, self.runs.len()) {
            self.runs.drain(..n);
        }
    }

    /// Bytes inside `[start, end)`: a run that crosses an edge counts by its
    /// TTIs inside, rounded down.
    pub(crate) fn within(&self, start: i64, end: i64) -> u64 {
        let first = self.runs.partition_point(|r| r.end <= start);
        let past = self.runs.partition_point(|r| r.start < end);
        let Some(inside) = self.runs.get(first..past) else { return 0 };
        let bytes = match inside {
            [] => 0,
            [only] => only.part(start, end),
            [head, .., tail] => {
                let between = tail.before - head.before - u128::from(head.bytes);
                head.part(start, end) + between + tail.part(start, end)
            }
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Whether removing this many of a list justifies moving the rest (chosen here: then each
/// is moved about once).
pub(crate) const fn worth_forgetting(n: usize, of: usize) -> bool {
    n >= 256 && 2 * n >= of
}

impl ByteRun {
    fn part(&self, start: i64, end: i64) -> u128 {
        let ttis = self.end.saturating_sub(self.start).max(1) as u128;
        let part = self.end.min(end).saturating_sub(self.start.max(start)).max(0) as u128;
        u128::from(self.bytes) * part / ttis
    }
}

/// Minimum number of TTIs, and share of the shorter transfer, that two transfers must
/// have in common to overlap: less is rounding at their edges (chosen here).
const OVERLAP_TTIS: i64 = 5;
const OVERLAP_PART: i64 = 100;

/// For each place, whether another one overlaps it: they have more than 5 TTIs and more
/// than 1 % of the shorter one in common.
///
/// Let `common` be the TTIs of both, and `least` for each the larger of 5 and a hundredth
/// of its length: two overlap if `common` exceeds either's `least`. Of the places that
/// start before one, only the latest end, and the latest end minus its own `least`, are
/// needed; of those that start after it, the earliest start, and start plus `least`. (An
/// earlier one whose `least` exceeds the length of this one contains it; a later one no
/// longer than the `least` of this one lies within it: both overlap anyway.)
pub(crate) fn overlapped(places: &[Option<(i64, i64)>]) -> Vec<bool> {
    let mut overlapped = vec![false; places.len()];
    // Start, end, least, index.
    let mut order: Vec<(i64, i64, i64, usize)> = places
        .iter()
        .enumerate()
        .filter_map(|(i, place)| {
            let (start, end) = (*place)?;
            let n_tti = end.saturating_sub(start);
            let least = OVERLAP_TTIS.max(n_tti / OVERLAP_PART);
            (n_tti > OVERLAP_TTIS).then_some((start, end, least, i))
        })
        .collect();
    order.sort_unstable();
    let (mut latest_end, mut latest_due) = (i64::MIN, i64::MIN);
    for &(start, end, least, i) in &order {
        overlapped[i] |= latest_end > start.saturating_add(least) || latest_due > start;
        latest_end = latest_end.max(end);
        latest_due = latest_due.max(end.saturating_sub(least));
    }
    let (mut earliest_start, mut earliest_due) = (i64::MAX, i64::MAX);
    for &(start, end, least, i) in order.iter().rev() {
        overlapped[i] |= earliest_start < end.saturating_sub(least) || earliest_due < end;
        earliest_start = earliest_start.min(start);
        earliest_due = earliest_due.min(start.saturating_add(least));
    }
    overlapped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By a linear scan of all spans, which are in order.
    fn naive_coverage(spans: &[(i64, i64)], start: i64, end: i64) -> i64 {
        let (mut covered_to, mut total) = (start, 0);
        for &(from, to) in spans {
            let (from, to) = (from.max(covered_to), to.min(end));
            if to > from {
                total += to - from;
                covered_to = to;
            }
        }
        total
    }

    fn naive_bytes(runs: &[(i64, i64, u64)], start: i64, end: i64) -> u64 {
        let part = |&(from, to, bytes): &(i64, i64, u64)| {
            let inside = (to.min(end) - from.max(start)).max(0) as u64;
            bytes * inside / (to - from).max(1) as u64
        };
        runs.iter().map(part).sum()
    }

    fn naive_overlapped(places: &[Option<(i64, i64)>]) -> Vec<bool> {
        let pair = |a: (i64, i64), b: (i64, i64)| {
            let common = a.1.min(b.1) - a.0.max(b.0);
            let shorter = (a.1 - a.0).min(b.1 - b.0);
            common > 5 && common > shorter / 100
        };
        let of = |(i, place): (usize, &Option<(i64, i64)>)| {
            let others = places.iter().enumerate().filter(|(j, _)| *j != i);
            others.into_iter().any(|(_, other)| other.zip(*place).is_some_and(|(a, b)| pair(a, b)))
        };
        places.iter().enumerate().map(of).collect()
    }

    /// Starts, and lengths from negative over edges of the rule to very long.
    fn places() -> impl Strategy<Value = Vec<Option<(i64, i64)>>> {
        let n_tti = prop_oneof![-3_i64..12, 90_i64..130, 500_i64..1_300, 0_i64..60_000];
        let place = (0_i64..4_000, n_tti).prop_map(|(start, n)| (start, start + n));
        prop::collection::vec(prop::option::weighted(0.9, place), 0..12)
    }

    proptest! {
        #[test]
        fn coverage_is_as_by_going_through_all(
            mut spans in prop::collection::vec((-50_i64..200, -2_i64..30), 0..30),
            windows in prop::collection::vec((-80_i64..260, -10_i64..200), 1..10),
            shuffled in any::<bool>(),
        ) {
            spans.iter_mut().for_each(|span| span.1 += span.0);
            let mut coverage = Coverage::new();
            if shuffled {
                spans.iter().for_each(|&(start, end)| coverage.add(start, end));
            }
            spans.sort_unstable();
            if !shuffled {
                spans.iter().for_each(|&(start, end)| coverage.add(start, end));
            }
            for (start, n_tti) in windows {
                let end = start + n_tti;
                prop_assert_eq!(coverage.within(start, end), naive_coverage(&spans, start, end));
            }
        }

        #[test]
        fn bytes_are_as_by_going_through_all(
            gaps in prop::collection::vec((0_i64..5, 1_i64..9, 0_u64..5_000), 0..30),
            windows in prop::collection::vec((-20_i64..250, -10_i64..200), 1..10),
        ) {
            let (mut at, mut runs, mut naive) = (0, ByteRuns::new(), Vec::new());
            for (gap, n_tti, bytes) in gaps {
                let (start, end) = (at + gap, at + gap + n_tti);
                runs.add(start, end, bytes);
                naive.push((start, end, bytes));
                at = end;
            }
            for (start, n_tti) in windows {
                let end = start + n_tti;
                prop_assert_eq!(runs.within(start, end), naive_bytes(&naive, start, end));
            }
        }

        #[test]
        fn overlaps_are_as_by_asking_each_pair(places in places()) {
            prop_assert_eq!(overlapped(&places), naive_overlapped(&places));
        }
    }

    #[test]
    fn rounding_at_the_edges_is_no_overlap() {
        let check = |places: &[(i64, i64)], expected: &[bool]| {
            let places: Vec<_> = places.iter().copied().map(Some).collect();
            assert_eq!(overlapped(&places), expected);
        };
        check(&[(0, 100), (95, 200)], &[false, false]);
        check(&[(0, 100), (94, 200)], &[true, true]);
        // 50 of 10,000 TTIs are under 1 % of both; of 60 they are not.
        check(&[(0, 10_000), (9_950, 20_000)], &[false, false]);
        check(&[(0, 10_000), (9_950, 20_000), (9_960, 10_020)], &[true, true, true]);
        // A short one in a long one; one too short to count.
        check(&[(0, 100_000), (500, 510), (700, 704)], &[true, true, false]);
    }
}
