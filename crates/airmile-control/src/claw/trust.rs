//! Whether the path delivers what a client says that it can.

use crate::Ack;

/// A window is delivered if so much of it passes in a least round trip (chosen here: half
/// leaves room for a scheduler and for the window's way to the client).
const DELIVERED: f64 = 0.5;
/// A queue stands where round trips are longer than the least by this factor (chosen here).
const QUEUE: f64 = 1.5;
/// Round trips for which both must hold (chosen here: those of the bottleneck detector,
/// 4.4).
const ROUND_TRIPS: u32 = 3;
/// A window is withdrawn for this many times as long at most (chosen here).
const MOST_TIMES: i64 = 64;

/// Follows what is delivered of windows that a client has set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust {
    distrust_ns: i64,
    times: i64,
    until_ns: Option<i64>,
    /// Bytes of the stream that end the round trip at hand.
    round_ends_at: u64,
    failed: u32,
}

impl Trust {
    pub(super) const fn new(distrust_ns: i64) -> Self {
        Self { distrust_ns, times: 1, until_ns: None, round_ends_at: 0, failed: 0 }
    }

    pub(super) const fn is_withdrawn(&self, now_ns: i64) -> bool {
        matches!(self.until_ns, Some(until_ns) if now_ns < until_ns)
    }

    /// Another window is in use.
    pub(super) const fn rest(&mut self) {
        self.failed = 0;
    }

    /// Takes an ACK while the client's window is in use.
    pub(super) fn watch(
        &mut self,
        now_ns: i64,
        cwnd_bytes: u64,
        min_rtt_ns: Option<i64>,
        ack: &Ack,
    ) {
        if ack.acked_to < self.round_ends_at {
            return;
        }
        self.round_ends_at = ack.sent_to;
        let (Some(min_rtt_ns), Some(rtt_ns), Some(rate_bps)) =
            (min_rtt_ns, ack.rtt_ns, ack.delivery_rate_bps)
        else {
            return;
        };
        let delivered = rate_bps as f64 * min_rtt_ns as f64 / 8e9;
        let short = delivered < cwnd_bytes as f64 * DELIVERED;
        let queued = rtt_ns as f64 > min_rtt_ns as f64 * QUEUE;
        // A window that the application does not fill tells nothing.
        self.failed = if short && queued && ack.window_limited { self.failed + 1 } else { 0 };
        if self.failed >= ROUND_TRIPS {
            self.failed = 0;
            self.until_ns =
                Some(now_ns.saturating_add(self.distrust_ns.saturating_mul(self.times)));
            self.times = (self.times * 2).min(MOST_TIMES);
        }
    }
}
