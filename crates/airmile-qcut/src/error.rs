//! What can go wrong between here and the kernel.

use airmile_host::SystemError;
use airmile_host::http::HttpError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a deployment could not be made, or goes on no more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] SystemError),
    /// What was asked for does not fit this machine, and what does.
    #[error("{0}")]
    Unfit(String),
    /// The server of metrics.
    #[error(transparent)]
    Server(#[from] HttpError),
}

/// What helps where rights are missing.
pub(crate) const NEEDS_ROOT: &str = "\
Shaping a host's uplink needs CAP_NET_ADMIN and CAP_NET_RAW: run it with sudo, or as a \
service with `AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW` (docs/qcut.md). \
In a container: --cap-add NET_ADMIN --cap-add NET_RAW.";
