//! Windows of a carrier: records collected, and the estimate.

use std::collections::BTreeMap;

use airmile_model::{Measurement, Stamp, TtiIndex};

use super::capacity::{McsMean, PrbBudget};
use super::model::{
    ANCHOR_SHARE, Anchor, DataPower, NoiseFloor, Slope, WAITING_TTIS, data_power, plain_share_of,
};
use super::{CellFit, Fit, LoadEstimate, LoadOptions};

/// A window that is still collecting records.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenWindow {
    /// The phone's blocks, by TTI.
    pub(super) own: BTreeMap<i64, OwnBlocks>,
    pub(super) mcs: McsMean,
    pub(super) measurements: Vec<Measurement>,
}

/// The phone's blocks in a TTI.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnBlocks {
    /// PRB pairs.
    pub(super) n_prb: u16,
    /// Whether all of them were new, and without padding.
    pub(super) are_full: bool,
}

/// A window that is over, without a slope yet.
#[derive(Debug, Clone)]
pub(super) struct ClosedWindow {
    pub(super) number: i64,
    pub(super) at: Option<Stamp>,
    pub(super) cell: (u16, u32),
    pub(super) n_prb_cell: u16,
    pub(super) own_prb: u64,
    pub(super) mcs: Option<McsMean>,
    pub(super) measurements: usize,
    /// Data powers of the measurements that show one.
    pub(super) powers: Vec<DataPower>,
}

impl OpenWindow {
    /// Whether the phone had full blocks in all subframes around one; those of other
    /// windows are not checked.
    fn waited_around(&self, tti: i64) -> bool {
        let around = tti.saturating_sub(WAITING_TTIS)..=tti.saturating_add(WAITING_TTIS);
        let served = self.own.range(around).filter(|(_, own)| own.are_full);
        served.count() as i64 == 2 * WAITING_TTIS + 1
    }

    /// Data powers of the measurements, and the anchors among them.
    pub(super) fn read(
        &self,
        n_prb_cell: u16,
        n_ant: u8,
        fit: &CellFit,
        how: Fit,
    ) -> (Vec<DataPower>, Vec<Anchor>) {
        if how == Fit::Plain {
            let plain = |value| DataPower { value, sigma: 0.0 };
            let shares = self.measurements.iter().filter_map(|m| plain_share_of(m, n_ant));
            return (shares.map(plain).collect(), Vec::new());
        }
        let needs_floor =
            self.measurements.iter().any(|m| m.snr_rx0_db.is_none() || m.snr_rx1_db.is_none());
        let floor = if needs_floor { fit.noise.floor() } else { NoiseFloor::default() };
        let (mut powers, mut anchors) = (Vec::new(), Vec::new());
        for m in &self.measurements {
            let Some(power) = data_power(m, n_ant, &floor) else { continue };
            powers.push(power);
            let own = self.own.get(&m.position.tti.0).map_or(0, |own| own.n_prb);
            let own_share = (f64::from(own) / f64::from(n_prb_cell.max(1))).min(1.0);
            if own_share >= ANCHOR_SHARE {
                anchors.push(Anchor::Own { power: power.value, own_share });
            } else if self.waited_around(m.position.tti.0) {
                anchors.push(Anchor::Waited { power: power.value });
            }
        }
        (powers, anchors)
    }
}

impl ClosedWindow {
    pub(super) fn estimate(
        &self,
        (timing_segment, cell): (u32, u8),
        origin: i64,
        slope: Slope,
        options: LoadOptions,
    ) -> LoadEstimate {
        let n_tti = options.window_ms;
        let measured = self.load(slope, options.fit);
        let budget = PrbBudget::new(self.n_prb_cell, n_tti, measured.unwrap_or(0.0), self.own_prb);
        let known = measured.map(|_| budget);
        let n_free_prb = known.map(|b| b.free);
        let per_tti = n_free_prb.map(|free| free / n_tti as f64);
        let bits = self.mcs.zip(per_tti).and_then(|(mcs, n_prb)| mcs.bits(n_prb));
        LoadEstimate {
            at: self.at,
            timing_segment,
            cell,
            tti: TtiIndex(self.number.saturating_mul(n_tti).saturating_add(origin)),
            n_tti,
            measurements: self.measurements,
            load: known.map(|b| b.load),
            own_share: budget.own_share,
            n_total_prb: budget.total,
            n_own_prb: budget.own,
            n_idle_prb: known.map(|b| b.idle),
            n_free_prb,
            capacity_bps: bits.map(|bits_per_ms| bits_per_ms * 1_000.0),
            slope: slope.value,
            confidence: measured.map_or(0.0, |load| self.confidence(slope, budget.load - load)),
        }
    }

    /// Equation 8. With calibration, the mean is clipped, not each subframe: errors at an
    /// idle or full cell would otherwise all have one sign.
    fn load(&self, slope: Slope, fit: Fit) -> Option<f64> {
        let n = self.powers.len() as f64;
        let mean = self.powers.iter().map(|power| power.value).sum::<f64>() / n;
        let slope = if fit == Fit::Plain { 1.0 } else { slope.value };
        (n > 0.0).then(|| (mean / slope).clamp(0.0, 1.0))
    }

    /// Product of: the slope's confidence; that of the readings (one half if the mean's
    /// standard deviation, or what it is below the own share, is 15 points); that of their number
    /// (one subframe represents a window badly); the share above the minimum SNR. (Chosen here: a
    /// scale for display, not a probability.)
    fn confidence(&self, slope: Slope, missed: f64) -> f64 {
        const HALF_SIGMA: f64 = 0.15;
        let n = self.powers.len() as f64;
        let variance = self.powers.iter().map(|power| power.sigma.powi(2)).sum::<f64>();
        let sigma = variance.sqrt() / n / slope.value;
        let readings = 1.0 / (1.0 + (sigma.hypot(missed) / HALF_SIGMA).powi(2));
        slope.confidence() * readings * (n / (n + 1.0)) * (n / self.measurements as f64)
    }
}
