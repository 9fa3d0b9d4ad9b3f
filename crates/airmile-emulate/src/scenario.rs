//! What is emulated: a scenario is data, and everything that a run does
//! follows from it and its seed.

use airmile_model::radio::LTE_BANDWIDTHS_PRB;
use serde::Deserialize;

use crate::flow::{INITIAL_WINDOW_SEGMENTS, MSS_BYTES};

/// A cell, a phone in it, and what the phone transfers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of every random process; the same scenario gives the same trace.
    pub seed: u64,
    /// Longest run in ms. It ends earlier, [`Scenario::tail_ms`] after the last
    /// transfer, if all transfers have ended.
    pub duration_ms: u32,
    /// Time in ms to go on after the last transfer.
    #[serde(default = "default_tail_ms")]
    pub tail_ms: u32,
    /// Unwrapped index of the first TTI; below 10240, so that a log of the run,
    /// whose origin is its first record's own counter, has the same indexes.
    #[serde(default = "default_first_tti")]
    pub first_tti: u16,
    /// The cell.
    #[serde(default)]
    pub cell: CellConfig,
    /// The measured phone's radio link.
    #[serde(default)]
    pub link: LinkConfig,
    /// What the phone measures.
    #[serde(default)]
    pub measurement: MeasurementConfig,
    /// RLC AM of the data bearer, at the base station.
    #[serde(default)]
    pub dl_rlc: RlcConfig,
    /// RLC AM of the data bearer, at the phone.
    #[serde(default)]
    pub ul_rlc: RlcConfig,
    /// Uplink grants.
    #[serde(default)]
    pub uplink: UplinkConfig,
    /// The network behind the base station.
    #[serde(default)]
    pub core: CoreConfig,
    /// The other users of the cell.
    #[serde(default)]
    pub competing: Competing,
    /// What the phone transfers.
    pub traffic: Vec<Traffic>,
}

const fn default_tail_ms() -> u32 {
    500 // chosen here: long enough to see the queue stay empty
}

const fn default_first_tti() -> u16 {
    7_003 // chosen here: mid-frame, and a run over 3.2 s sees the SFN wrap
}

/// How the cell shares a TTI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// Proportional fair in time: one user holds a TTI, as on the carriers that
    /// BurstTracker measured (section 3.2).
    WholeTti,
    /// Every user with data gets an equal share of the PRBs of every TTI.
    RoundRobin,
}

/// The cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CellConfig {
    /// Bandwidth in PRB pairs: 6, 15, 25, 50, 75 or 100.
    pub n_prb: u16,
    /// Physical cell identity, 0 to 503.
    pub pci: u16,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Band that the EARFCN is of.
    pub band: u32,
    /// Antenna ports: 1, or 2 (transmit diversity).
    pub n_tx_antennas: u8,
    /// Scheduler.
    pub scheduler: SchedulerKind,
    /// Power of a data resource element of one port over that of a reference
    /// signal's: below 1 where reference signals are boosted (TS 36.213, 5.2).
    pub data_to_reference_power: f64,
}

impl Default for CellConfig {
    fn default() -> Self {
        Self {
            n_prb: 50,
            pci: 77,
            earfcn: 1_300,
            band: 3,
            n_tx_antennas: 2,
            scheduler: SchedulerKind::WholeTti,
            // P_A = -3 dB, P_B = 1: usual with two ports (TS 36.213, table 5.2-1).
            data_to_reference_power: 0.5,
        }
    }
}

/// The radio link of the measured phone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Mean downlink SNR in dB.
    pub snr_mean_db: f64,
    /// Standard deviation of the fading in dB.
    pub fading_sigma_db: f64,
    /// Time in ms over which the fading's correlation falls to 1/e.
    pub fading_coherence_ms: f64,
    /// Mean RSRP in dBm; noise and interference follow from it and the SNR.
    pub rsrp_mean_dbm: f64,
    /// Mean uplink SNR in dB.
    pub ul_snr_mean_db: f64,
    /// Share of first transmissions that fail, which link adaptation aims at.
    pub bler_target: f64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            snr_mean_db: 14.0,
            fading_sigma_db: 3.0,
            // About a walking phone at 1.8 GHz (chosen here: 3 km/h gives a
            // Doppler shift of 5 Hz, a coherence time of some 80 ms).
            fading_coherence_ms: 80.0,
            rsrp_mean_dbm: -95.0,
            ul_snr_mean_db: 12.0,
            bler_target: 0.1,
        }
    }
}

/// How the phone measures the cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MeasurementConfig {
    /// TTIs between two measurements.
    pub period_ms: u32,
    /// Standard deviation in dB of a power reading's error.
    pub error_sigma_db: f64,
    /// Standard deviation in dB of an SNR reading's error.
    pub snr_error_sigma_db: f64,
    /// Share of the mean noise that is a neighbour cell's data: it comes and
    /// goes with that cell's load, redrawn for each measurement.
    pub interference_share: f64,
    /// Load of that neighbour: the share of measurements that it disturbs.
    pub interference_load: f64,
    /// Whether receive antenna 1 reads raw zeros, as one that is off.
    pub rx1_stuck: bool,
}

impl Default for MeasurementConfig {
    fn default() -> Self {
        Self {
            period_ms: 40, // as in real logs; connected and active, also 10
            // Chosen here.
            error_sigma_db: 0.2,
            snr_error_sigma_db: 0.2,
            interference_share: 0.0,
            interference_load: 0.5,
            rx1_stuck: false,
        }
    }
}

/// An RLC AM sender (TS 36.322; the parameters are those of TS 36.331, 6.3.2,
/// RLC-Config).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlcConfig {
    /// PDUs after which a poll is forced; absent: infinity.
    pub poll_pdu: Option<u32>,
    /// Bytes after which a poll is forced; absent: infinity.
    pub poll_byte: Option<u64>,
    /// t-PollRetransmit in ms.
    pub t_poll_retransmit_ms: u32,
    /// t-Reordering of the receiving side in ms.
    pub t_reordering_ms: u32,
    /// t-StatusProhibit of the receiving side in ms.
    pub t_status_prohibit_ms: u32,
}

impl Default for RlcConfig {
    fn default() -> Self {
        // Values that networks signal for the uplink (chosen here).
        Self {
            poll_pdu: Some(32),
            poll_byte: Some(100_000),
            t_poll_retransmit_ms: 60,
            t_reordering_ms: 40,
            t_status_prohibit_ms: 20,
        }
    }
}

/// How the uplink is granted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UplinkConfig {
    /// Most PRB pairs that the phone gets in a TTI.
    pub max_prb: u16,
    /// Scheduling request period in ms (TS 36.213, table 10.1.5-1).
    pub sr_period_ms: u32,
    /// Least time between two grants of new data, in TTIs: 1 leaves the uplink
    /// to the phone, n gives it every n-th TTI.
    pub grant_every_tti: u32,
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self { max_prb: 20, sr_period_ms: 10, grant_every_tti: 1 }
    }
}

/// The network between base station and server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoreConfig {
    /// Round trip between base station and server in ms.
    pub rtt_ms: u32,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self { rtt_ms: 30 }
    }
}

/// The other users' traffic. They have a queue and HARQ, no RLC.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Competing {
    /// The phone is alone.
    #[default]
    None,
    /// Files that arrive whole, with pauses between them.
    Sporadic {
        /// Users.
        users: u16,
        /// Mean file size in bytes (geometric).
        mean_file_bytes: u32,
        /// Mean pause in ms between a file's end and the next (geometric).
        mean_pause_ms: u32,
    },
    /// Queues that never run empty.
    FullBuffer {
        /// Users.
        users: u16,
    },
}

impl Competing {
    /// How many.
    #[must_use]
    pub const fn users(&self) -> u16 {
        match self {
            Self::None => 0,
            Self::Sporadic { users, .. } | Self::FullBuffer { users } => *users,
        }
    }
}

/// A window-limited sender: slow start from 10 segments (RFC 6928), doubling
/// each round trip, up to a window at which it stays. No loss, no congestion
/// avoidance: it is no TCP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowConfig {
    /// The window at which growth ends, in bytes: the path's bandwidth-delay
    /// product and the queue that is to stand at the base station.
    pub max_bytes: u32,
    /// Whether a pause longer than the retransmission time-out puts the window
    /// back to 10 segments (RFC 5681, 4.1).
    pub restart_after_idle: bool,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { max_bytes: 400_000, restart_after_idle: true }
    }
}

/// Something that the phone transfers. Each starts with a request on the uplink.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// A file from a server that sends as its window allows.
    Download {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// The sender.
        #[serde(default)]
        window: WindowConfig,
    },
    /// A file from a server that paces its packets.
    Paced {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// Rate in bits per second, IP headers included.
        rate_bps: u64,
    },
    /// Segments, fetched one after the other; with a full player buffer, each
    /// waits for room. Every segment is a transfer, `ID-N` from 1 on.
    Video {
        /// Name of the session.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Segments.
        segments: u32,
        /// Playing time of a segment in ms.
        segment_ms: u32,
        /// Bits of video per second of playing time.
        bitrate_bps: u64,
        /// Playing time in ms that the player holds before it pauses.
        buffer_ms: u32,
        /// The sender, one connection for all segments.
        #[serde(default)]
        window: WindowConfig,
    },
    /// A file from the phone to a server.
    Upload {
        /// Name of the transfer.
        id: String,
        /// Start in ms of the run.
        start_ms: u32,
        /// Size in bytes.
        bytes: u64,
        /// The sender.
        #[serde(default)]
        window: WindowConfig,
    },
}

/// Why a scenario cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A value outside of what the standard or the emulator can do.
    #[error("{field}: {why}")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// What it may be.
        why: &'static str,
    },
}

impl Scenario {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let link = &self.link;
        let measurement = &self.measurement;
        let rlc_timers = |rlc: &RlcConfig| rlc.t_poll_retransmit_ms > 0 && rlc.t_reordering_ms > 0;
        let finite = [
            link.snr_mean_db,
            link.fading_sigma_db,
            link.rsrp_mean_dbm,
            link.ul_snr_mean_db,
            self.cell.data_to_reference_power,
            measurement.error_sigma_db,
            measurement.snr_error_sigma_db,
        ];
        let checks = [
            (self.duration_ms > 0, "duration_ms", "at least 1"),
            (self.first_tti < 10_240, "first_tti", "below 10240"),
            (LTE_BANDWIDTHS_PRB.contains(&self.cell.n_prb), "cell.n_prb", "a bandwidth of LTE"),
            (self.cell.pci < 504, "cell.pci", "below 504"),
            (matches!(self.cell.n_tx_antennas, 1 | 2), "cell.n_tx_antennas", "1 or 2"),
            (finite.iter().all(|x| x.is_finite()), "link", "finite numbers"),
            (link.fading_sigma_db >= 0.0, "link.fading_sigma_db", "0 or more"),
            (link.fading_coherence_ms > 0.0, "link.fading_coherence_ms", "above 0"),
            (
                link.bler_target > 0.0 && link.bler_target < 0.5,
                "link.bler_target",
                "between 0 and 0.5",
            ),
            (self.cell.data_to_reference_power > 0.0, "cell.data_to_reference_power", "above 0"),
            (measurement.period_ms > 0, "measurement.period_ms", "above 0"),
            (
                measurement.error_sigma_db >= 0.0 && measurement.snr_error_sigma_db >= 0.0,
                "measurement",
                "deviations of 0 or more",
            ),
            (
                (0.0..=1.0).contains(&measurement.interference_share),
                "measurement.interference_share",
                "0 to 1",
            ),
            (
                measurement.interference_load > 0.0 && measurement.interference_load <= 1.0,
                "measurement.interference_load",
                "above 0, up to 1",
            ),
            (rlc_timers(&self.dl_rlc), "dl_rlc", "timers above 0"),
            (rlc_timers(&self.ul_rlc), "ul_rlc", "timers above 0"),
            (self.uplink.max_prb >= 4, "uplink.max_prb", "at least 4"),
            (self.uplink.max_prb <= self.cell.n_prb, "uplink.max_prb", "at most cell.n_prb"),
            (self.uplink.sr_period_ms > 0, "uplink.sr_period_ms", "above 0"),
            (self.uplink.grant_every_tti > 0, "uplink.grant_every_tti", "above 0"),
            (self.competing.users() <= 1_000, "competing.users", "at most 1000"),
            (
                self.traffic.iter().all(Traffic::is_possible),
                "traffic",
                "sizes and rates above 0, windows of 10 segments or more",
            ),
        ];
        match checks.into_iter().find(|(fine, ..)| !fine) {
            Some((_, field, why)) => Err(ScenarioError::OutOfRange { field, why }),
            None => Ok(()),
        }
    }
}

impl Traffic {
    fn is_possible(&self) -> bool {
        let opens = |window: &WindowConfig| {
            u64::from(window.max_bytes) >= INITIAL_WINDOW_SEGMENTS * MSS_BYTES
        };
        match self {
            Self::Download { bytes, window, .. } | Self::Upload { bytes, window, .. } => {
                *bytes > 0 && opens(window)
            }
            Self::Paced { bytes, rate_bps, .. } => *bytes > 0 && *rate_bps > 0,
            Self::Video { segments, segment_ms, bitrate_bps, window, .. } => {
                let bits = bitrate_bps.checked_mul(u64::from(*segment_ms));
                *segments > 0 && bits.is_some_and(|bits| bits >= 8_000) && opens(window)
            }
        }
    }
}
