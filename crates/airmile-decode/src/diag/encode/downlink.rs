//! Messages of the downlink: 0xB126, 0xB132, 0xB173, 0xB063, 0xB082.

use crate::diag::msg::{
    CodeBlock, DecodedStream, LoggedPdu, MacContent, MacDl, MacDlBlock, MacDlSubpacket, MacHeader,
    MacSubheader, PdcchCandidate, PdschDecoding, PdschDecodingRecord, PdschPacket, PdschStat,
    PdschStatBlock, PdschStatRecord, PdschStream, RlcDl, RlcDlSubpacket, RlcHeader,
};
use airmile_model::{Grant, MacBlock, Modulation, RlcMode, RlcPdu, TtiIndex};
use smallvec::smallvec;

use super::batch::{Batch, Full, Rule};
use super::{C_RNTI, Cell, Versions, Written, byte, prompt};

/// A timing advance command that changes nothing (TS 36.213, 4.2.3).
const NO_TIMING_CHANGE: u8 = 31;

/// Bytes of a transport block's CRC, which 0xB173 counts (TS 36.212, 5.1.1).
const TB_CRC_BYTES: u32 = 3;

/// Downlink messages being built.
pub(super) struct Downlink {
    /// A reception that a second block may join.
    demap: Option<(TtiIndex, PdschPacket)>,
    stats: Batch<PdschStatRecord>,
    decodings: Batch<PdschDecodingRecord>,
    blocks: Batch<MacDlBlock>,
    pdus: Batch<(RlcPdu, LoggedPdu)>,
    /// Transmissions of the block in each HARQ process, less one.
    retx_counts: [u8; 16],
    vr_h: u16,
    acked_sn: u32,
}

impl Downlink {
    pub(super) const fn new() -> Self {
        Self {
            demap: None,
            stats: Batch::new(Rule::new(21, 300, 250, 4.0)),
            decodings: Batch::new(Rule::new(10, 100, 100, 2.0)),
            blocks: Batch::new(Rule::new(10, 60, 60, 5.0)),
            pdus: Batch::new(Rule::new(40, 100, 100, 5.0)),
            retx_counts: [0; 16],
            vr_h: 0,
            acked_sn: 0,
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
        if let Some((at, packet)) = self.demap.take_if(|(at, _)| at.0 < now) {
            out.push((prompt(at, PdschPacket::CODE), packet.into()));
        }
        if let (Some((at, items)), Some(version)) = (self.stats.due(now), versions.pdsch_stat) {
            let records = items.into_iter().map(|(_, record)| record).collect();
            out.push((at, PdschStat { version, records }.into()));
        }
        if let (Some(full), Some(version)) = (self.decodings.due(now), versions.pdsch_decoding) {
            out.push(decoding(full, version, cell));
        }
        if let Some((at, items)) = self.blocks.due(now) {
            let blocks = items.into_iter().map(|(_, block)| block).collect();
            let subpacket = MacDlSubpacket { version: versions.mac_dl, blocks };
            out.push((at, MacDl { version: 1, subpackets: vec![subpacket] }.into()));
        }
        if let (Some(full), Some(version)) = (self.pdus.due(now), versions.rlc) {
            out.push(self.rlc_message(full, version));
        }
    }

    /// A block of an assignment; the second block of a TTI joins the first.
    pub(super) fn grant(
        &mut self,
        grant: &Grant,
        versions: &Versions,
        cell: Cell,
        out: &mut Vec<Written>,
    ) {
        let tti = grant.position.tti;
        let retx = grant.retx == Some(true);
        let harq_id = grant.harq_id.unwrap_or(0) & 15;
        let count = &mut self.retx_counts[usize::from(harq_id)];
        *count = if retx { count.saturating_add(1) } else { 0 };
        let retx_count = *count;
        let same = |last: &PdschStatRecord| last.serving_cell == grant.position.cell;
        match self.stats.last_mut() {
            Some((at, last)) if *at == tti.0 && grant.tb == 1 && same(last) => {
                last.blocks.push(stat_block(grant));
            }
            _ => self.stats.push(tti.0, stat_record(grant, cell)),
        }
        self.decodings.push(tti.0, decoding_record(grant, retx_count));
        match &mut self.demap {
            Some((at, packet)) if *at == tti && grant.tb == 1 => packet.streams[1] = stream(grant),
            demap => {
                let packet = demap_of(grant, versions.pdsch_packet, cell);
                if let Some((at, before)) = demap.replace((tti, packet)) {
                    out.push((prompt(at, PdschPacket::CODE), before.into()));
                }
            }
        }
    }

    pub(super) fn mac_block(&mut self, block: &MacBlock) {
        let header = header(block, |lcid| match lcid {
            29 => Some(vec![NO_TIMING_CHANGE]),
            _ => None,
        });
        let item = MacDlBlock {
            sub_id: Some(0),
            cell: Some(block.position.cell),
            tti: Some(block.position.tti.wrapped()),
            rnti_type: block.rnti,
            harq_id: block.harq_id,
            pmch: 0,
            tbs_bytes: u16::try_from(block.tbs_bytes).unwrap_or(u16::MAX),
            rlc_pdus: block.rlc_pdus,
            padding_bytes: u16::try_from(block.padding_bytes).unwrap_or(u16::MAX),
            header: header.into(),
        };
        self.blocks.push(block.position.tti.0, item);
    }

    pub(super) fn rlc(&mut self, pdu: &RlcPdu) {
        let logged = logged(pdu, &mut self.acked_sn);
        self.pdus.push(pdu.position.tti.0, (pdu.clone(), logged));
    }

    fn rlc_message(&mut self, (at, items): Full<(RlcPdu, LoggedPdu)>, version: u8) -> Written {
        let before = self.vr_h;
        let mut subpackets: Vec<RlcDlSubpacket> = Vec::new();
        for (_, (pdu, logged)) in items {
            if let Some(sn) = pdu.sn.filter(|_| !pdu.resegment) {
                self.vr_h = (sn as u16 + 1) % 1_024;
            }
            match subpackets.iter_mut().find(|of| of.bearer == pdu.bearer) {
                Some(of) => of.pdus.push(logged),
                None => subpackets.push(RlcDlSubpacket {
                    version,
                    bearer: pdu.bearer,
                    mode: mode_code(pdu.mode),
                    sn_bits: 10,
                    log_mask: 0,
                    // As if nothing were missing: records do not show it.
                    vr_r: before,
                    vr_x: 0,
                    vr_ms: before,
                    vr_h: before,
                    pdus: vec![logged],
                }),
            }
        }
        (at, RlcDl { version: 1, subpackets }.into())
    }
}

/// The first bytes of a PDU, without fields that records lack: framing, length
/// indicators, segment offset.
pub(super) fn logged(pdu: &RlcPdu, acked_sn: &mut u32) -> LoggedPdu {
    let header = if pdu.status {
        RlcHeader::Status { ack_sn: *acked_sn, nacks: Vec::new(), complete: true }
    } else {
        let sn = pdu.sn.unwrap_or(0);
        *acked_sn = (sn + 1) % 1_024;
        RlcHeader::Data {
            sn,
            resegment: pdu.resegment,
            poll: pdu.poll == Some(true),
            framing: 0,
            extension: false,
            last_segment: None,
            segment_offset_bytes: None,
            length_indicators_bytes: Vec::new(),
        }
    };
    let mut head = header.emit(10);
    head.truncate(2);
    let size_bytes = u16::try_from(pdu.size_bytes).unwrap_or(u16::MAX);
    LoggedPdu { tti: Some(pdu.position.tti.wrapped()), size_bytes, head: head.into() }
}

/// The modem's code of an RLC mode.
pub(super) const fn mode_code(mode: RlcMode) -> u8 {
    match mode {
        RlcMode::Am => 1,
        RlcMode::Um => 2,
        RlcMode::Tm => 3,
    }
}

/// MAC subheaders from a record's list: `LCID` or `LCID:BYTES`. `element` returns the
/// bytes of a control element.
pub(super) fn header(block: &MacBlock, element: impl Fn(u8) -> Option<Vec<u8>>) -> Vec<u8> {
    let subheader = |text: &str| {
        let (lcid, bytes) = text.split_once(':').unwrap_or((text, ""));
        let lcid: u8 = lcid.parse().ok()?;
        let content = match (bytes.parse().ok(), element(lcid)) {
            (Some(bytes), _) => MacContent::Sdu { len_bytes: Some(bytes) },
            (None, Some(bytes)) => MacContent::ControlElement(bytes.into()),
            (None, None) => MacContent::Padding { len_bytes: None },
        };
        Some(MacSubheader { lcid, content })
    };
    let subheaders: Vec<_> = block.lcids.split_whitespace().filter_map(subheader).collect();
    MacHeader::emit(block.dir, &subheaders)
}

/// The DCI of an assignment: format 1A, in the phone's search space.
pub(super) fn candidate(grant: &Grant) -> PdcchCandidate {
    PdcchCandidate { dci_format: 2, prune_status: 3, ..plain_candidate(grant) }
}

pub(super) const fn plain_candidate(grant: &Grant) -> PdcchCandidate {
    PdcchCandidate {
        payload: [0; 8],
        aggregation_level: 2,
        candidate: 0,
        ue_search_space: true,
        dci_format: 0,
        rnti_type: grant.rnti,
        payload_bits: 27, // format 0 and 1A at 10 MHz, FDD (TS 36.212, 5.3.3.1)
        tail_match: true,
        symbol_mismatches: 0,
        start_cce: 0,
        nonzero_llrs: 144, // 2 CCEs of 36 resource elements, QPSK
        norm: 0,
        prune_status: 0,
        energy: 0,
        norm_energy_x65535: 0,
        symbol_error_rate_x2_31: 0,
    }
}

fn demap_of(grant: &Grant, version: u8, cell: Cell) -> PdschPacket {
    let n_prb = u32::from(grant.n_prb.unwrap_or(0).min(cell.n_prb));
    // Somewhere in the cell, at a pseudo-random position.
    let room = u32::from(cell.n_prb) - n_prb;
    let start = (grant.position.tti.0 as u32).wrapping_mul(2_654_435_761) % (room + 1);
    let prbs = ((1u128 << n_prb) - 1) << start;
    let absent = PdschStream { tbs_bits: 0, modulation: Modulation::Qpsk };
    PdschPacket {
        version,
        pci: cell.pci,
        tti: Some(grant.position.tti.wrapped()),
        rnti: C_RNTI,
        rnti_type: grant.rnti,
        n_tx_antennas: cell.n_tx_antennas,
        n_rx_antennas: 2,
        rank: grant.layers.unwrap_or(1),
        prb_slot0: prbs,
        prb_slot1: prbs,
        pmi_index: 0,
        // Single antenna port, or transmit diversity.
        transmission_scheme: cell.n_tx_antennas.min(2),
        streams: [stream(grant), absent],
        traffic_to_pilot_x256: 256,
        pb: Some(1),
        carrier: grant.position.cell,
        op_mode: Some(0),
        strong_interferer_pci: Some(0),
        joint_demod_skip_reason: Some(0),
    }
}

fn stream(grant: &Grant) -> PdschStream {
    PdschStream {
        tbs_bits: grant.tbs_bytes.unwrap_or(0) * 8,
        modulation: grant.modulation.unwrap_or(Modulation::Qpsk),
    }
}

fn stat_record(grant: &Grant, cell: Cell) -> PdschStatRecord {
    PdschStatRecord {
        tti: Some(grant.position.tti.wrapped()),
        n_prb: byte(grant.n_prb.unwrap_or(0)),
        // Transmit diversity counts its ports (TS 36.211, 6.3.3.3).
        layers: grant.layers.unwrap_or(1).max(cell.n_tx_antennas.min(2)),
        serving_cell: grant.position.cell,
        hsic: Some(0),
        alternative_tbs: None,
        blocks: smallvec![stat_block(grant)],
        pmch_id: 0,
        area_id: 0,
    }
}

fn stat_block(grant: &Grant) -> PdschStatBlock {
    let size = grant.tbs_bytes.unwrap_or(0) + TB_CRC_BYTES;
    PdschStatBlock {
        harq_id: grant.harq_id.unwrap_or(0),
        rv: grant.rv.unwrap_or(0),
        ndi: grant.ndi == Some(true),
        crc_ok: grant.crc_ok != Some(false),
        rnti_type: grant.rnti,
        tb: grant.tb,
        discarded_retx: false,
        discard_mode: None,
        recombined: grant.retx == Some(true),
        tbs_bytes: u16::try_from(size).unwrap_or(u16::MAX),
        mcs: grant.mcs.unwrap_or(0),
        n_prb: byte(grant.n_prb.unwrap_or(0)),
        modulation: grant.modulation,
        qed_status: None,
        qed_iterations: None,
    }
}

fn decoding((at, items): Full<PdschDecodingRecord>, version: u8, cell: Cell) -> Written {
    let first = items.first().map_or(0, |(tti, _)| *tti);
    let place = |(tti, record): (i64, PdschDecodingRecord)| PdschDecodingRecord {
        tti_offset: u16::try_from(tti - first).unwrap_or(u16::MAX),
        ..record
    };
    let message = PdschDecoding {
        version,
        pci: cell.pci,
        first_tti: Some(TtiIndex(first).wrapped()),
        ue_category: 4,
        n_harq: 8,
        transmission_mode: cell.n_tx_antennas.min(2),
        soft_buffer_bits: 1_827_072 / 8, // category 4 (TS 36.306, table 4.1-1)
        carrier: 0,
        records: items.into_iter().map(place).collect(),
    };
    (at, message.into())
}

fn decoding_record(grant: &Grant, retx_count: u8) -> PdschDecodingRecord {
    let crc_ok = grant.crc_ok != Some(false);
    let bits = (grant.tbs_bytes.unwrap_or(0) + TB_CRC_BYTES) * 8;
    // Code blocks of at most 6144 bits with a CRC each if several (TS 36.212, 5.1.2).
    let count = if bits <= 6_144 { 1 } else { bits.div_ceil(6_144 - 24) };
    let with_crc = if count > 1 { bits + 24 * count } else { bits };
    let qm = grant.modulation.map_or(2, Modulation::bits_per_symbol);
    // 12 subcarriers, 12 symbols (chosen here).
    let resource_elements = grant.n_prb.unwrap_or(0) * 144;
    let coded = u32::from(resource_elements) * u32::from(qm);
    let block = |n: u32| CodeBlock {
        energy: 0,
        iterations: if crc_ok { 4 } else { 8 },
        crc_ok: crc_ok || n > 0,
        early_stop: crc_ok,
    };
    let stream = DecodedStream {
        crc_ok,
        ndi: grant.ndi == Some(true),
        code_block_bits: u16::try_from(with_crc.div_ceil(count)).unwrap_or(u16::MAX),
        max_iterations: 8,
        retx_count,
        rv: grant.rv.unwrap_or(0),
        combined: retx_count > 0,
        derate_crc_ok: crc_ok,
        code_rate_x1024: (bits * 1_024).checked_div(coded).map_or(0, |rate| rate as u16),
        resource_elements,
        codeword: grant.tb,
        code_blocks: (0..count).map(block).collect(),
    };
    PdschDecodingRecord {
        tti_offset: 0,
        rnti: C_RNTI,
        harq_id: grant.harq_id.unwrap_or(0),
        rnti_type: grant.rnti,
        codeword_swap: false,
        streams: smallvec![stream],
    }
}
