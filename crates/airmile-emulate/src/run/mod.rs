//! A whole run in virtual time: cell, core network and transfers together.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddrV4;

use airmile_model::{Direction, Record, Stamp, Transfer, TransferTruth, TruthRun, TtiIndex};

use crate::cell::{Cell, CellTruth};
use crate::flow::{Ended, Flow, Packet};
use crate::frame::Frame;
use crate::net;
use crate::party::{self, Notebook, Party};
use crate::radio::{ReaderSetup, Readers};
use crate::rlc::Sdu;
use crate::scenario::{AppConfig, Scenario, ScenarioError};
use crate::senders::Senders;
use crate::simulation::{DropPoint, PDCP_HEADER_BYTES, Simulation, Sink};
use crate::truth::{CellUse, throughput_time_ms};

/// What a run leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// First TTI.
    pub first_tti: TtiIndex,
    /// TTIs.
    pub n_tti: u32,
    /// What a modem log would show, in time order.
    pub records: Vec<Record>,
    /// The phone's downlink queue at the base station, every TTI.
    pub truth: Vec<TruthRun>,
    /// The phone's own uplink queue, every TTI.
    pub ul_truth: Vec<TruthRun>,
    /// PRB pairs that all users together had, every TTI.
    pub cell_use: Vec<CellUse>,
    /// Transfers that ended, by start.
    pub transfers: Vec<EmulatedTransfer>,
    /// Bytes by where they are at the end.
    pub totals: [Totals; 2],
}

/// A transfer with its truth.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedTransfer {
    /// As an application would note it down.
    pub transfer: Transfer,
    /// Which way its data goes.
    pub dir: Direction,
    /// What the queue of that direction did.
    pub truth: TransferTruth,
}

impl EmulatedTransfer {
    /// Throughput time over duration.
    #[must_use]
    pub fn link_demand(&self) -> f64 {
        self.truth.duration_ms.map_or(f64::NAN, |ms| self.truth.throughput_time_ms / ms)
    }
}

/// Bytes of SDUs of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Which way.
    pub dir: Direction,
    /// Came to the queue.
    pub arrived_bytes: u64,
    /// Were delivered, whole SDUs in sequence.
    pub delivered_bytes: u64,
    /// Were never sent.
    pub unsent_bytes: u64,
    /// Were sent, their SDUs not delivered.
    pub in_transit_bytes: u64,
    /// Found no room in the queue.
    pub dropped_bytes: u64,
}

impl Totals {
    /// Of a user of a cell, with the bytes that came to the queue and left it.
    pub(crate) fn of(
        cell: &Cell,
        user: usize,
        dir: Direction,
        (arrived_bytes, delivered_bytes): (u64, u64),
    ) -> Self {
        let (unsent_bytes, in_transit_bytes) = cell.undelivered_bytes(user, dir);
        let dropped_bytes = cell.dropped_bytes(user, dir);
        Self { dir, arrived_bytes, delivered_bytes, unsent_bytes, in_transit_bytes, dropped_bytes }
    }
}

/// Something that an application on the measured phone did or saw.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AppNote {
    /// When, in ns since the Unix epoch.
    pub at_ns: i64,
    /// Which application.
    pub app: String,
    /// What: `request`, `first_byte`, `end`, `failed`, `segment_chosen`,
    /// `playback_started`, `stalled`, `resumed`, `playback_ended`,
    /// `page_started`, `page_loaded`, `done`.
    pub event: &'static str,
    /// The transfer that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Application bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A number with it: bits per second of a segment that was chosen, ms of a
    /// stall that has ended or of a page that has loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// More in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

impl AppNote {
    pub(crate) fn new(at_ns: i64, app: &str) -> Self {
        let app = app.to_owned();
        Self { at_ns, app, event: "", id: None, bytes: None, value: None, what: None }
    }
}

/// What a run leaves beside what went to its [`Sink`].
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// First TTI.
    pub first_tti: TtiIndex,
    /// TTIs.
    pub n_tti: u32,
    /// Time of TTI index 0 in ns since the Unix epoch.
    pub epoch_ns: i64,
    /// Length of a TTI in ns.
    pub slot_ns: i64,
    /// What only the base station knows.
    pub truth: CellTruth,
    /// Transfers of the measured phone that ended, by start.
    pub transfers: Vec<EmulatedTransfer>,
    /// Those that had begun and not ended, with the bytes so far, by start: of
    /// an upload, what the application had handed over.
    pub unfinished: Vec<EmulatedTransfer>,
    /// Bytes of each user, downlink and uplink, by where they are at the end.
    pub totals: Vec<[Totals; 2]>,
    /// What the applications noted down, in time order.
    pub notes: Vec<AppNote>,
    /// The same of the other phones, in their order in the scenario.
    pub others: Vec<Vec<AppNote>>,
    /// Bitrates that the measured phone's video players chose, by the
    /// application's name and by segment.
    pub choices: BTreeMap<String, Vec<u64>>,
}

/// Runs a scenario and keeps all of it.
///
/// # Errors
/// A scenario that cannot be run.
pub fn run(scenario: &Scenario) -> Result<Trace, ScenarioError> {
    let mut records = Vec::new();
    let outcome = run_into(scenario, &mut Keep(&mut records))?;
    Ok(Trace {
        first_tti: outcome.first_tti,
        n_tti: outcome.n_tti,
        records,
        transfers: outcome.transfers,
        truth: outcome.truth.dl,
        ul_truth: outcome.truth.ul,
        cell_use: outcome.truth.cell_use,
        totals: outcome.totals[0],
    })
}

/// Keeps the records.
struct Keep<'a>(&'a mut Vec<Record>);

impl Sink for Keep<'_> {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

/// Runs a scenario; what it leaves on the way goes to `sink`.
///
/// # Errors
/// A scenario that cannot be run.
pub fn run_into(scenario: &Scenario, sink: &mut impl Sink) -> Result<Outcome, ScenarioError> {
    run_with(scenario, sink, None)
}

/// The same with readers of the modems' logs, for congestion control that asks for them
/// (`claw`, `cqic`).
///
/// # Errors
/// A scenario that cannot be run; congestion control that asks for a reader, and none.
pub fn run_with(
    scenario: &Scenario,
    sink: &mut impl Sink,
    readers: Option<&Readers<'_>>,
) -> Result<Outcome, ScenarioError> {
    if scenario.traffic.is_empty() {
        return run_apps(scenario, sink, readers);
    }
    let mut run = Run::new(scenario)?;
    let mut idle_ms = 0;
    for _ in 0..scenario.duration_ms {
        run.step(sink);
        idle_ms = if run.flows.iter().all(Flow::is_done) { idle_ms + 1 } else { 0 };
        if idle_ms >= scenario.tail_ms.max(1) {
            break;
        }
    }
    Ok(run.finish())
}

/// A pipe of constant delay.
#[derive(Debug, Default)]
struct Pipe {
    delay: i64,
    packets: VecDeque<(i64, Packet)>,
}

impl Pipe {
    fn push(&mut self, now: i64, packet: Packet) {
        self.packets.push_back((now + self.delay, packet));
    }

    fn pop(&mut self, now: i64) -> Option<Packet> {
        self.packets.front().filter(|(due, _)| *due <= now)?;
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}

struct Run {
    cell: Cell,
    frame: Frame,
    first_tti: TtiIndex,
    flows: Vec<Flow>,
    to_enb: Pipe,
    to_server: Pipe,
    on_air: HashMap<u64, Packet>,
    next_id: u64,
    /// Bytes arrived and delivered, downlink and uplink.
    bytes: [(u64, u64); 2],
}

impl Run {
    fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let cell = Cell::new(scenario)?;
        let first_tti = cell.tti();
        let flow = |(n, traffic)| Flow::new(n, traffic, first_tti.0, scenario.seed);
        let rtt = i64::from(scenario.core.rtt_ms);
        Ok(Self {
            cell,
            frame: Frame::new(scenario),
            first_tti,
            flows: scenario.traffic.iter().enumerate().map(flow).collect(),
            to_enb: Pipe { delay: rtt / 2, ..Pipe::default() },
            to_server: Pipe { delay: rtt - rtt / 2, ..Pipe::default() },
            on_air: HashMap::new(),
            next_id: 0,
            bytes: [(0, 0); 2],
        })
    }

    fn step(&mut self, sink: &mut impl Sink) {
        let now = self.cell.tti().0;
        while let Some(packet) = self.to_server.pop(now) {
            self.flows[packet.flow].receive(Direction::Ul, packet, now);
        }
        for n in 0..self.flows.len() {
            self.flows[n].step(now);
            while let Some(packet) = self.flows[n].poll_server() {
                self.to_enb.push(now, packet);
            }
            while let Some(packet) = self.flows[n].poll_phone() {
                self.transmit(Direction::Ul, packet, sink);
            }
        }
        while let Some(packet) = self.to_enb.pop(now) {
            self.transmit(Direction::Dl, packet, sink);
        }
        self.cell.step();
        while let Some(record) = self.cell.poll_record() {
            sink.record(record);
        }
        while let Some(delivery) = self.cell.poll_delivery() {
            self.bytes[delivery.dir as usize].1 += u64::from(delivery.sdu.bytes);
            let Some(packet) = self.on_air.remove(&delivery.sdu.id) else { continue };
            match delivery.dir {
                Direction::Ul => self.to_server.push(now, packet),
                Direction::Dl => self.flows[packet.flow].receive(Direction::Dl, packet, now),
            }
        }
    }

    /// Puts a packet into the queue before the air. One that finds no room is
    /// told and gone: its sender has no loss recovery, its transfer no end.
    fn transmit(&mut self, dir: Direction, packet: Packet, sink: &mut impl Sink) {
        let sdu = Sdu { id: self.next_id, bytes: packet.bytes };
        self.next_id += 1;
        self.bytes[dir as usize].0 += u64::from(sdu.bytes);
        if self.cell.push(0, dir, sdu) {
            self.on_air.insert(sdu.id, packet);
        } else {
            let point = match dir {
                Direction::Dl => DropPoint::BaseStation,
                Direction::Ul => DropPoint::Phone,
            };
            sink.dropped(self.cell.now_ns(), 0, point, &stand_in(dir, &packet, sdu.id));
        }
    }

    fn finish(self) -> Outcome {
        let end = self.cell.tti();
        let frame = self.frame;
        let totals = [Direction::Dl, Direction::Ul]
            .map(|dir| Totals::of(&self.cell, 0, dir, self.bytes[dir as usize]));
        let truth = self.cell.into_truth();
        let ns = |tti: TtiIndex| frame.start_ns(tti.0);
        let timed = |unfinished: bool| {
            move |Ended { id, dir, start, end, bytes }: Ended| {
                let (start_ns, end_ns) = (ns(start), ns(end));
                Timed { id, dir, start_ns, end_ns, bytes, unfinished }
            }
        };
        let under_way = self.flows.iter().filter_map(|flow| flow.under_way(end));
        let unfinished = describe(under_way.map(timed(true)).collect(), &truth, frame);
        let ended = self.flows.into_iter().flat_map(Flow::into_ended);
        let transfers = describe(ended.map(timed(false)).collect(), &truth, frame);
        Outcome {
            first_tti: self.first_tti,
            n_tti: end.since(self.first_tti) as u32,
            epoch_ns: frame.epoch_ns(),
            slot_ns: frame.slot_ns(),
            notes: note_down(&transfers, &unfinished),
            others: Vec::new(),
            choices: BTreeMap::new(),
            transfers,
            unfinished,
            totals: vec![totals],
            truth,
        }
    }
}

/// A packet without a transport, as the IP packet of its size that a sink is
/// shown: flow `n` of the scenario has port `443 + n` at the server.
fn stand_in(dir: Direction, packet: &Packet, number: u64) -> net::Packet {
    let server_port = u16::try_from(packet.flow).unwrap_or(0).wrapping_add(443);
    let phone = SocketAddrV4::new(party::PHONE, 40_000);
    let server = SocketAddrV4::new(party::server_address(packet.flow), server_port);
    let (src, dst) = if dir == Direction::Dl { (server, phone) } else { (phone, server) };
    let headers = PDCP_HEADER_BYTES + net::IPV4_HEADER_BYTES + net::UDP_HEADER_BYTES;
    let payload = vec![0; packet.bytes.saturating_sub(headers) as usize];
    // Sixteen bits, as the field has.
    let ip_id = (number % 0x1_0000) as u16;
    net::Packet { src, dst, ip_id, transport: net::Transport::Udp(payload) }
}

/// A transfer as its application timed it.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub(crate) id: String,
    pub(crate) dir: Direction,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) bytes: u64,
    pub(crate) unfinished: bool,
}

/// Transfers with their truth, by start.
fn describe(timed: Vec<Timed>, truth: &CellTruth, frame: Frame) -> Vec<EmulatedTransfer> {
    let mut all: Vec<EmulatedTransfer> =
        timed.into_iter().map(|timed| timed.describe(truth, frame)).collect();
    all.sort_by_key(|transfer| transfer.transfer.tti.map(|(start, _)| start));
    all
}

impl Timed {
    /// With what the queue of its direction did meanwhile.
    pub(crate) fn describe(self, truth: &CellTruth, frame: Frame) -> EmulatedTransfer {
        let Self { id, dir, start_ns, end_ns, bytes, unfinished } = self;
        let runs = if dir == Direction::Dl { &truth.dl } else { &truth.ul };
        let start = TtiIndex(frame.ttis_at(start_ns).0);
        let end = TtiIndex(frame.ttis_at(end_ns).1);
        let slot_ms = frame.slot_ns() as f64 / 1e6;
        let throughput_time_ms = throughput_time_ms(runs, start, end) * slot_ms;
        let duration_ms = Some(end.since(start) as f64 * slot_ms);
        let time = Some((Stamp::modem(start_ns), Stamp::modem(end_ns)));
        let truth = TransferTruth { id: id.clone(), throughput_time_ms, duration_ms };
        let tti = Some((start, end));
        EmulatedTransfer {
            transfer: Transfer { id, time, tti, bytes: Some(bytes), dir: Some(dir), unfinished },
            dir,
            truth,
        }
    }
}

/// Requests and ends of transfers, as an application's log.
fn note_down(transfers: &[EmulatedTransfer], unfinished: &[EmulatedTransfer]) -> Vec<AppNote> {
    let of = |t: &EmulatedTransfer| {
        let (start, end) = t.transfer.time?;
        let note = |event, at_ns| AppNote {
            event,
            id: Some(t.transfer.id.clone()),
            bytes: t.transfer.bytes,
            ..AppNote::new(at_ns, &t.transfer.id)
        };
        let ended = (!t.transfer.unfinished).then(|| note("end", end.ns));
        Some([Some(note("request", start.ns)), ended].into_iter().flatten())
    };
    let all = transfers.iter().chain(unfinished);
    let mut notes: Vec<AppNote> = all.filter_map(of).flatten().collect();
    notes.sort_by_key(|note| note.at_ns);
    notes
}

/// Runs the applications of a scenario over their transports.
fn run_apps(
    scenario: &Scenario,
    sink: &mut impl Sink,
    readers: Option<&Readers<'_>>,
) -> Result<Outcome, ScenarioError> {
    scenario.validate()?;
    let frame = Frame::new(scenario);
    let start_ns = frame.start_ns(scenario.first_tti.into());
    let mut simulation = Simulation::new(scenario, party::users(scenario, start_ns))?;
    for (user, need) in party::radio_needs(scenario).into_iter().enumerate() {
        let Some(need) = need else { continue };
        let Some(readers) = readers else {
            return Err(ScenarioError::OutOfRange {
                field: "server_tcp.control".to_owned(),
                why: "one that asks for no reader of the modem's log: none is given".to_owned(),
            });
        };
        let setup = ReaderSetup { user, need, config: scenario.radio_reports.clone() };
        simulation.attach(scenario, user, readers(&setup));
    }
    let mut notebook = Notebook::default();
    let slots_per_ms = frame.slots_per_ms();
    let mut senders = sink.wants_senders().then(Senders::default);
    let (mut idle, mut done_users) = (0, 0);
    for tti in 0..i64::from(scenario.duration_ms) * slots_per_ms {
        simulation.step(sink);
        // Once a ms is enough to see the end.
        if tti % slots_per_ms != 0 {
            continue;
        }
        if let Some(senders) = &mut senders {
            senders.look(&mut simulation, sink);
        }
        let Some(phone) = simulation.phone(0) else { break };
        for (app, event) in phone.events() {
            notebook.take(&scenario.apps, app, event);
        }
        let done = !scenario.apps.is_empty() && phone.is_done();
        idle = if done { idle + 1 } else { 0 };
        // Who is done stays so.
        while simulation.phone(done_users).is_some_and(|phone| phone.is_done()) {
            done_users += 1;
        }
        let all_done = done_users == simulation.cell().users();
        if idle > scenario.tail_ms.max(1) || sink.has_enough(all_done) {
            break;
        }
    }
    let end_ns = simulation.now_ns();
    let under_way = simulation.phone(0).map(|phone| phone.under_way()).unwrap_or_default();
    notebook.cut(&scenario.apps, &under_way, end_ns);
    let others = other_notes(scenario, &mut simulation);
    let mut outcome = Outcome::of(simulation.finish(), frame, notebook);
    outcome.others = others;
    Ok(outcome)
}

/// What the applications of the other phones noted down.
fn other_notes(scenario: &Scenario, simulation: &mut Simulation<Party>) -> Vec<Vec<AppNote>> {
    let each = scenario.others.iter();
    let apps = each.flat_map(|other| std::iter::repeat_n(&other.apps, other.count.into()));
    let of = |(n, apps): (usize, &Vec<AppConfig>)| {
        let mut notebook = Notebook::default();
        for (app, event) in simulation.phone(n + 1).map(Party::events).unwrap_or_default() {
            notebook.take(apps, app, event);
        }
        notebook.notes
    };
    apps.enumerate().map(of).collect()
}

impl Outcome {
    /// Of a run that has ended, with what its applications noted down.
    pub(crate) fn of<H>(
        ended: crate::simulation::Ended<H>,
        frame: Frame,
        mut notebook: Notebook,
    ) -> Self {
        let transfers = describe(notebook.ended, &ended.truth, frame);
        let unfinished = describe(notebook.unfinished, &ended.truth, frame);
        notebook.notes.sort_by_key(|note| note.at_ns);
        Self {
            first_tti: ended.first_tti,
            n_tti: ended.n_tti,
            epoch_ns: frame.epoch_ns(),
            slot_ns: frame.slot_ns(),
            truth: ended.truth,
            transfers,
            unfinished,
            totals: ended.totals,
            notes: notebook.notes,
            others: Vec::new(),
            choices: notebook.choices,
        }
    }
}
