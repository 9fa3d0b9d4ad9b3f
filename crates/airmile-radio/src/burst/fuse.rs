//! One decision for each row of data: was the queue empty after its TTI? (TTIs that are counted into a row
//! left data: `epoch`.)
//!
//! The state of the queue follows from these decisions: from a data TTI that left data
//! behind to the next one the queue is not empty (ACTIVE or CONTENTION), after one that
//! emptied it (LAST_ACTIVE) it is (UNDERFLOW).

use airmile_model::{Bound, Evidence, TtiSpan};

use super::allocation::{self, AllocatedBlock, CellHabit};
use super::dl_slots::DlSlots;
use super::gap::{self, GapHistogram, N_BINS};
use super::padding::{self, PaddedBlock};
use super::poll_model::{PollLimits, PollMark, PollRun};
use super::tti_row::TtiRow;
use crate::small_map::SmallMap;

/// The decision for a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decision {
    /// Whether user data left the queue in this TTI.
    pub data: bool,
    /// Whether the queue was empty afterwards.
    pub empty: bool,
    /// The evidence that decided.
    pub by: Bound,
    /// Confidence, 0.5 to 1.
    pub confidence: f64,
}

impl Decision {
    const NO_DATA: Self = Self { data: false, empty: false, by: Bound::Gap, confidence: 1.0 };

    fn judged(p_empty: f64, by: Bound) -> Self {
        let empty = p_empty > 0.5;
        Self { data: true, empty, by, confidence: if empty { p_empty } else { 1.0 - p_empty } }
    }

    const fn sure(empty: bool, by: Bound, confidence: f64) -> Self {
        Self { data: true, empty, by, confidence }
    }
}

/// Parameters of the base station learnt from the log.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Learnt {
    /// Poll limits, where poll bits were used.
    pub poll_limits: PollLimits,
    /// Padding in bytes up to which it is no evidence, if padding was used.
    pub padding_threshold_bytes: Option<u32>,
    /// How PRBs are assigned, if allocations were used.
    pub cell_habit: Option<CellHabit>,
}

// Confidence of each kind of evidence: an order chosen here, not measured. A note of the
// standard discourages needless polls while PDCP still holds data, so an unexplained poll
// is no proof.
const POLL_AND_PADDING: f64 = 0.99;
const POLL_UNEXPLAINED: f64 = 0.95;
const PADDING_ALONE: f64 = 0.9;
const NO_POLL: f64 = 0.99;

/// A bearer that has sent nothing for this long does not keep the user's queue open
/// (chosen here: well past the longest contention in the simulated logs, 101 ms).
const BEARER_IDLE_MS: i64 = 250;
/// Data after a pause this short follows at once (chosen here: two users who share a
/// cell).
const FOLLOWED_TTIS: i64 = 2;
/// Padding of this part of a block, before a pause that is too long for contention, is no
/// alignment whatever other blocks have: a lone acknowledgement pads its small block by
/// less than a cell that does not segment pads its large ones (chosen here).
const MUCH_PADDING: u32 = 8;
/// This many blocks in a row without any RLC record: the RLC log is missing, and not the
/// blocks lost (chosen here).
const RLC_MISSING_ROWS: usize = 8;

/// Decides by the evidence of the stretch of log: RLC AM, else padding, else allocations.
pub(super) fn decide_auto(rows: &[TtiRow], learnt: &mut Learnt) -> (Evidence, Vec<Decision>) {
    // First of all: rows of an epoch with a poll may stand for several TTIs.
    if rows.iter().flat_map(|r| &r.marks).any(|m| m.poll.is_some()) {
        return (Evidence::Fused, decide_poll(rows, true, learnt));
    }
    if rows.iter().any(|row| row.grants.counted) {
        return (Evidence::Fused, decide_counted(rows, learnt));
    }
    let data = rows.iter().filter(|r| r.grants.may_hold_data()).count();
    let padded = rows
        .iter()
        .filter(|r| r.grants.may_hold_data() && r.grants.padding_bytes().is_some())
        .count();
    if 2 * padded > data {
        (Evidence::Padding, decide_padding(rows, learnt))
    } else {
        (Evidence::Grants, decide_grants(rows, learnt))
    }
}

/// Padding alone.
pub(super) fn decide_padding(rows: &[TtiRow], learnt: &mut Learnt) -> Vec<Decision> {
    if rows.iter().any(|row| row.grants.counted) {
        return decide_counted(rows, learnt);
    }
    let is_data: Vec<bool> = rows.iter().map(|row| row.grants.may_hold_data()).collect();
    let threshold = fit_padding(rows, &is_data, &gaps(rows, &is_data), None);
    learnt.padding_threshold_bytes = threshold;
    let Some(threshold) = threshold else { return vec![Decision::NO_DATA; rows.len()] };
    // With a threshold of zero any padding decides, whatever the pause after it.
    let gaps = if threshold > 0 { dl_gaps(rows, &is_data) } else { Vec::new() };
    rows.iter()
        .zip(is_data)
        .enumerate()
        .map(|(i, (row, data))| {
            if !data {
                return Decision::NO_DATA;
            }
            let gap = gaps.get(i).copied().flatten();
            let paused = gap.is_none_or(|gap| gap >= allocation::long_gap(row.grants.numerology));
            let padded = row.grants.padding_bytes().is_some_and(|padding| {
                let much = padding.saturating_mul(MUCH_PADDING) >= row.grants.tbs_bytes;
                padding > threshold || padding > 0 && much && paused
            });
            Decision::sure(padded, Bound::Padding, PADDING_ALONE)
        })
        .collect()
}

/// Allocations alone.
pub(super) fn decide_grants(rows: &[TtiRow], learnt: &mut Learnt) -> Vec<Decision> {
    // Contents are ignored: a block of STATUS counts like any other.
    let is_data: Vec<bool> =
        rows.iter().map(|r| r.grants.new_data() && r.grants.prb.is_some()).collect();
    let gaps = dl_gaps(rows, &is_data);
    let blocks: Vec<AllocatedBlock> = rows
        .iter()
        .zip(&gaps)
        .zip(&is_data)
        .filter(|(_, data)| **data)
        .map(|((row, gap), _)| AllocatedBlock {
            tti: row.tti,
            prb: row.grants.prb.unwrap_or(0),
            tbs_bytes: row.grants.tbs_bytes,
            gap: *gap,
            paused_long: gap.is_none_or(|gap| gap >= allocation::long_gap(row.grants.numerology)),
        })
        .collect();
    let (habit, judgements) = allocation::judge(&blocks);
    learnt.cell_habit = Some(habit);
    let mut judgements = judgements.into_iter();
    is_data
        .into_iter()
        .map(|data| match data.then(|| judgements.next()).flatten() {
            Some(judged) => Decision::judged(
                judged.p_empty,
                if judged.by_size { Bound::Fraction } else { Bound::Gap },
            ),
            None => Decision::NO_DATA,
        })
        .collect()
}

/// Decides by padding from counters: known for a row, or summed over several of which any
/// may have emptied the queue. The latter, and rows without data, are judged by their
/// allocations.
fn decide_counted(rows: &[TtiRow], learnt: &mut Learnt) -> Vec<Decision> {
    let mut decisions = decide_grants(rows, learnt);
    let is_data: Vec<bool> = decisions.iter().map(|d| d.data).collect();
    let gaps = gaps(rows, &is_data);
    let threshold = fit_padding(rows, &is_data, &gaps, None).unwrap_or(0);
    learnt.padding_threshold_bytes = Some(threshold);
    for (row, decision) in rows.iter().zip(&mut decisions).filter(|(_, d)| d.data) {
        if let Some(padding) = row.grants.padding_bytes() {
            *decision = Decision::sure(padding > threshold, Bound::Padding, PADDING_ALONE);
        }
    }
    decisions
}

/// The evidence of a bearer's last PDU in a TTI, before pauses are considered.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    Settled(Decision),
    /// Only the pause decides: a counter may have forced the poll.
    Forced,
    /// Only the pause decides: PDUs are missing right after.
    Hole,
}

/// Poll bits, with padding (`auto`) or without it (`poll`).
pub(super) fn decide_poll(
    rows: &[TtiRow],
    with_padding: bool,
    learnt: &mut Learnt,
) -> Vec<Decision> {
    if !with_padding && !rows.iter().flat_map(|r| &r.marks).any(|m| m.poll.is_some()) {
        return vec![Decision::NO_DATA; rows.len()];
    }
    let RlcColumns { is_data, holes, runs } = RlcColumns::read(rows);
    let gaps = gaps(rows, &is_data);
    let limits = PollLimits::fit(runs.iter().map(|run| {
        let followed = gaps[run.row].is_some_and(|gap| gap <= FOLLOWED_TTIS);
        (&run.run, run.is_inner || followed)
    }));
    let threshold =
        if with_padding { fit_padding(rows, &is_data, &gaps, Some(&limits)) } else { None };
    learnt.poll_limits = limits;
    learnt.padding_threshold_bytes = threshold;

    let signs = Signs::read(rows, &is_data, &gaps, &holes, threshold, &limits);
    signs.settle(rows, &is_data)
}

/// The evidence of the bearers' last PDUs, row by row, and the pauses after those that
/// only the pause decides.
struct Signs {
    /// Of each data row in order, [`n_signs`] of them.
    signs: Vec<Sign>,
    contention: GapHistogram,
    underflow: GapHistogram,
    /// Bins of the pauses after [`Sign::Forced`], and after [`Sign::Hole`].
    forced_bins: Vec<usize>,
    hole_bins: Vec<usize>,
}

/// One per bearer, or one for the row itself.
fn n_signs(row: &TtiRow) -> usize {
    row.marks.len().max(1)
}

impl Signs {
    /// First pass: evidence that decides by itself, and the pauses after it.
    fn read(
        rows: &[TtiRow],
        is_data: &[bool],
        gaps: &[Option<i64>],
        holes: &[(usize, usize)],
        threshold: Option<u32>,
        limits: &PollLimits,
    ) -> Self {
        let mut out = Self {
            signs: Vec::with_capacity(rows.len()),
            contention: GapHistogram::contention(),
            underflow: GapHistogram::underflow(),
            forced_bins: Vec::new(),
            hole_bins: Vec::new(),
        };
        let mut holes = holes.iter().copied().peekable();
        for (i, row) in rows.iter().enumerate() {
            let gap = gaps[i];
            let bin = gap::bin(gap);
            let padded = row.grants.padding_bytes().zip(threshold).map(|(p, t)| p > t);
            let mut before_hole = false;
            let first = out.signs.len();
            for (m, mark) in row.marks.iter().enumerate() {
                before_hole = holes.next_if_eq(&(i, m)).is_some();
                if is_data[i] {
                    out.signs.push(match before_hole {
                        true => sign_before_hole(
                            padded,
                            gap,
                            allocation::long_gap(row.grants.numerology),
                        ),
                        false => sign_of(mark, padded, limits),
                    });
                }
            }
            if !is_data[i] {
                continue;
            }
            if let Some(continued) = &row.continued {
                let pauses = continued.pauses_by_bin();
                pauses.iter().for_each(|(bin, n)| out.contention.add_times(*bin, *n));
            }
            if row.marks.is_empty() {
                out.signs.push(match padded {
                    Some(padded) => {
                        Sign::Settled(Decision::sure(padded, Bound::Padding, PADDING_ALONE))
                    }
                    None => Sign::Hole,
                });
            }
            for sign in &out.signs[first..] {
                match sign {
                    Sign::Forced => out.forced_bins.push(bin),
                    Sign::Hole => out.hole_bins.push(bin),
                    Sign::Settled(_) => {}
                }
            }
            // With one bearer in the TTI its sign is the user's.
            if let ([Sign::Settled(decision)], false) = (&out.signs[first..], before_hole) {
                let pauses = if decision.empty { &mut out.underflow } else { &mut out.contention };
                pauses.add(bin);
            }
        }
        out
    }

    /// Second pass: the user's queue is empty when each bearer's is.
    fn settle(&self, rows: &[TtiRow], is_data: &[bool]) -> Vec<Decision> {
        let posteriors =
            |first, bins: &[usize]| gap::posteriors(&self.contention, &self.underflow, first, bins);
        let by_pause = |posterior: &[f64; N_BINS], gap_bin: usize| {
            Decision::judged(posterior[gap_bin], Bound::Gap)
        };
        let forced = posteriors(0, &self.forced_bins);
        // If PDUs are missing before the next row, the pause has two TTIs or more.
        let hole = posteriors(1, &self.hole_bins);
        let mut forced_bins = self.forced_bins.iter().copied();
        let mut hole_bins = self.hole_bins.iter().copied();
        let mut signs = self.signs.iter();
        let mut bearers = BearersLeft::default();
        let mut was_empty = true;
        let decide = |(row, &is_data): (&TtiRow, &bool)| {
            if !is_data {
                return Decision::NO_DATA;
            }
            let mut decision = Decision::sure(true, Bound::Poll, 1.0);
            for (m, sign) in signs.by_ref().take(n_signs(row)).enumerate() {
                let mut own = match sign {
                    Sign::Settled(decision) => *decision,
                    Sign::Forced => by_pause(&forced, forced_bins.next().unwrap_or(0)),
                    Sign::Hole => by_pause(&hole, hole_bins.next().unwrap_or(0)),
                };
                let mark = row.marks.get(m);
                // A polled retransmission after an empty queue: nothing else was due.
                let alone = mark.and_then(PollMark::last_run).is_some_and(|run| !run.is_new);
                if alone && was_empty && row.marks.len() == 1 {
                    own = Decision::sure(true, Bound::Poll, POLL_UNEXPLAINED);
                }
                if let Some(mark) = mark {
                    bearers.0.insert(mark.bearer, (row.tti, own.empty));
                }
                // Data left on one bearer decides; else the lowest confidence counts.
                if !own.empty || (decision.empty && own.confidence <= decision.confidence) {
                    decision = own;
                }
            }
            if decision.empty && bearers.hold_open(row) {
                decision = Decision::sure(false, Bound::Poll, POLL_UNEXPLAINED);
            }
            was_empty = decision.empty;
            decision
        };
        rows.iter().zip(is_data).map(decide).collect()
    }
}

/// Which bearers had data left, and when that was observed.
#[derive(Default)]
struct BearersLeft(SmallMap<u8, (i64, bool)>);

impl BearersLeft {
    /// Whether a bearer outside of this TTI keeps the queue open.
    fn hold_open(&self, row: &TtiRow) -> bool {
        let (now, idle) = (row.tti, TtiSpan::from_ms(BEARER_IDLE_MS, row.grants.numerology).0);
        self.0.values().any(|&(tti, empty)| !empty && now.saturating_sub(tti) < idle && tti != now)
    }
}

fn sign_of(mark: &PollMark, padded: Option<bool>, limits: &PollLimits) -> Sign {
    let Some(poll) = mark.poll else {
        // RLC UM: no poll bits.
        return match padded {
            Some(padded) => Sign::Settled(Decision::sure(padded, Bound::Padding, PADDING_ALONE)),
            None => Sign::Hole,
        };
    };
    let Some(run) = mark.last_run().filter(|_| poll) else {
        return Sign::Settled(Decision::sure(false, Bound::Poll, NO_POLL));
    };
    match (is_weak(run, limits), padded) {
        (_, Some(true)) => Sign::Settled(Decision::sure(true, Bound::Padding, POLL_AND_PADDING)),
        // By chance a block can hold just what is left when a counter is at its limit.
        // Judging it by its pause costs more than it gains, as contention looks the same.
        (Some(true), Some(false)) => Sign::Settled(Decision::sure(false, Bound::Poll, NO_POLL)),
        (Some(true), None) if run.pdus == run.window => {
            Sign::Settled(Decision::sure(false, Bound::Poll, POLL_UNEXPLAINED))
        }
        (Some(false), None) => Sign::Settled(Decision::sure(true, Bound::Poll, POLL_UNEXPLAINED)),
        _ => Sign::Forced,
    }
}

/// The sign of a PDU after which PDUs, and with them the last poll, are missing: the
/// padding of its block counts, unless the pause is too long for it.
fn sign_before_hole(padded: Option<bool>, gap: Option<i64>, long_gap: i64) -> Sign {
    match (padded, gap) {
        (Some(true), _) => Sign::Settled(Decision::sure(true, Bound::Padding, PADDING_ALONE)),
        (Some(false), Some(gap)) if gap < long_gap => {
            Sign::Settled(Decision::sure(false, Bound::Padding, PADDING_ALONE))
        }
        _ => Sign::Hole,
    }
}

/// Whether a poll has another explanation than an empty buffer; `None` if unknown, as
/// PDUs of its run are missing.
fn is_weak(run: &PollRun, limits: &PollLimits) -> Option<bool> {
    if !run.is_new {
        // A retransmission: t-PollRetransmit or a NACK (TS 36.322, 5.2.2.3).
        Some(true)
    } else if run.pdus >= run.window {
        // The window was stalled, or may have been.
        Some(true)
    } else if run.is_complete {
        Some(limits.explains(run))
    } else {
        None
    }
}

/// A run between polls, where it ended.
struct RunOfRow {
    row: usize,
    /// Whether more PDUs of the bearer follow in the same TTI.
    is_inner: bool,
    run: PollRun,
}

/// What rows show of RLC, read in one pass: an epoch of rows is larger than the core's
/// second-level cache.
struct RlcColumns {
    /// Rows with user data where RLC is logged. A block without PDUs was lost or held
    /// control only; many in a row mean that RLC is not logged there.
    is_data: Vec<bool>,
    /// Rows (and their marks) after which the bearer's sequence numbers jump, in order.
    holes: Vec<(usize, usize)>,
    runs: Vec<RunOfRow>,
}

impl RlcColumns {
    fn read(rows: &[TtiRow]) -> Self {
        let mut out =
            Self { is_data: Vec::with_capacity(rows.len()), holes: Vec::new(), runs: Vec::new() };
        let mut last = SmallMap::default();
        let mut silent: Vec<usize> = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            out.is_data.push(!row.marks.is_empty());
            for (m, mark) in row.marks.iter().enumerate() {
                let before = last.insert(mark.bearer, (i, m));
                out.holes.extend(before.filter(|_| mark.hole_before));
                let of = |is_inner| move |&run: &PollRun| RunOfRow { row: i, is_inner, run };
                out.runs.extend(mark.inner_runs().iter().map(of(true)));
                out.runs.extend(mark.last_run().map(of(false)));
            }
            let speaks = !row.marks.is_empty() || row.has_status;
            if row.grants.new_data() && !speaks {
                silent.push(i);
            }
            if speaks || i + 1 == rows.len() {
                if silent.len() >= RLC_MISSING_ROWS {
                    for &j in &silent {
                        out.is_data[j] = rows[j].grants.may_hold_data();
                    }
                }
                silent.clear();
            }
        }
        out.holes.sort_unstable();
        out
    }
}

/// Learns from pauses how much padding is no evidence; with limits, from polls too.
fn fit_padding(
    rows: &[TtiRow],
    is_data: &[bool],
    gaps: &[Option<i64>],
    limits: Option<&PollLimits>,
) -> Option<u32> {
    let data = rows.iter().zip(is_data).zip(gaps).filter(|((_, is_data), _)| **is_data);
    let blocks = data.filter_map(|((row, _), &gap)| {
        padded_blocks(row, gap, limits.and_then(|limits| polls_empty(row, limits)))
    });
    padding::fit_threshold(blocks.flatten())
}

/// The blocks of a row's TTIs by the pause after them; `None` where their padding is unknown.
fn padded_blocks(
    row: &TtiRow,
    gap: Option<i64>,
    polls_empty: Option<bool>,
) -> Option<[PaddedBlock; 3]> {
    let padding_bytes = row.grants.padding_bytes()?;
    let continued = row.continued.as_ref().map(|continued| continued.pauses_by_bin());
    let [once, twice] = continued.unwrap_or_default();
    let block = |(pause, n)| PaddedBlock { n, padding_bytes, pause, polls_empty };
    Some([block(once), block(twice), block((gap::bin(gap), 1))])
}

/// The evidence of the poll bit of a row with one bearer: no poll, data is left; an
/// unexplained poll, none is.
fn polls_empty(row: &TtiRow, limits: &PollLimits) -> Option<bool> {
    let [mark] = &row.marks[..] else { return None };
    match (mark.poll?, mark.last_run()) {
        (true, Some(run)) => (is_weak(run, limits) == Some(false)).then_some(true),
        (true, None) => None,
        (false, _) => Some(false),
    }
}

/// TTIs from each data row to the next one.
fn gaps(rows: &[TtiRow], is_data: &[bool]) -> Vec<Option<i64>> {
    gaps_by(rows, is_data, |from, to| to.saturating_sub(from))
}

/// The same in TTIs that can carry downlink data, for allocations: service in these is
/// the scheduler's choice. After an emptied queue, data also arrives in uplink slots.
fn dl_gaps(rows: &[TtiRow], is_data: &[bool]) -> Vec<Option<i64>> {
    let slots = DlSlots::learn(rows);
    gaps_by(rows, is_data, |from, to| slots.between(from, to))
}

fn gaps_by(rows: &[TtiRow], is_data: &[bool], n_tti: impl Fn(i64, i64) -> i64) -> Vec<Option<i64>> {
    let mut next: Option<i64> = None;
    let mut gaps = vec![None; rows.len()];
    for ((gap, row), _) in gaps.iter_mut().zip(rows).zip(is_data).rev().filter(|(_, data)| **data) {
        *gap = next.map(|next| n_tti(row.tti, next));
        next = Some(row.first_tti());
    }
    gaps
}

/// No scheduler starves a user for this long if pauses alone are the evidence: records
/// are missing, or the queue was emptied in another way (chosen here: ten times the
/// longest contention in the simulated logs).
const STARVED_MS: i64 = 1_000;
/// The same if a poll bit or padding showed that data was left: a scheduler that serves
/// only the best channel keeps the phone waiting for seconds. Equals the silence after
/// which records of a log count as missing.
const STARVED_BY_SIGN_MS: i64 = 4_000;

/// The decision for the first of these rows instead, if data was left and a pause follows
/// that cannot be contention, whatever the sign: its burst ends there.
pub(super) fn ends_before_silence(rows: &[TtiRow], decisions: &[Decision]) -> Option<Decision> {
    let ([row, later @ ..], [decision, decisions @ ..]) = (rows, decisions) else { return None };
    if !decision.data || decision.empty {
        return None;
    }
    let next = later.iter().zip(decisions).find(|(_, decision)| decision.data);
    let gap = next.map(|(next, _)| next.first_tti().saturating_sub(row.tti))?;
    let longest_ms = match decision.by {
        Bound::Poll | Bound::Padding => STARVED_BY_SIGN_MS,
        _ => STARVED_MS,
    };
    let longest = TtiSpan::from_ms(longest_ms, row.grants.numerology).0;
    (gap >= longest).then(|| Decision::sure(true, Bound::Gap, 0.6))
}

/// The paper's rule needs no decision per row, only which rows are visible to it.
pub(super) fn by_paper(rows: &[TtiRow]) -> Vec<Decision> {
    rows.iter()
        .map(|row| match row.grants.prb_fraction() {
            Some(_) => Decision::sure(false, Bound::Fraction, 0.5),
            None => Decision::NO_DATA,
        })
        .collect()
}
