//! How the rate of a transfer grows from its first byte: whether it began with an initial
//! window, as after a restart, or with an open window.

use schemars::JsonSchema;
use serde::Serialize;

use crate::attribute::INITIAL_WINDOW_BYTES;

/// Maximum first round that counts as an initial window: senders with 32 segments are
/// known, and an acknowledgement of the request may open it by some (chosen here).
const MAX_INITIAL_BYTES: f64 = 3.2 * INITIAL_WINDOW_BYTES as f64;
/// Smaller transfers end before a restart shows (chosen here: slow start sends that many
/// in its first two rounds, and a third has to follow).
const MIN_BYTES: u64 = 60_000;
/// A first round below this share of a full round indicates a small window (chosen here:
/// slow start's is at most half of the next).
const SMALL_SHARE: f64 = 0.55;
/// Minimum cost of a restart in round trips (chosen here: growth from the initial window
/// to twice that costs one, minus what the queue recovers).
const MIN_RESTART_LAG: f64 = 0.8;
/// If a restart would cost fewer round trips than this, it cannot be distinguished from
/// an open window (chosen here).
const MIN_COST: f64 = 1.0;

/// How a transfer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With an initial window that grew: slow start.
    SlowStart,
    /// With an open window.
    Open,
    /// Undetermined: too few bytes, a path so slow that an initial window fills it, or
    /// neither pattern.
    Unknown,
}

/// How the rate of a transfer developed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes of the first round trip after the first byte.
    pub first_round_bytes: u64,
    /// Rate in bits per second over the second half of the bytes, without the last tenth.
    pub late_bps: f64,
    /// Duration of the first half minus that of the second, in nanoseconds: the cost of
    /// growth. About 0 at a steady rate, negative where the rate falls.
    pub lag_ns: i64,
    /// Unevenness of the bytes per round trip in the middle: standard deviation over
    /// mean; `None` with fewer than four rounds.
    pub unevenness: Option<f64>,
    /// How it began.
    pub start: Start,
}

/// Measures a transfer by its arrivals: times in nanoseconds and bytes, in order. `None`
/// if too little arrived in too few pieces to have a rate.
#[must_use]
pub fn growth(arrivals: &[(i64, u64)], rtt_ns: Option<i64>) -> Option<Growth> {
    let first_ns = arrivals.first()?.0;
    let total: u64 = arrivals.iter().map(|(_, bytes)| bytes).sum();
    // When a share of the bytes had arrived.
    let at = |share: f64| {
        let wanted = (total as f64 * share).ceil() as u64;
        let mut sum = 0;
        arrivals.iter().find_map(|(at, bytes)| {
            sum += bytes;
            (sum >= wanted).then_some(at - first_ns)
        })
    };
    // The last tenth may wait for a loss to be repaired, and shows little of the start.
    let (half_ns, end_ns) = (at(0.45)?, at(0.9)?);
    let late_ns = end_ns - half_ns;
    if late_ns <= 0 {
        return None;
    }
    let late_bps = total as f64 * 0.45 * 8e9 / late_ns as f64;
    let lag_ns = half_ns - late_ns;
    let rtt_ns = rtt_ns.filter(|rtt_ns| *rtt_ns > 0);
    let rounds = rtt_ns.map(|rtt_ns| rounds(arrivals, first_ns, rtt_ns));
    let first_round_bytes =
        rounds.as_ref().and_then(|rounds| rounds.first().copied()).unwrap_or_default();
    let start = match rtt_ns {
        Some(rtt_ns) => start(total, first_round_bytes, late_bps, lag_ns, rtt_ns),
        None => Start::Unknown,
    };
    let unevenness = rounds.as_deref().and_then(unevenness);
    Some(Growth { first_round_bytes, late_bps, lag_ns, unevenness, start })
}

/// Bytes of each round trip.
fn rounds(arrivals: &[(i64, u64)], first_ns: i64, rtt_ns: i64) -> Vec<u64> {
    /// Further rounds add no information about one transfer (chosen here).
    const MAX: usize = 10_000;
    let mut rounds = Vec::new();
    for (at, bytes) in arrivals {
        let Ok(round) = usize::try_from((at - first_ns).div_euclid(rtt_ns)) else { continue };
        if round >= MAX {
            break;
        }
        if rounds.len() <= round {
            rounds.resize(round + 1, 0);
        }
        if let Some(slot) = rounds.get_mut(round) {
            *slot += bytes;
        }
    }
    rounds
}

fn start(total: u64, first_round_bytes: u64, late_bps: f64, lag_ns: i64, rtt_ns: i64) -> Start {
    let full = late_bps / 8e9 * rtt_ns as f64;
    let lag = lag_ns as f64 / rtt_ns as f64;
    let first = first_round_bytes as f64;
    let cost = restart_cost(full);
    if total < MIN_BYTES || cost < MIN_COST {
        return Start::Unknown;
    }
    if first <= MAX_INITIAL_BYTES && first < SMALL_SHARE * full && lag >= MIN_RESTART_LAG {
        Start::SlowStart
    } else if lag < cost / 2.0 {
        Start::Open
    } else {
        Start::Unknown
    }
}

/// Round trips that a restart from ten segments costs on a path that takes `full` bytes
/// each round trip: the capacity that each doubling leaves unused.
fn restart_cost(full: f64) -> f64 {
    let mut window = INITIAL_WINDOW_BYTES as f64;
    let mut cost = 0.0;
    while window < full {
        cost += 1.0 - window / full;
        window *= 2.0;
    }
    cost
}

/// Over the rounds in the middle, without first and last.
fn unevenness(rounds: &[u64]) -> Option<f64> {
    let middle = rounds.get(1..rounds.len().checked_sub(1)?)?;
    if middle.len() < 4 {
        return None;
    }
    let n = middle.len() as f64;
    let mean = middle.iter().sum::<u64>() as f64 / n;
    let variance = middle.iter().map(|bytes| (*bytes as f64 - mean).powi(2)).sum::<f64>() / n;
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Rounds of 100 ms, each in one piece at its start.
    fn growth_of(rounds: &[u64]) -> Growth {
        // Packets of a round arrive over half of it.
        let arrivals = rounds.iter().zip(0..).flat_map(|(bytes, round): (_, i64)| {
            (0..10).map(move |n| (round * 100 * MS + n * 5 * MS, bytes / 10))
        });
        growth(&arrivals.collect::<Vec<_>>(), Some(100 * MS)).unwrap()
    }

    #[test]
    fn starts_are_told_apart() {
        let check = |rounds: &[u64], expected: Start| {
            let growth = growth_of(rounds);
            assert_eq!(growth.start, expected, "{rounds:?}: {growth:?}");
        };
        check(&[14_600, 29_200, 58_400, 116_800, 120_000, 60_000], Start::SlowStart);
        // Also to the initial window of 32 segments.
        check(&[46_000, 92_000, 184_000, 368_000], Start::SlowStart);
        check(&[100_000, 100_000, 100_000, 100_000], Start::Open);
        // A token bucket: fast, then slow.
        check(&[300_000, 60_000, 60_000, 60_000, 60_000, 60_000], Start::Open);
        // The path takes no more than an initial window each round trip.
        check(&[14_600; 20], Start::Unknown);
        // To two of them, or nearly three: a restart costs less than a round trip.
        check(&[29_200; 12], Start::Unknown);
        check(&[40_000; 12], Start::Unknown);
        check(&[50_000; 12], Start::Open);
        // Over too soon.
        check(&[14_600, 29_200], Start::Unknown);
    }

    #[test]
    fn growth_costs_and_steadiness_does_not() {
        // 45 % of 400 kB after 100 + 100 + ... at a steady rate: halves take the same.
        let steady = growth_of(&[80_000; 10]);
        assert!(steady.lag_ns.abs() <= 60 * MS, "{steady:?}");
        assert!(steady.unevenness.unwrap() < 0.01, "{steady:?}");
        let grown = growth_of(&[14_600, 29_200, 58_400, 116_800, 120_000, 60_000]);
        assert!(grown.lag_ns > 100 * MS, "{grown:?}");
        let fallen = growth_of(&[300_000, 40_000, 40_000, 40_000, 40_000, 40_000, 40_000]);
        assert!(fallen.lag_ns < -100 * MS, "{fallen:?}");
    }

    #[test]
    fn nothing_has_no_growth() {
        assert_eq!(growth(&[], Some(MS)), None);
        assert_eq!(growth(&[(5, 1_000)], Some(MS)), None);
        assert_eq!(growth(&[(0, 1), (9, 100_000)], None).map(|g| g.start), None);
        let without_rtt = growth(&[(0, 50_000), (MS, 50_000), (2 * MS, 50_000)], None);
        assert_eq!(without_rtt.map(|g| g.start), Some(Start::Unknown));
    }
}
