//! What can go wrong between here and the kernel.

use std::io;

use airmile_host::SystemError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run in real time could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario, or what the run leaves.
    #[error(transparent)]
    Lab(#[from] airmile::Error),
    /// The system refuses what a run needs.
    #[error(transparent)]
    System(#[from] SystemError),
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

/// An error of netlink as one of the system.
pub(crate) fn netlink(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
