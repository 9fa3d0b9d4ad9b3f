//! The study: flows in one table, users beside them, rows out.

use std::collections::{HashMap, VecDeque};

use airmile_model::flow::PacketRow;
use airmile_model::packet::{Address, Packet, TcpFlags, Transport};
use foldhash::fast::FixedState;

use super::copies::Recent;
use super::flow::{Closing, Flow, FlowKey, client_is_source};
use super::options::StudyOptions;
use super::summary::{Gathered, Quality, StudySummary};
use super::trace::TracedPacket;
use super::user::{RadioPacket, User};
use crate::app::Place;

/// How often flows that are over are looked for, in time of the capture.
const SWEEP_NS: i64 = 10_000_000_000;
/// A flow that was silent for this long keeps no spare memory (chosen here).
const REST_NS: i64 = 1_000_000_000;

/// Studies a capture's packets in the order of the capture.
#[derive(Debug)]
pub struct PacketStudy {
    pub(super) options: StudyOptions,
    index: HashMap<FlowKey, u32, FixedState>,
    pub(super) flows: Vec<Option<Box<Flow>>>,
    free_flows: Vec<u32>,
    addresses: HashMap<Address, u32, FixedState>,
    pub(super) users: Vec<Option<Box<User>>>,
    free_users: Vec<u32>,
    pub(super) recent: Recent,
    next_flow: u64,
    next_user: u64,
    /// Latest time that was seen.
    now_ns: i64,
    last_ns: i64,
    last_sweep_ns: i64,
    pub(super) rows: VecDeque<PacketRow>,
    pub(super) scratch: Vec<PacketRow>,
    pub(super) trace: VecDeque<TracedPacket>,
    pub(super) quality: Quality,
    pub(super) gathered: Gathered,
}

impl PacketStudy {
    /// A study without packets yet.
    #[must_use]
    pub fn new(options: StudyOptions) -> Self {
        Self {
            options,
            index: HashMap::default(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            addresses: HashMap::default(),
            users: Vec::new(),
            free_users: Vec::new(),
            recent: Recent::default(),
            next_flow: 0,
            next_user: 0,
            now_ns: i64::MIN,
            last_ns: i64::MIN,
            last_sweep_ns: i64::MIN,
            rows: VecDeque::new(),
            scratch: Vec::new(),
            trace: VecDeque::new(),
            quality: Quality::default(),
            gathered: Gathered::default(),
        }
    }

    /// Takes the next packet of the capture.
    pub fn push(&mut self, packet: &Packet<'_>) {
        self.clock(packet);
        self.quality.packet(packet);
        match packet.transport {
            Transport::Tcp(ref tcp) => {
                let fresh = tcp.flags.has(TcpFlags::SYN) && !tcp.flags.has(TcpFlags::ACK);
                let Some((at, upwards)) = self.flow_of(packet, fresh) else { return };
                self.tcp(packet, tcp, at, upwards);
            }
            Transport::Udp => {
                let Some((at, upwards)) = self.flow_of(packet, false) else { return };
                self.udp(packet, at, upwards);
            }
            Transport::Icmp | Transport::Fragment | Transport::Other => {}
        }
    }

    /// The next row of the tables that were asked for.
    pub fn poll(&mut self) -> Option<PacketRow> {
        self.rows.pop_front()
    }

    /// The next packet of the flows that were to be traced.
    pub fn poll_trace(&mut self) -> Option<TracedPacket> {
        self.trace.pop_front()
    }

    /// What is known of the capture so far.
    #[must_use]
    pub const fn quality(&self) -> &Quality {
        &self.quality
    }

    /// How many flows are open.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.flows.len() - self.free_flows.len()
    }

    /// The end of the capture: closes all flows and sums up. Rows that are left
    /// are lost: [`finish_with`](Self::finish_with) gives them.
    #[must_use]
    pub fn finish(self) -> StudySummary {
        self.finish_with(&mut |_| {})
    }

    /// As [`finish`](Self::finish), with the rows that are left to `sink`.
    #[must_use]
    pub fn finish_with(mut self, sink: &mut dyn FnMut(PacketRow)) -> StudySummary {
        let mut open: Vec<(u64, u32)> = Vec::new();
        for (at, flow) in self.flows.iter().enumerate() {
            if let Some(flow) = flow {
                open.push((flow.number, u32::try_from(at).unwrap_or(u32::MAX)));
            }
        }
        open.sort_unstable();
        for (_, at) in open {
            self.end_flow(at, "capture_end");
            self.rows.drain(..).for_each(&mut *sink);
        }
        let mut users: Vec<(u64, u32)> = self
            .addresses
            .values()
            .filter_map(|&at| {
                let user = self.users.get(at as usize)?.as_ref()?;
                Some((user.number, at))
            })
            .collect();
        users.sort_unstable();
        for (_, at) in users {
            self.end_user(at);
        }
        self.rows.drain(..).for_each(&mut *sink);
        self.gathered.summary(self.quality)
    }

    fn clock(&mut self, packet: &Packet<'_>) {
        let at_ns = packet.at_ns;
        // What waited in vain for a fragment comes late, and says so.
        if at_ns < self.last_ns && !packet.fragmented {
            self.quality.steps_back += 1;
            self.quality.largest_step_back_ns =
                self.quality.largest_step_back_ns.max(self.last_ns - at_ns);
        }
        self.last_ns = at_ns;
        self.now_ns = self.now_ns.max(at_ns);
        if self.last_sweep_ns == i64::MIN {
            self.last_sweep_ns = at_ns;
        }
        if self.now_ns - self.last_sweep_ns >= SWEEP_NS {
            self.last_sweep_ns = self.now_ns;
            self.sweep();
        }
    }

    /// Ends flows and users that are over.
    fn sweep(&mut self) {
        for at in 0..self.flows.len() {
            let Some(flow) = self.flows.get_mut(at).and_then(Option::as_mut) else { continue };
            let idle = self.now_ns - flow.last_ns;
            let closed = flow.closing != Closing::Open;
            let most = if closed { self.options.linger_ns } else { self.options.idle_ns };
            if idle > most {
                self.end_flow(u32::try_from(at).unwrap_or(u32::MAX), "idle");
            } else if idle > REST_NS {
                flow.rest();
            }
        }
        for at in 0..self.users.len() {
            let Some(user) = self.users.get(at).and_then(Option::as_ref) else { continue };
            if user.open_flows == 0 && self.now_ns - user.last_ns > self.options.user_gap_ns {
                self.end_user(u32::try_from(at).unwrap_or(u32::MAX));
            }
        }
    }

    /// The flow of a packet, a new one where it has none; and whether the packet
    /// goes from the lower end to the higher.
    fn flow_of(&mut self, packet: &Packet<'_>, fresh: bool) -> Option<(u32, bool)> {
        let (key, upwards) = FlowKey::of(packet);
        if let Some(&at) = self.index.get(&key) {
            let flow = self.flows.get(at as usize)?.as_ref()?;
            let over = packet.at_ns - flow.last_ns > self.options.idle_ns;
            if over || fresh && flow.is_replaced_by(packet) {
                self.end_flow(at, "idle");
            } else {
                return Some((at, upwards));
            }
        }
        let (client_is_source, by) = client_is_source(packet, &self.options.client_networks);
        let client = usize::from(client_is_source != upwards);
        let mut flow = Box::new(Flow::new(self.next_flow, key, client, by, packet.at_ns));
        self.next_flow += 1;
        flow.mid_flow = packet.tcp().is_some_and(|tcp| !tcp.flags.has(TcpFlags::SYN));
        flow.wants_events = self.options.tables.tcp_events;
        flow.traced = self.options.traced_flows.binary_search(&flow.number).is_ok();
        flow.user = self.user_of(flow.client().0, packet.at_ns);
        let at = match self.free_flows.pop() {
            Some(at) => at,
            None => {
                self.flows.push(None);
                u32::try_from(self.flows.len() - 1).ok()?
            }
        };
        *self.flows.get_mut(at as usize)? = Some(flow);
        self.index.insert(key, at);
        Some((at, upwards))
    }

    fn user_of(&mut self, address: Address, now: i64) -> u32 {
        if let Some(&at) = self.addresses.get(&address) {
            let gap = |user: &User| now - user.last_ns > self.options.user_gap_ns;
            let user = self.users.get_mut(at as usize).and_then(Option::as_mut);
            match user {
                Some(user) if user.open_flows > 0 || !gap(user) => {
                    user.flows += 1;
                    user.open_flows += 1;
                    return at;
                }
                _ => self.end_user(at),
            }
        }
        let mut user = Box::new(User::new(self.next_user, address, now));
        (user.flows, user.open_flows) = (1, 1);
        self.next_user += 1;
        let at = self.free_users.pop().unwrap_or_else(|| {
            self.users.push(None);
            u32::try_from(self.users.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = self.users.get_mut(at as usize) {
            *slot = Some(user);
        }
        self.addresses.insert(address, at);
        at
    }

    fn end_user(&mut self, at: u32) {
        let Some(mut user) = self.users.get_mut(at as usize).and_then(Option::take) else { return };
        self.addresses.remove(&user.address);
        self.free_users.push(at);
        let row = user.row(&self.options.radio);
        self.gathered.user(&row, &user);
        if self.options.tables.users {
            self.rows.push_back(PacketRow::User(Box::new(row)));
        }
    }

    fn end_flow(&mut self, at: u32, why: &'static str) {
        let Some(mut flow) = self.flows.get_mut(at as usize).and_then(Option::take) else { return };
        self.index.remove(&flow.key);
        self.free_flows.push(at);
        let tables = self.options.tables;
        let mut rows = std::mem::take(&mut self.scratch);
        let user = self.users.get_mut(flow.user as usize).and_then(Option::as_mut);
        let number = user.as_ref().map_or(0, |user| user.number);
        let place = flow.place(number, false);
        flow.app.finish(place, &mut rows);
        let row = flow.end(why, user.map(AsMut::as_mut), &self.options, &mut rows);
        self.gathered.flow(&row, &flow);
        self.take_rows(&mut rows);
        self.scratch = rows;
        if tables.flows {
            self.rows.push_back(PacketRow::Flow(Box::new(row)));
        }
    }

    /// Sums rows up, and queues those of tables that were asked for.
    pub(super) fn take_rows(&mut self, rows: &mut Vec<PacketRow>) {
        let tables = self.options.tables;
        for row in rows.drain(..) {
            self.gathered.row(&row);
            let wanted = match row {
                PacketRow::Flow(_) => tables.flows,
                PacketRow::Tcp(_) => tables.tcp_events,
                PacketRow::Rtt(_) => tables.rtt_samples,
                PacketRow::Inflight(_) => tables.inflight_samples,
                PacketRow::Bandwidth(_) => tables.bandwidth_samples,
                PacketRow::Http(_) => tables.http,
                PacketRow::Dns(_) => tables.dns,
                PacketRow::User(_) => tables.users,
            };
            if wanted {
                self.rows.push_back(row);
            }
        }
    }

    fn udp(&mut self, packet: &Packet<'_>, at: u32, upwards: bool) {
        let Some(mut flow) = self.flows.get_mut(at as usize).and_then(Option::take) else { return };
        let up = usize::from(!upwards) == flow.client;
        let totals = &mut flow.udp[usize::from(!up)];
        totals.packets += 1;
        totals.bytes += u64::from(packet.payload_bytes);
        totals.ip_bytes += u64::from(packet.ip_bytes);
        totals.first_ns.get_or_insert(packet.at_ns);
        totals.last_ns = Some(packet.at_ns);
        flow.touch(packet, false);
        let mut rows = std::mem::take(&mut self.scratch);
        let place = flow.place(self.user_number(flow.user), up);
        let spin = flow.app.push(place, packet, &mut rows);
        if let Some(rtt_ns) = spin {
            flow.spin_rtt(packet.at_ns, rtt_ns, &mut rows);
        }
        self.take_rows(&mut rows);
        self.scratch = rows;
        self.radio(&flow, packet, up, false);
        if let Some(slot) = self.flows.get_mut(at as usize) {
            *slot = Some(flow);
        }
    }

    pub(super) fn user_number(&self, at: u32) -> u64 {
        self.users.get(at as usize).and_then(Option::as_ref).map_or(0, |user| user.number)
    }

    /// Tells the user's radio of a packet.
    pub(super) fn radio(&mut self, flow: &Flow, packet: &Packet<'_>, up: bool, closing: bool) {
        let Some(user) = self.users.get_mut(flow.user as usize).and_then(Option::as_mut) else {
            return;
        };
        let radio = RadioPacket {
            at_ns: packet.at_ns,
            ip_bytes: packet.ip_bytes,
            payload_bytes: packet.payload_bytes,
            up,
            closing,
            server: flow.server().0,
        };
        user.push(&self.options.radio, radio);
    }
}

impl Flow {
    /// Whether a SYN begins another connection on the same ports.
    fn is_replaced_by(&self, syn: &Packet<'_>) -> bool {
        let Some(tcp) = syn.tcp() else { return false };
        let established = self.handshake.ack_ns.is_some() || self.mid_flow;
        let sender = usize::from(self.client().0 != syn.src || self.client().1 != syn.src_port);
        let same = self.ends.get(sender).is_some_and(|end| end.stream.began_at(tcp.seq));
        !same && (self.closing != Closing::Open || established)
    }

    /// Gives back memory that only a flow with traffic needs.
    fn rest(&mut self) {
        for end in &mut self.ends {
            end.stream.rest();
            if let Some(bandwidth) = &mut end.bandwidth {
                bandwidth.rest();
            }
        }
    }

    /// Notes the time of a packet.
    pub(super) fn touch(&mut self, packet: &Packet<'_>, control: bool) {
        self.max_gap_ns = self.max_gap_ns.max(packet.at_ns - self.last_ns);
        self.last_ns = self.last_ns.max(packet.at_ns);
        if packet.payload_bytes > 0 && !control {
            self.last_payload_ns = Some(packet.at_ns);
        }
    }

    pub(super) fn place(&self, user: u64, up: bool) -> Place {
        let server_port = self.server().1;
        Place { flow: self.number, user, up, server_port, tcp: self.is_tcp() }
    }
}
