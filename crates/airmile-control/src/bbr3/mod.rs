//! BBR version 3: draft-ietf-ccwg-bbr, whose sections the comments cite. A model of the path,
//! its bandwidth and its minimum round trip, sets the pace and the window; probes measure
//! both again. Loss above 2 % in a probe bounds what may be in flight for long, any other
//! loss for short.
//!
//! Volumes are bytes, rates bytes a second; an infinite bound is not set.

mod loss;
mod model;
mod probe;
#[cfg(test)]
mod tests;

use crate::window::CongestionWindow;
use crate::{AckEvent, CongestionEvent, Controller};
use loss::is_too_high;
use model::{MaxFilter, Random, RateSample, RateSampler};

/// 2.8: loss rate tolerated in a probe, reduction after a loss, free part of the long-term
/// bound, and the minimum window in segments.
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_SEGMENTS: f64 = 4.0;
/// 2.5: pace below the bandwidth.
const PACING_MARGIN: f64 = 0.99;
/// 5.3.1.2: growth that is no plateau, and rounds without it until the pipe is full.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// 5.3.1.3: lost ranges in a round that end Startup, here acknowledgements that report loss.
const STARTUP_LOSSES: u32 = 6;
/// 5.3.2: rounds after which Drain ends.
const DRAIN_ROUNDS: u64 = 3;
/// 2.11: cycles of the bandwidth's maximum; 2.12: rounds of the aggregation's.
const MAX_BW_CYCLES: u64 = 2;
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// 2.16.1: window of the minimum round trip; 2.16.2: interval and duration of its probes.
const MIN_RTT_WINDOW_NS: i64 = 10_000_000_000;
const PROBE_RTT_INTERVAL_NS: i64 = 5_000_000_000;
const PROBE_RTT_NS: i64 = 200_000_000;
/// 5.6.3: the largest quantum, and quanta that offload needs on TCP (5.5.8).
const MAX_QUANTUM_BYTES: f64 = 65_536.0;
const QUANTA: f64 = 3.0;

/// State (5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Gains of pace and window (5.6.1).
    const fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, 0.5),
        }
    }

    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW (5.3.3.9).
    const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// What acknowledgements tell of the bandwidth's probe (2.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// State before a loss, for one that was spurious (5.5.11.1).
#[derive(Debug, Clone, Copy)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// BBRv3.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "the draft's variables")]
pub struct Bbr3 {
    window: CongestionWindow,
    sampler: RateSampler,
    random: Random,
    state: State,
    cwnd: f64,
    prior_cwnd: f64,
    /// Bytes a second; none before the first round trip.
    pace: Option<f64>,
    /// A fast recovery, or one after a timeout, has begun.
    recovering: bool,
    timed_out: bool,
    /// The window limited the sender before the last acknowledgement.
    cwnd_limited: bool,
    max_bw: f64,
    max_bw_filter: MaxFilter,
    cycle: u64,
    bw: f64,
    bw_shortterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    min_rtt_ns: f64,
    min_rtt_at_ns: i64,
    extra_acked: f64,
    extra_acked_filter: MaxFilter,
    extra_acked_delivered: f64,
    extra_acked_since_ns: i64,
    next_round_delivered: f64,
    round_start: bool,
    round_count: u64,
    loss_round_delivered: f64,
    loss_round_start: bool,
    loss_in_round: bool,
    losses_in_round: u32,
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,
    ack_phase: AckPhase,
    cycle_at_ns: i64,
    probe_wait_ns: i64,
    rounds_since_probe_up: u64,
    is_probe_sample: bool,
    probe_up_rounds: u32,
    probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    prev_too_high: bool,
    prev_precautionary: bool,
    probe_rtt_min_ns: f64,
    probe_rtt_min_at_ns: i64,
    probe_rtt_expired: bool,
    probe_rtt_done_ns: Option<i64>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    undo: Undo,
}

impl Bbr3 {
    /// A controller at its start (5.2.1). The waits between probes are drawn from the seed
    /// and the time of the first transmission.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, seed: u64) -> Self {
        let window = CongestionWindow::new(mss_bytes, initial_window_bytes);
        let (bw_shortterm, inflight_shortterm, inflight_longterm) =
            (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        Self {
            window,
            sampler: RateSampler::default(),
            random: Random(seed),
            state: State::Startup,
            cwnd: window.cwnd_bytes as f64,
            prior_cwnd: 0.0,
            pace: None,
            recovering: false,
            timed_out: false,
            cwnd_limited: false,
            max_bw: 0.0,
            max_bw_filter: MaxFilter::default(),
            cycle: 0,
            bw: 0.0,
            bw_shortterm,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            inflight_shortterm,
            inflight_longterm,
            min_rtt_ns: f64::INFINITY,
            min_rtt_at_ns: 0,
            extra_acked: 0.0,
            extra_acked_filter: MaxFilter::default(),
            extra_acked_delivered: 0.0,
            extra_acked_since_ns: 0,
            next_round_delivered: 0.0,
            round_start: false,
            round_count: 0,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            loss_in_round: false,
            losses_in_round: 0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            cycle_at_ns: 0,
            probe_wait_ns: 0,
            rounds_since_probe_up: 0,
            is_probe_sample: false,
            probe_up_rounds: 0,
            probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            prev_too_high: false,
            prev_precautionary: false,
            probe_rtt_min_ns: f64::INFINITY,
            probe_rtt_min_at_ns: 0,
            probe_rtt_expired: false,
            probe_rtt_done_ns: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            undo: Undo { state: None, bw_shortterm, inflight_shortterm, inflight_longterm },
        }
    }

    fn mss(&self) -> f64 {
        self.window.mss_bytes as f64
    }

    fn min_pipe(&self) -> f64 {
        MIN_PIPE_SEGMENTS * self.mss()
    }

    /// BDPMultiple (5.6.4.2).
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt_ns.is_infinite() {
            return self.window.initial_bytes as f64;
        }
        gain * bw * self.min_rtt_ns / 1e9
    }

    /// QuantizationBudget (5.6.4.2).
    fn quantized(&self, inflight: f64) -> f64 {
        let quantum = self.pace.unwrap_or(0.0) * 1e-3;
        let quantum = quantum.min(MAX_QUANTUM_BYTES).max(2.0 * self.mss());
        let more = if self.state == State::Up { 2.0 * self.mss() } else { 0.0 };
        inflight.max(QUANTA * quantum).max(self.min_pipe()) + more
    }

    /// Inflight(1.0).
    fn inflight(&self, bw: f64) -> f64 {
        self.quantized(self.bdp_multiple(bw, 1.0))
    }

    /// UpdateMaxBw and UpdateRound (5.5.1, 5.5.5).
    fn update_max_bw(&mut self, sample: &RateSample) {
        self.round_start =
            sample.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
        let rate = sample.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw || !sample.is_app_limited) {
            self.max_bw = self.max_bw_filter.push(self.cycle, rate, MAX_BW_CYCLES);
        }
    }

    fn start_round(&mut self) {
        self.next_round_delivered = self.sampler.delivered;
    }

    /// UpdateACKAggregation (5.5.9).
    fn update_aggregation(&mut self, now_ns: i64, sample: &RateSample) {
        let interval_ns = (now_ns - self.extra_acked_since_ns) as f64;
        let mut expected = self.bw * interval_ns / 1e9;
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_since_ns = now_ns;
            expected = 0.0;
        }
        self.extra_acked_delivered += sample.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        let window = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked = self.extra_acked_filter.push(self.round_count, extra, window);
    }

    fn reset_full_bw(&mut self, full_bw: f64) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (full_bw, 0, false);
    }

    /// CheckFullBWReached (5.3.1.2).
    fn check_full_bw(&mut self, sample: &RateSample) {
        if self.full_bw_now || !self.round_start || sample.is_app_limited {
            return;
        }
        if sample.delivery_rate >= self.full_bw * FULL_BW_GROWTH {
            self.reset_full_bw(sample.delivery_rate);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckStartupDone and CheckDrainDone (5.3.1, 5.3.2).
    fn check_startup_and_drain(&mut self, now_ns: i64, ack: &AckEvent, sample: &RateSample) {
        if self.state == State::Startup {
            let many = self.losses_in_round >= STARTUP_LOSSES;
            if self.loss_round_start && ack.in_recovery && many && is_too_high(sample) {
                self.undo.state = Some(State::Startup);
                self.full_bw_reached = true;
                self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
            }
            if self.full_bw_reached {
                self.state = State::Drain;
                self.drain_start_round = self.round_count;
            }
        }
        if self.loss_round_start {
            self.losses_in_round = 0;
        }
        if self.state == State::Drain
            && (self.sampler.in_flight <= self.inflight(self.bw)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(now_ns);
        }
    }

    /// TargetInflight (5.3.3.8.3).
    fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    /// SetPacingRateWithGain (5.6.2).
    fn set_pace(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if self.full_bw_reached || self.pace.is_some_and(|pace| rate > pace) {
            self.pace = Some(rate.max(1.0));
        }
    }

    /// SetCwnd, BoundCwndForProbeRTT and BoundCwndForModel (5.6.4.5 to 5.6.4.7).
    fn set_cwnd(&mut self, newly_acked: f64) {
        let (_, gain) = self.state.gains();
        let most = self.quantized(self.bdp_multiple(self.bw, gain) + self.extra_acked);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + newly_acked).min(most);
        } else if self.cwnd < most || self.sampler.delivered < self.window.initial_bytes as f64 {
            self.cwnd += newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_pipe());
        let mut cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        cap = cap.min(self.inflight_shortterm).max(self.min_pipe());
        self.cwnd = self.cwnd.min(cap);
        self.window.cwnd_bytes = self.cwnd as u64;
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn on_sent(&mut self, now_ns: i64, sent_bytes: u64, _flight_size_bytes: u64) {
        if self.min_rtt_at_ns == 0 {
            self.random.0 ^= now_ns.unsigned_abs();
            (self.min_rtt_at_ns, self.extra_acked_since_ns) = (now_ns, now_ns);
            self.probe_rtt_min_at_ns = now_ns;
        }
        // HandleRestartFromIdle (5.4.1).
        if self.sampler.in_flight <= 0.0 && self.sampler.app_limited > 0.0 {
            self.idle_restart = true;
            self.extra_acked_since_ns = now_ns;
            if self.state.is_probe_bw() {
                self.set_pace(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done(now_ns);
            }
        }
        self.sampler.on_sent(now_ns, sent_bytes);
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        self.cwnd_limited = ack.window_limited;
        let sample = self.sampler.on_ack(now_ns, ack);
        if ack.lost_bytes > 0 {
            self.on_lost(now_ns, ack.lost_bytes as f64, &sample);
        }
        // UpdateModelAndState (5.2.3).
        self.update_congestion_signals(&sample);
        self.update_aggregation(now_ns, &sample);
        self.check_full_bw(&sample);
        self.check_startup_and_drain(now_ns, ack, &sample);
        self.update_cycle(now_ns, &sample);
        self.update_min_rtt(now_ns, &sample);
        self.check_probe_rtt(now_ns, &sample);
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (sample.delivery_rate, sample.delivered);
        }
        self.bw = self.max_bw.min(self.bw_shortterm);
        // 5.6.4.4: the end of a recovery; after a timeout, once new data has made a round trip.
        if self.recovering && !ack.in_recovery || self.timed_out && self.round_start {
            (self.recovering, self.timed_out) = (false, false);
            self.restore_cwnd();
        }
        // InitPacingRate (5.6.2).
        if let (None, Some(rtt_ns)) = (self.pace, ack.srtt_ns.or(ack.rtt_ns).filter(|ns| *ns > 0)) {
            let (gain, _) = State::Startup.gains();
            self.pace = Some(gain * self.window.initial_bytes as f64 * 1e9 / rtt_ns as f64);
        }
        self.set_pace(self.state.gains().0);
        self.set_cwnd(sample.newly_acked);
    }

    fn on_congestion(&mut self, _now_ns: i64, _event: &CongestionEvent) {
        // 5.6.4.4. What was lost comes with the acknowledgement.
        self.save();
        self.recovering = true;
    }

    fn on_rto(&mut self, _now_ns: i64, _flight_size_bytes: u64, _again: bool) {
        // 5.6.4.4: everything in flight is considered lost.
        self.save();
        self.timed_out = true;
        self.start_round();
        self.cwnd = self.mss();
        self.window.cwnd_bytes = self.window.mss_bytes;
    }

    fn on_persistent_congestion(&mut self, now_ns: i64, flight_size_bytes: u64) {
        self.on_rto(now_ns, flight_size_bytes, false);
        self.cwnd = 2.0 * self.mss();
        self.window.on_persistent_congestion();
    }

    fn on_spurious(&mut self, _now_ns: i64) {
        self.undo_loss();
    }

    /// 5.4.1: the window stays as it is.
    fn on_restart(&mut self, _now_ns: i64, _idle_ns: i64, _rto_ns: i64) {}

    fn on_mss(&mut self, mss_bytes: u64) {
        let before = self.window.cwnd_bytes;
        self.window.set_mss(mss_bytes);
        if self.window.cwnd_bytes != before {
            self.cwnd = self.window.cwnd_bytes as f64;
        }
    }

    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        if self.state == State::Startup { u64::MAX } else { self.window.cwnd_bytes }
    }

    fn pacing_rate_bps(&self) -> Option<u64> {
        self.pace.map(|rate| (rate * 8.0) as u64)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
