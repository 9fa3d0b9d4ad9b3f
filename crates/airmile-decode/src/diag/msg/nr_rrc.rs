//! 0xB821, NR RRC OTA packet, and 0xB823, NR RRC serving cell information.
//!
//! 0xB821: u32 version; u8 RRC release, u8 version detail, u8 bearer, u16 PCI,
//! (from 17 on u64 cell identity), u32 NR-ARFCN, time of 4 bytes (from 12 on of
//! 3), u8 PDU identity, u32 SIB mask, u16 length, (19, 20, 25: 1 byte; 23, 24,
//! 26, 28: 4 bytes); then the ASN.1 message (TS 38.331), which is kept as bytes.
//!
//! 0xB823: u16 minor, u16 major (or u32 4); (3.2 and 3.3: 3 bytes); u16 PCI, (from 3.0 on u64
//! cell identity), u32 downlink and uplink NR-ARFCN, u16 downlink and uplink
//! bandwidth in MHz, u64 cell identity, u16 MCC, u8 MNC digits, u16 MNC, u8
//! access, u32 tracking area, u16 band.

use serde::Serialize;

use super::shared::hex;
use crate::diag::bits::{BEYOND, Cursor, Field, Part, Short, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// An RRC message of NR over the air; its ASN.1 is not decoded here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrRrcOta {
    /// Message version: 8, 9, 12, 14, 17, 19, 20, 23 to 26 or 28.
    pub version: u32,
    /// RRC release.
    pub rrc_release: u8,
    /// RRC version within the release: major in the high, minor in the low 4 bits.
    pub rrc_version: u8,
    /// Signalling bearer.
    pub bearer: u8,
    /// Physical cell identity.
    pub pci: u16,
    /// NR-ARFCN; 0 if unknown.
    pub arfcn: u32,
    /// PDU identity, as stored.
    pub pdu_id: u8,
    /// The ASN.1 message (TS 38.331).
    #[serde(serialize_with = "hex")]
    pub message: Vec<u8>,
}

/// The serving cell of NR, as stored by RRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrServCell {
    /// Major version: 0 (for a plain version number) or 3.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Physical cell identity.
    pub pci: u16,
    /// Downlink NR-ARFCN.
    pub arfcn_dl: u32,
    /// Uplink NR-ARFCN.
    pub arfcn_ul: u32,
    /// Downlink bandwidth in MHz.
    pub bandwidth_dl_mhz: u16,
    /// Uplink bandwidth in MHz.
    pub bandwidth_ul_mhz: u16,
    /// Cell identity, 36 bits.
    pub cell_identity: u64,
    /// Mobile country code.
    pub mcc: u16,
    /// Digits of the mobile network code, 2 or 3.
    pub mnc_digits: u8,
    /// Mobile network code.
    pub mnc: u16,
    /// Allowed access.
    pub allowed_access: u8,
    /// Tracking area code.
    pub tac: u32,
    /// Band.
    pub band: u16,
}

/// The layout of a version of 0xB821.
struct OtaLayout {
    /// Whether a cell identity precedes the NR-ARFCN.
    identity: bool,
    time_len: usize,
    /// Bytes between the length and the message.
    tail_len: usize,
}

const fn ota_layout(version: u32) -> Option<OtaLayout> {
    let (identity, time_len, tail_len) = match version {
        8 | 9 => (false, 4, 0),
        12 | 14 => (false, 3, 0),
        17 => (true, 3, 0),
        19 | 20 | 25 => (true, 3, 1),
        23 | 24 | 26 | 28 => (true, 3, 4),
        _ => return None,
    };
    Some(OtaLayout { identity, time_len, tail_len })
}

const VERSION: Field = u32_at(0);
const RELEASE: Field = u8_at(4);
const DETAIL: Field = u8_at(5);
const BEARER: Field = u8_at(6);
const OTA_PCI: Field = u16_at(7);

impl OtaLayout {
    const fn arfcn_at(&self) -> usize {
        if self.identity { 17 } else { 9 }
    }

    const fn pdu_at(&self) -> usize {
        self.arfcn_at() + 4 + self.time_len
    }

    const fn length_at(&self) -> usize {
        self.pdu_at() + 5
    }

    const fn head_len(&self) -> usize {
        self.length_at() + 2 + self.tail_len
    }
}

impl NrRrcOta {
    /// The log code.
    pub const CODE: u16 = 0xB821;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[8, 9, 12, 14, 17, 19, 20, 23, 24, 25, 26, 28];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(4, "version")?.u32(VERSION);
        let Some(layout) = ota_layout(version) else { return Ok(None) };
        let head = cursor.take(layout.head_len(), "message head")?;
        let length = usize::from(head.u16(u16_at(layout.length_at())));
        let mut problem = None;
        if length > cursor.left() {
            problem = Some(Short { field: "RRC message", at: cursor.at(), why: BEYOND });
        }
        let message = cursor.take(length.min(cursor.left()), "RRC message")?.bytes().to_vec();
        let ota = Self {
            version,
            rrc_release: head.u8(RELEASE),
            rrc_version: head.u8(DETAIL),
            bearer: head.u8(BEARER),
            pci: head.u16(OTA_PCI),
            arfcn: head.u32(u32_at(layout.arfcn_at())),
            pdu_id: head.u8(u8_at(layout.pdu_at())),
            message,
        };
        Ok(Some((ota, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = ota_layout(self.version) else { return Vec::new() };
        let mut writer = Writer::new(layout.head_len());
        let message = &self.message[..self.message.len().min(usize::from(u16::MAX))];
        writer
            .set(0, VERSION, self.version)
            .set(0, RELEASE, self.rrc_release)
            .set(0, DETAIL, self.rrc_version)
            .set(0, BEARER, self.bearer)
            .set(0, OTA_PCI, self.pci)
            .set(0, u32_at(layout.arfcn_at()), self.arfcn)
            .set(0, u8_at(layout.pdu_at()), self.pdu_id)
            .set(0, u16_at(layout.length_at()), message.len() as u64)
            .raw(message);
        writer.finish()
    }
}

/// Offset of the PCI of 0xB823, and the fields after it with the first cell identity, if
/// there is one.
const fn cell_layout(major: u16, minor: u16) -> Option<(usize, usize)> {
    match (major, minor) {
        (0, 4) => Some((4, 6)),
        (3, 0) => Some((4, 14)),
        (3, 2 | 3) => Some((7, 17)),
        _ => None,
    }
}

const CELL_REST_LEN: usize = 32;

fn u64_of(part: Part<'_>, at: usize) -> u64 {
    u64::from(part.u32(u32_at(at + 4))) << 32 | u64::from(part.u32(u32_at(at)))
}

impl NrServCell {
    /// The log code.
    pub const CODE: u16 = 0xB823;
    /// The versions, major and minor, that have a layout.
    pub const VERSIONS: &'static [(u16, u16)] = &[(0, 4), (3, 0), (3, 2), (3, 3)];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(4, "version")?;
        let (major, minor) = (version.u16(u16_at(2)), version.u16(u16_at(0)));
        let Some((pci, at)) = cell_layout(major, minor) else { return Ok(None) };
        let part = cursor.take(at + CELL_REST_LEN, "serving cell")?;
        let cell = Self {
            major,
            minor,
            pci: part.u16(u16_at(pci)),
            arfcn_dl: part.u32(u32_at(at)),
            arfcn_ul: part.u32(u32_at(at + 4)),
            bandwidth_dl_mhz: part.u16(u16_at(at + 8)),
            bandwidth_ul_mhz: part.u16(u16_at(at + 10)),
            cell_identity: u64_of(part, at + 12),
            mcc: part.u16(u16_at(at + 20)),
            mnc_digits: part.u8(u8_at(at + 22)),
            mnc: part.u16(u16_at(at + 23)),
            allowed_access: part.u8(u8_at(at + 25)),
            tac: part.u32(u32_at(at + 26)),
            band: part.u16(u16_at(at + 30)),
        };
        Ok(Some((cell, None)))
    }

    /// The payload of this message; the first of two cell identities is zero.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some((pci, at)) = cell_layout(self.major, self.minor) else { return Vec::new() };
        let mut writer = Writer::new(at + CELL_REST_LEN);
        writer
            .set(0, u16_at(0), self.minor)
            .set(0, u16_at(2), self.major)
            .set(0, u16_at(pci), self.pci)
            .set(0, u32_at(at), self.arfcn_dl)
            .set(0, u32_at(at + 4), self.arfcn_ul)
            .set(0, u16_at(at + 8), self.bandwidth_dl_mhz)
            .set(0, u16_at(at + 10), self.bandwidth_ul_mhz)
            .set(0, u32_at(at + 12), self.cell_identity & 0xffff_ffff)
            .set(0, u32_at(at + 16), self.cell_identity >> 32)
            .set(0, u16_at(at + 20), self.mcc)
            .set(0, u8_at(at + 22), self.mnc_digits)
            .set(0, u16_at(at + 23), self.mnc)
            .set(0, u8_at(at + 25), self.allowed_access)
            .set(0, u32_at(at + 26), self.tac)
            .set(0, u16_at(at + 30), self.band);
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn ota_v9_and_its_message() {
        let payload = bytes_of(
            "09 00 00 00 0F 60 01 2C 01     # version 9, release 15, 6.0, bearer 1, PCI 300
             E0 AC 09 00                    # NR-ARFCN 634080
             00 00 00 00 09                 # no time, PDU 9
             00 00 00 00 03 00 AA BB CC     # no SIB mask, three bytes",
        );
        let (ota, problem) = NrRrcOta::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        assert_eq!((ota.pci, ota.arfcn, ota.pdu_id), (300, 634_080, 9));
        assert_eq!(ota.message, [0xaa, 0xbb, 0xcc]);
        assert_eq!(ota.emit(), payload);
        let (_, problem) = NrRrcOta::parse(&payload[..payload.len() - 1]).unwrap().unwrap();
        assert_eq!(problem.unwrap().field, "RRC message");
    }

    #[test]
    fn heads_of_each_version() {
        let lens = [24, 24, 23, 23, 31, 32, 32, 35, 35, 32, 35, 35];
        for (&version, len) in NrRrcOta::VERSIONS.iter().zip(lens) {
            let ota = NrRrcOta {
                version: version.into(),
                rrc_release: 16,
                rrc_version: 0x40,
                bearer: 1,
                pci: 7,
                arfcn: 500_000,
                pdu_id: 3,
                message: vec![1, 2],
            };
            assert_eq!(ota.emit().len(), len + 2, "v{version}");
            assert_eq!(NrRrcOta::parse(&ota.emit()), Ok(Some((ota, None))));
        }
    }

    #[test]
    fn serving_cell_both_ways() {
        for &(major, minor) in NrServCell::VERSIONS {
            let cell = NrServCell {
                major,
                minor,
                pci: 669,
                arfcn_dl: 641_760,
                arfcn_ul: 640_726,
                bandwidth_dl_mhz: 90,
                bandwidth_ul_mhz: 80,
                cell_identity: 0x4_1234_5678,
                mcc: 1,
                mnc_digits: 2,
                mnc: 1,
                allowed_access: 0,
                tac: 0x01_0203,
                band: 78,
            };
            assert_eq!(NrServCell::parse(&cell.emit()), Ok(Some((cell, None))));
        }
    }
}
