//! Scenarios: pure data that determines a run completely, together with its seed.

mod apps;
mod cell;
mod core;
mod file;
mod link;
mod proxy;
mod quic;
mod radio_report;
mod rrc;
mod tcp;
mod traffic;
mod uplink_queue;
mod validate;
mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::apps::{AppConfig, OtherConfig, TransportKind};
pub use self::cell::{
    CellConfig, NrConfig, RlcConfig, SchedulerKind, SecondaryConfig, SplitConfig, UplinkConfig,
};
pub use self::core::{CoreConfig, PathConfig, RateLimit};
pub use self::file::Cause;
pub use self::link::{LinkConfig, LinkTrace, LinkTraceError, MeasurementConfig, TraceFiles};
pub use self::proxy::{ProxyConfig, ProxyPort};
pub use self::quic::{QuicConfig, QuicControl};
pub use self::radio_report::RadioReportConfig;
pub use self::rrc::{DrxConfig, RrcConfig};
pub use self::tcp::{AckConfig, LossDetection, ReceiveConfig, RtoConfig, RttSource, TcpConfig};
pub use self::traffic::{Competing, Traffic, WindowConfig};
pub use self::uplink_queue::{Discipline, ModemLogConfig, UplinkQueueConfig};
pub use self::workload::{Abr, VideoConfig, WebConfig, Workload};

pub(crate) use self::cell::MAX_TRANSMISSIONS;
pub(crate) use self::traffic::{INITIAL_WINDOW_SEGMENTS, MSS_BYTES};

/// Default time of TTI index 0: 2026-01-05T09:00:00Z (chosen here).
pub const EPOCH_NS: i64 = 1_767_603_600_000_000_000;

/// A cell, a phone in it, and the phone's transfers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Its name, used in a run's files; absent: that of its file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it shows, in one line.
    pub about: String,
    /// Seed of every random process; the same scenario gives the same trace.
    pub seed: u64,
    /// Maximum duration of the run in ms. It ends earlier, [`Scenario::tail_ms`] after the
    /// last transfer, if all transfers have ended.
    pub duration_ms: u32,
    /// Time in ms to continue after the last transfer.
    pub tail_ms: u32,
    /// Unwrapped index of the first TTI; below 10240, so that a log of the run,
    /// whose origin is its first record's own counter, has the same indexes.
    pub first_tti: u16,
    /// Time of TTI index 0 in ns since the Unix epoch.
    pub epoch_ns: i64,
    /// The cell.
    pub cell: CellConfig,
    /// The measured phone's radio link.
    pub link: LinkConfig,
    /// The phone's measurements.
    pub measurement: MeasurementConfig,
    /// RLC AM of the data bearer, at the base station.
    pub dl_rlc: RlcConfig,
    /// RLC AM of the data bearer, at the phone.
    pub ul_rlc: RlcConfig,
    /// Uplink grants.
    pub uplink: UplinkConfig,
    /// Queueing of the measured phone's packets above its firmware's buffer; absent: the
    /// plain device queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_queue: Option<UplinkQueueConfig>,
    /// The core network beyond the base station.
    pub core: CoreConfig,
    /// The NR leg of the measured phone's bearer, if `cell` is LTE (EN-DC); absent: a
    /// single cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
    /// RRC states and DRX of the phone and the other users with bearers; absent: always
    /// connected and awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrc: Option<RrcConfig>,
    /// Other users of the cell with byte traffic instead of packets.
    pub competing: Vec<Competing>,
    /// The measured phone's applications.
    pub apps: Vec<AppConfig>,
    /// The phones' TCP.
    pub phone_tcp: TcpConfig,
    /// The servers' TCP.
    pub server_tcp: TcpConfig,
    /// QUIC of phones and servers.
    pub quic: QuicConfig,
    /// Feedback of phones to servers about their radio, if congestion control needs it.
    pub radio_reports: RadioReportConfig,
    /// A split-TCP middlebox on the measured phone's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyConfig>,
    /// Other phones with their own transports.
    pub others: Vec<OtherConfig>,
    /// In place of applications: transfers of the phone by window senders, without
    /// transports.
    pub traffic: Vec<Traffic>,
    /// Impairments that the scenario applies to its transfers on purpose.
    pub causes: Vec<Cause>,
}

impl Default for Scenario {
    /// One phone alone in a 10 MHz cell, without transfers.
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            seed: 1,
            duration_ms: 30_000,
            tail_ms: default_tail_ms(),
            first_tti: default_first_tti(),
            epoch_ns: EPOCH_NS,
            cell: CellConfig::default(),
            link: LinkConfig::default(),
            measurement: MeasurementConfig::default(),
            dl_rlc: RlcConfig::default(),
            ul_rlc: RlcConfig { poll_pdu: Some(16), ..RlcConfig::default() },
            uplink: UplinkConfig::default(),
            uplink_queue: None,
            core: CoreConfig::default(),
            split: None,
            rrc: None,
            competing: Vec::new(),
            apps: Vec::new(),
            phone_tcp: TcpConfig::default(),
            server_tcp: TcpConfig::default(),
            quic: QuicConfig::default(),
            radio_reports: RadioReportConfig::default(),
            proxy: None,
            others: Vec::new(),
            traffic: Vec::new(),
            causes: Vec::new(),
        }
    }
}

const fn default_tail_ms() -> u32 {
    500 // chosen here: long enough to see the queue stay empty
}

const fn default_first_tti() -> u16 {
    7_003 // chosen here: mid-frame, and a run over 3.2 s sees the SFN wrap
}

/// Why a scenario cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A value that the standard or the emulator does not support.
    #[error("{field}: must be {why}")]
    OutOfRange {
        /// The field.
        field: String,
        /// The allowed values.
        why: String,
    },
    /// A file that is not a scenario.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The problem.
        what: String,
    },
    /// A cause that cannot be removed.
    #[error("cause `{label}`: {what}")]
    Cause {
        /// The cause.
        label: String,
        /// The problem.
        what: String,
    },
    /// A scenario that cannot be written as a file.
    #[error("cannot be written as TOML: {0}")]
    NotToml(String),
}
