//! The times of TTIs on a log's clock.

use crate::tti::{TtiIndex, TtiSpan};

/// Minimum step of a clock that was set back (chosen here: above the delay of a batch of records, by
/// which a time may be off, and below the steps that begin a timing segment).
const MIN_SET_BACK_NS: i64 = 500_000_000;

/// Maximum correction of a clock during a span (chosen here: above those by the network's time, and a
/// single wrong time). After a larger one, another log follows, with times of its own.
const MAX_CORRECTION_NS: i64 = 5_000_000_000;

/// Spacing of anchors, in nanoseconds, unless another is chosen: drift within it is far below a TTI.
const SPACING_NS: i64 = 1_000_000_000;

/// Number of anchors, and of logs, that are kept before those that may be forgotten (chosen here: two
/// minutes, as the times of findings are also asked for a little later).
const KEPT: usize = 128;

/// Converts between the TTIs of an axis and the times of a log's clock, by binary search in each log.
///
/// An anchor is a TTI with a known time; others are counted from the last anchor before, else from the
/// first. Where the clock was set back, another log follows in the same file: TTIs continue, and
/// times that the log before showed may follow once more. Times are in nanoseconds since the Unix
/// epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TtiClock {
    spacing_ns: i64,
    numerology: u8,
    logs: Vec<Log>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    tti: i64,
    ns: i64,
}

/// The anchors of one log: times ascend with the TTIs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    first: Anchor,
    later: Vec<Anchor>,
    /// The latest time.
    end_ns: i64,
    /// The earliest time of this log and those before.
    earliest_ns: i64,
    /// The latest time of those before.
    latest_ns: i64,
}

impl Log {
    /// A log that begins with an anchor, after another.
    fn new(first: Anchor, before: Option<&Self>) -> Self {
        let earliest_ns = before.map_or(first.ns, |log| log.earliest_ns.min(first.ns));
        let latest_ns = before.map_or(i64::MIN, |log| log.latest_ns.max(log.end_ns));
        Self { first, later: Vec::new(), end_ns: first.ns, earliest_ns, latest_ns }
    }

    fn last(&self) -> Anchor {
        self.later.last().copied().unwrap_or(self.first)
    }

    /// The last anchor that is not `past`, else the first.
    fn anchor(&self, past: impl Fn(&Anchor) -> bool) -> Anchor {
        let n = self.later.partition_point(|anchor| !past(anchor));
        self.later[..n].last().copied().unwrap_or(self.first)
    }

    fn tti_at(&self, ns: i64, numerology: u8) -> TtiIndex {
        let before = self.anchor(|anchor| anchor.ns > ns);
        let since_ns = ns.saturating_sub(before.ns);
        TtiIndex(before.tti.saturating_add(since_ns.div_euclid(TtiSpan(1).ns(numerology))))
    }
}

impl Default for TtiClock {
    fn default() -> Self {
        Self::new()
    }
}

impl TtiClock {
    /// A clock without anchors, of LTE's TTIs. Anchors will be 1 s apart.
    #[must_use]
    pub const fn new() -> Self {
        Self::spaced(SPACING_NS)
    }

    /// The same, with the minimum time between anchors in nanoseconds.
    #[must_use]
    pub const fn spaced(spacing_ns: i64) -> Self {
        Self { spacing_ns, numerology: 0, logs: Vec::new() }
    }

    /// Sets the length of TTIs (NR numerology; 0: LTE).
    pub const fn set_numerology(&mut self, numerology: u8) {
        self.numerology = numerology;
    }

    /// The numerology of the TTIs (0: LTE).
    #[must_use]
    pub const fn numerology(&self) -> u8 {
        self.numerology
    }

    /// Whether no time is known.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// Whether a clock that showed `from_ns` before some TTIs of a numerology, and `at_ns` after them,
    /// was set back in between, as where another log follows in the same file.
    #[must_use]
    pub const fn is_set_back(since: TtiSpan, numerology: u8, (from_ns, at_ns): (i64, i64)) -> bool {
        from_ns.saturating_add(since.ns(numerology)).saturating_sub(at_ns) > MIN_SET_BACK_NS
    }

    /// Whether a record of a TTI and time is the first after the clock was set back.
    #[must_use]
    pub fn begins_log(&self, tti: TtiIndex, ns: i64) -> bool {
        self.logs.last().is_some_and(|log| {
            let last = log.last();
            let since = TtiSpan(tti.0.saturating_sub(last.tti));
            since.0 > 0 && Self::is_set_back(since, self.numerology, (last.ns, ns))
        })
    }

    /// Takes the TTI and time of a record, in TTI order.
    pub fn note(&mut self, tti: TtiIndex, ns: i64) {
        let at = Anchor { tti: tti.0, ns };
        let begins = self.begins_log(tti, ns);
        match self.logs.last_mut().filter(|_| !begins) {
            Some(log) => {
                let last = log.last();
                log.end_ns = log.end_ns.max(ns);
                if at.tti > last.tti && ns.saturating_sub(last.ns) >= self.spacing_ns {
                    log.later.push(at);
                }
            }
            None => {
                let log = Log::new(at, self.logs.last());
                self.logs.push(log);
            }
        }
    }

    /// Its anchors: TTIs, ascending, and their times.
    pub fn anchors(&self) -> impl Iterator<Item = (TtiIndex, i64)> {
        let all = self.logs.iter().flat_map(|log| std::iter::once(&log.first).chain(&log.later));
        all.map(|anchor| (TtiIndex(anchor.tti), anchor.ns))
    }

    /// The last anchor, and its time.
    #[must_use]
    pub fn last_anchor(&self) -> Option<(TtiIndex, i64)> {
        self.logs.last().map(Log::last).map(|last| (TtiIndex(last.tti), last.ns))
    }

    /// Removes most anchors that no TTI from this one on needs. The first one stays: it also applies to
    /// earlier times.
    pub fn forget_before(&mut self, tti: TtiIndex) {
        // Each list is moved about once.
        let is_worth = |n: usize, of: usize| n >= KEPT && 2 * n >= of;
        let current = self.logs.partition_point(|log| log.first.tti <= tti.0).saturating_sub(1);
        if let Some(log) = self.logs.get_mut(current) {
            let past = log.later.partition_point(|anchor| anchor.tti <= tti.0);
            let n = past.saturating_sub(KEPT);
            if is_worth(n, log.later.len()) {
                log.later.drain(..n);
            }
        }
        let n = current.saturating_sub(KEPT);
        if is_worth(n, self.logs.len()) {
            self.logs.drain(1..n);
        }
    }

    /// The time of a TTI.
    #[must_use]
    pub fn ns_at(&self, TtiIndex(tti): TtiIndex) -> Option<i64> {
        let past = self.logs.partition_point(|log| log.first.tti <= tti);
        let before = self.logs.get(past.saturating_sub(1))?.anchor(|anchor| anchor.tti > tti);
        let since = TtiSpan(tti.saturating_sub(before.tti));
        Some(before.ns.saturating_add(since.ns(self.numerology)))
    }

    /// The TTI of a time by the log that the clock shows now; `None` if that began later.
    #[must_use]
    pub fn tti_now(&self, ns: i64) -> Option<TtiIndex> {
        let log = self.logs.last()?;
        let is_of = self.logs.len() == 1 || log.first.ns <= ns;
        is_of.then(|| log.tti_at(ns, self.numerology))
    }

    /// The TTI of a time, after the end of all logs, as in [`Self::place`].
    #[must_use]
    pub fn tti_at(&self, ns: i64) -> Option<TtiIndex> {
        self.place((ns, ns), true).map(|(tti, _)| tti)
    }

    /// The TTIs of the start and the end of a span of time, both by the first log that shows it, so
    /// that a later log moves nothing. Without an end, the log may still reach it. Where no log shows
    /// both, each end is by the first log that does, if the clock was only corrected in between; `None`
    /// in any other case.
    ///
    /// The first log also has spans that begin before it. With `has_ended`, the last one has spans that
    /// end after it, and spans that no log shows any part of are before or after all TTIs.
    #[must_use]
    pub fn place(
        &self,
        (from_ns, to_ns): (i64, i64),
        has_ended: bool,
    ) -> Option<(TtiIndex, Option<TtiIndex>)> {
        let (first, last) = self.logs.first().zip(self.logs.last())?;
        let n = self.logs.len();
        let tti_ns = TtiSpan(1).ns(self.numerology);
        let begins_in =
            |i: usize, log: &Log| log.first.ns <= from_ns || (i == 0 && log.first.ns <= to_ns);
        let shows = |i: usize| {
            self.logs.get(i).filter(|log| {
                // A later anchor of an open log may move what follows the last one.
                let is_open = i + 1 == n;
                let end_ns =
                    if is_open { log.last().ns } else { log.end_ns.saturating_add(tti_ns) };
                begins_in(i, log) && to_ns <= end_ns
            })
        };
        // No log before these begins early enough, or ends late enough.
        let begun = self.logs.partition_point(|log| log.earliest_ns > from_ns);
        let ended = self.logs.partition_point(|log| log.latest_ns.saturating_add(tti_ns) < to_ns);
        let from_log = begun.max(ended.saturating_sub(1));
        let is_shown = || self.logs.iter().any(|l| l.first.ns <= to_ns && from_ns <= l.end_ns);
        let log = match std::iter::once(0).chain(from_log..n).find_map(shows) {
            Some(log) => Some(log),
            None if !has_ended => None,
            None if n == 1 || (last.first.ns..=last.end_ns).contains(&from_ns) => Some(last),
            None if is_shown() => None,
            None if last.first.ns <= from_ns => Some(last),
            None => (to_ns < first.first.ns).then_some(first),
        };
        let tti_at = |log: &Log, ns: i64| log.tti_at(ns, self.numerology);
        match log {
            Some(log) => Some((tti_at(log, from_ns), Some(tti_at(log, to_ns)))),
            None if begins_in(n - 1, last) && from_ns < last.last().ns => {
                Some((tti_at(last, from_ns), None))
            }
            None => self.place_over_logs((from_ns, to_ns), has_ended),
        }
    }

    /// As [`Self::place`], for a span during which the clock was corrected.
    fn place_over_logs(
        &self,
        (from_ns, to_ns): (i64, i64),
        has_ended: bool,
    ) -> Option<(TtiIndex, Option<TtiIndex>)> {
        let shows_start = |(i, log): &(usize, &Log)| {
            (*i == 0 || log.first.ns <= from_ns) && from_ns <= log.end_ns
        };
        let (begun, log) = self.logs.iter().enumerate().find(shows_start)?;
        let start = log.tti_at(from_ns, self.numerology);
        let is_corrected = |log: &Log| {
            let since = TtiSpan(log.first.tti.saturating_sub(start.0)).ns(self.numerology);
            let shown_ns = log.first.ns.saturating_sub(from_ns);
            since.saturating_sub(shown_ns).unsigned_abs() <= MAX_CORRECTION_NS.unsigned_abs()
        };
        let later = self.logs.get(begun + 1..)?;
        let last = later.last()?;
        let shows_end = |log: &&Log| {
            let is_open = std::ptr::eq(*log, last);
            let reaches = match (is_open, has_ended) {
                (true, true) => true,
                (true, false) => to_ns <= log.last().ns,
                (false, _) => to_ns <= log.end_ns,
            };
            log.first.ns <= to_ns && reaches && is_corrected(log)
        };
        let end = later.iter().find(shows_end).map(|log| log.tti_at(to_ns, self.numerology));
        let goes_on = !has_ended && is_corrected(last);
        (end.is_some() || goes_on).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A clock of logs: first TTI, first ms and TTIs of each.
    fn clock(logs: &[(i64, i64, i64)]) -> TtiClock {
        let mut clock = TtiClock::new();
        for (first_tti, first_ms, n) in logs {
            (0..*n).for_each(|i| clock.note(TtiIndex(first_tti + i), (first_ms + i) * MS));
        }
        clock
    }

    fn place(clock: &TtiClock, (from_ms, to_ms): (i64, i64)) -> Option<(i64, Option<i64>)> {
        let placed = clock.place((from_ms * MS, to_ms * MS), true);
        placed.map(|(start, end)| (start.0, end.map(|end| end.0)))
    }

    #[test]
    fn ttis_are_counted_from_the_anchor_before() {
        let mut clock = TtiClock::new();
        assert_eq!((clock.ns_at(TtiIndex(7)), clock.tti_at(7)), (None, None));
        for (tti, ns) in [(100, 5_000_000_000), (200, 5_100_500_000), (1_200, 6_100_200_000)] {
            clock.note(TtiIndex(tti), ns);
        }
        for (tti, ns) in [
            (99, 4_999_000_000),
            (100, 5_000_000_000),
            // 0.1 s after an anchor there is none.
            (200, 5_100_000_000),
            (1_199, 6_099_000_000),
            (1_200, 6_100_200_000),
            (1_210, 6_110_200_000),
        ] {
            assert_eq!(clock.ns_at(TtiIndex(tti)), Some(ns), "{tti}");
            assert_eq!(clock.tti_at(ns), Some(TtiIndex(tti)), "{tti}");
        }
        assert_eq!(clock.anchors().count(), 2);
    }

    #[test]
    fn each_log_has_its_own_times() {
        // The second begins 0.9 s before the last anchor of the first.
        let clock = clock(&[(0, 100_000, 2_500), (2_500, 101_100, 2_500), (5_000, 7_000, 4_000)]);
        for (tti, ms) in [
            (0, 100_000),
            (2_499, 102_499),
            (2_500, 101_100),
            (4_999, 103_599),
            (5_000, 7_000),
            (8_999, 10_999),
        ] {
            assert_eq!(clock.ns_at(TtiIndex(tti)), Some(ms * MS), "{tti}");
        }
        assert_eq!(clock.tti_now(8_500 * MS), Some(TtiIndex(6_500)));
        assert_eq!(clock.tti_now(11_500 * MS), Some(TtiIndex(9_500)));
        assert_eq!(clock.tti_now(6_999 * MS), None);
    }

    /// Both ends of a span are of one log, the first that shows it, and never in TTIs of another.
    #[test]
    fn a_span_is_of_the_first_log_that_shows_it() {
        let clock =
            clock(&[(0, 100_000, 60_000), (60_000, 130_500, 50_000), (110_000, 7_000, 9_000)]);
        for (span_ms, expected) in [
            ((135_200, 135_700), Some((35_200, Some(35_700)))),
            ((159_000, 161_000), Some((88_500, Some(90_500)))),
            ((99_000, 100_500), Some((-1_000, Some(500)))),
            ((8_000, 8_500), Some((111_000, Some(111_500)))),
            ((15_000, 17_000), Some((118_000, Some(120_000)))),
            ((6_000, 6_500), Some((-94_000, Some(-93_500)))),
            // In no log, and in parts of some.
            ((50_000, 51_000), Some((153_000, Some(154_000)))),
            ((99_000, 200_000), None),
            ((6_000, 8_000), None),
        ] {
            assert_eq!(place(&clock, span_ms), expected, "{span_ms:?}");
        }
    }

    /// A clock corrected during a span, or one wrong time, loses no span: each end is by its own log.
    #[test]
    fn a_span_goes_over_a_corrected_clock() {
        let with_one = |wrong_ms: i64| {
            let mut clock = clock(&[(0, 100_000, 10_000)]);
            clock.note(TtiIndex(10_000), (110_000 + wrong_ms) * MS);
            (10_001..20_000).for_each(|i| clock.note(TtiIndex(i), (100_000 + i) * MS));
            clock
        };
        for wrong_ms in [2_000, 90_000, -700, -2_000] {
            let clock = with_one(wrong_ms);
            assert_eq!(place(&clock, (101_500, 118_500)), Some((1_500, Some(18_500))));
        }
        // Set back by 0.6 s, and by an hour.
        let corrected = clock(&[(0, 100_000, 10_000), (10_000, 109_400, 10_000)]);
        assert_eq!(place(&corrected, (101_500, 118_000)), Some((1_500, Some(18_600))));
        assert_eq!(place(&corrected, (99_000, 121_000)), Some((-1_000, Some(21_600))));
        let live = |to_ms: i64| corrected.place((101_500 * MS, to_ms * MS), false);
        assert_eq!(live(118_000), Some((TtiIndex(1_500), Some(TtiIndex(18_600)))));
        assert_eq!(live(125_000), Some((TtiIndex(1_500), None)));
        let set_back = clock(&[(0, 3_700_000, 10_000), (10_000, 110_000, 10_000)]);
        assert_eq!(place(&set_back, (3_701_500, 3_718_500)), None);
    }

    /// What was placed while the log was read is where it would be placed at its end.
    #[test]
    fn a_later_log_moves_no_span() {
        let mut clock = clock(&[(0, 100_000, 40_000)]);
        let at = |clock: &TtiClock, from_ms: i64, to_ms: i64| {
            clock.place((from_ms * MS, to_ms * MS), false)
        };
        assert_eq!(at(&clock, 135_000, 136_000), Some((TtiIndex(35_000), Some(TtiIndex(36_000)))));
        assert_eq!(at(&clock, 138_000, 141_000), Some((TtiIndex(38_000), None)));
        assert_eq!(at(&clock, 141_000, 142_000), None);
        (0..20_000).for_each(|i| clock.note(TtiIndex(40_000 + i), (130_000 + i) * MS));
        assert_eq!(at(&clock, 135_000, 136_000), Some((TtiIndex(35_000), Some(TtiIndex(36_000)))));
        assert_eq!(at(&clock, 138_000, 141_000), Some((TtiIndex(48_000), Some(TtiIndex(51_000)))));
    }

    #[test]
    fn old_anchors_are_forgotten() {
        let mut clock = TtiClock::new();
        // A drift of 1 ms in each s.
        (0..1_000).for_each(|i| clock.note(TtiIndex(1_000 * i), 1_001 * i * MS));
        clock.forget_before(TtiIndex(900_000));
        assert!(clock.anchors().count() < 300, "{}", clock.anchors().count());
        for tti in [900_000, 800_000, -5] {
            let ms = if tti < 0 { tti } else { tti / 1_000 * 1_001 };
            assert_eq!(clock.ns_at(TtiIndex(tti)), Some(ms * MS), "{tti}");
        }
        let mut clock = TtiClock::new();
        (0..1_000).for_each(|i| clock.note(TtiIndex(i), -1_000 * i * MS));
        clock.forget_before(TtiIndex(900));
        assert!(clock.anchors().count() < 300, "{}", clock.anchors().count());
        for tti in [0, 800, 999] {
            assert_eq!(clock.ns_at(TtiIndex(tti)), Some(-1_000 * tti * MS), "{tti}");
        }
    }
}
