//! Whether the path delivers what a client says that it can.

use crate::AckEvent;

/// A window is delivered if so much of it passes in a least round trip (chosen here: half
/// leaves room for a scheduler and for the window's way to the client).
const DELIVERED: f64 = 0.5;
/// A queue stands where round trips are longer than the least by this factor (chosen here).
const QUEUE: f64 = 1.5;
/// A queue that stands loses packets where they are longer by this factor (chosen here:
/// reordering in RLC and a fade make 1.5 of a radio's own losses).
const LOSING_QUEUE: f64 = 2.0;
/// Round trips for which both must hold (chosen here: those of the bottleneck detector,
/// 4.4).
const ROUND_TRIPS: u32 = 3;
/// A window is withdrawn for this many times as long at most (chosen here).
const MAX_TIMES: i64 = 64;
/// After so many round trips that delivered it is half as many times (chosen here: seconds).
const FORGIVEN: u32 = 32;
/// The largest window over the most that the path ever delivered in a least round trip
/// (chosen here: faster than slow start, and more than what [`DELIVERED`] lets pass).
const OVER_DELIVERED: f64 = 2.5;

/// Follows what is delivered of windows that a client has set.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientTrust {
    distrust_ns: i64,
    times: i64,
    until_ns: Option<i64>,
    /// Bytes of the stream that end the round trip at hand.
    round_ends_at: u64,
    failed: u32,
    delivered: u32,
    /// The last rate of delivery.
    last_bps: u64,
    /// Round trips that the window held up, and the highest rate in them.
    filled: u32,
    best_bps: u64,
}

impl ClientTrust {
    pub(super) const fn new(distrust_ns: i64) -> Self {
        Self {
            distrust_ns,
            times: 1,
            until_ns: None,
            round_ends_at: 0,
            failed: 0,
            delivered: 0,
            last_bps: 0,
            filled: 0,
            best_bps: 0,
        }
    }

    pub(super) const fn is_withdrawn(&self, now_ns: i64) -> bool {
        matches!(self.until_ns, Some(until_ns) if now_ns < until_ns)
    }

    fn is_short(&self, cwnd_bytes: u64, min_rtt_ns: i64) -> bool {
        let delivered = self.last_bps as f64 * min_rtt_ns as f64 / 8e9;
        delivered < cwnd_bytes as f64 * DELIVERED
    }

    /// Something was lost of the client's window, and not by the radio: a path without a
    /// queue that could be seen drops what it does not deliver.
    pub(super) fn on_loss(&mut self, cwnd_bytes: u64, min_rtt_ns: Option<i64>) {
        let short = min_rtt_ns.is_some_and(|least_ns| self.is_short(cwnd_bytes, least_ns));
        self.failed += u32::from(short && self.last_bps > 0);
    }

    /// Whether a queue stands in the path that a loss can be of.
    pub(super) fn queue_loses(rtt_ns: i64, min_rtt_ns: i64) -> bool {
        rtt_ns as f64 > min_rtt_ns as f64 * LOSING_QUEUE
    }

    /// The largest window by the measured capacity, once there is one. Without distrust
    /// there is none.
    pub(super) fn max_window_bytes(&self, min_rtt_ns: Option<i64>) -> u64 {
        match min_rtt_ns {
            Some(min_rtt_ns) if self.filled >= ROUND_TRIPS && self.distrust_ns > 0 => {
                (self.best_bps as f64 * min_rtt_ns as f64 / 8e9 * OVER_DELIVERED) as u64
            }
            _ => u64::MAX,
        }
    }

    /// Takes an ACK while the client's window is in use, or is `reduced` for a round trip.
    /// Nothing but a window that is delivered makes up for one that is not: a client can
    /// have another window in use, or none filled, whenever it likes. True: its word is
    /// withdrawn now.
    pub(super) fn watch(
        &mut self,
        now_ns: i64,
        (cwnd_bytes, reduced): (u64, bool),
        min_rtt_ns: Option<i64>,
        ack: &AckEvent,
    ) -> bool {
        if ack.acked_to < self.round_ends_at {
            return false;
        }
        self.round_ends_at = ack.sent_to;
        let (Some(min_rtt_ns), Some(rtt_ns), Some(rate_bps)) =
            (min_rtt_ns, ack.rtt_ns, ack.delivery_rate_bps)
        else {
            return false;
        };
        self.last_bps = rate_bps;
        // A window that the application does not fill tells nothing.
        if !ack.window_limited {
            return false;
        }
        self.filled = self.filled.saturating_add(1);
        self.best_bps = self.best_bps.max(rate_bps);
        let short = self.is_short(cwnd_bytes, min_rtt_ns);
        if short && rtt_ns as f64 > min_rtt_ns as f64 * QUEUE {
            self.failed += 1;
        } else if !short && !reduced {
            self.failed = 0;
            self.delivered += 1;
        }
        if self.delivered >= FORGIVEN {
            self.delivered = 0;
            self.times = (self.times / 2).max(1);
        }
        if self.failed < ROUND_TRIPS {
            return false;
        }
        (self.failed, self.delivered) = (0, 0);
        self.until_ns = Some(now_ns.saturating_add(self.distrust_ns.saturating_mul(self.times)));
        self.times = (self.times * 2).min(MAX_TIMES);
        self.distrust_ns > 0
    }
}
