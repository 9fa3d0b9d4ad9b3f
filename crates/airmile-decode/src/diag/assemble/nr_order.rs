//! Slots of NR: records placed in time and given in order.
//!
//! Slots are counted in the record's own numerology, 10 * 2^mu a frame
//! (TS 38.211, 4.3.2). Frames, 0 to 1023, are unwrapped by the time of
//! writing, as subframes are in LTE.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{CellInfo, Direction, Grant, Position, Record, Stamp, TtiIndex};

use crate::diag::msg::NrSlot;
use crate::diag::msg::nr_pdsch_status::FRAME_NS;

/// A downlink block of NR.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NrDlBlock {
    pub(crate) time: NrSlot,
    pub(crate) carrier: u8,
    pub(crate) pci: Option<u16>,
    pub(crate) arfcn: Option<u32>,
    /// The grant, without its place.
    pub(crate) grant: Grant,
}

/// A batch follows its first record by less than this (as in LTE, with margin).
const HORIZON_NS: i64 = 2_000_000_000;
/// A frame counter that deviates from the clock by more than this is another timing.
const MAX_OFF_FRAMES: i64 = 100;

/// Frames count to 1023 (TS 38.211, 4.3.1).
const PERIOD_NS: i64 = 1024 * FRAME_NS;

/// Places blocks in time and returns them in order.
///
/// A block is written at or after its slot, so the minimum of `time of writing - slot`
/// over a timing segment gives the clock at slot 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct NrOrder {
    /// Clock at slot 0 of frame 0, from the block with the smallest delay.
    origin_ns: Option<i64>,
    segment: u32,
    cells: BTreeMap<u8, (Option<u16>, Option<u32>)>,
    /// By timing segment and time since frame 0.
    waiting: BTreeMap<(u32, i64), Vec<Record>>,
    /// `origin_ns` of the segments that have ended.
    ended: BTreeMap<u32, i64>,
}

impl NrOrder {
    /// Takes a downlink block.
    pub(crate) fn push(&mut self, at: Stamp, block: NrDlBlock) {
        let NrDlBlock { time, carrier, pci, arfcn, mut grant } = block;
        let cell = (pci, arfcn);
        let known = self.cells.insert(carrier, cell);
        if known.is_some_and(|known| known != cell) && carrier == 0 {
            self.next_segment();
        }
        let (counted, position) = self.place(at, time, carrier);
        if known != Some(cell) {
            let info = CellInfo {
                at: Some(at),
                timing_segment: self.segment,
                cell: carrier,
                pci,
                earfcn: arfcn,
                n_prb_dl: None,
                n_prb_ul: None,
                n_tx_antennas: None,
                band: None,
                source: "0xB887",
            };
            self.waiting.entry((self.segment, counted)).or_default().push(info.into());
        }
        grant.position = position;
        self.waiting.entry((self.segment, counted)).or_default().push(grant.into());
    }

    /// Takes a record of a slot, made of the slot's position.
    pub(crate) fn push_at(
        &mut self,
        at: Stamp,
        time: NrSlot,
        carrier: u8,
        record: impl FnOnce(Position) -> Record,
    ) {
        let (counted, position) = self.place(at, time, carrier);
        self.waiting.entry((self.segment, counted)).or_default().push(record(position));
    }

    /// Time since frame 0 and position of a slot of a message written at `at`.
    fn place(&mut self, at: Stamp, time: NrSlot, carrier: u8) -> (i64, Position) {
        let slots = time.slots_per_frame();
        let counted = self.unwrap(at.ns, time.since_frame_0_ns());
        let position = Position {
            timing_segment: self.segment,
            cell: carrier,
            numerology: time.numerology,
            tti: TtiIndex(counted.div_euclid(FRAME_NS) * slots + i64::from(time.slot)),
        };
        (counted, position)
    }

    fn next_segment(&mut self) {
        if let Some(origin_ns) = self.origin_ns.take() {
            self.ended.insert(self.segment, origin_ns);
        }
        self.segment += 1;
    }

    /// Time since frame 0 of a slot, given the time since the last frame 0 and the time
    /// of writing.
    fn unwrap(&mut self, at_ns: i64, in_period_ns: i64) -> i64 {
        let Some(origin_ns) = self.origin_ns else {
            self.origin_ns = Some(at_ns.saturating_sub(in_period_ns));
            return in_period_ns;
        };
        let latest = at_ns.saturating_sub(origin_ns);
        let periods =
            latest.saturating_sub(in_period_ns).saturating_add(PERIOD_NS / 2).div_euclid(PERIOD_NS);
        let counted = in_period_ns.saturating_add(periods.saturating_mul(PERIOD_NS));
        let ahead = counted.saturating_sub(latest);
        if ahead.saturating_abs() > MAX_OFF_FRAMES * FRAME_NS {
            self.next_segment();
            self.origin_ns = Some(at_ns.saturating_sub(counted));
        } else if ahead > 0 {
            self.origin_ns = Some(origin_ns.saturating_sub(ahead));
        }
        counted
    }

    /// Returns records before the horizon, or all, with their times.
    pub(crate) fn release(&mut self, now_ns: Option<i64>, sink: &mut impl FnMut(Record)) {
        if self.waiting.is_empty() && self.ended.is_empty() {
            return;
        }
        let until = now_ns
            .zip(self.origin_ns)
            .map(|(now, origin)| now.saturating_sub(origin).saturating_sub(HORIZON_NS));
        while let Some(entry) = self.waiting.first_entry() {
            let (segment, counted) = *entry.key();
            let old = segment < self.segment || now_ns.is_none() || Some(counted) < until;
            if !old {
                break;
            }
            let origin = self.ended.get(&segment).copied().or(self.origin_ns);
            let mut records = entry.remove();
            join_contents(&mut records);
            for mut record in records {
                let at = origin.map(|origin| Stamp::modem(origin.saturating_add(counted)));
                match &mut record {
                    Record::Grant(grant) => grant.at = at,
                    Record::MacBlock(block) => block.at = at,
                    Record::Rlc(pdu) => pdu.at = at,
                    Record::Bsr(report) => report.at = at,
                    _ => {}
                }
                sink(record);
            }
        }
        let first = self.waiting.first_key_value().map_or(self.segment, |(key, _)| key.0);
        self.ended.retain(|segment, _| *segment >= first);
    }
}

/// Gives the padding of downlink blocks to the grants of their slot that have their size,
/// and takes carrier and process from them. Blocks without a grant are left out: their
/// process is unknown. RLC PDUs name no process, and stay.
fn join_contents(records: &mut Vec<Record>) {
    let mut contents = Vec::new();
    records.retain(|record| match record {
        Record::MacBlock(block) if block.dir == Direction::Dl => {
            contents.push(block.clone());
            false
        }
        _ => true,
    });
    if contents.is_empty() {
        return;
    }
    // By size, in order of arrival: a damaged log can have any number in a slot.
    let mut grants: BTreeMap<u32, VecDeque<&mut Grant>> = BTreeMap::new();
    for record in records.iter_mut() {
        if let Record::Grant(grant) = record
            && let Some(tbs_bytes) = grant.tbs_bytes
            && grant.dir == Direction::Dl
            && grant.padding_bytes.is_none()
            && grant.crc_ok != Some(false)
        {
            grants.entry(tbs_bytes).or_default().push_back(grant);
        }
    }
    contents.retain_mut(|block| {
        let grant = grants.get_mut(&block.tbs_bytes).and_then(VecDeque::pop_front);
        let Some(grant) = grant else { return false };
        grant.padding_bytes = Some(block.padding_bytes);
        grant.data_bytes = block.data_bytes;
        block.position = grant.position;
        block.harq_id = grant.harq_id.unwrap_or(0);
        true
    });
    records.extend(contents.into_iter().map(Record::from));
}

#[cfg(test)]
mod tests {
    use airmile_model::{MacBlock, RlcMode, RlcPdu, RntiType};

    use super::*;

    fn grant(tbs_bytes: u32, harq_id: u8) -> Grant {
        let mut grant = Grant::new(Position::default(), Direction::Dl, 1);
        grant.tbs_bytes = Some(tbs_bytes);
        grant.harq_id = Some(harq_id);
        grant
    }

    fn content(tbs_bytes: u32, padding_bytes: u32) -> Record {
        MacBlock {
            at: None,
            position: Position::default(),
            dir: Direction::Dl,
            rnti: RntiType::C,
            harq_id: 0,
            tbs_bytes,
            rlc_pdus: 1,
            padding_bytes,
            data_bytes: None,
            lcids: String::new(),
        }
        .into()
    }

    fn pdu() -> Record {
        RlcPdu {
            at: None,
            position: Position::default(),
            dir: Direction::Dl,
            bearer: 4,
            signalling: Some(false),
            mode: RlcMode::Am,
            sn: None,
            size_bytes: 500,
            poll: Some(true),
            resegment: false,
            status: false,
        }
        .into()
    }

    /// Padding of the grants, and processes and padding of the blocks.
    fn joined(mut records: Vec<Record>) -> (Vec<Option<u32>>, Vec<(u8, u32)>) {
        join_contents(&mut records);
        let (mut grants, mut blocks) = (Vec::new(), Vec::new());
        for record in &records {
            match record {
                Record::Grant(grant) => grants.push(grant.padding_bytes),
                Record::MacBlock(block) => blocks.push((block.harq_id, block.padding_bytes)),
                _ => {}
            }
        }
        (grants, blocks)
    }

    #[test]
    fn contents_go_to_grants_of_their_size_in_order() {
        let mut failed = grant(100, 1);
        failed.crc_ok = Some(false);
        let (grants, blocks) = joined(vec![
            content(100, 7),
            failed.into(),
            grant(100, 2).into(),
            grant(200, 3).into(),
            content(200, 9),
            grant(100, 4).into(),
            content(100, 8),
            content(100, 6),
        ]);
        assert_eq!(grants, [None, Some(7), Some(9), Some(8)]);
        // The third of 100 bytes has no grant left.
        assert_eq!(blocks, [(2, 7), (3, 9), (4, 8)]);
    }

    #[test]
    fn without_a_grant_blocks_are_left_out_and_pdus_stay() {
        let mut records = vec![content(100, 7), pdu()];
        join_contents(&mut records);
        assert_eq!(records, [pdu()]);
    }

    #[test]
    fn many_contents_in_a_slot_take_linear_time() {
        // In quadratic time: 10^10 comparisons.
        let n = 100_000;
        let grants = (0..n).map(|_| grant(100, 0).into());
        let (grants, blocks) = joined(grants.chain((0..n).map(|i| content(100, i))).collect());
        assert!(grants.iter().copied().eq((0..n).map(Some)));
        assert_eq!(blocks.len(), grants.len());
    }
}
