//! An HTTP server for the state of a program: metrics, JSON, a page.
//!
//! Bound to loopback it requires no token, but accepts only requests that name the
//! machine itself (otherwise a foreign page could read it through the browser); bound to
//! any other address it requires one on every path.

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

use crate::async_thread::AsyncWorker;
use access::{Access, admit};
use listener::{ConnectionLimits, ConnectionPlace, LimitedListener};
pub use metrics::Metrics;

/// Minimum length of a token (chosen here: 64 bits in hexadecimal).
const MIN_TOKEN_BYTES: usize = 16;

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is not loopback, and there is no token.
    #[error(
        "{0} is not loopback: everyone who can reach it would see where you are; set a token: \
         --token-file FILE, or the environment's AIRMILE_TOKEN"
    )]
    NoToken(SocketAddr),
    /// The token is too easy to guess.
    #[error(
        "the token is too short: {MIN_TOKEN_BYTES} characters and more are needed \
         (openssl rand -hex 16)"
    )]
    WeakToken,
    /// The address cannot be bound.
    #[error("{address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error.
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
    /// Binds the address and serves these routes to admitted clients, on its own thread.
    ///
    /// # Errors
    /// The address needs a token, the token is short, or the address cannot be bound.
    pub fn start(
        address: SocketAddr,
        token: Option<&str>,
        routes: Router,
    ) -> Result<Self, HttpError> {
        Self::start_limited(address, token, routes, ConnectionLimits::default())
    }

    fn start_limited(
        address: SocketAddr,
        token: Option<&str>,
        routes: Router,
        limits: ConnectionLimits,
    ) -> Result<Self, HttpError> {
        let token = token.filter(|token| !token.is_empty());
        if !address.ip().is_loopback() && token.is_none() {
            return Err(HttpError::NoToken(address));
        }
        if token.is_some_and(|token| token.len() < MIN_TOKEN_BYTES) {
            return Err(HttpError::WeakToken);
        }
        let bind = |source| HttpError::Bind { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let runtime = AsyncWorker::runtime().map_err(HttpError::Start)?;
        let routes = routes
            .method_not_allowed_fallback(async || {
                refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported")
            })
            .layer(middleware::from_fn_with_state(Access::new(token), admit));
        let routes = routes.into_make_service_with_connect_info::<ConnectionPlace>();
        let worker = AsyncWorker::start("server", runtime, move |stopped| async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let serving = axum::serve(LimitedListener::new(listener, limits), routes);
            tokio::select! {
                _ = serving => {}
                _ = stopped => {}
            }
        });
        Ok(Self { address, _worker: worker.map_err(HttpError::Start)? })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The body of a refused request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refusal {
    /// The reason.
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use axum::routing::get;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn start(token: Option<&str>, limits: ConnectionLimits) -> Result<HttpServer, HttpError> {
        let routes = Router::new().route("/", get(async || "here"));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        HttpServer::start_limited(address, token, routes, limits)
    }

    /// A client that has begun a request.
    fn drip(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
        stream
    }

    fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn who_has_the_token_gets_a_place_while_hundreds_of_connections_drip() {
        let server = start(Some(TOKEN), ConnectionLimits::default()).unwrap();
        let dripping: Vec<TcpStream> = (0..300).map(|_| drip(server.address())).collect();
        for _ in 0..3 {
            let answer = ask(server.address());
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"), "{answer}");
        }
        drop(dripping);
    }

    #[test]
    fn a_head_that_is_not_whole_in_time_closes_its_connection() {
        let header = Duration::from_millis(200);
        let server = start(None, ConnectionLimits { header, ..ConnectionLimits::default() });
        let server = server.unwrap();
        let mut stream = drip(server.address());
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let begun = Instant::now();
        let mut rest = Vec::new();
        // Closed or reset: no answer in either case.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() && begun.elapsed() < Duration::from_secs(20));
        // A few seconds by default.
        assert!(ConnectionLimits::default().header <= Duration::from_secs(5));
    }

    #[test]
    fn tokens_that_can_be_guessed_are_refused() {
        let of = |token| start(Some(token), ConnectionLimits::default()).map(drop);
        for weak in ["x", "secret", &TOKEN[1..]] {
            assert!(matches!(of(weak), Err(HttpError::WeakToken)), "{weak}");
        }
        of(TOKEN).unwrap();
    }
}
