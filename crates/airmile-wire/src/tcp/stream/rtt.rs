//! Round-trip times of a direction, summed up.

/// RTTs of a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RttTotals {
    pub(crate) n: u64,
    pub(crate) min: i64,
    pub(crate) sum: i64,
    pub(crate) max: i64,
    last: i64,
}

impl RttTotals {
    /// Adds an RTT.
    pub(crate) fn push(&mut self, rtt: i64) {
        self.min = if self.n == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        // Times of a damaged capture can be centuries apart.
        self.sum = self.sum.saturating_add(rtt);
        self.last = rtt;
        self.n += 1;
    }

    /// The latest.
    pub(crate) fn last(&self) -> Option<i64> {
        (self.n > 0).then_some(self.last)
    }

    /// Their mean.
    pub(crate) fn mean(&self) -> Option<i64> {
        self.sum.checked_div(i64::try_from(self.n).unwrap_or(i64::MAX))
    }

    /// The least of them.
    pub(crate) fn least(&self) -> Option<i64> {
        (self.n > 0).then_some(self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_round_trips_of_centuries() {
        let mut totals = RttTotals::default();
        (0..3).for_each(|_| totals.push(i64::MAX / 2 + 1));
        assert_eq!((totals.n, totals.sum, totals.last()), (3, i64::MAX, Some(i64::MAX / 2 + 1)));
        assert!(totals.mean().is_some_and(|ns| ns > 0));
    }
}
