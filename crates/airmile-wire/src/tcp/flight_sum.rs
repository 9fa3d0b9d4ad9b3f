//! Bytes in flight over all connections of a capture.
//!
//! At a phone, when data was sent is known when it arrives: a queue later, which differs between
//! connections. Their states are put in order of time before they are added.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Maximum number of states that wait for their order (chosen here: 64 MB).
const MAX_WAITING: usize = 2_000_000;
/// A connection that sends nothing for this long has nothing in flight (chosen here: longer than
/// any sender's RTO).
const QUIET_NS: i64 = 1_000_000_000;

/// A connection's bytes in flight from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    at_ns: i64,
    /// Its place among those of the same time.
    order: u64,
    flow: u64,
    bytes: u64,
}

/// Adds the bytes in flight of connections.
#[derive(Debug, Default)]
pub struct FlightSum {
    waiting: BinaryHeap<Reverse<State>>,
    order: u64,
    /// Bytes in flight of each connection, and since when.
    open: HashMap<u64, (i64, u64)>,
    sum: u64,
    /// The sum is exact up to this time.
    checked_ns: i64,
}

impl FlightSum {
    /// Maximum time from sending data to its arrival that is put in order (chosen here: queues on
    /// access links hold some seconds of data).
    pub const LATE_NS: i64 = 10_000_000_000;

    /// Takes a connection's bytes in flight from a time on; not in order.
    pub fn push(&mut self, flow: u64, at_ns: i64, bytes: u64) {
        self.order += 1;
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push(Reverse(State { at_ns, order: self.order, flow, bytes }));
        }
    }

    /// The next time before `until_ns`, and the sum from then on.
    pub fn poll(&mut self, until_ns: i64) -> Option<(i64, u64)> {
        let State { at_ns, flow, bytes, .. } =
            self.waiting.peek().filter(|first| first.0.at_ns < until_ns)?.0;
        self.waiting.pop();
        let before = match bytes {
            0 => self.open.remove(&flow),
            _ => self.open.insert(flow, (at_ns, bytes)),
        };
        self.sum = self.sum.saturating_sub(before.map_or(0, |(_, bytes)| bytes));
        self.sum = self.sum.saturating_add(bytes);
        if at_ns.saturating_sub(self.checked_ns) >= QUIET_NS / 10 {
            self.checked_ns = at_ns;
            self.open.retain(|_, (last_ns, _)| at_ns.saturating_sub(*last_ns) < QUIET_NS);
            self.sum = self.open.values().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
        }
        Some((at_ns, self.sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn states_are_added_in_order_of_time() {
        let mut flight = FlightSum::default();
        // The first connection's data arrives late.
        for (flow, ms, bytes) in [(1, 100, 10), (2, 90, 5), (1, 130, 20), (2, 110, 0)] {
            flight.push(flow, ms * MS, bytes);
        }
        let mut found = Vec::new();
        while let Some((at_ns, sum)) = flight.poll(120 * MS) {
            found.push((at_ns / MS, sum));
        }
        assert_eq!(found, [(90, 5), (100, 15), (110, 10)]);
        assert_eq!(flight.poll(i64::MAX), Some((130 * MS, 20)));
        // A connection that is quiet for a second has nothing in flight.
        flight.push(3, 1_200 * MS, 7);
        assert_eq!(flight.poll(i64::MAX), Some((1_200 * MS, 7)));
        assert_eq!(flight.poll(i64::MAX), None);
    }
}
