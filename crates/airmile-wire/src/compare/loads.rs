//! Load times of pages in several runs.

use super::judge::{ALPHA, MIN_TRANSFERS, SAME_FACTOR};
use super::resample::{difference, holm};
use airmile_model::median::median;

/// The load times of a page in a run, compared with those in its first run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadDifference {
    /// The page, by its index.
    pub page: usize,
    /// The other run, by its index.
    pub run: usize,
    /// The median load time of the first run, and of the other one, in ms.
    pub medians_ms: [f64; 2],
    /// Loads in the run with fewer of them.
    pub loads: usize,
    /// Share of labellings with at least this difference, after Holm over all pages and runs; `None`
    /// for too few loads.
    pub p: Option<f64>,
}

impl LoadDifference {
    /// The p of a difference that is more than chance.
    #[must_use]
    pub fn certain_p(&self) -> Option<f64> {
        self.p.filter(|p| *p < ALPHA)
    }

    /// By which factor the slower run's time is longer.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let [first, other] = self.medians_ms;
        first.max(other) / first.min(other)
    }

    fn of((page, run): (usize, usize), times: [&[f64]; 2], seed: u64) -> Option<Self> {
        let [first, other] = times.map(|ms| median(ms.iter().copied()).filter(|ms| *ms > 0.0));
        let [a, b] = times.map(|times| times.iter().collect::<Vec<_>>());
        let loads = a.len().min(b.len());
        // The medians of many labellings are the same, their means are not.
        let mean_ln = |ms: &[&f64]| {
            Some(ms.iter().map(|ms| ms.max(1e-9).ln()).sum::<f64>() / ms.len() as f64)
        };
        let found = difference((&a, &b), &|_| 0, &mean_ln, seed).filter(|_| loads >= MIN_TRANSFERS);
        let medians_ms = [first?, other?];
        Some(Self { page, run, medians_ms, loads, p: found.map(|found| found.p) })
    }
}

/// The largest difference that a user notices, of load times in ms by page and run, each with the first
/// run; those that may be chance come last.
#[must_use]
pub fn largest_difference(pages: &[Vec<Vec<f64>>], seed: u64) -> Option<LoadDifference> {
    let mut all = Vec::new();
    for (page, runs) in pages.iter().enumerate() {
        let Some((first, rest)) = runs.split_first() else { continue };
        let each = rest.iter().zip(1..);
        all.extend(
            each.filter_map(|(other, run)| LoadDifference::of((page, run), [first, other], seed)),
        );
    }
    let ps: Vec<f64> = all.iter().filter_map(|one| one.p).collect();
    let mut corrected = holm(&ps).into_iter();
    for p in all.iter_mut().filter_map(|one| one.p.as_mut()) {
        *p = corrected.next().unwrap_or(*p);
    }
    all.retain(|one| one.factor() >= SAME_FACTOR);
    let key = |one: &LoadDifference| (one.certain_p().is_some(), one.factor());
    all.into_iter().max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_is_more_than_chance_comes_first() {
        let spread = |ms: f64, n: usize| (0..n).map(|k| ms + k as f64).collect::<Vec<f64>>();
        // The first page is four times as long, in one load each; the second twice, in five.
        let pages = [
            vec![spread(500.0, 1), spread(2_000.0, 1)],
            vec![spread(400.0, 5), spread(402.0, 5), spread(200.0, 5)],
        ];
        let found = largest_difference(&pages, 1).unwrap();
        assert_eq!((found.page, found.run, found.loads), (1, 2, 5));
        assert!(found.certain_p().is_some() && found.medians_ms == [402.0, 202.0], "{found:?}");
        let found = largest_difference(&pages[..1], 1).unwrap();
        assert_eq!((found.p, found.factor()), (None, 4.0));
        // Loads that a user takes for the same, and a page of a single run.
        let same = [vec![spread(400.0, 5), spread(440.0, 5)], vec![spread(100.0, 5)]];
        assert_eq!(largest_difference(&same, 1), None);
    }
}
