//! EN-DC (TS 37.340): a phone with a leg over LTE and one over NR at once.
//!
//! Each leg has its own queue and TTI count, so each has its own trackers. A split bearer
//! holds data while either leg does: [`LegUnion`] joins the findings of both, on the axis
//! of one of them; [`OtherLeg`] has the trackers of the second leg. [`LegSorter`] returns the
//! leg of a record.

use airmile_model::tables::bsr_upper_bound_bytes;
use airmile_model::{BsrReport, Burst, GrantSources, Position, Record, Stamp, TtiIndex};

use crate::burst::Activity;
use crate::decided::Decided;

mod other;

pub use other::{LegFindings, OtherLeg};

/// Maximum delay between records of the two legs (chosen here: each leg is sorted over 2 s).
pub(crate) const LATE_NS: i64 = 3_000_000_000;

/// A radio access technology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rat {
    /// LTE.
    Lte,
    /// NR.
    Nr,
}

/// The radio access technology of a record; `None` if both have such records. A
/// numerology above 0 is NR's; at 15 kHz only a message's code distinguishes them, and the table of
/// a buffer status report.
#[must_use]
pub fn rat_of(record: &Record) -> Option<Rat> {
    let by_numerology = |position: &Position| (position.numerology > 0).then_some(Rat::Nr);
    match record {
        Record::Grant(g) => {
            let sources = [GrantSources::NR_PDSCH_STATUS, GrantSources::NR_UL_TB];
            let nr = sources.iter().any(|source| g.sources.contains(*source));
            let known = nr || g.position.numerology > 0;
            Some(if known { Rat::Nr } else { Rat::Lte })
        }
        Record::Rlc(pdu) => by_numerology(&pdu.position),
        Record::MacBlock(block) => by_numerology(&block.position),
        Record::Bsr(report) => {
            by_numerology(&report.position).or_else(|| is_of_nr_table(report).then_some(Rat::Nr))
        }
        Record::Hole(hole) => by_numerology(&hole.position),
        Record::NrStats(_) | Record::NrUlStats(_) => Some(Rat::Nr),
        Record::CellInfo(info) if info.source == "0xB887" => Some(Rat::Nr),
        Record::CellInfo(info) if info.source == "inferred" || info.source.starts_with("0x") => {
            Some(Rat::Lte)
        }
        Record::BufferStatus(_) | Record::Dci(_) | Record::Measurement(_) => Some(Rat::Lte),
        _ => None,
    }
}

/// Whether a report's maximum is not LTE's for its index; the first two are the same in both.
fn is_of_nr_table(report: &BsrReport) -> bool {
    let BsrReport { index, upper_bound_bytes, .. } = *report;
    index > 63 || (index > 1 && upper_bound_bytes != bsr_upper_bound_bytes(index))
}

/// Assigns the records of a subscription to its legs.
#[derive(Debug, Clone, Default)]
pub struct LegSorter {
    first: Option<Rat>,
    /// Whether LTE is a second leg, if NR is the first.
    has_lte: bool,
    /// Of the first leg's grants.
    numerology: u8,
}

impl LegSorter {
    /// The first leg, whose TTIs are the axis; unknown before its first record.
    #[must_use]
    pub const fn first(&self) -> Option<Rat> {
        self.first
    }

    /// Takes the next record; returns its leg. Measurements, and what messages state about cells, are
    /// not the first record of a leg.
    pub fn take(&mut self, record: &Record) -> Rat {
        let rat = rat_of(record);
        let is_cell_info = matches!(record, Record::CellInfo(_));
        if self.first.is_none() && !is_cell_info && !matches!(record, Record::Measurement(_)) {
            self.first = rat;
        }
        self.has_lte |= rat == Some(Rat::Lte) && (is_cell_info || self.first == Some(Rat::Nr));
        // Both radios have these records, at 1 ms; they count as LTE's if that is the second leg.
        let is_lte = match record {
            Record::Hole(_) | Record::Bsr(_) => self.has_lte,
            Record::Rlc(_) | Record::MacBlock(_) => self.has_lte && self.numerology > 0,
            _ => false,
        };
        let leg = rat.or(self.first.filter(|_| !is_lte)).unwrap_or(Rat::Lte);
        if let (Record::Grant(grant), true) = (record, self.first == Some(leg)) {
            self.numerology = grant.position.numerology;
        }
        leg
    }
}

/// Place and time of a record that shows how far its leg's log goes.
#[must_use]
pub const fn place(record: &Record) -> Option<(Position, Option<Stamp>)> {
    Some(match record {
        Record::Grant(r) => (r.position, r.at),
        Record::Rlc(r) => (r.position, r.at),
        Record::BufferStatus(r) => (r.position, r.at),
        Record::Measurement(r) => (r.position, r.at),
        Record::Dci(r) => (r.position, r.at),
        _ => return None,
    })
}

/// Bursts and activity of both legs in one order: adjoining spans are merged.
#[derive(Debug, Clone, Default)]
pub struct LegUnion {
    bursts: Vec<Burst>,
    /// Bursts that may be none.
    unclear: Vec<Burst>,
    runs: Vec<Activity>,
    holes: Vec<Activity>,
}

impl LegUnion {
    /// Takes a burst of a leg.
    pub fn push_burst(&mut self, burst: Burst) {
        if burst.is_clear() { &mut self.bursts } else { &mut self.unclear }.push(burst);
    }

    /// Takes a run of scheduled or missing TTIs of a leg.
    pub fn push_activity(&mut self, activity: Activity) {
        if activity.unknown { &mut self.holes } else { &mut self.runs }.push(activity);
    }

    /// The bursts that are final, given that both legs are decided up to `before`. Where the other leg
    /// shows that data waited, a part of an unclear burst belongs to that leg's burst.
    pub fn poll_bursts(&mut self, before: TtiIndex) -> Vec<Burst> {
        self.bursts.sort_by_key(|burst| burst.start_tti);
        let mut out = join(&mut self.bursts, before);
        // From there on clear bursts are still to come.
        let until = self.bursts.first().map_or(before, |burst| burst.start_tti.min(before));
        self.unclear.sort_by_key(|burst| burst.start_tti);
        let mut parts = Vec::new();
        let mut later = Vec::new();
        for mut rest in join(&mut self.unclear, TtiIndex(i64::MAX)) {
            let first = out.partition_point(|clear| clear.end_tti <= rest.start_tti);
            let end = out.partition_point(|clear| clear.start_tti < rest.end_tti);
            for clear in &mut out[first..end.max(first)] {
                parts.extend(cut(&mut rest, clear.start_tti));
                if let Some(part) = cut(&mut rest, clear.end_tti) {
                    clear.take(&Burst { unknown_ttis: 0, ..part });
                }
            }
            parts.extend(cut(&mut rest, until));
            later.extend(Some(rest).filter(|rest| rest.start_tti < rest.end_tti));
        }
        self.unclear = later;
        out.append(&mut parts);
        out.sort_by_key(|burst| burst.start_tti);
        out
    }

    /// The same of activity; holes go first.
    pub fn poll_activity(&mut self, before: TtiIndex) -> Vec<Activity> {
        self.runs.sort_by_key(|run| run.start_tti);
        let mut out: Vec<Activity> =
            self.holes.extract_if(.., |hole| hole.start_tti < before).collect();
        out.extend(join(&mut self.runs, before));
        out
    }

    /// How far the output is complete, if both legs are decided up to `both`.
    #[must_use]
    pub fn decided(&self, both: Decided) -> Decided {
        let runs = self.runs.iter().map(|run| run.start_tti).fold(both.runs, TtiIndex::min);
        let bursts = self.bursts.iter().map(|b| b.start_tti).fold(both.bursts, TtiIndex::min);
        Decided { runs, bursts }
    }
}

/// Removes the part of an unclear burst before a TTI, with that part of its bytes.
fn cut(rest: &mut Burst, at: TtiIndex) -> Option<Burst> {
    let end_tti = rest.end_tti.min(at);
    let n_tti = u32::try_from(end_tti.since(rest.start_tti)).ok().filter(|n| *n > 0)?;
    let share = f64::from(n_tti) / rest.n_tti() as f64;
    let is_end = end_tti == rest.end_tti;
    let last_bytes = if is_end { rest.last_bytes } else { 0 };
    let bytes = (rest.waited_bytes() as f64 * share).round() as u64 + last_bytes;
    let scheduled_ttis = (f64::from(rest.scheduled_ttis) * share).round() as u32;
    let part =
        Burst { end_tti, bytes, last_bytes, scheduled_ttis, unknown_ttis: n_tti, ..rest.clone() };
    rest.start_tti = end_tti;
    rest.bytes = rest.bytes.saturating_sub(bytes);
    rest.scheduled_ttis = rest.scheduled_ttis.saturating_sub(scheduled_ttis);
    Some(part)
}

/// A span that can be merged with others.
trait Joins: Clone {
    fn start(&self) -> i64;
    fn end(&self) -> i64;
    /// Merges one that begins at or after its start.
    fn take(&mut self, later: &Self);
}

impl Joins for Burst {
    fn start(&self) -> i64 {
        self.start_tti.0
    }

    fn end(&self) -> i64 {
        self.end_tti.0
    }

    fn take(&mut self, later: &Self) {
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.scheduled_ttis = self.scheduled_ttis.saturating_add(later.scheduled_ttis);
        self.unknown_ttis = self.unknown_ttis.saturating_add(later.unknown_ttis);
        if later.end_tti == self.end_tti {
            self.last_bytes = self.last_bytes.saturating_add(later.last_bytes);
        }
        if later.end_tti > self.end_tti {
            self.end_tti = later.end_tti;
            self.last_bytes = later.last_bytes;
            self.closed_by = later.closed_by;
            self.confidence = later.confidence;
        }
    }
}

impl Joins for Activity {
    fn start(&self) -> i64 {
        self.start_tti.0
    }

    fn end(&self) -> i64 {
        self.start_tti.0.saturating_add(self.n_tti)
    }

    fn take(&mut self, later: &Self) {
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.n_tti = self.n_tti.max(later.end().saturating_sub(self.start()));
        self.at_ns = self.at_ns.or(later.at_ns);
    }
}

/// Removes the spans, in order, that end before a TTI, merging those that touch.
fn join<T: Joins>(spans: &mut Vec<T>, before: TtiIndex) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    let mut taken = 0;
    let mut open: Option<(T, usize)> = None;
    for (i, span) in spans.iter().enumerate() {
        match &mut open {
            Some((whole, n)) if span.start() <= whole.end() => {
                whole.take(span);
                *n = i + 1;
            }
            _ => {
                if let Some((whole, n)) = open.take() {
                    taken = n;
                    out.push(whole);
                }
                open = Some((span.clone(), i + 1));
            }
        }
        // Spans from there on are still to come.
        if open.as_ref().is_some_and(|(whole, _)| whole.end() >= before.0) {
            break;
        }
    }
    if let Some((whole, n)) = open.filter(|(whole, _)| whole.end() < before.0) {
        taken = n;
        out.push(whole);
    }
    spans.drain(..taken);
    out
}

#[cfg(test)]
mod tests {
    use airmile_model::nr_tables::nr_bsr_upper_bound_bytes;
    use airmile_model::{Bound, Direction, Grant, Hole, RlcMode, RlcPdu};

    use super::*;

    fn burst(start: i64, end: i64, closed_by: Bound) -> Burst {
        Burst {
            dir: Direction::Dl,
            timing_segment: 0,
            start_tti: TtiIndex(start),
            end_tti: TtiIndex(end),
            bytes: 10,
            last_bytes: 0,
            scheduled_ttis: 1,
            unknown_ttis: 0,
            opened_by: Bound::FirstData,
            closed_by,
            confidence: 0.9,
        }
    }

    #[test]
    fn a_bearer_is_not_empty_while_either_leg_is_not() {
        let mut union = LegUnion::default();
        for (start, end) in [(0, 10), (20, 30), (5, 15), (40, 45), (29, 35)] {
            union.push_burst(burst(start, end, Bound::Poll));
        }
        let spans = |bursts: Vec<Burst>| -> Vec<(i64, i64, u64)> {
            bursts.iter().map(|b| (b.start_tti.0, b.end_tti.0, b.bytes)).collect()
        };
        // Up to 35 both legs are decided: the second burst may still grow.
        assert_eq!(spans(union.poll_bursts(TtiIndex(35))), [(0, 15, 20)]);
        let both = Decided { runs: TtiIndex(35), bursts: TtiIndex(35) };
        assert_eq!(union.decided(both).bursts, TtiIndex(20));
        assert_eq!(spans(union.poll_bursts(TtiIndex(i64::MAX))), [(20, 35, 20), (40, 45, 10)]);
        assert_eq!(union.decided(Decided::ALL), Decided::ALL);
    }

    #[test]
    fn a_wait_that_may_be_none_counts_where_the_other_leg_was_empty() {
        let mut union = LegUnion::default();
        let unclear = |start, end| Burst { unknown_ttis: 1, ..burst(start, end, Bound::FirstData) };
        union.push_burst(burst(10, 20, Bound::Poll));
        union.push_burst(unclear(0, 60));
        union.push_burst(burst(40, 80, Bound::Poll));
        union.push_burst(unclear(50, 95));
        let spans = |bursts: Vec<Burst>| -> Vec<(i64, i64, u32)> {
            bursts.iter().map(|b| (b.start_tti.0, b.end_tti.0, b.unknown_ttis)).collect()
        };
        let whole = [(0, 10, 10), (10, 20, 0), (20, 40, 20), (40, 80, 0), (80, 95, 15)];
        assert_eq!(spans(union.clone().poll_bursts(TtiIndex(i64::MAX))), whole);
        // Up to 70 both legs are decided: the rest follows later.
        assert_eq!(spans(union.poll_bursts(TtiIndex(70))), whole[..3]);
        assert_eq!(spans(union.poll_bursts(TtiIndex(90))), [(40, 80, 0), (80, 90, 10)]);
        assert_eq!(spans(union.poll_bursts(TtiIndex(i64::MAX))), [(90, 95, 5)]);
    }

    #[test]
    fn bytes_of_a_burst_that_may_be_none_go_to_the_parts_that_it_overlaps() {
        let joined = |start, end| {
            let mut union = LegUnion::default();
            union.push_burst(burst(100, 200, Bound::Poll));
            let of_leg = burst(start, end, Bound::Gap);
            union.push_burst(Burst { bytes: 1_000, unknown_ttis: 1, ..of_leg });
            let joined = union.poll_bursts(TtiIndex(i64::MAX)).into_iter();
            joined.map(|b| (b.start_tti.0, b.end_tti.0, b.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(joined(120, 180), [(100, 200, 1_010)]);
        assert_eq!(joined(150, 250), [(100, 200, 510), (200, 250, 500)]);
        assert_eq!(joined(0, 400), [(0, 100, 250), (100, 200, 260), (200, 400, 500)]);
    }

    #[test]
    fn the_burst_that_ends_last_gives_the_end() {
        let mut union = LegUnion::default();
        union.push_burst(burst(0, 50, Bound::Poll));
        union.push_burst(burst(10, 20, Bound::Padding));
        let joined = union.poll_bursts(TtiIndex(i64::MAX));
        assert_eq!((joined.len(), joined[0].closed_by), (1, Bound::Poll));
    }

    #[test]
    fn reports_at_15_khz_are_assigned_by_their_table() {
        let rat = |index, upper_bound_bytes| {
            let position = Position::lte(5);
            rat_of(&BsrReport { at: None, position, lcg: 1, index, upper_bound_bytes }.into())
        };
        assert!((0..64).all(|index| rat(index, bsr_upper_bound_bytes(index)).is_none()));
        for (last, long) in [(31, false), (254, true)] {
            let of = |index| rat(index, nr_bsr_upper_bound_bytes(index, long));
            assert!((2..=last).all(|index| of(index) == Some(Rat::Nr)));
        }
    }

    #[test]
    fn records_of_either_radio_belong_to_the_first_leg_or_to_lte() {
        let pdu = RlcPdu {
            at: None,
            position: Position::lte(5),
            dir: Direction::Dl,
            bearer: 3,
            signalling: None,
            mode: RlcMode::Am,
            sn: None,
            size_bytes: 500,
            poll: None,
            resegment: false,
            status: false,
        };
        let hole = Hole { at: None, position: Position::lte(5), n_tti: 9, why: "test" };
        let lte = Grant::new(Position::lte(6), Direction::Ul, 5);
        for (numerology, of_pdu) in [(0, Rat::Nr), (1, Rat::Lte)] {
            let mut legs = LegSorter::default();
            let mut nr = Grant::new(Position { numerology, ..Position::lte(5) }, Direction::Dl, 5);
            nr.sources = GrantSources::NR_PDSCH_STATUS;
            let records: [Record; 7] = [
                pdu.clone().into(),
                nr.into(),
                pdu.clone().into(),
                hole.clone().into(),
                lte.clone().into(),
                pdu.clone().into(),
                hole.clone().into(),
            ];
            let taken = records.map(|record| legs.take(&record));
            let [nr, lte] = [Rat::Nr, Rat::Lte];
            assert_eq!(taken, [lte, nr, nr, nr, lte, of_pdu, lte]);
            assert_eq!(legs.first(), Some(nr));
        }
    }
}
