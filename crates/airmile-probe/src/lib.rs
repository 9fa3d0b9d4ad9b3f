//! The port test (BurstTracker, 4.5 and 5.1): a [`ProbeServer`] of segments on several
//! ports, and a client ([`run`]) that fetches them with pauses, one connection per port,
//! in alternation, so that all ports have the same conditions.
//!
//! This crate has the sockets, threads and clocks; `airmile::compare` interprets the transfers.

mod answer;
mod client;
mod connection;
mod content;
mod log;
mod server;
mod target;
mod turn;

pub use client::run;
pub use log::write;
pub use server::{ProbeServer, ServeLimits, ServeOptions};
pub use target::Target;
pub use turn::Probe;

/// Why a probe could not be served or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket could not be opened.
    #[error("{address}: cannot listen: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// No certificate could be created, or TLS rejected it.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server's name has no address.
    #[error("{host}: {source}")]
    Name {
        /// The name.
        host: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The given server is no host and no URL.
    #[error("{given}: give a host, or http://HOST/PATH; ports are given by --ports")]
    Target {
        /// The given text.
        given: String,
    },
    /// No segment arrived.
    #[error("no segment arrived over any port: {0}")]
    Nothing(String),
    /// A file could not be written whole.
    #[error(transparent)]
    Output(#[from] airmile::Error),
    /// A file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Ports under 1024 need root.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            " (ports under 1024 need root, or: setcap cap_net_bind_service=+ep airmile)"
        }
        _ => "",
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
