//! Blocks whose padding does not show whether they emptied the queue.
//!
//! A block without padding left data behind, or held by chance just what was queued: once in as many
//! ends as the grants' sizes have bytes between them. The padding of a block that was never received is
//! unknown. Both are judged by the pause after them and by their size, a part of the carrier or all of
//! it, as the padded blocks of the log (which emptied the queue) and those without padding have them.
//! RLC UM has no polls that would decide (TS 36.322, 5.1.2), and no retransmission shows the contents
//! of a lost block.

use airmile_model::median::upper_median;

use super::gap::{EM_ITERATIONS, GapHistogram, N_BINS};

/// What the padding of a data block shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaddingSign {
    /// The queue was empty.
    Padded { bytes: u32 },
    /// Data was left, or the block held just what was queued.
    Filled,
    /// The block was not received, or its contents were not logged.
    Unknown,
}

/// A data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnpaddedBlock {
    pub sign: PaddingSign,
    /// Whether it is smaller than the full carrier.
    pub is_part: bool,
    /// Bin of the pause after it.
    pub pause: usize,
}

/// Number of blocks by size (full, part) and pause.
type Counts = [[f64; N_BINS]; 2];

/// Sizes and pauses of blocks in one state of the queue.
struct Blocks {
    sizes: [f64; 2],
    pauses: GapHistogram,
}

impl Blocks {
    fn new(pauses: GapHistogram) -> Self {
        // Each size once: none is impossible.
        Self { sizes: [1.0; 2], pauses }
    }

    fn add(&mut self, counts: &Counts, share: impl Fn(usize, usize) -> f64) {
        for (size, counts) in counts.iter().enumerate() {
            for (pause, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0.0) {
                let n = n * share(size, pause);
                self.sizes[size] += n;
                self.pauses.add_weight(pause, n);
            }
        }
    }

    fn likelihood(&self) -> Counts {
        let n: f64 = self.sizes.iter().sum();
        let pauses = self.pauses.density();
        self.sizes.map(|size| pauses.map(|pause| pause * size / n))
    }
}

/// The posterior of each block that it emptied the queue. `threshold_bytes` is the largest padding that
/// is no evidence.
pub(super) fn judge(blocks: &[UnpaddedBlock], threshold_bytes: u32) -> Vec<f64> {
    let [mut padded, mut filled, mut unknown] = [[[0.0; N_BINS]; 2]; 3];
    let mut paddings = Vec::new();
    for block in blocks {
        let counts = match block.sign {
            PaddingSign::Padded { bytes } => {
                paddings.push(bytes);
                &mut padded
            }
            PaddingSign::Filled => &mut filled,
            PaddingSign::Unknown => &mut unknown,
        };
        counts[usize::from(block.is_part)][block.pause] += 1.0;
    }
    let sum = |counts: &Counts| counts.iter().flatten().sum::<f64>();
    let (n_padded, n_filled) = (sum(&padded), sum(&filled));
    let p_filled =
        (n_padded * exact_share(&mut paddings, threshold_bytes) / n_filled.max(1.0)).min(0.5);
    let p_unknown = (n_padded + 1.0) / (n_padded + n_filled + 2.0);
    // First as if each block without padding left data.
    let [mut of_filled, mut of_unknown] = [[[0.0; N_BINS]; 2], [[p_unknown; N_BINS]; 2]];
    for _ in 0..EM_ITERATIONS {
        let mut left = Blocks::new(GapHistogram::contention());
        let mut emptied = Blocks::new(GapHistogram::underflow());
        emptied.add(&padded, |_, _| 1.0);
        for (counts, p) in [(&filled, &of_filled), (&unknown, &of_unknown)] {
            emptied.add(counts, |size, pause| p[size][pause]);
            left.add(counts, |size, pause| 1.0 - p[size][pause]);
        }
        let (left, emptied) = (left.likelihood(), emptied.likelihood());
        let posterior = |prior: f64| -> Counts {
            std::array::from_fn(|size| {
                std::array::from_fn(|pause| {
                    let empty = prior * emptied[size][pause];
                    empty / (empty + (1.0 - prior) * left[size][pause])
                })
            })
        };
        (of_filled, of_unknown) = (posterior(p_filled), posterior(p_unknown));
    }
    let p_empty = |block: &UnpaddedBlock| match block.sign {
        PaddingSign::Padded { .. } => 1.0,
        PaddingSign::Filled => of_filled[usize::from(block.is_part)][block.pause],
        PaddingSign::Unknown => of_unknown[usize::from(block.is_part)][block.pause],
    };
    blocks.iter().map(p_empty).collect()
}

/// Number of ends whose padding is no evidence, for each padded one: paddings are uniform up to the
/// difference between the sizes of grants, twice their median.
fn exact_share(paddings: &mut [u32], threshold_bytes: u32) -> f64 {
    let Some(median) = upper_median(paddings, u32::cmp) else { return 0.0 };
    (f64::from(threshold_bytes) + 1.0) / (2.0 * f64::from(median).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::gap;
    use super::*;

    fn block(sign: PaddingSign, is_part: bool, pause: i64) -> UnpaddedBlock {
        UnpaddedBlock { sign, is_part, pause: gap::bin(Some(pause)) }
    }

    /// Posteriors of the last `n` blocks.
    fn last(n: usize, blocks: &[UnpaddedBlock]) -> Vec<f64> {
        let mut p_empty = judge(blocks, 0);
        p_empty.split_off(p_empty.len() - n)
    }

    /// A cell that cuts blocks to the queue: bursts of whole TTIs, with a part at the end.
    #[test]
    fn a_lost_or_exactly_filled_part_before_a_pause_emptied_the_queue() {
        let burst = |n: i64| {
            let full = block(PaddingSign::Filled, false, 1);
            [full, full, block(PaddingSign::Padded { bytes: 5 + n as u32 % 50 }, true, 20 + n % 30)]
        };
        let mut blocks: Vec<UnpaddedBlock> = (0..200).flat_map(burst).collect();
        blocks.extend([
            block(PaddingSign::Unknown, true, 31),
            block(PaddingSign::Unknown, false, 1),
            block(PaddingSign::Filled, true, 31),
            block(PaddingSign::Filled, true, 33),
            block(PaddingSign::Filled, false, 3),
        ]);
        let p_empty: Vec<bool> = last(5, &blocks).iter().map(|p| *p > 0.5).collect();
        assert_eq!(p_empty, [true, false, true, true, false]);
    }

    /// A cell that shares TTIs among users: parts and pauses are contention.
    #[test]
    fn parts_and_pauses_of_a_shared_cell_left_data() {
        let waits = (0..600).map(|n| block(PaddingSign::Filled, true, 1 + n % 9));
        let ends = (0..10).map(|n| block(PaddingSign::Padded { bytes: 40 }, true, 50 + n));
        let mut blocks: Vec<UnpaddedBlock> = waits.chain(ends).collect();
        blocks.extend([
            block(PaddingSign::Unknown, true, 4),
            block(PaddingSign::Filled, true, 9),
            // Once, a longer wait than any other.
            block(PaddingSign::Filled, true, 14),
        ]);
        assert!(last(3, &blocks).iter().all(|p| *p < 0.5), "{:?}", last(3, &blocks));
    }

    #[test]
    fn a_log_without_ends_has_none() {
        let blocks = [block(PaddingSign::Filled, true, 40); 30];
        assert!(judge(&blocks, 0).iter().all(|p| *p < 0.01));
        assert!(judge(&[], 0).is_empty());
    }
}
