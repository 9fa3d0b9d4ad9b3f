//! Waits before bursts, of which a phone's log has no records.
//!
//! Data that arrives at an empty queue waits for its first grant, and the time before that grant looks
//! like an empty queue. With one leg a backlog keeps the queue open, so that such waits are rare. A leg
//! of a split bearer empties its queue more often, as the other leg takes a part of the data. A cell that leaves a
//! backlog without grants for long does the same to new data: then a pause between bursts may be such
//! a wait.

use airmile_model::TtiSpan;

use super::assemble::Assembler;
use super::fuse::Decision;
use super::tti_row::TtiRow;

/// A backlog without grants for this long is starved (chosen here: twice the longest such pauses of
/// schedulers that serve users in turn, in the simulated logs).
const STARVED_MS: i64 = 50;
/// A leg is starved if its backlog spends this share of its time in such pauses (chosen here: schedulers
/// that serve the best channel reach 0.33 to 0.73 in most simulated logs, others 0.21).
const STARVED_SHARE: f64 = 0.3;
/// Number of such pauses that are no accident (chosen here).
const MIN_PAUSES: usize = 5;
/// Factor of the longest wait by the longest pause of the backlog, and of that by the second longest (chosen
/// here: the longest of all was not seen).
const LONGEST: i64 = 2;

/// A pause in which data may have waited: the number of the row before it, its first TTI and its end.
pub(super) type Wait = (usize, i64, i64);

/// The parts of pauses after an emptied queue in which new data may have waited, in order. None if the
/// leg's cell starves no backlog.
pub(super) fn possible_waits(
    rows: &[TtiRow],
    decisions: &[Decision],
    assembler: &Assembler,
) -> Vec<Wait> {
    let mut waited = 0_i64;
    let (mut starved, mut emptied) = (Vec::new(), Vec::new());
    for (i, next) in pairs(rows, decisions) {
        let (row, next) = (&rows[i], &rows[next]);
        let (from, to) = (row.tti.saturating_add(1), next.first_tti());
        let pause = to.saturating_sub(from);
        // The TTIs that are counted into a row left data.
        let n_tti = row.n_tti() as i64;
        if decisions[i].empty {
            waited = waited.saturating_add(n_tti - 1);
            emptied.push((i, from, to));
        } else if !assembler.misses(row, next) {
            waited = waited.saturating_add(n_tti).saturating_add(pause);
            let is_starved = pause >= TtiSpan::from_ms(STARVED_MS, row.grants.numerology).0;
            starved.extend(is_starved.then_some(pause));
        }
    }
    starved.sort_unstable();
    // One pause alone may be an accident.
    if let [.., second, last] = starved.as_mut_slice() {
        let longest = (*last).min(second.saturating_mul(LONGEST));
        waited = waited.saturating_sub(*last - longest);
        *last = longest;
    }
    let sum = starved.iter().copied().fold(0, i64::saturating_add);
    if starved.len() < MIN_PAUSES || (sum as f64) < STARVED_SHARE * waited as f64 {
        return Vec::new();
    }
    let longest = starved.last().map_or(0, |pause| pause.saturating_mul(LONGEST));
    emptied.retain_mut(|(_, from, to)| {
        *from = (*from).max(to.saturating_sub(longest));
        from < to
    });
    emptied
}

/// Rows with data, each with the next one: their numbers.
fn pairs(rows: &[TtiRow], decisions: &[Decision]) -> impl Iterator<Item = (usize, usize)> {
    let data = || (0..rows.len().min(decisions.len())).filter(|i| decisions[*i].data);
    data().zip(data().skip(1))
}
