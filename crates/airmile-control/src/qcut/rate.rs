//! The rate at which the radio sends, over a short window.

use std::collections::VecDeque;

/// Bytes that leave in a time at a rate.
pub(super) fn bytes_in(time_ns: i64, bytes_per_s: u64) -> u64 {
    let bytes = u128::from(time_ns.max(0).unsigned_abs()) * u128::from(bytes_per_s) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Time in ns in which so many bytes leave at a rate.
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

/// The rate. Where little waited, grants were as small as the base station's idea
/// of the buffer, and the radio could have sent more than it did: what was measured
/// then may raise the rate, and lowers it no further than the link was used.
#[derive(Debug, Clone)]
pub(super) struct RateWindow {
    window_ns: i64,
    bytes_per_s: u64,
    log: VecDeque<SentInterval>,
    measured_ns: Option<i64>,
    /// When little waited last, or the first block was sent.
    drained_ns: Option<i64>,
    /// Whether enough has ever waited to see what the radio can do.
    found: bool,
    /// The rate of late, where more waits than it carries in `MUCH_NS`.
    short_bytes_per_s: Option<u64>,
    /// Whether the gate lets less wait than fills grants: what little is sent then
    /// tells nothing.
    starved: bool,
}

/// So long blocks are remembered, in ns (chosen here).
const MEMORY_NS: i64 = 1_000_000_000;

/// What waits for no longer than this may have been granted as it came, in ns
/// (chosen here): up to 5 ms until a block carries the periodic report, 4 TTIs until
/// it is read, 4 from grant to block (TS 36.213, 8), grants some TTIs apart; 8 TTIs
/// for each time that the block with the report is sent again; and about as much
/// again.
const LITTLE_NS: i64 = 50_000_000;

/// The short rate is measured over this time, in ns, or three grants (chosen here: the
/// shortest in which HARQ's retransmissions do not look like a drop).
const SHORT_NS: i64 = 20_000_000;

/// Grants by whose spacing the short rate's time is set.
const GRANTS: usize = 16;

/// Where more waits than leaves in this time at the short rate, in ns, that rate counts
/// (chosen here: a little over the gate's limit, so that a steady rate does not).
const MUCH_NS: i64 = 45_000_000;

/// Entries that are kept at most: one each ms.
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
            starved: false,
        }
    }

    /// Bytes were sent in a time, by a report that may come twice: a time that is known
    /// already counts once. Returns whether it was new.
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

    /// Bytes were sent in a time.
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

    /// Bytes sent in a time; `None` where it begins before what is remembered.
    pub(super) fn bytes_between(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        self.log.front().filter(|first| first.from_ns <= from_ns)?;
        let bytes = self.log.iter().map(|sent| sent.bytes_between(from_ns, to_ns));
        Some(bytes.fold(0, u64::saturating_add))
    }

    /// The buffer is known at a time, and `waiting_bytes` waited then. Transmissions are
    /// reported in batches of their own: those of the last `batch_ns` may still come.
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
        let seen_ns = self.log.front().map_or(from_ns, |first| first.from_ns.max(from_ns));
        if waiting_bytes <= bytes_in(LITTLE_NS, self.over(seen_ns, known_ns)) {
            self.drained_ns = Some(known_ns);
        }
        let busy_ns = self.drained_ns.map_or(from_ns, |drained| drained.max(from_ns));
        // Half a window with enough in the buffer will do.
        let busy = known_ns.saturating_sub(busy_ns) >= self.window_ns / 2;
        let measured = self.over(if busy { busy_ns } else { from_ns }, known_ns);
        let short = self.over(known_ns.saturating_sub(self.short_ns(known_ns)), known_ns);
        self.short_bytes_per_s = (waiting_bytes > bytes_in(MUCH_NS, short)).then_some(short);
        // Where the short rate bounds what waits, it never is enough to be busy.
        let is_remembered = self.log.front().is_some_and(|first| first.from_ns <= from_ns);
        self.found |= busy || (is_remembered && self.short_bytes_per_s.is_some());
        if busy || measured >= self.bytes_per_s {
            self.bytes_per_s = measured;
        } else if !self.starved {
            // By how far it was used, with a time constant of a second (chosen here).
            let excess = self.bytes_per_s - measured;
            let by = bytes_in(since_ns.min(MEMORY_NS), excess);
            let used = u128::from(by) * u128::from(measured) / u128::from(self.bytes_per_s.max(1));
            self.bytes_per_s -= u64::try_from(used).unwrap_or(0).min(excess);
        }
    }

    /// Bytes per second sent in a time.
    fn over(&self, from_ns: i64, to_ns: i64) -> u64 {
        let bytes = self.log.iter().map(|sent| sent.bytes_between(from_ns, to_ns));
        let bytes = bytes.fold(0_u64, u64::saturating_add);
        let time_ns = to_ns.saturating_sub(from_ns).max(1).unsigned_abs();
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The time over which the short rate is measured: no less than a few grants, which
    /// may be some TTIs apart.
    fn short_ns(&self, known_ns: i64) -> i64 {
        let first = self.log.iter().rev().nth(GRANTS - 1);
        let spacing_ns = first.map_or(0, |first| {
            known_ns.saturating_sub(first.from_ns) / i64::try_from(GRANTS).unwrap_or(1)
        });
        SHORT_NS.max(spacing_ns.saturating_mul(3))
    }

    /// The rate at which what waits is taken to leave until the next report.
    pub(super) fn drain_bytes_per_s(&self) -> u64 {
        self.bytes_per_s.min(self.short_bytes_per_s.unwrap_or(u64::MAX))
    }

    pub(super) const fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s
    }

    /// Whether less is let wait than fills grants.
    pub(super) const fn set_starved(&mut self, starved: bool) {
        self.starved = starved;
    }

    /// The short rate, where more waits than it carries soon: a rate that has just dropped
    /// shows here first.
    pub(super) const fn short_bytes_per_s(&self) -> Option<u64> {
        self.short_bytes_per_s
    }

    /// The rate of which a limit in time is to be: what waits for hardly longer than
    /// a grant takes is granted as it comes, and says nothing of what the radio
    /// could do. So there is more to send at times (as BBR looks for bandwidth;
    /// shares and times chosen here, the time a window and a grant's wait): two fifths
    /// more for 80 ms of 400, and twice until the rate is found.
    pub(super) const fn sought_bytes_per_s(&self, now_ns: i64) -> u64 {
        if !self.found {
            self.bytes_per_s.saturating_mul(2)
        } else if now_ns.rem_euclid(400_000_000) < 80_000_000 {
            self.bytes_per_s.saturating_add(self.bytes_per_s / 5 * 2)
        } else {
            self.bytes_per_s
        }
    }

    pub(super) fn largest_block_bytes(&self) -> u64 {
        self.log.iter().map(|sent| sent.largest_bytes).max().unwrap_or(0)
    }
}

impl SentInterval {
    /// Its share of a time.
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
        // 500 kB/s for 1 MB/s before; 50 ms of it are 25 kB.
        for (waiting, expected) in [(25_000, 900_000..1_000_000), (25_100, 500_000..500_001)] {
            let mut rate = RateWindow::new(1_000_000, 50 * MS);
            for n in 0..20 {
                rate.sent((n * 10 * MS, (n + 1) * 10 * MS), 5_000, 500);
                rate.measure((n + 1) * 10 * MS, waiting, 50 * MS);
            }
            assert!(expected.contains(&rate.bytes_per_s()), "{waiting}: {}", rate.bytes_per_s());
            // The short rate counts where more waits than it carries in 45 ms.
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
        // Idle for a second: nothing is known of the rate.
        rate.measure(1_000 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 1_000_000);
        // 25 kB in 50 ms, half of it: 50 ms of a second, by half of the half.
        rate.sent((1_000 * MS, 1_050 * MS), 25_000, 500);
        rate.measure(1_050 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 1_000_000 - 12_500);
        // More than before is believed at once.
        rate.sent((1_050 * MS, 1_100 * MS), 100_000, 500);
        rate.measure(1_100 * MS, 0, 50 * MS);
        assert_eq!(rate.bytes_per_s(), 2_000_000);
    }
}
