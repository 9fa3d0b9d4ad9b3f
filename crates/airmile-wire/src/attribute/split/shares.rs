//! A transfer's time by cause.

use std::collections::BTreeMap;

use airmile_model::Cause;

use super::Reason;

/// The upper bound of the initial window, min(10 MSS, max(2 MSS, 14600)) (RFC 6928, 2), for segments
/// of 1460 bytes. A transfer of at most so many bytes fits in the first flight of senders that use
/// it; what senders with a smaller window wait for is reported as unknown.
pub const INITIAL_WINDOW_BYTES: u64 = 14_600;
/// A transfer's time by cause; the parts add up to its duration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// The downlink queue was not empty, in nanoseconds.
    pub radio_ns: i64,
    /// The rest, in nanoseconds.
    pub by_cause: BTreeMap<Cause, i64>,
    /// The rest, by what the sender waited for.
    pub by_reason: BTreeMap<Reason, i64>,
    /// The rest, by both.
    pub parts: BTreeMap<(Cause, Reason), i64>,
    /// The longest span of each cause, in nanoseconds.
    pub longest: BTreeMap<Cause, (i64, i64)>,
    /// Number of spans of each cause.
    pub pieces: BTreeMap<Cause, u32>,
}

impl Shares {
    /// The shares of a transfer of so many bytes: one that fits the initial window waits for no
    /// slow start. Such time, of another transfer on the phone, has no known cause here.
    #[must_use]
    pub fn of_bytes(mut self, bytes: Option<u64>) -> Self {
        if bytes.is_none_or(|bytes| bytes > INITIAL_WINDOW_BYTES) {
            return self;
        }
        if let Some(ns) = self.by_reason.remove(&Reason::FirstSlowStart) {
            *self.by_reason.entry(Reason::Unknown).or_default() += ns;
        }
        self.without(Cause::FirstSlowStart)
    }

    /// The same with a cause's time unknown.
    #[must_use]
    pub fn without(mut self, cause: Cause) -> Self {
        if let Some(ns) = self.by_cause.remove(&cause) {
            *self.by_cause.entry(Cause::Unknown).or_default() += ns;
        }
        self.parts.retain(|(of, _), _| *of != cause);
        if let Some(n) = self.pieces.remove(&cause) {
            *self.pieces.entry(Cause::Unknown).or_default() += n;
        }
        if let Some(longest) = self.longest.remove(&cause) {
            self.lengthen(Cause::Unknown, longest);
        }
        self
    }

    /// Keeps the longest span of a cause.
    fn lengthen(&mut self, cause: Cause, span: (i64, i64)) {
        let longest = self.longest.entry(cause).or_insert(span);
        if longest.1 - longest.0 < span.1 - span.0 {
            *longest = span;
        }
    }

    /// Whether the sender waited for requests longer than for itself.
    #[must_use]
    pub fn waits_for_requests(&self) -> bool {
        let ns = |reason| self.by_reason.get(&reason).copied().unwrap_or(0);
        let own = [Reason::AppLimited, Reason::Pacing, Reason::ServerThinkTime].map(ns);
        ns(Reason::NoRequest) > own.into_iter().fold(0, i64::saturating_add)
    }

    /// The sum in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        self.radio_ns + self.by_cause.values().sum::<i64>()
    }

    /// Adds a span, if it is not empty.
    pub(super) fn add(&mut self, cause: Cause, reason: Reason, from_ns: i64, to_ns: i64) {
        if to_ns <= from_ns {
            return;
        }
        *self.by_cause.entry(cause).or_default() += to_ns - from_ns;
        *self.by_reason.entry(reason).or_default() += to_ns - from_ns;
        *self.parts.entry((cause, reason)).or_default() += to_ns - from_ns;
        *self.pieces.entry(cause).or_default() += 1;
        self.lengthen(cause, (from_ns, to_ns));
    }
}
