//! Records specific to NR.

use crate::record;
use crate::stamp::Stamp;

record! { "nr_stats"
/// Counters of an NR carrier's downlink (0xB888), by a layout that no sample confirmed.
pub struct NrStats {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// Carrier.
    pub carrier: u32,
    /// Slots elapsed.
    pub slots: u32,
    /// Blocks whose CRC passed.
    pub good_blocks: u32,
    /// Blocks whose CRC failed.
    pub failed_blocks: u32,
    /// Retransmitted blocks.
    pub retx_blocks: u32,
    /// HARQ failures.
    pub harq_failures: u32,
    /// Bytes of good blocks.
    pub good_bytes: u64,
    /// Padding bytes.
    pub padding_bytes: u64,
    /// Bytes of retransmitted blocks.
    pub retx_bytes: u64,
}}

record! { "nr_ul_stats"
/// Counters of an NR carrier's uplink (0xB881), by a layout that no sample confirmed.
pub struct NrUlStats {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// Carrier, in the order of the message.
    pub carrier: u32,
    /// Blocks sent for the first time.
    pub new_blocks: u32,
    /// Retransmitted blocks.
    pub retx_blocks: u32,
    /// Bytes of the former.
    pub new_bytes: u64,
    /// Bytes of the latter.
    pub retx_bytes: u64,
}}

record! { "nr_measurement"
/// A measurement of an NR cell or of one of its beams (0xB97F).
pub struct NrMeasurement {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// NR-ARFCN of the SSB.
    pub arfcn: u32,
    /// Physical cell identity.
    pub pci: u16,
    /// True: the serving cell.
    pub serving: bool,
    /// System frame number of the cell's broadcast channel.
    pub sfn: Option<u16>,
    /// RSRP of the cell in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ of the cell in dB.
    pub rsrq_db: Option<f32>,
    /// SSB of the beam; null in the row of a cell without beams.
    pub ssb: Option<u16>,
    /// RSRP of the beam at receive antenna 0 in dBm.
    pub beam_rsrp_rx0_dbm: Option<f32>,
    /// RSRP of the beam at receive antenna 1 in dBm.
    pub beam_rsrp_rx1_dbm: Option<f32>,
    /// RSRP of the beam, filtered, in dBm.
    pub beam_rsrp_dbm: Option<f32>,
    /// RSRQ of the beam, filtered, in dB.
    pub beam_rsrq_db: Option<f32>,
}}

record! { "nr_cell"
/// The serving cell of NR as stored by RRC (0xB823).
pub struct NrCell {
    /// Time of writing in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// Physical cell identity.
    pub pci: u16,
    /// Downlink NR-ARFCN.
    pub arfcn: u32,
    /// Band.
    pub band: u16,
    /// Downlink bandwidth in MHz.
    pub bandwidth_dl_mhz: u16,
    /// Uplink bandwidth in MHz.
    pub bandwidth_ul_mhz: u16,
}}
