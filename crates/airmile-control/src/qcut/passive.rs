//! Matches passing acknowledgements to packets: round trips without a probe.

use std::collections::{HashMap, VecDeque};

use super::delay::HandoverMark;

/// A segment awaiting its acknowledgement.
#[derive(Debug, Clone, Copy)]
struct UnackedSegment {
    end: u32,
    handed_ns: i64,
    mark: HandoverMark,
    far: u64,
}

/// Outstanding segments of each flow.
#[derive(Debug, Clone, Default)]
pub(super) struct AckMatcher {
    flows: HashMap<u64, VecDeque<UnackedSegment>>,
}

/// Maximum number of flows, and of segments of each (chosen here).
const MAX_FLOWS: usize = 1_024;
const MAX_SEGMENTS: usize = 4_096;

/// Whether a sequence number is at or past another (RFC 9293, 3.4: modulo 2^32).
const fn reaches(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) < 1 << 31
}

impl AckMatcher {
    /// A segment with data is passed to the modem; `end` is the number after its data.
    pub(super) fn handed(
        &mut self,
        now_ns: i64,
        (flow, far): (u64, u64),
        end: u32,
        mark: HandoverMark,
    ) {
        // Flows that ended without an acknowledgement stay in the table: when it is full, a
        // few round trips are missed.
        if !self.flows.contains_key(&flow) && self.flows.len() >= MAX_FLOWS {
            self.flows.clear();
        }
        let segments = self.flows.entry(flow).or_default();
        // A retransmission: it is ambiguous which of the two was acknowledged (Karn).
        if segments.back().is_some_and(|last| reaches(last.end, end)) {
            segments.retain(|segment| segment.end != end);
            return;
        }
        segments.push_back(UnackedSegment { end, handed_ns: now_ns, mark, far });
        if segments.len() > MAX_SEGMENTS {
            segments.pop_front();
        }
    }

    /// Processes an acknowledgement of all data below `ack`, or of a block that ends there.
    /// Returns when the last segment that it covers was passed to the modem, its mark and
    /// its destination.
    pub(super) fn acknowledged(&mut self, flow: u64, ack: u32) -> Option<(i64, HandoverMark, u64)> {
        let segments = self.flows.get_mut(&flow)?;
        let mut last = None;
        while segments.front().is_some_and(|segment| reaches(ack, segment.end)) {
            last = segments.pop_front();
        }
        if segments.is_empty() {
            self.flows.remove(&flow);
        }
        last.map(|segment| (segment.handed_ns, segment.mark, segment.far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_answer_what_they_cover() {
        let mut passive = AckMatcher::default();
        // Wraps around the number space.
        for (n, end) in [(0, u32::MAX - 9), (1, 90), (2, 190)] {
            passive.handed(n, (1, 7), end, HandoverMark(n as u64));
        }
        assert_eq!(passive.acknowledged(2, 90), None);
        assert_eq!(passive.acknowledged(1, u32::MAX - 10), None);
        assert_eq!(passive.acknowledged(1, 100), Some((1, HandoverMark(1), 7)));
        assert_eq!(passive.acknowledged(1, 100), None, "twice");
        // Retransmitted: its acknowledgement is ambiguous.
        passive.handed(2, (1, 7), 240, HandoverMark(2));
        passive.handed(3, (1, 7), 190, HandoverMark(3));
        assert_eq!(passive.acknowledged(1, 190), None);
        // The next segment was sent once.
        assert_eq!(passive.acknowledged(1, 240), Some((2, HandoverMark(2), 7)));
        passive.handed(4, (1, 7), 290, HandoverMark(4));
        assert_eq!(passive.acknowledged(1, 290), Some((4, HandoverMark(4), 7)));
    }
}
