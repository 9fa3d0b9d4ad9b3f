//! NR messages: each states its slot, and none are joined.

use std::collections::BTreeMap;

use airmile_model::{
    Direction, Grant, GrantSources, MacBlock, NrCell, NrMeasurement, NrUlStats, Position, Record,
    RlcMode, RlcPdu, RntiType, RrcMessage, Stamp,
};

use super::Assembler;
use super::nr_order::{NrDlBlock, SlotBatch};
use crate::diag::msg::{
    NrDlData, NrDlDataBlock, NrMeas, NrMeasCell, NrPdschStatus, NrRlcHead, NrRrcOta, NrServCell,
    NrSlot, NrUlTb, NrUlTbStats,
};

impl Assembler {
    /// Takes the blocks of a text export's 0xB887.
    pub(crate) fn push_nr_blocks(
        &mut self,
        at: Stamp,
        blocks: Vec<NrDlBlock>,
        give: &mut impl FnMut(Record),
    ) {
        self.settle(Some(at));
        self.note_holes(at);
        self.nr_blocks(at, blocks);
        self.release(give);
    }

    /// Takes the blocks of a message. The slots of a cell have the delay of the last one of that cell: over
    /// a handover, frames of another cell show no time.
    fn nr_blocks(&mut self, at: Stamp, blocks: Vec<NrDlBlock>) {
        let cell = |block: &NrDlBlock| (block.pci, block.arfcn);
        let last: BTreeMap<_, _> = blocks.iter().map(|block| (cell(block), block.time)).collect();
        for block in blocks {
            let batch = SlotBatch { at, last: last.get(&cell(&block)).copied() };
            self.nr.push(batch, block);
        }
    }

    pub(super) fn nr_pdsch_status(&mut self, at: Stamp, m: &NrPdschStatus) {
        let mut blocks = Vec::new();
        for record in &m.records {
            if record.time.exists() {
                self.nr_numerology = Some(record.time.numerology);
            }
            for block in &record.blocks {
                if !record.time.exists() {
                    self.untimed += 1;
                    continue;
                }
                let mut grant = Grant::new(Position::default(), Direction::Dl, block.n_prb);
                grant.tb = block.tb;
                grant.tbs_bytes = Some(block.tbs_bytes);
                grant.mcs = Some(block.mcs);
                grant.modulation = Some(block.modulation);
                grant.harq_id = Some(block.harq_id);
                grant.ndi = Some(block.ndi);
                grant.rv = Some(block.rv);
                grant.layers = Some(block.layers);
                grant.rnti = block.rnti_type;
                grant.crc_ok = Some(block.crc_ok);
                grant.retx = Some(!block.new_data || block.retx_count > 0);
                grant.sources = GrantSources::NR_PDSCH_STATUS;
                blocks.push(NrDlBlock {
                    time: record.time,
                    carrier: None,
                    pci: Some(block.pci),
                    arfcn: Some(block.arfcn),
                    grant,
                });
            }
        }
        self.nr_blocks(at, blocks);
    }

    /// The contents of downlink blocks; their slots are those of 0xB887.
    pub(super) fn nr_dl_data(&mut self, at: Stamp, m: &NrDlData) {
        let numerology = self.nr_numerology;
        let time_of = |block: &NrDlDataBlock| {
            let slot = u8::try_from(block.slot).unwrap_or(u8::MAX);
            numerology.map(|numerology| NrSlot { frame: block.frame, slot, numerology })
        };
        let batch = SlotBatch { at, last: m.blocks.last().and_then(time_of) };
        for block in &m.blocks {
            let Some(time) = time_of(block).filter(|time| time.exists()) else {
                self.untimed += 1;
                continue;
            };
            if let Some(padding_bytes) = block.padding_bytes() {
                let lcids: Vec<String> =
                    block.logged.iter().map(|pdu| pdu.lcid().to_string()).collect();
                let n_pdus = block.logged.iter().filter(|pdu| pdu.is_sdu()).count();
                let contents = MacBlock {
                    at: None,
                    position: Position::default(),
                    dir: Direction::Dl,
                    rnti: RntiType::C,
                    harq_id: 0,
                    tbs_bytes: block.tbs_bytes,
                    rlc_pdus: u8::try_from(n_pdus).unwrap_or(u8::MAX),
                    padding_bytes,
                    data_bytes: block.sdu_bytes(),
                    lcids: lcids.join(" "),
                };
                self.nr.push_at(batch, time, contents.into());
            }
            for pdu in &block.logged {
                let bearer = m.bearer(pdu.lcid()).filter(|bearer| bearer.is_am());
                let (Some(bearer), Some(head)) = (bearer, pdu.rlc()) else { continue };
                let size_bytes = pdu.length().map_or(0, |(_, bytes)| bytes);
                let pdu = RlcPdu {
                    at: None,
                    position: Position::default(),
                    dir: Direction::Dl,
                    bearer: bearer.lcid,
                    signalling: Some(bearer.is_signalling()),
                    mode: RlcMode::Am,
                    sn: None,
                    size_bytes,
                    poll: match head {
                        NrRlcHead::Data { poll } => Some(poll),
                        NrRlcHead::Control => None,
                    },
                    resegment: false,
                    status: head == NrRlcHead::Control,
                };
                self.nr.push_at(batch, time, pdu.into());
            }
        }
    }

    pub(super) fn nr_ul_tb(&mut self, at: Stamp, m: &NrUlTb) {
        let times = m.ttis.iter().flat_map(|tti| tti.blocks.iter().map(|block| tti.time(block)));
        let batch = SlotBatch { at, last: times.last() };
        for tti in &m.ttis {
            for block in &tti.blocks {
                let time = tti.time(block);
                if !time.exists() {
                    self.untimed += 1;
                    continue;
                }
                let position = Position::default();
                self.nr.push_at(batch, time, block.grant(position).into());
                let reports = block.reports();
                let lcids = if reports.is_empty() { "" } else { "bsr" };
                let contents = MacBlock {
                    at: None,
                    position,
                    dir: Direction::Ul,
                    rnti: RntiType::C,
                    harq_id: block.harq_id,
                    tbs_bytes: block.grant_bytes,
                    rlc_pdus: 0,
                    padding_bytes: block.padding_bytes(),
                    data_bytes: None,
                    lcids: lcids.to_owned(),
                };
                self.nr.push_at(batch, time, contents.into());
                for report in reports {
                    self.nr.push_at(batch, time, report.record(None, position).into());
                }
            }
        }
    }

    pub(super) fn nr_ul_counters(&mut self, at: Stamp, m: &NrUlTbStats) {
        let sent = (0..).zip(&m.carriers).map(|(carrier, counters)| (carrier, counters.bytes[0]));
        self.nr.note_bytes(Direction::Ul, sent.collect());
        for (carrier, counters) in (0..).zip(&m.carriers) {
            let ([new_bytes, retx_bytes], [new_blocks, retx_blocks]) =
                (counters.bytes, counters.blocks);
            let at = Some(at);
            self.emit_now(NrUlStats {
                at,
                carrier,
                new_blocks,
                retx_blocks,
                new_bytes,
                retx_bytes,
            });
        }
    }

    pub(super) fn nr_measurements(&mut self, at: Stamp, m: &NrMeas) {
        for layer in &m.layers {
            for cell in &layer.cells {
                let serving = cell.pci == layer.serving_pci;
                let blank = blank_measurement(at, layer.arfcn, cell, serving);
                if cell.beams.is_empty() {
                    self.emit_now(blank.clone());
                }
                for beam in &cell.beams {
                    let [rsrp_rx0, rsrp_rx1] = beam.rsrp_x128.map(power);
                    let [nr_rsrp, nr_rsrq, lte_rsrp, lte_rsrq] = beam.filtered_x128.map(power);
                    self.emit_now(NrMeasurement {
                        ssb: Some(beam.ssb),
                        beam_rsrp_rx0_dbm: rsrp_rx0,
                        beam_rsrp_rx1_dbm: rsrp_rx1,
                        beam_rsrp_dbm: nr_rsrp.or(lte_rsrp),
                        beam_rsrq_db: nr_rsrq.or(lte_rsrq),
                        ..blank.clone()
                    });
                }
            }
        }
    }

    pub(super) fn nr_cell(&mut self, at: Stamp, m: &NrServCell) {
        self.emit_now(NrCell {
            at: Some(at),
            pci: m.pci,
            arfcn: m.arfcn_dl,
            band: m.band,
            bandwidth_dl_mhz: m.bandwidth_dl_mhz,
            bandwidth_ul_mhz: m.bandwidth_ul_mhz,
        });
    }

    pub(super) fn nr_rrc_message(&mut self, at: Stamp, m: &NrRrcOta) {
        let position = self.timing.at(at.ns);
        let row = RrcMessage {
            at: Some(at),
            position,
            dir: None,
            channel: None,
            pdu_type: m.pdu_id,
            pci: m.pci,
            earfcn: m.arfcn,
            size_bytes: m.message.len() as u32,
            handover: None,
        };
        self.hold_or_emit(at, position, row);
    }
}

fn blank_measurement(at: Stamp, arfcn: u32, cell: &NrMeasCell, serving: bool) -> NrMeasurement {
    NrMeasurement {
        at: Some(at),
        arfcn,
        pci: cell.pci,
        serving,
        sfn: Some(cell.sfn).filter(|sfn| *sfn < 1024),
        rsrp_dbm: power(cell.rsrp_x128),
        rsrq_db: power(cell.rsrq_x128),
        ssb: None,
        beam_rsrp_rx0_dbm: None,
        beam_rsrp_rx1_dbm: None,
        beam_rsrp_dbm: None,
        beam_rsrq_db: None,
    }
}

/// A power in dB or dBm of units of 1/128; 0 stands for "not measured".
fn power(x128: i32) -> Option<f32> {
    (x128 != 0).then_some(x128 as f32 / 128.0)
}
