//! An HTTP server for the state of a program: metrics, JSON, a page.
//!
//! Bound to loopback it asks for no token, but takes only requests that name
//! the machine itself (a page of elsewhere could else read it through the
//! browser); bound to anything else it asks for one on every path.

mod access;
mod listener;
mod metrics;

use std::io;
use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;
use tokio::net::TcpListener;

use crate::thread::AsyncWorker;
use access::{Access, admit};
use listener::{ConnectionPlace, LimitedListener};
pub use metrics::Metrics;

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum HttpError {
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
pub struct HttpServer {
    address: SocketAddr,
    _worker: AsyncWorker,
}

impl HttpServer {
    /// Binds the address and serves these routes to who may enter, on a thread of its own.
    ///
    /// # Errors
    /// The address needs a token, or cannot be bound.
    pub fn start(
        address: SocketAddr,
        token: Option<&str>,
        routes: Router,
    ) -> Result<Self, HttpError> {
        let token = token.filter(|token| !token.is_empty());
        if !address.ip().is_loopback() && token.is_none() {
            return Err(HttpError::NoToken(address));
        }
        let bind = |source| HttpError::Bind { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let runtime = AsyncWorker::runtime().map_err(HttpError::Start)?;
        let routes = routes
            .method_not_allowed_fallback(async || {
                refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is of use here")
            })
            .layer(middleware::from_fn_with_state(Access::new(token), admit));
        let routes = routes.into_make_service_with_connect_info::<ConnectionPlace>();
        let worker = AsyncWorker::start("server", runtime, |stopped| async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let serving = axum::serve(LimitedListener::new(listener), routes);
            tokio::select! {
                _ = serving => {}
                _ = stopped => {}
            }
        });
        Ok(Self { address, _worker: worker.map_err(HttpError::Start)? })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The body of a refused request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refusal {
    /// Why.
    error: String,
}

/// Refuses a request, with the reason as JSON.
#[must_use]
pub fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(Refusal { error: why.to_owned() })).into_response()
}

/// Metrics as a response.
#[must_use]
pub fn prometheus(text: String) -> Response {
    let kind = [(axum::http::header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text).into_response()
}
