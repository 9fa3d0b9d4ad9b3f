//! NR's messages: 0xB887 (2.5) for the downlink's blocks, 0xB872 (2.1) for the uplink's
//! with their buffer status reports, 0xB888 (3.0) with the counters of both carriers,
//! including padding. RLC has no message here: its layout in NR is unknown.

use std::collections::BTreeMap;

use airmile_model::{BsrReport, CellInfo, Direction, Grant, Position, Record};

use super::ModemLogError;
use crate::diag::msg::{
    Message, NrCarrierCounters, NrPdschBlock, NrPdschRecord, NrPdschStats, NrPdschStatus, NrSlot,
    NrUlBlock, NrUlTb, NrUlTti,
};

/// Slots of a message, and the maximum wait of the first of them (chosen here, as for
/// LTE's messages).
const BATCH_SLOTS: usize = 10;
const BATCH_NS: i64 = 60_000_000;

/// From a batch's last slot to its writing (chosen here).
const WRITING_NS: i64 = 4_000_000;

/// Counters are written this often (25 a second, as a phone of 2025 does).
const COUNTERS_NS: i64 = 40_000_000;

/// Of 100 MHz; the message's index is not tied to the PRBs here (chosen here).
const BANDWIDTH_INDEX: u8 = 12;

/// Slots to the acknowledgement (chosen here).
const K1: u8 = 2;

/// LCID of a short BSR (TS 38.321, table 6.2.1-2).
const SHORT_BSR: u8 = 61;

/// Collects NR's messages with the time of their writing in ns.
#[derive(Debug, Default)]
pub(super) struct NrLog {
    cells: BTreeMap<u8, (u16, u32)>,
    downlink: SlotBatch<NrPdschRecord>,
    uplink: SlotBatch<NrUlTti>,
    /// Transmissions of the block of each carrier's process.
    transmissions: BTreeMap<(u8, u8), u8>,
    counters: BTreeMap<u8, NrCarrierCounters>,
    counters_due_ns: Option<i64>,
    out: Vec<(i64, Message)>,
}

#[derive(Debug)]
struct SlotBatch<T> {
    slots: Vec<T>,
    first_ns: i64,
    last: Option<Position>,
    last_ns: i64,
}

impl<T> Default for SlotBatch<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), first_ns: 0, last: None, last_ns: 0 }
    }
}

impl<T> SlotBatch<T> {
    /// The slots, if they are to be written before one at `now_ns` is added.
    fn due(&mut self, now_ns: i64, position: Option<Position>) -> Option<(i64, Vec<T>)> {
        let goes_on = position.is_some_and(|at| self.is_of(at));
        let full = self.slots.len() >= BATCH_SLOTS && !goes_on;
        let late = now_ns.saturating_sub(self.first_ns) >= BATCH_NS;
        if self.slots.is_empty() || !(full || late || position.is_none()) {
            return None;
        }
        self.last = None;
        Some((self.last_ns + WRITING_NS, std::mem::take(&mut self.slots)))
    }

    fn is_of(&self, position: Position) -> bool {
        self.last.is_some_and(|last| last.tti == position.tti)
    }

    /// The entry of a slot.
    fn slot(&mut self, now_ns: i64, position: Position, new: impl FnOnce() -> T) -> Option<&mut T> {
        if !self.is_of(position) {
            if self.slots.is_empty() {
                self.first_ns = now_ns;
            }
            self.slots.push(new());
        }
        (self.last, self.last_ns) = (Some(position), now_ns);
        self.slots.last_mut()
    }
}

impl NrLog {
    /// Takes a record; those without an NR message are left out.
    pub(super) fn push(&mut self, record: &Record) {
        match record {
            Record::CellInfo(info) => self.cell(info),
            Record::Grant(grant) => {
                let Some(now_ns) = grant.at.map(|at| at.ns) else { return };
                self.count(now_ns);
                match grant.dir {
                    Direction::Dl => self.downlink_grant(now_ns, grant),
                    Direction::Ul => self.uplink_grant(now_ns, grant),
                }
            }
            Record::Bsr(report) => self.report(report),
            _ => {}
        }
    }

    fn cell(&mut self, info: &CellInfo) {
        if let (Some(pci), Some(arfcn)) = (info.pci, info.earfcn) {
            self.cells.insert(info.cell, (pci, arfcn));
        }
    }

    fn downlink_grant(&mut self, now_ns: i64, grant: &Grant) {
        self.write_downlink(now_ns, Some(grant.position));
        let Some(block) = self.block(grant) else { return };
        let counters = self.counters.entry(grant.position.cell).or_insert_with(|| {
            NrCarrierCounters { carrier: grant.position.cell.into(), counts: [0; 7], bytes: [0; 5] }
        });
        add_to(counters, &block, grant.padding_bytes.unwrap_or(0));
        let new = || NrPdschRecord { time: slot_of(grant.position), blocks: Vec::new() };
        if let Some(record) = self.downlink.slot(now_ns, grant.position, new) {
            record.blocks.push(block);
        }
    }

    /// A block in the form of 0xB887; `None` if the grant lacks a field.
    fn block(&mut self, grant: &Grant) -> Option<NrPdschBlock> {
        let cell = grant.position.cell;
        let &(pci, arfcn) = self.cells.get(&cell)?;
        let (harq_id, retx) = (grant.harq_id?, grant.retx?);
        let count = self.transmissions.entry((cell, harq_id)).or_default();
        *count = if retx { count.saturating_add(1).min(7) } else { 0 };
        let retx_count = *count;
        Some(NrPdschBlock {
            carrier_word: cell & 15,
            bandwidth_index: BANDWIDTH_INDEX,
            pci,
            arfcn,
            tb: grant.tb,
            tbs_bytes: grant.tbs_bytes?,
            numerology: grant.position.numerology,
            mcs: grant.mcs?,
            n_prb: grant.n_prb?,
            rv: grant.rv?,
            harq_id,
            rnti_type: grant.rnti,
            k1: K1,
            layers: grant.layers?,
            crc_ok: grant.crc_ok?,
            new_data: !retx,
            ndi: grant.ndi?,
            discard_mode: 0,
            retx_count,
            recombined: retx,
            modulation: grant.modulation?,
            rx_antennas: 3,
        })
    }

    /// A block built by the MAC layer, which builds it once.
    fn uplink_grant(&mut self, now_ns: i64, grant: &Grant) {
        self.write_uplink(now_ns, Some(grant.position));
        let (Some(grant_bytes), Some(harq_id)) = (grant.tbs_bytes, grant.harq_id) else { return };
        if grant.retx == Some(true) {
            return;
        }
        let slot = slot_of(grant.position);
        let new = || NrUlTti { frame: slot.frame, slot: slot.slot, blocks: Vec::new() };
        if let Some(tti) = self.uplink.slot(now_ns, grant.position, new) {
            tti.blocks.push(NrUlBlock {
                numerology: grant.position.numerology,
                harq_id,
                grant_bytes,
                built_bytes: grant_bytes.saturating_sub(grant.padding_bytes.unwrap_or(0)),
                control: Vec::new(),
            });
        }
    }

    /// A report is sent with the block of its slot.
    fn report(&mut self, report: &BsrReport) {
        if self.uplink.is_of(report.position)
            && let Some(block) = self.uplink.slots.last_mut().and_then(|t| t.blocks.last_mut())
        {
            block.control.extend([SHORT_BSR, report.lcg << 5 | report.index & 31]);
        }
    }

    fn write_downlink(&mut self, now_ns: i64, position: Option<Position>) {
        if let Some((at_ns, records)) = self.downlink.due(now_ns, position) {
            let status = NrPdschStatus { major: 2, minor: 5, entry_bytes: 20, records };
            self.out.push((at_ns, status.into()));
        }
    }

    fn write_uplink(&mut self, now_ns: i64, position: Option<Position>) {
        if let Some((at_ns, ttis)) = self.uplink.due(now_ns, position) {
            self.out.push((at_ns, NrUlTb { major: 2, minor: 1, ttis }.into()));
        }
    }

    /// Writes the counters when they are due.
    fn count(&mut self, now_ns: i64) {
        let due_ns = *self.counters_due_ns.get_or_insert(now_ns + COUNTERS_NS);
        if now_ns >= due_ns && !self.counters.is_empty() {
            self.counters_due_ns = Some(now_ns + COUNTERS_NS);
            let carriers = self.counters.values().copied().collect();
            self.out.push((now_ns, NrPdschStats { version: (3, 0), carriers }.into()));
        }
    }

    /// All messages in order of writing.
    pub(super) fn finish(mut self) -> Vec<(i64, Message)> {
        self.write_downlink(i64::MAX, None);
        self.write_uplink(i64::MAX, None);
        self.out.sort_by_key(|(at, _)| *at);
        self.out
    }
}

/// Whether any record can be stored in NR's messages.
pub(super) fn check(records: &[Record]) -> Result<(), ModemLogError> {
    let known = records.iter().any(|record| {
        matches!(record, Record::CellInfo(info) if info.pci.is_some() && info.earfcn.is_some())
    });
    if known { Ok(()) } else { Err(ModemLogError::NoCell) }
}

/// The frame and slot of a slot's index (TS 38.211, 4.3).
fn slot_of(position: Position) -> NrSlot {
    let slots = 10_i64 << position.numerology.min(4);
    NrSlot {
        frame: (position.tti.0.div_euclid(slots)).rem_euclid(1024) as u16,
        slot: position.tti.0.rem_euclid(slots) as u8,
        numerology: position.numerology,
    }
}

/// Good, failed, all, padding and retransmitted bytes; decodes, good and failed blocks and
/// retransmissions.
fn add_to(counters: &mut NrCarrierCounters, block: &NrPdschBlock, padding_bytes: u32) {
    let bytes = u64::from(block.tbs_bytes);
    let (good, failed) = if block.crc_ok { (1, 0) } else { (0, 1) };
    let retx = u32::from(!block.new_data);
    let [_, decodes, passes, failures, repeats, _, _] = &mut counters.counts;
    *decodes = decodes.saturating_add(1);
    *passes = passes.saturating_add(good);
    *failures = failures.saturating_add(failed);
    *repeats = repeats.saturating_add(retx);
    let add = [
        bytes * u64::from(good),
        bytes * u64::from(failed),
        bytes,
        u64::from(padding_bytes),
        bytes * u64::from(retx),
    ];
    for (sum, add) in counters.bytes.iter_mut().zip(add) {
        *sum = sum.saturating_add(add);
    }
}
