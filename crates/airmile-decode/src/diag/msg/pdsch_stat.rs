//! 0xB173, LTE_PHY_PDSCH_Stat_Indication: a batch of per-subframe downlink
//! results with MCS, HARQ and CRC.
//!
//! u8 version, u8 records, 2 bytes not explained, then records of a fixed
//! size. A record always has two transport block slots; with one block the
//! second slot is filler.
//!
//! | part | v5, v16 | v24, v32 | v36, v37, v40, v48, v50 |
//! |---|---|---|---|
//! | head | 6 | 6 | 12 |
//! | one block slot | 6 | 8 | 12 |
//! | tail | 2 | 2 | 4 |
//!
//! Sizes include the CRC up to version 40, and not in version 48. Version 50 follows one
//! public source, without a sample: layers, blocks and carrier take the positions of
//! PRBs, layers and blocks, and PRBs are the block's.

use airmile_model::{Modulation, RntiType, Tti};
use serde::Serialize;
use smallvec::SmallVec;

use super::shared::{TimeAt, get_tti, rnti_code, set_tti, time_word, tti_count};
use crate::diag::bits::{Cursor, Field, Part, Short, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// A batch of downlink results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdschStat {
    /// Message version: 5, 16, 24, 32, 36, 37, 40, 48 or 50; 0 if a text does not state
    /// it.
    pub version: u8,
    /// Results in order of reception.
    pub records: Vec<PdschStatRecord>,
}

/// The result of one subframe on one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdschStatRecord {
    /// Subframe of the reception.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// PRB pairs of the assignment.
    pub n_prb: u8,
    /// Spatial layers; 2 with a single block under transmit diversity.
    pub layers: u8,
    /// 0 the primary cell, 1.. the secondary cells.
    pub serving_cell: u8,
    /// Horizontal successive interference cancellation flags; v16 to v36.
    pub hsic: Option<u8>,
    /// "Alternative TBS" flag; v37.
    pub alternative_tbs: Option<u8>,
    /// One or two transport blocks.
    pub blocks: SmallVec<[PdschStatBlock; 2]>,
    /// Physical multicast channel (MBSFN only).
    pub pmch_id: u8,
    /// MBSFN area (MBSFN only).
    pub area_id: u8,
}

/// One transport block's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PdschStatBlock {
    /// HARQ process.
    pub harq_id: u8,
    /// Redundancy version.
    pub rv: u8,
    /// New data indicator, as signalled.
    pub ndi: bool,
    /// Whether the CRC passed.
    pub crc_ok: bool,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// Transport block index, 0 or 1.
    pub tb: u8,
    /// "Discarded retransmission present".
    pub discarded_retx: bool,
    /// Discard mode; v37 and later.
    pub discard_mode: Option<u8>,
    /// Whether soft bits of an earlier transmission were combined; not explained from v48 on.
    pub recombined: bool,
    /// Transport block size in bytes (the real one, also with MCS 29 to 31).
    pub tbs_bytes: u16,
    /// MCS index (TS 36.213, 7.1.7.1); 29 to 31 are retransmissions.
    pub mcs: u8,
    /// PRB pairs of this block.
    pub n_prb: u8,
    /// Modulation: stored from v24 on, before that from the MCS index
    /// (TS 36.213, table 7.1.7.1-1).
    pub modulation: Option<Modulation>,
    /// QED status; v36 and later.
    pub qed_status: Option<u8>,
    /// QED iterations; v36 and later.
    pub qed_iterations: Option<u8>,
}

const TIME: TimeAt = time_word(0, 12);
const N_PRB: Field = u8_at(2);
const HSIC: Field = bits_at(5, 3, 4);
const ALTERNATIVE_TBS: Field = u8_at(7);

const HARQ_ID: Field = bits_at(0, 0, 4);
const RV: Field = bits_at(0, 4, 2);
const NDI: Field = bits_at(0, 6, 1);
const CRC: Field = bits_at(0, 7, 1);
const RNTI_TYPE: Field = bits_at(1, 0, 4);
const TB: Field = bits_at(1, 4, 1);
const DISCARDED: Field = bits_at(1, 5, 1);

/// Whether a message's block sizes include the CRC (TS 36.212, 5.3.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSizeCrc {
    /// They include it.
    With,
    /// They are the transport block size itself.
    Without,
    /// No source documents it.
    Unknown,
}

struct Layout {
    /// PRB pairs of the record; if `None` they are the first block's.
    n_prb_record: Option<Field>,
    layers: Field,
    blocks: Field,
    serving_cell: Field,
    size_crc: BlockSizeCrc,
    head: usize,
    slot: usize,
    tail: usize,
    hsic: bool,
    alternative_tbs: bool,
    discard_mode: Option<Field>,
    recombined: Option<Field>,
    tbs: Field,
    mcs: Field,
    n_prb: Field,
    modulation: Option<Field>,
    qed: Option<(Field, Field)>,
}

const V5: Layout = Layout {
    n_prb_record: Some(N_PRB),
    layers: u8_at(3),
    blocks: u8_at(4),
    serving_cell: bits_at(5, 0, 3),
    size_crc: BlockSizeCrc::With,
    head: 6,
    slot: 6,
    tail: 2,
    hsic: false,
    alternative_tbs: false,
    discard_mode: None,
    recombined: Some(bits_at(1, 6, 1)),
    tbs: u16_at(2),
    mcs: u8_at(4),
    n_prb: u8_at(5),
    modulation: None,
    qed: None,
};
const V16: Layout = Layout { hsic: true, ..V5 };
const V24: Layout = Layout { slot: 8, modulation: Some(u8_at(6)), ..V16 };
const V36: Layout = Layout {
    head: 12,
    slot: 12,
    tail: 4,
    tbs: u16_at(4),
    mcs: u8_at(6),
    n_prb: u8_at(7),
    modulation: Some(u8_at(8)),
    qed: Some((bits_at(9, 0, 2), bits_at(9, 2, 6))),
    ..V24
};
const V37: Layout = Layout {
    hsic: false,
    alternative_tbs: true,
    discard_mode: Some(bits_at(1, 6, 2)),
    recombined: Some(bits_at(2, 0, 1)),
    ..V36
};
const V40: Layout = Layout {
    alternative_tbs: false,
    discard_mode: Some(bits_at(1, 6, 4)),
    recombined: Some(bits_at(1, 10, 1)),
    ..V37
};

const V48: Layout = Layout {
    discard_mode: Some(bits_at(1, 6, 2)),
    recombined: None,
    qed: None,
    size_crc: BlockSizeCrc::Without,
    ..V40
};
const V50: Layout = Layout {
    n_prb_record: None,
    layers: u8_at(2),
    blocks: u8_at(3),
    serving_cell: bits_at(4, 0, 3),
    size_crc: BlockSizeCrc::Unknown,
    ..V48
};

const fn layout(version: u8) -> Option<&'static Layout> {
    match version {
        5 => Some(&V5),
        16 => Some(&V16),
        24 | 32 => Some(&V24),
        36 => Some(&V36),
        37 => Some(&V37),
        40 => Some(&V40),
        48 => Some(&V48),
        50 => Some(&V50),
        _ => None,
    }
}

/// Modulation of a downlink MCS index (TS 36.213, table 7.1.7.1-1).
const fn modulation_of_mcs(mcs: u8) -> Option<Modulation> {
    match mcs {
        0..=9 | 29 => Some(Modulation::Qpsk),
        10..=16 | 30 => Some(Modulation::Qam16),
        17..=28 | 31 => Some(Modulation::Qam64),
        _ => None,
    }
}

impl PdschStat {
    /// The log code.
    pub const CODE: u16 = 0xB173;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[5, 16, 24, 32, 36, 37, 40, 48, 50];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some(layout) = layout(version) else { return Ok(None) };
        let count = cursor.take(4, "message head")?.u8(u8_at(1));
        let mut problem = None;
        let records = cursor
            .list(count.into(), &mut problem, |cursor, problem| record(cursor, layout, problem));
        Ok(Some((Self { version, records }, problem)))
    }

    /// Whether the sizes of its blocks include the CRC.
    #[must_use]
    pub fn block_size_crc(&self) -> BlockSizeCrc {
        match (layout(self.version), self.version) {
            (Some(layout), _) => layout.size_crc,
            (None, 0..=47) => BlockSizeCrc::With,
            (None, _) => BlockSizeCrc::Unknown,
        }
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = layout(self.version) else { return Vec::new() };
        let mut writer = Writer::new(4);
        writer.set(0, u8_at(0), self.version).set(0, u8_at(1), self.records.len() as u64);
        for record in &self.records {
            let start = writer.part(layout.head);
            set_tti(&mut writer, start, TIME, record.tti);
            if let Some(field) = layout.n_prb_record {
                writer.set(start, field, record.n_prb);
            }
            writer
                .set(start, layout.layers, record.layers)
                .set(start, layout.blocks, record.blocks.len() as u64)
                .set(start, layout.serving_cell, record.serving_cell);
            if layout.hsic {
                writer.set(start, HSIC, record.hsic.unwrap_or(0));
            }
            if layout.alternative_tbs {
                writer.set(start, ALTERNATIVE_TBS, record.alternative_tbs.unwrap_or(0));
            }
            for i in 0..2 {
                let start = writer.part(layout.slot);
                if let Some(block) = record.blocks.get(i) {
                    block.emit(&mut writer, start, layout);
                }
            }
            let start = writer.part(layout.tail);
            writer.set(start, u8_at(0), record.pmch_id).set(start, u8_at(1), record.area_id);
        }
        writer.finish()
    }
}

fn record(
    cursor: &mut Cursor<'_>,
    layout: &Layout,
    problem: &mut Option<Short>,
) -> Result<PdschStatRecord, Short> {
    let at = cursor.at();
    let head = cursor.take(layout.head, "record head")?;
    let slots = [
        cursor.take(layout.slot, "transport block 0")?,
        cursor.take(layout.slot, "transport block 1")?,
    ];
    let tail = cursor.take(layout.tail, "record tail")?;
    let count = usize::from(head.u8(layout.blocks));
    let blocks: SmallVec<[_; 2]> =
        slots.iter().take(count).map(|&slot| PdschStatBlock::parse(slot, layout)).collect();
    if count > slots.len() {
        let why = "is more than the two that a record has";
        problem.get_or_insert(Short { field: "transport blocks present", at: at + 4, why });
    }
    Ok(PdschStatRecord {
        tti: get_tti(head, TIME),
        n_prb: match layout.n_prb_record {
            Some(field) => head.u8(field),
            None => blocks.first().map_or(0, |block| block.n_prb),
        },
        layers: head.u8(layout.layers),
        serving_cell: head.u8(layout.serving_cell),
        hsic: layout.hsic.then(|| head.u8(HSIC)),
        alternative_tbs: layout.alternative_tbs.then(|| head.u8(ALTERNATIVE_TBS)),
        blocks,
        pmch_id: tail.u8(u8_at(0)),
        area_id: tail.u8(u8_at(1)),
    })
}

impl PdschStatBlock {
    fn parse(slot: Part<'_>, layout: &Layout) -> Self {
        let mcs = slot.u8(layout.mcs);
        Self {
            harq_id: slot.u8(HARQ_ID),
            rv: slot.u8(RV),
            ndi: slot.flag(NDI),
            crc_ok: slot.flag(CRC),
            rnti_type: RntiType::from_code(slot.u8(RNTI_TYPE)),
            tb: slot.u8(TB),
            discarded_retx: slot.flag(DISCARDED),
            discard_mode: layout.discard_mode.map(|field| slot.u8(field)),
            recombined: layout.recombined.is_some_and(|field| slot.flag(field)),
            tbs_bytes: slot.u16(layout.tbs),
            mcs,
            n_prb: slot.u8(layout.n_prb),
            modulation: match layout.modulation {
                Some(field) => Modulation::from_bits_per_symbol(slot.u8(field)),
                None => modulation_of_mcs(mcs),
            },
            qed_status: layout.qed.map(|(status, _)| slot.u8(status)),
            qed_iterations: layout.qed.map(|(_, iterations)| slot.u8(iterations)),
        }
    }

    fn emit(&self, writer: &mut Writer, start: usize, layout: &Layout) {
        writer
            .set(start, HARQ_ID, self.harq_id)
            .set(start, RV, self.rv)
            .set(start, NDI, self.ndi)
            .set(start, CRC, self.crc_ok)
            .set(start, RNTI_TYPE, rnti_code(self.rnti_type))
            .set(start, TB, self.tb)
            .set(start, DISCARDED, self.discarded_retx)
            .set(start, layout.tbs, self.tbs_bytes)
            .set(start, layout.mcs, self.mcs)
            .set(start, layout.n_prb, self.n_prb);
        if let Some(field) = layout.recombined {
            writer.set(start, field, self.recombined);
        }
        if let Some(field) = layout.discard_mode {
            writer.set(start, field, self.discard_mode.unwrap_or(0));
        }
        if let Some(field) = layout.modulation {
            writer.set(start, field, self.modulation.map_or(0, Modulation::bits_per_symbol));
        }
        if let Some((status, iterations)) = layout.qed {
            writer.set(start, status, self.qed_status.unwrap_or(0)).set(
                start,
                iterations,
                self.qed_iterations.unwrap_or(0),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn v24_retransmission_eight_ms_later() {
        // Each record: head, two block slots, tail.
        let payload = bytes_of(
            "18 03 AA 55     # version 24, three records, two bytes not explained
             83 0C           # 0xC83: SFN 200, subframe 3
             19 01 01 01     # 25 PRBs, one layer, one block, serving cell 1
             C5 00           # HARQ 5, RV 0, NDI 1 << 6, passed 1 << 7; C-RNTI, block 0
             DC 05 0F 19 04 00     # 1500 bytes, MCS 15, 25 PRBs, 4 bits a symbol
             00 00 00 00 00 00 00 00     # no second block
             00 00           # no multicast
             85 0C 19 01 01 01     # subframe 5
             06 00           # HARQ 6, RV 0, NDI 0, failed
             DC 05 0F 19 04 00
             00 00 00 00 00 00 00 00 00 00
             93 0C 19 01 01 01     # 0xC93: SFN 201, subframe 3
             A6 40           # HARQ 6, RV 2 << 4, NDI 0, passed; recombined 1 << 6
             DC 05 1E 19 04 00     # MCS 30
             00 00 00 00 00 00 00 00 00 00",
        );
        let (stat, problem) = PdschStat::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let [first, second, third] = &stat.records[..] else { panic!("{stat:?}") };
        assert_eq!((first.tti, first.n_prb, first.layers), (Tti::new(200, 3), 25, 1));
        assert_eq!((first.blocks.len(), first.serving_cell), (1, 1));
        let block = first.blocks[0];
        assert_eq!((block.harq_id, block.rv, block.ndi, block.crc_ok), (5, 0, true, true));
        assert_eq!((block.rnti_type, block.tb, block.tbs_bytes), (RntiType::C, 0, 1500));
        assert_eq!((block.mcs, block.n_prb), (15, 25));
        assert_eq!(block.modulation, Some(Modulation::Qam16));
        let block = second.blocks[0];
        assert_eq!((second.tti, block.harq_id, block.crc_ok), (Tti::new(200, 5), 6, false));
        let block = third.blocks[0];
        assert_eq!((third.tti, block.harq_id, block.rv), (Tti::new(201, 3), 6, 2));
        assert_eq!((block.ndi, block.crc_ok, block.recombined), (false, true, true));
        assert_eq!((block.mcs, block.tbs_bytes), (30, 1500));
        // The unexplained bytes 2 and 3 are not kept.
        assert_eq!(stat.emit()[..4], [24, 3, 0, 0]);
        assert_eq!(stat.emit()[4..], payload[4..]);
    }

    #[test]
    fn a_cut_batch_gives_what_was_there() {
        let payload = bytes_of(
            "18 02 00 00
             83 0C 19 01 01 01 C5 00 DC 05 0F 19 04 00 00 00 00 00 00 00 00 00 00 00
             85 0C 19 01 01 01 06",
        );
        let (stat, problem) = PdschStat::parse(&payload).unwrap().unwrap();
        assert_eq!(stat.records.len(), 1);
        assert_eq!(problem.map(|short| (short.field, short.at)), Some(("transport block 0", 34)));
    }

    fn one(payload: &[u8]) -> PdschStatRecord {
        let (stat, problem) = PdschStat::parse(payload).unwrap().unwrap();
        assert_eq!(problem, None);
        stat.records[0].clone()
    }

    #[test]
    fn v16_takes_the_modulation_from_the_mcs() {
        // Two blocks of 6 bytes: HARQ 3, RV 2, failed; HARQ 4, NDI, passed.
        let record = one(&bytes_of(
            "10 01 00 00
             83 0C 19 02 02 01
             23 40 DC 05 11 19     # 1500 bytes, MCS 17
             C4 10 E8 03 0A 20     # 1000 bytes, MCS 10
             00 00",
        ));
        assert_eq!((record.tti, record.serving_cell), (Tti::new(200, 3), 1));
        let [first, second] = record.blocks[..] else { panic!("{record:?}") };
        assert_eq!((first.harq_id, first.rv, first.crc_ok, first.recombined), (3, 2, false, true));
        assert_eq!((first.tbs_bytes, first.modulation), (1500, Some(Modulation::Qam64)));
        assert_eq!((second.harq_id, second.ndi, second.crc_ok, second.tb), (4, true, true, 1));
        assert_eq!((second.tbs_bytes, second.n_prb), (1000, 32));
        assert_eq!(second.modulation, Some(Modulation::Qam16));
    }

    #[test]
    fn late_versions_have_larger_slots() {
        // Head of 12, slots of 12, tail of 4 bytes.
        let head = "01 00 00 83 0C 19 01 01 00 00 07 00 00 00 00";
        let rest = "00 00 00 00 00 00 00 00 00 00 00 00 05 06 00 00";
        let v36 = format!("24 {head} C5 60 00 00 DC 05 0F 19 04 0E 00 00 {rest}");
        let record = one(&bytes_of(&v36));
        let block = record.blocks[0];
        assert_eq!(
            (block.discarded_retx, block.recombined, block.discard_mode),
            (true, true, None)
        );
        assert_eq!((block.tbs_bytes, block.mcs, block.n_prb), (1500, 15, 25));
        assert_eq!((block.qed_status, block.qed_iterations), (Some(2), Some(3)));
        assert_eq!((record.pmch_id, record.area_id, record.alternative_tbs), (5, 6, None));
        let v37 = format!("25 {head} C5 80 01 00 DC 05 0F 19 04 0E 00 00 {rest}");
        let record = one(&bytes_of(&v37));
        assert_eq!((record.blocks[0].recombined, record.blocks[0].discard_mode), (true, Some(2)));
        assert_eq!((record.alternative_tbs, record.hsic), (Some(7), None));
        // Word at 1: RNTI type 0, mode 9 in bits 6-9, recombining in bit 10.
        let v40 = format!("28 {head} C5 40 06 00 DC 05 0F 19 04 0E 00 00 {rest}");
        let record = one(&bytes_of(&v40));
        assert_eq!((record.blocks[0].recombined, record.blocks[0].discard_mode), (true, Some(9)));
    }
}
