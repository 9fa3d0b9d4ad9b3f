//! Since when data that arrived had been queued on the path, at least, from the acknowledgements
//! that its senders had not received, and from the senders' time stamps.

use airmile_model::Direction;

use super::SenderModel;
use super::path_change::PathChanges;
use crate::tcp::{TickClock, TracedPacket};

/// Maximum number of samples of a connection (chosen here).
const MAX_SAMPLES: usize = 100_000;
/// Maximum time between an arrival and the next one that shows its queue (chosen here: queues on
/// access links hold some seconds of data; "Bufferbloat: Dark Buffers in the Internet", CACM 2012).
const MAX_QUEUE_NS: i64 = 10_000_000_000;

/// Arrivals of a connection, with the time of the oldest acknowledgement that its sender had not
/// received by then.
#[derive(Debug, Default)]
pub(super) struct UnheardAcks {
    /// Both increase: a later arrival with an earlier acknowledgement replaces those before it.
    samples: Vec<(i64, i64)>,
}

impl UnheardAcks {
    /// Takes a packet that `model` has taken.
    pub(super) fn push(&mut self, packet: &TracedPacket, model: &SenderModel) {
        // A retransmission has waited for its loss.
        if packet.dir == Direction::Ul || packet.new_bytes == 0 || packet.event.is_some() {
            return;
        }
        if let Some(acked_ns) = model.oldest_unheard_ack_ns()
            && acked_ns < packet.at_ns
        {
            let acked_ns = acked_ns.saturating_add(model.upstream_rise_ns());
            push_rising(&mut self.samples, (packet.at_ns, acked_ns));
        }
    }
}

/// Minimum time between two samples of time stamps (chosen here).
const STAMP_NS: i64 = 5_000_000;
/// The minimum delay is that of packets within this time (chosen here: clocks of two hosts differ by
/// up to 100 ppm, which is 10 ms).
const DRIFT_NS: i64 = 100_000_000_000;

/// Ticks of clocks that are fine enough to show a queue, in nanoseconds, with the maximum of the mean
/// of a flow that has it, as a queue that grows stretches the mean (chosen here, so that 300 and 200 Hz
/// are none of them).
const TICKS: [(f64, f64); 3] = [(1e6, 1.3), (4e6, 1.2), (1e7, 1.2)];
/// Minimum of the mean (chosen here: a queue that the flow begins with shortens it).
const LEAST_OF_TICK: f64 = 0.985;
/// A shorter delay is that of scheduling (chosen here, as for verdicts).
const MIN_STAMPED_NS: i64 = 20_000_000;

/// Arrivals of a connection, with the time stamp that each carries (RFC 7323): when it was sent, by the
/// clock of its sender.
#[derive(Debug, Default)]
pub(super) struct SendStamps {
    clock: TickClock,
    /// When a packet arrived, and its time stamp in ticks after the first; both increase.
    samples: Vec<(i64, i64)>,
    last: Option<u32>,
    ticks: i64,
}

impl SendStamps {
    pub(super) fn push(&mut self, packet: &TracedPacket) {
        let (Direction::Dl, Some((stamp, _))) = (packet.dir, packet.timestamps) else { return };
        self.clock.push(packet.at_ns, stamp);
        let advance = self.last.map_or(0, |last| stamp.wrapping_sub(last).cast_signed());
        if advance < 0 {
            return;
        }
        self.last = Some(stamp);
        self.ticks = self.ticks.saturating_add(advance.into());
        let due = self.samples.last().is_none_or(|(at, _)| packet.at_ns - at >= STAMP_NS);
        if due && self.samples.len() < MAX_SAMPLES {
            self.samples.push((packet.at_ns, self.ticks));
        }
    }

    /// Whether the tick of the sender's clock is known.
    pub(super) fn has_clock(&self) -> bool {
        self.tick_ns().is_some()
    }

    /// When the last of its samples arrived.
    pub(super) fn last_ns(&self) -> Option<i64> {
        self.samples.last().map(|(at, _)| *at)
    }

    fn tick_ns(&self) -> Option<f64> {
        let mean_ns = self.clock.mean_ns()?;
        let fits =
            |(tick_ns, most): &(f64, f64)| (LEAST_OF_TICK..=*most).contains(&(mean_ns / tick_ns));
        TICKS.iter().find(|one| fits(one)).map(|(tick_ns, _)| *tick_ns)
    }

    /// When queued packets arrived, and when they would have arrived with the minimum delay of their
    /// connection; none if the tick of the clock is unknown.
    pub(super) fn queued(&self) -> Vec<(i64, i64)> {
        let Some(tick_ns) = self.tick_ns() else { return Vec::new() };
        let due_ns = |(at, ticks): &(i64, i64)| {
            let sent_ns = (*ticks as f64 * tick_ns) as i64;
            (sent_ns, at.saturating_sub(sent_ns))
        };
        let mut changes = PathChanges::default();
        self.samples.iter().for_each(|one| changes.push(one.0, due_ns(one).1));
        let due_ns = |one: &(i64, i64)| {
            let (sent_ns, late_ns) = due_ns(one);
            let rise_ns = changes.rise_at_ns(one.0);
            (sent_ns.saturating_add(rise_ns), late_ns.saturating_sub(rise_ns))
        };
        let near = |a: &(i64, i64), b: &(i64, i64)| a.0 / DRIFT_NS == b.0 / DRIFT_NS;
        let parts: Vec<&[(i64, i64)]> = self.samples.chunk_by(near).collect();
        let least = |part: &&[(i64, i64)]| part.iter().map(|one| due_ns(one).1).min();
        let least: Vec<i64> = parts.iter().filter_map(least).collect();
        let mut out = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            // A queue may last for the whole part.
            let around = least.iter().take(n + 2).skip(n.saturating_sub(1));
            let least_ns = around.min().copied().unwrap_or(0);
            // A packet was sent up to a tick after the time of its stamp.
            let late_ns = least_ns.saturating_add(tick_ns as i64);
            out.extend(part.iter().filter_map(|one| {
                let queued_ns = due_ns(one).0.saturating_add(late_ns);
                let delay_ns = one.0.saturating_sub(queued_ns);
                (MIN_STAMPED_NS..=MAX_QUEUE_NS).contains(&delay_ns).then_some((one.0, queued_ns))
            }));
        }
        out
    }
}

/// Appends a sample, and removes those that it makes useless.
fn push_rising(samples: &mut Vec<(i64, i64)>, sample: (i64, i64)) {
    while samples.pop_if(|last| last.1 >= sample.1).is_some() {}
    if samples.len() < MAX_SAMPLES {
        samples.push(sample);
    }
}

/// A lower bound of the downlink's queue at each time.
///
/// Data that left its server before an acknowledgement reached it would have arrived, without a
/// queue, a minimum round trip after that acknowledgement at the latest. A queue keeps the order:
/// what arrived earlier had entered it earlier. The connections of a phone share the slowest link. So
/// do time stamps show a queue: by how much a packet took longer than the fastest of its connection.
#[derive(Debug, Default)]
pub struct DownlinkDelay {
    /// When data arrived, and by when it was queued; both increase.
    samples: Vec<(i64, i64)>,
}

impl DownlinkDelay {
    /// From the connections of a phone and their minimum round trips, with times moved by `place`.
    pub(super) fn from_connections<'a>(
        connections: impl Iterator<Item = (&'a UnheardAcks, &'a SendStamps, i64)>,
        place: impl Fn(i64) -> i64,
    ) -> Self {
        let mut all: Vec<(i64, i64)> = connections
            .flat_map(|(one, stamps, base_ns)| {
                let unheard = one.samples.iter();
                let unheard = unheard.map(move |(at, acked)| (*at, acked.saturating_add(base_ns)));
                unheard.chain(stamps.queued())
            })
            .filter(|(at, queued)| queued < at)
            .map(|(at, queued)| (place(at), place(queued)))
            .collect();
        all.sort_unstable();
        let mut samples = Vec::new();
        all.into_iter().for_each(|sample| push_rising(&mut samples, sample));
        Self { samples }
    }

    /// When a queue of at least this length was not empty: from when data was queued to when it
    /// arrived; not merged.
    pub fn queues(&self, least_ns: i64) -> impl Iterator<Item = (i64, i64)> {
        let long = self.samples.iter().filter(move |(at, queued)| at - queued >= least_ns);
        long.map(|(at, queued)| (*queued, *at))
    }

    /// By when data that arrived at `at_ns` was queued; `at_ns` if the packets show no queue.
    #[must_use]
    pub fn queued_by_ns(&self, at_ns: i64) -> i64 {
        let next = self.samples.partition_point(|(at, _)| *at < at_ns);
        let near = self.samples.get(next).filter(|(at, _)| at - at_ns <= MAX_QUEUE_NS);
        near.map_or(at_ns, |(_, queued)| (*queued).min(at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(connections: &[(&[(i64, i64)], i64)]) -> DownlinkDelay {
        let all: Vec<(UnheardAcks, i64)> = connections
            .iter()
            .map(|(samples, base)| {
                let mut one = UnheardAcks::default();
                samples.iter().for_each(|sample| push_rising(&mut one.samples, *sample));
                (one, *base)
            })
            .collect();
        let none = SendStamps::default();
        DownlinkDelay::from_connections(all.iter().map(|(one, base)| (one, &none, *base)), |ns| ns)
    }

    #[test]
    fn what_arrived_earlier_was_queued_earlier() {
        // Data at 1000 whose sender had not received the acknowledgement of 400; minimum round
        // trip 50.
        let delay = delay(&[(&[(1_000, 400), (1_100, 900)], 50), (&[(990, 980)], 50)]);
        assert_eq!(delay.queued_by_ns(1_000), 450);
        // Another connection's first byte, shortly before, and one long before.
        assert_eq!(delay.queued_by_ns(950), 450);
        assert_eq!(delay.queued_by_ns(300), 300);
        // Later data shows a shorter queue.
        assert_eq!(delay.queued_by_ns(1_001), 950);
        assert_eq!(delay.queued_by_ns(1_101), 1_101);
        assert_eq!(delay.queues(100).collect::<Vec<_>>(), [(450, 1_000), (950, 1_100)]);
        assert_eq!(delay.queues(500).collect::<Vec<_>>(), [(450, 1_000)]);
    }

    #[test]
    fn acknowledgements_within_the_minimum_round_trip_show_no_queue() {
        let delay = delay(&[(&[(1_000, 960)], 50)]);
        assert_eq!(delay.queued_by_ns(1_000), 1_000);
    }

    fn stamped(at_us: i64, stamp: u32) -> TracedPacket {
        TracedPacket {
            flow: 1,
            user: 1,
            at_ns: at_us * 1_000,
            dir: Direction::Dl,
            seq: airmile_model::packet::SeqNum(0),
            flags: airmile_model::packet::TcpFlags::ACK,
            timestamps: Some((stamp, 0)),
            event: None,
            offset_bytes: 0,
            payload_bytes: 1_000,
            new_bytes: 1_000,
            flight_bytes: 0,
            ack: None,
        }
    }

    /// Two seconds of data each 10 ms; the clock of its sender has 1 ms and wraps. What is sent from
    /// 1,000 to 1,500 ms waits for 300 ms, without an acknowledgement that would show it.
    #[test]
    fn time_stamps_show_a_queue_without_an_acknowledgement() {
        const MS: i64 = 1_000_000;
        let mut stamps = SendStamps::default();
        for sent_ms in (0..2_000).step_by(10) {
            let queue_ms = if (1_000..1_500).contains(&sent_ms) { 300 } else { 0 };
            let packet =
                stamped((sent_ms + 40 + queue_ms) * 1_000, (sent_ms as u32).wrapping_sub(700));
            stamps.push(&packet);
        }
        let unheard = UnheardAcks::default();
        let each = std::iter::once((&unheard, &stamps, 50 * MS));
        let delay = DownlinkDelay::from_connections(each, |ns| ns);
        let queued_ms = |at_ms: i64| at_ms - delay.queued_by_ns(at_ms * MS) / MS;
        assert_eq!([900, 1_400, 1_700, 1_900].map(queued_ms), [0, 299, 299, 0]);
    }

    /// Ticks of 10 Hz, and of 300 Hz as of old kernels, show no queue where there is none.
    #[test]
    fn coarse_and_unusual_clocks_show_no_queue() {
        for tick_us in [100_000, 3_333, 10_000, 5_000, 4_000, 1_000] {
            let mut stamps = SendStamps::default();
            (0..1_000).for_each(|n: i64| {
                let sent_us = n * 10_000;
                stamps.push(&stamped(sent_us + 40_000, (sent_us / tick_us) as u32));
            });
            assert_eq!(stamps.queued(), [], "{tick_us} us");
        }
    }
}
