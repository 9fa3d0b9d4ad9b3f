//! A sender's pace, seen in allocations alone.
//!
//! An application that sends a packet at a time (voice, a constant rate) gets a block for each,
//! and the queue is empty in between. Such blocks are all of one size, as if each were full. They
//! show two things that a backlog does not: they hold the same bytes whatever the MCS, or they
//! take a part of the carrier and another never follows at once. The former is sure. The latter
//! is also what a small, steady share of a busy cell looks like, so it is unclear.

use super::allocation::{AllocatedBlock, CellHabit};

/// What a stretch of log with a pace shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Each block holds a packet.
    Packets,
    /// Each block holds a packet, or is a share of a cell with many users.
    Unclear,
}

/// Minimum number of blocks (chosen here: half a second of a voice call).
const MIN_BLOCKS: usize = 25;
/// Share of the blocks that another follows at once, below which a backlog is not seen: of any
/// sizes, and of one size (chosen here: a packet every second TTI, with jitter, reaches 0.5; in a
/// shared cell sizes vary).
const FOLLOWED_SHARE: [f64; 2] = [0.1, 0.6];
/// Blocks of one size with a smaller part of the carrier are no share of a backlog even if they
/// come in each TTI (chosen here: there are not control channels for ten users in each TTI).
const SMALL_SHARE: f64 = 0.1;
/// A block takes most of its carrier from this share on (chosen here: a cell that trims gives at
/// least 0.85 of the PRBs).
const CARRIER_SHARE: f64 = 2.0 / 3.0;
/// Share of the blocks that have one size.
const ONE_SIZE_SHARE: f64 = 0.9;
/// Sizes of a packet are within this factor: the TBS tables' steps (TS 36.213, table 7.1.7.2.1-1)
/// and the header's bytes.
const SIZE_STEP: f64 = 1.15;
/// The MCS varies if the PRBs of blocks of one size do by this factor (chosen here).
const PRB_RANGE: f64 = 1.5;

/// The pace of blocks, if they have one.
pub(super) fn of(blocks: &[AllocatedBlock], largest_prb: u32, habit: CellHabit) -> Option<Pace> {
    if blocks.len() < MIN_BLOCKS {
        return None;
    }
    let is_one_size = is_one_size(blocks);
    if is_one_size && is_mcs_varied(blocks) {
        return Some(Pace::Packets);
    }
    let cell_prb = f64::from(blocks.iter().map(|b| b.prb_cell).max().unwrap_or(0));
    let largest = f64::from(largest_prb);
    let followed = blocks.iter().filter(|b| b.gap == Some(1)).count() as f64;
    let has_pauses = followed < FOLLOWED_SHARE[usize::from(is_one_size)] * blocks.len() as f64;
    let is_pace = has_pauses || largest < SMALL_SHARE * cell_prb;
    let is_partial = cell_prb == 0.0 || largest < CARRIER_SHARE * cell_prb;
    let is_cut = is_one_size || has_pauses && cell_prb > 0.0 && habit == CellHabit::Trims;
    (is_pace && is_partial && is_cut).then_some(Pace::Unclear)
}

fn is_one_size(blocks: &[AllocatedBlock]) -> bool {
    let bytes = sorted(blocks, |b| b.tbs_bytes);
    let (n, median) = (bytes.len(), bytes[bytes.len() / 2]);
    let is_same = |bytes: u32| {
        let ratio = f64::from(bytes) / f64::from(median);
        (1.0 / SIZE_STEP..=SIZE_STEP).contains(&ratio)
    };
    let same = bytes.into_iter().filter(|bytes| is_same(*bytes)).count();
    median > 0 && same as f64 >= ONE_SIZE_SHARE * n as f64
}

/// Whether blocks take different numbers of PRBs, not only now and then.
fn is_mcs_varied(blocks: &[AllocatedBlock]) -> bool {
    let prb = sorted(blocks, |b| b.prb);
    let (low, high) = (prb[prb.len() / 10], prb[prb.len() * 9 / 10]);
    low > 0 && f64::from(high) >= PRB_RANGE * f64::from(low)
}

fn sorted(blocks: &[AllocatedBlock], value: impl Fn(&AllocatedBlock) -> u32) -> Vec<u32> {
    let mut values: Vec<u32> = blocks.iter().map(value).collect();
    values.sort_unstable();
    values
}

#[cfg(test)]
mod tests {
    use super::super::allocation::judge;
    use super::*;

    /// Blocks of `(PRBs, bytes)` at intervals of so many TTIs, in a cell of 100 PRBs.
    fn paced(sizes: &[(u32, u32)], pauses: &[i64]) -> Vec<AllocatedBlock> {
        let mut tti = 0;
        (0..300)
            .map(|i| {
                let ((prb, tbs_bytes), gap) = (sizes[i % sizes.len()], pauses[i % pauses.len()]);
                let gap = Some(gap);
                let (prb_cell, paused_long) = (100, false);
                let block = AllocatedBlock { tti, prb, prb_cell, tbs_bytes, gap, paused_long };
                tti += pauses[i % pauses.len()];
                block
            })
            .collect()
    }

    fn check(blocks: &[AllocatedBlock], habit: CellHabit, p_empty: std::ops::RangeInclusive<f64>) {
        let (found, judged) = judge(blocks);
        assert_eq!(found, habit);
        let outside = judged.iter().find(|one| !p_empty.contains(&one.p_empty));
        assert!(outside.is_none(), "{outside:?}");
    }

    #[test]
    fn packets_at_a_pace_are_no_backlog() {
        for pauses in [&[2][..], &[5], &[10], &[20], &[19, 22, 18, 21], &[4, 6, 5, 3, 7]] {
            // Voice, a packet of a constant rate, and voice with comfort noise.
            for sizes in [&[(4, 200)][..], &[(20, 1500)], &[(4, 200), (4, 200), (2, 60)]] {
                let (_, judged) = judge(&paced(sizes, pauses));
                let sure = judged.iter().find(|one| one.p_empty < 0.5);
                assert_eq!(sure, None, "{sizes:?} each {pauses:?}");
            }
        }
        check(&paced(&[(20, 1500)], &[5]), CellHabit::Unclear, 0.5..=0.5);
        // Every second TTI, with jitter; a small packet in each.
        check(&paced(&[(20, 1500)], &[1, 3, 2]), CellHabit::Unclear, 0.5..=0.5);
        check(&paced(&[(4, 200)], &[1]), CellHabit::Unclear, 0.5..=0.5);
    }

    #[test]
    fn the_carrier_is_not_known() {
        let unknown = |sizes| {
            let blocks = paced(sizes, &[5]).into_iter();
            blocks.map(|b| AllocatedBlock { prb_cell: 0, ..b }).collect::<Vec<_>>()
        };
        check(&unknown(&[(20, 1500)]), CellHabit::Unclear, 0.5..=0.5);
        // A backlog under a changing MCS.
        check(&unknown(&[(48, 4395), (48, 3240), (48, 2500)]), CellHabit::Trims, 0.0..=0.1);
    }

    #[test]
    fn the_same_bytes_whatever_the_mcs_are_packets() {
        let sizes = [(24, 1500), (12, 1572), (18, 1620), (36, 1540)];
        for pauses in [&[1][..], &[2], &[5], &[1, 3, 2]] {
            check(&paced(&sizes, pauses), CellHabit::Trims, 0.9..=1.0);
        }
    }

    #[test]
    fn a_backlog_keeps_its_verdict() {
        let backlogged = |sizes: &[(u32, u32)], pauses: &[i64]| {
            let (_, judged) = judge(&paced(sizes, pauses));
            assert!(judged.iter().all(|one| one.p_empty < 0.1), "{sizes:?} each {pauses:?}");
        };
        // The whole carrier in turn with other users; a share of it in each TTI.
        backlogged(&[(96, 4395)], &[5]);
        backlogged(&[(96, 4395)], &[1]);
        backlogged(&[(25, 1100)], &[1]);
        backlogged(&[(25, 1100), (33, 1500), (20, 800), (50, 2200)], &[1, 1, 2]);
    }
}
