//! Checks whether the path delivers the window that a client asks for.

use crate::AckEvent;

/// A window counts as delivered if this share of it passes in a minimum RTT (chosen here:
/// half leaves room for a scheduler and for the window's way to the client).
const DELIVERED: f64 = 0.5;
/// A queue is standing if the RTT exceeds its minimum by this factor (chosen here).
const QUEUE: f64 = 1.5;
/// A standing queue may drop packets if the RTT exceeds its minimum by this factor (chosen
/// here: RLC reordering and fading reach 1.5 with the radio's own losses).
const LOSING_QUEUE: f64 = 2.0;
/// Consecutive round trips in which both must hold (chosen here: as for the bottleneck
/// detector, 4.4).
const ROUND_TRIPS: u32 = 3;
/// Maximum multiple of the distrust time (chosen here).
const MAX_TIMES: i64 = 64;
/// Delivered round trips after which the multiple is halved (chosen here: seconds).
const FORGIVEN: u32 = 32;
/// Maximum window, as a multiple of the most that the path ever delivered in a minimum RTT
/// (chosen here: faster than slow start, and more than [`DELIVERED`] allows).
const OVER_DELIVERED: f64 = 2.5;

/// Tracks how much of the client's windows the path delivers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientTrust {
    distrust_ns: i64,
    times: i64,
    until_ns: Option<i64>,
    /// Stream offset that ends the current round trip.
    round_ends_at: u64,
    /// The largest window of this round trip and of the one before: a client that alternates is
    /// judged by it.
    largest_bytes: (u64, u64),
    failed: u32,
    delivered: u32,
    /// The last delivery rate.
    last_bps: u64,
    /// Round trips limited by the window, and the highest rate in them.
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
            largest_bytes: (0, 0),
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

    /// A loss in the client's window that is not the radio's: a path without a visible
    /// queue drops what it does not deliver.
    pub(super) fn on_loss(&mut self, cwnd_bytes: u64, min_rtt_ns: Option<i64>) {
        let (now, before) = self.largest_bytes;
        let window_bytes = cwnd_bytes.max(now).max(before);
        let short = min_rtt_ns.is_some_and(|least_ns| self.is_short(window_bytes, least_ns));
        self.failed += u32::from(short && self.last_bps > 0);
    }

    /// Whether the path has a standing queue that may have dropped a packet.
    pub(super) fn queue_loses(rtt_ns: i64, min_rtt_ns: i64) -> bool {
        rtt_ns as f64 > min_rtt_ns as f64 * LOSING_QUEUE
    }

    /// Maximum window from the measured capacity, once there is one. Unlimited if distrust
    /// is off.
    pub(super) fn max_window_bytes(&self, min_rtt_ns: Option<i64>) -> u64 {
        match min_rtt_ns {
            Some(min_rtt_ns) if self.filled >= ROUND_TRIPS && self.distrust_ns > 0 => {
                (self.best_bps as f64 * min_rtt_ns as f64 / 8e9 * OVER_DELIVERED) as u64
            }
            _ => u64::MAX,
        }
    }

    /// Processes an ACK while the client's window is in use, or is `reduced` for a round
    /// trip. Only a delivered window makes up for one that was not: a client can switch
    /// windows, or leave one unfilled, whenever it likes. Returns true if trust is
    /// withdrawn now.
    pub(super) fn watch(
        &mut self,
        now_ns: i64,
        (cwnd_bytes, reduced): (u64, bool),
        min_rtt_ns: Option<i64>,
        ack: &AckEvent,
    ) -> bool {
        if !reduced {
            self.largest_bytes.0 = self.largest_bytes.0.max(cwnd_bytes);
        }
        if ack.acked_to < self.round_ends_at {
            return false;
        }
        self.round_ends_at = ack.sent_to;
        let window_bytes = cwnd_bytes.max(self.largest_bytes.0);
        self.largest_bytes = (0, self.largest_bytes.0);
        let (Some(min_rtt_ns), Some(rtt_ns), Some(rate_bps)) =
            (min_rtt_ns, ack.rtt_ns, ack.delivery_rate_bps)
        else {
            return false;
        };
        self.last_bps = rate_bps;
        // A window that the application does not fill carries no information.
        if !ack.window_limited {
            return false;
        }
        self.filled = self.filled.saturating_add(1);
        self.best_bps = self.best_bps.max(rate_bps);
        let short = self.is_short(window_bytes, min_rtt_ns);
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
