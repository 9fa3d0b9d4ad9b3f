//! Messages with records of their own: none are joined.

use airmile_model::{BufferStatus, Dci, Direction, Measurement, Position, RlcMode, RlcPdu, Stamp};

use super::timing::CellId;
use super::{Assembler, FIRST_SRB_INDEX};
use crate::diag::msg::{
    LoggedPdu, PdcchDecoding, RlcDl, RlcHeader, RlcUl, ServCellMeas, UlBufferStatus,
};

impl Assembler {
    pub(super) fn pdcch(&mut self, at: Stamp, m: &PdcchDecoding) {
        let Some(tti) = m.tti else {
            self.untimed += 1;
            return;
        };
        let position = Position { cell: m.carrier, ..self.prompt(at, tti, None) };
        let n_prb_cell = m.n_prb_cell();
        if let Some(n_prb) = n_prb_cell {
            self.report_bandwidth(at, m.carrier, n_prb, "0xB130");
        }
        let stamp = self.stamp(position);
        for c in &m.candidates {
            let row = Dci {
                at: stamp,
                position,
                format: c.dci_format_name().unwrap_or("?"),
                rnti: c.rnti_type,
                aggregation_level: c.aggregation_level,
                ue_search_space: c.ue_search_space,
                prune_status: c.prune_status,
                n_prb_cell,
                payload: c.payload.to_vec(),
            };
            self.hold(position, row);
        }
    }

    /// Samples are 1 ms apart; one without a known time is placed relative to the next
    /// one that has it.
    pub(super) fn buffer_status(&mut self, at: Stamp, m: &UlBufferStatus) {
        let samples = m.subpackets.iter().flat_map(|s| &s.samples);
        let known = samples.clone().enumerate().find_map(|(i, s)| Some((i, s.tti?)));
        let count = samples.clone().count();
        for (i, sample) in samples.enumerate() {
            let tti = sample.tti.or_else(|| {
                let (at, tti) = known?;
                Some(tti.wrapping_add(i as i64 - at as i64))
            });
            let position = match tti {
                Some(tti) => self.timing.place_batched(at.ns, tti),
                None => self.timing.at(at.ns - (count - i) as i64 * 1_000_000),
            };
            let stamp = self.stamp(position);
            if sample.channels.is_empty() {
                let blank = BufferStatus {
                    at: stamp,
                    position,
                    lcid: None,
                    priority: None,
                    new_bytes: 0,
                    retx_bytes: 0,
                    control_bytes: 0,
                };
                self.hold(position, blank);
            }
            for c in &sample.channels {
                let row = BufferStatus {
                    at: stamp,
                    position,
                    lcid: Some(c.lcid),
                    priority: Some(c.priority),
                    new_bytes: c.new_data_bytes(),
                    retx_bytes: c.retx_bytes,
                    control_bytes: c.control_bytes.into(),
                };
                self.hold(position, row);
            }
        }
    }

    pub(super) fn rlc_dl(&mut self, at: Stamp, m: &RlcDl) {
        for s in &m.subpackets {
            for pdu in &s.pdus {
                self.rlc_pdu(at, Direction::Dl, (s.bearer, s.mode, s.sn_bits), pdu);
            }
        }
    }

    pub(super) fn rlc_ul(&mut self, at: Stamp, m: &RlcUl) {
        for s in &m.subpackets {
            for pdu in &s.pdus {
                self.rlc_pdu(at, Direction::Ul, (s.bearer, s.mode, s.sn_bits), pdu);
            }
        }
    }

    fn rlc_pdu(&mut self, at: Stamp, dir: Direction, of: (u8, u8, u8), pdu: &LoggedPdu) {
        let Some(position) = self.batched(at, pdu.tti, 0) else { return };
        if dir == Direction::Dl {
            self.rlc_ttis.insert((position.timing_segment, position.tti));
        }
        let (bearer, mode, sn_bits) = of;
        let header = pdu.header(sn_bits);
        let (sn, poll, resegment, status) = match &header {
            Some(RlcHeader::Data { sn, poll, resegment, .. }) => {
                // UM has no poll bit (TS 36.322, 6.2.1.3).
                let poll = (rlc_mode(mode) == RlcMode::Am).then_some(*poll);
                (Some(*sn), poll, *resegment, false)
            }
            Some(RlcHeader::Status { .. } | RlcHeader::Control { .. }) => (None, None, false, true),
            None => (None, None, false, false),
        };
        let row = RlcPdu {
            at: self.stamp(position),
            position,
            dir,
            bearer,
            signalling: Some(bearer >= FIRST_SRB_INDEX),
            mode: rlc_mode(mode),
            sn,
            size_bytes: pdu.size_bytes.into(),
            poll,
            resegment,
            status,
        };
        self.hold(position, row);
    }

    pub(super) fn measurement(&mut self, at: Stamp, m: &ServCellMeas) {
        for s in &m.subpackets {
            let primary = s.serving_cell == 0 && s.is_serving != Some(false);
            let cell = primary.then_some(CellId { pci: s.pci, earfcn: Some(s.earfcn) });
            let position = match (s.tti, s.sfn) {
                (Some(tti), _) if primary => self.prompt(at, tti, cell),
                (Some(tti), _) => self.timing.place_batched(at.ns, tti),
                (None, Some(sfn)) => self.timing.place_in_frame(at.ns, sfn, cell),
                (None, None) => self.timing.at(at.ns),
            };
            let position = Position { cell: s.serving_cell, ..position };
            let row = Measurement {
                at: self.stamp(position).or(Some(at)),
                position,
                earfcn: s.earfcn,
                pci: s.pci,
                rsrp_rx0_dbm: s.rsrp_rx0_dbm,
                rsrp_rx1_dbm: s.rsrp_rx1_dbm,
                rsrp_dbm: s.rsrp_dbm,
                rsrq_rx0_db: s.rsrq_rx0_db,
                rsrq_rx1_db: s.rsrq_rx1_db,
                rsrq_db: s.rsrq_db,
                rssi_rx0_dbm: s.rssi_rx0_dbm,
                rssi_rx1_dbm: s.rssi_rx1_dbm,
                rssi_dbm: s.rssi_dbm,
                snr_rx0_db: s.snr_rx0_db,
                snr_rx1_db: s.snr_rx1_db,
            };
            self.hold_or_emit(at, position, row);
        }
    }
}

pub(super) const fn rlc_mode(code: u8) -> RlcMode {
    match code {
        1 => RlcMode::Am,
        2 => RlcMode::Um,
        _ => RlcMode::Tm,
    }
}
