//! 0xB888, NR5G MAC PDSCH Stats, version 2.2: counters per carrier. The layout
//! is from public sources and no sample was at hand: a hypothesis.
//!
//! u16 minor, u16 major, 8 bytes of flags, u16, u8, u8 records, 12 bytes;
//! record of 72 bytes: u32 carrier, slots, decodes, good blocks, failed
//! blocks, retransmissions, ACK as NACK, HARQ failures; u64 good bytes,
//! failed bytes, block bytes, padding bytes, retransmitted bytes.
//!
//! 0xB887, the per-slot message, has no public binary layout; its text form
//! is read by [`crate::text`].

use serde::Serialize;

use crate::diag::bits::{Cursor, Field, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Counters of NR carriers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrPdschStats {
    /// Per carrier.
    pub carriers: Vec<NrCarrierCounters>,
}

/// Counters of a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrCarrierCounters {
    /// Carrier.
    pub carrier: u32,
    /// Slots elapsed, decodes, good blocks, failed blocks, retransmissions,
    /// ACKs taken as NACK, HARQ failures.
    pub counts: [u32; 7],
    /// Good, failed, all, padding and retransmitted bytes.
    pub bytes: [u64; 5],
}

const MINOR: Field = u16_at(0);
const MAJOR: Field = u16_at(2);
const RECORDS: Field = u8_at(15);
const HEAD_LEN: usize = 28;
const RECORD_LEN: usize = 72;

impl NrPdschStats {
    /// The log code.
    pub const CODE: u16 = 0xB888;
    /// The minor versions, which the first byte gives, that have a layout.
    pub const VERSIONS: &'static [u8] = &[2];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.clone().take(4, "version")?;
        if (version.u16(MAJOR), version.u16(MINOR)) != (2, 2) {
            return Ok(None);
        }
        let count = cursor.take(HEAD_LEN, "message head")?.u8(RECORDS);
        let mut problem = None;
        let carriers = cursor.list(count.into(), &mut problem, |cursor, _| {
            let part = cursor.take(RECORD_LEN, "record")?;
            let word = |i: usize| part.u32(u32_at(4 * i));
            Ok(NrCarrierCounters {
                carrier: word(0),
                counts: std::array::from_fn(|i| word(1 + i)),
                bytes: std::array::from_fn(|i| {
                    u64::from(word(9 + 2 * i)) << 32 | u64::from(word(8 + 2 * i))
                }),
            })
        });
        Ok(Some((Self { carriers }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.part(HEAD_LEN);
        writer.set(0, MINOR, 2u8).set(0, MAJOR, 2u8).set(0, RECORDS, self.carriers.len() as u64);
        for carrier in &self.carriers {
            let start = writer.part(RECORD_LEN);
            writer.set(start, u32_at(0), carrier.carrier);
            for (i, &count) in carrier.counts.iter().enumerate() {
                writer.set(start, u32_at(4 + 4 * i), count);
            }
            for (i, &bytes) in carrier.bytes.iter().enumerate() {
                writer.set(start, u32_at(32 + 8 * i), bytes & 0xffff_ffff);
                writer.set(start, u32_at(36 + 8 * i), bytes >> 32);
            }
        }
        writer.finish()
    }
}
