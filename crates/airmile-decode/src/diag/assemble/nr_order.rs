//! Slots of NR: records placed in time and given in order.
//!
//! Slots are counted in the record's own numerology, 10 * 2^mu a frame
//! (TS 38.211, 4.3.2). A slot is placed by its subframe of 1 ms, so timing segments,
//! the unwrapping of frames and the clock are those of LTE ([`Timing`]).

#[cfg(test)]
mod tests;

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

/// In a silence of the log during which the phone received and sent no more than this, nothing is missing
/// (chosen here: what a server sends at once, the initial window of RFC 6928).
const MAX_IDLE_BYTES: u64 = 14_600;
/// If the phone sent more than that in this time before a silence, an upload was under way (chosen here).
const UPLOAD_NS: i64 = 1_000_000_000;

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
    /// Received and sent bytes of each carrier, by the newest counters.
    counted: [Option<BTreeMap<u32, u64>>; 2],
    /// Bytes of uplink blocks, with the time of the first, of this and the last [`UPLOAD_NS`].
    sent: [(i64, u64); 2],
    /// A silence that the next counters may show to be no hole, where it ended and where it waits.
    silence: Option<(i64, (u32, i64), Hole)>,
    /// Whether it waits for counters of the downlink, and of the uplink.
    awaited: [bool; 2],
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
            let blank = CellInfo::new(batch.at, position.timing_segment, carrier, "0xB887");
            let info = CellInfo { pci, earfcn: arfcn, ..blank };
            waiting.push(info.into());
        }
        grant.position = position;
        waiting.push(grant.into());
    }

    /// Takes a record of a slot, without its position.
    pub(super) fn push_at(&mut self, batch: SlotBatch, time: NrSlot, record: Record) {
        if let Record::Grant(grant) = &record {
            if batch.at.ns.saturating_sub(self.sent[0].0) > UPLOAD_NS {
                self.sent = [(batch.at.ns, 0), self.sent[0]];
            }
            self.sent[0].1 += u64::from(grant.tbs_bytes.unwrap_or(0));
        }
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

    /// Takes a hole of the log before `to_ns`. After counters, a silence waits for the next ones: those of the
    /// downlink, and the uplink's if the log has them. Without these, an upload may go on in it.
    pub(super) fn push_hole(&mut self, (from_ns, to_ns): (i64, i64), why: &'static str) {
        let Some((timing_segment, subframe)) = self.timing.now(from_ns) else { return };
        let ttis = |ms: i64| TtiSpan::from_ms(ms, self.numerology).0;
        let (numerology, tti) = (self.numerology, TtiIndex(ttis(subframe.0)));
        let position = Position { timing_segment, cell: 0, numerology, tti };
        let n_tti = ttis(((to_ns - from_ns) / 1_000_000).max(1));
        let hole = Hole { at: Some(Stamp::modem(from_ns)), position, n_tti, why };
        let key = (timing_segment, subframe.0.saturating_mul(SUBFRAME_NS));
        self.put_silence();
        self.silence = Some((to_ns, key, hole));
        self.awaited = [0, 1].map(|at: usize| self.counted[at].is_some());
        let sent = self.sent.iter().filter(|(ns, _)| from_ns.saturating_sub(*ns) <= 2 * UPLOAD_NS);
        let uploads = sent.map(|(_, bytes)| bytes).sum::<u64>() > MAX_IDLE_BYTES;
        if !self.awaited[0] || uploads && !self.awaited[1] || why != "silence" {
            self.put_silence();
        }
    }

    /// A silence is a hole.
    fn put_silence(&mut self) {
        if let Some((_, key, hole)) = self.silence.take() {
            self.waiting.entry(key).or_default().push(hole.into());
        }
    }

    /// Takes the bytes of each carrier, received or sent, which counters state; those of one carrier add up. A phone
    /// with next to nothing of either in a silence was idle. What a carrier had that was released in it is not known.
    pub(super) fn note_bytes(&mut self, dir: Direction, counters: Vec<(u32, u64)>) {
        let at = usize::from(dir == Direction::Ul);
        let mut bytes = BTreeMap::<u32, u64>::new();
        for (of, counted) in counters {
            let sum = bytes.entry(of).or_default();
            *sum = sum.saturating_add(counted);
        }
        let mut before = self.counted[at].replace(bytes.clone()).unwrap_or_default();
        let since = bytes.iter().try_fold(0_u64, |sum, (of, now)| {
            now.checked_sub(before.remove(of).unwrap_or(0)).map(|since| sum.saturating_add(since))
        });
        let since = since.filter(|_| before.is_empty());
        let is_idle = since.is_some_and(|bytes| bytes <= MAX_IDLE_BYTES);
        match std::mem::take(&mut self.awaited[at]) {
            true if !is_idle => self.put_silence(),
            true if self.awaited == [false; 2] => self.silence = None,
            _ => {}
        }
    }

    /// As [`Timing::note_clock`], before a message of this time is taken.
    pub(super) fn note_clock(&mut self, last_ns: i64, now_ns: i64) -> bool {
        let first_ns = self.held.first().map(|(batch, _)| batch.at.ns);
        if last_ns.saturating_sub(now_ns) > MAX_CLOCK_BACK_NS {
            // Another log: the first block after it is on its first carrier.
            self.put_held();
            self.carriers.clear();
            self.put_silence();
            (self.counted, self.sent) = Default::default();
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
        let slot = TtiIndex(tti.0.saturating_mul(slots).saturating_add(slot % slots));
        let numerology = time.numerology;
        let position = Position { timing_segment, cell: carrier, numerology, tti: slot };
        let on_axis_ns = tti.0.saturating_mul(SUBFRAME_NS).saturating_add(in_subframe_ns);
        Some(((timing_segment, on_axis_ns), position))
    }

    /// Returns records before the horizon, or all, with their times.
    pub(super) fn release(&mut self, now_ns: Option<i64>, sink: &mut impl FnMut(Record)) {
        if now_ns.is_none() {
            self.put_held();
        }
        let is_over = |to_ns: i64| now_ns.is_none_or(|ns| ns.saturating_sub(to_ns) > HORIZON_NS);
        if self.silence.as_ref().is_some_and(|(to_ns, ..)| is_over(*to_ns)) {
            self.put_silence();
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
        let until = self.silence.as_ref().map_or(until, |(_, at, _)| until.min(*at));
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
