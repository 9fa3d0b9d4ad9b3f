//! The cycle that probes for bandwidth (5.3.3), and the probe of the minimum round trip
//! (5.3.4).

use super::loss::is_too_high;
use super::model::RateSample;
use super::{
    AckPhase, Bbr3, HEADROOM, MIN_RTT_WINDOW_NS, PROBE_RTT_INTERVAL_NS, PROBE_RTT_NS, State,
};

/// 5.3.3.8.3: rounds after which a flow probes at the latest, as Reno would.
const RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    /// StartProbeBW_DOWN (5.3.3.9).
    pub(super) fn start_down(&mut self, now_ns: i64) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
        self.probe_up_acked_per_inc = f64::INFINITY;
        // PickProbeWait (5.3.3.8.3): 2 to 3 s.
        self.rounds_since_probe_up = self.random.bit();
        self.probe_wait_ns = ((2.0 + self.random.share()) * 1e9) as i64;
        self.cycle_at_ns = now_ns;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL (5.3.3.9).
    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        (self.probe_up_rounds, self.probe_up_acked) = (0, 0.0);
        self.prev_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// StartProbeBW_UP (5.3.3.9).
    fn start_up(&mut self, sample: &RateSample) {
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.reset_full_bw(sample.delivery_rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// RaiseInflightLongtermSlope (5.3.3.9): 1, 2, 4, ... segments a round.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probe_up_rounds);
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.mss());
    }

    /// InflightWithHeadroom (5.3.3.9).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (HEADROOM * self.inflight_longterm).max(self.mss());
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        (self.inflight_longterm - headroom).max(self.min_pipe())
    }

    /// UpdateProbeBWCyclePhase (5.3.3.9).
    pub(super) fn update_cycle(&mut self, now_ns: i64, sample: &RateSample) {
        if !self.full_bw_reached || self.adapt_long_term(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(now_ns) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if self.round_start => {
                self.is_probe_sample = true;
                self.start_up(sample);
            }
            State::Up if self.is_time_to_go_down(sample) => {
                self.prev_too_high = false;
                self.start_down(now_ns);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW and IsRenoCoexistenceProbeTime (5.3.3.8.3), in rounds for segments.
    fn is_time_to_probe(&self, now_ns: i64) -> bool {
        let rounds = (self.target_inflight() / self.mss()).min(RENO_ROUNDS);
        now_ns > self.cycle_at_ns + self.probe_wait_ns
            || self.rounds_since_probe_up as f64 >= rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        let in_flight = self.sampler.in_flight;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw)
    }

    /// IsTimeToGoDown (5.3.3.9). A precautionary probe that follows one that was too high ends
    /// where that one did.
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        if self.prev_too_high && self.sampler.in_flight >= self.inflight_longterm {
            self.prev_precautionary = true;
            return true;
        }
        if self.cwnd_limited && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw(sample.delivery_rate);
            return false;
        }
        self.full_bw_now
    }

    /// AdaptLongTermModel (5.3.3.9). Whether it chose a state.
    fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.is_app_limited {
                self.cycle += 1;
            }
            if self.state.is_probe_bw() && self.prev_precautionary && !self.prev_too_high {
                self.start_refill();
                return true;
            }
        }
        if is_too_high(sample) || self.inflight_longterm.is_infinite() {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(sample);
        }
        false
    }

    /// ProbeInflightLongtermUpward (5.3.3.9).
    pub(super) fn probe_upward(&mut self, sample: &RateSample) {
        if !self.cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += sample.newly_acked;
        if self.probe_up_acked >= self.probe_up_acked_per_inc {
            let times = (self.probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.probe_up_acked -= times * self.probe_up_acked_per_inc;
            self.inflight_longterm += times * self.mss();
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// UpdateMinRTT (5.3.4.3).
    pub(super) fn update_min_rtt(&mut self, now_ns: i64, sample: &RateSample) {
        self.probe_rtt_expired = now_ns > self.probe_rtt_min_at_ns + PROBE_RTT_INTERVAL_NS;
        if let Some(rtt_ns) = sample.rtt_ns
            && (self.probe_rtt_expired || (rtt_ns as f64) < self.probe_rtt_min_ns)
        {
            (self.probe_rtt_min_ns, self.probe_rtt_min_at_ns) = (rtt_ns as f64, now_ns);
        }
        let expired = now_ns > self.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        if self.probe_rtt_min_ns < self.min_rtt_ns || expired {
            self.min_rtt_ns = self.probe_rtt_min_ns;
            self.min_rtt_at_ns = self.probe_rtt_min_at_ns;
        }
    }

    /// ProbeRTTCwnd (5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, State::ProbeRtt.gains().1).max(self.min_pipe())
    }

    /// CheckProbeRTT and HandleProbeRTT (5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, now_ns: i64, sample: &RateSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_ns = None;
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            // The low rates of this state are not the path's.
            self.sampler.mark_app_limited();
            if self.probe_rtt_done_ns.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now_ns);
                }
            } else if self.sampler.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_ns = Some(now_ns + PROBE_RTT_NS);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
        }
        if sample.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT (5.3.4.3, 5.3.4.4).
    pub(super) fn check_probe_rtt_done(&mut self, now_ns: i64) {
        if self.probe_rtt_done_ns.is_none_or(|done_ns| now_ns <= done_ns) {
            return;
        }
        self.probe_rtt_min_at_ns = now_ns;
        self.restore_cwnd();
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now_ns);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
