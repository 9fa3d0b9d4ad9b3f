//! A transfer's time by cause.

use std::collections::BTreeMap;

use airmile_model::Cause;

use super::Reason;

/// The upper bound of the initial window, min(10 MSS, max(2 MSS, 14600)) (RFC 6928, 2), for segments
/// of 1460 bytes. A transfer of at most so many bytes fits in the first flight of senders that use
/// it; what senders with a smaller window wait for is reported as unknown.
pub const INITIAL_WINDOW_BYTES: u64 = 14_600;
/// Spans of a transfer that are kept apart; beyond it, neighbours are joined (chosen here: more than a
/// chart has pixels).
const MOST_SPANS: usize = 4_096;

/// A span of a transfer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseSpan {
    /// Its cause; `None` while data waited for the radio.
    pub cause: Option<Cause>,
    /// Start, in nanoseconds.
    pub from_ns: i64,
    /// End, in nanoseconds.
    pub to_ns: i64,
}

impl CauseSpan {
    /// The span on another clock.
    #[must_use]
    pub fn at(self, moved: impl Fn(i64) -> i64) -> Self {
        Self { from_ns: moved(self.from_ns), to_ns: moved(self.to_ns), ..self }
    }
}

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
    /// All of it, in order.
    pub spans: Vec<CauseSpan>,
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
        let own = self.spans.iter_mut().filter(|span| span.cause == Some(cause));
        own.for_each(|span| span.cause = Some(Cause::Unknown));
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
        self.note(CauseSpan { cause: Some(cause), from_ns, to_ns });
    }

    /// Adds a span in which data waited for the radio.
    pub(super) fn add_radio(&mut self, from_ns: i64, to_ns: i64) {
        self.radio_ns += to_ns - from_ns;
        self.note(CauseSpan { cause: None, from_ns, to_ns });
    }

    fn note(&mut self, span: CauseSpan) {
        match self.spans.last_mut() {
            Some(last) if last.cause == span.cause => last.to_ns = span.to_ns,
            _ => self.spans.push(span),
        }
        if self.spans.len() > MOST_SPANS {
            let longer = |pair: &[CauseSpan]| {
                let of = pair.iter().copied().max_by_key(|one| one.to_ns - one.from_ns)?;
                Some(CauseSpan { from_ns: pair.first()?.from_ns, to_ns: pair.last()?.to_ns, ..of })
            };
            self.spans = self.spans.chunks(2).filter_map(longer).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_whole_and_bounded() {
        let mut shares = Shares::default();
        let n = 5 * MOST_SPANS as i64;
        for at in 0..n {
            // Of each 10 ns, 7 are the sender's.
            shares.add(Cause::SenderLimited, Reason::AppLimited, at * 10, at * 10 + 7);
            shares.add_radio(at * 10 + 7, at * 10 + 10);
        }
        assert!(shares.spans.len() <= MOST_SPANS, "{}", shares.spans.len());
        assert!(shares.spans.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(shares.spans.last().unwrap().to_ns, n * 10);
        let by_sender = shares.spans.iter().filter(|span| span.cause.is_some());
        let ns: i64 = by_sender.map(|span| span.to_ns - span.from_ns).sum();
        assert!(ns >= n * 7, "{ns}");
        let unknown = shares.without(Cause::SenderLimited);
        assert!(unknown.spans.iter().all(|span| span.cause != Some(Cause::SenderLimited)));
    }
}
