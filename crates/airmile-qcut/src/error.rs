//! Errors of a deployment.

use airmile_host::SystemError;
use airmile_host::http::HttpError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a deployment failed to start or to continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or command failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The request does not fit this machine; the text includes what does.
    #[error("{0}")]
    Unfit(String),
    /// The metrics server failed.
    #[error(transparent)]
    Server(#[from] HttpError),
}

/// Advice for missing privileges.
pub(crate) const NEEDS_ROOT: &str = "\
Shaping a host's uplink needs CAP_NET_ADMIN and CAP_NET_RAW: run it with sudo, or as a \
service with `AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW` (docs/qcut.md). \
In a container: --cap-add NET_ADMIN --cap-add NET_RAW.";
