//! Adapter from our congestion controllers to QUIC.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use airmile_control::claw::Feedback;
use airmile_control::{
    AckEvent, CongestionEvent, CongestionKind, Controller as Ours, ControllerKind,
};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use super::clock;

/// RFC 9002, 7.2: ten datagrams.
const INITIAL_WINDOW_DATAGRAMS: u64 = 10;

/// Creates adapters.
#[derive(Debug, Clone)]
pub(super) struct Factory {
    pub(super) kind: ControllerKind,
    /// The adapters that it created, for a client's feedback about its radio.
    pub(super) made: Made,
}

/// A controller that quinn and its host share.
type Slot = Mutex<Box<dyn Ours>>;
type Shared = Arc<Slot>;

/// Controllers of a host's connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Made(Arc<Mutex<Vec<Weak<Slot>>>>);

impl Made {
    /// Processes a client's feedback about its radio, shared by its connections.
    pub(super) fn on_radio(&self, now_ns: i64, feedback: &Feedback) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|one| one.strong_count() > 0);
        let among = u64::try_from(made.len()).unwrap_or(1).max(1);
        let share = Feedback { w_claw_bytes: feedback.w_claw_bytes / among, ..*feedback };
        for one in made.iter().filter_map(Weak::upgrade) {
            one.lock().unwrap_or_else(PoisonError::into_inner).on_radio(now_ns, &share);
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = u64::from(current_mtu);
        let initial_bytes = INITIAL_WINDOW_DATAGRAMS * mtu;
        let ours = Arc::new(Mutex::new(self.kind.build(mtu, initial_bytes)));
        let mut made = self.made.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(Arc::downgrade(&ours));
        Box::new(Adapter {
            ours,
            initial_bytes,
            sent_bytes: 0,
            acked_bytes: 0,
            flight_bytes: 0,
            recovery_began: None,
            batch: AckBatch::default(),
            round: RoundTrip::default(),
        })
    }
}

/// Acknowledgements that arrived together.
#[derive(Debug, Clone, Copy, Default)]
struct AckBatch {
    acked_bytes: u64,
    lost_bytes: u64,
    rtt_ns: Option<i64>,
    srtt_ns: Option<i64>,
}

/// Adapter of a controller to quinn's interface.
#[derive(Debug)]
struct Adapter {
    ours: Shared,
    initial_bytes: u64,
    sent_bytes: u64,
    acked_bytes: u64,
    flight_bytes: u64,
    /// Losses of data sent earlier belong to the same event (RFC 9002, 7.3.2).
    recovery_began: Option<Instant>,
    batch: AckBatch,
    round: RoundTrip,
}

/// Delivery rate of a round trip.
#[derive(Debug, Clone, Copy, Default)]
struct RoundTrip {
    /// Stream bytes that end the current round trip.
    ends_at: u64,
    /// When it started, and the bytes acknowledged by then.
    began: (i64, u64),
    /// Rate of the previous round trip.
    rate_bps: Option<u64>,
}

impl RoundTrip {
    fn on_acks(&mut self, now_ns: i64, acked_bytes: u64, sent_bytes: u64) {
        if acked_bytes < self.ends_at {
            return;
        }
        let (began_ns, before) = self.began;
        let bits = u128::from(acked_bytes - before) * 8_000_000_000;
        let took_ns = u128::from((now_ns - began_ns).max(1).unsigned_abs());
        self.rate_bps = u64::try_from(bits / took_ns).ok().filter(|_| before > 0);
        (self.began, self.ends_at) = ((now_ns, acked_bytes), sent_bytes);
    }
}

impl Adapter {
    fn ours(&self) -> MutexGuard<'_, Box<dyn Ours>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.sent_bytes += bytes;
        self.flight_bytes += bytes;
        self.ours().on_sent(clock::ns_of(now), bytes, self.flight_bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.acked_bytes += bytes;
        // RFC 9002, 7.3.2: data sent before the start of the recovery does not count.
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
            self.batch.lost_bytes = batch.lost_bytes;
            return;
        }
        let now_ns = clock::ns_of(now);
        self.round.on_acks(now_ns, self.acked_bytes, self.sent_bytes);
        let ack = AckEvent {
            acked_bytes: batch.acked_bytes,
            rtt_ns: batch.rtt_ns,
            srtt_ns: batch.srtt_ns,
            flight_size_bytes,
            pipe_bytes: in_flight,
            lost_bytes: batch.lost_bytes,
            acked_to: self.acked_bytes,
            sent_to: self.sent_bytes,
            delivery_rate_bps: self.round.rate_bps,
            window_limited: !app_limited,
            app_limited,
            in_recovery: false,
        };
        self.ours().on_ack(now_ns, &ack);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        // Lost data is never acknowledged: round trips end without it.
        self.acked_bytes += lost_bytes;
        self.batch.lost_bytes += lost_bytes;
        if self.recovery_began.is_some_and(|began| sent <= began) {
            return;
        }
        self.recovery_began = Some(now);
        let now_ns = clock::ns_of(now);
        let flight_size_bytes = self.flight_bytes + self.batch.acked_bytes;
        if is_persistent_congestion {
            self.ours().on_persistent_congestion(now_ns, flight_size_bytes);
            return;
        }
        let kind = if lost_bytes == 0 { CongestionKind::Ecn } else { CongestionKind::Loss };
        self.ours().on_congestion(now_ns, &CongestionEvent { kind, flight_size_bytes, lost_bytes });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.ours().on_mss(u64::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.ours().cwnd_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.ours().cwnd_bytes();
        metrics.ssthresh = Some(self.ours().ssthresh_bytes());
        metrics.pacing_rate = self.ours().pacing_rate_bps();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // Another path gets its own controller.
        let ours = Arc::new(Mutex::new(self.ours().clone()));
        let Self { initial_bytes, sent_bytes, acked_bytes, flight_bytes, .. } = *self;
        let (recovery_began, batch, round) = (self.recovery_began, self.batch, self.round);
        Box::new(Self {
            ours,
            initial_bytes,
            sent_bytes,
            acked_bytes,
            flight_bytes,
            recovery_began,
            batch,
            round,
        })
    }

    fn initial_window(&self) -> u64 {
        self.initial_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
