//! Queueing of the phone's packets above the firmware's buffer.

use airmile_control::qcut::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queueing discipline of the measured phone's operating system, above the firmware's
/// buffer, in place of the plain device queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UplinkQueueConfig {
    /// The discipline.
    pub discipline: Discipline,
    /// Capacity in packets.
    #[serde(default = "txqueuelen")]
    pub packets: u32,
    /// Contents and timing of the phone's modem log.
    #[serde(default)]
    pub modem_log: ModemLogConfig,
}

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// One queue; a packet passes as soon as the firmware has room.
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
    /// One queue with a maximum number of bytes per flow; the rest waits in its socket: the
    /// effect of TCP Small Queues if the modem's driver removes packets from the socket's
    /// accounting.
    Tsq {
        /// This maximum (Linux's tcp_limit_output_bytes, then 262,144).
        flow_bytes: u64,
    },
    /// QCut with the modem's log.
    Qcut {
        /// Limit on the firmware's buffer: `{ delay_ms = 20 }` or `{ bytes = 5000 }`.
        limit: Limit,
    },
    /// The same gate with round trips as the only evidence.
    RoundTrips {
        /// Limit on the firmware's buffer.
        limit: Limit,
        /// The idle path's round trip in ms: then the rate is the modem log's, and neither is
        /// searched. A bound for experiments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told_base_ms: Option<u32>,
    },
    /// QCut with the modem's log; bulk uploads stop while another flow is active, whose packets
    /// pass at once. A bound for experiments.
    Stop {
        /// Limit on the firmware's buffer.
        limit: Limit,
    },
    /// The kernel's HTB, three classes with fq_codel, at a rate that follows the modem's log.
    Htb {
        /// Limit on the firmware's buffer.
        limit: Limit,
        /// Interval of the rate's changes in ms.
        #[serde(default = "shaper_ms")]
        every_ms: u32,
    },
    /// A shaper with a probe-controlled rate, with cake-autorate's defaults.
    Autorate {
        /// The initial rate in bit/s, which its user has to know.
        start_bps: u64,
    },
}

/// The phone's own modem log as seen by its operating system: in delayed batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModemLogConfig {
    /// Maximum number of transmissions written at once (0xB139: 11).
    pub transmissions: u32,
    /// They are also written after this time without another transmission, in ms (0xB139:
    /// 10).
    pub quiet_ms: u32,
    /// Interval in ms at which buffer status reports and samples of the buffer are written
    /// (0xB066: 40 samples of a ms; 0xB064: tens of ms).
    pub buffer_ms: u32,
    /// Whether the buffer is sampled (0xB066), in addition to the reports that are sent.
    pub samples: bool,
    /// Delay from writing to reading in ms (chosen here: a port that is polled).
    pub delay_ms: u32,
    /// Maximum additional delay of a batch in ms; it varies from batch to batch.
    pub jitter_ms: u32,
    /// Share of lost batches, in percent.
    pub lost_percent: u32,
    /// Offset by which the log's times are ahead of the host's clock, in ms.
    pub ahead_ms: u32,
    /// Delay from the gate to the firmware's buffer in ms: the host's driver and the port.
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
            jitter_ms: 0,
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

const fn shaper_ms() -> u32 {
    20 // `airmile qcut run`
}
