//! Medians.

use std::cmp::Ordering;

/// The median of values, of an even number the mean of the middle two; `None` without any.
#[must_use]
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let (low, high) = (values.get(last / 2)?, values.get(last.div_ceil(2))?);
    Some(low.midpoint(*high))
}

/// The same of values that it sorts, of an even number the upper of the middle two.
pub fn upper_median<T: Copy>(values: &mut [T], order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    values.sort_unstable_by(order);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_the_mean_or_the_upper_one() {
        let check = |values: &[f64], expected, upper| {
            assert_eq!(median(values.iter().copied()), expected);
            assert_eq!(upper_median(&mut values.to_vec(), f64::total_cmp), upper);
        };
        check(&[], None, None);
        check(&[3.0], Some(3.0), Some(3.0));
        check(&[3.0, 1.0], Some(2.0), Some(3.0));
        check(&[5.0, 1.0, 3.0], Some(3.0), Some(3.0));
    }
}
