//! One connection: what its sender waited for before each packet.

use std::collections::VecDeque;

use airmile_model::packet::TcpFlags;

use super::window::{WindowPhase, WindowRounds};
use crate::tcp::TracedPacket;

/// ACKs on their way to the sender that are remembered (chosen here).
const MAX_HEARD: usize = 4_096;
/// Segments on their way to the client that are remembered (chosen here).
const MAX_SENT: usize = 16_384;
/// A round trip above the least by this, or by half of it, has a queue in it
/// (chosen here: the scheduling of both links alone moves it by 10 to 20 ms).
const SLACK_NS: i64 = 20_000_000;
/// After so long without anything in flight a sender may start again: the least
/// RTO of Linux (RFC 6298 asks for 1 s).
pub(super) const MIN_RTO_NS: i64 = 200_000_000;
/// Less payload of the client is no request: HTTP/2's window updates (RFC 9113, 6.9)
/// take 35 to 57 bytes in TLS (chosen here).
const MIN_REQUEST_BYTES: u64 = 60;
/// Duplicate ACKs that make a loss known (RFC 5681, 3.2).
const MANY_DUP_ACKS: u32 = 3;

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The connection was set up, TLS included.
    Handshake,
    /// The phone was not connected to the cell.
    Promotion,
    /// A request and the first byte of its answer, one round trip.
    Request,
    /// The server, for longer than the round trip of the request.
    ServerThinkTime,
    /// The client asked for nothing.
    NoRequest,
    /// The server had nothing to send, in the middle of an answer.
    AppLimited,
    /// ACKs, in the connection's first slow start.
    FirstSlowStart,
    /// ACKs, in a slow start after idle time.
    SlowStartRestart,
    /// The timer and the slow start behind it, which duplicate ACKs had made needless.
    UndesiredSlowStart,
    /// What was sent again.
    LossRecovery,
    /// The receiver's window.
    ReceiveWindow,
    /// ACKs or the sender's own pace, in none of the phases above.
    Pacing,
    /// A queue on the round trip.
    Queue,
    /// Something that cannot be told: the capture began in the middle of the
    /// connection, and shows no round trip.
    Unknown,
    /// The end of the transfer, after its last byte.
    AfterLast,
}

/// A span in which a sender waited, up to one of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSpan {
    /// Start in nanoseconds on the capture's clock.
    pub from_ns: i64,
    /// End in nanoseconds on the capture's clock.
    pub to_ns: i64,
    /// What for.
    pub reason: Reason,
}

/// An acknowledgement or a request on its way to the sender.
#[derive(Debug, Clone, Copy)]
struct PendingAck {
    at_ns: i64,
    edge: i64,
    ts_val: Option<u32>,
    rwnd: Option<u64>,
}

/// Follows the server's side of one connection.
#[derive(Debug, Default)]
pub struct SenderModel {
    latest_ns: Option<i64>,
    begun_ns: Option<i64>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    /// Least round trip from the monitor to the server, and to the client.
    base_up_ns: Option<i64>,
    base_down_ns: Option<i64>,
    last_down_ns: i64,
    on_their_way: VecDeque<PendingAck>,
    last_ack: Option<PendingAck>,
    /// `(end offset, time)` of segments that nobody has acknowledged.
    sent: VecDeque<(i64, i64)>,
    next: i64,
    last_data_ns: Option<i64>,
    /// First and last payload of the client since the last data.
    request_ns: Option<(i64, i64)>,
    acked: i64,
    /// Duplicate ACKs since the last one that advanced.
    dup_acks: u32,
    rounds: WindowRounds,
    mss: i64,
    /// Behind the last data no segment had room in the receive window.
    window_full: bool,
    /// Times at which a slow start after idle time began.
    restarts_ns: Vec<i64>,
    /// When the duplicate ACKs began.
    dup_since_ns: Option<i64>,
    lost: Vec<LostSegment>,
    /// The client's last payload was of a TLS handshake.
    in_tls_handshake: bool,
    /// So was what the server sent last.
    after_tls: bool,
}

/// A segment that was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSegment {
    /// When the first of those that were mended together was missing: what followed it
    /// passed the monitor, in nanoseconds.
    pub missed_ns: i64,
    /// When it passed again, in nanoseconds.
    pub again_ns: i64,
}

/// TLS handshake messages travel in records of this type (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// Change-cipher-spec and application data: what a client's handshake ends with.
const TLS_BEHIND: [u8; 2] = [20, 23];

impl SenderModel {
    /// A connection without packets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From the monitor to the server and back, at least, in nanoseconds.
    #[must_use]
    pub const fn upstream_rtt_ns(&self) -> Option<i64> {
        self.base_up_ns
    }

    /// From the monitor to the client and back, at least, in nanoseconds.
    #[must_use]
    pub const fn downstream_rtt_ns(&self) -> Option<i64> {
        self.base_down_ns
    }

    /// When slow starts after idle time showed, in nanoseconds.
    #[must_use]
    pub fn restarts_ns(&self) -> &[i64] {
        &self.restarts_ns
    }

    /// Takes the next packet; what its sender waited for goes to `out`, in order
    /// and up to the packet.
    pub fn push(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        // A clock that was set back stands still until its own time comes.
        let at_ns = self.latest_ns.map_or(packet.at_ns, |latest| latest.max(packet.at_ns));
        self.latest_ns = Some(at_ns);
        let packet = TracedPacket { at_ns, ..*packet };
        self.begun_ns.get_or_insert(packet.at_ns);
        if packet.dir == "ul" {
            self.push_client(&packet);
        } else {
            self.push_server(&packet, out);
        }
    }

    /// Segments that were sent again, in order of that.
    #[must_use]
    pub fn lost(&self) -> &[LostSegment] {
        &self.lost
    }

    /// Tells the payload of the next packet from the client: while its last record is
    /// of a TLS handshake, what the server sends is, too.
    pub fn client_payload(&mut self, payload: &[u8]) {
        match payload {
            [TLS_HANDSHAKE, 3, ..] => self.in_tls_handshake = true,
            [kind, 3, ..] if TLS_BEHIND.contains(kind) => self.in_tls_handshake = false,
            _ => {}
        }
    }

    fn push_client(&mut self, packet: &TracedPacket) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            // Of a SYN that is sent again it is not known which was answered.
            self.syn_ns = if self.begun_ns == Some(now) { Some(now) } else { None };
            return;
        }
        let Some(ack) = packet.ack else { return };
        if let Some(at) = self.syn_ack_ns.take() {
            self.down(now - at);
        }
        if packet.new_bytes >= MIN_REQUEST_BYTES {
            let first = self.request_ns.map_or(now, |(first, _)| first);
            self.request_ns = Some((first, now));
        }
        if ack.duplicate {
            if self.dup_acks == 0 {
                self.dup_since_ns = Some(now);
            }
            self.dup_acks += 1;
        } else if ack.offset_bytes > self.acked {
            (self.acked, self.dup_acks, self.dup_since_ns) = (ack.offset_bytes, 0, None);
        }
        let mut rtt = None;
        while let Some(&(end, at)) = self.sent.front()
            && end <= ack.offset_bytes
        {
            rtt = Some(now - at);
            self.sent.pop_front();
        }
        if let Some(rtt) = rtt {
            self.down(rtt);
        }
        if self.on_their_way.len() >= MAX_HEARD {
            self.on_their_way.pop_front();
        }
        self.on_their_way.push_back(PendingAck {
            at_ns: now,
            edge: ack.offset_bytes,
            ts_val: packet.timestamps.map(|(value, _)| value),
            rwnd: ack.rwnd_bytes,
        });
    }

    fn down(&mut self, rtt_ns: i64) {
        self.base_down_ns = Some(self.base_down_ns.map_or(rtt_ns, |base| base.min(rtt_ns)));
        self.last_down_ns = rtt_ns;
    }

    fn push_server(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            if let Some(syn) = self.syn_ns.take() {
                self.base_up_ns = Some(now - syn);
                self.syn_ack_ns = Some(now);
                // A capture that has the SYN has the connection's start.
                self.rounds.begins();
            }
            return;
        }
        if packet.payload_bytes == 0 {
            return;
        }
        self.apply_acks(packet);
        let mends = self.rounds.mends();
        let end = packet.offset_bytes + i64::from(packet.payload_bytes);
        match packet.event {
            None | Some("ahead") => self.new_data(packet, end, out),
            Some("retx_timeout") => {
                self.rounds.timeout(self.dup_acks >= MANY_DUP_ACKS);
                self.retransmission(now, mends, out);
                self.dup_acks = 0;
            }
            // What had arrived is sent again in the middle of a recovery: by the timer.
            Some("retx_spurious") if self.rounds.recovering() && self.dup_acks >= MANY_DUP_ACKS => {
                self.rounds.timeout(true);
                self.retransmission(now, mends, out);
            }
            Some("retx_fast" | "retx_other" | "retx_probe" | "retx_spurious") => {
                self.rounds.recovers(self.next);
                self.retransmission(now, mends, out);
            }
            // Overtaken on the way: it waited for nothing.
            Some(_) => {}
        }
    }

    /// Takes what the sender had heard when it sent this packet.
    fn apply_acks(&mut self, packet: &TracedPacket) {
        let echo = packet.timestamps.map(|(_, echo)| echo);
        let upstream = self.base_up_ns.unwrap_or(0);
        while let Some(heard) = self.on_their_way.front() {
            let known = match (heard.ts_val, echo) {
                (Some(value), Some(echo)) => value.wrapping_sub(echo).cast_signed() <= 0,
                _ => heard.at_ns <= packet.at_ns - upstream,
            };
            if !known {
                break;
            }
            let edge = self.last_ack.map_or(heard.edge, |last| last.edge.max(heard.edge));
            self.last_ack = Some(PendingAck { edge, ..*heard });
            self.on_their_way.pop_front();
        }
        if let (Some(heard), Some(_)) = (self.last_ack, echo) {
            let rtt = packet.at_ns - heard.at_ns;
            if rtt > 0 && self.base_up_ns.is_none_or(|base| rtt < base) {
                self.base_up_ns = Some(rtt);
            }
        }
    }

    fn new_data(&mut self, packet: &TracedPacket, end: i64, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        let bytes = i64::from(packet.payload_bytes);
        // Super-segments of an offload are many segments.
        self.mss = self.mss.max(bytes.min(1_460));
        let heard = self.last_ack;
        let edge = heard.map_or(packet.offset_bytes, |h| h.edge);
        let up = self.base_up_ns.unwrap_or(0);
        let all_acked = edge >= packet.offset_bytes;
        let asked = self.request_ns.take().filter(|_| all_acked);
        let released_ns = heard.map_or(now, |h| h.at_ns + up);
        let idle = all_acked && now - released_ns > self.slack();
        let full = asked.is_none() && !idle;
        let was = self.rounds.phase;
        self.rounds.heard(edge, end, full);
        if matches!(self.rounds.phase, WindowPhase::Restart { .. })
            && !matches!(was, WindowPhase::Restart { .. })
        {
            self.restarts_ns.push(now);
        }
        let reason = self.window_reason();
        if let Some(last) = self.last_data_ns
            && (asked.is_some() || idle)
            && now - last > up + self.base_down_ns.unwrap_or(0) + MIN_RTO_NS
        {
            self.rounds.resumes();
        }
        match (self.last_data_ns, asked) {
            (Some(last), _) if self.base_up_ns.is_none() => wait(out, last, now, Reason::Unknown),
            (None, asked) => self.first_answer(now, asked, out),
            (Some(last), Some(asked)) => self.answer(last, now, asked, out),
            (Some(last), None) if idle => {
                let released = released_ns.clamp(last, now);
                wait(out, last, released, reason);
                wait(out, released, now, Reason::AppLimited);
            }
            (Some(last), None) => self.clocked(last, now, reason, out),
        }
        self.after_tls = self.in_tls_handshake;
        self.passed(now, end);
        let rwnd = heard.and_then(|h| h.rwnd).map(u64::cast_signed);
        self.window_full = rwnd.is_some_and(|rwnd| rwnd - (end - edge) < self.mss);
        self.rounds.sent(end - edge, end);
    }

    /// Released by an ACK, or by the sender's pace.
    fn clocked(&self, last: i64, now: i64, reason: Reason, out: &mut Vec<WaitSpan>) {
        let queued = self.queued_ns(now, reason).min(now - last);
        wait(out, last, now - queued, reason);
        wait(out, now - queued, now, Reason::Queue);
    }

    /// The first data of the connection.
    fn first_answer(&self, now: i64, asked: Option<(i64, i64)>, out: &mut Vec<WaitSpan>) {
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
    fn answer(&self, last: i64, now: i64, (first, end): (i64, i64), out: &mut Vec<WaitSpan>) {
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

    /// From a request to its answer: a round trip, and the server's time.
    fn respond(&self, asked: i64, now: i64, out: &mut Vec<WaitSpan>) {
        let up = self.base_up_ns.unwrap_or(0);
        let due = if now - asked > up + self.slack() { asked + up } else { now };
        wait(out, asked, due, Reason::Request);
        wait(out, due, now, Reason::ServerThinkTime);
    }

    /// Data that is sent once more. While one loss is mended what follows is of that: behind
    /// a timeout all is sent again, whenever it was lost, or had arrived.
    fn retransmission(&mut self, now: i64, mends: bool, out: &mut Vec<WaitSpan>) {
        if let Some(last) = self.last_data_ns {
            let first_ns = self.lost.last().filter(|_| mends).map(|before| before.missed_ns);
            let missed_ns = first_ns.unwrap_or_else(|| self.dup_since_ns.unwrap_or(last));
            self.lost.push(LostSegment { missed_ns, again_ns: now });
            wait(out, last, now, self.phase_reason());
        }
        self.last_data_ns = Some(now);
        // Whose ACK comes next is not known (Karn; RFC 6298, 3).
        self.sent.clear();
        self.last_down_ns = self.base_down_ns.unwrap_or(0);
    }

    fn passed(&mut self, now: i64, end: i64) {
        self.last_data_ns = Some(now);
        self.next = self.next.max(end);
        if self.sent.len() < MAX_SENT {
            self.sent.push_back((end, now));
        }
    }

    fn slack(&self) -> i64 {
        let base = self.base_up_ns.unwrap_or(0) + self.base_down_ns.unwrap_or(0);
        SLACK_NS.max(base / 2)
    }

    /// How much of the round trip that ended with this packet was a queue's.
    fn queued_ns(&self, now: i64, reason: Reason) -> i64 {
        // The oldest ACK that the sender had not heard: without one it kept its own pace,
        // however old the one is that it echoes.
        let base_up = self.base_up_ns.unwrap_or(0);
        let up = self.on_their_way.front().map_or(0, |unheard| now - unheard.at_ns - base_up);
        // A full window leaves the last segment alone, and its ACK is delayed for another
        // (RFC 5681, 4.2).
        let down = match reason {
            Reason::ReceiveWindow => 0,
            _ => self.last_down_ns - self.base_down_ns.unwrap_or(0),
        };
        (up.max(0) + down.max(0) - self.slack()).max(0)
    }

    /// What kept the sender from sending on behind its last packet.
    const fn window_reason(&self) -> Reason {
        if self.window_full { Reason::ReceiveWindow } else { self.phase_reason() }
    }

    const fn phase_reason(&self) -> Reason {
        match self.rounds.phase {
            WindowPhase::First => Reason::FirstSlowStart,
            WindowPhase::Restart { .. } => Reason::SlowStartRestart,
            WindowPhase::Timeout { after_dup_acks: true, .. } => Reason::UndesiredSlowStart,
            WindowPhase::Timeout { .. }
            | WindowPhase::Recovery { .. }
            | WindowPhase::Reduced { .. } => Reason::LossRecovery,
            WindowPhase::AfterIdle { .. } | WindowPhase::Steady => Reason::Pacing,
        }
    }
}

fn wait(out: &mut Vec<WaitSpan>, from_ns: i64, to_ns: i64, reason: Reason) {
    if to_ns > from_ns {
        out.push(WaitSpan { from_ns, to_ns, reason });
    }
}
