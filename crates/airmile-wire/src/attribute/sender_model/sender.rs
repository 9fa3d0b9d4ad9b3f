//! Packets of the sender: what it knew when it sent them, and its window.

use airmile_model::TcpEventKind;
use airmile_model::packet::TcpFlags;

use super::super::window::{Round, WindowPhase};
use super::waits::wait;
use super::{LostSegment, PendingAck, RECENT_TRIPS, Reason, SenderModel, WaitSpan};
use crate::tcp::{LINUX_MIN_RTO_NS, TracedPacket};

/// The largest payload of a segment over Ethernet; larger ones were merged by an offload.
const MAX_SEGMENT_BYTES: i64 = 1_460;
/// Duplicate ACKs that indicate a loss (RFC 5681, 3.2).
const MANY_DUP_ACKS: u32 = 3;
/// Maximum number of segments kept while on their way to the client (chosen here).
const MAX_SENT: usize = 16_384;
/// More segments than this within half a round trip after a timeout do not come from a window of
/// one segment, which the timer leaves (RFC 5681, 3.1; two more follow an ACK on its way).
const AFTER_TIMER_SEGMENTS: u32 = 2;

impl SenderModel {
    pub(super) fn push_sender(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            if self.of_phone {
                self.rounds.begins();
            } else if let Some(syn) = self.syn_ns.take() {
                self.sender_rtt.note(now - syn);
                // A capture with the SYN has the connection's start.
                self.rounds.begins();
            }
            // Of repeated SYN-ACKs, the last one is assumed to be acknowledged.
            self.syn_ack_ns = Some(now);
            return;
        }
        if packet.payload_bytes == 0 {
            return;
        }
        self.apply_acks(packet);
        self.after_timer(now);
        let mends = self.rounds.mends();
        let end = packet.offset_bytes + i64::from(packet.payload_bytes);
        self.policer.push(now, packet);
        match packet.event {
            None | Some(TcpEventKind::Ahead) => self.new_data(packet, end, out),
            Some(TcpEventKind::RetxTimeout) => {
                self.timeout(now);
                self.retransmission(now, mends, out);
                self.dup_acks = 0;
            }
            // Data that had arrived is retransmitted in the middle of a recovery: by the
            // timer.
            Some(TcpEventKind::RetxSpurious)
                if self.rounds.recovering() && self.dup_acks >= MANY_DUP_ACKS =>
            {
                self.timeout(now);
                self.retransmission(now, mends, out);
            }
            // Without a recovery, too, nothing was lost on the way to the phone: a sender that learns
            // so keeps its window (RFC 8985, 7.4.2; RFC 5682, 3). If its timer ended a wait, the
            // acknowledgements were lost or late.
            Some(TcpEventKind::RetxSpurious) if !mends => {
                let timer_ns = self.timer_ns();
                if let Some(last) = self.last_data_ns.filter(|last| now - last >= timer_ns) {
                    wait(out, last, now, Reason::LossRecovery);
                    self.last_data_ns = Some(now);
                }
            }
            Some(
                TcpEventKind::RetxFast
                | TcpEventKind::RetxOther
                | TcpEventKind::RetxProbe
                | TcpEventKind::RetxSpurious,
            ) => {
                self.rounds.recovers(self.next);
                self.retransmission(now, mends, out);
            }
            // Reordered on the path: it waited for nothing.
            Some(_) => {}
        }
    }

    /// Data was sent again as if by the timer.
    fn timeout(&mut self, now: i64) {
        let after_dup_acks = self.dup_acks >= MANY_DUP_ACKS;
        let is_silent = self.last_data_ns.is_none_or(|last| now - last >= LINUX_MIN_RTO_NS);
        if after_dup_acks && self.resends_early && !is_silent {
            self.rounds.recovers(self.next);
            return;
        }
        self.rounds.timeout(after_dup_acks);
        if after_dup_acks && self.timer.is_none() {
            self.timer = Some((now, 0));
        }
    }

    /// A segment follows a timeout: whether the timer caused it.
    fn after_timer(&mut self, now: i64) {
        let Some((timer_ns, segments)) = self.timer else { return };
        self.timer = None;
        if now - timer_ns > self.base_rtt_ns() / 2 {
            return;
        }
        if segments < AFTER_TIMER_SEGMENTS {
            self.timer = Some((timer_ns, segments + 1));
        } else {
            self.resends_early = true;
            self.rounds.no_timeout(self.next);
        }
    }

    /// Applies the ACKs that the sender had received when it sent this packet.
    fn apply_acks(&mut self, packet: &TracedPacket) {
        let echo = packet.timestamps.map(|(_, echo)| echo);
        let upstream = self.sender_rtt.now_ns();
        if let Some(echo) = echo
            && !self.echoes_acks
        {
            self.echoes_acks = self.syn_stamp != Some(echo) && !self.payload_stamps.contains(&echo);
        }
        // For a host that does not echo them, received ACKs follow from time: the minimum
        // round trip.
        let trusted = echo.filter(|_| self.echoes_acks || self.sender_rtt.least_ns().is_none());
        let mut is_new = false;
        while let Some(ack) = self.on_their_way.front() {
            let old = ack.at_ns <= packet.at_ns - upstream;
            let known = self.of_phone
                || match (ack.ts_val, trusted, echo) {
                    (Some(value), Some(echo), _) => value.wrapping_sub(echo).cast_signed() <= 0,
                    (Some(value), None, Some(echo)) => {
                        old || value.wrapping_sub(echo).cast_signed() <= 0
                    }
                    _ => old,
                };
            if !known {
                break;
            }
            is_new = true;
            let edge = self.last_ack.map_or(ack.edge, |last| last.edge.max(ack.edge));
            self.last_ack = Some(PendingAck { edge, ..*ack });
            // A window may also close without data that fills it (RFC 9293, 3.8.6).
            self.window_full |= ack.rwnd.is_some_and(|rwnd| rwnd.cast_signed() < self.mss);
            self.on_their_way.pop_front();
        }
        let echoed = |ack: &PendingAck| echo.is_some() && ack.ts_val == echo;
        let Some(ack) = self.last_ack.filter(echoed) else { return };
        let rtt = packet.at_ns - ack.at_ns;
        if rtt <= 0 || self.of_phone {
            return;
        }
        // Without other data in flight, the sender may have waited for its application.
        if is_new && packet.offset_bytes > ack.edge && packet.event.is_none() {
            self.sender_rtt.push(packet.at_ns, rtt);
        } else {
            self.sender_rtt.note(rtt);
        }
    }

    fn new_data(&mut self, packet: &TracedPacket, end: i64, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        let bytes = i64::from(packet.payload_bytes);
        // An offload's super-segments count as many segments.
        self.mss = self.mss.max(bytes.min(MAX_SEGMENT_BYTES));
        let ack = self.last_ack;
        let edge = ack.map_or(packet.offset_bytes, |h| h.edge);
        let up = self.sender_rtt.now_ns();
        let all_acked = edge >= packet.offset_bytes;
        // The capture lacks data: the client acknowledged it, or a silence ends ahead of it, where a
        // timer would have sent it first (RFC 6298, 5.4).
        let is_silent = self.last_data_ns.is_some_and(|last| now - last >= self.timer_ns());
        let lacks_data = packet.offset_bytes > self.next && (edge > self.next || is_silent);
        let heard_ns = self.heard_ns.take().filter(|_| all_acked);
        let asked =
            self.requests.answered(packet, self.present_upstream_rtt_ns()).filter(|_| all_acked);
        let was_idle = all_acked && self.requests.came_while_idle() && !self.window_full;
        self.requests.clear();
        let mut released_ns = ack.map_or(now, |h| h.at_ns + up);
        if let Some(last) = self.last_data_ns.filter(|_| was_idle) {
            // What the client sent since then acknowledges nothing more.
            released_ns = released_ns.min(last + self.base_rtt_ns());
        }
        let update_ns = self.updates.before(now, up);
        let updated = update_ns.is_some_and(|ns| ns <= up + self.slack());
        let idle = all_acked && now - released_ns > self.slack() && !updated;
        let limited = self.is_app_limited(now);
        let was = self.rounds.phase;
        let round = match asked {
            Some(_) => Round::Answer,
            None if heard_ns.is_some() => Round::Answer,
            None if idle || limited || updated => Round::AppLimited,
            None => Round::WindowLimited,
        };
        self.rounds.on_ack(edge, end, round);
        if matches!(self.rounds.phase, WindowPhase::Restart { .. })
            && !matches!(was, WindowPhase::Restart { .. })
        {
            self.restarts_ns.push(now);
        }
        // It may be the client's window, which is encrypted.
        let may_be_window = limited && self.updates.larger_since(now - up - self.slack());
        let reason = if update_ns.is_some() || may_be_window {
            Reason::Unknown
        } else if limited && !self.rounds.mends() && !self.window_full {
            Reason::AppLimited
        } else {
            self.window_reason()
        };
        let rwnd = ack.and_then(|h| h.rwnd);
        if reason == Reason::ReceiveWindow {
            let most = self.windows.last().map_or(0, |most| most.window_bytes);
            let is_slow = rwnd.is_some_and(|rwnd| rwnd < most / 4 * 3);
            let [all, slow] = self.window_waits;
            self.window_waits = [all.saturating_add(1), slow.saturating_add(u32::from(is_slow))];
        }
        if let Some(last) = self.last_data_ns
            && (asked.is_some() || heard_ns.is_some() || idle && update_ns.is_none())
            && now - last > self.timer_ns()
        {
            // The probabilities of a download's causes are fitted to pauses that end it.
            self.rounds.resumes(self.of_phone);
        }
        match (self.last_data_ns, asked) {
            (Some(last), _) if self.sender_rtt.least_ns().is_none() || lacks_data => {
                wait(out, last, now, Reason::Unknown);
            }
            (last, _) if heard_ns.is_some() => {
                self.goes_on(heard_ns.max(last).unwrap_or(now), now, out);
            }
            (None, asked) => {
                self.first_answer_ns = asked.map(|(_, last)| now - last);
                self.first_answer(now, asked, out);
            }
            (Some(last), Some(asked)) => self.answer(last, now, asked, out),
            (Some(last), None) if idle => {
                let released = released_ns.clamp(last, now);
                if self.of_phone {
                    self.clocked(last, released, reason, out);
                } else {
                    wait(out, last, released, reason);
                }
                // A sender waits for the window to take a full segment before it sends less (RFC
                // 1122, 4.2.3.4), and probes a closed one (4.2.2.17).
                let shut = rwnd.is_some_and(|rwnd| rwnd.cast_signed() < self.mss);
                let why = if shut { Reason::ReceiveWindow } else { Reason::AppLimited };
                wait(out, released, now, why);
            }
            (Some(last), None) if reason == Reason::Pacing && self.is_ack_clocked(now) => {
                self.clocked(last, now, Reason::PathPace, out);
            }
            (Some(last), None) => self.clocked(last, now, reason, out),
        }
        self.after_tls = self.in_tls_handshake;
        self.arrived_ns = None;
        self.passed(now, end);
        self.window_full = rwnd.is_some_and(|rwnd| rwnd.cast_signed() - (end - edge) < self.mss);
        self.flight = end - edge;
        if self.encrypted {
            // One alone may be a probe of the path's MTU (RFC 9000, 14.3).
            let second = self.largest_bytes.min(bytes);
            self.largest_bytes = self.largest_bytes.max(bytes);
            self.segment_bytes = self.segment_bytes.max(second);
            self.short = bytes < self.segment_bytes;
        } else if bytes <= MAX_SEGMENT_BYTES {
            self.segment_bytes = self.segment_bytes.max(bytes);
            self.short = bytes < self.segment_bytes;
        } else {
            self.short = self.segment_bytes > 0 && bytes % self.segment_bytes != 0;
        }
        self.rounds.sent(end - edge, end);
    }

    /// Whether the application, and not the window, stopped the sender after its last
    /// data (RFC 9002, 7.8; BBR calls the sample "app-limited").
    fn is_app_limited(&self, now: i64) -> bool {
        let Some(last) = self.last_data_ns else { return false };
        let starts = matches!(self.rounds.phase, WindowPhase::First | WindowPhase::Restart { .. });
        // In slow start each round sends more than was acknowledged before. A paced
        // sender reaches that gradually within a round.
        let below_proven =
            starts && self.flight <= self.rounds.proven() && now - last > self.slack() / 2;
        self.short || below_proven
    }

    /// A retransmission. During loss recovery the following data belongs to it: after a
    /// timeout everything is sent again, lost or not.
    fn retransmission(&mut self, now: i64, mends: bool, out: &mut Vec<WaitSpan>) {
        if let Some(last) = self.last_data_ns {
            let first = self.lost.last().filter(|_| mends).copied();
            let first = first.unwrap_or_else(|| LostSegment {
                missed_ns: self.dup_since_ns.unwrap_or(last),
                again_ns: now,
                queued: [self.dup_since_ns.is_some() && self.dup_queued, false],
                unseen: false,
            });
            let again = !self.of_phone && self.queued_ns(now, Reason::Pacing) > 0;
            let queued = [first.queued[0], again];
            self.lost.push(LostSegment { again_ns: now, queued, ..first });
            wait(out, last, now, self.phase_reason());
        }
        self.last_data_ns = Some(now);
        // The next ACK is ambiguous (Karn; RFC 6298, 3).
        self.sent.clear();
        self.last_receiver_rtt_ns = self.receiver_rtt.now_ns();
        self.recent_receiver_rtts_ns = [self.last_receiver_rtt_ns; RECENT_TRIPS];
    }

    fn passed(&mut self, now: i64, end: i64) {
        self.last_data_ns = Some(now);
        self.next = self.next.max(end);
        if self.sent.len() < MAX_SENT {
            self.sent.push_back((end, now));
        }
    }
}
