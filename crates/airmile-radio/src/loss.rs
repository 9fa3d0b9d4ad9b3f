//! What the radio lost, and what it only delayed.
//!
//! A hole in the sequence numbers that a phone received is a loss if it is
//! never filled. What that takes differs:
//!
//! - RLC UM and PDCP: the hole stays open for longer than reordering can last
//!   ([`LossOptions`]).
//! - RLC AM (TS 36.322, 5.1.3): the sender goes on until the PDU is
//!   acknowledged, and its window holds 512 numbers. A hole that the numbers
//!   have left behind by more than that was acknowledged, so it was received:
//!   the log lacks it. A hole is a loss where it is still open, longer than
//!   retransmissions take, when the bearer is set up anew or the records end.
//! - Next to a hole in the log nothing is concluded.
//!
//! HARQ failures and RLC retransmissions are counted apart: they delay, they
//! do not lose. In the uplink only retransmissions are counted, as the phone
//! logs what it sent, not what arrived.
//!
//! PDCP numbers are given by the sender, which may discard what it has
//! numbered: a PDCP loss without one in RLC can be of that kind, and is
//! counted by layer for that reason.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{Direction, Grant, PdcpPdu, Position, Record, RlcMode, RlcPdu, TtiIndex};
use schemars::JsonSchema;
use serde::Serialize;

/// Settings of a [`LossTracker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossOptions {
    /// After this many TTIs a hole in RLC UM is a loss. Chosen here: past the
    /// longest t-Reordering of 200 ms (TS 36.331, 6.3.2) with room.
    pub um_ttis: i64,
    /// The same for PDCP and RLC AM, where retransmissions may fill it: past
    /// the longest t-PollRetransmit, t-StatusProhibit and t-Reordering in a
    /// row (500, 500 and 200 ms), with room.
    pub am_ttis: i64,
}

impl Default for LossOptions {
    fn default() -> Self {
        Self { um_ttis: 500, am_ttis: 2_000 }
    }
}

/// A layer that numbers what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossLayer {
    /// RLC PDUs.
    Rlc,
    /// PDCP PDUs, so SDUs of RLC.
    Pdcp,
}

/// A unit that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Loss {
    /// Which layer's number it is.
    pub layer: LossLayer,
    /// Bearer: the modem's RB configuration index.
    pub bearer: u8,
    /// Sequence number.
    pub sn: u32,
    /// TTI at which a later number showed that it was missing.
    pub tti: TtiIndex,
}

/// Counts of one bearer in one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BearerLoss {
    /// Which layer.
    pub layer: LossLayer,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Bearer: the modem's RB configuration index.
    pub bearer: u8,
    /// RLC mode of the bearer.
    pub mode: RlcMode,
    /// PDUs seen.
    pub pdus: u64,
    /// Numbers that were lost.
    pub lost: u64,
    /// Holes that a later PDU filled: reordered or retransmitted.
    pub filled: u64,
    /// PDUs sent again: a number seen before, or a segment of one.
    pub retransmitted: u64,
    /// Numbers that are missing in the log only.
    pub not_logged: u64,
    /// Holes of which too little was seen to tell.
    pub unresolved: u64,
    /// Times that numbering began anew.
    pub restarts: u64,
}

/// What the radio lost, and what it delayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RadioLoss {
    /// Whether the records hold downlink sequence numbers at all.
    pub known: bool,
    /// Downlink RLC PDUs lost.
    pub lost_rlc_pdus: u64,
    /// Downlink PDCP PDUs lost.
    pub lost_pdcp_pdus: u64,
    /// Downlink blocks whose CRC failed; HARQ repeats them.
    pub harq_failures: u64,
    /// Downlink blocks that were HARQ retransmissions.
    pub harq_retx: u64,
    /// Downlink RLC PDUs that were sent again.
    pub rlc_retx: u64,
    /// Per layer, direction and bearer.
    pub bearers: Vec<BearerLoss>,
}

type Key = (LossLayer, Direction, u8);

/// Follows sequence numbers per bearer.
#[derive(Debug, Clone, Default)]
pub struct LossTracker {
    options: LossOptions,
    streams: BTreeMap<Key, Stream>,
    now: Option<(u32, TtiIndex)>,
    found: VecDeque<Loss>,
    /// Blocks of which the last transmission failed, by carrier and process.
    failed: BTreeMap<(u8, u8, u8), TtiIndex>,
    given_up: VecDeque<TtiIndex>,
    totals: RadioLoss,
}

#[derive(Debug, Clone)]
struct Stream {
    counts: BearerLoss,
    modulus: i64,
    /// The number that comes next, unwrapped.
    next: i64,
    /// Numbers not seen, with when that showed.
    open: BTreeMap<i64, TtiIndex>,
    /// Numbers that only go up while all of them are behind: a restart.
    behind: Vec<i64>,
    /// The log has a hole just before the next PDU.
    log_hole: bool,
}

/// Numbers behind the expected one, each following the last, after which
/// numbering has begun anew (chosen here: retransmissions come in runs, but
/// not in one this long that the bearer's window had already passed).
const RESTART_RUN: usize = 8;

/// The window of RLC AM with 10-bit numbers (TS 36.322, 7.2).
const AM_WINDOW: i64 = 512;

impl LossTracker {
    /// With settings.
    #[must_use]
    pub fn new(options: LossOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes the next record, in TTI order.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) => self.grant(grant),
            Record::Rlc(pdu) => self.rlc(pdu),
            Record::Pdcp(pdu) => self.pdcp(pdu),
            Record::Hole(_) => {
                for stream in self.streams.values_mut() {
                    stream.log_hole = true;
                }
            }
            _ => {}
        }
    }

    /// The next loss.
    pub fn poll(&mut self) -> Option<Loss> {
        self.found.pop_front()
    }

    /// The next downlink block that HARQ gave up: its process had new data after a
    /// transmission that failed (TS 36.321, 5.3.2.2).
    pub fn poll_given_up(&mut self) -> Option<TtiIndex> {
        self.given_up.pop_front()
    }

    /// The end of the records: what is still open is settled. Losses are then
    /// polled; the summary is complete.
    pub fn finish(&mut self) -> RadioLoss {
        let now = self.now.map_or(TtiIndex(i64::MAX), |(_, tti)| tti);
        for stream in self.streams.values_mut() {
            stream.settle(now, &self.options, &mut self.found);
            stream.close(now, &self.options, &mut self.found);
        }
        let mut totals = std::mem::take(&mut self.totals);
        for stream in std::mem::take(&mut self.streams).into_values() {
            let counts = stream.counts;
            if counts.dir == Direction::Dl {
                totals.known = true;
                match counts.layer {
                    LossLayer::Rlc => {
                        totals.lost_rlc_pdus += counts.lost;
                        totals.rlc_retx += counts.retransmitted;
                    }
                    LossLayer::Pdcp => totals.lost_pdcp_pdus += counts.lost,
                }
            }
            totals.bearers.push(counts);
        }
        totals
    }

    fn grant(&mut self, grant: &Grant) {
        if grant.dir == Direction::Dl && grant.rnti.is_user() {
            self.totals.harq_failures += u64::from(grant.crc_ok == Some(false));
            self.totals.harq_retx += u64::from(grant.retx == Some(true));
            if let Some(harq_id) = grant.harq_id {
                let process = (grant.position.cell, harq_id, grant.tb);
                let before = self.failed.remove(&process);
                if grant.retx == Some(false) {
                    self.given_up.extend(before);
                }
                if grant.crc_ok == Some(false) {
                    self.failed.insert(process, grant.position.tti);
                }
            }
        }
    }

    fn rlc(&mut self, pdu: &RlcPdu) {
        let Some(sn) = pdu.sn.filter(|_| !pdu.status && pdu.mode != RlcMode::Tm) else { return };
        self.advance(pdu.position);
        let key = (LossLayer::Rlc, pdu.dir, pdu.bearer);
        self.number(key, pdu.mode, 1_024, pdu.position.tti, i64::from(sn), pdu.resegment);
    }

    fn pdcp(&mut self, pdu: &PdcpPdu) {
        if !pdu.valid {
            return;
        }
        self.advance(pdu.position);
        let modulus = 1 << pdu.sn_bits.unwrap_or(12).clamp(5, 12);
        let key = (LossLayer::Pdcp, pdu.dir, pdu.bearer);
        self.number(key, pdu.mode, modulus, pdu.position.tti, i64::from(pdu.sn), false);
    }

    /// A new timing segment is another cell or a reset: RLC is set up anew
    /// there, and PDCP hands over what RLC did not deliver.
    fn advance(&mut self, position: Position) {
        let at = (position.timing_segment, position.tti);
        let segment = self.now.map_or(at.0, |(segment, _)| segment);
        if at.0 > segment {
            for (key, stream) in &mut self.streams {
                if key.0 == LossLayer::Rlc {
                    stream.counts.unresolved += stream.open.len() as u64;
                    stream.open.clear();
                    stream.log_hole = true;
                }
            }
        }
        self.now = self.now.max(Some(at));
        let (options, found) = (&self.options, &mut self.found);
        for stream in self.streams.values_mut() {
            stream.settle(position.tti, options, found);
        }
    }

    fn number(
        &mut self,
        key: Key,
        mode: RlcMode,
        modulus: i64,
        tti: TtiIndex,
        sn: i64,
        segment: bool,
    ) {
        let (layer, dir, bearer) = key;
        let stream = self.streams.entry(key).or_insert_with(|| Stream {
            counts: BearerLoss {
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
            },
            modulus,
            next: sn,
            open: BTreeMap::new(),
            behind: Vec::new(),
            log_hole: false,
        });
        if sn >= stream.modulus {
            // 16-bit numbers (TS 36.322, 6.2.2.3).
            stream.modulus = 65_536;
        }
        stream.number(tti, sn, segment, &self.options, &mut self.found);
    }
}

impl Stream {
    fn number(
        &mut self,
        tti: TtiIndex,
        sn: i64,
        segment: bool,
        options: &LossOptions,
        found: &mut VecDeque<Loss>,
    ) {
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
            self.restart(tti, index, options, found);
            return;
        }
        self.behind.clear();
        self.counts.retransmitted += u64::from(segment);
        if step > self.modulus / 4 && self.counts.pdus > 1 {
            self.restart(tti, index, options, found);
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
            let window = if self.modulus == 65_536 { 32_768 } else { AM_WINDOW };
            let left = self.open.split_off(&(self.next - window));
            self.counts.not_logged += self.open.len() as u64;
            self.open = left;
        }
    }

    fn restart(
        &mut self,
        tti: TtiIndex,
        index: i64,
        options: &LossOptions,
        found: &mut VecDeque<Loss>,
    ) {
        self.close(tti, options, found);
        self.counts.restarts += 1;
        self.behind.clear();
        self.log_hole = false;
        self.next = index + 1;
    }

    fn wait(&self, options: &LossOptions) -> i64 {
        match (self.counts.layer, self.counts.mode) {
            (LossLayer::Rlc, RlcMode::Um) => options.um_ttis,
            _ => options.am_ttis,
        }
    }

    /// Holes that have been open for too long; those of RLC AM wait for the
    /// window, or for the bearer's end.
    fn settle(&mut self, now: TtiIndex, options: &LossOptions, found: &mut VecDeque<Loss>) {
        if self.counts.layer == LossLayer::Rlc && self.counts.mode == RlcMode::Am {
            return;
        }
        let wait = self.wait(options);
        // Numbers and the times at which they were missed go up together.
        while let Some(entry) = self.open.first_entry() {
            if self.log_hole || now.since(*entry.get()) <= wait {
                break;
            }
            let (index, tti) = entry.remove_entry();
            self.lose(index, tti, found);
        }
    }

    /// All holes, as the numbering ends here.
    fn close(&mut self, now: TtiIndex, options: &LossOptions, found: &mut VecDeque<Loss>) {
        let wait = self.wait(options);
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

#[cfg(test)]
mod tests {
    use airmile_model::{Hole, Position};
    use proptest::prelude::*;

    use super::*;

    fn rlc(mode: RlcMode, tti: i64, sn: u32) -> Record {
        RlcPdu {
            at: None,
            position: Position::lte(tti),
            dir: Direction::Dl,
            bearer: 3,
            signalling: Some(false),
            mode,
            sn: Some(sn),
            size_bytes: 100,
            poll: None,
            resegment: false,
            status: false,
        }
        .into()
    }

    fn pdcp(tti: i64, sn: u16) -> Record {
        PdcpPdu {
            at: None,
            position: Position::lte(tti),
            dir: Direction::Dl,
            bearer: 3,
            signalling: false,
            mode: RlcMode::Am,
            sn_bits: Some(12),
            sn,
            size_bytes: 100,
            valid: true,
        }
        .into()
    }

    fn run(records: &[Record]) -> (RadioLoss, Vec<u32>) {
        let mut tracker = LossTracker::default();
        records.iter().for_each(|record| tracker.push(record));
        let summary = tracker.finish();
        (summary, std::iter::from_fn(|| tracker.poll()).map(|loss| loss.sn).collect())
    }

    #[test]
    fn a_um_hole_that_stays_is_a_loss_also_over_a_wrap() {
        let sns = [1022, 1023, 1, 2];
        let mut records: Vec<_> =
            (0..).zip(sns).map(|(tti, sn)| rlc(RlcMode::Um, tti, sn)).collect();
        records.push(rlc(RlcMode::Um, 1_000, 3));
        let (summary, lost) = run(&records);
        assert_eq!((summary.known, summary.lost_rlc_pdus, lost), (true, 1, vec![0]));
    }

    #[test]
    fn reordering_is_no_loss() {
        let records: Vec<_> = (0..)
            .zip([5, 8, 6, 7, 9, 10])
            .map(|(tti, sn)| rlc(RlcMode::Um, tti * 100, sn))
            .collect();
        let (summary, _) = run(&records);
        assert_eq!((summary.lost_rlc_pdus, summary.bearers[0].filled), (0, 2));
        assert_eq!(summary.rlc_retx, 0);
    }

    #[test]
    fn am_retransmissions_delay_and_do_not_lose() {
        let sns = [5, 7, 8, 6, 9, 9];
        let records: Vec<_> =
            (0..).zip(sns).map(|(tti, sn)| rlc(RlcMode::Am, tti * 400, sn)).collect();
        let (summary, _) = run(&records);
        assert_eq!((summary.lost_rlc_pdus, summary.rlc_retx), (0, 2));
    }

    #[test]
    fn an_am_hole_that_the_window_left_behind_was_not_logged() {
        let numbers = (0..600).filter(|sn| *sn != 7);
        let records: Vec<_> = numbers.map(|sn| rlc(RlcMode::Am, i64::from(sn) * 10, sn)).collect();
        let (summary, lost) = run(&records);
        assert_eq!((summary.bearers[0].not_logged, lost), (1, vec![]));
    }

    #[test]
    fn an_am_hole_open_at_a_restart_is_a_loss() {
        let before = [100, 101, 103].into_iter().zip([0, 1, 2]);
        let after = (0..20).map(|i| (i, 5_000 + i64::from(i)));
        let records: Vec<_> =
            before.chain(after).map(|(sn, tti)| rlc(RlcMode::Am, tti, sn)).collect();
        let (summary, lost) = run(&records);
        assert_eq!((lost, summary.bearers[0].restarts), (vec![102], 1));
        assert_eq!(summary.rlc_retx, 0);
    }

    #[test]
    fn a_hole_in_the_log_is_no_loss() {
        let position = Position::lte(10);
        let hole = Hole { at: None, position, n_tti: 5, why: "damaged bytes" };
        let records = [
            pdcp(0, 4_090),
            pdcp(1, 4_091),
            hole.into(),
            pdcp(20, 3),
            pdcp(9_000, 4),
            pdcp(9_001, 6),
        ];
        let (summary, lost) = run(&records);
        assert_eq!((summary.bearers[0].not_logged, lost), (7, vec![]));
        assert_eq!(summary.bearers[0].unresolved, 1);
    }

    proptest! {
        #[test]
        fn every_number_is_accounted_for(
            start in 0u16..4096,
            dropped in prop::collection::btree_set(1usize..300, 0..30),
            swaps in prop::collection::vec(1usize..300, 0..20),
        ) {
            let mut numbers: Vec<usize> = (0..400).filter(|i| !dropped.contains(i)).collect();
            for at in swaps {
                // The first one stays: it is where counting begins.
                let at = at.min(numbers.len() - 2);
                numbers.swap(at, at + 1);
            }
            let mut records: Vec<_> = (0..)
                .zip(&numbers)
                .map(|(tti, i)| pdcp(tti, ((usize::from(start) + i) % 4096) as u16))
                .collect();
            // Long after, for all to be settled.
            records.push(pdcp(100_000, ((usize::from(start) + 400) % 4096) as u16));
            let (summary, lost) = run(&records);
            prop_assert_eq!(summary.lost_pdcp_pdus, dropped.len() as u64);
            let expected: Vec<u32> =
                dropped.iter().map(|i| ((usize::from(start) + i) % 4096) as u32).collect();
            prop_assert_eq!(lost, expected);
            prop_assert_eq!(summary.bearers[0].pdus, records.len() as u64);
            prop_assert_eq!(summary.bearers[0].unresolved, 0);
        }

        #[test]
        fn shifting_all_times_changes_nothing(shift in -50_000i64..50_000, gap in 1i64..3_000) {
            let of = |shift: i64| {
                run(&[pdcp(shift, 1), pdcp(shift + 5, 3), pdcp(shift + 5 + gap, 4)]).0
            };
            prop_assert_eq!(of(0), of(shift));
        }

        #[test]
        fn no_panic(numbers in prop::collection::vec((0i64..10_000, 0u32..70_000, 0u8..3), 0..200)) {
            let modes = [RlcMode::Am, RlcMode::Um, RlcMode::Tm];
            let records: Vec<_> =
                numbers.iter().map(|&(tti, sn, m)| rlc(modes[usize::from(m)], tti, sn)).collect();
            let (summary, lost) = run(&records);
            prop_assert_eq!(summary.lost_rlc_pdus, lost.len() as u64);
        }
    }
}
