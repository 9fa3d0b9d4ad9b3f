//! Messages outside the data path: neighbours, radio link monitoring, RRC, PDCP and RLC
//! counters.

use airmile_model::{
    Direction, Neighbour, NrStats, PdcpPdu, Position, RadioLink, Record, RlcStats, RrcMessage,
    Stamp, Tti,
};

use super::plain::rlc_mode;
use super::{Assembler, FIRST_SRB_INDEX};
use crate::diag::msg::{
    IntraFreqMeas, NeighbourMeas, NrPdschStats, PdcpCipher, RlcCounters, RlmReport, RrcOta,
};

impl Assembler {
    /// These messages never set the timing: before a message that does, they are returned
    /// as they come.
    fn place(&mut self, at: Stamp, tti: Option<Tti>, cell: u8) -> Position {
        let position = match tti {
            Some(tti) if self.timing.now(at.ns).is_some() => self.timing.place_batched(at.ns, tti),
            _ => self.timing.at(at.ns),
        };
        Position { cell, ..position }
    }

    pub(super) fn hold_or_emit(
        &mut self,
        at: Stamp,
        position: Position,
        record: impl Into<Record>,
    ) {
        if self.timing.now(at.ns).is_some() {
            self.hold(position, record);
        } else {
            self.emit_now(record);
        }
    }

    pub(super) fn intra_freq(&mut self, at: Stamp, m: &IntraFreqMeas) {
        let position = self.place(at, m.tti, m.serving_cell);
        let serving = Neighbour {
            at: self.stamp(position).or(Some(at)),
            position,
            serving: true,
            earfcn: m.earfcn,
            pci: m.pci,
            rsrp_dbm: m.rsrp_dbm,
            rsrq_db: m.rsrq_db,
            rssi_dbm: None,
            source: "0xB179",
        };
        for n in &m.neighbours {
            let row = Neighbour {
                serving: false,
                pci: n.pci,
                rsrp_dbm: n.rsrp_dbm,
                rsrq_db: n.rsrq_db,
                ..serving.clone()
            };
            self.hold_or_emit(at, position, row);
        }
        self.hold_or_emit(at, position, serving);
    }

    pub(super) fn neighbours(&mut self, at: Stamp, m: &NeighbourMeas) {
        for s in &m.subpackets {
            let position = self.place(at, None, s.serving_cell);
            for cell in &s.cells {
                let row = Neighbour {
                    at: Some(at),
                    position,
                    serving: false,
                    earfcn: s.earfcn,
                    pci: cell.pci,
                    rsrp_dbm: cell.rsrp_dbm,
                    rsrq_db: cell.rsrq_db,
                    rssi_dbm: cell.rssi_dbm,
                    source: "0xB195",
                };
                self.hold_or_emit(at, position, row);
            }
        }
    }

    pub(super) fn radio_link(&mut self, at: Stamp, m: &RlmReport) {
        for r in &m.records {
            let position = self.place(at, r.tti, 0);
            let row = RadioLink {
                at: self.stamp(position).or(Some(at)),
                position,
                out_of_sync_bler: f32::from(r.out_of_sync_bler_x32768) / 32_768.0,
                in_sync_bler: f32::from(r.in_sync_bler_x32768) / 32_768.0,
                out_of_sync_count: r.out_of_sync_count,
                in_sync_count: r.in_sync_count,
                t310_state: r.t310_state,
            };
            self.hold_or_emit(at, position, row);
        }
    }

    pub(super) fn rrc_message(&mut self, at: Stamp, m: &RrcOta) {
        let channel = m.channel();
        let dir = channel.map(|c| if c.starts_with("UL") { Direction::Ul } else { Direction::Dl });
        let position = self.place(at, None, 0);
        let row = RrcMessage {
            at: Some(at),
            position,
            dir,
            channel,
            pdu_type: m.pdu_type,
            pci: m.pci,
            earfcn: m.earfcn,
            size_bytes: m.message.len() as u32,
            handover: (channel == Some("DL-DCCH")).then(|| is_handover_command(&m.message)),
        };
        self.hold_or_emit(at, position, row);
    }

    pub(super) fn pdcp<const CODE: u16>(&mut self, at: Stamp, m: &PdcpCipher<CODE>) {
        let dir = if CODE == 0xB0A3 { Direction::Dl } else { Direction::Ul };
        for pdu in m.subpackets.iter().flat_map(|s| &s.pdus) {
            let position = self.place(at, pdu.tti, 0);
            let row = PdcpPdu {
                at: self.stamp(position).or(Some(at)),
                position,
                dir,
                bearer: pdu.bearer,
                signalling: pdu.bearer >= FIRST_SRB_INDEX,
                mode: if pdu.acknowledged_mode { rlc_mode(1) } else { rlc_mode(2) },
                sn_bits: sn_bits(pdu.sn_length_code),
                sn: pdu.sn,
                size_bytes: pdu.size_bytes.into(),
                valid: pdu.valid,
            };
            self.hold_or_emit(at, position, row);
        }
    }

    pub(super) fn nr_counters(&mut self, at: Stamp, m: &NrPdschStats) {
        let received = m.carriers.iter().map(|c| (c.carrier, c.bytes[0]));
        self.nr.note_bytes(Direction::Dl, received.collect());
        for c in &m.carriers {
            let [slots, _, good_blocks, failed_blocks, retx_blocks, _, harq_failures] = c.counts;
            let [good_bytes, _, _, padding_bytes, retx_bytes] = c.bytes;
            self.emit_now(NrStats {
                at: Some(at),
                carrier: c.carrier,
                slots,
                good_blocks,
                failed_blocks,
                retx_blocks,
                harq_failures,
                good_bytes,
                padding_bytes,
                retx_bytes,
            });
        }
    }

    pub(super) fn rlc_counters<const CODE: u16>(&mut self, at: Stamp, m: &RlcCounters<CODE>) {
        for bearer in m.subpackets.iter().flat_map(|s| &s.bearers) {
            let count = |name| bearer.count::<CODE>(name);
            self.emit_now(RlcStats {
                at: Some(at),
                dir: if CODE == 0xB087 { Direction::Dl } else { Direction::Ul },
                bearer: bearer.bearer,
                mode: rlc_mode(bearer.mode),
                data_pdus: count("data_pdus").unwrap_or_default(),
                data_bytes: count("data_bytes").unwrap_or_default(),
                retx_pdus: count("retx_pdus").unwrap_or_default(),
                retx_bytes: count("retx_bytes").unwrap_or_default(),
                sdus: count("sdus").unwrap_or_default(),
                sdu_bytes: count("sdu_bytes").unwrap_or_default(),
                status_pdus: count("status_pdus").unwrap_or_default(),
                complete_nacks: count("complete_nacks").unwrap_or_default(),
            });
        }
    }
}

/// Bits of a PDCP sequence number (TS 36.323, 6.3.2), by the codes in public logs: 12 on
/// data bearers, 5 on signalling bearers.
const fn sn_bits(code: u8) -> Option<u8> {
    match code {
        0 => Some(5),
        1 => Some(7),
        2 => Some(12),
        _ => None,
    }
}

/// Whether a DL-DCCH message is an RRCConnectionReconfiguration with mobilityControlInfo,
/// according to the fixed head of its unaligned PER (TS 36.331, 6.2.2 DL-DCCH-Message):
/// `c1` 0, message type 0100, transaction identifier 2 bits, `c1` 0,
/// `rrcConnectionReconfiguration-r8` 000, then a bit each for measConfig and
/// mobilityControlInfo.
fn is_handover_command(message: &[u8]) -> bool {
    matches!(message, [first, second, ..] if first & 0xf9 == 0x20 && second & 0xe8 == 0x08)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handover_commands_by_their_head() {
        // 0 0100 01 0 | 000 0 1 ...
        assert!(is_handover_command(&[0x22, 0x08]));
        assert!(is_handover_command(&[0x20, 0x1b]));
        // Without mobilityControlInfo; another message type; another release.
        assert!(!is_handover_command(&[0x22, 0x16]));
        assert!(!is_handover_command(&[0x2a, 0x08]));
        assert!(!is_handover_command(&[0x22, 0x28]));
        assert!(!is_handover_command(&[0x20]));
    }
}
