//! Collects the records of each TTI.
//!
//! Records wait until late ones have arrived; then the blocks of a TTI are
//! [placed](super::placing) in rows.

use airmile_model::window::{SegmentTti, Slot};
use airmile_model::{CellInfo, Grant, Hole, NrStats, RlcMode, RlcPdu, TtiIndex};
use smallvec::SmallVec;

use super::counters::{CountedBlocks, PaddingCounters};
use super::grants::GrantLite;
use super::placing::{RowAssembly, RowSink};
use super::poll_model::PduLite;
use crate::reorder::{END, ReorderBuffer};

/// The records of a TTI.
#[derive(Debug, Clone, Default)]
pub(super) struct DownlinkTti {
    pub grants: SmallVec<[GrantLite; 1]>,
    pub pdus: SmallVec<[PduLite; 6]>,
    pub has_status: bool,
    pub hole_ttis: i64,
}

impl Slot for DownlinkTti {
    #[inline]
    fn clear(&mut self) {
        // Usual TTIs fit inline; larger allocations are freed.
        self.grants = SmallVec::new();
        self.pdus = SmallVec::new();
        self.has_status = false;
        self.hole_ttis = 0;
    }
}

/// Assembles rows; holds records back until late ones have arrived.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    reorder: ReorderBuffer<DownlinkTti>,
    rows: RowAssembly,
    counters: PaddingCounters,
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
        closed.map(|closed| self.rows.first_tti().map_or(closed, |first| closed.min(first)))
    }

    pub(super) fn push_grant(&mut self, grant: &Grant) {
        if !grant.rnti.is_user() {
            return;
        }
        let numerology = grant.position.numerology;
        if numerology != self.rows.numerology() {
            self.rows.set_numerology(numerology);
            self.reorder.set_numerology(numerology);
        }
        let Some(pending) = self.reorder.at((grant.position.timing_segment, grant.position.tti))
        else {
            return;
        };
        pending.grants.push(GrantLite::new(grant));
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
            self.rows.set_bandwidth(info.cell, n_prb);
        }
    }

    /// Passes on the rows that no record within the allowed lateness can change.
    pub(super) fn drain(&mut self, sink: &mut impl RowSink) {
        if let Some(mark) = self.reorder.mark() {
            self.close_before(mark, sink);
        }
    }

    /// Ends the log: passes on the remaining rows.
    pub(super) fn finish(&mut self, sink: &mut impl RowSink) {
        for counted in self.counters.finish() {
            self.take_counted(&counted);
        }
        self.close_before(END, sink);
        self.rows.finish(sink);
    }

    fn close_before(&mut self, mark: SegmentTti, sink: &mut impl RowSink) {
        while let Some(((segment, TtiIndex(tti)), pending)) = self.reorder.first_before(mark) {
            self.rows.take_tti(segment, tti, pending, sink);
            self.reorder.remove_first();
        }
    }
}
