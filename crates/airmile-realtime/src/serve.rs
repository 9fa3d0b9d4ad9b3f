//! A small server of files, in the server's namespace.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use airmile_emulate::SERVER_ADDRESS;
use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tower_http::services::ServeDir;

use crate::error::{Attempt, Error, Result};
use crate::namespace::Namespace;

/// Its port.
const PORT: u16 = 80;

/// Serves a directory over HTTP/1.1, with ranges, at the server's address.
pub(crate) fn serve(namespace: &Namespace, dir: PathBuf) -> Result<()> {
    let (bound, is_bound) = mpsc::channel();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(bound.send(Err(error))),
        };
        runtime.block_on(async {
            let listener = match TcpListener::bind(SocketAddrV4::new(SERVER_ADDRESS, PORT)).await {
                Ok(listener) => listener,
                Err(error) => return drop(bound.send(Err(error))),
            };
            let _ = bound.send(Ok(()));
            let files = Router::new().fallback_service(ServeDir::new(dir));
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            // It ends with the process.
            let _ = axum::serve(listener, files).await;
        });
    };
    namespace
        .run(|| thread::Builder::new().name("serve".to_owned()).spawn(work).map(drop))?
        .attempt(|| "cannot start the thread that serves".to_owned())?;
    is_bound
        .recv()
        .map_err(|_| Error::Thread("the file server"))?
        .attempt(|| format!("cannot serve at {SERVER_ADDRESS}:{PORT}"))
}
