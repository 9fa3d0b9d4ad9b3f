//! What a wait means with the queues and losses of the path.

use airmile_model::Cause;

use super::super::timeline::{BUSY_BYTES, LINGER_BINS};
use super::{
    Attribution, EARLY_NS, LostSegment, QueuedSpan, REORDERING_NS, RadioSpan, Reason,
    TransferSplit, touching,
};

/// Rounds after a loss in which a window is counted as reduced by it (as for TCP:
/// `WindowRounds`).
const LOSS_ROUNDS: i64 = 16;
/// BBR sends at the largest rate that it measured in this many rounds
/// (draft-cardwell-iccrg-bbr-congestion-control-00, 4.1.1.3, BBR.BtlBwFilterLen).
const FILTER_ROUNDS: i64 = 10;

/// A queue that the phone's own packets do not show: without time stamps (RFC 7323), round trips of
/// data are not visible there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenQueue {
    /// On the way to the phone, before the radio.
    Downlink,
    /// On the phone's uplink.
    Uplink,
}

impl Attribution {
    /// Sets when connections over QUIC began: a datagram that was lost before is of another one.
    #[must_use]
    pub fn with_begins(self, mut begins_ns: Vec<i64>) -> Self {
        begins_ns.sort_unstable();
        Self { begins_ns, ..self }
    }

    /// When the newest of these began by a time.
    fn newest_begin_ns(&self, by_ns: i64) -> Option<i64> {
        let n = self.begins_ns.partition_point(|begin_ns| *begin_ns <= by_ns);
        self.begins_ns.get(n.checked_sub(1)?).copied()
    }
}

impl TransferSplit<'_> {
    /// A reason with what is known of the path's queues.
    pub(super) fn located(&self, from_ns: i64, to_ns: i64, reason: Reason) -> Reason {
        let is_empty_path = self.of.path.covers(from_ns, to_ns);
        let is_loss = matches!(reason, Reason::LossRecovery) && !self.radio_lost(to_ns);
        let is_paced = matches!(reason, Reason::Pacing | Reason::AppLimited);
        match (reason, self.hidden_queue) {
            // Without records of the radio the queue may be the radio's.
            (Reason::QueueOrWindow, _) if is_empty_path || self.radio.is_none() => {
                Reason::ReceiveWindow
            }
            (Reason::QueueOrWindow, _) => Reason::Queue,
            // A long round trip with an empty downlink path has its queue on the uplink.
            (Reason::QueueOrSender, _) if is_empty_path && self.radio.is_some() => {
                Reason::AppLimited
            }
            (Reason::Queue | Reason::QueueOrSender, _) if is_empty_path => Reason::QueueUp,
            (Reason::QueueOrSender, _) => Reason::Queue,
            (_, Some(HiddenQueue::Downlink)) if !is_empty_path && (is_paced || is_loss) => {
                Reason::Queue
            }
            // Its queue may be too short to show in round trips: captures at both ends would show it.
            _ if is_loss && self.of.line_drops && !is_empty_path => Reason::PathPace,
            (_, Some(HiddenQueue::Uplink)) if is_paced => Reason::QueueUp,
            (Reason::Pacing | Reason::PathPace, _) if self.at_readers_pace(to_ns) => {
                Reason::ReceiveWindow
            }
            (Reason::Pacing | Reason::AppLimited | Reason::Unknown, _)
                if self.datagram_lost(to_ns, None) =>
            {
                Reason::LossRecovery
            }
            // A loss ends the slow start of its own connection (RFC 9002, 7.3.1), which is the newest one's.
            (Reason::FirstSlowStart, _)
                if self.datagram_lost(to_ns, self.of.newest_begin_ns(from_ns)) =>
            {
                Reason::LossRecovery
            }
            _ => reason,
        }
    }

    /// The cause of a wait between server and phone while the radio's queue is empty.
    pub(super) fn before_radio(&self, queued: &QueuedSpan) -> Cause {
        match self.radio {
            Some(radio) if is_held_back(queued, radio.losses_ns) => Cause::LossRecoveryRadio,
            Some(_) => Cause::Wireline,
            None => Cause::Unknown,
        }
    }

    /// The cause of a queue on the way from the phone: its upload's, or else a line's, unless the phone's own
    /// queue may be it.
    pub(super) fn queued_up(&self, from_ns: i64, to_ns: i64) -> Cause {
        let of = self.of;
        let uploads = of.ack_payload.most_within(from_ns, to_ns, LINGER_BINS) >= BUSY_BYTES;
        // By packets alone, a queue of acknowledgements indicates an upload.
        let (Some(radio), None) = (self.radio.filter(|_| !uploads), self.hidden_queue) else {
            return Cause::UplinkQueue;
        };
        let waited_ns = of.uplink_path.touching(from_ns, to_ns).map(|queued| queued.most_ns).max();
        // What waits in a queue waits no longer than it stands.
        let delays = |span: &RadioSpan| {
            span.is_long() && 2 * (span.to_ns - span.from_ns) >= waited_ns.unwrap_or(0)
        };
        let is_empty = |queue| !touching(queue, from_ns, to_ns).any(delays);
        if radio.ack_queue.is_some_and(is_empty) { Cause::Wireline } else { Cause::Unknown }
    }

    /// Adds a part in which the receive window was full, or round trips were long: where its
    /// acknowledgements waited on their way, that queue was the cause.
    pub(super) fn full_or_queued_up(&mut self, from_ns: i64, to_ns: i64) {
        let of = self.of;
        let mut at = from_ns;
        for queued in of.uplink_path.touching(from_ns, to_ns) {
            let (start, end) = (queued.from_ns.max(at), queued.to_ns.min(to_ns));
            let full = self.located(at, start, Reason::QueueOrWindow);
            self.without_path_queue(at, start, full);
            self.without_path_queue(start, end, Reason::QueueUp);
            at = end.max(at);
        }
        let full = self.located(at, to_ns, Reason::QueueOrWindow);
        self.without_path_queue(at, to_ns, full);
    }

    /// When the receive window last was full in a span that its sender waited for `reason`.
    pub(super) fn last_full_ns(&self, from_ns: i64, to_ns: i64, reason: Reason) -> Option<i64> {
        match reason {
            Reason::ReceiveWindow => Some(to_ns),
            Reason::QueueOrWindow
                if self.located(from_ns, to_ns, reason) == Reason::ReceiveWindow =>
            {
                self.of.uplink_path.last_clear_ns(from_ns, to_ns)
            }
            _ => None,
        }
    }

    /// Whether a sender may keep the pace of a slow reader, which it measured while the receive window
    /// was full. Without records of the radio the model of packets alone counts these apart.
    fn at_readers_pace(&self, at_ns: i64) -> bool {
        let known_ns = FILTER_ROUNDS * self.of.round_trip_ns;
        let near = self.full_ns.is_some_and(|full_ns| at_ns - full_ns <= known_ns);
        near && self.radio.is_some()
    }

    /// Whether a datagram was lost on the path within [`LOSS_ROUNDS`] round trips, since then if a time is given, and
    /// not by the radio: its sender's window is still reduced.
    fn datagram_lost(&self, at_ns: i64, since_ns: Option<i64>) -> bool {
        let from_ns = at_ns - LOSS_ROUNDS * self.of.round_trip_ns;
        let from_ns = since_ns.map_or(from_ns, |since_ns| since_ns.max(from_ns));
        let losses = self.radio.unwrap_or_default().losses_ns;
        let first = losses.partition_point(|at| *at < from_ns);
        let by_radio = losses.get(first).is_some_and(|at| *at <= at_ns);
        !by_radio && self.of.path.lost_in(from_ns, at_ns)
    }

    /// Whether a policer dropped packets until now, or shortly before.
    pub(super) fn policed(&self, at_ns: i64) -> bool {
        self.of.policed.iter().any(|span| span.acts_in(at_ns, at_ns))
    }

    /// The most recently retransmitted segment.
    fn last_lost(&self, by_ns: i64) -> Option<&LostSegment> {
        let n = self.of.lost.partition_point(|segment| segment.again_ns <= by_ns);
        self.of.lost.get(n.checked_sub(1)?)
    }

    /// Whether a queue between server and radio dropped a segment: the data around it had waited there,
    /// by captures at both ends, or else by its round trips or those of its retransmission.
    fn is_overflow(&self, segment: &LostSegment) -> bool {
        let of = self.of;
        let around = |at_ns: i64| (at_ns - EARLY_NS, at_ns);
        let is_at_radio = |at_ns: i64, least_ns: i64| {
            let (from_ns, to_ns) = around(at_ns);
            let data_queue = self.radio.unwrap_or_default().data_queue;
            let mut queues = touching(data_queue, from_ns, to_ns).filter(|span| span.queued);
            queues.any(|span| span.to_ns - span.from_ns >= least_ns)
        };
        let by_round_trips = |at_ns: i64| {
            let (from_ns, to_ns) = around(at_ns);
            let is_known = of.path.covers(from_ns, to_ns) || of.ack_payload.is_busy(from_ns, to_ns);
            // A packet alone may take some TTIs: that delays none by as much as a long round trip.
            self.radio.is_some() && !is_known && !is_at_radio(at_ns, EARLY_NS)
        };
        // Behind the last that arrived of a flight, which began to wait when that did.
        let (missed_ns, least_ns) = match segment.unseen {
            true => (segment.missed_ns + EARLY_NS, EARLY_NS),
            false => (segment.missed_ns, 0),
        };
        let (from_ns, to_ns) = around(missed_ns);
        let waits = of.path.touching(from_ns, to_ns).next().is_some();
        let waited = waits && !is_at_radio(to_ns, least_ns);
        let [missed, again] = segment.queued;
        waited || missed && by_round_trips(to_ns) || again && by_round_trips(segment.again_ns)
    }

    /// Whether a queue between server and radio drops most of what is lost in a span: a loss for
    /// another reason also happens beside a queue.
    pub(super) fn mostly_overflows(&self, from_ns: i64, to_ns: i64) -> bool {
        let lost = &self.of.lost;
        let first = lost.partition_point(|segment| segment.again_ns < from_ns);
        let lost = lost.get(first..).unwrap_or_default();
        let lost = lost.iter().take_while(|segment| segment.again_ns <= to_ns);
        let (n, dropped) = lost.fold((0, 0), |(n, dropped), segment| {
            (n + 1, dropped + usize::from(self.is_overflow(segment)))
        });
        n > 0 && 2 * dropped >= n
    }

    /// Whether it also dropped the most recently retransmitted segment.
    pub(super) fn overflowed(&self, by_ns: i64) -> bool {
        self.overflows && self.last_lost(by_ns).is_some_and(|segment| self.is_overflow(segment))
    }

    /// Whether the radio lost the most recently retransmitted segment.
    pub(super) fn radio_lost(&self, by_ns: i64) -> bool {
        let Some(segment) = self.last_lost(by_ns) else { return false };
        let losses = self.radio.unwrap_or_default().losses_ns;
        let first = losses.partition_point(|at| *at < segment.missed_ns - REORDERING_NS);
        // It may have been lost a second time.
        losses.get(first).is_some_and(|at| *at <= segment.again_ns + EARLY_NS)
    }
}

/// Whether RLC held data back behind a loss of the radio: it began to wait then, and arrived at once.
fn is_held_back(queued: &QueuedSpan, losses_ns: &[i64]) -> bool {
    let waited_ns = queued.to_ns - queued.from_ns;
    let first = losses_ns.partition_point(|at| *at < queued.from_ns - 2 * EARLY_NS);
    let follows_loss = losses_ns.get(first).is_some_and(|at| *at <= queued.from_ns + EARLY_NS);
    follows_loss && waited_ns <= REORDERING_NS && 2 * queued.silent_ns >= waited_ns
}

impl Reason {
    /// Whether round trips show a queue, of which the place may be unknown.
    pub(super) const fn may_be_queue(self) -> bool {
        matches!(self, Self::Queue | Self::QueueOrWindow | Self::QueueOrSender)
    }

    /// Whether a long uplink queue of the phone can explain this reason.
    pub(super) const fn may_be_upload(self) -> bool {
        !matches!(self, Self::NoRequest | Self::Unknown | Self::AfterLast)
    }
}
