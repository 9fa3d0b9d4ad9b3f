//! Measures how late TTIs start, and how long their work takes.

use std::time::Duration;

use airmile_lab::Lateness;
use airmile_model::TtiIndex;
use hdrhistogram::Histogram;

/// Maximum value in us; anything later than a minute counts as a minute.
const MOST_US: u64 = 60_000_000;

/// Measures the TTI loop.
#[derive(Debug)]
pub(crate) struct Punctuality {
    late_us: Histogram<u64>,
    work_us: Histogram<u64>,
    slot_us: u64,
    late_ttis: Vec<(TtiIndex, u64)>,
}

impl Punctuality {
    /// For a TTI length.
    pub(crate) fn new(slot: Duration) -> Option<Self> {
        let histogram = || Histogram::new_with_bounds(1, MOST_US, 3).ok();
        let slot_us = in_us(slot);
        Some(Self { late_us: histogram()?, work_us: histogram()?, slot_us, late_ttis: Vec::new() })
    }

    /// Adds a TTI with its lateness and the duration of its work.
    pub(crate) fn push(&mut self, tti: TtiIndex, late: Duration, work: Duration) {
        let late_us = in_us(late);
        if late_us > self.slot_us {
            self.late_ttis.push((tti, late_us));
        }
        self.late_us.saturating_record(late_us);
        self.work_us.saturating_record(in_us(work));
    }

    /// Returns the statistics, with the limit of the 99th percentile, and the late TTIs.
    pub(crate) fn finish(self, limit: Duration) -> (Lateness, Vec<(TtiIndex, u64)>) {
        let lateness = Lateness {
            n_tti: self.late_us.len(),
            p50_us: self.late_us.value_at_quantile(0.5),
            p99_us: self.late_us.value_at_quantile(0.99),
            p999_us: self.late_us.value_at_quantile(0.999),
            max_us: self.late_us.max(),
            late_ttis: self.late_ttis.len() as u64,
            limit_us: in_us(limit),
            work_p99_us: self.work_us.value_at_quantile(0.99),
        };
        (lateness, self.late_ttis)
    }
}

fn in_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_ttis() {
        let ms = Duration::from_millis;
        let us = Duration::from_micros;
        let mut late = Punctuality::new(ms(1)).unwrap();
        (1..=100).for_each(|n| late.push(TtiIndex(n), us(n as u64 * 20), us(5)));
        let (figures, late_ttis) = late.finish(ms(1));
        // 20, 40, ... 2000 us: 50 of them are later than a TTI is long.
        let got = (figures.n_tti, figures.p50_us, figures.p99_us, figures.max_us);
        assert_eq!(got, (100, 1_000, 1_980, 2_000));
        assert_eq!((figures.late_ttis, figures.work_p99_us), (50, 5));
        assert_eq!(late_ttis[0], (TtiIndex(51), 1_020));
        assert!(!figures.is_valid());
        assert!(Lateness { limit_us: 2_000, ..figures }.is_valid());
    }

    #[test]
    fn hours_late_is_a_minute_late() {
        let mut late = Punctuality::new(Duration::from_millis(1)).unwrap();
        late.push(TtiIndex(0), Duration::from_secs(7_200), Duration::ZERO);
        assert!(late.finish(Duration::from_millis(1)).0.max_us >= MOST_US);
    }
}
