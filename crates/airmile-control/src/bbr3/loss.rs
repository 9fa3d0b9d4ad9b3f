//! The answer to losses (5.5.10, 5.5.11).

use super::model::RateSample;
use super::{BETA, Bbr3, LOSS_THRESH, State, Undo};

/// IsInflightTooHigh (5.5.10.2), with SACK.
pub(super) fn is_too_high(sample: &RateSample) -> bool {
    sample.lost > sample.tx_in_flight * LOSS_THRESH
}

impl Bbr3 {
    /// UpdateLatestDeliverySignals and UpdateCongestionSignals (5.5.10.3).
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered) {
            self.loss_round_delivered = self.sampler.delivered;
            self.loss_round_start = true;
        }
        self.update_max_bw(sample);
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.state.is_probing_bw() {
            if self.bw_shortterm.is_infinite() {
                self.bw_shortterm = self.max_bw;
            }
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = self.cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
        }
        self.loss_in_round = false;
    }

    /// NoteLoss and HandleLostPacket (5.5.10.2), for all bytes that an acknowledgement shows
    /// to be lost.
    pub(super) fn on_lost(&mut self, now_ns: i64, lost: f64, sample: &RateSample) {
        if !self.loss_in_round {
            self.loss_round_delivered = self.sampler.delivered;
            self.save();
        }
        self.loss_in_round = true;
        self.losses_in_round += 1;
        if !self.is_probe_sample || !is_too_high(sample) {
            return;
        }
        // InflightAtLoss: the prefix of the burst at which the loss passed its threshold.
        let (before, lost_before) = (sample.tx_in_flight - lost, sample.lost - lost);
        let prefix = LOSS_THRESH.mul_add(before, -lost_before) / (1.0 - LOSS_THRESH);
        let at_loss = before + prefix;
        // HandleInflightTooHigh.
        self.prev_too_high = true;
        self.is_probe_sample = false;
        if !sample.is_app_limited {
            self.inflight_longterm = at_loss.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now_ns);
        }
    }

    /// SaveCwnd and SaveStateUponLoss (5.5.11.1).
    pub(super) fn save(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    pub(super) fn save_cwnd(&mut self) {
        let free = !self.recovering && !self.timed_out && self.state != State::ProbeRtt;
        self.prior_cwnd = if free { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// HandleSpuriousLossDetection (5.5.11.2).
    pub(super) fn undo_loss(&mut self) {
        self.restore_cwnd();
        self.window.cwnd_bytes = self.cwnd as u64;
        (self.recovering, self.timed_out, self.loss_in_round) = (false, false, false);
        self.reset_full_bw(0.0);
        let undo = self.undo;
        self.bw_shortterm = self.bw_shortterm.max(undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
        self.undo.state = None;
    }
}
