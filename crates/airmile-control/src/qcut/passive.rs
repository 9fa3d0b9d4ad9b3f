//! Matches passing acknowledgements to packets: round trips without a probe.

use std::collections::{HashMap, VecDeque};

use super::delay::HandoverMark;

/// A segment awaiting its acknowledgement.
#[derive(Debug, Clone, Copy)]
struct UnackedSegment {
    end: u32,
    handed_ns: i64,
    /// Not sent before: its acknowledgement is not an earlier packet's.
    is_first: bool,
    mark: HandoverMark,
    far: u64,
}

/// One flow.
#[derive(Debug, Clone, Default)]
struct AckedFlow {
    /// Outstanding segments.
    segments: VecDeque<UnackedSegment>,
    /// The highest sequence number that was passed to the modem, and when a segment last was.
    highest: Option<u32>,
    handed_ns: i64,
}

/// Outstanding segments of each flow.
#[derive(Debug, Clone, Default)]
pub(super) struct AckMatcher {
    flows: HashMap<u64, AckedFlow>,
}

/// The segment that an acknowledgement answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnsweredSegment {
    /// When it was passed to the modem; `None` if it had been sent before: it is ambiguous which of
    /// the two was acknowledged (Karn; RFC 6298, 3).
    pub(super) handed_ns: Option<i64>,
    pub(super) mark: HandoverMark,
    /// Its destination.
    pub(super) far: u64,
}

/// Maximum number of flows, and of segments of each (chosen here).
const MAX_FLOWS: usize = 1_024;
const MAX_SEGMENTS: usize = 4_096;
/// After this time without a segment, lower numbers are another connection's, in ns (chosen here:
/// longer than timers wait between the first retransmissions).
const FORGET_NS: i64 = 30_000_000_000;

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
        if !self.flows.contains_key(&flow) && self.flows.len() >= MAX_FLOWS {
            self.flows.retain(|_, flow| !flow.segments.is_empty());
            // Flows that ended without an acknowledgement: a few round trips are missed.
            if self.flows.len() >= MAX_FLOWS {
                self.flows.clear();
            }
        }
        let flow = self.flows.entry(flow).or_default();
        if now_ns.saturating_sub(flow.handed_ns) > FORGET_NS {
            *flow = AckedFlow::default();
        }
        flow.handed_ns = now_ns;
        let segments = &mut flow.segments;
        if segments.back().is_some_and(|last| reaches(last.end, end)) {
            // A retransmission: the next new segment's acknowledgement covers it.
            segments.retain(|segment| segment.end != end);
            return;
        }
        let is_first = !flow.highest.is_some_and(|highest| reaches(highest, end));
        if is_first {
            flow.highest = Some(end);
        }
        segments.push_back(UnackedSegment { end, handed_ns: now_ns, is_first, mark, far });
        if segments.len() > MAX_SEGMENTS {
            segments.pop_front();
        }
    }

    /// Processes an acknowledgement of all data below `ack`, or of a block that ends there.
    /// Returns the last segment that it covers.
    pub(super) fn acknowledged(&mut self, flow: u64, ack: u32) -> Option<AnsweredSegment> {
        let segments = &mut self.flows.get_mut(&flow)?.segments;
        let mut last = None;
        while segments.front().is_some_and(|segment| reaches(ack, segment.end)) {
            last = segments.pop_front();
        }
        if segments.is_empty() {
            // An idle flow keeps its numbers alone.
            *segments = VecDeque::new();
        }
        last.map(|segment| AnsweredSegment {
            handed_ns: segment.is_first.then_some(segment.handed_ns),
            mark: segment.mark,
            far: segment.far,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_answer_what_they_cover() {
        let mut passive = AckMatcher::default();
        let first = |at: i64| {
            let mark = HandoverMark(at as u64);
            Some(AnsweredSegment { handed_ns: Some(at), mark, far: 7 })
        };
        // Wraps around the number space.
        for (n, end) in [(0, u32::MAX - 9), (1, 90), (2, 190)] {
            passive.handed(n, (1, 7), end, HandoverMark(n as u64));
        }
        assert_eq!(passive.acknowledged(2, 90), None);
        assert_eq!(passive.acknowledged(1, u32::MAX - 10), None);
        assert_eq!(passive.acknowledged(1, 100), first(1));
        assert_eq!(passive.acknowledged(1, 100), None, "twice");
        // Retransmitted: its acknowledgement is ambiguous.
        passive.handed(2, (1, 7), 240, HandoverMark(2));
        passive.handed(3, (1, 7), 190, HandoverMark(3));
        assert_eq!(passive.acknowledged(1, 190), None);
        // The next segment was sent once.
        assert_eq!(passive.acknowledged(1, 240), first(2));
        passive.handed(4, (1, 7), 290, HandoverMark(4));
        assert_eq!(passive.acknowledged(1, 290), first(4));
    }

    #[test]
    fn a_retransmission_after_all_was_acknowledged_has_no_round_trip() {
        let mut passive = AckMatcher::default();
        passive.handed(1, (1, 7), 100, HandoverMark(1));
        passive.handed(2, (1, 7), 200, HandoverMark(2));
        // A block that ends at 200: nothing is outstanding.
        assert!(passive.acknowledged(1, 200).is_some());
        // Sent again by a timer; the acknowledgement of the first one is just arriving.
        passive.handed(60, (1, 7), 100, HandoverMark(3));
        let answered = passive.acknowledged(1, 200).unwrap();
        assert_eq!((answered.handed_ns, answered.mark), (None, HandoverMark(3)));
        // Another connection with the same ports, long after.
        passive.handed(61 + FORGET_NS, (1, 7), 50, HandoverMark(4));
        assert_eq!(passive.acknowledged(1, 50).unwrap().handed_ns, Some(61 + FORGET_NS));
    }

    #[test]
    fn a_full_table_forgets_idle_flows_and_keeps_outstanding_segments() {
        let mut passive = AckMatcher::default();
        passive.handed(1, (0, 7), 100, HandoverMark(1));
        for flow in 1..MAX_FLOWS as u64 {
            passive.handed(1, (flow, 7), 100, HandoverMark(1));
            assert!(passive.acknowledged(flow, 100).is_some());
        }
        let idle = |flow: &&AckedFlow| flow.segments.is_empty();
        let idle = passive.flows.values().filter(idle).map(|flow| flow.segments.capacity());
        assert_eq!((idle.clone().count(), idle.sum()), (MAX_FLOWS - 1, 0));
        passive.handed(2, (MAX_FLOWS as u64, 7), 100, HandoverMark(2));
        assert_eq!(passive.flows.len(), 2);
        assert_eq!(passive.acknowledged(0, 100).unwrap().handed_ns, Some(1));
    }
}
