//! A server of segments: HTTP/1.1 on several ports, on some of them in TLS.

use std::collections::HashMap;
use std::io::{BufWriter, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airmile_host::thread::lock;
use airmile_host::tls::provider;
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
    /// Connections at once of one address; more are closed.
    pub per_address: usize,
    /// Requests of a connection; then it is closed.
    pub requests: u32,
    /// A connection without a request, or that takes nothing, is closed after so long.
    pub idle: Duration,
    /// A request that has begun is whole after so long, or closed.
    pub request: Duration,
    /// Bytes a second that a segment is taken at, or the connection is closed.
    pub least_rate: u64,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            segment_bytes: 8_000_000,
            total_bytes: 20_000_000_000,
            connections: 64,
            // A port each, twice, for some testers behind one translator.
            per_address: 24,
            requests: 1_000,
            idle: Duration::from_secs(60),
            request: Duration::from_secs(15),
            // A quarter of the slowest rate that operators throttle to, 128 kbit/s.
            least_rate: 4_000,
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
    connections: Mutex<Connections>,
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
            connections: Mutex::default(),
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
    let mut config = ServerConfig::builder_with_provider(provider())
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
        let Ok(peer) = stream.peer_addr() else { continue };
        let Some(place) = Place::take(shared, peer.ip()) else { continue };
        let config = config.cloned();
        // Where no thread can be had the connection is closed, and its place given back.
        let _ = std::thread::Builder::new().spawn(move || {
            // A client that goes away or speaks no HTTP is its own affair.
            let _ = serve(stream, config, &place.shared);
        });
    }
}

/// Open connections, and those of each address.
#[derive(Debug, Default)]
struct Connections {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// A connection's place among those allowed; it is given back when dropped.
struct Place {
    shared: Arc<Shared>,
    address: IpAddr,
}

impl Place {
    fn take(shared: &Arc<Shared>, address: IpAddr) -> Option<Self> {
        let mut open = lock(&shared.connections);
        let own = open.of.get(&address).copied().unwrap_or(0);
        if open.all >= shared.limits.connections || own >= shared.limits.per_address {
            return None;
        }
        open.all += 1;
        open.of.insert(address, own + 1);
        Some(Self { shared: shared.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = lock(&self.shared.connections);
        open.all = open.all.saturating_sub(1);
        if let Some(own) = open.of.get_mut(&self.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.of.remove(&self.address);
            }
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
        let most = shared.limits.request;
        let Some((asked, used)) = read_request(&mut stream, &mut head, most)? else {
            return Ok(());
        };
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

/// Reads a request's head; `None` where the client is done, or takes longer than `most`
/// from its first byte on.
fn read_request(
    stream: &mut impl Read,
    head: &mut Vec<u8>,
    most: Duration,
) -> std::io::Result<Option<(Asked, usize)>> {
    let mut buffer = [0; 2_048];
    let mut begun = None;
    loop {
        if !head.is_empty() && begun.get_or_insert_with(Instant::now).elapsed() > most {
            return Ok(None);
        }
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
            // What is not taken is given back below.
            let served = shared.served_bytes.fetch_add(bytes, Ordering::Relaxed);
            let room = served.saturating_add(bytes) <= limits.total_bytes;
            if !room {
                shared.served_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
            if room { 200 } else { 503 }
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
    let mut left = bytes;
    let written = write_content(&mut out, number, bytes, limits, &mut left);
    shared.served_bytes.fetch_sub(left, Ordering::Relaxed);
    written.map(|()| !last)
}

/// Writes a segment; `left` is what of it was not.
fn write_content(
    out: &mut impl Write,
    number: u64,
    bytes: u64,
    limits: &ServeLimits,
    left: &mut u64,
) -> std::io::Result<()> {
    let most = limits.idle + Duration::from_secs(bytes / limits.least_rate.max(1));
    let begun = Instant::now();
    let mut content = Content::new(number, bytes);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match content.fill(&mut piece) {
            0 => return out.flush(),
            _ if begun.elapsed() > most => return Err(std::io::ErrorKind::TimedOut.into()),
            n => {
                out.write_all(piece.get(..n).unwrap_or_default())?;
                *left = left.saturating_sub(n as u64);
            }
        }
    }
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
            connections: Mutex::default(),
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
        // What was refused does not count.
        assert_eq!(ask(500, &tight), ("200".to_owned(), true));
    }

    #[test]
    fn an_address_has_so_many_places() {
        let limits = ServeLimits { connections: 3, per_address: 2, ..ServeLimits::default() };
        let shared = Arc::new(Shared {
            limits,
            stop: AtomicBool::new(false),
            connections: Mutex::default(),
            served_bytes: AtomicU64::new(0),
            restarts: None,
        });
        let [one, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let first = Place::take(&shared, one).unwrap();
        let _second = Place::take(&shared, one).unwrap();
        assert!(Place::take(&shared, one).is_none());
        let _third = Place::take(&shared, other).unwrap();
        assert!(Place::take(&shared, other).is_none());
        drop(first);
        assert!(Place::take(&shared, one).is_some());
    }

    /// A client that gives a byte at a time, and takes none.
    struct Drip;

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            buffer[0] = b'G';
            Ok(1)
        }
    }

    #[test]
    fn who_drips_a_request_or_takes_nothing_is_sent_away() {
        let mut head = Vec::new();
        let read = read_request(&mut Drip, &mut head, Duration::from_millis(5));
        assert_eq!(read.unwrap(), None);
        let limits =
            ServeLimits { idle: Duration::ZERO, least_rate: u64::MAX, ..ServeLimits::default() };
        let mut left = 50_000;
        let written = write_content(&mut Vec::new(), 0, 50_000, &limits, &mut left);
        assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(left, 50_000);
    }
}
