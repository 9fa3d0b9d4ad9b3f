//! The data that a report draws over time: the allocation of each TTI, the signal, gaps and clock
//! anchors, collected while the records stream.
//!
//! Each TTI takes two bytes, in blocks that exist only where something was scheduled, so that a
//! phone that sleeps for hours costs nothing.

use std::collections::BTreeMap;

use airmile_model::{Direction, Grant, Measurement, Position, Record, Stamp, TtiIndex, TtiSpan};

use airmile_io::limits::{LimitFilter, Limits};

/// TTIs in a block: a power of 8, as the report's zoom levels are.
pub const BLOCK_TTIS: usize = 4_096;
/// A report's axis ends this many blocks after its first TTI: half a year. Only a damaged record
/// has a later TTI.
pub(crate) const MAX_BLOCKS: i64 = 4_000_000;
/// Clock anchors are this far apart: the drift in between is far below a TTI.
const ANCHOR_SPACING_NS: i64 = 10_000_000_000;

/// Code of a TTI in which nothing was scheduled.
pub const NOT_SCHEDULED: u8 = 0;
/// Code of a TTI with an unknown share of the cell.
pub const UNKNOWN_SHARE: u8 = 255;
/// Code `1 + SHARE_STEPS * share` stands for a share of the cell's PRBs.
pub const SHARE_STEPS: f64 = 250.0;

/// Scheduled, PRBs unknown.
const NO_PRB: u16 = u16::MAX;

/// One direction's allocation: a code for each TTI of each non-empty block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocationSeries {
    /// Blocks, by `first TTI / BLOCK_TTIS`.
    pub blocks: Vec<(i64, Vec<u8>)>,
}

/// A drawn measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalPoint {
    /// TTI.
    pub tti: i64,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f32>,
    /// SNR of the better antenna in dB.
    pub snr_db: Option<f32>,
}

/// All data drawn over time, of one subscription.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// NR numerology (0: LTE).
    pub numerology: u8,
    /// Downlink.
    pub dl: AllocationSeries,
    /// Uplink.
    pub ul: AllocationSeries,
    /// Signal, in TTI order.
    pub signal: Vec<SignalPoint>,
    /// `(first TTI, TTIs)` of gaps in the records.
    pub holes: Vec<(i64, i64)>,
    /// `(TTI, microseconds since the Unix epoch)`, ascending.
    pub anchors: Vec<(i64, i64)>,
}

/// Collects a [`Series`] from the records of one subscription.
pub(crate) struct SeriesCollector {
    filter: LimitFilter,
    directions: [Allocation; 2],
    series: Series,
    first_block: Option<i64>,
    grant_anchors: Anchors,
    /// For logs without grants.
    signal_anchors: Anchors,
}

/// `(TTI, microseconds since the Unix epoch)`, spaced apart.
#[derive(Default)]
struct Anchors {
    last: Option<(TtiIndex, i64)>,
    found: Vec<(i64, i64)>,
}

impl Anchors {
    fn push(&mut self, position: Position, at: Option<Stamp>) {
        let Position { tti, numerology, .. } = position;
        if let Some(at) = at
            && self.last.is_none_or(|(last, ns)| {
                let since = TtiSpan(tti.since(last));
                since.ends_at_anchor(numerology, (ns, at.ns), ANCHOR_SPACING_NS)
            })
        {
            self.last = Some((tti, at.ns));
            self.found.push((tti.0, at.micros()));
        }
    }
}

struct Allocation {
    blocks: BTreeMap<i64, Box<[u16; BLOCK_TTIS]>>,
    open: Option<OpenTti>,
    /// `(from TTI, PRBs of the primary cell)`.
    bandwidths: Vec<(i64, u16)>,
}

/// A TTI whose grants are not complete.
struct OpenTti {
    tti: i64,
    cell: u8,
    prb: u32,
    cells: u32,
}

impl SeriesCollector {
    pub(crate) fn new(limits: Limits) -> Self {
        let allocation =
            || Allocation { blocks: BTreeMap::new(), open: None, bandwidths: Vec::new() };
        Self {
            filter: LimitFilter::new(limits),
            directions: [allocation(), allocation()],
            series: Series::default(),
            first_block: None,
            grant_anchors: Anchors::default(),
            signal_anchors: Anchors::default(),
        }
    }

    pub(crate) fn push(&mut self, record: &Record) {
        if let Record::CellInfo(info) = record {
            if info.cell == 0
                && let Some(n_prb) = info.n_prb_dl
            {
                self.directions[0].set_bandwidth(n_prb);
                self.directions[1].set_bandwidth(info.n_prb_ul.unwrap_or(n_prb));
            }
            return;
        }
        if !self.filter.keeps(record) {
            return;
        }
        match record {
            Record::Grant(grant) if grant.rnti.is_user() => self.push_grant(grant),
            Record::Measurement(m) => self.push_measurement(m),
            Record::Hole(hole) if self.on_axis(hole.position) => {
                self.series.holes.push((hole.position.tti.0, hole.n_tti));
            }
            _ => {}
        }
    }

    fn push_grant(&mut self, grant: &Grant) {
        if !self.on_axis(grant.position) {
            return;
        }
        self.series.numerology = grant.position.numerology;
        self.grant_anchors.push(grant.position, grant.at);
        let direction = match grant.dir {
            Direction::Dl => &mut self.directions[0],
            Direction::Ul => &mut self.directions[1],
        };
        direction.push(grant);
    }

    fn push_measurement(&mut self, m: &Measurement) {
        if !self.on_axis(m.position) || m.position.cell != 0 {
            return;
        }
        self.signal_anchors.push(m.position, m.at);
        let snr_db = m.snr_db();
        let point = SignalPoint { tti: m.position.tti.0, rsrp_dbm: m.rsrp_dbm, snr_db };
        if point.rsrp_dbm.is_some() || snr_db.is_some() {
            self.series.signal.push(point);
        }
    }

    /// Whether a position is near enough to the first one to be drawn.
    fn on_axis(&mut self, position: Position) -> bool {
        let block = position.tti.0.div_euclid(BLOCK_TTIS as i64);
        let first = *self.first_block.get_or_insert(block);
        block.saturating_sub(first).saturating_abs() < MAX_BLOCKS
    }

    pub(crate) fn finish(self) -> Series {
        let Self { directions: [dl, ul], mut series, grant_anchors, signal_anchors, .. } = self;
        series.dl = dl.finish();
        series.ul = ul.finish();
        series.signal.sort_by_key(|point| point.tti);
        series.holes.sort_unstable();
        let by_grants = !grant_anchors.found.is_empty();
        series.anchors = if by_grants { grant_anchors.found } else { signal_anchors.found };
        series.anchors.sort_unstable();
        series
    }
}

impl Allocation {
    fn push(&mut self, grant: &Grant) {
        let tti = grant.position.tti.0;
        let cell = grant.position.cell;
        if self.open.as_ref().is_some_and(|open| open.tti != tti) {
            self.close();
        }
        if cell == 0
            && let Some(n_prb) = grant.n_prb_cell
            && self.bandwidths.last().is_none_or(|last| last.1 != n_prb)
        {
            self.bandwidths.push((tti, n_prb));
        }
        let fresh = self.open.is_none();
        let open = self.open.get_or_insert(OpenTti { tti, cell, prb: 0, cells: 0 });
        // `n_prb` is that of the whole assignment, repeated in each of its blocks.
        if let Some(n_prb) = grant.n_prb
            && (fresh || open.cell != cell || open.cells == 0)
        {
            open.prb += u32::from(n_prb);
            open.cells += 1;
            open.cell = cell;
        }
    }

    fn set_bandwidth(&mut self, n_prb: u16) {
        if self.bandwidths.last().is_some_and(|last| last.1 == n_prb) {
            return;
        }
        let from = self.open.as_ref().map_or(i64::MIN, |open| open.tti + 1);
        self.bandwidths.push((from, n_prb));
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        // The mean over carriers, since each has its own PRBs.
        let mean = open.prb.checked_div(open.cells);
        let value = mean.map_or(NO_PRB, |mean| (mean.min(1_000) as u16).max(1));
        let n = BLOCK_TTIS as i64;
        let block =
            self.blocks.entry(open.tti.div_euclid(n)).or_insert_with(|| Box::new([0; BLOCK_TTIS]));
        if let Some(slot) = block.get_mut(open.tti.rem_euclid(n) as usize) {
            let known = *slot != 0 && *slot != NO_PRB;
            *slot = if known && value != NO_PRB { value.max(*slot) } else { value };
        }
    }

    fn finish(mut self) -> AllocationSeries {
        self.close();
        self.bandwidths.sort_by_key(|(from, _)| *from);
        let mut blocks = Vec::with_capacity(self.blocks.len());
        while let Some((index, block)) = self.blocks.pop_first() {
            let first = index.saturating_mul(BLOCK_TTIS as i64);
            let mut codes = Vec::with_capacity(BLOCK_TTIS);
            for (i, n_prb) in block.iter().enumerate() {
                codes.push(match *n_prb {
                    0 => NOT_SCHEDULED,
                    NO_PRB => UNKNOWN_SHARE,
                    n_prb => share_code(n_prb, self.bandwidth_at(first + i as i64)),
                });
            }
            blocks.push((index, codes));
        }
        AllocationSeries { blocks }
    }

    /// The bandwidth in force; the first known one also applies to the time before.
    fn bandwidth_at(&self, tti: i64) -> Option<u16> {
        let after = self.bandwidths.partition_point(|(from, _)| *from <= tti);
        self.bandwidths.get(after.saturating_sub(1)).map(|(_, n_prb)| *n_prb)
    }
}

fn share_code(n_prb: u16, n_prb_cell: Option<u16>) -> u8 {
    match n_prb_cell {
        None | Some(0) => UNKNOWN_SHARE,
        Some(all) => {
            let share = (f64::from(n_prb) / f64::from(all)).min(1.0);
            1 + (share * SHARE_STEPS).round() as u8
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(tti: i64, n_prb: u16) -> Record {
        Record::Grant(Grant {
            n_prb_cell: Some(50),
            ..Grant::new(Position::lte(tti), Direction::Dl, n_prb)
        })
    }

    fn series(records: &[Record]) -> Series {
        let mut collector = SeriesCollector::new(Limits::default());
        records.iter().for_each(|record| collector.push(record));
        collector.finish()
    }

    #[test]
    fn codes_are_shares_of_the_cell() {
        let found = series(&[grant(10, 50), grant(11, 25), grant(13, 3)]);
        let (index, codes) = &found.dl.blocks[0];
        assert_eq!(*index, 0);
        assert_eq!(codes[9..15], [0, 251, 126, 0, 16, 0]);
        assert!(found.ul.blocks.is_empty());
    }

    #[test]
    fn both_blocks_of_an_assignment_count_once() {
        let found = series(&[grant(7, 25), grant(7, 25)]);
        assert_eq!(found.dl.blocks[0].1[7], 126);
    }

    #[test]
    fn a_sleeping_phone_costs_no_blocks() {
        let found = series(&[grant(1, 50), grant(50_000_000, 50)]);
        assert_eq!(found.dl.blocks.len(), 2);
        // A TTI that no log reaches is ignored.
        assert_eq!(series(&[grant(1, 50), grant(1 << 50, 50)]).dl.blocks.len(), 1);
    }

    #[test]
    fn without_a_bandwidth_the_share_is_unknown() {
        let record = Record::Grant(Grant::new(Position::lte(3), Direction::Dl, 20));
        assert_eq!(series(&[record]).dl.blocks[0].1[3], UNKNOWN_SHARE);
    }
}
