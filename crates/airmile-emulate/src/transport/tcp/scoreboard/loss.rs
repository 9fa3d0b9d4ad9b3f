//! Determines which segments count as lost.

use super::{DUP_THRESH, Latest, Scoreboard, SentSegment};

impl Scoreboard {
    /// Bytes considered lost since the last call.
    pub(crate) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.newly_lost_bytes)
    }

    /// Whether SACK has reported DupThresh segments, of any size (RFC 8985, 6.2 step 4).
    pub(crate) const fn sacked_dup_thresh(&self) -> bool {
        self.sacked_segments >= DUP_THRESH
    }

    /// RFC 6675, IsLost: DupThresh ranges or the bytes of more than DupThresh - 1 segments
    /// have arrived above. Returns the bytes newly considered lost.
    pub(crate) fn find_lost_by_sack(&mut self, mss_bytes: u64) -> u64 {
        let (mut ranges, mut bytes) = (0, 0);
        let enough = self.sacked.ranges().iter().rev().find(|range| {
            ranges += 1;
            bytes += range.end - range.start;
            ranges >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * mss_bytes
        });
        let below = enough.map_or(0, |range| range.start);
        self.mark_lost_below(below)
    }

    fn mark_lost_below(&mut self, below: u64) -> u64 {
        let mut lost_bytes = 0;
        let mut index = self.index_of(self.lost_below);
        while let Some(sent) = self.sent.get(index) {
            if sent.range.start >= below {
                break;
            }
            if !sent.sacked && !sent.lost {
                lost_bytes += sent.bytes();
                self.change(index, |sent| sent.lost = true);
            }
            index += 1;
        }
        self.lost_below = self.lost_below.max(below);
        lost_bytes
    }

    /// Considers the first segment lost (RFC 6582, without SACK).
    pub(crate) fn lose_first(&mut self) -> u64 {
        let bytes = self.sent.front().filter(|s| !s.lost).map_or(0, SentSegment::bytes);
        self.change(0, |sent| {
            sent.lost = true;
            sent.resent = false;
        });
        bytes
    }

    /// RFC 5681, 3.1: after a timeout everything that has not arrived is considered lost,
    /// including retransmissions. SACK information is kept (RFC 6675, 5.1).
    pub(crate) fn lose_all(&mut self) {
        for index in 0..self.sent.len() {
            self.change(index, |sent| {
                sent.lost = true;
                sent.resent = false;
            });
        }
        self.lost_below = self.sent.back().map_or(self.lost_below, |s| s.range.end);
        self.order.clear();
    }

    /// Revokes all losses. A segment that did not arrive after all is again found by time, after
    /// data that arrives from now on: what has arrived may have been a resent segment's first
    /// transmission (RFC 8985, 6.2 step 2).
    pub(crate) fn forgive(&mut self, rack: bool) {
        self.latest = None;
        if rack {
            let revoked = self.sent.iter().filter(|sent| sent.waits_to_be_resent());
            self.order.extend(revoked.map(|s| (s.sent_ns, s.range.end, s.transmissions)));
            self.order.make_contiguous().sort_unstable();
        }
        for index in 0..self.sent.len() {
            self.change(index, |sent| sent.lost = false);
        }
        self.lost_below = 0;
    }

    /// RFC 8985, 6.2 step 5: a segment is lost if it was sent long enough before one that
    /// has arrived. Returns the bytes newly considered lost, and when to check again.
    pub(crate) fn find_lost_by_time(
        &mut self,
        now_ns: i64,
        reorder_window_ns: i64,
    ) -> (u64, Option<i64>) {
        let Some(latest) = self.latest else { return (0, None) };
        let mut lost_bytes = 0;
        while let Some(&(sent_ns, end, transmissions)) = self.order.front() {
            let index = self.index_of(end - 1);
            let live = self.sent.get(index).is_some_and(|s| {
                s.range.end == end && s.transmissions == transmissions && !s.sacked
            });
            if live {
                if latest <= (Latest { sent_ns, end }) {
                    break;
                }
                let due_ns = sent_ns + self.rack_rtt_ns + reorder_window_ns;
                if due_ns > now_ns {
                    return (lost_bytes, Some(due_ns));
                }
                let lost = self.sent.get(index).is_some_and(|s| !s.lost || s.resent);
                if lost {
                    lost_bytes += self.sent.get(index).map_or(0, SentSegment::bytes);
                    self.change(index, |sent| {
                        sent.lost = true;
                        sent.resent = false;
                    });
                }
            }
            self.order.pop_front();
        }
        (lost_bytes, None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Acked;
    use super::*;

    /// The acknowledgement of a first transmission, after a timeout that was not necessary, does not
    /// show that what was sent before the retransmission is lost (RFC 8985, 6.2 step 2).
    #[test]
    fn a_timeout_in_vain_loses_nothing_again() {
        let mut board = Scoreboard::default();
        let second = 1_000_000_000;
        for n in 0..10 {
            board.on_sent(n as i64, n * 100..(n + 1) * 100, true);
        }
        board.lose_all();
        board.on_resent(second, 0, true);
        board.on_ack(second + 60_000_000, 100, Some(50_000_000), &mut Acked::default());
        board.forgive(true);
        board.on_ack(second + 61_000_000, 200, Some(50_000_000), &mut Acked::default());
        assert_eq!(board.find_lost_by_time(second + 61_000_000, 0), (0, None));
        board.check();
    }
}
