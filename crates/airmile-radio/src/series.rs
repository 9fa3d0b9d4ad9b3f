//! The data that a report draws over time: the allocation of each TTI, the signal, gaps and clock
//! anchors, collected while the records stream.
//!
//! Each TTI takes two bytes, in blocks that exist only where something was scheduled, so that a
//! phone that sleeps for hours costs nothing.

use std::collections::BTreeMap;

use airmile_model::{
    Direction, Grant, Hole, Measurement, Position, Record, Stamp, TtiClock, TtiIndex,
};

use crate::legs::{LATE_NS, Rat, rat_of};

/// TTIs in a block: a power of 8, as the report's zoom levels are.
pub const BLOCK_TTIS: usize = 4_096;
/// A report's axis ends this many blocks after its first TTI: half a year. Only a damaged record
/// has a later TTI.
pub const MAX_BLOCKS: i64 = 4_000_000;
/// Clock anchors are this far apart: the drift in between is below a TTI.
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
    /// The times of the TTIs.
    pub clock: TtiClock,
}

/// Collects a [`Series`] from the records of one subscription.
pub struct SeriesCollector {
    directions: [Allocation; 2],
    series: Series,
    /// The leg of the first grant, whose TTIs are the axis.
    leg: Option<Rat>,
    /// Times of the signal's points before the first grant.
    signal_at: Vec<Option<Stamp>>,
    first_block: Option<i64>,
    grant_clock: TtiClock,
    /// For logs without grants.
    signal_clock: TtiClock,
}

impl Default for SeriesCollector {
    fn default() -> Self {
        Self {
            directions: Default::default(),
            series: Series::default(),
            leg: None,
            signal_at: Vec::new(),
            first_block: None,
            grant_clock: TtiClock::spaced(ANCHOR_SPACING_NS),
            signal_clock: TtiClock::spaced(ANCHOR_SPACING_NS),
        }
    }
}

#[derive(Default)]
struct Allocation {
    blocks: BTreeMap<i64, Box<[u16; BLOCK_TTIS]>>,
    open: Option<OpenTti>,
    /// `(from TTI, PRBs of the primary cell)`.
    bandwidths: Vec<(i64, u16)>,
    /// PRBs of each cell, the newest.
    widths: BTreeMap<u8, u16>,
}

/// A TTI whose grants are not complete.
struct OpenTti {
    tti: i64,
    cell: u8,
    prb: u32,
    cells: u32,
    /// PRBs of these cells, unless one is unknown.
    width: Option<u32>,
}

impl SeriesCollector {
    /// Takes a record, in TTI order.
    pub fn push(&mut self, record: &Record) {
        let rat = rat_of(record);
        if let Record::CellInfo(info) = record {
            if let Some(n_prb) = info.n_prb_dl
                && (self.leg.is_none() || rat.is_none() || rat == self.leg)
            {
                self.directions[0].set_bandwidth(info.cell, n_prb);
                self.directions[1].set_bandwidth(info.cell, info.n_prb_ul.unwrap_or(n_prb));
            }
            return;
        }
        match record {
            // The other leg of EN-DC has TTIs of its own.
            Record::Grant(grant) if grant.rnti.is_user() => {
                let is_first = self.leg.is_none();
                if is_first && rat == Some(Rat::Nr) {
                    self.directions = [Allocation::default(), Allocation::default()];
                }
                self.leg = self.leg.or(rat);
                if self.leg == rat {
                    self.push_grant(grant);
                }
                if is_first {
                    self.place_signal();
                }
            }
            Record::Measurement(m) => self.push_measurement(m),
            Record::Hole(hole) if self.is_of_leg(hole) && self.on_axis(hole.position) => {
                self.series.holes.push((hole.position.tti.0, hole.n_tti));
            }
            _ => {}
        }
    }

    /// A hole of LTE's leg names no numerology.
    fn is_of_leg(&self, hole: &Hole) -> bool {
        let is_nr = self.leg == Some(Rat::Nr);
        self.leg.is_none()
            || hole.position.numerology == if is_nr { self.series.numerology } else { 0 }
    }

    fn push_grant(&mut self, grant: &Grant) {
        if !self.on_axis(grant.position) {
            return;
        }
        self.series.numerology = grant.position.numerology;
        self.grant_clock.set_numerology(grant.position.numerology);
        if let Some(at) = grant.at {
            self.grant_clock.note(grant.position.tti, at.ns);
        }
        let direction = match grant.dir {
            Direction::Dl => &mut self.directions[0],
            Direction::Ul => &mut self.directions[1],
        };
        direction.push(grant);
    }

    fn push_measurement(&mut self, m: &Measurement) {
        if m.position.cell != 0 || (self.leg != Some(Rat::Nr) && !self.on_axis(m.position)) {
            return;
        }
        if let Some(at) = m.at {
            self.signal_clock.note(m.position.tti, at.ns);
        }
        let tti = if self.leg == Some(Rat::Nr) { self.on_nr(m.at) } else { Some(m.position.tti) };
        let snr_db = m.snr_db();
        if let Some(TtiIndex(tti)) = tti.filter(|_| m.rsrp_dbm.is_some() || snr_db.is_some()) {
            self.series.signal.push(SignalPoint { tti, rsrp_dbm: m.rsrp_dbm, snr_db });
            if self.leg.is_none() {
                self.signal_at.push(m.at);
            }
        }
    }

    /// The TTI of NR at a time of LTE's cells, which alone have measurements. `None` before the first
    /// grant of a log.
    fn on_nr(&self, at: Option<Stamp>) -> Option<TtiIndex> {
        let (ns, (_, last_ns)) = at.map(|at| at.ns).zip(self.grant_clock.last_anchor())?;
        let is_of_log = ns >= last_ns.saturating_sub(LATE_NS);
        self.grant_clock.tti_now(ns).filter(|_| is_of_log)
    }

    /// Moves the points before the first grant to its axis.
    fn place_signal(&mut self) {
        let mut at = std::mem::take(&mut self.signal_at).into_iter();
        if self.leg == Some(Rat::Nr) {
            let mut points = std::mem::take(&mut self.series.signal);
            points.retain_mut(|point| {
                let at = at.next().flatten().map(|at| at.ns);
                let tti = at.and_then(|ns| self.grant_clock.tti_now(ns));
                point.tti = tti.map_or(point.tti, |tti| tti.0);
                tti.is_some()
            });
            self.series.signal = points;
        }
    }

    /// Whether a position is near enough to the first one to be drawn.
    fn on_axis(&mut self, position: Position) -> bool {
        let block = position.tti.0.div_euclid(BLOCK_TTIS as i64);
        let first = *self.first_block.get_or_insert(block);
        block.saturating_sub(first).saturating_abs() < MAX_BLOCKS
    }

    /// The series of the whole log.
    #[must_use]
    pub fn finish(self) -> Series {
        let Self { directions: [dl, ul], mut series, grant_clock, signal_clock, .. } = self;
        series.dl = dl.finish();
        series.ul = ul.finish();
        series.holes.sort_unstable();
        series.clock = if grant_clock.is_empty() { signal_clock } else { grant_clock };
        series.signal.sort_by_key(|point| point.tti);
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
        if let Some(n_prb) = grant.n_prb_cell {
            self.widths.insert(cell, n_prb);
            if cell == 0 && self.bandwidths.last().is_none_or(|last| last.1 != n_prb) {
                self.bandwidths.push((tti, n_prb));
            }
        }
        let width = self.widths.get(&cell).map(|n_prb| u32::from(*n_prb));
        let fresh = self.open.is_none();
        let open = self.open.get_or_insert(OpenTti { tti, cell, prb: 0, cells: 0, width: Some(0) });
        // `n_prb` is that of the whole assignment, repeated in each of its blocks.
        if let Some(n_prb) = grant.n_prb
            && (fresh || open.cell != cell || open.cells == 0)
        {
            open.prb += u32::from(n_prb);
            open.cells += 1;
            open.width = open.width.zip(width).map(|(all, width)| all + width);
            open.cell = cell;
        }
    }

    fn set_bandwidth(&mut self, cell: u8, n_prb: u16) {
        self.widths.insert(cell, n_prb);
        if cell > 0 || self.bandwidths.last().is_some_and(|last| last.1 == n_prb) {
            return;
        }
        let from = self.open.as_ref().map_or(i64::MIN, |open| open.tti + 1);
        self.bandwidths.push((from, n_prb));
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        // Of several carriers the share of all their PRBs, as PRBs of the primary cell.
        let primary = self.widths.get(&0).map(|n_prb| u32::from(*n_prb));
        let n_prb = match (open.cells, open.cell) {
            (0, _) => None,
            (1, 0) => Some(open.prb),
            _ => primary.zip(open.width).and_then(|(n, all)| (open.prb * n).checked_div(all)),
        };
        let value = n_prb.map_or(NO_PRB, |n_prb| (n_prb.min(1_000) as u16).max(1));
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
        let mut collector = SeriesCollector::default();
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

    /// 25 of 50 PRBs and 75 of 100; where a cell's width is unknown, so is the share.
    #[test]
    fn carriers_share_their_own_prbs() {
        let pair = |n_prb_cell: Option<u16>| {
            let position = Position { cell: 1, ..Position::lte(3) };
            let second = Grant::new(position, Direction::Dl, 75);
            series(&[grant(3, 25), Record::Grant(Grant { n_prb_cell, ..second })])
        };
        let share = 1 + (SHARE_STEPS * 33.0 / 50.0) as u8;
        assert_eq!(pair(Some(100)).dl.blocks[0].1[3], share);
        assert_eq!(pair(None).dl.blocks[0].1[3], UNKNOWN_SHARE);
    }

    /// LTE's measurements are placed on the axis of NR's slots by their time, its grants and
    /// bandwidth are not of it.
    #[test]
    fn with_en_dc_the_axis_is_that_of_the_first_leg() {
        let at = |ms: i64| Some(Stamp::modem(ms * 1_000_000));
        let nr = |tti: i64, ms: i64| {
            let position = Position { numerology: 1, ..Position::lte(tti) };
            let sources = airmile_model::GrantSources::NR_PDSCH_STATUS;
            let grant = Grant::new(position, Direction::Dl, 20);
            Record::Grant(Grant { at: at(ms), sources, ..grant })
        };
        let measured = |tti: i64, ms: i64| {
            let position = Position::lte(tti);
            let m = Measurement {
                at: at(ms),
                position,
                earfcn: 1,
                pci: 1,
                rsrp_rx0_dbm: None,
                rsrp_rx1_dbm: None,
                rsrp_dbm: Some(-100.0),
                rsrq_rx0_db: None,
                rsrq_rx1_db: None,
                rsrq_db: None,
                rssi_rx0_dbm: None,
                rssi_rx1_dbm: None,
                rssi_dbm: None,
                snr_rx0_db: None,
                snr_rx1_db: None,
            };
            m.into()
        };
        let lte = |tti: i64, ms: i64| match grant(tti, 50) {
            Record::Grant(grant) => Record::Grant(Grant { at: at(ms), ..grant }),
            other => other,
        };
        let found = series(&[
            measured(9_000, 990),
            nr(200, 1_000),
            lte(9_010, 1_000),
            measured(9_020, 1_010),
            nr(220, 1_010),
            // The clock was set back: another log, of which nothing is drawn in the first.
            measured(9_030, -3_600_000),
            nr(260, -3_599_980),
            measured(9_060, -3_599_970),
        ]);
        assert_eq!(found.signal.iter().map(|p| p.tti).collect::<Vec<_>>(), [180, 220, 280]);
        assert_eq!(found.dl.blocks.len(), 1);
        assert_eq!(found.dl.blocks[0].1[200], UNKNOWN_SHARE);
    }
}
