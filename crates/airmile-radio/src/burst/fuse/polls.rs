//! Decisions by poll bits: a poll that no counter explains says that the sender's buffers are empty.

use airmile_model::{Bound, TtiSpan};

use super::{
    Decision, Learnt, NO_POLL, PADDING_ALONE, POLL_AND_PADDING, POLL_UNEXPLAINED, fit_padding, gaps,
};
use crate::burst::allocation;
use crate::burst::gap::{self, GapHistogram, N_BINS};
use crate::burst::poll_model::{PollLimits, PollMark, PollRun};
use crate::burst::tti_row::TtiRow;
use crate::small_map::SmallMap;

/// A bearer that has sent nothing for this long does not keep the user's queue open
/// (chosen here: well past the longest contention in the simulated logs, 101 ms).
const BEARER_IDLE_MS: i64 = 250;
/// Data after a pause this short follows at once (chosen here: two users who share a
/// cell).
const FOLLOWED_TTIS: i64 = 2;
/// This many blocks in a row without any RLC record: the RLC log is missing, and not the
/// blocks lost (chosen here).
const RLC_MISSING_ROWS: usize = 8;

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
pub(in crate::burst) fn decide_poll(
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
                out.holes.extend(before.filter(|_| mark.missing > 0));
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

/// The evidence of the poll bit of a row with one bearer: no poll, data is left; an
/// unexplained poll, none is.
pub(super) fn polls_empty(row: &TtiRow, limits: &PollLimits) -> Option<bool> {
    let [mark] = &row.marks[..] else { return None };
    match (mark.poll?, mark.last_run()) {
        (true, Some(run)) => (is_weak(run, limits) == Some(false)).then_some(true),
        (true, None) => None,
        (false, _) => Some(false),
    }
}
