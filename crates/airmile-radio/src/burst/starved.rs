//! Waits before bursts, of which a phone's log has no records.
//!
//! Data that arrives at an empty queue waits for its first grant, and the time before that grant looks
//! like an empty queue. With one leg a backlog keeps the queue open, so that such waits are rare. A leg
//! of a split bearer empties its queue more often, as the other leg takes a part of the data. A cell that leaves a
//! backlog without grants for long does the same to new data: then a pause between bursts may be such
//! a wait.

use airmile_model::TtiSpan;

use super::fuse::Decision;
use super::tti_row::TtiRow;

/// A backlog without grants for this long is starved (chosen here: twice the longest such pauses of
/// schedulers that serve users in turn, in the simulated logs).
const STARVED_MS: i64 = 50;
/// A leg is starved if its backlog spends this share of its time in such pauses (chosen here: schedulers
/// that serve the best channel reach 0.5 to 0.9, others 0.3).
const STARVED_SHARE: f64 = 0.4;
/// Number of such pauses that are no accident (chosen here).
const MIN_PAUSES: usize = 5;
/// A wait lasts up to this many times the longest pause of the backlog (chosen here: the longest of all
/// was not seen).
const LONGEST: i64 = 2;

/// A pause after the data of a row, in TTIs: the row's number, first TTI and end.
pub(super) type Pause = (usize, i64, i64);

/// The parts of pauses after an emptied queue in which new data may have waited, in order; none if the
/// leg's cell starves no backlog.
pub(super) fn possible_waits(rows: &[TtiRow], decisions: &[Decision]) -> Vec<Pause> {
    let [mut waited, mut starved, mut longest] = [0_i64; 3];
    let mut n_starved = 0;
    for (i, from, to) in pauses(rows, decisions).filter(|(i, ..)| !decisions[*i].empty) {
        let pause = to.saturating_sub(from);
        waited = waited.saturating_add(pause.saturating_add(rows[i].n_tti() as i64));
        if pause >= TtiSpan::from_ms(STARVED_MS, rows[i].grants.numerology).0 {
            starved = starved.saturating_add(pause);
            longest = longest.max(pause);
            n_starved += 1;
        }
    }
    if n_starved < MIN_PAUSES || (starved as f64) < STARVED_SHARE * waited as f64 {
        return Vec::new();
    }
    let longest = longest.saturating_mul(LONGEST);
    let emptied = pauses(rows, decisions).filter(|(i, ..)| decisions[*i].empty);
    emptied.map(|(i, from, to)| (i, from.max(to.saturating_sub(longest)), to)).collect()
}

/// Pauses between rows with data.
fn pauses(rows: &[TtiRow], decisions: &[Decision]) -> impl Iterator<Item = Pause> {
    let data =
        || rows.iter().enumerate().zip(decisions).filter(|(_, d)| d.data).map(|(row, _)| row);
    let pairs = data().zip(data().skip(1));
    let ends = pairs.map(|((i, row), (_, next))| (i, row.tti.saturating_add(1), next.first_tti()));
    ends.filter(|(_, from, to)| from < to)
}
