//! The sender's congestion window from its own flight size: the data sent and not
//! acknowledged by the ACKs that it had received when it sent. The time stamp that a
//! segment echoes identifies the last ACK received, however long the queue before the
//! monitor.

use std::collections::VecDeque;

use airmile_model::SenderPhase;

/// Maximum number of ACKs kept while on their way to the sender (chosen here: with one
/// per millisecond, a quarter of a second of distance).
const MAX_ACKS: usize = 256;
/// If an ACK is unanswered this long before the next, the sender had nothing to send: at
/// least this, or a share of the distance, as the path delay varies (both chosen here).
const UNANSWERED_NS: i64 = 5_000_000;
const UNANSWERED_PART: i64 = 8;

/// A segment as it was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentSegment {
    /// When it passed the monitor.
    pub(super) at_ns: i64,
    /// TSecr: the sender had received the ACK with that TSval (RFC 7323, 4.3).
    pub(super) ts_ecr: Option<u32>,
    /// Round trip from the monitor to the sender, from the handshake: used without time
    /// stamps.
    pub(super) upstream_ns: i64,
    /// End of all data sent, this segment included.
    pub(super) next: i64,
    pub(super) mss: i64,
    /// It is as large as segments get.
    pub(super) is_full: bool,
    pub(super) rwnd: Option<u64>,
    pub(super) phase: SenderPhase,
}

/// An ACK on its way from the monitor to the sender.
#[derive(Debug, Clone, Copy)]
struct InFlightAck {
    at_ns: i64,
    edge: i64,
    ts_val: Option<u32>,
}

/// Models one sender.
#[derive(Debug, Default)]
pub(super) struct OwnFlight {
    acks: VecDeque<InFlightAck>,
    /// The highest acknowledgement that the sender has received.
    acked: i64,
    /// Maximum in flight since the last ACK it answered, and before that.
    burst: i64,
    before: i64,
    /// It had nothing more to send up to this offset; the window shows again after it.
    idle_until: i64,
}

/// The state of the sender at a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlightEstimate {
    /// Bytes in flight at the sender.
    pub(super) flight: i64,
    /// Its congestion window; `None` if something else limited it.
    pub(super) cwnd: Option<i64>,
}

impl OwnFlight {
    /// Takes an ACK that moved the edge.
    pub(super) fn acknowledged(&mut self, at_ns: i64, edge: i64, ts_val: Option<u32>) {
        if self.acks.len() >= MAX_ACKS {
            // The newest one stands for both.
            self.acks.pop_back();
        }
        self.acks.push_back(InFlightAck { at_ns, edge, ts_val });
    }

    /// Applies the ACKs that the sender had received when it sent a segment; returns the
    /// bytes of those left unanswered.
    fn apply_acks(&mut self, segment: &SentSegment) -> i64 {
        let received = |ack: &&InFlightAck| match (ack.ts_val, segment.ts_ecr) {
            (Some(value), Some(echo)) => value.wrapping_sub(echo).cast_signed() <= 0,
            _ => ack.at_ns <= segment.at_ns - segment.upstream_ns,
        };
        let known = self.acked;
        let n_received = self.acks.iter().take_while(received).count();
        let Some(last) = n_received.checked_sub(1).and_then(|last| self.acks.get(last).copied())
        else {
            return 0;
        };
        let patience = UNANSWERED_NS.max((segment.at_ns - last.at_ns) / UNANSWERED_PART);
        let mut unanswered = 0;
        for ack in self.acks.drain(..n_received) {
            self.acked = self.acked.max(ack.edge);
            if last.at_ns - ack.at_ns > patience {
                unanswered = self.acked - known;
            }
        }
        if self.acked > known {
            (self.before, self.burst) = (self.burst, 0);
        }
        unanswered
    }

    /// Takes a segment with new data.
    pub(super) fn sent(&mut self, segment: &SentSegment) -> FlightEstimate {
        let unanswered = self.apply_acks(segment);
        let flight = (segment.next - self.acked).max(0);
        self.burst = self.burst.max(flight);
        let by_receiver =
            segment.rwnd.is_some_and(|rwnd| rwnd.cast_signed() - flight < segment.mss);
        if unanswered >= 2 * segment.mss || !segment.is_full || by_receiver {
            self.idle_until = segment.next;
        }
        if matches!(segment.phase, SenderPhase::Recovery | SenderPhase::AfterTimeout) {
            (self.before, self.burst) = (0, 0);
        }
        // The maximum flight is known only after a burst has ended.
        let by_window = self.before > 0 && self.acked >= self.idle_until;
        let cwnd = by_window.then(|| self.before.max(self.burst));
        FlightEstimate { flight, cwnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn segment(at_ms: i64, next: i64, ts_ecr: Option<u32>) -> SentSegment {
        SentSegment {
            at_ns: at_ms * MS,
            ts_ecr,
            upstream_ns: 40 * MS,
            next,
            mss: 1000,
            is_full: true,
            rwnd: Some(1 << 20),
            phase: SenderPhase::CongestionAvoidance,
        }
    }

    /// Ten segments at once; ACKs of two pass before their answers.
    fn begun(ts_val: [Option<u32>; 2]) -> OwnFlight {
        let mut own = OwnFlight::default();
        (1..=10).for_each(|n| _ = own.sent(&segment(0, n * 1000, Some(1))));
        own.acknowledged(30 * MS, 2000, ts_val[0]);
        own.acknowledged(50 * MS, 4000, ts_val[1]);
        own
    }

    fn estimate(flight: i64, cwnd: i64) -> FlightEstimate {
        FlightEstimate { flight, cwnd: Some(cwnd) }
    }

    #[test]
    fn the_distance_to_the_sender_is_taken_off() {
        let mut own = begun([None, None]);
        // At the monitor 7 are in flight; the sender has received the ACKs of two.
        assert_eq!(own.sent(&segment(70, 11_000, None)), estimate(9000, 10_000));
        assert_eq!(own.sent(&segment(70, 12_000, None)), estimate(10_000, 10_000));
        assert_eq!(own.sent(&segment(90, 13_000, None)), estimate(9000, 10_000));
    }

    #[test]
    fn a_queue_before_the_monitor_is_seen_by_the_time_stamps() {
        let mut own = begun([Some(31), Some(51)]);
        // 200 ms late, but sent when only the first ACK had arrived.
        assert_eq!(own.sent(&segment(270, 11_000, Some(31))), estimate(9000, 10_000));
        assert_eq!(own.sent(&segment(270, 12_000, Some(31))), estimate(10_000, 10_000));
        assert_eq!(own.sent(&segment(290, 13_000, Some(51))), estimate(9000, 10_000));
    }

    #[test]
    fn nothing_to_send_is_no_window() {
        let mut own = begun([Some(31), Some(51)]);
        // Its answer begins when the second ACK arrives: the first freed two segments
        // that were not used.
        assert_eq!(own.sent(&segment(90, 11_000, Some(51))).cwnd, None);
        assert_eq!(own.sent(&segment(90, 12_000, Some(51))).cwnd, None);
        own.acknowledged(200 * MS, 12_000, Some(201));
        assert_eq!(own.sent(&segment(240, 13_000, Some(201))), estimate(1000, 8000));
        // A segment that is not full: the sender had no more data.
        let last = SentSegment { is_full: false, ..segment(240, 13_500, Some(201)) };
        assert_eq!(own.sent(&last).cwnd, None);
    }

    #[test]
    fn the_first_burst_and_a_full_receive_window_tell_none() {
        let mut own = OwnFlight::default();
        assert_eq!(
            own.sent(&segment(0, 1000, Some(1))),
            FlightEstimate { flight: 1000, cwnd: None }
        );
        own.acknowledged(30 * MS, 1000, Some(31));
        let small = SentSegment { rwnd: Some(2500), ..segment(70, 3000, Some(31)) };
        assert_eq!(own.sent(&small), FlightEstimate { flight: 2000, cwnd: None });
    }
}
