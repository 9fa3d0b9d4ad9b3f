//! The same scenario in virtual time, with our TCP, and in real time, with the kernel's.

use airmile_control::ControllerKind;
use airmile_emulate::{Scenario, workload::Workload};
use airmile_model::Direction;
use airmile_model::flow::PacketRow;
use airmile_wire::tcp::StudyOptions;

use super::estimate::{Estimate, mean, quantile};
use super::figure::{Axis, Figure, Series};
use super::hosts::Program;
use super::kernel::{self, fetch};
use super::monitor::{Observation, watch};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "virtual-vs-real",
    source: "no paper: our TCP and cell against the kernel's in real time",
    what: "one download with both clocks: throughput, round trips, retransmissions",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/clocks.toml");

/// Queues at the base station, deep as in the papers and shallow, and controllers. Reno is
/// fully specified; CUBIC's exit from slow start is the kernel's own (the arms were chosen
/// again after a first, short run with only CUBIC).
const ARMS: [Arm; 3] = [
    Arm {
        name: "Reno, deep queue",
        figure: "rtt-reno-deep",
        queue_bytes: 3_000_000,
        control: ControllerKind::NewReno,
        note: BOTH,
    },
    Arm {
        name: "Reno, queue of 150 kB",
        figure: "rtt-reno",
        queue_bytes: 150_000,
        control: ControllerKind::NewReno,
        note: BOTH,
    },
    Arm {
        name: "CUBIC with HyStart, queue of 150 kB",
        figure: "rtt-cubic",
        queue_bytes: 150_000,
        control: ControllerKind::Cubic { hystart: true },
        note: HYSTART,
    },
];

struct Arm {
    name: &'static str,
    figure: &'static str,
    queue_bytes: u64,
    control: ControllerKind,
    note: &'static str,
}

/// Throughput in Mbit/s of a download, from its first data at the phone to its last: the
/// time before (connection setup, program start) is not comparable.
fn mbps(seen: &Observation) -> f64 {
    let (Some((first_ns, _)), Some((last_ns, _))) = (seen.arrivals.first(), seen.arrivals.last())
    else {
        return f64::NAN;
    };
    let after_first = seen.arrivals.iter().skip_while(|(at_ns, _)| at_ns == first_ns);
    let bytes: u64 = after_first.map(|(_, bytes)| u64::from(*bytes)).sum();
    bytes as f64 * 8e3 / (last_ns - first_ns) as f64
}

/// Round trips in ms between gateway and phone.
fn rtts_ms(runs: &[Observation]) -> Vec<f64> {
    let rows = runs.iter().flat_map(|seen| &seen.rows);
    let samples = rows.filter_map(|row| match row {
        PacketRow::Rtt(sample) if sample.dir == Direction::Dl => Some(sample.rtt_ns as f64 / 1e6),
        _ => None,
    });
    samples.collect()
}

/// Segments retransmitted, in percent.
fn again(seen: &Observation) -> f64 {
    let flows = seen.rows.iter().filter_map(|row| match row {
        PacketRow::Flow(flow) => Some((flow.dl_retx, flow.dl_segments)),
        _ => None,
    });
    let (again, of) = flows.fold((0, 0), |(again, of), (a, n)| (again + a, of + n));
    100.0 * again as f64 / of as f64
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let bytes = work.size.of(2_000_000, 10_000_000, 10_000_000);
    let mut scenarios = Vec::new();
    for arm in &ARMS {
        for n in 0..work.size.of(1, 3, 20) {
            let mut scenario = Scenario { seed: 64_000 + n, ..base.clone() };
            scenario.cell.queue_bytes = arm.queue_bytes;
            scenario.server_tcp.control = arm.control;
            for app in &mut scenario.apps {
                if let Workload::File { bytes: all, .. } = &mut app.workload {
                    *all = bytes;
                }
            }
            scenarios.push(scenario);
        }
    }
    let mut ours = work.for_each(&scenarios, |s| watch(s, &StudyOptions::default()))?;
    let hosts = match work.hosts(&[Program::Curl]) {
        Ok(hosts) => hosts,
        Err(why) => return Ok(ExperimentResult::skipped(why)),
    };
    let cases: Vec<_> = scenarios.into_iter().map(|s| (s, fetch(bytes, "", ""))).collect();
    let mut real = kernel::watch(work, hosts, &cases)?;
    let mut found = ExperimentResult {
        lateness: real.lateness,
        failed: real.failed,
        ..ExperimentResult::default()
    };
    for arm in &ARMS {
        let later = (cases.len() / ARMS.len()).min(ours.len());
        let rest = (ours.split_off(later), real.results.split_off(later));
        let there: Vec<Observation> = real.results.into_iter().flatten().collect();
        found.rows.extend(compare(arm, &ours, &there));
        found.figures.push(round_trips(arm, &ours, &there));
        (ours, real.results) = rest;
    }
    Ok(found)
}

/// A measure with both clocks, and the kernel's value over ours.
fn compare(arm: &Arm, ours: &[Observation], real: &[Observation]) -> Vec<Row> {
    let Arm { name, note, .. } = arm;
    let both = |what: &str, unit, by_clock: [Estimate; 2]| {
        let [ours, kernel] = by_clock;
        let ratio = kernel.value / ours.value;
        let n = ours.n.min(kernel.n);
        let ratio = Estimate { value: ratio, n, interval: None };
        [
            Row::new(format!("{name}: {what}, virtual time"), unit, ours),
            Row::new(format!("{name}: {what}, the kernel's TCP"), unit, kernel),
            Row::new(format!("{name}: {what}, the kernel's over ours"), "", ratio).note(note),
        ]
    };
    let of_runs = |what: &str, unit, of: &dyn Fn(&Observation) -> f64| {
        both(what, unit, [ours, real].map(|runs| mean(&runs.iter().map(of).collect::<Vec<_>>())))
    };
    let rtt = |share: f64| {
        // Samples of a flow depend on each other.
        let of = |runs| Estimate { interval: None, ..quantile(&rtts_ms(runs), share) };
        let what = format!("RTT gateway to phone, {:.0} % below", share * 100.0);
        both(&what, "ms", [ours, real].map(of))
    };
    let rows = [
        of_runs("throughput", "Mbit/s", &mbps),
        of_runs("segments sent again", "%", &again),
        rtt(0.1),
        rtt(0.5),
        rtt(0.9),
    ];
    rows.into_iter().flatten().collect()
}

const BOTH: &str = "no paper: one scenario in virtual time with our TCP, and in real time with the \
    kernel's";
const HYSTART: &str = "as for the arms before; the kernel leaves slow start by the ACK train or \
    by delay (Ha and Rhee, 2011), ours only by delay (RFC 9406)";

fn round_trips(arm: &Arm, ours: &[Observation], real: &[Observation]) -> Figure {
    let n = ours.len();
    Figure::new(
        arm.figure,
        format!("Round trips between gateway and phone, {}", arm.name),
        Axis::new("RTT (ms)"),
        Axis::cdf("samples up to this (%)"),
    )
    .with(Series::cdf("virtual time, our TCP", &rtts_ms(ours)))
    .with(Series::cdf("real time, the kernel's", &rtts_ms(real)))
    .caption(format!("n = {n} downloads each; samples of all."))
}
