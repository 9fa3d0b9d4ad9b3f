//! One connection: what its sender waited for before each packet.

use std::collections::VecDeque;

use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, TcpEventKind};

use super::capture_site::{CaptureSite, Sides};
use super::min_duration::ReceiveWindow;
use super::policer::{PolicedSpan, PolicerTest};
use super::window::{Round, WindowPhase, WindowRounds};
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
pub(crate) const MIN_REQUEST_BYTES: u64 = 60;
/// TSvals of the client's payload that are remembered (chosen here: requests since the
/// last answer began).
const MAX_PAYLOAD_STAMPS: usize = 64;
/// The largest payload of a segment over Ethernet; more is joined by an offload.
const MAX_SEGMENT_BYTES: i64 = 1_460;
/// Of a receive window that grows, steps of this part are remembered, so many at most (chosen
/// here: from 64 KiB to the largest of 1 GiB are 83).
const WINDOW_STEP: u64 = 8;
const MAX_WINDOWS: usize = 96;
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
    /// A queue on the way of the acknowledgements, as captures at both ends show.
    QueueUp,
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
    /// Payload of a full segment, and whether the last data was less: the send buffer had
    /// run empty, as a sender joins what waits into full segments (RFC 9293, 3.8.6.2.1).
    segment_bytes: i64,
    short: bool,
    /// In flight behind the last data.
    flight: i64,
    /// TSvals of the client's payload and of its SYN, and whether the server ever echoed
    /// another: some hosts do not take those of pure ACKs (RFC 7323, 4.3 would).
    payload_stamps: VecDeque<u32>,
    syn_stamp: Option<u32>,
    echoes_acks: bool,
    /// Times at which a slow start after idle time began.
    restarts_ns: Vec<i64>,
    /// When the duplicate ACKs began.
    dup_since_ns: Option<i64>,
    lost: Vec<LostSegment>,
    encrypted: bool,
    policer: PolicerTest,
    /// The receiver's window each time that it had grown.
    windows: Vec<ReceiveWindow>,
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

    /// One whose numbers are encrypted: losses and the receiver's window do not show.
    #[must_use]
    pub fn encrypted() -> Self {
        Self { encrypted: true, ..Self::default() }
    }

    /// Whether it is one of those.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Takes a round trip on the server's side that the packets alone do not show.
    pub fn note_upstream_rtt_ns(&mut self, rtt_ns: i64) {
        if rtt_ns > 0 {
            self.base_up_ns = Some(self.base_up_ns.map_or(rtt_ns, |base| base.min(rtt_ns)));
        }
    }

    /// Spans in which a policer dropped what was above its rate.
    #[must_use]
    pub fn policed(&self) -> Option<PolicedSpan> {
        self.policer.found(self.mss)
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

    /// When its first packet passed, in nanoseconds.
    #[must_use]
    pub const fn begun_ns(&self) -> Option<i64> {
        self.begun_ns
    }

    /// The receiver's window as it grew; empty where the connection's start was not seen.
    #[must_use]
    pub fn windows(&self) -> &[ReceiveWindow] {
        if self.rounds.seen_from_start() { &self.windows } else { &[] }
    }

    fn note_window(&mut self, received_bytes: i64, window_bytes: u64) {
        let last = self.windows.last().map_or(0, |last| last.window_bytes);
        if window_bytes > last.saturating_add(last / WINDOW_STEP)
            && self.windows.len() < MAX_WINDOWS
        {
            let received_bytes = received_bytes.max(0).unsigned_abs();
            self.windows.push(ReceiveWindow { received_bytes, window_bytes });
        }
    }

    /// Takes the next packet; what its sender waited for goes to `out`, in order
    /// and up to the packet.
    pub fn push(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        // A clock that was set back stands still until its own time comes.
        let at_ns = self.latest_ns.map_or(packet.at_ns, |latest| latest.max(packet.at_ns));
        self.latest_ns = Some(at_ns);
        let packet = TracedPacket { at_ns, ..*packet };
        self.begun_ns.get_or_insert(packet.at_ns);
        if packet.dir == Direction::Ul {
            self.push_client(&packet, out);
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

    /// The round trip on the client's side that ends with this acknowledgement: of the
    /// newest data that it acknowledges, where nothing was sent again meanwhile.
    pub(crate) fn last_client_rtt_ns(&self, packet: &TracedPacket) -> Option<i64> {
        let acked = packet.ack?.offset_bytes;
        let n = self.sent.partition_point(|(end, _)| *end <= acked);
        let (_, at_ns) = self.sent.get(n.checked_sub(1)?)?;
        Some(packet.at_ns - at_ns)
    }

    /// Whether the packets are the server's own, by the round trips on both sides.
    fn is_at_server(&self) -> bool {
        let sides = Sides { upstream_ns: self.base_up_ns, downstream_ns: self.base_down_ns };
        sides.place() == CaptureSite::Server
    }

    /// At the server: all that was sent is acknowledged. Up to now it was on its way, and
    /// what the way took longer than it has to was a queue.
    fn all_arrived(&self, now: i64, out: &mut Vec<WaitSpan>) {
        let (Some(last), Some(base)) = (self.last_data_ns, self.base_down_ns) else { return };
        let queued = (now - last - base - self.slack()).max(0);
        wait(out, last, now - queued, self.window_reason());
        wait(out, now - queued, now, Reason::Queue);
    }

    fn push_client(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            // Of a SYN that is sent again the last is taken to be answered: its timer is a
            // second at first (RFC 6298, 2.1), which no path takes.
            self.syn_ns = Some(now);
            self.syn_stamp = packet.timestamps.map(|(value, _)| value);
            return;
        }
        let Some(ack) = packet.ack else { return };
        if let Some(rwnd_bytes) = ack.rwnd_bytes {
            self.note_window(ack.offset_bytes, rwnd_bytes);
        }
        if let (Some((value, _)), true) = (packet.timestamps, packet.payload_bytes > 0) {
            if self.payload_stamps.len() >= MAX_PAYLOAD_STAMPS {
                self.payload_stamps.pop_front();
            }
            self.payload_stamps.push_back(value);
        }
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
            if self.acked >= self.next && self.is_at_server() {
                self.all_arrived(now, out);
            }
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
                self.base_up_ns = Some(self.base_up_ns.map_or(now - syn, |up| up.min(now - syn)));
                // A capture that has the SYN has the connection's start.
                self.rounds.begins();
            }
            // One that is sent again: the last is taken to be acknowledged.
            self.syn_ack_ns = Some(now);
            return;
        }
        if packet.payload_bytes == 0 {
            return;
        }
        self.apply_acks(packet);
        let mends = self.rounds.mends();
        let end = packet.offset_bytes + i64::from(packet.payload_bytes);
        self.policer.push(now, packet);
        match packet.event {
            None | Some(TcpEventKind::Ahead) => self.new_data(packet, end, out),
            Some(TcpEventKind::RetxTimeout) => {
                self.rounds.timeout(self.dup_acks >= MANY_DUP_ACKS);
                self.retransmission(now, mends, out);
                self.dup_acks = 0;
            }
            // What had arrived is sent again in the middle of a recovery: by the timer.
            Some(TcpEventKind::RetxSpurious)
                if self.rounds.recovering() && self.dup_acks >= MANY_DUP_ACKS =>
            {
                self.rounds.timeout(true);
                self.retransmission(now, mends, out);
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
            // Overtaken on the way: it waited for nothing.
            Some(_) => {}
        }
    }

    /// Takes what the sender had heard when it sent this packet.
    fn apply_acks(&mut self, packet: &TracedPacket) {
        let echo = packet.timestamps.map(|(_, echo)| echo);
        let upstream = self.base_up_ns.unwrap_or(0);
        if let Some(echo) = echo
            && !self.echoes_acks
        {
            self.echoes_acks = self.syn_stamp != Some(echo) && !self.payload_stamps.contains(&echo);
        }
        // What such a host has heard, time tells: the round trip at least.
        let trusted = echo.filter(|_| self.echoes_acks || self.base_up_ns.is_none());
        while let Some(heard) = self.on_their_way.front() {
            let old = heard.at_ns <= packet.at_ns - upstream;
            let known = match (heard.ts_val, trusted, echo) {
                (Some(value), Some(echo), _) => value.wrapping_sub(echo).cast_signed() <= 0,
                (Some(value), None, Some(echo)) => {
                    old || value.wrapping_sub(echo).cast_signed() <= 0
                }
                _ => old,
            };
            if !known {
                break;
            }
            let edge = self.last_ack.map_or(heard.edge, |last| last.edge.max(heard.edge));
            self.last_ack = Some(PendingAck { edge, ..*heard });
            self.on_their_way.pop_front();
        }
        let echoed = |heard: &PendingAck| echo.is_some() && heard.ts_val == echo;
        if let Some(heard) = self.last_ack.filter(echoed) {
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
        self.mss = self.mss.max(bytes.min(MAX_SEGMENT_BYTES));
        let heard = self.last_ack;
        let edge = heard.map_or(packet.offset_bytes, |h| h.edge);
        let up = self.base_up_ns.unwrap_or(0);
        let all_acked = edge >= packet.offset_bytes;
        let asked = self.request_ns.take().filter(|_| all_acked);
        let released_ns = heard.map_or(now, |h| h.at_ns + up);
        let idle = all_acked && now - released_ns > self.slack();
        let limited = self.is_app_limited(now);
        let was = self.rounds.phase;
        let round = match asked {
            Some(_) => Round::Answer,
            None if idle || limited => Round::AppLimited,
            None => Round::WindowLimited,
        };
        self.rounds.heard(edge, end, round);
        if matches!(self.rounds.phase, WindowPhase::Restart { .. })
            && !matches!(was, WindowPhase::Restart { .. })
        {
            self.restarts_ns.push(now);
        }
        let reason = if limited && !self.rounds.mends() && !self.window_full {
            Reason::AppLimited
        } else {
            self.window_reason()
        };
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
        self.flight = end - edge;
        if bytes <= MAX_SEGMENT_BYTES {
            self.segment_bytes = self.segment_bytes.max(bytes);
            self.short = bytes < self.segment_bytes;
        } else {
            self.short = self.segment_bytes > 0 && bytes % self.segment_bytes != 0;
        }
        self.rounds.sent(end - edge, end);
    }

    /// Whether the application, and not the window, kept the sender from going on behind
    /// its last data (RFC 9002, 7.8; BBR calls the sample "app-limited").
    fn is_app_limited(&self, now: i64) -> bool {
        let Some(last) = self.last_data_ns else { return false };
        let starts = matches!(self.rounds.phase, WindowPhase::First | WindowPhase::Restart { .. });
        // A slow start sends more each round than was acknowledged before. Within a round
        // a paced sender comes to that little by little.
        let below_proven =
            starts && self.flight <= self.rounds.proven() && now - last > self.slack() / 2;
        self.short || below_proven
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
            WindowPhase::AfterIdle { .. } | WindowPhase::Steady if self.encrypted => {
                Reason::Unknown
            }
            WindowPhase::AfterIdle { .. } | WindowPhase::Steady => Reason::Pacing,
            WindowPhase::MidFlow => Reason::Unknown,
        }
    }
}

fn wait(out: &mut Vec<WaitSpan>, from_ns: i64, to_ns: i64, reason: Reason) {
    if to_ns > from_ns {
        out.push(WaitSpan { from_ns, to_ns, reason });
    }
}
