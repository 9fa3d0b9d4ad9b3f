//! A transfer's time, split among causes.

use std::collections::BTreeMap;

use airmile_model::Cause;

use crate::clocks::ClockLine;

use super::merge::{ByteBins, Wait, Waits};
use super::story::Reason;

/// What the radio's records say of a transfer's time; spans are in order and
/// without overlaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Radio<'a> {
    /// The downlink.
    pub downlink: &'a [RadioSpan],
    /// When the phone's own queue was not empty.
    pub uplink: &'a [RadioSpan],
}

/// A span about which the radio's records say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioSpan {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// The queue was not empty; else nothing is known of it.
    pub queued: bool,
}

/// A transfer's time by cause; the parts add up to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// The downlink queue was not empty, in nanoseconds.
    pub radio_ns: i64,
    /// The rest, in nanoseconds.
    pub by_cause: BTreeMap<Cause, i64>,
    /// Of the rest, by what was waited for.
    pub by_reason: BTreeMap<Reason, i64>,
    /// Where most of each cause is, in nanoseconds.
    pub longest: BTreeMap<Cause, (i64, i64)>,
}

impl Shares {
    /// All of it in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        self.radio_ns + self.by_cause.values().sum::<i64>()
    }
}

/// What is known of a phone's time.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    waits: Waits,
    uplink: ByteBins,
    at_server: bool,
}

impl Attribution {
    /// Of packets as they passed at the phone, or as if they had.
    #[must_use]
    pub const fn new(waits: Waits, uplink: ByteBins) -> Self {
        Self { waits, uplink, at_server: false }
    }

    /// Sets the times to the clock that the line is over.
    pub fn set_clock(&mut self, line: &ClockLine) {
        self.waits.set_clock(line);
        self.uplink.set_clock(line);
    }

    /// The packets are the server's own: in a transfer that goes on although the
    /// server has sent all that was asked for, somebody behind it holds the data.
    #[must_use]
    pub fn at_server(self) -> Self {
        Self { at_server: true, ..self }
    }

    /// Splits the time from `from_ns` to `to_ns` among causes; `radio` is `None`
    /// where nobody saw it.
    #[must_use]
    pub fn split(&self, from_ns: i64, to_ns: i64, radio: Option<Radio<'_>>) -> Shares {
        let first_byte_ns = self.first_byte_ns(from_ns).unwrap_or(to_ns);
        let mut split = Split {
            uplink: &self.uplink,
            radio,
            first_byte_ns,
            at_server: self.at_server,
            shares: Shares::default(),
        };
        let mut at = from_ns;
        for span in self.touching(from_ns, to_ns) {
            let start = span.from_ns.max(at);
            split.part(at, start, Reason::AfterLast);
            let end = span.to_ns.min(to_ns);
            // The transfer's first byte parts what is set up from what is not.
            let cut = first_byte_ns.clamp(start, end.max(start));
            split.part(start, cut, span.reason);
            split.part(cut, end, span.reason);
            at = end.max(at);
        }
        split.part(at, to_ns, Reason::AfterLast);
        split.shares
    }

    fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &Wait> {
        let spans = self.waits.spans();
        let first = spans.partition_point(|span| span.to_ns <= from_ns);
        spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
    }

    /// When the first data arrived from then on.
    fn first_byte_ns(&self, from_ns: i64) -> Option<i64> {
        let spans = self.waits.spans();
        let first = spans.partition_point(|span| span.to_ns <= from_ns);
        let mut rest = spans.iter().skip(first);
        let around = rest.clone().next().filter(|span| span.many && span.from_ns < from_ns);
        if around.is_some() {
            return Some(from_ns);
        }
        rest.find(|span| span.arrives || span.many).map(|span| span.to_ns)
    }
}

/// A transfer that is being split.
struct Split<'a> {
    uplink: &'a ByteBins,
    radio: Option<Radio<'a>>,
    first_byte_ns: i64,
    at_server: bool,
    shares: Shares,
}

impl Split<'_> {
    /// A part with one reason: the radio first, then what the reason stands for.
    fn part(&mut self, from_ns: i64, to_ns: i64, reason: Reason) {
        if to_ns <= from_ns {
            return;
        }
        let radio = self.radio.unwrap_or_default();
        let mut at = from_ns;
        for span in touching(radio.downlink, from_ns, to_ns) {
            let (start, end) = (span.from_ns.max(at), span.to_ns.min(to_ns));
            self.rest(at, start, reason);
            if span.queued {
                self.shares.radio_ns += end - start;
            } else {
                self.shares.add(Cause::Unknown, reason, start, end);
            }
            at = end;
        }
        self.rest(at, to_ns, reason);
    }

    /// A part without the downlink: what is behind the phone's own upload first.
    fn rest(&mut self, from_ns: i64, to_ns: i64, reason: Reason) {
        let sends = reason.may_be_upload() && self.uplink.is_busy(from_ns, to_ns);
        let radio = self.radio.filter(|_| sends).unwrap_or_default();
        // Where the phone's own log tells its queue, bytes alone tell no more.
        let uploads = sends && radio.uplink.is_empty();
        let mut at = from_ns;
        for span in touching(radio.uplink, from_ns, to_ns).filter(|span| span.is_long()) {
            let (start, end) = (span.from_ns.max(at), span.to_ns.min(to_ns));
            self.cut(at, start, reason, uploads);
            self.shares.add(Cause::UplinkQueue, reason, start, end);
            at = end;
        }
        self.cut(at, to_ns, reason, uploads);
    }

    fn cut(&mut self, from_ns: i64, to_ns: i64, reason: Reason, uploads: bool) {
        if to_ns > from_ns {
            let before_first = to_ns <= self.first_byte_ns;
            let reason = match reason {
                Reason::Unasked if self.at_server && !before_first => Reason::AfterLast,
                other => other,
            };
            let cause = cause(reason, before_first, uploads, self.radio.is_some());
            self.shares.add(cause, reason, from_ns, to_ns);
        }
    }
}

fn touching(spans: &[RadioSpan], from_ns: i64, to_ns: i64) -> impl Iterator<Item = &RadioSpan> {
    let first = spans.partition_point(|span| span.to_ns <= from_ns);
    spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
}

impl RadioSpan {
    /// A queue that stood this long (chosen here) is an upload's: requests and
    /// ACKs alone wait for a grant or two.
    const fn is_long(&self) -> bool {
        self.queued && self.to_ns - self.from_ns >= 100_000_000
    }
}

impl Reason {
    /// What a long queue of the phone's own can be behind.
    const fn may_be_upload(self) -> bool {
        !matches!(self, Self::Unasked | Self::Untold | Self::AfterLast)
    }
}

/// What a reason stands for, where no queue of the radio does.
const fn cause(reason: Reason, before_first: bool, uploads: bool, radio_seen: bool) -> Cause {
    match reason {
        Reason::Queue | Reason::Thinking if uploads => Cause::UplinkQueue,
        Reason::Queue if radio_seen => Cause::Wireline,
        // The queue may be the radio's, which nobody saw.
        Reason::Queue | Reason::Untold | Reason::AfterLast => Cause::Unknown,
        Reason::Handshake | Reason::Request => Cause::Setup,
        Reason::Unasked if before_first => Cause::Setup,
        Reason::Unasked | Reason::Thinking | Reason::NothingToSend | Reason::Pacing => {
            Cause::SenderLimited
        }
        Reason::FirstSlowStart => Cause::FirstSlowStart,
        Reason::SlowStartRestart => Cause::SlowStartRestart,
        Reason::UndesiredSlowStart => Cause::UndesiredSlowStart,
        Reason::LossRecovery => Cause::LossRecoveryCongestion,
        Reason::ReceiveWindow => Cause::ReceiveWindow,
    }
}

impl Shares {
    fn add(&mut self, cause: Cause, reason: Reason, from_ns: i64, to_ns: i64) {
        *self.by_cause.entry(cause).or_default() += to_ns - from_ns;
        *self.by_reason.entry(reason).or_default() += to_ns - from_ns;
        let longest = self.longest.entry(cause).or_insert((from_ns, to_ns));
        if longest.1 - longest.0 < to_ns - from_ns {
            *longest = (from_ns, to_ns);
        }
    }
}
