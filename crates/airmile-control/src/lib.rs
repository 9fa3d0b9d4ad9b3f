//! Congestion control without I/O: events and the current time go in, a window comes out.
//!
//! ```
//! use airmile_control::{AckEvent, ControllerKind};
//!
//! let mut control = ControllerKind::Cubic { hystart: false }.build(1448, 10 * 1448);
//! let ack = AckEvent { acked_bytes: 1448, window_limited: true, ..AckEvent::default() };
//! control.on_ack(40_000_000, &ack);
//! assert_eq!(control.cwnd_bytes(), 11 * 1448);
//! ```
//!
//! A [`Controller`] knows nothing of segments, SACK or streams: the transport reports what
//! was acknowledged, when a loss began and when a timer expired. It has no clock: every
//! call passes `now_ns`. During recovery the transport decides what to send (RFC 6937);
//! afterwards the controller limits it.
//!
//! [`qcut`] controls a queue instead of a window: the uplink queue on the device.

mod bbr3;
pub mod claw;
mod copa;
mod cqic;
mod cubic;
mod hystart;
mod new_reno;
#[cfg(test)]
mod pipe;
pub mod qcut;
mod vegas;
mod verus;
mod window;

use serde::{Deserialize, Serialize};

pub use bbr3::Bbr3;
pub use copa::Copa;
pub use cqic::Cqic;
pub use cubic::Cubic;
pub use new_reno::NewReno;
pub use vegas::Vegas;
pub use verus::Verus;

/// The information in one acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckEvent {
    /// Bytes newly acknowledged, cumulatively or by SACK.
    pub acked_bytes: u64,
    /// Round-trip time of the last acknowledged byte, if it is known.
    pub rtt_ns: Option<i64>,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt_ns: Option<i64>,
    /// Bytes in flight before the acknowledgement.
    pub flight_size_bytes: u64,
    /// Bytes in flight after it, without those that have arrived or are considered lost (RFC
    /// 6675, pipe).
    pub pipe_bytes: u64,
    /// Bytes that are considered lost since the acknowledgement before.
    pub lost_bytes: u64,
    /// Stream offset acknowledged so far, without a gap.
    pub acked_to: u64,
    /// Stream offset sent so far: a round trip ends when `acked_to` reaches the value that
    /// this had at its start.
    pub sent_to: u64,
    /// Delivery rate over the last round trip.
    pub delivery_rate_bps: Option<u64>,
    /// Whether the window, and not the application or the receiver, limited the sender.
    pub window_limited: bool,
    /// Whether the sender had nothing to send when the acknowledgement arrived.
    pub app_limited: bool,
    /// Whether the sender is repairing a loss, or the ACK is a duplicate that may indicate
    /// one: the window must not grow (RFC 5681, 3.2).
    pub in_recovery: bool,
}

/// Why a sender must slow down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionKind {
    /// Segments are considered lost.
    Loss,
    /// The network marked packets (RFC 3168).
    Ecn,
}

/// A congestion event, reported once a round trip and not once a lost segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionEvent {
    /// Kind of congestion.
    pub kind: CongestionKind,
    /// Bytes in flight when it was detected (RFC 5681, FlightSize).
    pub flight_size_bytes: u64,
    /// Bytes considered lost so far.
    pub lost_bytes: u64,
}

/// Determines how much data a sender may have in flight, and how fast it may send.
///
/// All times are nanoseconds of one monotonic clock.
pub trait Controller: std::fmt::Debug + Send + Sync {
    /// Name of the controller, as in `ss` and scenario files.
    fn name(&self) -> &'static str;

    /// Bytes were sent; `flight_size_bytes` includes them.
    fn on_sent(&mut self, now_ns: i64, sent_bytes: u64, flight_size_bytes: u64) {
        let _ = (now_ns, sent_bytes, flight_size_bytes);
    }

    /// An acknowledgement arrived.
    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent);

    /// Congestion was detected and recovery begins.
    fn on_congestion(&mut self, now_ns: i64, event: &CongestionEvent);

    /// The retransmission timer expired. `again` when it had expired for the
    /// same data before (RFC 5681, 3.1: `ssthresh` is then held).
    fn on_rto(&mut self, now_ns: i64, flight_size_bytes: u64, again: bool);

    /// Persistent congestion: as after a timeout, but with QUIC's minimum window of two
    /// datagrams (RFC 9002, 7.6.2).
    fn on_persistent_congestion(&mut self, now_ns: i64, flight_size_bytes: u64);

    /// The last [`on_congestion`](Self::on_congestion) or [`on_rto`](Self::on_rto) was
    /// spurious: all data had arrived (RFC 4015).
    fn on_spurious(&mut self, now_ns: i64);

    /// Sending resumes after nothing was in flight for `idle_ns`, longer than the
    /// retransmission timeout `rto_ns`, and the sender restarts its window (RFC 2861).
    fn on_restart(&mut self, now_ns: i64, idle_ns: i64, rto_ns: i64);

    /// The application has used at most `used_bytes` of the window for a retransmission
    /// timeout, and the sender lets the window decay (RFC 2861, 3).
    fn on_unused(&mut self, now_ns: i64, used_bytes: u64) {
        let _ = (now_ns, used_bytes);
    }

    /// Feedback of the client about its radio arrived (MobiSys 2017); most controllers
    /// ignore it.
    fn on_radio(&mut self, now_ns: i64, feedback: &claw::Feedback) {
        let _ = (now_ns, feedback);
    }

    /// The path's segment size became known or changed.
    fn on_mss(&mut self, mss_bytes: u64);

    /// Congestion window in bytes.
    fn cwnd_bytes(&self) -> u64;

    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    fn ssthresh_bytes(&self) -> u64;

    /// The pacing rate in bit/s; `None`: the transport chooses.
    fn pacing_rate_bps(&self) -> Option<u64> {
        None
    }

    /// Whether the window is in slow start.
    fn in_slow_start(&self) -> bool {
        self.cwnd_bytes() < self.ssthresh_bytes()
    }

    /// A boxed copy.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// The controllers that scenarios can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "name", deny_unknown_fields)]
pub enum ControllerKind {
    /// RFC 5681 and 6582.
    NewReno,
    /// RFC 9438.
    Cubic {
        /// Leave slow start by delay (RFC 9406).
        #[serde(default)]
        hystart: bool,
    },
    /// Brakmo and Peterson 1995.
    Vegas,
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr3 {
        /// Seed of the waits between probes.
        #[serde(default, skip_serializing_if = "is_zero")]
        seed: u64,
    },
    /// Arun and Balakrishnan, NSDI 2018.
    Copa {
        /// Delay in ms that the radio adds without a queue, and that Copa therefore ignores.
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        radio_delay_ms: u32,
    },
    /// Cubic limited by the window that the client's radio allows (MobiSys 2017): needs a
    /// reader of the client's modem log.
    Claw {
        /// The highest rate in bit/s that a client may ask for; absent: 100 Mbit/s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_bps: Option<u64>,
        /// Trust the client even if the path does not deliver its window.
        #[serde(default, skip_serializing_if = "is_false")]
        trust_client: bool,
    },
    /// A window derived from the radio's allocations to the client (HotMobile 2015): needs
    /// a reader of the client's modem log.
    Cqic,
    /// Zaki et al., SIGCOMM 2015.
    Verus {
        /// Length of an epoch in ms (Verus paper: 5; CLAW paper: 500).
        #[serde(default = "claw_paper_epoch")]
        epoch_ms: u32,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero_ms(value: &u32) -> bool {
    *value == 0
}

const fn claw_paper_epoch() -> u32 {
    500
}

/// What a controller needs to know about the client's radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RadioNeed {
    /// PRBs free for the client: its own and idle ones.
    Free,
    /// PRBs allocated to the client.
    Allocated,
}

impl Default for ControllerKind {
    fn default() -> Self {
        Self::Cubic { hystart: true }
    }
}

impl ControllerKind {
    /// A controller at its start, with the given initial window (RFC 6928).
    #[must_use]
    pub fn build(self, mss_bytes: u64, initial_window_bytes: u64) -> Box<dyn Controller> {
        match self {
            Self::NewReno => Box::new(NewReno::new(mss_bytes, initial_window_bytes)),
            Self::Cubic { hystart } => {
                Box::new(Cubic::new(mss_bytes, initial_window_bytes, hystart))
            }
            Self::Vegas => Box::new(Vegas::new(mss_bytes, initial_window_bytes)),
            Self::Bbr3 { seed } => Box::new(Bbr3::new(mss_bytes, initial_window_bytes, seed)),
            Self::Copa { radio_delay_ms } => {
                Box::new(Copa::new(mss_bytes, initial_window_bytes, radio_delay_ms))
            }
            Self::Claw { limit_bps, trust_client } => {
                let mut options = claw::ClawOptions::default();
                options.limits.rate_bps = limit_bps.unwrap_or(options.limits.rate_bps);
                if trust_client {
                    options.distrust_ns = 0;
                }
                Box::new(claw::Claw::new(mss_bytes, initial_window_bytes, options))
            }
            Self::Cqic => Box::new(Cqic::new(mss_bytes, initial_window_bytes)),
            Self::Verus { epoch_ms } => {
                Box::new(Verus::new(mss_bytes, initial_window_bytes, epoch_ms))
            }
        }
    }

    /// CLAW at its defaults.
    #[must_use]
    pub const fn claw() -> Self {
        Self::Claw { limit_bps: None, trust_client: false }
    }

    /// What it needs to know about the client's radio; most need nothing.
    #[must_use]
    pub const fn radio_need(self) -> Option<RadioNeed> {
        match self {
            Self::Claw { .. } => Some(RadioNeed::Free),
            Self::Cqic => Some(RadioNeed::Allocated),
            Self::NewReno
            | Self::Cubic { .. }
            | Self::Vegas
            | Self::Bbr3 { .. }
            | Self::Copa { .. }
            | Self::Verus { .. } => None,
        }
    }
}
