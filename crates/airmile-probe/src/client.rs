//! The client: segments over several ports by turns.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use airmile::{ProbeConnection, ProbeLog, ProbeTransfer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use crate::{Error, Result, Target};

/// What is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The server.
    pub target: Target,
    /// Its ports.
    pub ports: Vec<u16>,
    /// Which of them speak TLS.
    pub tls: Vec<u16>,
    /// Segments of a connection.
    pub segments: u32,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Pause on a connection before each segment.
    pub pause: Duration,
    /// Rounds: each makes its connections anew.
    pub rounds: u32,
    /// What the order of ports is drawn from.
    pub seed: u64,
    /// A connection on which nothing moves for so long has failed.
    pub timeout: Duration,
}

/// Arrivals within so much time are noted as one (chosen here: a TTI of LTE).
const BIN_US: i64 = 1_000;
/// Bytes read at a time.
const CHUNK_BYTES: usize = 65_536;
/// The longest head of an answer (chosen here).
const MOST_HEAD_BYTES: usize = 65_536;

/// Fetches all segments; `told` hears of each transfer. What fails is noted down, and
/// the connection is made anew at the next turn.
///
/// # Errors
/// The name gives no address, or no segment came at all.
pub fn run(probe: &Probe, told: &mut dyn FnMut(&ProbeTransfer, u16)) -> Result<ProbeLog> {
    let host = &probe.target.host;
    let failed = |source| Error::Name { host: host.clone(), source };
    let address = (host.as_str(), 0).to_socket_addrs().map_err(failed)?.next();
    let none = || failed(std::io::Error::new(ErrorKind::NotFound, "has no address"));
    let ip = address.ok_or_else(none)?.ip();
    let mut log = ProbeLog {
        document: "probe".to_owned(),
        version: ProbeLog::VERSION,
        host: host.clone(),
        segment_bytes: probe.segment_bytes,
        segments: probe.segments,
        pause_ms: u64::try_from(probe.pause.as_millis()).unwrap_or(u64::MAX),
        rounds: probe.rounds,
        seed: probe.seed,
        ..ProbeLog::default()
    };
    let clock = Clock::start();
    let mut random = ChaCha8Rng::seed_from_u64(probe.seed);
    let mut counts = vec![0_u32; probe.ports.len()];
    for round in 0..probe.rounds {
        let mut open: Vec<Option<Connection>> = probe.ports.iter().map(|_| None).collect();
        for segment in 0..probe.segments {
            let mut order: Vec<usize> = (0..probe.ports.len()).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, random.random_range(0..=last));
            }
            for at in order {
                let (Some(port), Some(slot), Some(count)) =
                    (probe.ports.get(at).copied(), open.get_mut(at), counts.get_mut(at))
                else {
                    continue;
                };
                *count += 1;
                let turn = Turn {
                    id: format!("port-{port}-{count}"),
                    number: u64::from(round) * u64::from(probe.segments) + u64::from(segment),
                    round,
                    address: SocketAddr::new(ip, port),
                };
                let first = slot.is_none();
                take(probe, &turn, &clock, slot, &mut log);
                if let Some(transfer) = log.transfers.last() {
                    told(transfer, port);
                }
                let is_last = round + 1 == probe.rounds && segment + 1 == probe.segments;
                if !(is_last || first && probe.segments == 1) {
                    // Ports share the pause of each, so that they are by turns.
                    let ports = u32::try_from(probe.ports.len()).unwrap_or(1).max(1);
                    std::thread::sleep(probe.pause / ports);
                }
            }
        }
    }
    match log.transfers.iter().find(|transfer| transfer.failed.is_none()) {
        Some(_) => Ok(log),
        None => {
            let why = log.transfers.iter().find_map(|transfer| transfer.failed.clone());
            Err(Error::Nothing(why.unwrap_or_else(|| "nothing was asked for".to_owned())))
        }
    }
}

/// The time of day at the start, gone on with a clock that nobody sets.
#[derive(Debug, Clone, Copy)]
struct Clock {
    wall_us: i64,
    start: Instant,
}

impl Clock {
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wall_us = i64::try_from(wall.as_micros()).unwrap_or(i64::MAX);
        Self { wall_us, start: Instant::now() }
    }

    /// Microseconds since the Unix epoch.
    fn now_us(&self) -> i64 {
        let passed = i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.wall_us.saturating_add(passed)
    }
}

/// A segment that is to be fetched.
struct Turn {
    id: String,
    number: u64,
    round: u32,
    address: SocketAddr,
}

/// When bytes came at the socket, below TLS, whose records hold them back.
#[derive(Debug, Clone)]
struct Seen {
    clock: Clock,
    came: Arc<Mutex<Vec<(i64, u64)>>>,
}

impl Seen {
    fn new(clock: Clock) -> Self {
        Self { clock, came: Arc::default() }
    }

    fn note(&self, bytes: usize) {
        let at_us = self.clock.now_us();
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        match came.last_mut() {
            Some((bin_us, sum)) if at_us - *bin_us < BIN_US => *sum += bytes as u64,
            _ => came.push((at_us, bytes as u64)),
        }
    }

    /// What has come since it was taken last.
    fn take(&self) -> Vec<(i64, u64)> {
        std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A socket that notes down what comes.
struct Noted {
    socket: TcpStream,
    seen: Seen,
}

impl Read for Noted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.socket.read(buffer)?;
        if n > 0 {
            self.seen.note(n);
        }
        Ok(n)
    }
}

impl Write for Noted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

/// An open connection.
struct Connection {
    stream: Box<dyn Stream>,
    seen: Seen,
    /// Its place in the log.
    at: usize,
    /// When the last byte of the segment before came.
    last_us: Option<i64>,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Takes a turn, and notes it down.
fn take(
    probe: &Probe,
    turn: &Turn,
    clock: &Clock,
    slot: &mut Option<Connection>,
    log: &mut ProbeLog,
) {
    if slot.is_none() {
        let noted = connect(probe, turn, clock);
        log.connections.push(noted.0);
        let at = log.connections.len() - 1;
        match noted.1 {
            Ok((stream, seen)) => *slot = Some(Connection { stream, seen, at, last_us: None }),
            Err(why) => {
                log.transfers.push(lost(turn, clock, at, why.to_string()));
                return;
            }
        }
    }
    let Some(connection) = slot else { return };
    if let Some(last_us) = connection.last_us {
        // The pause is kept whatever the order of ports was.
        let waited = clock.now_us().saturating_sub(last_us);
        let pause_us = i64::try_from(probe.pause.as_micros()).unwrap_or(i64::MAX);
        if let Ok(left) = u64::try_from(pause_us.saturating_sub(waited)) {
            std::thread::sleep(Duration::from_micros(left));
        }
    }
    let mut transfer = lost(turn, clock, connection.at, String::new());
    transfer.pause_us = connection.last_us.map(|last_us| transfer.start_us - last_us);
    let fetched = fetch(probe, turn, clock, connection, &mut transfer);
    transfer.end_us = clock.now_us();
    connection.last_us = Some(transfer.end_us);
    match fetched {
        Ok(Answer { goes_on, restarts }) => {
            transfer.failed = None;
            log.server_restarts_after_idle = restarts.or(log.server_restarts_after_idle);
            if !goes_on {
                *slot = None;
            }
        }
        Err(why) => {
            transfer.failed = Some(why.to_string());
            *slot = None;
        }
    }
    log.transfers.push(transfer);
}

/// A transfer of which nothing has come.
fn lost(turn: &Turn, clock: &Clock, connection: usize, why: String) -> ProbeTransfer {
    let now_us = clock.now_us();
    ProbeTransfer {
        id: turn.id.clone(),
        connection,
        turn: u32::try_from(turn.number).unwrap_or(u32::MAX),
        start_us: now_us,
        first_byte_us: None,
        end_us: now_us,
        bytes: 0,
        pause_us: None,
        failed: Some(why),
        arrivals: Vec::new(),
    }
}

type Connected = std::io::Result<(Box<dyn Stream>, Seen)>;

fn connect(probe: &Probe, turn: &Turn, clock: &Clock) -> (ProbeConnection, Connected) {
    let port = turn.address.port();
    let tls = probe.tls.contains(&port);
    let start_us = clock.now_us();
    let mut noted = ProbeConnection {
        port,
        tls,
        round: turn.round,
        server: turn.address.ip().to_string(),
        start_us,
        connect_us: 0,
        tls_us: None,
    };
    let mut open = || -> Connected {
        let stream = TcpStream::connect_timeout(&turn.address, probe.timeout)?;
        noted.connect_us = clock.now_us() - start_us;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(probe.timeout))?;
        stream.set_write_timeout(Some(probe.timeout))?;
        let seen = Seen::new(*clock);
        let stream = Noted { socket: stream, seen: seen.clone() };
        if !tls {
            return Ok((Box::new(stream), seen));
        }
        let name = ServerName::try_from(probe.target.host.clone());
        let name = name.map_err(std::io::Error::other)?;
        let connection =
            ClientConnection::new(tls_config()?, name).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let begun_us = clock.now_us();
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        noted.tls_us = Some(clock.now_us() - begun_us);
        Ok((Box::new(stream), seen))
    };
    let stream = open();
    (noted, stream)
}

/// What an answer's head says beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    goes_on: bool,
    restarts: Option<bool>,
}

fn fetch(
    probe: &Probe,
    turn: &Turn,
    clock: &Clock,
    connection: &mut Connection,
    transfer: &mut ProbeTransfer,
) -> std::io::Result<Answer> {
    let path = probe.target.path_of(turn.number, probe.segment_bytes);
    // Of content that is somebody else's, the first part.
    let range = match &probe.target.path {
        Some(_) => format!("Range: bytes=0-{}\r\n", probe.segment_bytes.saturating_sub(1)),
        None => String::new(),
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: airmile-probe/{}\r\nAccept: */*\r\n\
         Accept-Encoding: identity\r\n{range}\r\n",
        probe.target.authority(),
        turn.address.port(),
        env!("CARGO_PKG_VERSION")
    );
    // Of handshakes, and what came meanwhile.
    connection.seen.take();
    transfer.start_us = clock.now_us();
    let most = probe.segment_bytes;
    let answer = receive(connection.stream.as_mut(), &request, most, &mut transfer.bytes);
    let came = connection.seen.take();
    transfer.first_byte_us = came.first().map(|(at_us, _)| *at_us);
    transfer.arrivals = came.iter().map(|(at_us, n)| (at_us - transfer.start_us, *n)).collect();
    answer
}

/// Asks, and reads the answer to its end; its content is counted.
fn receive(
    stream: &mut dyn Stream,
    request: &str,
    most: u64,
    bytes: &mut u64,
) -> std::io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut head = Vec::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let (length, answer) = loop {
        let n = read(stream, &mut buffer)?;
        head.extend_from_slice(buffer.get(..n).unwrap_or_default());
        if let Some((head_bytes, length, answer)) = read_head(&head)? {
            *bytes = (head.len() - head_bytes) as u64;
            if length > most {
                return Err(std::io::Error::other(format!(
                    "the answer has {length} bytes, and {most} were asked for by Range"
                )));
            }
            break (length, answer);
        }
        if head.len() > MOST_HEAD_BYTES {
            return Err(std::io::Error::other("the answer's head does not end"));
        }
    };
    while *bytes < length {
        *bytes += read(stream, &mut buffer)? as u64;
    }
    Ok(answer)
}

/// Reads at least a byte.
fn read(stream: &mut dyn Stream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(std::io::Error::other("the server closed the connection")),
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(std::io::Error::other("nothing came until the time was over"));
            }
            Err(e) => return Err(e),
        }
    }
}

/// Length of an answer's head and of its content, and what it says; `None` where there
/// is more of it to come.
fn read_head(head: &[u8]) -> std::io::Result<Option<(usize, u64, Answer)>> {
    let wrong = |what: String| std::io::Error::other(what);
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut response = httparse::Response::new(&mut headers);
    let head_bytes = match response.parse(head) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return Err(wrong(format!("the answer is no HTTP/1.1: {e}"))),
    };
    let of = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    match response.code {
        Some(200 | 206) => {}
        code => return Err(wrong(format!("the server answered {}", code.unwrap_or_default()))),
    }
    let length = of("content-length").and_then(|text| text.parse().ok());
    let length = length.ok_or_else(|| wrong("the answer tells no length".to_owned()))?;
    let goes_on = !of("connection").is_some_and(|text| text.eq_ignore_ascii_case("close"));
    let restarts = of("airmile-slow-start-after-idle").map(|text| text != "0");
    Ok(Some((head_bytes, length, Answer { goes_on, restarts })))
}

fn tls_config() -> std::io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Takes any certificate: the server's is its own, and what comes is random bytes that
/// everybody has. What is measured is time.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let check = |head: &str, expected: Option<(u64, bool, Option<bool>)>| {
            let got = read_head(head.as_bytes()).unwrap();
            let got = got.map(|(_, length, a)| (length, a.goes_on, a.restarts));
            assert_eq!(got, expected, "{head}");
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n";
        check(&format!("{head}\r\n"), Some((7, true, None)));
        check(&format!("{head}Connection: Close\r\n\r\n"), Some((7, false, None)));
        check(
            &format!("{head}Airmile-Slow-Start-After-Idle: 1\r\n\r\nabc"),
            Some((7, true, Some(true))),
        );
        check(head, None);
        let wrong = |head: &str, words: &str| {
            let error = read_head(head.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        wrong("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404");
        wrong("HTTP/1.1 200 OK\r\n\r\n", "no length");
        wrong("hello\r\n\r\n", "no HTTP");
    }
}
