//! The cell as a state machine: packets and time go in, packets and records come out.

mod access;
mod bearer;
mod downlink;
mod records;
mod split;
#[cfg(test)]
mod tests;
mod truth;

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{Direction, Record, TtiIndex};

use crate::mac::MacPdu;
use crate::mac::Transmission;
use crate::phy::Frame;
use crate::phy::Meter;
use crate::random::Owner;
use crate::rlc::{Pdu, Sdu};
use crate::scenario::{LinkConfig, Scenario, ScenarioError};
use crate::user::UserId;
use downlink::{CarrierSetup, Downlink};
use truth::{Allocations, Capacities, QueueTruth, observe_cell};

pub(crate) use access::RadioAccess;
pub(crate) use bearer::Bearer;
pub use truth::{Allocated, Capacity, CellTruth, CellUse, LegTruth, throughput_time_ms};

/// A packet that has crossed the air interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The user.
    pub user: UserId,
    /// The direction.
    pub dir: Direction,
    /// The packet.
    pub sdu: Sdu,
}

/// A cell with phones whose queues are visible. [`UserId::MEASURED`] is the measured phone,
/// whose queues records and truth describe.
///
/// For each TTI: [`push`](Self::push) arriving packets, call [`step`](Self::step), then
/// [`poll_delivery`](Self::poll_delivery) and [`poll_record`](Self::poll_record) until both
/// return `None`. Call [`into_truth`](Self::into_truth) at the end.
#[derive(Debug, Clone)]
pub struct Cell {
    tti: i64,
    frame: Frame,
    /// Index of its primary carrier among the phone's.
    first_cell: u8,
    is_nr: bool,
    /// By direction: whether data of the measured phone left its queue in the last TTI.
    left: [bool; 2],
    n_tx_antennas: u8,
    carriers: Vec<Downlink>,
    bearers: Vec<Bearer>,
    meter: Meter,
    /// User who gets an uplink grant first.
    ul_turn: usize,
    dl_truth: QueueTruth,
    ul_truth: QueueTruth,
    /// By carrier.
    cell_use: Vec<Vec<CellUse>>,
    allocations: Allocations,
    /// The uplink's, then those of the downlink carriers.
    capacities: Vec<Capacities>,
    deliveries: VecDeque<Delivery>,
    records: VecDeque<Record>,
    /// Modems of other phones whose logs are requested, and their records.
    modems: BTreeMap<UserId, Meter>,
    others_records: VecDeque<(UserId, Record)>,
}

/// Position of a cell among those of the phone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CellPlace {
    /// Index of its primary carrier in records.
    first_cell: u8,
    /// Separates its random streams from those of other cells.
    streams: u64,
}

impl Cell {
    /// A cell before its first TTI, with only the measured phone and users with byte
    /// traffic.
    ///
    /// # Errors
    /// A scenario that cannot be run.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        Self::with_users(scenario, &[])
    }

    /// A cell before its first TTI with further users with bearers, users 1 and up, with
    /// these names and links. A user's random numbers depend only on its name.
    ///
    /// # Errors
    /// A scenario that cannot be run.
    pub fn with_users(
        scenario: &Scenario,
        others: &[(String, LinkConfig)],
    ) -> Result<Self, ScenarioError> {
        scenario.validate()?;
        if scenario.split.is_some() {
            return Err(ScenarioError::OutOfRange {
                field: "split".to_owned(),
                why: "absent for a single cell: use Simulation for both".to_owned(),
            });
        }
        Ok(Self::build(scenario, others, Frame::new(scenario), CellPlace::default()))
    }

    /// Builds the cell of a validated scenario.
    fn build(
        scenario: &Scenario,
        others: &[(String, LinkConfig)],
        frame: Frame,
        place: CellPlace,
    ) -> Self {
        let tti = frame.first_tti();
        let CellPlace { first_cell, streams } = place;
        let others = others.iter().map(|(name, link)| (Owner::named(name), link.clone()));
        let links: Vec<(Owner, LinkConfig)> =
            std::iter::once((Owner::PHONE, scenario.link.clone())).chain(others).collect();
        let primary = CarrierSetup {
            seed: scenario.seed,
            frame,
            first_tti: tti,
            carrier: streams,
            n_prb: scenario.cell.n_prb,
            nr: scenario.cell.nr,
            scheduler: scenario.cell.scheduler,
            harq_transmissions: scenario.cell.dl_harq_transmissions,
            links: &links,
            competing: &scenario.competing,
        };
        let mut carriers = vec![Downlink::new(&primary)];
        if let Some(second) = &scenario.cell.secondary {
            let snr_mean_db = scenario.link.snr_mean_db + second.snr_offset_db;
            let link = LinkConfig { snr_mean_db, dl_trace: None, ..scenario.link.clone() };
            carriers.push(Downlink::new(&CarrierSetup {
                carrier: streams + 1,
                n_prb: second.n_prb,
                links: &[(Owner::PHONE, link)],
                competing: &second.competing,
                ..primary
            }));
        }
        let bearer = |(owner, link): &(Owner, LinkConfig)| {
            Bearer::new(scenario, link, owner.on_carrier(streams), frame)
        };
        let dl_capacities = (0..carriers.len() as u8).map(|n| Capacities::new(Direction::Dl, n));
        let capacities = std::iter::once(Capacities::new(Direction::Ul, 0)).chain(dl_capacities);
        let mut cell = Self {
            tti,
            frame,
            first_cell,
            is_nr: scenario.cell.nr.is_some(),
            left: [false; 2],
            n_tx_antennas: scenario.cell.n_tx_antennas,
            cell_use: vec![Vec::new(); carriers.len()],
            allocations: Allocations::default(),
            capacities: capacities.collect(),
            carriers,
            bearers: links.iter().map(bearer).collect(),
            meter: Meter::new(scenario, frame),
            ul_turn: 0,
            dl_truth: QueueTruth::default(),
            ul_truth: QueueTruth::default(),
            deliveries: VecDeque::new(),
            records: VecDeque::new(),
            modems: BTreeMap::new(),
            others_records: VecDeque::new(),
        };
        cell.records.extend(cell.describe(scenario));
        cell
    }

    /// The next TTI.
    #[must_use]
    pub const fn tti(&self) -> TtiIndex {
        TtiIndex(self.tti)
    }

    /// Start of the next TTI in ns since the Unix epoch.
    #[must_use]
    pub const fn now_ns(&self) -> i64 {
        self.frame.start_ns(self.tti)
    }

    /// Length of a TTI in ns.
    #[must_use]
    pub const fn slot_ns(&self) -> i64 {
        self.frame.slot_ns()
    }

    /// Users with bearers.
    #[must_use]
    pub fn users(&self) -> usize {
        self.bearers.len()
    }

    /// Queues a packet of a user and direction; it can be sent from the next TTI on.
    /// Returns `false` if there was no room and the packet was dropped.
    pub fn push(&mut self, user: UserId, dir: Direction, sdu: Sdu) -> bool {
        let tti = self.tti;
        self.bearers.get_mut(user.index()).is_some_and(|bearer| bearer.push(dir, sdu, tti))
    }

    /// Whether the firmware of a user's phone has room for a packet of `bytes` bytes.
    pub(crate) fn takes_up(&self, user: UserId, bytes: u32) -> bool {
        self.bearers.get(user.index()).is_some_and(|bearer| bearer.takes_up(bytes))
    }

    /// Bytes in the queue of a user and direction.
    #[must_use]
    pub fn queue_bytes(&self, user: UserId, dir: Direction) -> u64 {
        self.bearers.get(user.index()).map_or(0, |bearer| bearer.queue_bytes(dir))
    }

    /// Bytes of a user and direction never sent, and bytes sent of undelivered SDUs.
    #[must_use]
    pub fn undelivered_bytes(&self, user: UserId, dir: Direction) -> (u64, u64) {
        self.bearers.get(user.index()).map_or((0, 0), |bearer| bearer.undelivered_bytes(dir))
    }

    /// Bytes of a user and direction dropped for lack of room.
    #[must_use]
    pub fn dropped_bytes(&self, user: UserId, dir: Direction) -> u64 {
        self.bearers.get(user.index()).map_or(0, |bearer| bearer.dropped_bytes(dir))
    }

    /// Simulates a TTI.
    pub fn step(&mut self) {
        for (n, bearer) in self.bearers.iter_mut().enumerate() {
            let user = UserId(n);
            bearer.tick(self.tti);
            let late = [(Direction::Dl, &mut bearer.phone), (Direction::Ul, &mut bearer.enb)];
            for (dir, end) in late {
                let sdus = end.receiver.take_late().into_iter();
                self.deliveries.extend(sdus.map(|sdu| Delivery { user, dir, sdu }));
            }
        }
        self.allocations.begin();
        self.step_uplink();
        self.step_downlink();
        self.tti += 1;
    }

    /// By direction: whether data of the measured phone left its queue in the last TTI.
    pub(crate) const fn left(&self) -> [bool; 2] {
        self.left
    }

    /// The measured phone's bearer.
    fn measured(&self) -> &Bearer {
        &self.bearers[UserId::MEASURED.index()]
    }

    /// A packet that has crossed the air interface.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// A record, in time order.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// Lets the modem of a phone other than the measured one write a log, too, of its
    /// measurements and received downlink blocks. The phone's name and link are those given
    /// at its creation.
    pub(crate) fn log_user(
        &mut self,
        scenario: &Scenario,
        user: UserId,
        (name, link): (&str, &LinkConfig),
    ) {
        let meter = Meter::for_phone(scenario, link, Owner::named(name), self.frame);
        self.modems.insert(user, meter);
        let described = self.describe(scenario).into_iter().take(1);
        self.others_records.extend(described.map(|record| (user, record)));
    }

    /// A record of a phone selected by [`log_user`](Self::log_user).
    pub(crate) fn poll_others_record(&mut self) -> Option<(UserId, Record)> {
        self.others_records.pop_front()
    }

    /// Ends the run.
    #[must_use]
    pub fn into_truth(self) -> CellTruth {
        let mut cell_use = self.cell_use.into_iter();
        CellTruth {
            dl: self.dl_truth.into_runs(),
            ul: self.ul_truth.into_runs(),
            cell_use: cell_use.next().unwrap_or_default(),
            secondary_use: cell_use.next().unwrap_or_default(),
            allocated: self.allocations.into_runs(),
            capacity: Capacities::join(self.capacities.into_iter()),
            rrc: self.bearers.into_iter().next().map_or_else(Vec::new, |b| b.rrc.into_runs()),
            legs: Vec::new(),
        }
    }

    fn step_downlink(&mut self) {
        let before = self.measured().enb.sender.queue_bytes();
        let mut leaves = false;
        // Each carrier numbers its own users: those without a bearer come last.
        let mut without_bearer = self.bearers.len();
        for n in 0..self.carriers.len() {
            let out = self.carriers[n].step(self.tti, &mut self.bearers);
            let carrier = n as u8;
            let n_prb = out.iter().map(|sent| sent.n_prb).sum();
            observe_cell(&mut self.cell_use[n], self.tti, n_prb, out.len() as u16);
            self.capacities[n + 1].observe(self.tti, self.carriers[n].capacity_bytes());
            let with_bearer = self.carriers[n].bearers();
            for sent in out {
                let has_bearer = sent.user < with_bearer;
                let user =
                    if has_bearer { sent.user } else { sent.user - with_bearer + without_bearer };
                self.allocations.observe(self.tti, Direction::Dl, (carrier, user), sent.n_prb);
                if !has_bearer {
                    continue;
                }
                let user = UserId(sent.user);
                let Some(bearer) = self.bearers.get_mut(user.index()) else { continue };
                let Transmission { retx, crc_ok, harq_id, .. } = sent.transmission;
                if sent.departed_bytes > 0 {
                    bearer.rrc.on_data(self.tti);
                }
                if !retx {
                    bearer.rrc.on_assignment(self.tti);
                }
                bearer.rrc.on_downlink(self.tti, (carrier, harq_id), crc_ok);
                if user.is_measured() {
                    leaves |= sent.departed_bytes > 0;
                    self.record_downlink(carrier, &sent);
                } else if carrier == 0 && self.modems.contains_key(&user) {
                    self.record_for(user, &sent);
                }
                if let Some(block) = sent.received {
                    self.receive(user, Direction::Dl, &block);
                }
            }
            without_bearer += self.carriers[n].users() - with_bearer;
        }
        let after = self.measured().enb.sender.queue_bytes();
        self.left[Direction::Dl as usize] = leaves;
        self.dl_truth.observe(self.tti, before, after, leaves);
        // Measurements of an NR modem are not LTE measurements.
        if !self.is_nr && self.meter.measures(self.tti) {
            self.measure();
            self.measure_others();
        }
    }

    fn measure(&mut self) {
        let used = self.cell_use[0].last().map_or(0, |last| last.n_prb);
        let load = f64::from(used) / f64::from(self.carriers[0].n_prb());
        let fade_db = self.carriers[0].fade_db(UserId::MEASURED);
        let measurement = self.meter.measure(self.position(), load, fade_db);
        let at = self.at();
        self.records.push_back(airmile_model::Measurement { at, ..measurement }.into());
    }

    fn measure_others(&mut self) {
        let used = self.cell_use[0].last().map_or(0, |last| last.n_prb);
        let load = f64::from(used) / f64::from(self.carriers[0].n_prb());
        let (position, at) = (self.position(), self.at());
        for (&user, meter) in &mut self.modems {
            let fade_db = self.carriers[0].fade_db(user);
            let measurement = meter.measure(position, load, fade_db);
            let record = airmile_model::Measurement { at, ..measurement };
            self.others_records.push_back((user, record.into()));
        }
    }

    fn step_uplink(&mut self) {
        // 0xB066 is a message of LTE.
        if !self.is_nr {
            self.sample_buffer();
        }
        for user in (0..self.bearers.len()).map(UserId) {
            let Bearer { uplink, phone, rrc, .. } = &mut self.bearers[user.index()];
            uplink.observe(self.tti);
            if user.is_measured() {
                self.capacities[0].observe(self.tti, uplink.capacity_bytes(self.tti));
            }
            if !rrc.is_connected() {
                if user.is_measured() {
                    self.left[Direction::Ul as usize] = false;
                    self.ul_truth.observe(self.tti, 0, 0, false);
                }
                continue;
            }
            let before = phone.sender.queue_bytes();
            let sent = uplink.step(self.tti, phone);
            if sent.is_some() || before > 0 {
                rrc.on_data(self.tti);
            }
            rrc.set_request(uplink.requests());
            if user.is_measured() {
                let leaves = sent.as_ref().is_some_and(|sent| sent.departed_bytes > 0);
                self.left[Direction::Ul as usize] = leaves;
                self.ul_truth.observe(self.tti, before, phone.sender.queue_bytes(), leaves);
            }
            let Some(sent) = sent else { continue };
            self.allocations.observe(self.tti, Direction::Ul, (0, user.index()), sent.n_prb);
            if user.is_measured() {
                self.record_uplink(&sent);
            }
            if let Some(block) = sent.received {
                self.receive(user, Direction::Ul, &block);
            }
        }
        self.grant_uplinks();
    }

    /// Grants the uplink TTIs that belong to this one to users that need them, in turn, up
    /// to the PRB pairs of each. A phone in DRX sleep receives no grant.
    fn grant_uplinks(&mut self) {
        let users = self.bearers.len();
        for at in self.frame.granted_from(self.tti) {
            let taken: u16 = self.bearers.iter().map(|b| b.uplink.taken_prb(at)).sum();
            let mut free = self.carriers[0].n_prb().saturating_sub(taken);
            for n in 0..users {
                let Bearer { uplink, rrc, .. } = &mut self.bearers[(self.ul_turn + n) % users];
                let waits = uplink.taken_prb(at) > 0;
                if waits {
                    // A grant for a retransmission is possible (TS 36.321, 5.7).
                    rrc.on_grant_awaited(self.tti);
                }
                if !rrc.monitors_pdcch(self.tti) {
                    continue;
                }
                let n_prb = uplink.grant(self.tti, at, free);
                if n_prb > 0 {
                    rrc.on_assignment(self.tti);
                }
                free -= n_prb;
            }
            self.ul_turn = (self.ul_turn + 1) % users;
        }
    }

    /// Passes the PDUs of a received block to RLC.
    fn receive(&mut self, user: UserId, dir: Direction, block: &MacPdu) {
        let Bearer { enb, phone, .. } = &mut self.bearers[user.index()];
        let end = match dir {
            Direction::Dl => phone,
            Direction::Ul => enb,
        };
        for pdu in &block.pdus {
            match pdu {
                Pdu::Status(status) => end.sender.receive_status(status),
                Pdu::Data(pdu) => {
                    let sdus = end.receiver.receive(pdu, self.tti);
                    self.deliveries.extend(sdus.into_iter().map(|sdu| Delivery { user, dir, sdu }));
                }
            }
        }
    }
}
