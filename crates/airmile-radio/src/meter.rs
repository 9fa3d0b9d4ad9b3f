//! The measures of a transfer, summed as they are decided, so that a log of any length
//! takes little memory.

use std::collections::BTreeMap;

use airmile_model::{Burst, TtiIndex};

use crate::decided::Decided;

/// Measures of `[start, end)` so far.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferMeter {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Whether the end is known; otherwise it may still move.
    pub(crate) ended: bool,
    /// Runs before it are included.
    pub(crate) runs_to: i64,
    /// Bursts that begin before it are included.
    pub(crate) bursts_to: i64,
    pub(crate) in_burst: i64,
    /// TTIs of bursts that may be none.
    pub(crate) unclear: i64,
    pub(crate) waits: i64,
    /// TTIs of bursts in which all reported data was granted.
    pub(crate) granted: i64,
    /// TTIs of bursts in which nothing shows whether it was.
    pub(crate) ungauged: i64,
    pub(crate) scheduled: i64,
    pub(crate) holes: i64,
    pub(crate) sent_bytes: u64,
    /// Start in microseconds since the Unix epoch, once the log has reached it.
    pub(crate) start_us: Option<i64>,
    /// Start and end in microseconds since the Unix epoch.
    pub(crate) times_us: Option<(i64, i64)>,
    /// Whether it is complete.
    pub(crate) whole: bool,
    bursts: BurstsSeen,
}

impl TransferMeter {
    /// For a span with a known end.
    #[must_use]
    pub fn new(start: TtiIndex, end: TtiIndex) -> Self {
        Self { ended: true, ..Self::open(start, end) }
    }

    /// For a span whose end may still move.
    #[must_use]
    pub fn open(start: TtiIndex, end: TtiIndex) -> Self {
        Self {
            start: start.0,
            end: end.0,
            ended: false,
            runs_to: start.0,
            bursts_to: start.0,
            in_burst: 0,
            unclear: 0,
            waits: 0,
            granted: 0,
            ungauged: 0,
            scheduled: 0,
            holes: 0,
            sent_bytes: 0,
            start_us: None,
            times_us: None,
            whole: false,
            bursts: BurstsSeen::new(start.0),
        }
    }

    /// Extends the span to at least `end`.
    pub fn extend(&mut self, end: TtiIndex) {
        self.end = self.end.max(end.0);
    }

    /// Sets the end of the span.
    pub const fn set_end(&mut self, end: TtiIndex) {
        self.end = end.0;
        self.ended = true;
    }

    /// Its first TTI and its end so far.
    #[must_use]
    pub const fn span(&self) -> (TtiIndex, TtiIndex) {
        (TtiIndex(self.start), TtiIndex(self.end))
    }

    /// The bursts that touch it.
    #[must_use]
    pub const fn bursts(&self) -> &BurstsSeen {
        &self.bursts
    }

    /// Bytes sent in it.
    #[must_use]
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// What must still be kept for it: everything that ends after these TTIs.
    #[must_use]
    pub const fn needs(&self) -> Decided {
        Decided { runs: TtiIndex(self.runs_to), bursts: TtiIndex(self.bursts_to) }
    }

    /// Whether its end is known.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it is complete.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Adds the bursts that begin before `to`; `bursts` is in order.
    pub(crate) fn ingest_bursts(&mut self, bursts: &[Burst], to: i64) {
        // Included bursts begin before; of those before the start, the ones that reach into
        // the span are not included yet.
        let begun = self.bursts_to > self.start || self.bursts.count > 0;
        let from = match begun {
            true => bursts.partition_point(|b| b.start_tti.0 < self.bursts_to),
            false => bursts.partition_point(|b| b.end_tti.0 <= self.start),
        };
        let rest = bursts.get(from..).unwrap_or_default().iter();
        let rest = rest.take_while(|b| b.start_tti.0 < to);
        rest.filter(|b| b.is_clear()).for_each(|b| self.bursts.add(b));
    }
}

/// Statistics of the bursts that touch a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstsSeen {
    /// How many.
    pub count: u64,
    /// Their data bytes, without those of the last TTI of each.
    pub bytes: u64,
    /// Their TTIs, without the last one of each.
    pub n_tti: i64,
    /// Number of bursts by the evidence that closed them.
    pub closed_by: BTreeMap<&'static str, u64>,
    start: i64,
    /// End of the burst bounds so far.
    covered_to: i64,
    longest_empty: (i64, i64),
    /// TTIs of all bursts and of the longest before the last one, inside the span.
    inside_before: i64,
    longest_before: i64,
    /// The last burst, inside the span.
    last: (i64, i64),
}

impl BurstsSeen {
    const fn new(start: i64) -> Self {
        Self {
            count: 0,
            bytes: 0,
            n_tti: 0,
            closed_by: BTreeMap::new(),
            start,
            covered_to: start,
            longest_empty: (start, start),
            inside_before: 0,
            longest_before: 0,
            last: (start, start),
        }
    }

    fn add(&mut self, burst: &Burst) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(burst.waited_bytes());
        self.n_tti = self.n_tti.saturating_add(burst.n_tti());
        // Bursts are in order and disjoint: only the last one may extend past the span.
        let (from, to) = self.last;
        self.inside_before = self.inside_before.saturating_add(to.saturating_sub(from));
        self.longest_before = self.longest_before.max(to.saturating_sub(from));
        self.last = (burst.start_tti.0.max(self.start), burst.end_tti.0);
        *self.closed_by.entry(burst.closed_by.as_str()).or_default() += 1;
        self.longest_empty = self.longest_empty_until(burst.start_tti).into_tti();
        self.covered_to = self.covered_to.max(burst.end_tti.0);
    }

    /// TTIs of bursts within the whole, which ends at `end`.
    #[must_use]
    pub fn inside_until(&self, end: TtiIndex) -> i64 {
        let (from, to) = self.last;
        self.inside_before.saturating_add(to.min(end.0).saturating_sub(from))
    }

    /// TTIs of the longest burst within the whole, which ends at `end`.
    #[must_use]
    pub fn longest_until(&self, end: TtiIndex) -> i64 {
        let (from, to) = self.last;
        self.longest_before.max(to.min(end.0).saturating_sub(from))
    }

    /// The longest span without a burst, if the whole ends at `end`.
    #[must_use]
    pub fn longest_empty_until(&self, end: TtiIndex) -> EmptySpan {
        let (from, to) = self.longest_empty;
        let last = end.0.saturating_sub(self.covered_to);
        let (from, to) =
            if last > to.saturating_sub(from) { (self.covered_to, end.0) } else { (from, to) };
        EmptySpan { start_tti: TtiIndex(from), end_tti: TtiIndex(to) }
    }
}

/// TTIs without a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptySpan {
    /// First TTI.
    pub start_tti: TtiIndex,
    /// The TTI after the last.
    pub end_tti: TtiIndex,
}

impl EmptySpan {
    /// TTIs that it lasts.
    #[must_use]
    pub fn n_tti(&self) -> i64 {
        self.end_tti.since(self.start_tti)
    }

    const fn into_tti(self) -> (i64, i64) {
        (self.start_tti.0, self.end_tti.0)
    }
}
