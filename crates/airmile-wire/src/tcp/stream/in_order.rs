//! Segments that continue a stream.

use airmile_model::packet::{Packet, TcpHeader};

use super::super::opt64::Opt64;
use super::{ByteStream, MAX_SEGMENTS, MAX_SEGMENTS_UNHEARD, OutstandingSegment};

impl ByteStream {
    /// Whether a segment of more than a byte continues the stream, neither the first one nor a probe.
    #[inline]
    pub(in crate::tcp) fn is_continued_by(&self, tcp: &TcpHeader) -> bool {
        self.totals.segments > 0 && self.max > 0 && self.is_next(tcp)
    }

    /// Whether a segment begins where the stream ends so far.
    #[inline]
    pub(in crate::tcp) fn is_next(&self, tcp: &TcpHeader) -> bool {
        self.offset_of(tcp.seq, self.max) == Some(self.max)
    }

    /// As [`segment`](Self::segment), for one that [continues](Self::is_continued_by) the stream.
    #[inline]
    pub(in crate::tcp) fn continued(&mut self, packet: &Packet<'_>) {
        self.count(packet);
        self.totals.segments += 1;
        self.largest_segment = self.largest_segment.max(packet.payload_bytes);
        if let Some(lost) = &mut self.lost {
            lost.jump = Opt64::NONE;
        }
        let start = self.max;
        self.note_id(packet, start);
        self.max = start + i64::from(packet.payload_bytes);
        self.append(start, self.max, packet.at_ns);
        self.data_passed(packet, packet.payload_bytes.into());
    }

    /// Learns whether the sender increments its IP identification.
    #[inline]
    pub(super) fn note_id(&mut self, packet: &Packet<'_>, start: i64) {
        let Some(id) = packet.ip_id else { return };
        if start >= self.max
            && let Some(last) = self.last_id
        {
            if (1..=64).contains(&id.wrapping_sub(last)) {
                self.ids_in_order = self.ids_in_order.saturating_add(1);
            } else {
                self.ids_out_of_order = self.ids_out_of_order.saturating_add(1);
            }
        }
        self.last_id = Some(id);
    }

    pub(super) fn ids_count_up(&self) -> bool {
        self.ids_in_order >= 4 && self.ids_out_of_order <= self.ids_in_order / 8
    }

    /// Appends the next segment. It is built in place: a copy of the whole would wait for
    /// the stores of its parts.
    #[inline]
    pub(super) fn append(&mut self, start: i64, end: i64, sent_ns: i64) {
        let most = if self.heard_back { MAX_SEGMENTS } else { MAX_SEGMENTS_UNHEARD };
        let room = self.segments.len() < self.segments.capacity().min(most);
        if room && self.segments.back().is_none_or(|last| last.start <= start) {
            self.segments.push_back(OutstandingSegment::new(start, end, sent_ns));
        } else {
            self.remember(OutstandingSegment::new(start, end, sent_ns));
        }
    }
}
