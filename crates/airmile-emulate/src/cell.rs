//! The cell as a state machine: packets in, time forward, packets and records
//! out.

use std::collections::VecDeque;

use airmile_model::{
    BsrReport, BufferStatus, CellInfo, Direction, Grant, GrantSources, MacBlock, Position, Record,
    RlcMode, RlcPdu, RntiType, Stamp, TruthRun, TtiIndex,
};

use crate::downlink::{self, Downlink, RlcEnd};
use crate::mac::{DATA_LCID, MacPdu};
use crate::measure::Meter;
use crate::rlc::{AmReceiver, AmSender, Pdu, Sdu, in_transit_bytes, wire_sn};
use crate::scenario::{Scenario, ScenarioError};
use crate::truth::{CellUse, QueueTruth, observe_cell};
use crate::uplink::{self, Uplink};

/// Time of TTI index 0 of every run: 2026-01-05T09:00:00Z (chosen here).
pub const EPOCH_NS: i64 = 1_767_603_600_000_000_000;

/// Logical channel group and priority of the data bearer (chosen here: a usual
/// LogicalChannelConfig of a default bearer).
const DATA_LCG: u8 = 3;
const DATA_PRIORITY: u8 = 12;

/// A packet that has crossed the air.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Which way.
    pub dir: Direction,
    /// The packet.
    pub sdu: Sdu,
}

/// A cell with one phone whose queues can be seen.
///
/// For each TTI: [`push`](Self::push) what arrives, [`step`](Self::step), then
/// [`poll_delivery`](Self::poll_delivery) and [`poll_record`](Self::poll_record)
/// until both give `None`. [`into_truth`](Self::into_truth) at the end.
#[derive(Debug, Clone)]
pub struct Cell {
    tti: i64,
    n_prb: u16,
    n_tx_antennas: u8,
    downlink: Downlink,
    uplink: Uplink,
    meter: Meter,
    enb: RlcEnd,
    phone: RlcEnd,
    dl_truth: QueueTruth,
    ul_truth: QueueTruth,
    cell_use: Vec<CellUse>,
    deliveries: VecDeque<Delivery>,
    records: VecDeque<Record>,
}

/// What [`Cell::into_truth`] gives.
#[derive(Debug, Clone, PartialEq)]
pub struct CellTruth {
    /// The phone's queue at the base station.
    pub dl: Vec<TruthRun>,
    /// The phone's own queue.
    pub ul: Vec<TruthRun>,
    /// What all users had.
    pub cell_use: Vec<CellUse>,
}

impl Cell {
    /// A cell before its first TTI.
    ///
    /// # Errors
    /// A scenario that cannot be run.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        scenario.validate()?;
        let tti = i64::from(scenario.first_tti);
        let end = |sends: &crate::RlcConfig, receives: &crate::RlcConfig| RlcEnd {
            sender: AmSender::new(sends.clone()),
            receiver: AmReceiver::new(receives.clone()),
        };
        let mut cell = Self {
            tti,
            n_prb: scenario.cell.n_prb,
            n_tx_antennas: scenario.cell.n_tx_antennas,
            downlink: Downlink::new(scenario, tti),
            uplink: Uplink::new(scenario, tti),
            meter: Meter::new(scenario),
            enb: end(&scenario.dl_rlc, &scenario.ul_rlc),
            phone: end(&scenario.ul_rlc, &scenario.dl_rlc),
            dl_truth: QueueTruth::default(),
            ul_truth: QueueTruth::default(),
            cell_use: Vec::new(),
            deliveries: VecDeque::new(),
            records: VecDeque::new(),
        };
        cell.records.push_back(cell.describe(scenario).into());
        Ok(cell)
    }

    /// The next TTI.
    #[must_use]
    pub const fn tti(&self) -> TtiIndex {
        TtiIndex(self.tti)
    }

    /// Puts a packet into the queue of a direction; it can leave in the next TTI.
    pub fn push(&mut self, dir: Direction, sdu: Sdu) {
        match dir {
            Direction::Dl => self.enb.sender.push(sdu),
            Direction::Ul => self.phone.sender.push(sdu),
        }
    }

    /// Bytes in the queue of a direction.
    #[must_use]
    pub fn queue_bytes(&self, dir: Direction) -> u64 {
        match dir {
            Direction::Dl => self.enb.sender.queue_bytes(),
            Direction::Ul => self.phone.sender.queue_bytes(),
        }
    }

    /// Bytes of a direction never sent, and bytes sent of SDUs not delivered.
    #[must_use]
    pub fn undelivered_bytes(&self, dir: Direction) -> (u64, u64) {
        let (sender, receiver) = match dir {
            Direction::Dl => (&self.enb.sender, &self.phone.receiver),
            Direction::Ul => (&self.phone.sender, &self.enb.receiver),
        };
        (sender.new_bytes(), in_transit_bytes(sender, receiver))
    }

    /// Goes through a TTI.
    pub fn step(&mut self) {
        for end in [&mut self.enb, &mut self.phone] {
            end.sender.tick(self.tti);
            end.receiver.tick(self.tti);
        }
        self.step_uplink();
        self.step_downlink();
        self.tti += 1;
    }

    /// A packet that has crossed the air.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// A record, in time order.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// Ends the run.
    #[must_use]
    pub fn into_truth(self) -> CellTruth {
        CellTruth {
            dl: self.dl_truth.into_runs(),
            ul: self.ul_truth.into_runs(),
            cell_use: self.cell_use,
        }
    }

    fn step_downlink(&mut self) {
        let before = self.enb.sender.queue_bytes();
        let out = self.downlink.step(self.tti, &mut self.enb);
        let leaves = out.to_phone.as_ref().is_some_and(|sent| sent.departed_bytes > 0);
        self.dl_truth.observe(self.tti, before, self.enb.sender.queue_bytes(), leaves);
        observe_cell(&mut self.cell_use, self.tti, out.n_prb, out.users);
        if let Some(sent) = out.to_phone {
            self.record_downlink(&sent);
            if let Some(block) = sent.received {
                self.receive(Direction::Dl, &block);
            }
        }
        if self.meter.measures(self.tti) {
            let load = f64::from(out.n_prb) / f64::from(self.n_prb);
            let fade_db = self.downlink.phone_fade_db();
            let measurement = self.meter.measure(self.position(), load, fade_db);
            self.records.push_back(Record::Measurement(airmile_model::Measurement {
                at: self.at(),
                ..measurement
            }));
        }
    }

    fn step_uplink(&mut self) {
        self.sample_buffer();
        let before = self.phone.sender.queue_bytes();
        let sent = self.uplink.step(self.tti, &mut self.phone);
        let leaves = sent.as_ref().is_some_and(|sent| sent.departed_bytes > 0);
        self.ul_truth.observe(self.tti, before, self.phone.sender.queue_bytes(), leaves);
        if let Some(sent) = sent {
            self.record_uplink(&sent);
            if let Some(block) = sent.received {
                self.receive(Direction::Ul, &block);
            }
        }
    }

    /// Hands the PDUs of a received block to RLC.
    fn receive(&mut self, dir: Direction, block: &MacPdu) {
        let end = match dir {
            Direction::Dl => &mut self.phone,
            Direction::Ul => &mut self.enb,
        };
        for pdu in &block.pdus {
            match pdu {
                Pdu::Status(status) => end.sender.receive_status(status),
                Pdu::Data(pdu) => {
                    let sdus = end.receiver.receive(pdu, self.tti);
                    self.deliveries.extend(sdus.into_iter().map(|sdu| Delivery { dir, sdu }));
                }
            }
        }
    }
}

/// Records.
impl Cell {
    const fn position(&self) -> Position {
        Position::lte(self.tti)
    }

    fn at(&self) -> Option<Stamp> {
        Some(Stamp::modem(EPOCH_NS + self.tti * 1_000_000))
    }

    fn describe(&self, scenario: &Scenario) -> CellInfo {
        CellInfo {
            at: self.at(),
            timing_segment: 0,
            cell: 0,
            pci: Some(scenario.cell.pci),
            earfcn: Some(scenario.cell.earfcn),
            n_prb_dl: Some(self.n_prb),
            n_prb_ul: Some(self.n_prb),
            n_tx_antennas: Some(self.n_tx_antennas),
            band: Some(scenario.cell.band),
            source: "emulator",
        }
    }

    fn record_downlink(&mut self, sent: &downlink::Sent) {
        let received = sent.received.as_ref();
        let how = sent.transmission;
        let grant = Grant {
            at: self.at(),
            n_prb_cell: Some(self.n_prb),
            // Transmit diversity sends one layer's block.
            layers: Some(1),
            tbs_bytes: Some(sent.tbs_bytes),
            mcs: Some(how.mcs),
            modulation: Some(sent.modulation),
            harq_id: Some(how.harq_id),
            ndi: Some(how.ndi),
            rv: Some(how.rv),
            retx: Some(how.retx),
            crc_ok: Some(how.crc_ok),
            // As in a log: the MAC layer sees a block once it is received.
            padding_bytes: received.map(|block| block.padding_bytes),
            data_bytes: received.map(MacPdu::sdu_bytes),
            sources: GrantSources::EMULATOR,
            ..Grant::new(self.position(), Direction::Dl, sent.n_prb)
        };
        self.records.push_back(grant.into());
        if let Some(block) = received {
            self.record_block(Direction::Dl, how.harq_id, sent.tbs_bytes, block);
        }
    }

    fn record_uplink(&mut self, sent: &uplink::Sent) {
        let built = sent.built.as_ref();
        let how = sent.transmission;
        let grant = Grant {
            at: self.at(),
            n_prb_cell: Some(self.n_prb),
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
            self.record_block(Direction::Ul, how.harq_id, sent.tbs_bytes, block);
        }
        if let Some(index) = sent.bsr_index {
            let upper_bound_bytes = airmile_model::tables::bsr_upper_bound_bytes(index);
            let (at, position) = (self.at(), self.position());
            let report = BsrReport { at, position, lcg: DATA_LCG, index, upper_bound_bytes };
            self.records.push_back(report.into());
        }
    }

    /// The MAC block and its RLC PDUs: when received (downlink), when first
    /// sent (uplink).
    fn record_block(&mut self, dir: Direction, harq_id: u8, tbs_bytes: u32, block: &MacPdu) {
        let (at, position) = (self.at(), self.position());
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
            let (sn, poll, resegment) = match pdu {
                Pdu::Data(pdu) => (Some(wire_sn(pdu.sn)), Some(pdu.poll), pdu.is_segment()),
                Pdu::Status(_) => (None, None, false),
            };
            self.records.push_back(Record::Rlc(RlcPdu {
                at,
                position,
                dir,
                bearer: DATA_LCID,
                signalling: Some(false),
                mode: RlcMode::Am,
                sn,
                size_bytes: pdu.size_bytes(),
                poll,
                resegment,
                status: matches!(pdu, Pdu::Status(_)),
            }));
        }
    }

    /// The phone's buffer at the start of the TTI, as 0xB066 samples it.
    fn sample_buffer(&mut self) {
        let sender = &self.phone.sender;
        let [new_bytes, retx_bytes] = [sender.new_bytes(), sender.retx_bytes()]
            .map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        let control_bytes = self.phone.receiver.status_bytes(self.tti);
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
