//! Learns from the blocks which slots of a TDD cell can carry downlink data.
//!
//! An uplink slot serves no user, so it is no contention, and pauses are counted in
//! downlink slots. The pattern is not read from signalling: slots of a pattern's period
//! without any block are assumed not to be downlink.

use airmile_model::TtiSpan;

use super::tti_row::TtiRow;

/// Periods of TDD patterns in units of 1/8 ms: TS 38.331, dl-UL-TransmissionPeriodicity,
/// with 20 ms for two patterns in turn and LTE's 5 and 10 ms (TS 36.211, table 4.2-2).
const PERIODS_EIGHTHS_MS: [i64; 11] = [4, 5, 8, 10, 16, 20, 24, 32, 40, 80, 160];
/// Minimum number of blocks per slot of a period before an empty slot is assumed not to
/// be downlink (chosen here: by chance a slot is empty once in 10^13).
const MIN_BLOCKS_PER_SLOT: i64 = 30;
/// Minimum share of downlink slots in a pattern (chosen here). Fewer are packets at a
/// fixed interval, not a pattern of the cell.
const MIN_DL_SHARE: f64 = 0.2;

/// Minimum share of blocks followed in the next slot (chosen here: bursts use many slots in a
/// row, packets at an interval none, with or without jitter). So a pattern without two downlink
/// slots in a row is not learnt.
const MIN_FOLLOWED_SHARE: f64 = 0.1;

/// The downlink slots of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DlSlots {
    /// Number of downlink slots before each slot of a period, and in the whole period.
    before: Vec<i64>,
}

impl DlSlots {
    /// All slots are downlink.
    fn all() -> Self {
        Self { before: vec![0, 1] }
    }

    /// From the rows of a stretch of log.
    pub(super) fn learn(rows: &[TtiRow]) -> Self {
        let Some(numerology) =
            rows.iter().find(|row| row.grants.has_grant).map(|row| row.grants.numerology)
        else {
            return Self::all();
        };
        let blocks = rows.iter().filter(|row| row.grants.has_grant).count() as i64;
        let mut best: Option<(f64, Vec<bool>)> = None;
        for eighths in PERIODS_EIGHTHS_MS {
            let slots = eighths.saturating_mul(TtiSpan::from_ms(1, numerology).0);
            let period = slots / 8;
            if slots % 8 != 0 || period < 2 || blocks < period * MIN_BLOCKS_PER_SLOT {
                continue;
            }
            let mut used = vec![false; period as usize];
            for row in rows.iter().filter(|row| row.grants.has_grant) {
                used[row.tti.rem_euclid(period) as usize] = true;
            }
            let share = used.iter().filter(|used| **used).count() as f64 / period as f64;
            // A longer period must leave out more slots than its divisor does.
            let better = best.as_ref().is_none_or(|(least, _)| share < *least - 1e-9);
            if (MIN_DL_SHARE..1.0).contains(&share) && better {
                best = Some((share, used));
            }
        }
        let Some((_, used)) = best else { return Self::all() };
        let mut before = vec![0];
        let mut sum = 0;
        before.extend(used.into_iter().map(|used| {
            sum += i64::from(used);
            sum
        }));
        let slots = Self { before };
        let ttis: Vec<i64> =
            rows.iter().filter(|row| row.grants.has_grant).map(|row| row.tti).collect();
        let followed = ttis.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
        let enough = followed as f64 >= MIN_FOLLOWED_SHARE * ttis.len() as f64;
        if enough { slots } else { Self::all() }
    }

    /// Number of downlink slots in `(from, to]`: 1 if `to` is the next one.
    pub(super) fn between(&self, from: i64, to: i64) -> i64 {
        self.until(to).saturating_sub(self.until(from))
    }

    /// Number of downlink slots up to and including a slot, counted from slot 0.
    fn until(&self, slot: i64) -> i64 {
        let period = (self.before.len() - 1) as i64;
        let per_period = self.before[self.before.len() - 1];
        let here = self.before[slot.rem_euclid(period) as usize + 1];
        slot.div_euclid(period).saturating_mul(per_period).saturating_add(here)
    }
}

#[cfg(test)]
mod tests {
    use super::super::grants::GrantSummary;
    use super::*;

    fn rows(numerology: u8, ttis: impl Iterator<Item = i64>) -> Vec<TtiRow> {
        let row = |tti| {
            let mut grants = GrantSummary::default();
            (grants.has_grant, grants.numerology) = (true, numerology);
            let (has_status, rlc_bytes, marks) = (false, 0, Default::default());
            TtiRow { segment: 0, tti, grants, has_status, rlc_bytes, marks, continued: None }
        };
        ttis.map(row).collect()
    }

    #[test]
    fn uplink_slots_are_not_counted() {
        // DDDSU at 30 kHz: slots 0 to 2 of 5.
        let slots = DlSlots::learn(&rows(1, (0..1_000).filter(|slot| slot % 5 < 3)));
        assert_eq!(slots.between(0, 1), 1);
        assert_eq!(slots.between(2, 5), 1);
        assert_eq!(slots.between(1, 11), 6);
        assert_eq!(slots.between(-3, 2), 3);
    }

    #[test]
    fn without_a_pattern_every_slot_counts() {
        let all = DlSlots::all();
        // FDD; too few blocks to learn from; packets that come every 20 ms.
        assert_eq!(DlSlots::learn(&rows(0, 0..1_000)), all);
        assert_eq!(DlSlots::learn(&rows(1, (0..100).filter(|slot| slot % 5 < 3))), all);
        assert_eq!(DlSlots::learn(&rows(0, (0..2_000).map(|n| 20 * n))), all);
        // Packets every 5 ms; every 10 ms, now and then a TTI later.
        assert_eq!(DlSlots::learn(&rows(0, (0..2_000).map(|n| 5 * n))), all);
        assert_eq!(DlSlots::learn(&rows(0, (0..2_000).map(|n| 10 * n + n * n % 3))), all);
        assert_eq!(all.between(-7, 12), 19);
    }

    #[test]
    fn a_pattern_of_120_khz() {
        // 0.625 ms: DDDSU.
        let slots = DlSlots::learn(&rows(3, (0..3_000).filter(|slot| slot % 5 < 4)));
        assert_eq!((slots.before.len(), slots.between(3, 5)), (6, 1));
    }
}
