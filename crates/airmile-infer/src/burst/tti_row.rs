//! From single records to one row per scheduled TTI.
//!
//! Blocks are keyed by their TTI; RLC PDUs are stamped at delivery, after
//! HARQ, so they are traced through the HARQ process back to the TTI of the
//! block's first transmission, which is when the data left the queue.

use std::collections::BTreeMap;

use airmile_model::radio::lte_bandwidth_at_least;
use airmile_model::{CellInfo, Grant, Hole, RlcMode, RlcPdu};

use super::poll_model::{BearerCounters, PduLite, PollMark};

/// How far back a HARQ process is traced, in TTIs (chosen here: 8 TTIs round
/// trip, TS 36.213, 7, times far more retransmissions than operators allow).
const HARQ_SPAN_TTIS: i64 = 200;
/// A carrier counts as active for so long after its last grant (chosen here).
const CARRIER_ACTIVE_TTIS: i64 = 1_000;
/// A block of which all but so many bytes is padding holds RLC STATUS or MAC
/// control only (a STATUS PDU is 2 bytes and more, TS 36.322, 6.2.1.6; a user's
/// smallest IP packet is 20 bytes).
const CONTROL_BYTES: u32 = 12;

/// One scheduled TTI of the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TtiRow {
    pub segment: u32,
    pub tti: i64,
    pub at_ns: Option<i64>,
    pub numerology: u8,
    /// PRB pairs over all carriers; `None` where only higher layers saw the block.
    pub prb: Option<u32>,
    /// PRB pairs of all carriers active then.
    pub prb_cell: u32,
    /// Bytes of the blocks sent for the first time.
    pub tbs_bytes: u32,
    /// Padding of those blocks; `None` unless known for each.
    pub padding_bytes: Option<u32>,
    /// Whether a grant was seen (RLC may be logged alone).
    pub has_grant: bool,
    /// Whether a block was sent for the first time.
    pub new_data: bool,
    /// A STATUS PDU was in it.
    pub has_status: bool,
    /// RLC data bytes, headers included.
    pub rlc_bytes: u32,
    /// Its data bearers' last PDUs.
    pub marks: Vec<PollMark>,
    /// Blocks sent for the first time.
    new_blocks: u8,
    /// Padding of those blocks that it is known of.
    known_padding: u32,
    /// Of them, those whose padding is known.
    padded_blocks: u8,
    /// Of them, those in which MAC says that no data bearer was.
    control_blocks: u8,
}

impl TtiRow {
    fn new(segment: u32, tti: i64) -> Self {
        Self {
            segment,
            tti,
            at_ns: None,
            numerology: 0,
            prb: None,
            prb_cell: 0,
            tbs_bytes: 0,
            padding_bytes: None,
            has_grant: false,
            new_data: false,
            has_status: false,
            rlc_bytes: 0,
            marks: Vec::new(),
            new_blocks: 0,
            known_padding: 0,
            padded_blocks: 0,
            control_blocks: 0,
        }
    }

    /// Learns what was in one of its new blocks. A modem logs that only once
    /// the block has passed, so for some of them with a HARQ retransmission.
    fn learn_content(&mut self, padding_bytes: Option<u32>, mac_control_only: bool) {
        if let Some(padding) = padding_bytes
            && self.padded_blocks < self.new_blocks
        {
            self.padded_blocks += 1;
            self.known_padding = self.known_padding.saturating_add(padding);
        }
        if mac_control_only && self.control_blocks < self.new_blocks {
            self.control_blocks += 1;
        }
        let all = self.new_data && self.padded_blocks == self.new_blocks;
        self.padding_bytes = all.then_some(self.known_padding);
    }

    /// Whether it may hold user data, by what MAC and sizes say.
    pub(super) fn may_hold_data(&self) -> bool {
        let filled = self.padding_bytes.map(|padding| self.tbs_bytes.saturating_sub(padding));
        let control_only = self.control_blocks == self.new_blocks;
        self.new_data && !control_only && filled.is_none_or(|bytes| bytes > CONTROL_BYTES)
    }

    /// Data bytes: by RLC where it was logged, else what is not padding.
    pub(super) fn data_bytes(&self) -> u64 {
        if self.rlc_bytes > 0 {
            self.rlc_bytes.into()
        } else {
            self.tbs_bytes.saturating_sub(self.padding_bytes.unwrap_or(0)).into()
        }
    }

    /// Share of the active carriers' PRBs.
    pub(super) fn prb_fraction(&self) -> Option<f64> {
        let prb = self.prb?;
        (self.prb_cell > 0).then(|| f64::from(prb) / f64::from(self.prb_cell))
    }
}

/// What leaves the collector, in order.
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
}

#[derive(Debug, Clone, Default)]
struct Pending {
    grants: Vec<GrantLite>,
    pdus: Vec<PduLite>,
    has_status: bool,
    hole_ttis: i64,
}

#[derive(Debug, Clone, Copy)]
struct Carrier {
    last_tti: i64,
    n_prb: Option<u16>,
    max_prb: u16,
}

/// Puts rows together; holds records back until late ones have come.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    lateness_ttis: i64,
    pending: BTreeMap<(u32, i64), Pending>,
    newest: Option<(u32, i64)>,
    segment_first: i64,
    closed: Option<(u32, i64)>,
    /// First transmission of each HARQ process, per transport block.
    harq: BTreeMap<(u8, u8), [Option<i64>; 2]>,
    open_segment: u32,
    /// Rows whose HARQ processes may still deliver, with their PDUs.
    open: BTreeMap<i64, (TtiRow, Vec<PduLite>)>,
    /// Holes not yet passed on: first TTI and length.
    holes: BTreeMap<i64, i64>,
    carriers: BTreeMap<u8, Carrier>,
    bearers: BTreeMap<u8, BearerCounters>,
    highest_sn: BTreeMap<u8, u32>,
    /// Records that came after the watermark had passed them.
    pub late_records: u64,
}

impl Collector {
    pub(super) const fn new(lateness_ttis: i64) -> Self {
        Self {
            lateness_ttis,
            pending: BTreeMap::new(),
            newest: None,
            segment_first: 0,
            closed: None,
            harq: BTreeMap::new(),
            open_segment: 0,
            open: BTreeMap::new(),
            holes: BTreeMap::new(),
            carriers: BTreeMap::new(),
            bearers: BTreeMap::new(),
            highest_sn: BTreeMap::new(),
            late_records: 0,
        }
    }

    pub(super) fn push_grant(&mut self, grant: &Grant) {
        if !grant.rnti.is_user() {
            return;
        }
        let key = (grant.position.timing_segment, grant.position.tti.0);
        let lite = GrantLite {
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
        };
        if let Some(pending) = self.pending_at(key) {
            pending.grants.push(lite);
        }
    }

    pub(super) fn push_rlc(&mut self, pdu: &RlcPdu) {
        if pdu.signalling == Some(true) || pdu.mode == RlcMode::Tm {
            return;
        }
        let key = (pdu.position.timing_segment, pdu.position.tti.0);
        let Some(pending) = self.pending_at(key) else { return };
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
        let key = (hole.position.timing_segment, hole.position.tti.0);
        if let Some(pending) = self.pending_at(key) {
            pending.hole_ttis = pending.hole_ttis.max(hole.n_tti);
        }
    }

    pub(super) fn push_cell_info(&mut self, info: &CellInfo) {
        if let Some(n_prb) = info.n_prb_dl {
            let carrier = self.carriers.entry(info.cell).or_insert(NO_CARRIER);
            carrier.n_prb = Some(n_prb);
        }
    }

    fn pending_at(&mut self, key: (u32, i64)) -> Option<&mut Pending> {
        if self.closed.is_some_and(|closed| key < closed) {
            self.late_records += 1;
            return None;
        }
        match self.newest {
            Some(newest) if key.0 <= newest.0 => self.newest = Some(newest.max(key)),
            _ => {
                self.newest = Some(key);
                self.segment_first = key.1;
            }
        }
        Some(self.pending.entry(key).or_default())
    }

    /// Rows that no record within the allowed lateness can still change.
    pub(super) fn drain(&mut self, out: &mut Vec<Item>) {
        let Some((segment, tti)) = self.newest else { return };
        if tti.saturating_sub(self.segment_first) >= self.lateness_ttis {
            self.close_before((segment, tti - self.lateness_ttis), out);
        }
    }

    /// All that is left: the log has ended.
    pub(super) fn finish(&mut self, out: &mut Vec<Item>) {
        self.close_before((u32::MAX, i64::MAX), out);
        self.emit_open(i64::MAX, out);
    }

    fn close_before(&mut self, mark: (u32, i64), out: &mut Vec<Item>) {
        if self.closed.is_some_and(|closed| mark <= closed) {
            return;
        }
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() >= mark {
                break;
            }
            let ((segment, tti), pending) = entry.remove_entry();
            if segment != self.open_segment {
                self.emit_open(i64::MAX, out);
                self.open_segment = segment;
                // A new cell or timing: HARQ and RLC start anew (TS 36.331, 5.3.5.4).
                self.harq.clear();
                self.bearers.clear();
                self.highest_sn.clear();
            }
            self.place(tti, pending);
            self.emit_open(tti.saturating_sub(HARQ_SPAN_TTIS), out);
        }
        self.closed = Some(mark);
    }

    fn place(&mut self, tti: i64, mut pending: Pending) {
        // Order of arrival within a TTI says nothing.
        pending.grants.sort_by_key(|g| (g.cell, g.harq_id, g.tb, g.retx));
        if pending.hole_ttis > 0 {
            self.holes.insert(tti, pending.hole_ttis);
        }
        let segment = self.open_segment;
        let mut origins: Vec<i64> = Vec::new();
        if !pending.grants.is_empty() {
            let prb_cell = self.active_prb(tti, &pending.grants);
            let row = &mut self
                .open
                .entry(tti)
                .or_insert_with(|| (TtiRow::new(segment, tti), Vec::new()))
                .0;
            fill_row(row, &pending.grants, prb_cell);
            for grant in &pending.grants {
                let origin = match grant.harq_id {
                    None if grant.retx => None,
                    None => Some(tti),
                    Some(harq_id) => {
                        let process = self.harq.entry((grant.cell, harq_id)).or_default();
                        if grant.retx {
                            process[usize::from(grant.tb)].or(process[0]).or(process[1])
                        } else {
                            process[usize::from(grant.tb)] = Some(tti);
                            Some(tti)
                        }
                    }
                };
                if let Some(origin) = origin.filter(|&origin| origin != tti && !grant.failed)
                    && let Some((row, _)) = self.open.get_mut(&origin)
                {
                    row.learn_content(grant.padding_bytes, grant.mac_control_only);
                }
                if let Some(origin) = origin.filter(|_| !grant.failed)
                    && !origins.contains(&origin)
                {
                    origins.push(origin);
                }
            }
        }
        origins.sort_unstable();
        if pending.has_status {
            let origin = origins.last().copied().unwrap_or(tti);
            if let Some((row, _)) = self.open.get_mut(&origin) {
                row.has_status = true;
            }
        }
        for pdu in pending.pdus {
            let origin = self.origin_of(&pdu, &origins).unwrap_or(tti);
            let origin = if self.open.contains_key(&origin) { origin } else { tti };
            let (_, pdus) =
                self.open.entry(origin).or_insert_with(|| (TtiRow::new(segment, tti), Vec::new()));
            pdus.push(pdu);
        }
    }

    /// The first transmission that delivered a PDU. Where several blocks came
    /// in at once, new sequence numbers belong to the youngest.
    fn origin_of(&mut self, pdu: &PduLite, origins: &[i64]) -> Option<i64> {
        let (Some(&oldest), Some(&youngest)) = (origins.first(), origins.last()) else {
            return None;
        };
        let Some(sn) = pdu.sn else { return Some(youngest) };
        let highest = self.highest_sn.entry(pdu.bearer).or_insert(sn);
        // Half the smallest AM sequence space (TS 36.322, 7.2).
        let ahead = sn.wrapping_sub(*highest) % 1024 <= 512;
        if ahead {
            *highest = sn;
        }
        Some(if ahead { youngest } else { oldest })
    }

    fn active_prb(&mut self, tti: i64, grants: &[GrantLite]) -> u32 {
        for grant in grants {
            let carrier = self.carriers.entry(grant.cell).or_insert(NO_CARRIER);
            carrier.last_tti = carrier.last_tti.max(tti);
            carrier.n_prb = grant.prb_cell.or(carrier.n_prb);
            carrier.max_prb = carrier.max_prb.max(grant.prb.unwrap_or(0));
        }
        self.carriers
            .values()
            .filter(|c| c.last_tti > tti.saturating_sub(CARRIER_ACTIVE_TTIS))
            .map(|c| {
                u32::from(
                    c.n_prb.or_else(|| lte_bandwidth_at_least(c.max_prb)).unwrap_or(c.max_prb),
                )
            })
            .sum()
    }

    fn emit_open(&mut self, before: i64, out: &mut Vec<Item>) {
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() >= before && before != i64::MAX {
                break;
            }
            let (mut row, pdus) = entry.remove();
            self.emit_holes(row.tti, out);
            row.rlc_bytes = pdus.iter().map(|p| p.size_bytes).fold(0, u32::saturating_add);
            row.marks = BearerCounters::advance(&mut self.bearers, pdus);
            out.push(Item::Row(row));
        }
        if before == i64::MAX {
            self.emit_holes(i64::MAX, out);
        }
    }

    /// Holes that begin at or before `tti`: they go ahead of the row there.
    fn emit_holes(&mut self, tti: i64, out: &mut Vec<Item>) {
        while let Some(entry) = self.holes.first_entry() {
            if *entry.key() > tti {
                break;
            }
            let (tti, n_tti) = entry.remove_entry();
            out.push(Item::Hole { segment: self.open_segment, tti, n_tti });
        }
    }
}

const NO_CARRIER: Carrier = Carrier { last_tti: i64::MIN, n_prb: None, max_prb: 0 };

fn fill_row(row: &mut TtiRow, grants: &[GrantLite], prb_cell: u32) {
    row.has_grant = true;
    row.prb_cell = prb_cell;
    let mut prb_by_cell: BTreeMap<u8, u16> = BTreeMap::new();
    for grant in grants {
        row.at_ns = row.at_ns.or(grant.at_ns);
        row.numerology = grant.numerology;
        if let Some(prb) = grant.prb {
            let n = prb_by_cell.entry(grant.cell).or_default();
            *n = (*n).max(prb);
        }
        if !grant.retx {
            row.new_data = true;
            row.tbs_bytes = row.tbs_bytes.saturating_add(grant.tbs_bytes);
            row.new_blocks = row.new_blocks.saturating_add(1);
        }
    }
    for grant in grants.iter().filter(|grant| !grant.retx) {
        row.learn_content(grant.padding_bytes, grant.mac_control_only);
    }
    row.prb = (!prb_by_cell.is_empty()).then(|| prb_by_cell.values().map(|&n| u32::from(n)).sum());
}

/// Whether a block carries no new data. Where the source does not say: MCS 29
/// to 31 only order retransmissions (TS 36.213, 7.1.7.1), and a first
/// transmission has redundancy version 0 (TS 36.321, 5.4.2.2).
fn is_retransmission(grant: &Grant) -> bool {
    grant.retx.unwrap_or_else(|| {
        grant.mcs.is_some_and(|mcs| mcs >= 29) || grant.rv.is_some_and(|rv| rv != 0)
    })
}
