//! A TCP segment (RFC 9293, 3.1) with commonly used options.

use std::ops::Range;

use super::contents::{Literal, bytes_of};

/// Header bytes without options (RFC 9293, 3.1).
const HEADER_BYTES: u32 = 20;

/// Control bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// SYN.
    pub syn: bool,
    /// ACK.
    pub ack: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// PSH.
    pub psh: bool,
}

/// A block of received data (RFC 2018, 3): the first sequence number in it, and
/// the first after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start_seq: u32,
    /// First sequence number after it.
    pub end_seq: u32,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpSegment {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number; valid if `flags.ack` is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field as on the wire: not scaled.
    pub window: u16,
    /// Maximum segment size (RFC 9293, 3.7.1); with SYN only.
    pub mss_bytes: Option<u16>,
    /// Window scale (RFC 7323, 2); with SYN only.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, 2); with SYN only.
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323, 3): TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018, 3); D-SACK first (RFC 2883).
    pub sack: Vec<SackBlock>,
    /// The payload as offsets into the sender's stream.
    pub payload: Range<u64>,
    /// The literal parts of the payload; the rest is only counted.
    pub literals: Vec<Literal>,
}

impl TcpSegment {
    /// Payload length in bytes.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        u32::try_from(self.payload.end.saturating_sub(self.payload.start)).unwrap_or(u32::MAX)
    }

    /// The payload's bytes, as in a capture.
    #[must_use]
    pub fn payload_content(&self) -> Vec<u8> {
        bytes_of(self.payload.clone(), &self.literals)
    }

    /// Header length in bytes with options, padded to words.
    #[must_use]
    pub fn header_bytes(&self) -> u32 {
        let mut options = 0;
        options += if self.mss_bytes.is_some() { 4 } else { 0 };
        options += if self.window_scale.is_some() { 3 } else { 0 };
        options += if self.sack_permitted { 2 } else { 0 };
        options += if self.timestamps.is_some() { 10 } else { 0 };
        options += match self.sack.len() {
            0 => 0,
            n => 2 + 8 * u32::try_from(n).unwrap_or(4),
        };
        HEADER_BYTES + options.next_multiple_of(4)
    }
}
