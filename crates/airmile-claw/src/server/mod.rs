//! Serves files over HTTP/3 with CLAW's congestion window: reports arrive in datagrams of
//! the connection, or over UDP for browsers that send none.

mod admission;
mod answer;
mod bounded;
mod files;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use airmile_control::claw::feedback::{FeedbackKey, FeedbackReport, SessionCounts};
use airmile_control::claw::{ClawOptions, OperatorLimits};
use airmile_host::Attempt;
use airmile_host::async_thread::{AsyncWorker, Stopped};
use bytes::Bytes;
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use serde::Serialize;

pub use crate::controller::Used;
use crate::controller::{Factory, Mailbox};
use crate::error::{Error, Result};
use crate::keys;
use crate::listener::Listener;
use crate::peers::Peers;
use crate::tls::{self, H3_CLAW, Identity};
use admission::{Admission, Admitted, HANDSHAKE, INCOMING_BYTES, MAX_INCOMING};
use answer::{answer, session_of};
use bounded::{BoundedConnection, REQUEST_BYTES};

/// Path from which clients request a key and the port for reports.
pub const ABOUT: &str = "/.well-known/airmile-claw";

/// Congestion controller of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Window {
    /// CLAW's.
    #[default]
    Claw,
    /// quinn's Cubic.
    Cubic,
    /// quinn's BBR.
    Bbr,
    /// quinn's New Reno.
    NewReno,
}

/// Options of a server.
#[derive(Debug)]
pub struct ServeOptions {
    /// The directory to serve.
    pub dir: PathBuf,
    /// Address for QUIC.
    pub bind: SocketAddr,
    /// Address for reports over UDP; `None`: only datagrams of connections.
    pub reports: Option<SocketAddr>,
    /// Certificate and key in PEM files; `None`: a self-signed one for `names`.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Names in the self-signed certificate.
    pub names: Vec<String>,
    /// A key that clients already have.
    pub shared_key: Option<FeedbackKey>,
    /// Limits on feedback.
    pub limits: OperatorLimits,
    /// The congestion controller.
    pub window: Window,
}

/// Events of a server, for monitoring.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServerEvent {
    /// A request was answered and passed completely to QUIC.
    Answered {
        /// The client.
        peer: SocketAddr,
        /// The requested path.
        path: String,
        /// HTTP status.
        status: u16,
        /// Bytes of the body.
        bytes: u64,
    },
    /// A connection has ended.
    Ended {
        /// The client.
        peer: SocketAddr,
        /// Duration of the connection, in ms.
        duration_ms: f64,
        /// Round-trip time at its end, in ms.
        rtt_ms: f64,
        /// Bytes sent, including QUIC's headers.
        sent_bytes: u64,
        /// Packets lost.
        lost_packets: u64,
        /// Use of its window; all zero with other controllers than CLAW.
        #[serde(flatten)]
        used: Used,
    },
}

/// Receives each event.
pub type OnEvent = Arc<dyn Fn(&ServerEvent) + Send + Sync>;

/// A running server; stops when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    spki_sha256: Option<[u8; 32]>,
    listener: Option<Listener>,
    worker: AsyncWorker,
}

struct Site {
    dir: PathBuf,
    peers: Arc<Peers>,
    secret: FeedbackKey,
    /// Port for reports.
    reports_port: Option<u16>,
    on_event: OnEvent,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// The directory, an address or the certificate is not available.
    pub fn start(options: ServeOptions, on_event: OnEvent) -> Result<Self> {
        let dir = options.dir.canonicalize().attempt(|| options.dir.display().to_string())?;
        if !dir.is_dir() {
            let what = "not a directory: name the one with the files".to_owned();
            return Err(Error::File { path: dir, what });
        }
        if options.reports.is_some() && options.window != Window::Claw {
            let what = "reports are for CLAW's window alone, which is not selected";
            return Err(Error::Option(what.to_owned()));
        }
        let identity = match &options.identity {
            Some((certificate, key)) => Identity::read(certificate, key)?,
            None => Identity::generate(options.names.clone())?,
        };
        let quic = tls::server(&identity)?;
        let peers = Arc::new(Peers::default());
        let secret = keys::random_key()?;
        let start =
            |at| Listener::start(at, secret.clone(), options.shared_key.clone(), peers.clone());
        let listener = options.reports.map(start).transpose()?;
        let reports_port = listener.as_ref().map(|listener| listener.address().port());
        let runtime = AsyncWorker::runtime().attempt(|| "cannot start".to_owned())?;
        let bind = options.bind;
        let endpoint = runtime
            .block_on(async { quinn::Endpoint::server(config(&quic, Arc::default()), bind) })
            .attempt(|| format!("cannot listen at {bind} (QUIC)"))?;
        let address = endpoint.local_addr().attempt(|| "a socket".to_owned())?;
        let site = Arc::new(Site { dir, peers, secret, reports_port, on_event });
        let controllers = Controllers { limits: options.limits, window: options.window };
        let serve = move |stopped: Stopped| async move {
            tokio::select! {
                () = accept(&endpoint, &quic, controllers, &site) => {}
                _ = stopped => {}
            }
            endpoint.close(0_u32.into(), b"");
        };
        let worker = AsyncWorker::start("server", runtime, serve);
        let worker = worker.attempt(|| "cannot start a thread".to_owned())?;
        Ok(Self { address, spki_sha256: identity.spki_sha256, listener, worker })
    }

    /// The bound address for QUIC.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bound address for reports over UDP.
    #[must_use]
    pub fn reports(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// Counts of datagrams of reports over UDP.
    #[must_use]
    pub fn counts(&self) -> Option<SessionCounts> {
        self.listener.as_ref().map(Listener::counts)
    }

    /// SHA-256 of the public key of the self-signed certificate, for Chromium's
    /// `--ignore-certificate-errors-spki-list` (in base64).
    #[must_use]
    pub const fn spki_sha256(&self) -> Option<&[u8; 32]> {
        self.spki_sha256.as_ref()
    }

    /// Waits until the server ends.
    pub fn wait(self) {
        self.worker.wait();
    }
}

#[derive(Debug, Clone, Copy)]
struct Controllers {
    limits: OperatorLimits,
    window: Window,
}

/// A transport configuration with its controller.
fn config(
    quic: &Arc<quinn::crypto::rustls::QuicServerConfig>,
    transport: Arc<quinn::TransportConfig>,
) -> quinn::ServerConfig {
    let mut config = quinn::ServerConfig::with_crypto(quic.clone());
    config.transport_config(transport);
    config.max_incoming(MAX_INCOMING);
    config.incoming_buffer_size_total(INCOMING_BYTES);
    config
}

impl Controllers {
    /// Each connection has its own mailbox, and therefore its own configuration.
    fn transport(self, mailbox: &Arc<Mailbox>, admitted: &Admitted) -> Arc<quinn::TransportConfig> {
        let mut transport = tls::transport();
        transport.send_window(admitted.send_window);
        let options = ClawOptions { limits: self.limits, ..ClawOptions::default() };
        match self.window {
            Window::Claw => {
                let factory = Factory { options, mailbox: mailbox.clone() };
                transport.congestion_controller_factory(Arc::new(factory))
            }
            Window::Cubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()))
            }
            Window::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
            Window::NewReno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()))
            }
        };
        Arc::new(transport)
    }
}

async fn accept(
    endpoint: &quinn::Endpoint,
    quic: &Arc<quinn::crypto::rustls::QuicServerConfig>,
    controllers: Controllers,
    site: &Arc<Site>,
) {
    let ids = AtomicU64::new(0);
    let admission = Admission::new();
    while let Some(incoming) = endpoint.accept().await {
        let Some((incoming, admitted)) = admission.admit(incoming) else { continue };
        let mailbox = Arc::new(Mailbox::default());
        let config = Arc::new(config(quic, controllers.transport(&mailbox, &admitted)));
        let Ok(connecting) = incoming.accept_with(config) else { continue };
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let site = site.clone();
        tokio::spawn(async move {
            // A failed handshake concerns only its client.
            let Admitted { handshake, connection: _place, host: _host, .. } = admitted;
            let Ok(Ok(connection)) = tokio::time::timeout(HANDSHAKE, connecting).await else {
                return;
            };
            drop(handshake);
            let is_claw = controllers.window == Window::Claw;
            let itself = is_claw && names_itself(&connection);
            let address = connection.remote_address().ip().to_canonical();
            site.peers.add(id, address, itself, mailbox.clone());
            let datagrams = async {
                while itself && let Ok(datagram) = connection.read_datagram().await {
                    if let Ok(report) = FeedbackReport::decode(&datagram) {
                        site.peers.on_own_report(id, &report);
                    }
                }
                std::future::pending::<()>().await;
            };
            let began = Instant::now();
            tokio::select! {
                () = converse(id, &connection, &site) => {}
                () = datagrams => {}
            }
            site.peers.remove(id);
            let stats = connection.stats();
            (site.on_event)(&ServerEvent::Ended {
                peer: connection.remote_address(),
                duration_ms: began.elapsed().as_secs_f64() * 1e3,
                rtt_ms: connection.rtt().as_secs_f64() * 1e3,
                sent_bytes: stats.udp_tx.bytes,
                lost_packets: stats.path.lost_packets,
                used: mailbox.used(),
            });
        });
    }
}

/// Whether a client sends reports on the connection itself.
fn names_itself(connection: &quinn::Connection) -> bool {
    let data = connection.handshake_data();
    let data = data.and_then(|data| data.downcast::<quinn::crypto::rustls::HandshakeData>().ok());
    data.is_some_and(|data| data.protocol.as_deref() == Some(H3_CLAW))
}

async fn converse(id: u64, connection: &quinn::Connection, site: &Arc<Site>) {
    let quic = BoundedConnection::new(connection.clone());
    let mut h3 = h3::server::builder();
    h3.max_field_section_size(REQUEST_BYTES as u64);
    let Ok(mut h3) = h3.build::<_, Bytes>(quic).await else { return };
    while let Ok(Some(resolver)) = h3.accept().await {
        let site = site.clone();
        let peer = connection.remote_address();
        tokio::spawn(async move {
            let Ok((request, mut stream)) = resolver.resolve_request().await else { return };
            if let Some(token) = session_of(&request) {
                site.peers.bind(id, token);
            }
            // A client that disconnected is not an error.
            let (status, bytes) = answer(&request, &mut stream, &site, peer.ip()).await;
            let path = request.uri().path().to_owned();
            let status = status.as_u16();
            (site.on_event)(&ServerEvent::Answered { peer, path, status, bytes });
        });
    }
}
