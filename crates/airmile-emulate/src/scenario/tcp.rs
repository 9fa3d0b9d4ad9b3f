//! Configuration of a host's TCP.

use airmile_control::ControllerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MS: i64 = 1_000_000;

/// Configuration of a host's TCP. The default is a current Linux host, except as documented
/// for a field; [`TcpConfig::of_2013`] is one of the time of the LTE measurements.
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
    /// How round trips are measured.
    pub rtt_source: RttSource,
    /// Also take RTT samples from SACK blocks, and let them restart the retransmission
    /// timer, as Linux does since about 3.10.
    pub rtt_from_sack: bool,
    /// How losses are detected.
    pub loss_detection: LossDetection,
    /// Spread the reduction over the recovery (RFC 6937); otherwise the window is
    /// `ssthresh` at once (RFC 6675).
    pub proportional_reduction: bool,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Tail loss probe (RFC 8985, 7).
    pub tail_loss_probe: bool,
    /// Undo a reduction that timestamps or D-SACK show to be spurious (RFC 4015).
    pub undo_spurious: bool,
    /// Slow-start restart after idle time (RFC 2861;
    /// `net.ipv4.tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Pace segments at this many hundredths of `cwnd / srtt`, if the controller does not
    /// set a rate; `None`: send in bursts.
    pub pacing_percent: Option<u32>,
    /// Delay small segments while data is in flight (RFC 9293, 3.7.4).
    pub nagle: bool,
    /// When acknowledgements are sent.
    pub ack: AckConfig,
    /// Receive buffer.
    pub receive: ReceiveConfig,
    /// Send buffer in bytes: data that the application may write beyond the acknowledged
    /// one.
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
    /// A Linux server of 2012, as measured by Huang et al. (SIGCOMM 2013): no RACK, tail
    /// loss probe or RTT samples from SACK, timestamps of 4 ms (`HZ=250`).
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
    /// Timeout before the first measurement ((2.1): 1 s).
    pub initial_ns: i64,
    /// Minimum timeout ((2.4): 1 s; Linux: 200 ms).
    pub min_ns: i64,
    /// Maximum timeout ((2.5)).
    pub max_ns: i64,
    /// Apply the minimum to the part above `srtt`, as in Linux, instead of to the whole.
    pub min_is_above_srtt: bool,
    /// Consecutive timeouts after which the connection is given up
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
    /// As in RFC 6298: a minimum of 1 s.
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
    /// From the send time of the acknowledged data, if it was sent only once (Karn's rule);
    /// otherwise from timestamps, if available.
    SentTimes,
    /// From timestamps (RFC 7323, 4), in their ticks; without timestamps from send times.
    Timestamps,
}

/// How losses are detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// Three duplicate ACKs or SACK information (RFC 6675, IsLost).
    DupAck,
    /// By time, from later segments that have arrived (RFC 8985); also detects lost
    /// retransmissions. Needs SACK; without it, as `DupAck`.
    Rack,
}

/// When acknowledgements are sent (RFC 5681, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AckConfig {
    /// An ACK for this many full segments.
    pub every_segments: u32,
    /// Maximum delay of an ACK (Linux: 40 ms; the RFC: 500 ms).
    pub delay_ns: i64,
    /// Number of initial segments that are acknowledged individually (Linux: 16).
    pub quick_segments: u32,
}

impl Default for AckConfig {
    fn default() -> Self {
        Self { every_segments: 2, delay_ns: 40 * MS, quick_segments: 16 }
    }
}

/// Receive buffer: data in flight from the peer and data that the application has not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiveConfig {
    /// Initial size, in bytes.
    pub buffer_bytes: u64,
    /// Maximum size for auto-tuning; no auto-tuning if at or below `buffer_bytes`.
    pub max_buffer_bytes: u64,
}

impl Default for ReceiveConfig {
    fn default() -> Self {
        // Linux: 64 KiB at first, net.ipv4.tcp_rmem's third value 6 MiB.
        Self { buffer_bytes: 65_535, max_buffer_bytes: 6 << 20 }
    }
}
