//! Distributions in bounded memory: counts in buckets that grow by 2 %.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Ratio of adjacent buckets: quantiles are within 1 % of the exact ones.
const GROWTH: f64 = 1.02;

/// A distribution of values; zero and negative values share a bucket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    buckets: BTreeMap<i32, (u64, f64)>,
    n: u64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Distribution {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.push_n(value, 1);
    }

    /// Adds a value `n` times.
    pub fn push_n(&mut self, value: f64, n: u64) {
        if n == 0 || value.is_nan() {
            return;
        }
        let bucket = if value > 0.0 { (value.ln() / GROWTH.ln()).floor() as i32 } else { i32::MIN };
        let entry = self.buckets.entry(bucket).or_default();
        entry.0 += n;
        entry.1 += value * n as f64;
        (self.least, self.most) = if self.n == 0 {
            (value, value)
        } else {
            (self.least.min(value), self.most.max(value))
        };
        self.n += n;
        self.sum += value * n as f64;
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        (self.least, self.most) = if self.n == 0 {
            (other.least, other.most)
        } else {
            (self.least.min(other.least), self.most.max(other.most))
        };
        for (bucket, (n, sum)) in &other.buckets {
            let entry = self.buckets.entry(*bucket).or_default();
            entry.0 += n;
            entry.1 += sum;
        }
        self.n += other.n;
        self.sum += other.sum;
    }

    /// How many values.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    /// The smallest value that a share `p` of all does not exceed: the mean of its
    /// bucket.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        let rank = (p.clamp(0.0, 1.0) * (self.n - 1) as f64).round() as u64;
        let mut before = 0;
        for (n, sum) in self.buckets.values() {
            before += n;
            if before > rank {
                return Some((sum / *n as f64).clamp(self.least, self.most));
            }
        }
        Some(self.most)
    }

    /// The share of values above `threshold` (whole buckets; by their means).
    #[must_use]
    pub fn share_above(&self, threshold: f64) -> Option<f64> {
        let above: u64 =
            self.buckets.values().filter(|(n, sum)| sum / *n as f64 > threshold).map(|b| b.0).sum();
        (self.n > 0).then(|| above as f64 / self.n as f64)
    }

    /// The share of the sum that values above `threshold` make.
    #[must_use]
    pub fn sum_share_above(&self, threshold: f64) -> Option<f64> {
        let above = self.buckets.values().filter(|(n, sum)| sum / *n as f64 > threshold);
        let above = above.fold(0.0, |total, bucket| total + bucket.1);
        (self.sum > 0.0).then(|| above / self.sum)
    }

    /// Points of the cumulative distribution: value and share not above it.
    #[must_use]
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let mut before = 0;
        let points = self.buckets.values().map(|(n, sum)| {
            before += n;
            (sum / *n as f64, before as f64 / self.n as f64)
        });
        points.collect()
    }
}

/// Correlation of pairs (Pearson), computed incrementally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Correlation {
    n: f64,
    mean: (f64, f64),
    squares: (f64, f64),
    products: f64,
}

impl Correlation {
    /// Adds a pair (Welford's update).
    pub fn push(&mut self, x: f64, y: f64) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        self.n += 1.0;
        let dx = x - self.mean.0;
        let dy = y - self.mean.1;
        self.mean.0 += dx / self.n;
        self.mean.1 += dy / self.n;
        self.squares.0 += dx * (x - self.mean.0);
        self.squares.1 += dy * (y - self.mean.1);
        self.products += dx * (y - self.mean.1);
    }

    /// Adds the pairs of another (Chan, Golub and LeVeque 1979, eq. 2.1).
    pub fn merge(&mut self, other: &Self) {
        let n = self.n + other.n;
        if other.n == 0.0 {
            return;
        }
        let (dx, dy) = (other.mean.0 - self.mean.0, other.mean.1 - self.mean.1);
        let weight = self.n * other.n / n;
        self.squares.0 += other.squares.0 + dx * dx * weight;
        self.squares.1 += other.squares.1 + dy * dy * weight;
        self.products += other.products + dx * dy * weight;
        self.mean.0 += dx * other.n / n;
        self.mean.1 += dy * other.n / n;
        self.n = n;
    }

    /// The coefficient; `None` with fewer than three pairs, or if one side is constant.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        let scale = (self.squares.0 * self.squares.1).sqrt();
        (self.n >= 3.0 && scale > 0.0).then(|| self.products / scale)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_within_a_percent() {
        let mut d = Distribution::default();
        (1..=1000).for_each(|n| d.push(f64::from(n)));
        for (p, expected) in [(0.0, 1.0), (0.05, 51.0), (0.5, 501.0), (0.95, 950.0), (1.0, 1000.0)]
        {
            let got = d.quantile(p).unwrap();
            assert!((got / expected - 1.0).abs() < 0.011, "{p}: {got}");
        }
        assert!((d.share_above(900.0).unwrap() - 0.1).abs() < 0.02);
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn correlation_of_a_line_and_its_opposite() {
        let (mut up, mut down) = (Correlation::default(), Correlation::default());
        for n in 0..10 {
            up.push(f64::from(n), f64::from(3 * n + 1));
            down.push(f64::from(n), f64::from(-n));
        }
        assert!((up.value().unwrap() - 1.0).abs() < 1e-12);
        assert!((down.value().unwrap() + 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn correlations_merge(pairs in prop::collection::vec((-50_i32..50, -50_i32..50), 3..60), cut in 0_usize..60) {
            let of = |pairs: &[(i32, i32)]| {
                let mut c = Correlation::default();
                pairs.iter().for_each(|(x, y)| c.push(f64::from(*x), f64::from(*y)));
                c
            };
            let (a, b) = pairs.split_at(cut.min(pairs.len()));
            let mut merged = of(a);
            merged.merge(&of(b));
            match (merged.value(), of(&pairs).value()) {
                (Some(x), Some(y)) => prop_assert!((x - y).abs() < 1e-9, "{} {}", x, y),
                (x, y) => prop_assert_eq!(x, y),
            }
        }

        #[test]
        fn merged_is_as_pushed_together(a in prop::collection::vec(0_u32..5000, 0..40), b in prop::collection::vec(0_u32..5000, 0..40)) {
            let of = |values: &[u32]| {
                let mut d = Distribution::default();
                values.iter().for_each(|v| d.push(f64::from(*v)));
                d
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a, b].concat());
            prop_assert_eq!(merged.n(), together.n());
            prop_assert_eq!(merged.quantile(1.0), together.quantile(1.0));
            prop_assert_eq!(merged.quantile(0.0), together.quantile(0.0));
        }
    }
}
