//! Our congestion controllers under QUIC.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use airmile_control::{Ack, Congestion, CongestionKind, Controller as Ours, ControllerKind};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use super::clock;

/// RFC 9002, 7.2: ten datagrams.
const INITIAL_WINDOW_DATAGRAMS: u64 = 10;

/// Makes adapters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factory(pub(super) ControllerKind);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = u64::from(current_mtu);
        let initial_bytes = INITIAL_WINDOW_DATAGRAMS * mtu;
        Box::new(Adapter {
            ours: self.0.build(mtu, initial_bytes),
            initial_bytes,
            sent_bytes: 0,
            acked_bytes: 0,
            flight_bytes: 0,
            recovery_began: None,
            batch: Batch::default(),
        })
    }
}

/// Acknowledgements that came together.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    acked_bytes: u64,
    rtt_ns: Option<i64>,
    srtt_ns: Option<i64>,
}

/// One of ours, as quinn sees it.
#[derive(Debug, Clone)]
struct Adapter {
    ours: Box<dyn Ours>,
    initial_bytes: u64,
    sent_bytes: u64,
    acked_bytes: u64,
    flight_bytes: u64,
    /// Losses of what was sent before belong to the same event (RFC 9002, 7.3.2).
    recovery_began: Option<Instant>,
    batch: Batch,
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.sent_bytes += bytes;
        self.flight_bytes += bytes;
        self.ours.on_sent(clock::ns_of(now), bytes, self.flight_bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.acked_bytes += bytes;
        // RFC 9002, 7.3.2: what was sent before the recovery began does not count.
        if self.recovery_began.is_none_or(|began| sent > began) {
            self.batch.acked_bytes += bytes;
        }
        self.batch.rtt_ns = i64::try_from(now.duration_since(sent).as_nanos()).ok();
        self.batch.srtt_ns = i64::try_from(rtt.get().as_nanos()).ok();
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let batch = std::mem::take(&mut self.batch);
        let flight_size_bytes = in_flight + batch.acked_bytes;
        self.flight_bytes = in_flight;
        if batch.acked_bytes == 0 {
            return;
        }
        let ack = Ack {
            acked_bytes: batch.acked_bytes,
            rtt_ns: batch.rtt_ns,
            srtt_ns: batch.srtt_ns,
            flight_size_bytes,
            acked_to: self.acked_bytes,
            sent_to: self.sent_bytes,
            delivery_rate_bps: None,
            window_limited: !app_limited,
            in_recovery: false,
        };
        self.ours.on_ack(clock::ns_of(now), &ack);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if self.recovery_began.is_some_and(|began| sent <= began) {
            return;
        }
        self.recovery_began = Some(now);
        let now_ns = clock::ns_of(now);
        let flight_size_bytes = self.flight_bytes + self.batch.acked_bytes;
        if is_persistent_congestion {
            self.ours.on_persistent_congestion(now_ns, flight_size_bytes);
            return;
        }
        let kind = if lost_bytes == 0 { CongestionKind::Ecn } else { CongestionKind::Loss };
        self.ours.on_congestion(now_ns, &Congestion { kind, flight_size_bytes, lost_bytes });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.ours.on_mss(u64::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.ours.cwnd_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.ours.cwnd_bytes();
        metrics.ssthresh = Some(self.ours.ssthresh_bytes());
        metrics.pacing_rate = self.ours.pacing_rate_bps();
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
