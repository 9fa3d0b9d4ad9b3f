//! What is to be run.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airmile_control::qcut::{ClassConfig, Limit};
use airmile_host::source::LogSource;
use clap::ValueEnum;

/// The way packets are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deploy {
    /// The kernel's queue for user space: an exact gate
    Nfqueue,
    /// The kernel's HTB, its rate kept at the modem's: the least work, less exact
    Htb,
    /// The kernel's CAKE, the same way
    Cake,
    /// A TUN device that routes lead into: for a host without a packet filter
    Tun,
}

impl Deploy {
    /// Its name on the command line.
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

/// Whom to ask for a round trip where no acknowledgement gives one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeTo {
    /// Whom the last packet was for.
    #[default]
    LastFar,
    /// This host.
    Host(Ipv4Addr),
    /// Nobody.
    Nobody,
}

impl std::str::FromStr for ProbeTo {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::LastFar),
            "off" => Ok(Self::Nobody),
            host => host.parse().map(Self::Host).map_err(|_| "give auto, off, or an IPv4 address"),
        }
    }
}

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface of the uplink.
    pub interface: String,
    /// The modem's log; absent: round trips tell.
    pub modem: Option<LogSource>,
    /// How much the modem may hold.
    pub limit: Limit,
    /// The way packets are held.
    pub deploy: Deploy,
    /// By what packets are classified.
    pub classes: ClassConfig,
    /// Where to serve metrics.
    pub metrics: SocketAddr,
    /// The token that metrics ask for.
    pub token: Option<String>,
    /// For how long; absent: until it is ended.
    pub duration: Option<Duration>,
    /// Whom to ask for round trips.
    pub probe: ProbeTo,
    /// Program and first arguments that lead to [`guard`](crate::guard()).
    pub launcher: Vec<OsString>,
}
