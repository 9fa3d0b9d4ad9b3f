//! The split-TCP middlebox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TcpConfig;

/// A port whose connections the proxy splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxyPort {
    /// The server's port.
    pub port: u16,
    /// Restart slow start after idle time, towards the client (RFC 2861).
    pub slow_start_after_idle: bool,
}

/// What the proxy is set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyConfig {
    /// Ports that it takes; all others pass untouched.
    pub ports: Vec<ProxyPort>,
    /// Its TCP on both sides, but for the restart, which the port decides on the
    /// client's side.
    pub tcp: TcpConfig,
    /// Bytes that it holds of each direction of a connection beyond what the
    /// receiving side acknowledges no more than it has room for.
    pub buffer_bytes: u64,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self { ports: Vec::new(), tcp: TcpConfig::default(), buffer_bytes: 4 << 20 }
    }
}
