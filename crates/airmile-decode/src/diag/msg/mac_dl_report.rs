//! 0xB063, LTE_MAC_DL_Transport_Block, message versions 49 and 50: transport blocks with
//! a descriptor of each SDU and control element, so one message has the evidence of the
//! MAC and the RLC layer. Older message versions are in [`super::mac_block`].
//!
//! Head: u8 version, 3 bytes, u16 blocks, u8 logical channels, u8 reason; in
//! version 49 then 532 bytes of cell statistics, which are skipped. Per block 16 bytes:
//!
//! | offset | bits | field |
//! |---|---|---|
//! | 0 | u32 | size in bytes |
//! | 4 | u32 | padding in bytes |
//! | 8 | 0-9, 10-13, 14, 15-18 | SFN, subframe, reparse flag, RNTI type |
//! | 12 | 0-3, 4-7 | carrier, HARQ process |
//! | 13 | u8 | descriptors |
//! | 14 | 0-11 | length of the MAC header in bytes |
//!
//! Per descriptor 12 bytes: control element flag 1 bit, LCID 6 bits, length 16
//! bits; then 9 bytes of the control element, or of an SDU at 3 u16 RLC SN; at
//! 5 D/C, P, RF, E, FI (2 bits), LSF, SO (16 bits); at 8 u8 PDCP groups; at 9
//! u16 length indicators. The length indicators (u32) and the PDCP groups (u32
//! words up to one whose bit 0 is clear) follow an SDU's descriptor.

use airmile_model::{RntiType, Tti};
use serde::Serialize;

use super::shared::{TimeAt, get_tti, hex, rnti_code, set_tti, tti_count};
use crate::diag::bits::{Cursor, Field, Short, Writer, bits_at, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// A batch of downlink transport blocks with their contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MacDlReport {
    /// Message version: 49 or 50.
    pub version: u8,
    /// Logical channels that the message counts.
    pub n_lcids: u8,
    /// The reason for writing it, as stored.
    pub reason: u8,
    /// The blocks.
    pub blocks: Vec<MacDlReportBlock>,
}

/// A downlink transport block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MacDlReportBlock {
    /// Transport block size in bytes.
    pub tbs_bytes: u32,
    /// Padding in bytes.
    pub padding_bytes: u32,
    /// Subframe of the block's delivery to MAC.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Reparse flag, as stored.
    pub reparse: bool,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// Carrier: 0 the primary one.
    pub carrier: u8,
    /// HARQ process.
    pub harq_id: u8,
    /// Length of the MAC header in bytes, 12 bits.
    pub header_bytes: u16,
    /// SDUs and control elements in order.
    pub items: Vec<MacItem>,
}

/// The item of a subheader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MacItem {
    /// A control element (TS 36.321, 6.1.3).
    ControlElement {
        /// LCID, 6 bits.
        lcid: u8,
        /// Its length in bytes.
        len_bytes: u16,
        /// Its first bytes, as stored: up to nine of them.
        #[serde(serialize_with = "hex")]
        payload: [u8; 9],
    },
    /// An SDU: an RLC PDU.
    Sdu {
        /// LCID, 6 bits.
        lcid: u8,
        /// Its length in bytes.
        len_bytes: u16,
        /// Its header.
        rlc: RlcFields,
        /// Length indicators, as stored.
        length_indicators: Vec<u32>,
        /// PDCP PDUs in it, as stored: words of which all but the last have bit 0 set.
        pdcp_groups: Vec<Vec<u32>>,
    },
}

/// The fields of an RLC header (TS 36.322, 6.2.2) as stored in the message; zeros if the
/// PDU has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RlcFields {
    /// Sequence number.
    pub sn: u16,
    /// D/C: true for a data PDU.
    pub data: bool,
    /// P: requests a STATUS PDU.
    pub poll: bool,
    /// RF: true for a segment of a PDU that was sent before.
    pub resegment: bool,
    /// E: length indicators follow the header's fixed part.
    pub extension: bool,
    /// FI: bit 1 set, the first byte does not begin an SDU; bit 0 set, the
    /// last byte does not end one.
    pub framing: u8,
    /// LSF: the last segment of a PDU.
    pub last_segment: bool,
    /// SO: offset of a segment in bytes.
    pub segment_offset_bytes: u16,
}

const BLOCKS: Field = u16_at(4);
const N_LCIDS: Field = u8_at(6);
const REASON: Field = u8_at(7);
const HEAD_LEN: usize = 8;
/// Version 49: 19 cells of 28 bytes.
const V49_STATISTICS_LEN: usize = 19 * 28;

const TBS: Field = u32_at(0);
const PADDING: Field = u32_at(4);
const TIME: TimeAt = TimeAt::Split { sfn: bits_at(8, 0, 10), subframe: bits_at(8, 10, 4) };
const REPARSE: Field = bits_at(8, 14, 1);
const RNTI: Field = bits_at(8, 15, 4);
const CARRIER: Field = bits_at(12, 0, 4);
const HARQ: Field = bits_at(12, 4, 4);
const ITEMS: Field = u8_at(13);
const HEADER: Field = bits_at(14, 0, 12);
const BLOCK_LEN: usize = 16;

const IS_CONTROL: Field = bits_at(0, 0, 1);
const LCID: Field = bits_at(0, 1, 6);
const LENGTH: Field = bits_at(0, 7, 16);
const CONTROL_AT: usize = 3;
const SN: Field = u16_at(3);
const DATA: Field = bits_at(5, 0, 1);
const POLL: Field = bits_at(5, 1, 1);
const RESEGMENT: Field = bits_at(5, 2, 1);
const EXTENSION: Field = bits_at(5, 3, 1);
const FRAMING: Field = bits_at(5, 4, 2);
const LAST_SEGMENT: Field = bits_at(5, 6, 1);
const SEGMENT_OFFSET: Field = bits_at(5, 7, 16);
const PDCP_GROUPS: Field = u8_at(8);
const INDICATORS: Field = u16_at(9);
const ITEM_LEN: usize = 12;

impl MacDlReport {
    /// The log code.
    pub const CODE: u16 = 0xB063;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[49, 50];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        if !Self::VERSIONS.contains(&version) {
            return Ok(None);
        }
        let head = cursor.take(HEAD_LEN, "message head")?;
        if version == 49 {
            cursor.take(V49_STATISTICS_LEN, "cell statistics")?;
        }
        let mut problem = None;
        let blocks = cursor.list(head.u16(BLOCKS).into(), &mut problem, block);
        let (n_lcids, reason) = (head.u8(N_LCIDS), head.u8(REASON));
        Ok(Some((Self { version, n_lcids, reason, blocks }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = Writer::new(HEAD_LEN);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, BLOCKS, self.blocks.len() as u64)
            .set(0, N_LCIDS, self.n_lcids)
            .set(0, REASON, self.reason);
        if self.version == 49 {
            writer.part(V49_STATISTICS_LEN);
        }
        for block in &self.blocks {
            block.emit(&mut writer);
        }
        writer.finish()
    }
}

fn block(cursor: &mut Cursor<'_>, _: &mut Option<Short>) -> Result<MacDlReportBlock, Short> {
    let part = cursor.take(BLOCK_LEN, "transport block")?;
    let n_items = usize::from(part.u8(ITEMS));
    let mut items = Vec::with_capacity(n_items.min(cursor.left() / ITEM_LEN));
    for _ in 0..n_items {
        items.push(item(cursor)?);
    }
    Ok(MacDlReportBlock {
        tbs_bytes: part.u32(TBS),
        padding_bytes: part.u32(PADDING),
        tti: get_tti(part, TIME),
        reparse: part.flag(REPARSE),
        rnti_type: RntiType::from_code(part.u8(RNTI)),
        carrier: part.u8(CARRIER),
        harq_id: part.u8(HARQ),
        header_bytes: part.u16(HEADER),
        items,
    })
}

fn item(cursor: &mut Cursor<'_>) -> Result<MacItem, Short> {
    let part = cursor.take(ITEM_LEN, "descriptor of an SDU")?;
    let (lcid, len_bytes) = (part.u8(LCID), part.u16(LENGTH));
    if part.flag(IS_CONTROL) {
        let mut payload = [0; 9];
        payload.copy_from_slice(&part.bytes()[CONTROL_AT..]);
        return Ok(MacItem::ControlElement { lcid, len_bytes, payload });
    }
    let n_indicators = usize::from(part.u16(INDICATORS));
    let mut length_indicators = Vec::with_capacity(n_indicators.min(cursor.left() / 4));
    for _ in 0..n_indicators {
        length_indicators.push(cursor.take(4, "length indicator")?.u32(u32_at(0)));
    }
    let n_groups = usize::from(part.u8(PDCP_GROUPS));
    let mut pdcp_groups = Vec::with_capacity(n_groups.min(cursor.left() / 4));
    for _ in 0..n_groups {
        let mut words = Vec::new();
        loop {
            let word = cursor.take(4, "PDCP group")?.u32(u32_at(0));
            words.push(word);
            if word & 1 == 0 {
                break;
            }
        }
        pdcp_groups.push(words);
    }
    let rlc = RlcFields {
        sn: part.u16(SN),
        data: part.flag(DATA),
        poll: part.flag(POLL),
        resegment: part.flag(RESEGMENT),
        extension: part.flag(EXTENSION),
        framing: part.u8(FRAMING),
        last_segment: part.flag(LAST_SEGMENT),
        segment_offset_bytes: part.u16(SEGMENT_OFFSET),
    };
    Ok(MacItem::Sdu { lcid, len_bytes, rlc, length_indicators, pdcp_groups })
}

impl MacDlReportBlock {
    /// Size minus header, SDUs, control elements and padding: 0, or -1 if the padding
    /// includes its own subheader.
    #[must_use]
    pub fn unexplained_bytes(&self) -> i64 {
        let items: i64 = self.items.iter().map(|item| i64::from(item.len_bytes())).sum();
        i64::from(self.tbs_bytes)
            - i64::from(self.header_bytes)
            - items
            - i64::from(self.padding_bytes)
    }

    fn emit(&self, writer: &mut Writer) {
        let start = writer.part(BLOCK_LEN);
        set_tti(writer, start, TIME, self.tti);
        let items = &self.items[..self.items.len().min(255)];
        writer
            .set(start, TBS, self.tbs_bytes)
            .set(start, PADDING, self.padding_bytes)
            .set(start, REPARSE, self.reparse)
            .set(start, RNTI, rnti_code(self.rnti_type))
            .set(start, CARRIER, self.carrier)
            .set(start, HARQ, self.harq_id)
            .set(start, ITEMS, items.len() as u64)
            .set(start, HEADER, self.header_bytes);
        items.iter().for_each(|item| item.emit(writer));
    }
}

impl MacItem {
    /// LCID of the subheader.
    #[must_use]
    pub const fn lcid(&self) -> u8 {
        match self {
            Self::ControlElement { lcid, .. } | Self::Sdu { lcid, .. } => *lcid,
        }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len_bytes(&self) -> u16 {
        match self {
            Self::ControlElement { len_bytes, .. } | Self::Sdu { len_bytes, .. } => *len_bytes,
        }
    }

    fn emit(&self, writer: &mut Writer) {
        let start = writer.part(ITEM_LEN);
        writer.set(start, LCID, self.lcid()).set(start, LENGTH, self.len_bytes());
        let (rlc, length_indicators, pdcp_groups) = match self {
            Self::ControlElement { payload, .. } => {
                writer.set(start, IS_CONTROL, true);
                for (i, &byte) in payload.iter().enumerate() {
                    writer.set(start, u8_at(CONTROL_AT + i), byte);
                }
                return;
            }
            Self::Sdu { rlc, length_indicators, pdcp_groups, .. } => {
                (rlc, length_indicators, pdcp_groups)
            }
        };
        // A group without words cannot be stored: nothing ends it.
        let groups: Vec<_> =
            pdcp_groups.iter().filter(|words| !words.is_empty()).take(255).collect();
        let indicators = &length_indicators[..length_indicators.len().min(usize::from(u16::MAX))];
        writer
            .set(start, SN, rlc.sn)
            .set(start, DATA, rlc.data)
            .set(start, POLL, rlc.poll)
            .set(start, RESEGMENT, rlc.resegment)
            .set(start, EXTENSION, rlc.extension)
            .set(start, FRAMING, rlc.framing)
            .set(start, LAST_SEGMENT, rlc.last_segment)
            .set(start, SEGMENT_OFFSET, rlc.segment_offset_bytes)
            .set(start, PDCP_GROUPS, groups.len() as u64)
            .set(start, INDICATORS, indicators.len() as u64);
        for indicator in indicators {
            writer.raw(&indicator.to_le_bytes());
        }
        for words in groups {
            let last = words.len() - 1;
            for (i, word) in words.iter().enumerate() {
                let more = u32::from(i < last);
                writer.raw(&((word & !1) | more).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    /// Two blocks: a segment of an RLC PDU with the poll bit, and a control
    /// element before padding.
    #[test]
    fn v50_byte_by_byte() {
        let payload = bytes_of(
            "32 00 00 00     # version 50
             02 00 01 00     # two blocks, one logical channel
             43 00 00 00     # 67 bytes
             28 00 00 00     # 40 bytes of padding
             E8 64 00 00     # SFN 232, subframe 9 << 10, reparse 1 << 14, C-RNTI
             61              # carrier 1, HARQ 6
             01              # one descriptor
             03 00           # header of 3 bytes
             08 0C 00        # SDU, LCID 4 << 1, 24 << 7 bytes
             05 00           # SN 5
             63 00 00        # D/C, P, FI 10, LSF
             01 01 00 00     # one PDCP group, one length indicator
             01 58 00 00     # the length indicator
             E6 5E 12 00     # the group: one word
             10 00 00 00     # 16 bytes
             0B 00 00 00     # 11 bytes of padding
             07 08 02 00     # SFN 7, subframe 2, temporary C-RNTI 4 << 15
             00 01 04 00     # carrier 0, HARQ 0, one descriptor, header of 4 bytes
             BB 00 00        # control element, LCID 29 << 1, 1 << 7 byte
             1F 00 00 00 00 00 00 00 00",
        );
        let (report, problem) = MacDlReport::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!((report.version, report.n_lcids, report.blocks.len()), (50, 1, 2));
        let [first, second] = &report.blocks[..] else { panic!("{report:?}") };
        assert_eq!((first.tbs_bytes, first.padding_bytes), (67, 40));
        assert_eq!((first.tti, first.rnti_type), (Tti::new(232, 9), RntiType::C));
        assert_eq!((first.carrier, first.harq_id, first.header_bytes), (1, 6, 3));
        assert_eq!(first.unexplained_bytes(), 0);
        let rlc = RlcFields {
            sn: 5,
            data: true,
            poll: true,
            framing: 2,
            last_segment: true,
            ..RlcFields::default()
        };
        assert_eq!(
            first.items,
            [MacItem::Sdu {
                lcid: 4,
                len_bytes: 24,
                rlc,
                length_indicators: vec![0x5801],
                pdcp_groups: vec![vec![0x12_5ee6]],
            }]
        );
        assert_eq!((second.tti, second.rnti_type), (Tti::new(7, 2), RntiType::TempC));
        assert_eq!(second.unexplained_bytes(), 0);
        assert!(matches!(
            second.items[..],
            [MacItem::ControlElement { lcid: 29, len_bytes: 1, payload: [31, 0, ..] }]
        ));
        assert_eq!(report.emit(), payload);
    }

    #[test]
    fn v49_has_statistics_before_its_blocks() {
        let mut payload = bytes_of("31 00 00 00 01 00 00 00");
        payload.resize(8 + 532, 0xEE);
        payload.extend(bytes_of("0B 00 00 00 0B 00 00 00 E0 0C 00 00 20 00 01 00"));
        let (report, problem) = MacDlReport::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let block = &report.blocks[0];
        assert_eq!((block.tbs_bytes, block.padding_bytes, block.harq_id), (11, 11, 2));
        assert_eq!((block.tti, block.unexplained_bytes()), (Tti::new(224, 3), -1));
    }

    #[test]
    fn a_cut_descriptor_gives_the_blocks_before_it() {
        let payload = bytes_of(
            "32 00 00 00 02 00 01 00
             0B 00 00 00 0B 00 00 00 E0 0C 00 00 20 00 01 00
             43 00 00 00 28 00 00 00 E8 64 00 00 61 01 03 00 08 0C",
        );
        let (report, problem) = MacDlReport::parse(&payload).unwrap().unwrap();
        assert_eq!(report.blocks.len(), 1);
        assert_eq!(problem.unwrap().field, "descriptor of an SDU");
    }
}
