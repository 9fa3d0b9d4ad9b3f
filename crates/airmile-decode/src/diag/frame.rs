//! DIAG packets: the command byte, the multi-SIM wrapper, the log header.

use airmile_model::Stamp;

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
