//! A server of segments: HTTP/1.1 on several ports, on some of them in TLS.

use std::io::{BufWriter, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::content::Content;
use crate::{Error, Result};

/// What a public server must not be made to do. TCP's handshake keeps it from
/// answering somebody else's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Bytes of a segment at most.
    pub segment_bytes: u64,
    /// Bytes of all segments together; then it answers 503.
    pub total_bytes: u64,
    /// Connections at once; more are closed.
    pub connections: usize,
    /// Requests of a connection; then it is closed.
    pub requests: u32,
    /// A connection without a request, or that takes nothing, is closed after so long.
    pub idle: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            segment_bytes: 8_000_000,
            total_bytes: 20_000_000_000,
            connections: 64,
            requests: 1_000,
            idle: Duration::from_secs(60),
        }
    }
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The address to listen at.
    pub bind: IpAddr,
    /// Ports; 0 takes a free one.
    pub ports: Vec<u16>,
    /// Which of the ports speak TLS.
    pub tls: Vec<u16>,
    /// Limits.
    pub limits: ServeLimits,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    limits: ServeLimits,
    stop: AtomicBool,
    connections: AtomicUsize,
    served_bytes: AtomicU64,
    /// What the kernel does behind pauses: told to clients.
    restarts: Option<bool>,
}

/// The longest request head (chosen here: browsers send 1 kB).
const MOST_HEAD_BYTES: usize = 8_192;
/// Content is written in such pieces (chosen here: a TLS record).
const PIECE_BYTES: usize = 16_384;

impl Server {
    /// Listens on all ports.
    ///
    /// # Errors
    /// A port is taken or not allowed; no certificate can be made.
    pub fn start(options: &ServeOptions) -> Result<Self> {
        let config = if options.tls.is_empty() { None } else { Some(tls_config()?) };
        let shared = Arc::new(Shared {
            limits: options.limits,
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
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

    /// Where it listens, in the order of the ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether the kernel restarts slow start behind pauses, which hides what a
    /// middlebox does; `None` where it does not tell.
    #[must_use]
    pub fn restarts_after_idle(&self) -> Option<bool> {
        self.shared.restarts
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for thread in std::mem::take(&mut self.threads) {
            // A thread that ended ill has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for address in &self.addresses {
            // Wakes the thread that accepts; an address of all interfaces is here, too.
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

/// TLS with a certificate of its own, new at each start.
fn tls_config() -> Result<Arc<ServerConfig>> {
    let told = |e: &dyn std::fmt::Display| Error::Tls(e.to_string());
    let names = vec!["airmile-probe".to_owned(), "localhost".to_owned()];
    let own = rcgen::generate_simple_self_signed(names).map_err(|e| told(&e))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| told(&e))?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .map_err(|e| told(&e))?;
    // Tickets would come down before any request has gone up.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn accept(listener: &TcpListener, config: Option<&Arc<ServerConfig>>, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, for one: others may end meanwhile.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let before = shared.connections.fetch_add(1, Ordering::Relaxed);
        if before >= shared.limits.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (shared, config) = (shared.clone(), config.cloned());
        let counted = shared.clone();
        let started = std::thread::Builder::new().spawn(move || {
            // A client that goes away or speaks no HTTP is its own affair.
            let _ = serve(stream, config, &shared);
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            // No thread can be had now: the connection is closed.
            counted.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve(
    stream: TcpStream,
    config: Option<Arc<ServerConfig>>,
    shared: &Shared,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(shared.limits.idle))?;
    stream.set_write_timeout(Some(shared.limits.idle))?;
    match config {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
            answer_all(StreamOwned::new(connection, stream), shared)
        }
        None => answer_all(stream, shared),
    }
}

/// Answers a connection's requests, one after the other.
fn answer_all(mut stream: impl Read + Write, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::new();
    for n in 1..=shared.limits.requests {
        let Some((asked, used)) = read_request(&mut stream, &mut head)? else { return Ok(()) };
        head.drain(..used);
        let last = n == shared.limits.requests || shared.stop.load(Ordering::Relaxed);
        if !answer(&mut stream, asked, last, shared)? {
            return Ok(());
        }
    }
    Ok(())
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Segment { bytes: u64, number: u64 },
    Other(u16),
}

/// Reads a request's head; `None` where the client is done.
fn read_request(
    stream: &mut impl Read,
    head: &mut Vec<u8>,
) -> std::io::Result<Option<(Asked, usize)>> {
    let mut buffer = [0; 2_048];
    loop {
        if let Some(found) = parse(head) {
            return Ok(Some(found));
        }
        if head.len() > MOST_HEAD_BYTES {
            return Ok(Some((Asked::Other(431), head.len())));
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(None),
            n => head.extend_from_slice(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// A request's meaning and its length; `None` where there is more to come.
fn parse(head: &[u8]) -> Option<(Asked, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((Asked::Other(400), head.len())),
    };
    let asked = match (request.method, request.path) {
        (Some("GET"), Some(path)) => segment(path),
        _ => Asked::Other(405),
    };
    Some((asked, length))
}

/// `/segment?bytes=N&n=NUMBER`.
fn segment(path: &str) -> Asked {
    let Some(query) = path.strip_prefix("/segment?") else { return Asked::Other(404) };
    let of = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok())
    };
    match of("bytes") {
        Some(bytes) => Asked::Segment { bytes, number: of("n").unwrap_or(0) },
        None => Asked::Other(400),
    }
}

/// Answers; whether the connection goes on.
fn answer(
    stream: &mut impl Write,
    asked: Asked,
    last: bool,
    shared: &Shared,
) -> std::io::Result<bool> {
    let limits = &shared.limits;
    let status = match asked {
        Asked::Segment { bytes, .. } if bytes > limits.segment_bytes => 413,
        Asked::Segment { bytes, .. } => {
            let served = shared.served_bytes.fetch_add(bytes, Ordering::Relaxed);
            if served.saturating_add(bytes) > limits.total_bytes { 503 } else { 200 }
        }
        Asked::Other(status) => status,
    };
    let (Asked::Segment { bytes, number }, 200) = (asked, status) else {
        let reason = match status {
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        stream.flush()?;
        return Ok(false);
    };
    let restarts = match shared.restarts {
        Some(restarts) => format!("Airmile-Slow-Start-After-Idle: {}\r\n", u8::from(restarts)),
        None => String::new(),
    };
    let connection = if last { "close" } else { "keep-alive" };
    let mut out = BufWriter::with_capacity(PIECE_BYTES, stream);
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n\
         Cache-Control: no-store, no-transform\r\n{restarts}Connection: {connection}\r\n\r\n"
    )?;
    let mut content = Content::new(number, bytes);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match content.fill(&mut piece) {
            0 => break,
            n => out.write_all(piece.get(..n).unwrap_or_default())?,
        }
    }
    out.flush()?;
    Ok(!last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let check = |head: &str, expected: Option<(Asked, usize)>| {
            assert_eq!(parse(head.as_bytes()), expected, "{head}");
        };
        let get = "GET /segment?bytes=400000&n=7 HTTP/1.1\r\nHost: a\r\n\r\n";
        check(get, Some((Asked::Segment { bytes: 400_000, number: 7 }, get.len())));
        // Of two, the first.
        check(&get.repeat(2), Some((Asked::Segment { bytes: 400_000, number: 7 }, get.len())));
        check(&get[..20], None);
        let check = |head: &str, status: u16| {
            assert_eq!(parse(head.as_bytes()).map(|(asked, _)| asked), Some(Asked::Other(status)));
        };
        check("GET / HTTP/1.1\r\n\r\n", 404);
        check("GET /segment?n=1 HTTP/1.1\r\n\r\n", 400);
        check("GET /segment?bytes=-1 HTTP/1.1\r\n\r\n", 400);
        check("POST /segment?bytes=1 HTTP/1.1\r\n\r\n", 405);
        check("\x16\x03\x01\x02 hello\r\n\r\n", 400);
    }

    #[test]
    fn limits_hold() {
        let shared = |total_bytes| Shared {
            limits: ServeLimits { segment_bytes: 1_000, total_bytes, ..ServeLimits::default() },
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            served_bytes: AtomicU64::new(0),
            restarts: None,
        };
        let ask = |bytes, shared: &Shared| {
            let mut out = Vec::new();
            let goes_on =
                answer(&mut out, Asked::Segment { bytes, number: 0 }, false, shared).unwrap();
            (String::from_utf8_lossy(&out[9..12]).into_owned(), goes_on)
        };
        let free = shared(1_000_000);
        assert_eq!(ask(1_000, &free), ("200".to_owned(), true));
        assert_eq!(ask(1_001, &free), ("413".to_owned(), false));
        assert_eq!(ask(u64::MAX, &free), ("413".to_owned(), false));
        let tight = shared(1_500);
        assert_eq!(ask(1_000, &tight), ("200".to_owned(), true));
        assert_eq!(ask(1_000, &tight), ("503".to_owned(), false));
    }
}
