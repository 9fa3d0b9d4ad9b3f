//! Decides whether the modem's log is good enough for the gate: how much of the radio's
//! transmissions it contains, by the bytes that were acknowledged in the same time, how late
//! they are reported, and how many reports are implausible.

use std::collections::VecDeque;

use super::estimate::{Estimator, ModemReport};

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
/// Maximum coverage factor that the estimator compensates.
const MAX_COVERAGE: f64 = 2.0;

/// A batch of 0xB139: its first transmission is reported this many later.
const BATCH: i64 = 11;
/// A batch is also written after this time without another transmission, in ns.
const QUIET_NS: i64 = 10_000_000;
/// A transmission that is reported more than this after its batch has filled is late, in ns.
/// With more than half of them late, round trips had at least the log's throughput
/// (`lab reproduce qcut-log`).
const LATE_NS: i64 = 10_000_000;

/// Up to which values a log is used.
#[derive(Debug, Clone, Copy)]
struct Most {
    bad_share: f64,
    coverage: f64,
    late_share: f64,
}
/// Beyond these a log is rejected: with 15 % of the bytes missing, or late as above, round trips
/// are as good (docs/papers/qcut.md).
const USABLE: Most = Most { bad_share: 0.2, coverage: 1.18, late_share: 0.5 };
/// A rejected log is used again after it was within these for `GOOD_FOR_NS` (chosen here).
const GOOD: Most = Most { bad_share: 0.05, coverage: 1.1, late_share: 0.25 };
const GOOD_FOR_NS: i64 = 5_000_000_000;

/// Why the modem's log is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFault {
    /// Its reports contradict each other or the host's clock.
    Implausible,
    /// It lacks transmissions.
    Incomplete,
    /// It reports transmissions too late.
    Late,
}

impl LogFault {
    /// Its name: an adjective.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Implausible => "implausible",
            Self::Incomplete => "incomplete",
            Self::Late => "late",
        }
    }
}

/// Quality of the log.
#[derive(Debug, Clone)]
pub(super) struct LogQuality {
    /// Time, and bytes acknowledged up to then.
    answered: VecDeque<(i64, u64)>,
    /// Acknowledged bytes over logged ones, as a moving average.
    coverage: f64,
    checked_ns: Option<i64>,
    /// Share of implausible reports, as a moving average.
    bad_share: f64,
    /// Share of late transmissions, as a moving average.
    late_share: f64,
    fault: Option<LogFault>,
    /// Since when a rejected log has been good.
    good_since_ns: Option<i64>,
    rejections: u64,
}

impl Default for LogQuality {
    fn default() -> Self {
        Self {
            answered: VecDeque::new(),
            coverage: 1.0,
            checked_ns: None,
            bad_share: 0.0,
            late_share: 0.0,
            fault: None,
            good_since_ns: None,
            rejections: 0,
        }
    }
}

impl LogQuality {
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

    /// Notes a report that arrives at `now_ns`, and whether it is implausible.
    pub(super) fn note_report(&mut self, now_ns: i64, report: ModemReport, is_bad: bool) {
        // Averages over 32 reports: three batches; and over 512: half a second to some, so
        // that a single delay is not a late log.
        self.bad_share += (f64::from(u8::from(is_bad)) - self.bad_share) / 32.0;
        if let ModemReport::Sent { from_ns, to_ns, .. } = report
            && !is_bad
        {
            // Grants may be some TTIs apart.
            let spacing_ns = to_ns.saturating_sub(from_ns).min(QUIET_NS);
            let is_late = now_ns.saturating_sub(to_ns) > LATE_NS + BATCH * spacing_ns;
            self.late_share += (f64::from(u8::from(is_late)) - self.late_share) / 512.0;
        }
        if self.fault.is_none() {
            self.fault = self.over(USABLE);
            self.rejections += u64::from(self.fault.is_some());
            self.good_since_ns = None;
        } else if self.over(GOOD).is_some() {
            self.good_since_ns = None;
        } else if now_ns.saturating_sub(*self.good_since_ns.get_or_insert(now_ns)) >= GOOD_FOR_NS {
            self.fault = None;
        }
    }

    /// What exceeds a maximum.
    fn over(&self, most: Most) -> Option<LogFault> {
        if self.bad_share > most.bad_share {
            Some(LogFault::Implausible)
        } else if self.coverage > most.coverage {
            Some(LogFault::Incomplete)
        } else {
            (self.late_share > most.late_share).then_some(LogFault::Late)
        }
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

    /// Why the log is rejected; `None`: it is used.
    pub(super) const fn fault(&self) -> Option<LogFault> {
        self.fault
    }

    /// Whether the log is rejected.
    pub(super) const fn is_rejected(&self) -> bool {
        self.fault.is_some()
    }

    /// How often the log was rejected.
    pub(super) const fn rejections(&self) -> u64 {
        self.rejections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A log of transmissions each `spacing_ms` in batches, read `delay_ms` after they filled,
    /// every fourth batch by `jitter_ms` later; for `[from_ms, to_ms)`.
    fn read(
        quality: &mut LogQuality,
        (from_ms, to_ms): (i64, i64),
        spacing_ms: i64,
        batch: i64,
        (delay_ms, jitter_ms): (i64, i64),
    ) -> Option<LogFault> {
        for (n, first_ms) in (from_ms..to_ms).step_by((spacing_ms * batch) as usize).enumerate() {
            let jitter_ms = if n % 4 == 0 { jitter_ms } else { 0 };
            let now_ns = (first_ms + spacing_ms * batch + delay_ms + jitter_ms) * MS;
            for at in 0..batch {
                let from_ns = (first_ms + at * spacing_ms) * MS;
                let to_ns = from_ns + spacing_ms * MS;
                let (low_bytes, high_bytes, largest_bytes) = (900, 1_000, 1_000);
                let report =
                    ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes };
                quality.note_report(now_ns, report, false);
            }
        }
        quality.fault()
    }

    #[test]
    fn late_logs_are_rejected() {
        use LogFault::Late;
        for (spacing_ms, batch, delay_ms, jitter_ms, expected) in [
            // As of a modem, and one port slower.
            (1, 11, 5, 0, None),
            (1, 11, 12, 0, None),
            (1, 22, 5, 0, None),
            (1, 11, 20, 0, Some(Late)),
            (1, 11, 40, 0, Some(Late)),
            (1, 44, 5, 0, Some(Late)),
            // A quarter is late, and with 16 ms half of the others.
            (1, 11, 5, 40, None),
            (1, 11, 16, 40, Some(Late)),
            // Sparse grants fill a batch slowly.
            (6, 11, 5, 0, None),
            (2, 11, 5, 0, None),
            (2, 44, 40, 0, Some(Late)),
        ] {
            let fault = read(
                &mut LogQuality::default(),
                (0, 20_000),
                spacing_ms,
                batch,
                (delay_ms, jitter_ms),
            );
            assert_eq!(fault, expected, "{spacing_ms} {batch} {delay_ms} {jitter_ms}");
        }
    }

    #[test]
    fn one_delay_is_not_a_late_log() {
        let mut quality = LogQuality::default();
        read(&mut quality, (0, 2_000), 1, 11, (5, 0));
        // 300 ms arrive at once.
        assert_eq!(read(&mut quality, (2_000, 2_300), 1, 300, (5, 0)), None);
        assert_eq!(read(&mut quality, (2_300, 9_000), 1, 11, (5, 0)), None);
        assert_eq!(quality.rejections(), 0);
    }

    #[test]
    fn a_rejected_log_is_used_after_it_was_good_for_a_while() {
        let mut quality = LogQuality::default();
        read(&mut quality, (0, 2_000), 1, 11, (40, 0));
        assert_eq!((quality.fault(), quality.rejections()), (Some(LogFault::Late), 1));
        // Under a quarter of the average after 0.7 s; then 5 s. A relapse begins anew.
        assert!(read(&mut quality, (2_000, 7_000), 1, 11, (5, 0)).is_some());
        assert!(read(&mut quality, (7_000, 7_400), 1, 11, (40, 0)).is_some());
        assert!(read(&mut quality, (7_400, 12_400), 1, 11, (5, 0)).is_some());
        assert!(read(&mut quality, (12_400, 13_800), 1, 11, (5, 0)).is_none());
        assert_eq!(quality.rejections(), 1);
        assert!(read(&mut quality, (13_800, 15_000), 1, 11, (40, 0)).is_some());
        assert_eq!(quality.rejections(), 2);
    }

    #[test]
    fn incomplete_and_implausible_logs_are_rejected() {
        for (lost, expected) in [(0, None), (1, None), (2, Some(LogFault::Incomplete))] {
            let mut quality = LogQuality::default();
            let mut estimator = Estimator::new(Default::default());
            // Of ten batches of 10 ms, `lost` are missing; all is acknowledged after 40 ms.
            for n in 0..500_i64 {
                let (from_ns, now_ns) = (n * 10 * MS, (n + 1) * 10 * MS);
                quality.answered(now_ns + 35 * MS, 10_000 * (n as u64 + 1));
                if n % 10 < lost {
                    continue;
                }
                let bytes = 10_000;
                let report = ModemReport::Sent {
                    from_ns,
                    to_ns: now_ns,
                    low_bytes: bytes,
                    high_bytes: bytes,
                    largest_bytes: bytes,
                };
                estimator.push(now_ns, report);
                quality.compare(now_ns, 40 * MS, &mut estimator);
                quality.note_report(now_ns, report, false);
            }
            assert_eq!(quality.fault(), expected, "{lost}");
        }
        let mut quality = LogQuality::default();
        let report = ModemReport::Waiting { at_ns: 0, low_bytes: 1, high_bytes: 0 };
        (0..8).for_each(|_| quality.note_report(0, report, true));
        assert_eq!(quality.fault(), Some(LogFault::Implausible));
    }
}
