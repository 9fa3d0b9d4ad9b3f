//! Collects the records of each TTI.
//!
//! Records wait until late ones have arrived; then the blocks of a TTI are
//! [placed](super::placing) in rows.

use airmile_model::window::SegmentTti;
use airmile_model::{CellInfo, Grant, Hole, NrStats, RlcMode, RlcPdu};

use super::counters::{CountedBlocks, PaddingCounters};
use super::grants::GrantLite;
use super::placing::{RowAssembly, RowSink};
use super::poll_model::PduLite;
use super::waiting::{Timed, TtiExtras, TtiSink, WaitingTtis};
use crate::reorder::{END, Watermark};

/// The watermark moves this often until the TTIs before it are placed, unless findings are asked for
/// (chosen here: what a call of each step costs is then small for each TTI).
const MOVES_AT_ONCE: u32 = 16;

/// Assembles rows; holds records back until late ones have arrived.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    watermark: Watermark,
    waiting: WaitingTtis,
    rows: RowAssembly,
    counters: PaddingCounters,
}

impl Collector {
    pub(super) fn new(lateness_ms: i64) -> Self {
        Self {
            watermark: Watermark::new(lateness_ms),
            waiting: WaitingTtis::default(),
            rows: RowAssembly::default(),
            counters: PaddingCounters::default(),
        }
    }

    /// Records that arrived after the watermark had passed them.
    pub(super) const fn late_records(&self) -> u64 {
        self.watermark.late_records
    }

    /// All rows still to come are at or after this TTI; `None`: no row was passed on yet.
    /// TTIs before the watermark must be [placed](Self::place_closed).
    pub(super) fn given_before(&self) -> Option<i64> {
        let closed = self.watermark.closed().map(|(_, tti)| tti.0);
        closed.map(|closed| self.rows.first_tti().map_or(closed, |first| closed.min(first)))
    }

    pub(super) fn push_grant(&mut self, grant: &Grant, sink: &mut impl RowSink) {
        if !grant.rnti.is_user() {
            return;
        }
        let at = (grant.position.timing_segment, grant.position.tti);
        let is_open = if grant.position.numerology == self.rows.numerology()
            && !self.counters.has_readings()
        {
            self.watermark.admits(at)
        } else {
            self.set_numerology(grant.position.numerology, sink);
            self.watermark.admits_now(at)
        };
        if !is_open {
            return;
        }
        self.waiting.push_grant(at, grant);
        if let Some(completed) = self.counters.push_block(grant) {
            completed.iter().for_each(|counted| self.take_counted(counted));
        }
    }

    /// Takes the numerology of a grant. What closes by then does not depend on it.
    #[inline(never)]
    fn set_numerology(&mut self, numerology: u8, sink: &mut impl RowSink) {
        self.watermark.advance();
        if numerology != self.rows.numerology() {
            self.place_closed(sink);
            self.rows.set_numerology(numerology);
            self.watermark.set_numerology(numerology);
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
            if !self.watermark.admits_now(block.at) {
                continue;
            }
            let of_block = |g: &GrantLite| {
                (g.cell, g.tb, g.failed) == (block.cell, block.tb, false)
                    && g.padding_bytes.is_none()
            };
            if let Some(grant) = self.waiting.find_grant(block.at, of_block) {
                grant.padding_bytes = known;
                grant.counted = counted.cut(block);
            }
        }
    }

    pub(super) fn push_rlc(&mut self, pdu: &RlcPdu) {
        if pdu.signalling == Some(true) || pdu.mode == RlcMode::Tm {
            return;
        }
        let at = (pdu.position.timing_segment, pdu.position.tti);
        if !self.watermark.admits(at) {
            return;
        }
        if pdu.status {
            return self.waiting.push_status(at);
        }
        self.waiting.push_pdu(at, pdu);
    }

    pub(super) fn push_hole(&mut self, hole: &Hole) {
        let at = (hole.position.timing_segment, hole.position.tti);
        if self.watermark.admits(at) {
            self.waiting.push_hole(at, hole.n_tti);
        }
    }

    pub(super) fn push_cell_info(&mut self, info: &CellInfo, sink: &mut impl RowSink) {
        if let Some(n_prb) = info.n_prb_dl {
            self.place_closed(sink);
            self.rows.set_bandwidth(info.cell, n_prb);
        }
    }

    /// Passes on, now and then, the rows that no record within the allowed lateness can change.
    #[inline]
    pub(super) fn drain(&mut self, sink: &mut impl RowSink) {
        if self.watermark.n_moves() >= MOVES_AT_ONCE {
            self.place_closed(sink);
        }
    }

    /// Passes on all of these rows.
    pub(super) fn place_closed(&mut self, sink: &mut impl RowSink) {
        if self.watermark.n_moves() == 0 {
            return;
        }
        self.watermark.mark();
        if let Some(closed) = self.watermark.closed() {
            self.place_before(closed, sink);
        }
    }

    /// Ends the log: passes on the remaining rows.
    pub(super) fn finish(&mut self, sink: &mut impl RowSink) {
        self.place_closed(sink);
        for counted in self.counters.finish() {
            self.take_counted(&counted);
        }
        self.watermark.close_all();
        self.place_before(END, sink);
        self.rows.finish(sink);
    }

    #[inline(never)]
    fn place_before(&mut self, mark: SegmentTti, sink: &mut impl RowSink) {
        self.waiting.take_before(mark, &mut Placing { rows: &mut self.rows, sink });
        self.rows.pass_on(sink);
    }
}

struct Placing<'a, S> {
    rows: &'a mut RowAssembly,
    sink: &'a mut S,
}

impl<S: RowSink> TtiSink for Placing<'_, S> {
    // What most TTIs need stands where they are taken from the queues.
    #[inline(always)]
    fn take_tti(
        &mut self,
        at: SegmentTti,
        grants: &mut [Timed<GrantLite>],
        pdus: &[Timed<PduLite>],
        extras: TtiExtras,
    ) {
        self.rows.enter(at.0, self.sink);
        self.rows.place(at.1.0, grants, pdus, extras);
    }
}
