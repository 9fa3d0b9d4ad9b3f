//! Data that was held back: while the radio was silent, or by a proxy.

use airmile_model::Cause;

use super::{Attribution, ByteBins, EARLY_NS, Reason, TransferSplit, WaitTimeline};

/// A slow line whose queue is not empty leaves the radio no silence of this length, unless a packet
/// takes as long (chosen here: 1500 bytes at 0.3 Mbit/s).
pub const SILENCE_NS: i64 = 40_000_000;
/// And such a line does not deliver this much in two bins of a tenth of a second (chosen here).
const AT_ONCE_BYTES: u64 = 10_000;
const AT_ONCE_NS: i64 = 80_000_000;
/// One that takes this long for a packet, or to acknowledge two segments, seldom releases more than two
/// meanwhile.
const LONG_SILENCE_NS: i64 = 200_000_000;
const AFTER_LONG_BYTES: u64 = 4_000;

impl Attribution {
    /// Sets the payload that passed in the direction of the transfers.
    #[must_use]
    pub fn with_passed(self, passed: ByteBins) -> Self {
        Self { passed, ..self }
    }

    /// Sets what a server of uploads waited for behind a proxy that splits connections.
    #[must_use]
    pub fn with_answers(self, answers: WaitTimeline) -> Self {
        Self { answers, ..self }
    }
}

impl TransferSplit<'_> {
    /// Until when a proxy passed an upload on to its server, which has to have it before it thinks.
    pub(super) fn taken_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let spans = self.of.answers.touching(from_ns, to_ns);
        let before = spans.take_while(|span| span.reason != Reason::ServerThinkTime);
        before.last().map_or(from_ns, |span| span.to_ns.min(to_ns))
    }

    /// Adds a part. Of a line's queue, a silence of the radio that ends with much data at once is none:
    /// the phone slept (DRX; TS 36.321, 5.7), or the path stood still.
    pub(super) fn assign(&mut self, cause: Cause, reason: Reason, from_ns: i64, to_ns: i64) {
        let (passed, silences) = (&self.of.passed, self.radio.unwrap_or_default().silences);
        let is_held = |start: i64, end: i64| {
            let is_long = end.saturating_sub(start) >= LONG_SILENCE_NS;
            let least_bytes = if is_long { AFTER_LONG_BYTES } else { AT_ONCE_BYTES };
            let until = end.saturating_add(AT_ONCE_NS);
            cause == Cause::Wireline && passed.within(end - EARLY_NS, until) >= least_bytes
        };
        let first = silences.partition_point(|(_, end)| *end <= from_ns);
        let within = silences.iter().skip(first).take_while(|(start, _)| *start < to_ns);
        let mut at = from_ns;
        for (start, end) in within.filter(|(start, end)| is_held(*start, *end)) {
            let (start, end) = ((*start).max(at), (*end).min(to_ns));
            self.shares.add(cause, reason, at, start);
            self.shares.add(Cause::Unknown, reason, start, end);
            at = end;
        }
        self.shares.add(cause, reason, at, to_ns);
    }
}
