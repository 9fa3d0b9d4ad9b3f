//! The phone's measurements of the cell (TS 36.214, 5.1.1 to 5.1.3), quantised as in modem
//! logs.

use airmile_model::{Measurement, Position};

use super::{Frame, db, linear};
use crate::random::{Owner, Process, Random};
use crate::scenario::{LinkConfig, MeasurementConfig, Scenario};

/// Offset of each receive antenna in dB (chosen here: antennas always differ).
const ANTENNA_OFFSETS_DB: [f64; 2] = [0.5, -1.5];

/// Gain of combining the antennas over one without offset: their SNRs add up to the link's.
fn combining_gain_db() -> f64 {
    db(ANTENNA_OFFSETS_DB.iter().map(|&offset_db| linear(offset_db)).sum())
}

/// Steps of the logs' fields.
const POWER_STEP_DB: f64 = 0.0625;
const SNR_STEP_DB: f64 = 0.1;

/// Range of the logs' SNR field: 9 bits from -20 dB up (0xB193).
const SNR_RANGE_DB: (f64, f64) = (-20.0, 31.1);

/// Value of raw zeros in the logs (0xB193).
const RAW_ZERO_RSRP_DBM: f32 = -180.0;
const RAW_ZERO_RSRQ_DB: f32 = -30.0;

/// The phone's measurement of the serving cell.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    n_prb: f64,
    n_tx: f64,
    data_to_reference_power: f64,
    rsrp_mean_dbm: f64,
    /// Mean SNR of an antenna without offset.
    antenna_snr_mean_db: f64,
    earfcn: u32,
    pci: u16,
    config: MeasurementConfig,
    period_ttis: i64,
    random: Random,
    neighbour: Random,
}

/// Readings of one antenna.
#[derive(Debug, Clone, Copy)]
struct AntennaReading {
    rsrp_dbm: f64,
    rsrq_db: f64,
    rssi_dbm: f64,
    snr_db: f64,
}

impl Meter {
    /// Measurements of the measured phone.
    pub(crate) fn new(scenario: &Scenario, frame: Frame) -> Self {
        Self::for_phone(scenario, &scenario.link, Owner::PHONE, frame)
    }

    /// Measurements of any phone.
    pub(crate) fn for_phone(
        scenario: &Scenario,
        link: &LinkConfig,
        owner: Owner,
        frame: Frame,
    ) -> Self {
        let cell = &scenario.cell;
        Self {
            n_prb: cell.n_prb.into(),
            n_tx: cell.n_tx_antennas.into(),
            data_to_reference_power: cell.data_to_reference_power,
            rsrp_mean_dbm: link.rsrp_mean_dbm,
            antenna_snr_mean_db: link.snr_mean_db - combining_gain_db(),
            earfcn: cell.earfcn,
            pci: cell.pci,
            period_ttis: i64::from(scenario.measurement.period_ms) * frame.slots_per_ms(),
            config: scenario.measurement.clone(),
            random: owner.random(scenario.seed, Process::Measurement),
            neighbour: owner.random(scenario.seed, Process::Neighbour),
        }
    }

    /// Whether a TTI is measured.
    pub(crate) const fn measures(&self, tti: i64) -> bool {
        tti % self.period_ttis == 0
    }

    /// Current noise and interference relative to their mean.
    fn noise_factor(&mut self) -> f64 {
        let MeasurementConfig { interference_share: share, interference_load: load, .. } =
            self.config;
        let on = share > 0.0 && self.neighbour.chance(load);
        if on { share.mul_add(1.0 / load, 1.0 - share) } else { 1.0 - share }
    }

    /// Measures a TTI in which the share `load` of the PRBs is in use.
    pub(crate) fn measure(&mut self, position: Position, load: f64, fade_db: f64) -> Measurement {
        let noise_db = db(self.noise_factor().max(1e-9));
        let [rx0, rx1] =
            ANTENNA_OFFSETS_DB.map(|offset_db| self.read(load, fade_db + offset_db, noise_db));
        let strong = if rx0.rsrp_dbm >= rx1.rsrp_dbm { rx0 } else { rx1 };
        let power = |dbm: f64| Some(quantise(dbm, POWER_STEP_DB));
        let mut measurement = Measurement {
            at: None,
            position,
            earfcn: self.earfcn,
            pci: self.pci,
            rsrp_rx0_dbm: power(rx0.rsrp_dbm),
            rsrp_rx1_dbm: power(rx1.rsrp_dbm),
            rsrp_dbm: power(strong.rsrp_dbm),
            rsrq_rx0_db: power(rx0.rsrq_db),
            rsrq_rx1_db: power(rx1.rsrq_db),
            rsrq_db: power(rx0.rsrq_db.max(rx1.rsrq_db)),
            rssi_rx0_dbm: power(rx0.rssi_dbm),
            rssi_rx1_dbm: power(rx1.rssi_dbm),
            rssi_dbm: power(strong.rssi_dbm),
            snr_rx0_db: Some(quantise_snr(rx0.snr_db)),
            snr_rx1_db: Some(quantise_snr(rx1.snr_db)),
        };
        if self.config.rx1_stuck {
            measurement.rsrp_rx1_dbm = Some(RAW_ZERO_RSRP_DBM);
            measurement.rsrq_rx1_db = Some(RAW_ZERO_RSRQ_DB);
            (measurement.rsrp_dbm, measurement.rsrq_db) =
                (measurement.rsrp_rx0_dbm, measurement.rsrq_rx0_db);
            measurement.rssi_dbm = measurement.rssi_rx0_dbm;
        }
        measurement
    }

    fn read(&mut self, load: f64, fade_db: f64, noise_db: f64) -> AntennaReading {
        let rsrp_dbm = self.rsrp_mean_dbm + fade_db;
        let snr_db = self.antenna_snr_mean_db + fade_db - noise_db;
        // Power of a symbol with reference signals, in RSRP per PRB: 2 reference
        // elements a port, data on the others, noise and interference on all 12.
        let n_ref = 2.0 * self.n_tx;
        let data = load * (12.0 - n_ref) * self.n_tx * self.data_to_reference_power;
        let rssi = n_ref + data + 12.0 / linear(snr_db);
        let rssi_dbm = rsrp_dbm + db(self.n_prb * rssi);
        let MeasurementConfig { error_sigma_db, snr_error_sigma_db, .. } = self.config;
        let rsrp_dbm = rsrp_dbm + error_sigma_db * self.random.normal();
        let rssi_dbm = rssi_dbm + error_sigma_db * self.random.normal();
        // RSRQ = N * RSRP / RSSI (TS 36.214, 5.1.3).
        let rsrq_db = db(self.n_prb) + rsrp_dbm - rssi_dbm;
        let snr_db = snr_db + snr_error_sigma_db * self.random.normal();
        AntennaReading { rsrp_dbm, rsrq_db, rssi_dbm, snr_db }
    }
}

fn quantise_snr(snr_db: f64) -> f32 {
    quantise(snr_db.clamp(SNR_RANGE_DB.0, SNR_RANGE_DB.1), SNR_STEP_DB)
}

fn quantise(value: f64, step: f64) -> f32 {
    ((value / step).round() * step) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn antennas_combine_to_the_snr_that_was_set() {
        for snr_mean_db in [0.0, 14.0, 25.0] {
            let mut scenario = Scenario::default();
            scenario.link.snr_mean_db = snr_mean_db;
            scenario.measurement.snr_error_sigma_db = 0.0;
            let mut meter = Meter::new(&scenario, Frame::new(&scenario));
            let position = Position::lte(40);
            let read = meter.measure(position, 0.5, 0.0).snr_db().unwrap_or(f32::NAN);
            // Each antenna is logged in steps of 0.1 dB.
            assert!((f64::from(read) - snr_mean_db).abs() <= 0.1, "{read} {snr_mean_db}");
        }
    }
}
