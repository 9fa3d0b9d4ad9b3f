//! Files over HTTP/3. The congestion window is CLAW's: reports come in datagrams of a
//! connection, or over UDP for browsers that send none.

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
use airmile_host::thread::{AsyncWorker, Stopped};
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

/// Where a client asks for a key and the port of reports.
pub const ABOUT: &str = "/.well-known/airmile-claw";

/// Which window a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Window {
    /// CLAW's.
    #[default]
    Claw,
    /// QUIC's Cubic, as quinn has it.
    Cubic,
    /// BBR, as quinn has it.
    Bbr,
    /// New Reno, as quinn has it.
    NewReno,
}

/// What is served, and how.
#[derive(Debug)]
pub struct ServeOptions {
    /// The directory.
    pub dir: PathBuf,
    /// Where to listen for QUIC.
    pub bind: SocketAddr,
    /// Where to listen for reports over UDP; none: only datagrams of connections.
    pub reports: Option<SocketAddr>,
    /// Certificate and key in PEM files; none: one of our own, for `names`.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Names that our own certificate has.
    pub names: Vec<String>,
    /// A key that clients have already.
    pub shared_key: Option<FeedbackKey>,
    /// What reports may set.
    pub limits: OperatorLimits,
    /// Which window.
    pub window: Window,
}

/// What a server does, for who watches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServerEvent {
    /// A request was answered: all of it was handed to QUIC.
    Answered {
        /// Who asked.
        peer: SocketAddr,
        /// What for.
        path: String,
        /// HTTP's status.
        status: u16,
        /// Bytes of the body.
        bytes: u64,
    },
    /// A connection has ended.
    Ended {
        /// Whose.
        peer: SocketAddr,
        /// How long it was there, in ms.
        duration_ms: f64,
        /// Round-trip time at its end, in ms.
        rtt_ms: f64,
        /// Bytes sent, with QUIC's headers.
        sent_bytes: u64,
        /// Packets lost.
        lost_packets: u64,
        /// How its window was used; all zero with other windows than CLAW's.
        #[serde(flatten)]
        used: Used,
    },
}

/// Is told of each event.
pub type OnEvent = Arc<dyn Fn(&ServerEvent) + Send + Sync>;

/// A running server; ends with it.
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
    /// Where reports go.
    reports_port: Option<u16>,
    on_event: OnEvent,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// The directory, an address or the certificate are not to be had.
    pub fn start(options: ServeOptions, on_event: OnEvent) -> Result<Self> {
        let dir = options.dir.canonicalize().attempt(|| options.dir.display().to_string())?;
        if !dir.is_dir() {
            let what = "no directory: give the one that the files are in".to_owned();
            return Err(Error::File { path: dir, what });
        }
        if options.reports.is_some() && options.window != Window::Claw {
            let what = "reports are for CLAW's window alone, which is not asked for";
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

    /// Where it listens for QUIC.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for reports over UDP.
    #[must_use]
    pub fn reports(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// What reports over UDP came so far.
    #[must_use]
    pub fn counts(&self) -> Option<SessionCounts> {
        self.listener.as_ref().map(Listener::counts)
    }

    /// SHA-256 of the public key of a certificate of our own, which Chromium's
    /// `--ignore-certificate-errors-spki-list` takes in base64.
    #[must_use]
    pub const fn spki_sha256(&self) -> Option<&[u8; 32]> {
        self.spki_sha256.as_ref()
    }

    /// Waits until it ends.
    pub fn wait(self) {
        self.worker.wait();
    }
}

#[derive(Debug, Clone, Copy)]
struct Controllers {
    limits: OperatorLimits,
    window: Window,
}

/// A configuration with its controller.
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
    /// Each connection has a mailbox of its own, so a configuration of its own.
    fn transport(self, mailbox: &Arc<Mailbox>) -> Arc<quinn::TransportConfig> {
        let mut transport = tls::transport();
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
        let config = Arc::new(config(quic, controllers.transport(&mailbox)));
        let Ok(connecting) = incoming.accept_with(config) else { continue };
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let site = site.clone();
        tokio::spawn(async move {
            // A handshake that fails concerns its client.
            let Admitted { handshake, connection: _place } = admitted;
            let Ok(Ok(connection)) = tokio::time::timeout(HANDSHAKE, connecting).await else {
                return;
            };
            drop(handshake);
            let is_claw = controllers.window == Window::Claw;
            let itself = is_claw && names_itself(&connection);
            let address = connection.remote_address().ip().to_canonical();
            site.peers.add(id, address, itself, mailbox.clone());
            let heard = async {
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
                () = heard => {}
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
            // A client that has gone is no matter of ours.
            let (status, bytes) = answer(&request, &mut stream, &site, peer.ip()).await;
            let path = request.uri().path().to_owned();
            let status = status.as_u16();
            (site.on_event)(&ServerEvent::Answered { peer, path, status, bytes });
        });
    }
}
