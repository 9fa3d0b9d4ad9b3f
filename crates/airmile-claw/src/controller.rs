//! CLAW's core as a QUIC congestion controller.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use airmile_control::claw::feedback::FeedbackReport;
use airmile_control::claw::{Claw, ClawOptions, Feedback, Mode};
use airmile_control::{AckEvent, CongestionEvent, CongestionKind, Controller as _};
use airmile_host::clock::{instant_ns, now_since_start_ns};
use airmile_host::thread::lock;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use serde::Serialize;

/// Segments of the initial window (RFC 9002, 7.2).
const INITIAL_SEGMENTS: u64 = 10;

/// Feedback received for a connection, on its way to the controller.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inner: Mutex<MailboxState>,
    /// Number of reports delivered.
    reports: AtomicU64,
}

#[derive(Debug, Default)]
struct MailboxState {
    pending: Option<PendingFeedback>,
    used: Used,
}

/// A report, and the connection's share of it.
#[derive(Debug, Clone, Copy)]
struct PendingFeedback {
    feedback: Feedback,
    received_ns: i64,
    /// The connection gets one of this many parts of the client's window.
    share: u32,
    /// The connection gets one of this many parts of the operator's limit.
    cap_share: u32,
}

/// Use of a connection's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Used {
    /// Reports received for the connection.
    pub reports: u64,
    /// Batches of ACKs.
    pub acks: u64,
    /// Batches of ACKs with the client's window in use.
    pub acks_with_client_window: u64,
    /// The largest window that a client has set, in bytes.
    pub most_client_window_bytes: u64,
    /// The largest window, in bytes.
    pub most_window_bytes: u64,
}

impl Mailbox {
    /// Delivers a report. The connection gets one of `share` parts of its window and one of
    /// `cap_share` parts of the operator's limit, as a client may have several connections.
    /// Reports are renumbered, as sessions may restart.
    pub(crate) fn put(&self, report: &FeedbackReport, share: u32, cap_share: u32) {
        self.put_at(now_since_start_ns(), report, share, cap_share);
    }

    fn put_at(&self, received_ns: i64, report: &FeedbackReport, share: u32, cap_share: u32) {
        let mut inner = lock(&self.inner);
        let sequence = self.reports.fetch_add(1, Ordering::Relaxed) + 1;
        let feedback = Feedback { sequence, ..report.feedback() };
        let (share, cap_share) = (share.max(1), cap_share.max(1));
        inner.pending = Some(PendingFeedback { feedback, received_ns, share, cap_share });
    }

    fn later_than(&self, sequence: u64) -> Option<PendingFeedback> {
        if self.reports.load(Ordering::Relaxed) == sequence {
            return None;
        }
        lock(&self.inner).pending
    }

    fn publish(&self, window_bytes: u64, mode: Mode) {
        let mut inner = lock(&self.inner);
        let used = &mut inner.used;
        used.acks += 1;
        used.most_window_bytes = used.most_window_bytes.max(window_bytes);
        if matches!(mode, Mode::CellFree | Mode::Confirming) {
            used.acks_with_client_window += 1;
            used.most_client_window_bytes = used.most_client_window_bytes.max(window_bytes);
        }
    }

    /// Use of the window so far.
    pub(crate) fn used(&self) -> Used {
        let inner = lock(&self.inner);
        Used { reports: self.reports.load(Ordering::Relaxed), ..inner.used }
    }
}

/// Creates a connection's controller.
#[derive(Debug)]
pub(crate) struct Factory {
    pub(crate) options: ClawOptions,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(QuicClaw::new(self.options, self.mailbox.clone(), current_mtu.into()))
    }
}

/// The core, and the state of the current round trip.
#[derive(Debug, Clone)]
pub(crate) struct QuicClaw {
    core: Claw,
    options: ClawOptions,
    mailbox: Arc<Mailbox>,
    /// Number of the last report applied.
    taken: u64,
    initial_bytes: u64,
    sent_to: u64,
    acked_to: u64,
    batch: AckEvent,
    /// The current round trip: where it ends, when and where it began.
    round_ends_at: u64,
    round_began: (i64, u64),
    rate_bps: Option<u64>,
    /// Start of the recovery: losses of packets sent before it belong to it.
    recovery_ns: Option<i64>,
}

impl QuicClaw {
    pub(crate) fn new(options: ClawOptions, mailbox: Arc<Mailbox>, mtu_bytes: u64) -> Self {
        let initial_bytes = INITIAL_SEGMENTS * mtu_bytes;
        Self {
            core: Claw::new(mtu_bytes, initial_bytes, options),
            options,
            mailbox,
            taken: 0,
            initial_bytes,
            sent_to: 0,
            acked_to: 0,
            batch: AckEvent::default(),
            round_ends_at: 0,
            round_began: (0, 0),
            rate_bps: None,
            recovery_ns: None,
        }
    }

    /// Applies the latest report. A client's connections share its window and the
    /// operator's limit.
    ///
    /// A report that arrived while nothing was sent may have become stale.
    fn apply_report(&mut self, now_ns: i64) {
        let Some(PendingFeedback { mut feedback, received_ns, share, cap_share }) =
            self.mailbox.later_than(self.taken)
        else {
            return;
        };
        self.taken = feedback.sequence;
        let rounds_ns = self.batch.srtt_ns.unwrap_or(0) * i64::from(self.options.stale_round_trips);
        let most_ns = if feedback.idle {
            self.options.idle_hold_ns
        } else {
            self.options.stale_ns.max(rounds_ns)
        };
        if now_ns - received_ns > most_ns {
            return;
        }
        let srtt_ns = self.batch.srtt_ns.unwrap_or(100_000_000).max(0).unsigned_abs();
        let limits = self.options.limits;
        let of_rate = u128::from(limits.rate_bps) * u128::from(srtt_ns) / 8_000_000_000;
        let most = limits.window_bytes.min(u64::try_from(of_rate).unwrap_or(u64::MAX));
        let part = feedback.w_claw_bytes / u64::from(share);
        feedback.w_claw_bytes = part.min(most / u64::from(cap_share));
        self.core.on_feedback(received_ns, &feedback);
    }

    fn publish(&self) {
        self.mailbox.publish(self.core.cwnd_bytes(), self.core.mode());
    }
}

impl Controller for QuicClaw {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        let now_ns = instant_ns(now);
        self.sent_to += bytes;
        self.apply_report(now_ns);
        let flight = self.sent_to.saturating_sub(self.acked_to);
        self.core.on_sent(now_ns, bytes, flight);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acked_to += bytes;
        self.batch.acked_bytes += bytes;
        self.batch.rtt_ns = Some(instant_ns(now) - instant_ns(sent));
        self.batch.srtt_ns = i64::try_from(rtt.get().as_nanos()).ok();
        self.batch.window_limited |= !app_limited;
        // ACKs of packets sent before a loss do not grow the window (RFC 9002, 7.3.2).
        self.batch.in_recovery = self.recovery_ns.is_some_and(|began| instant_ns(sent) <= began);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        let now_ns = instant_ns(now);
        // Packets that are never acknowledged by themselves (RFC 9000, 13.2.1) were counted
        // as sent.
        self.sent_to = self.acked_to + in_flight;
        self.round_ends_at = self.round_ends_at.min(self.sent_to);
        if self.acked_to >= self.round_ends_at {
            let (began_ns, acked) = self.round_began;
            let bits = u128::from(self.acked_to - acked) * 8_000_000_000;
            let took = u128::from((now_ns - began_ns).max(1).unsigned_abs());
            self.rate_bps = u64::try_from(bits / took).ok().filter(|_| acked > 0);
            self.round_began = (now_ns, self.acked_to);
            self.round_ends_at = self.sent_to;
        }
        self.apply_report(now_ns);
        let ack = AckEvent {
            flight_size_bytes: in_flight + self.batch.acked_bytes,
            pipe_bytes: in_flight,
            acked_to: self.acked_to,
            sent_to: self.sent_to,
            delivery_rate_bps: self.rate_bps,
            ..self.batch
        };
        self.core.on_ack(now_ns, &ack);
        self.batch = AckEvent { srtt_ns: self.batch.srtt_ns, ..AckEvent::default() };
        self.publish();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now_ns, sent_ns) = (instant_ns(now), instant_ns(sent));
        let flight = self.sent_to.saturating_sub(self.acked_to);
        // Lost packets are neither acknowledged nor in flight.
        self.acked_to += lost_bytes;
        if is_persistent_congestion {
            self.recovery_ns = None;
            self.core.on_persistent_congestion(now_ns, flight);
        } else if self.recovery_ns.is_none_or(|began| sent_ns > began) {
            self.recovery_ns = Some(now_ns);
            self.apply_report(now_ns);
            let kind = if lost_bytes > 0 { CongestionKind::Loss } else { CongestionKind::Ecn };
            let event = CongestionEvent { kind, flight_size_bytes: flight, lost_bytes };
            self.core.on_congestion(now_ns, &event);
        }
        self.publish();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.core.on_mss(new_mtu.into());
    }

    fn window(&self) -> u64 {
        self.core.cwnd_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.core.cwnd_bytes();
        metrics.ssthresh = Some(self.core.ssthresh_bytes());
        metrics.pacing_rate = self.core.pacing_rate_bps();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airmile_control::claw::OperatorLimits;

    use super::*;

    fn claw(limits: OperatorLimits) -> (QuicClaw, Arc<Mailbox>) {
        let mailbox = Arc::new(Mailbox::default());
        let options = ClawOptions { limits, ..ClawOptions::default() };
        (QuicClaw::new(options, mailbox.clone(), 1_200), mailbox)
    }

    /// Whatever is reported, and however often, the window stays within the operator's
    /// limit.
    #[test]
    fn hostile_reports_stay_under_the_cap() {
        let limits = OperatorLimits { window_bytes: 500_000, rate_bps: 8_000_000 };
        let (mut control, mailbox) = claw(limits);
        let begin = Instant::now();
        for n in 0..10_000_u64 {
            let now = begin + Duration::from_micros(n * 500);
            let report = FeedbackReport {
                sequence: n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                w_claw_bytes: u32::MAX,
                load: 0.0,
                radio_losses: n as u32,
                ..FeedbackReport::default()
            };
            mailbox.put_at(instant_ns(now), &report, 1, 1);
            control.on_sent(now, 1_200, n);
            // 8 Mbit/s for 100 ms, as there is no RTT yet.
            assert!(control.window() <= 100_000, "{}", control.window());
        }
        assert_eq!(mailbox.used().reports, 10_000);
    }

    /// A client's connections share its limit.
    #[test]
    fn connections_share() {
        let (mut control, mailbox) = claw(OperatorLimits::default());
        let check = |control: &mut QuicClaw, share: u32, expected: u64| {
            let report = FeedbackReport { w_claw_bytes: 600_000, ..FeedbackReport::default() };
            mailbox.put(&report, share, share);
            control.on_sent(Instant::now(), 1_200, 0);
            assert_eq!(control.window(), expected);
        };
        check(&mut control, 1, 600_000);
        check(&mut control, 3, 200_000);
        check(&mut control, 0, 600_000);
    }

    /// A report received before a pause keeps its age.
    #[test]
    fn reports_grow_old_in_the_mailbox() {
        let check = |age_ms: i64, idle: bool, expected: u64| {
            let (mut control, mailbox) = claw(OperatorLimits::default());
            let now = Instant::now() + Duration::from_secs(60);
            let report =
                FeedbackReport { w_claw_bytes: 600_000, idle, ..FeedbackReport::default() };
            mailbox.put_at(instant_ns(now) - age_ms * 1_000_000, &report, 1, 1);
            control.on_sent(now, 1_200, 0);
            assert_eq!(control.window(), expected, "{age_ms} ms, {idle}");
        };
        check(400, false, 600_000);
        check(600, false, 12_000);
        check(9_000, true, 600_000);
        check(11_000, true, 12_000);
    }
}
