//! A host: an application over TCP.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::claw::Feedback;

use super::{AppEvent, SocketApplication, Sockets, StreamId, UnderWay};
use crate::net::{Host, IpPacket, Transport};
use crate::transport::tcp::{
    ConnectionEvent, ConnectionId, Endpoint, Stats, TcpConfig, TcpConnection,
};

/// A host: many TCP connections and an application.
///
/// A client's first event occurs when its application starts, at the time given by
/// [`poll_timeout`](Host::poll_timeout).
#[derive(Debug)]
pub struct EndHost {
    tcp: TcpSockets,
    application: Box<dyn SocketApplication>,
    log: VecDeque<AppEvent>,
}

/// [`Sockets`] over TCP.
#[derive(Debug)]
pub struct TcpSockets {
    endpoint: Endpoint,
    server: Option<SocketAddrV4>,
    lanes: BTreeMap<u32, ConnectionId>,
}

impl EndHost {
    /// A client at `address` whose application connects to `server`.
    #[must_use]
    pub fn client(
        address: Ipv4Addr,
        server: SocketAddrV4,
        config: TcpConfig,
        application: Box<dyn SocketApplication>,
        seed: u64,
    ) -> Self {
        let endpoint = Endpoint::new(address, config, seed);
        let tcp = TcpSockets { endpoint, server: Some(server), lanes: BTreeMap::new() };
        Self { tcp, application, log: VecDeque::new() }
    }

    /// A server that listens on `ports` of `address`.
    #[must_use]
    pub fn server(
        address: Ipv4Addr,
        ports: &[u16],
        config: TcpConfig,
        application: Box<dyn SocketApplication>,
        seed: u64,
    ) -> Self {
        let mut endpoint = Endpoint::new(address, config, seed);
        ports.iter().for_each(|&port| endpoint.listen(port));
        let tcp = TcpSockets { endpoint, server: None, lanes: BTreeMap::new() };
        Self { tcp, application, log: VecDeque::new() }
    }

    /// Its connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &TcpConnection)> {
        self.tcp.endpoint.connections()
    }

    /// Statistics of closed connections.
    #[must_use]
    pub fn finished(&self) -> &[(ConnectionId, Stats)] {
        self.tcp.endpoint.finished()
    }

    /// Connection events since the last call.
    pub fn poll_connection_event(&mut self) -> Option<ConnectionEvent> {
        self.tcp.endpoint.poll_event()
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

    /// Minimum RTT of its connections.
    pub(crate) fn min_rtt_ns(&self) -> Option<i64> {
        self.connections().filter_map(|(_, c)| c.min_rtt_ns()).min()
    }

    /// For a client: its server.
    pub(crate) fn server_address(&self) -> Option<Ipv4Addr> {
        self.tcp.server.map(|server| *server.ip())
    }

    /// Processes its client's feedback about the radio.
    pub(crate) fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        self.tcp.endpoint.on_radio(now_ns, feedback);
    }

    fn advance(&mut self, now_ns: i64) {
        self.application.advance(now_ns, &mut self.tcp);
        while let Some(event) = self.application.poll_event() {
            self.log.push_back(event);
        }
    }
}

impl Host for EndHost {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        if let Transport::Tcp(segment) = &packet.transport {
            self.tcp.endpoint.handle_segment(now_ns, packet.dst, packet.src, segment);
            self.advance(now_ns);
        }
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        let woken = self.tcp.endpoint.handle_timeout(now_ns);
        if woken || self.application.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
            self.advance(now_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        self.tcp.endpoint.poll_transmit(now_ns)
    }

    fn poll_timeout(&self) -> Option<i64> {
        [self.tcp.endpoint.poll_timeout(), self.application.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl TcpSockets {
    fn get(&self, stream: StreamId) -> Option<&TcpConnection> {
        self.endpoint.connection(ConnectionId(stream.0))
    }

    fn readable_bytes(&self, stream: StreamId) -> u64 {
        self.get(stream).map_or(0, TcpConnection::readable_bytes)
    }

    fn get_mut(&mut self, stream: StreamId) -> Option<&mut TcpConnection> {
        self.endpoint.connection_mut(ConnectionId(stream.0))
    }
}

impl Sockets for TcpSockets {
    fn open(&mut self, now_ns: i64, lane: u32) -> StreamId {
        let usable = |id: &ConnectionId| {
            self.endpoint.connection(*id).is_some_and(|c| {
                !c.is_read_to_end() && (c.is_established() || c.state().is_opening())
            })
        };
        if let Some(&id) = self.lanes.get(&lane).filter(|id| usable(id)) {
            return StreamId(id.0);
        }
        // A server opens no connections; such a stream is never established.
        let Some(server) = self.server else { return StreamId(u64::MAX) };
        let id = self.endpoint.connect(now_ns, server);
        self.lanes.insert(lane, id);
        StreamId(id.0)
    }

    fn accept(&mut self) -> Option<StreamId> {
        self.endpoint.accept().map(|id| StreamId(id.0))
    }

    fn is_connected(&self, stream: StreamId) -> bool {
        self.get(stream).is_some_and(TcpConnection::is_established)
    }

    fn addresses(&self, stream: StreamId) -> Option<(SocketAddrV4, SocketAddrV4)> {
        self.get(stream).map(|c| (c.local(), c.remote()))
    }

    fn write_head(&mut self, _now_ns: i64, stream: StreamId, head: &[u8]) -> bool {
        self.get_mut(stream).is_some_and(|c| c.write_literal(head))
    }

    fn write(&mut self, _now_ns: i64, stream: StreamId, bytes: u64) -> u64 {
        let room = self.get(stream).map_or(0, TcpConnection::writable_bytes);
        let bytes = bytes.min(room);
        if bytes == 0 {
            return 0;
        }
        self.get_mut(stream).map_or(0, |c| c.write(bytes))
    }

    fn read_head(&mut self, now_ns: i64, stream: StreamId) -> Option<Vec<u8>> {
        if self.readable_bytes(stream) == 0 {
            return None;
        }
        self.get_mut(stream)?.read_literal(now_ns).map(|bytes| bytes.to_vec())
    }

    fn read(&mut self, now_ns: i64, stream: StreamId, max_bytes: u64) -> u64 {
        if max_bytes == 0 || self.readable_bytes(stream) == 0 {
            return 0;
        }
        self.get_mut(stream).map_or(0, |c| c.read(now_ns, max_bytes))
    }

    fn end_exchange(&mut self, _stream: StreamId) {}

    fn finish(&mut self, stream: StreamId) {
        if let Some(connection) = self.get_mut(stream) {
            connection.finish();
        }
    }

    fn is_ended(&self, stream: StreamId) -> bool {
        self.get(stream).is_none_or(|c| c.is_read_to_end() || c.is_closed())
    }

    fn close(&mut self, _now_ns: i64) {
        for (_, id) in std::mem::take(&mut self.lanes) {
            self.finish(StreamId(id.0));
        }
    }
}
