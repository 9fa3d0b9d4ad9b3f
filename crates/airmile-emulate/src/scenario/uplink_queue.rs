//! What queues the phone's packets above the firmware's buffer.

use airmile_control::qcut::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queueing discipline of the measured phone's system, above the firmware's
/// buffer, in place of the plain device queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UplinkQueueConfig {
    /// Which.
    pub discipline: Discipline,
    /// Packets that it holds before it drops.
    #[serde(default = "txqueuelen")]
    pub packets: u32,
    /// What the phone's modem tells, and when.
    #[serde(default)]
    pub modem_log: ModemLogConfig,
}

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// One queue; a packet goes down as soon as the firmware has room.
    Fifo,
    /// The same with CoDel (RFC 8289).
    Codel {
        /// Its target in ms.
        target_ms: u32,
    },
    /// A queue for each flow, with CoDel (RFC 8290).
    FqCodel {
        /// Its target in ms.
        target_ms: u32,
    },
    /// One queue in which each flow has so many bytes at most, the rest waits in
    /// its socket: what TCP Small Queues do where the modem's driver takes packets
    /// off the socket's account.
    Tsq {
        /// That many (Linux's tcp_limit_output_bytes, then 262,144).
        flow_bytes: u64,
    },
    /// QCut by the modem's log.
    Qcut {
        /// What the firmware may hold: `{ delay_ms = 20 }` or `{ bytes = 5000 }`.
        limit: Limit,
    },
    /// The same gate by round trips alone.
    RoundTrips {
        /// What the firmware may hold.
        limit: Limit,
    },
    /// A shaper whose rate probes set, by cake-autorate's defaults.
    Autorate {
        /// The rate to begin with, in bit/s, which its user has to know.
        start_bps: u64,
    },
}

/// The phone's own modem log as its system sees it: batches, late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModemLogConfig {
    /// Transmissions that are written at once, at most (0xB139: 11).
    pub transmissions: u32,
    /// Without another transmission for so long, in ms, they are written (0xB139: 10).
    pub quiet_ms: u32,
    /// Buffer status reports and samples of the buffer are written each so many ms
    /// (0xB066: 40 samples of a ms; 0xB064: tens of ms).
    pub buffer_ms: u32,
    /// Whether the buffer is sampled (0xB066), beside the reports that are sent.
    pub samples: bool,
    /// From writing to reading in ms (chosen here: a port that is polled).
    pub delay_ms: u32,
    /// Share of the batches that are lost on the way, in percent.
    pub lost_percent: u32,
    /// By how much the times in the log are ahead of the host's clock, in ms.
    pub ahead_ms: u32,
    /// From the gate to the firmware's buffer in ms: the host's driver and the port.
    pub host_ms: u32,
    /// First and end ms of the run in which nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<(u32, u32)>,
}

impl Default for ModemLogConfig {
    fn default() -> Self {
        Self {
            transmissions: 11,
            quiet_ms: 10,
            buffer_ms: 40,
            samples: true,
            delay_ms: 5,
            lost_percent: 0,
            ahead_ms: 0,
            host_ms: 0,
            silent_ms: None,
        }
    }
}

const fn txqueuelen() -> u32 {
    1_000 // Linux's txqueuelen
}
