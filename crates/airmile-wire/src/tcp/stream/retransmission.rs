//! Segments below the highest byte passed: reordered or retransmitted, and why.

use airmile_model::packet::{Packet, TcpHeader};

use super::super::opt64::Opt64;
use super::super::ranges::Ranges;
use super::super::rto::LINUX_MIN_RTO_NS;
use super::{
    ByteStream, OutstandingSegment, REORDER_NS, RetransmissionCause, SegmentKind, SegmentReport,
    SequenceHole,
};

impl ByteStream {
    /// Classifies a segment that begins below the highest byte passed.
    pub(super) fn below(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        start: i64,
        end: i64,
        beyond_ns: i64,
    ) -> SegmentReport {
        let now = packet.at_ns;
        self.losses_mut().out_of_order += 1;
        let filled = self.fill(start, end);
        let above = (end - self.max).max(0);
        let fresh = filled.as_ref().map_or(0, |f| f.1) + above;
        let again = (end - start - fresh).max(0);
        let new_bytes = u64::try_from(fresh).unwrap_or(0);
        if let Some((hole, bytes)) = filled
            && bytes == end - start
            && self.was_overtaken(&hole, packet, tcp, beyond_ns)
        {
            self.losses_mut().reordered += 1;
            self.remember(OutstandingSegment::new(start, end, now));
            return SegmentReport { kind: SegmentKind::Reordered, start, new_bytes };
        }
        let why = self.why_again(now, start, end, beyond_ns);
        self.losses_mut().retx += 1;
        self.losses_mut().retx_bytes += u64::try_from(again).unwrap_or(0);
        match why {
            RetransmissionCause::Fast => self.losses_mut().retx_fast += 1,
            RetransmissionCause::Timeout => self.losses_mut().retx_timeout += 1,
            RetransmissionCause::TailLossProbe => self.losses_mut().retx_probe += 1,
            RetransmissionCause::Spurious => self.losses_mut().retx_spurious += 1,
            RetransmissionCause::Unknown => {}
        }
        self.send_again(now, start, end);
        self.max = self.max.max(end);
        SegmentReport { kind: SegmentKind::Retransmission(why), start, new_bytes }
    }

    /// Takes a datagram that waited in vain for a fragment and comes after later packets: it is no
    /// retransmission. `None`: it is not below the highest byte passed.
    #[cold]
    pub(in crate::tcp) fn incomplete(
        &mut self,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
    ) -> Option<SegmentReport> {
        let length = i64::from(packet.payload_bytes);
        let start = self.offset_of(tcp.seq, self.max)?;
        if length == 0 || start + length > self.max {
            return None;
        }
        self.count(packet);
        self.totals.segments += 1;
        let bytes = self.fill(start, start + length).map_or(0, |filled| filled.1);
        self.totals.bytes += bytes.unsigned_abs();
        Some(SegmentReport { kind: SegmentKind::Bare, start, new_bytes: 0 })
    }

    /// Takes a range out of the holes; returns the first hole it met and the bytes.
    fn fill(&mut self, start: i64, end: i64) -> Option<(SequenceHole, i64)> {
        let holes = &mut self.lost.as_mut()?.holes;
        let (from, to) = (
            holes.partition_point(|hole| hole.end <= start),
            holes.partition_point(|hole| hole.start < end),
        );
        let first = *holes.get(from).filter(|_| from < to)?;
        let mut bytes = 0;
        let mut rest = first;
        for hole in holes.drain(from..to) {
            bytes += hole.end.min(end) - hole.start.max(start);
            rest = hole;
        }
        // What is left of the last one, and of the first one.
        for part in [SequenceHole { start: end, ..rest }, SequenceHole { end: start, ..first }] {
            if part.start < part.end {
                holes.insert(from, part);
            }
        }
        Some((first, bytes))
    }

    /// Whether a segment that fills a hole was sent before the one that opened it.
    fn was_overtaken(
        &self,
        hole: &SequenceHole,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        beyond_ns: i64,
    ) -> bool {
        if self.ids_count_up()
            && let (Some(id), Some(opener)) = (packet.ip_id, hole.opener_id)
            && id != opener
        {
            return id.wrapping_sub(opener).cast_signed() < 0;
        }
        if let (Some((ts, _)), Some(opener)) = (tcp.timestamps, hole.opener_ts)
            && ts != opener
        {
            return ts.wrapping_sub(opener).cast_signed() < 0;
        }
        let waited = packet.at_ns - hole.opened_ns;
        // What the hole's duplicate ACKs ask for takes the round trip to the sender (RFC 5681, 3.2).
        if waited < beyond_ns * 3 / 4 {
            return true;
        }
        waited < self.rtt.least().map_or(REORDER_NS, |rtt| rtt * 3 / 4) && self.dup_acks < 3
    }

    fn why_again(&mut self, now: i64, start: i64, end: i64, beyond_ns: i64) -> RetransmissionCause {
        let lost = self.lost.as_deref();
        let sacked = lost.map(|lost| &lost.sacked);
        let sacked_bytes = sacked.map_or(0, Ranges::bytes);
        if end <= self.acked || sacked.is_some_and(|sacked| sacked.covers(start, end)) {
            return RetransmissionCause::Spurious;
        }
        if lost.and_then(|lost| lost.timeout_until.get()).is_some_and(|until| start < until) {
            return RetransmissionCause::Timeout;
        }
        let asked = self.dup_acks >= 3
            || sacked_bytes >= 3 * i64::from(self.largest_segment.max(1))
            || lost.and_then(|lost| lost.recovery_until.get()).is_some_and(|until| start < until);
        let first = self.segments.partition_point(|s| s.end() <= start);
        let earlier = self.segments.get(first);
        let last_sent = earlier.map_or(self.last_sent_ns, |s| s.sent_ns);
        let times = earlier.map_or(1, |s| s.times);
        let idle = now - last_sent.max(self.last_advance_ns);
        let rto = self.rto.rto_ns(beyond_ns).map_or(1_000_000_000, |r| r.max(LINUX_MIN_RTO_NS));
        // A quarter less: the monitor sees neither the sender's clock nor all of its RTT.
        let timer_ran = idle >= rto - rto / 4;
        // A fast retransmission follows the duplicate ACKs at once.
        let last_dup_ns = lost.map_or(now, |lost| lost.last_dup_ns);
        let late = times > 1 || self.dup_acks >= 3 && now - last_dup_ns >= rto - rto / 4;
        if asked && !(timer_ran && late && start == self.acked) {
            self.recover();
            return RetransmissionCause::Fast;
        }
        let srtt = self.rto.srtt_ns().unwrap_or(0) + beyond_ns;
        if end >= self.max && times == 1 && !timer_ran && idle / 12 >= srtt / 10 {
            return RetransmissionCause::TailLossProbe;
        }
        if timer_ran || times > 1 {
            let lost = self.lost.get_or_insert_default();
            lost.timeout_until = Opt64::some(self.max);
            lost.recovery_until = Opt64::NONE;
            return RetransmissionCause::Timeout;
        }
        if self.dup_acks > 0 || sacked_bytes > 0 {
            self.recover();
            return RetransmissionCause::Fast;
        }
        RetransmissionCause::Unknown
    }

    /// Recovery begins, unless it has.
    fn recover(&mut self) {
        self.lost.get_or_insert_default().recovery_until.or_set(self.max);
    }

    pub(super) fn send_again(&mut self, now: i64, start: i64, end: i64) {
        let first = self.segments.partition_point(|s| s.end() <= start);
        let mut known_to = start;
        for segment in self.segments.iter_mut().skip(first).take_while(|s| s.start < end) {
            segment.sent_ns = now;
            segment.times = segment.times.saturating_add(1);
            known_to = segment.end();
        }
        if known_to < end && end > self.acked {
            let start = known_to.max(start);
            self.remember(OutstandingSegment {
                times: 2,
                ..OutstandingSegment::new(start, end, now)
            });
        }
    }
}
