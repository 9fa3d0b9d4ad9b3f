//! PDCP above a bearer with two legs: numbering on one side, reordering on the other (TS
//! 38.323, 5.2.2).

use std::collections::BTreeSet;

/// The receiving side. Packets are identified by COUNT.
#[derive(Debug, Clone)]
pub(super) struct PdcpReceiver {
    /// RX_DELIV: the first COUNT not delivered.
    next: u64,
    waiting: BTreeSet<u64>,
    /// Expiry of t-Reordering, and RX_REORD.
    reordering: Option<(i64, u64)>,
    t_reordering_ns: i64,
}

impl PdcpReceiver {
    pub(super) const fn new(t_reordering_ns: i64) -> Self {
        Self { next: 0, waiting: BTreeSet::new(), reordering: None, t_reordering_ns }
    }

    /// Processes a packet from a leg; returns the COUNTs that are now in order. `None`: too
    /// late, after t-Reordering has expired.
    pub(super) fn receive(&mut self, count: u64, now_ns: i64) -> Option<Vec<u64>> {
        if count < self.next {
            return None;
        }
        self.waiting.insert(count);
        let mut out = Vec::new();
        self.advance(&mut out);
        self.keep_reordering(now_ns);
        Some(out)
    }

    /// Checks whether t-Reordering has expired.
    pub(super) fn tick(&mut self, now_ns: i64) -> Vec<u64> {
        let mut out = Vec::new();
        let Some((_, until)) = self.reordering.filter(|(due_ns, _)| *due_ns <= now_ns) else {
            return out;
        };
        let later = self.waiting.split_off(&until);
        out.extend(std::mem::replace(&mut self.waiting, later));
        self.next = self.next.max(until);
        self.reordering = None;
        self.advance(&mut out);
        self.keep_reordering(now_ns);
        out
    }

    /// COUNTs waiting for an earlier packet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().copied()
    }

    fn advance(&mut self, out: &mut Vec<u64>) {
        while self.waiting.remove(&self.next) {
            out.push(self.next);
            self.next += 1;
        }
    }

    fn keep_reordering(&mut self, now_ns: i64) {
        if self.reordering.is_some_and(|(_, until)| self.next >= until) {
            self.reordering = None;
        }
        let last = self.waiting.last().copied();
        if let (None, Some(last)) = (self.reordering, last) {
            self.reordering = Some((now_ns + self.t_reordering_ns, last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_two_legs_come_in_order() {
        let mut pdcp = PdcpReceiver::new(100);
        assert_eq!(pdcp.receive(0, 0), Some(vec![0]));
        assert_eq!(pdcp.receive(2, 1), Some(vec![]));
        assert_eq!(pdcp.receive(3, 2), Some(vec![]));
        assert_eq!(pdcp.waiting().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(pdcp.receive(1, 3), Some(vec![1, 2, 3]));
        assert_eq!(pdcp.tick(1_000), Vec::<u64>::new());
    }

    #[test]
    fn t_reordering_goes_on_without_what_is_missing() {
        let mut pdcp = PdcpReceiver::new(100);
        assert_eq!(pdcp.receive(1, 0), Some(vec![]));
        assert_eq!(pdcp.receive(4, 50), Some(vec![]));
        assert_eq!(pdcp.tick(99), Vec::<u64>::new());
        // RX_REORD is 2: COUNT 1 goes, 4 waits for 2 and 3 from then on.
        assert_eq!(pdcp.tick(100), [1]);
        assert_eq!(pdcp.receive(0, 101), None);
        assert_eq!(pdcp.receive(2, 102), Some(vec![2]));
        assert_eq!(pdcp.tick(199), Vec::<u64>::new());
        assert_eq!(pdcp.tick(200), [4]);
        assert_eq!(pdcp.receive(3, 201), None);
    }
}
