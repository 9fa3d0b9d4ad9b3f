//! The queue of a phone's own upload on the way to its server, from the phone's packets alone.

use airmile_model::Direction;

use super::downlink_delay::SendStamps;
use super::path::{Passage, PathQueue};
use super::uplink_delay::UploadRoundTrips;
use crate::tcp::TracedPacket;

/// One connection of the phone.
///
/// The round trip of uploaded data includes the queues of both ways. The server's time stamps show how
/// long its acknowledgement took (RFC 7323, 3): the rest is the way to the server.
#[derive(Debug, Default)]
pub struct UploadQueue {
    uploads: UploadRoundTrips,
    stamps: SendStamps,
}

impl UploadQueue {
    /// Takes the next packet.
    pub fn push(&mut self, packet: &TracedPacket) {
        self.uploads.push(packet);
        if packet.dir == Direction::Dl && self.uploads.is_upload() {
            self.stamps.push(packet);
        }
    }

    /// The queue by all connections of a phone; nothing of those whose server's clock is unknown.
    #[must_use]
    pub fn path<'a>(connections: impl Iterator<Item = &'a Self> + Clone) -> PathQueue {
        let known = || connections.clone().filter(|one| one.stamps.has_clock());
        let least_ns = known().filter_map(|one| one.uploads.least_ns()).min().unwrap_or(0);
        PathQueue::new(known().flat_map(|one| one.passages(least_ns)).collect())
    }

    /// When data was sent, and when its acknowledgement would have come from a server `least_ns` away
    /// without a queue on the way to the phone.
    fn passages(&self, least_ns: i64) -> Vec<Passage> {
        let queued = self.stamps.queued();
        let above_ns = self.uploads.least_ns().unwrap_or(least_ns).saturating_sub(least_ns);
        let told = |(sent_ns, round_trip_ns): &&(i64, i64)| {
            self.stamps.last_ns().is_some_and(|last| sent_ns.saturating_add(*round_trip_ns) <= last)
        };
        let each = self.uploads.samples().iter().filter(told).map(|(sent_ns, round_trip_ns)| {
            let at_ns = sent_ns.saturating_add(*round_trip_ns);
            // A queue keeps the order: what arrived earlier had entered it earlier.
            let next = queued.partition_point(|(at, _)| *at < at_ns);
            let entered_ns = queued.get(next).map_or(at_ns, |(_, by)| at_ns.min(*by));
            let down_ns = at_ns.saturating_sub(entered_ns);
            let up_ns = round_trip_ns.saturating_sub(above_ns).saturating_sub(down_ns);
            Passage { sent_ns: *sent_ns, arrived_ns: sent_ns.saturating_add(up_ns.max(least_ns)) }
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tcp::TracedAck;

    const MS: i64 = 1_000_000;

    /// An upload of 20 s, whose data takes `up_ms` to the server and its acknowledgements `down_ms` back;
    /// the queued spans in seconds.
    fn queued(
        up_ms: impl Fn(i64) -> i64,
        down_ms: impl Fn(i64) -> i64,
        tick_ms: i64,
    ) -> Vec<(f64, f64)> {
        let mut packets = Vec::new();
        for n in 0..1_000_i64 {
            let sent_ms = n * 20;
            let heard_ms = sent_ms + up_ms(sent_ms);
            let at_ms = heard_ms + down_ms(heard_ms);
            let stamp = u32::try_from(heard_ms / tick_ms).unwrap();
            for (at_ms, dir, stamps, offset_bytes, acked, bytes) in [
                (sent_ms, Direction::Ul, (0, 0), n * 20_000, 0, 20_000),
                (at_ms, Direction::Dl, (stamp, 0), 0, (n + 1) * 20_000, 0),
            ] {
                packets.push(TracedPacket {
                    at_ns: at_ms * MS,
                    dir,
                    timestamps: (tick_ms > 0).then_some(stamps),
                    offset_bytes,
                    payload_bytes: bytes,
                    new_bytes: bytes.into(),
                    ack: Some(TracedAck::up_to(acked)),
                    ..TracedPacket::EXAMPLE
                });
            }
        }
        packets.sort_by_key(|one| one.at_ns);
        let mut one = UploadQueue::default();
        packets.iter().for_each(|packet| one.push(packet));
        let path = UploadQueue::path(std::iter::once(&one));
        let spans = path.touching(i64::MIN, i64::MAX);
        spans.map(|span| (span.from_ns as f64 / 1e9, span.to_ns as f64 / 1e9)).collect()
    }

    /// A delay that grows and falls between 5 and 10 s, to 500 ms.
    fn hill(ms: i64) -> i64 {
        30 + (2_500 - (ms - 7_500).abs()).max(0) / 5
    }

    #[test]
    fn the_way_to_the_server_is_told_from_the_way_back() {
        let up = queued(hill, |_| 30, 1);
        let [(from, to)] = up[..] else { panic!("{up:?}") };
        assert!((5.0..5.5).contains(&from) && (9.8..10.5).contains(&to), "{up:?}");
        assert_eq!(queued(|_| 30, hill, 1), []);
        // Both, one after the other.
        let both = queued(hill, |ms| hill(ms - 8_000), 1);
        assert_eq!(both, up);
    }

    /// The clock of the server ticks in an unknown time: either way may have the queue.
    #[test]
    fn coarse_clocks_tell_nothing() {
        assert_eq!(queued(hill, |_| 30, 100), []);
    }
}
