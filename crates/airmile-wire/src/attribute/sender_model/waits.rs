//! What a sender waited for until one of its packets.

use super::super::window::WindowPhase;
use super::SenderModel;

/// A round trip that exceeds the minimum by this, or by half of it, contains queueing
/// (chosen here: the scheduling of both links alone varies by 10 to 20 ms).
const SLACK_NS: i64 = 20_000_000;

/// Data that leaves within this time after an acknowledgement was waiting for it (chosen here: a host
/// sends within some hundred microseconds).
const AT_ONCE_NS: i64 = 1_000_000;
/// Acknowledgements are uneven after a gap of this part of a round trip (chosen here: what passes a
/// full link comes back without gaps, but for delayed acknowledgements and the radio's grants).
const UNEVEN_PART: i64 = 4;

/// What the sender waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Connection set-up, TLS included.
    Handshake,
    /// The phone was not connected to the cell.
    Promotion,
    /// A request and the first byte of its answer: one round trip.
    Request,
    /// The server, in excess of the request's round trip.
    ServerThinkTime,
    /// No request was outstanding.
    NoRequest,
    /// The server had nothing to send, in the middle of an answer.
    AppLimited,
    /// ACKs, in the connection's first slow start.
    FirstSlowStart,
    /// ACKs, in a slow start after idle time.
    SlowStartRestart,
    /// The timer and the following slow start, which duplicate ACKs had made unnecessary.
    UndesiredSlowStart,
    /// A retransmission.
    LossRecovery,
    /// The receive window.
    ReceiveWindow,
    /// ACKs or the sender's own pace, outside the phases above.
    Pacing,
    /// The same of a phone's upload whose data left as soon as ACKs came, without a gap between these; or
    /// a retransmission, where arrivals indicate a line that drops packets.
    PathPace,
    /// A queue on the path.
    Queue,
    /// A queue on the path of the acknowledgements, as packets that passed at both ends show.
    QueueUp,
    /// The receive window was full, and without time stamps all of the last round trips were long:
    /// a queue on the path, unless it is known to be empty.
    QueueOrWindow,
    /// The sender had sent all that it had, and round trips were long: a queue on the path, unless it is
    /// known to be empty.
    QueueOrSender,
    /// Undetermined: the capture began in the middle of the connection and shows no round
    /// trip.
    Unknown,
    /// The end of the transfer, after its last byte.
    AfterLast,
}

/// A span in which a sender waited, ending at one of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSpan {
    /// Start in nanoseconds on the capture's clock.
    pub from_ns: i64,
    /// End in nanoseconds on the capture's clock.
    pub to_ns: i64,
    /// What it waited for.
    pub reason: Reason,
}

impl SenderModel {
    /// At the server: all data sent is acknowledged. Until now it was in flight, and any
    /// delay above the minimum was queueing.
    pub(super) fn all_arrived(&self, now: i64, out: &mut Vec<WaitSpan>) {
        let Some(last) = self.last_data_ns else { return };
        let late = (now - last - self.receiver_rtt.now_ns() - self.slack()).max(0);
        // A client acknowledges at once (RFC 9000, 13.2.1), and its packets do not show of what.
        let (queued, reason) = match self.encrypted && late > 0 {
            true => (0, Reason::Unknown),
            false => (late, self.window_reason()),
        };
        wait(out, last, now - queued, reason);
        wait(out, now - queued, now, Reason::Queue);
    }

    /// At the phone: the server answers what was sent, and all of it is acknowledged.
    pub(super) fn answered(&mut self, now: i64, out: &mut Vec<WaitSpan>) {
        let Some(last) = self.last_data_ns.filter(|_| self.heard_ns.is_none()) else { return };
        self.heard_ns = Some(now);
        if self.in_tls_handshake {
            wait(out, last, now, Reason::Handshake);
            return;
        }
        let arrived = self.arrived_ns.unwrap_or(now).max(last);
        let reason = if self.rounds.mends() { self.phase_reason() } else { Reason::Request };
        self.clocked(last, arrived, reason, out);
        wait(out, arrived, now, Reason::ServerThinkTime);
    }

    /// At the phone: its next data after an answer, or its first on a new connection.
    pub(super) fn goes_on(&self, heard: i64, now: i64, out: &mut Vec<WaitSpan>) {
        let tls = self.in_tls_handshake || self.after_tls;
        wait(out, heard, now, if tls { Reason::Handshake } else { Reason::AppLimited });
    }

    /// Released by an ACK, or by the sender's pace.
    pub(super) fn clocked(&self, last: i64, now: i64, reason: Reason, out: &mut Vec<WaitSpan>) {
        let queued = self.queued_ns(now, reason).min(now - last);
        // With time stamps the acknowledgement of each packet is known; at the phone, its round trip.
        let hides_queue = !self.stamped || self.of_phone;
        let may_queue = if reason == Reason::ReceiveWindow && hides_queue {
            self.queued_ns(now, Reason::QueueOrWindow).min(now - last)
        } else {
            queued
        };
        // The phone's own queue comes first, that before the phone last.
        if self.of_phone {
            wait(out, last, last + queued, Reason::Queue);
            wait(out, last + queued, last + may_queue, Reason::QueueOrWindow);
            wait(out, last + may_queue, now, reason);
            return;
        }
        wait(out, last, now - may_queue, reason);
        wait(out, now - may_queue, now - queued, Reason::QueueOrWindow);
        let is_sender = reason == Reason::AppLimited && self.short;
        wait(out, now - queued, now, if is_sender { Reason::QueueOrSender } else { Reason::Queue });
    }

    /// Whether the packet left as soon as new data was acknowledged, and acknowledgements came evenly
    /// for a round trip: a window alone lets data go in flights, one each round trip.
    pub(super) fn is_ack_clocked(&self, now: i64) -> bool {
        let round_trip = self.base_rtt_ns();
        now - self.advanced_ns <= AT_ONCE_NS && now - self.uneven_ns >= round_trip
    }

    /// At the phone: new data is acknowledged.
    pub(super) fn advanced(&mut self, now: i64) {
        if now - self.advanced_ns > self.last_receiver_rtt_ns / UNEVEN_PART {
            self.uneven_ns = now;
        }
        self.advanced_ns = now;
    }

    /// The first data of the connection.
    pub(super) fn first_answer(
        &self,
        now: i64,
        asked: Option<(i64, i64)>,
        out: &mut Vec<WaitSpan>,
    ) {
        let begun = self.begun_ns.unwrap_or(now);
        if self.in_tls_handshake {
            wait(out, begun, now, Reason::Handshake);
            return;
        }
        let asked = asked.map_or(begun, |(_, last)| last);
        wait(out, begun, asked, Reason::Handshake);
        self.respond(asked, now, out);
    }

    /// The first data of a later answer.
    pub(super) fn answer(
        &self,
        last: i64,
        now: i64,
        (first, end): (i64, i64),
        out: &mut Vec<WaitSpan>,
    ) {
        let first = first.max(last);
        if self.in_tls_handshake {
            wait(out, last, now, Reason::Handshake);
            return;
        }
        let unasked = if self.after_tls { Reason::Handshake } else { Reason::NoRequest };
        wait(out, last, first, unasked);
        wait(out, first, end.max(first), Reason::Request);
        self.respond(end.max(first), now, out);
    }

    /// From a request to its answer: a round trip, and the server think time.
    fn respond(&self, asked: i64, now: i64, out: &mut Vec<WaitSpan>) {
        let up = self.sender_rtt.now_ns();
        let due = if now - asked > up + self.slack() { asked + up } else { now };
        wait(out, asked, due, Reason::Request);
        wait(out, due, now, Reason::ServerThinkTime);
    }

    pub(super) fn slack(&self) -> i64 {
        SLACK_NS.max(self.base_rtt_ns() / 2)
    }

    /// The queueing part of the round trip that ended with this packet.
    pub(super) fn queued_ns(&self, now: i64, reason: Reason) -> i64 {
        // Which datagram another one acknowledges is not visible, nor that it acknowledges any.
        if self.encrypted {
            return 0;
        }
        // The oldest ACK that the sender had not received: without one it kept its own
        // pace, whatever the age of the ACK that it echoes.
        let sender_rtt = self.sender_rtt.now_ns();
        let unheard = self.on_their_way.front().filter(|_| !self.of_phone);
        let up = unheard.map_or(0, |unheard| now - unheard.at_ns - sender_rtt);
        // A full window leaves the last segment unpaired, and its ACK is delayed (RFC
        // 5681, 4.2); a queue delays all.
        let receiver_rtt = self.receiver_rtt.now_ns();
        let down = match reason {
            Reason::ReceiveWindow => 0,
            Reason::QueueOrWindow => {
                self.recent_receiver_rtts_ns.into_iter().min().unwrap_or(0) - receiver_rtt
            }
            _ => self.last_receiver_rtt_ns - receiver_rtt,
        };
        (up.max(0) + down.max(0) - self.slack()).max(0)
    }

    /// What stopped the sender after its last packet.
    pub(super) const fn window_reason(&self) -> Reason {
        if self.window_full { Reason::ReceiveWindow } else { self.phase_reason() }
    }

    pub(super) const fn phase_reason(&self) -> Reason {
        match self.rounds.phase {
            WindowPhase::First => Reason::FirstSlowStart,
            WindowPhase::Restart { .. } => Reason::SlowStartRestart,
            WindowPhase::Timeout { after_dup_acks: true, .. } => Reason::UndesiredSlowStart,
            WindowPhase::Timeout { .. }
            | WindowPhase::Recovery { .. }
            | WindowPhase::Reduced { .. } => Reason::LossRecovery,
            WindowPhase::AfterIdle { .. } | WindowPhase::Steady if self.encrypted => {
                Reason::Unknown
            }
            WindowPhase::AfterIdle { .. } | WindowPhase::Steady => Reason::Pacing,
            WindowPhase::MidFlow => Reason::Unknown,
        }
    }
}

pub(super) fn wait(out: &mut Vec<WaitSpan>, from_ns: i64, to_ns: i64, reason: Reason) {
    if to_ns > from_ns {
        out.push(WaitSpan { from_ns, to_ns, reason });
    }
}
