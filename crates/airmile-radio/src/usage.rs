//! A user's allocation and signal over a span, kept in bins so that a long log takes
//! little memory.

#[cfg(test)]
mod tests;

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
    /// Of the TTIs of the bins.
    numerology: u8,
    cells: BTreeMap<CellId, CellState>,
}

type CellId = (Rat, u8);

/// Maximum number of bandwidths that a cell keeps (chosen here: grants come within a second of the change
/// of a bandwidth).
const MAX_WIDTHS: usize = 64;

/// What is known of a cell while its grants are taken.
#[derive(Debug, Clone, Default)]
struct CellState {
    numerology: u8,
    /// Bandwidths in PRBs by the first timing segment with each: that in force, and later ones.
    widths: BTreeMap<u32, u16>,
    /// The first known bandwidth in PRBs.
    first_width: Option<u16>,
    /// TTI and time of the last grant.
    last: Option<(TtiIndex, Option<Stamp>)>,
}

impl CellState {
    /// Takes a bandwidth that is in force from a timing segment on.
    fn set_width(&mut self, segment: u32, n_prb: u16) {
        let before = self.widths.range(..=segment).next_back();
        if before.is_none_or(|(_, before)| *before != n_prb) {
            self.widths.insert(segment, n_prb);
            self.first_width.get_or_insert(n_prb);
        }
        // A cell without grants forgets none of them.
        while self.widths.len() > MAX_WIDTHS {
            self.widths.pop_first();
        }
    }

    /// The bandwidth in force in a timing segment; earlier ones are forgotten.
    fn width_in(&mut self, segment: u32) -> Option<u16> {
        while self.widths.keys().nth(1).is_some_and(|next| *next <= segment) {
            self.widths.pop_first();
        }
        self.widths.first_key_value().filter(|(from, _)| **from <= segment).map(|(_, n)| *n)
    }
}

/// TTIs in which a cell scheduled the phone, and PRBs assigned in them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CellUsage {
    ttis: u64,
    prb: u64,
    /// TTIs of which the cell's bandwidth is known, and the sum of its PRBs over them.
    known_ttis: u64,
    width: u64,
}

impl CellUsage {
    /// Combines each sum with that of another.
    fn combine(&mut self, other: Self, of: impl Fn(u64, u64) -> u64) {
        self.ttis = of(self.ttis, other.ttis);
        self.prb = of(self.prb, other.prb);
        self.known_ttis = of(self.known_ttis, other.known_ttis);
        self.width = of(self.width, other.width);
    }
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
                usage.combine(of_bin, |sum, of_bin| sum.saturating_sub(part(of_bin)));
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
        Self { dir, bins: BTreeMap::new(), numerology: 0, cells: BTreeMap::new() }
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
        let segment = grant.position.timing_segment;
        let state = self.cells.entry(cell).or_default();
        state.numerology = numerology;
        if let Some(n_prb) = grant.n_prb_cell {
            state.set_width(segment, n_prb);
        }
        // `n_prb` is the whole assignment's, repeated on each of its blocks.
        let here = Some((grant.position.tti, grant.at));
        if std::mem::replace(&mut state.last, here) != here {
            let width = state.width_in(segment).filter(|n_prb| *n_prb > 0);
            let usage = self.bin(grant.position.tti).cells.entry(cell).or_default();
            usage.ttis += 1;
            usage.prb += u64::from(grant.n_prb.unwrap_or(0));
            usage.known_ttis += u64::from(width.is_some());
            usage.width += u64::from(width.unwrap_or(0));
        }
    }

    /// Sets a cell's bandwidth in PRBs from a timing segment on.
    pub fn set_bandwidth(&mut self, cell: CellId, segment: u32, n_prb: u16) {
        self.cells.entry(cell).or_default().set_width(segment, n_prb);
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
            let state = self.cells.get(cell);
            let numerology = state.map_or(0, |state| state.numerology);
            let own_ttis = TtiSpan(ttis).ms(self.numerology) / TtiSpan(1).ms(numerology);
            // Where it is unknown, the mean bandwidth of the TTIs of which it is known; if of none, the
            // first one after them.
            let width = match usage.known_ttis {
                0 => state.and_then(|state| state.first_width).map(|n| (u64::from(n), 1)),
                known => Some((usage.width, known)),
            };
            let width = width.filter(|(n_prb, _)| {
                *n_prb > 0 && sum.cells.get(cell).is_some_and(|usage| usage.prb > 0)
            });
            prb = prb.zip(width).map(|((own, then, all), (n_prb, of_ttis))| {
                let over = |ttis: f64| n_prb as f64 * ttis / of_ttis as f64;
                (own + usage.prb as f64, then + over(usage.ttis as f64), all + over(own_ttis))
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
            self.cells.entry(*cell).or_default().combine(*usage, |sum, of_bin| sum + of_bin);
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
