//! The cell: carriers, scheduler, bearers, uplink.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Competing;

/// Maximum transmissions of a block (chosen here; a typical maxHARQ-Tx of TS 36.331,
/// MAC-MainConfig).
pub(crate) const MAX_TRANSMISSIONS: u8 = 4;

/// How the cell shares a TTI among users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// Proportional fair in time: one user holds a TTI, as on the carriers that
    /// BurstTracker measured (section 3.2).
    WholeTti,
    /// Every user with data gets an equal share of the PRBs of every TTI.
    RoundRobin,
    /// Proportional fair in time and frequency: each resource block group goes to the user
    /// with the best quality on it relative to its own average.
    PfFrequency,
    /// The user with the best channel gets the TTI.
    MaxCi,
    /// The user with the lowest throughput gets the TTI, whatever its channel.
    BlindEqual,
}

/// The cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellConfig {
    /// Bandwidth in PRB pairs: 6, 15, 25, 50, 75 or 100; for NR the PRBs of the bandwidth
    /// part, 11 to 275.
    pub n_prb: u16,
    /// Physical cell identity, 0 to 503; for NR up to 1007.
    pub pci: u16,
    /// Downlink EARFCN; for NR the NR-ARFCN.
    pub earfcn: u32,
    /// Band of the EARFCN.
    pub band: u32,
    /// Antenna ports: 1, or 2 (transmit diversity).
    pub n_tx_antennas: u8,
    /// Scheduler.
    pub scheduler: SchedulerKind,
    /// Power of a data resource element of one port relative to a reference signal's: below
    /// 1 if reference signals are boosted (TS 36.213, 5.2).
    pub data_to_reference_power: f64,
    /// Capacity of a user's downlink queue in bytes (drop-tail).
    pub queue_bytes: u64,
    /// Transmissions of a downlink block before HARQ gives it up; RLC in acknowledged mode
    /// then retransmits its contents.
    pub dl_harq_transmissions: u8,
    /// NR subcarrier spacing index (TS 38.211, 4.2), 0 to 3: TTIs are 1, 0.5, 0.25 or
    /// 0.125 ms long. Without [`nr`](Self::nr), blocks keep the sizes of LTE's tables.
    pub numerology: u8,
    /// NR carriers: block sizes by TS 38.214, bandwidth parts in place of LTE's bandwidths,
    /// MAC subheaders and RLC of NR. Absent: LTE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr: Option<NrConfig>,
    /// TDD pattern, 5 or 10 TTIs of `D`, `U` and `S` (which carries no data
    /// here), as in `DSUUDDSUUD` (TS 36.211, table 4.2-2); absent: FDD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdd: Option<String>,
    /// A second carrier for the measured phone (carrier aggregation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<SecondaryConfig>,
}

/// Configuration of NR carriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NrConfig {
    /// Spatial layers of the downlink, 1 to 4; the uplink has one.
    pub layers: u8,
    /// MCS table up to 256QAM in the downlink (TS 38.214, table 5.1.3.1-2), otherwise up to
    /// 64QAM.
    pub qam256: bool,
    /// Symbols of a slot that carry data, 1 to 14.
    pub symbols: u8,
    /// Resource elements of a PRB used by DMRS.
    pub dmrs_res: u8,
    /// Length of RLC's sequence numbers, 12 or 18 bits (sn-FieldLength of TS 38.331).
    pub rlc_sn_bits: u8,
}

impl Default for NrConfig {
    fn default() -> Self {
        // Chosen here: a typical configuration of band n78 with two control symbols and one
        // symbol of DMRS type 1 without data.
        Self { layers: 2, qam256: true, symbols: 12, dmrs_res: 12, rlc_sn_bits: 18 }
    }
}

/// The NR leg of a split bearer over LTE and NR (EN-DC, TS 37.340, 4.1.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SplitConfig {
    /// The NR cell.
    pub cell: Box<CellConfig>,
    /// Its other users.
    pub competing: Vec<Competing>,
    /// The phone's mean SNR there relative to the LTE cell, in dB, in each direction.
    pub snr_offset_db: f64,
    /// Maximum PRBs of the phone in an uplink slot of NR.
    pub uplink_max_prb: u16,
    /// Bytes that PDCP keeps in the queue of the LTE leg, and of the NR leg: the desired
    /// buffer sizes of TS 38.425, 5.4.2. Further data waits in PDCP.
    pub lte_queue_bytes: u64,
    /// See `lte_queue_bytes`.
    pub nr_queue_bytes: u64,
    /// Delay in ms between the node with PDCP and the other (X2); PDCP is at NR's.
    pub x2_delay_ms: u32,
    /// Bytes in the phone above which it sends over both legs (ul-DataSplitThreshold of TS
    /// 38.331); absent: over NR alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_threshold_bytes: Option<u64>,
    /// t-Reordering of PDCP in ms (TS 38.323, 5.2.2.2).
    pub t_reordering_ms: u32,
}

impl Default for SplitConfig {
    fn default() -> Self {
        let nr = CellConfig {
            n_prb: 106,
            pci: 502,
            earfcn: 634_080,
            band: 78,
            numerology: 1,
            tdd: Some("DDDSU".to_owned()),
            nr: Some(NrConfig::default()),
            ..CellConfig::default()
        };
        // Chosen here: some 10 ms at each leg's rate.
        Self {
            cell: Box::new(nr),
            competing: Vec::new(),
            snr_offset_db: 0.0,
            uplink_max_prb: 50,
            lte_queue_bytes: 40_000,
            nr_queue_bytes: 150_000,
            x2_delay_ms: 2,
            uplink_threshold_bytes: None,
            t_reordering_ms: 100,
        }
    }
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
    /// Band of the EARFCN.
    pub band: u32,
    /// Its other users.
    pub competing: Vec<Competing>,
    /// The phone's mean SNR there relative to the primary carrier, in dB.
    pub snr_offset_db: f64,
}

impl Default for SecondaryConfig {
    fn default() -> Self {
        // Chosen here: a carrier of band 20 in addition to one of band 3.
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
            // P_A = -3 dB, P_B = 1: typical with two ports (TS 36.213, table 5.2-1).
            data_to_reference_power: 0.5,
            // Deep, as in the papers: 1 s of 24 Mbit/s (chosen here).
            queue_bytes: 3_000_000,
            dl_harq_transmissions: MAX_TRANSMISSIONS,
            numerology: 0,
            nr: None,
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
    /// UM in place of AM (TS 36.322, 5.1.2): data that HARQ gives up is not retransmitted,
    /// and the receiver continues without it after t-Reordering. No polls, no STATUS PDUs.
    #[serde(skip_serializing_if = "is_false")]
    pub unacknowledged: bool,
    /// Length of NR's sequence numbers in bits, if the bearer's cell is NR.
    #[serde(skip)]
    pub nr_sn_bits: Option<u8>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Default for RlcConfig {
    fn default() -> Self {
        // Typical values for the uplink (chosen here).
        Self {
            poll_pdu: Some(32),
            poll_byte: Some(100_000),
            t_poll_retransmit_ms: 60,
            t_reordering_ms: 40,
            t_status_prohibit_ms: 20,
            unacknowledged: false,
            nr_sn_bits: None,
        }
    }
}

/// Uplink grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UplinkConfig {
    /// Maximum PRB pairs of the phone in a TTI.
    pub max_prb: u16,
    /// Scheduling request period in ms (TS 36.213, table 10.1.5-1).
    pub sr_period_ms: u32,
    /// Minimum time between two grants of new data, in TTIs: 1 leaves the whole uplink to
    /// the phone, n gives it every n-th TTI.
    pub grant_every_tti: u32,
    /// periodicBSR-Timer in TTIs (TS 36.331, MAC-MainConfig: sf5 to sf2560); 0: infinity.
    pub bsr_period_tti: u32,
    /// Bytes that the phone's firmware buffers below IP; further data waits in the device's
    /// queue. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware_bytes: Option<u64>,
    /// Capacity of the device's queue in packets.
    pub device_queue_packets: u32,
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self {
            max_prb: 20,
            sr_period_ms: 10,
            grant_every_tti: 1,
            bsr_period_tti: 5, // chosen here: sf5
            firmware_bytes: None,
            device_queue_packets: 1_000, // Linux's txqueuelen
        }
    }
}
