//! Assignments on the control channel without a block: a hole in the log.

use airmile_model::tti::TtiIndex;
use airmile_model::window::SegmentTti;
use airmile_model::{Hole, Position, Record, RntiType};

/// Assignments on the control channel without a logged block: the items with the blocks
/// were lost.
#[derive(Debug, Clone, Default)]
pub(super) struct OrphanRun {
    run: Option<(u32, TtiIndex, TtiIndex, u32)>,
}

/// This many consecutive assignments without a block are a hole. Chosen here: one may be
/// decoded by chance (a 16-bit CRC, TS 36.212 5.3.3.2, over some dozen candidates a TTI),
/// three in a row are not.
const ORPHANS: u32 = 3;
/// Maximum length of a reported hole; longer ones are split, to keep them in order with
/// later records (chosen here, well under the estimators' lateness).
const ORPHAN_RUN_TTIS: i64 = 200;

impl OrphanRun {
    /// Takes a TTI; returns a hole that has ended or reached the maximum length.
    pub(super) fn step(&mut self, at: SegmentTti, orphan: bool, block: bool) -> Option<Hole> {
        let ended = self.run.filter(|(segment, first, ..)| {
            block || *segment != at.0 || at.1.since(*first) >= ORPHAN_RUN_TTIS
        });
        if ended.is_some() {
            self.run = None;
        }
        if orphan {
            let run = self.run.get_or_insert((at.0, at.1, at.1, 0));
            run.2 = at.1;
            run.3 += 1;
        }
        let (timing_segment, first, last, count) = ended?;
        let position = Position { timing_segment, tti: first, ..Position::default() };
        (count >= ORPHANS).then(|| Hole {
            at: None,
            position,
            n_tti: last.since(first) + 1,
            why: "assignments without a block",
        })
    }
}

/// Whether a record is a decoded downlink assignment of this user.
pub(super) fn is_assignment(record: &Record) -> bool {
    // Prune status 3: format 1A, 6: formats 2, 2A, 2B.
    matches!(record, Record::Dci(d) if d.rnti == RntiType::C
        && matches!(d.prune_status, 3 | 6) && d.format.starts_with(['1', '2']))
}
