//! The resolution of a capture's clock.

/// Ticks up to this may be the uplink's, and not a clock's: phones send in slots (chosen here: those of the
/// lab arrive in even subframes, to the microsecond).
pub const SLOT_NS: i64 = 2_500_000;

/// A clock with ticks as long as this hides how data arrived (chosen here: pcap with times in whole
/// milliseconds, and the slots in which links deliver, are finer).
const COARSE_NS: i64 = 2_000_000;
/// The finest clock that hides nothing, in whose times longer ticks may appear by chance.
const FINE_NS: f64 = 1e6;
/// A clock's own error (chosen here: where times are whole microseconds, an error in the ticks counts once
/// for each of them).
const CLOCK_ERROR_NS: i64 = 20_000;
/// A larger error is the pace of a punctual sender or line, by a fine clock, unless several packets have one time
/// (chosen here: times are whole microseconds). So are digits below the ticks that are always the same: the times
/// of a coarse clock have none.
const ROUNDED_NS: i64 = 1_000;
/// Share of the packets with the time of the two before them that shows that several have one time (chosen here;
/// two are a packet and its acknowledgement).
const ONE_TIME_SHARE: f64 = 0.05;
/// Up to this many ticks that error stays below it (chosen here).
const MAX_TICKS: i64 = 8;
/// Ticks are known if they appear by chance once in 2 to this power (chosen here: a million).
const ENOUGH_BITS: f64 = 20.0;
/// That many packets at each time are a tick's, too (chosen here: at a millisecond each, full packets of
/// 2.4 Gbit/s).
const PACKETS_A_TICK: u64 = 200;

/// The largest time of which the times between packets are multiples: the ticks of the clock, if that is
/// no chance.
#[derive(Debug, Clone, Default)]
pub(super) struct ClockTicks {
    newest_ns: Option<i64>,
    /// 0 until two times differ.
    ticks_ns: i64,
    /// Times between packets that are multiples of it.
    gaps: u64,
    /// The largest difference of a time between packets from a multiple, for each of its ticks.
    error_ns: i64,
    packets: u64,
    /// The last of them with the time of the newest.
    at_newest: u64,
    /// Those with the time of the two before.
    at_one_time: u64,
}

impl ClockTicks {
    /// Takes a packet's time, in nanoseconds.
    pub(super) fn push(&mut self, at_ns: i64) {
        self.packets += 1;
        let gap_ns = self.newest_ns.map_or(0, |newest| at_ns.saturating_sub(newest));
        self.at_newest = if self.newest_ns == Some(at_ns) { self.at_newest + 1 } else { 1 };
        self.at_one_time += u64::from(self.at_newest > 2);
        self.newest_ns = self.newest_ns.max(Some(at_ns));
        let longest_ns = gap_ns.saturating_mul(MAX_TICKS);
        if gap_ns <= 0 || gap_ns > self.ticks_ns.saturating_mul(MAX_TICKS) && self.gaps > 0 {
            return;
        }
        if self.ticks_ns > longest_ns || self.gaps == 0 {
            (self.ticks_ns, self.gaps, self.error_ns) = (gap_ns, 1, 0);
        } else {
            let (long, short) = (self.ticks_ns.max(gap_ns), self.ticks_ns.min(gap_ns));
            let error_ns;
            (self.ticks_ns, error_ns) = common_ns(long, short);
            self.error_ns = self.error_ns.max(error_ns / (long / self.ticks_ns).max(1));
            self.gaps += 1;
        }
    }

    /// The ticks of a clock that hides how data arrived, in nanoseconds.
    pub(super) fn coarse_ns(&self) -> Option<i64> {
        let bits = (self.ticks_ns as f64 / FINE_NS).log2() * self.gaps.saturating_sub(1) as f64;
        let is_known = bits >= ENOUGH_BITS || self.packets >= PACKETS_A_TICK * (self.gaps + 1);
        let is_coarse = self.ticks_ns >= COARSE_NS - CLOCK_ERROR_NS;
        let below_ns = self.newest_ns.and_then(|ns| ns.checked_rem(self.ticks_ns));
        let is_paced = (self.error_ns > ROUNDED_NS || self.error_ns == 0 && below_ns > Some(0))
            && (self.at_one_time as f64) < ONE_TIME_SHARE * self.packets as f64;
        (is_coarse && is_known && !is_paced).then_some(self.ticks_ns)
    }
}

/// The largest time of which both are multiples, and what is left.
const fn common_ns(mut long: i64, mut short: i64) -> (i64, i64) {
    // A clock with ticks does not separate times within its error.
    if short <= CLOCK_ERROR_NS {
        return (short, 0);
    }
    while short > CLOCK_ERROR_NS {
        let rest = long % short;
        let before = short - rest;
        (long, short) = (short, if before < rest { before } else { rest });
    }
    (long, short)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[track_caller]
    fn check(times_ns: impl IntoIterator<Item = i64>, expected_ns: Option<i64>) {
        let mut ticks = ClockTicks::default();
        times_ns.into_iter().for_each(|ns| ticks.push(ns));
        assert_eq!(ticks.coarse_ns(), expected_ns, "{ticks:?}");
    }

    /// So many packets, with these times between them, over and over.
    fn apart(gaps_ns: &[i64], packets: usize) -> impl Iterator<Item = i64> {
        gaps_ns.iter().cycle().take(packets).scan(0, |at, gap| {
            *at += gap;
            Some(*at)
        })
    }

    /// Packets of a download by a fine clock: two each 1.7 ms, with an acknowledgement.
    fn download(n: i64) -> impl Iterator<Item = i64> {
        let jitter = |n: i64| n * n % 89 * 1_013;
        (0..n).flat_map(move |n| [0, 12_031, 47_211].map(|after| n * 1_700_000 + jitter(n) + after))
    }

    #[test]
    fn ticks_of_any_length() {
        for ms in [2, 3, 4, 10, 18, 20, 50, 100, 250, 500, 1_000, 2_000, 5_000] {
            let ticks_ns = ms * MS;
            check(download(20_000).map(|ns| ns / ticks_ns * ticks_ns), Some(ticks_ns));
        }
        // Windows: 64 ticks in a second, in whole microseconds.
        check(download(2_000).map(|ns| ns / 15_625_000 * 15_625_000), Some(15_625_000));
        // A load of 1.4 s has two times.
        check(download(800).map(|ns| ns / 1_000_000_000 * 1_000_000_000), Some(1_000 * MS));
        // Pauses of many ticks.
        check(apart(&[0, 9_000 * MS, 1_000 * MS, 0, 30_000 * MS], 60), Some(1_000 * MS));
    }

    #[test]
    fn the_clocks_own_error() {
        check(apart(&[4_000_000, 0, 0, 8_000_000], 300), Some(4_000_000));
        check(apart(&[4_000_000, 3_999_500, 12_000_000], 300), Some(3_999_500));
        // An error of 1 µs in the ticks is 24 µs in 96 ms.
        check(apart(&[4_001_000, 4_000_000, 96_000_000], 300), Some(4_000_000));
        // One of 3 µs, with several packets at a time.
        check(apart(&[4_003_000, 0, 0, 4_000_000, 0], 300), Some(4_000_000));
    }

    #[test]
    fn a_fine_clock_is_never_coarse() {
        check([], None);
        check([5; 1_000], None);
        for packets in 1..2_000 {
            check(download(packets), None);
        }
        // Whole milliseconds, in captures of any length.
        for packets in 1..2_000 {
            check(download(packets).map(|ns| ns / MS * MS), None);
        }
        // A paced sender, with the jitter of a fine clock; and times on a grid of slots.
        check(apart(&[30_012_345, 29_962_040, 30_114_903], 300), None);
        check(apart(&[30_000_000, 6_000_000, 7_000_000], 300), None);
        // Bursts in slots.
        check(apart(&[4_000_000, 8_000, 3_992_000], 300), None);
        // A driver that hands over 64 packets at a time, each 4 ms with jitter.
        let batch = |n: i64| [n * 4_000_000 + n * n % 83 * 1_009; 64];
        check((0..40).flat_map(batch), None);
        // A punctual sender by a clock of microseconds.
        let punctual = |n: i64| n * 10_000_000 + n * n % 7 * 1_000;
        for packets in [10, 12, 19, 20, 3_000] {
            check((0..packets).map(punctual), None);
        }
        // A line that passes a packet each 20 ms, which is acknowledged at once.
        let from = |ns: i64, packets: &[i64]| {
            let times: Vec<i64> = apart(packets, 3_000).map(|at| at + ns).collect();
            times
        };
        check(from(4_000_000, &[20_000_000, 0, 20_000_000]), None);
        // The ticks of a clock have no digits below them, or have several packets.
        check(from(0, &[20_000_000, 0, 20_000_000]), Some(20 * MS));
        check(from(4_000_000, &[20_000_000, 0, 0]), Some(20 * MS));
        // Few packets, seconds apart.
        check(apart(&[1_000 * MS], 3), None);
    }
}
