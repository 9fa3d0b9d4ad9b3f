//! What is probed, and its turns.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::Target;

/// What is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The server.
    pub target: Target,
    /// Its ports.
    pub ports: Vec<u16>,
    /// Which of them speak TLS.
    pub tls: Vec<u16>,
    /// Segments of a connection.
    pub segments: u32,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Pause on a connection before each segment.
    pub pause: Duration,
    /// Rounds: each makes its connections anew.
    pub rounds: u32,
    /// What the order of ports is drawn from.
    pub seed: u64,
    /// A connection on which nothing moves for so long has failed.
    pub timeout: Duration,
}

/// A segment that is to be fetched.
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) round: u32,
    pub(super) address: SocketAddr,
}

/// A connection below HTTP: TCP, or TLS over it.
pub(super) trait ByteStream: Read + Write {}
impl<T: Read + Write> ByteStream for T {}
