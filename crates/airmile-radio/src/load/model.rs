//! The share of a subframe's PRBs in use, from the phone's measurements in it.
//!
//! For receive antenna `a`, with `g` the power of a data resource element of a
//! port over a reference one's and `n_a` noise and interference in the same
//! unit, CLAW's equations 3 to 5 (per RB, as they are meant) become
//!
//! ```text
//! 1/Q_a = N_ref + 12 n_a + g (12 - N_ref) N_ant r
//! ```
//!
//! Equation 7 is its solution for `g = 1`, `n_a = 0`.

use airmile_model::Measurement;

/// Subcarriers of a PRB (TS 36.211, table 6.2.3-1).
const SUBCARRIERS: f64 = 12.0;

/// Minimum share of the PRBs for a subframe to show the slope ("most PRBs").
pub const ANCHOR_SHARE: f64 = 0.75;

/// Readings at or below this come from an antenna that is off or stuck: the raw zero of
/// the log's field (0xB193: RSRQ = raw / 16 - 30 dB).
const STUCK_RSRQ_DB: f64 = -29.9;

/// Minimum SNR for a load estimate: below it, noise is more than a third of the power of
/// even a full, unboosted symbol.
pub const MIN_SNR_DB: f64 = 0.0;

/// Relative error of 1/Q: 0.3 dB (chosen here: logs repeat within that while nothing is
/// scheduled and RSRP is constant).
const RSRQ_ERROR: f64 = 0.07;

/// Relative error of noise over signal: 1 dB (chosen here: the difference of consecutive
/// SNR readings of a stationary phone).
const SNR_ERROR: f64 = 0.25;

/// Limits of the slope: P_A from -6 to 3 dB (TS 36.331, PDSCH-ConfigDedicated)
/// times 1/2 to 5/4 for symbols with reference signals (TS 36.213, table 5.2-1).
const SLOPE_LIMITS: [f64; 2] = [0.125, 2.5];

/// Weight of the prior slope, 1, in anchors. P_A spreads by some 3 dB over
/// networks, an anchor by some 1 dB: (1/3)^2.
const PRIOR_ANCHORS: f64 = 0.1;

/// `N_ref`: reference-signal REs of an RB in the symbols where RSSI is measured
/// (CLAW, section 4.2 (i)). Ports 2 and 3 are in other symbols (TS 36.211, 6.10.1.2).
#[must_use]
pub const fn reference_res(n_ant: u8) -> u8 {
    if n_ant <= 1 { 2 } else { 4 }
}

/// Number of ports that share those symbols: at most two.
fn geometry(n_ant: u8) -> (f64, f64) {
    let n_ref = f64::from(reference_res(n_ant));
    // The data power of all ports together, whichever symbol it is in.
    (n_ref, (SUBCARRIERS - n_ref) * f64::from(n_ant.max(1)))
}

/// CLAW, equation 7: `r_k` of an RSRQ in dB, clipped to [0, 1].
#[must_use]
pub fn plain_share(rsrq_db: f64, n_ant: u8) -> f64 {
    let (n_ref, full) = geometry(n_ant);
    ((inverse(rsrq_db) - n_ref) / full).clamp(0.0, 1.0)
}

/// CLAW, equation 6: RSRQ in dB of a share of PRBs in use.
#[must_use]
pub fn plain_rsrq_db(share: f64, n_ant: u8) -> f64 {
    let (n_ref, full) = geometry(n_ant);
    -10.0 * share.mul_add(full, n_ref).log10()
}

/// The plain `r_k` of a measurement, the mean of its antennas'; `None` if none has an
/// RSRQ.
#[must_use]
pub fn plain_share_of(m: &Measurement, n_ant: u8) -> Option<f64> {
    let read = antennas(m).filter_map(|a| a.rsrq_db).filter(|db| *db > STUCK_RSRQ_DB);
    let (sum, n) = read.fold((0.0, 0.0), |(sum, n), db| (sum + plain_share(db, n_ant), n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// Power ratio of decibels, inverted.
fn inverse(db: f64) -> f64 {
    10f64.powf(-db / 10.0)
}

#[derive(Debug, Clone, Copy)]
struct Antenna {
    rsrq_db: Option<f64>,
    rsrp_dbm: Option<f64>,
    snr_db: Option<f64>,
}

fn antennas(m: &Measurement) -> impl Iterator<Item = Antenna> {
    let antenna = |rsrq: Option<f32>, rsrp: Option<f32>, snr: Option<f32>| Antenna {
        rsrq_db: rsrq.map(f64::from),
        rsrp_dbm: rsrp.map(f64::from),
        snr_db: snr.map(f64::from),
    };
    [
        antenna(m.rsrq_rx0_db, m.rsrp_rx0_dbm, m.snr_rx0_db),
        antenna(m.rsrq_rx1_db, m.rsrp_rx1_dbm, m.snr_rx1_db),
        // If only the combined reading was logged, it is the only antenna.
        match (m.rsrq_rx0_db, m.rsrq_rx1_db) {
            (None, None) => antenna(m.rsrq_db, m.rsrp_dbm, m.snr_rx0_db.or(m.snr_rx1_db)),
            _ => antenna(None, None, None),
        },
    ]
    .into_iter()
}

/// Received data power of a subframe in eq. 7's unit: `g r`, with its standard deviation.
/// The slope is not applied yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataPower {
    /// `g r`, not clipped.
    pub value: f64,
    /// Its standard deviation, from the readings' errors.
    pub sigma: f64,
}

/// Noise and interference of a cell whose SNR was not logged: the lower envelope of RSSI
/// minus reference signals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NoiseFloor {
    /// Per antenna (0, 1, combined), in mW per PRB and symbol.
    mw: [Option<f64>; 3],
}

/// Quantile of the lower envelope (chosen here: the minimum would be dominated by its
/// error).
const ENVELOPE_QUANTILE: f64 = 0.05;

/// Maximum number of readings kept for an envelope (chosen here: minutes of a log; of
/// longer ones every second, fourth, ... is kept).
const ENVELOPE_READINGS: usize = 4_096;

/// The readings for a [`NoiseFloor`].
#[derive(Debug, Clone, Default)]
pub struct NoiseReadings {
    mw: [Vec<f64>; 3],
    stride: usize,
    seen: usize,
}

impl NoiseReadings {
    /// Takes a measurement.
    pub fn push(&mut self, m: &Measurement, n_ant: u8) {
        self.seen += 1;
        self.stride = self.stride.max(1);
        if !self.seen.is_multiple_of(self.stride) {
            return;
        }
        let (n_ref, _) = geometry(n_ant);
        for (readings, antenna) in self.mw.iter_mut().zip(antennas(m)) {
            if let (Some(rsrq), Some(rsrp)) = (antenna.rsrq_db, antenna.rsrp_dbm)
                && rsrq > STUCK_RSRQ_DB
            {
                readings.push((inverse(rsrq) - n_ref).max(0.0) / inverse(rsrp));
            }
        }
        if self.mw.iter().any(|readings| readings.len() >= ENVELOPE_READINGS) {
            for readings in &mut self.mw {
                let mut nth = 0;
                readings.retain(|_| {
                    nth += 1;
                    nth % 2 == 0
                });
            }
            self.stride *= 2;
        }
    }

    /// The envelope so far.
    #[must_use]
    pub fn floor(&self) -> NoiseFloor {
        let envelope = |readings: &Vec<f64>| {
            let mut sorted = readings.clone();
            sorted.sort_by(f64::total_cmp);
            let at = (sorted.len() as f64 * ENVELOPE_QUANTILE) as usize;
            sorted.get(at).copied()
        };
        let [a, b, c] = &self.mw;
        NoiseFloor { mw: [envelope(a), envelope(b), envelope(c)] }
    }
}

/// Data power of a measurement, its antennas weighted by their certainty. `None` if no
/// antenna has both an RSRQ and an SNR (or floor) above [`MIN_SNR_DB`]: noise then hides
/// the load.
#[must_use]
pub fn data_power(m: &Measurement, n_ant: u8, floor: &NoiseFloor) -> Option<DataPower> {
    let (n_ref, full) = geometry(n_ant);
    let (mut sum, mut weights) = (0.0, 0.0);
    for (antenna, floor_mw) in antennas(m).zip(floor.mw) {
        let Some(rsrq_db) = antenna.rsrq_db.filter(|db| *db > STUCK_RSRQ_DB) else { continue };
        let noise = match (antenna.snr_db, floor_mw, antenna.rsrp_dbm) {
            (Some(snr_db), ..) => SUBCARRIERS * inverse(snr_db),
            (None, Some(mw), Some(rsrp_dbm)) => mw * inverse(rsrp_dbm),
            _ => continue,
        };
        if noise > SUBCARRIERS * inverse(MIN_SNR_DB) {
            continue;
        }
        let power = inverse(rsrq_db);
        let variance = ((power * RSRQ_ERROR).powi(2) + (noise * SNR_ERROR).powi(2)) / full.powi(2);
        sum += (power - n_ref - noise) / full / variance;
        weights += 1.0 / variance;
    }
    (weights > 0.0).then(|| DataPower { value: sum / weights, sigma: weights.sqrt().recip() })
}

/// A subframe whose load is known independently of its power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Anchor {
    /// The phone itself held most PRBs.
    Own {
        /// Measured data power.
        power: f64,
        /// The phone's own share of the PRBs.
        own_share: f64,
    },
    /// The phone's data waited: it was also served in [`WAITING_TTIS`] subframes on both
    /// sides, and no block had padding, so more was queued than they held. A scheduler
    /// that leaves no PRB unused while data waits has then assigned the whole cell.
    Waited {
        /// Measured data power.
        power: f64,
    },
}

/// Number of subframes on either side that must also have served the phone for its data
/// to count as waiting (chosen here: a packet that fits its block by chance is not
/// followed by four more).
pub const WAITING_TTIS: i64 = 2;

/// Maximum padding in bytes of a full block (TS 36.321, 6.1.2: one or two bytes are
/// subheaders that align it).
pub const FULL_PADDING_BYTES: u32 = 2;

/// Spread of anchors (half the interquartile range over the median) beyond which the
/// readings do not belong to those very subframes, but are means over longer times: twice
/// the effect of the readings' errors on a full symbol.
const MAX_SPREAD: f64 = 0.25;

/// Quantile of the anchors that then stands for a full cell: a mean that includes idle
/// time is below it (chosen here: the ones above it are errors).
const SPREAD_QUANTILE: f64 = 0.9;

/// Minimum number of subframes with waiting data that must agree (chosen here: by chance
/// a few always do).
const MIN_WAITED: usize = 20;

/// Number of the phone's own subframes that outweigh any number with waiting data (chosen
/// here: one or two may have a bad reading).
const FEW_OWN: usize = 3;

/// The power of a full cell by its anchors, and whether they agree.
fn full_power(ratios: &mut [f64]) -> Option<(f64, bool)> {
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let at = |p: f64| ratios[(last as f64 * p).round() as usize];
    let spread = (at(0.75) - at(0.25)) / 2.0;
    let agree = spread <= MAX_SPREAD * at(0.5);
    Some((at(if agree { 0.5 } else { SPREAD_QUANTILE }), agree))
}

/// The slope learnt for a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// `g`: 1 is the paper's model.
    pub value: f64,
    /// Number of anchors used.
    pub anchors: usize,
    /// Whether they agree, and are the phone's own.
    pub agree: bool,
}

impl Slope {
    /// Plain equation 7.
    pub const PRIOR: Self = Self { value: 1.0, anchors: 0, agree: true };

    /// Fits anchors: the median of power over own share (half of them may be off, if
    /// other users had the rest or a reading failed), in decibels shrunk to the prior by
    /// `PRIOR_ANCHORS`. If they spread too far, an upper quantile is used, with half the
    /// trust. For a phone that never holds most PRBs, because other users always take
    /// their part, only subframes with waiting data remain; they count only if they
    /// agree, as in a cell that is always full then.
    ///
    /// The phone's share is a lower bound of the load, so the slope is an upper bound:
    /// loads from it are too low if others held the rest.
    #[must_use]
    pub fn fit(anchors: impl IntoIterator<Item = Anchor>) -> Self {
        let (mut own, mut waited) = (Vec::new(), Vec::new());
        for anchor in anchors {
            match anchor {
                Anchor::Own { power, own_share } => own.push(power / own_share),
                Anchor::Waited { power } => waited.push(power),
            }
        }
        let by_waiting = full_power(&mut waited)
            .filter(|(_, agree)| *agree && waited.len() >= MIN_WAITED && own.len() < FEW_OWN);
        let is_own = by_waiting.is_none();
        let Some((full, agree)) = by_waiting.or_else(|| full_power(&mut own)) else {
            return Self::PRIOR;
        };
        let n = if is_own { own.len() } else { waited.len() };
        let [least, most] = SLOPE_LIMITS;
        let weight = n as f64 / (n as f64 + PRIOR_ANCHORS);
        let value = (full.clamp(least, most).ln() * weight).exp();
        Self { value, anchors: n, agree: agree && is_own }
    }

    /// Confidence in the slope: 0.3 for the prior (its usual error of 3 dB leaves order,
    /// not size), towards 1 with anchors; half way at 3.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        let n = self.anchors as f64;
        let learnt = 0.7f64.mul_add(n / (n + 3.0), 0.3);
        if self.agree { learnt } else { learnt / 2.0 }
    }

    /// `r_k` of a subframe, calibrated, clipped to [0, 1].
    #[must_use]
    pub fn share(&self, power: DataPower) -> f64 {
        (power.value / self.value).clamp(0.0, 1.0)
    }
}
