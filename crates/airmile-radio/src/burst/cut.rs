//! Padding that counters report for several blocks, as evidence that the cell cuts blocks to the queue.
//!
//! A block that is cut to the queue is too large by less than a group of PRBs, so a cell that cuts blocks gives
//! each of them half a group of padding, and several together nearly the same each time. A cell that
//! divides TTIs among users pads the last block of a burst only, by any number of bytes.

use super::allocation;
use super::tti_row::TtiRow;

/// The padding is that of cut blocks within these factors (chosen here: groups of which the largest
/// is not known, and retransmitted blocks that are counted late).
const FACTORS: [f64; 2] = [0.5, 2.0];
/// The quartiles of the padding differ by less than this factor (chosen here: those of the sum of two
/// cut blocks do by 1.8, those of one number of bytes between 0 and any other by 3).
const SPREAD: f64 = 2.5;
/// Blocks needed to judge a cell (chosen here: two readings in a busy cell).
const MIN_BLOCKS: usize = 50;
/// Numbers of PRBs in a group (TS 38.214, table 5.1.2.2.1-1), and the share of blocks that consist of groups
/// (chosen here: the last group of a carrier may be smaller; of any numbers of PRBs, half are even).
const GROUPS_PRB: [u32; 4] = [16, 8, 4, 2];
const GROUPED_SHARE: f64 = 0.7;

/// Finds blocks that were cut to the queue.
pub(super) struct CutBlocks {
    largest_prb: u32,
    /// Padding from which on blocks were cut; `None` if the cell cuts none.
    least: Option<f64>,
}

impl CutBlocks {
    /// Learns from all rows whether the cell cuts blocks.
    pub(super) fn learn(rows: &[TtiRow]) -> Self {
        let largest_prb = TtiRow::largest_prb(rows);
        let parts: Vec<(u32, f64)> = rows.iter().filter_map(|row| part(row, largest_prb)).collect();
        Self { largest_prb, least: least(&parts) }
    }

    /// Whether a row's block was cut, or is one of several that are mostly padding.
    pub(super) fn contain(&self, row: &TtiRow) -> bool {
        if row.grants.counted.is_most() {
            return true;
        }
        let padding = part(row, self.largest_prb).map(|(_, padding)| padding);
        padding.zip(self.least).is_some_and(|(padding, least)| padding >= least)
    }
}

/// The PRBs of a part of the carrier, and its padding with that of other rows; `None` if it is known for the row alone.
fn part(row: &TtiRow, largest_prb: u32) -> Option<(u32, f64)> {
    let is_alone = row.grants.padding_bytes().is_some();
    let prb = row.grants.prb.filter(|prb| !is_alone && allocation::is_part(*prb, largest_prb))?;
    Some((prb, row.grants.counted.ratio()?))
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
