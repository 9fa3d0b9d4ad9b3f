//! HTTP server for Prometheus metrics and JSON, for authorised clients
//! ([`airmile_host::http`]).

use std::sync::{Arc, Mutex};

use airmile_host::http::{HttpServer, prometheus};
use airmile_host::thread::lock;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};

use crate::error::Result;
use crate::status::GateStatus;

/// The latest status.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published(Arc<Mutex<Arc<GateStatus>>>);

impl Published {
    pub(crate) fn set(&self, status: GateStatus) {
        *lock(&self.0) = Arc::new(status);
    }

    pub(crate) fn now(&self) -> Arc<GateStatus> {
        lock(&self.0).clone()
    }
}

/// Starts the server.
pub(crate) fn serve(
    address: std::net::SocketAddr,
    token: Option<&str>,
    published: &Published,
) -> Result<HttpServer> {
    let metrics = published.clone();
    let status = published.clone();
    let routes = Router::new()
        .route(
            "/metrics",
            get(move || {
                let answer = prometheus(metrics.now().metrics());
                async move { answer }
            }),
        )
        .route(
            "/v1/status",
            get(move || {
                let answer = Json(GateStatus::clone(&status.now()));
                async move { answer }
            }),
        )
        .fallback(async || (StatusCode::NOT_FOUND, "there are /metrics and /v1/status\n"));
    Ok(HttpServer::start(address, token, routes)?)
}
