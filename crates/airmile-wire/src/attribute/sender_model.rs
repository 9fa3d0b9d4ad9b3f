//! What the sender of one connection waited for before each packet.

use std::collections::VecDeque;

use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, TcpEventKind};

use super::capture_site::{CaptureSite, Sides};
use super::min_duration::ReceiveWindow;
use super::path_change::BaseRtt;
use super::policer::{PolicedSpan, PolicerTest};
use super::quic::WindowUpdates;
use super::requests::Requests;
use super::window::{Round, WindowPhase, WindowRounds};
use crate::tcp::TracedPacket;

/// Maximum number of ACKs kept while on their way to the sender (chosen here).
const MAX_PENDING_ACKS: usize = 4_096;
/// Maximum number of segments kept while on their way to the client (chosen here).
const MAX_SENT: usize = 16_384;
/// A round trip that exceeds the minimum by this, or by half of it, contains queueing
/// (chosen here: the scheduling of both links alone varies by 10 to 20 ms).
const SLACK_NS: i64 = 20_000_000;
/// After this long without data in flight a sender may restart slow start: Linux's
/// minimum RTO (RFC 6298 asks for 1 s).
pub const MIN_RTO_NS: i64 = 200_000_000;
/// A sender retransmits after an RTO without an acknowledgement, doubled each time (RFC
/// 6298, 5.5): three of Linux's minimum RTOs. A longer silence is a pause, whatever was
/// lost before.
pub(super) const BACKED_OFF_NS: i64 = 7 * MIN_RTO_NS;
/// Maximum number of TSvals of client payload kept (chosen here: requests since the last
/// answer began).
const MAX_PAYLOAD_STAMPS: usize = 64;
/// The largest payload of a segment over Ethernet; larger ones were merged by an offload.
const MAX_SEGMENT_BYTES: i64 = 1_460;
/// A growing receive window is recorded in steps of this part (chosen here: from 64 KiB
/// to the maximum of 1 GiB are 83 steps).
const WINDOW_STEP: u64 = 8;
const MAX_WINDOWS: usize = 96;
/// Duplicate ACKs that indicate a loss (RFC 5681, 3.2).
const MANY_DUP_ACKS: u32 = 3;

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
    /// A queue on the path.
    Queue,
    /// A queue on the path of the acknowledgements, as packets that passed at both ends show.
    QueueUp,
    /// The receive window was full, and without time stamps all of the last round trips were long:
    /// a queue on the path, unless it is known to be empty.
    QueueOrWindow,
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

/// An acknowledgement or a request on its way to the sender.
#[derive(Debug, Clone, Copy)]
struct PendingAck {
    at_ns: i64,
    edge: i64,
    ts_val: Option<u32>,
    rwnd: Option<u64>,
}

/// Models the server's side of one connection.
#[derive(Debug, Default)]
pub struct SenderModel {
    latest_ns: Option<i64>,
    begun_ns: Option<i64>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    /// Minimum round trip from the monitor to the server, and to the client.
    base_up: BaseRtt,
    base_down: BaseRtt,
    last_down_ns: i64,
    /// The last round trips of that side, the newest last.
    recent_down_ns: [i64; RECENT_TRIPS],
    /// The client sends time stamps (RFC 7323).
    stamped: bool,
    on_their_way: VecDeque<PendingAck>,
    last_ack: Option<PendingAck>,
    /// `(end offset, time)` of unacknowledged segments.
    sent: VecDeque<(i64, i64)>,
    next: i64,
    last_data_ns: Option<i64>,
    requests: Requests,
    acked: i64,
    /// Duplicate ACKs since the last one that advanced.
    dup_acks: u32,
    rounds: WindowRounds,
    mss: i64,
    /// After the last data, or in an ACK since, the receive window had no room for a full segment.
    window_full: bool,
    /// Payload of a full segment, and whether the last data was shorter: then the send
    /// buffer had run empty, as a sender joins waiting data into full segments (RFC 9293,
    /// 3.8.6.2.1).
    segment_bytes: i64,
    short: bool,
    /// Bytes in flight after the last data.
    flight: i64,
    /// TSvals of the client's payload and of its SYN, and whether the server ever echoed
    /// another: some hosts ignore those of pure ACKs, against RFC 7323, 4.3.
    payload_stamps: VecDeque<u32>,
    syn_stamp: Option<u32>,
    echoes_acks: bool,
    /// Times at which a slow start after idle time began.
    restarts_ns: Vec<i64>,
    /// When the current duplicate ACKs began.
    dup_since_ns: Option<i64>,
    lost: Vec<LostSegment>,
    encrypted: bool,
    /// If it is encrypted.
    updates: WindowUpdates,
    policer: PolicerTest,
    /// The receive window at each time it grew.
    windows: Vec<ReceiveWindow>,
    /// The client's last payload belonged to a TLS handshake.
    in_tls_handshake: bool,
    /// So did the server's last payload.
    after_tls: bool,
    /// When the timer sent data again behind duplicate ACKs, and the segments since then.
    timer: Option<(i64, u32)>,
    /// More followed than a timer lets go: the sender sends lost retransmissions again without it
    /// (RFC 8985, 6.2).
    resends_early: bool,
}

/// More segments than this within half a round trip after a timeout do not come from a window of
/// one segment, which the timer leaves (RFC 5681, 3.1; two more follow an ACK on its way).
const AFTER_TIMER_SEGMENTS: u32 = 2;

/// Round trips of which the shortest has no delayed ACK (chosen here: each second segment is
/// acknowledged at once; RFC 5681, 4.2).
const RECENT_TRIPS: usize = 4;

/// A retransmitted segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSegment {
    /// When the first of the segments repaired together was missed: the time its
    /// successor passed the monitor, in nanoseconds.
    pub missed_ns: i64,
    /// When the retransmission passed, in nanoseconds.
    pub again_ns: i64,
}

/// TLS handshake messages travel in records of this type (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// Change-cipher-spec and application data: the end of a client's handshake.
const TLS_BEHIND: [u8; 2] = [20, 23];

impl SenderModel {
    /// A connection without packets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection with encrypted packet numbers: losses and the receive window are not
    /// visible.
    #[must_use]
    pub fn encrypted() -> Self {
        Self { encrypted: true, ..Self::default() }
    }

    /// Whether the client sends TCP time stamps (RFC 7323).
    #[must_use]
    pub const fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Whether packet numbers are encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Takes a round trip on the server's side that the packets alone do not show.
    pub fn note_upstream_rtt_ns(&mut self, rtt_ns: i64) {
        if rtt_ns > 0 {
            self.base_up.note(rtt_ns);
        }
    }

    /// Spans in which a policer dropped packets above its rate.
    #[must_use]
    pub fn policed(&self) -> Option<PolicedSpan> {
        self.policer.found(self.mss)
    }

    /// Minimum round trip from the monitor to the server, in nanoseconds.
    #[must_use]
    pub const fn upstream_rtt_ns(&self) -> Option<i64> {
        self.base_up.least_ns()
    }

    /// The same on the present route, which may have changed in mid-flow.
    #[must_use]
    pub fn present_upstream_rtt_ns(&self) -> Option<i64> {
        self.base_up.least_ns().map(|least| least.saturating_add(self.base_up.rise_ns()))
    }

    /// Time of its last packet, in nanoseconds.
    #[must_use]
    pub const fn latest_ns(&self) -> Option<i64> {
        self.latest_ns
    }

    /// By how much the present minimum round trip to the server is above that.
    pub(super) fn upstream_rise_ns(&self) -> i64 {
        self.base_up.rise_ns()
    }

    /// Minimum round trip from the monitor to the client, in nanoseconds.
    #[must_use]
    pub const fn downstream_rtt_ns(&self) -> Option<i64> {
        self.base_down.least_ns()
    }

    /// Times of slow starts after idle time, in nanoseconds.
    #[must_use]
    pub fn restarts_ns(&self) -> &[i64] {
        &self.restarts_ns
    }

    /// Time of its first packet, in nanoseconds.
    #[must_use]
    pub const fn begun_ns(&self) -> Option<i64> {
        self.begun_ns
    }

    /// Whether the connection's start was captured.
    #[must_use]
    pub const fn seen_from_start(&self) -> bool {
        self.rounds.seen_from_start()
    }

    /// The receive window as it grew; empty if the connection's start was not captured.
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

    /// Takes the next packet. Appends what its sender waited for to `out`, in order, up
    /// to the packet.
    pub fn push(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        // After a backward step of the clock, time stands still until the clock catches
        // up.
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

    /// When the oldest acknowledgement passed that the sender had not received when it sent its last
    /// packet; `None` if it echoes none: which it had received is then assumed, not known.
    pub(super) fn oldest_unheard_ack_ns(&self) -> Option<i64> {
        self.on_their_way.front().filter(|_| self.echoes_acks).map(|ack| ack.at_ns)
    }

    /// Retransmitted segments, in order of retransmission.
    #[must_use]
    pub fn lost(&self) -> &[LostSegment] {
        &self.lost
    }

    /// Takes the payload of the next packet from the client. While its last record
    /// belongs to a TLS handshake, so does what the server sends.
    pub fn client_payload(&mut self, payload: &[u8]) {
        self.requests.begins_as(payload);
        match payload {
            [TLS_HANDSHAKE, 3, ..] => self.in_tls_handshake = true,
            [kind, 3, ..] if TLS_BEHIND.contains(kind) => self.in_tls_handshake = false,
            _ => {}
        }
    }

    /// Takes the first bytes of the client's next packet: an HTTP/1 request may be of any size.
    pub fn begins_as(&mut self, payload: &[u8]) {
        self.requests.begins_as(payload);
    }

    /// Whether the client's next packet is a request by itself.
    pub const fn is_request(&self, packet: &TracedPacket) -> bool {
        self.requests.is_request(packet)
    }

    /// When the client first asked for the server's next data.
    pub fn asked_ns(&self, data: &TracedPacket) -> Option<i64> {
        self.requests.answered(data, self.present_upstream_rtt_ns()).map(|(first, _)| first)
    }

    /// The client side's round trip that ends with this acknowledgement: of the newest
    /// data that it acknowledges, unless anything was retransmitted since.
    pub fn last_client_rtt_ns(&self, packet: &TracedPacket) -> Option<i64> {
        let acked = packet.ack?.offset_bytes;
        let n = self.sent.partition_point(|(end, _)| *end <= acked);
        let (_, at_ns) = self.sent.get(n.checked_sub(1)?)?;
        Some(packet.at_ns - at_ns)
    }

    /// Whether the capture was taken at the server, by the round trips on both sides.
    fn is_at_server(&self) -> bool {
        let (upstream_ns, downstream_ns) = (self.base_up.least_ns(), self.base_down.least_ns());
        let sides = Sides { upstream_ns, downstream_ns, least_downstream_ns: downstream_ns };
        sides.place() == CaptureSite::Server
    }

    /// At the server: all data sent is acknowledged. Until now it was in flight, and any
    /// delay above the minimum was queueing.
    fn all_arrived(&self, now: i64, out: &mut Vec<WaitSpan>) {
        let Some(last) = self.last_data_ns else { return };
        let late = (now - last - self.base_down.now_ns() - self.slack()).max(0);
        // A client acknowledges at once (RFC 9000, 13.2.1), and its packets do not show of what.
        let (queued, reason) = match self.encrypted && late > 0 {
            true => (0, Reason::Unknown),
            false => (late, self.window_reason()),
        };
        wait(out, last, now - queued, reason);
        wait(out, now - queued, now, Reason::Queue);
    }

    fn push_client(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            // Of repeated SYNs, the last one is assumed to be answered: the initial timer
            // is a second (RFC 6298, 2.1), more than any path takes.
            self.syn_ns = Some(now);
            self.syn_stamp = packet.timestamps.map(|(value, _)| value);
            return;
        }
        let Some(ack) = packet.ack else { return };
        self.stamped |= packet.timestamps.is_some();
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
            self.base_down.note(now - at);
            self.down(now - at);
        }
        let is_idle = ack.offset_bytes >= self.next
            && self.last_data_ns.is_none_or(|last| now - last > self.timer_ns());
        self.requests.push(packet, is_idle);
        let all_known = self.acked >= self.next || is_idle;
        if self.encrypted && all_known && !self.in_tls_handshake && packet.new_bytes == 0 {
            self.updates.push(now);
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
            self.base_down.push(now, rtt);
            self.down(rtt);
        }
        if self.on_their_way.len() >= MAX_PENDING_ACKS {
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
        self.last_down_ns = rtt_ns;
        self.recent_down_ns.rotate_left(1);
        self.recent_down_ns[RECENT_TRIPS - 1] = rtt_ns;
    }

    fn push_server(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) {
            if let Some(syn) = self.syn_ns.take() {
                self.base_up.note(now - syn);
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
        let is_silent = self.last_data_ns.is_none_or(|last| now - last >= MIN_RTO_NS);
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
        let upstream = self.base_up.now_ns();
        if let Some(echo) = echo
            && !self.echoes_acks
        {
            self.echoes_acks = self.syn_stamp != Some(echo) && !self.payload_stamps.contains(&echo);
        }
        // For a host that does not echo them, received ACKs follow from time: the minimum
        // round trip.
        let trusted = echo.filter(|_| self.echoes_acks || self.base_up.least_ns().is_none());
        let mut is_new = false;
        while let Some(ack) = self.on_their_way.front() {
            let old = ack.at_ns <= packet.at_ns - upstream;
            let known = match (ack.ts_val, trusted, echo) {
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
        if rtt <= 0 {
            return;
        }
        // Without other data in flight, the sender may have waited for its application.
        if is_new && packet.offset_bytes > ack.edge && packet.event.is_none() {
            self.base_up.push(packet.at_ns, rtt);
        } else {
            self.base_up.note(rtt);
        }
    }

    fn new_data(&mut self, packet: &TracedPacket, end: i64, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        let bytes = i64::from(packet.payload_bytes);
        // An offload's super-segments count as many segments.
        self.mss = self.mss.max(bytes.min(MAX_SEGMENT_BYTES));
        let ack = self.last_ack;
        let edge = ack.map_or(packet.offset_bytes, |h| h.edge);
        let up = self.base_up.now_ns();
        let all_acked = edge >= packet.offset_bytes;
        // The capture lacks data: the client acknowledged it, or a silence ends ahead of it, where a
        // timer would have sent it first (RFC 6298, 5.4).
        let is_silent = self.last_data_ns.is_some_and(|last| now - last >= self.timer_ns());
        let lacks_data = packet.offset_bytes > self.next && (edge > self.next || is_silent);
        let asked =
            self.requests.answered(packet, self.present_upstream_rtt_ns()).filter(|_| all_acked);
        self.requests.clear();
        let released_ns = ack.map_or(now, |h| h.at_ns + up);
        let update_ns = self.updates.before(now, up);
        let updated = update_ns.is_some_and(|ns| ns <= up + self.slack());
        let idle = all_acked && now - released_ns > self.slack() && !updated;
        let limited = self.is_app_limited(now);
        let was = self.rounds.phase;
        let round = match asked {
            Some(_) => Round::Answer,
            None if idle || limited || updated => Round::AppLimited,
            None => Round::WindowLimited,
        };
        self.rounds.on_ack(edge, end, round);
        if matches!(self.rounds.phase, WindowPhase::Restart { .. })
            && !matches!(was, WindowPhase::Restart { .. })
        {
            self.restarts_ns.push(now);
        }
        let reason = if update_ns.is_some() {
            Reason::Unknown
        } else if limited && !self.rounds.mends() && !self.window_full {
            Reason::AppLimited
        } else {
            self.window_reason()
        };
        if let Some(last) = self.last_data_ns
            && (asked.is_some() || idle && update_ns.is_none())
            && now - last > self.timer_ns()
        {
            self.rounds.resumes();
        }
        match (self.last_data_ns, asked) {
            (Some(last), _) if self.base_up.least_ns().is_none() || lacks_data => {
                wait(out, last, now, Reason::Unknown);
            }
            (None, asked) => self.first_answer(now, asked, out),
            (Some(last), Some(asked)) => self.answer(last, now, asked, out),
            (Some(last), None) if idle => {
                let released = released_ns.clamp(last, now);
                wait(out, last, released, reason);
                // A sender waits for the window to take a full segment before it sends less (RFC
                // 1122, 4.2.3.4), and probes a closed one (4.2.2.17).
                let shut =
                    ack.and_then(|h| h.rwnd).is_some_and(|rwnd| rwnd.cast_signed() < self.mss);
                let why = if shut { Reason::ReceiveWindow } else { Reason::AppLimited };
                wait(out, released, now, why);
            }
            (Some(last), None) => self.clocked(last, now, reason, out),
        }
        self.after_tls = self.in_tls_handshake;
        self.passed(now, end);
        let rwnd = ack.and_then(|h| h.rwnd).map(u64::cast_signed);
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

    /// Released by an ACK, or by the sender's pace.
    fn clocked(&self, last: i64, now: i64, reason: Reason, out: &mut Vec<WaitSpan>) {
        let queued = self.queued_ns(now, reason).min(now - last);
        // With time stamps the acknowledgement of each packet is known.
        let may_queue = if reason == Reason::ReceiveWindow && !self.stamped {
            self.queued_ns(now, Reason::QueueOrWindow).min(now - last)
        } else {
            queued
        };
        wait(out, last, now - may_queue, reason);
        wait(out, now - may_queue, now - queued, Reason::QueueOrWindow);
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

    /// From a request to its answer: a round trip, and the server think time.
    fn respond(&self, asked: i64, now: i64, out: &mut Vec<WaitSpan>) {
        let up = self.base_up.now_ns();
        let due = if now - asked > up + self.slack() { asked + up } else { now };
        wait(out, asked, due, Reason::Request);
        wait(out, due, now, Reason::ServerThinkTime);
    }

    /// A retransmission. During loss recovery the following data belongs to it: after a
    /// timeout everything is sent again, lost or not.
    fn retransmission(&mut self, now: i64, mends: bool, out: &mut Vec<WaitSpan>) {
        if let Some(last) = self.last_data_ns {
            let first_ns = self.lost.last().filter(|_| mends).map(|before| before.missed_ns);
            let missed_ns = first_ns.unwrap_or_else(|| self.dup_since_ns.unwrap_or(last));
            self.lost.push(LostSegment { missed_ns, again_ns: now });
            wait(out, last, now, self.phase_reason());
        }
        self.last_data_ns = Some(now);
        // The next ACK is ambiguous (Karn; RFC 6298, 3).
        self.sent.clear();
        self.last_down_ns = self.base_down.now_ns();
        self.recent_down_ns = [self.last_down_ns; RECENT_TRIPS];
    }

    fn passed(&mut self, now: i64, end: i64) {
        self.last_data_ns = Some(now);
        self.next = self.next.max(end);
        if self.sent.len() < MAX_SENT {
            self.sent.push_back((end, now));
        }
    }

    /// The least time until a sender's timer ends a wait, at the monitor.
    fn timer_ns(&self) -> i64 {
        self.base_rtt_ns() + MIN_RTO_NS
    }

    fn base_rtt_ns(&self) -> i64 {
        self.base_up.now_ns().saturating_add(self.base_down.now_ns())
    }

    fn slack(&self) -> i64 {
        SLACK_NS.max(self.base_rtt_ns() / 2)
    }

    /// The queueing part of the round trip that ended with this packet.
    fn queued_ns(&self, now: i64, reason: Reason) -> i64 {
        // Which datagram another one acknowledges is not visible, nor that it acknowledges any.
        if self.encrypted {
            return 0;
        }
        // The oldest ACK that the sender had not received: without one it kept its own
        // pace, whatever the age of the ACK that it echoes.
        let base_up = self.base_up.now_ns();
        let up = self.on_their_way.front().map_or(0, |unheard| now - unheard.at_ns - base_up);
        // A full window leaves the last segment unpaired, and its ACK is delayed (RFC
        // 5681, 4.2); a queue delays all.
        let base_down = self.base_down.now_ns();
        let down = match reason {
            Reason::ReceiveWindow => 0,
            Reason::QueueOrWindow => self.recent_down_ns.into_iter().min().unwrap_or(0) - base_down,
            _ => self.last_down_ns - base_down,
        };
        (up.max(0) + down.max(0) - self.slack()).max(0)
    }

    /// What stopped the sender after its last packet.
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
