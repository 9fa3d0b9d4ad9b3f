//! All TCP connections of a host: dispatches packets, and chooses who sends next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::claw::Feedback;

use super::connection::TcpConnection;
use super::stats::TcpEvent;
use crate::net::{Flags, TcpSegment};
use crate::net::{IpPacket, Transport};
use crate::random::Random;
use crate::scenario::TcpConfig;

/// First port for outgoing connections (RFC 6335, 6).
const FIRST_PORT: u16 = 49_152;

/// A connection of an endpoint, numbered from 0 in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Maximum number of unread events; the oldest are dropped first (chosen here).
const MAX_EVENTS: usize = 65_536;

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The connection.
    pub connection: ConnectionId,
    /// Own address.
    pub local: SocketAddrV4,
    /// The peer's address.
    pub remote: SocketAddrV4,
    /// The event and its time.
    pub event: TcpEvent,
}

/// All TCP connections of a host.
///
/// Closed connections are dropped; their counts are kept ([`finished`](Self::finished)).
#[derive(Debug)]
pub struct Endpoint {
    address: Ipv4Addr,
    config: TcpConfig,
    random: Random,
    ip_id: u16,
    next_port: u16,
    next_id: u64,
    connections: BTreeMap<ConnectionId, TcpConnection>,
    by_addresses: BTreeMap<(SocketAddrV4, SocketAddrV4), ConnectionId>,
    listening: BTreeSet<u16>,
    listens_to_all: bool,
    accepted: VecDeque<ConnectionId>,
    /// Connections that may have segments to send.
    ready: BTreeSet<ConnectionId>,
    /// Timer of each connection, and the same in time order.
    timeouts: BTreeMap<ConnectionId, i64>,
    wakes: BTreeSet<(i64, ConnectionId)>,
    replies: VecDeque<IpPacket>,
    events: VecDeque<ConnectionEvent>,
    finished: Vec<(ConnectionId, super::Stats)>,
}

impl Endpoint {
    /// An endpoint without connections. The seed determines sequence numbers.
    #[must_use]
    pub fn new(address: Ipv4Addr, config: TcpConfig, seed: u64) -> Self {
        Self {
            address,
            config,
            random: Random::new(seed, u64::from(u32::from(address))),
            ip_id: 0,
            next_port: FIRST_PORT,
            next_id: 0,
            connections: BTreeMap::new(),
            by_addresses: BTreeMap::new(),
            listening: BTreeSet::new(),
            listens_to_all: false,
            accepted: VecDeque::new(),
            ready: BTreeSet::new(),
            timeouts: BTreeMap::new(),
            wakes: BTreeSet::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            finished: Vec::new(),
        }
    }

    /// Accepts connections to a port.
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Accepts connections to any address and port, as a transparent proxy does.
    pub fn listen_to_all(&mut self) {
        self.listens_to_all = true;
    }

    /// Opens a connection from the endpoint's address.
    pub fn connect(&mut self, now_ns: i64, remote: SocketAddrV4) -> ConnectionId {
        let local = loop {
            let local = SocketAddrV4::new(self.address, self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.by_addresses.contains_key(&(local, remote)) {
                break local;
            }
        };
        self.connect_from(now_ns, local, remote, self.config.clone())
    }

    /// Opens a connection from any address, with its own configuration.
    pub fn connect_from(
        &mut self,
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        config: TcpConfig,
    ) -> ConnectionId {
        let random = self.random.bits();
        self.add(TcpConnection::connect(now_ns, local, remote, config, random))
    }

    fn add(&mut self, connection: TcpConnection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.by_addresses.insert((connection.local(), connection.remote()), id);
        self.connections.insert(id, connection);
        self.ready.insert(id);
        id
    }

    /// A connection opened by a peer since the last call.
    pub fn accept(&mut self) -> Option<ConnectionId> {
        self.accepted.pop_front()
    }

    /// A connection.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&TcpConnection> {
        self.connections.get(&id)
    }

    /// A connection for reading or writing; resulting segments are sent.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut TcpConnection> {
        let connection = self.connections.get_mut(&id)?;
        self.ready.insert(id);
        Some(connection)
    }

    /// Processes a client's feedback about its radio, which covers all of its connections:
    /// those that send share it.
    pub(crate) fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        let sending = self.connections.values().filter(|c| c.is_sending()).count();
        let all = self.connections.values().filter(|c| c.is_established()).count();
        let among = if sending > 0 { sending } else { all };
        let w_claw_bytes = feedback.w_claw_bytes / u64::try_from(among).unwrap_or(1).max(1);
        let share = Feedback { w_claw_bytes, ..*feedback };
        for (&id, connection) in &mut self.connections {
            connection.on_radio(now_ns, &share);
            self.ready.insert(id);
        }
    }

    /// All connections, in order of opening.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &TcpConnection)> {
        self.connections.iter().map(|(&id, connection)| (id, connection))
    }

    /// The counts of closed connections.
    #[must_use]
    pub fn finished(&self) -> &[(ConnectionId, super::Stats)] {
        &self.finished
    }

    /// Whether it has a connection between these addresses, or would accept one.
    #[must_use]
    pub fn takes(&self, local: SocketAddrV4, remote: SocketAddrV4) -> bool {
        self.by_addresses.contains_key(&(local, remote)) || self.listens_on(local)
    }

    fn listens_on(&self, local: SocketAddrV4) -> bool {
        self.listens_to_all || *local.ip() == self.address && self.listening.contains(&local.port())
    }

    /// Processes a segment.
    pub fn handle_segment(
        &mut self,
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        segment: &TcpSegment,
    ) {
        self.handle_segment_with(now_ns, local, remote, segment, None);
    }

    /// The same, with the configuration of a connection that it opens.
    pub fn handle_segment_with(
        &mut self,
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        segment: &TcpSegment,
        config: Option<&TcpConfig>,
    ) {
        let known = self.by_addresses.get(&(local, remote)).copied();
        if let Some(id) = known
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.handle_segment(now_ns, segment);
            self.ready.insert(id);
            self.after(id);
            return;
        }
        if self.listens_on(local) {
            let random = self.random.bits();
            let config = config.unwrap_or(&self.config).clone();
            let accepted = TcpConnection::accept(now_ns, local, remote, segment, config, random);
            if let Some(connection) = accepted {
                let id = self.add(connection);
                self.accepted.push_back(id);
                self.after(id);
                return;
            }
        }
        self.refuse(local, remote, segment);
    }

    /// RFC 9293, 3.10.7.1: a RST for a segment without a connection.
    fn refuse(&mut self, local: SocketAddrV4, remote: SocketAddrV4, segment: &TcpSegment) {
        if segment.flags.rst {
            return;
        }
        let length =
            segment.payload_bytes() + u32::from(segment.flags.syn) + u32::from(segment.flags.fin);
        let acked = segment.flags.ack;
        let reset = TcpSegment {
            seq: if acked { segment.ack } else { 0 },
            ack: segment.seq.wrapping_add(length),
            flags: Flags { rst: true, ack: !acked, ..Flags::default() },
            ..TcpSegment::default()
        };
        let packet = self.packet(local, remote, reset);
        self.replies.push_back(packet);
    }

    /// Wakes connections whose timer has expired; returns whether there were any.
    pub fn handle_timeout(&mut self, now_ns: i64) -> bool {
        // Each once: one that is still due must send first.
        let due: Vec<(i64, ConnectionId)> =
            self.wakes.iter().take_while(|(at_ns, _)| *at_ns <= now_ns).copied().collect();
        let any = !due.is_empty();
        for (at_ns, id) in due {
            self.wakes.remove(&(at_ns, id));
            self.timeouts.remove(&id);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.handle_timeout(now_ns);
                self.ready.insert(id);
            }
            self.after(id);
        }
        any
    }

    /// A packet to send now.
    pub fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        if let Some(packet) = self.replies.pop_front() {
            return Some(packet);
        }
        while let Some(&id) = self.ready.first() {
            let Some(connection) = self.connections.get_mut(&id) else {
                self.ready.remove(&id);
                continue;
            };
            if let Some(segment) = connection.poll_transmit(now_ns) {
                let (local, remote) = (connection.local(), connection.remote());
                return Some(self.packet(local, remote, segment));
            }
            self.ready.remove(&id);
            self.after(id);
        }
        None
    }

    /// Collects events, sets the timer and drops closed connections.
    fn after(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (local, remote) = (connection.local(), connection.remote());
        for event in connection.take_events() {
            if self.events.len() >= MAX_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(ConnectionEvent { connection: id, local, remote, event });
        }
        let timeout_ns = connection.poll_timeout();
        let unread = connection.readable_bytes() > 0;
        let gone = connection.is_closed() && !unread;
        let old_ns = match timeout_ns.filter(|_| !gone) {
            Some(at_ns) => self.timeouts.insert(id, at_ns),
            None => self.timeouts.remove(&id),
        };
        if old_ns != timeout_ns || gone {
            self.wakes.extend(timeout_ns.filter(|_| !gone).map(|at_ns| (at_ns, id)));
            if let Some(old_ns) = old_ns.filter(|_| old_ns != timeout_ns || gone) {
                self.wakes.remove(&(old_ns, id));
            }
        }
        if gone && let Some(connection) = self.connections.remove(&id) {
            self.by_addresses.remove(&(local, remote));
            self.ready.remove(&id);
            self.finished.push((id, connection.stats()));
        }
    }

    fn packet(&mut self, src: SocketAddrV4, dst: SocketAddrV4, segment: TcpSegment) -> IpPacket {
        self.ip_id = self.ip_id.wrapping_add(1);
        IpPacket { src, dst, ip_id: self.ip_id, transport: Transport::Tcp(segment) }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.wakes.first().map(|&(at_ns, _)| at_ns)
    }

    /// Connection events since the last call.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }
}
