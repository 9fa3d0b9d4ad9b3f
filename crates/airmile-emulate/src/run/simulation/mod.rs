//! Hosts connected over the core network and the cell, in virtual time.
//!
//! ```text
//! server ══ core ══ (box) ── base station ≈≈ phone
//! ```
//!
//! Each user has a phone, a server, and optionally a box between them. The cell is shared.
//! Events happen in time order, simultaneous ones in the order in which they were caused:
//! the same hosts and seed give the same packets at the same times.

mod air;
mod event;
mod report;
mod sink;

use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use airmile_model::units::MS_NS;
use airmile_model::{Direction, TtiIndex};

use crate::cell::{Cell, CellTruth, RadioAccess};
use crate::core::path::{CorePath, PathOutcome};
use crate::host::SimulatedUser;
use crate::host::device::{Device, reflect};
use crate::host::radio::Reporter;
use crate::net::{Host, IpPacket};
use crate::random::{Owner, Process};
use crate::run::ByteTotals;
use crate::scenario::{LinkConfig, Scenario, ScenarioError};
use crate::user::UserId;
pub use event::Node;
use event::{Happening, ScheduledEvent};
pub use sink::{CapturePoint, DropPoint, RunSink};

/// Maximum IP packet of the phone (Ethernet's MTU).
const LARGEST_PACKET_BYTES: u32 = 1_500;

/// Bytes of a PDCP header with a 12-bit SN (TS 36.323, 6.2.3).
pub(crate) const PDCP_HEADER_BYTES: u32 = 2;

/// A user's hosts with the paths between them.
#[derive(Debug)]
struct UserHosts<H> {
    name: String,
    link: LinkConfig,
    address: Ipv4Addr,
    phone: H,
    server: H,
    proxy: Option<H>,
    /// Server to box or base station, and back.
    down: CorePath,
    up: CorePath,
    /// Delay between box and base station, each direction.
    inner_ns: i64,
    /// When each host's timer event is due, by [`Node`].
    timers: [Option<i64>; 3],
    /// IP bytes with PDCP headers that arrived at the queues, and were delivered.
    bytes: [(u64, u64); 2],
    /// Sends feedback on the phone's radio to the servers.
    reporter: Option<Reporter>,
}

/// A run in virtual time; `H` are its hosts.
#[derive(Debug)]
pub struct Simulation<H> {
    cell: RadioAccess,
    first_tti: TtiIndex,
    start_ns: i64,
    users: Vec<UserHosts<H>>,
    /// Queueing of the measured phone's packets.
    device: Option<Device>,
    events: BinaryHeap<ScheduledEvent>,
    caused: u64,
    /// Packets on the air interface by SDU identity, and free identities.
    in_air: Vec<Option<IpPacket>>,
    free: Vec<u64>,
}

/// Result of a run, in addition to the output of its [`RunSink`].
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationEnd<H> {
    /// First TTI.
    pub first_tti: TtiIndex,
    /// TTIs.
    pub n_tti: u32,
    /// Truth known only to the base station.
    pub truth: CellTruth,
    /// Bytes of each user, downlink and uplink, by where they are.
    pub totals: Vec<[ByteTotals; 2]>,
    /// Phone, server and box of each user.
    pub hosts: Vec<(H, H, Option<H>)>,
}

impl<H: Host> Simulation<H> {
    /// A run before its first TTI. Users are in order; the first is measured.
    ///
    /// # Errors
    /// A scenario that cannot be run, or without users.
    pub fn new(scenario: &Scenario, users: Vec<SimulatedUser<H>>) -> Result<Self, ScenarioError> {
        if users.is_empty() {
            return Err(ScenarioError::OutOfRange {
                field: "users".to_owned(),
                why: "at least one".to_owned(),
            });
        }
        let others: Vec<(String, LinkConfig)> =
            users.iter().skip(1).map(|user| (user.name.clone(), user.link.clone())).collect();
        let cell = RadioAccess::new(scenario, &others)?;
        let owners: Vec<Owner> = std::iter::once(Owner::PHONE)
            .chain(others.iter().map(|(name, _)| Owner::named(name)))
            .collect();
        let start_ns = cell.now_ns();
        let place = |(n, user): (usize, SimulatedUser<H>)| {
            let core = user.core;
            let inner_ms =
                if user.proxy.is_some() { core.proxy_rtt_ms.min(core.rtt_ms) } else { 0 };
            let outer_ns = i64::from(core.rtt_ms - inner_ms) * MS_NS;
            let owner = owners[n];
            let random = |process| owner.random(scenario.seed, process);
            let down_random = (random(Process::DownLoss), random(Process::DownJitter));
            let up_random = (random(Process::UpLoss), random(Process::UpJitter));
            let down = CorePath::new(outer_ns / 2, core.down, start_ns, down_random);
            let up = CorePath::new(outer_ns - outer_ns / 2, core.up, start_ns, up_random);
            UserHosts {
                name: user.name,
                link: user.link,
                address: user.address,
                phone: user.phone,
                server: user.server,
                proxy: user.proxy,
                down,
                up,
                inner_ns: i64::from(inner_ms) * MS_NS / 2,
                timers: [None; 3],
                bytes: [(0, 0); 2],
                reporter: None,
            }
        };
        let address = users[UserId::MEASURED.index()].address;
        let queue = scenario.uplink_queue.as_ref();
        let device = queue.map(|config| Device::new(config, address, start_ns));
        let mut run = Self {
            device,
            first_tti: cell.tti(),
            start_ns,
            cell,
            users: users.into_iter().enumerate().map(place).collect(),
            events: BinaryHeap::new(),
            caused: 0,
            in_air: Vec::new(),
            free: Vec::new(),
        };
        for user in (0..run.users.len()).map(UserId) {
            for node in [Node::Phone, Node::Proxy, Node::Server] {
                run.set_timer(start_ns, user, node);
            }
        }
        Ok(run)
    }

    /// Time in ns since the Unix epoch: the start of the next TTI.
    #[must_use]
    pub const fn now_ns(&self) -> i64 {
        self.cell.now_ns()
    }

    /// Start of the run in ns since the Unix epoch.
    #[must_use]
    pub const fn start_ns(&self) -> i64 {
        self.start_ns
    }

    /// The next TTI.
    #[must_use]
    pub const fn tti(&self) -> TtiIndex {
        self.cell.tti()
    }

    /// The cell.
    #[must_use]
    pub const fn cell(&self) -> &Cell {
        self.cell.cell()
    }

    /// A user's phone.
    pub fn phone(&mut self, user: UserId) -> Option<&mut H> {
        self.users.get_mut(user.index()).map(|place| &mut place.phone)
    }

    /// A user's server.
    pub fn server(&mut self, user: UserId) -> Option<&mut H> {
        self.users.get_mut(user.index()).map(|place| &mut place.server)
    }

    /// A user's box, if any.
    pub fn proxy(&mut self, user: UserId) -> Option<&mut H> {
        self.users.get_mut(user.index()).and_then(|place| place.proxy.as_mut())
    }

    /// Sends a packet of a host at the start of the next TTI without a call to the host,
    /// for hosts outside of the run.
    pub fn send(&mut self, user: UserId, node: Node, packet: IpPacket) {
        if user.index() < self.users.len() {
            self.cause(self.cell.now_ns(), user, Happening::Departure(node, packet));
        }
    }

    /// Simulates all events up to the start of the next TTI, and that TTI.
    pub fn step(&mut self, sink: &mut impl RunSink) {
        let now_ns = self.cell.now_ns();
        while self.events.peek().is_some_and(|event| event.at_ns <= now_ns) {
            if let Some(event) = self.events.pop() {
                self.happen(event, sink);
            }
        }
        if let Some(device) = &mut self.device {
            device.read_log(now_ns);
            sink.log_rejections(device.log_rejections());
            self.release(now_ns, sink);
        }
        self.report(now_ns, sink);
        sink.firmware(now_ns, self.cell.queue_bytes(UserId::MEASURED, Direction::Ul));
        self.cell.step();
        let end_ns = self.cell.now_ns();
        while let Some(record) = self.cell.poll_record() {
            if let Some(device) = &mut self.device {
                device.record(&record);
            }
            if let Some(reporter) = &mut self.users[UserId::MEASURED.index()].reporter {
                reporter.record(end_ns, record.clone());
            }
            sink.record(record);
        }
        while let Some((user, record)) = self.cell.poll_others_record() {
            if let Some(reporter) = &mut self.users[user.index()].reporter {
                reporter.record(end_ns, record);
            }
        }
        while let Some(delivery) = self.cell.poll_delivery() {
            let user = delivery.user;
            self.users[user.index()].bytes[delivery.dir as usize].1 +=
                u64::from(delivery.sdu.bytes);
            let Some(packet) = self.land(delivery.sdu.id) else { continue };
            match delivery.dir {
                Direction::Dl => self.cause(end_ns, user, Happening::Arrival(Node::Phone, packet)),
                Direction::Ul if self.users[user.index()].proxy.is_some() => {
                    let at_ns = end_ns + self.users[user.index()].inner_ns;
                    self.cause(at_ns, user, Happening::Arrival(Node::Proxy, packet));
                }
                Direction::Ul => self.send_core(end_ns, user, Direction::Ul, packet, sink),
            }
        }
    }

    /// Ends the run.
    #[must_use]
    pub fn finish(self) -> SimulationEnd<H> {
        let totals = |(user, place): (usize, &UserHosts<H>)| {
            [Direction::Dl, Direction::Ul].map(|dir| {
                let undelivered = self.cell.undelivered_bytes(UserId(user), dir);
                ByteTotals::new(
                    dir,
                    place.bytes[dir as usize],
                    undelivered,
                    self.cell.dropped_bytes(UserId(user), dir),
                )
            })
        };
        SimulationEnd {
            first_tti: self.first_tti,
            n_tti: self.cell.tti().since(self.first_tti) as u32,
            totals: self.users.iter().enumerate().map(totals).collect(),
            truth: self.cell.into_truth(),
            hosts: self.users.into_iter().map(|p| (p.phone, p.server, p.proxy)).collect(),
        }
    }

    fn cause(&mut self, at_ns: i64, user: UserId, what: Happening) {
        self.caused += 1;
        self.events.push(ScheduledEvent { at_ns, number: self.caused, user, what });
    }

    fn happen(&mut self, event: ScheduledEvent, sink: &mut impl RunSink) {
        let ScheduledEvent { at_ns, user, what, .. } = event;
        match what {
            Happening::Departure(node, packet) => self.depart(at_ns, user, node, packet, sink),
            Happening::AtBaseStation(packet) => {
                self.send_air(at_ns, user, Direction::Dl, packet, sink);
            }
            Happening::Arrival(Node::Server | Node::Proxy, packet)
                if user.is_measured() && self.device.is_some() && reflect(&packet).is_some() =>
            {
                if let Some(answer) = reflect(&packet) {
                    self.send_core(at_ns, user, Direction::Dl, answer, sink);
                }
            }
            Happening::Arrival(node, packet) => {
                if (user, node) == (UserId::MEASURED, Node::Phone)
                    && let Some(device) = &mut self.device
                    && device.arrived(at_ns, &packet)
                {
                    return;
                }
                let point = self.point_of_arrival(user, node, &packet);
                self.capture(at_ns, user, point, &packet, sink);
                if let Some(host) = self.host(user, node) {
                    host.handle_packet(at_ns, packet);
                }
                self.drain(at_ns, user, node, sink);
            }
            Happening::Timer(node) => {
                self.users[user.index()].timers[node as usize] = None;
                if let Some(host) = self.host(user, node)
                    && host.poll_timeout().is_some_and(|due| due <= at_ns)
                {
                    host.handle_timeout(at_ns);
                }
                self.drain(at_ns, user, node, sink);
            }
        }
    }

    const fn host_of(place: &mut UserHosts<H>, node: Node) -> Option<&mut H> {
        match node {
            Node::Phone => Some(&mut place.phone),
            Node::Server => Some(&mut place.server),
            Node::Proxy => place.proxy.as_mut(),
        }
    }

    fn host(&mut self, user: UserId, node: Node) -> Option<&mut H> {
        Self::host_of(&mut self.users[user.index()], node)
    }

    /// Polls a host's packets and its next timer.
    fn drain(&mut self, now_ns: i64, user: UserId, node: Node, sink: &mut impl RunSink) {
        while let Some(packet) = self.host(user, node).and_then(|h| h.poll_transmit(now_ns)) {
            self.depart(now_ns, user, node, packet, sink);
        }
        self.set_timer(now_ns, user, node);
    }

    /// A packet leaves a host.
    fn depart(
        &mut self,
        now_ns: i64,
        user: UserId,
        node: Node,
        packet: IpPacket,
        sink: &mut impl RunSink,
    ) {
        let down = *packet.dst.ip() == self.users[user.index()].address;
        match node {
            Node::Phone => {
                self.capture(now_ns, user, CapturePoint::Phone, &packet, sink);
                match &mut self.device {
                    Some(device) if user.is_measured() => {
                        device.push(now_ns, packet);
                        self.release(now_ns, sink);
                    }
                    _ => self.send_air(now_ns, user, Direction::Ul, packet, sink),
                }
            }
            Node::Server => {
                self.capture(now_ns, user, CapturePoint::Server, &packet, sink);
                self.send_core(now_ns, user, Direction::Dl, packet, sink);
            }
            Node::Proxy if down => {
                self.capture(now_ns, user, CapturePoint::ProxyRan, &packet, sink);
                let at_ns = now_ns + self.users[user.index()].inner_ns;
                self.cause(at_ns, user, Happening::AtBaseStation(packet));
            }
            Node::Proxy => {
                debug_assert!(self.users[user.index()].proxy.is_some(), "only a box sends as one");
                self.capture(now_ns, user, CapturePoint::ProxyCore, &packet, sink);
                self.send_core(now_ns, user, Direction::Ul, packet, sink);
            }
        }
    }

    fn set_timer(&mut self, now_ns: i64, user: UserId, node: Node) {
        let Some(due) = self.host(user, node).and_then(|host| host.poll_timeout()) else { return };
        let due = due.max(now_ns);
        // An event that is too early finds nothing due, and sets the next.
        if self.users[user.index()].timers[node as usize].is_none_or(|set| set > due) {
            self.users[user.index()].timers[node as usize] = Some(due);
            self.cause(due, user, Happening::Timer(node));
        }
    }

    /// Between server and box, or base station.
    fn send_core(
        &mut self,
        now_ns: i64,
        user: UserId,
        dir: Direction,
        packet: IpPacket,
        sink: &mut impl RunSink,
    ) {
        let place = &mut self.users[user.index()];
        let path = if dir == Direction::Dl { &mut place.down } else { &mut place.up };
        let carried = path.carry(now_ns, packet.ip_bytes());
        let what = match (dir, place.proxy.is_some()) {
            (Direction::Ul, _) => Happening::Arrival(Node::Server, packet),
            (Direction::Dl, true) => Happening::Arrival(Node::Proxy, packet),
            (Direction::Dl, false) => Happening::AtBaseStation(packet),
        };
        let point = match carried {
            PathOutcome::At(at_ns) => return self.cause(at_ns, user, what),
            PathOutcome::Overflow => DropPoint::CoreQueue,
            PathOutcome::Lost => DropPoint::CoreLoss,
        };
        if let Happening::Arrival(_, packet) | Happening::AtBaseStation(packet) = what {
            sink.dropped(now_ns, user, point, &packet);
        }
    }

    fn point_of_arrival(&self, user: UserId, node: Node, packet: &IpPacket) -> CapturePoint {
        match node {
            Node::Phone => CapturePoint::Phone,
            Node::Server => CapturePoint::Server,
            Node::Proxy if *packet.dst.ip() == self.users[user.index()].address => {
                CapturePoint::ProxyCore
            }
            Node::Proxy => CapturePoint::ProxyRan,
        }
    }

    /// Passes a packet of the measured phone to the sink.
    fn capture(
        &self,
        at_ns: i64,
        user: UserId,
        point: CapturePoint,
        packet: &IpPacket,
        sink: &mut impl RunSink,
    ) {
        if user.is_measured() {
            sink.packet(at_ns, point, packet);
        }
    }
}
