//! Runs with window senders instead of transports.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddrV4;

use airmile_model::{Direction, TtiIndex};

use super::outcome::with_truth;
use super::simulation::PDCP_HEADER_BYTES;
use super::{ByteTotals, DropPoint, EmulatedTransfer, RunOutcome, RunSink};
use crate::cell::Cell;
use crate::host::{self, AppNote, TimedTransfer};
use crate::net;
use crate::phy::Frame;
use crate::rlc::Sdu;
use crate::scenario::{Scenario, ScenarioError};
use crate::transport::window::{WindowFlow, WindowPacket, WindowTransfer};
use crate::user::UserId;

/// Runs the window senders of a scenario.
pub(super) fn run(
    scenario: &Scenario,
    sink: &mut impl RunSink,
) -> Result<RunOutcome, ScenarioError> {
    let mut run = WindowRun::new(scenario)?;
    let mut idle_ms = 0;
    for _ in 0..scenario.duration_ms {
        run.step(sink);
        idle_ms = if run.flows.iter().all(WindowFlow::is_done) { idle_ms + 1 } else { 0 };
        if idle_ms >= scenario.tail_ms.max(1) {
            break;
        }
    }
    Ok(run.finish())
}

/// A pipe with constant delay.
#[derive(Debug, Default)]
struct Pipe {
    delay: i64,
    packets: VecDeque<(i64, WindowPacket)>,
}

impl Pipe {
    fn push(&mut self, now: i64, packet: WindowPacket) {
        self.packets.push_back((now + self.delay, packet));
    }

    fn pop(&mut self, now: i64) -> Option<WindowPacket> {
        self.packets.front().filter(|(due, _)| *due <= now)?;
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}

struct WindowRun {
    cell: Cell,
    frame: Frame,
    first_tti: TtiIndex,
    flows: Vec<WindowFlow>,
    to_enb: Pipe,
    to_server: Pipe,
    on_air: HashMap<u64, WindowPacket>,
    next_id: u64,
    /// Bytes arrived and delivered, downlink and uplink.
    bytes: [(u64, u64); 2],
}

impl WindowRun {
    fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let cell = Cell::new(scenario)?;
        let first_tti = cell.tti();
        let flow = |(n, traffic)| WindowFlow::new(n, traffic, first_tti.0, scenario.seed);
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

    fn step(&mut self, sink: &mut impl RunSink) {
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

    /// Queues a packet for the air interface. One without room is reported and dropped: its
    /// sender has no loss recovery, and its transfer does not end.
    fn transmit(&mut self, dir: Direction, packet: WindowPacket, sink: &mut impl RunSink) {
        let sdu = Sdu { id: self.next_id, bytes: packet.bytes };
        self.next_id += 1;
        self.bytes[dir as usize].0 += u64::from(sdu.bytes);
        if self.cell.push(UserId::MEASURED, dir, sdu) {
            self.on_air.insert(sdu.id, packet);
        } else {
            let point = match dir {
                Direction::Dl => DropPoint::BaseStation,
                Direction::Ul => DropPoint::Phone,
            };
            sink.dropped(
                self.cell.now_ns(),
                UserId::MEASURED,
                point,
                &stand_in(dir, &packet, sdu.id),
            );
        }
    }

    fn finish(self) -> RunOutcome {
        let end = self.cell.tti();
        let frame = self.frame;
        let totals = [Direction::Dl, Direction::Ul].map(|dir| {
            let undelivered = self.cell.undelivered_bytes(UserId::MEASURED, dir);
            ByteTotals::new(
                dir,
                self.bytes[dir as usize],
                undelivered,
                self.cell.dropped_bytes(UserId::MEASURED, dir),
            )
        });
        let truth = self.cell.into_truth();
        let ns = |tti: TtiIndex| frame.start_ns(tti.0);
        let timed = |unfinished: bool| {
            move |WindowTransfer { id, dir, start, end, bytes }: WindowTransfer| {
                let (start_ns, end_ns) = (ns(start), ns(end));
                TimedTransfer { id, dir, start_ns, end_ns, bytes, unfinished }
            }
        };
        let under_way = self.flows.iter().filter_map(|flow| flow.under_way(end));
        let unfinished = with_truth(under_way.map(timed(true)).collect(), &truth, frame);
        let ended = self.flows.into_iter().flat_map(WindowFlow::into_ended);
        let transfers = with_truth(ended.map(timed(false)).collect(), &truth, frame);
        RunOutcome {
            first_tti: self.first_tti,
            n_tti: end.since(self.first_tti) as u32,
            epoch_ns: frame.epoch_ns(),
            slot_ns: frame.slot_ns(),
            notes: notes_of(&transfers, &unfinished),
            others: Vec::new(),
            choices: BTreeMap::new(),
            pages: Vec::new(),
            transfers,
            unfinished,
            totals: vec![totals],
            truth,
        }
    }
}

/// An IP packet of the same size in place of a packet without a transport, for the sink:
/// flow `n` of the scenario has port `443 + n` at the server.
fn stand_in(dir: Direction, packet: &WindowPacket, number: u64) -> net::IpPacket {
    let server_port = u16::try_from(packet.flow).unwrap_or(0).wrapping_add(443);
    let phone = SocketAddrV4::new(host::PHONE, 40_000);
    let server = SocketAddrV4::new(host::server_address(packet.flow), server_port);
    let (src, dst) = if dir == Direction::Dl { (server, phone) } else { (phone, server) };
    let headers = PDCP_HEADER_BYTES + net::IPV4_HEADER_BYTES + net::UDP_HEADER_BYTES;
    let payload = vec![0; packet.bytes.saturating_sub(headers) as usize];
    // Truncated to the 16 bits of the field.
    let ip_id = (number % 0x1_0000) as u16;
    net::IpPacket { src, dst, ip_id, transport: net::Transport::Udp(payload) }
}

/// Requests and ends of transfers, as an application's log.
fn notes_of(transfers: &[EmulatedTransfer], unfinished: &[EmulatedTransfer]) -> Vec<AppNote> {
    let of = |t: &EmulatedTransfer| {
        let (start, end) = t.transfer.time?;
        let (id, uploads) = (Some(t.transfer.id.clone()), t.dir == Direction::Ul);
        // What was sent, and what came.
        let [sent, got] = [uploads, !uploads].map(|is_of| t.transfer.bytes.filter(|_| is_of));
        let new = |at_ns| AppNote { id: id.clone(), ..AppNote::new(at_ns, &t.transfer.id) };
        let asked = AppNote { event: "request", bytes: sent, ..new(start.ns) };
        let ended = AppNote { event: "end", bytes: got.or(uploads.then_some(0)), ..new(end.ns) };
        Some([asked].into_iter().chain((!t.transfer.unfinished).then_some(ended)))
    };
    let all = transfers.iter().chain(unfinished);
    let mut notes: Vec<AppNote> = all.filter_map(of).flatten().collect();
    notes.sort_by_key(|note| note.at_ns);
    notes
}
