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
    /// The first bin included and the last, by their numbers: the span may begin or end in them.
    edges: Option<[(i64, UsageBin); 2]>,
}

impl UsageSum {
    /// An empty sum over `[start, end)`.
    #[must_use]
    pub fn new(start: TtiIndex, end: TtiIndex) -> Self {
        let (bins_to, bins) = (start.0.div_euclid(BIN_TTIS), UsageBin::default());
        Self { start, end, bins_to, bins, edges: None }
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

    /// Scheduled TTIs, and PRBs in them, of the included bins outside of the span. PRBs of a bin are taken as
    /// evenly spread over its scheduled TTIs.
    fn outside(&self) -> (u64, u64) {
        let Some([first, last]) = &self.edges else { return (0, 0) };
        let edges = [Some(first), Some(last).filter(|last| last.0 != first.0)];
        edges.into_iter().flatten().fold((0, 0), |(ttis, prb), (number, bin)| {
            let of_bin = |tti: TtiIndex| tti.0.saturating_sub(number.saturating_mul(BIN_TTIS));
            let (from, to) = (of_bin(self.start), of_bin(self.end));
            let inside = below(to) & !below(from);
            let outside = u64::from((bin.ttis & !inside).count_ones());
            (ttis + outside, prb + bin.prb * outside / bin.scheduled.max(1))
        })
    }

    /// The bin after its last one.
    const fn end_bin(&self) -> i64 {
        self.end.0.saturating_sub(1).div_euclid(BIN_TTIS).saturating_add(1)
    }
}

/// The first TTIs of a bin, `n` of them.
fn below(n: i64) -> u128 {
    u32::try_from(n).map_or(0, |n| 1_u128.checked_shl(n).unwrap_or(0).wrapping_sub(1))
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct UsageBin {
    /// The scheduled TTIs, a bit each; none in a sum.
    ttis: u128,
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
        bin.ttis |= 1 << tti.0.rem_euclid(BIN_TTIS);
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
            for (number, bin) in self.bins.range(sum.bins_to..past) {
                sum.bins.join(bin);
                let first = sum.edges.map_or((*number, *bin), |[first, _]| first);
                sum.edges = Some([first, (*number, *bin)]);
            }
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
        let ttis = sum.end.since(sum.start).max(1) as f64;
        let (ttis_outside, prb_outside) = sum.outside();
        let sum = &sum.bins;
        let scheduled = sum.scheduled.saturating_sub(ttis_outside) as f64;
        let prb = sum.prb.saturating_sub(prb_outside) as f64;
        let cell = self.n_prb_cell.map(f64::from).filter(|n| *n > 0.0 && sum.with_prb > 0);
        let of_cell = |ttis: f64| cell.filter(|_| ttis > 0.0).map(|n| prb / (n * ttis));
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Usage {
            scheduled_share: scheduled / ttis,
            prb_share: of_cell(ttis),
            prb_share_when_scheduled: of_cell(scheduled),
            mcs_mean: share(sum.mcs_sum, sum.mcs_count),
            retx_share: share(sum.retx, sum.retx_known),
            padded_blocks: sum.padded,
            rsrp_dbm: sum.rsrp.mean(),
            rsrq_db: sum.rsrq.mean(),
            snr_db: sum.snr.mean(),
        }
    }

    /// The usage in `[start, end)`; signal, MCS and retransmissions to whole bins.
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

    #[test]
    fn spans_that_begin_and_end_within_bins() {
        let mut bins = UsageBins::new(Direction::Dl);
        bins.set_bandwidth(50);
        for tti in 30..280 {
            bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25));
        }
        for (start, end, share) in [
            (30, 280, 1.0),
            (30, 80, 1.0),
            (40, 60, 1.0),
            (200, 280, 1.0),
            (0, 60, 0.5),
            (0, 300, 25.0 / 30.0),
        ] {
            let usage = bins.usage(TtiIndex(start), TtiIndex(end));
            assert_eq!(usage.scheduled_share, share, "{start} to {end}");
            assert_eq!(usage.prb_share, Some(share / 2.0), "{start} to {end}");
            assert_eq!(usage.prb_share_when_scheduled, Some(0.5), "{start} to {end}");
        }
    }

    /// As while a log is read: the end moves on, and what was gathered is forgotten.
    #[test]
    fn an_end_that_moves_while_bins_are_gathered() {
        let mut bins = UsageBins::new(Direction::Dl);
        let mut sum = UsageSum::new(TtiIndex(30), TtiIndex(30));
        for tti in 30..280 {
            bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25));
            sum.set_end(TtiIndex(tti + 1));
            bins.gather(&mut sum, TtiIndex(tti - 20));
            bins.forget_before(sum.gathered_to());
        }
        sum.set_end(TtiIndex(250));
        bins.gather(&mut sum, TtiIndex(i64::MAX));
        assert_eq!(bins.conclude(&sum).scheduled_share, 1.0);
    }
}
