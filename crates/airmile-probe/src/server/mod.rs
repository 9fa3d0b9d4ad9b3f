//! A server of segments: HTTP/1.1 on several ports, some of them with TLS.

mod answer;
mod places;

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airmile_host::tls::provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{Error, Result};
use answer::answer_all;
use places::{ClientPlace, ClientPlaces};

/// Limits that protect a public server. TCP's handshake keeps it from answering a spoofed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Maximum bytes of a segment.
    pub segment_bytes: u64,
    /// Maximum bytes of all segments together; beyond it the answer is 503.
    pub total_bytes: u64,
    /// Maximum concurrent connections; more are closed.
    pub connections: usize,
    /// Maximum concurrent connections of one host (IPv6: of its /64); more are closed.
    /// Each port has a share of all connections.
    pub per_address: usize,
    /// Maximum requests of a connection; then it is closed.
    pub requests: u32,
    /// A connection without a request, or that reads nothing, is closed after this time.
    pub idle: Duration,
    /// Maximum duration of a TLS handshake; then the connection is closed.
    pub handshake: Duration,
    /// Maximum duration of a request's transmission; then the connection is closed.
    pub request: Duration,
    /// Minimum rate in bytes per second at which a segment is read; below it the
    /// connection is closed.
    pub least_rate: u64,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            segment_bytes: 8_000_000,
            total_bytes: 20_000_000_000,
            connections: 64,
            // One per port, twice, for some testers behind one NAT.
            per_address: 24,
            requests: 1_000,
            idle: Duration::from_secs(60),
            // Some round trips of the slowest networks.
            handshake: Duration::from_secs(10),
            request: Duration::from_secs(15),
            // 32 kbit/s: a quarter of the slowest rate that operators throttle to.
            least_rate: 4_000,
        }
    }
}

/// Options of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The address to listen at.
    pub bind: IpAddr,
    /// Ports; 0 takes a free one.
    pub ports: Vec<u16>,
    /// The ports with TLS.
    pub tls: Vec<u16>,
    /// Limits.
    pub limits: ServeLimits,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ProbeServer {
    addresses: Vec<SocketAddr>,
    shared: Arc<ServerShared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct ServerShared {
    limits: ServeLimits,
    stop: AtomicBool,
    places: Arc<ClientPlaces>,
    served_bytes: AtomicU64,
    /// The kernel's behaviour after pauses, reported to clients.
    restarts: Option<bool>,
}

impl ProbeServer {
    /// Listens on all ports.
    ///
    /// # Errors
    /// A port is taken or not allowed; no certificate can be made.
    pub fn start(options: &ServeOptions) -> Result<Self> {
        let config = if options.tls.is_empty() { None } else { Some(tls_config()?) };
        let shared = Arc::new(ServerShared {
            limits: options.limits,
            stop: AtomicBool::new(false),
            places: ClientPlaces::new(options.limits, options.ports.len()),
            served_bytes: AtomicU64::new(0),
            restarts: restarts_after_idle(),
        });
        let mut listeners = Vec::new();
        for port in &options.ports {
            let address = SocketAddr::new(options.bind, *port);
            let failed = |source| Error::Listen { address, source };
            let listener = TcpListener::bind(address).map_err(failed)?;
            let own = listener.local_addr().map_err(failed)?;
            let config = config.clone().filter(|_| options.tls.contains(port));
            listeners.push((listener, own, config));
        }
        let addresses = listeners.iter().map(|(_, address, _)| *address).collect();
        let threads = listeners
            .into_iter()
            .map(|(listener, _, config)| {
                let shared = shared.clone();
                std::thread::spawn(move || accept(&listener, config.as_ref(), &shared))
            })
            .collect();
        Ok(Self { addresses, shared, threads })
    }

    /// Its addresses, in the order of the ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether the kernel restarts slow start after pauses, which hides a middlebox that
    /// does; `None` if unknown.
    #[must_use]
    pub fn restarts_after_idle(&self) -> Option<bool> {
        self.shared.restarts
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for thread in std::mem::take(&mut self.threads) {
            // A thread that failed has reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for ProbeServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for address in &self.addresses {
            // Wakes the accepting thread; the wildcard address includes this one.
            let ip = match address.ip() {
                ip if ip.is_unspecified() && ip.is_ipv4() => IpAddr::from([127, 0, 0, 1]),
                ip if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
            let woken = SocketAddr::new(ip, address.port());
            let _ = TcpStream::connect_timeout(&woken, Duration::from_secs(1));
        }
        for thread in std::mem::take(&mut self.threads) {
            let _ = thread.join();
        }
    }
}

/// Linux: `net.ipv4.tcp_slow_start_after_idle` of this network namespace.
fn restarts_after_idle() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle").ok()?;
    Some(text.trim() != "0")
}

/// TLS with a self-signed certificate, new at each start.
fn tls_config() -> Result<Arc<ServerConfig>> {
    let tls_error = |e: &dyn std::fmt::Display| Error::Tls(e.to_string());
    let names = vec!["airmile-probe".to_owned(), "localhost".to_owned()];
    let own = rcgen::generate_simple_self_signed(names).map_err(|e| tls_error(&e))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| tls_error(&e))?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .map_err(|e| tls_error(&e))?;
    // Tickets would arrive before any request was sent.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn accept(listener: &TcpListener, config: Option<&Arc<ServerConfig>>, shared: &Arc<ServerShared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, for example: other connections may end in the meantime.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let Ok(peer) = stream.peer_addr() else { continue };
        let Ok(port) = stream.local_addr().map(|own| own.port()) else { continue };
        let Some(place) = ClientPlace::take(&shared.places, peer.ip(), port) else { continue };
        let (config, shared) = (config.cloned(), shared.clone());
        // If no thread is available, the connection is closed, and its place freed.
        let _ = std::thread::Builder::new().spawn(move || {
            // A client that disconnects or speaks no HTTP is not an error of the server.
            let _ = serve(stream, config, &shared);
            drop(place);
        });
    }
}

fn serve(
    mut stream: TcpStream,
    config: Option<Arc<ServerConfig>>,
    shared: &ServerShared,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let connection = config.map(ServerConnection::new).transpose();
    let mut connection = connection.map_err(std::io::Error::other)?;
    if let Some(connection) = &mut connection {
        handshake(connection, &mut stream, shared.limits.handshake)?;
    }
    stream.set_read_timeout(Some(shared.limits.idle))?;
    stream.set_write_timeout(Some(shared.limits.idle))?;
    match connection {
        Some(connection) => answer_all(StreamOwned::new(connection, stream), shared),
        None => answer_all(stream, shared),
    }
}

/// Completes the handshake within the time limit, for any rate of bytes.
fn handshake(
    connection: &mut ServerConnection,
    stream: &mut TcpStream,
    most: Duration,
) -> std::io::Result<()> {
    let begun = Instant::now();
    while connection.is_handshaking() {
        let left = most.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        stream.set_write_timeout(Some(left))?;
        if connection.wants_write() {
            connection.write_tls(stream)?;
        } else if connection.read_tls(stream)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        } else if let Err(error) = connection.process_new_packets() {
            // The reason is sent to the client, if it reads it.
            let _ = connection.write_tls(stream);
            return Err(std::io::Error::other(error));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_dripped_tls_handshake_is_closed_in_time() {
        let options = ServeOptions {
            bind: IpAddr::from([127, 0, 0, 1]),
            ports: vec![0],
            tls: vec![0],
            limits: ServeLimits { handshake: Duration::from_millis(300), ..ServeLimits::default() },
        };
        let server = ProbeServer::start(&options).unwrap();
        let mut stream = TcpStream::connect(server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // A hello of 512 bytes, sent a byte at a time.
        let mut record = vec![22, 3, 1, 2, 0, 1, 0, 1, 252];
        record.resize(517, 0);
        let begun = Instant::now();
        for byte in record {
            let closed = stream.write_all(&[byte]).is_err()
                || matches!(stream.read(&mut [0; 64]), Ok(0))
                || matches!(stream.read(&mut [0; 64]), Err(e)
                    if e.kind() == std::io::ErrorKind::ConnectionReset);
            if closed {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(9), "it is still open");
        }
        panic!("it is still open");
    }
}
