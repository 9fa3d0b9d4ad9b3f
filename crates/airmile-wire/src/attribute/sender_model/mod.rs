//! What the sender of one connection waited for before each packet.

mod sender;
mod waits;

use std::collections::VecDeque;

use airmile_model::Direction;
use airmile_model::packet::TcpFlags;

use super::capture_site::{CaptureSite, Sides};
use super::min_duration::ReceiveWindow;
use super::path_change::BaseRtt;
use super::policer::{PolicedSpan, PolicerTest};
use super::quic::{INITIAL_BYTES, WindowUpdates};
use super::requests::Requests;
use super::window::WindowRounds;
use crate::tcp::{LINUX_MIN_RTO_NS, TracedPacket, may_restart_after_ns};

use self::waits::wait;
pub use self::waits::{Reason, WaitSpan};

/// Maximum number of ACKs kept while on their way to the sender (chosen here).
const MAX_PENDING_ACKS: usize = 4_096;
/// A sender retransmits after an RTO without an acknowledgement, doubled each time (RFC
/// 6298, 5.5): three of Linux's minimum RTOs. A longer silence is a pause, whatever was
/// lost before.
pub(super) const BACKED_OFF_NS: i64 = 7 * LINUX_MIN_RTO_NS;
/// Maximum number of TSvals of client payload kept (chosen here: requests since the last
/// answer began).
const MAX_PAYLOAD_STAMPS: usize = 64;
/// A growing receive window is recorded in steps of this part (chosen here: from 64 KiB
/// to the maximum of 1 GiB are 83 steps).
const WINDOW_STEP: u64 = 8;
const MAX_WINDOWS: usize = 96;

/// An acknowledgement or a request on its way to the sender.
#[derive(Debug, Clone, Copy)]
struct PendingAck {
    at_ns: i64,
    edge: i64,
    ts_val: Option<u32>,
    rwnd: Option<u64>,
}

/// Models the sending side of one connection: the server's, or the phone's by its own capture
/// ([`SenderModel::of_phone`]).
#[derive(Debug, Default)]
pub struct SenderModel {
    latest_ns: Option<i64>,
    begun_ns: Option<i64>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    /// Minimum round trip from the monitor to the sender, and to the receiver.
    sender_rtt: BaseRtt,
    receiver_rtt: BaseRtt,
    last_receiver_rtt_ns: i64,
    /// The last round trips to the receiver, the newest last.
    recent_receiver_rtts_ns: [i64; RECENT_TRIPS],
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
    /// Of a datagram, if it is encrypted.
    largest_bytes: i64,
    short: bool,
    /// Bytes in flight after the last data.
    flight: i64,
    /// TSvals of the client's payload and of its SYN, and whether the server ever echoed
    /// another: some hosts ignore those of pure ACKs, against RFC 7323, 4.3.
    payload_stamps: VecDeque<u32>,
    syn_stamp: Option<u32>,
    echoes_acks: bool,
    /// How long the server's first data took after the request.
    first_answer_ns: Option<i64>,
    /// Times at which a slow start after idle time began.
    restarts_ns: Vec<i64>,
    /// When the current duplicate ACKs began, and whether data was queued on the path then.
    dup_since_ns: Option<i64>,
    dup_queued: bool,
    lost: Vec<LostSegment>,
    encrypted: bool,
    /// If it is encrypted.
    updates: WindowUpdates,
    policer: PolicerTest,
    /// The receive window at each time it grew.
    windows: Vec<ReceiveWindow>,
    /// The client's last payload belonged to a TLS handshake.
    in_tls_handshake: bool,
    /// The one before it did, and it does not.
    ends_tls: bool,
    /// So did the server's last payload.
    after_tls: bool,
    /// When the timer sent data again behind duplicate ACKs, and the segments since then.
    timer: Option<(i64, u32)>,
    /// More followed than a timer lets go: the sender sends lost retransmissions again without it
    /// (RFC 8985, 6.2).
    resends_early: bool,
    /// The sender is the phone, where the capture was taken.
    of_phone: bool,
    /// When all that the phone sent was acknowledged, and when the server's answer to it came.
    arrived_ns: Option<i64>,
    heard_ns: Option<i64>,
    /// When new data was last acknowledged there, and when that last came after a gap.
    advanced_ns: i64,
    uneven_ns: i64,
    /// Packets that had waited for a full window, and those for one below three quarters of its
    /// maximum (chosen here: less than a segment of a small window): its reader is slow.
    window_waits: [u32; 2],
}

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
    /// Whether round trips show that data was queued on the path when it was missed, and when it was
    /// sent again.
    pub queued: [bool; 2],
    /// The receiver saw no trace of its loss.
    pub unseen: bool,
}

impl LostSegment {
    /// The same with other times.
    #[must_use]
    pub fn at(self, to: impl Fn(i64) -> i64) -> Self {
        Self { missed_ns: to(self.missed_ns), again_ns: to(self.again_ns), ..self }
    }
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

    /// The phone as the sender of a connection, captured at the phone. It knows of each
    /// acknowledgement as soon as that passes.
    #[must_use]
    pub fn of_phone() -> Self {
        let mut model = Self { of_phone: true, ..Self::default() };
        model.sender_rtt.note(0);
        model
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
            self.sender_rtt.note(rtt_ns);
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
        self.sender_rtt.least_ns()
    }

    /// The same on the present route, which may have changed in mid-flow.
    #[must_use]
    pub fn present_upstream_rtt_ns(&self) -> Option<i64> {
        self.sender_rtt.least_ns().map(|least| least.saturating_add(self.sender_rtt.rise_ns()))
    }

    /// How long the server's first data took after the client's first request, in nanoseconds.
    #[must_use]
    pub fn first_answer_ns(&self) -> Option<i64> {
        self.first_answer_ns.filter(|_| self.seen_from_start())
    }

    /// Time of its last packet, in nanoseconds.
    #[must_use]
    pub const fn latest_ns(&self) -> Option<i64> {
        self.latest_ns
    }

    /// By how much the present minimum round trip to the server is above that.
    pub(super) fn upstream_rise_ns(&self) -> i64 {
        self.sender_rtt.rise_ns()
    }

    /// Minimum round trip from the monitor to the client, in nanoseconds.
    #[must_use]
    pub const fn downstream_rtt_ns(&self) -> Option<i64> {
        self.receiver_rtt.least_ns()
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

    /// Packets that waited for the receive window, and those that did so for a slow reader.
    #[must_use]
    pub const fn window_waits(&self) -> [u32; 2] {
        self.window_waits
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
        if (packet.dir == Direction::Ul) != self.of_phone {
            self.push_receiver(&packet, out);
        } else {
            self.push_sender(&packet, out);
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
        let was_in_handshake = self.in_tls_handshake;
        match payload {
            [TLS_HANDSHAKE, 3, ..] => self.in_tls_handshake = true,
            [kind, 3, ..] if TLS_BEHIND.contains(kind) => self.in_tls_handshake = false,
            _ => {}
        }
        self.ends_tls = was_in_handshake && !self.in_tls_handshake;
    }

    /// Whether the client's payload taken last is of its handshake: TLS's, with the message that ends it, or QUIC's,
    /// with probes of the path's MTU (RFC 9000, 14.3), which are at least as large as its first datagrams.
    #[must_use]
    pub const fn sets_up(&self, packet: &TracedPacket) -> bool {
        let ends =
            if self.encrypted { packet.payload_bytes >= INITIAL_BYTES } else { self.ends_tls };
        self.in_tls_handshake || ends
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
    #[must_use]
    pub fn is_at_server(&self) -> bool {
        let (upstream_ns, downstream_ns) =
            (self.sender_rtt.least_ns(), self.receiver_rtt.least_ns());
        let sides = Sides { upstream_ns, downstream_ns, least_downstream_ns: downstream_ns };
        sides.place() == CaptureSite::Server
    }

    fn push_receiver(&mut self, packet: &TracedPacket, out: &mut Vec<WaitSpan>) {
        let now = packet.at_ns;
        if packet.flags.has(TcpFlags::SYN) && self.of_phone {
            wait(out, self.begun_ns.unwrap_or(now), now, Reason::Handshake);
            self.heard_ns = Some(now);
        } else if packet.flags.has(TcpFlags::SYN) {
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
            self.receiver_rtt.note(now - at);
            self.note_receiver_rtt(now - at);
        }
        let is_idle = ack.offset_bytes >= self.next
            && self.last_data_ns.is_none_or(|last| now - last > self.timer_ns());
        if !self.of_phone {
            self.requests.push(packet, is_idle);
        }
        if self.encrypted && packet.new_bytes == 0 {
            self.updates.ack(now, packet.payload_bytes);
        }
        let all_known = self.acked >= self.next || is_idle;
        if self.encrypted && all_known && !self.in_tls_handshake && packet.new_bytes == 0 {
            self.updates.push(now);
        }
        if ack.duplicate {
            if self.dup_acks == 0 {
                self.dup_since_ns = Some(now);
                // The phone's own queue would be among it.
                self.dup_queued = !self.of_phone && self.queued_ns(now, Reason::Pacing) > 0;
            }
            self.dup_acks += 1;
        } else if ack.offset_bytes > self.acked {
            (self.acked, self.dup_acks, self.dup_since_ns) = (ack.offset_bytes, 0, None);
            if self.of_phone {
                self.advanced(now);
            }
            if self.acked >= self.next && self.of_phone {
                self.arrived_ns = Some(now);
            } else if self.acked >= self.next && self.is_at_server() {
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
            self.receiver_rtt.push(now, rtt);
            self.note_receiver_rtt(rtt);
        }
        if self.of_phone && packet.new_bytes > 0 && self.acked >= self.next {
            self.answered(now, out);
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

    fn note_receiver_rtt(&mut self, rtt_ns: i64) {
        self.last_receiver_rtt_ns = rtt_ns;
        self.recent_receiver_rtts_ns.rotate_left(1);
        self.recent_receiver_rtts_ns[RECENT_TRIPS - 1] = rtt_ns;
    }

    /// The least time until a sender's timer ends a wait, at the monitor.
    fn timer_ns(&self) -> i64 {
        may_restart_after_ns(self.base_rtt_ns())
    }

    fn base_rtt_ns(&self) -> i64 {
        self.sender_rtt.now_ns().saturating_add(self.receiver_rtt.now_ns())
    }
}

#[cfg(test)]
mod tests;
