//! The receiving half: reassembly, acknowledgements and the window.

use std::collections::VecDeque;
use std::ops::Range;

use super::ranges::RangeSet;
use crate::net::{Contents, Literal};
use crate::scenario::TcpConfig;

/// Number of recent arrivals for SACK blocks: RFC 2018, 4 requires each block in at least
/// three ACKs; chosen here with a margin.
const RECENT: usize = 8;

/// Positions count like sequence numbers: the SYN is 0, the first byte 1.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    pub(crate) next: u64,
    /// Bytes that the application has read.
    pub(crate) consumed: u64,
    beyond: RangeSet,
    /// Starts of the latest arrivals after a gap, latest first.
    recent: VecDeque<u64>,
    d_sack: Option<Range<u64>>,
    fin: Option<u64>,
    contents: Contents,
    /// The window's right edge as last advertised.
    edge: u64,
    buffer_bytes: u64,
    tuning: Option<Tuning>,
    pub(crate) acks: AckTimer,
    pub(crate) duplicate_bytes: u64,
}

/// When to acknowledge.
#[derive(Debug, Clone)]
pub(crate) struct AckTimer {
    every_segments: u64,
    delay_ns: i64,
    quick_left: u32,
    unacked_bytes: u64,
    pub(crate) now: bool,
    pub(crate) at_ns: Option<i64>,
}

/// Auto-tuning: the buffer is twice the data that the application reads in a round trip
/// (Linux's dynamic right-sizing, Fisk and Feng 2001).
#[derive(Debug, Clone)]
struct Tuning {
    max_bytes: u64,
    rtt_ns: Option<i64>,
    since_ns: i64,
    consumed_then: u64,
    space_bytes: u64,
}

impl Receiver {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        let receive = &config.receive;
        let tuning = (receive.max_buffer_bytes > receive.buffer_bytes).then(|| Tuning {
            max_bytes: receive.max_buffer_bytes,
            rtt_ns: None,
            since_ns: 0,
            consumed_then: 0,
            space_bytes: u64::from(config.initial_window_segments) * u64::from(config.mss_bytes),
        });
        Self {
            next: 0,
            consumed: 0,
            beyond: RangeSet::default(),
            recent: VecDeque::new(),
            d_sack: None,
            fin: None,
            contents: Contents::default(),
            edge: 0,
            buffer_bytes: receive.buffer_bytes.max(1),
            tuning,
            acks: AckTimer {
                every_segments: u64::from(config.ack.every_segments.max(1)),
                delay_ns: config.ack.delay_ns,
                quick_left: config.ack.quick_segments,
                unacked_bytes: 0,
                now: false,
                at_ns: None,
            },
            duplicate_bytes: 0,
        }
    }

    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Bytes that the application can read now.
    pub(crate) fn readable_bytes(&self) -> u64 {
        let data_end = self.next.saturating_sub(u64::from(self.fin_received()));
        data_end.saturating_sub(1).saturating_sub(self.consumed)
    }

    /// Whether the peer's FIN is in order.
    pub(crate) fn fin_received(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// RFC 9293, 3.10.7.4: whether any part of `range` lies in the window.
    pub(crate) fn accepts(&self, range: &Range<u64>) -> bool {
        let edge = self.edge.max(self.next);
        if range.is_empty() {
            range.start >= self.next && range.start <= edge
        } else {
            range.start < edge && range.end > self.next
        }
    }

    /// Processes a segment with data or FIN. `range` counts the FIN.
    pub(crate) fn on_data(
        &mut self,
        now_ns: i64,
        range: Range<u64>,
        fin: bool,
        literals: &[Literal],
        mss_bytes: u64,
    ) {
        if fin {
            self.fin = Some(range.end - 1);
        }
        literals.iter().for_each(|literal| self.contents.add(literal));
        let old = range.start..range.end.min(self.next);
        if !old.is_empty() {
            self.duplicate_bytes += old.end - old.start;
            self.d_sack = Some(old);
            self.acks.now = true;
        }
        let edge = self.edge.max(self.next);
        let fresh = range.start.max(self.next)..range.end.min(edge);
        if fresh.is_empty() {
            self.acks.now = true;
            return;
        }
        if fresh.start == self.next {
            self.in_order(now_ns, fresh, mss_bytes);
        } else {
            self.beyond_gap(fresh);
        }
        self.acks.now |= fin;
    }

    fn in_order(&mut self, now_ns: i64, fresh: Range<u64>, mss_bytes: u64) {
        let bytes = fresh.end - fresh.start;
        self.next = fresh.end;
        // RFC 5681, 4.2: a segment that fills all or part of a gap is acknowledged at once.
        self.acks.now |= !self.beyond.is_empty();
        if let Some(known) = self.beyond.ranges().first().filter(|r| r.start < self.next) {
            let twice = known.start..known.end.min(self.next);
            self.duplicate_bytes += twice.end - twice.start;
            self.d_sack.get_or_insert(twice);
        }
        self.beyond.remove_below(self.next);
        if let Some(first) = self.beyond.containing(self.next) {
            self.next = first.end;
            self.beyond.remove_below(self.next);
        }
        self.recent.retain(|&at| at >= self.next);
        self.acks.on_in_order(now_ns, bytes, mss_bytes);
    }

    fn beyond_gap(&mut self, fresh: Range<u64>) {
        let bytes = fresh.end - fresh.start;
        let start = fresh.start;
        let new: u64 = self.beyond.insert(fresh.clone()).iter().map(|r| r.end - r.start).sum();
        if new < bytes {
            self.duplicate_bytes += bytes - new;
            self.d_sack = Some(fresh);
        }
        if let Some(block) = self.beyond.containing(start) {
            self.recent.retain(|&at| !block.contains(&at));
        }
        self.recent.push_front(start);
        self.recent.truncate(RECENT);
        self.acks.now = true;
    }

    /// SACK blocks for the next ACK: a duplicate first (RFC 2883), then the
    /// latest arrivals (RFC 2018, 4).
    pub(crate) fn take_sack(&mut self, max_blocks: usize, d_sack: bool) -> Vec<Range<u64>> {
        let mut blocks: Vec<Range<u64>> = Vec::new();
        if let Some(twice) = self.d_sack.take()
            && d_sack
            && max_blocks > 0
        {
            let around = self.beyond.containing(twice.start);
            blocks.push(twice);
            // RFC 2883, 4.2: the block around it follows.
            blocks.extend(around);
        }
        let duplicates = usize::from(!blocks.is_empty() && d_sack);
        for &at in &self.recent {
            if let Some(block) = self.beyond.containing(at)
                && !blocks.iter().skip(duplicates).any(|b| *b == block)
            {
                blocks.push(block);
            }
        }
        blocks.truncate(max_blocks);
        blocks
    }

    /// The window field for the next segment: RFC 9293, 3.8.6.2.2 (silly window avoidance)
    /// and RFC 7323, 2.3. Never shrinks the advertised window.
    pub(crate) fn take_window(&mut self, scale: u8, mss_bytes: u64) -> u16 {
        let wanted = self.wanted_edge();
        let step = mss_bytes.min(self.buffer_bytes / 2);
        let edge = if wanted >= self.edge + step { wanted } else { self.edge };
        let window = edge.saturating_sub(self.next);
        let field = u16::try_from(window.div_ceil(1 << scale)).unwrap_or(u16::MAX);
        self.edge = self.edge.max(self.next + (u64::from(field) << scale));
        field
    }

    fn wanted_edge(&self) -> u64 {
        self.consumed + 1 + self.buffer_bytes
    }

    /// Processes reads of the application: checks whether to advertise a window that has at
    /// least doubled, as in Linux.
    pub(crate) fn on_read(&mut self, now_ns: i64, bytes: u64, mss_bytes: u64) {
        self.consumed += bytes;
        self.contents.forget_below(self.consumed);
        self.tune(now_ns, mss_bytes);
        let advertised = self.edge.saturating_sub(self.next);
        let could = self.wanted_edge().saturating_sub(self.next);
        let step = mss_bytes.min(self.buffer_bytes / 2);
        if advertised * 2 <= self.buffer_bytes
            && could >= 2 * advertised
            && could >= advertised + step
        {
            self.acks.now = true;
        }
    }

    /// An RTT sample of the receiver (RFC 7323's echo of an ACK).
    pub(crate) fn on_rtt(&mut self, rtt_ns: i64) {
        if let Some(tuning) = &mut self.tuning {
            let rtt_ns = rtt_ns.max(1_000_000);
            tuning.rtt_ns = Some(tuning.rtt_ns.map_or(rtt_ns, |old| (7 * old + rtt_ns) / 8));
        }
    }

    fn tune(&mut self, now_ns: i64, mss_bytes: u64) {
        let Some(tuning) = &mut self.tuning else { return };
        let Some(rtt_ns) = tuning.rtt_ns else { return };
        if now_ns - tuning.since_ns < rtt_ns {
            return;
        }
        let copied = self.consumed - tuning.consumed_then;
        if copied > tuning.space_bytes {
            // Twice the received data, more while it still grows.
            let base = 2 * copied + 16 * mss_bytes;
            let grown =
                base.saturating_mul(copied - tuning.space_bytes) / tuning.space_bytes.max(1);
            let wanted = base.saturating_add(grown.saturating_mul(2)).min(tuning.max_bytes);
            self.buffer_bytes = self.buffer_bytes.max(wanted);
            tuning.space_bytes = copied;
        }
        tuning.consumed_then = self.consumed;
        tuning.since_ns = now_ns;
    }

    /// A literal that starts at the read position, if it is complete.
    pub(crate) fn literal(&self) -> Option<&Literal> {
        let literal = self.contents.at(self.consumed)?;
        (literal.bytes.len() as u64 <= self.readable_bytes()).then_some(literal)
    }

    /// Bytes that are only counted, up to the next literal.
    pub(crate) fn readable_filler_bytes(&self) -> u64 {
        if self.contents.at(self.consumed).is_some() {
            return 0;
        }
        let next = self.contents.next_after(self.consumed).unwrap_or(u64::MAX);
        self.readable_bytes().min(next - self.consumed)
    }
}

impl AckTimer {
    fn on_in_order(&mut self, now_ns: i64, bytes: u64, mss_bytes: u64) {
        self.unacked_bytes += bytes;
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.now = true;
        } else if self.unacked_bytes >= self.every_segments * mss_bytes {
            self.now = true;
        } else {
            self.at_ns.get_or_insert(now_ns + self.delay_ns);
        }
    }

    /// Checks whether a delayed ACK is due.
    pub(crate) fn on_timeout(&mut self, now_ns: i64) {
        if self.due(now_ns) {
            self.now = true;
            self.at_ns = None;
        }
    }

    /// Whether an ACK is due.
    pub(crate) fn due(&self, now_ns: i64) -> bool {
        self.now || self.at_ns.is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// An ACK was sent, alone or with data.
    pub(crate) fn on_sent(&mut self) {
        self.unacked_bytes = 0;
        self.now = false;
        self.at_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 500;

    /// The example of RFC 2018, 4: eight segments of 500 bytes from 5000; blocks on each
    /// ACK.
    fn blocks(received: &[u64]) -> Vec<Range<u64>> {
        let mut receiver = Receiver::new(&TcpConfig::default());
        receiver.next = 5000;
        receiver.edge = 60_000;
        let mut last = Vec::new();
        for &start in received {
            receiver.on_data(0, start..start + 500, false, &[], MSS);
            last = receiver.take_sack(3, true);
        }
        last
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn rfc_2018_cases() {
        let check = |received: &[u64], expected: &[Range<u64>]| {
            assert_eq!(blocks(received), expected, "{received:?}");
        };
        // Case 1: the first four arrive, the last four are lost.
        check(&[5000, 5500, 6000, 6500], &[]);
        // Case 2: the first is lost, the other seven arrive.
        check(&[5500, 6000, 6500, 7000, 7500, 8000, 8500], &[5500..9000]);
        // Case 3: the 2nd, 4th, 6th and 8th are lost.
        check(&[5000, 6000], &[6000..6500]);
        check(&[5000, 6000, 7000], &[7000..7500, 6000..6500]);
        check(&[5000, 6000, 7000, 8000], &[8000..8500, 7000..7500, 6000..6500]);
        // then the 4th arrives late, and then the 2nd.
        check(&[5000, 6000, 7000, 8000, 6500], &[6000..7500, 8000..8500]);
        check(&[5000, 6000, 7000, 8000, 6500, 5500], &[8000..8500]);
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn rfc_2883_cases() {
        let check = |received: &[u64], expected: &[Range<u64>]| {
            assert_eq!(blocks(received), expected, "{received:?}");
        };
        // 4.1: below the cumulative acknowledgement.
        check(&[5000, 5500, 5000], &[5000..5500]);
        // 4.2: within a block that is out of order.
        check(&[5000, 6000, 6500, 6000], &[6000..6500, 6000..7000]);
    }

    #[test]
    fn window_opens_by_segments_only() {
        let mut config = TcpConfig::default();
        config.receive.buffer_bytes = 4000;
        config.receive.max_buffer_bytes = 0;
        let mut receiver = Receiver::new(&config);
        receiver.next = 1;
        assert_eq!(receiver.take_window(0, MSS), 4000);
        receiver.on_data(0, 1..4001, false, &[], MSS);
        assert_eq!(receiver.take_window(0, MSS), 0, "all is full");
        receiver.acks.on_sent();
        receiver.on_read(0, 499, MSS);
        assert!(!receiver.acks.now);
        assert_eq!(receiver.take_window(0, MSS), 0, "no silly window");
        receiver.on_read(0, 1, MSS);
        assert!(receiver.acks.now);
        assert_eq!(receiver.take_window(0, MSS), 500);
    }
}
