//! 0xB082 and 0xB092, LTE_RLC_DL_AM_All_PDU and LTE_RLC_UL_AM_All_PDU: the
//! header of every PDU of an RLC AM bearer.
//!
//! Subpacket 65 (downlink) or 70 (uplink), version 3: u8 RB configuration
//! index, u8 mode (1 AM), u8 SN length, 1 byte, u16 mask of enabled logs; then
//! downlink u16 VR(R), VR(X), VR(MS), VR(H), uplink u16 VT(A), VT(S), PDUs
//! without poll, u32 bytes without poll, u16 poll SN (TS 36.322, 7.1); u16
//! PDUs. Per PDU: u16 subframe 4 bits and SFN 12 bits, u16 size in bytes, u16
//! logged bytes L, 1 byte, then the PDU's first L bytes.

use airmile_model::Tti;
use serde::Serialize;
use smallvec::SmallVec;

use super::rlc_header::RlcHeader;
use super::shared::{TimeAt, get_tti, hex, set_tti, time_word, tti_count};
use super::subpacket::{self, Body};
use crate::diag::bits::{Cursor, Field, Short, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// PDUs that the phone's RLC received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlcDl {
    /// Message version: 1.
    pub version: u8,
    /// One subpacket per bearer.
    pub subpackets: Vec<RlcDlSubpacket>,
}

/// Downlink PDUs of a bearer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlcDlSubpacket {
    /// Subpacket version: 3.
    pub version: u8,
    /// RB configuration index.
    pub bearer: u8,
    /// RLC mode code: 1 acknowledged.
    pub mode: u8,
    /// Bits of a sequence number: 10 or 16.
    pub sn_bits: u8,
    /// Mask of enabled RLC logs.
    pub log_mask: u16,
    /// VR(R): the first SN not received in full.
    pub vr_r: u16,
    /// VR(X): the SN after the one that started t-Reordering.
    pub vr_x: u16,
    /// VR(MS): the highest SN that a STATUS PDU may report.
    pub vr_ms: u16,
    /// VR(H): the SN after the highest one received.
    pub vr_h: u16,
    /// The PDUs in order of delivery to RLC.
    pub pdus: Vec<LoggedPdu>,
}

/// PDUs that the phone's RLC sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlcUl {
    /// Message version: 1.
    pub version: u8,
    /// One subpacket per bearer.
    pub subpackets: Vec<RlcUlSubpacket>,
}

/// Uplink PDUs of a bearer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlcUlSubpacket {
    /// Subpacket version: 3.
    pub version: u8,
    /// RB configuration index.
    pub bearer: u8,
    /// RLC mode code: 1 acknowledged.
    pub mode: u8,
    /// Bits of a sequence number: 10 or 16.
    pub sn_bits: u8,
    /// Mask of enabled RLC logs.
    pub log_mask: u16,
    /// VT(A): the first SN not acknowledged.
    pub vt_a: u16,
    /// VT(S): the next SN to be sent.
    pub vt_s: u16,
    /// PDUs since the last poll.
    pub pdus_without_poll: u16,
    /// Bytes since the last poll.
    pub bytes_without_poll: u32,
    /// SN of the last poll.
    pub poll_sn: u16,
    /// The PDUs in order of sending.
    pub pdus: Vec<LoggedPdu>,
}

/// A PDU whose first bytes were logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedPdu {
    /// Subframe of its delivery to RLC (downlink) or sending (uplink).
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Size of the PDU in bytes, header included.
    pub size_bytes: u16,
    /// Its first bytes.
    #[serde(serialize_with = "hex")]
    pub head: SmallVec<[u8; 16]>,
}

impl LoggedPdu {
    /// The PDU's header; `None` if too little of it was logged.
    #[must_use]
    pub fn header(&self, sn_bits: u8) -> Option<RlcHeader> {
        RlcHeader::parse(&self.head, sn_bits)
    }
}

const DL_ID: u8 = 65;
const UL_ID: u8 = 70;

const BEARER: Field = u8_at(0);
const MODE: Field = u8_at(1);
const SN_BITS: Field = u8_at(2);
const LOG_MASK: Field = u16_at(4);

const VR_R: Field = u16_at(6);
const VR_X: Field = u16_at(8);
const VR_MS: Field = u16_at(10);
const VR_H: Field = u16_at(12);
const DL_PDUS: Field = u16_at(14);
const DL_LEN: usize = 16;

const VT_A: Field = u16_at(6);
const VT_S: Field = u16_at(8);
const PDUS_WITHOUT_POLL: Field = u16_at(10);
const BYTES_WITHOUT_POLL: Field = u32_at(12);
const POLL_SN: Field = u16_at(16);
const UL_PDUS: Field = u16_at(18);
const UL_LEN: usize = 20;

const TIME: TimeAt = time_word(0, 12);
const SIZE: Field = u16_at(2);
const LOGGED: Field = u16_at(4);
const PDU_LEN: usize = 7;

fn pdu(cursor: &mut Cursor<'_>, _: &mut Option<Short>) -> Result<LoggedPdu, Short> {
    let part = cursor.take(PDU_LEN, "PDU")?;
    let head = cursor.take(part.u16(LOGGED).into(), "logged bytes of a PDU")?;
    let (tti, size_bytes) = (get_tti(part, TIME), part.u16(SIZE));
    Ok(LoggedPdu { tti, size_bytes, head: head.bytes().into() })
}

fn emit_pdus(writer: &mut Writer, pdus: &[LoggedPdu]) {
    for pdu in pdus {
        let start = writer.part(PDU_LEN);
        set_tti(writer, start, TIME, pdu.tti);
        let head = &pdu.head[..pdu.head.len().min(usize::from(u16::MAX))];
        writer.set(start, SIZE, pdu.size_bytes).set(start, LOGGED, head.len() as u64).raw(head);
    }
}

impl RlcDl {
    /// The log code.
    pub const CODE: u16 = 0xB082;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[3];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            if body.id != DL_ID || !Self::VERSIONS.contains(&body.version) {
                return Ok(None);
            }
            let part = body.cursor.take(DL_LEN, "bearer state")?;
            let pdus = body.cursor.list(part.u16(DL_PDUS).into(), problem, pdu);
            Ok(Some(RlcDlSubpacket {
                version: body.version,
                bearer: part.u8(BEARER),
                mode: part.u8(MODE),
                sn_bits: part.u8(SN_BITS),
                log_mask: part.u16(LOG_MASK),
                vr_r: part.u16(VR_R),
                vr_x: part.u16(VR_X),
                vr_ms: part.u16(VR_MS),
                vr_h: part.u16(VR_H),
                pdus,
            }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, DL_ID, sub.version, |writer| {
                let start = writer.part(DL_LEN);
                writer
                    .set(start, BEARER, sub.bearer)
                    .set(start, MODE, sub.mode)
                    .set(start, SN_BITS, sub.sn_bits)
                    .set(start, LOG_MASK, sub.log_mask)
                    .set(start, VR_R, sub.vr_r)
                    .set(start, VR_X, sub.vr_x)
                    .set(start, VR_MS, sub.vr_ms)
                    .set(start, VR_H, sub.vr_h)
                    .set(start, DL_PDUS, sub.pdus.len() as u64);
                emit_pdus(writer, &sub.pdus);
            });
        }
        writer.finish()
    }
}

impl RlcUl {
    /// The log code.
    pub const CODE: u16 = 0xB092;
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[3];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            if body.id != UL_ID || !Self::VERSIONS.contains(&body.version) {
                return Ok(None);
            }
            let part = body.cursor.take(UL_LEN, "bearer state")?;
            let pdus = body.cursor.list(part.u16(UL_PDUS).into(), problem, pdu);
            Ok(Some(RlcUlSubpacket {
                version: body.version,
                bearer: part.u8(BEARER),
                mode: part.u8(MODE),
                sn_bits: part.u8(SN_BITS),
                log_mask: part.u16(LOG_MASK),
                vt_a: part.u16(VT_A),
                vt_s: part.u16(VT_S),
                pdus_without_poll: part.u16(PDUS_WITHOUT_POLL),
                bytes_without_poll: part.u32(BYTES_WITHOUT_POLL),
                poll_sn: part.u16(POLL_SN),
                pdus,
            }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, UL_ID, sub.version, |writer| {
                let start = writer.part(UL_LEN);
                writer
                    .set(start, BEARER, sub.bearer)
                    .set(start, MODE, sub.mode)
                    .set(start, SN_BITS, sub.sn_bits)
                    .set(start, LOG_MASK, sub.log_mask)
                    .set(start, VT_A, sub.vt_a)
                    .set(start, VT_S, sub.vt_s)
                    .set(start, PDUS_WITHOUT_POLL, sub.pdus_without_poll)
                    .set(start, BYTES_WITHOUT_POLL, sub.bytes_without_poll)
                    .set(start, POLL_SN, sub.poll_sn)
                    .set(start, UL_PDUS, sub.pdus.len() as u64);
                emit_pdus(writer, &sub.pdus);
            });
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::msg::shared::bytes_of;

    #[test]
    fn dl_three_pdus() {
        let payload = bytes_of(
            "01 01 00 00     # version 1, one subpacket
             41 03 30 00     # id 65, version 3, 48 = 4 + 16 + 3 * 9 bytes and 1 of filling
             23 01 0A 00     # bearer 35, AM, sequence numbers of 10 bits
             5A 00           # log mask
             14 00 18 00 14 00 18 00     # VR(R) 20, VR(X) 24, VR(MS) 20, VR(H) 24
             03 00           # three PDUs: time, size, 2 bytes logged, those
             C2 12 B0 04 02 00 00  80 16     # SFN 300 << 4, 2; 1200; data, SN 22
             D0 12 02 00 02 00 00  08 14     # SFN 301 << 4, 0; 2; STATUS, ACK_SN 517
             D4 12 3C 00 02 00 00  A8 17     # SFN 301 << 4, 4; 60; data, P, FI 01, SN 23
             00",
        );
        let (rlc, problem) = RlcDl::parse(&payload).unwrap().unwrap();
        assert_eq!(problem, None);
        let sub = &rlc.subpackets[0];
        assert_eq!((sub.bearer, sub.mode, sub.sn_bits), (35, 1, 10));
        assert_eq!((sub.vr_r, sub.vr_x, sub.vr_ms, sub.vr_h), (20, 24, 20, 24));
        let [first, second, third] = &sub.pdus[..] else { panic!("{sub:?}") };
        assert_eq!((first.tti, first.size_bytes), (Tti::new(300, 2), 1200));
        assert!(matches!(first.header(10), Some(RlcHeader::Data { sn: 22, poll: false, .. })));
        assert_eq!((second.tti, second.size_bytes), (Tti::new(301, 0), 2));
        assert!(matches!(second.header(10), Some(RlcHeader::Status { ack_sn: 517, .. })));
        assert_eq!((third.tti, third.size_bytes), (Tti::new(301, 4), 60));
        assert!(matches!(
            third.header(10),
            Some(RlcHeader::Data { sn: 23, poll: true, framing: 1, .. })
        ));
        assert_eq!(rlc.emit(), payload);
    }
}
