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

/// Configuration of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyConfig {
    /// Ports that it intercepts; all others pass unchanged.
    pub ports: Vec<ProxyPort>,
    /// Its TCP on both sides, except for the restart, which the port determines on the
    /// client's side.
    pub tcp: TcpConfig,
    /// Bytes of each direction of a connection that it buffers beyond the receiving side's
    /// window.
    pub buffer_bytes: u64,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self { ports: Vec::new(), tcp: TcpConfig::default(), buffer_bytes: 4 << 20 }
    }
}
