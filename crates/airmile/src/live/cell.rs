//! The cell while the log is written, as CLAW's reports tell it (MobiSys 2017, 4).
//!
//! [`LiveCell::push`] takes bytes of a modem log; [`LiveCell::look`] gives the report of
//! now, from a copy that is ended: the records wait 2 s of log time for late ones, which
//! a sender cannot.

use std::collections::{BTreeMap, BTreeSet};

use airmile_control::claw::feedback::Report;
use airmile_control::claw::{Bottleneck, BottleneckDetector, DetectorOptions};
use airmile_decode::diag::LogReader;
use airmile_infer::load::{Fit, LoadEstimate, LoadEstimator, LoadOptions};
use airmile_infer::loss::{LossLayer, LossOptions, LossTracker};
use airmile_model::{Direction, Record, TtiIndex};

/// Windows of the load in ms (the paper: the round-trip time; chosen here: as often as
/// is reported, so that each report has a window of its own).
const WINDOW_MS: i64 = 100;

/// A window older than so many behind the log's end tells of an idle radio (chosen here:
/// what modems write late, and one window more).
const IDLE_WINDOWS: i64 = 5;

/// Parts of a window, each of which must have a grant, or the sender had nothing to send
/// (chosen here).
const BUSY_PARTS: i64 = 5;

/// TTIs after which a hole of RLC is a loss (chosen here: past a t-Reordering of 100 ms,
/// as what is told later is of no use to the sender).
const LOST_AFTER_TTIS: i64 = 120;

/// What is known of the cell. See the [module](self).
#[derive(Debug, Clone)]
pub struct LiveCell {
    reader: LogReader,
    /// The first subscription that has measurements.
    subscription: Option<u8>,
    cell: Cell,
    detector: BottleneckDetector,
    /// The last window that the detector has seen.
    judged: Option<(u32, TtiIndex)>,
    last: Report,
}

#[derive(Debug, Clone)]
struct Cell {
    load: LoadEstimator,
    /// The last complete windows, by carrier.
    windows: BTreeMap<u8, LoadEstimate>,
    losses: LossTracker,
    rlc_losses: u32,
    pdcp_losses: u32,
    /// TTIs of the last second with downlink data for the phone.
    granted: BTreeSet<TtiIndex>,
    /// Of the latest record: timing segment and TTI.
    latest: Option<(u32, TtiIndex)>,
}

impl Default for LiveCell {
    fn default() -> Self {
        Self::new()
    }
}

impl LiveCell {
    /// Before the first byte.
    #[must_use]
    pub fn new() -> Self {
        let load = LoadOptions { window_ms: WINDOW_MS, fit: Fit::Past, ..LoadOptions::default() };
        let losses = LossOptions { um_ttis: LOST_AFTER_TTIS, ..LossOptions::default() };
        let cell = Cell {
            load: LoadEstimator::new(load),
            windows: BTreeMap::new(),
            losses: LossTracker::new(losses),
            rlc_losses: 0,
            pdcp_losses: 0,
            granted: BTreeSet::new(),
            latest: None,
        };
        Self {
            reader: LogReader::new(),
            subscription: None,
            cell,
            detector: BottleneckDetector::new(DetectorOptions::default()),
            judged: None,
            last: Report::default(),
        }
    }

    /// Takes the next bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { reader, subscription, cell, .. } = self;
        reader.push(bytes, &mut |tagged| {
            if matches!(tagged.record, Record::Measurement(_)) {
                subscription.get_or_insert(tagged.subscription);
            }
            if subscription.is_none_or(|chosen| chosen == tagged.subscription) {
                cell.push(&tagged.record);
            }
        });
    }

    /// The modem was away: what it logged meanwhile is lost.
    pub fn note_gap(&mut self) {
        let Self { reader, subscription, cell, .. } = self;
        reader.note_gap(&mut |tagged| {
            if subscription.is_none_or(|chosen| chosen == tagged.subscription) {
                cell.push(&tagged.record);
            }
        });
    }

    /// The report of now, without number and time; `None` until a cell's load is known.
    /// The window is for a round trip of `rtt_ns`. `away`: nothing comes from the modem.
    pub fn look(&mut self, rtt_ns: i64, away: bool) -> Option<Report> {
        let mut reader = self.reader.clone();
        let mut cell = self.cell.clone();
        let chosen = self.subscription;
        reader.finish(&mut |tagged| {
            if chosen.is_none_or(|chosen| chosen == tagged.subscription) {
                cell.push(&tagged.record);
            }
        });
        cell.complete();
        self.last.radio_losses = self.last.radio_losses.max(cell.rlc_losses);
        // What PDCP had numbered and RLC never had ran over, or was discarded.
        let queue = cell.pdcp_losses.saturating_sub(cell.rlc_losses);
        self.last.queue_losses = self.last.queue_losses.max(queue);
        let (segment, now) = cell.latest?;
        let is_now = |window: &&LoadEstimate| {
            window.timing_segment == segment
                && now.0 - window.tti.0 <= (IDLE_WINDOWS + 1) * WINDOW_MS
        };
        let windows: Vec<&LoadEstimate> = cell.windows.values().filter(is_now).collect();
        let Some(primary) = windows.first() else {
            self.last.idle = true;
            return cell.windows.values().next().map(|_| self.last);
        };
        let at = (segment, primary.tti);
        if self.judged != Some(at) {
            self.judged = Some(at);
            let used = windows.iter().map(|window| window.n_own_prb).sum();
            let free = windows.iter().filter_map(|window| window.n_free_prb).sum();
            self.detector.on_round_trip(used, free, cell.is_busy(primary));
        }
        let capacity_bps: f64 = windows.iter().filter_map(|window| window.capacity_bps).sum();
        let total: f64 = windows.iter().map(|window| window.n_total_prb).sum();
        let taken = |window: &&LoadEstimate| Some(window.load? * window.n_total_prb);
        let taken: f64 = windows.iter().filter_map(taken).sum();
        if capacity_bps > 0.0 {
            let bytes = capacity_bps * rtt_ns.max(0) as f64 / 8e9;
            self.last.w_claw_bytes = bytes.min(f64::from(u32::MAX)) as u32;
        }
        self.last.load = (taken / total.max(1.0)).clamp(0.0, 1.0);
        self.last.bottleneck = self.detector.verdict();
        // Without a grant in sight nobody knows the MCS, so nor the window.
        self.last.idle = away || capacity_bps <= 0.0;
        (self.last.w_claw_bytes > 0).then_some(self.last)
    }

    /// Where the bottleneck is.
    #[must_use]
    pub const fn bottleneck(&self) -> Bottleneck {
        self.detector.verdict()
    }
}

impl Cell {
    fn push(&mut self, record: &Record) {
        self.load.push(record);
        self.losses.push(record);
        while let Some(loss) = self.losses.poll() {
            match loss.layer {
                LossLayer::Rlc => self.rlc_losses = self.rlc_losses.saturating_add(1),
                LossLayer::Pdcp => self.pdcp_losses = self.pdcp_losses.saturating_add(1),
            }
        }
        // They are counted above, and not wanted.
        while self.losses.poll_given_up().is_some() {}
        while let Some(window) = self.load.poll() {
            self.windows.insert(window.cell, window);
        }
        let at = match record {
            Record::Grant(grant) if grant.dir == Direction::Dl => {
                self.granted.insert(grant.position.tti);
                grant.position
            }
            Record::Measurement(measurement) => measurement.position,
            _ => return,
        };
        let segment = self.latest.map(|(segment, _)| segment);
        if segment.is_some_and(|segment| segment != at.timing_segment) {
            self.granted.clear();
            self.windows.clear();
            self.latest = None;
        }
        let tti = self.latest.map_or(at.tti, |(_, tti)| tti.max(at.tti));
        self.latest = Some((at.timing_segment, tti));
        while self.granted.first().is_some_and(|first| tti.0 - first.0 > 1_000) {
            self.granted.pop_first();
        }
    }

    /// Ends the log; windows that are not complete tell nothing.
    fn complete(&mut self) {
        let Some((_, now)) = self.latest else { return };
        for window in self.load.finish() {
            if window.tti.0 + window.n_tti <= now.0 && window.load.is_some() {
                self.windows.insert(window.cell, window);
            }
        }
    }

    /// Whether the sender had something to send in all of a window.
    fn is_busy(&self, window: &LoadEstimate) -> bool {
        let part = window.n_tti / BUSY_PARTS;
        (0..BUSY_PARTS).all(|n| {
            let from = window.tti.plus(n * part);
            self.granted.range(from..from.plus(part)).next().is_some()
        })
    }
}
