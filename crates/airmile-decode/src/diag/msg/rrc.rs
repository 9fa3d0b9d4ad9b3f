//! 0xB0C0, LTE_RRC_OTA_Packet; 0xB0C1, LTE_RRC_MIB_Packet; 0xB0C2,
//! LTE_RRC_Serv_Cell_Info: signalling and the cell's parameters.
//!
//! 0xB0C0: u8 version, u8 RRC release, u8 version detail, (from v25: u8 NR release,
//! u8 NR version), u8 bearer, u16 PCI, EARFCN (u16 up to v7, then u32), u16
//! subframe 4 bits and SFN 10 bits, u8 PDU type; then v2: u8 length, 1 byte;
//! v4: u16 length; v7: 4 bytes, u8 length, 1 byte; v8 and later: u8 SIB mask,
//! 3 bytes, u16 length, (from v30: 3 bytes, of which the last numbers the parts
//! of a message that was cut); then the ASN.1 message (TS 36.331), which is kept as
//! bytes.

use airmile_model::Tti;
use serde::Serialize;

use super::shared::{TimeAt, get_tti, hex, set_tti, time_word, tti_count};
use crate::diag::bits::{BEYOND, Cursor, Field, Short, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// An RRC message over the air; its ASN.1 is not decoded here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RrcOta {
    /// Message version: 2, 4, or 7 to 31.
    pub version: u8,
    /// RRC release.
    pub rrc_release: u8,
    /// RRC version within the release: major in the high, minor in the low 4 bits.
    pub rrc_version: u8,
    /// NR RRC release; v25 and later.
    pub nr_release: Option<u8>,
    /// NR RRC version; v25 and later.
    pub nr_version: Option<u8>,
    /// Signalling bearer.
    pub bearer: u8,
    /// Physical cell identity.
    pub pci: u16,
    /// EARFCN.
    pub earfcn: u32,
    /// Subframe; SFN 0 subframe 0 for uplink messages.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// PDU type code; see [`RrcOta::channel`].
    pub pdu_type: u8,
    /// SIB mask; v8 and later.
    pub sib_mask: Option<u8>,
    /// The ASN.1 message (TS 36.331).
    #[serde(serialize_with = "hex")]
    pub message: Vec<u8>,
}

impl RrcOta {
    /// The RRC channel of the message; the codes differ between versions.
    #[must_use]
    pub const fn channel(&self) -> Option<&'static str> {
        let first_dedicated = match self.version {
            // PCCH, DL-CCCH, DL-DCCH, UL-CCCH and UL-DCCH follow each other.
            9..=12 => 11,
            0..=8 | 13 | 22 => 4,
            14..=18 | 20 | 24 | 25 => 5,
            _ => 7,
        };
        let bcch = match self.version {
            9..=12 => 9,
            0..=8 | 13..=18 | 20 | 22 | 24 | 25 => 2,
            _ => 3,
        };
        if self.pdu_type == bcch {
            return Some("BCCH-DL-SCH");
        }
        match self.pdu_type.wrapping_sub(first_dedicated) {
            0 => Some("PCCH"),
            1 => Some("DL-CCCH"),
            2 => Some("DL-DCCH"),
            3 => Some("UL-CCCH"),
            4 => Some("UL-DCCH"),
            _ => None,
        }
    }
}

/// The master information block of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RrcMib {
    /// Message version: 1 or 2.
    pub version: u8,
    /// Physical cell identity.
    pub pci: u16,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// System frame number.
    pub sfn: u16,
    /// Transmit antenna ports.
    pub n_tx_antennas: u8,
    /// Downlink bandwidth in PRB pairs.
    pub n_prb_dl: u8,
}

/// The serving cell, as stored by RRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RrcServCell {
    /// Message version: 2 or 3.
    pub version: u8,
    /// Physical cell identity.
    pub pci: u16,
    /// Downlink EARFCN.
    pub earfcn_dl: u32,
    /// Uplink EARFCN.
    pub earfcn_ul: u32,
    /// Downlink bandwidth in PRB pairs.
    pub n_prb_dl: u8,
    /// Uplink bandwidth in PRB pairs.
    pub n_prb_ul: u8,
    /// Cell identity, 28 bits.
    pub cell_identity: u32,
    /// Tracking area code.
    pub tac: u16,
    /// Band indicator.
    pub band: u32,
    /// Mobile country code.
    pub mcc: u16,
    /// Digits of the mobile network code, 2 or 3.
    pub mnc_digits: u8,
    /// Mobile network code.
    pub mnc: u16,
    /// Allowed access.
    pub allowed_access: u8,
}

/// The layout of a version of 0xB0C0.
struct OtaLayout {
    nr: bool,
    wide_earfcn: bool,
    /// Bytes from the PDU type to the message, including the length field.
    tail: usize,
    length: Field,
    sib_mask: Option<Field>,
}

const OTA_V2: OtaLayout =
    OtaLayout { nr: false, wide_earfcn: false, tail: 2, length: u8_at(0), sib_mask: None };
const OTA_V4: OtaLayout = OtaLayout { length: u16_at(0), ..OTA_V2 };
const OTA_V7: OtaLayout = OtaLayout { tail: 6, length: u8_at(4), ..OTA_V2 };
const OTA_V8: OtaLayout = OtaLayout {
    nr: false,
    wide_earfcn: true,
    tail: 6,
    length: u16_at(4),
    sib_mask: Some(u8_at(0)),
};
const OTA_V25: OtaLayout = OtaLayout { nr: true, ..OTA_V8 };
const OTA_V30: OtaLayout = OtaLayout { tail: 9, ..OTA_V25 };

const fn ota_layout(version: u8) -> Option<&'static OtaLayout> {
    match version {
        2 => Some(&OTA_V2),
        4 => Some(&OTA_V4),
        7 => Some(&OTA_V7),
        8..=24 => Some(&OTA_V8),
        25..=29 => Some(&OTA_V25),
        30 | 31 => Some(&OTA_V30),
        _ => None,
    }
}

const BEARER: Field = u8_at(0);
const OTA_PCI: Field = u16_at(1);
const OTA_EARFCN_16: Field = u16_at(3);
const OTA_EARFCN_32: Field = u32_at(3);
/// The time, with the PDU type after it.
const OTA_TIME: TimeAt = time_word(0, 10);
const PDU_TYPE: Field = u8_at(2);

impl RrcOta {
    /// The log code.
    pub const CODE: u16 = 0xB0C0;
    /// Versions that stand for the layouts.
    pub const VERSIONS: &'static [u8] =
        &[2, 4, 7, 8, 9, 12, 13, 15, 19, 20, 22, 24, 25, 26, 27, 28, 29, 30, 31];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some(layout) = ota_layout(version) else { return Ok(None) };
        let head = cursor.take(3, "RRC version")?;
        let nr = if layout.nr { Some(cursor.take(2, "NR RRC version")?) } else { None };
        let cell = cursor.take(if layout.wide_earfcn { 7 } else { 5 }, "cell")?;
        let kind = cursor.take(3, "time and PDU type")?;
        let at = cursor.at();
        let tail = cursor.take(layout.tail, "message length")?;
        let length = usize::from(tail.u16(layout.length));
        let mut problem = None;
        if length > cursor.left() {
            problem = Some(Short { field: "RRC message", at: at + layout.tail, why: BEYOND });
        }
        let message = cursor.take(length.min(cursor.left()), "RRC message")?.bytes().to_vec();
        let earfcn = if layout.wide_earfcn { OTA_EARFCN_32 } else { OTA_EARFCN_16 };
        let ota = Self {
            version,
            rrc_release: head.u8(u8_at(1)),
            rrc_version: head.u8(u8_at(2)),
            nr_release: nr.map(|part| part.u8(u8_at(0))),
            nr_version: nr.map(|part| part.u8(u8_at(1))),
            bearer: cell.u8(BEARER),
            pci: cell.u16(OTA_PCI),
            earfcn: cell.u32(earfcn),
            tti: get_tti(kind, OTA_TIME),
            pdu_type: kind.u8(PDU_TYPE),
            sib_mask: layout.sib_mask.map(|field| tail.u8(field)),
            message,
        };
        Ok(Some((ota, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = ota_layout(self.version) else { return Vec::new() };
        let mut writer = Writer::default();
        writer.raw(&[self.version, self.rrc_release, self.rrc_version]);
        if layout.nr {
            writer.raw(&[self.nr_release.unwrap_or(0), self.nr_version.unwrap_or(0)]);
        }
        let start = writer.part(if layout.wide_earfcn { 7 } else { 5 });
        let earfcn = if layout.wide_earfcn { OTA_EARFCN_32 } else { OTA_EARFCN_16 };
        writer.set(start, BEARER, self.bearer).set(start, OTA_PCI, self.pci);
        writer.set(start, earfcn, self.earfcn);
        let start = writer.part(3);
        set_tti(&mut writer, start, OTA_TIME, self.tti);
        writer.set(start, PDU_TYPE, self.pdu_type);
        let start = writer.part(layout.tail);
        let length = self.message.len().min(layout.length.max() as usize);
        writer.set(start, layout.length, length as u64);
        if let Some(field) = layout.sib_mask {
            writer.set(start, field, self.sib_mask.unwrap_or(0));
        }
        writer.raw(&self.message[..length]);
        writer.finish()
    }
}

const PCI: Field = u16_at(1);

/// Offset of the fields after the EARFCN of a MIB message.
const fn mib_earfcn(version: u8) -> Option<(Field, usize)> {
    match version {
        1 => Some((u16_at(3), 5)),
        2 => Some((u32_at(3), 7)),
        _ => None,
    }
}

impl RrcMib {
    /// The log code.
    pub const CODE: u16 = 0xB0C1;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[1, 2];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some((earfcn, at)) = mib_earfcn(version) else { return Ok(None) };
        let part = cursor.take(at + 4, "MIB")?;
        let mib = Self {
            version,
            pci: part.u16(PCI),
            earfcn: part.u32(earfcn),
            sfn: part.u16(u16_at(at)),
            n_tx_antennas: part.u8(u8_at(at + 2)),
            n_prb_dl: part.u8(u8_at(at + 3)),
        };
        Ok(Some((mib, None)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((earfcn, at)) = mib_earfcn(self.version) else { return Vec::new() };
        let mut writer = Writer::new(at + 4);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, PCI, self.pci)
            .set(0, earfcn, self.earfcn)
            .set(0, u16_at(at), self.sfn)
            .set(0, u8_at(at + 2), self.n_tx_antennas)
            .set(0, u8_at(at + 3), self.n_prb_dl);
        writer.finish()
    }
}

/// EARFCN fields of a serving-cell message, and the offset of the rest.
const fn serv_cell_earfcn(version: u8) -> Option<(Field, Field, usize)> {
    match version {
        2 => Some((u16_at(3), u16_at(5), 7)),
        3 => Some((u32_at(3), u32_at(7), 11)),
        _ => None,
    }
}

// From the byte after the EARFCNs.
const N_PRB_DL: usize = 0;
const N_PRB_UL: usize = 1;
const CELL_IDENTITY: usize = 2;
const TAC: usize = 6;
const BAND: usize = 8;
const MCC: usize = 12;
const MNC_DIGITS: usize = 14;
const MNC: usize = 15;
const ACCESS: usize = 17;
const SERV_CELL_REST: usize = 18;

impl RrcServCell {
    /// The log code.
    pub const CODE: u16 = 0xB0C2;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[2, 3];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        let Some((dl, ul, at)) = serv_cell_earfcn(version) else { return Ok(None) };
        let part = cursor.take(at + SERV_CELL_REST, "serving cell")?;
        let cell = Self {
            version,
            pci: part.u16(PCI),
            earfcn_dl: part.u32(dl),
            earfcn_ul: part.u32(ul),
            n_prb_dl: part.u8(u8_at(at + N_PRB_DL)),
            n_prb_ul: part.u8(u8_at(at + N_PRB_UL)),
            cell_identity: part.u32(u32_at(at + CELL_IDENTITY)),
            tac: part.u16(u16_at(at + TAC)),
            band: part.u32(u32_at(at + BAND)),
            mcc: part.u16(u16_at(at + MCC)),
            mnc_digits: part.u8(u8_at(at + MNC_DIGITS)),
            mnc: part.u16(u16_at(at + MNC)),
            allowed_access: part.u8(u8_at(at + ACCESS)),
        };
        Ok(Some((cell, None)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((dl, ul, at)) = serv_cell_earfcn(self.version) else { return Vec::new() };
        let mut writer = Writer::new(at + SERV_CELL_REST);
        writer
            .set(0, u8_at(0), self.version)
            .set(0, PCI, self.pci)
            .set(0, dl, self.earfcn_dl)
            .set(0, ul, self.earfcn_ul)
            .set(0, u8_at(at + N_PRB_DL), self.n_prb_dl)
            .set(0, u8_at(at + N_PRB_UL), self.n_prb_ul)
            .set(0, u32_at(at + CELL_IDENTITY), self.cell_identity)
            .set(0, u16_at(at + TAC), self.tac)
            .set(0, u32_at(at + BAND), self.band)
            .set(0, u16_at(at + MCC), self.mcc)
            .set(0, u8_at(at + MNC_DIGITS), self.mnc_digits)
            .set(0, u16_at(at + MNC), self.mnc)
            .set(0, u8_at(at + ACCESS), self.allowed_access);
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn serving_cell_v3() {
        let payload = bytes_of(
            "03 4D 00        # version 3, PCI 77
             14 05 00 00     # EARFCN 1300
             64 4B 00 00     # EARFCN 19300
             4B 32           # 75 and 50 PRBs
             01 2C 01 00     # cell identity: eNB 300 << 8, cell 1
             64 00           # TAC 100
             03 00 00 00     # band 3
             01 00 02 01 00  # MCC 1, MNC of two digits 1: the test network 001-01
             01",
        );
        let (cell, problem) = RrcServCell::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!((cell.pci, cell.earfcn_dl, cell.earfcn_ul), (77, 1300, 19300));
        assert_eq!((cell.n_prb_dl, cell.n_prb_ul, cell.cell_identity), (75, 50, 300 << 8 | 1));
        assert_eq!((cell.tac, cell.band, cell.mcc, cell.mnc), (100, 3, 1, 1));
        assert_eq!((cell.mnc_digits, cell.allowed_access), (2, 1));
        assert_eq!(cell.emit(), payload);
    }

    #[test]
    fn a_cut_message_is_kept_and_told() {
        let payload = bytes_of(
            "08 0A 40        # version 8, release 10, RRC version 4.0
             01 4D 00        # bearer 1, PCI 77
             14 05 00 00     # EARFCN 1300
             04 20           # 0x2004: subframe 4, SFN 512 << 4
             06              # DL-DCCH
             00 00 00 00     # SIB mask
             08 00           # eight bytes, of which two are there
             AB CD",
        );
        let (ota, problem) = RrcOta::parse(&payload).unwrap().unwrap();
        assert_eq!((ota.pci, ota.earfcn, ota.message.len()), (77, 1300, 2));
        assert_eq!((ota.tti, ota.channel()), (Tti::new(512, 4), Some("DL-DCCH")));
        assert_eq!(problem, Some(Short { field: "RRC message", at: 19, why: BEYOND }));
    }
}
