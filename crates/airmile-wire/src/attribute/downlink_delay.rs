//! Since when data that arrived had been queued on the path, at least, from the acknowledgements
//! that its senders had not received.

use airmile_model::Direction;

use super::SenderModel;
use crate::tcp::TracedPacket;

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
            push_rising(&mut self.samples, (packet.at_ns, acked_ns));
        }
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
/// what arrived earlier had entered it earlier. The connections of a phone share the slowest link.
#[derive(Debug, Default)]
pub struct DownlinkDelay {
    /// When data arrived, and by when it was queued; both increase.
    samples: Vec<(i64, i64)>,
}

impl DownlinkDelay {
    /// From the connections of a phone, with times moved by `place`.
    pub(super) fn from_connections<'a>(
        connections: impl Iterator<Item = (&'a UnheardAcks, i64)>,
        place: impl Fn(i64) -> i64,
    ) -> Self {
        let mut all: Vec<(i64, i64)> = connections
            .flat_map(|(one, base_ns)| {
                one.samples.iter().map(move |(at, acked)| (*at, acked.saturating_add(base_ns)))
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
        DownlinkDelay::from_connections(all.iter().map(|(one, base)| (one, *base)), |ns| ns)
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
}
