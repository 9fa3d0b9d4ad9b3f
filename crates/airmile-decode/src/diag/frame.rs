//! DIAG packets: the command byte, the multi-SIM wrapper, the log header.
//!
//! | first byte | packet |
//! |---|---|
//! | 0x10 | log packet: header of 16 bytes, payload |
//! | 0x98 | multi-SIM wrapper: `98 01 00 00`, u32 subscription, inner packet |
//! | 0x9E | secure log: encrypted |
//! | other | debug text, events, responses: not decoded |
//!
//! Log header: u8 0x10, u8 pending packets, u16 length from byte 4 on, u16 the
//! same length again, u16 log code, u64 time stamp.

use airmile_model::Stamp;
use thiserror::Error;

use super::time;

/// Command byte of a log packet.
pub const CMD_LOG: u8 = 0x10;
/// Command byte of the multi-SIM wrapper.
pub const CMD_MULTI_SIM: u8 = 0x98;
/// Command byte of the secure log of later modems.
pub const CMD_SECURE_LOG: u8 = 0x9E;
/// Bytes before a log packet's payload.
pub const LOG_HEADER_LEN: usize = 16;
/// Bytes added by the wrapper.
pub const WRAPPER_LEN: usize = 8;
/// The maximum payload that a length field can state.
pub const MAX_PAYLOAD_LEN: usize = u16::MAX as usize - 12;

/// A log packet: code, time and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPacket<'a> {
    /// Byte offset of its frame in the input.
    pub offset: u64,
    /// Subscription of a multi-SIM phone, 1-based; 0 unknown.
    pub subscription: u8,
    /// Log code, as in 0xB173.
    pub code: u16,
    /// Time stamp as stored; see [`super::time`].
    pub ts_raw: u64,
    /// Time of writing, on the modem's clock.
    pub at: Stamp,
    /// The message.
    pub payload: &'a [u8],
}

/// A packet that is not a log packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherPacket {
    /// Byte offset of its frame in the input.
    pub offset: u64,
    /// Subscription of a multi-SIM phone, 1-based; 0 unknown.
    pub subscription: u8,
    /// Command byte.
    pub command: u8,
}

/// The contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A log packet.
    Log(LogPacket<'a>),
    /// Anything else.
    Other(OtherPacket),
}

/// An error in a packet whose CRC passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The packet ends inside a header.
    #[error("DIAG packet of {len} bytes ends inside its {field}")]
    Cut {
        /// The header.
        field: &'static str,
        /// Bytes that there are.
        len: usize,
    },
    /// The log length does not fit the frame.
    #[error("DIAG log length {stated} at frame byte {at}, but {there} bytes follow")]
    Length {
        /// As stored.
        stated: u16,
        /// Offset of the field in the frame.
        at: usize,
        /// Bytes from the code to the frame's end, with the length's own two.
        there: usize,
    },
}

impl<'a> Packet<'a> {
    /// Reads a packet, without its CRC, of the frame at `offset`. Returns with the packet
    /// any anomaly, such as bytes after a log's end.
    ///
    /// # Errors
    ///
    /// A header is truncated, or a log is longer than its frame.
    pub fn parse(offset: u64, frame: &'a [u8]) -> Result<(Self, Option<FrameError>), FrameError> {
        let mut inner = frame;
        let mut subscription = 0;
        if let [CMD_MULTI_SIM, rest @ ..] = frame {
            let cut = FrameError::Cut { field: "multi-SIM wrapper", len: frame.len() };
            let Some((head, after)) = rest.split_first_chunk::<{ WRAPPER_LEN - 1 }>() else {
                return Err(cut);
            };
            // A u32, in practice 1 or 2.
            subscription = head[3];
            inner = after;
        }
        let command = match inner {
            [] => return Err(FrameError::Cut { field: "command", len: frame.len() }),
            [CMD_LOG, ..] => CMD_LOG,
            &[command, ..] => {
                return Ok((Self::Other(OtherPacket { offset, subscription, command }), None));
            }
        };
        debug_assert_eq!(command, CMD_LOG);
        let Some((head, payload)) = inner.split_first_chunk::<LOG_HEADER_LEN>() else {
            return Err(FrameError::Cut { field: "log header", len: frame.len() });
        };
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (outer, stated) = (word(2), word(4));
        let at = frame.len() - inner.len() + 4;
        let there = payload.len() + 12;
        let error = FrameError::Length { stated, at, there };
        let Some(len) = usize::from(stated).checked_sub(12).filter(|&len| len <= payload.len())
        else {
            return Err(error);
        };
        let odd = if len < payload.len() {
            Some(error)
        } else if outer != stated {
            Some(FrameError::Length { stated: outer, at: at - 2, there })
        } else {
            None
        };
        let ts_raw = u64::from_le_bytes([
            head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15],
        ]);
        let at = time::stamp(ts_raw);
        let payload = &payload[..len];
        Ok((Self::Log(LogPacket { offset, subscription, code: word(6), ts_raw, at, payload }), odd))
    }
}

/// Appends a log packet, wrapped if `subscription` is not 0, without CRC. A payload
/// beyond [`MAX_PAYLOAD_LEN`] is truncated.
pub fn emit_log(subscription: u8, code: u16, ts_raw: u64, payload: &[u8], out: &mut Vec<u8>) {
    if subscription != 0 {
        out.extend([CMD_MULTI_SIM, 1, 0, 0, subscription, 0, 0, 0]);
    }
    let payload = &payload[..payload.len().min(MAX_PAYLOAD_LEN)];
    let len = ((payload.len() + 12) as u16).to_le_bytes();
    out.extend([CMD_LOG, 0]);
    out.extend(len);
    out.extend(len);
    out.extend(code.to_le_bytes());
    out.extend(ts_raw.to_le_bytes());
    out.extend_from_slice(payload);
}

impl LogPacket<'_> {
    /// Appends this packet as an HDLC frame.
    pub fn emit_hdlc(&self, out: &mut Vec<u8>) {
        let mut packet = Vec::with_capacity(self.payload.len() + WRAPPER_LEN + LOG_HEADER_LEN);
        emit_log(self.subscription, self.code, self.ts_raw, self.payload, &mut packet);
        super::hdlc::encode(&packet, out);
    }

    /// Appends this packet as a DLF record, which cannot hold the subscription.
    pub fn emit_dlf(&self, out: &mut Vec<u8>) {
        super::dlf::emit(self.code, self.ts_raw, self.payload, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wrapper_is_stripped() {
        let frame = [0x98, 1, 0, 0, 2, 0, 0, 0, 0x92, 7];
        let other = OtherPacket { offset: 5, subscription: 2, command: 0x92 };
        assert_eq!(Packet::parse(5, &frame), Ok((Packet::Other(other), None)));
    }

    #[test]
    fn a_log_longer_than_its_frame_is_an_error() {
        let mut frame = Vec::new();
        emit_log(0, 0xb173, 1 << 40, &[1, 2, 3], &mut frame);
        frame.pop();
        let error = FrameError::Length { stated: 15, at: 4, there: 14 };
        assert_eq!(Packet::parse(0, &frame), Err(error));
        frame.extend([3, 4]);
        let odd = FrameError::Length { stated: 15, at: 4, there: 16 };
        let (packet, problem) = Packet::parse(0, &frame).unwrap();
        assert_eq!(problem, Some(odd));
        assert!(matches!(packet, Packet::Log(LogPacket { payload: [1, 2, 3], .. })));
    }

    proptest! {
        #[test]
        fn both_ways(subscription in 0u8..3, code: u16, ts_raw: u64,
                     payload in prop::collection::vec(any::<u8>(), 0..50)) {
            let mut frame = Vec::new();
            emit_log(subscription, code, ts_raw, &payload, &mut frame);
            let at = time::stamp(ts_raw);
            let log = LogPacket { offset: 9, subscription, code, ts_raw, at, payload: &payload };
            prop_assert_eq!(Packet::parse(9, &frame), Ok((Packet::Log(log), None)));
        }

        #[test]
        fn no_panic(frame in prop::collection::vec(any::<u8>(), 0..60), log: bool) {
            let mut frame = frame;
            if log && !frame.is_empty() {
                frame[0] = CMD_LOG;
            }
            let _ = Packet::parse(0, &frame);
        }
    }
}
