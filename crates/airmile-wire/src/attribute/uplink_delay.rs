//! By how much a phone's own upload delays what it sends, from the round trips of the uploaded
//! data.

use std::collections::VecDeque;

use airmile_model::Direction;

use super::INITIAL_WINDOW_BYTES;
use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;

/// A connection that sent less uploads nothing (chosen here).
const MIN_UPLOAD_BYTES: u64 = 50_000;
/// Data is part of an upload if at least this much is in flight with it: requests and their headers
/// are less (chosen here: the initial window).
const MIN_UPLOAD_FLIGHT_BYTES: i64 = INITIAL_WINDOW_BYTES.cast_signed();
/// Minimum time between two samples of a connection (chosen here).
const SAMPLE_NS: i64 = 20_000_000;
/// Maximum number of segments in flight that are followed (chosen here: 6 MB).
const MAX_SENT: usize = 4_096;
/// Maximum number of samples of a connection (chosen here: half an hour of them).
const MAX_SAMPLES: usize = 100_000;

/// Round trips of a connection's uploaded data.
#[derive(Debug, Default)]
pub(super) struct UploadRoundTrips {
    /// End of each segment in flight, when it passed, and the bytes in flight with it.
    sent: VecDeque<(i64, i64, i64)>,
    /// Acknowledged bytes.
    acked: i64,
    /// When a segment passed, and its round trip.
    samples: Vec<(i64, i64)>,
    least_ns: Option<i64>,
    bytes: u64,
}

impl UploadRoundTrips {
    /// Whether it has sent more than requests.
    pub(super) const fn is_upload(&self) -> bool {
        self.bytes >= MIN_UPLOAD_BYTES
    }

    /// When a segment of an upload passed, and its round trip, in nanoseconds.
    pub(super) fn samples(&self) -> &[(i64, i64)] {
        if self.is_upload() { &self.samples } else { &[] }
    }

    /// The least round trip of its data, in nanoseconds.
    pub(super) const fn least_ns(&self) -> Option<i64> {
        self.least_ns
    }

    pub(super) fn push(&mut self, packet: &TracedPacket) {
        if packet.dir == Direction::Ul {
            if packet.new_bytes > 0 {
                self.bytes = self.bytes.saturating_add(packet.new_bytes);
                let end = packet.offset_bytes.saturating_add(i64::from(packet.payload_bytes));
                if self.sent.len() < MAX_SENT {
                    self.sent.push_back((end, packet.at_ns, end.saturating_sub(self.acked)));
                }
            } else if packet.payload_bytes > 0 {
                // The next acknowledgement is ambiguous (Karn; RFC 6298, 3).
                self.sent.clear();
            }
            return;
        }
        let Some(ack) = packet.ack else { return };
        self.acked = self.acked.max(ack.offset_bytes);
        let mut newest = None;
        while let Some(&(_, at_ns, flight)) =
            self.sent.front().filter(|(end, ..)| *end <= ack.offset_bytes)
        {
            newest = Some((at_ns, flight));
            self.sent.pop_front();
        }
        let Some((at_ns, flight)) = newest else { return };
        let round_trip_ns = packet.at_ns.saturating_sub(at_ns);
        self.least_ns = Some(self.least_ns.map_or(round_trip_ns, |ns| ns.min(round_trip_ns)));
        if flight < MIN_UPLOAD_FLIGHT_BYTES {
            return;
        }
        let due =
            self.samples.last().is_none_or(|(last, _)| at_ns.saturating_sub(*last) >= SAMPLE_NS);
        if due && self.samples.len() < MAX_SAMPLES {
            self.samples.push((at_ns, round_trip_ns));
        }
    }
}

/// Delays of the phone's uplink while it uploaded.
#[derive(Debug, Default)]
pub struct UplinkDelay {
    /// When data was sent, and by how much its round trip was above the connection's minimum.
    samples: Vec<(i64, i64)>,
    /// Sums of the delays of the first samples: none, one, two, ...
    sums: Vec<i64>,
}

impl UplinkDelay {
    /// From the connections of a phone, with times moved to the clock of `line`.
    pub(super) fn from_connections<'a>(
        connections: impl Iterator<Item = &'a UploadRoundTrips>,
        line: Option<&ClockLine>,
    ) -> Self {
        let uploads = connections.filter(|one| one.is_upload());
        let mut samples: Vec<(i64, i64)> = uploads
            .flat_map(|one| {
                let least_ns = one.least_ns.unwrap_or(0);
                one.samples.iter().map(move |(at, rtt_ns)| (*at, rtt_ns.saturating_sub(least_ns)))
            })
            .map(|(at, ns)| (line.map_or(at, |line| line.to_reference(at)), ns))
            .collect();
        samples.sort_unstable();
        let mut sums = vec![0_i64];
        for (_, ns) in &samples {
            sums.push(sums.last().copied().unwrap_or(0).saturating_add(*ns));
        }
        Self { samples, sums }
    }

    /// Mean delay of data sent in a span, in nanoseconds; 0 without an upload.
    #[must_use]
    pub fn mean_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let first = self.samples.partition_point(|(at, _)| *at < from_ns);
        let last = self.samples.partition_point(|(at, _)| *at <= to_ns);
        let sum = |n: usize| self.sums.get(n).copied().unwrap_or(0);
        if last > first {
            return sum(last).saturating_sub(sum(first)) / (last - first) as i64;
        }
        // Between two samples: the one before, if its data was still queued.
        let before = first.checked_sub(1).and_then(|at| self.samples.get(at));
        let still = before.filter(|(at, ns)| at.saturating_add(*ns) >= from_ns);
        still.map_or(0, |(_, ns)| *ns)
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{SeqNum, TcpFlags};

    use super::*;
    use crate::tcp::TracedAck;

    const MS: i64 = 1_000_000;

    fn packet(ms: i64, dir: Direction, offset: i64, bytes: u32, acked: i64) -> TracedPacket {
        TracedPacket {
            flow: 1,
            user: 1,
            at_ns: ms * MS,
            dir,
            seq: SeqNum(0),
            flags: TcpFlags::ACK,
            timestamps: None,
            event: None,
            offset_bytes: offset,
            payload_bytes: bytes,
            new_bytes: bytes.into(),
            flight_bytes: 0,
            ack: Some(TracedAck {
                offset_bytes: acked,
                rwnd_bytes: None,
                duplicate: false,
                flight_bytes: 0,
                sack: [(0, 0); 4],
            }),
        }
    }

    #[test]
    fn round_trips_above_the_minimum_of_an_upload() {
        let mut one = UploadRoundTrips::default();
        // Sent at 0, 100 and 200 ms; acknowledged 50, 150 and 450 ms later.
        for (sent, acked, from) in [(0, 50, 0), (100, 250, 30_000), (300, 750, 60_000)] {
            one.push(&packet(sent, Direction::Ul, from, 30_000, 0));
            one.push(&packet(acked, Direction::Dl, 0, 0, from + 30_000));
        }
        let delay = UplinkDelay::from_connections(std::iter::once(&one), None);
        let check = |from: i64, to: i64, expected: i64| {
            assert_eq!(delay.mean_ns(from * MS, to * MS), expected * MS, "{from} to {to}");
        };
        check(0, 50, 0);
        check(0, 150, 50);
        check(250, 400, 400);
        // Its data was in the queue until 700 ms.
        check(500, 600, 400);
        check(800, 900, 0);
    }

    #[test]
    fn requests_are_no_upload() {
        let mut one = UploadRoundTrips::default();
        one.push(&packet(0, Direction::Ul, 0, 500, 0));
        one.push(&packet(400, Direction::Dl, 0, 0, 500));
        let delay = UplinkDelay::from_connections(std::iter::once(&one), None);
        assert_eq!(delay.mean_ns(0, 500 * MS), 0);
    }

    /// However many of them: their round trips show the queue in front of the responses.
    #[test]
    fn many_requests_are_no_upload() {
        let mut one = UploadRoundTrips::default();
        for n in 0..200 {
            let wait = if n < 5 { 40 } else { 400 };
            one.push(&packet(n * 500, Direction::Ul, n * 700, 700, n * 700));
            one.push(&packet(n * 500 + wait, Direction::Dl, 0, 0, n * 700 + 700));
        }
        assert!(one.bytes > MIN_UPLOAD_BYTES);
        let delay = UplinkDelay::from_connections(std::iter::once(&one), None);
        assert_eq!(delay.mean_ns(50_000 * MS, 60_000 * MS), 0);
    }
}
