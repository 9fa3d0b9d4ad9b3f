//! Phones that tell servers of their radio.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How phones tell servers of their radio, where a server's congestion control asks for
/// it (`claw`, `cqic`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RadioReportConfig {
    /// Time in ms between two reports (MobiSys 2017, 5: 100).
    pub every_ms: u32,
    /// Share of reports that are lost on the phone; the path may lose more.
    pub loss: f64,
    /// From what the modem's log tells of until a program can read it, in ms.
    pub log_delay_ms: u32,
    /// Tell a bottleneck before the cell (4.4); else the cell is taken for it.
    pub detector: bool,
    /// Tell of packets that the radio lost (4.3.2).
    pub losses: bool,
}

impl Default for RadioReportConfig {
    fn default() -> Self {
        // The delay is chosen here: logs come in batches of some packets.
        Self { every_ms: 100, loss: 0.0, log_delay_ms: 10, detector: true, losses: true }
    }
}
