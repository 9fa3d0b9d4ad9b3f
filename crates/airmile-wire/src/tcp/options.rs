//! Options of a study.

use airmile_model::packet::Address;

use super::bandwidth::SendRateThreshold;
use super::energy::RadioModel;
use super::rto::LINUX_MIN_RTO_NS;

/// Which tables are written; the summary needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a table each")]
pub struct Tables {
    /// `flows`.
    pub flows: bool,
    /// `tcp_events`.
    pub tcp_events: bool,
    /// `rtt_samples`.
    pub rtt_samples: bool,
    /// `inflight_samples`.
    pub inflight_samples: bool,
    /// `bandwidth_samples`.
    pub bandwidth_samples: bool,
    /// `http`.
    pub http: bool,
    /// `dns`.
    pub dns: bool,
    /// `users`.
    pub users: bool,
}

impl Tables {
    /// None of them.
    pub const NONE: Self = Self {
        flows: false,
        tcp_events: false,
        rtt_samples: false,
        inflight_samples: false,
        bandwidth_samples: false,
        http: false,
        dns: false,
        users: false,
    };

    /// All of them.
    pub const ALL: Self = Self {
        flows: true,
        tcp_events: true,
        rtt_samples: true,
        inflight_samples: true,
        bandwidth_samples: true,
        http: true,
        dns: true,
        users: true,
    };
}

/// Flows whose packets are wanted individually.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// These, by number, ascending.
    Flows(Vec<u64>),
    /// All of TCP.
    All,
}

impl Traced {
    pub(super) fn has(&self, flow: u64) -> bool {
        match self {
            Self::Flows(flows) => flows.binary_search(&flow).is_ok(),
            Self::All => true,
        }
    }
}

impl Default for Traced {
    fn default() -> Self {
        Self::Flows(Vec::new())
    }
}

/// How a capture is studied. The defaults are the paper's.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyOptions {
    /// A flow ends after this long without a packet, in nanoseconds.
    pub idle_ns: i64,
    /// A flow without an answer, and a UDP flow, ends after this long without a packet,
    /// in nanoseconds; `None`: as others.
    pub brief_idle_ns: Option<i64>,
    /// Maximum number of open flows: above it, those idle longest end.
    pub max_flows: Option<usize>,
    /// A user session ends after this long without a packet, in nanoseconds.
    pub user_gap_ns: i64,
    /// A closed TCP flow is over after this long, in nanoseconds (RFC 9293's
    /// TIME-WAIT in many systems).
    pub linger_ns: i64,
    /// The radio is idle after this long without a packet, in nanoseconds (T of 4.2).
    pub promotion_idle_ns: i64,
    /// Server ports whose connections a proxy splits.
    pub proxy_ports: Vec<u16>,
    /// Networks of the clients: address and prefix length.
    pub client_networks: Vec<(Address, u8)>,
    /// Minimum RTO of the senders, in nanoseconds: 200 ms in Linux, 1 s by RFC 6298.
    pub min_rto_ns: i64,
    /// When a window shows the available bandwidth.
    pub send_rate_threshold: SendRateThreshold,
    /// Times and powers of the radio.
    pub radio: RadioModel,
    /// Tables to write.
    pub tables: Tables,
    /// Flows whose packets are wanted one by one
    /// ([`PacketStudy::poll_trace`](super::PacketStudy::poll_trace)).
    pub traced: Traced,
}

/// A second in ns.
const S_NS: i64 = 1_000_000_000;

/// A default in whole seconds.
fn whole_s(ns: i64) -> u32 {
    u32::try_from(ns / S_NS).unwrap_or(u32::MAX)
}

/// The options in the users' units: the defaults are those of [`StudyOptions`].
impl StudyOptions {
    /// [`Self::idle_ns`] in seconds.
    #[must_use]
    pub fn idle_s(&self) -> u32 {
        whole_s(self.idle_ns)
    }

    /// [`Self::promotion_idle_ns`] in seconds.
    #[must_use]
    pub fn promotion_idle_s(&self) -> u32 {
        whole_s(self.promotion_idle_ns)
    }

    /// The radio's tail in seconds.
    #[must_use]
    pub fn tail_s(&self) -> u32 {
        whole_s(self.radio.tail_ns)
    }

    /// [`Self::min_rto_ns`] in milliseconds.
    #[must_use]
    pub fn min_rto_ms(&self) -> u32 {
        u32::try_from(self.min_rto_ns / 1_000_000).unwrap_or(u32::MAX)
    }
}

impl Default for StudyOptions {
    fn default() -> Self {
        Self {
            idle_ns: 3600 * S_NS,
            brief_idle_ns: None,
            max_flows: None,
            user_gap_ns: 3600 * S_NS,
            linger_ns: 60 * S_NS,
            promotion_idle_ns: 13 * S_NS,
            proxy_ports: vec![80, 8080],
            client_networks: Vec::new(),
            min_rto_ns: LINUX_MIN_RTO_NS,
            send_rate_threshold: SendRateThreshold::Fixed(30e6),
            radio: RadioModel::default(),
            tables: Tables::NONE,
            traced: Traced::default(),
        }
    }
}
