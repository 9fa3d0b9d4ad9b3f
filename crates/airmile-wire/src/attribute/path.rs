//! Queueing between server and phone, from captures at both ends.

use super::path_change::PathChanges;

/// A packet whose delay exceeds the minimum by this waited in a queue (chosen here: the
/// air interface alone, with HARQ and scheduling, varies by 10 to 20 ms).
const SLACK_NS: i64 = 20_000_000;
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

/// What captures at both ends show of the downlink path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathQueue {
    /// Spans in which packets were queued, in order and without overlaps.
    spans: Vec<(i64, i64)>,
    /// First and last time covered by both captures.
    seen: Option<(i64, i64)>,
    /// When lost datagrams would have arrived without a queue, in order.
    lost_ns: Vec<i64>,
}

impl PathQueue {
    /// From packets seen at both ends; the minimum delay stands for an empty path, until the path
    /// changes.
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
        let Some(base_ns) = passages.iter().map(delay).min() else { return Self::default() };
        let seen = passages.iter().map(|one| one.arrived_ns);
        let seen = seen.clone().min().zip(seen.max());
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for one in passages.iter().filter(|one| delay(one).saturating_sub(base_ns) > SLACK_NS) {
            let (from, to) =
                (one.arrived_ns.saturating_sub(delay(one).saturating_sub(base_ns)), one.arrived_ns);
            match spans.last_mut() {
                Some(last) if from <= last.1.saturating_add(BRIDGE_NS) => last.1 = last.1.max(to),
                _ => spans.push((from, to)),
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
    pub(super) fn lost_in(&self, from_ns: i64, to_ns: i64) -> bool {
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
        let clear_ns = until.filter(|span| span.1 >= to_ns).map_or(to_ns, |span| span.0);
        Some(clear_ns).filter(|ns| *ns > from_ns)
    }

    /// The queueing spans that touch a span.
    pub fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &(i64, i64)> {
        let first = self.spans.partition_point(|span| span.1 <= from_ns);
        self.spans.iter().skip(first).take_while(move |span| span.0 < to_ns)
    }

    /// Moves the times to another clock.
    pub(crate) fn set_clock(&mut self, line: &crate::clocks::ClockLine) {
        let to = |ns: i64| line.to_reference(ns);
        for span in &mut self.spans {
            *span = (to(span.0), to(span.1));
        }
        self.seen = self.seen.map(|(from, until)| (to(from), to(until)));
        self.lost_ns.iter_mut().for_each(|ns| *ns = to(*ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent every 10 ms, and the delay of each.
    fn queue(delays_ms: &[i64]) -> Vec<(i64, i64)> {
        let passages = delays_ms.iter().enumerate().map(|(n, delay)| {
            let sent_ns = n as i64 * 10_000_000;
            Passage { sent_ns, arrived_ns: sent_ns + delay * 1_000_000 }
        });
        let queue = PathQueue::new(passages.collect());
        queue.spans.iter().map(|(a, b)| (a / 1_000_000, b / 1_000_000)).collect()
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
    fn what_takes_longer_than_the_least_waited() {
        assert_eq!(queue(&[30, 31, 38, 44, 30]), []);
        // The third packet reaches the queue at 50 ms, and arrives at 120 ms.
        assert_eq!(queue(&[30, 30, 100, 90, 80, 30]), [(50, 120)]);
        assert_eq!(queue(&[30, 80, 30, 30, 30, 30, 30, 30, 30, 80]), [(40, 90), (120, 170)]);
        assert_eq!(queue(&[]), []);
    }
}
