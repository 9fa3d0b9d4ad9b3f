//! Undoing spurious reductions (RFC 4015, RFC 3522, RFC 3708).

use std::ops::Range;

use super::recovery::{Incoming, RecoveryPhase};
use super::sender::Sender;
use super::stats::EventKind;

/// State to detect that a reduction was spurious (RFC 4015).
#[derive(Debug, Clone, Default)]
pub(super) struct Undo {
    /// Time of the first retransmission.
    pub(super) first_ns: Option<i64>,
    /// Retransmissions, less those that the peer reported as duplicates.
    pub(super) copies: i64,
    pub(super) reported: bool,
}

impl Sender {
    /// RFC 2883, 4: a first block that is already acknowledged or lies in the second one
    /// reports a duplicate.
    pub(super) fn apply_d_sack(&mut self, incoming: &Incoming) -> bool {
        let Some(first) = incoming.sack.first() else { return false };
        let within = |b: &Range<u64>| b.start <= first.start && first.end <= b.end;
        if first.end > incoming.ack && !incoming.sack.get(1).is_some_and(within) {
            return false;
        }
        self.stats.spurious_retransmissions += 1;
        if let Some(undo) = &mut self.undo {
            undo.copies -= 1;
            undo.reported = true;
        }
        // RFC 8985, 6.2 step 4: a longer reordering window.
        self.reorder_steps = (self.reorder_steps + 1).min(16);
        true
    }

    /// RFC 3522: the echo of a segment sent before any retransmission shows that the
    /// original had arrived.
    pub(super) fn undo_by_echo(&mut self, now_ns: i64, incoming: &Incoming) -> bool {
        if !self.config.undo_spurious || !self.in_recovery() {
            return false;
        }
        let first_ns = self.undo.as_ref().and_then(|u| u.first_ns);
        let tick_ns = self.config.timestamp_tick_ns;
        match (first_ns, incoming.echo_tick_ns) {
            (Some(first_ns), Some(began_ns)) if began_ns + tick_ns <= first_ns => {
                self.undo(now_ns);
                true
            }
            _ => false,
        }
    }

    pub(super) fn undo(&mut self, now_ns: i64) {
        self.board.forgive(self.uses_rack());
        self.control.on_spurious(now_ns);
        self.undo = None;
        self.phase = RecoveryPhase::Open;
        self.reno_sacked_bytes = 0;
        self.stats.undone += 1;
        self.event(now_ns, EventKind::Spurious);
    }
}
