//! Steps of the link with QCut: the firmware's occupancy, and losses.

use std::sync::Arc;

use airmile_emulate::{LinkTrace, Scenario, run_into};

use super::watch::QueueMonitor;
use crate::reproduce::estimate::{Estimate, count, mean};
use crate::reproduce::figure::{Axis, Figure, Series};
use crate::reproduce::runs::{Work, cannot, read};
use crate::reproduce::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "qcut-steps",
    source: "QCut (ours: its evaluation has no such part)",
    what: "handover, a rate that drops tenfold in 100 ms, a modem silent for 2 s",
    run: steps,
};

const SCENARIO: &str = include_str!("../../../experiments/qcut-steps.toml");

/// Time of the step, and end of the observation, in ms of the run.
const STEP_MS: i64 = 8_000;
const WATCHED_MS: i64 = 14_000;

/// The rate before, in bytes per ms: 8 Mbit/s.
const BEFORE: f64 = 1_000.0;

/// The phone's modem log writes transmissions at least every 11 ms, and they are read 5 ms
/// later: the interval between two reports.
const REPORT_MS: f64 = 11.0;
const LATE_MS: f64 = 5.0;

/// The limit in ms, 20 plus 21 for a grant, and two fifths more while the gate probes for
/// rate (`airmile_control::qcut::Limit`), and one large packet in bytes: at 0.8 Mbit/s it
/// takes 15 ms, and the log's data on the buffer is as coarse.
const LIMIT_MS: f64 = 57.4;
const PACKET_BYTES: f64 = 1_500.0;

/// Minimum share of the link's rate from a second after the step on, in percent: headers
/// take 4 (chosen here).
const MIN_CARRIED: f64 = 94.5;

/// Recovered once the limit is not exceeded for this time: the gate probes for rate every
/// 400 ms.
const STAYS_MS: i64 = 400;

/// A step of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkStep {
    /// Nothing for 60 ms (a handover without random access delays: TS 36.133, 5.1.2, has an
    /// interruption of 45 ms and more), then half of the rate.
    Handover,
    /// A tenth of the rate within 100 ms.
    Drop,
    /// The modem reports nothing for 2 s.
    Silence,
}

const STEPS: [(LinkStep, &str); 3] = [
    (LinkStep::Handover, "handover"),
    (LinkStep::Drop, "rate drops tenfold"),
    (LinkStep::Silence, "modem silent for 2 s"),
];

impl LinkStep {
    /// Uplink capacity in bytes per ms, by ms after the step.
    fn rate(self, since_ms: i64) -> f64 {
        match self {
            Self::Handover if (0..60).contains(&since_ms) => 0.0,
            Self::Handover if since_ms >= 60 => BEFORE / 2.0,
            Self::Drop if since_ms >= 0 => {
                BEFORE * (1.0 - 0.9 * (since_ms.min(100) as f64 / 100.0))
            }
            _ => BEFORE,
        }
    }

    fn set(self, scenario: &mut Scenario) {
        // Delivery opportunities of 1,500 bytes, as link traces have them.
        let mut text = String::new();
        let (mut credit, end_ms) = (0.0, i64::from(scenario.duration_ms));
        for ms in 0..end_ms {
            credit += self.rate(ms - STEP_MS);
            while credit >= 1_500.0 {
                credit -= 1_500.0;
                text.push_str(&format!("{ms}\n"));
            }
        }
        text.push_str(&format!("{end_ms}\n"));
        scenario.link.ul_trace = LinkTrace::parse(&text).ok().map(Arc::new);
        if self == Self::Silence
            && let Some(queue) = &mut scenario.uplink_queue
        {
            queue.modem_log.silent_ms = Some((STEP_MS as u32, STEP_MS as u32 + 2_000));
        }
    }
}

/// Response to a step.
struct StepResponse {
    /// Maximum firmware occupancy from the step on, in bytes.
    most: f64,
    /// Time from the step until the occupancy stayed within the limit, in ms; and its
    /// threshold.
    back_ms: f64,
    bar_ms: f64,
    /// Packets dropped by the queueing, and packets lost otherwise.
    dropped: f64,
    lost: f64,
    /// Share of the link's rate that arrived from 1 s after the step on, in percent.
    carried: f64,
    /// Share of TTIs from the step on that began with nothing to send, in percent.
    starved: f64,
    /// Firmware occupancy in kB, by ms from the step on.
    held: Vec<(f64, f64)>,
}

/// When the occupancy starts to stay within the limit for [`STAYS_MS`]; NaN: never.
fn back_ms(held: &[(i64, f64)], limit: f64) -> f64 {
    let mut back = None;
    for (since, bytes) in held.iter().filter(|(since, _)| *since >= 0) {
        if *bytes > limit {
            back = None;
        } else if since - *back.get_or_insert(*since) >= STAYS_MS {
            break;
        }
    }
    back.map_or(f64::NAN, |since| since as f64)
}

fn answer(step: LinkStep, scenario: &Scenario) -> Result<StepResponse> {
    let start_ns = scenario.epoch_ns + i64::from(scenario.first_tti) * 1_000_000;
    let mut watch = QueueMonitor::from_ns(start_ns);
    run_into(scenario, &mut watch).map_err(cannot)?;
    let held: Vec<(i64, f64)> = watch
        .held
        .iter()
        .map(|(at, bytes)| ((at - start_ns) / 1_000_000 - STEP_MS, *bytes as f64))
        .filter(|(since, _)| (-500..WATCHED_MS - STEP_MS).contains(since))
        .collect();
    let after = || held.iter().filter(|(since, _)| *since >= 0);
    let rate = step.rate(WATCHED_MS - STEP_MS);
    let limit = LIMIT_MS * rate + PACKET_BYTES;
    let most = after().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let back_ms = back_ms(&held, limit);
    // Firmware occupancy at the earliest possible report of the step.
    let early = after().filter(|(since, _)| (*since as f64) <= REPORT_MS + LATE_MS);
    let at_step = early.map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let [sent, handed, dropped] = watch.packets;
    let starved = after().filter(|(_, bytes)| *bytes == 0.0).count() as f64;
    Ok(StepResponse {
        most,
        back_ms,
        bar_ms: at_step / rate + REPORT_MS + 50.0,
        dropped: dropped as f64,
        lost: sent as f64 - handed as f64 - dropped as f64,
        carried: 100.0 * watch.bytes_between(start_ns, (STEP_MS + 1_000, WATCHED_MS)) as f64
            / (rate * (WATCHED_MS - STEP_MS - 1_000) as f64),
        starved: 100.0 * starved / after().count().max(1) as f64,
        held: held.iter().map(|(since, bytes)| (*since as f64, bytes / 1e3)).collect(),
    })
}

fn steps(work: &Work<'_>) -> Result<ExperimentResult> {
    let seeds = work.size.of(1, 10, 30);
    let mut runs = Vec::new();
    for (step, _) in STEPS {
        for seed in 0..seeds {
            let mut scenario = read(SCENARIO)?;
            scenario.seed = 54_000 + seed;
            step.set(&mut scenario);
            runs.push((step, scenario));
        }
    }
    let answers = work.for_each(&runs, |(step, scenario)| answer(*step, scenario))?;
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "held",
        "What the firmware holds around a step, QCut-D (20 ms)",
        Axis::new("time since the step (ms)"),
        Axis::new("held (kB)"),
    )
    .caption(format!("The first of n = {seeds} runs of each step."));
    const BAR: &str = "the bar: the firmware's occupancy at the first report of the step, at the \
        new rate; a report's interval; 50 ms";
    const BOUND: &str = "the bar is the bound: the firmware's bytes at the first report leave at the new \
        rate, whatever the gate does; it searches the rate at times (docs/papers/qcut.md)";
    // A run without recovery also exceeds its bar.
    let over = |answers: &[StepResponse]| {
        let over = answers.iter().filter(|a| a.back_ms.is_nan() || a.back_ms > a.bar_ms);
        count(over.count() as u64, answers.len())
    };
    for ((_, name), answers) in STEPS.iter().zip(answers.chunks(seeds as usize)) {
        let of = |value: fn(&StepResponse) -> f64| -> Estimate {
            mean(&answers.iter().map(value).collect::<Vec<f64>>())
        };
        let row = |what: &str, unit, value| Row::new(format!("{name}: {what}"), unit, value);
        rows.push(row("maximum firmware occupancy", "kB", of(|a| a.most / 1e3)));
        rows.push(row("back under the limit after", "ms", of(|a| a.back_ms)));
        rows.push(row("bar for it", "ms", of(|a| a.bar_ms)).note(BAR));
        rows.push(row("runs over the bar", "", over(answers)).at_most(0.0).note(BOUND));
        let carried = row("rate after it, of the link's", "%", of(|a| a.carried));
        rows.push(carried.at_least(MIN_CARRIED));
        rows.push(row("TTIs with nothing to send", "%", of(|a| a.starved)));
        rows.push(row("packets dropped by CoDel", "", of(|a| a.dropped)));
        rows.push(row("packets lost otherwise", "", of(|a| a.lost)).at_most(0.0));
        if let Some(first) = answers.first() {
            let shown = first.held.iter().filter(|(since, _)| (-200.0..3_000.0).contains(since));
            figure = figure.with(Series::curve(*name, shown.copied().collect()));
        }
    }
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_is_who_stays() {
        let over = [(10..60, 2.0), (100..300, 2.0)];
        let held = |until: i64| -> Vec<(i64, f64)> {
            let at = |ms| over.iter().find(|(of, _)| of.contains(&ms)).map_or(1.0, |(_, b)| *b);
            (-5..until).map(|ms| (ms, at(ms))).collect()
        };
        assert_eq!(back_ms(&held(2_000), 1.5), 300.0);
        assert_eq!(back_ms(&held(2_000), 2.0), 0.0);
        assert!(back_ms(&held(200), 1.5).is_nan());
    }

    #[test]
    fn rates_around_a_step() {
        for (step, expected) in [
            (LinkStep::Handover, [1_000.0, 0.0, 0.0, 500.0]),
            (LinkStep::Drop, [1_000.0, 1_000.0, 550.0, 100.0]),
            (LinkStep::Silence, [1_000.0; 4]),
        ] {
            let rates = [-1, 0, 50, 1_000].map(|ms| step.rate(ms));
            for (rate, expected) in rates.iter().zip(expected) {
                assert!((rate - expected).abs() < 1e-9, "{step:?}: {rates:?}");
            }
        }
    }
}
