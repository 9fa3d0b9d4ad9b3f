//! When a server sent the data that arrived at a phone, from the time stamps that it echoes.

use std::collections::VecDeque;

use airmile_model::TcpEventKind;

use super::TracedPacket;

/// Maximum number of remembered time stamps (chosen here, as for verdicts).
const MOST_ECHOES: usize = 4_096;

/// Time stamps of a phone's acknowledgements, on their way to the server and back (RFC 7323, 4.3),
/// as in `airmile_blind`, whose round trips the verdicts use.
#[derive(Debug, Default)]
pub struct Echoes {
    /// TSval, the time it was first sent, and the last acknowledgement with it.
    sent: VecDeque<(u32, i64, i64)>,
    last: Option<(u32, i64, i64)>,
    /// Times of acknowledgements without a known later send, and what they acknowledged.
    acks: VecDeque<(i64, i64)>,
    /// The end of the data sent.
    end: i64,
    /// The last TSval that came back without data.
    answered: Option<u32>,
    /// The minimum round trip so far.
    pub base_ns: Option<i64>,
}

/// The acknowledgement that released a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// When it left the phone.
    pub at_ns: i64,
    /// What it acknowledged.
    pub acked: i64,
    /// Whether the packet waited for its application, so that `at_ns` is the latest possible.
    pub waited: bool,
}

impl Echoes {
    /// Takes a packet of the phone.
    pub fn sent(&mut self, packet: &TracedPacket) {
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
    /// acknowledged. A time stamp that the server has echoed without data, as it does while the
    /// application prepares an answer, released nothing: such data came by the minimum round trip,
    /// and its own is unknown.
    pub fn released(&mut self, packet: &TracedPacket) -> Option<Released> {
        let (_, echo) = packet.timestamps?;
        // A retransmission was released by a timer or by another packet's loss.
        packet.event.is_none_or(|event| event == TcpEventKind::Ahead).then_some(())?;
        while let Some(&stamp) = self.sent.front()
            && stamp.0.wrapping_sub(echo).cast_signed() <= 0
        {
            self.last = Some(stamp);
            self.sent.pop_front();
        }
        let (value, left_ns, acked) = self.last.filter(|(value, ..)| *value == echo)?;
        if packet.payload_bytes == 0 {
            self.answered = Some(value);
            return None;
        }
        let waited = self.answered == Some(value);
        let at_ns = match waited {
            true => left_ns.max(packet.at_ns.saturating_sub(self.base_ns?)),
            false => left_ns,
        };
        Some(Released { at_ns, acked, waited })
    }

    /// The bytes in flight whenever an acknowledgement reached the server, before the time at which
    /// it sent up to `end`.
    pub fn drained(&mut self, sent_ns: i64, end: i64) -> Vec<(i64, u64)> {
        let out = self.settled(sent_ns);
        self.end = self.end.max(end);
        out
    }

    /// The bytes in flight whenever an acknowledgement reached the server, until a time by which all
    /// earlier data has arrived.
    pub fn settled(&mut self, until_ns: i64) -> Vec<(i64, u64)> {
        let way_ns = self.base_ns.unwrap_or(0) / 2;
        let mut out = Vec::new();
        while let Some(&(left_ns, acked)) = self.acks.front()
            && left_ns.saturating_add(way_ns) < until_ns
        {
            let flight = u64::try_from(self.end.saturating_sub(acked)).unwrap_or(0);
            out.push((left_ns.saturating_add(way_ns), flight));
            self.acks.pop_front();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Direction;
    use airmile_model::packet::{SeqNum, TcpFlags};

    use super::super::TracedAck;
    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(ms: i64, dir: Direction, bytes: u32, timestamps: (u32, u32)) -> TracedPacket {
        TracedPacket {
            flow: 1,
            user: 1,
            at_ns: ms * MS,
            dir,
            seq: SeqNum(0),
            flags: TcpFlags::ACK,
            timestamps: Some(timestamps),
            event: None,
            offset_bytes: 0,
            payload_bytes: bytes,
            new_bytes: bytes.into(),
            flight_bytes: 0,
            ack: Some(TracedAck {
                offset_bytes: 500,
                rwnd_bytes: None,
                duplicate: false,
                flight_bytes: 0,
                sack: [(0, 0); 4],
            }),
        }
    }

    /// A request is acknowledged after 48 ms and answered after 450: the answer's echo is of the
    /// request, and its round trip is not 450 ms.
    #[test]
    fn an_answer_after_an_acknowledgement_was_not_released_by_the_request() {
        let mut echoes = Echoes { base_ns: Some(40 * MS), ..Echoes::default() };
        echoes.sent(&packet(0, Direction::Ul, 300, (7, 1)));
        assert_eq!(echoes.released(&packet(48, Direction::Dl, 0, (90, 7))), None);
        let answer = echoes.released(&packet(450, Direction::Dl, 1_400, (91, 7)));
        assert_eq!(answer, Some(Released { at_ns: 410 * MS, acked: 500, waited: true }));
        // Data that the next acknowledgement releases.
        echoes.sent(&packet(451, Direction::Ul, 0, (8, 91)));
        let next = echoes.released(&packet(500, Direction::Dl, 1_400, (92, 8)));
        assert_eq!(next, Some(Released { at_ns: 451 * MS, acked: 500, waited: false }));
    }
}
