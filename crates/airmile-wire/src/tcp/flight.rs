//! Bytes in flight of one flow, counted in buckets (paper 4.3, figure 13).

use crate::distribution::Distribution;

/// Four buckets an octave, from 1 KB to 64 MB.
const BUCKETS: usize = 64;
const FIRST_BYTES: f64 = 1024.0;

/// Buckets that room is made for at a time: an octave.
const STEP: usize = 4;

/// Counts of samples by size, up to the largest bucket that has any.
#[derive(Debug, Clone, Default)]
pub(super) struct FlightCounts(Vec<u32>);

impl FlightCounts {
    #[inline]
    pub(super) fn push(&mut self, flight: i64) {
        // Four times the binary logarithm, from the leading bits.
        let kilo = (flight.max(1).unsigned_abs()) >> 8;
        let bucket = if kilo < 4 {
            0
        } else {
            let octave = kilo.ilog2() - 2;
            let quarter = kilo >> octave & 3;
            (octave * 4) as usize + quarter as usize
        };
        let bucket = bucket.min(BUCKETS - 1);
        if bucket >= self.0.len() {
            let buckets = (bucket + 1).next_multiple_of(STEP);
            self.0.reserve_exact(buckets - self.0.len());
            self.0.resize(buckets, 0);
        }
        if let Some(count) = self.0.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds all samples, by the middles of their buckets.
    pub(super) fn add_to(&self, distribution: &mut Distribution) {
        for (bucket, count) in self.0.iter().enumerate() {
            let (octave, quarter) = ((bucket / 4) as i32, (bucket % 4) as f64);
            let middle = FIRST_BYTES * 2_f64.powi(octave) * (1.0 + (quarter + 0.5) / 4.0);
            distribution.push_n(middle, u64::from(*count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_they_say() {
        for flight in [1024_i64, 1500, 10_000, 200_000, 1_200_000, 30_000_000] {
            let mut counts = FlightCounts::default();
            counts.push(flight);
            let mut d = Distribution::default();
            counts.add_to(&mut d);
            let error = d.quantile(0.5).unwrap() / flight as f64;
            assert!((0.86..1.14).contains(&error), "{flight}: {error}");
        }
    }
}
