//! MAC padding: a transport block larger than the queued data.
//!
//! Small padding is alignment or an over-sized grant, and no evidence; the limit of
//! "small" is learnt from the log: the pauses after padded blocks that end a burst differ
//! from those after full blocks.

use super::gap::N_BINS;

/// Candidates in bytes: none, header alignment (TS 36.321, 6.1.2: one or two
/// bytes of padding are subheaders), and a few multiples beyond (chosen here).
const CANDIDATES: [u32; 9] = [0, 1, 2, 3, 5, 8, 12, 24, 48];
/// Minimum number of blocks on each side of a threshold (chosen here).
const MIN_BLOCKS: f64 = 20.0;

/// Equal blocks of user data, with the fields that this evidence needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PaddedBlock {
    /// Number of blocks.
    pub n: u32,
    pub padding_bytes: u32,
    /// Bin of the pause after it.
    pub pause: usize,
    /// Whether an unexplained poll ended it; `None`: unknown.
    pub polls_empty: Option<bool>,
}

/// The largest padding that is no evidence, from the log's data blocks: the split that
/// best explains the pauses, provided that the blocks with less padding behave as full
/// blocks do. If poll bits are known, those blocks must also mostly lack them: alignment
/// leaves data behind.
pub(super) fn fit_threshold(blocks: impl Iterator<Item = PaddedBlock>) -> Option<u32> {
    // One pass: a candidate only adds and removes whole classes.
    let mut classes = [Side::EMPTY; CANDIDATES.len() + 1];
    blocks.filter(|block| block.n > 0).for_each(|block| {
        // Most blocks are full.
        let class = match block.padding_bytes {
            0 => 0,
            bytes => CANDIDATES.partition_point(|&candidate| candidate < bytes),
        };
        classes[class].add(&block);
    });
    if classes.iter().all(|class| class.n == 0.0) {
        return None;
    }
    let sum = |classes: &[Side]| classes.iter().fold(Side::EMPTY, Side::and);
    let [full, ..] = &classes;
    let mut best = (sum(&classes).log_likelihood(), 0);
    for (i, &threshold) in CANDIDATES.iter().enumerate() {
        let (low, large) = (sum(&classes[..=i]), sum(&classes[i + 1..]));
        let small = sum(&classes[1..=i]);
        let enough = [&low, &large].iter().all(|side| side.n >= MIN_BLOCKS);
        let as_full = full.n >= MIN_BLOCKS
            && small.n >= MIN_BLOCKS
            && small.distance(full) < small.distance(&large)
            && small.ends <= small.goes_on;
        if !enough || (threshold > 0 && !as_full) {
            continue;
        }
        let fit = low.log_likelihood() + large.log_likelihood();
        // A larger threshold must explain clearly more, not by chance.
        if fit > best.0 + 2.0 {
            best = (fit, threshold);
        }
    }
    Some(best.1)
}

/// Pauses of the blocks on one side of a threshold.
#[derive(Clone, Copy)]
struct Side {
    n: f64,
    pauses: [f64; N_BINS],
    /// Blocks whose polls show that the queue ran empty, and that it did not.
    ends: usize,
    goes_on: usize,
}

impl Side {
    const EMPTY: Self = Self { n: 0.0, pauses: [0.0; N_BINS], ends: 0, goes_on: 0 };

    fn add(&mut self, block: &PaddedBlock) {
        self.pauses[block.pause] += f64::from(block.n);
        self.n += f64::from(block.n);
        match block.polls_empty {
            Some(true) => self.ends += block.n as usize,
            Some(false) => self.goes_on += block.n as usize,
            None => {}
        }
    }

    fn and(mut self, other: &Self) -> Self {
        self.n += other.n;
        self.pauses.iter_mut().zip(&other.pauses).for_each(|(sum, n)| *sum += n);
        self.ends += other.ends;
        self.goes_on += other.goes_on;
        self
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

#[cfg(test)]
mod tests {
    use super::super::gap;
    use super::*;

    fn block(padding_bytes: u32, pause: i64, polls_empty: Option<bool>) -> PaddedBlock {
        PaddedBlock { n: 1, padding_bytes, pause: gap::bin(Some(pause)), polls_empty }
    }

    #[test]
    fn alignment_padding_is_told_from_an_empty_queue() {
        let blocks: Vec<PaddedBlock> = (0..200)
            // Up to 3 bytes, goes on; more, ends a burst.
            .flat_map(|i| [block(i % 4, 1, None), block(20 + i, 40, None)])
            .collect();
        assert_eq!(fit_threshold(blocks.into_iter()), Some(3));
    }

    #[test]
    fn without_alignment_any_padding_counts() {
        let blocks: Vec<PaddedBlock> =
            (0..200).flat_map(|i| [block(0, 1, None), block(1 + i % 60, 30, None)]).collect();
        assert_eq!(fit_threshold(blocks.iter().copied()), Some(0));
        assert_eq!(fit_threshold(blocks[..4].iter().copied()), Some(0));
    }

    #[test]
    fn padding_that_comes_with_polls_is_no_alignment() {
        // Single packets, one every third TTI: their blocks are padded a little, and
        // followed as soon as full ones are.
        let check = |polls_empty, expected| {
            let blocks: Vec<PaddedBlock> = (0..200)
                .flat_map(|i| {
                    [
                        block(0, 2, Some(false)),
                        block(19, 2, polls_empty),
                        block(80 + i % 9, 60, Some(true)),
                    ]
                })
                .collect();
            assert_eq!(fit_threshold(blocks.into_iter()), Some(expected));
        };
        check(Some(true), 0);
        check(Some(false), 24);
        check(None, 24);
    }
}
