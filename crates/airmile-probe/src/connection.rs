//! A connection of the client, with the arrival times of its bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use airmile::ProbeConnection;
use airmile_host::clock::SteadyWallClock;
use airmile_host::thread::lock;
use airmile_host::tls::{AcceptAnyCertificate, provider};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::turn::{ByteStream, Probe, Turn};

/// Arrivals within this time are merged (chosen here: a TTI of LTE).
const BIN_US: i64 = 1_000;

/// Arrival times at the socket, below TLS, whose records delay the bytes.
#[derive(Debug, Clone)]
pub(super) struct ArrivalLog {
    clock: SteadyWallClock,
    came: Arc<Mutex<Vec<(i64, u64)>>>,
}

impl ArrivalLog {
    fn new(clock: SteadyWallClock) -> Self {
        Self { clock, came: Arc::default() }
    }

    fn note(&self, bytes: usize) {
        let at_us = self.clock.now_us();
        let mut came = lock(&self.came);
        match came.last_mut() {
            Some((bin_us, sum)) if at_us - *bin_us < BIN_US => *sum += bytes as u64,
            _ => came.push((at_us, bytes as u64)),
        }
    }

    /// Takes the arrivals since the last call.
    pub(super) fn take(&self) -> Vec<(i64, u64)> {
        std::mem::take(&mut *lock(&self.came))
    }
}

/// A socket that records arrivals.
struct RecordedSocket {
    socket: TcpStream,
    arrivals: ArrivalLog,
}

impl Read for RecordedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.socket.read(buffer)?;
        if n > 0 {
            self.arrivals.note(n);
        }
        Ok(n)
    }
}

impl Write for RecordedSocket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

pub(super) type Connected = std::io::Result<(Box<dyn ByteStream>, ArrivalLog)>;

pub(super) fn connect(
    probe: &Probe,
    turn: &Turn,
    clock: &SteadyWallClock,
) -> (ProbeConnection, Connected) {
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
        let arrivals = ArrivalLog::new(*clock);
        let stream = RecordedSocket { socket: stream, arrivals: arrivals.clone() };
        if !tls {
            return Ok((Box::new(stream), arrivals));
        }
        let name = ServerName::try_from(probe.target.host.clone());
        let name = name.map_err(std::io::Error::other)?;
        let connection =
            ClientConnection::new(tls_config()?, name).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let begun_us = clock.now_us();
        // For any rate of bytes.
        let begun = Instant::now();
        while stream.conn.is_handshaking() {
            if begun.elapsed() > probe.timeout {
                return Err(std::io::Error::other("the TLS handshake takes too long"));
            }
            if stream.conn.wants_write() {
                stream.conn.write_tls(&mut stream.sock)?;
            } else if stream.conn.read_tls(&mut stream.sock)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            } else {
                stream.conn.process_new_packets().map_err(std::io::Error::other)?;
            }
        }
        noted.tls_us = Some(clock.now_us() - begun_us);
        Ok((Box::new(stream), arrivals))
    };
    let stream = open();
    (noted, stream)
}

/// The server's certificate is self-signed, and the content is public random bytes: only
/// times are measured.
fn tls_config() -> std::io::Result<Arc<ClientConfig>> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(AcceptAnyCertificate::new())
        .with_no_client_auth();
    Ok(Arc::new(config))
}
