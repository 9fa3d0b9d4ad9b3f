//! 0xB18A, LTE_PHY_RLM_Report, version 1: radio link monitoring.
//!
//! u8 version, 2 bytes, u8 records; record of 12 bytes: u16 SFN 10 bits and
//! subframe 4 bits, u16 out-of-sync and u16 in-sync BLER in 100/32768 %, u16
//! counts of 5 bits each, u8 T310 state, 3 bytes.

use airmile_model::Tti;
use serde::Serialize;

use super::shared::{TimeAt, get_tti, set_tti, tti_count};
use crate::diag::bits::{Cursor, Field, Writer, bits_at, u8_at, u16_at};
use crate::diag::msg::Soft;

/// A batch of radio link monitoring results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlmReport {
    /// Message version: 1.
    pub version: u8,
    /// Results in order.
    pub records: Vec<RlmRecord>,
}

/// A radio link monitoring result (TS 36.133, 7.6; TS 36.331, 5.3.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RlmRecord {
    /// Subframe.
    #[serde(serialize_with = "tti_count")]
    pub tti: Option<Tti>,
    /// Block error rate for the out-of-sync decision, in 1/32768.
    pub out_of_sync_bler_x32768: u16,
    /// Block error rate for the in-sync decision, in 1/32768.
    pub in_sync_bler_x32768: u16,
    /// Out-of-sync indications in a row (N310 counts them).
    pub out_of_sync_count: u8,
    /// In-sync indications in a row (N311 counts them).
    pub in_sync_count: u8,
    /// State of timer T310.
    pub t310_state: u8,
}

const RECORDS: Field = u8_at(3);
const TIME: TimeAt = TimeAt::Split { sfn: bits_at(0, 0, 10), subframe: bits_at(0, 10, 4) };
const OUT_OF_SYNC: Field = u16_at(2);
const IN_SYNC: Field = u16_at(4);
const OUT_OF_SYNC_COUNT: Field = bits_at(6, 0, 5);
const IN_SYNC_COUNT: Field = bits_at(6, 5, 5);
const T310: Field = u8_at(8);
const RECORD_LEN: usize = 12;

impl RlmReport {
    /// The log code.
    pub const CODE: u16 = 0xB18A;
    /// The versions that have a layout.
    pub const VERSIONS: &'static [u8] = &[1];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.peek(1, "version")?.u8(u8_at(0));
        if !Self::VERSIONS.contains(&version) {
            return Ok(None);
        }
        let count = cursor.take(4, "message head")?.u8(RECORDS);
        let mut problem = None;
        let records = cursor.list(count.into(), &mut problem, |cursor, _| {
            let part = cursor.take(RECORD_LEN, "record")?;
            Ok(RlmRecord {
                tti: get_tti(part, TIME),
                out_of_sync_bler_x32768: part.u16(OUT_OF_SYNC),
                in_sync_bler_x32768: part.u16(IN_SYNC),
                out_of_sync_count: part.u8(OUT_OF_SYNC_COUNT),
                in_sync_count: part.u8(IN_SYNC_COUNT),
                t310_state: part.u8(T310),
            })
        });
        Ok(Some((Self { version, records }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = Writer::new(4);
        writer.set(0, u8_at(0), self.version).set(0, RECORDS, self.records.len() as u64);
        for record in &self.records {
            let start = writer.part(RECORD_LEN);
            set_tti(&mut writer, start, TIME, record.tti);
            writer
                .set(start, OUT_OF_SYNC, record.out_of_sync_bler_x32768)
                .set(start, IN_SYNC, record.in_sync_bler_x32768)
                .set(start, OUT_OF_SYNC_COUNT, record.out_of_sync_count)
                .set(start, IN_SYNC_COUNT, record.in_sync_count)
                .set(start, T310, record.t310_state);
        }
        writer.finish()
    }
}
