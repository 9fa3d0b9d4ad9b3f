//! What a phone uploads on one connection, apart from its requests of downloads.

use airmile_model::Direction;

use super::sender_model::WaitSpan;
use super::split::INITIAL_WINDOW_BYTES;
use super::timeline::{ByteBins, WaitTimeline};
use crate::tcp::TracedPacket;

const WINDOW_BYTES: i64 = INITIAL_WINDOW_BYTES.cast_signed();

/// Ends of what the phone sent and received on a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Passed {
    sent: i64,
    received: i64,
}

/// Finds the uploads of one connection. An exchange is one if it sends more than an initial window and
/// receives at most that much more; until then its packets are held. After a download or an upload the
/// next exchange begins when all that was sent is acknowledged and answered.
#[derive(Debug, Default)]
pub struct Uploads {
    passed: Passed,
    /// At the start of the exchange.
    begun: Passed,
    acked: i64,
    answered: bool,
    /// Packets of this exchange, and what they waited for.
    held: Vec<(TracedPacket, Vec<WaitSpan>)>,
}

impl Uploads {
    /// Takes the next packet, and what the phone's sending waited for until it. Appends what uploads
    /// waited for to `sends`, and their payload to `sent`.
    pub fn push(
        &mut self,
        packet: &TracedPacket,
        waits: &[WaitSpan],
        (sends, sent): (&mut WaitTimeline, &mut ByteBins),
    ) {
        let up = packet.dir == Direction::Ul;
        let is_over = self.answered && self.acked >= self.passed.sent;
        if up && packet.new_bytes > 0 && is_over && (self.is_download() || self.is_large()) {
            (self.begun, self.answered) = (self.passed, false);
            self.held.clear();
        }
        let is_download = self.is_download();
        self.take(packet);
        if !self.is_large() {
            if !waits.is_empty() || up && packet.new_bytes > 0 {
                self.held.push((*packet, waits.to_vec()));
            }
        } else if !is_download {
            self.release((sends, sent));
            append(packet, waits, (sends, sent));
        }
    }

    /// Takes the end of the capture: appends what all connections hold, in the order of time, where no
    /// packets of a large upload passed after it.
    pub fn finish<'a>(
        all: impl Iterator<Item = &'a mut Self>,
        (sends, sent): (&mut WaitTimeline, &mut ByteBins),
    ) {
        let passed_ns = sends.spans().last().map_or(i64::MIN, |span| span.to_ns);
        let uploads = all.filter(|one| !one.is_download());
        let mut held: Vec<_> = uploads.flat_map(|one| one.held.drain(..)).collect();
        held.retain(|(packet, _)| packet.at_ns >= passed_ns);
        held.sort_by_key(|(packet, _)| packet.at_ns);
        for (packet, waits) in held {
            append(&packet, &waits, (sends, sent));
        }
    }

    fn release(&mut self, (sends, sent): (&mut WaitTimeline, &mut ByteBins)) {
        for (packet, waits) in self.held.drain(..) {
            append(&packet, &waits, (sends, sent));
        }
    }

    fn take(&mut self, packet: &TracedPacket) {
        let end = packet.offset_bytes + i64::from(packet.payload_bytes);
        if packet.dir == Direction::Ul {
            self.passed.sent = self.passed.sent.max(end);
            return;
        }
        self.passed.received = self.passed.received.max(end);
        self.acked = self.acked.max(packet.ack.map_or(0, |ack| ack.offset_bytes));
        self.answered |= packet.new_bytes > 0;
    }

    /// Whether the exchange sent more than an initial window.
    const fn is_large(&self) -> bool {
        self.passed.sent - self.begun.sent > WINDOW_BYTES
    }

    /// Whether it received more than it sent, and an initial window.
    const fn is_download(&self) -> bool {
        let sent_bytes = self.passed.sent - self.begun.sent;
        self.passed.received - self.begun.received > sent_bytes + WINDOW_BYTES
    }
}

fn append(
    packet: &TracedPacket,
    waits: &[WaitSpan],
    (sends, sent): (&mut WaitTimeline, &mut ByteBins),
) {
    let up = packet.dir == Direction::Ul;
    sends.push(waits, up);
    if up {
        sent.add(packet.at_ns, packet.new_bytes);
    }
}
