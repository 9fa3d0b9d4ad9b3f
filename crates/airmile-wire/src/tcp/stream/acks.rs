//! Acknowledgements of a stream, and data that passes after its own.

use airmile_model::packet::TcpHeader;

use super::super::opt64::Opt64;
use super::losses::EarlyAck;
use super::{AckKind, Advance, ByteStream, JUMP_BYTES, OutstandingSegment};

/// An ACK may be captured up to this long before its data (chosen here: more than the
/// offset between queues of a network card or the clocks of two taps, less than any RTT
/// after which a retransmission follows).
const ACK_AHEAD_NS: i64 = 10_000_000;

/// The time from a segment to its acknowledgement; `None`: the clock was set back between them.
pub(super) fn round_trip_ns(now: i64, sent_ns: i64) -> Option<i64> {
    let rtt_ns = now.saturating_sub(sent_ns);
    (rtt_ns >= -ACK_AHEAD_NS).then_some(rtt_ns.max(0))
}

impl ByteStream {
    /// Takes an acknowledgement of this stream, from a packet of the other side.
    #[inline]
    pub(in crate::tcp) fn acknowledge(
        &mut self,
        now: i64,
        tcp: &TcpHeader,
        bare: bool,
        window: Option<u64>,
    ) -> AckKind {
        let was_closed = self.rwnd.get() == Some(0);
        let window_same = self.hear(tcp, window);
        if self.base.is_none() {
            self.base = Some(tcp.ack);
            return AckKind::Same;
        }
        let Some(edge) = self.offset_of(tcp.ack, self.acked) else { return AckKind::Same };
        if edge > self.max + JUMP_BYTES + 2 * i64::from(self.largest_rwnd) {
            self.losses_mut().out_of_window += 1;
            return AckKind::Same;
        }
        let fin = i64::from(self.fin_at == Opt64::some(self.max));
        let unseen = edge - self.max - fin;
        if unseen == 1 && was_closed {
            // The receiver had room for the byte of a probe.
            self.totals.bytes += 1;
            self.max = edge;
        } else if unseen > 0 {
            // Acknowledged without passing: the capture missed it, or has it late.
            self.totals.unseen_bytes += unseen.unsigned_abs();
            let early = &mut self.lost.get_or_insert_default().early;
            let before = early.filter(|early| early.end == self.max);
            let start = before.map_or(self.max + fin, |early| early.start);
            *early = Some(EarlyAck { start, end: edge, acked_ns: now });
            self.max = edge;
        }
        if edge > self.acked {
            let advance = self.advance_to(now, edge, unseen > 0);
            // Of several holes, each that is filled reports the rest (RFC 2018, 4).
            self.take_sack(now, tcp, edge);
            return AckKind::Advance(advance);
        }
        if edge < self.acked {
            return AckKind::Old;
        }
        if std::mem::take(&mut self.acked_guessed) {
            // The first one at this point repeats nothing.
            return AckKind::Same;
        }
        let sack = self.take_sack(now, tcp, edge);
        let outstanding = self.max > self.acked || sack.is_new;
        if bare && outstanding && (window_same || sack.is_new) {
            self.dup_acks += 1;
            self.losses_mut().dup_acks += 1;
            self.lost.get_or_insert_default().last_dup_ns = now;
            let rtt_ns = sack.rtt_ns.or_else(|| self.rtt_by_order(now, tcp));
            return AckKind::Duplicate { rtt_ns };
        }
        if bare && !window_same { AckKind::WindowUpdate } else { AckKind::Same }
    }

    /// Takes the window of an acknowledgement; returns whether it is the one before.
    #[inline]
    fn hear(&mut self, tcp: &TcpHeader, window: Option<u64>) -> bool {
        self.heard_back = true;
        if let Some(lost) = &mut self.lost {
            lost.d_sack = None;
        }
        let window_same = tcp.window == self.rwnd_raw;
        self.rwnd_raw = tcp.window;
        // Scaled, a window is 30 bits at most (RFC 7323, 2.3).
        self.rwnd = window.and_then(|window| u32::try_from(window).ok()).into();
        let most = window.map_or_else(|| i64::from(tcp.window) << 14, |w| w.cast_signed());
        self.largest_rwnd = self.largest_rwnd.max(most.clamp(0, 1 << 30) as u32);
        window_same
    }

    /// As [`acknowledge`](Self::acknowledge), for one that [advances](Self::is_advanced_by) or that comes
    /// with data and repeats the last.
    #[inline]
    pub(in crate::tcp) fn acknowledge_usual(
        &mut self,
        now: i64,
        tcp: &TcpHeader,
        window: Option<u64>,
    ) -> Option<Advance> {
        self.hear(tcp, window);
        let edge = self.offset_of(tcp.ack, self.acked).unwrap_or(self.acked);
        if edge > self.acked {
            return Some(self.advance_to(now, edge, false));
        }
        self.acked_guessed = false;
        None
    }

    #[inline(always)]
    fn advance_to(&mut self, now: i64, edge: i64, unseen: bool) -> Advance {
        let (mut segments, mut again, mut last) = (0, unseen, None);
        let first_ns = self.segments.front().map(|first| first.sent_ns);
        while let Some(segment) = self.segments.front().copied() {
            if segment.start >= edge {
                break;
            }
            if segment.end() > edge {
                // Part of a segment: a super-segment, or one split by a middlebox.
                if let Some(front) = self.segments.front_mut() {
                    *front = OutstandingSegment {
                        times: segment.times,
                        sacked: segment.sacked,
                        ..OutstandingSegment::new(edge, segment.end(), segment.sent_ns)
                    };
                }
                again |= segment.times > 1;
                last = None;
                break;
            }
            self.segments.pop_front();
            segments += 1;
            again |= segment.times > 1 || segment.sacked;
            last = Some(segment);
        }
        self.acked = edge;
        self.acked_guessed = false;
        self.dup_acks = 0;
        self.last_advance_ns = now;
        if self.lost.is_some() {
            self.repaired_to(edge);
        }
        // Karn: no sample if the range was sent twice (RFC 6298, 3).
        let rtt_ns = last.filter(|_| !again).and_then(|s| round_trip_ns(now, s.sent_ns));
        if let Some(rtt) = rtt_ns {
            self.rtt.push(rtt);
            self.rto.push(rtt);
        }
        Advance { segments, rtt_ns, sent_ns: last.map(|s| s.sent_ns), first_ns }
    }

    /// Whether data was acknowledged just before; then it does not count as unseen.
    pub(super) fn come_late(&mut self, now: i64, start: i64, end: i64) -> bool {
        let Some(lost) = &mut self.lost else { return false };
        let fits = |early: &EarlyAck| {
            (early.start..early.end).contains(&start) && now - early.acked_ns <= ACK_AHEAD_NS
        };
        let Some(early) = lost.early.as_mut().filter(|early| fits(early)) else { return false };
        let to = end.min(early.end);
        self.totals.unseen_bytes =
            self.totals.unseen_bytes.saturating_sub((to - start).unsigned_abs());
        early.start = to;
        lost.losses.late += 1;
        true
    }
}
