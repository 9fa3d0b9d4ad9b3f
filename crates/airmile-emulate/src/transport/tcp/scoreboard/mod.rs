//! Unacknowledged segments: which have arrived (RFC 2018), which are considered lost (RFC
//! 6675, RFC 8985), and the size of the pipe.

mod loss;

use std::collections::VecDeque;
use std::ops::Range;

use crate::transport::tcp::ranges::RangeSet;

/// DupThresh (RFC 6675, 2).
pub(crate) const DUP_THRESH: usize = 3;

/// A segment that was sent.
#[derive(Debug, Clone)]
pub(crate) struct SentSegment {
    pub(crate) range: Range<u64>,
    /// When it was last sent.
    pub(crate) sent_ns: i64,
    pub(crate) transmissions: u32,
    sacked: bool,
    lost: bool,
    /// Whether it was retransmitted and the copy is in the pipe.
    resent: bool,
    /// Bytes delivered on the connection when it was sent, and when that was.
    delivered_bytes: u64,
    delivered_ns: i64,
}

impl SentSegment {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// RFC 6675, SetPipe.
    fn in_pipe(&self) -> u64 {
        let first = u64::from(!self.sacked && !self.lost);
        let again = u64::from(!self.sacked && self.resent);
        (first + again) * self.bytes()
    }

    fn is_lost(&self) -> bool {
        self.lost && !self.sacked
    }

    fn waits_to_be_resent(&self) -> bool {
        self.lost && !self.sacked && !self.resent
    }
}

/// Effect of an acknowledgement on the segments in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acked {
    /// Bytes newly known to have arrived.
    pub(crate) delivered_bytes: u64,
    /// Send times of the first and the last cumulatively acknowledged segment that was sent
    /// once and not known to have arrived.
    pub(crate) first_sent_ns: Option<i64>,
    pub(crate) last_sent_ns: Option<i64>,
    /// Send time of the first segment acknowledged by SACK that was sent once.
    pub(crate) sack_first_ns: Option<i64>,
    pub(crate) sack_last_ns: Option<i64>,
    /// Whether a cumulatively acknowledged segment had been retransmitted.
    pub(crate) resent: bool,
    /// Whether a segment sent once arrived after later ones (RFC 8985, 6.2 step 4).
    pub(crate) reordered: bool,
    /// (bytes delivered, time) when the latest of these segments was sent.
    delivered_then: Option<(i64, u64, i64)>,
}

/// The most recently sent segment that has arrived (RFC 8985, 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Latest {
    sent_ns: i64,
    end: u64,
}

/// The segments in flight, in order of position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoreboard {
    sent: VecDeque<SentSegment>,
    sacked: RangeSet,
    pipe_bytes: u64,
    sacked_bytes: u64,
    sacked_segments: usize,
    /// Bytes considered lost that have not arrived since.
    lost_bytes: u64,
    /// Bytes considered lost since they were last taken.
    newly_lost_bytes: u64,
    /// Bytes waiting for retransmission, and where the first may be.
    waiting_bytes: u64,
    waiting_from: u64,
    /// Below this everything that has not arrived is already considered lost.
    lost_below: u64,
    /// In send order, for RACK: time, end, transmissions. Entries that no longer match the
    /// segment are stale.
    order: VecDeque<(i64, u64, u32)>,
    latest: Option<Latest>,
    rack_rtt_ns: i64,
    delivered_bytes: u64,
    delivered_ns: i64,
}

impl Scoreboard {
    pub(crate) fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }

    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    /// When the first segment was last sent.
    pub(crate) fn head_sent_ns(&self) -> Option<i64> {
        self.sent.front().map(|s| s.sent_ns)
    }

    /// The highest position reported by SACK.
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        self.sacked.ranges().last().map(|r| r.end)
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut SentSegment)) {
        let Some(sent) = self.sent.get_mut(index) else { return };
        let bytes = sent.bytes();
        let in_pipe = sent.in_pipe();
        self.pipe_bytes -= in_pipe;
        self.waiting_bytes -= if sent.waits_to_be_resent() { bytes } else { 0 };
        self.lost_bytes -= if sent.is_lost() { bytes } else { 0 };
        change(sent);
        self.lost_bytes += if sent.is_lost() { bytes } else { 0 };
        self.pipe_bytes += sent.in_pipe();
        self.newly_lost_bytes +=
            if sent.sacked { 0 } else { in_pipe.saturating_sub(sent.in_pipe()) };
        if sent.waits_to_be_resent() {
            self.waiting_bytes += bytes;
            self.waiting_from = self.waiting_from.min(sent.range.start);
        }
    }

    fn index_of(&self, position: u64) -> usize {
        self.sent.partition_point(|s| s.range.end <= position)
    }

    /// Adds a new segment.
    pub(crate) fn on_sent(&mut self, now_ns: i64, range: Range<u64>, rack: bool) {
        if self.sent.is_empty() {
            self.delivered_ns = now_ns;
        }
        if rack {
            self.order.push_back((now_ns, range.end, 1));
        }
        let sent = SentSegment {
            range,
            sent_ns: now_ns,
            transmissions: 1,
            sacked: false,
            lost: false,
            resent: false,
            delivered_bytes: self.delivered_bytes,
            delivered_ns: self.delivered_ns,
        };
        self.pipe_bytes += sent.in_pipe();
        self.sent.push_back(sent);
    }

    /// The segment at a position was retransmitted.
    pub(crate) fn on_resent(&mut self, now_ns: i64, position: u64, rack: bool) {
        let (delivered_bytes, delivered_ns) = (self.delivered_bytes, self.delivered_ns);
        let index = self.index_of(position);
        self.change(index, |sent| {
            sent.sent_ns = now_ns;
            sent.transmissions += 1;
            sent.resent = true;
            sent.delivered_bytes = delivered_bytes;
            sent.delivered_ns = delivered_ns;
        });
        if rack && let Some(sent) = self.sent.get(index) {
            self.order.push_back((now_ns, sent.range.end, sent.transmissions));
        }
    }

    /// The first segment waiting for retransmission (RFC 6675, NextSeg (1)).
    pub(crate) fn next_waiting(&mut self) -> Option<Range<u64>> {
        if self.waiting_bytes == 0 {
            self.waiting_from = u64::MAX;
            return None;
        }
        let from = self.index_of(self.waiting_from);
        let found = self.sent.range(from..).find(|s| s.waits_to_be_resent())?;
        self.waiting_from = found.range.start;
        Some(found.range.clone())
    }

    /// The last segment in flight, for a tail loss probe.
    pub(crate) fn last(&self) -> Option<Range<u64>> {
        self.sent.back().map(|s| s.range.clone())
    }

    fn note_delivered(&mut self, index: usize, acked: &mut Acked) {
        let Some(sent) = self.sent.get(index) else { return };
        acked.delivered_bytes += sent.bytes();
        if acked.delivered_then.is_none_or(|(ns, ..)| sent.sent_ns >= ns) {
            acked.delivered_then = Some((sent.sent_ns, sent.delivered_bytes, sent.delivered_ns));
        }
    }

    /// RFC 8985, 6.2 step 2: the segment arrived at `now_ns`.
    fn note_latest(&mut self, now_ns: i64, index: usize, min_rtt_ns: Option<i64>) {
        let Some(sent) = self.sent.get(index) else { return };
        let rtt_ns = now_ns - sent.sent_ns;
        // Too early for the retransmission: the original had arrived.
        if sent.transmissions > 1 && min_rtt_ns.is_some_and(|min| rtt_ns < min) {
            return;
        }
        let latest = Latest { sent_ns: sent.sent_ns, end: sent.range.end };
        if self.latest.is_none_or(|l| latest > l) {
            self.latest = Some(latest);
            self.rack_rtt_ns = rtt_ns;
        }
    }

    /// Processes a SACK block.
    pub(crate) fn on_sack(
        &mut self,
        now_ns: i64,
        block: Range<u64>,
        min_rtt_ns: Option<i64>,
        acked: &mut Acked,
    ) {
        let highest = self.highest_sacked().unwrap_or(0);
        for fresh in self.sacked.insert(block) {
            let mut index = self.index_of(fresh.start);
            while let Some(sent) = self.sent.get(index) {
                if sent.range.start >= fresh.end {
                    break;
                }
                let whole = self
                    .sacked
                    .containing(sent.range.start)
                    .is_some_and(|r| r.end >= sent.range.end);
                if whole && !sent.sacked {
                    if sent.transmissions == 1 {
                        acked.reordered |= sent.range.end < highest;
                        let first = acked.sack_first_ns.unwrap_or(sent.sent_ns);
                        acked.sack_first_ns = Some(first.min(sent.sent_ns));
                        let last = acked.sack_last_ns.unwrap_or(sent.sent_ns);
                        acked.sack_last_ns = Some(last.max(sent.sent_ns));
                    }
                    self.sacked_bytes += sent.bytes();
                    self.sacked_segments += 1;
                    self.note_delivered(index, acked);
                    self.note_latest(now_ns, index, min_rtt_ns);
                    self.change(index, |sent| sent.sacked = true);
                }
                index += 1;
            }
        }
    }

    /// Processes a cumulative acknowledgement.
    pub(crate) fn on_ack(
        &mut self,
        now_ns: i64,
        una: u64,
        min_rtt_ns: Option<i64>,
        acked: &mut Acked,
    ) {
        let highest = self.highest_sacked().unwrap_or(0);
        while let Some(sent) = self.sent.front() {
            if sent.range.end > una {
                break;
            }
            acked.reordered |= sent.transmissions == 1 && !sent.sacked && sent.range.end < highest;
            if sent.transmissions > 1 {
                acked.resent = true;
            } else if !sent.sacked {
                acked.first_sent_ns.get_or_insert(sent.sent_ns);
                acked.last_sent_ns = Some(sent.sent_ns);
            }
            if sent.sacked {
                self.sacked_bytes -= sent.bytes();
                self.sacked_segments -= 1;
            } else {
                self.note_delivered(0, acked);
                self.note_latest(now_ns, 0, min_rtt_ns);
            }
            self.change(0, |sent| sent.sacked = true);
            self.sent.pop_front();
        }
        self.trim_head(una, acked);
        self.sacked.remove_below(una);
    }

    /// Acknowledges part of the first segment.
    fn trim_head(&mut self, una: u64, acked: &mut Acked) {
        let Some(sent) = self.sent.front() else { return };
        if sent.range.start >= una {
            return;
        }
        let gone = una - sent.range.start;
        if sent.sacked {
            self.sacked_bytes -= gone;
        } else {
            acked.delivered_bytes += gone;
        }
        let in_pipe = sent.in_pipe();
        self.lost_bytes -= if sent.is_lost() { gone } else { 0 };
        let waiting = if sent.waits_to_be_resent() { sent.bytes() } else { 0 };
        if let Some(sent) = self.sent.front_mut() {
            sent.range.start = una;
            self.pipe_bytes = self.pipe_bytes - in_pipe + sent.in_pipe();
            let left = if sent.waits_to_be_resent() { sent.bytes() } else { 0 };
            self.waiting_bytes = self.waiting_bytes - waiting + left;
        }
    }

    /// Adds arrived data; returns the delivery rate since the latest arrived segment was
    /// sent, in bit/s.
    pub(crate) fn on_delivered(&mut self, now_ns: i64, acked: &Acked) -> Option<u64> {
        self.delivered_bytes += acked.delivered_bytes;
        self.delivered_ns = now_ns;
        let (sent_ns, bytes_then, ns_then) = acked.delivered_then?;
        let elapsed_ns = (now_ns - ns_then).max(now_ns - sent_ns);
        let bits = u128::from(self.delivered_bytes - bytes_then) * 8;
        let rate = bits * 1_000_000_000 / u128::try_from(elapsed_ns).ok().filter(|&ns| ns > 0)?;
        u64::try_from(rate).ok()
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.pipe_bytes, self.sent.iter().map(SentSegment::in_pipe).sum::<u64>());
        let waiting = self.sent.iter().filter(|s| s.waits_to_be_resent()).map(SentSegment::bytes);
        assert_eq!(self.waiting_bytes, waiting.sum::<u64>());
        let lost = self.sent.iter().filter(|s| s.is_lost()).map(SentSegment::bytes);
        assert_eq!(self.lost_bytes, lost.sum::<u64>());
        let sacked = || self.sent.iter().filter(|s| s.sacked).map(SentSegment::bytes);
        assert_eq!(self.sacked_bytes, sacked().sum::<u64>());
        assert_eq!(self.sacked_segments, sacked().count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    /// Ten segments in flight, sent a millisecond apart.
    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..10 {
            board.on_sent(i as i64 * 1_000_000, i * MSS..(i + 1) * MSS, true);
        }
        board
    }

    fn sack(board: &mut Scoreboard, now_ns: i64, blocks: &[(u64, u64)]) {
        for &(start, end) in blocks {
            board.on_sack(now_ns, start * MSS..end * MSS, None, &mut Acked::default());
        }
        board.check();
    }

    #[test]
    fn is_lost_and_pipe_by_rfc_6675() {
        // Blocks in segments; bytes considered lost; pipe after that.
        let check = |blocks: &[(u64, u64)], lost: u64, pipe: u64| {
            let mut board = ten();
            sack(&mut board, 0, blocks);
            assert_eq!(board.find_lost_by_sack(MSS), lost * MSS, "{blocks:?}");
            assert_eq!(board.pipe_bytes(), pipe * MSS, "{blocks:?}");
            board.check();
        };
        // One and two segments above are not enough; three are.
        check(&[(1, 2)], 0, 9);
        check(&[(1, 3)], 0, 8);
        check(&[(1, 4)], 1, 6);
        // Three ranges of one segment: only segments below all three.
        check(&[(1, 2), (3, 4), (5, 6)], 1, 6);
        check(&[(2, 3), (4, 7)], 3, 3);
        check(&[(3, 10)], 3, 0);
    }

    #[test]
    fn dup_thresh_counts_segments_of_any_size() {
        let mut board = Scoreboard::default();
        (0..6).for_each(|i| board.on_sent(0, i * 100..(i + 1) * 100, true));
        for (end, expected) in [(200, false), (300, false), (400, true)] {
            board.on_sack(1, 100..end, None, &mut Acked::default());
            assert_eq!(board.sacked_dup_thresh(), expected, "{end}");
        }
        board.on_ack(2, 300, None, &mut Acked::default());
        assert!(!board.sacked_dup_thresh());
        board.check();
    }

    #[test]
    fn a_copy_is_in_the_pipe_until_it_is_lost_by_time() {
        let mut board = ten();
        sack(&mut board, 100_000_000, &[(1, 4)]);
        assert_eq!(board.find_lost_by_time(100_000_000, 0), (MSS, None));
        assert_eq!(board.next_waiting(), Some(0..MSS));
        board.on_resent(100_000_000, 0, true);
        assert_eq!((board.pipe_bytes(), board.next_waiting()), (7 * MSS, None));
        // Data sent after the retransmission arrives 100 ms later: the retransmission is
        // lost.
        board.on_sent(101_000_000, 10 * MSS..11 * MSS, true);
        sack(&mut board, 201_000_000, &[(10, 11)]);
        let (lost_bytes, _) = board.find_lost_by_time(201_000_000, 0);
        // Segments 4 to 9 are older than the retransmission, too.
        assert_eq!((lost_bytes, board.take_lost()), (7 * MSS, 8 * MSS));
        assert_eq!(board.next_waiting(), Some(0..MSS));
        board.check();
    }

    /// RFC 8985, 6.2 step 5 covers all segments that have not arrived.
    #[test]
    fn a_revoked_loss_is_found_again_by_time() {
        let mut board = ten();
        sack(&mut board, 100_000_000, &[(1, 4)]);
        assert_eq!(board.find_lost_by_time(100_000_000, 0), (MSS, None));
        board.forgive(true);
        assert_eq!((board.lost_bytes(), board.next_waiting()), (0, None));
        sack(&mut board, 101_000_000, &[(4, 5)]);
        assert_eq!(board.find_lost_by_time(101_000_000, 0), (MSS, None));
        assert_eq!(board.next_waiting(), Some(0..MSS));
        // A copy in the pipe keeps its place in the order.
        board.on_resent(102_000_000, 0, true);
        board.forgive(true);
        board.on_sent(103_000_000, 10 * MSS..11 * MSS, true);
        sack(&mut board, 203_000_000, &[(5, 11)]);
        assert_eq!(board.find_lost_by_time(203_000_000, 0).0, MSS);
        board.check();
    }

    proptest! {
        #[test]
        fn counts_agree_with_segments(
            steps in prop::collection::vec((0u8..8, 0u64..40, 1u64..8), 1..120),
        ) {
            let mut board = Scoreboard::default();
            let (mut next, mut una, mut now_ns) = (0, 0, 0);
            for (kind, at, n) in steps {
                now_ns += 1_000_000;
                match kind {
                    0..=2 => {
                        board.on_sent(now_ns, next..next + n * 100, true);
                        next += n * 100;
                    }
                    3 => {
                        una = (una + n * 70).min(next);
                        board.on_ack(now_ns, una, None, &mut Acked::default());
                    }
                    4 => {
                        let start = (una + at * 100).min(next);
                        let end = (start + n * 100).min(next);
                        if start < end {
                            board.on_sack(now_ns, start..end, None, &mut Acked::default());
                        }
                    }
                    5 => {
                        board.find_lost_by_time(now_ns, 0);
                    }
                    6 => {
                        board.find_lost_by_sack(100);
                    }
                    _ if at == 0 => board.lose_all(),
                    _ if at == 1 => board.forgive(true),
                    _ => {
                        if let Some(range) = board.next_waiting() {
                            board.on_resent(now_ns, range.start, true);
                        }
                    }
                }
                board.check();
                prop_assert_eq!(board.waiting_bytes() > 0, board.next_waiting().is_some());
            }
        }
    }
}
