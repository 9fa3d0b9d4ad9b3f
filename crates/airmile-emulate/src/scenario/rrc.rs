//! RRC states and discontinuous reception.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connection setup and release of a phone (TS 36.331; DRX: TS 36.321, 5.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RrcConfig {
    /// Whether the run begins in idle.
    pub starts_idle: bool,
    /// Time in ms from the first packet in idle to the connection.
    pub promotion_ms: u32,
    /// Paging cycle in ms: a downlink packet in idle waits for the next
    /// occasion (TS 36.304, 7.1).
    pub paging_ms: u32,
    /// Time in ms without data until the connection is released.
    pub tail_ms: u32,
    /// Discontinuous reception while connected; absent: always awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drx: Option<DrxConfig>,
}

impl Default for RrcConfig {
    fn default() -> Self {
        // Promotion and tail as measured in "A close examination of performance
        // and power characteristics of 4G LTE networks" (MobiSys 2012, table 1):
        // 260 ms and 11.6 s; defaultPagingCycle rf128 (chosen here).
        Self { starts_idle: true, promotion_ms: 260, paging_ms: 1_280, tail_ms: 11_600, drx: None }
    }
}

/// Long DRX cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrxConfig {
    /// drx-InactivityTimer in ms.
    pub inactivity_ms: u32,
    /// onDurationTimer in ms.
    pub on_ms: u32,
    /// longDRX-Cycle in ms.
    pub cycle_ms: u32,
    /// drx-RetransmissionTimer in TTIs.
    pub retransmission_ttis: u32,
}

impl Default for DrxConfig {
    fn default() -> Self {
        // Typical values (chosen here).
        Self { inactivity_ms: 100, on_ms: 10, cycle_ms: 160, retransmission_ttis: 8 }
    }
}
