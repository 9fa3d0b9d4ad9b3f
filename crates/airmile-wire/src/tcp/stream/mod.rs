//! One direction of a TCP connection at the monitor: which bytes passed, were
//! retransmitted or are in flight, and how long ACKs took.

mod acks;
mod in_order;
mod kind;
mod losses;
mod retransmission;
mod rtt;
mod sack;

use std::collections::VecDeque;

use airmile_model::packet::{Packet, SeqNum, TcpFlags, TcpHeader};

use super::opt64::{Opt32, Opt64};
use super::ranges::Ranges;
use super::rto::RtoEstimator;
pub(super) use kind::{AckKind, Advance, RetransmissionCause, SegmentKind, SegmentReport};
use losses::{LossState, LossTotals, SequenceHole};
use rtt::RttTotals;

/// Maximum number of segments kept until acknowledged. With 1448 bytes each that is 23 MB
/// in flight (chosen here).
const MAX_SEGMENTS: usize = 16_384;
/// The same until the other side sends a packet (chosen here): one-sided captures do not
/// fill the memory.
const MAX_SEGMENTS_UNHEARD: usize = 64;
/// A sender that sent nothing for this long was idle (the least RTO of RFC 6298, 2.4).
const IDLE_NS: i64 = 1_000_000_000;
/// Maximum number of holes kept (chosen here: every second segment of 12 MB in flight).
const MAX_HOLES: usize = 4_096;
/// A window smaller than the largest by this part holds unread data: more than the ACKs
/// in flight account for (chosen here).
const UNREAD_PART: i64 = 4;
/// A sequence number may be this far beyond the largest window (chosen here).
const JUMP_BYTES: i64 = 1 << 20;
/// Without IP identification and time stamps: a segment that fills a hole sooner than
/// this was reordered, not retransmitted (Jaiswal et al. 2003 use the RTT; 3 ms if it is
/// unknown).
const REORDER_NS: i64 = 3_000_000;

#[derive(Debug, Clone, Copy)]
struct OutstandingSegment {
    start: i64,
    sent_ns: i64,
    bytes: u32,
    times: u16,
    sacked: bool,
}

impl OutstandingSegment {
    fn new(start: i64, end: i64, sent_ns: i64) -> Self {
        let bytes = u32::try_from(end - start).unwrap_or(u32::MAX);
        Self { start, sent_ns, bytes, times: 1, sacked: false }
    }

    const fn end(&self) -> i64 {
        self.start + self.bytes as i64
    }
}

/// Initial capacity of segments: what an endpoint with a request sends (chosen here).
const FIRST_ROOM: usize = 4;

/// Doubles the capacity of a full queue.
pub(super) fn make_room<T>(queue: &mut VecDeque<T>) {
    let n = queue.len();
    if n == queue.capacity() {
        queue.reserve_exact(n.max(FIRST_ROOM));
    }
}

/// Totals of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StreamTotals {
    pub(super) packets: u64,
    pub(super) ip_bytes: u64,
    pub(super) segments: u64,
    pub(super) bytes: u64,
    pub(super) unseen_bytes: u64,
    pub(super) max_flight: i64,
}

/// The data of one sender.
#[derive(Debug, Default)]
pub(super) struct ByteStream {
    /// Sequence number of offset 0.
    base: Option<SeqNum>,
    /// Offset after the highest byte that passed.
    max: i64,
    /// Offset after the highest byte acknowledged.
    acked: i64,
    segments: VecDeque<OutstandingSegment>,
    lost: Option<Box<LossState>>,
    fin_at: Opt64,
    pub(super) syn_seen: bool,
    heard_back: bool,
    /// `acked` was set to the start of the first data, in the middle of a flow.
    acked_guessed: bool,
    /// Duplicate ACKs since the last advance.
    pub(super) dup_acks: u32,
    last_advance_ns: i64,
    last_id: Option<u16>,
    ids_in_order: u16,
    ids_out_of_order: u16,
    /// Window advertised by the other side, scaled if its scale is known.
    rwnd: Opt32,
    rwnd_raw: u16,
    largest_rwnd: u32,
    /// Largest payload of a segment.
    pub(super) largest_segment: u32,
    pub(super) rtt: RttTotals,
    pub(super) rto: RtoEstimator,
    pub(super) totals: StreamTotals,
    pub(super) first_data_ns: Opt64,
    pub(super) last_data_ns: Opt64,
    last_sent_ns: i64,
}

impl ByteStream {
    /// Totals of losses so far.
    pub(super) fn losses(&self) -> LossTotals {
        self.lost.as_ref().map_or_else(LossTotals::default, |lost| lost.losses)
    }

    fn losses_mut(&mut self) -> &mut LossTotals {
        &mut self.lost.get_or_insert_default().losses
    }

    /// The range that the last ACK reported as received twice (RFC 2883).
    #[inline]
    pub(super) fn d_sack(&self) -> Option<(i64, i64)> {
        self.lost.as_ref()?.d_sack
    }

    /// Bytes in flight.
    pub(super) fn flight(&self) -> i64 {
        (self.max - self.acked).max(0)
    }

    pub(super) const fn acked(&self) -> i64 {
        self.acked
    }

    /// Whether no segment fits into a window that has been larger: the application has
    /// not read the data. (A window that is full at its maximum may still keep a queue in
    /// the network.)
    pub(super) fn is_stopped_by_reader(&self) -> bool {
        let Some(rwnd) = self.rwnd.get().map(i64::from) else { return false };
        let largest = i64::from(self.largest_rwnd);
        let no_room = rwnd - self.flight() < i64::from(self.largest_segment.max(1));
        no_room && rwnd < largest - largest / UNREAD_PART
    }

    /// Offset after the last byte that the receiver is known to have.
    pub(super) fn received_to(&self) -> i64 {
        let sacked = self.lost.as_ref().and_then(|lost| lost.sacked.end());
        sacked.map_or(self.acked, |end| end.max(self.acked))
    }

    pub(super) const fn next(&self) -> i64 {
        self.max
    }

    /// Whether the sender is in loss recovery.
    pub(super) fn in_recovery(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.recovery_until.is_some())
    }

    pub(super) fn after_timeout(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.timeout_until.is_some())
    }

    /// Window advertised by the other side in bytes.
    pub(super) fn rwnd(&self) -> Option<u64> {
        self.rwnd.get().map(u64::from)
    }

    pub(super) const fn closed(&self) -> bool {
        self.fin_at.is_some()
    }

    /// Whether a segment goes beyond all previous data, but not far.
    #[inline]
    pub(super) fn is_beyond(&self, packet: &Packet<'_>, tcp: &TcpHeader) -> bool {
        let ahead = |start: i64| (self.max..self.max + JUMP_BYTES).contains(&start);
        packet.payload_bytes > 1
            && self.max > 0
            && !tcp.flags.has(TcpFlags::SYN)
            && self.offset_of(tcp.seq, self.max).is_some_and(ahead)
    }

    /// Whether duplicate ACKs asked for a segment that passed once (RFC 5681, 3.2): none did when the segment
    /// itself passed, so it is no copy of that in the capture.
    pub(super) fn is_asked_for(&self, packet: &Packet<'_>, tcp: &TcpHeader) -> bool {
        self.dup_acks >= 3
            && packet.payload_bytes > 0
            && self.offset_of(tcp.seq, self.max) == Some(self.acked)
            && self.segments.front().is_some_and(|s| s.start == self.acked && s.times == 1)
    }

    /// Whether an ACK goes beyond all previous ones, within what passed.
    #[inline]
    pub(super) fn is_advanced_by(&self, tcp: &TcpHeader) -> bool {
        tcp.flags.has(TcpFlags::ACK)
            && !tcp.flags.has(TcpFlags::RST)
            && self.heard_back
            && self
                .offset_of(tcp.ack, self.acked)
                .is_some_and(|edge| edge > self.acked && edge <= self.max)
    }

    /// Whether the number of an ACK is the highest so far.
    #[inline]
    pub(super) fn is_acked_to(&self, tcp: &TcpHeader) -> bool {
        self.acked <= self.max && self.offset_of(tcp.ack, self.acked) == Some(self.acked)
    }

    /// Whether nothing is in flight, and nothing was sent for a while.
    #[inline]
    pub(super) fn is_idle(&self, now: i64) -> bool {
        self.flight() == 0 && now - self.last_sent_ns > IDLE_NS
    }

    #[inline]
    pub(super) fn offset_of(&self, seq: SeqNum, near: i64) -> Option<i64> {
        let near_seq = SeqNum(self.base?.0.wrapping_add(near as u32));
        Some(near + i64::from(seq.since(near_seq)))
    }

    /// Takes a segment of this sender, after duplicates of the capture are removed. `beyond_ns`: the part of
    /// its RTT beyond the monitor.
    #[inline]
    pub(super) fn segment(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        beyond_ns: impl FnOnce() -> i64,
    ) -> SegmentReport {
        let (syn, fin) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::FIN));
        self.count(packet);
        self.base.get_or_insert(tcp.seq);
        let length = i64::from(packet.payload_bytes);
        let start = self.offset_of(tcp.seq, self.max).unwrap_or(0) + i64::from(syn);
        let seen = |kind, new_bytes| SegmentReport { kind, start, new_bytes };
        if syn {
            let kind = self.handshake(packet.at_ns, start);
            // Data of a first SYN follows it in the stream (RFC 7413, 2).
            if length == 0 || kind == SegmentKind::HandshakeAgain {
                return seen(kind, 0);
            }
        }
        if length == 0 && !fin {
            return seen(self.bare(start), 0);
        }
        let end = start + length;
        if length > 0 {
            self.totals.segments += 1;
            self.largest_segment = self.largest_segment.max(packet.payload_bytes);
        }
        if self.is_out_of_window(start, end) {
            return self.out_of_window(start, end, length);
        }
        if let Some(lost) = &mut self.lost {
            lost.jump = Opt64::NONE;
        }
        let seen_from = self.max;
        if let Some(kind) = self.probe(start, end, length, fin) {
            self.totals.segments -= u64::from(length > 0);
            return seen(kind, 0);
        }
        self.note_id(packet, start);
        let close = fin && self.close(end);
        if length == 0 {
            self.come_late(packet.at_ns, start, end + 1);
            let kind = if close {
                SegmentKind::New { ahead: start > seen_from }
            } else {
                SegmentKind::CloseAgain
            };
            return seen(kind, 0);
        }
        let seen = if start >= seen_from {
            self.advance(packet, tcp, start, end)
        } else if self.come_late(packet.at_ns, start, end) {
            if end > self.max {
                self.remember(OutstandingSegment::new(self.max, end, packet.at_ns));
                self.max = end;
            }
            SegmentReport {
                kind: SegmentKind::New { ahead: false },
                start,
                new_bytes: packet.payload_bytes.into(),
            }
        } else {
            self.below(packet, tcp, start, end, beyond_ns())
        };
        self.data_passed(packet, seen.new_bytes);
        seen
    }

    /// Notes a segment with data, after its place in the stream.
    #[inline]
    fn data_passed(&mut self, packet: &Packet<'_>, new_bytes: u64) {
        self.first_data_ns.or_set(packet.at_ns);
        self.last_data_ns = Opt64::some(packet.at_ns);
        self.last_sent_ns = packet.at_ns;
        self.totals.bytes += new_bytes;
        self.totals.max_flight = self.totals.max_flight.max(self.flight());
    }

    /// Counts a segment of any kind.
    #[inline]
    pub(super) fn count(&mut self, packet: &Packet<'_>) {
        self.totals.packets += 1;
        self.totals.ip_bytes += u64::from(packet.ip_bytes);
    }

    fn handshake(&mut self, now: i64, start: i64) -> SegmentKind {
        let again = self.syn_seen && start <= self.max;
        self.syn_seen = true;
        if self.max < start {
            self.max = start;
            self.acked = self.acked.max(start - 1);
        }
        self.last_sent_ns = now;
        if again {
            self.send_again(now, start - 1, start);
            return SegmentKind::HandshakeAgain;
        }
        if self.acked < start {
            self.remember(OutstandingSegment::new(start - 1, start, now));
        }
        SegmentKind::Bare
    }

    fn bare(&mut self, start: i64) -> SegmentKind {
        // Before any data the first ACK shows the stream's position.
        if self.totals.packets == 1 && self.max == 0 {
            self.max = start;
        }
        if start == self.max - 1 && self.acked >= self.max && self.max > 0 && !self.closed() {
            return if self.rwnd.get() == Some(0) {
                SegmentKind::WindowProbe
            } else {
                SegmentKind::KeepAlive
            };
        }
        SegmentKind::Bare
    }

    /// Probes with a byte: for a silent peer, or a closed window. Linux sends an old byte to the latter,
    /// other stacks the next one (RFC 9293, 3.8.6.1), which counts once it is acknowledged.
    fn probe(&self, start: i64, end: i64, length: i64, fin: bool) -> Option<SegmentKind> {
        if length != 1 || fin || self.totals.packets == 1 {
            return None;
        }
        if self.rwnd.get() == Some(0) && start == self.acked && end >= self.max {
            return Some(SegmentKind::WindowProbe);
        }
        let idle = end == self.max && self.acked >= self.max;
        idle.then_some(SegmentKind::KeepAlive)
    }

    /// Records the position of the FIN; returns false if it was known.
    const fn close(&mut self, end: i64) -> bool {
        if self.fin_at.is_some() {
            return false;
        }
        self.fin_at = Opt64::some(end);
        true
    }

    fn is_out_of_window(&self, start: i64, end: i64) -> bool {
        let reach = JUMP_BYTES + 2 * i64::from(self.largest_rwnd.max(1 << 16));
        let first = self.totals.packets == 1 || (self.max == 0 && self.segments.is_empty());
        !first && (start > self.max + reach || end < self.acked.min(self.max) - reach)
    }

    /// A jump is accepted when the next segment continues after it.
    fn out_of_window(&mut self, start: i64, end: i64, length: i64) -> SegmentReport {
        let lost = self.lost.get_or_insert_default();
        lost.losses.out_of_window += 1;
        let new_bytes = u64::try_from(length).unwrap_or(0);
        self.totals.bytes += new_bytes;
        if lost.jump.get().is_some_and(|at| (at..=at + JUMP_BYTES).contains(&start)) {
            lost.jump = Opt64::NONE;
            lost.holes.clear();
            lost.sacked = Ranges::default();
            (lost.recovery_until, lost.timeout_until) = (Opt64::NONE, Opt64::NONE);
            self.segments.clear();
            (self.max, self.acked) = (end, start);
        } else {
            lost.jump = Opt64::some(end);
        }
        SegmentReport { kind: SegmentKind::OutOfWindow, start, new_bytes }
    }

    #[inline(never)]
    fn remember(&mut self, segment: OutstandingSegment) {
        let most = if self.heard_back { MAX_SEGMENTS } else { MAX_SEGMENTS_UNHEARD };
        if self.segments.len() >= most {
            self.segments.pop_front();
        }
        make_room(&mut self.segments);
        match self.segments.back() {
            Some(last) if last.start > segment.start => {
                let at = self.segments.partition_point(|s| s.start < segment.start);
                self.segments.insert(at, segment);
            }
            _ => self.segments.push_back(segment),
        }
    }

    #[inline]
    fn advance(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        start: i64,
        end: i64,
    ) -> SegmentReport {
        let ahead = start > self.max && self.totals.segments > 1;
        if self.totals.segments == 1 && !self.syn_seen {
            // In the middle of a flow: earlier data is not missing.
            self.acked = self.acked.max(self.max).min(start);
            self.acked_guessed = true;
        } else if start > self.max {
            self.open_hole(packet, tcp, start);
        }
        self.max = end;
        self.append(start, end, packet.at_ns);
        let new_bytes = u64::try_from(end - start).unwrap_or(0);
        SegmentReport { kind: SegmentKind::New { ahead }, start, new_bytes }
    }

    fn open_hole(&mut self, packet: &Packet<'_>, tcp: &TcpHeader, start: i64) {
        let most = if self.heard_back { MAX_HOLES } else { MAX_SEGMENTS_UNHEARD };
        let holes = &mut self.lost.get_or_insert_default().holes;
        if holes.len() >= most {
            holes.pop_front();
        }
        holes.push_back(SequenceHole {
            start: self.max,
            end: start,
            opened_ns: packet.at_ns,
            opener_id: packet.ip_id,
            opener_ts: tcp.timestamps.map(|t| t.0),
        });
    }

    /// All data before `edge` arrived: its losses are repaired.
    fn repaired_to(&mut self, edge: i64) {
        let Some(lost) = &mut self.lost else { return };
        lost.sacked.forget_below(edge);
        while let Some(hole) = lost.holes.front_mut().filter(|hole| hole.start < edge) {
            let missed = hole.end.min(edge) - hole.start;
            self.totals.unseen_bytes += missed.unsigned_abs();
            hole.start = edge;
            if hole.end <= edge {
                lost.holes.pop_front();
            }
        }
        for until in [&mut lost.recovery_until, &mut lost.timeout_until] {
            *until = until.get().filter(|until| edge < *until).into();
        }
    }

    /// Reads a word of each line of memory that a packet touches.
    #[inline]
    pub(super) fn touch_lines(&self) -> i64 {
        let totals = self.totals.bytes.cast_signed() ^ i64::from(self.largest_segment);
        totals ^ self.max ^ self.last_advance_ns ^ self.rtt.sum ^ self.last_sent_ns
    }

    /// The same for the segments in flight.
    #[inline]
    pub(super) fn touch_segments(&self) -> i64 {
        let at = |segment: Option<&OutstandingSegment>| segment.map_or(0, |segment| segment.start);
        at(self.segments.front()) ^ at(self.segments.back())
    }

    /// Frees the memory of acknowledged segments.
    pub(super) fn rest(&mut self) {
        self.segments.shrink_to_fit();
    }
}
