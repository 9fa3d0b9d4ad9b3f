//! CQIC: a window derived from the radio's allocations to the client (Lu et al., "CQIC:
//! Revisiting Cross-Layer Congestion Control for Cellular Networks", HotMobile 2015), as
//! the CLAW paper adapts it to LTE: from the transport blocks that the client received
//! (MobiSys 2017, 6). The client reports what was allocated to it in a minimum RTT, not
//! what is free.

use crate::claw::Feedback;
use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};

/// Window as a multiple of the allocation. Chosen here: at 1 a flow could never grow; at 2
/// it grows as in slow start while the cell gives more, and otherwise one round trip of
/// data is queued.
const HEADROOM: u64 = 2;
/// Reports older than this are ignored (chosen here: as for CLAW).
const STALE_NS: i64 = 500_000_000;
/// Minimum number of round trips for which a report is valid.
const STALE_ROUND_TRIPS: i64 = 3;

/// CQIC. Without reports it does slow start, and halves the window after a loss.
#[derive(Debug, Clone)]
pub struct Cqic {
    window: CongestionWindow,
    sequence: Option<u64>,
    last_feedback_ns: Option<i64>,
    srtt_ns: i64,
}

impl Cqic {
    /// A controller at its start, without reports.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64) -> Self {
        let window = CongestionWindow::new(mss_bytes, initial_window_bytes);
        Self { window, sequence: None, last_feedback_ns: None, srtt_ns: 0 }
    }

    fn has_fresh_feedback(&self, now_ns: i64) -> bool {
        let most_ns = STALE_NS.max(STALE_ROUND_TRIPS * self.srtt_ns);
        self.last_feedback_ns.is_some_and(|at_ns| now_ns - at_ns <= most_ns)
    }
}

impl Controller for Cqic {
    fn name(&self) -> &'static str {
        "cqic"
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        self.srtt_ns = ack.srtt_ns.unwrap_or(self.srtt_ns);
        if !self.has_fresh_feedback(now_ns) && ack.window_limited && !ack.in_recovery {
            let left = self.window.slow_start(ack.acked_bytes);
            // RFC 5681 (3).
            self.window.cwnd_bytes += left * self.window.mss_bytes / self.window.cwnd_bytes.max(1);
        }
    }

    fn on_congestion(&mut self, now_ns: i64, event: &CongestionEvent) {
        if !self.has_fresh_feedback(now_ns) {
            let half = self.window.half(event.flight_size_bytes);
            self.window.reduce(half, half);
        }
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

    fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        if feedback.idle || self.sequence.is_some_and(|last| feedback.sequence <= last) {
            return;
        }
        self.sequence = Some(feedback.sequence);
        self.last_feedback_ns = Some(now_ns);
        let least = self.window.initial_bytes;
        self.window.cwnd_bytes = feedback.w_claw_bytes.saturating_mul(HEADROOM).max(least);
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
    use crate::claw::Bottleneck;

    const MSS: u64 = 1_000;

    fn feedback(sequence: u64, segments: u64) -> Feedback {
        Feedback {
            sequence,
            w_claw_bytes: segments * MSS,
            load: 0.5,
            bottleneck: Bottleneck::Cellular,
            idle: false,
            radio_losses: 0,
            queue_losses: 0,
        }
    }

    #[test]
    fn twice_what_was_allocated() {
        let mut cqic = Cqic::new(MSS, 10 * MSS);
        let ack = AckEvent { acked_bytes: MSS, window_limited: true, ..AckEvent::default() };
        cqic.on_ack(0, &ack);
        assert_eq!(cqic.cwnd_bytes(), 11 * MSS);
        for (sequence, segments, expected) in [(1, 2, 10), (2, 20, 40), (1, 50, 40), (3, 30, 60)] {
            cqic.on_radio(0, &feedback(sequence, segments));
            assert_eq!(cqic.cwnd_bytes() / MSS, expected, "{sequence}");
        }
        // While reports are valid, acknowledgements and losses change nothing.
        let loss = CongestionEvent {
            kind: CongestionKind::Loss,
            flight_size_bytes: 60 * MSS,
            lost_bytes: MSS,
        };
        cqic.on_ack(1, &ack);
        cqic.on_congestion(1, &loss);
        assert_eq!(cqic.cwnd_bytes(), 60 * MSS);
        cqic.on_congestion(STALE_NS + 1, &loss);
        assert_eq!(cqic.cwnd_bytes(), 30 * MSS);
    }
}
