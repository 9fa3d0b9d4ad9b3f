//! The sending half's handling of acknowledgements and timers: round trips, losses and
//! their repair.

use std::ops::Range;

use airmile_control::claw::Feedback;
use airmile_control::{AckEvent, CongestionEvent, CongestionKind};

use super::scoreboard::{Acked, DUP_THRESH};
use super::sender::Sender;
use super::stats::{EventKind, Limit};
use super::undo::Undo;
use crate::scenario::{LossDetection, RttSource};

/// Phase of loss recovery.
#[derive(Debug, Clone)]
pub(super) enum RecoveryPhase {
    /// No loss.
    Open,
    /// Fast recovery, until all data in flight at its start has arrived.
    Recovery(Recovery),
    /// After a timeout, likewise.
    Loss {
        /// Position after the data in flight at the start.
        recover: u64,
    },
}

/// Fast recovery: RFC 6675 with RFC 6937's proportional rate reduction.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    recover: u64,
    ssthresh_bytes: u64,
    /// RecoverFS, prr_delivered, prr_out.
    flight_bytes: u64,
    delivered_bytes: u64,
    pub(super) out_bytes: u64,
    cwnd_bytes: u64,
    /// The controller's window before the loss.
    prior_bytes: u64,
    /// The controller attributes the loss to another cause than congestion: there is no
    /// proportional reduction, and its window is in use.
    is_excused: bool,
}

impl Recovery {
    /// Limit on the pipe for the controller's current window. The first retransmission is
    /// sent at once.
    pub(super) fn window_bytes(&self, control_bytes: u64) -> u64 {
        match (self.is_excused, self.out_bytes) {
            (false, _) => self.cwnd_bytes,
            (true, 0) => control_bytes.max(self.cwnd_bytes),
            (true, _) => control_bytes,
        }
    }

    /// Processes the controller's window: one that is not, or no longer, reduced shows that
    /// the loss was not congestion. At the minimum window no reduction is possible.
    const fn judge(&mut self, control_bytes: u64, least_bytes: u64) {
        self.is_excused |= control_bytes >= self.prior_bytes && control_bytes > least_bytes;
    }
}

/// An acknowledgement, with positions for sequence numbers.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// SEG.ACK and SEG.SEQ.
    pub(crate) ack: u64,
    pub(crate) seq: u64,
    /// The advertised window, in bytes.
    pub(crate) window_bytes: u64,
    pub(crate) sack: Vec<Range<u64>>,
    /// Whether it is a pure acknowledgement.
    pub(crate) bare: bool,
    /// Start of the timestamp clock's tick in which the echoed segment was sent (RFC 7323).
    pub(crate) echo_tick_ns: Option<i64>,
}

impl Sender {
    pub(super) fn uses_rack(&self) -> bool {
        self.sack && self.config.loss_detection == LossDetection::Rack
    }

    /// Processes an acknowledgement up to SND.NXT.
    pub(crate) fn on_ack(&mut self, now_ns: i64, incoming: &Incoming) {
        if incoming.ack < self.una && incoming.sack.is_empty() {
            return;
        }
        let flight_before = self.flight_size_bytes();
        let old_window = self.rwnd_bytes;
        self.apply_window(now_ns, incoming);
        let advanced = incoming.ack > self.una;
        let d_sack = self.apply_d_sack(incoming);

        let min_rtt_ns = self.rtt.min_rtt_ns;
        let mut acked = Acked::default();
        if self.sack {
            let after_d_sack = incoming.sack.iter().skip(usize::from(d_sack));
            for block in after_d_sack.filter(|b| b.start >= self.una && b.end <= self.next) {
                self.board.on_sack(now_ns, block.clone(), min_rtt_ns, &mut acked);
            }
        }
        let sacked_new = acked.delivered_bytes > 0;
        if advanced {
            self.una = incoming.ack;
            self.board.on_ack(now_ns, self.una, min_rtt_ns, &mut acked);
            self.contents.forget_below(self.una.saturating_sub(1));
        }
        self.reordering_seen |= acked.reordered;
        self.measure(now_ns, incoming, advanced, &acked);
        let delivery_rate_bps = self.board.on_delivered(now_ns, &acked);

        let duplicate = !advanced
            && flight_before > 0
            && incoming.ack == self.una
            && (sacked_new || incoming.bare && self.rwnd_bytes == old_window && !self.sack);
        self.count_duplicates(advanced, duplicate, acked.delivered_bytes);
        let undone = advanced && self.undo_by_echo(now_ns, incoming);
        let newly_lost = if undone { 0 } else { self.find_lost(now_ns, advanced) };
        self.end_probe(now_ns, d_sack);
        self.step_phase(now_ns, advanced, newly_lost, &acked);

        if acked.delivered_bytes > 0 || advanced {
            let ack = AckEvent {
                acked_bytes: acked.delivered_bytes,
                rtt_ns: self.latest_rtt(now_ns, &acked),
                srtt_ns: self.rtt.srtt_ns,
                flight_size_bytes: flight_before,
                pipe_bytes: self.pipe_bytes(),
                lost_bytes: self.board.take_lost(),
                acked_to: self.una,
                sent_to: self.next,
                delivery_rate_bps,
                window_limited: self.window_limited(),
                app_limited: matches!(self.limit(), Limit::Idle | Limit::Application),
                in_recovery: !advanced || matches!(self.phase, RecoveryPhase::Recovery(_)),
            };
            self.control.on_ack(now_ns, &ack);
        }
        self.rearm(now_ns, advanced, &acked);
    }

    /// RFC 9293, 3.10.7.4: SND.WND from the latest segment.
    fn apply_window(&mut self, now_ns: i64, incoming: &Incoming) {
        let by = (incoming.seq, incoming.ack);
        if by < self.window_told_by || incoming.ack < self.una {
            return;
        }
        let was_shut = self.rwnd_bytes == 0;
        self.window_told_by = by;
        self.rwnd_bytes = incoming.window_bytes;
        self.max_rwnd_bytes = self.max_rwnd_bytes.max(self.rwnd_bytes);
        let shut = self.rwnd_bytes == 0;
        if shut != was_shut && self.una > 0 {
            self.event(now_ns, if shut { EventKind::WindowShut } else { EventKind::WindowOpened });
        }
        if !shut {
            self.timers.persist_ns = None;
            self.timers.persist_backoff = 0;
        }
    }

    /// The RTT of the last acknowledged data, for the controller.
    fn latest_rtt(&self, now_ns: i64, acked: &Acked) -> Option<i64> {
        let sacked_ns = acked.sack_last_ns.filter(|_| self.config.rtt_from_sack);
        acked.last_sent_ns.max(sacked_ns).map(|sent_ns| now_ns - sent_ns)
    }

    /// Measures the RTT (RFC 6298, 3 and 4; RFC 7323, 4).
    fn measure(&mut self, now_ns: i64, incoming: &Incoming, advanced: bool, acked: &Acked) {
        let tick_ns = self.config.timestamp_tick_ns.max(1);
        let ticks_ns =
            |began_ns: i64| (now_ns - now_ns.rem_euclid(tick_ns) - began_ns).max(tick_ns);
        let by_echo = incoming.echo_tick_ns.filter(|_| advanced).map(ticks_ns);
        // Karn: no sample from retransmitted data, nor from data acknowledged with it.
        let since = |sent_ns: i64| now_ns - sent_ns;
        let by_sent = acked.first_sent_ns.filter(|_| advanced && !acked.resent).map(since);
        let rtt_ns = match self.config.rtt_source {
            RttSource::SentTimes => {
                let by_sack = acked.sack_first_ns.filter(|_| self.config.rtt_from_sack).map(since);
                by_sent.or(by_sack).or(by_echo)
            }
            RttSource::Timestamps => by_echo.or(by_sent),
        };
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns);
        } else if advanced && !self.config.timestamps && !acked.resent {
            self.rtt.backoff = 0;
        }
    }

    fn count_duplicates(&mut self, advanced: bool, duplicate: bool, delivered_bytes: u64) {
        if duplicate {
            self.dup_acks += 1;
            self.stats.dup_acks += 1;
            if !self.sack {
                let flight = self.flight_size_bytes();
                self.reno_sacked_bytes = (self.reno_sacked_bytes + self.mss_bytes).min(flight);
            }
        } else if advanced {
            self.dup_acks = 0;
            // RFC 6582: one of the acknowledged segments was the retransmitted one.
            let counted = delivered_bytes.saturating_sub(self.mss_bytes);
            self.reno_sacked_bytes = match self.phase {
                RecoveryPhase::Recovery(_) => self.reno_sacked_bytes.saturating_sub(counted),
                _ => 0,
            };
        }
    }

    /// Detects losses; returns the bytes newly considered lost.
    fn find_lost(&mut self, now_ns: i64, advanced: bool) -> u64 {
        if self.board.is_empty() {
            self.timers.reorder_ns = None;
            return 0;
        }
        if !self.sack {
            let third =
                self.dup_acks == DUP_THRESH as u32 && matches!(self.phase, RecoveryPhase::Open);
            // RFC 6582, 3.2: a partial acknowledgement shows the next loss.
            let partial = advanced && matches!(self.phase, RecoveryPhase::Recovery(_));
            let done = matches!(&self.phase, RecoveryPhase::Recovery(r) if self.una >= r.recover);
            return if third || partial && !done { self.board.lose_first() } else { 0 };
        }
        if self.uses_rack() {
            return self.find_lost_by_time(now_ns);
        }
        let lost_bytes = self.board.find_lost_by_sack(self.mss_bytes);
        // RFC 6675, 5 (2): IsLost counts full segments; the loss of small ones shows only
        // in the number of duplicate ACKs.
        let by_number =
            self.dup_acks >= DUP_THRESH as u32 && matches!(self.phase, RecoveryPhase::Open);
        if by_number && self.board.lost_bytes() == 0 {
            return self.board.lose_first();
        }
        lost_bytes
    }

    /// RFC 8985, 6.2 steps 4 and 5.
    pub(super) fn find_lost_by_time(&mut self, now_ns: i64) -> u64 {
        let settled = self.in_recovery() || self.board.sacked_dup_thresh();
        let window_ns = if settled && !self.reordering_seen {
            0
        } else {
            let min_ns = self.rtt.min_rtt_ns.unwrap_or(0);
            (min_ns / 4 * self.reorder_steps).min(self.rtt.srtt_ns.unwrap_or(0))
        };
        let (lost_bytes, again_ns) = self.board.find_lost_by_time(now_ns, window_ns);
        self.timers.reorder_ns = again_ns;
        lost_bytes
    }

    /// RFC 8985, 7.4: a probe that retransmitted a segment without a duplicate report has
    /// repaired a loss.
    fn end_probe(&mut self, now_ns: i64, d_sack: bool) {
        let Some((end, again)) = self.probe.filter(|&(end, _)| self.una >= end || d_sack) else {
            return;
        };
        self.probe = None;
        if again && !d_sack && self.una >= end && matches!(self.phase, RecoveryPhase::Open) {
            let flight_size_bytes = self.flight_size_bytes().max(self.control.cwnd_bytes());
            let lost_bytes = self.mss_bytes;
            let kind = CongestionKind::Loss;
            self.control
                .on_congestion(now_ns, &CongestionEvent { kind, flight_size_bytes, lost_bytes });
        }
    }

    fn step_phase(&mut self, now_ns: i64, advanced: bool, newly_lost: u64, acked: &Acked) {
        let reported = self.undo.as_ref().is_some_and(|u| u.reported && u.copies == 0);
        if reported && self.config.undo_spurious {
            self.undo(now_ns);
        }
        match &self.phase {
            RecoveryPhase::Open if self.board.waiting_bytes() > 0 => {
                self.begin_recovery(now_ns, acked.delivered_bytes)
            }
            RecoveryPhase::Open => {}
            RecoveryPhase::Recovery(recovery) if self.una >= recovery.recover => {
                self.phase = RecoveryPhase::Open;
                self.reno_sacked_bytes = 0;
                self.event(now_ns, EventKind::RecoveryEnded);
                // Losses of data sent since then are congestion of their own.
                if self.board.lost_bytes() > 0 {
                    self.begin_recovery(now_ns, acked.delivered_bytes);
                }
            }
            RecoveryPhase::Recovery(_) => {
                self.reduce(acked.delivered_bytes, advanced && newly_lost == 0);
            }
            RecoveryPhase::Loss { recover } => {
                if self.una >= *recover {
                    self.phase = RecoveryPhase::Open;
                    self.event(now_ns, EventKind::RecoveryEnded);
                }
            }
        }
    }

    /// RFC 6675, 5 (4).
    pub(super) fn begin_recovery(&mut self, now_ns: i64, delivered_bytes: u64) {
        let cwnd_bytes = self.control.cwnd_bytes();
        // RFC 5681, 3.2 (2): without the segments that limited transmit sent beyond the
        // window.
        let flight_size_bytes = self.flight_size_bytes().min(cwnd_bytes);
        let lost_bytes = self.board.waiting_bytes();
        let kind = CongestionKind::Loss;
        self.control
            .on_congestion(now_ns, &CongestionEvent { kind, flight_size_bytes, lost_bytes });
        let ssthresh_bytes = self.control.cwnd_bytes();
        self.stats.recoveries += 1;
        self.event(
            now_ns,
            EventKind::RecoveryBegan { cwnd_bytes, ssthresh_bytes, flight_size_bytes },
        );
        self.undo = Some(Undo::default());
        self.probe = None;
        self.timers.probe_ns = None;
        self.phase = RecoveryPhase::Recovery(Recovery {
            recover: self.next,
            ssthresh_bytes,
            flight_bytes: flight_size_bytes.max(1),
            delivered_bytes: 0,
            out_bytes: 0,
            cwnd_bytes: ssthresh_bytes,
            prior_bytes: cwnd_bytes,
            is_excused: false,
        });
        self.judge_recovery();
        self.reduce(delivered_bytes, false);
    }

    fn judge_recovery(&mut self) {
        let (control_bytes, least_bytes) = (self.control.cwnd_bytes(), 2 * self.mss_bytes);
        if let RecoveryPhase::Recovery(recovery) = &mut self.phase {
            recovery.judge(control_bytes, least_bytes);
        }
    }

    /// Processes the client's feedback about its radio, which may attribute a loss.
    pub(crate) fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        self.control.on_radio(now_ns, feedback);
        self.judge_recovery();
    }

    /// RFC 6937, 3.1, with slow start only while no further loss is detected.
    fn reduce(&mut self, delivered_bytes: u64, safe: bool) {
        let (pipe, mss_bytes) = (self.pipe_bytes(), self.mss_bytes);
        let proportional = self.config.proportional_reduction;
        let RecoveryPhase::Recovery(recovery) = &mut self.phase else { return };
        recovery.delivered_bytes += delivered_bytes;
        if !proportional {
            recovery.cwnd_bytes = recovery.ssthresh_bytes;
            // The first retransmission is sent at once (RFC 6675, 5 (4.3)).
            if recovery.out_bytes == 0 {
                recovery.cwnd_bytes = recovery.cwnd_bytes.max(pipe + mss_bytes);
            }
            return;
        }
        let mut send_bytes = if pipe > recovery.ssthresh_bytes {
            let share = u128::from(recovery.delivered_bytes) * u128::from(recovery.ssthresh_bytes);
            let share = share.div_ceil(u128::from(recovery.flight_bytes));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(recovery.out_bytes)
        } else {
            let owed = recovery.delivered_bytes.saturating_sub(recovery.out_bytes);
            let limit = owed.max(delivered_bytes) + if safe { mss_bytes } else { 0 };
            limit.min(recovery.ssthresh_bytes - pipe)
        };
        if recovery.out_bytes == 0 {
            send_bytes = send_bytes.max(mss_bytes);
        }
        recovery.cwnd_bytes = pipe + send_bytes;
    }

    /// The retransmission timer has expired: RFC 6298 (5.4) to (5.6), RFC 5681, 3.1.
    /// Returns false if the connection is given up.
    pub(super) fn on_rto(&mut self, now_ns: i64) -> bool {
        let again = matches!(self.phase, RecoveryPhase::Loss { .. }) && self.rtt.backoff > 0;
        let in_recovery = matches!(self.phase, RecoveryPhase::Recovery(_));
        let kind = EventKind::RtoExpired {
            rto_ns: self.rtt.rto_ns(),
            srtt_ns: self.rtt.srtt_ns,
            in_recovery,
            dup_acks: self.dup_acks,
        };
        self.event(now_ns, kind);
        self.stats.rtos += 1;
        self.rtt.backoff += 1;
        if self.rtt.gives_up() {
            return false;
        }
        if self.una > 0 {
            self.control.on_rto(now_ns, self.flight_size_bytes(), again);
        } else {
            self.syn_lost = true;
        }
        if !again {
            self.undo = Some(Undo::default());
        }
        self.board.lose_all();
        self.reno_sacked_bytes = 0;
        self.probe = None;
        self.timers.probe_ns = None;
        self.timers.reorder_ns = None;
        self.phase = RecoveryPhase::Loss { recover: self.next };
        self.timers.rto_ns = Some(now_ns + self.rtt.rto_ns());
        true
    }

    /// The handshake is done. If its SYN was retransmitted, the window starts at one
    /// segment (RFC 5681, 3.1), the timeout at 3 s (RFC 6298, 5.7).
    pub(crate) fn on_established(&mut self) {
        if !std::mem::take(&mut self.syn_lost) {
            return;
        }
        self.control = self.config.control.build(self.mss_bytes, self.mss_bytes);
        self.rtt.fall_back();
    }

    /// RFC 6298 (5.2) and (5.3); with `rtt_from_sack` also on SACK of data sent before the
    /// first segment in flight, as in Linux.
    fn rearm(&mut self, now_ns: i64, advanced: bool, acked: &Acked) {
        if self.board.is_empty() {
            self.timers.rto_ns = None;
            self.timers.probe_ns = None;
            self.timers.reorder_ns = None;
            return;
        }
        let by_sack = self.config.rtt_from_sack
            && acked
                .sack_first_ns
                .zip(self.board.head_sent_ns())
                .is_some_and(|(sacked_ns, head_ns)| sacked_ns < head_ns);
        if advanced || by_sack {
            self.timers.rto_ns = Some(now_ns + self.rtt.rto_ns());
            self.arm_probe(now_ns);
        }
    }

    /// RFC 8985, 7.2.
    pub(super) fn arm_probe(&mut self, now_ns: i64) {
        self.timers.probe_ns = None;
        let wanted = self.config.tail_loss_probe
            && self.sack
            && matches!(self.phase, RecoveryPhase::Open)
            && self.probe.is_none()
            && self.board.sacked_bytes() == 0
            && !self.board.is_empty()
            && self.una > 0;
        if !wanted {
            return;
        }
        let mut wait_ns = self.rtt.srtt_ns.map_or(1_000_000_000, |srtt_ns| 2 * srtt_ns);
        if self.board.len() == 1 {
            // The peer may delay its ACK: Linux adds the minimum timeout.
            wait_ns += self.config.rto.min_ns;
        }
        let at_ns = now_ns + wait_ns;
        if self.timers.rto_ns.is_none_or(|rto_ns| at_ns < rto_ns) {
            self.timers.probe_ns = Some(at_ns);
        }
    }
}
