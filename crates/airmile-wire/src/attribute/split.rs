//! Splits a transfer's time among causes.

use std::sync::Arc;

use airmile_model::Cause;

use crate::clocks::ClockLine;
use crate::tcp::LINUX_MIN_RTO_NS;

use super::downlink_delay::DownlinkDelay;
use super::path::{PathQueue, QueuedSpan};
use super::policer::PolicedSpan;
use super::sender_model::{BACKED_OFF_NS, LostSegment, Reason};
use super::timeline::{ByteBins, PhoneWait, WaitTimeline};

mod held;
mod locate;
mod radio;
mod shares;

pub use held::SILENCE_NS;
pub use locate::HiddenQueue;
pub use radio::{RELEASE_NS, RadioEvidence, RadioSpan};
pub use shares::{CauseSpan, INITIAL_WINDOW_BYTES, Shares};

/// A loss on the radio shows at the phone up to this much later, when the following
/// packets are delivered: the maximum t-Reordering (TS 36.331, 6.3.2) and HARQ.
const REORDERING_NS: i64 = 250_000_000;
/// And up to this much earlier, because of the clocks (chosen here).
const EARLY_NS: i64 = 20_000_000;

/// What is known of a phone's time.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    waits: WaitTimeline,
    /// When connections over QUIC began, in order.
    begins_ns: Vec<i64>,
    /// Payload that passed in the direction of the acknowledgements.
    ack_payload: ByteBins,
    /// Payload that passed in the direction of the transfers.
    passed: ByteBins,
    /// What a server of uploads waited for.
    answers: WaitTimeline,
    at_server: bool,
    lost: Vec<LostSegment>,
    behind: WaitTimeline,
    round_trip_ns: i64,
    path: PathQueue,
    uplink_path: PathQueue,
    policed: Vec<PolicedSpan>,
    downlink_delay: Arc<DownlinkDelay>,
    hidden_queue: Option<HiddenQueue>,
    line_drops: bool,
}

impl Attribution {
    /// From packets as they passed the phone, with times shifted to the phone if captured
    /// elsewhere.
    #[must_use]
    pub fn new(waits: WaitTimeline, ack_payload: ByteBins) -> Self {
        Self { waits, ack_payload, ..Self::default() }
    }

    /// Retransmitted segments.
    #[must_use]
    pub fn with_lost(mut self, mut lost: Vec<LostSegment>) -> Self {
        lost.sort_by_key(|segment| segment.again_ns);
        self.lost = lost;
        self
    }

    /// Adds those of segments that the sender sent again of which the receiver saw no loss: a timer ended
    /// the wait, and the receiver saw no segment again from shortly before that until the longest silence of a timer
    /// after it.
    #[must_use]
    pub fn with_unseen_lost<'a>(
        mut self,
        sent_again: impl Iterator<Item = &'a LostSegment>,
    ) -> Self {
        let is_unseen = |one: &LostSegment| {
            let first = self.lost.partition_point(|seen| seen.again_ns < one.again_ns - EARLY_NS);
            let next = self.lost.get(first).map(|seen| seen.again_ns);
            one.again_ns - one.missed_ns >= LINUX_MIN_RTO_NS
                && next.is_none_or(|ns| ns > one.again_ns + BACKED_OFF_NS)
        };
        let unseen = sent_again.filter(|one| is_unseen(one));
        let unseen: Vec<_> = unseen.map(|one| LostSegment { unseen: true, ..*one }).collect();
        self.lost.extend(unseen);
        let lost = std::mem::take(&mut self.lost);
        self.with_lost(lost)
    }

    /// Sets what the server behind a split-connection proxy waited for: a proxy with
    /// nothing to send waits for the server.
    #[must_use]
    pub fn with_behind(self, behind: WaitTimeline) -> Self {
        Self { behind, ..self }
    }

    /// Sets the queueing between server and phone, if captures at both ends show it.
    #[must_use]
    pub fn with_path(self, path: PathQueue) -> Self {
        Self { path, ..self }
    }

    /// The queueing between server and phone.
    #[must_use]
    pub const fn path(&self) -> &PathQueue {
        &self.path
    }

    /// Payload that passed in the direction of the acknowledgements.
    #[must_use]
    pub const fn ack_payload(&self) -> &ByteBins {
        &self.ack_payload
    }

    /// Sets the queueing from phone to server, if captures at both ends or the phone's uploads show it.
    /// Times are those of the packet's arrival at the server, plus the least delay from there to the
    /// phone.
    #[must_use]
    pub fn with_uplink_path(self, uplink_path: PathQueue) -> Self {
        Self { uplink_path, ..self }
    }

    /// Sets by when data that arrived was queued: a server that was waited for until then had sent
    /// it. Its times are on the reference clock.
    #[must_use]
    pub fn with_downlink_delay(self, downlink_delay: Arc<DownlinkDelay>) -> Self {
        Self { downlink_delay, ..self }
    }

    /// Sets when policers acted on the phone's connections: losses at these times count
    /// as losses of the wired path.
    #[must_use]
    pub fn with_policed(self, policed: Vec<PolicedSpan>) -> Self {
        Self { policed, ..self }
    }

    /// Sets a queue that arrivals indicate and round trips do not show: what looks like a sender's
    /// own pace, or like losses without a cause, is that queue.
    pub const fn set_hidden_queue(&mut self, queue: Option<HiddenQueue>) {
        self.hidden_queue = queue;
    }

    /// Sets that arrivals indicate a line whose queue drops packets: losses are its, unless the radio's.
    pub const fn set_line_drops(&mut self) {
        self.line_drops = true;
    }

    /// Minimum round trip of the phone's connections, in nanoseconds.
    #[must_use]
    pub fn with_round_trip(self, round_trip_ns: i64) -> Self {
        Self { round_trip_ns, ..self }
    }

    /// Moves the times to the reference clock of `line`.
    pub fn set_clock(&mut self, line: &ClockLine) {
        self.waits.set_clock(line);
        self.begins_ns.iter_mut().for_each(|ns| *ns = line.to_reference(*ns));
        self.ack_payload.set_clock(line);
        self.passed.set_clock(line);
        self.answers.set_clock(line);
        self.behind.set_clock(line);
        self.path.set_clock(line);
        self.uplink_path.set_clock(line);
        for span in &mut self.policed {
            span.from_ns = line.to_reference(span.from_ns);
            span.to_ns = line.to_reference(span.to_ns);
        }
        self.lost.iter_mut().for_each(|lost| *lost = lost.at(|ns| line.to_reference(ns)));
    }

    /// Marks the packets as captured at the server: if a transfer goes on after the
    /// server has sent everything requested, a host on the path is buffering the data.
    #[must_use]
    pub fn at_server(self) -> Self {
        Self { at_server: true, ..self }
    }

    /// Splits the time from `from_ns` to `to_ns` among causes; `radio` is `None` without
    /// radio records.
    #[must_use]
    pub fn split(&self, from_ns: i64, to_ns: i64, radio: Option<RadioEvidence<'_>>) -> Shares {
        self.split_by(&self.waits, self.hidden_queue, (from_ns, to_ns), radio)
    }

    /// The same by other waits, on the reference clock, from which no queue is hidden.
    #[must_use]
    pub fn split_with_waits(
        &self,
        waits: &WaitTimeline,
        from_ns: i64,
        to_ns: i64,
        radio: Option<RadioEvidence<'_>>,
    ) -> Shares {
        self.split_by(waits, None, (from_ns, to_ns), radio)
    }

    fn split_by(
        &self,
        waits: &WaitTimeline,
        hidden_queue: Option<HiddenQueue>,
        (from_ns, to_ns): (i64, i64),
        radio: Option<RadioEvidence<'_>>,
    ) -> Shares {
        let first_byte_ns = waits.first_byte_ns(from_ns).unwrap_or(to_ns);
        let (full_ns, overflows, shares) = (None, false, Shares::default());
        let mut split = TransferSplit {
            of: self,
            radio,
            hidden_queue,
            first_byte_ns,
            full_ns,
            overflows,
            shares,
        };
        split.overflows = split.mostly_overflows(from_ns, to_ns);
        let mut at = from_ns;
        for span in waits.touching(from_ns, to_ns) {
            let start = span.from_ns.max(at);
            split.part(at, start, Reason::AfterLast);
            let end = span.to_ns.min(to_ns);
            split.full_ns = split.last_full_ns(start, end, span.reason).or(split.full_ns);
            // The transfer's first byte separates set-up from transfer.
            let cut = first_byte_ns.clamp(start, end.max(start));
            let queued = self.queued_by_ns(span);
            for (from, to) in [(start, cut), (cut, end)] {
                let sent = queued.clamp(from, to.max(from));
                split.part(from, sent, span.reason);
                split.part(sent, to, if sent < to { Reason::Queue } else { span.reason });
            }
            at = end.max(at);
        }
        // If a slow reader held the sender back most of the time, it still has to read
        // its buffer.
        let most = split.shares.by_reason.iter().max_by_key(|(_, ns)| **ns);
        let reads = most.map(|(reason, _)| *reason).filter(|most| *most == Reason::ReceiveWindow);
        split.part(at, to_ns, reads.unwrap_or(Reason::AfterLast));
        split.shares
    }

    /// By when the data of a wait for the server was queued on the path; the end of the wait if no
    /// queue is known.
    fn queued_by_ns(&self, span: &PhoneWait) -> i64 {
        match span.reason {
            Reason::ServerThinkTime | Reason::AppLimited if span.arrives => {
                self.downlink_delay.queued_by_ns(span.to_ns)
            }
            _ => span.to_ns,
        }
    }
}

/// The split of one transfer, in progress.
struct TransferSplit<'a> {
    of: &'a Attribution,
    radio: Option<RadioEvidence<'a>>,
    hidden_queue: Option<HiddenQueue>,
    first_byte_ns: i64,
    /// When the receive window last had no room.
    full_ns: Option<i64>,
    /// A queue between server and radio dropped most of what was lost.
    overflows: bool,
    shares: Shares,
}

impl TransferSplit<'_> {
    /// Adds a part with one reason: the radio's queue first, then the cause of the
    /// reason.
    fn part(&mut self, from_ns: i64, to_ns: i64, reason: Reason) {
        if to_ns <= from_ns {
            return;
        }
        let radio = self.radio.unwrap_or_default();
        let mut at = from_ns;
        for span in touching(radio.data_queue, from_ns, to_ns) {
            let (start, end) = (span.from_ns.max(at), span.to_ns.min(to_ns));
            self.rest(at, start, reason);
            if span.queued {
                self.shares.add_radio(start, end);
            } else {
                self.shares.add(Cause::Unknown, reason, start, end);
            }
            at = end;
        }
        self.rest(at, to_ns, reason);
    }

    /// Adds a part without a downlink queue: queueing earlier on the path comes first.
    fn rest(&mut self, from_ns: i64, to_ns: i64, reason: Reason) {
        let of = self.of;
        let mut at = from_ns;
        for queued in of.path.touching(from_ns, to_ns) {
            let (start, end) = (queued.from_ns.max(at), queued.to_ns.min(to_ns));
            self.without_path_queue(at, start, reason);
            let cause = self.before_radio(queued);
            self.assign(cause, Reason::Queue, start, end);
            at = end.max(at);
        }
        self.without_path_queue(at, to_ns, reason);
    }

    /// Adds a part without downlink path queueing: waiting for the phone's own upload
    /// comes first.
    fn without_path_queue(&mut self, from_ns: i64, to_ns: i64, reason: Reason) {
        if to_ns <= from_ns {
            return;
        }
        let of = self.of;
        if reason == Reason::QueueOrWindow
            && of.uplink_path.touching(from_ns, to_ns).next().is_some()
        {
            self.full_or_queued_up(from_ns, to_ns);
            return;
        }
        let waited_for = reason;
        let reason = self.located(from_ns, to_ns, waited_for);
        // A queue whose place is known only now, before the radio, is not on the uplink.
        let is_before_radio = reason == Reason::Queue && !waited_for.may_be_queue();
        let sends = reason.may_be_upload() && of.ack_payload.is_busy(from_ns, to_ns);
        let radio = self.radio.filter(|_| sends).unwrap_or_default();
        // If the phone's own log shows its queue, uploaded bytes add no information.
        let uploads = sends && radio.ack_queue.is_none() && !is_before_radio;
        let ack_queue = radio.ack_queue.unwrap_or_default();
        let mut at = from_ns;
        for span in touching(ack_queue, from_ns, to_ns).filter(|span| span.is_long()) {
            let (start, end) = (span.from_ns.max(at), span.to_ns.min(to_ns));
            self.sent_up(at, start, reason, uploads);
            self.shares.add(Cause::UplinkQueue, reason, start, end);
            at = end;
        }
        self.sent_up(at, to_ns, reason, uploads);
    }

    /// Adds a part in which the phone's own queue was empty: an upload's queue on the way from the
    /// phone to the server comes first.
    fn sent_up(&mut self, from_ns: i64, to_ns: i64, reason: Reason, uploads: bool) {
        let of = self.of;
        let sends = reason.may_be_upload() && of.ack_payload.is_busy(from_ns, to_ns);
        let mut at = from_ns;
        // What is sent in a long silence of the radio waits for the first grant.
        let radio = self.radio.unwrap_or_default();
        let connects =
            |queued: &QueuedSpan| radio.connected_ns(queued.from_ns, Some(queued.to_ns)).is_some();
        let is_long = |queued: &&QueuedSpan| queued.most_ns >= UPLOAD_QUEUE_NS && !connects(queued);
        let queues = of.uplink_path.touching(from_ns, to_ns).filter(|_| sends).filter(is_long);
        for queued in queues {
            let (start, end) = (queued.from_ns.max(at), queued.to_ns.min(to_ns));
            self.cut(at, start, reason, uploads);
            self.shares.add(Cause::UplinkQueue, reason, start, end);
            at = end;
        }
        self.cut(at, to_ns, reason, uploads);
    }

    fn cut(&mut self, from_ns: i64, to_ns: i64, reason: Reason, uploads: bool) {
        match reason {
            Reason::ServerThinkTime => self.thinking(from_ns, to_ns, uploads),
            // What a released phone sends, or is sent, waits for the first grant.
            Reason::Handshake
            | Reason::LossRecovery
            | Reason::UndesiredSlowStart
            | Reason::Queue => {
                let radio = self.radio.unwrap_or_default();
                let is_handshake = reason == Reason::Handshake;
                let left_ns = (is_handshake || radio.phone_sends).then_some(to_ns);
                let granted = radio.connected_ns(from_ns, left_ns);
                let granted = granted.filter(|ns| !is_handshake || *ns <= to_ns);
                let connected = granted.map_or(from_ns, |ns| ns.clamp(from_ns, to_ns));
                self.annotate(from_ns, connected, Reason::Promotion, uploads);
                self.annotate(connected, to_ns, reason, uploads);
            }
            Reason::AppLimited | Reason::Pacing => self.starved(from_ns, to_ns, reason, uploads),
            other => self.annotate(from_ns, to_ns, other, uploads),
        }
    }

    /// A late answer: until the first grant after a long silence of the radio the phone
    /// was connecting, and the request's round trip started then.
    fn thinking(&mut self, from_ns: i64, to_ns: i64, uploads: bool) {
        let up = self.of.round_trip_ns;
        let radio = self.radio.unwrap_or_default();
        let granted = radio.connected_ns(from_ns - up, Some(to_ns - up / 2));
        let connected = granted.map_or(from_ns, |ns| ns.clamp(from_ns, to_ns));
        let due = granted.map_or(from_ns, |ns| (ns + up).clamp(connected, to_ns));
        self.annotate(from_ns, connected, Reason::Promotion, uploads);
        self.annotate(connected, due, Reason::Request, uploads);
        let taken = self.taken_ns(due, to_ns);
        self.annotate(due, taken, Reason::PathPace, uploads);
        self.annotate(taken, to_ns, Reason::ServerThinkTime, uploads);
    }

    /// The sender has no data: behind a proxy, the cause is what the server waited for.
    fn starved(&mut self, from_ns: i64, to_ns: i64, reason: Reason, uploads: bool) {
        let of = self.of;
        let mut at = from_ns;
        for behind in of.behind.touching(from_ns, to_ns) {
            let (start, end) = (behind.from_ns.max(at), behind.to_ns.min(to_ns));
            let reason_of_server = match behind.reason {
                // Acknowledged at the pace of the wired path, or queued before it.
                Reason::Queue | Reason::QueueOrSender | Reason::Pacing | Reason::LossRecovery => {
                    Reason::Queue
                }
                Reason::FirstSlowStart
                | Reason::SlowStartRestart
                | Reason::UndesiredSlowStart
                | Reason::ReceiveWindow => behind.reason,
                Reason::QueueOrWindow => Reason::ReceiveWindow,
                _ => reason,
            };
            self.annotate(at, start, reason, uploads);
            // The phone's upload is not on the way from the server to the proxy.
            let is_queue = reason_of_server == Reason::Queue;
            self.annotate(start, end, reason_of_server, uploads && !is_queue);
            at = end.max(at);
        }
        self.annotate(at, to_ns, reason, uploads);
    }

    fn annotate(&mut self, from_ns: i64, to_ns: i64, reason: Reason, uploads: bool) {
        if to_ns > from_ns {
            let before_first = to_ns <= self.first_byte_ns;
            let reason = match reason {
                Reason::NoRequest if self.of.at_server && !before_first => Reason::AfterLast,
                other => other,
            };
            let cause = match reason {
                Reason::QueueUp => self.queued_up(from_ns, to_ns),
                Reason::LossRecovery if self.radio_lost(to_ns) => Cause::LossRecoveryRadio,
                _ if self.shows_no_loss(reason, from_ns, to_ns) => Cause::LossRecoveryRadio,
                Reason::LossRecovery | Reason::UndesiredSlowStart
                    if self.policed(to_ns) || self.overflowed(to_ns) =>
                {
                    Cause::Wireline
                }
                _ => self.cause(reason, to_ns, uploads),
            };
            self.assign(cause, reason, from_ns, to_ns);
        }
    }

    /// The cause of a reason until `to_ns`, where the radio's queue is empty.
    fn cause(&self, reason: Reason, to_ns: i64, uploads: bool) -> Cause {
        match reason {
            Reason::Queue | Reason::ServerThinkTime if uploads => Cause::UplinkQueue,
            Reason::QueueUp => Cause::UplinkQueue,
            Reason::Queue | Reason::QueueOrSender | Reason::PathPace if self.radio.is_some() => {
                Cause::Wireline
            }
            // The queue may be the radio's, without records to show it.
            Reason::Queue
            | Reason::QueueOrSender
            | Reason::PathPace
            | Reason::Unknown
            | Reason::AfterLast => Cause::Unknown,
            Reason::Handshake | Reason::Promotion | Reason::Request => Cause::Setup,
            Reason::NoRequest if to_ns <= self.first_byte_ns => Cause::Setup,
            Reason::NoRequest | Reason::ServerThinkTime | Reason::AppLimited | Reason::Pacing => {
                Cause::SenderLimited
            }
            Reason::FirstSlowStart => Cause::FirstSlowStart,
            Reason::SlowStartRestart => Cause::SlowStartRestart,
            Reason::UndesiredSlowStart => Cause::UndesiredSlowStart,
            Reason::LossRecovery => Cause::LossRecoveryCongestion,
            Reason::ReceiveWindow | Reason::QueueOrWindow => Cause::ReceiveWindow,
        }
    }

    /// Whether the radio lost the awaited data although the phone's packets show no loss:
    /// data that the phone never received is not seen *again* before the timer, and RLC
    /// holds back what follows a loss, which looks like a queue.
    fn shows_no_loss(&self, reason: Reason, from_ns: i64, to_ns: i64) -> bool {
        let fits = match reason {
            Reason::AppLimited | Reason::Pacing => {
                (LINUX_MIN_RTO_NS..=BACKED_OFF_NS).contains(&(to_ns - from_ns))
            }
            Reason::Queue => to_ns - from_ns <= REORDERING_NS,
            _ => false,
        };
        let losses = self.radio.unwrap_or_default().losses_ns;
        let first = losses.partition_point(|at| *at < from_ns - EARLY_NS);
        fits && losses.get(first).is_some_and(|at| *at < to_ns)
    }
}

fn touching(spans: &[RadioSpan], from_ns: i64, to_ns: i64) -> impl Iterator<Item = &RadioSpan> {
    let first = spans.partition_point(|span| span.to_ns <= from_ns);
    spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
}

/// A queue that lasted this long, or in which data waited that long (chosen here), is an upload's:
/// requests and ACKs alone wait for a grant or two.
const UPLOAD_QUEUE_NS: i64 = 100_000_000;

impl RadioSpan {
    const fn is_long(&self) -> bool {
        self.queued && self.to_ns - self.from_ns >= UPLOAD_QUEUE_NS
    }
}

#[cfg(test)]
mod tests;
