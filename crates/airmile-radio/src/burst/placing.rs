//! Places the records of scheduled TTIs, and passes each of these on in order.
//!
//! Blocks are keyed by their TTI. RLC PDUs are stamped at delivery, after HARQ, so they
//! are traced through the HARQ process back to the TTI of the block's first transmission,
//! when the data left the queue.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::TtiSpan;
use airmile_model::radio::lte_bandwidth_at_least;
use smallvec::SmallVec;

use super::grants::{GrantLite, GrantSummary};
use super::poll_model::{BearerCounters, PduLite};
use super::tti_row::{PlainTti, TtiRow};
use super::waiting::{Timed, TtiExtras};
use crate::small_map::SmallMap;

/// Maximum time to trace a HARQ process back, in ms (chosen here: a round trip of 8 ms,
/// TS 36.213, 7, times far more retransmissions than operators allow).
const HARQ_SPAN_MS: i64 = 200;
/// A carrier counts as active for this many ms after its last grant (chosen here).
const CARRIER_ACTIVE_MS: i64 = 1_000;
/// Initial capacity of data bearers (TS 36.331, 6.4: maxDRB is 11; a phone has one to
/// three).
const USUAL_BEARERS: usize = 4;

/// Takes the collector's output, in order.
pub(super) trait RowSink {
    /// A scheduled TTI.
    fn take_row(&mut self, row: TtiRow);
    /// A scheduled TTI that leaves data.
    fn take_plain(&mut self, tti: &PlainTti<'_>);
    /// Records are missing in `[tti, tti + n_tti)`.
    fn take_hole(&mut self, segment: u32, tti: i64, n_tti: i64);
}

#[derive(Debug, Clone, PartialEq)]
struct CarrierState {
    /// First transmission of each HARQ process, per transport block.
    harq: Vec<[Option<i64>; 2]>,
    last_tti: i64,
    n_prb: Option<u16>,
    max_prb: u16,
}

impl Default for CarrierState {
    fn default() -> Self {
        Self { harq: Vec::new(), last_tti: i64::MIN, n_prb: None, max_prb: 0 }
    }
}

impl CarrierState {
    #[inline]
    fn take(&mut self, tti: i64, grant: &GrantLite) {
        self.last_tti = self.last_tti.max(tti);
        self.n_prb = grant.prb_cell.or(self.n_prb);
        self.max_prb = self.max_prb.max(grant.prb.unwrap_or(0));
    }

    /// Its PRB pairs, if it was active within a span before a TTI; if not logged, those of the
    /// smallest bandwidth that has its grants'.
    #[inline]
    fn prb_within(&self, span: TtiSpan, tti: i64) -> u32 {
        if self.last_tti < tti && tti.saturating_sub(self.last_tti) >= span.0 {
            return 0;
        }
        let seen = || lte_bandwidth_at_least(self.max_prb).unwrap_or(self.max_prb);
        self.n_prb.unwrap_or_else(seen).into()
    }

    /// When a block was first sent; records first transmissions.
    fn first_transmission(&mut self, tti: i64, grant: &GrantLite) -> Option<i64> {
        if !grant.retx {
            self.send_first(tti, grant);
            return Some(tti);
        }
        let process = self.harq.get(usize::from(grant.harq_id?))?;
        process[usize::from(grant.tb)].or(process[0]).or(process[1])
    }

    /// Records a first transmission.
    #[inline]
    fn send_first(&mut self, tti: i64, grant: &GrantLite) {
        let Some(harq_id) = grant.harq_id.map(usize::from) else { return };
        match self.harq.get_mut(harq_id) {
            Some(process) => process[usize::from(grant.tb)] = Some(tti),
            None => self.add_process(harq_id)[usize::from(grant.tb)] = Some(tti),
        }
    }

    #[cold]
    fn add_process(&mut self, harq_id: usize) -> &mut [Option<i64>; 2] {
        self.harq.resize(harq_id + 1, [None; 2]);
        &mut self.harq[harq_id]
    }
}

/// A scheduled TTI whose HARQ processes may still deliver.
#[derive(Debug, Clone, PartialEq)]
struct OpenRow {
    tti: i64,
    grants: GrantSummary,
    has_status: bool,
    pdus: SmallVec<[PduLite; 2]>,
}

/// Rows that are not complete yet, and the state to complete them.
#[derive(Debug, Clone, Default)]
pub(super) struct RowAssembly {
    segment: u32,
    spans: Spans,
    /// In order of TTI.
    open: VecDeque<OpenRow>,
    /// HARQ delivered no more to rows before this TTI when rows were last passed on.
    complete_before: Option<i64>,
    /// The last TTI that was placed since then.
    placed: Option<i64>,
    /// Holes not yet passed on: first TTI and length.
    holes: BTreeMap<i64, i64>,
    carriers: SmallMap<u8, CarrierState>,
    bearers: SmallMap<u8, BearerCounters>,
    /// Highest sequence number of each bearer.
    highest_sn: SmallMap<u8, u32>,
}

/// Lengths of time in TTIs of the newest grant's numerology.
#[derive(Debug, Clone, Copy)]
struct Spans {
    numerology: u8,
    /// [`HARQ_SPAN_MS`].
    harq: TtiSpan,
    /// [`CARRIER_ACTIVE_MS`].
    carrier_active: TtiSpan,
}

impl Spans {
    const fn new(numerology: u8) -> Self {
        Self {
            numerology,
            harq: TtiSpan::from_ms(HARQ_SPAN_MS, numerology),
            carrier_active: TtiSpan::from_ms(CARRIER_ACTIVE_MS, numerology),
        }
    }
}

impl Default for Spans {
    fn default() -> Self {
        Self::new(0)
    }
}

impl RowAssembly {
    pub(super) const fn numerology(&self) -> u8 {
        self.spans.numerology
    }

    /// Takes the numerology of a grant.
    pub(super) const fn set_numerology(&mut self, numerology: u8) {
        self.spans = Spans::new(numerology);
    }

    /// Takes the logged PRB pairs of a cell.
    pub(super) fn set_bandwidth(&mut self, cell: u8, n_prb: u16) {
        self.carrier(cell).n_prb = Some(n_prb);
    }

    /// The first TTI of what is not passed on yet.
    pub(super) fn first_tti(&self) -> Option<i64> {
        let open = self.open.front().map(|open| open.tti);
        let hole = self.holes.first_key_value().map(|(tti, _)| *tti);
        [open, hole].into_iter().flatten().min()
    }

    /// HARQ delivers no more to rows before this TTI.
    fn complete_before(&self) -> Option<i64> {
        let before = self.placed.map(|tti| tti.saturating_sub(self.spans.harq.0));
        before.or(self.complete_before)
    }

    /// Passes on the rows to which HARQ delivers no more.
    pub(super) fn pass_on(&mut self, sink: &mut impl RowSink) {
        self.complete_before = self.complete_before();
        self.placed = None;
        if let Some(before) = self.complete_before {
            self.emit(before, sink);
        }
    }

    /// Ends the log: passes on the remaining rows.
    pub(super) fn finish(&mut self, sink: &mut impl RowSink) {
        self.emit(i64::MAX, sink);
    }

    /// Enters the timing segment of the next TTI.
    #[inline]
    pub(super) fn enter(&mut self, segment: u32, sink: &mut impl RowSink) {
        if segment != self.segment {
            self.restart(segment, sink);
        }
    }

    /// A new cell or timing: HARQ and RLC restart (TS 36.331, 5.3.5.4).
    #[cold]
    fn restart(&mut self, segment: u32, sink: &mut impl RowSink) {
        self.emit(i64::MAX, sink);
        self.segment = segment;
        (self.complete_before, self.placed) = (None, None);
        self.carriers.values_mut().for_each(|carrier| carrier.harq.clear());
        self.bearers.clear(USUAL_BEARERS);
        self.highest_sn.clear(USUAL_BEARERS);
    }

    /// Takes the records of the next TTI.
    #[inline(always)]
    pub(super) fn place(
        &mut self,
        tti: i64,
        grants: &mut [Timed<GrantLite>],
        pdus: &[Timed<PduLite>],
        extras: TtiExtras,
    ) {
        match grants {
            [grant] if !grant.of.retx && !extras.has_status && extras.hole_ttis == 0 => {
                self.place_lone(tti, &grant.of, pdus);
            }
            _ => self.place_any(tti, grants, pdus, extras),
        }
        self.placed = Some(tti);
    }

    #[inline(never)]
    fn place_any(
        &mut self,
        tti: i64,
        grants: &mut [Timed<GrantLite>],
        pdus: &[Timed<PduLite>],
        extras: TtiExtras,
    ) {
        // Order of arrival within a TTI has no meaning.
        if grants.len() > 1 {
            let key = |g: &GrantLite| (g.cell, g.harq_id, g.tb, g.retx);
            grants.sort_by_key(|grant| key(&grant.of));
        }
        if extras.hole_ttis > 0 {
            self.holes.insert(tti, extras.hole_ttis);
        }
        let origins = self.place_grants(tti, grants);
        if extras.has_status {
            let origin = origins.map_or(tti, |(_, youngest)| youngest);
            if let Some(open) = self.open_row(origin) {
                open.has_status = true;
            }
        }
        for Timed { of: pdu, .. } in pdus {
            let origin = self.origin_of(pdu, origins).unwrap_or(tti);
            match self.open_row(origin) {
                Some(open) => open.pdus.push(*pdu),
                None => self.row_of_now(tti).pdus.push(*pdu),
            }
        }
    }

    /// As [`place_any`](Self::place_any), for a TTI of one block that is sent for the first time: its
    /// PDUs are those of its own row.
    #[inline(always)]
    fn place_lone(&mut self, tti: i64, grant: &GrantLite, pdus: &[Timed<PduLite>]) {
        let span = self.spans.carrier_active;
        let carrier = self.carrier(grant.cell);
        carrier.take(tti, grant);
        carrier.send_first(tti, grant);
        let own_prb = carrier.prb_within(span, tti);
        let prb_cell = match self.carriers.len() {
            1 => own_prb,
            _ => self.active_prb(tti, &[]),
        };
        if !grant.failed {
            for Timed { of: pdu, .. } in pdus {
                if let Some(sn) = pdu.sn {
                    self.is_ahead(pdu.bearer, sn);
                }
            }
        }
        let own_pdus = match pdus {
            [pdu] => SmallVec::from_buf_and_len([pdu.of; 2], 1),
            [first, second] => SmallVec::from_buf([first.of, second.of]),
            [] => SmallVec::new(),
            pdus => pdus.iter().map(|pdu| pdu.of).collect(),
        };
        let grants = GrantSummary::of_lone(grant, prb_cell);
        self.open.push_back(OpenRow { tti, grants, has_status: false, pdus: own_pdus });
    }

    /// Adds the row of `tti`; returns the oldest and the youngest TTI of the first
    /// transmissions of the blocks received.
    fn place_grants(&mut self, tti: i64, grants: &[Timed<GrantLite>]) -> Option<(i64, i64)> {
        if grants.is_empty() {
            return None;
        }
        let mut origins: Option<(i64, i64)> = None;
        let summary =
            GrantSummary::of(grants.iter().map(|grant| &grant.of), self.active_prb(tti, grants));
        self.add_row(tti, summary);
        for Timed { of: grant, .. } in grants {
            let origin = self.carrier(grant.cell).first_transmission(tti, grant);
            let Some(origin) = origin.filter(|_| !grant.failed) else { continue };
            if origin != tti
                && let Some(open) = self.open_row(origin)
            {
                open.grants.receive_later(grant);
            }
            let (oldest, youngest) = origins.unwrap_or((origin, origin));
            origins = Some((oldest.min(origin), youngest.max(origin)));
        }
        origins
    }

    /// The open row of a TTI, unless it is complete; usually one of the last.
    fn open_row(&mut self, tti: i64) -> Option<&mut OpenRow> {
        if self.complete_before().is_some_and(|before| tti < before) {
            return None;
        }
        self.open.iter_mut().rfind(|open| open.tti <= tti).filter(|o| o.tti == tti)
    }

    /// The row of the current TTI: the last one, created if needed.
    fn row_of_now(&mut self, tti: i64) -> &mut OpenRow {
        if self.open.back().is_none_or(|open| open.tti != tti) {
            self.add_row(tti, GrantSummary::default());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn add_row(&mut self, tti: i64, grants: GrantSummary) {
        self.open.push_back(OpenRow { tti, grants, has_status: false, pdus: SmallVec::new() });
    }

    /// The first transmission that delivered a PDU. If several blocks were received at
    /// once, new sequence numbers belong to the most recent.
    fn origin_of(&mut self, pdu: &PduLite, origins: Option<(i64, i64)>) -> Option<i64> {
        let (oldest, youngest) = origins?;
        let Some(sn) = pdu.sn else { return Some(youngest) };
        let ahead = self.is_ahead(pdu.bearer, sn);
        Some(if ahead { youngest } else { oldest })
    }

    /// Whether a sequence number is the bearer's highest so far.
    #[inline]
    fn is_ahead(&mut self, bearer: u8, sn: u32) -> bool {
        let highest = self.highest_sn.or_insert_with(bearer, || sn);
        // Half the smallest AM sequence space (TS 36.322, 7.2).
        let ahead = sn.wrapping_sub(*highest) % 1024 <= 512;
        if ahead {
            *highest = sn;
        }
        ahead
    }

    #[inline]
    fn carrier(&mut self, cell: u8) -> &mut CarrierState {
        self.carriers.or_insert_with(cell, CarrierState::default)
    }

    /// PRB pairs of the carriers that were active lately, after the grants of a TTI.
    fn active_prb(&mut self, tti: i64, grants: &[Timed<GrantLite>]) -> u32 {
        for Timed { of: grant, .. } in grants {
            self.carrier(grant.cell).take(tti, grant);
        }
        let span = self.spans.carrier_active;
        self.carriers.values().map(|carrier| carrier.prb_within(span, tti)).sum()
    }

    fn emit(&mut self, before: i64, sink: &mut impl RowSink) {
        let is_complete = |open: &&mut OpenRow| open.tti < before || before == i64::MAX;
        let mut n_rows = 0;
        for open in self.open.iter_mut().take_while(is_complete) {
            n_rows += 1;
            if !self.holes.is_empty() {
                emit_holes(&mut self.holes, self.segment, open.tti, sink);
            }
            emit_row(open, self.segment, &mut self.bearers, sink);
        }
        self.open.drain(..n_rows);
        if before == i64::MAX {
            emit_holes(&mut self.holes, self.segment, i64::MAX, sink);
        }
    }
}

/// Passes on a row.
#[inline]
fn emit_row(
    open: &mut OpenRow,
    segment: u32,
    bearers: &mut SmallMap<u8, BearerCounters>,
    sink: &mut impl RowSink,
) {
    let (tti, has_status) = (open.tti, open.has_status);
    if let [pdu] = &open.pdus[..]
        && bearers.or_insert_with(pdu.bearer, BearerCounters::default).take_plain(pdu)
    {
        let (rlc_bytes, bearer, grants) = (pdu.size_bytes, pdu.bearer, &open.grants);
        let tti = PlainTti { segment, tti, grants, has_status, rlc_bytes, bearer };
        return sink.take_plain(&tti);
    }
    let rlc_bytes = open.pdus.iter().map(|p| p.size_bytes).fold(0, u32::saturating_add);
    let mut marks = SmallVec::new();
    // Taken, so that a long list does not wait until the queue moves.
    BearerCounters::advance(bearers, &mut std::mem::take(&mut open.pdus), &mut marks);
    let (grants, continued) = (open.grants.clone(), None);
    sink.take_row(TtiRow { segment, tti, grants, has_status, rlc_bytes, marks, continued });
}

/// Passes on holes that begin at or before `tti`, before the row there.
fn emit_holes(holes: &mut BTreeMap<i64, i64>, segment: u32, tti: i64, sink: &mut impl RowSink) {
    while let Some(entry) = holes.first_entry() {
        if *entry.key() > tti {
            break;
        }
        let (tti, n_tti) = entry.remove_entry();
        sink.take_hole(segment, tti, n_tti);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cut::CutPadding;
    use super::*;

    fn grant() -> impl Strategy<Value = GrantLite> {
        let content = (any::<[bool; 3]>(), prop::option::of(0..9_u32), 0..2_u8);
        let harq_id = prop::option::of(0..3_u8);
        let prb = (prop::option::of(0..50_u16), prop::option::of(50..51_u16));
        (0..2_u8, harq_id, prb, content).prop_map(|(cell, harq_id, (prb, prb_cell), content)| {
            let ([mac_control_only, retx, failed], padding_bytes, tb) = content;
            let (numerology, at_ns, tbs_bytes, counted) = (0, None, 100, CutPadding::default());
            GrantLite {
                cell,
                numerology,
                at_ns,
                prb,
                prb_cell,
                harq_id,
                tb,
                tbs_bytes,
                padding_bytes,
                mac_control_only,
                retx,
                failed,
                counted,
            }
        })
    }

    fn pdu() -> impl Strategy<Value = PduLite> {
        (0..2_u8, prop::option::of(0..1024_u32)).prop_map(|(bearer, sn)| {
            let (size_bytes, is_um, poll, resegment) = (90, false, Some(false), false);
            PduLite { bearer, sn, size_bytes, is_um, poll, resegment }
        })
    }

    fn timed<T>(tti: i64, records: Vec<T>) -> Vec<Timed<T>> {
        records.into_iter().map(|of| Timed { tti, of }).collect()
    }

    proptest! {
        #[test]
        fn a_lone_block_is_placed_as_any_other(
            ttis in prop::collection::vec(
                (prop::collection::vec(grant(), 0..3), prop::collection::vec(pdu(), 0..4)),
                1..60,
            ),
        ) {
            let (mut rows, mut expected) = (RowAssembly::default(), RowAssembly::default());
            for (tti, (grants, pdus)) in (0..).zip(ttis) {
                let (mut grants, pdus) = (timed(tti, grants), timed(tti, pdus));
                let mut same = grants.clone();
                expected.place_any(tti, &mut same, &pdus, TtiExtras::default());
                expected.placed = Some(tti);
                rows.place(tti, &mut grants, &pdus, TtiExtras::default());
            }
            prop_assert_eq!(&rows.open, &expected.open);
            prop_assert!(rows.carriers.values().eq(expected.carriers.values()));
            prop_assert!(rows.highest_sn.values().eq(expected.highest_sn.values()));
        }
    }
}
