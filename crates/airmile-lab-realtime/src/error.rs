//! Errors of this crate.

use std::io;

use airmile_host::SystemError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run in real time failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario, or the run's output.
    #[error(transparent)]
    Lab(#[from] airmile::Error),
    /// The system refuses something that a run needs.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The server's command ended, or did not start to listen.
    #[error("the server's command `{command}` {what}")]
    Server {
        /// The command.
        command: String,
        /// What happened to it.
        what: String,
    },
    /// A thread of the run has ended.
    #[error("the thread of {0} ended early")]
    Thread(&'static str),
}

/// Converts a netlink error to a system error.
pub(crate) fn netlink(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
