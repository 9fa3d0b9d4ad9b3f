//! Points over time in bounded memory: individual while they are few, merged into ever
//! longer bins when they are many.

/// Maximum points of a line (chosen here: more than a screen's columns, to allow some
/// zooming).
pub(super) const MOST_POINTS: usize = 5_000;
/// Number of bins in the first merge; most of them stay empty for bursty lines (chosen
/// here).
const FIRST_BINS: i64 = 16_000;

/// A point that can absorb later ones.
pub(super) trait SeriesPoint {
    fn at_ns(&self) -> i64;
    /// Absorbs a later point of the same bin.
    fn absorb(&mut self, later: Self);
}

/// A line of points in the order of their times.
#[derive(Debug)]
pub(super) struct PointSeries<P> {
    points: Vec<P>,
    start_ns: i64,
    span_ns: i64,
    bin_ns: i64,
}

impl<P: SeriesPoint> PointSeries<P> {
    /// An empty line for points of `span_ns` from `start_ns` on.
    pub(super) fn new(start_ns: i64, span_ns: i64) -> Self {
        Self { points: Vec::new(), start_ns, span_ns: span_ns.max(1), bin_ns: 0 }
    }

    pub(super) fn push(&mut self, point: P) {
        self.merge(point);
        while self.points.len() > MOST_POINTS {
            self.bin_ns = (self.bin_ns * 2).max(self.span_ns / FIRST_BINS).max(1);
            for point in std::mem::take(&mut self.points) {
                self.merge(point);
            }
        }
    }

    fn merge(&mut self, point: P) {
        let bin = |p: &P| (p.at_ns() - self.start_ns).div_euclid(self.bin_ns.max(1));
        match self.points.last_mut() {
            Some(last) if self.bin_ns > 0 && bin(last) == bin(&point) => last.absorb(point),
            _ => self.points.push(point),
        }
    }

    pub(super) fn points(&self) -> &[P] {
        &self.points
    }

    /// Length of a bin in milliseconds; 0: no points were merged.
    pub(super) fn bin_ms(&self) -> f64 {
        self.bin_ns as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(i64, u64);

    impl SeriesPoint for Count {
        fn at_ns(&self) -> i64 {
            self.0
        }

        fn absorb(&mut self, later: Self) {
            self.1 += later.1;
        }
    }

    #[test]
    fn few_points_stay_and_many_are_merged_and_counted() {
        for (n, merged) in [(5_000, false), (5_001, true), (100_000, true)] {
            let mut line = PointSeries::new(0, n);
            (0..n).for_each(|at| line.push(Count(at, 1)));
            assert_eq!(line.bin_ms() > 0.0, merged, "{n}");
            assert!(line.points().len() <= MOST_POINTS);
            assert!(!merged || line.points().len() > 1_000, "{}", line.points().len());
            assert_eq!(line.points().iter().map(|p| p.1).sum::<u64>(), n.unsigned_abs());
        }
    }

    /// Times outside of the announced span stay bounded, too.
    #[test]
    fn a_span_that_was_too_short() {
        let mut line = PointSeries::new(0, 1);
        (0..40_000).for_each(|at| line.push(Count(at * 1_000, 1)));
        assert!(line.points().len() <= MOST_POINTS);
    }
}
