//! Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995; delay-based window (section 3.3) and slow start that
//! doubles every other round (3.4). Losses are handled as in NewReno.

use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

/// Segments that may be queued on the path: minimum, maximum, and in slow start (3.3: alpha
/// 1 and beta 3, or 2 and 4; 3.4: gamma 1). Linux uses 2, 4 and 1.
const ALPHA: u64 = 2;
const BETA: u64 = 4;
const GAMMA: u64 = 1;

/// Vegas.
#[derive(Debug, Clone)]
pub struct Vegas {
    window: CongestionWindow,
    /// The minimum RTT seen.
    base_rtt_ns: Option<i64>,
    /// The minimum RTT of this round, and its number of samples.
    round_rtt_ns: Option<i64>,
    samples: u32,
    /// The round ends when the stream is acknowledged up to here.
    round_ends: u64,
    /// In slow start, whether the window grows in this round.
    grows: bool,
}

impl Vegas {
    /// A controller at its start.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64) -> Self {
        Self {
            window: CongestionWindow::new(mss_bytes, initial_window_bytes),
            base_rtt_ns: None,
            round_rtt_ns: None,
            samples: 0,
            round_ends: 0,
            grows: true,
        }
    }

    /// Bytes of the window that are queued on the path, from the round's minimum RTT
    /// ((expected - actual) * base RTT), and the window without them.
    fn waiting_bytes(&self) -> Option<(u64, u64)> {
        let (base, rtt) = (self.base_rtt_ns?, self.round_rtt_ns?);
        // Up to two samples may be dominated by delayed acknowledgements (as in Linux).
        if self.samples <= 2 {
            return None;
        }
        let fits = u128::from(self.window.cwnd_bytes) * u128::from(base.unsigned_abs())
            / u128::from(rtt.max(1).unsigned_abs());
        let fits = u64::try_from(fits).unwrap_or(u64::MAX).min(self.window.cwnd_bytes);
        Some((self.window.cwnd_bytes - fits, fits))
    }

    /// Ends a round trip.
    fn end_round(&mut self) {
        let mss = self.window.mss_bytes;
        if let Some((waiting, fits)) = self.waiting_bytes() {
            if self.window.in_slow_start() {
                if waiting > GAMMA * mss {
                    // The window for the measured rate, and no more doubling.
                    let cwnd = (fits + mss).min(self.window.cwnd_bytes).max(2 * mss);
                    self.window.cwnd_bytes = cwnd;
                    self.window.ssthresh_bytes = cwnd.saturating_sub(mss).max(2 * mss);
                }
            } else if waiting > BETA * mss {
                self.window.cwnd_bytes = self.window.cwnd_bytes.saturating_sub(mss).max(2 * mss);
            } else if waiting < ALPHA * mss {
                self.window.cwnd_bytes += mss;
            }
        }
        self.grows = !self.grows;
        self.round_rtt_ns = None;
        self.samples = 0;
    }
}

impl Controller for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_ack(&mut self, _now_ns: i64, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt_ns.filter(|rtt| *rtt > 0) {
            self.base_rtt_ns = Some(self.base_rtt_ns.map_or(rtt, |base| base.min(rtt)));
            self.round_rtt_ns = Some(self.round_rtt_ns.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        let over = ack.acked_to >= self.round_ends;
        if over {
            self.round_ends = ack.sent_to;
        }
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        if over {
            self.end_round();
        }
        if self.window.in_slow_start() && self.grows {
            self.window.slow_start(ack.acked_bytes);
        }
    }

    fn on_congestion(&mut self, _now_ns: i64, event: &CongestionEvent) {
        let half = self.window.half(event.flight_size_bytes);
        self.window.reduce(half, half);
    }

    fn on_rto(&mut self, _now_ns: i64, flight_size_bytes: u64, again: bool) {
        let half = self.window.half(flight_size_bytes);
        self.window.on_timeout((!again).then_some(half));
    }

    fn on_persistent_congestion(&mut self, now_ns: i64, flight_size_bytes: u64) {
        self.on_rto(now_ns, flight_size_bytes, false);
        self.window.on_persistent_congestion();
    }

    fn on_spurious(&mut self, _now_ns: i64) {
        self.window.undo();
    }

    fn on_restart(&mut self, _now_ns: i64, idle_ns: i64, rto_ns: i64) {
        self.window.restart(idle_ns, rto_ns);
    }

    fn on_unused(&mut self, _now_ns: i64, used_bytes: u64) {
        self.window.decay(used_bytes);
    }

    fn on_mss(&mut self, mss_bytes: u64) {
        self.window.set_mss(mss_bytes);
    }

    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        self.window.ssthresh_bytes
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const MS: i64 = 1_000_000;

    /// A round of three acknowledgements of `rtt_ms`; the window in segments.
    fn round(vegas: &mut Vegas, sent: &mut u64, rtt_ms: i64, acked_bytes: u64) -> u64 {
        for n in 0..3 {
            let acked_to = if n == 0 { *sent } else { 0 };
            if n == 0 {
                *sent += 100_000;
            }
            let ack = AckEvent {
                acked_bytes: acked_bytes / 3,
                rtt_ns: Some(rtt_ms * MS),
                acked_to,
                sent_to: *sent,
                window_limited: true,
                ..AckEvent::default()
            };
            vegas.on_ack(0, &ack);
        }
        vegas.cwnd_bytes() / MSS
    }

    #[test]
    fn keeps_two_to_four_segments_waiting() {
        let mut vegas = Vegas::new(MSS, 10 * MSS);
        vegas.window.cwnd_bytes = 20 * MSS;
        vegas.window.ssthresh_bytes = 10 * MSS;
        let mut sent = 0;
        round(&mut vegas, &mut sent, 100, 0);
        // The acknowledgement that ends a round is its last sample. Of 20 segments
        // at a base of 100 ms wait 20 * (1 - 100/rtt): none of the first round's; of
        // 21 at 114 ms 2.6, at 133 ms 5.2; then none again.
        let windows = [114, 133, 133, 100, 100].map(|rtt| round(&mut vegas, &mut sent, rtt, 0));
        assert_eq!(windows, [21, 21, 20, 21, 22]);
    }

    #[test]
    fn slow_start_grows_every_other_round_and_ends_by_delay() {
        let mut vegas = Vegas::new(MSS, 10 * MSS);
        let mut sent = 0;
        let mut windows = Vec::new();
        for rtt_ms in [100, 100, 100, 100, 110, 110, 110] {
            let acked = vegas.cwnd_bytes() / 3 * 3;
            windows.push(round(&mut vegas, &mut sent, rtt_ms, acked));
        }
        assert!(windows.is_sorted_by(|a, b| a <= b || !vegas.in_slow_start()), "{windows:?}");
        assert!(windows[1] >= 19 && !vegas.in_slow_start(), "{windows:?}");
        vegas.on_congestion(
            0,
            &CongestionEvent {
                kind: crate::CongestionKind::Loss,
                flight_size_bytes: 20 * MSS,
                lost_bytes: MSS,
            },
        );
        assert_eq!(vegas.cwnd_bytes(), 10 * MSS);
    }
}
