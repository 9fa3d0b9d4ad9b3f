//! A transparent split-TCP proxy: it answers for the server and connects to the server for
//! the client (the middlebox of BurstTracker, 4.5).

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use crate::net::{Host, IpPacket, Transport};
use crate::transport::tcp::{ConnectionEvent, ConnectionId, Endpoint, TcpConfig, TcpConnection};

pub use crate::scenario::{ProxyConfig, ProxyPort};

/// A side of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards the client.
    Client,
    /// Towards the server.
    Server,
}

/// The proxy, a host on the path. Pass packets from both sides to
/// [`handle_packet`](Host::handle_packet); send its packets by their destination.
#[derive(Debug)]
pub struct Proxy {
    config: ProxyConfig,
    client_side: Endpoint,
    server_side: Endpoint,
    /// The server-side connection for each client's connection.
    pairs: BTreeMap<ConnectionId, ConnectionId>,
    passing: VecDeque<IpPacket>,
}

impl Proxy {
    /// A proxy without connections.
    #[must_use]
    pub fn new(config: ProxyConfig, seed: u64) -> Self {
        let tcp = TcpConfig { send_buffer_bytes: config.buffer_bytes, ..config.tcp.clone() };
        // The proxy has no address of its own.
        let nobody = Ipv4Addr::UNSPECIFIED;
        let mut client_side = Endpoint::new(nobody, tcp.clone(), seed);
        client_side.listen_to_all();
        let server_side = Endpoint::new(nobody, tcp, !seed);
        let (pairs, passing) = (BTreeMap::new(), VecDeque::new());
        Self { config, client_side, server_side, pairs, passing }
    }

    /// Its connections on a side.
    pub fn connections(&self, side: Side) -> impl Iterator<Item = (ConnectionId, &TcpConnection)> {
        match side {
            Side::Client => self.client_side.connections(),
            Side::Server => self.server_side.connections(),
        }
    }

    /// Connection events since the last call.
    pub fn poll_connection_event(&mut self) -> Option<(Side, ConnectionEvent)> {
        let client = self.client_side.poll_event().map(|event| (Side::Client, event));
        client.or_else(|| self.server_side.poll_event().map(|event| (Side::Server, event)))
    }

    fn port(&self, port: u16) -> Option<ProxyPort> {
        self.config.ports.iter().copied().find(|p| p.port == port)
    }

    /// Opens the server side of new client connections, and relays data.
    fn advance(&mut self, now_ns: i64) {
        while let Some(id) = self.client_side.accept() {
            let Some(client) = self.client_side.connection(id) else { continue };
            let (server, client) = (client.local(), client.remote());
            let tcp = TcpConfig {
                send_buffer_bytes: self.config.buffer_bytes,
                ..self.config.tcp.clone()
            };
            let other = self.server_side.connect_from(now_ns, client, server, tcp);
            self.pairs.insert(id, other);
        }
        let mut ended = Vec::new();
        for (&client, &server) in &self.pairs {
            let (from, to) = (&mut self.client_side, &mut self.server_side);
            let up = relay(now_ns, from, client, to, server);
            let down = relay(now_ns, to, server, from, client);
            if !up || !down {
                ended.push(client);
            }
        }
        for client in ended {
            self.pairs.remove(&client);
        }
    }
}

/// Relays the available data as far as there is room. Returns false once a side is closed.
fn relay(
    now_ns: i64,
    from: &mut Endpoint,
    from_id: ConnectionId,
    to: &mut Endpoint,
    to_id: ConnectionId,
) -> bool {
    let (Some(source), Some(sink)) = (from.connection(from_id), to.connection(to_id)) else {
        // One side is closed: close the other.
        for (endpoint, id) in [(from, from_id), (to, to_id)] {
            if let Some(connection) = endpoint.connection_mut(id)
                && !connection.is_read_to_end()
            {
                connection.abort(now_ns);
            }
        }
        return false;
    };
    let ended = source.is_read_to_end();
    if source.readable_bytes() == 0 && !ended || sink.writable_bytes() == 0 {
        return true;
    }
    let (Some(source), Some(sink)) = (from.connection_mut(from_id), to.connection_mut(to_id))
    else {
        return true;
    };
    loop {
        let filler = source.readable_filler_bytes().min(sink.writable_bytes());
        if filler > 0 {
            sink.write(source.read(now_ns, filler));
            continue;
        }
        let bytes = source.readable_literal_bytes();
        if bytes == 0 || bytes > sink.writable_bytes() {
            break;
        }
        if let Some(literal) = source.read_literal(now_ns) {
            sink.write_shared(&literal);
        }
    }
    if source.is_read_to_end() {
        sink.finish();
    }
    true
}

impl Host for Proxy {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        let Transport::Tcp(segment) = &packet.transport else {
            self.passing.push_back(packet);
            return;
        };
        let (local, remote) = (packet.dst, packet.src);
        if self.server_side.takes(local, remote) {
            self.server_side.handle_segment(now_ns, local, remote, segment);
        } else if let Some(port) = self.port(local.port()) {
            let tcp = TcpConfig {
                slow_start_after_idle: port.slow_start_after_idle,
                send_buffer_bytes: self.config.buffer_bytes,
                ..self.config.tcp.clone()
            };
            self.client_side.handle_segment_with(now_ns, local, remote, segment, Some(&tcp));
        } else {
            self.passing.push_back(packet);
            return;
        }
        self.advance(now_ns);
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        let client = self.client_side.handle_timeout(now_ns);
        let server = self.server_side.handle_timeout(now_ns);
        if client || server {
            self.advance(now_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        self.passing
            .pop_front()
            .or_else(|| self.client_side.poll_transmit(now_ns))
            .or_else(|| self.server_side.poll_transmit(now_ns))
    }

    fn poll_timeout(&self) -> Option<i64> {
        [self.client_side.poll_timeout(), self.server_side.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}
