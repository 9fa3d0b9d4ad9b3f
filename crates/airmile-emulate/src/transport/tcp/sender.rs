//! The sending half: what may be sent now, and what limits it.

use std::ops::Range;

use airmile_control::Controller;

use super::recovery::RecoveryPhase;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::stats::{EventKind, Limit, Retransmission, Stats, TcpEvent};
use super::undo::Undo;
use crate::net::{Contents, Literal};
use crate::scenario::TcpConfig;

/// Positions count like sequence numbers: the SYN is 0, the first byte 1, the FIN comes
/// after the last byte.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(super) config: TcpConfig,
    /// SND.UNA and SND.NXT.
    pub(crate) una: u64,
    pub(crate) next: u64,
    /// Bytes that the application has written.
    pub(crate) written_bytes: u64,
    /// The application has finished writing.
    pub(crate) finished: bool,
    pub(super) contents: Contents,
    pub(super) board: Scoreboard,
    pub(crate) control: Box<dyn Controller>,
    pub(crate) rtt: RttEstimator,
    /// Payload of a full segment.
    pub(crate) mss_bytes: u64,
    /// SACK was negotiated.
    pub(crate) sack: bool,
    /// The peer's window: its size, its maximum so far, and the segment that advertised it
    /// (SND.WL1, SND.WL2).
    pub(crate) rwnd_bytes: u64,
    pub(super) max_rwnd_bytes: u64,
    pub(super) window_told_by: (u64, u64),
    pub(super) phase: RecoveryPhase,
    pub(super) undo: Option<Undo>,
    pub(super) dup_acks: u32,
    /// The timer expired for the SYN.
    pub(super) syn_lost: bool,
    /// Bytes represented by duplicate ACKs, without SACK.
    pub(super) reno_sacked_bytes: u64,
    pub(super) reordering_seen: bool,
    pub(super) reorder_steps: i64,
    pub(super) timers: Timers,
    /// A tail loss probe, a small segment or a window probe is due.
    pub(super) probe_due: bool,
    pub(super) small_due: bool,
    pub(crate) window_probe_due: bool,
    /// SND.NXT when a probe was sent, and whether it was a retransmission.
    pub(super) probe: Option<(u64, bool)>,
    pub(crate) last_sent_ns: Option<i64>,
    pub(super) usage: Usage,
    limit: Limit,
    limit_since_ns: i64,
    pub(crate) stats: Stats,
    pub(crate) events: Vec<TcpEvent>,
}

/// Timers of the sending half.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    pub(super) rto_ns: Option<i64>,
    pub(super) probe_ns: Option<i64>,
    pub(super) reorder_ns: Option<i64>,
    pub(super) persist_ns: Option<i64>,
    pub(super) persist_backoff: u32,
    pub(super) pace_ns: Option<i64>,
}

/// Use of the window (RFC 7661; Linux's `tcp_cwnd_validate`).
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    max_flight_bytes: u64,
    round_end: u64,
    limited: bool,
    /// Since when it has not been fully used.
    unused_since_ns: Option<i64>,
}

/// A part of the stream to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) range: Range<u64>,
    pub(crate) again: Option<Retransmission>,
}

impl Sender {
    pub(crate) fn new(config: TcpConfig, now_ns: i64) -> Self {
        let mss_bytes = u64::from(config.mss_bytes.max(1));
        let initial_bytes = u64::from(config.initial_window_segments.max(1)) * mss_bytes;
        Self {
            una: 0,
            next: 0,
            written_bytes: 0,
            finished: false,
            contents: Contents::default(),
            board: Scoreboard::default(),
            control: config.control.build(mss_bytes, initial_bytes),
            rtt: RttEstimator::new(config.rto.clone(), 1_000_000),
            mss_bytes,
            sack: false,
            rwnd_bytes: 0,
            max_rwnd_bytes: 0,
            window_told_by: (0, 0),
            phase: RecoveryPhase::Open,
            undo: None,
            dup_acks: 0,
            syn_lost: false,
            reno_sacked_bytes: 0,
            reordering_seen: false,
            reorder_steps: 1,
            timers: Timers::default(),
            probe_due: false,
            small_due: false,
            window_probe_due: false,
            probe: None,
            last_sent_ns: None,
            usage: Usage::default(),
            limit: Limit::Idle,
            limit_since_ns: now_ns,
            stats: Stats::default(),
            events: Vec::new(),
            config,
        }
    }

    pub(crate) fn event(&mut self, at_ns: i64, kind: EventKind) {
        self.events.push(TcpEvent { at_ns, kind });
    }

    /// Sets the payload size that the negotiated options leave.
    pub(crate) fn set_mss(&mut self, mss_bytes: u64) {
        self.mss_bytes = mss_bytes.max(1);
        self.control.on_mss(self.mss_bytes);
    }

    /// RFC 5681, FlightSize.
    pub(crate) fn flight_size_bytes(&self) -> u64 {
        self.next - self.una
    }

    /// RFC 6675, pipe; without SACK duplicate ACKs count (RFC 5681, 3.2).
    pub(crate) fn pipe_bytes(&self) -> u64 {
        self.board.pipe_bytes().saturating_sub(self.reno_sacked_bytes)
    }

    /// Limit on the pipe.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        match &self.phase {
            RecoveryPhase::Recovery(recovery) => recovery.window_bytes(self.control.cwnd_bytes()),
            RecoveryPhase::Open | RecoveryPhase::Loss { .. } => self.control.cwnd_bytes(),
        }
    }

    pub(crate) fn in_recovery(&self) -> bool {
        !matches!(self.phase, RecoveryPhase::Open)
    }

    /// Position after the last sendable one, including the FIN.
    pub(crate) fn end(&self) -> u64 {
        1 + self.written_bytes + u64::from(self.finished)
    }

    /// Position of the FIN.
    pub(crate) fn fin(&self) -> Option<u64> {
        self.finished.then_some(1 + self.written_bytes)
    }

    /// Whether the FIN is sent and acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin().is_some_and(|fin| self.una > fin)
    }

    /// Bytes that the application may write now.
    pub(crate) fn writable_bytes(&self) -> u64 {
        let acked = self.acked_bytes();
        self.config.send_buffer_bytes.saturating_sub(self.written_bytes - acked)
    }

    /// Bytes of the stream that are acknowledged.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1).min(self.written_bytes)
    }

    pub(crate) fn add_literal(&mut self, literal: &Literal) {
        self.contents.add(literal);
    }

    pub(crate) fn literals(&self, payload: &Range<u64>) -> Vec<Literal> {
        self.contents.overlapping(payload)
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// Accounts the time since the last change to the previous limit.
    pub(crate) fn set_limit(&mut self, now_ns: i64, limit: Limit) {
        let held_ns = now_ns - self.limit_since_ns;
        match self.limit {
            Limit::Idle => {}
            Limit::Application => self.stats.application_limited_ns += held_ns,
            Limit::CongestionWindow => self.stats.cwnd_limited_ns += held_ns,
            Limit::ReceiveWindow => self.stats.rwnd_limited_ns += held_ns,
            Limit::Pacing => self.stats.pacing_limited_ns += held_ns,
        }
        self.limit = limit;
        self.limit_since_ns = now_ns;
    }

    /// The segment to send now, if any; otherwise records the limiting factor.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<Outgoing> {
        let outgoing = match self.choose(now_ns) {
            Ok(outgoing) => outgoing,
            Err(limit) => {
                self.note_usage(now_ns, limit);
                self.set_limit(now_ns, limit);
                self.arm_persist(now_ns);
                return None;
            }
        };
        self.on_sent(now_ns, &outgoing);
        Some(outgoing)
    }

    fn choose(&mut self, now_ns: i64) -> Result<Outgoing, Limit> {
        if self.next == 0 {
            return Ok(Outgoing { range: 0..1, again: None });
        }
        let paced = self.timers.pace_ns.is_some_and(|at_ns| at_ns > now_ns);
        if let Some(range) = self.board.next_waiting() {
            // RFC 6675, 5 (C) and NextSeg (1). A FIN with a full segment is more than the window after a timeout.
            let pipe_bytes = self.pipe_bytes();
            if pipe_bytes > 0 && pipe_bytes + (range.end - range.start) > self.cwnd_bytes() {
                return Err(Limit::CongestionWindow);
            }
            if paced {
                return Err(Limit::Pacing);
            }
            let kind = match self.phase {
                RecoveryPhase::Loss { .. } => Retransmission::Rto,
                _ => Retransmission::Fast,
            };
            return Ok(Outgoing { range, again: Some(kind) });
        }
        if std::mem::take(&mut self.probe_due) {
            return self.choose_probe().ok_or(Limit::Application);
        }
        if self.next >= self.end() || self.una == 0 {
            let idle = self.board.is_empty();
            return Err(if idle { Limit::Idle } else { Limit::Application });
        }
        self.restart_after_idle(now_ns);
        let range = self.new_data()?;
        let small = std::mem::take(&mut self.small_due);
        let in_flight = if self.config.limited_transmit || self.in_recovery() {
            self.pipe_bytes()
        } else {
            // Without RFC 3042 no new data is sent on duplicate ACKs.
            self.flight_size_bytes()
        };
        let is_over = in_flight + (range.end - range.start) > self.cwnd_bytes();
        if in_flight > 0 && is_over && !small {
            return Err(Limit::CongestionWindow);
        }
        if paced {
            return Err(Limit::Pacing);
        }
        Ok(Outgoing { range, again: None })
    }

    /// The next new segment allowed by the peer's window and RFC 9293, 3.8.6.2.1.
    fn new_data(&mut self) -> Result<Range<u64>, Limit> {
        let window_end = self.una + self.rwnd_bytes;
        let end = self.end();
        let full = self.next + self.mss_bytes;
        let mut to = full.min(end).min(window_end);
        if to + 1 == end && self.finished && to == full {
            // The FIN is sent with the last full segment.
            to = end.min(window_end);
        }
        if to <= self.next {
            return Err(Limit::ReceiveWindow);
        }
        if to < full && to < end && !self.small_due {
            // The window truncates the segment: only if that is half of its maximum so far.
            if to - self.next < self.max_rwnd_bytes / 2 {
                return Err(Limit::ReceiveWindow);
            }
        }
        if to < full && self.config.nagle && !self.board.is_empty() && !self.finished {
            return Err(Limit::Application);
        }
        Ok(self.next..to)
    }

    /// RFC 8985, 7.3: new data if there is any, otherwise the last segment again.
    fn choose_probe(&mut self) -> Option<Outgoing> {
        let fresh = self.new_data().ok().filter(|range| range.start < self.end());
        if let Some(range) = fresh {
            self.probe = Some((range.end, false));
            return Some(Outgoing { range, again: None });
        }
        let range = self.board.last()?;
        self.probe = Some((self.next, true));
        Some(Outgoing { range, again: Some(Retransmission::TailProbe) })
    }

    /// RFC 2861, 3.
    fn restart_after_idle(&mut self, now_ns: i64) {
        let Some(last_ns) = self.last_sent_ns.filter(|_| self.config.slow_start_after_idle) else {
            return;
        };
        let (idle_ns, rto_ns) = (now_ns - last_ns, self.rtt.rto_ns());
        if !self.board.is_empty() || idle_ns <= rto_ns || self.rtt.srtt_ns.is_none() {
            return;
        }
        let cwnd_before_bytes = self.control.cwnd_bytes();
        self.control.on_restart(now_ns, idle_ns, rto_ns);
        self.last_sent_ns = Some(now_ns);
        self.usage = Usage::default();
        let cwnd_bytes = self.control.cwnd_bytes();
        if cwnd_bytes < cwnd_before_bytes {
            self.stats.restarts += 1;
            self.event(now_ns, EventKind::Restarted { idle_ns, cwnd_before_bytes, cwnd_bytes });
        }
    }

    fn on_sent(&mut self, now_ns: i64, outgoing: &Outgoing) {
        let range = outgoing.range.clone();
        let bytes = range.end - range.start;
        let rack = self.uses_rack();
        match outgoing.again {
            None => {
                self.board.on_sent(now_ns, range.clone(), rack);
                self.next = range.end;
            }
            Some(kind) => {
                self.board.on_resent(now_ns, range.start, rack);
                self.count_again(now_ns, kind, range.clone());
            }
        }
        if let RecoveryPhase::Recovery(recovery) = &mut self.phase {
            recovery.out_bytes += bytes;
        }
        self.last_sent_ns = Some(now_ns);
        self.control.on_sent(now_ns, bytes, self.flight_size_bytes());
        self.pace(now_ns, bytes);
        // RFC 6298 (5.1).
        if self.timers.rto_ns.is_none() {
            self.timers.rto_ns = Some(now_ns + self.rtt.rto_ns());
        }
        self.arm_probe(now_ns);
    }

    fn count_again(&mut self, now_ns: i64, kind: Retransmission, range: Range<u64>) {
        let bytes = range.start.saturating_sub(1)..range.end.saturating_sub(1);
        let bytes = bytes.start..bytes.end.min(self.written_bytes).max(bytes.start);
        match kind {
            Retransmission::Fast => self.stats.fast_retransmissions += 1,
            Retransmission::Rto => self.stats.rto_retransmissions += 1,
            Retransmission::TailProbe => self.stats.probe_retransmissions += 1,
        }
        self.stats.bytes_retransmitted += bytes.end - bytes.start;
        if let Some(undo) = &mut self.undo {
            undo.first_ns.get_or_insert(now_ns);
            undo.copies += 1;
        }
        self.event(now_ns, EventKind::Retransmitted { kind, range: bytes });
    }

    fn pace(&mut self, now_ns: i64, bytes: u64) {
        let rate_bps = self.control.pacing_rate_bps().or_else(|| {
            let percent = u128::from(self.config.pacing_percent?);
            let srtt_ns = u128::try_from(self.rtt.srtt_ns?).ok().filter(|&ns| ns > 0)?;
            let cwnd = u128::from(self.control.cwnd_bytes());
            u64::try_from(cwnd * 8 * 1_000_000_000 * percent / 100 / srtt_ns).ok()
        });
        if let Some(rate_bps) = rate_bps.filter(|&bps| bps > 0) {
            let gap_ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate_bps);
            let from_ns = self.timers.pace_ns.unwrap_or(now_ns).max(now_ns);
            let gap_ns = i64::try_from(gap_ns).unwrap_or(i64::MAX);
            self.timers.pace_ns = Some(from_ns.saturating_add(gap_ns));
        }
    }

    /// Linux's `tcp_cwnd_validate` and `tcp_is_cwnd_limited`.
    fn note_usage(&mut self, now_ns: i64, limit: Limit) {
        let limited = limit == Limit::CongestionWindow;
        let flight = self.flight_size_bytes();
        let usage = &mut self.usage;
        if self.una >= usage.round_end
            || limited
            || (!usage.limited && flight > usage.max_flight_bytes)
        {
            usage.limited = limited;
            usage.max_flight_bytes = flight;
            usage.round_end = self.next;
        }
        if limited || limit == Limit::Pacing || self.window_limited() {
            self.usage.unused_since_ns = None;
            return;
        }
        let since_ns = *self.usage.unused_since_ns.get_or_insert(now_ns);
        let long = now_ns - since_ns >= self.rtt.rto_ns() && self.rtt.srtt_ns.is_some();
        if long && self.config.slow_start_after_idle && limit == Limit::Application {
            self.usage.unused_since_ns = Some(now_ns);
            let used_bytes = self.usage.max_flight_bytes;
            self.control.on_unused(now_ns, used_bytes);
        }
    }

    /// Whether only the window limited the sender recently.
    pub(super) fn window_limited(&self) -> bool {
        if self.usage.limited {
            return true;
        }
        self.control.in_slow_start() && self.control.cwnd_bytes() < 2 * self.usage.max_flight_bytes
    }
}
