//! 0xB887, NR5G MAC PDSCH Status: every downlink transport block of NR with its
//! slot, MCS, HARQ process and CRC.
//!
//! u16 minor, u16 major; major 2: 16 bytes of head, the last the number of
//! records; major 3: 8 bytes alike. Record: u8 slot, u8 numerology (3 bits),
//! u16 frame (10 bits), u8 blocks, 3 bytes; then its blocks. Confirmed on real
//! bytes for 2.5; a block has 20 bytes there, and 20, 24 or 36 in others,
//! of which the first 20 are laid out alike:
//!
//! | word at | bits | field |
//! |---|---|---|
//! | 0 | 0-7, 25-28 | carrier and connection (not separated), bandwidth index |
//! | 4 | 0-9, 10-31 | PCI, NR-ARFCN |
//! | 8 | 0-4, 5-22, 23-25, 26-30 | block index, size in bytes, numerology, MCS |
//! | 12 | 0-8, 9-10, 11-14, 18-21, 22-25, 29-30 | PRBs, RV, HARQ process, RNTI type, K1, layers - 1 |
//! | 16 | 0, 1, 2, 3-4, 8-10, 15 | CRC passed, new transmission, NDI, discard mode, retransmissions, recombined |
//! | 16 | 18-20, 22-23 | modulation (0 QPSK .. 3 256QAM), receive antennas |
//!
//! The length of a block follows from the payload's: it is the one with which the records
//! end at the payload's end. [`NrPdschStatus::size_check`] decides whether a version has
//! this layout.

use airmile_model::nr_tables::{NrMcsTable, nr_data_res_of};
use airmile_model::{Modulation, RntiType, TtiSpan};
use serde::Serialize;

use super::shared::{modulation_code, modulation_from_code, rnti_code};
use crate::diag::bits::{BEYOND, Cursor, Field, Part, Short, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// Downlink transport blocks of NR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrPdschStatus {
    /// Major version: 2 or 3.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Length of a block's entry in bytes.
    pub entry_bytes: u8,
    /// One per slot.
    pub records: Vec<NrPdschRecord>,
}

/// The blocks of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrPdschRecord {
    /// When they were received.
    pub time: NrSlot,
    /// The blocks.
    pub blocks: Vec<NrPdschBlock>,
}

/// A frame in ns.
pub(crate) const FRAME_NS: i64 = 10_000_000;

/// A slot of NR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct NrSlot {
    /// Frame, 0 to 1023.
    pub frame: u16,
    /// Slot in the frame, 0 to `10 * 2^numerology - 1`.
    pub slot: u8,
    /// Numerology: 0 for 15 kHz to 4 for 240 kHz (TS 38.211, table 4.2-1).
    pub numerology: u8,
}

impl NrSlot {
    /// Whether the slot exists.
    #[must_use]
    pub const fn exists(self) -> bool {
        self.frame < 1024 && self.numerology <= 4 && (self.slot as i64) < self.slots_per_frame()
    }

    /// Slots of a frame (TS 38.211, 4.3.2).
    pub(crate) const fn slots_per_frame(self) -> i64 {
        TtiSpan::from_ms(FRAME_NS / 1_000_000, self.numerology).0
    }

    /// Time since the start of frame 0 in ns.
    pub(crate) const fn since_frame_0_ns(self) -> i64 {
        let in_frame_ns = self.slot as i64 * FRAME_NS / self.slots_per_frame();
        self.frame as i64 * FRAME_NS + in_frame_ns
    }

    /// The head of a record: u8 slot, u8 numerology 3 bits, u16 frame 10 bits.
    pub(super) fn read(part: Part<'_>) -> Self {
        Self {
            slot: part.u8(u8_at(0)),
            numerology: part.u8(bits_at(1, 0, 3)),
            frame: part.u16(bits_at(2, 0, 10)),
        }
    }

    pub(super) fn write(self, writer: &mut Writer, start: usize) {
        writer.set(start, u8_at(0), self.slot).set(start, bits_at(1, 0, 3), self.numerology).set(
            start,
            bits_at(2, 0, 10),
            self.frame,
        );
    }
}

/// A downlink transport block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrPdschBlock {
    /// Carrier, technology and connection as stored, 8 bits.
    pub carrier_word: u8,
    /// Bandwidth index.
    pub bandwidth_index: u8,
    /// Physical cell identity, 0 to 1007.
    pub pci: u16,
    /// NR-ARFCN.
    pub arfcn: u32,
    /// Block of the slot, 5 bits.
    pub tb: u8,
    /// Size in bytes, 18 bits.
    pub tbs_bytes: u32,
    /// Numerology of the carrier.
    pub numerology: u8,
    /// MCS index; 28 or 29 to 31 are retransmissions.
    pub mcs: u8,
    /// PRBs.
    pub n_prb: u16,
    /// Redundancy version.
    pub rv: u8,
    /// HARQ process.
    pub harq_id: u8,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// K1: slots to the acknowledgement.
    pub k1: u8,
    /// Layers, 1 to 4.
    pub layers: u8,
    /// Whether the CRC passed.
    pub crc_ok: bool,
    /// Whether it is new data for the modem.
    pub new_data: bool,
    /// New data indicator, as signalled.
    pub ndi: bool,
    /// Discard mode.
    pub discard_mode: u8,
    /// Retransmissions before this one.
    pub retx_count: u8,
    /// Whether soft bits of earlier transmissions were combined.
    pub recombined: bool,
    /// Modulation, by a two-bit code of which the third bit is not explained.
    pub modulation: Modulation,
    /// Receive antennas: 1 two, 3 four.
    pub rx_antennas: u8,
}

/// How many blocks a version's layout was checked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SizeCheck {
    /// New transmissions to this user.
    pub checked: u64,
    /// Of them, those with a size that TS 38.214 gives for their MCS, PRBs and layers.
    pub passed: u64,
}

impl SizeCheck {
    /// Whether the layout is plausible: nine in ten of the checked blocks pass (chosen
    /// here: with a wrong layout one in ten or fewer pass).
    #[must_use]
    pub const fn holds(self) -> bool {
        self.checked > 0 && self.passed * 10 >= self.checked * 9
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { checked: self.checked + other.checked, passed: self.passed + other.passed }
    }
}

const MINOR: Field = u16_at(0);
const MAJOR: Field = u16_at(2);
const RECORD_LEN: usize = 8;
const BLOCKS: Field = u8_at(4);
const ENTRY_LENS: std::ops::RangeInclusive<usize> = 20..=64;

const CARRIER_WORD: Field = u8_at(0);
const ENTRY_FRAME: Field = bits_at(0, 8, 10);
const ENTRY_SLOT: Field = bits_at(0, 18, 5);
const BANDWIDTH: Field = bits_at(0, 25, 4);
const PCI: Field = bits_at(4, 0, 10);
const ARFCN: Field = bits_at(4, 10, 22);
const TB: Field = bits_at(8, 0, 5);
const TBS: Field = bits_at(8, 5, 18);
const NUMEROLOGY: Field = bits_at(8, 23, 3);
const MCS: Field = bits_at(8, 26, 5);
const N_PRB: Field = bits_at(12, 0, 9);
const RV: Field = bits_at(12, 9, 2);
const HARQ: Field = bits_at(12, 11, 4);
const RNTI: Field = bits_at(12, 18, 4);
const K1: Field = bits_at(12, 22, 4);
const LAYERS: Field = bits_at(12, 29, 2);
const CRC: Field = bits_at(16, 0, 1);
const NEW_DATA: Field = bits_at(16, 1, 1);
const NDI: Field = bits_at(16, 2, 1);
const DISCARD: Field = bits_at(16, 3, 2);
const RETX: Field = bits_at(16, 8, 3);
const RECOMBINED: Field = bits_at(16, 15, 1);
const MODULATION: Field = bits_at(16, 18, 2);
const RX_ANTENNAS: Field = bits_at(16, 22, 2);

/// Length of the head and offset of the number of records.
const fn head(major: u16) -> Option<(usize, Field)> {
    match major {
        2 => Some((16, u8_at(15))),
        3 => Some((8, u8_at(7))),
        _ => None,
    }
}

impl NrPdschStatus {
    /// The log code.
    pub const CODE: u16 = 0xB887;

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(4, "version")?;
        let (major, minor) = (version.u16(MAJOR), version.u16(MINOR));
        let Some((head_len, count)) = head(major) else { return Ok(None) };
        let count = cursor.take(head_len, "message head")?.u8(count);
        let (entry_len, closes) = entry_len(payload.get(head_len..).unwrap_or_default(), count);
        let mut problem = None;
        let records =
            cursor.list(count.into(), &mut problem, |c, problem| record(c, entry_len, problem));
        if !closes {
            let at = cursor.at();
            let why = if problem.is_some() { BEYOND } else { "do not end with the payload" };
            problem.get_or_insert(Short { field: "records", at, why });
        }
        let mut status = Self { major, minor, entry_bytes: entry_len as u8, records };
        // Two lengths that fit equally leave the layout open.
        let stable = self::entry_len(&status.emit()[head_len..], status.records.len() as u8);
        if stable != (entry_len, true) {
            if problem.is_none() {
                return Ok(None);
            }
            status.records.clear();
            status.entry_bytes = *ENTRY_LENS.start() as u8;
        }
        Ok(Some((status, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((head_len, count)) = head(self.major) else { return Vec::new() };
        let mut writer = Writer::new(head_len);
        writer.set(0, MINOR, self.minor).set(0, MAJOR, self.major).set(
            0,
            count,
            self.records.len() as u64,
        );
        for record in &self.records {
            let start = writer.part(RECORD_LEN);
            record.time.write(&mut writer, start);
            writer.set(start, BLOCKS, record.blocks.len() as u64);
            for block in &record.blocks {
                let start = writer.part(usize::from(self.entry_bytes).max(*ENTRY_LENS.start()));
                block.emit(&mut writer, start, record.time);
            }
        }
        writer.finish()
    }

    /// Checks the layout: each new transmission to this user must have a size that TS
    /// 38.214 5.1.3.2 gives for its other fields. A block with impossible fields fails as
    /// well.
    ///
    /// One MCS table is configured at a time (TS 38.331, mcs-Table): the one with the
    /// most passes applies to all. DCI format 1_0 always uses the first, with one layer
    /// (TS 38.214, 5.1.3.1).
    #[must_use]
    pub fn size_check(&self) -> SizeCheck {
        let blocks = self.records.iter().flat_map(|r| r.blocks.iter().map(|block| (r.time, block)));
        let mut checked = 0;
        let mut passed = [0; NrMcsTable::ALL.len()];
        for (time, block) in blocks.filter(|(_, block)| block.rnti_type == RntiType::C) {
            let sound = time.exists()
                && block.numerology == time.numerology
                && block.pci < 1008
                && (1..=275).contains(&block.n_prb);
            let is_new = block.new_data && block.retx_count == 0;
            if sound && !is_new {
                continue;
            }
            checked += 1;
            if !sound {
                continue;
            }
            let fallback = block.layers == 1 && block.fits(NrMcsTable::Qam64);
            for (table, passed) in NrMcsTable::ALL.into_iter().zip(&mut passed) {
                *passed += u64::from(fallback || block.fits(table));
            }
        }
        SizeCheck { checked, passed: passed.into_iter().max().unwrap_or(0) }
    }
}

/// How well an entry length fits a body; larger is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// Whether the records end at the body's end.
    closes: bool,
    /// Entries that state the slot of their record.
    agreeing: u32,
    /// Whether all slots exist.
    slots_exist: bool,
}

/// The entry length with which `count` records fit `body` best, the shortest of several;
/// and whether they end at its end.
fn entry_len(body: &[u8], count: u8) -> (usize, bool) {
    let mut best = (*ENTRY_LENS.start(), fit(body, count, *ENTRY_LENS.start()));
    for len in ENTRY_LENS.step_by(4).skip(1) {
        let fit = fit(body, count, len);
        if fit > best.1 {
            best = (len, fit);
        }
    }
    (best.0, best.1.closes)
}

fn fit(body: &[u8], count: u8, entry_len: usize) -> Fit {
    let mut cursor = Cursor::new(body);
    let mut fit = Fit { closes: false, agreeing: 0, slots_exist: true };
    for _ in 0..count {
        let Ok(head) = cursor.take(RECORD_LEN, "record head") else { return fit };
        let time = NrSlot::read(head);
        fit.slots_exist &= time.exists();
        for _ in 0..head.u8(BLOCKS) {
            let Ok(part) = cursor.take(entry_len, "transport block") else { return fit };
            let own = (part.u16(ENTRY_FRAME), part.u8(ENTRY_SLOT));
            fit.agreeing += u32::from(own == (time.frame, time.slot & 31));
        }
    }
    fit.closes = cursor.left() == 0;
    fit
}

/// A record; if it is truncated, the blocks before that.
fn record(
    cursor: &mut Cursor<'_>,
    entry_len: usize,
    problem: &mut Option<Short>,
) -> Result<NrPdschRecord, Short> {
    let head = cursor.take(RECORD_LEN, "record head")?;
    let count = usize::from(head.u8(BLOCKS));
    let blocks = cursor.list(count, problem, |cursor, _| {
        Ok(NrPdschBlock::parse(cursor.take(entry_len, "transport block")?))
    });
    Ok(NrPdschRecord { time: NrSlot::read(head), blocks })
}

impl NrPdschBlock {
    /// Carrier identity, as far as known: the low 4 bits are 0 on the first carrier of
    /// text exports.
    fn parse(part: Part<'_>) -> Self {
        Self {
            carrier_word: part.u8(CARRIER_WORD),
            bandwidth_index: part.u8(BANDWIDTH),
            pci: part.u16(PCI),
            arfcn: part.u32(ARFCN),
            tb: part.u8(TB),
            tbs_bytes: part.u32(TBS),
            numerology: part.u8(NUMEROLOGY),
            mcs: part.u8(MCS),
            n_prb: part.u16(N_PRB),
            rv: part.u8(RV),
            harq_id: part.u8(HARQ),
            rnti_type: RntiType::from_code(part.u8(RNTI)),
            k1: part.u8(K1),
            layers: part.u8(LAYERS) + 1,
            crc_ok: part.flag(CRC),
            new_data: part.flag(NEW_DATA),
            ndi: part.flag(NDI),
            discard_mode: part.u8(DISCARD),
            retx_count: part.u8(RETX),
            recombined: part.flag(RECOMBINED),
            modulation: modulation_from_code(part.u8(MODULATION)),
            rx_antennas: part.u8(RX_ANTENNAS),
        }
    }

    /// Whether an MCS table gives its size.
    fn fits(&self, table: NrMcsTable) -> bool {
        let (bytes, layers) = (self.tbs_bytes, self.layers);
        !nr_data_res_of(table, bytes, self.mcs, self.modulation, layers, self.n_prb).is_empty()
    }

    fn emit(&self, writer: &mut Writer, start: usize, time: NrSlot) {
        writer
            .set(start, CARRIER_WORD, self.carrier_word)
            .set(start, ENTRY_FRAME, time.frame)
            .set(start, ENTRY_SLOT, time.slot)
            .set(start, BANDWIDTH, self.bandwidth_index)
            .set(start, PCI, self.pci)
            .set(start, ARFCN, self.arfcn)
            .set(start, TB, self.tb)
            .set(start, TBS, self.tbs_bytes)
            .set(start, NUMEROLOGY, self.numerology)
            .set(start, MCS, self.mcs)
            .set(start, N_PRB, self.n_prb)
            .set(start, RV, self.rv)
            .set(start, HARQ, self.harq_id)
            .set(start, RNTI, rnti_code(self.rnti_type))
            .set(start, K1, self.k1)
            .set(start, LAYERS, self.layers.saturating_sub(1))
            .set(start, CRC, self.crc_ok)
            .set(start, NEW_DATA, self.new_data)
            .set(start, NDI, self.ndi)
            .set(start, DISCARD, self.discard_mode)
            .set(start, RETX, self.retx_count)
            .set(start, RECOMBINED, self.recombined)
            .set(start, MODULATION, modulation_code(self.modulation))
            .set(start, RX_ANTENNAS, self.rx_antennas);
    }
}

#[cfg(test)]
mod tests;
