//! Evidence from allocations alone: number of PRBs, and times.
//!
//! What an allocation shows about the queue depends on the cell, so the cell's habit is
//! inferred first:
//!
//! - The cell *trims*: a block takes the whole carrier, or no more than the queue needs.
//!   Then any allocation below the full one emptied the queue, as in BurstTracker's figure
//!   4, where RB fractions are bimodal. A cell counts as trimming if blocks below the full
//!   one are rare or are not followed at once by others, or if block sizes match whole
//!   packets whatever the MCS: a queue emptied each time by rate-limited arrivals.
//! - The cell *shares* TTIs (or never trims): sizes vary with the other users. Then the
//!   pause after a block and its size relative to its predecessors are judged together, by
//!   a mixture of two classes that EM fits to the log.
//! - It is *unclear* which of both: a sender that paces its packets looks like a small share of a
//!   busy cell (see [`pace`]).

use std::collections::BTreeMap;

use airmile_model::TtiSpan;
use airmile_model::median::upper_median;

use super::gap::{self, EM_ITERATIONS, N_BINS};
use super::pace::{self, Pace};

/// A block of user data, with the fields that this evidence needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AllocatedBlock {
    pub tti: i64,
    pub prb: u32,
    /// PRBs of the carriers; 0: unknown.
    pub prb_cell: u32,
    pub tbs_bytes: u32,
    /// TTIs to the next one; `None`: no further block in this stretch.
    pub gap: Option<i64>,
    /// Whether the pause is too long for contention.
    pub paused_long: bool,
}

/// TTIs from which on a pause cannot be contention.
pub(super) const fn long_gap(numerology: u8) -> i64 {
    TtiSpan::from_ms(LONG_GAP_MS, numerology).0
}

/// The result for an allocation: the posterior that it emptied the queue, and whether its
/// size or the pause after it decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AllocationJudgement {
    pub p_empty: f64,
    pub by_size: bool,
}

/// How the cell assigns its PRBs, as inferred from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellHabit {
    /// Whole TTIs to one user, trimmed to the queue: sizes decide.
    #[default]
    Trims,
    /// TTIs shared, or grants never trimmed: pauses decide, with sizes as support.
    Shares,
    /// Blocks of a part of the carrier with pauses between them: a sender's pace, or a small
    /// share.
    Unclear,
}

/// A block is full at this share of the largest allocation in the log or above: PRBs come
/// in groups of up to 4 (TS 36.213, 7.1.6.1), and a cell may leave some out.
const FULL_SHARE: f64 = 0.95;
/// A user who waits this many ms has an empty queue (chosen here: the longest contention
/// in the simulated logs is 101 ms).
const LONG_GAP_MS: i64 = 150;
/// Share of the blocks below full that others follow at once; below it they are burst
/// ends, not shares (chosen here, between 0.0-0.3 and 0.6-1.0 in simulated logs).
const FOLLOWED_SHARE: f64 = 0.3;
/// Part of all back-to-back blocks that are below full; below it the cell does
/// not share (chosen here: sharing shows in tens of percent).
const BELOW_FULL_SHARE: f64 = 0.05;
/// Share of the blocks below full that must match whole packets beyond chance.
const PACKET_SIZED_SHARE: f64 = 0.5;
/// Blocks needed to find a packet size (chosen here).
const MIN_PACKET_BLOCKS: usize = 50;
/// Minimum number of blocks, and a twentieth of a PRB count's blocks, in which different
/// PRB counts must hold the same packets (chosen here).
const MIN_SHAPE_BLOCKS: usize = 3;
/// Range of packet sizes searched, in bytes: an Ethernet MTU and headers at most.
const PACKET_BYTES: (f64, f64) = (300.0, 1600.0);
/// Maximum number of queued packets in a block that its size can reveal.
const PACKETS_PER_BLOCK: u32 = 3;
/// Weight of "any size" in the backlogged class, as the habit changes (chosen here).
const SIZE_MISFIT: f64 = 0.02;
/// A block cut to the queue.
const CUT: AllocationJudgement = AllocationJudgement { p_empty: 0.95, by_size: true };
/// As likely emptied as not.
pub(super) const UNCLEAR: f64 = 0.5;
/// Number of preceding blocks that give the expected share, and how far back.
const REFERENCE_BLOCKS: usize = 3;
const REFERENCE_LOOKBACK: usize = 8;
const REFERENCE_GAP_TTIS: i64 = 8;
const REFERENCE_SPAN_TTIS: i64 = 40;

/// Whether an allocation is below the full one, given the largest in the log.
pub(super) fn is_part(prb: u32, largest: u32) -> bool {
    f64::from(prb) < FULL_SHARE * f64::from(largest)
}

/// Judges every allocation of a stretch of log.
pub(super) fn judge(blocks: &[AllocatedBlock]) -> (CellHabit, Vec<AllocationJudgement>) {
    let largest = blocks.iter().map(|b| b.prb).max().unwrap_or(0);
    let is_full = |b: &AllocatedBlock| !is_part(b.prb, largest);
    let habit = habit(blocks, &is_full);
    let (habit, p_full) = match pace::of(blocks, largest, habit) {
        Some(Pace::Packets) => return (CellHabit::Trims, vec![CUT; blocks.len()]),
        Some(Pace::Unclear) => (CellHabit::Unclear, UNCLEAR),
        None => (habit, 0.05),
    };
    let judgements = match habit {
        CellHabit::Shares => judge_shared(blocks, largest),
        CellHabit::Trims | CellHabit::Unclear => blocks
            .iter()
            .map(|b| {
                let by_size = !is_full(b);
                let p_empty = if by_size || b.paused_long { CUT.p_empty } else { p_full };
                AllocationJudgement { p_empty, by_size }
            })
            .collect(),
    };
    (habit, judgements)
}

fn habit(blocks: &[AllocatedBlock], is_full: &dyn Fn(&AllocatedBlock) -> bool) -> CellHabit {
    // If blocks before the longest pauses are full, the cell does not trim.
    let (mut long, mut long_full) = (0_usize, 0_usize);
    for block in blocks.iter().filter(|b| b.paused_long && b.gap.is_some()) {
        long += 1;
        long_full += usize::from(is_full(block));
    }
    if long >= 3 && 2 * long_full > long {
        return CellHabit::Shares;
    }
    // The smallest grants are mostly STATUS PDUs, which follow no data.
    let smallest = blocks.iter().map(|b| b.prb).min().unwrap_or(0);
    let (mut below, mut followed, mut back_to_back) = (0_usize, 0_usize, 0_usize);
    for block in blocks {
        let next = block.gap == Some(1);
        back_to_back += usize::from(next);
        if !is_full(block) && block.prb > smallest {
            below += 1;
            followed += usize::from(next);
        }
    }
    let rare = (followed as f64) < BELOW_FULL_SHARE * back_to_back.max(1) as f64;
    let ends = (followed as f64) < FOLLOWED_SHARE * below.max(1) as f64;
    if rare || ends || packet_sized_share(blocks, is_full, smallest) > PACKET_SIZED_SHARE {
        CellHabit::Trims
    } else {
        CellHabit::Shares
    }
}

/// Part of the blocks below full whose size is the smallest that holds a whole
/// number of equal packets, beyond what chance would give. PRBs come in steps,
/// so a block cut to the queue is larger than it by less than a step.
fn packet_sized_share(
    blocks: &[AllocatedBlock],
    is_full: &dyn Fn(&AllocatedBlock) -> bool,
    step_prb: u32,
) -> f64 {
    let cut: Vec<&AllocatedBlock> =
        blocks.iter().filter(|b| !is_full(b) && b.prb > step_prb && b.tbs_bytes > 0).collect();
    if cut.len() < MIN_PACKET_BLOCKS {
        return 0.0;
    }
    let span = |b: &AllocatedBlock| {
        let tbs = f64::from(b.tbs_bytes);
        (tbs - tbs * f64::from(step_prb) / f64::from(b.prb), tbs)
    };
    let packet = most_covered(&cut.iter().map(|b| span(b)).collect::<Vec<_>>());
    let mut hits_by_prb: BTreeMap<u32, usize> = BTreeMap::new();
    let mut chance = 0.0;
    for block in &cut {
        let (low, high) = span(block);
        let fits = |n: u32| {
            let bytes = f64::from(n) * packet;
            low < bytes && bytes <= high
        };
        if (1..=PACKETS_PER_BLOCK).any(fits) {
            *hits_by_prb.entry(block.prb).or_default() += 1;
        }
        chance += ((high - low) / packet).min(1.0);
    }
    let hits: usize = hits_by_prb.values().sum();
    // One shape repeated is a constant share as much as a constant packet.
    let shapes = hits_by_prb.values().filter(|&&n| n >= MIN_SHAPE_BLOCKS.max(hits / 20));
    if shapes.count() < 2 {
        return 0.0;
    }
    let n = cut.len() as f64;
    let (hit_share, chance) = (hits as f64 / n, chance / n);
    // With coarse steps every size fits: the test has no power.
    if chance < 0.5 { (hit_share - chance) / (1.0 - chance) } else { 0.0 }
}

/// The size covered by the most spans.
fn most_covered(spans: &[(f64, f64)]) -> f64 {
    let mut edges: Vec<(f64, i32)> = Vec::with_capacity(2 * spans.len());
    for &(low, high) in spans.iter().filter(|s| s.1 <= 1.3 * PACKET_BYTES.1) {
        edges.push((low, 1));
        edges.push((high, -1));
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut depth, mut best) = (0, (0, PACKET_BYTES.1));
    for (at, change) in edges {
        depth += change;
        if depth > best.0 && (PACKET_BYTES.0..=PACKET_BYTES.1).contains(&at) {
            best = (depth, at + 1.0);
        }
    }
    best.1
}

/// Prior counts of the contention pauses: this many in the initial shape, and a floor in
/// each bin (chosen here, about the number in a second of log).
const PRIOR_PAUSES: f64 = 20.0;
const FLOOR: f64 = 0.1;
const SIZE_CLASSES: usize = 7;

/// Class of a size relative to the reference share (chosen here: finer below it, where a
/// trimmed block lies).
fn size_class(ratio: f64) -> usize {
    const UPPER: [f64; SIZE_CLASSES - 1] = [0.15, 0.3, 0.5, 0.7, 0.9, 1.1];
    UPPER.iter().position(|&upper| ratio < upper).unwrap_or(SIZE_CLASSES - 1)
}

fn judge_shared(blocks: &[AllocatedBlock], largest: u32) -> Vec<AllocationJudgement> {
    let classes: Vec<usize> = (0..blocks.len())
        .map(|i| {
            let reference = reference_prb(&blocks[..=i]).unwrap_or(largest).max(1);
            size_class(f64::from(blocks[i].prb) / f64::from(reference))
        })
        .collect();
    // Sizes while backlogged: of blocks followed at once by others.
    let mut backlogged = [1.0; SIZE_CLASSES];
    for (block, &class) in blocks.iter().zip(&classes) {
        backlogged[class] += f64::from(u8::from(block.gap == Some(1)));
    }
    let sum: f64 = backlogged.iter().sum();
    let backlogged =
        backlogged.map(|n| (1.0 - SIZE_MISFIT) * n / sum + SIZE_MISFIT / SIZE_CLASSES as f64);

    // The blocks to classify: those with a pause. Initial values chosen here: ends are
    // small and their pauses can have any length, contention is short.
    let open: Vec<(usize, usize, usize)> = blocks
        .iter()
        .enumerate()
        .filter(|(_, b)| b.gap != Some(1))
        .map(|(i, b)| (i, classes[i], gap::bin(b.gap)))
        .collect();
    let mut emptied = [4.0, 3.0, 2.0, 2.0, 2.0, 1.0, 1.0].map(|n: f64| n / 15.0);
    let short_pauses = gap::short_pauses();
    let mut contention = short_pauses;
    let mut underflow = [1.0 / N_BINS as f64; N_BINS];
    let mut prior = 0.1;
    let mut judgements = vec![AllocationJudgement { p_empty: 0.02, by_size: false }; blocks.len()];
    for _ in 0..EM_ITERATIONS {
        // Prior counts keep a short log near the initial values.
        let mut contention_n = short_pauses.map(|p| PRIOR_PAUSES * p + FLOOR);
        let mut underflow_n = [FLOOR; N_BINS];
        let mut emptied_n = [1.0; SIZE_CLASSES];
        let mut total = 0.0;
        for &(i, class, bin) in &open {
            let empty = prior * underflow[bin] * emptied[class];
            let waiting = (1.0 - prior) * contention[bin] * backlogged[class];
            // Long pauses are not contention: they anchor the other class.
            let p = if blocks[i].paused_long { 1.0 } else { empty / (empty + waiting) };
            let by_size = emptied[class] * contention[bin] > underflow[bin] * backlogged[class];
            judgements[i] = AllocationJudgement { p_empty: p, by_size };
            total += p;
            underflow_n[bin] += p;
            contention_n[bin] += 1.0 - p;
            emptied_n[class] += p;
        }
        prior = (total + 1.0) / (open.len() as f64 + 10.0);
        contention = normalised(contention_n);
        underflow = normalised(underflow_n);
        emptied = normalised(emptied_n);
    }
    judgements
}

fn normalised<const N: usize>(counts: [f64; N]) -> [f64; N] {
    let sum: f64 = counts.iter().sum();
    counts.map(|n| n / sum)
}

/// Median PRBs of the blocks just before the last one of `blocks`.
fn reference_prb(blocks: &[AllocatedBlock]) -> Option<u32> {
    let (last, before) = blocks.split_last()?;
    let mut near: Vec<u32> = before
        .iter()
        .rev()
        .take(REFERENCE_LOOKBACK)
        .filter(|b| {
            b.gap.is_some_and(|gap| gap <= REFERENCE_GAP_TTIS)
                && last.tti - b.tti < REFERENCE_SPAN_TTIS
        })
        .take(REFERENCE_BLOCKS)
        .map(|b| b.prb)
        .collect();
    upper_median(&mut near, u32::cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(parts: &[(u32, u32, i64)]) -> Vec<AllocatedBlock> {
        let mut tti = 0;
        parts
            .iter()
            .map(|&(prb, tbs_bytes, gap)| {
                let paused_long = gap >= LONG_GAP_MS;
                let block = AllocatedBlock {
                    tti,
                    prb,
                    prb_cell: 50,
                    tbs_bytes,
                    gap: Some(gap),
                    paused_long,
                };
                tti += gap;
                block
            })
            .collect()
    }

    #[test]
    fn a_cell_that_gives_whole_ttis_trims() {
        let burst = [(48, 4395, 1), (48, 4395, 4), (48, 4395, 1), (12, 1000, 40)];
        let (habit, judged) = judge(&stretch(&burst.repeat(30)));
        assert_eq!(habit, CellHabit::Trims);
        assert!(judged[1].p_empty < 0.5, "contention of a full block");
        assert!(judged[3].p_empty > 0.5 && judged[3].by_size);
    }

    #[test]
    fn shares_are_not_taken_for_ends() {
        // The carrier alone, then a third of it, then a small block and a pause.
        let mut burst = vec![(16, 1400, 1); 60];
        burst[..10].fill((48, 4395, 1));
        burst[20].2 = 3;
        burst.extend([(3, 250, 35)]);
        let (habit, judged) = judge(&stretch(&burst.repeat(10)));
        assert_eq!(habit, CellHabit::Shares);
        assert!(judged[20].p_empty < 0.5, "{:?}", judged[20]);
        assert!(judged[60].p_empty > 0.5, "{:?}", judged[60]);
    }

    #[test]
    fn blocks_that_fit_whole_packets_are_ends() {
        // 1450 byte packets every second TTI, under changing MCS.
        let sizes = [(24, 1620, 1), (24, 1620, 2), (27, 1572, 1), (27, 1572, 2), (18, 1692, 2)];
        let mut blocks = sizes.repeat(40);
        blocks.extend([(48, 4395, 1), (3, 277, 50)]);
        let (habit, judged) = judge(&stretch(&blocks));
        assert_eq!(habit, CellHabit::Trims);
        assert!(judged[1].p_empty > 0.5);
    }

    #[test]
    fn untrimmed_grants_are_judged_by_pauses() {
        let mut burst = vec![(48, 4395, 1); 30];
        burst[7].2 = 3;
        burst[29].2 = 200;
        let (habit, judged) = judge(&stretch(&burst.repeat(10)));
        assert_eq!(habit, CellHabit::Shares);
        assert!(judged[7].p_empty < 0.5, "{:?}", judged[7]);
        assert!(judged[29].p_empty > 0.5, "{:?}", judged[29]);
    }
}
