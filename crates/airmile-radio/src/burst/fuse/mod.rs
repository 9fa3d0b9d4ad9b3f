//! One decision for each row of data: was the queue empty after its TTI? (TTIs that are counted into a row
//! left data: `epoch`.)
//!
//! The state of the queue follows from these decisions: from a data TTI that left data
//! behind to the next one the queue is not empty (ACTIVE or CONTENTION), after one that
//! emptied it (LAST_ACTIVE) it is (UNDERFLOW).

mod polls;

use airmile_model::{Bound, Evidence, TtiSpan};

use super::allocation::{self, AllocatedBlock, CellHabit};
use super::cut::CutBlocks;
use super::dl_slots::DlSlots;
use super::gap;
use super::padding::{self, PaddedBlock};
use super::poll_model::PollLimits;
use super::starved::Wait;
use super::tti_row::TtiRow;
use super::unpadded::{self, PaddingSign, UnpaddedBlock};
pub(super) use polls::decide_poll;
use polls::polls_empty;

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

    /// Whether data may have been left as well as not.
    pub(super) fn is_unclear(&self) -> bool {
        self.data && self.confidence <= allocation::UNCLEAR
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

/// Padding of this part of a block, before a pause that is too long for contention, is no
/// alignment whatever other blocks have: a lone acknowledgement pads its small block by
/// less than a cell that does not segment pads its large ones (chosen here).
const MUCH_PADDING: u32 = 8;

/// Decides by the evidence of the stretch of log: RLC AM, else padding, else allocations.
pub(super) fn decide_auto(rows: &[TtiRow], learnt: &mut Learnt) -> (Evidence, Vec<Decision>) {
    // First of all: rows of an epoch with a poll may stand for several TTIs.
    if rows.iter().flat_map(|r| &r.marks).any(|m| m.poll.is_some()) {
        return (Evidence::Fused, decide_poll(rows, true, learnt));
    }
    if rows.iter().any(|row| row.grants.counted.is_counted()) {
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

/// Padding alone; where it shows nothing, sizes and pauses too.
pub(super) fn decide_padding(rows: &[TtiRow], learnt: &mut Learnt) -> Vec<Decision> {
    if rows.iter().any(|row| row.grants.counted.is_counted()) {
        return decide_counted(rows, learnt);
    }
    let is_data: Vec<bool> = rows.iter().map(|row| row.grants.may_hold_data()).collect();
    let gaps = gaps(rows, &is_data);
    let threshold = fit_padding(rows, &is_data, &gaps, None);
    learnt.padding_threshold_bytes = threshold;
    let Some(threshold) = threshold else { return vec![Decision::NO_DATA; rows.len()] };
    // With a threshold of zero any padding decides, whatever the pause after it.
    let dl_gaps = if threshold > 0 { dl_gaps(rows, &is_data) } else { Vec::new() };
    let sign_of = |i: usize, row: &TtiRow| {
        let Some(padding) = row.grants.padding_bytes() else { return PaddingSign::Unknown };
        let gap = dl_gaps.get(i).copied().flatten();
        let paused = gap.is_none_or(|gap| gap >= allocation::long_gap(row.grants.numerology));
        let much = padding.saturating_mul(MUCH_PADDING) >= row.grants.tbs_bytes;
        let padded = padding > threshold || padding > 0 && much && paused;
        if padded { PaddingSign::Padded { bytes: padding } } else { PaddingSign::Filled }
    };
    let largest_prb = TtiRow::largest_prb(rows);
    let blocks: Vec<UnpaddedBlock> = rows
        .iter()
        .enumerate()
        .filter(|(i, _)| is_data[*i])
        .map(|(i, row)| UnpaddedBlock {
            sign: sign_of(i, row),
            is_part: row.grants.prb.is_some_and(|prb| allocation::is_part(prb, largest_prb)),
            pause: gap::bin(gaps[i]),
        })
        .collect();
    let p_empty = unpadded::judge(&blocks, threshold);
    let mut judged = blocks.iter().zip(p_empty);
    is_data
        .into_iter()
        .map(|data| match data.then(|| judged.next()).flatten() {
            None => Decision::NO_DATA,
            Some((block, p_empty)) => match block.sign {
                PaddingSign::Padded { .. } => Decision::sure(true, Bound::Padding, PADDING_ALONE),
                PaddingSign::Filled if p_empty <= 0.5 => {
                    Decision::sure(false, Bound::Padding, PADDING_ALONE)
                }
                PaddingSign::Filled | PaddingSign::Unknown => Decision::judged(p_empty, Bound::Gap),
            },
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
            prb_cell: row.grants.prb_cell,
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
/// may have emptied the queue. Of the latter, parts of the carrier emptied it if they have the padding of blocks
/// that are cut; the others, and rows without data, are judged by their allocations.
fn decide_counted(rows: &[TtiRow], learnt: &mut Learnt) -> Vec<Decision> {
    let mut decisions = decide_grants(rows, learnt);
    let is_data: Vec<bool> = decisions.iter().map(|d| d.data).collect();
    let gaps = gaps(rows, &is_data);
    let threshold = fit_padding(rows, &is_data, &gaps, None).unwrap_or(0);
    learnt.padding_threshold_bytes = Some(threshold);
    let cut = CutBlocks::learn(rows);
    for (row, decision) in rows.iter().zip(&mut decisions).filter(|(_, d)| d.data) {
        if let Some(padding) = row.grants.padding_bytes() {
            *decision = Decision::sure(padding > threshold, Bound::Padding, PADDING_ALONE);
        } else if cut.contain(row) {
            *decision = Decision::sure(true, Bound::Padding, PADDING_ALONE);
        }
    }
    decisions
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

/// Where data was left and a pause follows that cannot be contention, whatever the sign, the burst ends
/// before it.
///
/// Returns the pauses that alone show an empty queue, although the cell cuts blocks to the queue and the
/// block before is whole: a phone that has lost the cell has no grants for data that waits.
pub(super) fn end_before_silences(
    rows: &[TtiRow],
    decisions: &mut [Decision],
    habit: Option<CellHabit>,
) -> Vec<Wait> {
    let largest_prb = (habit == Some(CellHabit::Trims)).then(|| TtiRow::largest_prb(rows));
    let mut next: Option<&TtiRow> = None;
    let mut waits = Vec::new();
    let each = rows.iter().zip(decisions).enumerate().rev();
    for (i, (row, decision)) in each.filter(|(_, (_, decision))| decision.data) {
        let gap = next.map_or(0, |next| next.first_tti().saturating_sub(row.tti));
        // Of a pause with missing PDUs all records are missing.
        let is_seen = next.is_none_or(|next| next.marks.iter().all(|mark| mark.missing == 0));
        let longest_ms = match decision.by {
            Bound::Poll | Bound::Padding => STARVED_BY_SIGN_MS,
            _ => STARVED_MS,
        };
        let span = |ms| TtiSpan::from_ms(ms, row.grants.numerology).0;
        let is_whole = |(prb, largest)| !allocation::is_part(prb, largest);
        if decision.by == Bound::Gap
            && is_seen
            && (span(STARVED_MS)..span(STARVED_BY_SIGN_MS)).contains(&gap)
            && row.grants.prb.zip(largest_prb).is_some_and(is_whole)
        {
            waits.push((i, row.tti.saturating_add(1), row.tti.saturating_add(gap)));
        }
        if !decision.empty && gap >= span(longest_ms) {
            *decision = Decision::sure(true, Bound::Gap, 0.6);
        }
        next = Some(row);
    }
    waits.reverse();
    waits
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
