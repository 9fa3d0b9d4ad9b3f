//! Files over HTTP/3. The congestion window is CLAW's: reports come in datagrams of a
//! connection, or over UDP for browsers that send none.

use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use airmile_control::claw::feedback::{FeedbackKey, FeedbackReport, SessionCounts, SessionToken};
use airmile_control::claw::{ClawOptions, OperatorLimits};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

pub use crate::controller::Used;
use crate::controller::{Factory, Mailbox};
use crate::error::{Attempt, Error, Result};
use crate::keys;
use crate::listener::Listener;
use crate::peers::Peers;
use crate::tls::{self, H3_CLAW, Identity};

/// Where a client asks for a key and the port of reports.
pub const ABOUT: &str = "/.well-known/airmile-claw";

/// Bytes that are read of a file at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// The parameter and the cookie that name a session.
const NAME: &str = "claw";

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
pub enum Event {
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
pub type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// A running server; ends with it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    spki_sha256: Option<[u8; 32]>,
    listener: Option<Listener>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .attempt(|| "cannot start".to_owned())?;
        let bind = options.bind;
        let endpoint = runtime
            .block_on(async { quinn::Endpoint::server(config(&quic, Arc::default()), bind) })
            .attempt(|| format!("cannot listen at {bind} (QUIC)"))?;
        let address = endpoint.local_addr().attempt(|| "a socket".to_owned())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let site = Arc::new(Site { dir, peers, secret, reports_port, on_event });
        let controllers = Controllers { limits: options.limits, window: options.window };
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(&endpoint, &quic, controllers, &site) => {}
                    _ = stopped => {}
                }
                endpoint.close(0_u32.into(), b"");
            });
        };
        let thread = thread::Builder::new().name("server".to_owned()).spawn(serve);
        let thread = Some(thread.attempt(|| "cannot start a thread".to_owned())?);
        let spki_sha256 = identity.spki_sha256;
        Ok(Self { address, spki_sha256, listener, stop: Some(stop), thread })
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
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
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
    while let Some(incoming) = endpoint.accept().await {
        let mailbox = Arc::new(Mailbox::default());
        let config = Arc::new(config(quic, controllers.transport(&mailbox)));
        let Ok(connecting) = incoming.accept_with(config) else { continue };
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let site = site.clone();
        tokio::spawn(async move {
            // A handshake that fails concerns its client.
            let Ok(connection) = connecting.await else { return };
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
            (site.on_event)(&Event::Ended {
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

type Stream = h3::server::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

async fn converse(id: u64, connection: &quinn::Connection, site: &Arc<Site>) {
    let quic = h3_quinn::Connection::new(connection.clone());
    let Ok(mut h3) = h3::server::Connection::new(quic).await else { return };
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
            (site.on_event)(&Event::Answered { peer, path, status, bytes });
        });
    }
}

/// The session that a request names: `?claw=TOKEN`, or the cookie of the same name.
fn session_of(request: &Request<()>) -> Option<SessionToken> {
    let of_query = request.uri().query().into_iter().flat_map(|query| query.split('&'));
    let cookies = request.headers().get_all(http::header::COOKIE).into_iter();
    let cookies = cookies.filter_map(|cookie| cookie.to_str().ok());
    let of_cookie = cookies.flat_map(|cookie| cookie.split(';')).map(str::trim);
    of_query.chain(of_cookie).find_map(|pair| token(pair.strip_prefix(NAME)?.strip_prefix('=')?))
}

fn token(text: &str) -> Option<SessionToken> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    Some(SessionToken(number.to_be_bytes()))
}

async fn answer(
    request: &Request<()>,
    stream: &mut Stream,
    site: &Site,
    from: IpAddr,
) -> (StatusCode, u64) {
    let is_head = request.method() == Method::HEAD;
    if !is_head && request.method() != Method::GET {
        return refuse(stream, StatusCode::METHOD_NOT_ALLOWED).await;
    }
    if request.uri().path() == ABOUT {
        return match about(site, from) {
            Some(text) => whole(stream, "application/json", text.into(), is_head).await,
            None => refuse(stream, StatusCode::NOT_FOUND).await,
        };
    }
    let Some(path) = file_of(&site.dir, request.uri().path()) else {
        return refuse(stream, StatusCode::NOT_FOUND).await;
    };
    let Ok(mut file) = tokio::fs::File::open(&path).await else {
        return refuse(stream, StatusCode::NOT_FOUND).await;
    };
    let length = file.metadata().await.map(|data| data.len()).unwrap_or_default();
    let mut response = Response::builder()
        .header(http::header::CONTENT_LENGTH, length)
        .header(http::header::CONTENT_TYPE, media_type(&path));
    if let Some(token) = session_of(request) {
        // Its further connections are the same session's.
        let number = u128::from_be_bytes(token.0);
        let cookie = format!("{NAME}={number:032x}; Path=/; Secure; HttpOnly; SameSite=Lax");
        response = response.header(http::header::SET_COOKIE, cookie);
    }
    let Ok(response) = response.body(()) else { return (StatusCode::INTERNAL_SERVER_ERROR, 0) };
    if stream.send_response(response).await.is_err() {
        return (StatusCode::OK, 0);
    }
    // Of a HEAD nothing but the head is wanted.
    let wanted = if is_head { 0 } else { length };
    let mut sent = 0;
    while sent < wanted {
        let mut chunk = vec![0; CHUNK_BYTES];
        let Ok(bytes) = file.read(&mut chunk).await else { break };
        chunk.truncate(bytes.min(usize::try_from(wanted - sent).unwrap_or(bytes)));
        let bytes = chunk.len() as u64;
        if bytes == 0 || stream.send_data(chunk.into()).await.is_err() {
            break;
        }
        sent += bytes;
    }
    if sent < wanted {
        // Cut: the client must not take it for whole.
        stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
    } else {
        let _ = stream.finish().await;
    }
    (StatusCode::OK, sent)
}

/// What a client needs for reports over UDP: a key of its own.
fn about(site: &Site, from: IpAddr) -> Option<String> {
    let port = site.reports_port?;
    // Key 0 is the shared one.
    let key_id = u64::from_be_bytes(keys::random().ok()?).max(1);
    let key = keys::to_text(&site.secret.derive(key_id));
    let text = serde_json::json!({ "version": 1, "port": port, "key_id": key_id.to_string(),
        "key": key, "address": from.to_canonical().to_string() });
    Some(text.to_string())
}

async fn refuse(stream: &mut Stream, status: StatusCode) -> (StatusCode, u64) {
    if let Ok(response) = Response::builder().status(status).body(()) {
        let _ = stream.send_response(response).await;
        let _ = stream.finish().await;
    }
    (status, 0)
}

async fn whole(
    stream: &mut Stream,
    media_type: &str,
    body: Bytes,
    is_head: bool,
) -> (StatusCode, u64) {
    let response = Response::builder()
        .header(http::header::CONTENT_TYPE, media_type)
        .header(http::header::CACHE_CONTROL, "no-store")
        .body(());
    let bytes = body.len() as u64;
    if let Ok(response) = response
        && stream.send_response(response).await.is_ok()
    {
        if !is_head {
            let _ = stream.send_data(body).await;
        }
        let _ = stream.finish().await;
    }
    (StatusCode::OK, bytes)
}

/// The file that a path names; nothing that is outside of the directory.
fn file_of(dir: &Path, path: &str) -> Option<PathBuf> {
    let relative = PathBuf::from(unescape(path)?.trim_start_matches('/').to_owned());
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !relative.components().all(is_plain) {
        return None;
    }
    let mut file = dir.join(relative).canonicalize().ok()?;
    if file.is_dir() {
        file = file.join("index.html").canonicalize().ok()?;
    }
    // A link may lead out.
    (file.starts_with(dir) && file.is_file()).then_some(file)
}

/// A path without its escapes (RFC 3986, 2.1).
fn unescape(path: &str) -> Option<String> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            other => other,
        };
        out.push(byte);
    }
    String::from_utf8(out).ok().filter(|path| !path.contains('\0'))
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js" | "mjs") => "text/javascript",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("site");
        std::fs::create_dir_all(dir.join("a b")).unwrap();
        std::fs::write(outer.path().join("secret"), "x").unwrap();
        std::fs::write(dir.join("index.html"), "x").unwrap();
        std::fs::write(dir.join("a b/c.png"), "x").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), dir.join("link")).unwrap();
        let dir = dir.canonicalize().unwrap();
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(file_of(&dir, path), expected.map(|name| dir.join(name)), "{path}");
        };
        check("/", Some("index.html"));
        check("/a%20b/c.png", Some("a b/c.png"));
        for outside in [
            "/../secret",
            "/%2e%2e/secret",
            "/a b/../../secret",
            "/link",
            "/a b",
            "/%",
            "/%00",
            "/none",
        ] {
            check(outside, None);
        }
    }

    #[test]
    fn requests_name_their_session() {
        let hex = "000102030405060708090a0b0c0d0e0f";
        let token = SessionToken(std::array::from_fn(|n| n as u8));
        let check = |uri: String, cookie: &str, expected: Option<SessionToken>| {
            let request = Request::get(uri).header("cookie", cookie).body(()).unwrap();
            assert_eq!(session_of(&request), expected);
        };
        check(format!("https://a/b?x=1&claw={hex}"), "", Some(token));
        check("https://a/b".to_owned(), &format!("x=1; claw={hex}"), Some(token));
        check(format!("https://a/b?claw={}", &hex[1..]), "", None);
        check(format!("https://a/b?claw=+{}", &hex[1..]), "claw=", None);
    }
}
