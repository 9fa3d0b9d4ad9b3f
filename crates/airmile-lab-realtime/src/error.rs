//! What can go wrong between here and the kernel.

use std::io;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run in real time could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario, or what the run leaves.
    #[error(transparent)]
    Lab(#[from] airmile::Error),
    /// The system refuses what a run needs, and what helps.
    #[error("{attempt}: {source}\n{remedy}")]
    Refused {
        /// What was tried.
        attempt: String,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Something that usually works.
    #[error("{attempt}: {source}")]
    System {
        /// What was tried.
        attempt: String,
        /// What the system says.
        source: io::Error,
    },
    /// The server's command ended, or did not begin to listen.
    #[error("the server's command `{command}` {what}")]
    Server {
        /// The command.
        command: String,
        /// What became of it.
        what: String,
    },
    /// A thread of the run is gone.
    #[error("the thread of {0} ended early")]
    Thread(&'static str),
}

/// Names the attempt that failed.
pub(crate) trait Attempt<T> {
    /// Adds what was tried.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::System { attempt: what(), source: e.into() })
    }
}

/// An error of netlink as one of the system.
pub(crate) fn netlink(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
