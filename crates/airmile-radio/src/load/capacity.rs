//! Free PRBs, and what they would carry (CLAW, equations 9 to 12).

use airmile_model::tables::{McsTable, mcs_entry, tbs_bits};
use airmile_model::{Grant, Modulation};

/// MCS indexes of new transmissions in a window, per code word.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct McsMean {
    sum: [u64; 2],
    count: [u64; 2],
    qam256: bool,
}

impl McsMean {
    pub(super) fn push(&mut self, grant: &Grant) {
        let tb = usize::from(grant.tb.min(1));
        // The larger of the two tables has no index above 28 for new data.
        if let Some(mcs) = grant.mcs.filter(|mcs| *mcs < 29) {
            self.sum[tb] += u64::from(mcs);
            self.count[tb] += 1;
        }
        self.qam256 |= grant.modulation == Some(Modulation::Qam256);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == [0, 0]
    }

    /// Equation 12 for one subframe: bits on `n_prb` PRB pairs at the mean MCS, summed
    /// over code words, each weighted by its frequency. Linear interpolation between two
    /// sizes of the table and between two indexes.
    pub(super) fn bits(&self, n_prb: f64) -> Option<f64> {
        let table = if self.qam256 { McsTable::Pdsch256Qam } else { McsTable::Pdsch64Qam };
        let assignments = self.count[0].max(self.count[1]).max(1) as f64;
        let word = |tb: usize| {
            let mean = self.sum[tb] as f64 / self.count[tb] as f64;
            let present = self.count[tb] as f64 / assignments;
            let at = |mcs: f64| {
                let i_tbs = mcs_entry(table, mcs as u8)?.i_tbs?;
                Some(between(n_prb, |n| f64::from(tbs_bits(i_tbs, n as u16).unwrap_or(0))))
            };
            let (low, high) = (at(mean.floor())?, at(mean.ceil())?);
            Some(present * (high - low).mul_add(mean.fract(), low))
        };
        let words = (0..2).filter(|tb| self.count[*tb] > 0).map(word);
        words.sum::<Option<f64>>().filter(|_| !self.is_empty())
    }
}

fn between(x: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = (of(x.floor()), of(x.ceil()));
    (high - low).mul_add(x.fract(), low)
}

/// PRB pairs of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PrbBudget {
    /// `N_t = N_rb T` (PRB pairs: the paper's 2 N_rb T counts slots).
    pub(super) total: f64,
    /// `N_own / N_t`.
    pub(super) own_share: f64,
    /// The measured load, at least the own share: the phone's own PRBs are in use, too, and a mean of
    /// a few subframes may have missed them.
    pub(super) load: f64,
    /// `N_idle = N_t (1 - L)`, equation 9.
    pub(super) idle: f64,
    /// `N_own`, equation 10.
    pub(super) own: f64,
    /// `N_free = N_own + N_idle`, equation 11; at most `N_t`.
    pub(super) free: f64,
}

impl PrbBudget {
    pub(super) fn new(n_prb_cell: u16, n_tti: i64, measured: f64, own: u64) -> Self {
        let total = f64::from(n_prb_cell) * n_tti as f64;
        let own = (own as f64).min(total);
        let own_share = own / total.max(1.0);
        let load = measured.max(own_share);
        let idle = total * (1.0 - load);
        Self { total, own_share, load, idle, own, free: (own + idle).min(total) }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::{Direction, Position};

    use super::*;

    fn mean(words: &[(u8, u8)]) -> McsMean {
        let mut mean = McsMean::default();
        for (tb, mcs) in words {
            let mut grant = Grant::new(Position::lte(0), Direction::Dl, 50);
            (grant.tb, grant.mcs) = (*tb, Some(*mcs));
            mean.push(&grant);
        }
        mean
    }

    #[test]
    fn capacity_by_the_table() {
        // MCS 28 is I_TBS 26: 36696 bits on 50 pairs (TS 36.213, 7.1.7.2.1-1).
        assert_eq!(mean(&[(0, 28)]).bits(50.0), Some(36_696.0));
        assert_eq!(mean(&[(0, 28), (1, 28)]).bits(50.0), Some(73_392.0));
        // The second word in every second assignment.
        assert_eq!(mean(&[(0, 28), (0, 28), (1, 28)]).bits(50.0), Some(55_044.0));
        // Retransmissions have no MCS of their own.
        assert_eq!(mean(&[(0, 28), (0, 29)]).bits(50.0), Some(36_696.0));
        // I_TBS 0: 16 bits on one pair, 32 on two (column 2 of the table).
        assert_eq!(mean(&[(0, 0)]).bits(1.5), Some(24.0));
        assert_eq!(mean(&[(0, 0)]).bits(0.0), Some(0.0));
        assert_eq!(mean(&[]).bits(50.0), None);
    }

    #[test]
    fn budget_by_hand() {
        // 50 pairs, 200 ms, 40 % in use, 1000 pairs of it the phone's own.
        let budget = PrbBudget::new(50, 200, 0.4, 1_000);
        assert_eq!((budget.total, budget.idle), (10_000.0, 6_000.0));
        assert_eq!((budget.own, budget.free), (1_000.0, 7_000.0));
        // A measured load under the own share is the own share.
        let budget = PrbBudget::new(50, 1, 0.0, 50);
        assert_eq!((budget.load, budget.idle, budget.free), (1.0, 0.0, 50.0));
    }
}
