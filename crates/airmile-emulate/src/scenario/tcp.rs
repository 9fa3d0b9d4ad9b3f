//! What a host's TCP is set to.

use airmile_control::ControllerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MS: i64 = 1_000_000;

/// What a host's TCP is set to. The default is a Linux host of today, of which
/// the fields say what differs; [`TcpConfig::of_2013`] is one of the time of the
/// LTE measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Maximum segment size to announce, in bytes without options.
    pub mss_bytes: u16,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window_segments: u32,
    /// Congestion control.
    pub control: ControllerKind,
    /// Offer and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// One tick of the timestamp clock (Huang et al. 2013 call it G).
    pub timestamp_tick_ns: i64,
    /// Offer and use SACK (RFC 2018).
    pub sack: bool,
    /// Report duplicates (RFC 2883).
    pub d_sack: bool,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// Which round trips are measured.
    pub rtt_source: RttSource,
    /// Take round-trip times from SACK blocks too, and let them restart the
    /// retransmission timer, as Linux does since 3.10 or so.
    pub rtt_from_sack: bool,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Spread the reduction over the recovery (RFC 6937); else the window is
    /// `ssthresh` at once (RFC 6675).
    pub proportional_reduction: bool,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Tail loss probe (RFC 8985, 7).
    pub tail_loss_probe: bool,
    /// Undo a reduction that timestamps or D-SACK show to be for nothing
    /// (RFC 4015).
    pub undo_spurious: bool,
    /// Slow-start restart after idle time (RFC 2861;
    /// `net.ipv4.tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Space segments by this many hundredths of `cwnd / srtt`, where the
    /// controller asks for no rate itself; `None`: send in bursts.
    pub pacing_percent: Option<u32>,
    /// Wait with small segments while data is in flight (RFC 9293, 3.7.4).
    pub nagle: bool,
    /// When acknowledgements are sent.
    pub ack: AckConfig,
    /// Receive buffer.
    pub receive: ReceiveConfig,
    /// Send buffer in bytes: what the application may write beyond what is
    /// acknowledged.
    pub send_buffer_bytes: u64,
    /// Probe a silent peer after this long (RFC 9293, 3.8.4).
    pub keep_alive_ns: Option<i64>,
    /// How long a closed connection is kept (RFC 9293, 3.6.1).
    pub time_wait_ns: i64,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss_bytes: 1460,
            initial_window_segments: 10,
            control: ControllerKind::default(),
            timestamps: true,
            timestamp_tick_ns: MS,
            sack: true,
            d_sack: true,
            rto: RtoConfig::default(),
            rtt_source: RttSource::SentTimes,
            rtt_from_sack: true,
            loss_detection: LossDetection::Rack,
            proportional_reduction: true,
            limited_transmit: true,
            tail_loss_probe: true,
            undo_spurious: true,
            slow_start_after_idle: true,
            pacing_percent: None,
            nagle: false,
            ack: AckConfig::default(),
            receive: ReceiveConfig::default(),
            send_buffer_bytes: 4 << 20,
            keep_alive_ns: None,
            time_wait_ns: 60_000 * MS,
        }
    }
}

impl TcpConfig {
    /// A Linux server of 2012, as Huang et al. (SIGCOMM 2013) measured them:
    /// no RACK, tail loss probe or round trips from SACK, timestamps of 4 ms
    /// (`HZ=250`).
    #[must_use]
    pub fn of_2013() -> Self {
        Self {
            control: ControllerKind::Cubic { hystart: false },
            timestamp_tick_ns: 4 * MS,
            rtt_source: RttSource::Timestamps,
            rtt_from_sack: false,
            loss_detection: LossDetection::DupAck,
            proportional_reduction: false,
            tail_loss_probe: false,
            ..Self::default()
        }
    }
}

/// Retransmission timer (RFC 6298).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RtoConfig {
    /// Before the first measurement ((2.1): 1 s).
    pub initial_ns: i64,
    /// The least ((2.4): 1 s; Linux: 200 ms).
    pub min_ns: i64,
    /// The most ((2.5)).
    pub max_ns: i64,
    /// The minimum holds for the part above `srtt`, as in Linux, and not for
    /// the whole.
    pub min_is_above_srtt: bool,
    /// Timeouts in a row after which the connection is given up
    /// (`net.ipv4.tcp_retries2`).
    pub max_retries: u32,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial_ns: 1000 * MS,
            min_ns: 200 * MS,
            max_ns: 120_000 * MS,
            min_is_above_srtt: true,
            max_retries: 15,
        }
    }
}

impl RtoConfig {
    /// As RFC 6298 has it: 1 s at least.
    #[must_use]
    pub fn of_rfc() -> Self {
        Self {
            initial_ns: 1000 * MS,
            min_ns: 1000 * MS,
            max_ns: 60_000 * MS,
            min_is_above_srtt: false,
            max_retries: 15,
        }
    }
}

/// How round trips are measured when data is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttSource {
    /// By when the sender sent what is acknowledged, if only once (Karn's
    /// rule); otherwise by timestamps, where there are any.
    SentTimes,
    /// By timestamps (RFC 7323, 4), in their ticks; where there are none, by
    /// the times of sending.
    Timestamps,
}

/// How losses are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// Three duplicate ACKs or what SACK says (RFC 6675, IsLost).
    DupAck,
    /// By time, from what was sent later and has arrived (RFC 8985); finds lost
    /// retransmissions, too. Needs SACK; without it, as `DupAck`.
    Rack,
}

/// When acknowledgements are sent (RFC 5681, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AckConfig {
    /// An ACK for this many full segments.
    pub every_segments: u32,
    /// The longest that an ACK waits (Linux: 40 ms; the RFC: 500 ms).
    pub delay_ns: i64,
    /// Segments at the start that are acknowledged each (Linux: 16).
    pub quick_segments: u32,
}

impl Default for AckConfig {
    fn default() -> Self {
        Self { every_segments: 2, delay_ns: 40 * MS, quick_segments: 16 }
    }
}

/// Receive buffer: what the peer may have in flight and the application has not
/// read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiveConfig {
    /// At the start, in bytes.
    pub buffer_bytes: u64,
    /// What auto-tuning may make of it; at or under `buffer_bytes` there is no
    /// auto-tuning.
    pub max_buffer_bytes: u64,
}

impl Default for ReceiveConfig {
    fn default() -> Self {
        // Linux: 64 KiB at first, net.ipv4.tcp_rmem's third value 6 MiB.
        Self { buffer_bytes: 65_535, max_buffer_bytes: 6 << 20 }
    }
}
