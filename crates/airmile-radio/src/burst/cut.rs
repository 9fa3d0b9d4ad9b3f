//! Padding that counters report for several blocks, as evidence that the cell cuts blocks to the queue.
//!
//! A block that is cut to the queue is too large by less than a group of PRBs, so a cell that cuts blocks gives
//! each of them half a group of padding, and several together nearly the same each time. A cell that
//! divides TTIs among users pads the last block of a burst only, by any number of bytes.

use super::counters::GoodBlock;
use super::tti_row::TtiRow;
use crate::small_map::SmallMap;

/// The padding is that of cut blocks within these factors (chosen here: groups of which the largest
/// is not known, and retransmitted blocks that are counted late).
const FACTORS: [f64; 2] = [0.5, 2.0];
/// The quartiles of the padding differ by less than this factor (chosen here: those of the sum of two
/// cut blocks do by 1.8, those of one number of bytes between 0 and any other by 3).
const SPREAD: f64 = 2.5;
/// Blocks needed to judge a cell (chosen here: two readings in a busy cell).
const MIN_BLOCKS: usize = 50;
/// Numbers of PRBs in a group (TS 38.214, table 5.1.2.2.1-1, and TS 36.213, table 7.1.6.1-1), and the share of
/// blocks that consist of groups (chosen here: the last group of a carrier may be smaller; of any numbers of
/// PRBs, half are even).
const GROUPS_PRB: [u32; 5] = [16, 8, 4, 3, 2];
const GROUPED_SHARE: f64 = 0.7;

/// The padding of several blocks in relation to what they have if each that takes a part of the carrier is cut to the
/// queue: such a block is too large by less than a PRB, so by half of one on average. By default, no counter reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct CutPadding {
    /// 0: not counted; [`Self::WHOLE`], [`Self::MOST`], or the ratio above [`Self::WHOLE`].
    steps: u8,
    /// The carrier of the block, and its PRBs there.
    cell: u8,
    n_prb: u16,
}

impl CutPadding {
    /// Of a block of the whole carrier, which is not cut.
    const WHOLE: u8 = 1;
    /// Of blocks that are padding for the larger part: most of them emptied the queue.
    const MOST: u8 = u8::MAX;
    /// Steps of what is kept of the ratio.
    const STEPS: f64 = 4.0;
    /// A block is aligned by up to some bytes of padding, cut or not (chosen here: the headers of a subPDU
    /// and of a segment, TS 38.321, 6.1.2, and TS 38.322, 6.2.2.4, are 8 bytes at most).
    const ALIGNED_BYTES: f64 = 16.0;
    /// Of so few blocks with much padding, one may have all of it (chosen here).
    const MIN_BLOCKS: usize = 3;

    /// Of one of several blocks with these [`Self::steps`].
    pub(super) const fn new(steps: u8, block: &GoodBlock) -> Self {
        Self { steps, cell: block.cell, n_prb: block.n_prb }
    }

    /// What is kept of the padding, of blocks of the whole carrier, and of a part.
    pub(super) fn steps(blocks: &[GoodBlock], padding_bytes: u64) -> [u8; 2] {
        let (mut bytes, mut expected_bytes) = ([0, 0], 0.0);
        for one in blocks {
            bytes[usize::from(one.is_part())] += u64::from(one.bytes);
            if one.is_part() && one.n_prb > 0 {
                let prb_bytes = f64::from(one.bytes) / f64::from(one.n_prb);
                expected_bytes += prb_bytes.max(2.0 * Self::ALIGNED_BYTES) / 2.0;
            }
        }
        let [whole_bytes, part_bytes] = bytes;
        let ratio = padding_bytes as f64 / f64::max(expected_bytes, f64::MIN_POSITIVE);
        let largest = f64::from(Self::MOST - Self::WHOLE - 2);
        let cut = Self::WHOLE + 1 + (ratio * Self::STEPS).round().min(largest) as u8;
        let are_enough = blocks.len() >= Self::MIN_BLOCKS;
        // The blocks of a part may have all the padding that fits in them.
        let in_whole_bytes = padding_bytes.saturating_sub(part_bytes);
        [
            if are_enough && in_whole_bytes > whole_bytes / 2 { Self::MOST } else { Self::WHOLE },
            if are_enough && padding_bytes > (whole_bytes + part_bytes) / 2 {
                Self::MOST
            } else {
                cut
            },
        ]
    }

    /// Whether a counter reports it.
    pub(super) const fn is_counted(self) -> bool {
        self.steps > 0
    }

    /// Whether the blocks are padding for the larger part.
    pub(super) const fn is_most(self) -> bool {
        self.steps == Self::MOST
    }

    /// The PRBs of a part of the carrier, and the ratio, rounded; `None` if no counter reports the padding, if the
    /// block takes the whole carrier, or if the padding is the larger part.
    pub(super) fn part(self) -> Option<(u32, f64)> {
        let steps = self.steps.checked_sub(Self::WHOLE + 1).filter(|_| !self.is_most())?;
        Some((self.n_prb.into(), f64::from(steps) / Self::STEPS))
    }
}

/// Finds blocks that were cut to the queue.
pub(super) struct CutBlocks {
    /// Padding from which on a carrier's blocks were cut, of the carriers that cut them.
    least: SmallMap<u8, f64>,
}

impl CutBlocks {
    /// Learns from all rows which carriers cut blocks.
    pub(super) fn learn(rows: &[TtiRow]) -> Self {
        let mut parts: SmallMap<u8, Vec<(u32, f64)>> = SmallMap::default();
        for row in rows {
            if let Some(part) = part(row) {
                parts.or_insert_with(row.grants.counted.cell, Vec::new).push(part);
            }
        }
        let mut out = SmallMap::default();
        for (cell, parts) in parts.iter() {
            if let Some(least) = least(parts) {
                out.insert(*cell, least);
            }
        }
        Self { least: out }
    }

    /// Whether a row has a block that was cut, or one of several that are mostly padding.
    pub(super) fn contain(&self, row: &TtiRow) -> bool {
        let counted = row.grants.counted;
        let least = self.least.iter().find(|(cell, _)| *cell == counted.cell);
        counted.is_most()
            || part(row).zip(least).is_some_and(|((_, padding), (_, least))| padding >= *least)
    }
}

/// The PRBs of a part of a carrier, and its padding with that of other rows; `None` if it is known for the row alone.
fn part(row: &TtiRow) -> Option<(u32, f64)> {
    row.grants.counted.part().filter(|_| row.grants.padding_bytes().is_none())
}

fn least(parts: &[(u32, f64)]) -> Option<f64> {
    if parts.len() < MIN_BLOCKS {
        return None;
    }
    let is_grouped = |group_prb: &u32| {
        let n = parts.iter().filter(|(prb, _)| prb.is_multiple_of(*group_prb)).count();
        n as f64 >= GROUPED_SHARE * parts.len() as f64
    };
    let group_prb = f64::from(GROUPS_PRB.into_iter().find(is_grouped).unwrap_or(1));
    let mut padding: Vec<f64> = parts.iter().map(|(_, padding)| *padding).collect();
    padding.sort_by(f64::total_cmp);
    let [low, high] = [1, 3].map(|quarter| padding[quarter * padding.len() / 4]);
    let [least, most] = FACTORS.map(|factor| factor * group_prb);
    (least <= low && high <= most && high < SPREAD * low).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of readings, as their PRBs and the padding of a reading's blocks in PRBs, over half of
    /// their number.
    fn readings(n: u32, each: impl Fn(u32) -> (u32, f64)) -> Vec<(u32, f64)> {
        (0..n).flat_map(|nth| [each(nth); 30]).collect()
    }

    #[test]
    fn a_cell_that_cuts_has_the_same_padding_each_time() {
        // PRBs one at a time, and in groups of four.
        let sums = |nth| f64::from(8 + nth * 7 % 5) / 10.0;
        assert_eq!(least(&readings(40, |nth| (20 + nth % 31, sums(nth)))), Some(0.5));
        assert_eq!(least(&readings(40, |nth| (4 * (5 + nth % 9), 4.0 * sums(nth)))), Some(2.0));
        assert_eq!(least(&readings(1, |nth| (20, sums(nth)))), None, "too few");
    }

    #[test]
    fn other_padding_shows_no_cuts() {
        // Some bytes of alignment in each block.
        assert_eq!(least(&readings(40, |nth| (20 + nth % 31, 0.25))), None);
        // One block of each reading, of any number of bytes.
        for most in [1.0, 1.5, 2.0, 2.7, 4.0, 8.0] {
            let padding = |nth| f64::from(nth * 37 % 100) / 100.0 * most;
            assert_eq!(least(&readings(100, |nth| (20 + nth % 31, padding(nth)))), None, "{most}");
        }
        // Allocations that are much too large.
        assert_eq!(least(&readings(40, |nth| (20 + nth % 31, 9.0))), None);
    }
}
