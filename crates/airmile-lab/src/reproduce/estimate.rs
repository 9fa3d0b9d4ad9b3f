//! Estimates with their sample size and interval.

/// Two-sided 95 % of a normal distribution.
const Z: f64 = 1.959_964;

/// Two-sided 95 % of Student's distribution with 1, 2, ... degrees of freedom; above that,
/// the normal distribution's.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// An estimate from a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) n: u64,
    /// 95 % interval, if it can be determined.
    pub(super) interval: Option<(f64, f64)>,
}

/// Finite values in order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The interpolated quantile `p` of the values. Its interval is distribution-free: the
/// order statistics that enclose it by the binomial's normal approximation; with few
/// values, the minimum and maximum, and none if not even these enclose it in 95 % of cases.
pub(super) fn quantile(values: &[f64], p: f64) -> Estimate {
    let sorted = sorted(values);
    let n = sorted.len() as u64;
    let Some(last) = sorted.len().checked_sub(1) else {
        return Estimate { value: f64::NAN, n, interval: None };
    };
    let at = p * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let value = sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64);
    let spread = Z * (n as f64 * p * (1.0 - p)).sqrt();
    let centre = n as f64 * p;
    let from = (centre - spread).floor().max(1.0) as usize - 1;
    let to = ((centre + spread).ceil() as usize).min(last);
    let outside = p.powi(sorted.len() as i32) + (1.0 - p).powi(sorted.len() as i32);
    Estimate { value, n, interval: (outside <= 0.05).then(|| (sorted[from], sorted[to])) }
}

/// The mean, with Student's interval of its standard error; the interval is cut at 0 if no
/// value is negative.
pub(super) fn mean(values: &[f64]) -> Estimate {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
    let spread = student(values.len()) * (variance / n).sqrt();
    let least = if values.iter().any(|v| *v < 0.0) { f64::NEG_INFINITY } else { 0.0 };
    let low = (value - spread).max(least);
    let interval = (values.len() > 1).then_some((low, value + spread));
    Estimate { value, n: values.len() as u64, interval }
}

/// Student's 95 % quantile for the mean of `n` values; none for a single one.
fn student(n: usize) -> f64 {
    n.checked_sub(2).map_or(f64::NAN, |at| T.get(at).copied().unwrap_or(Z))
}

/// The mean of the pairs' first values over the mean of the second, with Fieller's interval
/// (Fieller 1954, JRSS B 16): the ratios whose residuals' mean is not significantly
/// different from 0. No value if the second's mean is not significantly different from 0,
/// as then every ratio is possible.
pub(super) fn ratio_of_means(pairs: &[(f64, f64)]) -> Estimate {
    let finite = |pair: &&(f64, f64)| pair.0.is_finite() && pair.1.is_finite();
    let pairs: Vec<(f64, f64)> = pairs.iter().filter(finite).copied().collect();
    let n = pairs.len() as f64;
    let none = Estimate { value: f64::NAN, n: pairs.len() as u64, interval: None };
    let (y, x) = pairs.iter().fold((0.0, 0.0), |(y, x), pair| (y + pair.0 / n, x + pair.1 / n));
    // Variances and covariance of the means, times Student's value squared.
    let scale = student(pairs.len()).powi(2) / (n - 1.0) / n;
    let spread = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        scale * pairs.iter().map(|pair| f(pair.0 - y, pair.1 - x)).sum::<f64>()
    };
    let a = x * x - spread(&|_, x| x * x);
    let b = x * y - spread(&|y, x| x * y);
    let c = y * y - spread(&|y, _| y * y);
    // Also if one pair has no variance.
    if a.is_nan() || a <= 0.0 {
        return none;
    }
    let root = (b * b - a * c).max(0.0).sqrt();
    Estimate { value: y / x, interval: Some(((b - root) / a, (b + root) / a)), ..none }
}

/// A share in percent, with Wilson's score interval (Wilson 1927, JASA 22).
pub(super) fn share(hits: u64, n: u64) -> Estimate {
    if n == 0 {
        return Estimate { value: f64::NAN, n, interval: None };
    }
    let count = n as f64;
    let p = hits as f64 / count;
    let centre = p + Z * Z / (2.0 * count);
    let spread = Z * (p * (1.0 - p) / count + Z * Z / (4.0 * count * count)).sqrt();
    let scale = 100.0 / (1.0 + Z * Z / count);
    let interval = Some(((centre - spread) * scale, (centre + spread) * scale));
    Estimate { value: 100.0 * p, n, interval }
}

/// A share in percent of units that are not a sample, such as consecutive TTIs: no
/// interval.
pub(super) fn part(hits: u64, n: u64) -> Estimate {
    Estimate { interval: None, ..share(hits, n) }
}

/// A count among `n`.
pub(super) fn count(hits: u64, n: usize) -> Estimate {
    Estimate { value: hits as f64, n: n as u64, interval: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_what_is_possible() {
        let check = |pairs: &[(f64, f64)], value: f64, interval: Option<(f64, f64)>| {
            let found = ratio_of_means(pairs);
            assert!((found.value - value).abs() < 1e-3 || found.value.is_nan() && value.is_nan());
            assert_eq!(found.interval.is_some(), interval.is_some(), "{found:?}");
            let ((low, high), (least, most)) =
                (found.interval.unwrap_or_default(), interval.unwrap_or_default());
            assert!((low - least).abs() < 1e-3 && (high - most).abs() < 1e-3, "{found:?}");
        };
        // No variance.
        check(&[(4.0, 5.0), (4.0, 5.0)], 0.8, Some((0.8, 0.8)));
        // A constant below it: Student's interval of the mean (2.484 around 2), halved.
        check(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)], 1.0, Some((-0.242, 2.242)));
        // A constant above it: Student's of 10, 11, 12 is 8.516 to 13.484.
        check(&[(1.0, 10.0), (1.0, 11.0), (1.0, 12.0)], 1.0 / 11.0, Some((0.07416, 0.11743)));
        // Its mean may be 0, or it is one pair.
        check(&[(1.0, -1.0), (1.0, 3.0), (1.0, 1.0)], f64::NAN, None);
        check(&[(1.0, 2.0)], f64::NAN, None);
        check(&[], f64::NAN, None);
        assert_eq!(ratio_of_means(&[(f64::NAN, 1.0), (4.0, 5.0), (4.0, 5.0)]).n, 2);
    }

    #[test]
    fn known_cases() {
        // 9 of 10: 59.6 to 98.2 %.
        let Estimate { value, interval, .. } = share(9, 10);
        let (low, high) = interval.unwrap();
        assert_eq!(value, 90.0);
        assert!((low - 59.6).abs() < 0.1 && (high - 98.2).abs() < 0.1, "{low} {high}");
        // The median of 1 to 100: order statistics 40 and 61 (Conover, 3.2).
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let median = quantile(&values, 0.5);
        assert_eq!((median.value, median.interval), (50.5, Some((40.0, 61.0))));
        assert_eq!(quantile(&[3.0], 0.5), Estimate { value: 3.0, n: 1, interval: None });
        assert_eq!(quantile(&[], 0.5).n, 0);
        let mean = mean(&[1.0, 2.0, 3.0]);
        let (low, high) = mean.interval.unwrap();
        // 4.303 standard errors of 0.577; none of the values is below 0.
        assert!(mean.value == 2.0 && low == 0.0 && (high - 4.484).abs() < 0.001, "{low} {high}");
        // The least and the most enclose the median of 6 in 31 cases of 32.
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5).interval, None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.5).interval, Some((1.0, 6.0)));
    }
}
