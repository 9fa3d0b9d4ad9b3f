//! `.hdf`: unencoded log packets within an outer structure whose layout is not public.
//!
//! They are found by their head: `10 00 L L`, the two u16 lengths equal, a log code, a
//! time stamp from 2010 to 2050 (see [`crate::diag::frame`] for the rest of it). Bytes
//! between them are skipped. Bytes that only look like a head cost at most the 64 KiB
//! that its length can state: 16 bits of the mark, 16 of the length, 8 of the stamp and,
//! for a code without a name, a stamp within a day of the last packet's have to agree by
//! chance.

use airmile_model::{Problem, Severity};

use super::{Deframer, FoundFrame};
use crate::diag::frame::{CMD_LOG, CMD_MULTI_SIM, LOG_HEADER_LEN, WRAPPER_LEN};
use crate::diag::{hdlc, names};

/// 1.25 ms from 1980-01-06 to 2010-01-01 and to 2050-01-01.
const TICKS_2010: u64 = 10_953 * TICKS_PER_DAY;
const TICKS_2050: u64 = 25_563 * TICKS_PER_DAY;
const TICKS_PER_DAY: u64 = 86_400 * 800;

/// A packet's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketHeader {
    /// Length of the packet, these 16 bytes included.
    len: usize,
    ts_raw: u64,
}

impl PacketHeader {
    /// Reads the head at the start of `bytes`; `None` if there is none. `last` is the
    /// stamp of the previous packet.
    fn read(bytes: &[u8], last: Option<u64>) -> Option<Self> {
        let head = bytes.first_chunk::<LOG_HEADER_LEN>()?;
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (stated, code) = (word(2), word(6));
        if head[..2] != [CMD_LOG, 0] || stated != word(4) || stated < 12 {
            return None;
        }
        let ts_raw = u64::from_le_bytes([
            head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15],
        ]);
        let ticks = ts_raw >> 16;
        if !(TICKS_2010..TICKS_2050).contains(&ticks) || ts_raw & 0xffff >= 49_152 {
            return None;
        }
        let near = last.is_some_and(|last| (last >> 16).abs_diff(ticks) < TICKS_PER_DAY);
        let known = names::name(code).is_some() || (near && names::plausible(code));
        known.then_some(Self { len: usize::from(stated) + 4, ts_raw })
    }
}

/// Where in `bytes` the next head may begin, from `from` on; it may be invalid or
/// incomplete.
fn candidate(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(CMD_LOG, bytes.get(from..)?).map(|at| from + at)
}

/// The subscription stated by the wrapper right before a packet; 0 without a wrapper.
fn subscription_of(before: &[u8]) -> u8 {
    match before.last_chunk::<WRAPPER_LEN>() {
        Some([CMD_MULTI_SIM, 1, 0, 0, subscription @ 1..=9, 0, 0, 0]) => *subscription,
        _ => 0,
    }
}

/// Whether bytes without framing hold two or more unencoded packets. A packet that ends
/// in a CRC and an HDLC terminator does not count: it is a frame that needed no escapes.
pub(super) fn evidence(bytes: &[u8]) -> bool {
    let (mut at, mut last, mut found) = (0, None, 0);
    while let Some(start) = candidate(bytes, at) {
        match PacketHeader::read(&bytes[start..], last) {
            Some(head) if bytes.get(start + head.len + 2) != Some(&hdlc::TERMINATOR) => {
                last = Some(head.ts_raw);
                found += 1;
                if found == 2 {
                    return true;
                }
                at = start + head.len;
            }
            _ => at = start + 1,
        }
    }
    false
}

impl Deframer {
    /// The next unencoded packet. The bytes of a wrapper stay in the buffer until the
    /// packet after them has been found.
    pub(super) fn next_unencoded(&mut self) -> Option<FoundFrame> {
        let (behind, last) = self.behind;
        loop {
            let rest = &self.buffer[self.start..];
            let Some(at) = candidate(rest, self.scanned) else {
                self.keep_wrapper(rest.len());
                return None;
            };
            if rest.len() - at < LOG_HEADER_LEN && !self.finished {
                self.keep_wrapper(at);
                return None;
            }
            let Some(head) = PacketHeader::read(&rest[at..], last) else {
                self.scanned = at + 1;
                continue;
            };
            let offset = self.offset(self.start + at);
            if rest.len() - at < head.len {
                if !self.finished {
                    self.keep_wrapper(at);
                    return None;
                }
                self.start = self.buffer.len();
                let what = format!("last log packet is torn: {} bytes expected", head.len);
                return Some(FoundFrame::Problem(Problem::at(offset, Severity::Normal, what)));
            }
            // Trailing bytes of the last packet do not count as before this one.
            let free = at.min(usize::try_from(offset - behind).unwrap_or(usize::MAX));
            let subscription = subscription_of(&rest[at - free..at]);
            let (from, to) = (self.start + at, self.start + at + head.len);
            self.start = to;
            self.scanned = 0;
            self.behind = (self.offset(to), Some(head.ts_raw));
            self.counts.good_frames += 1;
            return Some(FoundFrame::Unencoded { offset, from, to, subscription });
        }
    }

    /// Discards the bytes before a place, except enough for a wrapper.
    fn keep_wrapper(&mut self, at: usize) {
        let drop = at.saturating_sub(WRAPPER_LEN);
        self.start += drop;
        self.scanned = at - drop;
    }
}
