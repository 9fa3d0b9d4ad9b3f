//! Queueing between server and phone, from packets that passed at both.

use super::path_change::PathChanges;

/// A packet whose delay exceeds the minimum by this waited in a queue (chosen here: the
/// air interface alone, with HARQ and scheduling, varies by 10 to 20 ms).
pub const LEAST_QUEUE_NS: i64 = 20_000_000;
/// Two queued packets this near to each other were in the same queue (chosen here:
/// packets are marked once in some kilobytes).
const BRIDGE_NS: i64 = 20_000_000;

/// Maximum share of datagrams that are lost (chosen here: a transfer does not go on above it).
const MAX_LOST: f64 = 0.2;

/// Data seen at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// When it left the server, in nanoseconds on the phone's clock, up to an offset
    /// common to all passages.
    pub sent_ns: i64,
    /// When it came to the phone, in nanoseconds.
    pub arrived_ns: i64,
}

/// A span in which packets were queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedSpan {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// The longest time that one of them waited, in nanoseconds.
    pub most_ns: i64,
    /// Time without arrivals in it, in nanoseconds, each time [`LEAST_QUEUE_NS`] or longer: a queue is
    /// emptied packet by packet, and what RLC held back arrives at once.
    pub silent_ns: i64,
}

/// How many packets agree within [`LEAST_QUEUE_NS`] on the delay of an empty path: fewer may be pairs of
/// unlike packets, or a step of a clock (chosen here).
const AGREEING: usize = 3;

/// The delay of an empty path by the delays of its packets: the least on which some agree.
#[must_use]
pub fn base_delay_ns(delays: impl Iterator<Item = i64>) -> Option<i64> {
    let mut delays: Vec<i64> = delays.collect();
    delays.sort_unstable();
    let mut near = delays.windows(AGREEING);
    let agreed = near.find_map(|near| match near {
        [least, .., last] if last.saturating_sub(*least) <= LEAST_QUEUE_NS => Some(*least),
        _ => None,
    });
    agreed.or_else(|| delays.first().copied())
}

/// What is known of the queues of one way between server and phone, by captures at both ends or by the
/// phone's uploads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathQueue {
    /// In order and without overlaps.
    spans: Vec<QueuedSpan>,
    /// First and last time covered by both captures.
    seen: Option<(i64, i64)>,
    /// When lost datagrams would have arrived without a queue, in order.
    lost_ns: Vec<i64>,
}

impl PathQueue {
    /// From packets seen at both ends; the least delay on which some agree stands for an empty path,
    /// until the path changes.
    #[must_use]
    pub fn new(mut passages: Vec<Passage>) -> Self {
        passages.sort_unstable_by_key(|one| one.arrived_ns);
        let mut changes = PathChanges::default();
        for one in &passages {
            changes.push(one.arrived_ns, one.arrived_ns.saturating_sub(one.sent_ns));
        }
        passages.sort_unstable();
        let delay = |one: &Passage| {
            let delay_ns = one.arrived_ns.saturating_sub(one.sent_ns);
            delay_ns.saturating_sub(changes.rise_at_ns(one.arrived_ns))
        };
        let Some(base_ns) = base_delay_ns(passages.iter().map(delay)) else {
            return Self::default();
        };
        let seen = passages.iter().map(|one| one.arrived_ns);
        let seen = seen.clone().min().zip(seen.max());
        let mut spans: Vec<QueuedSpan> = Vec::new();
        let mut latest_ns = i64::MIN;
        for one in &passages {
            let gap_ns = one.arrived_ns.saturating_sub(latest_ns);
            latest_ns = latest_ns.max(one.arrived_ns);
            let most_ns = delay(one).saturating_sub(base_ns);
            if most_ns <= LEAST_QUEUE_NS {
                continue;
            }
            let (from_ns, to_ns) = (one.arrived_ns.saturating_sub(most_ns), one.arrived_ns);
            let silent_ns = if gap_ns >= LEAST_QUEUE_NS { gap_ns.min(most_ns) } else { 0 };
            match spans.last_mut() {
                Some(last) if from_ns <= last.to_ns.saturating_add(BRIDGE_NS) => {
                    last.to_ns = last.to_ns.max(to_ns);
                    last.most_ns = last.most_ns.max(most_ns);
                    last.silent_ns = last.silent_ns.saturating_add(silent_ns);
                }
                _ => spans.push(QueuedSpan { from_ns, to_ns, most_ns, silent_ns }),
            }
        }
        Self { spans, seen, lost_ns: Vec::new() }
    }

    /// Adds datagrams that were lost on the path: `sent_ns` is when they left the server, as in
    /// [`Passage`]; `arrived` is the number of those that arrived. More than a fifth is not loss,
    /// but what one of the captures lacks.
    #[must_use]
    pub fn with_lost(mut self, base_ns: i64, mut sent_ns: Vec<i64>, arrived: usize) -> Self {
        let Some((first, last)) = self.seen else { return self };
        sent_ns.sort_unstable();
        let arrive = sent_ns.into_iter().map(|ns| ns.saturating_add(base_ns));
        let lost: Vec<i64> = arrive.filter(|ns| (first..=last).contains(ns)).collect();
        if (lost.len() as f64) <= MAX_LOST * (arrived + lost.len()) as f64 {
            self.lost_ns = lost;
        }
        self
    }

    /// Whether a datagram was lost in a span.
    #[must_use]
    pub fn lost_in(&self, from_ns: i64, to_ns: i64) -> bool {
        let first = self.lost_ns.partition_point(|ns| *ns < from_ns);
        self.lost_ns.get(first).is_some_and(|ns| *ns <= to_ns)
    }

    /// Whether the captures cover a span.
    #[must_use]
    pub fn covers(&self, from_ns: i64, to_ns: i64) -> bool {
        self.seen.is_some_and(|(first, last)| from_ns >= first && to_ns <= last)
    }

    /// The last moment of a span without a queue.
    pub(super) fn last_clear_ns(&self, from_ns: i64, to_ns: i64) -> Option<i64> {
        let until = self.touching(from_ns, to_ns).last();
        let clear_ns = until.filter(|span| span.to_ns >= to_ns).map_or(to_ns, |span| span.from_ns);
        Some(clear_ns).filter(|ns| *ns > from_ns)
    }

    /// Share of a span in which packets were queued; `None` if both captures cover less than half of it.
    #[must_use]
    pub fn queued_share(&self, from_ns: i64, to_ns: i64) -> Option<f64> {
        let (first, last) = self.seen?;
        let (seen_from_ns, seen_to_ns) = (from_ns.max(first), to_ns.min(last));
        let seen_ns = seen_to_ns.saturating_sub(seen_from_ns);
        let queued_ns: i64 = self
            .touching(seen_from_ns, seen_to_ns)
            .map(|span| span.to_ns.min(seen_to_ns) - span.from_ns.max(seen_from_ns))
            .sum();
        let is_covered = seen_ns > 0 && seen_ns >= to_ns.saturating_sub(from_ns) / 2;
        is_covered.then(|| queued_ns as f64 / seen_ns as f64)
    }

    /// The queueing spans that touch a span.
    pub fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &QueuedSpan> {
        let first = self.spans.partition_point(|span| span.to_ns <= from_ns);
        self.spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
    }

    /// Moves the times to another clock.
    pub(crate) fn set_clock(&mut self, line: &crate::clocks::ClockLine) {
        let to = |ns: i64| line.to_reference(ns);
        for span in &mut self.spans {
            (span.from_ns, span.to_ns) = (to(span.from_ns), to(span.to_ns));
        }
        self.seen = self.seen.map(|(from, until)| (to(from), to(until)));
        self.lost_ns.iter_mut().for_each(|ns| *ns = to(*ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent every 10 ms, and the delay of each.
    fn path(delays_ms: &[i64]) -> PathQueue {
        let passages = delays_ms.iter().enumerate().map(|(n, delay)| {
            let sent_ns = n as i64 * 10_000_000;
            Passage { sent_ns, arrived_ns: sent_ns + delay * 1_000_000 }
        });
        PathQueue::new(passages.collect())
    }

    /// Starts and ends of its queues, in ms.
    fn queue(delays_ms: &[i64]) -> Vec<(i64, i64)> {
        let path = path(delays_ms);
        let spans = path.spans.iter();
        spans.map(|span| (span.from_ns / 1_000_000, span.to_ns / 1_000_000)).collect()
    }

    #[test]
    fn lost_datagrams_are_within_both_captures() {
        let passages = (0..100).map(|n| Passage { sent_ns: n * 10, arrived_ns: n * 10 + 30 });
        let queue = PathQueue::new(passages.collect());
        let lost = queue.clone().with_lost(30, vec![505, 5_000], 100);
        assert!(lost.lost_in(500, 600));
        assert!(!lost.lost_in(536, 600));
        assert!(!lost.lost_in(5_000, 6_000));
        // A capture without a third of the packets shows no losses.
        let missing = (0..33).map(|n| n * 30 + 5).collect();
        assert!(!queue.with_lost(30, missing, 100).lost_in(0, 2_000));
    }

    /// The route takes 60 ms more from a second and a half on: that is no queue. One of 80 ms behind
    /// it is.
    #[test]
    fn a_longer_route_is_no_queue() {
        let mut delays: Vec<i64> = (0..500).map(|n| 30 + n % 3).collect();
        delays.iter_mut().skip(150).for_each(|ms| *ms += 60);
        assert_eq!(queue(&delays), []);
        delays.iter_mut().skip(400).take(2).for_each(|ms| *ms += 80);
        assert_eq!(queue(&delays), [(4_090, 4_182)]);
    }

    #[test]
    fn the_share_of_a_span_in_which_packets_were_queued() {
        let path = path(&[30, 30, 100, 90, 80, 30, 30, 30, 30, 30]);
        let share =
            |from_ms: i64, to_ms: i64| path.queued_share(from_ms * 1_000_000, to_ms * 1_000_000);
        // Packets arrived from 30 to 120 ms, and those of 50 to 120 ms were queued.
        assert_eq!(share(30, 50), Some(0.0));
        assert_eq!(share(40, 60), Some(0.5));
        assert_eq!(share(50, 120), Some(1.0));
        // Of a span that begins before the first one, the part since then counts.
        assert_eq!(share(0, 60), Some(1.0 / 3.0));
        assert_eq!(share(0, 50), None);
        assert_eq!(share(200, 300), None);
        assert_eq!(PathQueue::default().queued_share(0, 100), None);
    }

    #[test]
    fn what_takes_longer_than_the_least_waited() {
        assert_eq!(queue(&[30, 31, 38, 44, 30]), []);
        // The third packet reaches the queue at 50 ms, and arrives at 120 ms.
        assert_eq!(queue(&[30, 30, 100, 90, 80, 30]), [(50, 120)]);
        assert_eq!(queue(&[30, 80, 30, 30, 30, 30, 30, 30, 30, 80]), [(40, 90), (120, 170)]);
        assert_eq!(queue(&[]), []);
        // One pair of unlike packets.
        assert_eq!(queue(&[30, 31, -4_000, 30, 33, 30]), []);
    }
}
