//! A user's allocation and signal over a span, kept in bins so that a long log takes
//! little memory.

use std::collections::BTreeMap;

use airmile_model::{Direction, Grant, Measurement, TtiIndex};
use schemars::JsonSchema;
use serde::Serialize;

/// TTIs per bin (chosen here: short against a transfer, long against memory).
const BIN_TTIS: i64 = 100;

/// Allocation and signal over a span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// TTIs in which something was scheduled / TTIs.
    pub scheduled_share: f64,
    /// PRBs assigned / PRBs of the cell; null if either is unknown.
    pub prb_share: Option<f64>,
    /// PRBs assigned / PRBs of the cell, in scheduled TTIs.
    pub prb_share_when_scheduled: Option<f64>,
    /// Mean MCS index of new transmissions.
    pub mcs_mean: Option<f64>,
    /// HARQ retransmissions / blocks, if they are known.
    pub retx_share: Option<f64>,
    /// Blocks whose padding is known.
    pub padded_blocks: u64,
    /// Mean RSRP in dBm.
    pub rsrp_dbm: Option<f64>,
    /// Mean RSRQ in dB.
    pub rsrq_db: Option<f64>,
    /// Mean SNR of the better antenna in dB.
    pub snr_db: Option<f64>,
}

/// Collects one direction's usage.
#[derive(Debug, Clone)]
pub struct UsageBins {
    dir: Direction,
    bins: BTreeMap<i64, UsageBin>,
    last_tti: Option<(i64, u8)>,
    n_prb_cell: Option<u16>,
}

/// A span's usage while its bins are being added.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageSum {
    start: TtiIndex,
    end: TtiIndex,
    /// Bins before it are included.
    bins_to: i64,
    bins: UsageBin,
}

impl UsageSum {
    /// An empty sum over `[start, end)`.
    #[must_use]
    pub fn new(start: TtiIndex, end: TtiIndex) -> Self {
        Self { start, end, bins_to: start.0.div_euclid(BIN_TTIS), bins: UsageBin::default() }
    }

    /// Sets the end of the span.
    pub const fn set_end(&mut self, end: TtiIndex) {
        self.end = end;
    }

    /// The first TTI whose bin is not yet included.
    #[must_use]
    pub const fn gathered_to(&self) -> TtiIndex {
        TtiIndex(self.bins_to.saturating_mul(BIN_TTIS))
    }

    /// Whether all its bins are included.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bins_to >= self.end_bin()
    }

    /// The bin after its last one.
    const fn end_bin(&self) -> i64 {
        self.end.0.saturating_sub(1).div_euclid(BIN_TTIS).saturating_add(1)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct UsageBin {
    scheduled: u64,
    with_prb: u64,
    prb: u64,
    mcs_sum: u64,
    mcs_count: u64,
    blocks: u64,
    retx: u64,
    retx_known: u64,
    padded: u64,
    rsrp: MeanSum,
    rsrq: MeanSum,
    snr: MeanSum,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct MeanSum {
    total: f64,
    count: u64,
}

impl MeanSum {
    fn add(&mut self, value: Option<f32>) {
        if let Some(value) = value {
            self.total += f64::from(value);
            self.count += 1;
        }
    }

    fn join(self, other: Self) -> Self {
        Self { total: self.total + other.total, count: self.count + other.count }
    }

    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.total / self.count as f64)
    }
}

impl UsageBins {
    /// Empty bins of one direction.
    #[must_use]
    pub const fn new(dir: Direction) -> Self {
        Self { dir, bins: BTreeMap::new(), last_tti: None, n_prb_cell: None }
    }

    /// Takes a grant, in TTI order.
    pub fn push_grant(&mut self, grant: &Grant) {
        if grant.dir != self.dir || !grant.rnti.is_user() {
            return;
        }
        let tti = grant.position.tti;
        let here = (tti.0, grant.position.cell);
        // `n_prb` is the whole assignment's, repeated on each of its blocks.
        let first_block = self.last_tti != Some(here);
        let first_cell = self.last_tti.is_none_or(|(last, _)| last != tti.0);
        self.last_tti = Some(here);
        let bin = self.bin(tti);
        bin.scheduled += u64::from(first_cell);
        if let Some(n_prb) = grant.n_prb.filter(|_| first_block) {
            bin.prb += u64::from(n_prb);
            bin.with_prb += 1;
        }
        bin.blocks += 1;
        if let Some(retx) = grant.retx {
            bin.retx_known += 1;
            bin.retx += u64::from(retx);
        }
        if let Some(mcs) = grant.mcs.filter(|mcs| *mcs < 29) {
            bin.mcs_sum += u64::from(mcs);
            bin.mcs_count += 1;
        }
        bin.padded += u64::from(grant.padding_bytes.is_some());
    }

    /// Sets the primary cell's bandwidth in PRBs.
    pub fn set_bandwidth(&mut self, n_prb_cell: u16) {
        self.n_prb_cell = self.n_prb_cell.max(Some(n_prb_cell));
    }

    /// Takes a measurement of the primary cell.
    pub fn push_measurement(&mut self, m: &Measurement) {
        if m.position.cell != 0 {
            return;
        }
        let bin = self.bin(m.position.tti);
        bin.rsrp.add(m.rsrp_dbm);
        bin.rsrq.add(m.rsrq_db);
        bin.snr.add(m.snr_db());
    }

    /// Adds to a sum the bins of its span that end at or before a TTI.
    pub fn gather(&self, sum: &mut UsageSum, before: TtiIndex) {
        let past = sum.end_bin().min(before.0.div_euclid(BIN_TTIS));
        if sum.bins_to < past {
            self.bins.range(sum.bins_to..past).for_each(|(_, bin)| sum.bins.join(bin));
            sum.bins_to = past;
        }
    }

    /// Removes the bins that end at or before a TTI.
    pub fn forget_before(&mut self, tti: TtiIndex) {
        let keep = tti.0.div_euclid(BIN_TTIS);
        while self.bins.first_entry().is_some_and(|bin| *bin.key() < keep) {
            self.bins.pop_first();
        }
    }

    /// The usage of a sum's span so far.
    #[must_use]
    pub fn conclude(&self, sum: &UsageSum) -> Usage {
        let n_bins = sum.end_bin().saturating_sub(sum.start.0.div_euclid(BIN_TTIS));
        let sum = &sum.bins;
        let ttis = n_bins.max(1) as f64 * BIN_TTIS as f64;
        let cell = self.n_prb_cell.map(f64::from).filter(|n| *n > 0.0 && sum.with_prb > 0);
        let of_cell = |ttis: f64| cell.filter(|_| ttis > 0.0).map(|n| sum.prb as f64 / (n * ttis));
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Usage {
            scheduled_share: sum.scheduled as f64 / ttis,
            prb_share: of_cell(ttis),
            prb_share_when_scheduled: of_cell(sum.scheduled as f64),
            mcs_mean: share(sum.mcs_sum, sum.mcs_count),
            retx_share: share(sum.retx, sum.retx_known),
            padded_blocks: sum.padded,
            rsrp_dbm: sum.rsrp.mean(),
            rsrq_db: sum.rsrq.mean(),
            snr_db: sum.snr.mean(),
        }
    }

    /// The usage in `[start, end)`, to whole bins.
    #[must_use]
    pub fn usage(&self, start: TtiIndex, end: TtiIndex) -> Usage {
        let mut sum = UsageSum::new(start, end);
        self.gather(&mut sum, TtiIndex(i64::MAX));
        self.conclude(&sum)
    }

    fn bin(&mut self, tti: TtiIndex) -> &mut UsageBin {
        self.bins.entry(tti.0.div_euclid(BIN_TTIS)).or_default()
    }
}

impl UsageBin {
    fn join(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.with_prb += other.with_prb;
        self.prb += other.prb;
        self.mcs_sum += other.mcs_sum;
        self.mcs_count += other.mcs_count;
        self.blocks += other.blocks;
        self.retx += other.retx;
        self.retx_known += other.retx_known;
        self.padded += other.padded;
        self.rsrp = self.rsrp.join(other.rsrp);
        self.rsrq = self.rsrq.join(other.rsrq);
        self.snr = self.snr.join(other.snr);
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Position;

    use super::*;

    #[test]
    fn shares_over_a_span() {
        let mut bins = UsageBins::new(Direction::Dl);
        bins.set_bandwidth(50);
        for tti in 0..100 {
            let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 25);
            grant.mcs = Some(10);
            grant.retx = Some(tti % 10 == 0);
            bins.push_grant(&grant);
            // The second block of an assignment repeats its PRBs.
            grant.tb = 1;
            bins.push_grant(&grant);
        }
        let usage = bins.usage(TtiIndex(0), TtiIndex(200));
        assert_eq!(usage.scheduled_share, 0.5);
        assert_eq!(usage.prb_share, Some(0.25));
        assert_eq!(usage.prb_share_when_scheduled, Some(0.5));
        assert_eq!((usage.mcs_mean, usage.retx_share), (Some(10.0), Some(0.1)));
        assert_eq!(usage.rsrp_dbm, None);
        assert_eq!(bins.usage(TtiIndex(1_000), TtiIndex(1_100)).scheduled_share, 0.0);
    }
}
