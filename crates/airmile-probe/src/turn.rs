//! Options of a probe, and its turns.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::Target;

/// Options of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The server.
    pub target: Target,
    /// Its ports.
    pub ports: Vec<u16>,
    /// The ports with TLS.
    pub tls: Vec<u16>,
    /// Segments per connection.
    pub segments: u32,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Pause on a connection before each segment.
    pub pause: Duration,
    /// Rounds: each opens new connections.
    pub rounds: u32,
    /// Seed of the order of ports.
    pub seed: u64,
    /// A connection without progress for this time has failed.
    pub timeout: Duration,
}

/// A segment to fetch.
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) round: u32,
    pub(super) address: SocketAddr,
}

/// A connection below HTTP: TCP, or TLS over it.
pub(super) trait ByteStream: Read + Write {}
impl<T: Read + Write> ByteStream for T {}
