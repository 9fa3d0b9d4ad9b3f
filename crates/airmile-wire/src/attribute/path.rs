//! What waits on the way from the server to the phone, by captures at both.

/// Above the least delay by this, a packet waited in a queue (chosen here: the air alone,
/// with HARQ and scheduling, moves it by 10 to 20 ms).
const SLACK_NS: i64 = 20_000_000;
/// Queues between two packets that waited, this far apart, are one (chosen here: packets are
/// marked once in some kilobytes).
const BRIDGE_NS: i64 = 20_000_000;

/// Data that passed both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// When it left the server, in nanoseconds on the phone's clock, but for an offset that
    /// all passages share.
    pub sent_ns: i64,
    /// When it came to the phone, in nanoseconds.
    pub arrived_ns: i64,
}

/// What captures at both ends show of the way down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathQueue {
    /// Times in which something waited, in order and without overlaps.
    spans: Vec<(i64, i64)>,
    /// First and last time about which something is known.
    seen: Option<(i64, i64)>,
}

impl PathQueue {
    /// Of what passed both ends; the least delay stands for an empty way.
    #[must_use]
    pub fn new(mut passages: Vec<Passage>) -> Self {
        passages.sort_unstable();
        let delay = |one: &Passage| one.arrived_ns.saturating_sub(one.sent_ns);
        let Some(base_ns) = passages.iter().map(delay).min() else { return Self::default() };
        let seen = passages.iter().map(|one| one.arrived_ns);
        let seen = seen.clone().min().zip(seen.max());
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for one in passages.iter().filter(|one| delay(one) - base_ns > SLACK_NS) {
            let (from, to) = (one.sent_ns.saturating_add(base_ns), one.arrived_ns);
            match spans.last_mut() {
                Some(last) if from <= last.1.saturating_add(BRIDGE_NS) => last.1 = last.1.max(to),
                _ => spans.push((from, to)),
            }
        }
        Self { spans, seen }
    }

    /// Whether it is known for a time whether something waited.
    #[must_use]
    pub fn covers(&self, from_ns: i64, to_ns: i64) -> bool {
        self.seen.is_some_and(|(first, last)| from_ns >= first && to_ns <= last)
    }

    /// Times in which something waited, as far as they touch a time.
    pub fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &(i64, i64)> {
        let first = self.spans.partition_point(|span| span.1 <= from_ns);
        self.spans.iter().skip(first).take_while(move |span| span.0 < to_ns)
    }

    /// Sets the times to another clock.
    pub(crate) fn set_clock(&mut self, line: &crate::clocks::ClockLine) {
        let to = |ns: i64| line.to_reference(ns);
        for span in &mut self.spans {
            *span = (to(span.0), to(span.1));
        }
        self.seen = self.seen.map(|(from, until)| (to(from), to(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent each 10 ms, and how long each was on its way.
    fn queue(delays_ms: &[i64]) -> Vec<(i64, i64)> {
        let passages = delays_ms.iter().enumerate().map(|(n, delay)| {
            let sent_ns = n as i64 * 10_000_000;
            Passage { sent_ns, arrived_ns: sent_ns + delay * 1_000_000 }
        });
        let queue = PathQueue::new(passages.collect());
        queue.spans.iter().map(|(a, b)| (a / 1_000_000, b / 1_000_000)).collect()
    }

    #[test]
    fn what_takes_longer_than_the_least_waited() {
        assert_eq!(queue(&[30, 31, 38, 44, 30]), []);
        // The third is at the queue at 50 ms, and comes at 120 ms.
        assert_eq!(queue(&[30, 30, 100, 90, 80, 30]), [(50, 120)]);
        assert_eq!(queue(&[30, 80, 30, 30, 30, 30, 30, 30, 30, 80]), [(40, 90), (120, 170)]);
        assert_eq!(queue(&[]), []);
    }
}
