//! Resampled intervals and tests, without assumptions about a distribution. Every draw
//! comes from a seed, so that results are reproducible.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::Serialize;

/// Samples drawn for an interval, and labels for a test (Efron and Tibshirani 1993, 12.5
/// and 15.4: a thousand and more).
const DRAWS: usize = 2_000;
/// Minimum number of values for an interval (chosen here: of four, the minimum and
/// maximum enclose the median in 7 cases of 8).
const MIN_VALUES: usize = 4;

/// A value and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end; null if there are too few values.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Number of values.
    pub n: usize,
}

/// A difference between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The second's value minus the first's, and its interval.
    pub estimate: Estimate,
    /// Share of labellings with at least this difference if the label means nothing
    /// (permutation test, two-sided).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
}

/// A statistic of some values; `None` if they do not define it.
pub type Statistic<'a, T> = &'a dyn Fn(&[&T]) -> Option<f64>;

fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A statistic with its percentile bootstrap interval (Efron and Tibshirani 1993, 13.3).
#[must_use]
pub fn estimate<T>(values: &[&T], statistic: Statistic<'_, T>, seed: u64) -> Option<Estimate> {
    let value = statistic(values)?;
    let mut random = random(seed);
    let drawn = || statistic(&draw(values, &mut random));
    let (low, high) = interval(values.len(), drawn);
    Some(Estimate { value, low, high, n: values.len() })
}

/// The difference of a statistic between two groups, with its interval and a permutation
/// test (Good 2005, 3.2). Labels are exchanged within blocks only, and the interval is from draws
/// of whole blocks (Efron and Tibshirani 1993, chapter 8), so that values measured together stay together in
/// both.
#[must_use]
pub fn difference<T>(
    (a, b): (&[&T], &[&T]),
    block: &dyn Fn(&T) -> usize,
    statistic: Statistic<'_, T>,
    seed: u64,
) -> Option<Difference> {
    let value = statistic(b)? - statistic(a)?;
    let mut random = random(seed);
    let mut labelled: Vec<(usize, bool, &T)> = Vec::with_capacity(a.len() + b.len());
    labelled.extend(a.iter().map(|value| (block(value), false, *value)));
    labelled.extend(b.iter().map(|value| (block(value), true, *value)));
    labelled.sort_by_key(|(block, ..)| *block);
    let blocks: Vec<&[(usize, bool, &T)]> = labelled.chunk_by(|a, b| a.0 == b.0).collect();
    let (low, high) = match blocks.len() {
        1 => interval(a.len().min(b.len()), || {
            let (a, b) = (draw(a, &mut random), draw(b, &mut random));
            Some(statistic(&b)? - statistic(&a)?)
        }),
        n => interval(n, || {
            let drawn = draw(&blocks, &mut random);
            let of = |label: bool| -> Vec<&T> {
                let all = drawn.iter().copied().flatten().filter(|(_, of, _)| *of == label);
                all.map(|(.., value)| *value).collect()
            };
            Some(statistic(&of(true))? - statistic(&of(false))?)
        }),
    };
    let (mut as_far, mut drawn) = (0_usize, 0_usize);
    for _ in 0..DRAWS {
        for block in labelled.chunk_by_mut(|a, b| a.0 == b.0) {
            shuffle_labels(block, &mut random);
        }
        let of = |label: bool| -> Vec<&T> {
            labelled.iter().filter(|(_, of, _)| *of == label).map(|(.., value)| *value).collect()
        };
        let Some((a, b)) = statistic(&of(false)).zip(statistic(&of(true))) else { continue };
        drawn += 1;
        // Differences in the last digit count as equal.
        as_far += usize::from((b - a).abs() >= value.abs() * (1.0 - 1e-9));
    }
    // The observed labels count among those drawn: no test gives 0.
    let p = (as_far + 1) as f64 / (drawn + 1) as f64;
    let estimate = Estimate { value, low, high, n: a.len() + b.len() };
    Some(Difference { estimate, p })
}

/// Fisher and Yates.
fn shuffle_labels<T>(block: &mut [(usize, bool, &T)], random: &mut impl Rng) {
    for last in (1..block.len()).rev() {
        let other = random.random_range(0..=last);
        let labels = (block.get(last).map(|one| one.1), block.get(other).map(|one| one.1));
        if let (Some(a), Some(b)) = labels {
            if let Some(one) = block.get_mut(last) {
                one.1 = b;
            }
            if let Some(one) = block.get_mut(other) {
                one.1 = a;
            }
        }
    }
}

fn draw<'a, T: ?Sized>(values: &[&'a T], random: &mut impl Rng) -> Vec<&'a T> {
    let one = |_| values.get(random.random_range(0..values.len().max(1))).copied();
    (0..values.len()).filter_map(one).collect()
}

fn interval(n: usize, mut drawn: impl FnMut() -> Option<f64>) -> (Option<f64>, Option<f64>) {
    if n < MIN_VALUES {
        return (None, None);
    }
    let mut all: Vec<f64> = (0..DRAWS).filter_map(|_| drawn()).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = all.len().checked_sub(1)?;
        all.get((share * last as f64).round() as usize).copied()
    };
    (at(0.025), at(0.975))
}

/// Adjusts p values after Holm (1979, Scandinavian Journal of Statistics 6): the chance
/// that any of the tests errs is that of a single test.
#[must_use]
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    let of = |at: usize| ps.get(at).copied().unwrap_or(1.0);
    order.sort_by(|a, b| of(*a).total_cmp(&of(*b)));
    let mut out = vec![1.0; ps.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((of(at) * (ps.len() - rank) as f64).min(1.0));
        if let Some(slot) = out.get_mut(at) {
            *slot = least;
        }
    }
    out
}

/// Wilson's 95 % interval of a share (Wilson 1927, JASA 22).
#[must_use]
pub fn share(hits: usize, n: usize) -> Option<Estimate> {
    const Z: f64 = 1.959_964;
    if n == 0 {
        return None;
    }
    let count = n as f64;
    let p = hits as f64 / count;
    let centre = p + Z * Z / (2.0 * count);
    let spread = Z * (p * (1.0 - p) / count + Z * Z / (4.0 * count * count)).sqrt();
    let scale = 1.0 / (1.0 + Z * Z / count);
    let (low, high) = ((centre - spread) * scale, (centre + spread) * scale);
    Some(Estimate { value: p, low: Some(low.max(0.0)), high: Some(high.min(1.0)), n })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mean(values: &[&f64]) -> Option<f64> {
        (!values.is_empty()).then(|| values.iter().copied().sum::<f64>() / values.len() as f64)
    }

    fn refs(values: &[f64]) -> Vec<&f64> {
        values.iter().collect()
    }

    #[test]
    fn groups_that_differ_are_told() {
        let a = [1.0, 2.0, 3.0, 2.0, 1.5, 2.5];
        let far = [11.0, 12.0, 13.0, 12.0, 11.5, 12.5];
        let check = |b: &[f64], from: f64, to: f64| {
            let found = difference((&refs(&a), &refs(b)), &|_| 0, &mean, 1).unwrap();
            assert!((from..=to).contains(&found.p), "{found:?}");
        };
        // 2 of the 924 labellings are as far apart.
        check(&far, 0.0, 0.01);
        check(&a, 1.0, 1.0);
        // Of four values each, 2 of 70: 0.029.
        let found = difference((&refs(&a[..4]), &refs(&far[..4])), &|_| 0, &mean, 1).unwrap();
        assert!((0.015..0.045).contains(&found.p), "{found:?}");
    }

    #[test]
    fn blocks_take_out_what_they_share() {
        // It gets ten times as fast over time; the second is always better by one.
        let a: Vec<f64> = (0..8).map(|n| f64::from(n) * 10.0).collect();
        let b: Vec<f64> = a.iter().map(|value| value + 1.0).collect();
        let (a, b) = (refs(&a), refs(&b));
        let loose = difference((&a, &b), &|_| 0, &mean, 1).unwrap();
        let paired = difference((&a, &b), &|value| (*value / 10.0) as usize, &mean, 1).unwrap();
        assert!(loose.p > 0.5 && paired.p < 0.02, "{loose:?} {paired:?}");
        let ends = |of: Difference| of.estimate.low.zip(of.estimate.high).unwrap();
        assert!(ends(loose).0 < 0.0 && ends(loose).1 > 0.0, "{loose:?}");
        assert!((ends(paired).0 - 1.0).abs() < 1e-9 && (ends(paired).1 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn known_cases() {
        // Holm's order: 0.01 * 3, 0.02 * 2, and never less than the one before.
        let got = holm(&[0.04, 0.01, 0.02]);
        for (got, expected) in got.iter().zip([0.04, 0.03, 0.04]) {
            assert!((got - expected).abs() < 1e-12, "{got}");
        }
        let of = share(9, 10).unwrap();
        assert!(
            (of.low.unwrap() - 0.596).abs() < 0.001 && (of.high.unwrap() - 0.982).abs() < 0.001
        );
        assert_eq!(share(0, 0), None);
        assert_eq!(estimate(&refs(&[1.0, 2.0]), &mean, 1).unwrap().low, None);
    }

    proptest! {
        #[test]
        fn a_seed_gives_one_answer_and_an_interval_holds_its_value(
            values in prop::collection::vec(0.0..100.0_f64, 5..30), seed: u64,
        ) {
            let values = refs(&values);
            let first = estimate(&values, &mean, seed).unwrap();
            prop_assert_eq!(Some(first), estimate(&values, &mean, seed));
            prop_assert!(first.low <= Some(first.value + 1e-9));
            prop_assert!(first.high >= Some(first.value - 1e-9));
        }

        #[test]
        fn which_is_first_turns_the_sign_alone(
            a in prop::collection::vec(0.0..100.0_f64, 4..12),
            b in prop::collection::vec(0.0..100.0_f64, 4..12),
        ) {
            let (a, b) = (refs(&a), refs(&b));
            let there = difference((&a, &b), &|_| 0, &mean, 3).unwrap();
            let back = difference((&b, &a), &|_| 0, &mean, 3).unwrap();
            prop_assert!((there.estimate.value + back.estimate.value).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 0.1, "{} {}", there.p, back.p);
        }

        #[test]
        fn holm_only_raises(ps in prop::collection::vec(0.0..=1.0_f64, 0..10)) {
            let out = holm(&ps);
            prop_assert!(out.iter().zip(&ps).all(|(out, p)| out >= p && *out <= 1.0));
        }
    }
}
