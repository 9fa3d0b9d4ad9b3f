//! Congestion marks (ECN): which packets asked for them, and which were marked.
//!
//! A marked packet is visible after the queue that marked it: what the phone receives in its own
//! capture, what it sends in the server's. In the phone's capture the server's acknowledgements report
//! what was marked on the way up, exactly (RFC 9768) or at least once a round trip (RFC 3168, 6.1.3).

use std::collections::VecDeque;

use airmile_model::packet::{Ecn, TcpFlags};
use airmile_model::{Direction, EcnSource};

use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;

/// Length of a bin (chosen here: about the wait for a first grant).
const BIN_NS: i64 = 10_000_000;
/// Segments that wait for an acknowledgement, at most (chosen here: a window of 8 MB); the marks of
/// more are attributed to later ones.
const MOST_WAITING: usize = 6_000;
/// The counter of marks at the start of a connection (RFC 9768, 3.2.1).
const FIRST_ACE: u8 = 5;

/// ECN-capable packets and those that were marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnCount {
    /// Packets with an ECN-capable transport.
    pub capable: u64,
    /// Of them, with ECT(1), when they were captured (RFC 9331).
    pub ect1: u64,
    /// Packets that were marked.
    pub marked: u64,
}

impl EcnCount {
    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.capable += other.capable;
        self.ect1 += other.ect1;
        self.marked += other.marked;
    }
}

/// Counts over time.
#[derive(Debug, Clone, Default)]
pub struct EcnBins {
    /// By number of the bin, in order.
    bins: Vec<(i64, EcnCount)>,
}

impl EcnBins {
    /// Counts a packet that was captured.
    pub fn push(&mut self, at_ns: i64, ecn: Ecn) {
        if ecn.is_capable() {
            let (ect1, marked) = (u64::from(ecn == Ecn::Ect1), u64::from(ecn == Ecn::Ce));
            self.bin(at_ns).add(EcnCount { capable: 1, ect1, marked });
        }
    }

    fn bin(&mut self, at_ns: i64) -> &mut EcnCount {
        let number = at_ns.div_euclid(BIN_NS);
        let at = match self.bins.last() {
            Some((last, _)) if *last == number => self.bins.len() - 1,
            Some((last, _)) if *last > number => {
                self.bins.partition_point(|(bin, _)| *bin < number)
            }
            _ => self.bins.len(),
        };
        if self.bins.get(at).is_none_or(|(bin, _)| *bin != number) {
            self.bins.insert(at, (number, EcnCount::default()));
        }
        &mut self.bins[at].1
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        for (number, count) in &other.bins {
            self.bin(number.saturating_mul(BIN_NS)).add(*count);
        }
    }

    /// The same with every time replaced, at bin resolution.
    #[must_use]
    pub fn moved(&self, to: impl Fn(i64) -> i64) -> Self {
        let mut moved = Self::default();
        for (number, count) in &self.bins {
            moved.bin(to(number.saturating_mul(BIN_NS))).add(*count);
        }
        moved
    }

    /// Moves the times to the reference clock of `line`.
    pub fn set_clock(&mut self, line: &ClockLine) {
        *self = self.moved(|ns| line.to_reference(ns));
    }

    /// All counts.
    #[must_use]
    pub fn total(&self) -> EcnCount {
        self.within(i64::MIN, i64::MAX)
    }

    /// Counts of the bins inside a span.
    #[must_use]
    pub fn within(&self, from_ns: i64, to_ns: i64) -> EcnCount {
        let (from, to) = (from_ns.div_euclid(BIN_NS), to_ns.div_euclid(BIN_NS));
        let from = if from_ns.rem_euclid(BIN_NS) > 0 { from.saturating_add(1) } else { from };
        let first = self.bins.partition_point(|(bin, _)| *bin < from);
        let mut sum = EcnCount::default();
        let inside = self.bins.iter().skip(first).take_while(|(bin, _)| *bin < to);
        inside.for_each(|(_, count)| sum.add(*count));
        sum
    }
}

/// What the server of one TCP connection reports of the marks on the client's packets.
#[derive(Debug)]
pub struct EcnFeedback {
    source: EcnSource,
    /// ECN-capable packets from the client.
    capable: u64,
    /// AE, CWR and ECE of the client's SYN.
    asked: u8,
    waiting: VecDeque<SentSegment>,
    /// The shortest time from a segment to its acknowledgement so far.
    least_rtt_ns: i64,
    /// The counter, as reported last.
    ace: u8,
    /// The last acknowledgement had an echo.
    echoed: bool,
    /// End of the segment that announced a smaller window: an echo of later data is a new mark.
    reduced: Option<i64>,
}

/// An ECN-capable segment that is not acknowledged yet.
#[derive(Debug, Clone, Copy)]
struct SentSegment {
    /// End of its bytes.
    end: i64,
    sent_ns: i64,
    is_ect1: bool,
}

impl Default for EcnFeedback {
    fn default() -> Self {
        Self {
            source: EcnSource::Unknown,
            capable: 0,
            asked: 0,
            waiting: VecDeque::new(),
            least_rtt_ns: i64::MAX,
            ace: FIRST_ACE,
            echoed: false,
            reduced: None,
        }
    }
}

/// AE, CWR and ECE as a number (RFC 9768, 3.1.1).
const fn ace(flags: TcpFlags, ae: bool) -> u8 {
    (ae as u8) << 2 | (flags.has(TcpFlags::CWR) as u8) << 1 | flags.has(TcpFlags::ECE) as u8
}

impl EcnFeedback {
    /// What its reports are.
    #[must_use]
    pub const fn source(&self) -> EcnSource {
        self.source
    }

    /// ECN-capable packets from the client, of any protocol.
    #[must_use]
    pub const fn capable(&self) -> u64 {
        self.capable
    }

    /// Counts a packet from the client.
    pub fn count(&mut self, ecn: Ecn) {
        self.capable += u64::from(ecn.is_capable());
    }

    /// Takes the next packet, its ECN field and its bit of Accurate ECN. Adds what an acknowledgement
    /// reports to `reported`, at the time when the segment left the queue: the acknowledgement, earlier
    /// by the shortest round trip.
    pub fn push(&mut self, packet: &TracedPacket, ecn: Ecn, ae: bool, reported: &mut EcnBins) {
        let field = ace(packet.flags, ae);
        match (packet.flags.has(TcpFlags::SYN), packet.dir, packet.ack) {
            (true, Direction::Ul, _) => self.asked = field,
            (true, Direction::Dl, _) => self.source = agreed(self.asked, field),
            (false, Direction::Ul, _) => self.sent(packet, ecn),
            (false, Direction::Dl, Some(ack)) if self.source != EcnSource::Unknown => {
                if let Some((count, left_ns)) = self.acknowledged(ack.offset_bytes, packet.at_ns) {
                    let marked = self.marks(field, ack.offset_bytes, count.capable);
                    reported.bin(left_ns).add(EcnCount { marked, ..count });
                }
            }
            (false, Direction::Dl, _) => {}
        }
    }

    fn sent(&mut self, packet: &TracedPacket, ecn: Ecn) {
        let end = packet.offset_bytes.saturating_add(packet.payload_bytes.into());
        if self.source == EcnSource::EcnEcho && packet.flags.has(TcpFlags::CWR) {
            self.reduced = Some(end);
        }
        let is_new = self.waiting.back().is_none_or(|last| last.end < end);
        if ecn.is_capable() && packet.payload_bytes > 0 && is_new {
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.pop_front();
            }
            let is_ect1 = ecn == Ecn::Ect1;
            self.waiting.push_back(SentSegment { end, sent_ns: packet.at_ns, is_ect1 });
        }
    }

    /// Removes what was acknowledged; its segments, and when the last one left the queue.
    fn acknowledged(&mut self, acked: i64, now_ns: i64) -> Option<(EcnCount, i64)> {
        let n = self.waiting.partition_point(|one| one.end <= acked);
        let mut count = EcnCount::default();
        let mut sent_ns = None;
        for segment in self.waiting.drain(..n) {
            count.capable += 1;
            count.ect1 += u64::from(segment.is_ect1);
            sent_ns = Some(segment.sent_ns);
        }
        self.least_rtt_ns = self.least_rtt_ns.min(now_ns.saturating_sub(sent_ns?).max(0));
        Some((count, now_ns.saturating_sub(self.least_rtt_ns)))
    }

    /// Marks that an acknowledgement of new data reports: a repeated or reordered one reports none.
    fn marks(&mut self, field: u8, acked: i64, segments: u64) -> u64 {
        match self.source {
            EcnSource::AccurateEcn => {
                let more = field.wrapping_sub(self.ace) & 7;
                self.ace = field;
                u64::from(more)
            }
            EcnSource::EcnEcho => {
                let echoes = field & 1 != 0;
                let again = self.reduced.is_some_and(|reduced| acked > reduced);
                let is_new = echoes && (!self.echoed || again);
                if again {
                    self.reduced = None;
                }
                self.echoed = echoes;
                u64::from(is_new).min(segments)
            }
            EcnSource::Arrivals | EcnSource::Unknown => 0,
        }
    }
}

/// What a SYN and its answer agree on (RFC 9768, 3.1.2).
const fn agreed(asked: u8, answer: u8) -> EcnSource {
    match (asked, answer) {
        (0b111, 0b010..=0b110) => EcnSource::AccurateEcn,
        (0b111 | 0b011, 0b001) => EcnSource::EcnEcho,
        _ => EcnSource::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TracedAck;

    const MS: i64 = 1_000_000;

    /// A connection that is pushed packet by packet.
    struct Peer {
        feedback: EcnFeedback,
        reported: EcnBins,
        now_ns: i64,
        end: i64,
    }

    impl Peer {
        fn new(syn: u8, answer: u8) -> Self {
            let feedback = EcnFeedback::default();
            let mut peer = Self { feedback, reported: EcnBins::default(), now_ns: 0, end: 1 };
            peer.push(Direction::Ul, syn, TcpFlags::SYN, 0, None);
            peer.push(Direction::Dl, answer, TcpFlags(0x12), 0, Some(1));
            peer
        }

        fn push(
            &mut self,
            dir: Direction,
            bits: u8,
            flags: TcpFlags,
            bytes: u32,
            ack: Option<i64>,
        ) {
            self.now_ns += 50 * MS;
            let (ae, flags) = (bits & 4 != 0, TcpFlags(flags.0 | (bits & 3) << 6));
            let packet = TracedPacket {
                at_ns: self.now_ns,
                dir,
                flags,
                offset_bytes: self.end,
                payload_bytes: bytes,
                new_bytes: bytes.into(),
                ack: ack.map(TracedAck::up_to),
                ..TracedPacket::EXAMPLE
            };
            let ecn = if bytes > 0 { Ecn::Ect0 } else { Ecn::NotEct };
            self.feedback.push(&packet, ecn, ae, &mut self.reported);
        }

        /// Sends a segment, with CWR if `reduces`.
        fn send(&mut self, reduces: bool) {
            self.push(Direction::Ul, u8::from(reduces) << 1, TcpFlags::ACK, 1_000, None);
            self.end += 1_000;
        }

        /// The server acknowledges all with these bits; marks so far.
        fn answer(&mut self, bits: u8) -> u64 {
            self.push(Direction::Dl, bits, TcpFlags::ACK, 0, Some(self.end));
            self.reported.total().marked
        }
    }

    #[test]
    fn the_counter_wraps_at_eight() {
        let mut peer = Peer::new(0b111, 0b010);
        assert_eq!(peer.feedback.source(), EcnSource::AccurateEcn);
        let mut counted = Vec::new();
        for field in [5, 6, 0, 0, 7] {
            peer.send(false);
            counted.push(peer.answer(field));
        }
        assert_eq!(counted, [0, 1, 3, 3, 10]);
        // An older acknowledgement acknowledges nothing new.
        assert_eq!(peer.answer(3), 10);
        assert_eq!(peer.reported.total(), EcnCount { capable: 5, ect1: 0, marked: 10 });
    }

    #[test]
    fn an_echo_counts_once_until_the_window_was_reduced() {
        let mut peer = Peer::new(0b011, 0b001);
        assert_eq!(peer.feedback.source(), EcnSource::EcnEcho);
        let mut counted = Vec::new();
        for (reduces, echoes) in [
            (false, 0),
            (false, 1),
            (false, 1),
            (true, 1),
            (false, 1),
            (false, 1),
            (false, 0),
            (false, 1),
        ] {
            peer.send(reduces);
            counted.push(peer.answer(echoes));
        }
        // The echo of the segment that announces the reduction is the old one.
        assert_eq!(counted, [0, 1, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn what_was_not_agreed_reports_nothing() {
        for (syn, answer) in [(0, 0b001), (0b011, 0), (0b111, 0b111), (0b111, 0)] {
            let mut peer = Peer::new(syn, answer);
            assert_eq!(peer.feedback.source(), EcnSource::Unknown);
            peer.send(false);
            assert_eq!(peer.answer(0b001), 0);
        }
    }

    #[test]
    fn marks_are_placed_where_the_segment_left_the_queue() {
        let mut peer = Peer::new(0b111, 0b010);
        peer.send(false);
        peer.answer(5);
        peer.send(false);
        let sent_ns = peer.now_ns;
        peer.now_ns += 600 * MS;
        peer.answer(6);
        // Of 650 ms to the acknowledgement, 50 are the shortest round trip.
        let left = peer.reported.within(sent_ns + 600 * MS, sent_ns + 600 * MS + BIN_NS);
        assert_eq!(left, EcnCount { capable: 1, ect1: 0, marked: 1 });
    }

    #[test]
    fn spans_count_whole_bins() {
        let mut bins = EcnBins::default();
        for ms in [2, 12, 22, 4] {
            bins.push(ms * MS, Ecn::Ce);
        }
        bins.push(12 * MS, Ecn::Ect1);
        bins.push(12 * MS, Ecn::NotEct);
        assert_eq!(bins.within(1, 30 * MS), EcnCount { capable: 3, ect1: 1, marked: 2 });
        assert_eq!(bins.within(0, 29 * MS), EcnCount { capable: 4, ect1: 1, marked: 3 });
        let mut other = bins.moved(|ns| ns - 1_000 * MS);
        other.add(&bins);
        assert_eq!(other.total(), EcnCount { capable: 10, ect1: 2, marked: 8 });
        assert_eq!(other.within(i64::MIN, 0), bins.total());
    }
}
