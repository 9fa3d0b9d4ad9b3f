//! The times of TTIs on a log's clock.

use std::collections::BTreeMap;

use crate::tti::{TtiIndex, TtiSpan};

/// Minimum step of a clock that was set back (chosen here: above the delay of a batch of records, by
/// which a time may be off, and below the steps that begin a timing segment).
const MIN_SET_BACK_NS: i64 = 500_000_000;

/// Maximum correction of a clock during a span (chosen here: above those by the network's time, and a
/// single wrong time). After a larger one, another log follows, with times of its own.
const MAX_CORRECTION_NS: u64 = 5_000_000_000;

/// Spacing of anchors, in nanoseconds, unless another is chosen: drift within it is far below a TTI.
const SPACING_NS: i64 = 1_000_000_000;

/// Number of anchors, and of logs, that are kept before those that may be forgotten (chosen here: two
/// minutes, as the times of findings are also asked for a little later).
const KEPT: usize = 128;

/// Converts between the TTIs of an axis and the times of a log's clock, by binary search.
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
    /// Times by the first log that showed them, of the logs before the last one: the start, and the end
    /// with the log's index.
    shown: BTreeMap<i64, (i64, usize)>,
    /// The same, merged: start and end.
    covered: BTreeMap<i64, i64>,
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
}

impl Log {
    const fn new(first: Anchor) -> Self {
        Self { first, later: Vec::new(), end_ns: first.ns }
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
        Self {
            spacing_ns,
            numerology: 0,
            logs: Vec::new(),
            shown: BTreeMap::new(),
            covered: BTreeMap::new(),
        }
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
    const fn is_set_back(since: TtiSpan, numerology: u8, (from_ns, at_ns): (i64, i64)) -> bool {
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
                self.logs.len().checked_sub(1).into_iter().for_each(|ended| self.show(ended));
                self.logs.push(Log::new(at));
            }
        }
    }

    /// Adds the times of a log that has ended; those that a log before it showed stay with that.
    fn show(&mut self, index: usize) {
        let Some(log) = self.logs.get(index) else { return };
        let (from, to) = (log.first.ns, self.end_ns(log));
        let (mut start, mut end, mut until) = (from, to, to);
        while let Some((&first, &last)) = self.covered.range(..until).next_back()
            && last >= from
        {
            self.covered.remove(&first);
            if last < until {
                self.shown.insert(last, (until, index));
            }
            (start, end, until) = (first.min(start), last.max(end), first);
        }
        if from < until {
            self.shown.insert(from, (until, index));
        }
        self.covered.insert(start, end);
    }

    /// The end of the last TTI of a log that has ended.
    const fn end_ns(&self, log: &Log) -> i64 {
        log.end_ns.saturating_add(TtiSpan(1).ns(self.numerology)).saturating_add(1)
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
            self.shown.clear();
            self.covered.clear();
            (0..self.logs.len().saturating_sub(1)).for_each(|index| self.show(index));
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

    /// The TTIs of the start and the end of a span of time: of the first logs that show them, both of
    /// one if it shows both, so that a later log moves nothing; of two only if the clock was merely
    /// corrected in between. Without an end, the log may still reach it. `None` in any other case.
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
        let open = self.logs.len() - 1;
        // A later anchor of an open log may move what follows the last one.
        let open_end_ns =
            if has_ended { self.end_ns(last) } else { last.last().ns.saturating_add(1) };
        let shows = |index: usize, ns: i64| {
            self.logs.get(index).is_some_and(|log| {
                let end_ns = if index == open { open_end_ns } else { self.end_ns(log) };
                (log.first.ns..end_ns).contains(&ns)
            })
        };
        let log_at = |ns: i64| {
            let before = self.shown.range(..=ns).next_back();
            let closed = before.filter(|(_, (end_ns, _))| ns < *end_ns).map(|(_, (_, log))| *log);
            closed.or_else(|| shows(open, ns).then_some(open))
        };
        let beyond = |ns: i64| match has_ended {
            true if last.first.ns <= ns => Some(open),
            true if ns < first.first.ns => Some(0),
            _ => None,
        };
        let begins_before = from_ns < first.first.ns && first.first.ns <= to_ns;
        let end = log_at(to_ns);
        let begin = match end {
            Some(0) if begins_before => end,
            _ => log_at(from_ns).or_else(|| begins_before.then_some(0)),
        };
        let next = self.shown.range(from_ns..).next();
        if begin.or(end).is_none() && next.is_some_and(|(start_ns, _)| *start_ns <= to_ns) {
            return None;
        }
        let begin = begin.or_else(|| beyond(from_ns))?;
        let both = end.filter(|end| shows(*end, from_ns));
        let both = both.or_else(|| shows(begin, to_ns).then_some(begin));
        // It may have ended after the log did, at a time that one before shows.
        let end = end.filter(|end| begin < *end || !shows(begin, from_ns));
        let end = both.or(end).or_else(|| beyond(to_ns));
        let until = end.or_else(|| (!has_ended).then_some(open))?;
        let begin = if shows(until, from_ns) { until } else { begin };
        let start = self.logs.get(begin)?.tti_at(from_ns, self.numerology);
        let later = self.logs.get(until).filter(|later| {
            let since = TtiSpan(later.first.tti.saturating_sub(start.0)).ns(self.numerology);
            let shown_ns = later.first.ns.saturating_sub(from_ns);
            let is_corrected = since.abs_diff(shown_ns) <= MAX_CORRECTION_NS;
            begin == until || (begin < until && is_corrected)
        })?;
        Some((start, end.map(|_| later.tti_at(to_ns, self.numerology))))
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
        assert_eq!(corrected.place((99_000 * MS, 99_500 * MS), false), None);
        let third =
            clock(&[(0, 200_000, 5_000), (5_000, 100_000, 9_000), (14_000, 105_000, 9_000)]);
        assert_eq!(place(&third, (102_000, 112_000)), Some((7_000, Some(21_000))));
        let set_back = clock(&[(0, 3_700_000, 10_000), (10_000, 110_000, 10_000)]);
        assert_eq!(place(&set_back, (3_701_500, 3_718_500)), None);
    }

    /// A span ends within a log's last TTI, whether one log shows it or two.
    #[test]
    fn the_last_tti_of_a_log_is_of_it() {
        let logs = [(0, 100_000, 10_000), (10_000, 109_400, 10_000), (20_000, 118_400, 10_000)];
        let clock = clock(&logs);
        let place = |from_ns: i64, to_ns: i64| {
            let placed = clock.place((from_ns, to_ns), true);
            placed.map(|(start, end)| (start.0, end.map(|end| end.0)))
        };
        let ends_ns = [110_000 * MS - MS / 2, 119_400 * MS - MS / 2];
        assert_eq!(place(109_000 * MS, ends_ns[0]), Some((9_000, Some(9_999))));
        assert_eq!(place(109_000 * MS, ends_ns[1]), Some((9_000, Some(19_999))));
        assert_eq!(place(ends_ns[0], 119_000 * MS), Some((10_599, Some(19_600))));
        assert_eq!(place(ends_ns[0], ends_ns[1] + 6_000 * MS), Some((9_999, Some(26_999))));
    }

    /// Where any log is compared with any span: 10^10 comparisons.
    #[test]
    fn a_clock_is_set_back_at_any_row() {
        const N: i64 = 100_000;
        let mut clock = TtiClock::new();
        (0..N).for_each(|i| clock.note(TtiIndex(10 * i), (N - i) * 1_000 * MS));
        for i in 0..N {
            let ms = (N - i) * 1_000;
            assert_eq!(place(&clock, (ms, ms + 1)), Some((10 * i, Some(10 * i + 1))));
            assert_eq!(place(&clock, (ms + 300, ms + 5_300)).is_some(), i == 0, "{i}");
        }
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
