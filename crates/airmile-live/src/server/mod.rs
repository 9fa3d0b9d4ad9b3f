//! HTTP: Prometheus metrics, JSON, server-sent events, a page.
//!
//! Bound to loopback it asks for no token, but takes only requests that name
//! the machine itself (a page of elsewhere could else read it through the
//! browser); bound to anything else it asks for one on every path.

mod listen;
pub mod metrics;
mod openapi;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airmile::live::packets::LiveFlow;
use airmile::live::{LiveBurst, LiveTransfer};
use airmile::{EvidenceCounts, Missing, SessionVerdict};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;

use crate::engine::Published;
use crate::snapshot::{Event, Passing, SourceStatus, Totals};
use listen::Limited;

/// Streams of events at a time (chosen here: a person's tabs, and some scripts).
const MAX_STREAMS: usize = 32;
/// Bursts in an answer where no number is asked for.
const USUAL_BURSTS: usize = 100;
/// So often a comment goes over an idle stream, so that one who is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

const PAGE: &str = include_str!("server/page.html");
/// The page loads nothing from elsewhere.
const PAGE_POLICY: &str = "default-src 'none'; img-src data:; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address is not this machine's own, and there is no token.
    #[error("{0} is not loopback: everybody who reaches it would see where you are; set a token")]
    NoToken(SocketAddr),
    /// The address cannot be bound.
    #[error("{address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The server's thread cannot be started.
    #[error("starting the server: {0}")]
    Start(io::Error),
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone)]
struct Shared {
    published: Published,
    streams: Arc<tokio::sync::Semaphore>,
}

/// Who may enter: who has the token, where there is one.
#[derive(Debug, Clone)]
struct Door {
    token: Option<Arc<str>>,
}

impl Server {
    /// Binds the address and serves what is published, on a thread of its own.
    ///
    /// # Errors
    /// The address needs a token, or cannot be bound.
    pub fn start(
        address: SocketAddr,
        token: Option<&str>,
        published: Published,
    ) -> Result<Self, ServerError> {
        let streams = Arc::new(tokio::sync::Semaphore::new(MAX_STREAMS));
        Self::serve(address, token, router(Shared { published, streams }))
    }

    /// Binds the address and serves these routes to who may enter, as
    /// [`start`](Self::start) does its own.
    ///
    /// # Errors
    /// The address needs a token, or cannot be bound.
    pub fn serve(
        address: SocketAddr,
        token: Option<&str>,
        routes: Router,
    ) -> Result<Self, ServerError> {
        let token = token.filter(|token| !token.is_empty());
        if !address.ip().is_loopback() && token.is_none() {
            return Err(ServerError::NoToken(address));
        }
        let bind = |source| ServerError::Bind { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServerError::Start)?;
        let door = Door { token: token.map(Arc::from) };
        let routes = routes
            .method_not_allowed_fallback(async || {
                refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is of use here")
            })
            .layer(middleware::from_fn_with_state(door, admit));
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(listener) = TcpListener::from_std(listener) else { return };
                    let serving = axum::serve(Limited::new(listener), routes);
                    tokio::select! {
                        _ = serving => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(ServerError::Start)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/v1/status", get(status))
        .route("/v1/session", get(session))
        .route("/v1/transfers", get(transfers))
        .route("/v1/bursts", get(bursts))
        .route("/v1/packets", get(packets))
        .route("/v1/events", get(events))
        .route("/v1/openapi.json", get(describe))
        .fallback(async || refuse(StatusCode::NOT_FOUND, "no such path; see /v1/openapi.json"))
        .with_state(shared)
}

/// What is said where there is no answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Refusal {
    /// Why.
    error: String,
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(Refusal { error: why.to_owned() })).into_response()
}

/// Lets in who may: with the token where there is one, else who names the
/// machine itself.
async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response {
    if let Err(why) = may_enter(&door, &request) {
        let mut refusal = refuse(StatusCode::UNAUTHORIZED, why);
        let ask = HeaderValue::from_static("Bearer");
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
        return refusal;
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

fn may_enter(door: &Door, request: &Request) -> Result<(), &'static str> {
    let Some(token) = &door.token else {
        let named = request
            .uri()
            .host()
            .or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()));
        return match named {
            Some(host) if is_loopback_name(host) => Ok(()),
            _ => Err("name this machine itself: localhost, 127.0.0.1 or [::1]"),
        };
    };
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| {
        let value = value.to_str().ok()?;
        value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
    });
    let query = request.uri().query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    match bearer.map(|(_, given)| given).or(in_query) {
        Some(given) if is_same(given.as_bytes(), token.as_bytes()) => Ok(()),
        Some(_) => Err("the token is wrong"),
        None => Err("a token is needed: Authorization: Bearer TOKEN, or ?token=TOKEN"),
    }
}

/// Whether a name, with or without a port, can only be this machine.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// In a time that does not tell where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

async fn page() -> Response {
    let policy = [(header::CONTENT_SECURITY_POLICY, PAGE_POLICY)];
    (policy, Html(PAGE)).into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, metrics::text(&shared.published.now())).into_response()
}

/// What is coming in.
#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    /// The program and version.
    made_by: &'static str,
    /// Where bytes come from.
    source: SourceStatus,
    /// What came in so far.
    intake: airmile::live::Intake,
    /// Counts since the start.
    totals: Totals,
    /// Which subscription it is about.
    subscription: u8,
    /// What the records hold.
    evidence_counts: EvidenceCounts,
    /// What is missing for a better answer, and how to capture it.
    missing: Vec<Missing>,
}

async fn status(State(shared): State<Shared>) -> Json<Status> {
    let now = shared.published.now();
    Json(Status {
        made_by: concat!("airmile ", env!("CARGO_PKG_VERSION")),
        source: now.source.clone(),
        intake: now.view.intake,
        totals: now.totals.clone(),
        subscription: now.view.subscription,
        evidence_counts: now.view.evidence_counts,
        missing: now.view.missing.clone(),
    })
}

/// The answer for the last transfers together, and the cell.
#[derive(Debug, Serialize, JsonSchema)]
struct Session {
    /// The answer.
    session: SessionVerdict,
    /// Serving cells.
    cells: Vec<airmile::ServingCell>,
    /// Downlink bandwidth in PRBs.
    n_prb_cell: Option<u16>,
    /// Load of the primary cell in the last window in which it can be told.
    cell_load: Option<airmile::CellLoad>,
}

async fn session(State(shared): State<Shared>) -> Json<Session> {
    let now = shared.published.now();
    Json(Session {
        session: now.view.session.clone(),
        cells: now.view.cells.clone(),
        n_prb_cell: now.view.n_prb_cell,
        cell_load: now.view.cell_load.clone(),
    })
}

/// The last transfers, by their start.
#[derive(Debug, Serialize, JsonSchema)]
struct Transfers {
    /// The transfers.
    transfers: Vec<LiveTransfer>,
}

async fn transfers(State(shared): State<Shared>) -> Json<Transfers> {
    Json(Transfers { transfers: shared.published.now().view.transfers.clone() })
}

/// The last bursts, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
struct Bursts {
    /// The bursts.
    bursts: Vec<LiveBurst>,
}

#[derive(Debug, Deserialize)]
struct BurstsQuery {
    limit: Option<u32>,
}

async fn bursts(
    State(shared): State<Shared>,
    query: Result<Query<BurstsQuery>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(BurstsQuery { limit })) = query else {
        return refuse(StatusCode::BAD_REQUEST, "limit: give a number of bursts");
    };
    let now = shared.published.now();
    let last = now.last_bursts(limit.map_or(USUAL_BURSTS, |n| n as usize));
    Json(Bursts { bursts: last.into_iter().cloned().collect() }).into_response()
}

/// What passes the interface.
#[derive(Debug, Serialize, JsonSchema)]
struct Packets {
    /// Null: no interface was asked for.
    packets: Option<Passing>,
    /// The last flows that are over, oldest first.
    ended: Vec<LiveFlow>,
}

async fn packets(State(shared): State<Shared>) -> Json<Packets> {
    let packets = shared.published.now().packets.clone();
    let ended = packets.iter().flat_map(|passing| passing.view.ended.iter().cloned()).collect();
    Json(Packets { packets, ended })
}

async fn describe() -> Json<serde_json::Value> {
    Json(openapi::document())
}

/// Events as they come. A reader that is too slow is told how many it missed.
async fn events(State(shared): State<Shared>) -> Response {
    let Ok(permit) = Arc::clone(&shared.streams).try_acquire_owned() else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open");
    };
    let receiver = shared.published.events();
    let stream = stream::unfold((receiver, permit), |(mut receiver, permit)| async {
        let event = match receiver.recv().await {
            Ok(event) => to_sse(&event),
            Err(RecvError::Lagged(n)) => {
                Ok(sse::Event::default().event("missed").data(format!("{{\"events\":{n}}}")))
            }
            Err(RecvError::Closed) => return None,
        };
        Some((event, (receiver, permit)))
    });
    stream_of(stream).into_response()
}

fn stream_of<S>(stream: S) -> impl IntoResponse
where
    S: Stream<Item = Result<sse::Event, Infallible>> + Send + 'static,
{
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

fn to_sse(event: &Event) -> Result<sse::Event, Infallible> {
    let named = sse::Event::default().event(event.name());
    // An event is plain data: it always has a form in JSON.
    Ok(named.data(serde_json::to_string(event).unwrap_or_default()))
}
