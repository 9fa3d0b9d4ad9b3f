//! The records of the measured phone's modem log.

use airmile_model::{
    BsrReport, BufferStatus, CellInfo, Direction, Grant, GrantSources, MacBlock, Position, Record,
    RlcMode, RlcPdu, RntiType, Stamp, TtiIndex,
};

use super::Cell;
use super::downlink::DownlinkBlock;
use crate::mac::UplinkBlock;
use crate::mac::{DATA_LCID, MacPdu};
use crate::rlc::Pdu;
use crate::scenario::Scenario;
use crate::user::UserId;

/// Logical channel group and priority of the data bearer (chosen here: a typical
/// LogicalChannelConfig of a default bearer).
const DATA_LCG: u8 = 3;
const DATA_PRIORITY: u8 = 12;

impl Cell {
    pub(super) const fn position(&self) -> Position {
        let numerology = self.frame.numerology();
        Position { timing_segment: 0, cell: self.first_cell, numerology, tti: TtiIndex(self.tti) }
    }

    const fn position_on(&self, carrier: u8) -> Position {
        Position { cell: self.first_cell + carrier, ..self.position() }
    }

    pub(super) fn at(&self) -> Option<Stamp> {
        Some(Stamp::modem(self.now_ns()))
    }

    /// Describes the carriers of the phone.
    pub(super) fn describe(&self, scenario: &Scenario) -> Vec<Record> {
        let cell = &scenario.cell;
        let info = |index: u8, n_prb: u16, pci: u16, earfcn: u32, band: u32| {
            Record::from(CellInfo {
                at: self.at(),
                timing_segment: 0,
                cell: self.first_cell + index,
                pci: Some(pci),
                earfcn: Some(earfcn),
                n_prb_dl: Some(n_prb),
                n_prb_ul: Some(n_prb),
                n_tx_antennas: Some(self.n_tx_antennas),
                band: Some(band),
                source: "emulator",
            })
        };
        let mut out = vec![info(0, cell.n_prb, cell.pci, cell.earfcn, cell.band)];
        if let Some(second) = &cell.secondary {
            out.push(info(1, second.n_prb, second.pci, second.earfcn, second.band));
        }
        out
    }

    pub(super) fn record_downlink(&mut self, carrier: u8, sent: &DownlinkBlock) {
        let grant = self.downlink_grant(carrier, sent);
        self.records.push_back(grant.into());
        if let Some(block) = &sent.received {
            let how = sent.transmission;
            self.record_block(carrier, Direction::Dl, how.harq_id, sent.tbs_bytes, block);
        }
    }

    /// Adds a record of another phone's modem about a block on the primary carrier.
    pub(super) fn record_for(&mut self, user: UserId, sent: &DownlinkBlock) {
        let grant = self.downlink_grant(0, sent);
        self.others_records.push_back((user, grant.into()));
        for pdu in sent.received.iter().flat_map(|block| &block.pdus) {
            let record = self.rlc_record(user, 0, Direction::Dl, pdu);
            self.others_records.push_back((user, record));
        }
    }

    fn downlink_grant(&self, carrier: u8, sent: &DownlinkBlock) -> Grant {
        let received = sent.received.as_ref();
        let how = sent.transmission;
        Grant {
            at: self.at(),
            n_prb_cell: Some(self.carriers[usize::from(carrier)].n_prb()),
            // Transmit diversity sends one layer's block.
            layers: Some(sent.layers),
            tbs_bytes: Some(sent.tbs_bytes),
            mcs: Some(how.mcs),
            modulation: Some(sent.modulation),
            harq_id: Some(how.harq_id),
            ndi: Some(how.ndi),
            rv: Some(how.rv),
            retx: Some(how.retx),
            crc_ok: Some(how.crc_ok),
            // As in a log: the MAC layer gets a block only once it is received.
            padding_bytes: received.map(|block| block.padding_bytes),
            data_bytes: received.map(MacPdu::sdu_bytes),
            sources: GrantSources::EMULATOR,
            ..Grant::new(self.position_on(carrier), Direction::Dl, sent.n_prb)
        }
    }

    fn rlc_record(&self, user: UserId, carrier: u8, dir: Direction, pdu: &Pdu) -> Record {
        let (sn, poll, resegment) = match pdu {
            Pdu::Data(pdu) => {
                (Some(pdu.format.wire_sn(pdu.sn)), Some(pdu.poll), pdu.is_resegment())
            }
            Pdu::Status(_) => (None, None, false),
        };
        let mode = self.bearers[user.index()].mode(dir);
        // UM has none.
        let poll = poll.filter(|_| mode == RlcMode::Am);
        Record::Rlc(RlcPdu {
            at: self.at(),
            position: self.position_on(carrier),
            dir,
            bearer: DATA_LCID,
            signalling: Some(false),
            mode,
            sn,
            size_bytes: pdu.size_bytes(),
            poll,
            resegment,
            status: matches!(pdu, Pdu::Status(_)),
        })
    }

    pub(super) fn record_uplink(&mut self, sent: &UplinkBlock) {
        let built = sent.built.as_ref();
        let how = sent.transmission;
        let grant = Grant {
            at: self.at(),
            n_prb_cell: Some(self.carriers[0].n_prb()),
            layers: Some(1),
            tbs_bytes: Some(sent.tbs_bytes),
            mcs: (!how.retx).then_some(how.mcs),
            modulation: Some(sent.modulation),
            harq_id: Some(how.harq_id),
            ndi: Some(how.ndi),
            rv: Some(how.rv),
            retx: Some(how.retx),
            padding_bytes: built.map(|block| block.padding_bytes),
            data_bytes: built.map(MacPdu::sdu_bytes),
            sources: GrantSources::EMULATOR,
            ..Grant::new(self.position(), Direction::Ul, sent.n_prb)
        };
        self.records.push_back(grant.into());
        if let Some(block) = built {
            self.record_block(0, Direction::Ul, how.harq_id, sent.tbs_bytes, block);
        }
        if let Some(index) = sent.bsr_index {
            let (at, position) = (self.at(), self.position());
            // A long BSR covers all groups: the others are empty.
            let format = built.map(MacPdu::format).unwrap_or_default();
            let is_long = built.is_some_and(|block| block.has_long_bsr());
            for lcg in if is_long { 0..=DATA_LCG } else { DATA_LCG..=DATA_LCG } {
                let index = if lcg == DATA_LCG { index } else { 0 };
                let upper_bound_bytes = format.bsr_bytes(index);
                let report = BsrReport { at, position, lcg, index, upper_bound_bytes };
                self.records.push_back(report.into());
            }
        }
    }

    /// Records the MAC block and its RLC PDUs: on reception (downlink) or at the first
    /// transmission (uplink).
    fn record_block(
        &mut self,
        carrier: u8,
        dir: Direction,
        harq_id: u8,
        tbs_bytes: u32,
        block: &MacPdu,
    ) {
        let (at, position) = (self.at(), self.position_on(carrier));
        let mac_block = MacBlock {
            at,
            position,
            dir,
            rnti: RntiType::C,
            harq_id,
            tbs_bytes,
            rlc_pdus: u8::try_from(block.pdus.len()).unwrap_or(u8::MAX),
            padding_bytes: block.padding_bytes,
            data_bytes: Some(block.sdu_bytes()),
            lcids: block.subheaders().join(" "),
        };
        self.records.push_back(mac_block.into());
        for pdu in &block.pdus {
            let record = self.rlc_record(UserId::MEASURED, carrier, dir, pdu);
            self.records.push_back(record);
        }
    }

    /// The phone's buffer at the start of the TTI, as 0xB066 samples it.
    pub(super) fn sample_buffer(&mut self) {
        let phone = &self.measured().phone;
        let sender = &phone.sender;
        let [new_bytes, retx_bytes] = [sender.new_bytes(), sender.retx_bytes()]
            .map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        let control_bytes = phone.receiver.status_bytes(self.tti);
        let active = new_bytes + retx_bytes + control_bytes > 0;
        self.records.push_back(Record::BufferStatus(BufferStatus {
            at: self.at(),
            position: self.position(),
            lcid: active.then_some(DATA_LCID),
            priority: active.then_some(DATA_PRIORITY),
            new_bytes,
            retx_bytes,
            control_bytes,
        }));
    }
}
