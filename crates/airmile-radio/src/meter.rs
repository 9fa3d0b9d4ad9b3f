//! What is measured of a transfer, piece by piece, as it is decided: so that
//! a log of any length takes little memory.

use std::collections::BTreeMap;

use airmile_model::{Burst, TtiIndex};

use crate::decided::Decided;

/// Measures of `[start, end)`, as far as they were gathered.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferMeter {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Whether the end is known; else it may still move on.
    pub(crate) ended: bool,
    /// Runs before it are in.
    pub(crate) runs_to: i64,
    /// Bursts that begin before it are in.
    pub(crate) bursts_to: i64,
    pub(crate) in_burst: i64,
    pub(crate) waits: i64,
    pub(crate) scheduled: i64,
    pub(crate) holes: i64,
    pub(crate) sent_bytes: u64,
    /// Start and end in microseconds since the Unix epoch.
    pub(crate) times_us: Option<(i64, i64)>,
    /// Whether all of it is in.
    pub(crate) whole: bool,
    bursts: BurstsSeen,
}

impl TransferMeter {
    /// Of a span with a known end.
    #[must_use]
    pub fn new(start: TtiIndex, end: TtiIndex) -> Self {
        Self { ended: true, ..Self::open(start, end) }
    }

    /// Of a span whose end may still move on.
    #[must_use]
    pub fn open(start: TtiIndex, end: TtiIndex) -> Self {
        Self {
            start: start.0,
            end: end.0,
            ended: false,
            runs_to: start.0,
            bursts_to: start.0,
            in_burst: 0,
            waits: 0,
            scheduled: 0,
            holes: 0,
            sent_bytes: 0,
            times_us: None,
            whole: false,
            bursts: BurstsSeen::new(start.0),
        }
    }

    /// The span lasts at least until then.
    pub fn extend(&mut self, end: TtiIndex) {
        self.end = self.end.max(end.0);
    }

    /// The span ends then.
    pub const fn set_end(&mut self, end: TtiIndex) {
        self.end = end.0;
        self.ended = true;
    }

    /// Its first TTI and its end, as far as that is known.
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

    /// What still has to be kept for it: all that ends after these.
    #[must_use]
    pub const fn needs(&self) -> Decided {
        Decided { runs: TtiIndex(self.runs_to), bursts: TtiIndex(self.bursts_to) }
    }

    /// Whether its end is known.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether all of it is in.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Takes the bursts that begin before `to`, out of those in order.
    pub(crate) fn ingest_bursts(&mut self, bursts: &[Burst], to: i64) {
        // Those that are in begin before; of those before the start, the ones
        // that reach into it are not.
        let begun = self.bursts_to > self.start || self.bursts.count > 0;
        let from = match begun {
            true => bursts.partition_point(|b| b.start_tti.0 < self.bursts_to),
            false => bursts.partition_point(|b| b.end_tti.0 <= self.start),
        };
        let rest = bursts.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.start_tti.0 < to).for_each(|b| self.bursts.add(b));
    }
}

/// The bursts that touch a span, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstsSeen {
    /// How many.
    pub count: u64,
    /// Their data bytes.
    pub bytes: u64,
    /// TTIs in which they sent, the last one of each included.
    pub sending_ttis: i64,
    /// How many were closed by what.
    pub closed_by: BTreeMap<&'static str, u64>,
    start: i64,
    /// Burst bounds reach this far.
    covered_to: i64,
    longest_empty: (i64, i64),
    /// TTIs of the longest burst before the last one, inside the span.
    longest_before: i64,
    /// The last burst, inside the span.
    last: (i64, i64),
}

impl BurstsSeen {
    const fn new(start: i64) -> Self {
        Self {
            count: 0,
            bytes: 0,
            sending_ttis: 0,
            closed_by: BTreeMap::new(),
            start,
            covered_to: start,
            longest_empty: (start, start),
            longest_before: 0,
            last: (start, start),
        }
    }

    fn add(&mut self, burst: &Burst) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(burst.bytes);
        self.sending_ttis = self.sending_ttis.saturating_add(burst.n_tti().saturating_add(1));
        // Bursts are in order and apart: only the last one may outlast the span.
        let (from, to) = self.last;
        self.longest_before = self.longest_before.max(to.saturating_sub(from));
        self.last = (burst.start_tti.0.max(self.start), burst.end_tti.0);
        *self.closed_by.entry(burst.closed_by.as_str()).or_default() += 1;
        self.longest_empty = self.longest_empty_until(burst.start_tti).into_tti();
        self.covered_to = self.covered_to.max(burst.end_tti.0);
    }

    /// TTIs of the longest burst, as far as it is inside the whole, which ends
    /// at `end`.
    #[must_use]
    pub fn longest_until(&self, end: TtiIndex) -> i64 {
        let (from, to) = self.last;
        self.longest_before.max(to.min(end.0).saturating_sub(from))
    }

    /// The longest span without a burst, where the whole ends at `end`.
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
