//! Transport of feedback from the phone to the server (MobiSys 2017, 5), without I/O.
//!
//! A [`FeedbackReport`] has three encodings, all specified in docs/claw-feedback.md: a
//! datagram of the QUIC connection that it describes ([`FeedbackReport::encode`]), an
//! authenticated UDP datagram outside the connection ([`FeedbackReporter`], [`Sessions`]),
//! or an eight-byte option on TCP ACKs ([`FeedbackReport::tcp_option`], [`OptionReader`]).
//!
//! Losses are cumulative counters, repeated in every report, so a lost report loses no
//! information and only the latest report matters.

mod option;
mod session;
#[cfg(test)]
mod tests;

use super::{Bottleneck, Feedback};

pub use option::{OPTION_BYTES, OptionReader};
pub use session::{
    AuthenticatedReport, FeedbackKey, FeedbackReporter, IngestOutcome, ReportStatus, SessionCounts,
    SessionOptions, SessionToken, Sessions,
};

/// Version of all three encodings.
const VERSION: u8 = 1;

/// Bytes of a report.
pub const REPORT_BYTES: usize = 27;

/// Reporting interval of a phone, in nanoseconds (MobiSys 2017, 5: 100 ms).
pub const REPORT_EVERY_NS: i64 = 100_000_000;

/// Steps of the encoded load (chosen here: finer than the estimate's accuracy).
const LOAD_STEPS: f64 = 250.0;

/// Why bytes were rejected as feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FeedbackError {
    /// The length is wrong.
    #[error("{there} bytes, not {needed}")]
    Length {
        /// Length received.
        there: usize,
        /// Length required.
        needed: usize,
    },
    /// A field has a value that is not allowed.
    #[error("byte {offset}, {field}: {value} is not allowed")]
    Field {
        /// Byte offset of the field.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// The authenticator does not match the key.
    #[error("the authenticator is wrong")]
    Forged,
}

/// A report of the phone, sent about ten times a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FeedbackReport {
    /// Number of the report within the session, from 1.
    pub sequence: u64,
    /// The phone's own clock in milliseconds, which wraps.
    pub time_ms: u32,
    /// The window that fits the free capacity, in bytes (equation 12).
    pub w_claw_bytes: u32,
    /// Share of the cell's PRBs in use, 0 to 1, in steps of 1/250.
    pub load: f64,
    /// Where the bottleneck is.
    pub bottleneck: Bottleneck,
    /// The radio is idle: the window, load and bottleneck reported before remain valid.
    pub idle: bool,
    /// Packets lost by the radio so far.
    pub radio_losses: u32,
    /// Packets lost before the radio so far.
    pub queue_losses: u32,
}

impl FeedbackReport {
    /// Encodes the report as a datagram of the connection that it describes.
    #[must_use]
    pub fn encode(&self) -> [u8; REPORT_BYTES] {
        let mut out = [0; REPORT_BYTES];
        out[0] = VERSION;
        out[1] = code(self.bottleneck) | u8::from(self.idle) << 2;
        out[2] = (self.load.clamp(0.0, 1.0) * LOAD_STEPS).round() as u8;
        out[3..11].copy_from_slice(&self.sequence.to_be_bytes());
        out[11..15].copy_from_slice(&self.time_ms.to_be_bytes());
        out[15..19].copy_from_slice(&self.w_claw_bytes.to_be_bytes());
        out[19..23].copy_from_slice(&self.radio_losses.to_be_bytes());
        out[23..27].copy_from_slice(&self.queue_losses.to_be_bytes());
        out
    }

    /// Decodes such a datagram.
    ///
    /// # Errors
    /// The length or version is wrong, or a field has a value that is not allowed.
    pub fn decode(bytes: &[u8]) -> Result<Self, FeedbackError> {
        let wrong = FeedbackError::Length { there: bytes.len(), needed: REPORT_BYTES };
        let whole: &[u8; REPORT_BYTES] = bytes.try_into().map_err(|_| wrong)?;
        let field = |offset: usize, field| FeedbackError::Field {
            offset,
            field,
            value: whole[offset].into(),
        };
        if whole[0] != VERSION {
            return Err(field(0, "version"));
        }
        let bottleneck = bottleneck(whole[1] & 0b11).ok_or(field(1, "flags"))?;
        if whole[1] >> 3 != 0 {
            return Err(field(1, "flags"));
        }
        let load = f64::from(whole[2]) / LOAD_STEPS;
        if load > 1.0 {
            return Err(field(2, "load"));
        }
        let word =
            |at: usize| whole[at..at + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        Ok(Self {
            sequence: u64::from(word(3)) << 32 | u64::from(word(7)),
            time_ms: word(11),
            w_claw_bytes: word(15),
            load,
            bottleneck,
            idle: whole[1] & 0b100 != 0,
            radio_losses: word(19),
            queue_losses: word(23),
        })
    }

    /// Converts the report for the server's [`Claw`](super::Claw).
    #[must_use]
    pub fn feedback(&self) -> Feedback {
        Feedback {
            sequence: self.sequence,
            w_claw_bytes: self.w_claw_bytes.into(),
            load: self.load,
            bottleneck: self.bottleneck,
            idle: self.idle,
            radio_losses: self.radio_losses.into(),
            queue_losses: self.queue_losses.into(),
        }
    }
}

/// Code of a bottleneck in the encodings.
const fn code(bottleneck: Bottleneck) -> u8 {
    match bottleneck {
        Bottleneck::Cellular => 0,
        Bottleneck::Wireline => 1,
        Bottleneck::Unclear => 2,
    }
}

const fn bottleneck(code: u8) -> Option<Bottleneck> {
    match code {
        0 => Some(Bottleneck::Cellular),
        1 => Some(Bottleneck::Wireline),
        2 => Some(Bottleneck::Unclear),
        _ => None,
    }
}
