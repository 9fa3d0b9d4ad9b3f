//! Padding from counters: 0xB888 holds cumulative bytes of good blocks and of their
//! padding, about 25 times a second.
//!
//! The blocks between two readings follow from their bytes: the sizes of the good blocks
//! add up to the difference of the counter. If the padding counter did not change, none
//! of them emptied the queue. If it did, a single block emptied the queue; of several, at
//! least one did. If the padding is what blocks that are cut to the queue have, each block
//! below the full carrier did ([`CutPadding`]).

use std::collections::VecDeque;

use airmile_model::window::SegmentTti;
use airmile_model::{Grant, NrStats};

use super::allocation::is_part;
use super::cut::CutPadding;
use crate::fifo::Fifo;
use crate::small_map::SmallMap;

/// A reading is written within this many ns of its last block (chosen here: messages wait
/// less in the available logs).
const WRITTEN_WITHIN_NS: i64 = 100_000_000;
/// Before the first reading, blocks are kept for this many ns (chosen here: the default
/// lateness; the TTIs of older blocks are closed). LTE has no readings.
const BEFORE_READINGS_NS: i64 = 1_000_000_000;
/// Maximum number of blocks kept for later readings (chosen here: over a second at 120
/// kHz).
const MAX_BLOCKS: usize = 16_384;
/// Maximum number of readings kept for later blocks.
const MAX_READINGS: usize = 1_024;
/// Number of new blocks after which old ones are forgotten, before the first reading (chosen here).
const FORGET_EACH: usize = 1_024;

/// A block whose CRC passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoodBlock {
    pub at: SegmentTti,
    pub cell: u8,
    pub tb: u8,
    pub n_prb: u16,
    /// PRBs of the carrier's largest block up to and including this one, in its timing segment.
    largest_prb: u16,
    ns: i64,
    pub bytes: u32,
    /// Bytes of the carrier's good blocks up to and including this one.
    sum: u64,
}

impl GoodBlock {
    /// Whether it takes a part of its carrier.
    pub(super) fn is_part(&self) -> bool {
        is_part(self.n_prb.into(), self.largest_prb.into())
    }
}

#[derive(Debug, Clone, Copy)]
struct CounterReading {
    ns: i64,
    good_bytes: u64,
    padding_bytes: u64,
}

/// The blocks between a pair of readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountedBlocks {
    pub blocks: Vec<GoodBlock>,
    /// Their total padding.
    pub padding_bytes: u64,
    /// [`CutPadding::steps`] of the blocks of the whole carrier, and of those of a part.
    steps: [u8; 2],
}

impl CountedBlocks {
    fn new(blocks: Vec<GoodBlock>, padding_bytes: u64) -> Self {
        let steps = CutPadding::steps(&blocks, padding_bytes);
        Self { blocks, padding_bytes, steps }
    }

    /// The padding in relation to what cut blocks have, for one of its blocks.
    pub(super) fn cut(&self, block: &GoodBlock) -> CutPadding {
        let steps = self.steps[usize::from(block.is_part())];
        CutPadding::new(steps, block)
    }
}

#[derive(Debug, Clone, Default)]
struct CountedCarrier {
    blocks: Fifo<GoodBlock>,
    /// PRBs of the largest block of a timing segment.
    largest_prb: (u32, u16),
    /// Number of blocks since old ones were forgotten.
    n_new: usize,
    sum: u64,
    readings: VecDeque<CounterReading>,
    /// The last matched reading, and the sum of the blocks up to it.
    matched: Option<(CounterReading, u64)>,
}

/// Assigns blocks to readings.
#[derive(Debug, Clone, Default)]
pub(super) struct PaddingCounters {
    carriers: SmallMap<u32, CountedCarrier>,
    /// Whether there was a reading yet: without one, no block completes a pair.
    has_readings: bool,
    /// A carrier's number in readings and in blocks, once they differed: next to LTE's, NR's may be 1 in one
    /// message and 0 in another.
    renumbered: Option<[u32; 2]>,
}

impl PaddingCounters {
    /// Whether there was a reading yet.
    pub(super) const fn has_readings(&self) -> bool {
        self.has_readings
    }

    /// Takes a reading.
    pub(super) fn push_reading(&mut self, stats: &NrStats) {
        let Some(at) = stats.at else { return };
        if !self.has_readings {
            self.carriers.values_mut().for_each(CountedCarrier::forget_old);
            self.has_readings = true;
        }
        let number = self.number_in_blocks(stats.carrier);
        let carrier = self.carriers.or_insert_with(number, CountedCarrier::default);
        let readings = &mut carrier.readings;
        if readings.len() == MAX_READINGS {
            readings.pop_front();
        }
        readings.push_back(CounterReading {
            ns: at.ns,
            good_bytes: stats.good_bytes,
            padding_bytes: stats.padding_bytes,
        });
    }

    /// The number that a reading's carrier has in blocks: all differ alike.
    fn number_in_blocks(&mut self, carrier: u32) -> u32 {
        if self.renumbered.is_none()
            && let Some(lone) = self.carriers.lone_key().filter(|lone| *lone != carrier)
            && self.carriers.values().all(|of| of.readings.is_empty() && of.matched.is_none())
        {
            self.renumbered = Some([carrier, lone]);
        }
        let Some([in_readings, in_blocks]) = self.renumbered else { return carrier };
        let number = carrier.checked_add(in_blocks).and_then(|sum| sum.checked_sub(in_readings));
        if let Some(number) = number.filter(|_| carrier != in_blocks || in_readings == in_blocks) {
            return number;
        }
        // Both number carriers alike: earlier readings are in the wrong carrier.
        self.renumbered = Some([carrier; 2]);
        for of in self.carriers.values_mut() {
            of.readings.clear();
            of.matched = None;
        }
        carrier
    }

    /// Numbers the carrier of all readings as that of the first block.
    #[cold]
    fn renumber(&mut self, [lone, cell]: [u32; 2]) {
        if self.carriers.values().all(|of| of.blocks.as_slice().is_empty() && of.sum == 0) {
            self.renumbered = Some([lone, cell]);
            self.carriers.rename(lone, cell);
        }
    }

    /// Takes an NR block; returns the pairs of readings that it completes, if there were
    /// readings.
    #[inline]
    pub(super) fn push_block(&mut self, grant: &Grant) -> Option<Vec<CountedBlocks>> {
        let (at, bytes) = (grant.at?, grant.tbs_bytes?);
        let position = grant.position;
        let cell = position.cell.into();
        if let Some(lone) = self.carriers.lone_key().filter(|lone| *lone != cell) {
            self.renumber([lone, cell]);
        }
        let carrier = self.carriers.or_insert_with(cell, CountedCarrier::default);
        if grant.crc_ok == Some(true) {
            carrier.sum = carrier.sum.saturating_add(bytes.into());
            let n_prb = grant.n_prb.unwrap_or(0);
            let (segment, largest_prb) = carrier.largest_prb;
            let before = if segment == position.timing_segment { largest_prb } else { 0 };
            let largest_prb = before.max(n_prb);
            carrier.largest_prb = (position.timing_segment, largest_prb);
            if self.has_readings && carrier.blocks.as_slice().len() == MAX_BLOCKS {
                carrier.blocks.pop(1);
            }
            carrier.blocks.push(GoodBlock {
                at: (position.timing_segment, position.tti),
                cell: position.cell,
                tb: grant.tb.min(1),
                n_prb,
                largest_prb,
                ns: at.ns,
                bytes,
                sum: carrier.sum,
            });
            if !self.has_readings {
                carrier.n_new += 1;
                if carrier.n_new == FORGET_EACH {
                    carrier.forget_old();
                }
            }
        }
        let until = at.ns.saturating_sub(WRITTEN_WITHIN_NS);
        self.has_readings.then(|| self.complete(until))
    }

    /// The pairs of readings that blocks until a time complete.
    #[cold]
    fn complete(&mut self, until: i64) -> Vec<CountedBlocks> {
        self.carriers.values_mut().flat_map(|carrier| carrier.complete(until)).collect()
    }

    /// Ends the log.
    pub(super) fn finish(&mut self) -> Vec<CountedBlocks> {
        self.complete(i64::MAX)
    }
}

impl CountedCarrier {
    /// Forgets old blocks, before the first reading: at most one with each new block, if it was old
    /// when that came, or if there were too many.
    #[cold]
    fn forget_old(&mut self) {
        let blocks = self.blocks.as_slice();
        let before = blocks.len() - std::mem::take(&mut self.n_new);
        let mut n_old = 0;
        for (i, block) in blocks.iter().enumerate().skip(before) {
            let until = block.ns.saturating_sub(BEFORE_READINGS_NS);
            let is_old = i > n_old && blocks[n_old].ns < until;
            n_old += usize::from(is_old || i - n_old == MAX_BLOCKS);
        }
        self.blocks.pop(n_old);
    }

    /// Matches the readings up to a time, when all earlier blocks have arrived.
    fn complete(&mut self, until_ns: i64) -> Vec<CountedBlocks> {
        let mut out = Vec::new();
        while self.readings.front().is_some_and(|reading| reading.ns <= until_ns) {
            let Some(reading) = self.readings.pop_front() else { break };
            match self.matched {
                Some((before, sum)) => match self.after(&before, sum, &reading) {
                    Some(sum) => {
                        out.extend(self.take(before, &reading, sum));
                        self.matched = Some((reading, sum));
                    }
                    // Blocks are missing, or the counters were reset.
                    None => self.matched = None,
                },
                None => self.matched = self.first_match(&reading),
            }
        }
        out
    }

    /// The sum of the blocks up to a reading, if a block ends there.
    fn after(&self, before: &CounterReading, sum: u64, reading: &CounterReading) -> Option<u64> {
        let wanted = sum.checked_add(reading.good_bytes.checked_sub(before.good_bytes)?)?;
        let blocks = self.blocks.as_slice();
        let at = blocks.partition_point(|block| block.sum < wanted);
        let ends_there = blocks.get(at).is_some_and(|block| block.sum == wanted);
        (wanted == sum || ends_there).then_some(wanted)
    }

    /// The only position of a first reading from which the next one can be reached.
    fn first_match(&self, reading: &CounterReading) -> Option<(CounterReading, u64)> {
        let next = self.readings.front().filter(|n| n.good_bytes > reading.good_bytes)?;
        let near = |ns: i64, of: i64| ns.saturating_sub(of).saturating_abs() <= WRITTEN_WITHIN_NS;
        let step = next.good_bytes - reading.good_bytes;
        let blocks = self.blocks.as_slice();
        let reaches = |block: &&GoodBlock| {
            let wanted = block.sum.saturating_add(step);
            let at = blocks.partition_point(|block| block.sum < wanted);
            near(block.ns, reading.ns)
                && blocks.get(at).is_some_and(|b| b.sum == wanted && near(b.ns, next.ns))
        };
        let mut places = blocks.iter().filter(reaches);
        match (places.next(), places.next()) {
            (Some(only), None) => Some((*reading, only.sum)),
            _ => None,
        }
    }

    /// Takes the blocks up to a sum, with the padding added in between.
    fn take(
        &mut self,
        before: CounterReading,
        reading: &CounterReading,
        sum: u64,
    ) -> Option<CountedBlocks> {
        let padding_bytes = reading.padding_bytes.checked_sub(before.padding_bytes)?;
        let from = self.matched.map_or(0, |(_, sum)| sum);
        let all = self.blocks.as_slice();
        let n = all.partition_point(|block| block.sum <= sum);
        let blocks: Vec<GoodBlock> =
            all[..n].iter().filter(|block| block.sum > from).copied().collect();
        self.blocks.pop(n);
        (!blocks.is_empty()).then(|| CountedBlocks::new(blocks, padding_bytes))
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{Direction, Position, Stamp, TtiIndex};
    use proptest::prelude::*;

    use super::*;

    fn block(tti: i64, bytes: u32) -> Grant {
        Grant {
            at: Some(Stamp::modem(tti * 1_000_000)),
            tbs_bytes: Some(bytes),
            crc_ok: Some(true),
            ..Grant::new(Position::lte(tti), Direction::Dl, 10)
        }
    }

    fn reading(ms: i64, good_bytes: u64, padding_bytes: u64) -> NrStats {
        NrStats {
            at: Some(Stamp::modem(ms * 1_000_000)),
            carrier: 0,
            slots: 0,
            good_blocks: 0,
            failed_blocks: 0,
            retx_blocks: 0,
            harq_failures: 0,
            good_bytes,
            padding_bytes,
            retx_bytes: 0,
        }
    }

    #[test]
    fn blocks_are_assigned_by_their_bytes() {
        assert_eq!(assigned(0), [(5, 4, 0), (9, 4, 20), (13, 1, 3)]);
        // Blocks of 5 s before the readings are not all kept.
        assert_eq!(assigned(500), [(505, 4, 0), (509, 4, 20), (513, 1, 3)]);
    }

    /// First block, number and padding of what readings find that begin at a block.
    fn assigned(first: u64) -> Vec<(i64, usize, u64)> {
        let mut counters = PaddingCounters::default();
        // Readings are 3 ms late, after blocks of 100, 101, 102 ... bytes each 10 ms.
        let sum = |n: u64| 100 * (n + 1) + n * (n + 1) / 2;
        let mut found = Vec::new();
        for n in 0..first + 30 {
            if n == first {
                for (k, padding) in [(4, 7), (8, 7), (12, 27), (13, 30)] {
                    let ms = 10 * (first + k) + 3;
                    let good_bytes = 5_000 + sum(first + k);
                    counters.push_reading(&reading(ms as i64, good_bytes, padding));
                }
            }
            let block = block(10 * n as i64, 100 + n as u32);
            found.extend(counters.push_block(&block).into_iter().flatten());
        }
        found.extend(counters.finish());
        let of = |c: &CountedBlocks| (c.blocks[0].at.1.0 / 10, c.blocks.len(), c.padding_bytes);
        found.iter().map(of).collect()
    }

    #[test]
    fn readings_may_number_carriers_in_another_way() {
        // Readings before the blocks, and after them.
        let numbers = |before: &[u32], cells: &[u8], after: &[u32]| {
            let mut counters = PaddingCounters::default();
            let of = |carrier: u32| NrStats { carrier, ..reading(0, 0, 0) };
            before.iter().for_each(|carrier| counters.push_reading(&of(*carrier)));
            for cell in cells {
                let mut block = block(0, 100);
                block.position.cell = *cell;
                counters.push_block(&block);
            }
            after.iter().map(|at| counters.number_in_blocks(*at)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[], &[0], &[1, 1]), [0, 0]);
        assert_eq!(numbers(&[1, 1], &[0], &[1, 1]), [0, 0]);
        assert_eq!(numbers(&[0], &[0], &[0, 1]), [0, 1]);
        assert_eq!(numbers(&[0, 1], &[0], &[0, 1]), [0, 1]);
        assert_eq!(numbers(&[0, 1], &[0, 1], &[1, 0]), [1, 0]);
        // Each carrier's number is larger by one in readings.
        assert_eq!(numbers(&[], &[0], &[1, 2]), [0, 1]);
        assert_eq!(numbers(&[1], &[0, 1], &[1, 2]), [0, 1]);
        // The carrier of the first readings had no block yet.
        assert_eq!(numbers(&[1], &[0], &[0, 1]), [0, 1]);
    }

    #[test]
    fn readings_numbered_by_mistake_are_dropped() {
        let mut counters = PaddingCounters::default();
        counters.push_block(&block(0, 100));
        counters.push_reading(&NrStats { carrier: 1, ..reading(0, 0, 0) });
        counters.push_reading(&reading(40, 100, 0));
        let n: usize = counters.carriers.values().map(|of| of.readings.len()).sum();
        assert_eq!(n, 1, "the first one is another carrier's");
    }

    #[test]
    fn padding_in_relation_to_cut_blocks() {
        let block = |n_prb| good_block(n_prb, 100 * u32::from(n_prb));
        // Of 40 of the carrier's 50 PRBs; those of the whole carrier are not cut.
        let counted = |padding_bytes| {
            CountedBlocks::new([40, 50, 40, 50, 40].map(block).into(), padding_bytes)
        };
        let ratio = |padding_bytes| counted(padding_bytes).cut(&block(40)).part();
        let expected = [0.0, 0.5, 1.0, 4.0].map(|ratio| Some((40, ratio)));
        assert_eq!([0, 75, 150, 600].map(ratio), expected);
        assert_eq!(counted(150).cut(&block(50)).part(), None);
        // More than half of all bytes: of three blocks and more, most emptied the queue.
        assert!(counted(11_001).cut(&block(40)).is_most());
        let few = CountedBlocks::new([40, 50].map(block).into(), 8_000);
        assert!(!few.cut(&block(40)).is_most());
        assert_eq!(CutPadding::default().part(), None);
    }

    fn good_block(n_prb: u16, bytes: u32) -> GoodBlock {
        let at = (0, TtiIndex(0));
        GoodBlock { at, cell: 0, tb: 0, n_prb, largest_prb: 50, ns: 0, bytes, sum: 0 }
    }

    #[test]
    fn a_full_block_among_padded_parts_may_be_full() {
        let (full, part) = (good_block(50, 10_000), good_block(30, 6_000));
        let is_most = |blocks: &[GoodBlock], padding_bytes, block: &GoodBlock| {
            CountedBlocks::new(blocks.to_vec(), padding_bytes).cut(block).is_most()
        };
        let blocks = [full, part, part];
        assert!(is_most(&blocks, 11_880, &part));
        assert!(!is_most(&blocks, 11_880, &full));
        assert!(is_most(&blocks, 17_001, &full), "more than fits in the others");
        // A cell that gives whole slots.
        assert!(is_most(&[full; 3], 15_001, &full));
    }

    #[test]
    fn another_cell_may_be_narrower() {
        let mut counters = PaddingCounters::default();
        counters.push_reading(&reading(0, 0, 0));
        for (segment, n_prb) in [(0, 106), (0, 90), (1, 51), (1, 40)] {
            let mut block = block(0, 100);
            block.position.timing_segment = segment;
            block.n_prb = Some(n_prb);
            counters.push_block(&block);
        }
        let blocks = counters.carriers.values().flat_map(|of| of.blocks.as_slice());
        let parts: Vec<bool> = blocks.map(GoodBlock::is_part).collect();
        assert_eq!(parts, [false, true, false, true]);
    }

    #[test]
    fn where_blocks_are_missing_nothing_is_claimed() {
        let mut counters = PaddingCounters::default();
        for k in 1..5 {
            counters.push_reading(&reading(40 * k, 1_000 * k as u64, 0));
        }
        let mut found = Vec::new();
        for n in 0..20 {
            found.extend(counters.push_block(&block(10 * n, 333)).unwrap());
        }
        found.extend(counters.finish());
        assert_eq!(found, []);
    }

    proptest! {
        #[test]
        fn old_blocks_may_be_forgotten_some_at_a_time(
            gaps_ms in prop::collection::vec(-300_i64..400, 1..200),
            each in 1_u64..50,
        ) {
            let (mut at_once, mut later) = (CountedCarrier::default(), CountedCarrier::default());
            let mut ms = 0;
            for (n, gap) in (1..).zip(gaps_ms) {
                ms += gap;
                let (at, ns) = ((0, TtiIndex(ms)), ms * 1_000_000);
                for carrier in [&mut at_once, &mut later] {
                    carrier.blocks.push(GoodBlock { at, ns, bytes: 1, sum: n, ..good_block(0, 1) });
                    carrier.n_new += 1;
                }
                at_once.forget_old();
                if n % each == 0 {
                    later.forget_old();
                }
            }
            later.forget_old();
            prop_assert_eq!(later.blocks.as_slice(), at_once.blocks.as_slice());
        }
    }
}
