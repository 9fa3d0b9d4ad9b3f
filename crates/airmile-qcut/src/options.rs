//! Options of a deployment.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airmile_control::qcut::{ClassConfig, Limit};
use airmile_host::source::LogSource;

/// How packets are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deploy {
    /// The kernel's NFQUEUE: an exact gate.
    Nfqueue,
    /// The kernel's HTB, with a rate that follows the estimate.
    Htb,
    /// The kernel's CAKE, in the same way.
    Cake,
    /// A TUN device as the target of routes.
    Tun,
}

impl Deploy {
    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nfqueue => "nfqueue",
            Self::Htb => "htb",
            Self::Cake => "cake",
            Self::Tun => "tun",
        }
    }
}

/// Destination of probes when no acknowledgement gives a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeTo {
    /// The destination of the last packet.
    #[default]
    LastFar,
    /// This host.
    Host(Ipv4Addr),
    /// No probes.
    Nobody,
}

/// Options of a deployment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface of the uplink.
    pub interface: String,
    /// The modem's log; absent: the modem's buffer is estimated from round trips.
    pub modem: Option<LogSource>,
    /// How much the modem may hold.
    pub limit: Limit,
    /// How packets are held back.
    pub deploy: Deploy,
    /// Criteria of the classification.
    pub classes: ClassConfig,
    /// Address of the metrics server.
    pub metrics: SocketAddr,
    /// Token required by the metrics server.
    pub token: Option<String>,
    /// Duration of the run; absent: until a signal.
    pub duration: Option<Duration>,
    /// Destination of probes.
    pub probe: ProbeTo,
    /// Program and first arguments that run [`guard`](crate::guard()).
    pub launcher: Vec<OsString>,
}
