//! Sequence numbers of one bearer: the missing ones, and for how long.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{Direction, RlcMode, TtiIndex};

use super::{BearerLoss, Loss, LossLayer, Waits};

/// Numbers of one bearer in one layer and direction, and those that are missing.
#[derive(Debug, Clone)]
pub(super) struct NumberedStream {
    pub(super) counts: BearerLoss,
    modulus: i64,
    /// The expected next number, unwrapped.
    next: i64,
    /// Missing numbers, with when that showed.
    pub(super) open: BTreeMap<i64, TtiIndex>,
    /// Consecutive numbers below the expected one: a restart if there are many.
    behind: Vec<i64>,
    /// The log has a hole just before the next PDU.
    pub(super) log_hole: bool,
}

/// Consecutive numbers below the expected one that indicate a restart (chosen here: runs
/// of retransmissions are shorter once the bearer's window has passed them).
const RESTART_RUN: usize = 8;

/// RLC's modulus until a larger number is seen: 10 bits in LTE (TS 36.322, 6.2.2.3), 12
/// in NR (TS 38.322, 6.2.2.4).
pub(super) const LTE_MODULUS: i64 = 1_024;
pub(super) const NR_MODULUS: i64 = 4_096;

/// The window of RLC AM with 10-bit numbers (TS 36.322, 7.2).
const AM_WINDOW: i64 = 512;

impl NumberedStream {
    /// The state before the first PDU, with number `sn`.
    pub(super) const fn new(
        layer: LossLayer,
        dir: Direction,
        bearer: u8,
        mode: RlcMode,
        modulus: i64,
        sn: i64,
    ) -> Self {
        let counts = BearerLoss {
            layer,
            dir,
            bearer,
            mode,
            pdus: 0,
            lost: 0,
            filled: 0,
            retransmitted: 0,
            not_logged: 0,
            unresolved: 0,
            restarts: 0,
        };
        Self {
            counts,
            modulus,
            next: sn,
            open: BTreeMap::new(),
            behind: Vec::new(),
            log_hole: false,
        }
    }

    /// Takes the number of a PDU, and whether the PDU is a segment of a PDU sent before.
    pub(super) fn number(
        &mut self,
        tti: TtiIndex,
        sn: i64,
        segment: bool,
        waits: &Waits,
        found: &mut VecDeque<Loss>,
    ) {
        if sn >= self.modulus {
            // 16 bits after 10 (TS 36.322, 6.2.2.3), 18 after 12 (TS 38.322, 6.2.2.4).
            self.modulus = if self.modulus == NR_MODULUS { 262_144 } else { 65_536 };
        }
        self.counts.pdus += 1;
        let half = self.modulus / 2;
        // Forward from the expected number, or back.
        let step = (sn - self.next + half).rem_euclid(self.modulus) - half;
        let index = self.next + step;
        if step < 0 {
            if self.open.remove(&index).is_some() {
                self.counts.filled += 1;
                let again = self.counts.layer == LossLayer::Rlc && self.counts.mode == RlcMode::Am;
                self.counts.retransmitted += u64::from(again || segment);
                self.behind.clear();
                return;
            }
            if self.behind.last().is_none_or(|last| *last + 1 == index) {
                self.behind.push(index);
            } else {
                self.behind.clear();
            }
            if self.behind.len() < RESTART_RUN {
                self.counts.retransmitted += 1;
                return;
            }
            // They were new all along.
            let counted = (self.behind.len() - 1) as u64;
            self.counts.retransmitted = self.counts.retransmitted.saturating_sub(counted);
            self.restart(tti, index, waits, found);
            return;
        }
        self.behind.clear();
        self.counts.retransmitted += u64::from(segment);
        if step > self.modulus / 4 && self.counts.pdus > 1 {
            self.restart(tti, index, waits, found);
            return;
        }
        if step > 0 && self.counts.dir == Direction::Dl {
            if self.log_hole {
                self.counts.not_logged += step as u64;
            } else {
                self.open.extend((self.next..index).map(|missing| (missing, tti)));
            }
        }
        self.log_hole = false;
        self.next = index + 1;
        if self.counts.mode == RlcMode::Am && self.counts.layer == LossLayer::Rlc {
            let window = if self.modulus == LTE_MODULUS { AM_WINDOW } else { self.modulus / 2 };
            let left = self.open.split_off(&(self.next - window));
            self.counts.not_logged += self.open.len() as u64;
            self.open = left;
        }
    }

    fn restart(&mut self, tti: TtiIndex, index: i64, waits: &Waits, found: &mut VecDeque<Loss>) {
        self.close(tti, waits, found);
        self.counts.restarts += 1;
        self.behind.clear();
        self.log_hole = false;
        self.next = index + 1;
    }

    fn wait(&self, waits: &Waits) -> i64 {
        match (self.counts.layer, self.counts.mode) {
            (LossLayer::Rlc, RlcMode::Um) => waits.um_ttis,
            _ => waits.am_ttis,
        }
    }

    /// Decides holes that have been open for too long; those of RLC AM wait for the
    /// window, or for the bearer's end.
    pub(super) fn settle(&mut self, now: TtiIndex, waits: &Waits, found: &mut VecDeque<Loss>) {
        if self.counts.layer == LossLayer::Rlc && self.counts.mode == RlcMode::Am {
            return;
        }
        let wait = self.wait(waits);
        // Numbers and the times at which they were missed increase together.
        while let Some(entry) = self.open.first_entry() {
            if self.log_hole || now.since(*entry.get()) <= wait {
                break;
            }
            let (index, tti) = entry.remove_entry();
            self.lose(index, tti, found);
        }
    }

    /// Decides all holes, as the numbering ends here.
    pub(super) fn close(&mut self, now: TtiIndex, waits: &Waits, found: &mut VecDeque<Loss>) {
        let wait = self.wait(waits);
        for (index, tti) in std::mem::take(&mut self.open) {
            if self.log_hole || now.since(tti) <= wait {
                self.counts.unresolved += 1;
            } else {
                self.lose(index, tti, found);
            }
        }
    }

    fn lose(&mut self, index: i64, tti: TtiIndex, found: &mut VecDeque<Loss>) {
        self.counts.lost += 1;
        let BearerLoss { layer, bearer, .. } = self.counts;
        let sn = index.rem_euclid(self.modulus) as u32;
        found.push_back(Loss { layer, bearer, sn, tti });
    }
}
