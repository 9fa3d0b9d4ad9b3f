//! Time in which the base station had granted all that the phone had reported, and time in which nothing
//! shows whether it had.
//!
//! Without reports, samples of the buffer show the same, but not what was granted: what has waited since the
//! base station must have known of it waits for capacity, and of the rest nothing is known.
//!
//! A full block on the most PRBs is data that waits for capacity, whatever was reported. So are a TTI of
//! its retransmission, and TTIs of the downlink after it.

use std::collections::VecDeque;

use airmile_model::{TtiIndex, TtiSpan};

use super::{BufferWait, REPORT_BYTES, SentBlocks};

/// From a report to the first block that it can have caused: the base station decodes it, and its grant
/// is for four TTIs later (TS 36.213, 8: both take 4 TTIs in FDD; in NR, and in TDD, chosen here).
const ROUND_MS: i64 = 8;

/// A report states the maximum of its level. The minimum is at least this part of it, in LTE's tables and NR's of
/// 8 bits (TS 36.321, 6.1.3.1; TS 38.321, 6.1.3.1).
const LEAST_OF_LEVEL: f64 = 0.85;

/// A report shows what the base station knows, for blocks up to this long after it is in force (chosen
/// here: periodicBSR-Timer is sf5 or sf10). With a longer timer, base stations grant by other signs, too.
const RECENT_MS: i64 = 10;

/// A phone with data repeats its report after this time at the latest (TS 36.331 and TS 38.331, retxBSR-Timer: sf10240).
/// If the log has none for longer, it lacks reports, and what the last one stated may have been sent or discarded.
const REPEATED_MS: i64 = 10_240;

/// Samples are kept over a wait of this length for a block (chosen here: it bounds their number).
const MAX_WAIT_MS: i64 = 1_000;

/// A block has the most PRBs from this part of the most of any (chosen here: retransmissions and control
/// channels take some).
const MOST_PRB: f64 = 0.9;

/// A radio frame (TS 36.211, 4; TS 38.211, 4.3.1): the pattern of a TDD cell repeats in it.
const FRAME_MS: i64 = 10;

/// What the base station knows of the phone's buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Granted {
    /// The report in force at the last block, and later ones.
    reports: VecDeque<Report>,
    /// The log has reports.
    has_reports: bool,
    /// Bytes of all new blocks so far.
    bytes: u64,
    /// The TTI of the last blocks, and whether they were full.
    last: Option<(i64, bool)>,
    /// The most PRBs of a TTI.
    most_prb: u16,
    /// TTIs of a frame of this numerology that have had blocks.
    uplink: u128,
    numerology: u8,
    spans: VecDeque<(BufferWait, bool)>,
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
    pub(super) fn poll(&mut self) -> Option<(BufferWait, bool)> {
        self.spans.pop_front()
    }

    /// Takes a sample of the buffer, before the blocks of its TTI: without reports, the base station knows
    /// of it as late as by a periodic one.
    pub(super) fn sample(&mut self, tti: i64, left_bytes: u64, numerology: u8) {
        let ttis = |ms| TtiSpan::from_ms(ms, numerology).0;
        let is_old = |one: &Report| tti.saturating_sub(one.tti) > ttis(REPEATED_MS);
        let last = self.reports.back().filter(|one| is_old(one));
        if self.has_reports && last.is_some_and(|one| !self.is_granted(one)) {
            self.has_reports = false;
            self.reports.clear();
        }
        let stays_empty =
            left_bytes == 0 && self.reports.back().is_some_and(|one| one.left_bytes == 0);
        if self.has_reports || stays_empty {
            return;
        }
        let kept =
            self.last.map_or(tti, |(last, _)| last.max(tti.saturating_sub(ttis(MAX_WAIT_MS))));
        self.expire(kept, ttis(ROUND_MS));
        let tti = tti.saturating_add(ttis(RECENT_MS));
        self.reports.push_back(Report { tti, left_bytes, sent_bytes: self.bytes });
    }

    /// Takes a report, after the blocks of its TTI.
    pub(super) fn report(&mut self, tti: i64, bytes: u64, numerology: u8) {
        if !std::mem::replace(&mut self.has_reports, true) {
            self.reports.clear();
        }
        self.expire(tti, TtiSpan::from_ms(ROUND_MS, numerology).0);
        let left_bytes = match bytes {
            u64::MAX => bytes,
            _ => (bytes as f64 * LEAST_OF_LEVEL) as u64,
        };
        self.reports.push_back(Report { tti, left_bytes, sent_bytes: self.bytes });
    }

    /// The buffer is empty: of what was reported before, nothing waits.
    pub(super) fn empty(&mut self, tti: i64, numerology: u8) {
        if self.has_reports && !self.reports.iter().all(|one| self.is_granted(one)) {
            let tti = tti.saturating_sub(TtiSpan::from_ms(ROUND_MS, numerology).0);
            self.reports.clear();
            self.reports.push_back(Report { tti, left_bytes: 0, sent_bytes: self.bytes });
        }
    }

    /// What is left of a report that was not granted still waits.
    const fn is_granted(&self, report: &Report) -> bool {
        self.bytes.saturating_sub(report.sent_bytes) >= report.left_bytes
    }

    /// Takes the blocks of a TTI, in a burst since `start`.
    pub(super) fn send(&mut self, start: Option<i64>, tti: i64, sent: SentBlocks) {
        self.most_prb = self.most_prb.max(sent.n_prb);
        let is_filled = sent.padding_bytes.is_none_or(|bytes| bytes < REPORT_BYTES);
        let most = MOST_PRB * f64::from(self.most_prb);
        let full = is_filled && sent.n_prb > 0 && f64::from(sent.n_prb) >= most;
        let frame = TtiSpan::from_ms(FRAME_MS, sent.numerology.min(3)).0;
        let bit = |tti: i64| 1_u128 << tti.rem_euclid(frame);
        if std::mem::replace(&mut self.numerology, sent.numerology) != sent.numerology {
            self.uplink = 0;
        }
        self.uplink |= bit(tti);
        if let Some((start, (last, was_full))) = start.zip(self.last.replace((tti, full))) {
            let next = last.saturating_add(1);
            let is_free = || tti - next < frame && (next..tti).all(|at| self.uplink & bit(at) == 0);
            let from = match was_full {
                true if full && is_free() => tti,
                true => next,
                false => last,
            };
            self.wait(start, (last, from, tti), sent.numerology);
        }
        self.bytes = self.bytes.saturating_add(sent.granted_bytes);
    }

    /// Another cell may follow, of another bandwidth. Its duplex mode is that of the one before, as far as is
    /// known: a pattern begins with few TTIs of a frame, and those of FDD would look like those of TDD.
    pub(super) fn end_cell(&mut self) {
        self.forget();
        self.most_prb = 0;
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.reports.clear();
        self.last = None;
    }

    /// Removes reports before the one in force.
    fn expire(&mut self, tti: i64, round: i64) {
        while self.reports.get(1).is_some_and(|next| next.tti.saturating_add(round) <= tti) {
            self.reports.pop_front();
        }
    }

    /// Sorts the TTIs of `from..to`, after the blocks of `last`.
    fn wait(&mut self, start: i64, (last, from, to): (i64, i64, i64), numerology: u8) {
        let ttis = |ms| TtiSpan::from_ms(ms, numerology).0;
        let (round, recent) = (ttis(ROUND_MS), ttis(ROUND_MS + RECENT_MS));
        let mut at = from;
        while at < to {
            self.expire(at, round);
            let starts = |report: &Report| report.tti.saturating_add(round);
            let known = self.reports.front().filter(|report| starts(report) <= at);
            let next = self.reports.get(usize::from(known.is_some()));
            let end = next.map_or(to, |report| starts(report).min(to));
            // A report of the burst's first block is not in force yet.
            let begins = last.saturating_sub(start) < round;
            let is_recent = |report: &Report| begins || last.saturating_sub(report.tti) <= recent;
            let is_old = |one: &Report| last.saturating_sub(one.tti) > ttis(REPEATED_MS);
            match known {
                Some(report) if self.is_granted(report) => {
                    let known = self.has_reports && is_recent(report);
                    self.add(at, end, known);
                }
                Some(report) if is_old(report) => self.add(at, end, false),
                None if !begins => self.add(at, end, false),
                _ => {}
            }
            at = end;
        }
    }

    fn add(&mut self, from: i64, to: i64, known: bool) {
        match self.spans.back_mut().filter(|(last, of)| last.end_tti.0 == from && *of == known) {
            Some((last, _)) => last.end_tti = TtiIndex(to),
            None => {
                let span = BufferWait { start_tti: TtiIndex(from), end_tti: TtiIndex(to) };
                self.spans.push_back((span, known));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{BsrReport, BufferStatus, Direction, Grant, Position, Record};
    use proptest::prelude::*;

    use super::super::{UplinkOptions, UplinkTracker};

    /// Buffer, block with its PRBs, and report of a TTI, in bytes.
    type Tti = (i64, u32, Option<(u32, u16)>, Option<u32>);

    type Spans = Vec<(i64, i64)>;

    /// From this TTI on, the phone is in another cell.
    const NEXT_CELL: i64 = 10_000;

    /// What was granted, and what nothing shows.
    fn granted(ttis: &[Tti]) -> (Spans, Spans) {
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        for (tti, new_bytes, block, reported) in ttis {
            let timing_segment = u32::from(*tti >= NEXT_CELL);
            let position = Position { timing_segment, ..Position::lte(*tti) };
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
            if let Some((bytes, n_prb)) = block {
                let mut grant = Grant::new(position, Direction::Ul, *n_prb);
                grant.tbs_bytes = Some(*bytes);
                tracker.push(&grant.into());
            }
            if let Some(bytes) = reported {
                let upper_bound_bytes = Some(*bytes);
                let report = BsrReport { at: None, position, lcg: 2, index: 9, upper_bound_bytes };
                tracker.push(&Record::Bsr(report));
            }
        }
        tracker.finish();
        let spans: Vec<_> = std::iter::from_fn(|| tracker.poll_granted()).collect();
        let of = |known: bool| {
            let of = spans.iter().filter(|(_, one)| *one == known);
            of.map(|(span, _)| (span.start_tti.0, span.end_tti.0)).collect()
        };
        (of(true), of(false))
    }

    /// One TTI in so many has a block of so many PRBs; after one with the most.
    fn each(by: i64, n_prb: u16, reported: impl Fn(i64) -> Option<u32>) -> Vec<Tti> {
        let first = (-20, 9_000, Some((2_000, 50)), Some(0));
        let all = (0..6).map(|n| (by * n, 2_500, Some((2_000, n_prb)), reported(n)));
        let empty = |tti| (tti, 0, None, None);
        [first, empty(-19)].into_iter().chain(all).chain([empty(by * 6)]).collect()
    }

    #[test]
    fn a_cell_that_grants_what_it_knows_of_limits_nothing() {
        // Each report of 2000 bytes is granted eight TTIs later; more arrives meanwhile.
        let behind_a_line = each(8, 20, |_| Some(2_000));
        assert_eq!(granted(&behind_a_line), (vec![(0, 40)], vec![]));
        // A cell that grants a quarter of each report limits all of it but for the first round.
        let slow = each(8, 20, |_| Some(8_000));
        assert_eq!(granted(&slow), (vec![(0, 8)], vec![]));
    }

    #[test]
    fn full_blocks_are_data_that_waits_whatever_was_reported() {
        assert_eq!(granted(&each(1, 50, |_| Some(100))), (vec![], vec![]));
        // In this TDD cell every fifth TTI is the uplink's.
        assert_eq!(granted(&each(5, 50, |_| Some(100))), (vec![], vec![]));
        assert_eq!(granted(&each(5, 44, |_| Some(100))), (vec![(0, 25)], vec![]));
    }

    #[test]
    fn another_cell_has_its_own_bandwidth_and_the_duplex_mode_of_the_last() {
        let after = |tdd: i64, by: i64| {
            let first = (0..40).step_by(tdd as usize);
            let first = first.map(|tti| (tti, 2_500, Some((2_000, 50)), Some(100)));
            let in_next = |(tti, bytes, block, reported)| (tti + NEXT_CELL, bytes, block, reported);
            let next = each(by, 20, |_| Some(100)).into_iter().skip(2).map(in_next);
            let ttis: Vec<_> = first.chain([(50, 0, None, None)]).chain(next).collect();
            let (known, unknown) = granted(&ttis);
            assert_eq!(unknown, vec![]);
            let of_next = known.iter().filter(|span| span.0 >= NEXT_CELL);
            of_next.map(|(from, to)| (from - NEXT_CELL, to - NEXT_CELL)).collect::<Spans>()
        };
        // Twenty PRBs are the most there.
        assert_eq!(after(1, 1), vec![]);
        // A filled block in each fifth TTI, as of a call, leaves TTIs of FDD free; of TDD, none is.
        assert_eq!(after(1, 5), vec![(8, 10), (11, 15), (16, 20), (21, 25)]);
        assert_eq!(after(5, 5), vec![]);
    }

    #[test]
    fn a_report_counts_while_it_is_recent() {
        let sparse = |bytes: u32| granted(&each(8, 20, |n| (n == 0).then_some(bytes)));
        assert_eq!(sparse(2_000), (vec![(0, 24)], vec![(24, 40)]));
        // Of 9,000 bytes, more than 7,650 are sent with the fifth block.
        assert_eq!(sparse(9_000), (vec![(0, 8)], vec![(32, 40)]));
    }

    /// Nor waits what it stated: 5,650 bytes of the first burst were discarded (TS 36.323, 5.4), and the second one
    /// begins without a report in the log.
    #[test]
    fn a_report_is_of_no_burst_after_the_buffer_was_empty() {
        let second = (0..6).map(|n| (1_000 + 8 * n, 2_500, Some((500, 20)), None));
        let ttis = [
            (-20, 9_000, Some((2_000, 50)), Some(0)),
            (-19, 0, None, None),
            (0, 9_000, Some((2_000, 20)), Some(9_000)),
            (8, 7_000, Some((2_000, 20)), None),
            (20, 0, None, None),
        ];
        let ttis: Vec<_> = ttis.into_iter().chain(second).chain([(1_048, 0, None, None)]).collect();
        assert_eq!(granted(&ttis), (vec![(0, 8), (1_000, 1_008)], vec![(1_008, 1_040)]));
    }

    /// One report of 9,000 bytes; from then on a block of 10 bytes each second, out of 9,000 that wait.
    #[test]
    fn a_report_that_is_not_repeated_expires() {
        let tti = |ms: i64| ms - 15_000;
        let first = [(tti(-20), 9_000, Some((2_000, 50)), Some(0)), (tti(-19), 0, None, None)];
        let all =
            (0..20).map(|s| (tti(1_000 * s), 9_000, Some((10, 20)), (s == 0).then_some(9_000)));
        let end = [(tti(20_000), 0, None, None)];
        let ttis: Vec<_> = first.into_iter().chain(all).chain(end).collect();
        // The base station knows of each sample after 18 ms, and one block cannot have all of it.
        let unknown = vec![(tti(10_000), tti(11_018))];
        assert_eq!(granted(&ttis), (vec![(tti(0), tti(8))], unknown));
    }

    #[test]
    fn without_a_recent_report_nothing_is_known_of_grants() {
        let mut ttis = each(8, 20, |_| None);
        assert_eq!(granted(&ttis), (vec![(0, 8)], vec![(8, 40)]));
        // Nor in a log without any report, where all that waits is sent with the next block.
        ttis[0].3 = None;
        ttis.iter_mut().filter(|one| one.1 > 0).for_each(|one| one.1 = 2_000);
        assert_eq!(granted(&ttis), (vec![], vec![(0, 40)]));
    }

    #[test]
    fn without_reports_what_stays_in_the_buffer_waits_for_capacity() {
        // Samples of every TTI: 40,000 bytes, of which a block takes 2,000.
        let each = |bytes: fn(i64) -> u32| -> Vec<Tti> {
            let all = (0..100).map(|tti| {
                let block = (tti % 8 == 0).then_some((2_000, 20));
                (tti, bytes(tti), block, None)
            });
            let first = (-20, 9_000, Some((2_000, 50)), None);
            let empty = |tti| (tti, 0, None, None);
            [first, empty(-19)].into_iter().chain(all).chain([empty(100)]).collect()
        };
        assert_eq!(granted(&each(|_| 40_000)), (vec![], vec![(0, 18)]));
        // A few packets arrive while the last ones are sent.
        assert_eq!(granted(&each(|_| 3_000)), (vec![], vec![(0, 96)]));
    }

    #[test]
    fn samples_without_blocks_do_not_accumulate() {
        let mut granted = super::Granted::default();
        (0..9_000).for_each(|tti| granted.sample(tti, 9 * u64::from(tti > 4_000), 0));
        assert!(granted.reports.len() < 1_100);
    }

    #[test]
    fn reports_without_blocks_do_not_accumulate() {
        let mut granted = super::Granted::default();
        (0..1_000).for_each(|tti| granted.report(tti, 9, 0));
        assert!(granted.reports.len() < 20);
    }

    proptest! {
        /// As counted TTI by TTI: the last report of eight TTIs ago and more, less what was sent since.
        #[test]
        fn as_counted_by_tti(
            steps in prop::collection::vec(
                (1_i64..12, (0_u32..3_000, 1_u16..20), 0_u32..6, 1_u32..9_000),
                2..80,
            ),
        ) {
            let mut tti = 0;
            let mut ttis: Vec<Tti> = steps
                .iter()
                .map(|(by, (block, n_prb), reports, bytes)| {
                    tti += by;
                    let block = Some((*block + 1, *n_prb));
                    (tti, 1 + bytes, block, (*reports == 0).then_some(*bytes))
                })
                .collect();
            // The TTIs of all of a frame are the uplink's.
            let reported = |tti| (tti == -30).then_some(1);
            ttis.splice(0..0, (-30..-10).map(|tti| (tti, 9, Some((1, 20)), reported(tti))));
            ttis.insert(20, (-10, 0, None, None));
            let (first, last) = (ttis[21].0, ttis[ttis.len() - 1].0);
            let sent = |from: i64, to: i64| -> u64 {
                let within = ttis.iter().filter(|one| one.0 > from && one.0 <= to);
                within.filter_map(|one| Some(u64::from(one.2?.0))).sum()
            };
            let kind = |at: i64| {
                let (block, n_prb) =
                    ttis.iter().filter(|one| one.0 <= at).filter_map(|one| Some((one.0, one.2?.1)))
                        .next_back()?;
                if block == at && f64::from(n_prb) >= 18.0 {
                    return None;
                }
                let reports = ttis.iter().filter(|one| one.0 + 8 <= at);
                let in_force = reports.filter_map(|one| Some((one.0, one.3?))).next_back();
                let begins = block - first < 8;
                match in_force {
                    Some((tti, bytes)) if sent(tti, at) >= (f64::from(bytes) * 0.85) as u64 => {
                        Some(begins || block - tti <= 18)
                    }
                    Some(_) => None,
                    None if begins => None,
                    _ => Some(false),
                }
            };
            let (known, unknown) = granted(&ttis);
            for (spans, wanted) in [(known, true), (unknown, false)] {
                let of_burst = spans.iter().flat_map(|(from, to)| *from..*to);
                let found: Vec<i64> = of_burst.filter(|at| *at >= first).collect();
                let expected = (first..last).filter(|at| kind(*at) == Some(wanted));
                prop_assert_eq!(found, expected.collect::<Vec<_>>());
            }
        }
    }
}
