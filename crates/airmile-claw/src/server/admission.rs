//! Admission of handshakes. A client's first packet may have a forged source address: while
//! many handshakes are in progress, further clients must prove their address first (Retry,
//! RFC 9000, 8.1.2), which keeps no state here.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airmile_host::net::host_prefix;
use airmile_host::thread::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of handshakes in progress from which on a Retry is sent (chosen here: the phones
/// of a cell that start within a round trip).
const RETRY_FROM: usize = 32;
/// Maximum number of handshakes in progress (chosen here: each holds some 50 kB).
const MAX_HANDSHAKES: usize = 256;
/// Maximum number of connections (chosen here, with `SEND_BYTES`).
const MAX_CONNECTIONS: usize = 1_024;
/// Data to send, which is held until it is acknowledged, is limited for each connection: to
/// this, divided by the number of connections at its start (chosen here: 1.3 GB for
/// `MAX_CONNECTIONS`).
const SEND_BYTES: u64 = 256 << 20;
/// The limits of the first and of the last connections (chosen here: 100 Mbit/s at 1.3 s and
/// 20 ms).
const SEND_WINDOW: RangeInclusive<u64> = 256 << 10..=16 << 20;
/// Maximum number of connections of one host (IPv6: of its /64), those in their handshake
/// included, while fewer than half of all places are free (chosen here: half of the handshakes;
/// thousands of phones share an address by a carrier's NAT, and may use what nobody else needs).
const MAX_HOST_CONNECTIONS: usize = 128;
/// Maximum duration of a handshake (chosen here: some round trips of the slowest networks,
/// with losses).
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum number of first packets that wait for admission.
pub(super) const MAX_INCOMING: usize = 256;
/// Maximum bytes of their further packets.
pub(super) const INCOMING_BYTES: u64 = 1 << 20;

/// Places for handshakes and connections.
#[derive(Debug)]
pub(super) struct Admission {
    handshakes: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    hosts: HostCounts,
}

/// Maximum bytes that the connection with this number may hold to send.
fn send_window(connections: usize) -> u64 {
    (SEND_BYTES / connections.max(1) as u64).clamp(*SEND_WINDOW.start(), *SEND_WINDOW.end())
}

/// Connections of each host.
type HostCounts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// The place of a connection among those of its host; freed when dropped.
#[derive(Debug)]
pub(super) struct HostPlace {
    hosts: HostCounts,
    host: IpAddr,
}

impl HostPlace {
    /// Takes a place; only up to the host's share if places are scarce.
    fn take(hosts: &HostCounts, address: IpAddr, is_scarce: bool) -> Option<Self> {
        let host = host_prefix(address);
        let mut counts = lock(hosts);
        let count = counts.entry(host).or_default();
        if is_scarce && *count >= MAX_HOST_CONNECTIONS {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Self { hosts: Arc::clone(hosts), host })
    }
}

impl Drop for HostPlace {
    fn drop(&mut self) {
        let mut counts = lock(&self.hosts);
        if let Some(count) = counts.get_mut(&self.host) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.host);
            }
        }
    }
}

/// The places of a connection; that of its handshake is released after the handshake.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) handshake: OwnedSemaphorePermit,
    pub(super) connection: OwnedSemaphorePermit,
    pub(super) host: HostPlace,
    /// Maximum bytes that it may hold to send.
    pub(super) send_window: u64,
}

impl Admission {
    pub(super) fn new() -> Self {
        let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { handshakes, connections, hosts: HostCounts::default() }
    }

    /// Whether fewer than half of the places are free.
    fn is_scarce(&self) -> bool {
        self.handshakes.available_permits() < MAX_HANDSHAKES / 2
            || self.connections.available_permits() < MAX_CONNECTIONS / 2
    }

    /// Admits a connection, or answers it with a Retry or a refusal.
    pub(super) fn admit(&self, incoming: quinn::Incoming) -> Option<(quinn::Incoming, Admitted)> {
        let under_way = MAX_HANDSHAKES - self.handshakes.available_permits();
        if under_way >= RETRY_FROM && incoming.may_retry() {
            // A connection that cannot be retried is refused below if necessary.
            let _ = incoming.retry();
            return None;
        }
        let handshake = Arc::clone(&self.handshakes).try_acquire_owned();
        let connection = Arc::clone(&self.connections).try_acquire_owned();
        let host = HostPlace::take(&self.hosts, incoming.remote_address().ip(), self.is_scarce());
        let (Ok(handshake), Ok(connection), Some(host)) = (handshake, connection, host) else {
            incoming.refuse();
            return None;
        };
        let send_window = send_window(MAX_CONNECTIONS - self.connections.available_permits());
        Some((incoming, Admitted { handshake, connection, host, send_window }))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::sync::mpsc;

    use super::super::{Controllers, ServeOptions, Server, ServerEvent, Window};
    use super::*;
    use crate::client::{Trust, get};
    use crate::tls;

    const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// First packets of `count` clients.
    fn first_packets(count: usize) -> Vec<Vec<u8>> {
        let sink = UdpSocket::bind(LOCAL).unwrap();
        sink.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let to = sink.local_addr().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (packets, all) = mpsc::channel();
        let read = std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            for _ in 0..count {
                let bytes = sink.recv(&mut buffer).unwrap();
                packets.send(buffer[..bytes].to_vec()).unwrap();
            }
        });
        runtime.block_on(async {
            let mut endpoint = quinn::Endpoint::client(LOCAL).unwrap();
            endpoint.set_default_client_config(tls::client(None, tls::H3).unwrap());
            let mut connecting = Vec::new();
            for _ in 0..count {
                connecting.push(endpoint.connect(to, "localhost").unwrap());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            while !read.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        read.join().unwrap();
        all.into_iter().collect()
    }

    fn start(dir: &std::path::Path) -> Server {
        std::fs::write(dir.join("index.html"), "here").unwrap();
        let options = ServeOptions {
            dir: dir.to_owned(),
            bind: LOCAL,
            reports: None,
            identity: None,
            names: vec!["localhost".to_owned()],
            shared_key: None,
            limits: crate::OperatorLimits::default(),
            window: Window::Claw,
        };
        Server::start(options, Arc::new(|_: &ServerEvent| {})).unwrap()
    }

    /// Clients that request much and acknowledge nothing.
    #[test]
    fn what_all_connections_hold_to_send_is_limited() {
        assert_eq!(send_window(1), 16 << 20);
        assert_eq!(send_window(MAX_CONNECTIONS), 256 << 10);
        let of = |connections| (1..=connections).map(send_window).sum::<u64>();
        assert!(of(MAX_HOST_CONNECTIONS) < 800 << 20, "{}", of(MAX_HOST_CONNECTIONS));
        assert!(of(MAX_CONNECTIONS) < 1_400 << 20, "{}", of(MAX_CONNECTIONS));
        // And each of 40 connections has its limit.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let identity = tls::Identity::generate(vec!["localhost".to_owned()]).unwrap();
            let quic = tls::server(&identity).unwrap();
            let endpoint =
                quinn::Endpoint::server(quinn::ServerConfig::with_crypto(quic), LOCAL).unwrap();
            let mut client = quinn::Endpoint::client(LOCAL).unwrap();
            client.set_default_client_config(tls::client(None, tls::H3).unwrap());
            let admission = Admission::new();
            let controllers =
                Controllers { limits: crate::OperatorLimits::default(), window: Window::Claw };
            let mut kept = Vec::new();
            for n in 1..=40 {
                let to = endpoint.local_addr().unwrap();
                let connecting = client.connect(to, "localhost").unwrap();
                let incoming = endpoint.accept().await.unwrap();
                let (incoming, admitted) = admission.admit(incoming).unwrap();
                assert_eq!(admitted.send_window, send_window(n), "{n}");
                let transport = controllers.transport(&Arc::default(), &admitted);
                let expected = format!("send_window: {},", send_window(n));
                assert!(format!("{transport:?}").contains(&expected), "{n}: {transport:?}");
                // Its handshake is over.
                kept.push((connecting, incoming, admitted.connection, admitted.host));
            }
        });
    }

    #[test]
    fn addresses_of_a_64_share_the_connections_of_a_host() {
        let hosts = HostCounts::default();
        let take_if = |n: usize, is_scarce| {
            let address = format!("2001:db8:0:1:{n:x}::1").parse().unwrap();
            HostPlace::take(&hosts, address, is_scarce)
        };
        let take = |n| take_if(n, true);
        let mut all: Vec<_> = (0..2 * MAX_HOST_CONNECTIONS).filter_map(take).collect();
        assert_eq!(all.len(), MAX_HOST_CONNECTIONS);
        assert!(HostPlace::take(&hosts, "2001:db8:0:2::1".parse().unwrap(), true).is_some());
        // While there is room for all, phones that share an address get it.
        assert!(take_if(1, false).is_some());
        all.pop();
        assert!(take(1).is_some());
        drop(all);
        assert!(lock(&hosts).is_empty());
    }

    /// Loopback has many addresses on Linux alone.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_host_that_keeps_connections_open_shuts_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = |last: u8| {
                let own = SocketAddr::from(([127, 0, 0, last], 0));
                let mut endpoint = quinn::Endpoint::client(own).unwrap();
                endpoint.set_default_client_config(tls::client(None, tls::H3).unwrap());
                endpoint
            };
            let (one, other) = (client(1), client(2));
            let connect = async |from: &quinn::Endpoint| {
                from.connect(server.address(), "localhost").unwrap().await
            };
            let mut kept = Vec::new();
            // While half of the places are free, a host is not limited to its share.
            for _ in 0..MAX_CONNECTIONS / 2 {
                kept.push(connect(&one).await.unwrap());
            }
            assert!(connect(&one).await.is_err());
            connect(&other).await.unwrap();
            // A connection that ends makes room, once the server knows of it.
            kept.pop().unwrap().close(0_u32.into(), b"");
            let begun = std::time::Instant::now();
            while connect(&one).await.is_err() {
                assert!(begun.elapsed() < Duration::from_secs(20), "no room");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }

    #[test]
    fn a_flood_of_first_packets_is_answered_by_retries_and_shuts_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path());
        let socket = UdpSocket::bind(LOCAL).unwrap();
        socket.connect(server.address()).unwrap();
        for packet in first_packets(2 * RETRY_FROM) {
            socket.send(&packet).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut retries = 0;
        let mut buffer = [0; 2_048];
        while socket.recv(&mut buffer).is_ok() {
            // A long header of the type Retry (RFC 9000, 17.2.5).
            retries += usize::from(buffer[0] >> 4 == 0b1111);
            if retries == RETRY_FROM / 2 {
                break;
            }
        }
        assert!(retries >= RETRY_FROM / 2, "{retries}");
        // A client that receives the Retry gets its answer.
        let url = format!("https://127.0.0.1:{}/", server.address().port());
        let fetched = get(&url, &Trust::Anyone, None, &mut |_| Ok(())).unwrap();
        assert_eq!((fetched.status, fetched.bytes), (200, 4));
    }
}
