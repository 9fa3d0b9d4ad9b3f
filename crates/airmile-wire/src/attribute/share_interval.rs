//! Confidence intervals of a share.

/// Samples of a bootstrap (Efron 1979; chosen here: gives percentiles of 2.5 % to within a percent
/// or two).
const SAMPLES: usize = 1_000;
/// Minimum number of transfers for a bootstrap (chosen here).
const LEAST: usize = 4;

/// The interval of a session's share from its transfers' (part, minimum, maximum, total): from
/// their own errors, which may all have one sign, and from their variation.
#[must_use]
pub fn session_share_interval(transfers: &[(f64, f64, f64, f64)]) -> (f64, f64) {
    let sum = |of: fn(&(f64, f64, f64, f64)) -> f64| transfers.iter().map(of).sum::<f64>();
    let total = sum(|t| t.3).max(1.0);
    let share = sum(|t| t.0) / total;
    let (low, high) = (sum(|t| t.1) / total, sum(|t| t.2) / total);
    if transfers.len() < LEAST {
        return (low, high);
    }
    let (drawn_low, drawn_high) = bootstrap(transfers, share);
    (low.min(drawn_low).max(0.0), high.max(drawn_high).min(1.0))
}

/// Percentiles 2.5 and 97.5 of the share over transfers drawn with replacement; deterministic for
/// the same transfers.
fn bootstrap(transfers: &[(f64, f64, f64, f64)], share: f64) -> (f64, f64) {
    // splitmix64 (Steele, Lea, Flood 2014).
    let mut state = transfers.len() as u64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as usize % transfers.len()
    };
    let mut shares: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let drawn = (0..transfers.len()).filter_map(|_| transfers.get(draw()));
            let (part, total) = drawn.fold((0.0, 0.0), |(a, b), t| (a + t.0, b + t.3));
            part / f64::max(total, 1.0)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |p: f64| shares.get((p * (SAMPLES - 1) as f64) as usize).copied().unwrap_or(share);
    (at(0.025), at(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of transfers of 100 ms with an error of 2 ms.
    #[track_caller]
    fn check(parts: &[f64], expected: (f64, f64)) {
        let transfers: Vec<_> =
            parts.iter().map(|part| (*part, part - 2.0, part + 2.0, 100.0)).collect();
        let (low, high) = session_share_interval(&transfers);
        let near = |got: f64, expected: f64| (got - expected).abs() < 0.011;
        assert!(near(low, expected.0) && near(high, expected.1), "{low} {high}");
    }

    #[test]
    fn transfers_that_differ_widen_it() {
        // Few: their own errors.
        check(&[50.0], (0.48, 0.52));
        check(&[20.0, 80.0], (0.48, 0.52));
        // Equal: likewise.
        check(&[50.0; 8], (0.48, 0.52));
        // Half 0, half 100: the mean of 16 has a standard error of 12.5 points.
        let halves = [0.0, 100.0].repeat(8);
        check(&halves, (0.25, 0.75));
    }
}
