//! When a server sent the data that arrived at a phone, from the time stamps that it echoes.

use std::collections::VecDeque;

use airmile_model::TcpEventKind;
use airmile_wire::tcp::TracedPacket;

/// Maximum number of remembered time stamps (chosen here, as for verdicts).
const MOST_ECHOES: usize = 4_096;

/// Time stamps of a phone's acknowledgements, on their way to the server and back (RFC 7323, 4.3),
/// as in `airmile_wire::packets_only`, whose round trips the verdicts use.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// TSval, the time it was first sent, and the last acknowledgement with it.
    sent: VecDeque<(u32, i64, i64)>,
    last: Option<(u32, i64, i64)>,
    /// Times of acknowledgements without a known later send, and what they acknowledged.
    acks: VecDeque<(i64, i64)>,
    /// The end of the data sent.
    end: i64,
    /// The minimum round trip so far.
    pub(super) base_ns: Option<i64>,
}

impl Echoes {
    pub(super) fn sent(&mut self, packet: &TracedPacket) {
        let Some((value, _)) = packet.timestamps else { return };
        let acked = packet.ack.map_or(0, |ack| ack.offset_bytes);
        if self.acks.len() >= MOST_ECHOES {
            self.acks.pop_front();
        }
        self.acks.push_back((packet.at_ns, acked));
        match self.sent.back_mut() {
            Some((last, _, of)) if *last == value => *of = acked.max(*of),
            _ => {
                if self.sent.len() >= MOST_ECHOES {
                    self.sent.pop_front();
                }
                self.sent.push_back((value, packet.at_ns, acked));
            }
        }
    }

    /// When the acknowledgement that released a packet of data left the phone, and what it
    /// acknowledged.
    pub(super) fn released(&mut self, packet: &TracedPacket) -> Option<(i64, i64)> {
        let (_, echo) = packet.timestamps.filter(|_| packet.payload_bytes > 0)?;
        // A retransmission was released by a timer or by another packet's loss.
        packet.event.is_none_or(|event| event == TcpEventKind::Ahead).then_some(())?;
        while let Some(&stamp) = self.sent.front()
            && stamp.0.wrapping_sub(echo).cast_signed() <= 0
        {
            self.last = Some(stamp);
            self.sent.pop_front();
        }
        let (_, at_ns, acked) = self.last.filter(|(value, ..)| *value == echo)?;
        Some((at_ns, acked))
    }

    /// The bytes in flight whenever an acknowledgement reached the server, before the time at which
    /// it sent up to `end`.
    pub(super) fn drained(&mut self, sent_ns: i64, end: i64) -> Vec<(i64, u64)> {
        let way_ns = self.base_ns.unwrap_or(0) / 2;
        let mut out = Vec::new();
        while let Some(&(left_ns, acked)) = self.acks.front()
            && left_ns.saturating_add(way_ns) < sent_ns
        {
            let flight = u64::try_from(self.end.saturating_sub(acked)).unwrap_or(0);
            out.push((left_ns.saturating_add(way_ns), flight));
            self.acks.pop_front();
        }
        self.end = self.end.max(end);
        out
    }
}
