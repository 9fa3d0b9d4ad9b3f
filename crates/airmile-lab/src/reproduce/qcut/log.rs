//! QCut-D with grants some TTIs apart, and with realistic modem logs.

use airmile_control::qcut::Limit;
use airmile_emulate::{Discipline, ModemLogConfig, Scenario};

use super::upload::{MAX_OVER_MS, MIN_SHARE, SCENARIO, Throughput, measure};
use super::{BOUND_OF_LOG, STRONG, Signal, Variant, WEAK};
use crate::reproduce::estimate::{Estimate, mean};
use crate::reproduce::runs::{Work, only, read};
use crate::reproduce::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "qcut-log",
    source: "QCut (ours: its evaluation has no such part)",
    what: "an upload with a grant every 1 to 6 TTIs, and with a log that is late or lacks batches",
    run: log,
};

const QCUT_D: Discipline = Discipline::Qcut { limit: Limit::DelayMs(20) };
/// With a grant every fourth TTI or less often the weak signal carries 0.29 to 0.42 Mbit/s.
const BOUND_OF_PACKETS: &str = "bound: one large packet takes 28 to 41 ms at this rate, and grants \
    need a second one";
/// With the log rejected: round trips' throughput less the time until it is, and what differs
/// between runs.
const MIN_OF_ROUND_TRIPS: f64 = 97.0;
const UNUSABLE: &str = "the log is rejected: to compare with round trips";
const ROUND_TRIPS: Discipline =
    Discipline::RoundTrips { limit: Limit::DelayMs(20), told_base_ms: None };

/// Differences to the scenario.
struct LogImpairment {
    what: String,
    grant_every_tti: u32,
    modem_log: ModemLogConfig,
    /// Whether the gate has to reject the log, and to use round trips.
    is_unusable: bool,
}

/// Spacings of grants, and log impairments (chosen here: effects of ports and drivers).
fn cases() -> Vec<LogImpairment> {
    let log = ModemLogConfig::default;
    let spaced = (1..=6).map(|every| LogImpairment {
        what: format!("a grant each {every} TTI"),
        grant_every_tti: every,
        modem_log: log(),
        is_unusable: false,
    });
    let logs = [
        ("40 ms late", ModemLogConfig { delay_ms: 40, ..log() }),
        ("up to 60 ms late", ModemLogConfig { jitter_ms: 60, ..log() }),
        ("20 % of batches lost", ModemLogConfig { lost_percent: 20, ..log() }),
        ("batches of 44", ModemLogConfig { transmissions: 44, ..log() }),
        ("10 ms from gate to firmware", ModemLogConfig { host_ms: 10, ..log() }),
        ("times 13 ms ahead: a part makes sense", ModemLogConfig { ahead_ms: 13, ..log() }),
        (
            "all but the last of these",
            ModemLogConfig {
                delay_ms: 40,
                lost_percent: 20,
                transmissions: 44,
                host_ms: 10,
                ..log()
            },
        ),
    ];
    let logs = logs.into_iter().flat_map(|(what, modem_log)| {
        [1, 2].map(|every| LogImpairment {
            what: format!("a grant each {every} TTI, log {what}"),
            grant_every_tti: every,
            modem_log: modem_log.clone(),
            // The way to the firmware is no fault of the log.
            is_unusable: modem_log != ModemLogConfig { host_ms: 10, ..log() },
        })
    });
    spaced.chain(logs).collect()
}

fn scenario(
    (work, seed): (&Work<'_>, u64),
    app: &str,
    signal: Signal,
    case: &LogImpairment,
    variant: &Variant,
) -> Result<Scenario> {
    let mut scenario = only(&read(SCENARIO)?, app);
    scenario.seed = 55_000 + seed;
    scenario.duration_ms = work.size.of(6_000, 30_000, 90_000) as u32;
    scenario.uplink.grant_every_tti = case.grant_every_tti;
    signal.set(&mut scenario);
    if let Some(queue) = &mut scenario.uplink_queue {
        queue.modem_log = case.modem_log.clone();
    }
    variant.set(&mut scenario);
    Ok(scenario)
}

fn log(work: &Work<'_>) -> Result<ExperimentResult> {
    let seeds = work.size.of(1, 6, 20);
    // The idle path, only Cubic above the firmware, both gates, and the bound.
    let arms = [
        ("idle", Variant::new("", Discipline::Fifo)),
        ("upload", Variant::new("", Discipline::Fifo)),
        ("upload", Variant::new("", QCUT_D)),
        ("upload", Variant::new("", ROUND_TRIPS)),
        ("upload", Variant::bound("", QCUT_D)),
    ];
    let (signals, cases) = ([WEAK, STRONG], cases());
    let mut scenarios = Vec::new();
    for signal in signals {
        for case in &cases {
            for (app, variant) in arms.iter().filter(|arm| !(arm.1.is_bound && case.is_unusable)) {
                for seed in 0..seeds {
                    scenarios.push(scenario((work, seed), app, signal, case, variant)?);
                }
            }
        }
    }
    let runs = work.for_each(&scenarios, measure)?;
    let mut groups = runs.chunks(seeds as usize);
    let mut rows = Vec::new();
    for signal in signals {
        for case in &cases {
            let mut next = || groups.next().unwrap_or_default();
            let (idle, cubic, qcut, round_trips) = (next(), next(), next(), next());
            let mut gates = vec![("QCut-D", qcut), ("by round trips", round_trips)];
            if !case.is_unusable {
                gates.push(("QCut-D told at once", next()));
            }
            for (name, gate) in gates {
                let of = |what: &str| format!("{}, {}, {name}: {what}", signal.name, case.what);
                // The same seeds have the same fading: each run is compared with its own.
                let against = |base: &[Throughput], of: fn(&Throughput, &Throughput) -> f64| {
                    mean(
                        &gate.iter().zip(base).map(|(run, base)| of(run, base)).collect::<Vec<_>>(),
                    )
                };
                let share = against(cubic, |run, cubic| 100.0 * run.mbps / cubic.mbps);
                let over = against(idle, |run, idle| run.rtt_f_ms - idle.rtt_f_ms);
                let share = Row::new(of("throughput of Cubic's"), "%", share);
                let over = Row::new(of("RTT_F over the idle path"), "ms", over);
                // With an unusable log the weak signal can do no better than round trips.
                let is_qcut = name == "QCut-D";
                let is_judged = is_qcut && (signal == STRONG || !case.is_unusable);
                let bar = |row: Row| if case.is_unusable { row } else { row.note(BOUND_OF_LOG) };
                let share = if is_judged { bar(share.at_least(MIN_SHARE)) } else { share };
                let over = if is_judged { bar(over.at_most(MAX_OVER_MS)) } else { over };
                let is_sparse = signal == WEAK && case.grant_every_tti >= 4;
                let over = if is_judged && is_sparse { over.note(BOUND_OF_PACKETS) } else { over };
                let is_noted = is_qcut && !is_judged;
                rows.extend([share, over].map(|r| if is_noted { r.note(UNUSABLE) } else { r }));
                if !is_qcut {
                    continue;
                }
                let times = gate.iter().map(|run| run.log_rejections as f64);
                let (least, most) =
                    (times.clone().fold(f64::MAX, f64::min), times.fold(0.0, f64::max));
                let of_runs = |value| Estimate { value, n: seeds, interval: None };
                if case.is_unusable {
                    let row = Row::new(of("log rejected, least of the runs"), "", of_runs(least));
                    rows.push(row.at_least(1.0));
                    let share = against(round_trips, |run, other| 100.0 * run.mbps / other.mbps);
                    let what = of("throughput of that by round trips");
                    rows.push(Row::new(what, "%", share).at_least(MIN_OF_ROUND_TRIPS));
                } else {
                    let row = Row::new(of("log rejected, most of the runs"), "", of_runs(most));
                    rows.push(row.at_most(0.0));
                }
            }
        }
    }
    Ok(ExperimentResult { rows, ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_log_is_rejected_in_a_run_and_a_good_one_is_not() {
        let late = ModemLogConfig { delay_ms: 40, ..ModemLogConfig::default() };
        for (modem_log, discipline, expected) in [
            (ModemLogConfig::default(), QCUT_D, 0),
            (late.clone(), QCUT_D, 1),
            (late, ROUND_TRIPS, 0),
        ] {
            let mut scenario = only(&read(SCENARIO).unwrap(), "upload");
            scenario.duration_ms = 4_000;
            Variant::new("", discipline).set(&mut scenario);
            scenario.uplink_queue.as_mut().unwrap().modem_log = modem_log.clone();
            let run = measure(&scenario).unwrap();
            assert_eq!(run.log_rejections, expected, "{modem_log:?}");
        }
    }
}
