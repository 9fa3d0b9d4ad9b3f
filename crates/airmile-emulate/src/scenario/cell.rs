//! The cell: carriers, scheduler, bearers, uplink.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Competing;

/// Transmissions of a block before it is given up (chosen here; a usual
/// maxHARQ-Tx of TS 36.331, MAC-MainConfig).
pub(crate) const MAX_TRANSMISSIONS: u8 = 4;

/// How the cell shares a TTI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// Proportional fair in time: one user holds a TTI, as on the carriers that
    /// BurstTracker measured (section 3.2).
    WholeTti,
    /// Every user with data gets an equal share of the PRBs of every TTI.
    RoundRobin,
    /// Proportional fair in time and frequency: each resource block group goes
    /// to the user that does best on it, by its own average.
    PfFrequency,
    /// The user with the best channel holds the TTI.
    MaxCi,
    /// The user that got least holds the TTI, whatever its channel.
    BlindEqual,
}

/// The cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Bytes that a user's downlink queue holds before it drops (drop-tail).
    pub queue_bytes: u64,
    /// Transmissions of a downlink block before HARQ gives it up; RLC then repeats
    /// what was in it, if it is acknowledged.
    pub dl_harq_transmissions: u8,
    /// NR subcarrier spacing index (TS 38.211, 4.2), 0 to 2: TTIs are 1, 0.5 or
    /// 0.25 ms long. Blocks keep the sizes of LTE's tables.
    pub numerology: u8,
    /// TDD pattern, 5 or 10 TTIs of `D`, `U` and `S` (which carries no data
    /// here), as in `DSUUDDSUUD` (TS 36.211, table 4.2-2); absent: FDD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdd: Option<String>,
    /// A second carrier for the measured phone (carrier aggregation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<SecondaryConfig>,
}

/// A secondary carrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecondaryConfig {
    /// Bandwidth in PRB pairs: 6, 15, 25, 50, 75 or 100.
    pub n_prb: u16,
    /// Physical cell identity, 0 to 503.
    pub pci: u16,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Band that the EARFCN is of.
    pub band: u32,
    /// Its other users.
    pub competing: Vec<Competing>,
    /// The phone's mean SNR there over that of the primary carrier, in dB.
    pub snr_offset_db: f64,
}

impl Default for SecondaryConfig {
    fn default() -> Self {
        // Chosen here: a carrier of band 20 beside one of band 3.
        Self {
            n_prb: 50,
            pci: 78,
            earfcn: 6_300,
            band: 20,
            competing: Vec::new(),
            snr_offset_db: 2.0,
        }
    }
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
            // Deep, as in the papers: 1 s of 24 Mbit/s (chosen here).
            queue_bytes: 3_000_000,
            dl_harq_transmissions: MAX_TRANSMISSIONS,
            numerology: 0,
            tdd: None,
            secondary: None,
        }
    }
}

/// An RLC AM sender (TS 36.322; the parameters are those of TS 36.331, 6.3.2,
/// RLC-Config).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// UM in place of AM (TS 36.322, 5.1.2): what HARQ gives up is not sent again, and
    /// the receiver goes on without it after t-Reordering. No polls, no STATUS PDUs.
    #[serde(skip_serializing_if = "is_false")]
    pub unacknowledged: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(value: &bool) -> bool {
    !*value
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
            unacknowledged: false,
        }
    }
}

/// How the uplink is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UplinkConfig {
    /// Most PRB pairs that the phone gets in a TTI.
    pub max_prb: u16,
    /// Scheduling request period in ms (TS 36.213, table 10.1.5-1).
    pub sr_period_ms: u32,
    /// Least time between two grants of new data, in TTIs: 1 leaves the uplink
    /// to the phone, n gives it every n-th TTI.
    pub grant_every_tti: u32,
    /// Bytes that the phone's firmware buffers below IP; more waits in the
    /// device's queue. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware_bytes: Option<u64>,
    /// Packets that the device's queue holds before it drops.
    pub device_queue_packets: u32,
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self {
            max_prb: 20,
            sr_period_ms: 10,
            grant_every_tti: 1,
            firmware_bytes: None,
            device_queue_packets: 1_000, // Linux's txqueuelen
        }
    }
}
