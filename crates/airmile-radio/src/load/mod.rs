//! Cell load and capacity from what the phone measures (CLAW, section 4.2).
//!
//! [`LoadEstimator`] divides time into windows and estimates for each the share of the
//! cell's PRBs in use by all users, the phone's own share, the free PRBs, and what these
//! would carry.
//!
//! **Plain** is the paper's equation 7. **Calibrated** corrects it where real logs
//! contradict it: noise and interference are subtracted (by the SNR, or by the log's
//! lower envelope if no SNR was logged), and the power of data over reference signals,
//! the *slope*, is learnt per cell (PCI, EARFCN) from subframes in which the phone itself
//! held most PRBs. The prior is the paper's slope, 1.
//!
//! **A subframe's own share is never used to calibrate its own load.** Anchors are
//! assigned to [`FOLDS`] by their window, and a window's slope is fitted on the other
//! folds ([`Fit::Others`]), or on earlier windows ([`Fit::Past`]). The own share only bounds the
//! result: the load of a cell includes the phone's, and a mean over the few measured subframes of
//! a window can be below it.
//!
//! Not handled: uplink subframes of TDD count as downlink ones.

mod capacity;
mod model;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeMap, VecDeque};

use airmile_model::{Direction, Grant, Measurement, Record, Stamp, TtiIndex};

use capacity::McsMean;
pub use model::{
    ANCHOR_SHARE, Anchor, DataPower, FULL_PADDING_BYTES, MIN_SNR_DB, NoiseFloor, NoiseReadings,
    Slope, WAITING_TTIS, data_power, plain_rsrq_db, plain_share, plain_share_of, reference_res,
};
use window::{ClosedWindow, OpenWindow, OwnBlocks};

/// Folds of [`Fit::Others`] (chosen here: few, as each is a fit; enough that
/// the rest is nearly all).
pub const FOLDS: usize = 8;

/// Window where no round-trip time is known (chosen here).
pub const WINDOW_MS: i64 = 200;

/// Default number of TTIs for which a window waits for late records (chosen here: records
/// come in TTI order, apart from those of the same few TTIs).
const SLACK_TTIS: i64 = 50;

/// Maximum number of anchors that [`Fit::Past`] keeps per cell (chosen here: seconds of
/// download).
const PAST_ANCHORS: usize = 512;

/// Number of windows that [`Fit::Others`] judges together (chosen here: a quarter of an
/// hour of the default ones, a few megabytes), so that memory is bounded.
pub const EPOCH_WINDOWS: usize = 4_096;

/// Maximum number of anchors that [`Fit::Others`] carries into the next epoch, per cell
/// (chosen here: far more than a slope needs).
const KEPT_ANCHORS: usize = 4_096;

/// TTIs after which an MCS is too old for the capacity (chosen here: link adaptation
/// follows the channel within that).
const MCS_TTIS: i64 = 1_000;

/// Assumed number of antenna ports without a message: two are usual.
const USUAL_ANTENNAS: u8 = 2;

/// The windows used for calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// All other folds of the log so far: windows are returned together,
    /// [`EPOCH_WINDOWS`] at a time and at the end.
    #[default]
    Others,
    /// Earlier windows alone: windows are returned as they end.
    Past,
    /// None: plain equation 7, without noise.
    Plain,
}

/// Options of the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Window T in ms: the connection's *minimum* round-trip time where one is
    /// known (a mean would grow with the queue).
    pub window_ms: i64,
    /// The windows used for calibration.
    pub fit: Fit,
    /// TTIs for which a window waits for late records.
    pub slack_ttis: i64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { window_ms: WINDOW_MS, fit: Fit::default(), slack_ttis: SLACK_TTIS }
    }
}

/// Load of a cell in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadEstimate {
    /// Time at the window's start.
    pub at: Option<Stamp>,
    /// Timing segment.
    pub timing_segment: u32,
    /// 0 the primary cell, 1.. the secondary cells.
    pub cell: u8,
    /// First TTI of the window.
    pub tti: TtiIndex,
    /// TTIs of the window (subframes of 1 ms).
    pub n_tti: i64,
    /// Number of measurements in it, including those below the minimum SNR.
    pub measurements: usize,
    /// `L`, equation 8, at least the own share; `None` if it is unknown.
    pub load: Option<f64>,
    /// `N_own / N_t`.
    pub own_share: f64,
    /// `N_t`: PRB pairs of the cell in the window.
    pub n_total_prb: f64,
    /// `N_own`, equation 10.
    pub n_own_prb: f64,
    /// `N_idle`, equation 9.
    pub n_idle_prb: Option<f64>,
    /// `N_free`, equation 11.
    pub n_free_prb: Option<f64>,
    /// `B` as a rate in bits per second, equation 12; `None` also if no MCS is known.
    pub capacity_bps: Option<f64>,
    /// The slope it was calibrated with; 1 is the paper's.
    pub slope: f64,
    /// Confidence, 0 to 1; 0 without a load.
    pub confidence: f64,
}

impl LoadEstimate {
    /// Free PRB pairs per TTI, `N_free / T`.
    #[must_use]
    pub fn free_prb(&self) -> Option<f64> {
        self.n_free_prb.map(|free| free / self.n_tti as f64)
    }

    /// `B` of equation 12 in bytes: the window that fills the free PRBs.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<f64> {
        self.capacity_bps.map(|bps| bps * self.n_tti as f64 / 8_000.0)
    }
}

/// Estimates cell load, window by window. Takes downlink grants, measurements and cell
/// descriptions; other records are ignored.
#[derive(Debug, Clone, Default)]
pub struct LoadEstimator {
    options: LoadOptions,
    /// By timing segment and cell.
    carriers: BTreeMap<(u32, u8), CarrierWindows>,
    /// By PCI and EARFCN.
    cells: BTreeMap<(u16, u32), CellFit>,
    /// Bandwidth and antenna ports by cell index, from the latest message.
    known: BTreeMap<u8, (Option<u16>, Option<u8>)>,
    ready: VecDeque<LoadEstimate>,
    /// Windows that wait for their slope.
    waiting: usize,
}

/// A cell index in a timing segment.
#[derive(Debug, Clone, Default)]
struct CarrierWindows {
    /// First TTI of window 0.
    origin: i64,
    open: BTreeMap<i64, OpenWindow>,
    /// Windows before it are closed.
    closed_before: i64,
    /// MCS of the last window that had any.
    last_mcs: Option<(i64, McsMean)>,
    closed: Vec<ClosedWindow>,
}

/// What is known of a (PCI, EARFCN).
#[derive(Debug, Clone, Default)]
struct CellFit {
    noise: NoiseReadings,
    /// With the fold that each is of, oldest first.
    anchors: VecDeque<(usize, Anchor)>,
    /// The slope from all of them, until there are others.
    slope: Option<Slope>,
}

impl LoadEstimator {
    /// An estimator.
    #[must_use]
    pub fn new(options: LoadOptions) -> Self {
        let window_ms = options.window_ms.max(1);
        Self { options: LoadOptions { window_ms, ..options }, ..Self::default() }
    }

    /// Takes a record, nearly in TTI order.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Grant(grant) => self.push_grant(grant),
            Record::Measurement(m) => self.push_measurement(m),
            Record::CellInfo(info) => {
                let known = self.known.entry(info.cell).or_default();
                known.0 = info.n_prb_dl.or(known.0);
                known.1 = info.n_tx_antennas.or(known.1);
            }
            _ => {}
        }
    }

    /// Returns a window's estimate: at its end with [`Fit::Past`] and [`Fit::Plain`], an
    /// epoch at a time with [`Fit::Others`].
    pub fn poll(&mut self) -> Option<LoadEstimate> {
        self.ready.pop_front()
    }

    /// Ends the log: returns the remaining windows, in order.
    pub fn finish(&mut self) -> Vec<LoadEstimate> {
        let keys: Vec<_> = self.carriers.keys().copied().collect();
        for key in keys {
            self.close(key, i64::MAX);
        }
        self.judge_epoch();
        self.ready.drain(..).collect()
    }

    /// Judges the waiting windows.
    fn judge_epoch(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.waiting = 0;
        let slopes = self.slopes_of_folds();
        for (key, carrier) in &mut self.carriers {
            for window in std::mem::take(&mut carrier.closed) {
                let slope = slopes[&window.cell][fold(window.number)];
                let estimate = window.estimate(*key, carrier.origin, slope, self.options);
                self.ready.push_back(estimate);
            }
        }
        for fit in self.cells.values_mut() {
            let old = fit.anchors.len().saturating_sub(KEPT_ANCHORS);
            fit.anchors.drain(..old);
        }
        // Cells and timings that the phone has left get no more records.
        let newest = self.carriers.keys().map(|(segment, _)| *segment).max();
        self.carriers
            .retain(|(segment, _), carrier| Some(*segment) == newest || !carrier.open.is_empty());
    }

    /// The slope of a cell from all ended windows, for use on other data.
    #[must_use]
    pub fn slope(&self, pci: u16, earfcn: u32) -> Slope {
        let fit = self.cells.get(&(pci, earfcn));
        Slope::fit(fit.into_iter().flat_map(|fit| fit.anchors.iter().map(|(_, anchor)| *anchor)))
    }

    /// Antenna ports of a cell index: as signalled, or two.
    #[must_use]
    pub fn n_antennas(&self, cell: u8) -> u8 {
        self.known.get(&cell).and_then(|known| known.1).unwrap_or(USUAL_ANTENNAS)
    }

    fn slopes_of_folds(&self) -> BTreeMap<(u16, u32), [Slope; FOLDS]> {
        let of = |fit: &CellFit| {
            std::array::from_fn(|fold| {
                let others = fit.anchors.iter().filter(|(f, _)| *f != fold);
                Slope::fit(others.map(|(_, anchor)| *anchor))
            })
        };
        self.cells.iter().map(|(cell, fit)| (*cell, of(fit))).collect()
    }

    fn push_grant(&mut self, grant: &Grant) {
        if grant.dir != Direction::Dl || !grant.rnti.is_user() || grant.position.numerology != 0 {
            return;
        }
        let known = self.known.entry(grant.position.cell).or_default();
        known.0 = grant.n_prb_cell.or(known.0);
        let key = (grant.position.timing_segment, grant.position.cell);
        let tti = grant.position.tti;
        if let Some(window) = self.window(key, tti) {
            // `n_prb` is the assignment's, repeated on each of its blocks.
            let own = window.own.entry(tti.0).or_insert(OwnBlocks { n_prb: 0, are_full: true });
            own.n_prb = own.n_prb.max(grant.n_prb.unwrap_or(0));
            own.are_full &= grant.retx == Some(false)
                && grant.padding_bytes.is_some_and(|bytes| bytes <= FULL_PADDING_BYTES);
            window.mcs.push(grant);
        }
        self.close(key, tti.0);
    }

    fn push_measurement(&mut self, m: &Measurement) {
        let n_ant = self.n_antennas(m.position.cell);
        self.cells.entry((m.pci, m.earfcn)).or_default().noise.push(m, n_ant);
        let key = (m.position.timing_segment, m.position.cell);
        if let Some(window) = self.window(key, m.position.tti) {
            window.measurements.push(m.clone());
        }
        self.close(key, m.position.tti.0);
    }

    /// The open window of a TTI; `None` if it is closed.
    fn window(&mut self, key: (u32, u8), tti: TtiIndex) -> Option<&mut OpenWindow> {
        let carrier = self.carriers.entry(key).or_insert_with(|| CarrierWindows {
            origin: tti.0,
            closed_before: i64::MIN,
            ..CarrierWindows::default()
        });
        let number = tti.0.saturating_sub(carrier.origin).div_euclid(self.options.window_ms);
        (number >= carrier.closed_before).then(|| carrier.open.entry(number).or_default())
    }

    /// Closes the windows that ended well before a TTI.
    fn close(&mut self, key: (u32, u8), now: i64) {
        let n_prb_cell = self.known.get(&key.1).and_then(|known| known.0);
        let n_ant = self.n_antennas(key.1);
        let Some(carrier) = self.carriers.get_mut(&key) else { return };
        let t = self.options.window_ms;
        while let Some(entry) = carrier.open.first_entry() {
            let number = *entry.key();
            let end = (number + 1).saturating_mul(t).saturating_add(carrier.origin);
            if now < end.saturating_add(self.options.slack_ttis) {
                break;
            }
            let window = entry.remove();
            carrier.closed_before = number + 1;
            if !window.mcs.is_empty() {
                carrier.last_mcs = Some((number, window.mcs));
            }
            let mcs = carrier.last_mcs.filter(|(at, _)| (number - at).saturating_mul(t) < MCS_TTIS);
            // Without the bandwidth neither shares nor PRBs are known.
            let (Some(n_prb_cell), Some(first)) = (n_prb_cell, window.measurements.first()) else {
                continue;
            };
            let start = number.saturating_mul(t).saturating_add(carrier.origin);
            let before_ns = first.position.tti.0.saturating_sub(start).saturating_mul(1_000_000);
            let at = first.at.map(|at| Stamp { ns: at.ns.saturating_sub(before_ns), ..at });
            let cell = (first.pci, first.earfcn);
            let fit = self.cells.entry(cell).or_default();
            let (powers, anchors) = window.read(n_prb_cell, n_ant, fit, self.options.fit);
            let closed = ClosedWindow {
                number,
                at,
                cell,
                n_prb_cell,
                own_prb: window.own.values().map(|own| u64::from(own.n_prb)).sum(),
                mcs: mcs.map(|(_, mcs)| mcs),
                measurements: window.measurements.len(),
                powers,
            };
            if self.options.fit == Fit::Others {
                carrier.closed.push(closed);
                self.waiting += 1;
            } else {
                let of_all = || Slope::fit(fit.anchors.iter().map(|(_, anchor)| *anchor));
                let slope = *fit.slope.get_or_insert_with(of_all);
                let estimate = closed.estimate(key, carrier.origin, slope, self.options);
                self.ready.push_back(estimate);
                while fit.anchors.len() + anchors.len() > PAST_ANCHORS {
                    if fit.anchors.pop_front().is_none() {
                        break;
                    }
                }
            }
            if !anchors.is_empty() {
                fit.slope = None;
            }
            fit.anchors.extend(anchors.into_iter().map(|anchor| (fold(number), anchor)));
        }
        if self.waiting >= EPOCH_WINDOWS {
            self.judge_epoch();
        }
    }
}

/// The fold of a window.
fn fold(number: i64) -> usize {
    number.rem_euclid(FOLDS as i64) as usize
}
