//! Measures how much of the radio's transmissions the modem's log contains, from the bytes
//! that were acknowledged in the same time.

use std::collections::VecDeque;

use super::estimate::Estimator;

/// Window of the comparison, in ns (chosen here: within the rates' history, and long
/// compared to the round trip by which the two differ).
const WINDOW_NS: i64 = 700_000_000;
/// How long acknowledged bytes are kept, in ns: the window, a log delayed by a second, and
/// a path.
const KEPT_NS: i64 = 2_000_000_000;
/// Interval between two comparisons, in ns.
const EVERY_NS: i64 = 20_000_000;
/// Acknowledgements this close to each other share an entry, in ns.
const TOGETHER_NS: i64 = 5_000_000;
/// Minimum acknowledged bytes for a comparison (chosen here: ten large packets).
const MIN_ANSWERED_BYTES: u64 = 15_000;
/// Coverage factor up to which a log counts as complete (chosen here: headers, whose size
/// the log does not contain, are 4 %).
const WHOLE: f64 = 1.06;
/// A log that contains less than half of the bytes, or with a fifth of implausible reports,
/// is not used; it is used again once no more than a twentieth are implausible (chosen
/// here).
const MAX_COVERAGE: f64 = 2.0;
const MAX_BAD_SHARE: f64 = 0.2;
const FEW_BAD_SHARE: f64 = 0.05;

/// Compares acknowledged bytes with the bytes in the log.
#[derive(Debug, Clone)]
pub(super) struct LogCoverage {
    /// Time, and bytes acknowledged up to then.
    answered: VecDeque<(i64, u64)>,
    /// Acknowledged bytes over logged ones, as a moving average.
    coverage: f64,
    checked_ns: Option<i64>,
    /// Share of implausible reports, as a moving average.
    bad_share: f64,
    is_distrusted: bool,
}

impl Default for LogCoverage {
    fn default() -> Self {
        Self {
            answered: VecDeque::new(),
            coverage: 1.0,
            checked_ns: None,
            bad_share: 0.0,
            is_distrusted: false,
        }
    }
}

impl LogCoverage {
    /// Updates the total number of acknowledged bytes.
    pub(super) fn answered(&mut self, now_ns: i64, bytes: u64) {
        match self.answered.back_mut() {
            Some(last) if now_ns.saturating_sub(last.0) < TOGETHER_NS => last.1 = bytes,
            _ => self.answered.push_back((now_ns, bytes)),
        }
        let oldest_ns = now_ns.saturating_sub(KEPT_NS);
        while self.answered.front().is_some_and(|(at, _)| *at < oldest_ns) {
            self.answered.pop_front();
        }
    }

    /// Bytes acknowledged by a time, interpolated linearly.
    fn answered_by(&self, at_ns: i64) -> Option<u64> {
        let after = self.answered.partition_point(|(time, _)| *time <= at_ns);
        let (from_ns, bytes) = *self.answered.get(after.checked_sub(1)?)?;
        let Some((to_ns, next)) = self.answered.get(after) else {
            return (at_ns.saturating_sub(from_ns) < EVERY_NS).then_some(bytes);
        };
        let part = at_ns.saturating_sub(from_ns) as f64 / to_ns.saturating_sub(from_ns) as f64;
        Some(bytes + (next.saturating_sub(bytes) as f64 * part) as u64)
    }

    /// Counts a report as plausible or implausible.
    pub(super) fn note_report(&mut self, is_bad: bool) {
        // Averages over 32 reports: three batches.
        self.bad_share += (f64::from(u8::from(is_bad)) - self.bad_share) / 32.0;
        let most = if self.is_distrusted { FEW_BAD_SHARE } else { MAX_BAD_SHARE };
        self.is_distrusted = self.bad_share > most || self.coverage > MAX_COVERAGE;
    }

    /// Compares logged bytes with those acknowledged `path_ns` after they were sent, and
    /// has the estimator compensate for what the log lacks.
    pub(super) fn compare(&mut self, now_ns: i64, path_ns: i64, estimator: &mut Estimator) {
        if self.checked_ns.is_some_and(|at| now_ns.saturating_sub(at) < EVERY_NS) {
            return;
        }
        self.checked_ns = Some(now_ns);
        let Some(until_ns) = estimator.logged_until_ns() else { return };
        let end_ns = until_ns.min(now_ns.saturating_sub(path_ns));
        let begin_ns = end_ns.saturating_sub(WINDOW_NS);
        let by = |at_ns: i64| self.answered_by(at_ns.saturating_add(path_ns));
        let (Some(logged), Some(to), Some(from)) =
            (estimator.logged_bytes(begin_ns, end_ns), by(end_ns), by(begin_ns))
        else {
            return;
        };
        let answered = to.saturating_sub(from);
        if answered < MIN_ANSWERED_BYTES {
            return;
        }
        let coverage = (answered as f64 / logged.max(1) as f64).clamp(1.0, 4.0 * MAX_COVERAGE);
        self.coverage += (coverage - self.coverage) / 8.0;
        let is_whole = self.coverage < WHOLE;
        estimator.set_coverage(if is_whole { 1.0 } else { self.coverage.min(MAX_COVERAGE) });
    }

    /// Whether the log must not be used.
    pub(super) const fn is_distrusted(&self) -> bool {
        self.is_distrusted
    }
}
