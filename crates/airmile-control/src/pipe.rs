//! A fixed path for tests: a bottleneck with a first-in first-out queue, a delay, and a sender
//! that always has data. No segment is sent twice.

use std::collections::VecDeque;

use crate::{AckEvent, Controller};

/// Payload of a segment.
pub(crate) const MSS: u64 = 1_000;
const TICK_NS: i64 = 100_000;

/// The path and its sender.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) rate_bps: u64,
    pub(crate) delay_ns: i64,
    /// Room in the queue; what does not fit is lost.
    pub(crate) queue_bytes: u64,
    pub(crate) now_ns: i64,
    /// The bottleneck is busy until then.
    busy_ns: i64,
    next_send_ns: i64,
    /// When a segment is acknowledged, and when it was sent.
    under_way: VecDeque<(i64, i64)>,
    sent_bytes: u64,
    pub(crate) acked_bytes: u64,
    lost_bytes: u64,
    newly_lost_bytes: u64,
    in_recovery_until: u64,
}

impl Pipe {
    pub(crate) fn new(rate_bps: u64, delay_ms: i64, queue_bytes: u64) -> Self {
        Self {
            rate_bps,
            delay_ns: delay_ms * 1_000_000,
            queue_bytes,
            now_ns: 1,
            busy_ns: 0,
            next_send_ns: 0,
            under_way: VecDeque::new(),
            sent_bytes: 0,
            acked_bytes: 0,
            lost_bytes: 0,
            newly_lost_bytes: 0,
            in_recovery_until: 0,
        }
    }

    /// Bytes that one round trip holds without a queue.
    pub(crate) fn bdp_bytes(&self) -> f64 {
        self.rate_bps as f64 * self.delay_ns as f64 / 8e9
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.sent_bytes - self.acked_bytes - self.lost_bytes
    }

    /// Part of the sent bytes that was lost.
    pub(crate) fn lost_share(&self) -> f64 {
        self.lost_bytes as f64 / self.sent_bytes as f64
    }

    /// Time that a segment sent now would wait.
    pub(crate) fn queue_ns(&self) -> i64 {
        (self.busy_ns - self.now_ns).max(0)
    }

    /// Runs for a time; `see` looks at each millisecond.
    pub(crate) fn run<C: Controller>(
        &mut self,
        control: &mut C,
        seconds: f64,
        mut see: impl FnMut(&Self, &C),
    ) {
        let end_ns = self.now_ns + (seconds * 1e9) as i64;
        while self.now_ns < end_ns {
            self.now_ns += TICK_NS;
            while let Some(&(at_ns, sent_ns)) = self.under_way.front()
                && at_ns <= self.now_ns
            {
                self.under_way.pop_front();
                self.acked(control, at_ns, sent_ns);
            }
            self.send(control);
            if self.now_ns % 1_000_000 < TICK_NS {
                see(self, control);
            }
        }
    }

    fn acked(&mut self, control: &mut impl Controller, at_ns: i64, sent_ns: i64) {
        let flight_size_bytes = self.in_flight();
        self.acked_bytes += MSS;
        let done = self.acked_bytes + self.lost_bytes;
        if self.newly_lost_bytes > 0 && done >= self.in_recovery_until {
            self.in_recovery_until = self.sent_bytes;
            let event = crate::CongestionEvent {
                kind: crate::CongestionKind::Loss,
                flight_size_bytes,
                lost_bytes: self.newly_lost_bytes,
            };
            control.on_congestion(at_ns, &event);
        }
        let ack = AckEvent {
            acked_bytes: MSS,
            rtt_ns: Some(at_ns - sent_ns),
            srtt_ns: Some(at_ns - sent_ns),
            flight_size_bytes,
            pipe_bytes: self.in_flight(),
            lost_bytes: std::mem::take(&mut self.newly_lost_bytes),
            acked_to: done,
            sent_to: self.sent_bytes,
            window_limited: self.in_flight() + 2 * MSS > control.cwnd_bytes(),
            in_recovery: done < self.in_recovery_until,
            ..AckEvent::default()
        };
        control.on_ack(at_ns, &ack);
    }

    fn send(&mut self, control: &mut impl Controller) {
        let gap_ns = (MSS * 8_000_000_000 / self.rate_bps) as i64;
        while self.in_flight() + MSS <= control.cwnd_bytes() && self.next_send_ns <= self.now_ns {
            let sent_ns = self.now_ns;
            self.sent_bytes += MSS;
            control.on_sent(sent_ns, MSS, self.in_flight());
            let pace_bps = control.pacing_rate_bps().unwrap_or(u64::MAX).max(1);
            let from_ns = self.next_send_ns.max(sent_ns - TICK_NS);
            self.next_send_ns = from_ns + (MSS * 8_000_000_000 / pace_bps) as i64;
            let queued = self.queue_ns() as f64 * self.rate_bps as f64 / 8e9;
            if queued as u64 + MSS > self.queue_bytes {
                self.lost_bytes += MSS;
                self.newly_lost_bytes += MSS;
                continue;
            }
            self.busy_ns = self.busy_ns.max(sent_ns) + gap_ns;
            self.under_way.push_back((self.busy_ns + self.delay_ns, sent_ns));
        }
    }
}
