//! Selective acknowledgements (RFC 2018), and of duplicates (RFC 2883).

use airmile_model::packet::TcpHeader;

use super::ByteStream;
use super::acks::round_trip_ns;

/// The result of SACK blocks.
#[derive(Default)]
pub(super) struct Sacked {
    /// Whether any byte was newly reported.
    pub(super) is_new: bool,
    /// RTT of the segment in the first block.
    pub(super) rtt_ns: Option<i64>,
}

impl ByteStream {
    /// Takes the SACK blocks of an ACK up to `edge`.
    #[inline]
    pub(super) fn take_sack(&mut self, now: i64, tcp: &TcpHeader, edge: i64) -> Sacked {
        if tcp.sack.is_empty() { Sacked::default() } else { self.take_blocks(now, tcp, edge) }
    }

    #[inline(never)]
    fn take_blocks(&mut self, now: i64, tcp: &TcpHeader, edge: i64) -> Sacked {
        let mut found = Sacked::default();
        // A capture of the acknowledgements alone: the receiver's window bounds what was sent.
        let alone = self.totals.segments == 0;
        let reach = if alone { edge + i64::from(self.largest_rwnd) } else { self.max };
        for (index, &(left, right)) in tcp.sack.as_slice().iter().enumerate() {
            let offsets = self.offset_of(left, edge).zip(self.offset_of(right, edge));
            let Some((left, right)) = offsets.filter(|(l, r)| l < r) else { continue };
            if right <= edge {
                // RFC 2883, 4: a duplicate was received.
                if index == 0 {
                    self.lost.get_or_insert_default().d_sack = Some((left, right));
                }
                continue;
            }
            let (left, right) = (left.max(edge), right.min(reach));
            if let Some((from, to)) = self.lost.get_or_insert_default().sacked.insert(left, right) {
                found.is_new = true;
                let rtt = self.mark_sacked(now, from, to);
                if index == 0 {
                    found.rtt_ns = rtt;
                }
            }
        }
        found
    }

    /// Without SACK, RTT of the segment that triggered a duplicate ACK: the first one
    /// belongs to the segment after the missing one, and so on, in order of arrival
    /// (paper 5.1).
    pub(super) fn rtt_by_order(&self, now: i64, tcp: &TcpHeader) -> Option<i64> {
        let missing = self.segments.front().filter(|first| first.start == self.acked)?;
        let has_sack =
            !tcp.sack.is_empty() || self.lost.as_ref().is_some_and(|l| l.sacked.bytes() > 0);
        let segment = self.segments.get(self.dup_acks as usize)?;
        let once = segment.times == 1 && segment.start >= missing.end();
        round_trip_ns(now, segment.sent_ns).filter(|_| once && !has_sack)
    }

    /// Marks segments as received; returns the RTT of the last one if the block grew by
    /// one or two (more: ACKs were lost, and it is ambiguous).
    fn mark_sacked(&mut self, now: i64, from: i64, to: i64) -> Option<i64> {
        let first = self.segments.partition_point(|s| s.end() <= from);
        let (mut count, mut last) = (0, None);
        for segment in self.segments.iter_mut().skip(first).take_while(|s| s.end() <= to) {
            segment.sacked = true;
            count += 1;
            last = Some(*segment);
        }
        let once = last.filter(|s| count <= 2 && s.times == 1);
        once.and_then(|s| round_trip_ns(now, s.sent_ns))
    }
}
