//! A user's allocation and signal over a span, kept in bins so that a long log takes
//! little memory.

use std::collections::BTreeMap;

use airmile_model::{Direction, Grant, Measurement, Stamp, TtiIndex, TtiSpan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::legs::Rat;

/// TTIs per bin (chosen here: short against a transfer, long against memory).
const BIN_TTIS: i64 = 100;

/// Allocation and signal over a span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// TTIs in which something was scheduled / TTIs.
    pub scheduled_share: f64,
    /// PRBs assigned / PRBs of the phone's cells; null if either is unknown, of any of them.
    pub prb_share: Option<f64>,
    /// PRBs assigned / PRBs of the cells, of each cell in the TTIs in which it scheduled the phone.
    pub prb_share_when_scheduled: Option<f64>,
    /// PRBs assigned in all cells, a TTI each.
    #[serde(skip)]
    pub n_prb: u64,
    /// Cells that scheduled the phone.
    #[serde(skip)]
    pub cells: usize,
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
    /// TTI, time and cell of the last grant.
    last: Option<(TtiIndex, Option<Stamp>, CellId)>,
    /// Of the TTIs of the bins.
    numerology: u8,
    cells: BTreeMap<CellId, CellWidth>,
}

type CellId = (Rat, u8);

/// A cell's bandwidth in PRBs, and its numerology.
#[derive(Debug, Clone, Copy, Default)]
struct CellWidth {
    n_prb: Option<u16>,
    numerology: u8,
}

/// TTIs in which a cell scheduled the phone, and PRBs assigned in them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CellUsage {
    ttis: u64,
    prb: u64,
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

    /// Scheduled TTIs of the span, and the usage of cells in it. What cells had in a bin is taken as
    /// evenly spread over its scheduled TTIs.
    fn inside(&self) -> (u64, BTreeMap<CellId, CellUsage>) {
        let mut scheduled = self.bins.scheduled;
        let mut cells = self.bins.cells.clone();
        let Some([first, last]) = &self.edges else { return (scheduled, cells) };
        let edges = [Some(first), Some(last).filter(|last| last.0 != first.0)];
        for (number, bin) in edges.into_iter().flatten() {
            let of_bin = |tti: TtiIndex| tti.0.saturating_sub(number.saturating_mul(BIN_TTIS));
            let (from, to) = (of_bin(self.start), of_bin(self.end));
            let inside = below(to) & !below(from);
            let outside = u64::from((bin.ttis & !inside).count_ones());
            scheduled = scheduled.saturating_sub(outside);
            for (cell, usage) in &mut cells {
                let of_bin = bin.cells.get(cell).copied().unwrap_or_default();
                let part = |n: u64| n * outside / bin.scheduled.max(1);
                usage.ttis = usage.ttis.saturating_sub(part(of_bin.ttis));
                usage.prb = usage.prb.saturating_sub(part(of_bin.prb));
            }
        }
        (scheduled, cells)
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

#[derive(Debug, Clone, Default, PartialEq)]
struct UsageBin {
    /// The scheduled TTIs, a bit each; none in a sum.
    ttis: u128,
    scheduled: u64,
    cells: BTreeMap<CellId, CellUsage>,
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
        Self { dir, bins: BTreeMap::new(), last: None, numerology: 0, cells: BTreeMap::new() }
    }

    /// Takes a grant of the leg whose TTIs are the axis, in TTI order.
    pub fn push_grant(&mut self, grant: &Grant, rat: Rat) {
        if grant.dir != self.dir || !grant.rnti.is_user() {
            return;
        }
        let tti = grant.position.tti;
        self.numerology = grant.position.numerology;
        self.push_prb(grant, (rat, grant.position.cell), grant.position.numerology);
        let bin = self.bin(tti);
        bin.schedule(tti);
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

    /// Takes time and PRBs of a grant of the other leg, whose numerology is given; its TTI is one of
    /// the axis, of which it may last several.
    pub fn push_other_leg(&mut self, grant: &Grant, rat: Rat, numerology: u8) {
        if grant.dir != self.dir || !grant.rnti.is_user() {
            return;
        }
        self.push_prb(grant, (rat, grant.position.cell), numerology);
        let n_tti = TtiSpan(1).ns(numerology) / TtiSpan(1).ns(grant.position.numerology);
        for tti in (0..n_tti.max(1)).map(|n| grant.position.tti.plus(n)) {
            self.bin(tti).schedule(tti);
        }
    }

    fn push_prb(&mut self, grant: &Grant, cell: CellId, numerology: u8) {
        let width = self.cells.entry(cell).or_default();
        width.numerology = numerology;
        width.n_prb = width.n_prb.max(grant.n_prb_cell);
        // `n_prb` is the whole assignment's, repeated on each of its blocks.
        let here = Some((grant.position.tti, grant.at, cell));
        if std::mem::replace(&mut self.last, here) != here {
            let usage = self.bin(grant.position.tti).cells.entry(cell).or_default();
            usage.ttis += 1;
            usage.prb += u64::from(grant.n_prb.unwrap_or(0));
        }
    }

    /// Sets a cell's bandwidth in PRBs.
    pub fn set_bandwidth(&mut self, rat: Rat, cell: u8, n_prb: u16) {
        let width = self.cells.entry((rat, cell)).or_default();
        width.n_prb = width.n_prb.max(Some(n_prb));
    }

    /// Takes a measurement of the primary cell in a TTI of the axis.
    pub fn push_measurement(&mut self, m: &Measurement, tti: TtiIndex) {
        let bin = self.bin(tti);
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
                let last = (*number, bin.clone());
                let first = sum.edges.take().map_or_else(|| last.clone(), |[first, _]| first);
                sum.edges = Some([first, last]);
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
        let ttis = sum.end.since(sum.start).max(1);
        let (scheduled, cells) = sum.inside();
        let sum = &sum.bins;
        // PRBs, and those that the cells had in these TTIs and overall.
        let mut prb = (sum.blocks > 0).then_some((0.0, 0.0, 0.0));
        for (cell, usage) in &cells {
            let width = self.cells.get(cell).copied().unwrap_or_default();
            let own_ttis = TtiSpan(ttis).ms(self.numerology) / TtiSpan(1).ms(width.numerology);
            let n_prb = width.n_prb.filter(|n| *n > 0).map(f64::from);
            let n_prb = n_prb.filter(|_| sum.cells.get(cell).is_some_and(|usage| usage.prb > 0));
            prb = prb.zip(n_prb).map(|((own, then, all), n_prb)| {
                let then = then + n_prb * usage.ttis as f64;
                (own + usage.prb as f64, then, all + n_prb * own_ttis)
            });
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Usage {
            scheduled_share: scheduled as f64 / ttis as f64,
            prb_share: prb.map(|(own, _, all)| own / all),
            prb_share_when_scheduled: prb
                .filter(|prb| prb.1 > 0.0)
                .map(|(own, then, _)| own / then),
            n_prb: cells.values().map(|usage| usage.prb).sum(),
            cells: cells.len(),
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
    fn schedule(&mut self, tti: TtiIndex) {
        let bit = 1 << tti.0.rem_euclid(BIN_TTIS);
        self.scheduled += u64::from(self.ttis & bit == 0);
        self.ttis |= bit;
    }

    fn join(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        for (cell, usage) in &other.cells {
            let sum = self.cells.entry(*cell).or_default();
            sum.ttis += usage.ttis;
            sum.prb += usage.prb;
        }
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
        bins.set_bandwidth(Rat::Lte, 0, 50);
        for tti in 0..100 {
            let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 25);
            grant.mcs = Some(10);
            grant.retx = Some(tti % 10 == 0);
            bins.push_grant(&grant, Rat::Lte);
            // The second block of an assignment repeats its PRBs.
            grant.tb = 1;
            bins.push_grant(&grant, Rat::Lte);
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
        bins.set_bandwidth(Rat::Lte, 0, 50);
        for tti in 30..280 {
            bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25), Rat::Lte);
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
            bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25), Rat::Lte);
            sum.set_end(TtiIndex(tti + 1));
            bins.gather(&mut sum, TtiIndex(tti - 20));
            bins.forget_before(sum.gathered_to());
        }
        sum.set_end(TtiIndex(250));
        bins.gather(&mut sum, TtiIndex(i64::MAX));
        assert_eq!(bins.conclude(&sum).scheduled_share, 1.0);
    }

    /// Two carriers of 50 and 100 PRBs, of which the second is scheduled in every other TTI.
    #[test]
    fn carriers_are_shares_of_their_own_cells() {
        let usage = |second: Option<u16>| {
            let mut bins = UsageBins::new(Direction::Dl);
            for tti in 0..100 {
                for (cell, n_prb, n_prb_cell) in [(0, 45, Some(50)), (1, 60, second)] {
                    if cell == 1 && tti % 2 == 1 {
                        continue;
                    }
                    let position = Position { cell, ..Position::lte(tti) };
                    let grant = Grant::new(position, Direction::Dl, n_prb);
                    bins.push_grant(&Grant { n_prb_cell, ..grant }, Rat::Lte);
                }
            }
            bins.usage(TtiIndex(0), TtiIndex(200))
        };
        let known = usage(Some(100));
        assert_eq!((known.scheduled_share, known.cells, known.n_prb), (0.5, 2, 7_500));
        // 4,500 of 100 TTIs of 50 PRBs, and 3,000 of 50 TTIs of 100.
        assert_eq!(known.prb_share_when_scheduled, Some(0.75));
        assert_eq!(known.prb_share, Some(7_500.0 / 30_000.0));
        let unknown = usage(None);
        assert_eq!((unknown.prb_share, unknown.prb_share_when_scheduled), (None, None));
        assert_eq!(unknown.n_prb, 7_500);
    }

    /// Slots of 0.5 ms are the axis; the LTE leg has half as many TTIs.
    #[test]
    fn each_leg_has_its_own_ttis_and_bandwidth() {
        let usage = |n_prb_cell: Option<u16>| {
            let mut bins = UsageBins::new(Direction::Dl);
            bins.set_bandwidth(Rat::Lte, 0, 50);
            for tti in 0..100 {
                let position = Position { numerology: 1, ..Position::lte(tti) };
                let grant = Grant::new(position, Direction::Dl, 80);
                bins.push_grant(&Grant { n_prb_cell, ..grant.clone() }, Rat::Nr);
                if tti % 2 == 0 {
                    bins.push_other_leg(&Grant { n_prb: Some(20), ..grant }, Rat::Lte, 0);
                }
            }
            bins.usage(TtiIndex(0), TtiIndex(100))
        };
        // 8,000 of 100 slots of 100 PRBs, 1,000 of 50 TTIs of 50.
        let known = usage(Some(100));
        assert_eq!(known.prb_share, Some(9_000.0 / 12_500.0));
        assert_eq!(known.prb_share_when_scheduled, known.prb_share);
        assert_eq!((usage(None).prb_share, usage(None).scheduled_share), (None, 1.0));
    }
}
