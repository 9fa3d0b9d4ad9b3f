//! Slots of NR: records placed in time and given in order.
//!
//! Slots are counted in the record's own numerology, 10 * 2^mu a frame
//! (TS 38.211, 4.3.2). A slot is placed by its subframe of 1 ms, so timing segments,
//! the unwrapping of frames and the clock are those of LTE ([`Timing`]).

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{
    CellInfo, Direction, Grant, Hole, Position, Record, Stamp, Tti, TtiIndex, TtiSpan,
};

use super::timing::{CellId, MAX_CLOCK_BACK_NS, Timing};
use crate::diag::msg::NrSlot;

/// A downlink block of NR.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NrDlBlock {
    pub(crate) time: NrSlot,
    /// Its index; `None` if the message does not separate it from other fields.
    pub(crate) carrier: Option<u8>,
    pub(crate) pci: Option<u16>,
    pub(crate) arfcn: Option<u32>,
    /// The grant, without its place.
    pub(crate) grant: Grant,
}

/// The writing of a message about several slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotBatch {
    pub(crate) at: Stamp,
    /// The last of its slots.
    pub(crate) last: Option<NrSlot>,
}

impl SlotBatch {
    /// The time of writing if a slot had been written with the delay of the last one.
    fn written_ns(self, slot: NrSlot) -> i64 {
        let since = |last: NrSlot| last.since_frame_0_ns() - slot.since_frame_0_ns();
        let age_ns = self.last.map_or(0, |last| since(last).rem_euclid(PERIOD_NS));
        self.at.ns.saturating_sub(if age_ns < HORIZON_NS { age_ns } else { 0 })
    }
}

/// A batch follows its first record by less than this (as in LTE, with margin).
const HORIZON_NS: i64 = 2_000_000_000;

const SUBFRAME_NS: i64 = 1_000_000;
/// Frames count to 1023 (TS 38.211, 4.3.1).
const PERIOD_NS: i64 = airmile_model::tti::TTIS_PER_SFN_PERIOD * SUBFRAME_NS;

/// Blocks on new carriers alone, over this time, show a handover (chosen here: above a pause of the primary
/// cell while a further carrier sends, and below the horizon).
const HANDOVER_NS: i64 = 1_200_000_000;
/// Maximum part of a pause between two blocks that counts for it: the known carriers may pause, too.
const MAX_PAUSE_NS: i64 = 500_000_000;
/// Maximum number of records held (chosen here: a clock that stands still bounds none).
const MAX_HELD: usize = 65_536;
/// Maximum number of carriers distinguished (TS 38.331, maxNrofServingCells is 32).
const MAX_CARRIERS: usize = 32;

/// NR-ARFCN and PCI.
type CarrierId = (u32, u16);

/// A record without its place.
#[derive(Debug, Clone)]
enum Held {
    Block(NrDlBlock),
    Other(NrSlot, Record),
}

/// Places blocks in time and returns them in order.
#[derive(Debug, Clone, Default)]
pub(super) struct NrOrder {
    /// Of the subframes: the record with the smallest delay bounds their relation to the clock.
    timing: Timing,
    /// The carriers, by index: in order of appearance since the last handover.
    carriers: Vec<CarrierId>,
    /// A block on another one, and what came after it: that shows a further carrier or a handover.
    held: Vec<(SlotBatch, Held)>,
    /// Of the blocks since the last one on a known carrier: the time of the last one, and their duration.
    alone_ns: Option<(i64, i64)>,
    /// Of the last record.
    numerology: u8,
    cells: BTreeMap<u8, (Option<u16>, Option<u32>)>,
    /// By timing segment and time on the log's axis.
    waiting: BTreeMap<(u32, i64), Vec<Record>>,
}

impl NrOrder {
    /// Takes a downlink block.
    pub(super) fn push(&mut self, batch: SlotBatch, block: NrDlBlock) {
        let Some(id) = block.arfcn.zip(block.pci).filter(|_| block.carrier.is_none()) else {
            return self.put_block(batch, block);
        };
        let is_primary = self.carriers.first().is_none_or(|first| first.0 == id.0);
        // Another cell on the first carrier is a handover, too.
        if self.carriers.contains(&id) || (is_primary && self.held.is_empty()) {
            self.put_held();
            self.alone_ns = None;
            return self.put_block(batch, block);
        }
        let (last_ns, sum_ns) = self.alone_ns.unwrap_or((batch.at.ns, 0));
        let sum_ns = sum_ns + batch.at.ns.saturating_sub(last_ns).clamp(0, MAX_PAUSE_NS);
        self.alone_ns = Some((last_ns.max(batch.at.ns), sum_ns));
        self.hold(batch, Held::Block(block));
        if sum_ns >= HANDOVER_NS {
            self.hand_over();
        }
    }

    /// Adds a carrier, or takes another cell on it.
    fn add_carrier(&mut self, id: CarrierId) -> usize {
        let known = self.carriers.iter().position(|carrier| carrier.0 == id.0);
        let at = known.unwrap_or(self.carriers.len()).min(MAX_CARRIERS - 1);
        match self.carriers.get_mut(at) {
            Some(carrier) => *carrier = id,
            None => self.carriers.push(id),
        }
        at
    }

    /// Places what was held: its carriers are further ones.
    fn put_held(&mut self) {
        for (batch, held) in std::mem::take(&mut self.held) {
            match held {
                Held::Block(block) => self.put_block(batch, block),
                Held::Other(time, record) => self.put(batch, time, record),
            }
        }
    }

    /// Places what was held after a handover to the carrier of its first block.
    fn hand_over(&mut self) {
        if !self.held.is_empty() {
            self.carriers.clear();
            self.cells.clear();
            self.alone_ns = None;
        }
        self.put_held();
    }

    fn hold(&mut self, batch: SlotBatch, held: Held) {
        self.held.push((batch, held));
        if self.held.len() >= MAX_HELD {
            self.hand_over();
        }
    }

    fn put_block(&mut self, batch: SlotBatch, block: NrDlBlock) {
        let NrDlBlock { time, carrier, pci, arfcn, mut grant } = block;
        let by_arfcn = || arfcn.zip(pci).map_or(0, |id| self.add_carrier(id) as u8);
        let carrier = carrier.unwrap_or_else(by_arfcn);
        let primary = pci.filter(|_| carrier == 0).map(|pci| CellId { pci, earfcn: arfcn });
        let Some((key, position)) = self.place(batch, time, carrier, primary) else { return };
        let waiting = self.waiting.entry(key).or_default();
        if self.cells.insert(carrier, (pci, arfcn)) != Some((pci, arfcn)) {
            let info = CellInfo {
                at: Some(batch.at),
                timing_segment: position.timing_segment,
                cell: carrier,
                pci,
                earfcn: arfcn,
                n_prb_dl: None,
                n_prb_ul: None,
                n_tx_antennas: None,
                band: None,
                source: "0xB887",
            };
            waiting.push(info.into());
        }
        grant.position = position;
        waiting.push(grant.into());
    }

    /// Takes a record of a slot, without its position.
    pub(super) fn push_at(&mut self, batch: SlotBatch, time: NrSlot, record: Record) {
        if self.held.is_empty() {
            self.put(batch, time, record);
        } else {
            self.hold(batch, Held::Other(time, record));
        }
    }

    fn put(&mut self, batch: SlotBatch, time: NrSlot, mut record: Record) {
        let Some((key, position)) = self.place(batch, time, 0, None) else { return };
        match &mut record {
            Record::Grant(grant) => grant.position = position,
            Record::MacBlock(block) => block.position = position,
            Record::Rlc(pdu) => pdu.position = position,
            Record::Bsr(report) => report.position = position,
            _ => {}
        }
        self.waiting.entry(key).or_default().push(record);
    }

    /// Takes a hole of the log.
    pub(super) fn push_hole(&mut self, from_ns: i64, n_ms: i64, why: &'static str) {
        let Some((timing_segment, subframe)) = self.timing.now(from_ns) else { return };
        let ttis = |ms: i64| TtiSpan::from_ms(ms, self.numerology).0;
        let position = Position {
            timing_segment,
            cell: 0,
            numerology: self.numerology,
            tti: TtiIndex(ttis(subframe.0)),
        };
        let hole = Hole { at: Some(Stamp::modem(from_ns)), position, n_tti: ttis(n_ms), why };
        let key = (timing_segment, subframe.0.saturating_mul(SUBFRAME_NS));
        self.waiting.entry(key).or_default().push(hole.into());
    }

    /// As [`Timing::note_clock`], before a message of this time is taken.
    pub(super) fn note_clock(&mut self, last_ns: i64, now_ns: i64) -> bool {
        let first_ns = self.held.first().map(|(batch, _)| batch.at.ns);
        if last_ns.saturating_sub(now_ns) > MAX_CLOCK_BACK_NS {
            // Another log: the first block after it is on its first carrier.
            self.put_held();
            self.carriers.clear();
        } else if first_ns.is_some_and(|ns| now_ns.saturating_sub(ns) >= HORIZON_NS) {
            // Too few blocks: later ones show whether the carriers are further ones.
            let known = self.carriers.clone();
            self.put_held();
            self.carriers = known;
        }
        self.timing.note_clock(last_ns, now_ns)
    }

    /// Numerology of the last record; `None` before the first.
    pub(super) fn numerology(&self, at_ns: i64) -> Option<u8> {
        self.timing.now(at_ns).map(|_| self.numerology)
    }

    /// Place in the order and position of an existing slot.
    fn place(
        &mut self,
        batch: SlotBatch,
        time: NrSlot,
        carrier: u8,
        primary: Option<CellId>,
    ) -> Option<((u32, i64), Position)> {
        let slots = TtiSpan::from_ms(1, time.numerology).0;
        let slot = i64::from(time.slot);
        let in_subframe_ns = TtiSpan(slot % slots).ns(time.numerology);
        let subframe = Tti::new(time.frame, u8::try_from(slot / slots).ok()?)?;
        let written_ns = batch.written_ns(time).saturating_sub(in_subframe_ns);
        let Position { timing_segment, tti, .. } =
            self.timing.place_slot(written_ns, subframe, primary);
        self.numerology = time.numerology;
        let position = Position {
            timing_segment,
            cell: carrier,
            numerology: time.numerology,
            tti: TtiIndex(tti.0.saturating_mul(slots).saturating_add(slot % slots)),
        };
        let on_axis_ns = tti.0.saturating_mul(SUBFRAME_NS).saturating_add(in_subframe_ns);
        Some(((timing_segment, on_axis_ns), position))
    }

    /// Returns records before the horizon, or all, with their times.
    pub(super) fn release(&mut self, now_ns: Option<i64>, sink: &mut impl FnMut(Record)) {
        if now_ns.is_none() {
            self.put_held();
        }
        if self.waiting.is_empty() {
            return;
        }
        let until = match now_ns {
            None => (u32::MAX, i64::MAX),
            Some(now_ns) => {
                let Some((segment, subframe)) = self.timing.reached(now_ns) else { return };
                (segment, subframe.0.saturating_mul(SUBFRAME_NS).saturating_sub(HORIZON_NS))
            }
        };
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() < until
        {
            let ((timing_segment, on_axis_ns), mut records) = entry.remove_entry();
            join_contents(&mut records);
            let tti = TtiIndex(on_axis_ns.div_euclid(SUBFRAME_NS));
            let subframe = Position { timing_segment, tti, ..Position::default() };
            let in_subframe_ns = on_axis_ns.rem_euclid(SUBFRAME_NS);
            let time_ns = self.timing.time_ns(subframe);
            let at = time_ns.map(|ns| Stamp::modem(ns.saturating_add(in_subframe_ns)));
            for mut record in records {
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

    fn block(time: NrSlot, arfcn: u32) -> NrDlBlock {
        let (pci, arfcn, grant) = (Some(7), Some(arfcn), grant(100, 0));
        NrDlBlock { time, carrier: None, pci, arfcn, grant }
    }

    /// Timing segment, cell and ms of blocks, each written at a ms, on a carrier.
    fn placed(blocks: impl IntoIterator<Item = (i64, u32)>) -> Vec<(u32, u8, i64)> {
        let (mut order, mut out) = (NrOrder::default(), Vec::new());
        let mut sink = |record: Record| {
            if let Record::Grant(Grant { position: at, .. }) = record {
                out.push((at.timing_segment, at.cell, at.tti.0 / 2));
            }
        };
        for (ms, arfcn) in blocks {
            let (frame, slot) = ((ms / 10 % 1024) as u16, (ms % 10 * 2) as u8);
            let at = Stamp::modem(ms * SUBFRAME_NS);
            order.note_clock(at.ns, at.ns);
            let time = NrSlot { frame, slot, numerology: 1 };
            order.push(SlotBatch { at, last: Some(time) }, block(time, arfcn));
            order.release(Some(at.ns), &mut sink);
        }
        order.release(None, &mut sink);
        out
    }

    #[test]
    fn a_pause_shows_no_handover() {
        let both = |from: i64, to: i64| (from..to).map(|ms| (ms, 1 + (ms % 2) as u32));
        let first = || (0..100).map(|ms| (ms, 1));
        let check = |blocks: Vec<(i64, u32)>| {
            let right = blocks.iter().map(|(ms, arfcn)| (0, *arfcn as u8 - 1, *ms));
            assert_eq!(placed(blocks.clone()), right.collect::<Vec<_>>());
        };
        for pause_ms in [600, 1_900, 5_000, 60_000] {
            // After the first block of the second carrier; then either carrier is the next.
            for next in [0, 1] {
                let from = 100 + pause_ms + next;
                check(first().chain([(100, 2)]).chain(both(from, from + 3_000)).collect());
            }
        }
        // The log ends after it; or the first carrier pauses for 1 s, while the second one sends.
        check(first().chain([(100, 2), (101, 2)]).collect());
        check(first().chain((100..1_100).map(|ms| (ms, 2))).chain(both(1_100, 4_000)).collect());
    }

    #[test]
    fn blocks_on_a_new_carrier_alone_show_a_handover() {
        // Also if they are sparse: from the fourth one on.
        for (every_ms, undecided) in [(10, 0), (1_280, 2)] {
            let new = (1..200).map(|i| (100 + i * every_ms, 2));
            let placed = placed((0..100).map(|ms| (ms, 1)).chain(new));
            assert!(
                placed[100 + undecided..].iter().all(|at| (at.0, at.1) == (1, 0)),
                "{placed:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_stands_still_holds_a_limited_number() {
        let mut order = NrOrder::default();
        let time = NrSlot { frame: 0, slot: 0, numerology: 1 };
        for arfcn in 0..200_000 {
            order.push(SlotBatch { at: Stamp::modem(0), last: None }, block(time, arfcn));
            assert!(order.held.len() < MAX_HELD && order.carriers.len() <= MAX_CARRIERS);
        }
    }
}
