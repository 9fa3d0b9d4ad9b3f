//! Messages of the uplink: 0xB139, 0xB064, 0xB066, 0xB067, 0xB092.

use std::collections::HashMap;

use crate::diag::msg::{
    BsrElement, ChannelBuffer, LoggedPdu, MacUl, MacUlBlock, MacUlSubpacket, Message,
    PdcchCandidate, PuschTx, PuschTxRecord, RlcUl, RlcUlSubpacket, UlBufferSample, UlBufferStatus,
    UlBufferSubpacket, UlTxStatistics, UlTxStatisticsSubpacket,
};
use airmile_model::{BufferStatus, Grant, MacBlock, Modulation, Record, RlcPdu, TtiIndex};

use super::batch::{Batch, Full, Rule};
use super::downlink::{header, logged, mode_code, plain_candidate};
use super::{Cell, Versions, Written, byte};

/// Short BSR (TS 36.321, table 6.2.1-2).
const SHORT_BSR: u8 = 29;
/// Long BSR.
const LONG_BSR: u8 = 30;

/// Codes of 0xB064: a BSR of the periodic timer, and one in padding.
const EVENT_PERIODIC: u8 = 1;
const TRIGGER_SHORT: u8 = 3;
const TRIGGER_PAD_LONG: u8 = 4;
const TRIGGER_PAD_SHORT: u8 = 5;

/// Transmit power field (chosen here: about 10 dBm where it is in dBm).
const TX_POWER: u8 = 10;

/// Uplink messages being built.
pub(super) struct Uplink {
    transmissions: Batch<PuschTxRecord>,
    blocks: Batch<MacUlBlock>,
    samples: Batch<UlBufferSample>,
    pdus: Batch<(RlcPdu, LoggedPdu)>,
    /// Short BSRs by TTI.
    reports: HashMap<TtiIndex, (u8, u8)>,
    retx_counts: [u8; 16],
    vt_s: u16,
    pdus_without_poll: u16,
    bytes_without_poll: u32,
    poll_sn: u16,
    acked_sn: u32,
}

/// The block statistics that 0xB067 counts.
pub(super) struct Statistics {
    granted_bytes: u32,
    used_bytes: u32,
    bsr_trigger: u8,
}

/// Blocks of 100 ms.
pub(super) const fn statistics_batch() -> Batch<Statistics> {
    Batch::new(Rule::new(usize::MAX, 100, 100, 0.0))
}

pub(super) fn statistics(version: u8, items: &[(i64, Statistics)]) -> Message {
    let sum = |of: fn(&Statistics) -> u32| items.iter().map(|(_, item)| of(item)).sum();
    let count = |trigger: u8| {
        let count = items.iter().filter(|(_, item)| item.bsr_trigger == trigger).count();
        u8::try_from(count).unwrap_or(u8::MAX)
    };
    let subpacket = UlTxStatisticsSubpacket {
        version,
        sub_id: Some(0),
        n_tti: 100,
        padding_bsr: count(TRIGGER_PAD_LONG).saturating_add(count(TRIGGER_PAD_SHORT)),
        regular_bsr: 0,
        periodic_bsr: count(TRIGGER_SHORT),
        cancelled_bsr: 0,
        granted_bytes: sum(|item| item.granted_bytes),
        used_bytes: sum(|item| item.used_bytes),
    };
    UlTxStatistics { version: 1, subpackets: vec![subpacket] }.into()
}

/// The DCI of an uplink grant: format 0.
pub(super) const fn candidate(grant: &Grant) -> PdcchCandidate {
    PdcchCandidate { dci_format: 0, prune_status: 1, ..plain_candidate(grant) }
}

/// Maximum number of reports kept while a log continues (chosen here: some seconds of
/// them).
const MOST_REPORTS: usize = 4_096;

/// A buffer status report as in the block.
fn report(record: &Record) -> Option<(TtiIndex, (u8, u8))> {
    match record {
        Record::Bsr(bsr) => Some((bsr.position.tti, (bsr.lcg, bsr.index))),
        _ => None,
    }
}

impl Uplink {
    pub(super) fn new(records: &[Record]) -> Self {
        Self {
            transmissions: Batch::new(Rule::new(11, 100, 10, 2.0)),
            blocks: Batch::new(Rule::new(10, 60, 60, 5.0)),
            samples: Batch::new(Rule::new(40, 40, 40, 1.0)),
            pdus: Batch::new(Rule::new(40, 100, 100, 5.0)),
            reports: records.iter().filter_map(report).collect(),
            retx_counts: [0; 16],
            vt_s: 0,
            pdus_without_poll: 0,
            bytes_without_poll: 0,
            poll_sn: 0,
            acked_sn: 0,
        }
    }

    /// Adds reports that blocks contain.
    pub(super) fn know(&mut self, records: &[Record]) {
        self.reports.extend(records.iter().filter_map(report));
    }

    /// No record before a TTI is still to come.
    pub(super) fn forget_before(&mut self, tti: i64) {
        if self.reports.len() > MOST_REPORTS {
            self.reports.retain(|at, _| at.0 >= tti);
        }
    }

    /// Writes the batches that are due before TTI `now`.
    pub(super) fn write_due(
        &mut self,
        now: i64,
        versions: &Versions,
        cell: Cell,
        out: &mut Vec<Written>,
    ) {
        if let (Some((at, items)), Some(version)) = (self.transmissions.due(now), versions.pusch) {
            let dispatch_tti = Some(TtiIndex(at as i64).wrapped());
            let records = items.into_iter().map(|(_, record)| record).collect();
            out.push((at, PuschTx { version, pci: cell.pci, dispatch_tti, records }.into()));
        }
        if let (Some((at, items)), Some(version)) = (self.blocks.due(now), versions.mac_ul) {
            let blocks = items.into_iter().map(|(_, block)| block).collect();
            let subpackets = vec![MacUlSubpacket { version, blocks }];
            out.push((at, MacUl { version: 1, subpackets }.into()));
        }
        if let (Some((at, items)), Some(version)) = (self.samples.due(now), versions.ul_buffer) {
            let samples = items.into_iter().map(|(_, sample)| sample).collect();
            let subpackets = vec![UlBufferSubpacket { version, samples }];
            out.push((at, UlBufferStatus { version: 1, subpackets }.into()));
        }
        if let (Some(full), Some(version)) = (self.pdus.due(now), versions.rlc) {
            out.push(self.rlc_message(full, version));
        }
    }

    pub(super) fn grant(&mut self, grant: &Grant, cell: Cell) {
        let harq_id = usize::from(grant.harq_id.unwrap_or(0) & 15);
        let count = &mut self.retx_counts[harq_id];
        *count = if grant.retx == Some(true) { count.saturating_add(1) } else { 0 };
        let n_prb = byte(grant.n_prb.unwrap_or(0));
        // In the middle, between the PUCCH regions at the edges.
        let start = (byte(cell.n_prb).saturating_sub(n_prb)) / 2;
        let tbs_bytes = grant.tbs_bytes.unwrap_or(0);
        let qm = grant.modulation.map_or(2, Modulation::bits_per_symbol);
        // 12 subcarriers, 12 data symbols (TS 36.211, 5.5.2.1).
        let coded = u32::from(n_prb) * 144 * u32::from(qm);
        let rate = ((tbs_bytes + 3) * 8 * 1_024).checked_div(coded).unwrap_or(0);
        let record = PuschTxRecord {
            tti: Some(grant.position.tti.wrapped()),
            carrier: Some(grant.position.cell),
            ack: false,
            cqi: false,
            ri: false,
            retx_index: *count,
            rv: grant.rv.unwrap_or(0),
            start_prb_slot0: start,
            start_prb_slot1: start,
            n_prb,
            tbs_bytes: u16::try_from(tbs_bytes).unwrap_or(u16::MAX),
            code_rate_x1024: u16::try_from(rate).unwrap_or(u16::MAX),
            modulation: grant.modulation,
            tx_power_raw: TX_POWER,
        };
        self.transmissions.push(grant.position.tti.0, record);
    }

    /// Takes a block; returns its statistics for 0xB067.
    pub(super) fn mac_block(&mut self, block: &MacBlock) -> Statistics {
        let tti = block.position.tti;
        let (lcg, index) = self.reports.get(&tti).copied().unwrap_or((0, 0));
        let report = BsrElement::Short { lcg, index, truncated: false };
        let indices = std::array::from_fn(|of| if of == usize::from(lcg) { index } else { 0 });
        let header = header(block, |lcid| match lcid {
            SHORT_BSR => Some(report.emit().1),
            LONG_BSR => Some(BsrElement::Long { indices }.emit().1),
            _ => None,
        });
        let subheaders: Vec<&str> = block.lcids.split_whitespace().collect();
        let has = |lcid: u8| subheaders.contains(&lcid.to_string().as_str());
        let has_padding = subheaders.last() == Some(&"31");
        // One group has data: only padding holds a long BSR.
        let (bsr_event, bsr_trigger) = match (has(LONG_BSR), has(SHORT_BSR), has_padding) {
            (true, ..) => (0, TRIGGER_PAD_LONG),
            (false, false, _) => (0, 0),
            (false, true, false) => (EVENT_PERIODIC, TRIGGER_SHORT),
            (false, true, true) => (0, TRIGGER_PAD_SHORT),
        };
        let item = MacUlBlock {
            sub_id: Some(0),
            cell: Some(block.position.cell),
            harq_id: block.harq_id,
            rnti_type: block.rnti,
            tti: Some(tti.wrapped()),
            grant_bytes: u16::try_from(block.tbs_bytes).unwrap_or(u16::MAX),
            rlc_pdus: block.rlc_pdus,
            padding_bytes: u16::try_from(block.padding_bytes).unwrap_or(u16::MAX),
            bsr_event,
            bsr_trigger,
            header: header.into(),
        };
        self.blocks.push(tti.0, item);
        let used_bytes = block.tbs_bytes.saturating_sub(block.padding_bytes);
        Statistics { granted_bytes: block.tbs_bytes, used_bytes, bsr_trigger }
    }

    pub(super) fn buffer(&mut self, status: &BufferStatus) {
        let tti = status.position.tti;
        let channel = status.lcid.map(|lcid| ChannelBuffer {
            lcid,
            priority: status.priority.unwrap_or(0),
            new_bytes: status.new_bytes,
            new_compressed_bytes: Some(0),
            retx_bytes: status.retx_bytes,
            control_bytes: u16::try_from(status.control_bytes).unwrap_or(u16::MAX),
        });
        match self.samples.last_mut() {
            Some((at, sample)) if *at == tti.0 => sample.channels.extend(channel),
            _ => {
                let channels = channel.into_iter().collect();
                let sample = UlBufferSample { sub_id: Some(0), tti: Some(tti.wrapped()), channels };
                self.samples.push(tti.0, sample);
            }
        }
    }

    pub(super) fn rlc(&mut self, pdu: &RlcPdu) {
        let logged = logged(pdu, &mut self.acked_sn);
        self.pdus.push(pdu.position.tti.0, (pdu.clone(), logged));
    }

    fn rlc_message(&mut self, (at, items): Full<(RlcPdu, LoggedPdu)>, version: u8) -> Written {
        let mut subpackets: Vec<RlcUlSubpacket> = Vec::new();
        for (_, (pdu, logged)) in items {
            match subpackets.iter_mut().find(|of| of.bearer == pdu.bearer) {
                Some(of) => of.pdus.push(logged),
                None => subpackets.push(RlcUlSubpacket {
                    version,
                    bearer: pdu.bearer,
                    mode: mode_code(pdu.mode),
                    sn_bits: 10,
                    log_mask: 0,
                    // As if all were acknowledged: records do not show it.
                    vt_a: self.vt_s,
                    vt_s: self.vt_s,
                    pdus_without_poll: self.pdus_without_poll,
                    bytes_without_poll: self.bytes_without_poll,
                    poll_sn: self.poll_sn,
                    pdus: vec![logged],
                }),
            }
            self.follow(&pdu);
        }
        (at, RlcUl { version: 1, subpackets }.into())
    }

    /// Updates the sender's state from its PDUs (TS 36.322, 7.1).
    fn follow(&mut self, pdu: &RlcPdu) {
        let Some(sn) = pdu.sn else { return };
        if !pdu.resegment {
            self.vt_s = (sn as u16 + 1) % 1_024;
        }
        self.pdus_without_poll = self.pdus_without_poll.saturating_add(1);
        self.bytes_without_poll = self.bytes_without_poll.saturating_add(pdu.size_bytes);
        if pdu.poll == Some(true) {
            self.pdus_without_poll = 0;
            self.bytes_without_poll = 0;
            self.poll_sn = sn as u16;
        }
    }
}
