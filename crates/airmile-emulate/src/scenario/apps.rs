//! Phones whose packets come from transports: their applications and servers.

use airmile_control::ControllerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Workload;
use super::{CoreConfig, LinkConfig};

/// An application of a phone, with a server of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppConfig {
    /// Its name; its transfers are `NAME-1`, `NAME-2` and so on.
    pub name: String,
    /// Start in ms of the run.
    #[serde(default)]
    pub start_ms: u32,
    /// The server's port.
    #[serde(default = "https")]
    pub port: u16,
    /// The transport.
    #[serde(default)]
    pub transport: TransportKind,
    /// Its workload.
    pub workload: Workload,
}

/// Transport of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC, on UDP.
    Quic,
}

const fn https() -> u16 {
    443
}

/// Other phones of the cell, each with a bearer, TCP and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherConfig {
    /// Number of phones.
    #[serde(default = "one")]
    pub count: u16,
    /// Their radio; absent: the measured phone's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkConfig>,
    /// The core network beyond the base station.
    #[serde(default)]
    pub core: CoreConfig,
    /// Spread in ms of their start.
    #[serde(default)]
    pub start_spread_ms: u32,
    /// Congestion control of their servers' TCP; absent: the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControllerKind>,
    /// The applications of each.
    pub apps: Vec<AppConfig>,
}

const fn one() -> u16 {
    1
}
