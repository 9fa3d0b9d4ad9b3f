//! MAC padding: a transport block larger than what was queued.
//!
//! Small padding is alignment or an over-sized grant and says nothing; where
//! "small" ends is learnt from the log: padded blocks that end a burst are
//! followed by other pauses than full blocks are.

use super::gap::{self, N_BINS};

/// Candidates in bytes: none, header alignment (TS 36.321, 6.1.2: one or two
/// bytes of padding are subheaders), and a few multiples beyond (chosen here).
const CANDIDATES: [u32; 9] = [0, 1, 2, 3, 5, 8, 12, 24, 48];
/// Blocks needed on each side of a threshold before it is believed (chosen here).
const MIN_BLOCKS: f64 = 20.0;

/// The largest padding that still says nothing, from `(padding, pause bin)` of
/// the log's data blocks: the split that best explains the pauses, provided
/// that the blocks with less padding behave as full blocks do.
pub(super) fn fit_threshold(blocks: &[(u32, usize)]) -> u32 {
    let full = Side::of(blocks, |padding| padding == 0);
    let mut best = (Side::of(blocks, |_| true).log_likelihood(), 0);
    for &threshold in &CANDIDATES {
        let low = Side::of(blocks, |padding| padding <= threshold);
        let small = Side::of(blocks, |padding| padding > 0 && padding <= threshold);
        let large = Side::of(blocks, |padding| padding > threshold);
        let enough = [&low, &large].iter().all(|side| side.n >= MIN_BLOCKS);
        let as_full = full.n >= MIN_BLOCKS
            && small.n >= MIN_BLOCKS
            && small.distance(&full) < small.distance(&large);
        if !enough || (threshold > 0 && !as_full) {
            continue;
        }
        let fit = low.log_likelihood() + large.log_likelihood();
        // A larger threshold must explain clearly more, not by chance.
        if fit > best.0 + 2.0 {
            best = (fit, threshold);
        }
    }
    best.1
}

/// Pauses of the blocks on one side of a threshold.
struct Side {
    n: f64,
    pauses: [f64; N_BINS],
}

impl Side {
    fn of(blocks: &[(u32, usize)], keep: impl Fn(u32) -> bool) -> Self {
        let mut side = Self { n: 0.0, pauses: [0.0; N_BINS] };
        for &(_, bin) in blocks.iter().filter(|block| keep(block.0)) {
            side.pauses[bin] += 1.0;
            side.n += 1.0;
        }
        side
    }

    fn log_likelihood(&self) -> f64 {
        self.pauses.iter().filter(|&&c| c > 0.0).map(|&c| c * (c / self.n).ln()).sum()
    }

    /// Total variation between the two sides' pauses.
    fn distance(&self, other: &Self) -> f64 {
        let pairs = self.pauses.iter().zip(&other.pauses);
        pairs.map(|(a, b)| (a / self.n - b / other.n).abs()).sum::<f64>() / 2.0
    }
}

/// As [`gap::bin`], for callers that only fit.
pub(super) fn bin(gap: Option<i64>) -> usize {
    gap::bin(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_padding_is_told_from_an_empty_queue() {
        let mut blocks = Vec::new();
        for i in 0..200_usize {
            blocks.push(((i % 4) as u32, bin(Some(1)))); // up to 3 bytes, goes on
            blocks.push((20 + i as u32, bin(Some(40)))); // ends a burst
        }
        assert_eq!(fit_threshold(&blocks), 3);
    }

    #[test]
    fn without_alignment_any_padding_counts() {
        let blocks: Vec<(u32, usize)> =
            (0..200_u32).flat_map(|i| [(0, bin(Some(1))), (1 + i % 60, bin(Some(30)))]).collect();
        assert_eq!(fit_threshold(&blocks), 0);
        assert_eq!(fit_threshold(&blocks[..4]), 0);
    }
}
