//! Errors of this crate.

use std::path::PathBuf;

use airmile_host::SystemError;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A file has unexpected contents.
    #[error("{path}: {what}")]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// A failure of keys, certificates or QUIC.
    #[error("{what}: {why}")]
    Connection {
        /// The peer or the step.
        what: String,
        /// The reason.
        why: String,
    },
    /// An invalid option.
    #[error("{0}")]
    Option(String),
}

/// With an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Names the step of QUIC, TLS or HTTP that failed.
pub(crate) trait Connect<T> {
    fn connect(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::fmt::Display> Connect<T> for std::result::Result<T, E> {
    fn connect(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|why| Error::Connection { what: what(), why: why.to_string() })
    }
}
