//! Feedback as a TCP option, small enough to fit next to timestamps and two SACK blocks.

use super::{Bottleneck, FeedbackError, FeedbackReport, bottleneck, code};
use crate::claw::Feedback;

/// Bytes of the option.
pub const OPTION_BYTES: usize = 8;

/// Option kind for experiments (RFC 6994).
const KIND: u8 = 253;

/// Our experiment identifier (RFC 6994, 3; chosen here, not registered).
const EXPERIMENT: [u8; 2] = [0xC1, 0xA3];

/// The largest window that the option can carry.
const MAX_WINDOW: u32 = (1 << 24) - 1;

/// Code in place of a bottleneck: the radio is idle.
const IDLE: u8 = 3;

impl FeedbackReport {
    /// Encodes the report as an option: kind, length, experiment, 24 bits of window, then
    /// flags from the highest bit: full, two bits of bottleneck (3: idle), three of radio
    /// losses, two of queue losses. The cell counts as full from the given load.
    #[must_use]
    pub fn tcp_option(&self, full_from_load: f64) -> [u8; OPTION_BYTES] {
        let [_, w2, w1, w0] = self.w_claw_bytes.min(MAX_WINDOW).to_be_bytes();
        let state = if self.idle { IDLE } else { code(self.bottleneck) };
        let flags = u8::from(self.load >= full_from_load) << 7
            | state << 5
            | (self.radio_losses as u8 & 7) << 2
            | (self.queue_losses as u8 & 3);
        [KIND, OPTION_BYTES as u8, EXPERIMENT[0], EXPERIMENT[1], w2, w1, w0, flags]
    }
}

/// Decodes the options of a connection and restores the high bits of the counters.
///
/// A counter that appears to go back by less than half its range belongs to a reordered
/// ACK; that option is ignored.
#[derive(Debug, Clone, Copy, Default)]
pub struct OptionReader {
    /// Flags of the previous option.
    last: Option<u8>,
    sequence: u64,
    bottleneck: Bottleneck,
    radio_losses: u64,
    queue_losses: u64,
}

impl OptionReader {
    /// Decodes an option; `None` if its ACK was reordered. A repeated value still counts as
    /// news: it shows that the client is alive.
    ///
    /// # Errors
    /// The option is not a feedback option.
    pub fn read(&mut self, option: &[u8]) -> Result<Option<Feedback>, FeedbackError> {
        let wrong = FeedbackError::Length { there: option.len(), needed: OPTION_BYTES };
        let whole: [u8; OPTION_BYTES] = option.try_into().map_err(|_| wrong)?;
        let head = [KIND, OPTION_BYTES as u8, EXPERIMENT[0], EXPERIMENT[1]];
        if let Some(offset) = (0..head.len()).find(|at| whole[*at] != head[*at]) {
            let field = ["kind", "length", "experiment", "experiment"][offset];
            let value = whole[offset].into();
            return Err(FeedbackError::Field { offset, field, value });
        }
        let flags = whole[7];
        let before = self.last.unwrap_or(flags);
        let radio = (flags >> 2).wrapping_sub(before >> 2) & 7;
        let queue = flags.wrapping_sub(before) & 3;
        if radio > 4 || queue > 2 {
            return Ok(None);
        }
        self.last = Some(flags);
        self.sequence += 1;
        self.radio_losses += u64::from(radio);
        self.queue_losses += u64::from(queue);
        let state = bottleneck(flags >> 5 & 3);
        self.bottleneck = state.unwrap_or(self.bottleneck);
        Ok(Some(Feedback {
            sequence: self.sequence,
            w_claw_bytes: u64::from(u32::from_be_bytes([0, whole[4], whole[5], whole[6]])),
            load: f64::from(flags >> 7),
            bottleneck: self.bottleneck,
            idle: state.is_none(),
            radio_losses: self.radio_losses,
            queue_losses: self.queue_losses,
        }))
    }
}
