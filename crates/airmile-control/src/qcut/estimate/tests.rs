use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

fn config() -> EstimateConfig {
    EstimateConfig {
        clock_error_ns: 0,
        // 1 kB in a ms.
        peak_bytes_per_s: 1_000_000,
        overhead_bytes: 0,
        start_bytes_per_s: 500_000,
        ..EstimateConfig::default()
    }
}

fn sent(from_ms: i64, to_ms: i64, low_bytes: u64, high_bytes: u64) -> ModemReport {
    ModemReport::Sent {
        from_ns: from_ms * MS,
        to_ns: to_ms * MS,
        low_bytes,
        high_bytes,
        largest_bytes: high_bytes,
    }
}

fn waiting(at_ms: i64, low_bytes: u64, high_bytes: u64) -> ModemReport {
    ModemReport::Waiting { at_ns: at_ms * MS, low_bytes, high_bytes }
}

fn bounds(estimator: &Estimator, at_ms: i64) -> (u64, u64, u64) {
    let Occupancy { low_bytes, likely_bytes, high_bytes } = estimator.occupancy(at_ms * MS);
    (low_bytes, likely_bytes, high_bytes)
}

#[test]
fn bounds_by_hand() {
    let mut estimator = Estimator::new(config());
    estimator.push(0, waiting(0, 0, 0));
    for _ in 0..10 {
        estimator.hand_over(1, 1_000);
    }
    // 4 ms without reports: up to 5 whole ms at the peak rate may have left, 2 kB at the
    // initial rate.
    assert_eq!(bounds(&estimator, 4), (5_000, 8_001, 10_000));
    // Between 2.8 and 3 kB had room from 0 to 10 ms.
    estimator.push(12 * MS, sent(0, 10, 2_800, 3_000));
    // Two ms more: at most 3 kB at the peak rate. Packets passed between 0 and 10 ms may
    // have arrived after all of the blocks.
    let (low, _, high) = bounds(&estimator, 12);
    assert_eq!((low, high), (4_000, 10_000));
    // A buffer status report of an index from 6,500 to 7,100 at 10 ms.
    estimator.push(13 * MS, waiting(10, 6_500, 7_100));
    let (low, _, high) = bounds(&estimator, 12);
    assert_eq!((low, high), (4_000, 7_100), "7,000 less 3,000; the least of both");
    // A duplicate, and a time that is already closed.
    estimator.push(14 * MS, sent(0, 10, 2_800, 3_000));
    estimator.push(14 * MS, waiting(9, 0, 1));
    assert_eq!(estimator.counts(), ReportCounts { used: 3, late: 2, bad: 0, disagreed: 0 });
}

#[test]
fn late_and_missing_reports_leave_bounds_open() {
    let mut estimator = Estimator::new(config());
    estimator.push(0, waiting(0, 20_000, 20_000));
    // The second of three batches is missing.
    estimator.push(11 * MS, sent(0, 10, 5_000, 5_000));
    estimator.push(31 * MS, sent(20, 30, 5_000, 5_000));
    let (low, _, high) = bounds(&estimator, 30);
    // 11 whole ms of the gap and one of the time until now.
    assert_eq!((low, high), (0, 10_000));
    // The missing batch arrives late.
    estimator.push(40 * MS, sent(10, 20, 4_000, 4_000));
    let (low, _, high) = bounds(&estimator, 30);
    assert_eq!((low, high), (5_000, 6_000));
}

#[test]
fn reports_that_make_no_sense_are_counted() {
    let mut estimator = Estimator::new(config());
    for report in [sent(5, 5, 0, 1), sent(0, 5, 2, 1), waiting(0, 2, 1), waiting(99, 0, 0)] {
        estimator.push(10 * MS, report);
    }
    assert_eq!(estimator.counts(), ReportCounts { bad: 4, ..ReportCounts::default() });
    // The buffer cannot have grown by itself: the report is used, and counted.
    estimator.push(10 * MS, waiting(5, 100, 100));
    estimator.push(11 * MS, waiting(11, 500, 500));
    assert_eq!(estimator.counts().disagreed, 2, "the first had nothing passed to the modem either");
    assert_eq!(bounds(&estimator, 11).2, 500);
}

#[test]
fn the_last_index_of_the_table_is_open() {
    let mut estimator = Estimator::new(config());
    estimator.push(0, waiting(0, 150_000, u64::MAX));
    let (low, likely, high) = bounds(&estimator, 0);
    // Nothing was passed: the modem held it before. A ms may have elapsed.
    assert!(low >= 149_000 && likely >= low && high >= likely, "{low} {likely} {high}");
}

/// A radio with random blocks and its true buffer content.
#[derive(Debug, Clone)]
struct Ms {
    handed: u32,
    room: u32,
    is_lost: bool,
    delay: i64,
}

fn milliseconds() -> impl Strategy<Value = Vec<Ms>> {
    let ms = (0_u32..4, 0_u32..1_000, any::<u8>(), 0_i64..60).prop_map(
        |(packets, room, dice, delay)| Ms {
            handed: if packets == 3 { 1_500 } else { 0 },
            room: if dice % 3 == 0 { 0 } else { room },
            is_lost: dice > 230,
            delay,
        },
    );
    prop::collection::vec(ms, 1..400)
}

proptest! {
    /// Honest reports, late, missing, duplicated or out of order, in batches of any size,
    /// with capacities and samples as ranges, on a clock within its error: the true value
    /// stays within the bounds.
    #[test]
    fn the_truth_is_within(all in milliseconds(), batch in 1_usize..20, off in -2_i64..=2) {
        let mut estimator = Estimator::new(EstimateConfig {
            clock_error_ns: 3 * MS,
            ..config()
        });
        let mut due: Vec<(i64, ModemReport)> = Vec::new();
        let mut held = 0_u64;
        let mut sum = (0_u64, 0_u64, 0_i64);
        for (at, ms) in all.iter().enumerate() {
            let now = at as i64;
            let mut arrived: Vec<ModemReport> = Vec::new();
            due.retain(|(time, report)| {
                let is_due = *time <= now;
                if is_due { arrived.push(*report); }
                !is_due
            });
            for report in arrived {
                estimator.push(now * MS, report);
            }
            if ms.handed > 0 {
                estimator.hand_over(now * MS, ms.handed);
                held += u64::from(ms.handed);
            }
            held = held.saturating_sub(u64::from(ms.room));
            // Rooms are known to within 50 bytes.
            sum.0 += u64::from(ms.room).saturating_sub(25);
            sum.1 += u64::from(ms.room) + 25;
            if (at + 1) % batch == 0 {
                let time = now + 1 + ms.delay.max(2);
                let report = sent(sum.2 + off, now + 1 + off, sum.0, sum.1);
                sum = (0, 0, now + 1);
                if !ms.is_lost {
                    due.push((time, report));
                    if ms.delay % 7 == 0 { due.push((time + 5, report)); }
                }
                if ms.delay % 5 == 0 {
                    let range = (held / 100 * 100, held / 100 * 100 + 99);
                    due.push((time + 3, waiting(now + 1 + off, range.0, range.1)));
                }
            }
            // Between two TTIs, so that the next one has not begun.
            let Occupancy { low_bytes, likely_bytes, high_bytes } =
                estimator.occupancy((now + 1) * MS);
            prop_assert!(low_bytes <= held && held <= high_bytes,
                "{now}: {low_bytes} {held} {high_bytes}");
            prop_assert!((low_bytes..=high_bytes).contains(&likely_bytes));
        }
        prop_assert_eq!(estimator.counts().bad + estimator.counts().disagreed, 0);
    }

    /// Any input in any order: no panic, and the bounds stay ordered.
    #[test]
    fn any_input_is_survived(
        inputs in prop::collection::vec((0_u8..3, any::<i64>(), any::<i64>(), any::<u64>(), any::<u64>()), 0..60)
    ) {
        let mut estimator = Estimator::new(EstimateConfig::default());
        for (kind, a, b, low_bytes, high_bytes) in inputs {
            match kind {
                0 => estimator.hand_over(a, low_bytes as u32),
                1 => estimator.push(a, ModemReport::Waiting { at_ns: b, low_bytes, high_bytes }),
                _ => estimator.push(a, ModemReport::Sent {
                    from_ns: b, to_ns: a, low_bytes, high_bytes, largest_bytes: low_bytes,
                }),
            }
            let Occupancy { low_bytes, likely_bytes, high_bytes } = estimator.occupancy(b);
            prop_assert!(low_bytes <= likely_bytes && likely_bytes <= high_bytes);
        }
    }
}

/// A modem with permanent backlog: a grant every `every` ms, transmissions reported in
/// batches of 11 or after 10 ms without one (0xB139), the buffer every 40 ms, with 5 ms
/// delay.
struct BusyModem {
    every: i64,
    /// Bytes per ms of the link at a time.
    rate: fn(i64) -> u64,
    /// No report is written in these ms.
    silent: std::ops::Range<i64>,
}

impl BusyModem {
    /// The estimated rate at the given times, as a share of the true one.
    fn shares(&self, times_ms: &[i64]) -> Vec<f64> {
        let config = EstimateConfig { start_bytes_per_s: 125_000, ..EstimateConfig::default() };
        let mut estimator = Estimator::new(config);
        let (mut held, mut credit) = (0, 0);
        let mut extractor = crate::qcut::ReportExtractor::default();
        let (mut batch, mut due) = (Vec::new(), std::collections::VecDeque::new());
        let mut shares = Vec::new();
        for ms in 0..=times_ms.iter().max().copied().unwrap_or(0) {
            // More than the rate carries in 100 ms.
            while held < 120 * (self.rate)(ms) {
                estimator.hand_over(ms * MS, 1_498);
                held += 1_500;
            }
            credit += (self.rate)(ms);
            if ms % self.every == 0 {
                held -= credit;
                batch.push((ms, credit as u32 + 3));
                credit = 0;
            }
            let is_silent = self.silent.contains(&ms);
            if batch.len() >= 11 || batch.last().is_some_and(|(at, _)| ms - at >= 10) {
                for (at, bytes) in batch.drain(..) {
                    let report = extractor.sent(at * MS, MS, bytes);
                    due.extend((!is_silent).then_some((ms + 6, report)));
                }
            }
            if ms % 40 == 17 && !is_silent {
                due.push_back((ms + 6, waiting(ms + 1, held, held)));
            }
            while due.front().is_some_and(|(at, _)| *at <= ms) {
                let (_, report) = due.pop_front().unwrap();
                estimator.push(ms * MS, report);
            }
            if times_ms.contains(&ms) {
                let bytes_per_s = estimator.bytes_per_s() as f64;
                shares.push(bytes_per_s / ((self.rate)(ms) as f64 * 1e3));
            }
        }
        shares
    }
}

const NEVER: std::ops::Range<i64> = 0..0;

/// Most batches arrive after a buffer sample that is later than some of their
/// transmissions: those bytes count as sent, too.
#[test]
fn the_rate_counts_what_is_reported_after_a_later_sample() {
    for every in 1..=6 {
        let log = BusyModem { every, rate: |_| 1_000, silent: NEVER };
        let shares = log.shares(&[2_000, 2_013, 2_026, 2_039]);
        // Headers are known as bounds only: 3 % (`likely`).
        assert!(shares.iter().all(|share| (0.95..1.02).contains(share)), "{every}: {shares:?}");
    }
}

/// A handover to half of the rate, to a tenth of it, and back to ten times.
#[test]
fn the_rate_is_right_after_each_step() {
    for every in 1..=6 {
        for rate in [
            |ms| {
                if ms < 2_000 {
                    1_000
                } else if ms < 2_060 {
                    0
                } else {
                    500
                }
            },
            |ms| if ms < 2_000 { 1_000 } else { 100 },
            |ms| if ms < 2_000 { 100 } else { 1_000 },
        ] {
            let log = BusyModem { every, rate, silent: NEVER };
            let shares = log.shares(&[2_400, 2_600, 3_000]);
            assert!(shares.iter().all(|share| (0.9..1.1).contains(share)), "{every}: {shares:?}");
        }
    }
}

#[test]
fn the_rate_is_right_after_a_silence() {
    for every in 1..=6 {
        let log = BusyModem { every, rate: |_| 1_000, silent: 2_000..4_000 };
        let shares = log.shares(&[3_000, 4_300, 5_000]);
        assert!(shares.iter().all(|share| (0.9..1.1).contains(share)), "{every}: {shares:?}");
    }
}
