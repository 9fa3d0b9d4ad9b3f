//! The phone's cell from its modem's records, as reported to a server: load and capacity over the
//! last round trip, the radio's losses, and where the bottleneck is.
//!
//! The emulator's phones and real hosts share this code; they differ in the source of time.

use std::collections::{BTreeMap, VecDeque};

use airmile_control::claw::{Bottleneck, BottleneckDetector, DetectorOptions};
use airmile_model::units::MS_NS;
use airmile_model::{Record, TtiIndex};
use airmile_radio::load::{Fit, LoadEstimate, LoadEstimator, LoadOptions};
use airmile_radio::loss::{LossLayer, LossOptions, LossTracker};

/// Interval of load estimates in ms: a round trip covers several, and a report covers the last ones
/// (chosen here: each has at least one measurement, where these are 40 ms apart).
const STEP_MS: i64 = 50;
/// TTIs for which a step waits for late records (chosen here: HARQ's retransmissions).
const SLACK_TTIS: i64 = 8;
/// Steps that are kept: the longest supported round trip (chosen here).
const STEPS: usize = 20;
/// A gap in RLC UM counts as a loss after this many TTIs: after HARQ's retransmissions, and before
/// most t-Reordering timers of TS 36.331, 6.3.2, end, so that the report reaches the server before
/// the duplicate ACKs.
const UM_MS: i64 = 24;

/// The totals of a step on a carrier.
#[derive(Debug, Clone, Copy)]
struct StepTotals {
    timing_segment: u32,
    /// Its end.
    tti: TtiIndex,
    total_prb: f64,
    own_prb: f64,
    idle_prb: f64,
    capacity_bps: Option<f64>,
}

/// The sums of the last round trip's steps, over the carriers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// The end of its last step.
    pub at: (u32, TtiIndex),
    /// Share of PRBs in use.
    pub load: f64,
    /// PRBs allocated to the phone.
    pub own_prb: f64,
    /// PRBs that were allocated to the phone or free.
    pub free_prb: f64,
    /// Equation 12.
    pub capacity_bps: Option<f64>,
    /// The phone was scheduled in each step.
    pub is_served: bool,
}

/// The analyzer's state.
#[derive(Debug, Clone)]
pub struct PhoneCell {
    load: LoadEstimator,
    losses: LossTracker,
    radio_losses: u64,
    pdcp_losses: u64,
    steps: BTreeMap<u8, VecDeque<StepTotals>>,
    detects: Detects,
}

/// Whether the flow is limited before the cell.
#[derive(Debug, Clone)]
struct Detects {
    detector: BottleneckDetector,
    /// Time of the first report since the phone last had nothing outstanding.
    first_report_ns: Option<i64>,
    round_trip_ends_ns: i64,
}

impl Default for PhoneCell {
    fn default() -> Self {
        Self::new()
    }
}

impl PhoneCell {
    /// Before the first record.
    #[must_use]
    pub fn new() -> Self {
        let options = LoadOptions { window_ms: STEP_MS, fit: Fit::Past, slack_ttis: SLACK_TTIS };
        let losses = LossOptions { um_ms: UM_MS, ..LossOptions::default() };
        let detects = Detects {
            detector: BottleneckDetector::new(DetectorOptions::default()),
            first_report_ns: None,
            round_trip_ends_ns: i64::MIN,
        };
        Self {
            load: LoadEstimator::new(options),
            losses: LossTracker::new(losses),
            radio_losses: 0,
            pdcp_losses: 0,
            steps: BTreeMap::new(),
            detects,
        }
    }

    /// Takes a record, in time order.
    pub fn push(&mut self, record: &Record) {
        self.load.push(record);
        self.losses.push(record);
    }

    /// Processes what has arrived.
    pub fn settle(&mut self) {
        while let Some(estimate) = self.load.poll() {
            self.take(&estimate);
        }
        while let Some(loss) = self.losses.poll() {
            match loss.layer {
                LossLayer::Rlc => self.radio_losses += 1,
                LossLayer::Pdcp => self.pdcp_losses += 1,
            }
        }
        // They are counted above, and not needed.
        while self.losses.poll_given_up().is_some() {}
    }

    /// Ends the log at a TTI; steps that are incomplete by then are dropped.
    pub fn finish(&mut self, now: TtiIndex) {
        self.settle();
        for estimate in self.load.finish() {
            if estimate.tti.0 + estimate.n_tti <= now.0 {
                self.take(&estimate);
            }
        }
    }

    fn take(&mut self, estimate: &LoadEstimate) {
        let Some(idle_prb) = estimate.n_idle_prb else { return };
        let steps = self.steps.entry(estimate.cell).or_default();
        if steps.len() == STEPS {
            steps.pop_front();
        }
        steps.push_back(StepTotals {
            timing_segment: estimate.timing_segment,
            tti: estimate.tti.plus(estimate.n_tti),
            total_prb: estimate.n_total_prb,
            own_prb: estimate.n_own_prb,
            idle_prb,
            capacity_bps: estimate.capacity_bps,
        });
    }

    /// The last round trip, if enough is known. Another carrier counts only if its steps are of the
    /// same time; a removed carrier does not.
    pub fn round_trip(&self, round_trip_ns: i64) -> Option<RoundTrip> {
        let n = (round_trip_ns + STEP_MS * MS_NS - 1) / (STEP_MS * MS_NS);
        let n = usize::try_from(n).unwrap_or(1).clamp(1, STEPS);
        let newest =
            |steps: &VecDeque<StepTotals>| steps.back().map(|step| (step.timing_segment, step.tti));
        let at = self.steps.values().filter_map(newest).max()?;
        let is_now = |steps: &&VecDeque<StepTotals>| {
            newest(steps).is_some_and(|(segment, tti)| {
                segment == at.0 && at.1.0 - tti.0 <= n as i64 * STEP_MS
            })
        };
        let carriers = || self.steps.values().filter(is_now);
        let of_carrier = |steps: &'_ VecDeque<StepTotals>| -> Vec<StepTotals> {
            let steps = steps.iter().rev().take(n);
            steps.filter(|step| step.timing_segment == at.0).copied().collect()
        };
        let of = || carriers().flat_map(of_carrier);
        let sum = |part: fn(StepTotals) -> f64| of().map(part).sum::<f64>();
        let total_prb = sum(|step| step.total_prb);
        if total_prb <= 0.0 {
            return None;
        }
        let (own_prb, idle_prb) = (sum(|step| step.own_prb), sum(|step| step.idle_prb));
        let mut capacity_bps = None;
        for steps in carriers() {
            let steps = of_carrier(steps);
            let rates: Vec<f64> = steps.iter().filter_map(|step| step.capacity_bps).collect();
            if !rates.is_empty() {
                let mean = rates.iter().sum::<f64>() / rates.len() as f64;
                capacity_bps = Some(capacity_bps.unwrap_or(0.0) + mean);
            }
        }
        let primary = carriers().next().map(of_carrier);
        Some(RoundTrip {
            at,
            load: (1.0 - idle_prb / total_prb).clamp(0.0, 1.0),
            own_prb,
            free_prb: (own_prb + idle_prb).min(total_prb),
            capacity_bps,
            is_served: primary.is_some_and(|steps| steps.iter().all(|step| step.own_prb > 0.0)),
        })
    }

    /// Detects, once per round trip, where the flow is limited. The server has reports of the cell
    /// since the first call after [`Self::rest`].
    pub fn detect(&mut self, now_ns: i64, round_trip_ns: i64, last: &RoundTrip) {
        let Detects { detector, first_report_ns, round_trip_ends_ns } = &mut self.detects;
        if now_ns >= *round_trip_ends_ns {
            *round_trip_ends_ns = now_ns + round_trip_ns;
            // The reported window fills the cell two round trips later.
            let in_force = first_report_ns.is_some_and(|at_ns| now_ns - at_ns >= 2 * round_trip_ns);
            let busy = in_force && last.is_served;
            detector.on_round_trip(last.own_prb, last.free_prb, busy, self.radio_losses);
        }
    }

    /// Records that a report was sent.
    pub fn reported(&mut self, now_ns: i64) {
        self.detects.first_report_ns.get_or_insert(now_ns);
    }

    /// The phone has nothing outstanding: no window fills the cell.
    pub const fn rest(&mut self) {
        self.detects.first_report_ns = None;
    }

    /// The clock restarts.
    pub const fn restart(&mut self) {
        self.detects.first_report_ns = None;
        self.detects.round_trip_ends_ns = i64::MIN;
    }

    /// Where the bottleneck is.
    pub const fn bottleneck(&self) -> Bottleneck {
        self.detects.detector.verdict()
    }

    /// Copies the state of the bottleneck detection from another.
    pub fn learn(&mut self, other: Self) {
        self.detects = other.detects;
    }

    /// W_claw in bytes for a rate and the minimum round trip.
    pub fn window_bytes(&self, rate_bps: f64, round_trip_ns: i64) -> f64 {
        self.detects.detector.window_bytes(rate_bps, round_trip_ns, self.radio_losses)
    }

    /// Packets lost on the radio so far.
    pub const fn radio_losses(&self) -> u64 {
        self.radio_losses
    }

    /// Packets lost before the radio so far: PDCP numbered them but RLC never had them, because its
    /// queue overflowed or they were discarded.
    pub const fn queue_losses(&self) -> u64 {
        self.pdcp_losses.saturating_sub(self.radio_losses)
    }
}
