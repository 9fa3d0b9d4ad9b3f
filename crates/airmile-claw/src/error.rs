//! Why something cannot be done here.

use std::path::PathBuf;

use airmile_host::SystemError;

/// Why something cannot be done here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A file that holds something else than it should.
    #[error("{path}: {what}")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Keys, certificates or QUIC do not work.
    #[error("{what}: {why}")]
    Connection {
        /// With whom, or what.
        what: String,
        /// What went wrong.
        why: String,
    },
    /// An option that cannot be.
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
