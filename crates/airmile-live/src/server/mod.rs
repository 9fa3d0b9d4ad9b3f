//! HTTP: Prometheus metrics, JSON, server-sent events, a page.

mod metrics;
mod openapi;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airmile::live::packets::LiveFlow;
use airmile::live::{LiveBurst, LiveTransfer};
use airmile::{EvidenceCounts, Missing, SessionVerdict, Zone};
use airmile_host::http::{HttpError, HttpServer, Refusal, prometheus, refuse};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::engine::Published;
use crate::snapshot::{LiveEvent, LiveTotals, Passing, SourceStatus};

/// Maximum number of concurrent event streams (chosen here: a user's tabs, and some scripts).
const MAX_STREAMS: usize = 32;
/// Default number of bursts in an answer.
const USUAL_BURSTS: usize = 100;
/// Interval of comments on an idle stream, to notice closed connections.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

const PAGE: &str = include_str!("page.html");
/// The page loads nothing from other hosts.
const PAGE_POLICY: &str = "default-src 'none'; img-src data:; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// Serves the published state to admitted clients, until it is dropped.
///
/// # Errors
/// The address needs a token, or cannot be bound.
pub fn serve(
    address: SocketAddr,
    token: Option<&str>,
    published: Published,
    zone: Zone,
) -> Result<HttpServer, HttpError> {
    let streams = Arc::new(tokio::sync::Semaphore::new(MAX_STREAMS));
    HttpServer::start(address, token, router(ServerState { published, streams, zone }))
}

#[derive(Debug, Clone)]
struct ServerState {
    published: Published,
    zone: Zone,
    streams: Arc<tokio::sync::Semaphore>,
}

fn router(shared: ServerState) -> Router {
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

async fn page(State(shared): State<ServerState>) -> Response {
    let policy = [(header::CONTENT_SECURITY_POLICY, PAGE_POLICY)];
    let last_us = shared.published.now().view.intake.last_us.unwrap_or_default();
    // A browser takes names of the time zone database, and offsets without `UTC`.
    let offset = shared.zone.name_at(last_us);
    let name = shared.zone.name().unwrap_or_else(|| offset.trim_start_matches("UTC"));
    let page = PAGE.replacen("data-zone=\"UTC\"", &format!("data-zone=\"{name}\""), 1);
    (policy, Html(page)).into_response()
}

async fn metrics(State(shared): State<ServerState>) -> Response {
    prometheus(metrics::text(&shared.published.now()))
}

/// The state of the input.
#[derive(Debug, Serialize, JsonSchema)]
struct StatusAnswer {
    /// The program and version.
    made_by: &'static str,
    /// The source of bytes.
    source: SourceStatus,
    /// Input so far.
    intake: airmile::live::Intake,
    /// Counts since the start.
    totals: LiveTotals,
    /// The subscription.
    subscription: u8,
    /// The evidence in the records.
    evidence_counts: EvidenceCounts,
    /// What is missing for a better answer, and how to capture it.
    missing: Vec<Missing>,
}

async fn status(State(shared): State<ServerState>) -> Json<StatusAnswer> {
    let now = shared.published.now();
    Json(StatusAnswer {
        made_by: concat!("airmile ", env!("CARGO_PKG_VERSION")),
        source: now.source.clone(),
        intake: now.view.intake,
        totals: now.totals.clone(),
        subscription: now.view.subscription,
        evidence_counts: now.view.evidence_counts,
        missing: now.view.missing.clone(),
    })
}

/// The verdict for the last transfers together, and the cell.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionAnswer {
    /// The verdict.
    session: SessionVerdict,
    /// Serving cells.
    cells: Vec<airmile::ServingCell>,
    /// Downlink bandwidth in PRBs.
    n_prb_cell: Option<u16>,
    /// Load of the primary cell in the last window that allows an estimate.
    cell_load: Option<airmile::CellLoad>,
}

async fn session(State(shared): State<ServerState>) -> Json<SessionAnswer> {
    let now = shared.published.now();
    Json(SessionAnswer {
        session: now.view.session.clone(),
        cells: now.view.cells.clone(),
        n_prb_cell: now.view.n_prb_cell,
        cell_load: now.view.cell_load.clone(),
    })
}

/// The last transfers, in order of their start.
#[derive(Debug, Serialize, JsonSchema)]
struct TransfersAnswer {
    /// The transfers.
    transfers: Vec<LiveTransfer>,
}

async fn transfers(State(shared): State<ServerState>) -> Json<TransfersAnswer> {
    Json(TransfersAnswer { transfers: shared.published.now().view.transfers.clone() })
}

/// The last bursts, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
struct BurstsAnswer {
    /// The bursts.
    bursts: Vec<LiveBurst>,
}

#[derive(Debug, Deserialize)]
struct BurstsQuery {
    limit: Option<u32>,
}

async fn bursts(
    State(shared): State<ServerState>,
    query: Result<Query<BurstsQuery>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(BurstsQuery { limit })) = query else {
        return refuse(StatusCode::BAD_REQUEST, "limit: give a number of bursts");
    };
    let now = shared.published.now();
    let last = now.last_bursts(limit.map_or(USUAL_BURSTS, |n| n as usize));
    Json(BurstsAnswer { bursts: last.into_iter().cloned().collect() }).into_response()
}

/// The traffic of the interface.
#[derive(Debug, Serialize, JsonSchema)]
struct PacketsAnswer {
    /// Null: no interface was requested.
    packets: Option<Passing>,
    /// The last ended flows, oldest first.
    ended: Vec<LiveFlow>,
}

async fn packets(State(shared): State<ServerState>) -> Json<PacketsAnswer> {
    let packets = shared.published.now().packets.clone();
    let ended = packets.iter().flat_map(|passing| passing.view.ended.iter().cloned()).collect();
    Json(PacketsAnswer { packets, ended })
}

async fn describe() -> Json<serde_json::Value> {
    Json(openapi::document())
}

/// Events as they occur. A reader that is too slow gets the number of missed events.
async fn events(State(shared): State<ServerState>) -> Response {
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

fn to_sse(event: &LiveEvent) -> Result<sse::Event, Infallible> {
    let named = sse::Event::default().event(event.name());
    // An event is plain data: it can always be serialised as JSON.
    Ok(named.data(serde_json::to_string(event).unwrap_or_default()))
}
