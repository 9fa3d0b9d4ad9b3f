//! All connections of a phone on one time axis.

use std::collections::BTreeMap;

use crate::clocks::ClockLine;

use super::sender_model::{Reason, WaitSpan};

/// Bin width for counting uplink payload (chosen here).
const BIN_NS: i64 = 100_000_000;
/// An upload is in progress if at least this much payload passed in [`BUSY_BINS`] bins
/// (chosen here: 160 kbit/s over half a second, more than requests take), or did up to
/// [`LINGER_BINS`] earlier: it may stay in the phone's queue for that time.
pub(super) const BUSY_BYTES: u64 = 10_000;
const BUSY_BINS: i64 = 5;
pub(super) const LINGER_BINS: i64 = 30;

/// A span of the phone's time, and what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhoneWait {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// What it waited for.
    pub reason: Reason,
    /// Whether data arrived at its end.
    pub arrives: bool,
    /// Whether data also arrived within it.
    pub many: bool,
}

/// Puts the wait spans of all senders on one axis: each moment belongs to the wait for
/// the next packet of any connection.
#[derive(Debug, Clone, Default)]
pub struct WaitTimeline {
    spans: Vec<PhoneWait>,
}

impl WaitTimeline {
    /// No packets yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { spans: Vec::new() }
    }

    /// Takes the wait spans of the newest packet, which is data if it `arrives`; packets are in order
    /// of time.
    pub fn push(&mut self, held: &[WaitSpan], arrives: bool) {
        let (Some(first), Some(last)) = (held.first(), held.last()) else { return };
        let cursor = self.spans.last().map_or(first.from_ns, |span| span.to_ns);
        if last.to_ns <= cursor {
            return;
        }
        if first.from_ns > cursor {
            self.add(cursor, first.from_ns, Reason::NoRequest, false);
        }
        for part in held {
            let arrives = arrives && part.to_ns == last.to_ns;
            self.add(part.from_ns.max(cursor), part.to_ns, part.reason, arrives);
        }
    }

    fn add(&mut self, from_ns: i64, to_ns: i64, reason: Reason, arrives: bool) {
        self.join(PhoneWait { from_ns, to_ns, reason, arrives, many: false });
    }

    fn join(&mut self, next: PhoneWait) {
        if next.to_ns <= next.from_ns {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.reason == next.reason && last.to_ns == next.from_ns => {
                last.many |= last.arrives | next.many;
                last.to_ns = next.to_ns;
                last.arrives = next.arrives;
            }
            _ => self.spans.push(next),
        }
    }

    /// The same by what the sender itself shows, on the same clock, as its data would arrive without
    /// a queue; or by its losses alone, where the receiver did not see them. What the receiver waited for
    /// before and after its requests remains.
    #[must_use]
    pub fn with_waits_of(&self, sender: &Self, losses_alone: bool) -> Self {
        let mut joined = Self::new();
        for span in &self.spans {
            if span.reason.is_receivers_own() || losses_alone && !span.reason.may_hide_a_loss() {
                joined.join(*span);
                continue;
            }
            let mut at = span.from_ns;
            let mut put = |to_ns: i64, reason: Reason| {
                let arrives = span.arrives && to_ns == span.to_ns;
                joined.join(PhoneWait { from_ns: at, to_ns, reason, arrives, many: span.many });
                at = to_ns.max(at);
            };
            for by_sender in sender.touching(span.from_ns, span.to_ns) {
                put(by_sender.from_ns.min(span.to_ns), span.reason);
                let reason = match (by_sender.reason, span.reason) {
                    (other, own) if losses_alone && !other.is_loss() => own,
                    // Asked, and the request had not come.
                    (Reason::NoRequest, Reason::ServerThinkTime) => Reason::Request,
                    (Reason::NoRequest, own) => own,
                    (other, _) => other,
                };
                put(by_sender.to_ns.min(span.to_ns), reason);
            }
            put(span.to_ns, span.reason);
        }
        joined
    }

    /// Where connections end inside the receiver's host: what their senders wait for is unknown, but for
    /// the time without a request.
    pub fn end_inside(&mut self) {
        let hidden = self.spans.iter_mut().filter(|span| span.reason != Reason::NoRequest);
        hidden.for_each(|span| span.reason = Reason::Unknown);
    }

    /// The same, `ns` later: as seen by a receiver at that distance.
    #[must_use]
    pub fn later(mut self, ns: i64) -> Self {
        for span in &mut self.spans {
            span.from_ns = span.from_ns.saturating_add(ns);
            span.to_ns = span.to_ns.saturating_add(ns);
        }
        self
    }

    /// Moves the times to the reference clock of `line`.
    pub fn set_clock(&mut self, line: &ClockLine) {
        for span in &mut self.spans {
            span.from_ns = line.to_reference(span.from_ns);
            span.to_ns = line.to_reference(span.to_ns);
        }
    }

    /// Appends a later timeline; returns `false` if it is not later.
    pub fn append(&mut self, other: &Self) -> bool {
        let end = self.spans.last().map(|span| span.to_ns);
        let later =
            other.spans.first().is_none_or(|span| end.is_none_or(|end| span.from_ns >= end));
        if later {
            self.spans.extend_from_slice(&other.spans);
        }
        later
    }

    /// With that of the same phone's other connections at the same time: each moment belongs to the wait that ends
    /// first, and to one for a request only if neither is for data.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let both = [self, other];
        let spans = both.into_iter().flat_map(|one| &one.spans);
        let mut bounds: Vec<i64> = spans.flat_map(|span| [span.from_ns, span.to_ns]).collect();
        bounds.sort_unstable();
        let mut merged = Self::new();
        for pair in bounds.windows(2) {
            let &[from_ns, to_ns] = pair else { continue };
            let at = || both.into_iter().filter_map(|one| one.touching(from_ns, to_ns).next());
            let arrives = at().any(|span| span.arrives && span.to_ns == to_ns);
            let first =
                |span: &&PhoneWait| (span.reason == Reason::NoRequest, !span.many, span.to_ns);
            if let Some(span) = at().min_by_key(first) {
                merged.join(PhoneWait { from_ns, to_ns, arrives, ..*span });
            }
        }
        merged
    }

    /// The spans that overlap a time range.
    pub fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &PhoneWait> {
        let first = self.spans.partition_point(|span| span.to_ns <= from_ns);
        self.spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
    }

    /// When the first data arrived from that time on.
    pub(super) fn first_byte_ns(&self, from_ns: i64) -> Option<i64> {
        let spans = &self.spans;
        let first = spans.partition_point(|span| span.to_ns <= from_ns);
        let mut rest = spans.iter().skip(first);
        let around = rest.clone().next().filter(|span| span.many && span.from_ns < from_ns);
        if around.is_some() {
            return Some(from_ns);
        }
        rest.find(|span| span.arrives || span.many).map(|span| span.to_ns)
    }

    /// The spans in order, without overlaps.
    #[must_use]
    pub fn spans(&self) -> &[PhoneWait] {
        &self.spans
    }
}

impl Reason {
    /// Whether the receiver's own packets tell it better than the sender's: what came before the data.
    const fn is_receivers_own(self) -> bool {
        matches!(self, Self::Handshake | Self::Promotion | Self::Request | Self::NoRequest)
    }

    /// Whether a receiver that never got the lost data, nor any after it, may see this.
    const fn may_hide_a_loss(self) -> bool {
        matches!(
            self,
            Self::AppLimited
                | Self::Pacing
                | Self::ServerThinkTime
                | Self::FirstSlowStart
                | Self::SlowStartRestart
                | Self::Unknown
        )
    }

    const fn is_loss(self) -> bool {
        matches!(self, Self::LossRecovery | Self::UndesiredSlowStart)
    }
}

/// Bytes by time, in bins of a tenth of a second; empty bins are left out.
#[derive(Debug, Clone, Default)]
pub struct ByteBins {
    bins: Vec<(i64, u64)>,
}

impl ByteBins {
    /// Takes bytes, in order of time.
    pub fn add(&mut self, at_ns: i64, bytes: u64) {
        let bin = at_ns.div_euclid(BIN_NS);
        match self.bins.last_mut() {
            _ if bytes == 0 => {}
            Some((last, sum)) if *last >= bin => *sum += bytes,
            _ => self.bins.push((bin, bytes)),
        }
    }

    /// Appends later bins.
    pub fn append(&mut self, other: &Self) {
        self.bins.extend_from_slice(&other.bins);
    }

    /// The sum of several.
    pub fn sum_of<'a>(each: impl Iterator<Item = &'a Self>) -> Self {
        let mut sums = BTreeMap::<i64, u64>::new();
        for (bin, bytes) in each.flat_map(|one| &one.bins) {
            *sums.entry(*bin).or_default() += bytes;
        }
        Self { bins: sums.into_iter().collect() }
    }

    /// The same, `ns` later, at bin resolution.
    #[must_use]
    pub fn later(mut self, ns: i64) -> Self {
        self.bins.iter_mut().for_each(|(bin, _)| *bin = bin.saturating_add(ns.div_euclid(BIN_NS)));
        self
    }

    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Moves the times to the reference clock of `line`, at bin resolution.
    pub fn set_clock(&mut self, line: &ClockLine) {
        let old = std::mem::take(&mut self.bins);
        for (bin, bytes) in old {
            self.add(line.to_reference(bin.saturating_mul(BIN_NS)), bytes);
        }
    }

    /// Bytes of the bins that touch a span.
    #[must_use]
    pub fn within(&self, from_ns: i64, to_ns: i64) -> u64 {
        let (from, to) = (from_ns.div_euclid(BIN_NS), to_ns.div_euclid(BIN_NS));
        let first = self.bins.partition_point(|(bin, _)| *bin < from);
        let seen = self.bins.iter().skip(first).take_while(|(bin, _)| *bin <= to);
        seen.map(|(_, bytes)| bytes).sum()
    }

    /// For a phone's own payload: whether an upload was in progress in a span or shortly
    /// before it.
    #[must_use]
    pub fn is_busy(&self, from_ns: i64, to_ns: i64) -> bool {
        self.most_within(from_ns, to_ns, BUSY_BINS) >= BUSY_BYTES
    }

    /// The most bytes of `n_bins` in a row, of those of a span and [`LINGER_BINS`] before it.
    pub(super) fn most_within(&self, from_ns: i64, to_ns: i64, n_bins: i64) -> u64 {
        let (from, to) = (from_ns.div_euclid(BIN_NS) - LINGER_BINS, to_ns.div_euclid(BIN_NS));
        let first = self.bins.partition_point(|(bin, _)| *bin < from);
        let seen = self.bins.get(first..).unwrap_or_default();
        let seen = seen.get(..seen.partition_point(|(bin, _)| *bin <= to)).unwrap_or_default();
        let sums = (0..seen.len()).map(|at| {
            let window = seen.get(at..).unwrap_or_default();
            let until = window.first().map_or(0, |(bin, _)| bin + n_bins);
            window.iter().take_while(|(bin, _)| *bin < until).map(|(_, bytes)| bytes).sum()
        });
        sums.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(spans: &[(i64, i64, Reason)]) -> WaitTimeline {
        let mut waits = WaitTimeline::new();
        for (from_ns, to_ns, reason) in spans {
            waits.push(&[WaitSpan { from_ns: *from_ns, to_ns: *to_ns, reason: *reason }], true);
        }
        waits
    }

    fn reasons(waits: &WaitTimeline) -> Vec<(i64, Reason)> {
        waits.spans().iter().map(|span| (span.to_ns, span.reason)).collect()
    }

    #[test]
    fn inside_the_phone_no_sender_is_seen() {
        use Reason::{NoRequest, Pacing, ReceiveWindow, Unknown};
        let mut waits = timeline(&[(0, 40, Pacing), (40, 90, NoRequest), (90, 99, ReceiveWindow)]);
        waits.end_inside();
        assert_eq!(reasons(&waits), [(40, Unknown), (90, NoRequest), (99, Unknown)]);
    }

    /// Over IPv4 it waits for an answer, then for nothing, while data over IPv6 comes.
    #[test]
    fn connections_over_two_families_are_on_one_axis() {
        use Reason::{NoRequest, Pacing, ServerThinkTime};
        let one = timeline(&[(0, 100, ServerThinkTime), (100, 300, NoRequest)]);
        let other = timeline(&[(20, 60, NoRequest), (60, 90, Pacing), (90, 200, Pacing)]);
        let merged = one.merged(&other);
        assert_eq!(reasons(&merged), [(60, ServerThinkTime), (200, Pacing), (300, NoRequest)]);
        assert!(merged.spans()[1].arrives && merged.spans()[1].many);
        assert_eq!(merged.spans(), other.merged(&one).spans());
    }

    /// The phone knows when it asked and when it waited for nothing; the server, why its data was late.
    #[test]
    fn the_sender_tells_of_its_data_and_the_receiver_of_its_requests() {
        use Reason::{NoRequest, Pacing, QueueUp, Request, ServerThinkTime};
        let phone = timeline(&[
            (0, 40, Request),
            (40, 100, ServerThinkTime),
            (100, 200, Pacing),
            (200, 260, NoRequest),
            (260, 300, Request),
        ]);
        // The second request came to the server at 280, and the first one at 60.
        let server = timeline(&[
            (20, 60, NoRequest),
            (60, 90, ServerThinkTime),
            (90, 190, QueueUp),
            (190, 280, NoRequest),
            (280, 300, Request),
        ]);
        let joined = phone.with_waits_of(&server, false);
        assert_eq!(
            reasons(&joined),
            [
                (60, Request),
                (90, ServerThinkTime),
                (190, QueueUp),
                (200, Pacing),
                (260, NoRequest),
                (300, Request)
            ]
        );
        // Data arrived at the ends of the phone's own spans, and at no other time.
        let arrived = joined.spans().iter().filter(|span| span.arrives).map(|span| span.to_ns);
        assert_eq!(arrived.collect::<Vec<_>>(), [200, 260, 300]);
        assert_eq!(reasons(&phone.with_waits_of(&WaitTimeline::new(), false)), reasons(&phone));
    }

    /// The last data of a flight was lost: its timer ends a silence, and nothing at the phone shows why.
    #[test]
    fn losses_that_the_receiver_does_not_see_are_by_the_sender() {
        use Reason::{AppLimited, LossRecovery, Pacing, Queue, Request};
        let phone = timeline(&[
            (0, 40, Request),
            (40, 100, Pacing),
            (100, 900, AppLimited),
            (900, 950, Queue),
            (950, 990, Pacing),
        ]);
        let server = timeline(&[(50, 110, AppLimited), (110, 970, LossRecovery)]);
        assert_eq!(
            reasons(&phone.with_waits_of(&server, true)),
            [
                (40, Request),
                (100, Pacing),
                (110, AppLimited),
                (900, LossRecovery),
                (950, Queue),
                (970, LossRecovery),
                (990, Pacing)
            ]
        );
    }

    /// At a server an acknowledgement may end a wait: no data arrives with it.
    #[test]
    fn an_acknowledgement_is_no_data() {
        let span = |from_ns, to_ns| WaitSpan { from_ns, to_ns, reason: Reason::Pacing };
        let mut waits = WaitTimeline::new();
        waits.push(&[span(0, 10)], false);
        assert_eq!(waits.first_byte_ns(0), None);
        waits.push(&[span(50, 90)], true);
        assert_eq!(waits.first_byte_ns(0), Some(90));
    }
}
