//! Residual losses of the radio, and retransmissions, which only delay.
//!
//! A hole in the received sequence numbers is a loss if it is never filled. The criterion
//! depends on the layer:
//!
//! - RLC UM and PDCP: the hole stays open for longer than reordering can last
//!   ([`LossOptions`]).
//! - RLC AM (TS 36.322, 5.1.3): the sender repeats a PDU until it is acknowledged, and
//!   its window holds 512 numbers. A hole that is further than that below the current
//!   number was acknowledged, so it was received, and only the log lacks it. A hole is a
//!   loss if it is still open, for longer than retransmissions take, when the bearer is
//!   re-established or the records end.
//! - Next to a hole in the log nothing is concluded.
//!
//! HARQ failures and RLC retransmissions are counted apart: they cause delay, not loss.
//! In the uplink only retransmissions are counted, as the phone logs what it sent, not
//! what arrived.
//!
//! The sender assigns PDCP numbers and may discard numbered SDUs: a PDCP loss without an
//! RLC loss may be such a discard, so losses are counted by layer.

mod numbering;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use airmile_model::window::SegmentTti;
use airmile_model::{
    Direction, Grant, PdcpPdu, Position, Record, RlcMode, RlcPdu, TtiIndex, TtiSpan,
};
use schemars::JsonSchema;
use serde::Serialize;

use numbering::{LTE_MODULUS, NR_MODULUS, NumberedStream};

/// Settings of a [`LossTracker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossOptions {
    /// A hole in RLC UM is a loss after this many ms. Chosen here: past the maximum
    /// t-Reordering of 200 ms (TS 36.331, 6.3.2), with margin.
    pub um_ms: i64,
    /// The same for PDCP and RLC AM, where retransmissions may fill it: past the maximum
    /// t-PollRetransmit, t-StatusProhibit and t-Reordering in a row (500, 500 and 200
    /// ms), with margin.
    pub am_ms: i64,
}

impl Default for LossOptions {
    fn default() -> Self {
        Self { um_ms: 500, am_ms: 2_000 }
    }
}

/// The settings in TTIs of the records' numerology.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    um_ttis: i64,
    am_ttis: i64,
}

impl Waits {
    const fn new(options: &LossOptions, numerology: u8) -> Self {
        Self {
            um_ttis: TtiSpan::from_ms(options.um_ms, numerology).0,
            am_ttis: TtiSpan::from_ms(options.am_ms, numerology).0,
        }
    }
}

/// A layer with sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossLayer {
    /// RLC PDUs.
    Rlc,
    /// PDCP PDUs, so SDUs of RLC.
    Pdcp,
}

/// A lost PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Loss {
    /// The layer of the number.
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
    /// Lost sequence numbers.
    pub lost: u64,
    /// Holes that a later PDU filled: reordered or retransmitted.
    pub filled: u64,
    /// Retransmitted PDUs: a number seen before, or a segment of one.
    pub retransmitted: u64,
    /// Numbers missing only in the log.
    pub not_logged: u64,
    /// Holes with too little evidence.
    pub unresolved: u64,
    /// Restarts of the numbering.
    pub restarts: u64,
}

/// Residual losses and retransmissions of the radio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RadioLoss {
    /// Whether the records hold downlink sequence numbers.
    pub known: bool,
    /// Downlink RLC PDUs lost.
    pub lost_rlc_pdus: u64,
    /// Downlink PDCP PDUs lost.
    pub lost_pdcp_pdus: u64,
    /// Downlink blocks whose CRC failed; HARQ repeats them.
    pub harq_failures: u64,
    /// Downlink blocks that were HARQ retransmissions.
    pub harq_retx: u64,
    /// Retransmitted downlink RLC PDUs.
    pub rlc_retx: u64,
    /// Per layer, direction and bearer.
    pub bearers: Vec<BearerLoss>,
}

type Key = (LossLayer, Direction, u8);

/// Tracks sequence numbers per bearer.
#[derive(Debug, Clone, Default)]
pub struct LossTracker {
    options: LossOptions,
    waits: Waits,
    streams: BTreeMap<Key, NumberedStream>,
    now: Option<SegmentTti>,
    found: VecDeque<Loss>,
    /// Blocks of which the last transmission failed, by carrier and process.
    failed: BTreeMap<(u8, u8, u8), TtiIndex>,
    given_up: VecDeque<TtiIndex>,
    totals: RadioLoss,
}

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

    /// The next downlink block that HARQ gave up: its process had new data after a failed
    /// transmission (TS 36.321, 5.3.2.2).
    pub fn poll_given_up(&mut self) -> Option<TtiIndex> {
        self.given_up.pop_front()
    }

    /// Ends the records: decides the open holes. Losses are then polled; the summary is
    /// complete.
    pub fn finish(&mut self) -> RadioLoss {
        let now = self.now.map_or(TtiIndex(i64::MAX), |(_, tti)| tti);
        for stream in self.streams.values_mut() {
            stream.settle(now, &self.waits, &mut self.found);
            stream.close(now, &self.waits, &mut self.found);
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
        let modulus = if pdu.position.numerology > 0 { NR_MODULUS } else { LTE_MODULUS };
        self.number(key, pdu.mode, modulus, pdu.position.tti, i64::from(sn), pdu.resegment);
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

    /// Handles a new timing segment, which is another cell or a reset: RLC is
    /// re-established there, and PDCP delivers what RLC did not.
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
        self.waits = Waits::new(&self.options, position.numerology);
        let (waits, found) = (&self.waits, &mut self.found);
        for stream in self.streams.values_mut() {
            stream.settle(position.tti, waits, found);
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
        let new = || NumberedStream::new(layer, dir, bearer, mode, modulus, sn);
        let stream = self.streams.entry(key).or_insert_with(new);
        stream.number(tti, sn, segment, &self.waits, &mut self.found);
    }
}
