//! The phone's measurements of its cells, and the state of the radio link.

use crate::record;
use crate::stamp::Stamp;
use crate::tti::Position;

record! { "measurement"
/// A measurement of a serving cell (0xB193); raw zeros are unknown.
pub struct Measurement {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the measurement.
    pub position: Position,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Physical cell identity.
    pub pci: u16,
    /// RSRP of receive antenna 0 in dBm.
    pub rsrp_rx0_dbm: Option<f32>,
    /// RSRP of receive antenna 1 in dBm.
    pub rsrp_rx1_dbm: Option<f32>,
    /// RSRP, combined, in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ of receive antenna 0 in dB.
    pub rsrq_rx0_db: Option<f32>,
    /// RSRQ of receive antenna 1 in dB.
    pub rsrq_rx1_db: Option<f32>,
    /// RSRQ, combined, in dB.
    pub rsrq_db: Option<f32>,
    /// RSSI of receive antenna 0 in dBm.
    pub rssi_rx0_dbm: Option<f32>,
    /// RSSI of receive antenna 1 in dBm.
    pub rssi_rx1_dbm: Option<f32>,
    /// RSSI, combined, in dBm.
    pub rssi_dbm: Option<f32>,
    /// SNR of receive antenna 0 in dB.
    pub snr_rx0_db: Option<f32>,
    /// SNR of receive antenna 1 in dB.
    pub snr_rx1_db: Option<f32>,
}}

impl Measurement {
    /// SNR in dB of the antennas combined by their maximum ratio: their linear
    /// SNRs add up (Brennan, Linear Diversity Combining Techniques, Proc. IRE
    /// 47(6), 1959).
    #[must_use]
    pub fn snr_db(&self) -> Option<f32> {
        let (Some(a), Some(b)) = (self.snr_rx0_db, self.snr_rx1_db) else {
            return self.snr_rx0_db.or(self.snr_rx1_db);
        };
        let (strong, weak) = (a.max(b), a.min(b));
        Some(strong + 10.0 * (1.0 + 10_f32.powf((weak - strong) / 10.0)).log10())
    }
}

record! { "neighbour"
/// A measurement of a cell on a frequency of the serving cells (0xB179, 0xB195).
pub struct Neighbour {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the measurement; of writing for 0xB195, which has none.
    pub position: Position,
    /// True: the serving cell itself.
    pub serving: bool,
    /// Downlink EARFCN.
    pub earfcn: u32,
    /// Physical cell identity.
    pub pci: u16,
    /// RSRP in dBm.
    pub rsrp_dbm: Option<f32>,
    /// RSRQ in dB.
    pub rsrq_db: Option<f32>,
    /// RSSI in dBm; 0xB195 only.
    pub rssi_dbm: Option<f32>,
    /// Its source: a message code.
    pub source: &'static str,
}}

record! { "rlm"
/// A result of radio link monitoring (0xB18A; TS 36.133, 7.6).
pub struct RadioLink {
    /// Time in nanoseconds since the Unix epoch.
    pub at: Option<Stamp>,
    /// TTI of the result.
    pub position: Position,
    /// Block error rate for the out-of-sync decision, 0 to 1.
    pub out_of_sync_bler: f32,
    /// Block error rate for the in-sync decision, 0 to 1.
    pub in_sync_bler: f32,
    /// Out-of-sync indications in a row (N310 counts them).
    pub out_of_sync_count: u8,
    /// In-sync indications in a row (N311 counts them).
    pub in_sync_count: u8,
    /// State of timer T310, as stored.
    pub t310_state: u8,
}}
