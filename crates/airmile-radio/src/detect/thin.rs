//! Bounds what is kept while it is not known whether a transfer begins.

use airmile_model::TtiIndex;

use super::{DetectedTransfer, TRICKLE_BYTES, TRICKLE_BYTES_PER_MS, TransferDetector};

/// Maximum number of groups of blocks that are kept apart before a transfer begins (chosen here: more than a pause
/// of the shortest slots has, and twice that).
pub(super) const MOST_PENDING: usize = 4_096;

impl TransferDetector {
    /// Limits the number of groups while there is no transfer.
    pub(super) fn thin_pending(&mut self) {
        if self.pending.len() < MOST_PENDING {
            return;
        }
        self.join_pending();
        if self.pending.len() > MOST_PENDING / 2 && self.has_none() {
            self.halve_pending();
        }
    }

    /// Of two groups of the older half, one begins none any more: that before which more bytes came in less time.
    fn halve_pending(&mut self) {
        let rate = |pair: &[DetectedTransfer]| {
            let [before, one] = pair else { return 0.0 };
            before.bytes as f64 / self.ms(one.start_tti.since(before.start_tti))
        };
        // Nothing came before the first.
        let rates: Vec<f64> = [-1.0].into_iter().chain(self.pending.windows(2).map(rate)).collect();
        let begins = rates.iter().enumerate().map(|(at, rate)| {
            let of_other = rates.get(at ^ 1).copied().unwrap_or(f64::INFINITY);
            let is_later = at % 2 == 1 && *rate <= of_other;
            at >= MOST_PENDING / 2 || is_later || *rate < of_other
        });
        let begins: Vec<bool> = begins.collect();
        self.join_unless(begins.into_iter());
    }

    /// Joins each group that begins none to the one before.
    fn join_unless(&mut self, begins: impl Iterator<Item = bool>) {
        let mut kept = Vec::<DetectedTransfer>::new();
        for (one, begins) in self.pending.iter().zip(begins) {
            match kept.last_mut().filter(|_| !begins) {
                Some(before) => *before = before.and(*one),
                None => kept.push(*one),
            }
        }
        self.pending = kept;
    }

    /// Whether there is no transfer, nor bytes for one.
    fn has_none(&self) -> bool {
        self.current.is_none() && self.pending_bytes < self.options.min_bytes
    }

    /// Joins groups that begin no transfer, whatever follows: too much came before them, or a transfer begins a pause
    /// later or more, because the rate up to there is not higher. Those of the last pause stay.
    pub(super) fn join_pending(&mut self) {
        let Some((first, last)) = self.pending.first().zip(self.pending.last()) else { return };
        if !self.has_none() {
            return;
        }
        let pause = self.pause();
        let mut bytes = 0;
        // The time and bytes before each group.
        let before = self.pending.iter().map(|one| {
            let before =
                (one.start_tti, self.ms(one.start_tti.since(first.start_tti)), bytes as f64);
            bytes += one.bytes;
            before
        });
        let before: Vec<_> = before.collect();
        let can_begin = |ms: f64, bytes: f64| bytes <= TRICKLE_BYTES + TRICKLE_BYTES_PER_MS * ms;
        let (mut later, mut least) = (before.iter().rev().peekable(), f64::INFINITY);
        let matters = before.iter().rev().map(|(start, ms, bytes)| {
            let is_later = |one: &&(TtiIndex, f64, f64)| one.0.since(*start) >= pause;
            while let Some((_, ms, bytes)) = later.next_if(is_later) {
                if can_begin(*ms, *bytes) {
                    least = least.min(bytes / ms);
                }
            }
            last.start_tti.since(*start) < pause || can_begin(*ms, *bytes) && bytes / ms < least
        });
        let matters: Vec<bool> = matters.collect();
        self.join_unless(matters.into_iter().rev());
    }
}
