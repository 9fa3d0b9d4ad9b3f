//! Errors of a deployment.

use airmile_host::SystemError;
use airmile_host::http::HttpError;
use nix::net::if_::if_nameindex;

use crate::options::Deploy;

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
    /// A deployment could not be set up; [`crate::run`] adds what it lacks here.
    #[error("{interface}: {why}")]
    Deployment {
        /// Which.
        deploy: Deploy,
        /// The interface.
        interface: String,
        /// Why.
        why: String,
    },
    /// The metrics server failed.
    #[error(transparent)]
    Server(#[from] HttpError),
}

impl Error {
    /// The error of a deployment that could not be set up.
    pub(crate) fn deployment(deploy: Deploy, interface: &str, why: &str) -> Self {
        Self::Deployment { deploy, interface: interface.to_owned(), why: why.to_owned() }
    }

    /// The error of an interface that does not exist.
    pub(crate) fn unknown_interface(name: &str) -> Self {
        let listed = if_nameindex().ok();
        let names = listed.iter().flatten().map(|each| each.name().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        Self::Unfit(format!("{name}: there is no such interface; there are {}", names.join(", ")))
    }
}

/// Advice for missing privileges.
pub(crate) const NEEDS_ROOT: &str = "\
Shaping a host's uplink needs CAP_NET_ADMIN and CAP_NET_RAW: run it with sudo, or as a \
service with `AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW` (docs/qcut.md). \
In a container: --cap-add NET_ADMIN --cap-add NET_RAW.";
