//! A radio link: fading, channel quality reports, the choice of MCS, and the reception of
//! blocks.

use std::collections::VecDeque;

use airmile_model::Modulation;
use airmile_model::nr_tables::{NrMcs, NrMcsTable, nr_data_res_per_prb, nr_mcs, nr_tbs_bits};
use airmile_model::tables::{McsTable, mcs_entry, tbs_bits};

use crate::random::Random;
use crate::scenario::{LinkConfig, NrConfig};

/// Resource elements for data in a PRB pair: 168, less one control symbol and
/// the reference signals of two ports outside it (TS 36.211, 6.10.1.2); also
/// those of a PUSCH allocation, 12 symbols of 12 subcarriers.
const DATA_RE_PER_PRB: f64 = 144.0;

/// Spectral efficiency over `log2(1 + SNR)` at 10 % BLER. Chosen here: TR 36.942, A.1 uses
/// 0.6 for the whole carrier, including control and reference signals; 0.75 is equivalent
/// for the data resource elements alone.
const SHANNON_SHARE: f64 = 0.75;

/// Slope of the BLER curve: a block's odds fall e-fold per this many dB over
/// (chosen here: 10 % to 1.5 % within 1 dB, as turbo codes do).
const BLER_SLOPE_DB: f64 = 0.5;

/// CQI efficiencies, bits per resource element (TS 36.213, table 7.2.3-1).
const CQI_EFFICIENCY: [f64; 15] = [
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// The same for NR with 256QAM (TS 38.214, table 5.2.2.1-3).
const NR_CQI_EFFICIENCY: [f64; 15] = [
    0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547,
    6.2266, 6.9141, 7.4063,
];

/// TTIs between two CQI reports, and from a report to its use (chosen here,
/// among the periods of TS 36.213, table 7.2.2-1A).
const CQI_PERIOD_TTIS: i64 = 5;
const CQI_DELAY_TTIS: i64 = 6;

/// Step in dB of the outer loop downwards after a failed block (chosen here).
const OUTER_LOOP_STEP_DB: f64 = 0.4;
const OUTER_LOOP_LIMIT_DB: f64 = 8.0;

/// SNR in dB at which a spectral efficiency has 10 % BLER.
fn required_snr_db(bits_per_re: f64) -> f64 {
    db((bits_per_re / SHANNON_SHARE).exp2() - 1.0)
}

/// Decibels of a power ratio.
pub(crate) fn db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

/// Power ratio of decibels.
pub(crate) fn linear(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

/// A first-order autoregression of variance 1.
#[derive(Debug, Clone)]
struct Wander {
    correlation: f64,
    innovation: f64,
    offset: f64,
}

impl Wander {
    fn new(coherence_ms: f64, random: &mut Random) -> Self {
        let correlation = (-1.0 / coherence_ms).exp();
        let innovation = (1.0 - correlation * correlation).sqrt();
        Self { correlation, innovation, offset: random.normal() }
    }

    /// Advances by several TTIs at once, with the same distribution as step by step.
    fn advance(&mut self, ttis: i64, random: &mut Random) {
        let (correlation, innovation) = if ttis == 1 {
            (self.correlation, self.innovation)
        } else {
            let correlation = self.correlation.powi(i32::try_from(ttis).unwrap_or(i32::MAX));
            (correlation, (1.0 - correlation * correlation).sqrt())
        };
        self.offset = correlation * self.offset + innovation * random.normal();
    }
}

/// SNR in dB that varies around a mean: fading, and shadowing if the phone moves.
#[derive(Debug, Clone)]
pub(crate) struct Fading {
    mean_db: f64,
    sigma_db: f64,
    fast: Wander,
    shadowing: Option<(f64, Wander)>,
    random: Random,
    /// TTI of the state.
    tti: i64,
}

impl Fading {
    /// A process before `first_tti`, with the spread and coherence of a link.
    pub(crate) fn new(mean_db: f64, link: &LinkConfig, first_tti: i64, mut random: Random) -> Self {
        let fast = Wander::new(link.fading_coherence_ms, &mut random);
        let shadowing = (link.shadowing_sigma_db > 0.0).then(|| {
            (link.shadowing_sigma_db, Wander::new(link.shadowing_coherence_ms, &mut random))
        });
        Self {
            mean_db,
            sigma_db: link.fading_sigma_db,
            fast,
            shadowing,
            random,
            tti: first_tti - 1,
        }
    }

    /// Advances to a TTI.
    pub(crate) fn advance(&mut self, tti: i64) {
        let ttis = tti - self.tti;
        if ttis > 0 {
            self.tti = tti;
            self.fast.advance(ttis, &mut self.random);
            if let Some((_, wander)) = &mut self.shadowing {
                wander.advance(ttis, &mut self.random);
            }
        }
    }

    /// The deviation from the mean.
    pub(crate) fn fade_db(&self) -> f64 {
        let shadow_db = self.shadowing.as_ref().map_or(0.0, |(sigma, w)| sigma * w.offset);
        self.sigma_db.mul_add(self.fast.offset, shadow_db)
    }

    pub(crate) fn snr_db(&self) -> f64 {
        self.mean_db + self.fade_db()
    }
}

/// Whether phones report the channel in a TTI.
pub(crate) const fn is_cqi_occasion(tti: i64) -> bool {
    tti % CQI_PERIOD_TTIS == 0
}

/// Quality of resource block groups relative to the carrier, as last reported.
#[derive(Debug, Clone)]
pub(crate) struct Subbands {
    sigma_db: f64,
    groups: Vec<Wander>,
    rates: Vec<f64>,
    tti: Option<i64>,
    random: Random,
}

impl Subbands {
    pub(crate) fn new(groups: u16, sigma_db: f64, coherence_ms: f64, mut random: Random) -> Self {
        let groups: Vec<Wander> =
            (0..groups).map(|_| Wander::new(coherence_ms, &mut random)).collect();
        Self { sigma_db, rates: vec![0.0; groups.len()], groups, tti: None, random }
    }

    /// Advances to a TTI, and updates the rates of a user from its quality: bytes on
    /// `n_prb` PRB pairs as good as the group.
    pub(crate) fn renew(&mut self, tti: i64, adaptation: &LinkAdaptation, n_prb: u16) {
        let ttis = tti - self.tti.replace(tti).unwrap_or(tti - 1);
        for (wander, rate) in self.groups.iter_mut().zip(&mut self.rates) {
            wander.advance(ttis, &mut self.random);
            let offset_db = self.sigma_db * wander.offset;
            *rate = f64::from(adaptation.mcs(offset_db).tbs_bytes(n_prb));
        }
    }

    pub(crate) fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Mean quality of some groups relative to the carrier, in dB.
    pub(crate) fn offset_db(&self, groups: &[u16]) -> f64 {
        let offsets = groups.iter().filter_map(|&g| self.groups.get(usize::from(g)));
        let sum: f64 = offsets.map(|wander| self.sigma_db * wander.offset).sum();
        if groups.is_empty() { 0.0 } else { sum / groups.len() as f64 }
    }
}

/// Table that determines block sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BlockSizes {
    /// TS 36.213, table 7.1.7.2.1-1.
    Lte { i_tbs: u8 },
    /// TS 38.214, 5.1.3.2.
    Nr { mcs: NrMcs, layers: u8, res_per_prb: u16 },
}

/// Modulation and coding schemes of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum McsLadder {
    /// A table of TS 36.213.
    Lte(McsTable),
    /// A table of TS 38.214, with a number of layers and of data resource elements per PRB.
    Nr { table: NrMcsTable, layers: u8, res_per_prb: u16 },
}

impl McsLadder {
    /// The downlink of a cell.
    pub(crate) fn downlink(nr: Option<NrConfig>) -> Self {
        nr.map_or(Self::Lte(McsTable::Pdsch64Qam), |nr| {
            let table = if nr.qam256 { NrMcsTable::Qam256 } else { NrMcsTable::Qam64 };
            Self::Nr { table, layers: nr.layers, res_per_prb: data_res(nr) }
        })
    }

    /// The uplink of a cell.
    pub(crate) fn uplink(nr: Option<NrConfig>) -> Self {
        nr.map_or(Self::Lte(McsTable::Pusch), |nr| Self::Nr {
            table: NrMcsTable::Qam64,
            layers: 1,
            res_per_prb: data_res(nr),
        })
    }

    /// SNR cost of its layers: each has its share of the power.
    fn layers_db(self) -> f64 {
        match self {
            Self::Lte(_) => 0.0,
            Self::Nr { layers, .. } => db(f64::from(layers)),
        }
    }

    const fn cqi_efficiency(self) -> [f64; 15] {
        match self {
            Self::Lte(_) => CQI_EFFICIENCY,
            Self::Nr { .. } => NR_CQI_EFFICIENCY,
        }
    }

    fn mcs(self, index: u8) -> Option<Mcs> {
        match self {
            Self::Lte(table) => mcs_of(table, index),
            Self::Nr { table, layers, res_per_prb } => {
                let mcs = nr_mcs(table, index)?;
                let bits_per_re = f64::from(mcs.code_rate_x2048) / 2048.0
                    * f64::from(mcs.modulation.bits_per_symbol());
                Some(Mcs {
                    index,
                    sizes: BlockSizes::Nr { mcs, layers, res_per_prb },
                    modulation: mcs.modulation,
                    required_snr_db: required_snr_db(bits_per_re) + self.layers_db(),
                    retx_base: if table == NrMcsTable::Qam256 { 28 } else { 29 },
                    replayed: None,
                })
            }
        }
    }
}

fn data_res(nr: NrConfig) -> u16 {
    nr_data_res_per_prb(nr.symbols.into(), nr.dmrs_res.into(), 0)
}

/// A modulation and coding scheme for new data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mcs {
    pub(crate) index: u8,
    sizes: BlockSizes,
    pub(crate) modulation: Modulation,
    required_snr_db: f64,
    /// Index of a retransmission with QPSK.
    retx_base: u8,
    /// With a link trace, whose blocks are received: the bytes of all the carrier's PRB pairs
    /// together. A block of LTE has its share of them, one of NR a size of TS 38.214.
    replayed: Option<(u32, u16)>,
}

impl Mcs {
    /// Transport block size in bytes on `n_prb` PRB pairs.
    pub(crate) fn tbs_bytes(self, n_prb: u16) -> u32 {
        if let Some((bytes, of_prb)) = self.replayed
            && (bytes == 0 || matches!(self.sizes, BlockSizes::Lte { .. }))
        {
            return (u64::from(bytes) * u64::from(n_prb) / u64::from(of_prb.max(1))) as u32;
        }
        let bits = match self.sizes {
            BlockSizes::Lte { i_tbs } => tbs_bits(i_tbs, n_prb),
            BlockSizes::Nr { mcs, layers, res_per_prb } => {
                nr_tbs_bits(mcs, layers, n_prb, res_per_prb)
            }
        };
        bits.unwrap_or(0) / 8
    }

    /// The minimum number of PRB pairs, up to `most`, for a block of `bytes`.
    pub(crate) fn prbs_for(self, bytes: u64, most: u16) -> u16 {
        if bytes >= u64::from(self.tbs_bytes(most)) {
            return most;
        }
        // Not a bisection: one cell of the TBS table is out of order.
        (1..most).find(|&n| u64::from(self.tbs_bytes(n)) >= bytes).unwrap_or(most)
    }

    /// Probability that a block is not received, from the sum of the SNRs (linear) of its
    /// transmissions: soft combining adds their energy.
    pub(crate) fn bler(self, snr_sum: f64) -> f64 {
        if self.replayed.is_some() {
            return 0.0;
        }
        let margin_db = db(snr_sum.max(1e-9)) - self.required_snr_db;
        // Odds of 9 to 1 at no margin: 10 %.
        1.0 / (1.0 + 9.0 * (margin_db / BLER_SLOPE_DB).exp())
    }

    /// The index signalled for a retransmission: 29 to 31 by modulation (TS 36.213, table
    /// 7.1.7.1-1; TS 38.214, table 5.1.3.1-1), 28 to 31 with 256QAM (table 5.1.3.1-2).
    pub(crate) const fn retx_index(self) -> u8 {
        let order = match self.modulation {
            Modulation::Qpsk => 0,
            Modulation::Qam16 => 1,
            Modulation::Qam64 => 2,
            Modulation::Qam256 => 3,
        };
        let index = self.retx_base + order;
        if index > 31 { 31 } else { index }
    }

    /// Spatial layers of a block.
    pub(crate) const fn layers(self) -> u8 {
        match self.sizes {
            BlockSizes::Lte { .. } => 1,
            BlockSizes::Nr { layers, .. } => layers,
        }
    }
}

/// Chooses the MCS of a link: from the reported CQI, corrected by an outer loop that keeps
/// the share of failed first transmissions at the target.
#[derive(Debug, Clone)]
pub(crate) struct LinkAdaptation {
    ladder: Vec<Mcs>,
    bler_target: f64,
    outer_loop_db: f64,
    reported_snr_db: f64,
    /// Reports in transit, by TTI of use.
    in_flight: VecDeque<(i64, f64)>,
    /// SNRs in dB from which on each CQI is reported.
    cqi_floors_db: [f64; 15],
}

impl LinkAdaptation {
    pub(crate) fn new(schemes: McsLadder, bler_target: f64, first_snr_db: f64) -> Self {
        let ladder: Vec<Mcs> = (0..=28).filter_map(|index| schemes.mcs(index)).collect();
        let layers_db = schemes.layers_db();
        let cqi_floors_db =
            schemes.cqi_efficiency().map(|efficiency| required_snr_db(efficiency) + layers_db);
        let reported_snr_db = quantise_cqi(&cqi_floors_db, first_snr_db);
        Self {
            ladder,
            bler_target,
            outer_loop_db: 0.0,
            reported_snr_db,
            in_flight: VecDeque::new(),
            cqi_floors_db,
        }
    }

    /// Processes the channel of a TTI: the phone reports it every few TTIs, and the base
    /// station uses the report some TTIs later.
    pub(crate) fn observe(&mut self, tti: i64, snr_db: f64) {
        while let Some(&(due, reported)) = self.in_flight.front()
            && due <= tti
        {
            self.reported_snr_db = reported;
            self.in_flight.pop_front();
        }
        if is_cqi_occasion(tti) {
            let reported = quantise_cqi(&self.cqi_floors_db, snr_db);
            self.in_flight.push_back((tti + CQI_DELAY_TTIS, reported));
        }
    }

    /// Processes the outcome of a first transmission.
    pub(crate) fn learn(&mut self, crc_ok: bool) {
        let up = OUTER_LOOP_STEP_DB * self.bler_target / (1.0 - self.bler_target);
        let step = if crc_ok { up } else { -OUTER_LOOP_STEP_DB };
        self.outer_loop_db =
            (self.outer_loop_db + step).clamp(-OUTER_LOOP_LIMIT_DB, OUTER_LOOP_LIMIT_DB);
    }

    /// The current MCS for new data: the highest that the corrected SNR supports on PRBs
    /// that are `offset_db` better than the carrier.
    pub(crate) fn mcs(&self, offset_db: f64) -> Mcs {
        let snr_db = self.reported_snr_db + self.outer_loop_db + offset_db;
        let fits = self.ladder.iter().rev().find(|mcs| mcs.required_snr_db <= snr_db);
        *fits.unwrap_or(&self.ladder[0])
    }

    /// The MCS for a TTI in which a link trace lets `bytes` pass on `n_prb` PRB pairs:
    /// signalled as the one with the nearest block size; in NR, on symbols that carry it.
    pub(crate) fn replayed(&self, bytes: u32, n_prb: u16) -> Mcs {
        let far = |mcs: &Mcs| mcs.tbs_bytes(n_prb).abs_diff(bytes);
        let mut nearest = *self.ladder.iter().min_by_key(|mcs| far(mcs)).unwrap_or(&self.ladder[0]);
        if let BlockSizes::Nr { mcs, layers, .. } = nearest.sizes {
            // Multiples of 6 resource elements, at most 156 (TS 38.214, 5.1.3.2).
            let sizes = (1..=26).map(|n| BlockSizes::Nr { mcs, layers, res_per_prb: 6 * n });
            let each = sizes.map(|sizes| Mcs { sizes, ..nearest });
            nearest = each.min_by_key(far).unwrap_or(nearest);
        }
        Mcs { replayed: Some((bytes, n_prb)), ..nearest }
    }
}

fn mcs_of(table: McsTable, index: u8) -> Option<Mcs> {
    let entry = mcs_entry(table, index)?;
    let i_tbs = entry.i_tbs?;
    // At 50 PRB pairs; the efficiency hardly depends on their number.
    let bits_per_re = f64::from(tbs_bits(i_tbs, 50)?) / (50.0 * DATA_RE_PER_PRB);
    let required_snr_db = required_snr_db(bits_per_re);
    Some(Mcs {
        index,
        sizes: BlockSizes::Lte { i_tbs },
        modulation: entry.modulation?,
        required_snr_db,
        retx_base: 29,
        replayed: None,
    })
}

/// The SNR represented by the CQI of an SNR: that of the highest efficiency supported (TS
/// 36.213, 7.2.3), -10 dB for index 0 (out of range).
fn quantise_cqi(floors_db: &[f64; 15], snr_db: f64) -> f64 {
    floors_db.iter().rev().copied().find(|&floor| floor <= snr_db).unwrap_or(-10.0)
}

#[cfg(test)]
mod tests;
