//! DLF: a sequence of log records, without framing or CRC.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | u16 | length of the record with these 12 bytes |
//! | 2 | u16 | log code |
//! | 4 | u64 | time stamp |
//! | 12 | | payload |

use super::names;

/// Bytes before a record's payload.
pub const HEADER_LEN: usize = 12;

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Length of the record in bytes, these 12 included.
    pub len: usize,
    /// Log code.
    pub code: u16,
    /// Time stamp as stored.
    pub ts_raw: u64,
}

impl RecordHeader {
    /// Reads the head at the start of `bytes`; `None` if they are too few.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<HEADER_LEN>()?;
        Some(Self {
            len: u16::from_le_bytes([head[0], head[1]]).into(),
            code: u16::from_le_bytes([head[2], head[3]]),
            ts_raw: u64::from_le_bytes([
                head[4], head[5], head[6], head[7], head[8], head[9], head[10], head[11],
            ]),
        })
    }

    /// Whether it may be in a log: [`Self::sound`], and a log code.
    #[must_use]
    pub fn plausible(&self) -> bool {
        self.sound() && names::plausible(self.code)
    }

    /// Whether its length includes the head and its time is before 2100, with a valid
    /// fraction (see [`super::time`]).
    #[must_use]
    pub fn sound(&self) -> bool {
        /// 120 years of 1.25 ms from 1980.
        const TICKS_TO_2100: u64 = 120 * 365 * 86_400 * 800;
        self.len >= HEADER_LEN && self.ts_raw >> 16 < TICKS_TO_2100 && self.ts_raw & 0xffff < 49_152
    }

    /// Whether `next`, found at the end of this record, looks like the next one:
    /// plausible and less than a day away. (A modem's clock may jump further when it is
    /// set; that alone is no damage.)
    #[must_use]
    pub fn chains_to(&self, next: &Self) -> bool {
        const TICKS_PER_DAY: u64 = 86_400 * 800;
        next.plausible() && (self.ts_raw >> 16).abs_diff(next.ts_raw >> 16) < TICKS_PER_DAY
    }
}

/// Appends a record. A payload beyond the maximum of its length field is truncated.
pub fn emit(code: u16, ts_raw: u64, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min(super::frame::MAX_PAYLOAD_LEN)];
    out.extend(((payload.len() + HEADER_LEN) as u16).to_le_bytes());
    out.extend(code.to_le_bytes());
    out.extend(ts_raw.to_le_bytes());
    out.extend_from_slice(payload);
}
