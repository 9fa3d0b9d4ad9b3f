//! HTTP: Prometheus metrics and JSON, to who may enter ([`airmile_live::server`]).

use std::sync::{Arc, Mutex, PoisonError};

use airmile_live::server::Server;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};

use crate::error::Result;
use crate::status::Status;

/// The last status, which replaces the one before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published(Arc<Mutex<Arc<Status>>>);

impl Published {
    pub(crate) fn set(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(status);
    }

    pub(crate) fn now(&self) -> Arc<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves it.
pub(crate) fn serve(
    address: std::net::SocketAddr,
    token: Option<&str>,
    published: &Published,
) -> Result<Server> {
    let metrics = published.clone();
    let status = published.clone();
    let routes = Router::new()
        .route(
            "/metrics",
            get(move || {
                let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
                let answer = (kind, metrics.now().metrics()).into_response();
                async move { answer }
            }),
        )
        .route(
            "/v1/status",
            get(move || {
                let answer = Json(Status::clone(&status.now()));
                async move { answer }
            }),
        )
        .fallback(async || (StatusCode::NOT_FOUND, "there are /metrics and /v1/status\n"));
    Ok(Server::serve(address, token, routes)?)
}
