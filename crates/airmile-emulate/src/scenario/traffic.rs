//! Traffic without transports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Application bytes of a window sender's full packet: 1,500 bytes of IPv4 and TCP with
/// time stamps (RFC 7323).
pub(crate) const MSS_BYTES: u64 = 1_448;

/// Initial window in segments (RFC 6928).
pub(crate) const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// Other users with byte traffic. They have a queue and HARQ, but no RLC and no uplink, so
/// that a thousand of them are cheap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Competing {
    /// Whole files with pauses between them.
    Sporadic {
        /// Users.
        users: u16,
        /// Mean file size in bytes (exponential).
        mean_file_bytes: u32,
        /// Mean pause in ms between a file's end and the next (exponential).
        mean_pause_ms: u32,
    },
    /// Queues that never run empty.
    FullBuffer {
        /// Users.
        users: u16,
    },
    /// Web pages: a few objects, one after the other, then reading time.
    Web {
        /// Users.
        users: u16,
        /// Objects of a page.
        objects: u16,
        /// Mean object size in bytes (exponential).
        mean_object_bytes: u32,
        /// Time in ms from an object's end to the next.
        round_trip_ms: u32,
        /// Mean reading time of a page in ms (exponential).
        mean_reading_ms: u32,
    },
    /// A video segment each time that one has been played.
    Video {
        /// Users.
        users: u16,
        /// Playing time of a segment in ms.
        segment_ms: u32,
        /// Bits of video per second of playing time.
        bitrate_bps: u32,
    },
    /// A constant rate, on and off.
    OnOff {
        /// Users.
        users: u16,
        /// Rate in bits per second while on.
        rate_bps: u32,
        /// Mean time on in ms (exponential).
        mean_on_ms: u32,
        /// Mean time off in ms (exponential).
        mean_off_ms: u32,
    },
}

impl Competing {
    /// Its name in a scenario.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sporadic { .. } => "sporadic",
            Self::FullBuffer { .. } => "full_buffer",
            Self::Web { .. } => "web",
            Self::Video { .. } => "video",
            Self::OnOff { .. } => "on_off",
        }
    }

    /// Number of users.
    #[must_use]
    pub const fn users(&self) -> u16 {
        match self {
            Self::Sporadic { users, .. }
            | Self::FullBuffer { users }
            | Self::Web { users, .. }
            | Self::Video { users, .. }
            | Self::OnOff { users, .. } => *users,
        }
    }
}

/// A window-limited sender: slow start from 10 segments (RFC 6928), doubling each round
/// trip, up to a constant window. No loss and no congestion avoidance: it is not TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowConfig {
    /// The window at which growth ends, in bytes: the path's bandwidth-delay product plus
    /// the intended standing queue at the base station.
    pub max_bytes: u32,
    /// Whether a pause longer than the retransmission timeout resets the window to 10
    /// segments (RFC 5681, 4.1).
    pub restart_after_idle: bool,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { max_bytes: 400_000, restart_after_idle: true }
    }
}

/// A transfer of the phone. Each starts with a request on the uplink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// A file from a window-limited server.
    Download {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// The sender.
        #[serde(default)]
        window: WindowConfig,
    },
    /// A file from a server that paces its packets.
    Paced {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// Rate in bits per second, IP headers included.
        rate_bps: u64,
    },
    /// Segments, fetched one after the other; when the player's buffer is full, each waits
    /// for room. Every segment is a transfer, `ID-N` from 1 on.
    Video {
        /// Name of the session.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Segments.
        segments: u32,
        /// Playing time of a segment in ms.
        segment_ms: u32,
        /// Bits of video per second of playing time.
        bitrate_bps: u64,
        /// Playing time in ms that the player buffers before it pauses.
        buffer_ms: u32,
        /// The sender, one connection for all segments.
        #[serde(default)]
        window: WindowConfig,
    },
    /// A file from the phone to a server.
    Upload {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// The sender.
        #[serde(default)]
        window: WindowConfig,
    },
}

impl Traffic {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Download { id, .. }
            | Self::Paced { id, .. }
            | Self::Video { id, .. }
            | Self::Upload { id, .. } => id,
        }
    }

    /// Its start in ms of the run.
    #[must_use]
    pub const fn start_ms(&self) -> u32 {
        match self {
            Self::Download { start_ms, .. }
            | Self::Paced { start_ms, .. }
            | Self::Video { start_ms, .. }
            | Self::Upload { start_ms, .. } => *start_ms,
        }
    }
}
