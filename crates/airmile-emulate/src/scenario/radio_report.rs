//! Feedback of phones to servers about their radio.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Feedback of phones to servers about their radio, if a server's congestion control needs
/// it (`claw`, `cqic`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RadioReportConfig {
    /// Time in ms between two reports (MobiSys 2017, 5: 100).
    pub every_ms: u32,
    /// Share of reports that are lost on the phone; the path may lose more.
    pub loss: f64,
    /// Delay in ms from an event to its log record being readable.
    pub log_delay_ms: u32,
    /// Detect a bottleneck before the cell (4.4); otherwise the cell is assumed to be the
    /// bottleneck.
    pub detector: bool,
    /// Report packets lost by the radio (4.3.2).
    pub losses: bool,
}

impl Default for RadioReportConfig {
    fn default() -> Self {
        // The delay is chosen here: logs come in batches of some packets.
        Self { every_ms: 100, loss: 0.0, log_delay_ms: 10, detector: true, losses: true }
    }
}
