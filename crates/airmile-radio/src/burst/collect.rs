//! Collects records into one row per scheduled TTI.
//!
//! Blocks are keyed by their TTI. RLC PDUs are stamped at delivery, after HARQ, so they
//! are traced through the HARQ process back to the TTI of the block's first transmission,
//! when the data left the queue.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::radio::lte_bandwidth_at_least;
use airmile_model::window::{SegmentTti, Slot};
use airmile_model::{CellInfo, Grant, Hole, NrStats, RlcMode, RlcPdu, TtiIndex, TtiSpan};
use smallvec::SmallVec;

use super::counters::{CountedBlocks, PaddingCounters};
use super::poll_model::{BearerCounters, PduLite};
use super::tti_row::TtiRow;
use crate::reorder::{END, ReorderBuffer};
use crate::small_map::SmallMap;

/// Maximum time to trace a HARQ process back, in ms (chosen here: a round trip of 8 ms,
/// TS 36.213, 7, times far more retransmissions than operators allow).
const HARQ_SPAN_MS: i64 = 200;
/// A carrier counts as active for this many ms after its last grant (chosen here).
const CARRIER_ACTIVE_MS: i64 = 1_000;
/// Initial capacity of data bearers (TS 36.331, 6.4: maxDRB is 11; a phone has one to
/// three).
const USUAL_BEARERS: usize = 4;

/// The collector's output, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Row(TtiRow),
    /// Records are missing in `[tti, tti + n_tti)`.
    Hole {
        segment: u32,
        tti: i64,
        n_tti: i64,
    },
}

#[derive(Debug, Clone)]
struct GrantLite {
    cell: u8,
    numerology: u8,
    at_ns: Option<i64>,
    prb: Option<u16>,
    prb_cell: Option<u16>,
    harq_id: Option<u8>,
    tb: u8,
    tbs_bytes: u32,
    padding_bytes: Option<u32>,
    mac_control_only: bool,
    retx: bool,
    failed: bool,
    /// Whether its padding comes from counters, alone or summed with other rows'.
    counted: bool,
}

/// The records of a TTI.
#[derive(Debug, Clone, Default)]
struct DownlinkTti {
    grants: SmallVec<[GrantLite; 1]>,
    pdus: SmallVec<[PduLite; 6]>,
    has_status: bool,
    hole_ttis: i64,
}

impl Slot for DownlinkTti {
    fn clear(&mut self) {
        self.grants.clear();
        self.pdus.clear();
        // Usual TTIs fit inline; larger allocations are freed.
        self.grants.shrink_to_fit();
        self.pdus.shrink_to_fit();
        self.has_status = false;
        self.hole_ttis = 0;
    }
}

#[derive(Debug, Clone, Copy)]
struct CarrierState {
    last_tti: i64,
    n_prb: Option<u16>,
    max_prb: u16,
}

/// A row whose HARQ processes may still deliver, with its PDUs.
#[derive(Debug, Clone)]
struct OpenRow {
    row: TtiRow,
    pdus: SmallVec<[PduLite; 4]>,
}

/// Assembles rows; holds records back until late ones have arrived.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    reorder: ReorderBuffer<DownlinkTti>,
    rows: RowAssembly,
    counters: PaddingCounters,
}

/// Rows that are not complete yet, and the state to complete them.
#[derive(Debug, Clone, Default)]
struct RowAssembly {
    /// First transmission of each HARQ process of a cell, per transport block.
    harq: Vec<Vec<[Option<i64>; 2]>>,
    segment: u32,
    /// Of the newest grant.
    numerology: u8,
    /// In order of TTI.
    open: VecDeque<OpenRow>,
    /// Holes not yet passed on: first TTI and length.
    holes: BTreeMap<i64, i64>,
    carriers: SmallMap<u8, CarrierState>,
    bearers: SmallMap<u8, BearerCounters>,
    /// Highest sequence number of each bearer.
    highest_sn: SmallMap<u8, u32>,
}

impl Collector {
    pub(super) fn new(lateness_ms: i64) -> Self {
        Self {
            reorder: ReorderBuffer::new(lateness_ms),
            rows: RowAssembly::default(),
            counters: PaddingCounters::default(),
        }
    }

    /// Records that arrived after the watermark had passed them.
    pub(super) const fn late_records(&self) -> u64 {
        self.reorder.late_records
    }

    /// All rows still to come are at or after this TTI; `None`: no row was passed on yet.
    pub(super) fn given_before(&self) -> Option<i64> {
        let closed = self.reorder.closed().map(|(_, tti)| tti.0);
        let open = self.rows.open.front().map(|open| open.row.tti);
        let hole = self.rows.holes.first_key_value().map(|(tti, _)| *tti);
        closed.map(|closed| [open, hole].into_iter().flatten().fold(closed, i64::min))
    }

    pub(super) fn push_grant(&mut self, grant: &Grant) {
        if !grant.rnti.is_user() {
            return;
        }
        self.rows.numerology = grant.position.numerology;
        self.reorder.set_numerology(grant.position.numerology);
        let Some(pending) = self.reorder.at((grant.position.timing_segment, grant.position.tti))
        else {
            return;
        };
        pending.grants.push(GrantLite {
            cell: grant.position.cell,
            numerology: grant.position.numerology,
            at_ns: grant.at.map(|at| at.ns),
            prb: grant.n_prb,
            prb_cell: grant.n_prb_cell,
            harq_id: grant.harq_id,
            tb: grant.tb.min(1),
            tbs_bytes: grant.tbs_bytes.unwrap_or(0),
            padding_bytes: grant.padding_bytes,
            mac_control_only: grant.data_bytes == Some(0),
            retx: is_retransmission(grant),
            failed: grant.crc_ok == Some(false),
            counted: false,
        });
        if let Some(completed) = self.counters.push_block(grant) {
            completed.iter().for_each(|counted| self.take_counted(counted));
        }
    }

    pub(super) fn push_counters(&mut self, stats: &NrStats) {
        self.counters.push_reading(stats);
    }

    /// Records the counters' padding of blocks whose TTIs are still open.
    fn take_counted(&mut self, counted: &CountedBlocks) {
        let known = match (counted.padding_bytes, counted.blocks.len()) {
            (0, _) => Some(0),
            (padding, 1) => Some(u32::try_from(padding).unwrap_or(u32::MAX)),
            _ => None,
        };
        for block in &counted.blocks {
            let Some(pending) = self.reorder.at(block.at) else { continue };
            let of_block = |g: &&mut GrantLite| {
                (g.cell, g.tb, g.failed) == (block.cell, block.tb, false)
                    && g.padding_bytes.is_none()
            };
            if let Some(grant) = pending.grants.iter_mut().find(of_block) {
                grant.padding_bytes = known;
                grant.counted = true;
            }
        }
    }

    pub(super) fn push_rlc(&mut self, pdu: &RlcPdu) {
        if pdu.signalling == Some(true) || pdu.mode == RlcMode::Tm {
            return;
        }
        let Some(pending) = self.reorder.at((pdu.position.timing_segment, pdu.position.tti)) else {
            return;
        };
        if pdu.status {
            pending.has_status = true;
        } else {
            pending.pdus.push(PduLite {
                bearer: pdu.bearer,
                sn: pdu.sn,
                size_bytes: pdu.size_bytes,
                poll: if pdu.mode == RlcMode::Am { pdu.poll } else { None },
                resegment: pdu.resegment,
            });
        }
    }

    pub(super) fn push_hole(&mut self, hole: &Hole) {
        let at = (hole.position.timing_segment, hole.position.tti);
        if let Some(pending) = self.reorder.at(at) {
            pending.hole_ttis = pending.hole_ttis.max(hole.n_tti);
        }
    }

    pub(super) fn push_cell_info(&mut self, info: &CellInfo) {
        if let Some(n_prb) = info.n_prb_dl {
            self.rows.carrier(info.cell).n_prb = Some(n_prb);
        }
    }

    /// Passes on the rows that no record within the allowed lateness can change.
    pub(super) fn drain(&mut self, give: &mut impl FnMut(Item)) {
        if let Some(mark) = self.reorder.mark() {
            self.close_before(mark, give);
        }
    }

    /// Ends the log: passes on the remaining rows.
    pub(super) fn finish(&mut self, give: &mut impl FnMut(Item)) {
        for counted in self.counters.finish() {
            self.take_counted(&counted);
        }
        self.close_before(END, give);
        self.rows.emit(i64::MAX, give);
    }

    fn close_before(&mut self, mark: SegmentTti, give: &mut impl FnMut(Item)) {
        while let Some(((segment, TtiIndex(tti)), pending)) = self.reorder.first_before(mark) {
            self.rows.enter(segment, give);
            self.rows.place(tti, pending);
            self.reorder.remove_first();
            let span = TtiSpan::from_ms(HARQ_SPAN_MS, self.rows.numerology);
            self.rows.emit(tti.saturating_sub(span.0), give);
        }
    }
}

impl RowAssembly {
    /// Enters the timing segment of the next TTI.
    fn enter(&mut self, segment: u32, give: &mut impl FnMut(Item)) {
        if segment != self.segment {
            self.emit(i64::MAX, give);
            self.segment = segment;
            // A new cell or timing: HARQ and RLC restart (TS 36.331, 5.3.5.4).
            self.harq.clear();
            self.bearers.clear(USUAL_BEARERS);
            self.highest_sn.clear(USUAL_BEARERS);
        }
    }

    fn place(&mut self, tti: i64, pending: &mut DownlinkTti) {
        // Order of arrival within a TTI has no meaning.
        if pending.grants.len() > 1 {
            pending.grants.sort_by_key(|g| (g.cell, g.harq_id, g.tb, g.retx));
        }
        if pending.hole_ttis > 0 {
            self.holes.insert(tti, pending.hole_ttis);
        }
        let origins = self.place_grants(tti, &pending.grants);
        if pending.has_status {
            let origin = origins.map_or(tti, |(_, youngest)| youngest);
            if let Some(open) = self.open_row(origin) {
                open.row.has_status = true;
            }
        }
        for pdu in &pending.pdus {
            let origin = self.origin_of(pdu, origins).unwrap_or(tti);
            match self.open_row(origin) {
                Some(open) => open.pdus.push(*pdu),
                None => self.row_of_now(tti).pdus.push(*pdu),
            }
        }
    }

    /// Fills the row of `tti`; returns the oldest and the youngest TTI of the first
    /// transmissions of the blocks received.
    fn place_grants(&mut self, tti: i64, grants: &[GrantLite]) -> Option<(i64, i64)> {
        if grants.is_empty() {
            return None;
        }
        let mut origins: Option<(i64, i64)> = None;
        let mut row = TtiRow::new(self.segment, tti);
        fill_row(&mut row, grants, self.active_prb(tti, grants));
        self.open.push_back(OpenRow { row, pdus: SmallVec::new() });
        for grant in grants {
            let Some(origin) = self.first_transmission(tti, grant).filter(|_| !grant.failed) else {
                continue;
            };
            if origin != tti
                && let Some(open) = self.open_row(origin)
            {
                open.row.learn_content(grant.padding_bytes, grant.mac_control_only);
                open.row.counted |= grant.counted;
            }
            let (oldest, youngest) = origins.unwrap_or((origin, origin));
            origins = Some((oldest.min(origin), youngest.max(origin)));
        }
        origins
    }

    /// When a block was first sent; records first transmissions.
    fn first_transmission(&mut self, tti: i64, grant: &GrantLite) -> Option<i64> {
        let Some(harq_id) = grant.harq_id else { return (!grant.retx).then_some(tti) };
        let (cell, process) = (usize::from(grant.cell), usize::from(harq_id));
        if self.harq.len() <= cell {
            self.harq.resize_with(cell + 1, Vec::new);
        }
        let processes = &mut self.harq[cell];
        if processes.len() <= process {
            processes.resize(process + 1, [None; 2]);
        }
        let process = &mut processes[process];
        let tb = usize::from(grant.tb);
        if grant.retx {
            process[tb].or(process[0]).or(process[1])
        } else {
            process[tb] = Some(tti);
            Some(tti)
        }
    }

    /// The open row of a TTI; usually one of the last.
    fn open_row(&mut self, tti: i64) -> Option<&mut OpenRow> {
        let at = self.open.iter().rposition(|open| open.row.tti <= tti)?;
        self.open.get_mut(at).filter(|open| open.row.tti == tti)
    }

    /// The row of the current TTI: the last one, created if needed.
    fn row_of_now(&mut self, tti: i64) -> &mut OpenRow {
        if self.open.back().is_none_or(|open| open.row.tti != tti) {
            let row = TtiRow::new(self.segment, tti);
            self.open.push_back(OpenRow { row, pdus: SmallVec::new() });
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// The first transmission that delivered a PDU. If several blocks were received at
    /// once, new sequence numbers belong to the most recent.
    fn origin_of(&mut self, pdu: &PduLite, origins: Option<(i64, i64)>) -> Option<i64> {
        let (oldest, youngest) = origins?;
        let Some(sn) = pdu.sn else { return Some(youngest) };
        let highest = self.highest_sn.or_insert_with(pdu.bearer, || sn);
        // Half the smallest AM sequence space (TS 36.322, 7.2).
        let ahead = sn.wrapping_sub(*highest) % 1024 <= 512;
        if ahead {
            *highest = sn;
        }
        Some(if ahead { youngest } else { oldest })
    }

    fn carrier(&mut self, cell: u8) -> &mut CarrierState {
        let seen_nothing = || CarrierState { last_tti: i64::MIN, n_prb: None, max_prb: 0 };
        self.carriers.or_insert_with(cell, seen_nothing)
    }

    fn active_prb(&mut self, tti: i64, grants: &[GrantLite]) -> u32 {
        let of = |carrier: &CarrierState| {
            let seen = || lte_bandwidth_at_least(carrier.max_prb).unwrap_or(carrier.max_prb);
            u32::from(carrier.n_prb.unwrap_or_else(seen))
        };
        for grant in grants {
            let carrier = self.carrier(grant.cell);
            carrier.last_tti = carrier.last_tti.max(tti);
            carrier.n_prb = grant.prb_cell.or(carrier.n_prb);
            carrier.max_prb = carrier.max_prb.max(grant.prb.unwrap_or(0));
        }
        let active = TtiSpan::from_ms(CARRIER_ACTIVE_MS, self.numerology).0;
        let since = tti.saturating_sub(active);
        self.carriers.values().filter(|carrier| carrier.last_tti > since).map(of).sum()
    }

    fn emit(&mut self, before: i64, give: &mut impl FnMut(Item)) {
        while let Some(open) = self.open.front() {
            if open.row.tti >= before && before != i64::MAX {
                break;
            }
            let tti = open.row.tti;
            if !self.holes.is_empty() {
                self.emit_holes(tti, give);
            }
            // In place: a row is large, so it is moved once.
            let Some(OpenRow { row, pdus }) = self.open.front_mut() else { break };
            row.rlc_bytes = pdus.iter().map(|p| p.size_bytes).fold(0, u32::saturating_add);
            BearerCounters::advance(&mut self.bearers, pdus, &mut row.marks);
            let Some(open) = self.open.pop_front() else { break };
            give(Item::Row(open.row));
        }
        if before == i64::MAX {
            self.emit_holes(i64::MAX, give);
        }
    }

    /// Passes on holes that begin at or before `tti`, before the row there.
    fn emit_holes(&mut self, tti: i64, give: &mut impl FnMut(Item)) {
        while let Some(entry) = self.holes.first_entry() {
            if *entry.key() > tti {
                break;
            }
            let (tti, n_tti) = entry.remove_entry();
            give(Item::Hole { segment: self.segment, tti, n_tti });
        }
    }
}

/// Fills in the grants' fields; grants are in order of cell.
fn fill_row(row: &mut TtiRow, grants: &[GrantLite], prb_cell: u32) {
    row.has_grant = true;
    row.prb_cell = prb_cell;
    // By cell: `n_prb` is the whole assignment's, repeated on each of its blocks.
    let mut prb: Option<(u8, u16, u32)> = None;
    for grant in grants {
        row.at_ns = row.at_ns.or(grant.at_ns);
        row.numerology = grant.numerology;
        if let Some(n) = grant.prb {
            prb = Some(match prb {
                Some((cell, most, before)) if cell == grant.cell => (cell, most.max(n), before),
                Some((_, most, before)) => (grant.cell, n, before + u32::from(most)),
                None => (grant.cell, n, 0),
            });
        }
        if !grant.retx {
            row.new_data = true;
            row.tbs_bytes = row.tbs_bytes.saturating_add(grant.tbs_bytes);
            row.new_blocks = row.new_blocks.saturating_add(1);
        }
    }
    for grant in grants.iter().filter(|grant| !grant.retx) {
        row.learn_content(grant.padding_bytes, grant.mac_control_only);
        row.counted |= grant.counted;
    }
    row.prb = prb.map(|(_, most, before)| before + u32::from(most));
}

/// Whether a block carries no new data. If the source does not show it: MCS 29 to 31 are
/// for retransmissions only (TS 36.213, 7.1.7.1), and a first transmission has redundancy
/// version 0 (TS 36.321, 5.4.2.2).
fn is_retransmission(grant: &Grant) -> bool {
    grant.retx.unwrap_or_else(|| {
        grant.mcs.is_some_and(|mcs| mcs >= 29) || grant.rv.is_some_and(|rv| rv != 0)
    })
}
