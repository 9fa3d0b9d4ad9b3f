//! 0xB0A3 and 0xB0B3, LTE_PDCP_DL_Cipher_Data_PDU and
//! LTE_PDCP_UL_Cipher_Data_PDU: PDCP data PDUs with size and sequence number.
//!
//! Subpacket 195, version 1 and 24 (downlink) or 26 (uplink): 32 bytes of
//! cipher keys, u8, u8, u16 PDUs; per PDU u16 (configuration 6 bits, mode,
//! SN length code 2 bits, bearer 5 bits, valid), u16 size, u16 logged bytes L,
//! u16 subframe 4 bits and SFN 10 bits, u32 SN, (v24, v26: 1 byte), L bytes.
//!
//! Keys and logged bytes are stepped over: they never enter a message, and
//! `emit` writes zeros for the keys and no logged bytes.

use airmile_model::Tti;
use serde::Serialize;

use super::shared::{TimeAt, get_tti, set_tti, time_word, tti_count};
use super::subpacket::{self, Body};
use crate::diag::bits::{Field, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// PDCP data PDUs; `CODE` is 0xB0A3 (downlink) or 0xB0B3 (uplink).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdcpCipher<const CODE: u16> {
    /// Message version: 1.
    pub version: u8,
    /// The subpackets that were understood.
    pub subpackets: Vec<PdcpCipherSubpacket>,
}

/// PDCP data PDUs of one subpacket.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PdcpCipherSubpacket {
    /// Subpacket version: 1, and 24 (downlink) or 26 (uplink).
    pub version: u8,
    /// Code of the signalling bearers' cipher.
    pub srb_cipher: u8,
    /// Code of the data bearers' cipher.
    pub drb_cipher: u8,
    /// The PDUs.
    pub pdus: Vec<PdcpPdu>,
}

/// A PDCP data PDU (TS 36.323, 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PdcpPdu {
    /// RB configuration index.
    pub bearer: u8,
    /// True: the bearer is in acknowledged mode.
    pub acknowledged_mode: bool,
    /// Code of the sequence number's length.
    pub sn_length_code: u8,
    /// Bearer identity as the cipher uses it.
    pub bearer_id: u8,
    /// Whether the modem marks the PDU as valid.
    pub valid: bool,
    /// Size of the PDU in bytes.
    pub size_bytes: u16,
    /// Subframe.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Sequence number, 12 bits.
    pub sn: u16,
}

const ID: u8 = 195;
const SRB_CIPHER: Field = u8_at(32);
const DRB_CIPHER: Field = u8_at(33);
const PDUS: Field = u16_at(34);
const HEAD_LEN: usize = 36;

const BEARER: Field = bits_at(0, 0, 6);
/// 0 in all public logs, whose bearers are acknowledged.
const UNACKNOWLEDGED: Field = bits_at(0, 6, 1);
const SN_LENGTH: Field = bits_at(0, 7, 2);
const BEARER_ID: Field = bits_at(0, 9, 5);
const VALID: Field = bits_at(0, 14, 1);
const SIZE: Field = u16_at(2);
const LOGGED: Field = u16_at(4);
const TIME: TimeAt = time_word(6, 10);
const SN: Field = bits_at(8, 0, 12);

impl<const CODE: u16> PdcpCipher<CODE> {
    /// The subpacket versions that have a layout.
    pub const VERSIONS: &'static [u8] = if CODE == 0xB0A3 { &[1, 24] } else { &[1, 26] };

    const fn pdu_len(version: u8) -> usize {
        if version == 1 { 12 } else { 13 }
    }

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let parsed = subpacket::parse_all(payload, |body: &mut Body<'_>, problem| {
            let version = body.version;
            if body.id != ID || !Self::VERSIONS.contains(&version) {
                return Ok(None);
            }
            let head = body.cursor.take(HEAD_LEN, "ciphering head")?;
            let pdus = body.cursor.list(head.u16(PDUS).into(), problem, |cursor, _| {
                let part = cursor.take(Self::pdu_len(version), "PDU")?;
                cursor.take(part.u16(LOGGED).into(), "logged bytes of a PDU")?;
                Ok(PdcpPdu {
                    bearer: part.u8(BEARER),
                    acknowledged_mode: !part.flag(UNACKNOWLEDGED),
                    sn_length_code: part.u8(SN_LENGTH),
                    bearer_id: part.u8(BEARER_ID),
                    valid: part.flag(VALID),
                    size_bytes: part.u16(SIZE),
                    tti: get_tti(part, TIME),
                    sn: part.u16(SN),
                })
            });
            let (srb_cipher, drb_cipher) = (head.u8(SRB_CIPHER), head.u8(DRB_CIPHER));
            Ok(Some(PdcpCipherSubpacket { version, srb_cipher, drb_cipher, pdus }))
        })?;
        Ok(parsed.map(|(version, subpackets, problem)| (Self { version, subpackets }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = subpacket::emit_head(self.version, self.subpackets.len());
        for sub in &self.subpackets {
            subpacket::emit(&mut writer, ID, sub.version, |writer| {
                let start = writer.part(HEAD_LEN);
                writer
                    .set(start, SRB_CIPHER, sub.srb_cipher)
                    .set(start, DRB_CIPHER, sub.drb_cipher)
                    .set(start, PDUS, sub.pdus.len() as u64);
                for pdu in &sub.pdus {
                    let start = writer.part(Self::pdu_len(sub.version));
                    set_tti(writer, start, TIME, pdu.tti);
                    writer
                        .set(start, BEARER, pdu.bearer)
                        .set(start, UNACKNOWLEDGED, !pdu.acknowledged_mode)
                        .set(start, SN_LENGTH, pdu.sn_length_code)
                        .set(start, BEARER_ID, pdu.bearer_id)
                        .set(start, VALID, pdu.valid)
                        .set(start, SIZE, pdu.size_bytes)
                        .set(start, SN, pdu.sn);
                }
            });
        }
        writer.finish()
    }
}
