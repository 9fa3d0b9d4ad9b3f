//! 0xB063 and 0xB064, LTE_MAC_DL_Transport_Block and
//! LTE_MAC_UL_Transport_Block: MAC transport blocks with padding, headers and
//! control elements. Downlink blocks appear once, after their CRC passed.
//!
//! Downlink, subpacket 7, versions 2 and 4: u8 blocks; per block (v4: u8 sub
//! id, u8 cell), u16 subframe 4 bits and SFN 12 bits, u8 RNTI type, u8 HARQ
//! id, u16 PMCH, u16 TBS in bytes, u8 RLC PDUs, u16 padding, u8 header length
//! H, H bytes.
//!
//! Uplink, subpacket 8, versions 1 to 8: u8 blocks; per block (from v2: u8 sub id,
//! u8 cell), u8 HARQ id, u8 RNTI type, u16 subframe and SFN, u16 grant in
//! bytes, u8 RLC PDUs, u16 padding, u8 BSR event, u8 BSR trigger, u8 H, H
//! bytes. Versions 2, 3, 5 and 8 share this layout by public sources; 4, 6 and
//! 7 have none of their own. A subpacket of version 3 and later is read only if
//! its blocks end where it does.

use airmile_model::{Direction, RntiType, Tti};
use serde::Serialize;
use smallvec::SmallVec;

use super::mac_header::MacHeader;
use super::shared::{TimeAt, get_tti, hex, rnti_code, set_tti, time_word, tti_count};
use super::subpacket::{self, Body};
use crate::diag::bits::{Cursor, Field, Short, Writer, u8_at, u16_at};
use crate::diag::msg::Soft;

/// A batch of downlink transport blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacDl {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<MacDlSubpacket>,
}

/// Downlink transport blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacDlSubpacket {
    /// Subpacket version: 2 or 4.
    pub version: u8,
    /// The blocks.
    pub blocks: Vec<MacDlBlock>,
}

/// A downlink transport block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacDlBlock {
    /// Sub id; v4.
    pub sub_id: Option<u8>,
    /// Serving-cell index: 0 the primary cell; v4.
    pub cell: Option<u8>,
    /// Subframe of the block's delivery to MAC.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// HARQ process.
    pub harq_id: u8,
    /// Physical multicast channel word.
    pub pmch: u16,
    /// Transport block size in bytes.
    pub tbs_bytes: u16,
    /// RLC PDUs in the block.
    pub rlc_pdus: u8,
    /// Padding in bytes.
    pub padding_bytes: u16,
    /// MAC subheaders and control elements, as logged.
    #[serde(serialize_with = "hex")]
    pub header: SmallVec<[u8; 16]>,
}

impl MacDlBlock {
    /// The subheaders (TS 36.321, 6.1.2). `None` for blocks to other RNTIs
    /// than this user's, which have other headers or none (6.1.4, 6.1.5).
    #[must_use]
    pub fn subheaders(&self) -> Option<MacHeader> {
        let has = self.rnti_type.is_user() || self.rnti_type == RntiType::TempC;
        let (tbs, padding) = (self.tbs_bytes.into(), self.padding_bytes.into());
        has.then(|| MacHeader::parse(Direction::Dl, &self.header, tbs, padding))
    }
}

/// A batch of uplink transport blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacUl {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<MacUlSubpacket>,
}

/// Uplink transport blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacUlSubpacket {
    /// Subpacket version: 1 to 8.
    pub version: u8,
    /// The blocks.
    pub blocks: Vec<MacUlBlock>,
}

/// An uplink transport block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MacUlBlock {
    /// Sub id; v2 and later.
    pub sub_id: Option<u8>,
    /// Serving-cell index: 0 the primary cell; v2 and later.
    pub cell: Option<u8>,
    /// HARQ process.
    pub harq_id: u8,
    /// Kind of RNTI.
    pub rnti_type: RntiType,
    /// Subframe of the transmission.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Granted bytes: the transport block's size.
    pub grant_bytes: u16,
    /// RLC PDUs in the block.
    pub rlc_pdus: u8,
    /// Padding in bytes.
    pub padding_bytes: u16,
    /// The cause of a BSR: 0 none, 1 the periodic timer, 2 data of higher priority, 3
    /// robustness.
    pub bsr_event: u8,
    /// The BSR: 0 none, 1 cancelled, 2 long, 3 short, and as padding 4 long,
    /// 5 short, 6 truncated.
    pub bsr_trigger: u8,
    /// MAC subheaders and control elements, as logged.
    #[serde(serialize_with = "hex")]
    pub header: SmallVec<[u8; 16]>,
}

impl MacUlBlock {
    /// The subheaders (TS 36.321, 6.1.2).
    #[must_use]
    pub fn subheaders(&self) -> MacHeader {
        let (grant, padding) = (self.grant_bytes.into(), self.padding_bytes.into());
        MacHeader::parse(Direction::Ul, &self.header, grant, padding)
    }
}

const DL_ID: u8 = 7;
const UL_ID: u8 = 8;
const SUB_ID: Field = u8_at(0);
const CELL: Field = u8_at(1);

const DL_TIME: TimeAt = time_word(0, 12);
const DL_RNTI: Field = u8_at(2);
const DL_HARQ: Field = u8_at(3);
const DL_PMCH: Field = u16_at(4);
const DL_TBS: Field = u16_at(6);
const DL_RLC_PDUS: Field = u8_at(8);
const DL_PADDING: Field = u16_at(9);
const DL_HEADER: Field = u8_at(11);
const DL_LEN: usize = 12;

const UL_HARQ: Field = u8_at(0);
const UL_RNTI: Field = u8_at(1);
const UL_TIME: TimeAt = time_word(2, 12);
const UL_GRANT: Field = u16_at(4);
const UL_RLC_PDUS: Field = u8_at(6);
const UL_PADDING: Field = u16_at(7);
const UL_EVENT: Field = u8_at(9);
const UL_TRIGGER: Field = u8_at(10);
const UL_HEADER: Field = u8_at(11);
const UL_LEN: usize = 12;

fn sub_id_and_cell(cursor: &mut Cursor<'_>, has: bool) -> Result<(Option<u8>, Option<u8>), Short> {
    if !has {
        return Ok((None, None));
    }
    let part = cursor.take(2, "sub id and cell")?;
    Ok((Some(part.u8(SUB_ID)), Some(part.u8(CELL))))
}

fn emit_sub_id_and_cell(writer: &mut Writer, has: bool, sub_id: Option<u8>, cell: Option<u8>) {
    if has {
        let start = writer.part(2);
        writer.set(start, SUB_ID, sub_id.unwrap_or(0)).set(start, CELL, cell.unwrap_or(0));
    }
}

/// The header bytes, up to the maximum of the length field.
fn header(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(255)]
}

impl MacDl {
    /// The log code.
    pub const CODE: u16 = 0xB063;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[2, 4];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            if body.id != DL_ID || !Self::VERSIONS.contains(&version) {
                return Ok(None);
            }
            let cursor = &mut body.cursor;
            let count = cursor.take(1, "number of blocks")?.u8(u8_at(0));
            let blocks = cursor.list(count.into(), problem, |cursor, _| {
                let (sub_id, cell) = sub_id_and_cell(cursor, version == 4)?;
                let part = cursor.take(DL_LEN, "transport block")?;
                Ok(MacDlBlock {
                    sub_id,
                    cell,
                    tti: get_tti(part, DL_TIME),
                    rnti_type: RntiType::from_code(part.u8(DL_RNTI)),
                    harq_id: part.u8(DL_HARQ),
                    pmch: part.u16(DL_PMCH),
                    tbs_bytes: part.u16(DL_TBS),
                    rlc_pdus: part.u8(DL_RLC_PDUS),
                    padding_bytes: part.u16(DL_PADDING),
                    header: cursor.take(part.u8(DL_HEADER).into(), "MAC header")?.bytes().into(),
                })
            });
            Ok(Some(MacDlSubpacket { version, blocks }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, DL_ID, sub.version, |writer| {
                writer.byte(sub.blocks.len() as u64);
                for block in &sub.blocks {
                    emit_sub_id_and_cell(writer, sub.version == 4, block.sub_id, block.cell);
                    let start = writer.part(DL_LEN);
                    set_tti(writer, start, DL_TIME, block.tti);
                    let header = header(&block.header);
                    writer
                        .set(start, DL_RNTI, rnti_code(block.rnti_type))
                        .set(start, DL_HARQ, block.harq_id)
                        .set(start, DL_PMCH, block.pmch)
                        .set(start, DL_TBS, block.tbs_bytes)
                        .set(start, DL_RLC_PDUS, block.rlc_pdus)
                        .set(start, DL_PADDING, block.padding_bytes)
                        .set(start, DL_HEADER, header.len() as u64)
                        .raw(header);
                }
            });
        }
        writer.finish()
    }
}

impl MacUl {
    /// The log code.
    pub const CODE: u16 = 0xB064;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[1, 2];
    /// Subpacket versions that are read as version 2, if their blocks close.
    pub const CHECKED_VERSIONS: &'static [u8] = &[3, 4, 5, 6, 7, 8];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            let checked = Self::CHECKED_VERSIONS.contains(&version);
            if body.id != UL_ID || !(checked || Self::VERSIONS.contains(&version)) {
                return Ok(None);
            }
            let cursor = &mut body.cursor;
            let count = cursor.take(1, "number of blocks")?.u8(u8_at(0));
            let blocks = cursor.list(count.into(), problem, |cursor, _| {
                let (sub_id, cell) = sub_id_and_cell(cursor, version >= 2)?;
                let part = cursor.take(UL_LEN, "transport block")?;
                Ok(MacUlBlock {
                    sub_id,
                    cell,
                    harq_id: part.u8(UL_HARQ),
                    rnti_type: RntiType::from_code(part.u8(UL_RNTI)),
                    tti: get_tti(part, UL_TIME),
                    grant_bytes: part.u16(UL_GRANT),
                    rlc_pdus: part.u8(UL_RLC_PDUS),
                    padding_bytes: part.u16(UL_PADDING),
                    bsr_event: part.u8(UL_EVENT),
                    bsr_trigger: part.u8(UL_TRIGGER),
                    header: cursor.take(part.u8(UL_HEADER).into(), "MAC header")?.bytes().into(),
                })
            });
            // Subpackets are filled up to a multiple of 4 bytes.
            let closes = problem.is_none() && cursor.left() < 4;
            if checked && !closes {
                *problem = None;
                return Ok(None);
            }
            Ok(Some(MacUlSubpacket { version, blocks }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, UL_ID, sub.version, |writer| {
                writer.byte(sub.blocks.len() as u64);
                for block in &sub.blocks {
                    emit_sub_id_and_cell(writer, sub.version >= 2, block.sub_id, block.cell);
                    let start = writer.part(UL_LEN);
                    set_tti(writer, start, UL_TIME, block.tti);
                    let header = header(&block.header);
                    writer
                        .set(start, UL_HARQ, block.harq_id)
                        .set(start, UL_RNTI, rnti_code(block.rnti_type))
                        .set(start, UL_GRANT, block.grant_bytes)
                        .set(start, UL_RLC_PDUS, block.rlc_pdus)
                        .set(start, UL_PADDING, block.padding_bytes)
                        .set(start, UL_EVENT, block.bsr_event)
                        .set(start, UL_TRIGGER, block.bsr_trigger)
                        .set(start, UL_HEADER, header.len() as u64)
                        .raw(header);
                }
            });
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::diag::msg::mac_header::{BsrElement, MacContent};
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn dl_v4_paging() {
        let payload = bytes_of(
            "01 01 00 00     # version 1, one subpacket
             07 04 20 00     # id 7, version 4, 32 = 4 + 1 + 2 + 12 + 12 bytes and 1 of filling
             01 02 01        # one block: sub id 2, cell 1
             09 20           # 0x2009: subframe 9, SFN 512 << 4
             02 03 00 00     # P-RNTI, HARQ 3, no multicast
             0C 00 00 00 00 0C     # 12 bytes, no RLC PDU, no padding, all 12 logged
             11 11 11 11 11 11 11 11 11 11 11 11
             00",
        );
        let (mac, problem) = MacDl::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let block = &mac.subpackets[0].blocks[0];
        assert_eq!((block.sub_id, block.cell), (Some(2), Some(1)));
        assert_eq!((block.tti, block.rnti_type), (Tti::new(512, 9), RntiType::P));
        assert_eq!((block.harq_id, block.tbs_bytes, block.padding_bytes), (3, 12, 0));
        assert_eq!(block.header[..], [0x11; 12]);
        assert_eq!(block.subheaders(), None);
        assert_eq!(mac.emit(), payload);
    }

    #[test]
    fn ul_v2_short_bsr() {
        let payload = bytes_of(
            "01 01 00 00     # version 1, one subpacket
             08 02 1C 00     # id 8, version 2, 28 = 4 + 1 + 2 + 12 + 7 bytes and 2 of filling
             01 01 00        # one block: sub id 1, cell 0
             05 00           # HARQ 5, C-RNTI
             07 20           # 0x2007: subframe 7, SFN 512 << 4
             2C 01 02        # 300 bytes, two RLC PDUs
             AD 00           # padding: 300 - 7 - 100 - 20 = 173
             01 03 07        # periodic, short BSR, header of 7 bytes
             3D              # E 1 << 5, LCID 29: short BSR
             23 64           # E 1 << 5, LCID 3: 100 bytes
             24 14           # E 1 << 5, LCID 4: 20 bytes
             1F              # padding
             54              # BSR: group 1 << 6, index 20
             00 00",
        );
        let (mac, problem) = MacUl::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let block = &mac.subpackets[0].blocks[0];
        assert_eq!((block.sub_id, block.cell), (Some(1), Some(0)));
        assert_eq!((block.harq_id, block.rnti_type, block.tti), (5, RntiType::C, Tti::new(512, 7)));
        assert_eq!((block.grant_bytes, block.rlc_pdus, block.padding_bytes), (300, 2, 173));
        assert_eq!((block.bsr_event, block.bsr_trigger), (1, 3));
        let header = block.subheaders();
        assert!(header.complete);
        let contents: Vec<_> =
            header.subheaders.iter().map(|s| (s.lcid, s.content.clone())).collect();
        let expected = [
            (29, MacContent::ControlElement(smallvec![0x54])),
            (3, MacContent::Sdu { len_bytes: Some(100) }),
            (4, MacContent::Sdu { len_bytes: Some(20) }),
            (31, MacContent::Padding { len_bytes: Some(173) }),
        ];
        assert_eq!(contents, expected);
        let bsr = BsrElement::Short { lcg: 1, index: 20, truncated: false };
        assert_eq!(header.bsr(), Some(bsr));
        assert_eq!(mac.emit(), payload);
    }
}
