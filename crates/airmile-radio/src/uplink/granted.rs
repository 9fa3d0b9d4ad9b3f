//! Time in which the base station had granted all that the phone had reported.

use std::collections::VecDeque;

use airmile_model::{TtiIndex, TtiSpan};

use super::{BufferWait, SentBlocks};

/// From a report to the first block that it can have caused: the base station decodes it, and its grant
/// is for four TTIs later (TS 36.213, 8: both take 4 TTIs in FDD; in NR, and in TDD, chosen here).
const ROUND_MS: i64 = 8;

/// A report states the maximum of its level. The minimum is at least this part of it, in LTE's tables and NR's of
/// 8 bits (TS 36.321, 6.1.3.1; TS 38.321, 6.1.3.1).
const LEAST_OF_LEVEL: f64 = 0.85;

/// What the base station knows of the phone's buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Granted {
    /// The report in force at the last block, and later ones.
    reports: VecDeque<Report>,
    /// Bytes of all new blocks so far.
    bytes: u64,
    spans: VecDeque<BufferWait>,
}

#[derive(Debug, Clone, Copy)]
struct Report {
    tti: i64,
    /// The minimum of what was left.
    left_bytes: u64,
    /// Bytes of all new blocks up to it.
    sent_bytes: u64,
}

impl Granted {
    pub(super) fn poll(&mut self) -> Option<BufferWait> {
        self.spans.pop_front()
    }

    /// Takes a report, after the blocks of its TTI.
    pub(super) fn report(&mut self, tti: i64, bytes: u64) {
        let left_bytes = match bytes {
            u64::MAX => bytes,
            _ => (bytes as f64 * LEAST_OF_LEVEL) as u64,
        };
        self.reports.push_back(Report { tti, left_bytes, sent_bytes: self.bytes });
    }

    /// Takes the new blocks of a TTI; in a burst, with the TTI of its last ones before.
    pub(super) fn send(&mut self, last: Option<i64>, tti: i64, sent: SentBlocks) {
        let round = TtiSpan::from_ms(ROUND_MS, sent.numerology).0;
        if let Some(last) = last {
            self.wait(last, tti, round);
        }
        self.bytes = self.bytes.saturating_add(sent.granted_bytes);
        self.expire(tti, round);
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.reports.clear();
    }

    /// Removes reports before the one in force.
    fn expire(&mut self, tti: i64, round: i64) {
        while self.reports.get(1).is_some_and(|next| next.tti.saturating_add(round) <= tti) {
            self.reports.pop_front();
        }
    }

    fn wait(&mut self, from: i64, to: i64, round: i64) {
        let mut at = from;
        while at < to {
            self.expire(at, round);
            let starts = |report: &Report| report.tti.saturating_add(round);
            let known = self.reports.front().filter(|report| starts(report) <= at);
            let next = self.reports.get(usize::from(known.is_some()));
            let end = next.map_or(to, |report| starts(report).min(to));
            let sent = known.map(|report| self.bytes.saturating_sub(report.sent_bytes));
            if known.zip(sent).is_some_and(|(report, sent)| sent >= report.left_bytes) {
                self.add(at, end);
            }
            at = end;
        }
    }

    fn add(&mut self, from: i64, to: i64) {
        match self.spans.back_mut().filter(|last| last.end_tti.0 == from) {
            Some(last) => last.end_tti = TtiIndex(to),
            None => self
                .spans
                .push_back(BufferWait { start_tti: TtiIndex(from), end_tti: TtiIndex(to) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{BsrReport, BufferStatus, Direction, Grant, Position, Record};
    use proptest::prelude::*;

    use super::super::{UplinkOptions, UplinkTracker};

    /// Buffer, block, and report of a TTI, in bytes.
    type Tti = (i64, u32, Option<u32>, Option<u32>);

    type Spans = Vec<(i64, i64)>;

    /// What was granted, and the bursts.
    fn granted(ttis: &[Tti]) -> (Spans, Spans) {
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        for (tti, new_bytes, block, reported) in ttis {
            let position = Position::lte(*tti);
            let (retx_bytes, control_bytes) = (0, 0);
            let (lcid, priority) = (Some(3), None);
            let status = BufferStatus {
                at: None,
                position,
                lcid,
                priority,
                new_bytes: *new_bytes,
                retx_bytes,
                control_bytes,
            };
            tracker.push(&Record::BufferStatus(status));
            if let Some(bytes) = block {
                let mut grant = Grant::new(position, Direction::Ul, 20);
                grant.tbs_bytes = Some(*bytes);
                tracker.push(&grant.into());
            }
            if let Some(bytes) = reported {
                let upper_bound_bytes = Some(*bytes);
                let report = BsrReport { at: None, position, lcg: 2, index: 9, upper_bound_bytes };
                tracker.push(&Record::Bsr(report));
            }
        }
        let bursts = tracker.finish().into_iter().map(|b| (b.start_tti.0, b.end_tti.0)).collect();
        let spans = std::iter::from_fn(|| tracker.poll_granted());
        (spans.map(|span| (span.start_tti.0, span.end_tti.0)).collect(), bursts)
    }

    #[test]
    fn a_cell_that_grants_what_it_knows_of_limits_nothing() {
        // Each report of 2000 bytes is granted eight TTIs later; more arrives meanwhile.
        let each = |n: i64| (8 * n, 2_500, Some(2_000), Some(2_000));
        let behind_a_line: Vec<Tti> = (0..6).map(each).chain([(48, 0, None, None)]).collect();
        assert_eq!(granted(&behind_a_line), (vec![(8, 40)], vec![(0, 40)]));
        // A cell that grants a quarter of each report limits all of it.
        let each = |n: i64| (8 * n, 9_000, Some(2_000), Some(8_000));
        let slow: Vec<Tti> = (0..6).map(each).chain([(48, 0, None, None)]).collect();
        assert_eq!(granted(&slow), (vec![], vec![(0, 40)]));
    }

    #[test]
    fn without_reports_nothing_is_known_of_grants() {
        let each = |n: i64| (8 * n, 2_500, Some(2_000), None);
        let ttis: Vec<Tti> = (0..6).map(each).collect();
        assert_eq!(granted(&ttis).0, []);
    }

    proptest! {
        /// As counted TTI by TTI: the last report of eight TTIs ago and more, less what was sent since.
        #[test]
        fn as_counted_by_tti(
            steps in prop::collection::vec((1_i64..12, 0_u32..3_000, 0_u32..4, 1_u32..9_000), 2..80),
        ) {
            let mut tti = 0;
            let ttis: Vec<Tti> = steps
                .iter()
                .map(|(by, block, reports, bytes)| {
                    tti += by;
                    (tti, 1 + bytes, Some(*block + 1), (*reports == 0).then_some(*bytes))
                })
                .collect();
            let (first, last) = (ttis[0].0, ttis[ttis.len() - 1].0);
            let sent = |from: i64, to: i64| -> u64 {
                let within = ttis.iter().filter(|one| one.0 > from && one.0 <= to);
                within.filter_map(|one| one.2).map(u64::from).sum()
            };
            let expected = (first..last).filter(|at| {
                let reports = ttis.iter().filter(|one| one.0 + 8 <= *at);
                let in_force = reports.filter_map(|one| Some((one.0, one.3?))).next_back();
                in_force.is_some_and(|(tti, bytes)| {
                    sent(tti, *at) >= (f64::from(bytes) * 0.85) as u64
                })
            });
            let spans = granted(&ttis).0;
            let found: Vec<i64> = spans.iter().flat_map(|(from, to)| *from..*to).collect();
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
