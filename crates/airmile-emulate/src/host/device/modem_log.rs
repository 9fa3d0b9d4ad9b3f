//! The modem's log as read by the phone's operating system: in batches, each with some
//! delay.

use std::collections::VecDeque;

use airmile_control::qcut::{ModemReport, ReportExtractor};
use airmile_model::{Direction, Record, TtiSpan};

use super::MS_NS;
use crate::scenario::ModemLogConfig;

/// A transmission of new data: time, length of its TTI and block size in bytes.
type Transmission = (i64, i64, u32);

/// Batches being filled, and written ones.
#[derive(Debug, Clone)]
pub(super) struct ModemLog {
    config: ModemLogConfig,
    start_ns: i64,
    transmissions: Vec<Transmission>,
    /// Reports of written batches.
    reported: ReportExtractor,
    /// The last buffer status report and the last sample of this batch.
    report: Option<ModemReport>,
    sample: Option<ModemReport>,
    buffer_due_ns: i64,
    /// Number of batches so far, including lost ones.
    batches: u64,
    due: VecDeque<(i64, ModemReport)>,
}

impl ModemLog {
    pub(super) fn new(config: &ModemLogConfig, start_ns: i64) -> Self {
        Self {
            config: config.clone(),
            start_ns,
            transmissions: Vec::new(),
            reported: ReportExtractor::default(),
            report: None,
            sample: None,
            buffer_due_ns: start_ns + i64::from(config.buffer_ms) * MS_NS,
            batches: 0,
            due: VecDeque::new(),
        }
    }

    /// Adds a record, in time order.
    pub(super) fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Ul && grant.retx != Some(true) => {
                let (Some(at), Some(tbs_bytes)) = (grant.at, grant.tbs_bytes) else { return };
                let tti_ns = TtiSpan(1).ns(grant.position.numerology);
                self.transmissions.push((at.ns, tti_ns, tbs_bytes));
                if self.transmissions.len() >= self.config.transmissions.max(1) as usize {
                    self.write_transmissions(at.ns + MS_NS);
                }
            }
            Record::Bsr(_) => {
                if let Some(report) = self.reported.push(record) {
                    self.report = Some(report);
                }
            }
            Record::BufferStatus(_) if self.config.samples => {
                if let Some(sample) = self.reported.push(record) {
                    self.sample = Some(sample);
                }
            }
            _ => {}
        }
    }

    /// A report that is readable by now.
    pub(super) fn poll(&mut self, now_ns: i64) -> Option<ModemReport> {
        let quiet_ns = i64::from(self.config.quiet_ms) * MS_NS;
        if self.transmissions.last().is_some_and(|(at, ..)| at + MS_NS + quiet_ns <= now_ns) {
            self.write_transmissions(now_ns);
        }
        if self.buffer_due_ns <= now_ns {
            self.buffer_due_ns = now_ns + i64::from(self.config.buffer_ms.max(1)) * MS_NS;
            let mut batch: Vec<ModemReport> =
                [self.report.take(), self.sample.take()].into_iter().flatten().collect();
            batch.sort_by_key(|report| match report {
                ModemReport::Waiting { at_ns, .. } => *at_ns,
                ModemReport::Sent { to_ns, .. } => *to_ns,
            });
            if !self.is_lost() {
                batch.into_iter().for_each(|report| self.write(now_ns, report));
            }
        }
        self.due.front().filter(|(due, _)| *due <= now_ns)?;
        self.due.pop_front().map(|(_, report)| report)
    }

    /// Whether the next batch is lost.
    fn is_lost(&mut self) -> bool {
        self.batches += 1;
        self.random() % 100 < u64::from(self.config.lost_percent)
    }

    /// A hash of the batch's number (SplitMix64's finalizer), so that runs are reproducible.
    const fn random(&self) -> u64 {
        let mut z =
            (self.batches ^ self.start_ns.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A report with its times on the host's clock, including the clock error.
    fn ahead(&self, report: ModemReport) -> ModemReport {
        let by_ns = i64::from(self.config.ahead_ms) * MS_NS;
        match report {
            ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes } => {
                let (from_ns, to_ns) = (from_ns + by_ns, to_ns + by_ns);
                ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes }
            }
            ModemReport::Waiting { at_ns, low_bytes, high_bytes } => {
                ModemReport::Waiting { at_ns: at_ns + by_ns, low_bytes, high_bytes }
            }
        }
    }

    fn write(&mut self, now_ns: i64, report: ModemReport) {
        let since_ms = (now_ns - self.start_ns) / MS_NS;
        let is_silent =
            |(from, to): (u32, u32)| (i64::from(from)..i64::from(to)).contains(&since_ms);
        if !self.config.silent_ms.is_some_and(is_silent) {
            let jitter_ms = (self.random() >> 32) as i64 % (i64::from(self.config.jitter_ms) + 1);
            let due_ns = now_ns + (i64::from(self.config.delay_ms) + jitter_ms) * MS_NS;
            // A port keeps the order.
            let due_ns = self.due.back().map_or(due_ns, |(last, _)| due_ns.max(*last));
            self.due.push_back((due_ns, self.ahead(report)));
        }
    }

    /// Writes a batch: there were no other transmissions in its time.
    fn write_transmissions(&mut self, now_ns: i64) {
        let transmissions = std::mem::take(&mut self.transmissions);
        if self.is_lost() {
            return;
        }
        for (at_ns, tti_ns, tbs_bytes) in transmissions {
            let report = self.reported.sent(at_ns, tti_ns, tbs_bytes);
            self.write(now_ns, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmile_model::tables::bsr_upper_bound_bytes;
    use airmile_model::{BsrReport, Grant, Position, Stamp, TtiIndex};

    fn position(ms: i64) -> Position {
        Position { timing_segment: 0, cell: 0, numerology: 0, tti: TtiIndex(ms) }
    }

    fn grant(ms: i64, tbs_bytes: u32) -> Record {
        let grant = Grant {
            at: Some(Stamp::modem(ms * MS_NS)),
            tbs_bytes: Some(tbs_bytes),
            retx: Some(false),
            ..Grant::new(position(ms), Direction::Ul, 10)
        };
        grant.into()
    }

    fn bsr(ms: i64, lcg: u8, index: u8) -> Record {
        let (at, position) = (Some(Stamp::modem(ms * MS_NS)), position(ms));
        let upper_bound_bytes = bsr_upper_bound_bytes(index);
        BsrReport { at, position, lcg, index, upper_bound_bytes }.into()
    }

    fn read(log: &mut ModemLog, ms: i64) -> Vec<ModemReport> {
        std::iter::from_fn(|| log.poll(ms * MS_NS)).collect()
    }

    fn sent(from_ms: i64, to_ms: i64, low_bytes: u64, high_bytes: u64) -> ModemReport {
        let (from_ns, to_ns) = (from_ms * MS_NS, to_ms * MS_NS);
        ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, largest_bytes: high_bytes }
    }

    #[test]
    fn batches_are_full_or_quiet_and_late() {
        let config = ModemLogConfig { transmissions: 2, ..ModemLogConfig::default() };
        let mut log = ModemLog::new(&config, 0);
        log.push(&grant(1, 1_003));
        assert_eq!(read(&mut log, 2), []);
        log.push(&grant(3, 503));
        // Written at 4 ms, read 5 ms later. 1003 - 40 - 12, 503 - 20 - 12.
        assert_eq!(read(&mut log, 8), []);
        let batch = [sent(1, 2, 951, 1_000), sent(2, 4, 471, 500)];
        assert_eq!(read(&mut log, 9), batch);
        // A single one: 10 ms without another, and 5.
        log.push(&grant(20, 1_003));
        assert_eq!([read(&mut log, 30), read(&mut log, 31), read(&mut log, 35)], [[], [], []]);
        assert_eq!(read(&mut log, 36), [sent(4, 21, 951, 1_000)]);
    }

    #[test]
    fn reports_of_the_buffer_are_ranges() {
        let mut log = ModemLog::new(&ModemLogConfig::default(), 0);
        for record in [bsr(9, 3, 1), bsr(10, 3, 2), bsr(11, 0, 0)] {
            log.push(&record);
        }
        assert_eq!(read(&mut log, 40), []);
        // Index 2 is over 10 and up to 12 bytes (table 6.1.3.1-1).
        let at_ns = 11 * MS_NS - 1;
        assert_eq!(
            read(&mut log, 45),
            [ModemReport::Waiting { at_ns, low_bytes: 11, high_bytes: 12 }]
        );
        log.push(&bsr(50, 3, 63));
        read(&mut log, 80);
        let open = ModemReport::Waiting {
            at_ns: 51 * MS_NS - 1,
            low_bytes: 150_001,
            high_bytes: u64::MAX,
        };
        assert_eq!(read(&mut log, 85), [open]);
    }

    #[test]
    fn jitter_delays_batches_and_keeps_their_order() {
        let config = ModemLogConfig { transmissions: 1, jitter_ms: 60, ..Default::default() };
        // Close to each other, each also waits for the one before it.
        for (every_ms, least_spread_ms) in [(1, 1), (80, 40)] {
            let mut log = ModemLog::new(&config, 0);
            let (mut ends_ms, mut delays_ms) = (Vec::new(), Vec::new());
            for ms in 0..4_000 {
                if ms % every_ms == 0 {
                    log.push(&grant(ms, 103));
                }
                for report in read(&mut log, ms + 1) {
                    let ModemReport::Sent { to_ns, .. } = report else { continue };
                    ends_ms.push(to_ns / MS_NS);
                    delays_ms.push(ms + 1 - to_ns / MS_NS);
                }
            }
            assert!(ends_ms.is_sorted());
            let (least, most) =
                (*delays_ms.iter().min().unwrap(), *delays_ms.iter().max().unwrap());
            assert!(least >= 5 && most <= 65, "{least} to {most}");
            assert!(most - least >= least_spread_ms, "{least} to {most}");
        }
    }

    #[test]
    fn a_silent_modem_writes_nothing() {
        let config =
            ModemLogConfig { transmissions: 1, silent_ms: Some((10, 20)), ..Default::default() };
        let mut log = ModemLog::new(&config, 0);
        for ms in [5, 12, 21] {
            log.push(&grant(ms, 103));
        }
        let times_ms: Vec<i64> = read(&mut log, 39)
            .into_iter()
            .filter_map(|r| {
                if let ModemReport::Sent { to_ns, .. } = r { Some(to_ns / MS_NS) } else { None }
            })
            .collect();
        assert_eq!(times_ms, [6, 22]);
    }
}
