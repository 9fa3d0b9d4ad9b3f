//! A small file server in the server's namespace.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use airmile_emulate::SERVER_ADDRESS;
use airmile_host::Attempt;
use airmile_host::files::site_file;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tower_http::services::ServeDir;

use crate::error::{Error, Result};
use crate::namespace::Namespace;

const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;

/// Its first port.
pub(crate) const PORT: u16 = 80;

/// Serves a directory over HTTP/1.1, with ranges, on ports of the server's address.
pub(crate) fn serve(namespace: &Namespace, dir: PathBuf, mut ports: Vec<u16>) -> Result<()> {
    // Links are followed only within the directory.
    let dir = dir.canonicalize().attempt(|| format!("cannot serve {}", dir.display()))?;
    ports.sort_unstable();
    ports.dedup();
    let (bound, is_bound) = mpsc::channel();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let none = SocketAddrV4::new(SERVER_ADDRESS, 0);
                return drop(bound.send(Err((none, error))));
            }
        };
        runtime.block_on(async {
            let mut servers = tokio::task::JoinSet::new();
            for port in ports {
                let address = SocketAddrV4::new(SERVER_ADDRESS, port);
                let listener = match TcpListener::bind(address).await {
                    Ok(listener) => listener,
                    Err(error) => return drop(bound.send(Err((address, error)))),
                };
                let files = Router::new().fallback_service(ServeDir::new(dir.clone()));
                let root = dir.clone();
                let files =
                    files.layer(middleware::from_fn(move |request: Request, next: Next| {
                        let is_served = site_file(&root, request.uri().path()).is_some();
                        async move {
                            if is_served {
                                next.run(request).await
                            } else {
                                NOT_FOUND.into_response()
                            }
                        }
                    }));
                let listener = listener.tap_io(|stream| {
                    let _ = stream.set_nodelay(true);
                });
                servers.spawn(axum::serve(listener, files).into_future());
            }
            let _ = bound.send(Ok(()));
            // They end with the process.
            while servers.join_next().await.is_some() {}
        });
    };
    namespace
        .run(|| thread::Builder::new().name("serve".to_owned()).spawn(work).map(drop))?
        .attempt(|| "cannot start the thread that serves".to_owned())?;
    let bound = is_bound.recv().map_err(|_| Error::Thread("the file server"))?;
    let (address, outcome) = match bound {
        Ok(()) => return Ok(()),
        Err((address, error)) => (address, Err::<(), _>(error)),
    };
    Ok(outcome.attempt(|| format!("cannot serve at {address}"))?)
}
