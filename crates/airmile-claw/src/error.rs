use std::io;
use std::path::PathBuf;

/// Why something cannot be done here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error("{what}: {why}")]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        why: io::Error,
    },
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
    /// The modem's log.
    #[error("{0}")]
    Modem(#[from] airmile_live::engine::StartError),
}

/// With an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Says what was tried.
pub(crate) trait Attempt<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|why| Error::System { what: what(), why: why.into() })
    }
}

/// The same for errors of QUIC, TLS and HTTP.
pub(crate) trait Connect<T> {
    fn connect(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::fmt::Display> Connect<T> for std::result::Result<T, E> {
    fn connect(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|why| Error::Connection { what: what(), why: why.to_string() })
    }
}
