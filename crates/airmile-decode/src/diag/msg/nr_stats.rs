//! Counters of NR's MAC layer: 0xB888, NR5G MAC PDSCH Stats, and 0xB881, NR5G MAC UL TB
//! Stats. The layouts are from public sources and no sample was available: they are read
//! if the records fill the payload.
//!
//! 0xB888, record: u32 carrier (3.1: one more u32), slots, decodes, good blocks,
//! failed blocks, retransmissions, ACK as NACK, HARQ failures; u64 good bytes,
//! failed bytes, block bytes, padding bytes, retransmitted bytes. Head: in 2.2
//! u16 minor, u16 major, 8 bytes of flags, u16, u8, u8 records, 12 bytes; in
//! 3.0 the version, 3 bytes, u8 records, 12 bytes; in 3.1 the version, 3 bytes,
//! u8 records, 8 bytes.
//!
//! 0xB881 3.1: the version, 3 bytes, u8 records, 4 bytes; record of 80 bytes:
//! u64 new bytes, u64 retransmitted bytes, u64 sums of MCS, of PRBs and of
//! power headroom, u32 maximum power, u32 new blocks, u32 retransmitted blocks,
//! 28 bytes on which sources differ.

use serde::Serialize;

use crate::diag::bits::{Cursor, Field, Part, Writer, u8_at, u16_at, u32_at};
use crate::diag::msg::Soft;

/// Counters of NR carriers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrPdschStats {
    /// Major and minor version: 2.2, 3.0 or 3.1.
    pub version: (u16, u16),
    /// Per carrier.
    pub carriers: Vec<NrCarrierCounters>,
}

/// Counters of a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrCarrierCounters {
    /// Carrier.
    pub carrier: u32,
    /// Slots elapsed, decodes, good blocks, failed blocks, retransmissions, ACKs misread
    /// as NACK, HARQ failures.
    pub counts: [u32; 7],
    /// Good, failed, all, padding and retransmitted bytes.
    pub bytes: [u64; 5],
}

/// Counters of the uplink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NrUlTbStats {
    /// Major and minor version: 3.1.
    pub version: (u16, u16),
    /// Per carrier, in the order of the message.
    pub carriers: Vec<NrUlCounters>,
}

/// Counters of a carrier's uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NrUlCounters {
    /// New and retransmitted bytes.
    pub bytes: [u64; 2],
    /// Sums over the blocks of MCS, of PRBs and of power headroom.
    pub sums: [u64; 3],
    /// Maximum power, as stored.
    pub max_power: u32,
    /// New and retransmitted blocks.
    pub blocks: [u32; 2],
}

const MINOR: Field = u16_at(0);
const MAJOR: Field = u16_at(2);

/// Head, field of the number of records, and offset of the slots in a record.
struct Layout {
    head: usize,
    records: Field,
    slots_at: usize,
}

impl Layout {
    const fn of(version: (u16, u16)) -> Option<Self> {
        match version {
            (2, 2) => Some(Self { head: 28, records: u8_at(15), slots_at: 4 }),
            (3, 0) => Some(Self { head: 20, records: u8_at(7), slots_at: 4 }),
            (3, 1) => Some(Self { head: 16, records: u8_at(7), slots_at: 8 }),
            _ => None,
        }
    }

    const fn bytes_at(&self) -> usize {
        self.slots_at + 7 * 4
    }

    const fn record(&self) -> usize {
        self.bytes_at() + 5 * 8
    }
}

fn version(part: Part<'_>) -> (u16, u16) {
    (part.u16(MAJOR), part.u16(MINOR))
}

fn u64_of(part: Part<'_>, at: usize) -> u64 {
    u64::from(part.u32(u32_at(at + 4))) << 32 | u64::from(part.u32(u32_at(at)))
}

fn set_u64(writer: &mut Writer, start: usize, at: usize, value: u64) {
    writer.set(start, u32_at(at), value & 0xffff_ffff).set(start, u32_at(at + 4), value >> 32);
}

impl NrPdschStats {
    /// The log code.
    pub const CODE: u16 = 0xB888;
    /// The versions, major and minor, that have a layout.
    pub const VERSIONS: &'static [(u16, u16)] = &[(2, 2), (3, 0), (3, 1)];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = version(cursor.peek(4, "version")?);
        let Some(layout) = Layout::of(version) else { return Ok(None) };
        let count = cursor.take(layout.head, "message head")?.u8(layout.records);
        let mut problem = None;
        let carriers = cursor.list(count.into(), &mut problem, |cursor, _| {
            let part = cursor.take(layout.record(), "record")?;
            Ok(NrCarrierCounters {
                carrier: part.u32(u32_at(0)),
                counts: std::array::from_fn(|i| part.u32(u32_at(layout.slots_at + 4 * i))),
                bytes: std::array::from_fn(|i| u64_of(part, layout.bytes_at() + 8 * i)),
            })
        });
        Ok(Some((Self { version, carriers }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Some(layout) = Layout::of(self.version) else { return Vec::new() };
        let mut writer = Writer::new(layout.head);
        writer.set(0, MINOR, self.version.1).set(0, MAJOR, self.version.0).set(
            0,
            layout.records,
            self.carriers.len() as u64,
        );
        for carrier in &self.carriers {
            let start = writer.part(layout.record());
            writer.set(start, u32_at(0), carrier.carrier);
            for (i, &count) in carrier.counts.iter().enumerate() {
                writer.set(start, u32_at(layout.slots_at + 4 * i), count);
            }
            for (i, &bytes) in carrier.bytes.iter().enumerate() {
                set_u64(&mut writer, start, layout.bytes_at() + 8 * i, bytes);
            }
        }
        writer.finish()
    }
}

const UL_HEAD_LEN: usize = 12;
const UL_RECORDS: Field = u8_at(7);
const UL_RECORD_LEN: usize = 80;

impl NrUlTbStats {
    /// The log code.
    pub const CODE: u16 = 0xB881;
    /// The versions, major and minor, that have a layout.
    pub const VERSIONS: &'static [(u16, u16)] = &[(3, 1)];

    /// Decodes a payload; see [`Soft`].
    pub fn parse(payload: &[u8]) -> Soft<Self> {
        let mut cursor = Cursor::new(payload);
        let version = version(cursor.peek(4, "version")?);
        if !Self::VERSIONS.contains(&version) {
            return Ok(None);
        }
        let count = cursor.take(UL_HEAD_LEN, "message head")?.u8(UL_RECORDS);
        let mut problem = None;
        let carriers = cursor.list(count.into(), &mut problem, |cursor, _| {
            let part = cursor.take(UL_RECORD_LEN, "record")?;
            Ok(NrUlCounters {
                bytes: std::array::from_fn(|i| u64_of(part, 8 * i)),
                sums: std::array::from_fn(|i| u64_of(part, 16 + 8 * i)),
                max_power: part.u32(u32_at(40)),
                blocks: std::array::from_fn(|i| part.u32(u32_at(44 + 4 * i))),
            })
        });
        Ok(Some((Self { version, carriers }, problem)))
    }

    /// The payload of this message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut writer = Writer::new(UL_HEAD_LEN);
        writer.set(0, MINOR, self.version.1).set(0, MAJOR, self.version.0).set(
            0,
            UL_RECORDS,
            self.carriers.len() as u64,
        );
        for carrier in &self.carriers {
            let start = writer.part(UL_RECORD_LEN);
            for (i, &bytes) in carrier.bytes.iter().chain(&carrier.sums).enumerate() {
                set_u64(&mut writer, start, 8 * i, bytes);
            }
            writer.set(start, u32_at(40), carrier.max_power);
            for (i, &blocks) in carrier.blocks.iter().enumerate() {
                writer.set(start, u32_at(44 + 4 * i), blocks);
            }
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrier() -> NrCarrierCounters {
        NrCarrierCounters {
            carrier: 1,
            counts: [2, 3, 4, 5, 6, 7, 8],
            bytes: [9 << 33, 10, 11, 12, 13],
        }
    }

    #[test]
    fn downlink_counters_of_each_version() {
        for (&version, len) in NrPdschStats::VERSIONS.iter().zip([28 + 72, 20 + 72, 16 + 76]) {
            let stats = NrPdschStats { version, carriers: vec![carrier()] };
            let payload = stats.emit();
            assert_eq!(payload.len(), len);
            assert_eq!(NrPdschStats::parse(&payload), Ok(Some((stats, None))));
        }
        // In 3.1 the carrier is followed by a word, and good bytes begin at 36.
        let payload = NrPdschStats { version: (3, 1), carriers: vec![carrier()] }.emit();
        assert_eq!(payload[..8], [1, 0, 3, 0, 0, 0, 0, 1]);
        assert_eq!(payload[16..28], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(payload[16 + 36..][..8], [0, 0, 0, 0, 18, 0, 0, 0]);
    }

    #[test]
    fn uplink_counters() {
        let carrier =
            NrUlCounters { bytes: [1 << 40, 2], sums: [3, 4, 5], max_power: 6, blocks: [7, 8] };
        let stats = NrUlTbStats { version: (3, 1), carriers: vec![carrier; 2] };
        let payload = stats.emit();
        assert_eq!(payload.len(), 12 + 2 * 80);
        // New bytes at 12, new blocks at 12 + 44.
        assert_eq!(payload[12..20], [0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(payload[12 + 44..][..8], [7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(NrUlTbStats::parse(&payload), Ok(Some((stats, None))));
        assert_eq!(NrUlTbStats::parse(&[2, 0, 3, 0]), Ok(None));
    }
}
