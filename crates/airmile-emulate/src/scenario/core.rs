//! The core network beyond the base station.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network between base station and server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoreConfig {
    /// Round trip between base station and server in ms; half in each direction.
    pub rtt_ms: u32,
    /// Part of it between base station and middlebox, if there is one.
    pub proxy_rtt_ms: u32,
    /// Server to phone.
    pub down: PathConfig,
    /// Phone to server.
    pub up: PathConfig,
}

/// One direction of the core network. All impairments except delay are applied between
/// server and middlebox.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathConfig {
    /// Mean in ms of an additional exponential delay; packets stay in order.
    pub jitter_ms: f64,
    /// Share of packets lost.
    pub loss: f64,
    /// A bottleneck with a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<RateLimit>,
}

/// A link with a rate and a drop-tail queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Rate in bits per second, IP headers included.
    pub rate_bps: u64,
    /// Maximum bytes that wait.
    #[serde(default = "default_queue_bytes")]
    pub queue_bytes: u64,
    /// First ms of the run in which it applies.
    #[serde(default)]
    pub from_ms: u32,
    /// First ms in which it no longer applies; absent: until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u32>,
}

const fn default_queue_bytes() -> u64 {
    250_000 // chosen here: 100 ms of 20 Mbit/s
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            rtt_ms: 30,
            proxy_rtt_ms: 10,
            down: PathConfig::default(),
            up: PathConfig::default(),
        }
    }
}
