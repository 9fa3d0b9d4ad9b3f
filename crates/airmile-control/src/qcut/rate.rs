//! The rate at which the radio sends, over a short window.

use std::collections::VecDeque;

/// Bytes that leave in a time at a rate.
pub(super) fn bytes_in(time_ns: i64, bytes_per_s: u64) -> u64 {
    let bytes = u128::from(time_ns.max(0).unsigned_abs()) * u128::from(bytes_per_s) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Transmission time of a number of bytes at a rate, in ns.
pub(super) fn transmission_time_ns(bytes: u64, bytes_per_s: u64) -> i64 {
    let time = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[derive(Debug, Clone, Copy)]
struct SentInterval {
    from_ns: i64,
    to_ns: i64,
    bytes: u64,
    largest_bytes: u64,
}

/// The rate of the radio. While little data waited, grants were as small as the base
/// station's view of the buffer, and the radio could have sent more: such measurements may
/// raise the rate, and lower it no further than the link was used.
#[derive(Debug, Clone)]
pub(super) struct RateWindow {
    window_ns: i64,
    bytes_per_s: u64,
    log: VecDeque<SentInterval>,
    measured_ns: Option<i64>,
    /// When little waited last, or the first block was sent.
    drained_ns: Option<i64>,
    /// Whether enough data has ever waited to measure the radio's capacity.
    found: bool,
    /// The short-term rate, if more waits than it carries in `MUCH_NS`.
    short_bytes_per_s: Option<u64>,
    /// The mean rate over `MEAN_NS`.
    mean_bytes_per_s: u64,
    /// Whether the gate keeps the buffer too small to fill grants: low usage then carries
    /// no information.
    starved: bool,
}

/// How long blocks are remembered, in ns (chosen here).
const MEMORY_NS: i64 = 1_000_000_000;

/// Data that waits no longer than this may have been granted as it arrived, in ns (chosen
/// here): up to 5 ms until a block carries the periodic report, 4 TTIs until it is read, 4
/// from grant to block (TS 36.213, 8), grants some TTIs apart; 8 TTIs for each
/// retransmission of the block with the report; and about as much again.
const LITTLE_NS: i64 = 50_000_000;

/// The short-term rate is measured over this time, in ns, or three grants (chosen here: the
/// shortest in which HARQ retransmissions do not look like a drop).
const SHORT_NS: i64 = 20_000_000;

/// Time over which the mean rate is measured, in ns (chosen here: some fades of a walking
/// user).
const MEAN_NS: i64 = 500_000_000;

/// Number of recent grants whose spacing determines the short-term rate's time.
const GRANTS: usize = 16;

/// The short-term rate applies if more waits than leaves in this time at it, in ns (chosen
/// here: slightly over the gate's limit, so that it does not apply at a steady rate).
const MUCH_NS: i64 = 45_000_000;

/// Maximum number of entries: one a ms.
const MAX_ENTRIES: usize = 1_024;

impl RateWindow {
    pub(super) fn new(start_bytes_per_s: u64, window_ns: i64) -> Self {
        Self {
            window_ns: window_ns.max(1_000_000),
            bytes_per_s: start_bytes_per_s,
            log: VecDeque::new(),
            measured_ns: None,
            drained_ns: None,
            found: false,
            short_bytes_per_s: None,
            mean_bytes_per_s: 0,
            starved: false,
        }
    }

    /// Adds bytes sent in a time, from a report that may be duplicated: an already known
    /// time counts once. Returns whether it was new.
    pub(super) fn sent_once(
        &mut self,
        (from_ns, to_ns): (i64, i64),
        bytes: u64,
        largest_bytes: u64,
    ) -> bool {
        let at = self.log.partition_point(|sent| sent.to_ns <= from_ns);
        if self.log.get(at).is_some_and(|next| next.from_ns < to_ns) {
            return false;
        }
        self.sent((from_ns, to_ns), bytes, largest_bytes);
        true
    }

    /// Adds bytes sent in a time.
    pub(super) fn sent(&mut self, (from_ns, to_ns): (i64, i64), bytes: u64, largest_bytes: u64) {
        self.drained_ns.get_or_insert(from_ns);
        let at = self.log.partition_point(|sent| sent.to_ns <= to_ns);
        self.log.insert(at, SentInterval { from_ns, to_ns, bytes, largest_bytes });
        if self.log.len() > MAX_ENTRIES {
            self.log.pop_front();
        }
    }

    /// The end of the last time in which bytes were sent.
    pub(super) fn until_ns(&self) -> Option<i64> {
        self.log.back().map(|last| last.to_ns)
    }

    /// Bytes sent in a time; `None` if it begins before the history.
    pub(super) fn bytes_between(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        self.log.front().filter(|first| first.from_ns <= from_ns)?;
        let bytes = self.log.iter().map(|sent| sent.bytes_between(from_ns, to_ns));
        Some(bytes.fold(0, u64::saturating_add))
    }

    /// Updates the rate when the buffer is known: `waiting_bytes` waited at `known_ns`.
    /// Transmissions are reported in separate batches: those of the last `batch_ns` may be
    /// missing.
    pub(super) fn measure(&mut self, known_ns: i64, waiting_bytes: u64, batch_ns: i64) {
        let last_ns = self.log.back().map_or(known_ns, |last| last.to_ns);
        let known_ns = last_ns.max(known_ns.saturating_sub(batch_ns));
        if self.measured_ns.is_some_and(|last| known_ns <= last) {
            return;
        }
        let since_ns = self.measured_ns.map_or(0, |last| known_ns.saturating_sub(last));
        self.measured_ns = Some(known_ns);
        while self.log.front().is_some_and(|s| s.to_ns < known_ns.saturating_sub(MEMORY_NS)) {
            self.log.pop_front();
        }
        let from_ns = known_ns.saturating_sub(self.window_ns);
        let first_ns = self.log.front().map_or(from_ns, |first| first.from_ns);
        let seen_ns = first_ns.max(from_ns);
        self.mean_bytes_per_s = self.over(first_ns.max(known_ns.saturating_sub(MEAN_NS)), known_ns);
        if waiting_bytes <= bytes_in(LITTLE_NS, self.over(seen_ns, known_ns)) {
            self.drained_ns = Some(known_ns);
        }
        let busy_ns = self.drained_ns.map_or(from_ns, |drained| drained.max(from_ns));
        // Half a window with enough data in the buffer is sufficient.
        let busy = known_ns.saturating_sub(busy_ns) >= self.window_ns / 2;
        let measured = self.over(if busy { busy_ns } else { from_ns }, known_ns);
        let short = self.over(known_ns.saturating_sub(self.short_ns(known_ns)), known_ns);
        self.short_bytes_per_s = (waiting_bytes > bytes_in(MUCH_NS, short)).then_some(short);
        // If the short-term rate limits the buffer, there is never enough data to be busy.
        let is_remembered = self.log.front().is_some_and(|first| first.from_ns <= from_ns);
        self.found |= busy || (is_remembered && self.short_bytes_per_s.is_some());
        if busy || measured >= self.bytes_per_s {
            self.bytes_per_s = measured;
        } else if !self.starved {
            // Depending on its use, with a time constant of a second (chosen here).
            let excess = self.bytes_per_s - measured;
            let by = bytes_in(since_ns.min(MEMORY_NS), excess);
            let used = u128::from(by) * u128::from(measured) / u128::from(self.bytes_per_s.max(1));
            self.bytes_per_s -= u64::try_from(used).unwrap_or(0).min(excess);
        }
    }

    /// Mean rate over a time, in bytes per second.
    fn over(&self, from_ns: i64, to_ns: i64) -> u64 {
        let bytes = self.log.iter().map(|sent| sent.bytes_between(from_ns, to_ns));
        let bytes = bytes.fold(0_u64, u64::saturating_add);
        let time_ns = to_ns.saturating_sub(from_ns).max(1).unsigned_abs();
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The time over which the short-term rate is measured: at least a few grants, which
    /// may be some TTIs apart.
    fn short_ns(&self, known_ns: i64) -> i64 {
        let first = self.log.iter().rev().nth(GRANTS - 1);
        let spacing_ns = first.map_or(0, |first| {
            known_ns.saturating_sub(first.from_ns) / i64::try_from(GRANTS).unwrap_or(1)
        });
        SHORT_NS.max(spacing_ns.saturating_mul(3))
    }

    /// The rate at which the buffer is assumed to drain until the next report.
    pub(super) fn drain_bytes_per_s(&self) -> u64 {
        self.bytes_per_s.min(self.short_bytes_per_s.unwrap_or(u64::MAX))
    }

    pub(super) const fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s
    }

    /// Sets whether the buffer is kept too small to fill grants.
    pub(super) const fn set_starved(&mut self, starved: bool) {
        self.starved = starved;
    }

    /// The short-term rate, if more waits than it soon carries: it shows a drop first.
    pub(super) const fn short_bytes_per_s(&self) -> Option<u64> {
        self.short_bytes_per_s
    }

    /// The rate to convert a time limit into bytes. Data that waits little longer than a
    /// grant takes is granted as it arrives, and carries no information about the radio's
    /// capacity. So the rate is raised at times (as BBR probes for bandwidth; shares and
    /// times chosen here, the time a window and a grant's wait): by two fifths for 80 ms of
    /// 400, and to twice until the rate is found.
    pub(super) const fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        if !self.found {
            self.bytes_per_s.saturating_mul(2)
        } else if now_ns.rem_euclid(400_000_000) < 80_000_000 {
            self.bytes_per_s.saturating_add(self.bytes_per_s / 5 * 2)
        } else {
            self.bytes_per_s
        }
    }

    /// The mean rate over some fades of the link.
    pub(super) const fn mean_bytes_per_s(&self) -> u64 {
        self.mean_bytes_per_s
    }

    pub(super) fn largest_block_bytes(&self) -> u64 {
        self.log.iter().map(|sent| sent.largest_bytes).max().unwrap_or(0)
    }
}

impl SentInterval {
    /// The bytes that fall into a time.
    fn bytes_between(&self, from_ns: i64, to_ns: i64) -> u64 {
        let whole = self.to_ns.saturating_sub(self.from_ns).max(1);
        let part = self.to_ns.min(to_ns).saturating_sub(self.from_ns.max(from_ns)).clamp(0, whole);
        let bytes = u128::from(self.bytes) * u128::from(part.unsigned_abs())
            / u128::from(whole.unsigned_abs());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn busy_windows_are_taken_as_they_are() {
        let mut rate = RateWindow::new(125_000, 50 * MS);
        // 10 kB in 10 ms: 1 MB/s once the window is full; then a tenth.
        for n in 0..5 {
            rate.sent((n * 10 * MS, (n + 1) * 10 * MS), 10_000, 1_000);
            rate.measure((n + 1) * 10 * MS, 1_000_000, 50 * MS);
        }
        assert_eq!((rate.bytes_per_s(), rate.largest_block_bytes()), (1_000_000, 1_000));
        for n in 5..10 {
            rate.sent((n * 10 * MS, (n + 1) * 10 * MS), 1_000, 100);
            rate.measure((n + 1) * 10 * MS, 1_000_000, 50 * MS);
        }
        assert_eq!(rate.bytes_per_s(), 100_000);
    }

    #[test]
    fn what_waits_for_less_than_a_grant_takes_does_not_lower_the_rate() {
        // 500 kB/s after 1 MB/s; 50 ms of it are 25 kB.
        for (waiting, expected) in [(25_000, 900_000..1_000_000), (25_100, 500_000..500_001)] {
            let mut rate = RateWindow::new(1_000_000, 50 * MS);
            for n in 0..20 {
                rate.sent((n * 10 * MS, (n + 1) * 10 * MS), 5_000, 500);
                rate.measure((n + 1) * 10 * MS, waiting, 50 * MS);
            }
            assert!(expected.contains(&rate.bytes_per_s()), "{waiting}: {}", rate.bytes_per_s());
            // The short-term rate applies if more waits than it carries in 45 ms.
            for (ms, waiting, short) in [(210, 22_500, None), (220, 22_600, Some(500_000))] {
                rate.sent(((ms - 10) * MS, ms * MS), 5_000, 500);
                rate.measure(ms * MS, waiting, 50 * MS);
                assert_eq!(rate.short_bytes_per_s(), short);
            }
        }
    }

    #[test]
    fn an_empty_buffer_lowers_no_further_than_it_was_used() {
        let mut rate = RateWindow::new(1_000_000, 50 * MS);
        rate.measure(0, 0, 50 * MS);
        // Idle for a second: the rate is unknown.
        rate.measure(1_000 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 1_000_000);
        // 25 kB in 50 ms, half of the rate: 50 ms of a second, by half of the half.
        rate.sent((1_000 * MS, 1_050 * MS), 25_000, 500);
        rate.measure(1_050 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 1_000_000 - 12_500);
        // An increase applies at once.
        rate.sent((1_050 * MS, 1_100 * MS), 100_000, 500);
        rate.measure(1_100 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 2_000_000);
    }
}
