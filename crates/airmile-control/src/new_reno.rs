//! NewReno: RFC 5681 with RFC 6582's recovery (which the transport implements).

use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

/// NewReno.
#[derive(Debug, Clone)]
pub struct NewReno {
    window: CongestionWindow,
    /// Bytes acknowledged since the window last grew (RFC 3465, 2.1).
    acked_bytes: u64,
}

impl NewReno {
    /// A controller at its start.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64) -> Self {
        Self { window: CongestionWindow::new(mss_bytes, initial_window_bytes), acked_bytes: 0 }
    }
}

impl Controller for NewReno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, _now_ns: i64, ack: &AckEvent) {
        // RFC 7661: an unused window carries no information about the path.
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let mut left = ack.acked_bytes;
        if self.window.in_slow_start() {
            left = self.window.slow_start(left);
        }
        // RFC 5681 (3), counted in bytes (RFC 3465, 2.1).
        self.acked_bytes += left;
        while self.acked_bytes >= self.window.cwnd_bytes {
            self.acked_bytes -= self.window.cwnd_bytes;
            self.window.cwnd_bytes += self.window.mss_bytes;
        }
    }

    fn on_congestion(&mut self, _now_ns: i64, event: &CongestionEvent) {
        let half = self.window.half(event.flight_size_bytes);
        self.window.reduce(half, half);
        self.acked_bytes = 0;
    }

    fn on_rto(&mut self, _now_ns: i64, flight_size_bytes: u64, again: bool) {
        let half = self.window.half(flight_size_bytes);
        self.window.on_timeout((!again).then_some(half));
        self.acked_bytes = 0;
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
        self.acked_bytes = 0;
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
    use crate::CongestionKind;

    const MSS: u64 = 1000;

    fn ack(segments: u64) -> AckEvent {
        AckEvent { acked_bytes: segments * MSS, window_limited: true, ..AckEvent::default() }
    }

    fn loss(flight_segments: u64) -> CongestionEvent {
        CongestionEvent {
            kind: CongestionKind::Loss,
            flight_size_bytes: flight_segments * MSS,
            lost_bytes: MSS,
        }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one() {
        let mut reno = NewReno::new(MSS, 10 * MSS);
        reno.on_ack(0, &ack(10));
        assert_eq!(reno.cwnd_bytes(), 20 * MSS);
        reno.on_congestion(0, &loss(20));
        assert_eq!((reno.cwnd_bytes(), reno.ssthresh_bytes()), (10 * MSS, 10 * MSS));
        for _ in 0..5 {
            reno.on_ack(0, &ack(2));
        }
        assert_eq!(reno.cwnd_bytes(), 11 * MSS, "one segment for a window's worth");
        reno.on_rto(0, 11 * MSS, false);
        assert_eq!((reno.cwnd_bytes(), reno.ssthresh_bytes()), (MSS, 5_500));
        reno.on_rto(0, MSS, true);
        assert_eq!(reno.ssthresh_bytes(), 5_500, "held when the timer expires again");
        reno.on_ack(0, &ack(1));
        assert_eq!(reno.cwnd_bytes(), 2 * MSS);
    }

    #[test]
    fn a_timeout_halves_the_window_at_most_and_persistent_congestion_leaves_two() {
        // 100 segments lost, the window 4 since then: ssthresh is 2 segments, not 50.
        let mut reno = NewReno::new(MSS, 4 * MSS);
        reno.on_rto(0, 100 * MSS, false);
        assert_eq!((reno.cwnd_bytes(), reno.ssthresh_bytes()), (MSS, 2 * MSS));
        for kind in [crate::ControllerKind::NewReno, crate::ControllerKind::default()] {
            let mut control = kind.build(MSS, 20 * MSS);
            control.on_persistent_congestion(0, 20 * MSS);
            assert_eq!(control.cwnd_bytes(), 2 * MSS, "{kind:?}");
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = NewReno::new(MSS, 10 * MSS);
        reno.on_ack(0, &AckEvent { window_limited: false, ..ack(10) });
        reno.on_ack(0, &AckEvent { in_recovery: true, ..ack(10) });
        assert_eq!(reno.cwnd_bytes(), 10 * MSS);
    }
}
