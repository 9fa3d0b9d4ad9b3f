//! A host: an application over QUIC.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use airmile_control::claw::Feedback;
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Endpoint, EndpointConfig, ServerConfig,
};

use super::control::Made;
use super::crypto::{NullCrypto, NullKey};
use super::sockets::QuicSockets;
use super::{QuicConfig, clock};
use crate::net::{Host, IpPacket, Transport};
use crate::random::Random;
use crate::transport::socket::{AppEvent, SocketApplication, UnderWay};

/// Length of connection IDs, as for quinn's own.
const CID_BYTES: usize = 8;

/// The client's port: the first dynamic one (RFC 6335, 6).
const CLIENT_PORT: u16 = 49_152;

/// Connection IDs derived from a seed.
struct SeededCids(Random);

impl ConnectionIdGenerator for SeededCids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.bits().to_be_bytes()[..CID_BYTES])
    }

    fn cid_len(&self) -> usize {
        CID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A connection's state, and counts since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicSnapshot {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt_ns: i64,
    /// The minimum round-trip time.
    pub min_rtt_ns: i64,
    /// Maximum datagram payload confirmed for the path.
    pub mtu_bytes: u16,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets considered lost.
    pub packets_lost: u64,
    /// Their bytes.
    pub bytes_lost: u64,
    /// Reductions of the window.
    pub congestion_events: u64,
    /// Whether it is closed.
    pub closed: bool,
}

/// A host: a QUIC endpoint and an application.
pub struct QuicHost {
    sockets: QuicSockets,
    application: Box<dyn SocketApplication>,
    outbox: VecDeque<IpPacket>,
    ip_id: u16,
    timeout_ns: Option<i64>,
    log: VecDeque<AppEvent>,
    /// Controllers of a server's connections.
    made: Made,
}

impl fmt::Debug for QuicHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicHost")
            .field("local", &self.sockets.local)
            .field("application", &self.application)
            .finish_non_exhaustive()
    }
}

impl QuicHost {
    /// A client at `address` whose application connects to `server`.
    #[must_use]
    pub fn client(
        address: Ipv4Addr,
        server: SocketAddrV4,
        config: &QuicConfig,
        application: Box<dyn SocketApplication>,
        seed: u64,
    ) -> Self {
        let mut client = ClientConfig::new(Arc::new(NullCrypto));
        client.transport_config(config.transport(Made::default()));
        let count = AtomicU32::new(0);
        client.initial_dst_cid_provider(Arc::new(move || {
            let n = count.fetch_add(1, Ordering::Relaxed);
            ConnectionId::new(&Random::new(seed, n.into()).bits().to_be_bytes())
        }));
        let local = SocketAddrV4::new(address, CLIENT_PORT);
        let endpoint = endpoint(local, None, seed);
        let sockets = QuicSockets::new(endpoint, local, Some(server), Some(client));
        Self::new(sockets, application)
    }

    /// A server at `local`.
    #[must_use]
    pub fn server(
        local: SocketAddrV4,
        config: &QuicConfig,
        application: Box<dyn SocketApplication>,
        seed: u64,
    ) -> Self {
        let mut server = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NullKey));
        let made = Made::default();
        server.transport_config(config.transport(made.clone()));
        let endpoint = endpoint(local, Some(Arc::new(server)), seed);
        let mut host = Self::new(QuicSockets::new(endpoint, local, None, None), application);
        host.made = made;
        host
    }

    fn new(sockets: QuicSockets, application: Box<dyn SocketApplication>) -> Self {
        let timeout_ns = application.poll_timeout();
        Self {
            sockets,
            application,
            outbox: VecDeque::new(),
            ip_id: 0,
            timeout_ns,
            log: VecDeque::new(),
            made: Made::default(),
        }
    }

    /// The current state of its connections.
    pub fn snapshots(&self) -> impl Iterator<Item = QuicSnapshot> {
        self.sockets.connections.values().map(|connection| {
            let path = connection.stats().path;
            let ns = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
            QuicSnapshot {
                cwnd_bytes: path.cwnd,
                srtt_ns: ns(path.rtt),
                min_rtt_ns: ns(path.min_rtt),
                mtu_bytes: path.current_mtu,
                packets_sent: path.sent_packets,
                packets_lost: path.lost_packets,
                bytes_lost: path.lost_bytes,
                congestion_events: path.congestion_events,
                closed: connection.is_closed(),
            }
        })
    }

    /// Minimum RTT of its connections.
    pub(crate) fn min_rtt_ns(&self) -> Option<i64> {
        self.snapshots().map(|snapshot| snapshot.min_rtt_ns).min()
    }

    /// For a client: its server.
    pub(crate) fn server_address(&self) -> Option<Ipv4Addr> {
        self.sockets.server.map(|server| *server.ip())
    }

    /// Processes its client's feedback about the radio.
    pub(crate) fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        self.made.on_radio(now_ns, feedback);
    }

    /// An entry of the application's log.
    pub fn poll_event(&mut self) -> Option<AppEvent> {
        self.log.pop_front()
    }

    /// Whether the application has finished.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.application.is_done()
    }

    /// Exchanges of the application that are in progress.
    #[must_use]
    pub fn under_way(&self) -> Vec<UnderWay> {
        self.application.under_way()
    }

    fn packet(&mut self, destination: SocketAddr, payload: Vec<u8>) -> Option<IpPacket> {
        // All addresses were created from IPv4.
        let SocketAddr::V4(dst) = destination else { return None };
        self.ip_id = self.ip_id.wrapping_add(1);
        let src = self.sockets.local;
        Some(IpPacket { src, dst, ip_id: self.ip_id, transport: Transport::Udp(payload) })
    }

    /// Exchanges messages between connections and endpoint, then lets the application act.
    fn advance(&mut self, now_ns: i64) {
        self.application.advance(now_ns, &mut self.sockets);
        while let Some(event) = self.application.poll_event() {
            self.log.push_back(event);
        }
        let QuicSockets { endpoint, connections, .. } = &mut self.sockets;
        let mut drained = Vec::new();
        for (&handle, connection) in connections.iter_mut() {
            // Streams are polled for their state: events add nothing.
            while connection.poll().is_some() {}
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(ConnectionHandle(handle), event) {
                    connection.handle_event(event);
                }
            }
            if connection.is_drained() {
                drained.push(handle);
            }
        }
        for handle in drained {
            connections.remove(&handle);
        }
    }

    fn take_datagram(&mut self, now_ns: i64, from: SocketAddrV4, payload: &[u8]) {
        let now = clock::instant_of(now_ns);
        let mut answer = Vec::new();
        let QuicSockets { endpoint, connections, .. } = &mut self.sockets;
        let data = BytesMut::from(payload);
        let response = match endpoint.handle(now, from.into(), None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = connections.get_mut(&handle.0) {
                    connection.handle_event(event);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match endpoint.accept(incoming, now, &mut answer, None) {
                    Ok((handle, connection)) => {
                        connections.insert(handle.0, connection);
                        None
                    }
                    Err(error) => error.response,
                }
            }
            Some(DatagramEvent::Response(transmit)) => Some(transmit),
            None => None,
        };
        if let Some(transmit) = response {
            answer.truncate(transmit.size);
            let packet = self.packet(transmit.destination, answer);
            self.outbox.extend(packet);
        }
    }
}

fn endpoint(local: SocketAddrV4, server: Option<Arc<ServerConfig>>, seed: u64) -> Endpoint {
    let process = u64::from(u32::from(*local.ip()));
    let mut config = EndpointConfig::new(Arc::new(NullKey));
    config.cid_generator(move || Box::new(SeededCids(Random::new(seed, process))));
    let mut rng_seed = [0; 32];
    let mut random = Random::new(seed, !process);
    rng_seed.as_chunks_mut::<8>().0.iter_mut().for_each(|c| *c = random.bits().to_be_bytes());
    config.rng_seed(Some(rng_seed));
    Endpoint::new(Arc::new(config), server, true, None)
}

impl Host for QuicHost {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        if let Transport::Udp(payload) = &packet.transport
            && packet.dst == self.sockets.local
        {
            self.take_datagram(now_ns, packet.src, payload);
            self.advance(now_ns);
        }
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        let now = clock::instant_of(now_ns);
        for connection in self.sockets.connections.values_mut() {
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
        }
        self.advance(now_ns);
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        if let Some(packet) = self.outbox.pop_front() {
            return Some(packet);
        }
        let now = clock::instant_of(now_ns);
        let mut payload = Vec::new();
        let transmit = self
            .sockets
            .connections
            .values_mut()
            .find_map(|connection| connection.poll_transmit(now, 1, &mut payload));
        if let Some(transmit) = transmit {
            payload.truncate(transmit.size);
            return self.packet(transmit.destination, payload);
        }
        let timeouts = self.sockets.connections.values_mut().filter_map(Connection::poll_timeout);
        let first_ns = timeouts.min().map(clock::ns_of);
        self.timeout_ns = [first_ns, self.application.poll_timeout()].into_iter().flatten().min();
        None
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.timeout_ns
    }
}
