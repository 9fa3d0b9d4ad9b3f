//! What can go wrong between here and the kernel.

use std::io;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a deployment could not be made, or goes on no more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses something, and what helps.
    #[error("{attempt}: {source}\n{remedy}")]
    Refused {
        /// What was tried.
        attempt: String,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: String,
    },
    /// Something that usually works.
    #[error("{attempt}: {source}")]
    System {
        /// What was tried.
        attempt: String,
        /// What the system says.
        source: io::Error,
    },
    /// What was asked for does not fit this machine, and what does.
    #[error("{0}")]
    Unfit(String),
    /// The server of metrics.
    #[error(transparent)]
    Server(#[from] airmile_live::server::ServerError),
}

/// Names the attempt that failed.
pub(crate) trait Attempt<T> {
    /// Adds what was tried.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;

    /// Adds what was tried, and what helps.
    fn refused(self, what: impl FnOnce() -> String, remedy: &str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::System { attempt: what(), source: e.into() })
    }

    fn refused(self, what: impl FnOnce() -> String, remedy: &str) -> Result<T> {
        self.map_err(|e| Error::Refused {
            attempt: what(),
            source: e.into(),
            remedy: remedy.to_owned(),
        })
    }
}

/// What helps where rights are missing.
pub(crate) const NEEDS_ROOT: &str = "\
Shaping a host's uplink needs CAP_NET_ADMIN and CAP_NET_RAW: run it with sudo, or as a \
service with `AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW` (docs/qcut.md). \
In a container: --cap-add NET_ADMIN --cap-add NET_RAW.";
