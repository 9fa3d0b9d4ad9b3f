//! CLAW's program on the phone (MobiSys 2017, 4 and 5): the modem's records go through the
//! cell load analyzer, and the server is told which window the cell has room for.
//!
//! [`RadioAgent`] does no I/O and has no clock: records and the time go in, reports come
//! out. The emulator runs it on emulated phones.

use std::collections::VecDeque;

use airmile_control::RadioNeed;
use airmile_control::claw::{Bottleneck, BottleneckDetector, DetectorOptions, Feedback};
use airmile_emulate::{PhoneView, RadioReader, ReaderSetup};
use airmile_infer::load::{Fit, LoadEstimate, LoadEstimator, LoadOptions};
use airmile_infer::loss::{LossLayer, LossOptions, LossTracker};
use airmile_model::Record;

const MS_NS: i64 = 1_000_000;

/// Time over which load is looked at anew, in ms: a round trip is some of these, and a
/// report tells of the last ones (chosen here: at least a measurement each, where they
/// are 40 ms apart).
const STEP_MS: i64 = 50;
/// TTIs for which a step waits for late records (chosen here: HARQ's retransmissions).
const SLACK_TTIS: i64 = 8;
/// The analyzer's window where no round trip is known (spec of the paper's figure 10).
const ROUND_TRIP_NS: i64 = 200 * MS_NS;
/// Steps that are kept: the longest round trip that is followed (chosen here).
const STEPS: usize = 20;
/// A hole in RLC UM is a loss after as many TTIs: past HARQ's retransmissions, and before
/// most t-Reordering of TS 36.331, 6.3.2, ends, so that the server hears of it before
/// the duplicate ACKs.
const UM_TTIS: i64 = 24;
/// What waits for the scheduler and HARQ on the way, over the least round trip, in ns
/// (chosen here: two retransmissions). A window of the least round trip alone would leave
/// the cell without data whenever one is longer.
const WAITS_NS: i64 = 16 * MS_NS;

/// A step's totals on the primary cell.
#[derive(Debug, Clone, Copy)]
struct Step {
    total_prb: f64,
    own_prb: f64,
    idle_prb: f64,
    capacity_bps: Option<f64>,
}

/// The program on the phone.
#[derive(Debug)]
pub struct RadioAgent {
    setup: ReaderSetup,
    load: LoadEstimator,
    losses: LossTracker,
    radio_losses: u64,
    told_losses: u64,
    steps: VecDeque<Step>,
    detector: BottleneckDetector,
    /// When the first report went out since the phone last waited for nothing.
    first_report_ns: Option<i64>,
    round_trip_ends_ns: i64,
    next_report_ns: i64,
    sequence: u64,
    /// The last thing that was said is that the radio idles.
    said_idle: bool,
}

/// What the last round trip's steps come to.
#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    load: f64,
    own_prb: f64,
    free_prb: f64,
    capacity_bps: Option<f64>,
    /// The phone got something in each step.
    is_served: bool,
}

impl RadioAgent {
    /// One that has read nothing yet.
    #[must_use]
    pub fn new(setup: ReaderSetup) -> Self {
        let options = LoadOptions { window_ms: STEP_MS, fit: Fit::Past, slack_ttis: SLACK_TTIS };
        let losses = LossOptions { um_ttis: UM_TTIS, ..LossOptions::default() };
        Self {
            setup,
            load: LoadEstimator::new(options),
            losses: LossTracker::new(losses),
            radio_losses: 0,
            told_losses: 0,
            steps: VecDeque::new(),
            detector: BottleneckDetector::new(DetectorOptions::default()),
            first_report_ns: None,
            round_trip_ends_ns: i64::MIN,
            next_report_ns: i64::MIN,
            sequence: 0,
            said_idle: true,
        }
    }

    fn take(&mut self, estimate: &LoadEstimate) {
        let Some(idle_prb) = estimate.n_idle_prb.filter(|_| estimate.cell == 0) else { return };
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(Step {
            total_prb: estimate.n_total_prb,
            own_prb: estimate.n_own_prb,
            idle_prb,
            capacity_bps: estimate.capacity_bps,
        });
    }

    /// The last round trip, as long as it is known.
    fn round_trip(&self, round_trip_ns: i64) -> Option<RoundTrip> {
        let steps = (round_trip_ns + STEP_MS * MS_NS - 1) / (STEP_MS * MS_NS);
        let steps = usize::try_from(steps).unwrap_or(1).clamp(1, STEPS);
        let of = || self.steps.iter().rev().take(steps);
        let sum = |part: fn(&Step) -> f64| of().map(part).sum::<f64>();
        let total_prb = sum(|step| step.total_prb);
        if total_prb <= 0.0 {
            return None;
        }
        let (own_prb, idle_prb) = (sum(|step| step.own_prb), sum(|step| step.idle_prb));
        let rates: Vec<f64> = of().filter_map(|step| step.capacity_bps).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        Some(RoundTrip {
            load: (1.0 - idle_prb / total_prb).clamp(0.0, 1.0),
            own_prb,
            free_prb: (own_prb + idle_prb).min(total_prb),
            capacity_bps: (!rates.is_empty()).then_some(mean),
            is_served: of().all(|step| step.own_prb > 0.0),
        })
    }

    /// Whether the flow is limited before the cell, once a round trip.
    fn detect(&mut self, now_ns: i64, round_trip_ns: i64, last: &RoundTrip) {
        if now_ns < self.round_trip_ends_ns {
            return;
        }
        self.round_trip_ends_ns = now_ns + round_trip_ns;
        // The window that the server was told fills the cell two round trips later.
        let told = self.first_report_ns.is_some_and(|at_ns| now_ns - at_ns >= 2 * round_trip_ns);
        let busy = told && last.is_served;
        self.detector.on_round_trip(last.own_prb, last.free_prb, busy);
    }

    fn say(&mut self, last: &RoundTrip, rate_bps: f64, round_trip_ns: i64, idle: bool) -> Feedback {
        self.sequence += 1;
        self.said_idle = idle;
        self.told_losses = self.radio_losses;
        let window = rate_bps * (round_trip_ns + WAITS_NS) as f64 / 8e9;
        let detects = self.setup.config.detector && self.setup.need == RadioNeed::Free;
        Feedback {
            sequence: self.sequence,
            w_claw_bytes: window.max(0.0) as u64,
            load: last.load,
            bottleneck: if detects { self.detector.verdict() } else { Bottleneck::Cellular },
            idle,
            radio_losses: if self.setup.config.losses { self.radio_losses } else { 0 },
            queue_losses: 0,
        }
    }
}

impl RadioReader for RadioAgent {
    fn record(&mut self, record: &Record) {
        self.load.push(record);
        self.losses.push(record);
    }

    fn poll(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        while let Some(estimate) = self.load.poll() {
            self.take(&estimate);
        }
        while let Some(loss) = self.losses.poll() {
            self.radio_losses += u64::from(loss.layer == LossLayer::Rlc);
        }
        let round_trip_ns = phone.min_rtt_ns.unwrap_or(ROUND_TRIP_NS);
        let last = self.round_trip(round_trip_ns)?;
        // Equation 12; CQIC's client sees what it has of it.
        let free_bps = last.capacity_bps?;
        let rate_bps = match self.setup.need {
            RadioNeed::Free => free_bps,
            RadioNeed::Allocated => free_bps * last.own_prb / last.free_prb.max(1.0),
        };
        if !phone.busy {
            self.first_report_ns = None;
            let goes_idle = !self.said_idle;
            return goes_idle.then(|| self.say(&last, rate_bps, round_trip_ns, true));
        }
        self.detect(now_ns, round_trip_ns, &last);
        let lost = self.setup.config.losses && self.radio_losses > self.told_losses;
        if !lost && !self.said_idle && now_ns < self.next_report_ns {
            return None;
        }
        self.first_report_ns.get_or_insert(now_ns);
        self.next_report_ns = now_ns + i64::from(self.setup.config.every_ms) * MS_NS;
        Some(self.say(&last, rate_bps, round_trip_ns, false))
    }
}
