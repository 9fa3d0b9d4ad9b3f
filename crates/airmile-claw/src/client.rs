//! Fetches over HTTP/3, with reports on the same connection.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airmile_control::claw::feedback::{FeedbackKey, FeedbackReport, REPORT_EVERY_NS};
use airmile_host::Attempt;
use bytes::Buf;
use http::{Request, Uri};
use quinn::Endpoint;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::agent::Reports;
use crate::error::{Connect, Error, Result};
use crate::keys;
use crate::server::ABOUT;
use crate::tls::{self, H3, H3_CLAW};

/// Maximum answer kept in memory (chosen here: far larger than the answer of [`ABOUT`]).
const MOST_KEPT_BYTES: usize = 64 * 1024;

/// Which server certificates to trust.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The certificates of this PEM file, and those signed by them.
    File(PathBuf),
    /// All certificates.
    Anyone,
}

/// Result of a fetch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fetched {
    /// The requested URL.
    pub url: String,
    /// HTTP status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// SHA-256 of the body.
    pub sha256: String,
    /// From the first packet to the end of the handshake, in ms.
    pub connect_ms: f64,
    /// From the first packet to the first byte of the answer, in ms.
    pub first_byte_ms: f64,
    /// From the first packet to the last byte, in ms.
    pub total_ms: f64,
    /// Round-trip time at the end, in ms.
    pub rtt_ms: f64,
    /// Reports sent.
    pub reports: u64,
    /// Their bytes, without the headers of QUIC, UDP and IP.
    pub report_bytes: u64,
}

/// Fetches a URL while sending reports. `take` receives the body.
///
/// # Errors
/// The URL cannot be fetched.
pub fn get(
    url: &str,
    trust: &Trust,
    reports: Option<Arc<dyn Reports>>,
    take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<Fetched> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .attempt(|| "cannot start".to_owned())?;
    runtime.block_on(fetch(url, trust, reports, take))
}

/// Requests a key for reports over UDP; returns the key, its number and the reports'
/// destination.
///
/// # Errors
/// The server accepts no reports, or cannot be reached.
pub fn ask_for_key(url: &str, trust: &Trust) -> Result<(FeedbackKey, u64, SocketAddr)> {
    let uri: Uri = url.parse().connect(|| url.to_owned())?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let mut body = Vec::new();
    let keep = &mut |bytes: &[u8]| {
        if body.len() + bytes.len() > MOST_KEPT_BYTES {
            return Err(std::io::Error::other("the answer is too long"));
        }
        body.extend_from_slice(bytes);
        Ok(())
    };
    let fetched = get(&format!("https://{authority}{ABOUT}"), trust, None, keep)?;
    let wrong = |why: &str| Error::Connection { what: url.to_owned(), why: why.to_owned() };
    if fetched.status != 200 {
        return Err(wrong("accepts no reports over UDP (airmile claw serve --reports)"));
    }
    let about: serde_json::Value = serde_json::from_slice(&body).connect(|| url.to_owned())?;
    let text = |name: &str| about.get(name).and_then(|value| value.as_str());
    let key = text("key").and_then(keys::parse).ok_or_else(|| wrong("returned no key"))?;
    let id = text("key_id").and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| wrong("returned no key number"))?;
    let port = about.get("port").and_then(serde_json::Value::as_u64);
    let port = port.and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| wrong("returned no port"))?;
    let mut to = resolve(&uri)?;
    to.set_port(port);
    Ok((key, id, to))
}

fn resolve(uri: &Uri) -> Result<SocketAddr> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(443);
    let all = (host, port).to_socket_addrs().attempt(|| format!("cannot find {host:?}"))?;
    let none = || Error::Connection { what: host.to_owned(), why: "has no address".to_owned() };
    all.into_iter().next().ok_or_else(none)
}

async fn fetch(
    url: &str,
    trust: &Trust,
    reports: Option<Arc<dyn Reports>>,
    take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<Fetched> {
    let no_url = || Error::Option(format!("{url}: give an https URL"));
    let uri: Uri = url.parse().map_err(|_| no_url())?;
    if uri.scheme_str() != Some("https") || uri.host().is_none() {
        return Err(no_url());
    }
    let to = resolve(&uri)?;
    let root = match trust {
        Trust::Anyone => None,
        Trust::File(path) => {
            let wrong = |error: rustls::pki_types::pem::Error| Error::File {
                path: path.clone(),
                what: error.to_string(),
            };
            let all = CertificateDer::pem_file_iter(path).map_err(wrong)?;
            Some(all.collect::<std::result::Result<Vec<_>, _>>().map_err(wrong)?)
        }
    };
    let alpn = if reports.is_some() { H3_CLAW } else { H3 };
    let bind: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let mut endpoint = Endpoint::client(bind).attempt(|| "cannot open a socket".to_owned())?;
    endpoint.set_default_client_config(tls::client(root, alpn)?);
    let began = Instant::now();
    let ms = || began.elapsed().as_secs_f64() * 1e3;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let connection =
        endpoint.connect(to, &host).connect(|| url.to_owned())?.await.connect(|| {
            format!("{url} (UDP to {to}: is the server running, and is QUIC allowed through?)")
        })?;
    let mut fetched = Fetched {
        url: url.to_owned(),
        status: 0,
        bytes: 0,
        sha256: String::new(),
        connect_ms: ms(),
        first_byte_ms: 0.0,
        total_ms: 0.0,
        rtt_ms: 0.0,
        reports: 0,
        report_bytes: 0,
    };
    let quic = h3_quinn::Connection::new(connection.clone());
    let (mut driver, mut requests) = h3::client::new(quic).await.connect(|| url.to_owned())?;
    let mut sent = (0, 0);
    let outcome = {
        let body = async {
            let request = Request::get(uri.clone()).body(()).connect(|| url.to_owned())?;
            let mut stream = requests.send_request(request).await.connect(|| url.to_owned())?;
            stream.finish().await.connect(|| url.to_owned())?;
            let response = stream.recv_response().await.connect(|| url.to_owned())?;
            fetched.status = response.status().as_u16();
            fetched.first_byte_ms = ms();
            let mut hash = Sha256::new();
            while let Some(mut part) = stream.recv_data().await.connect(|| url.to_owned())? {
                while part.has_remaining() {
                    let bytes = part.chunk();
                    hash.update(bytes);
                    fetched.bytes += bytes.len() as u64;
                    take(bytes).attempt(|| "cannot write".to_owned())?;
                    let n = bytes.len();
                    part.advance(n);
                }
            }
            fetched.total_ms = ms();
            fetched.sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            Ok::<(), Error>(())
        };
        let closed = async { std::future::poll_fn(|cx| driver.poll_close(cx)).await };
        tokio::select! {
            outcome = body => outcome,
            error = closed => Err(error).connect(|| url.to_owned()),
            () = report(&connection, reports, began, &mut sent) => Ok(()),
        }
    };
    fetched.rtt_ms = connection.rtt().as_secs_f64() * 1e3;
    (fetched.reports, fetched.report_bytes) = sent;
    connection.close(0x100_u32.into(), b"");
    endpoint.wait_idle().await;
    outcome.map(|()| fetched)
}

/// Sends reports until cancelled.
async fn report(
    connection: &quinn::Connection,
    reports: Option<Arc<dyn Reports>>,
    began: Instant,
    sent: &mut (u64, u64),
) {
    let every = Duration::from_nanos(REPORT_EVERY_NS.unsigned_abs());
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut rtt_ns = i64::MAX;
    while let Some(reports) = &reports {
        ticks.tick().await;
        // The minimum: with the delay of a queue the window would lengthen that queue.
        rtt_ns = rtt_ns.min(i64::try_from(connection.rtt().as_nanos()).unwrap_or(i64::MAX));
        let Some(report) = reports.report(rtt_ns, true) else { continue };
        let (sequence, time_ms) = (sent.0 + 1, began.elapsed().as_millis() as u32);
        let datagram = FeedbackReport { sequence, time_ms, ..report }.encode();
        // A datagram that does not fit now is followed by the next.
        if connection.send_datagram(datagram.to_vec().into()).is_ok() {
            *sent = (sequence, sent.1 + datagram.len() as u64);
        }
    }
    std::future::pending::<()>().await;
}
