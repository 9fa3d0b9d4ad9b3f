//! Huang et al., figures 10 to 13: bytes in flight and round trips.

use airmile_emulate::Scenario;
use airmile_model::Direction;
use airmile_model::flow::{PacketRow, RttSample};
use airmile_wire::tcp::StudyOptions;

use super::estimate::{mean, part, quantile};
use super::figure::{Axis, Figure, Series};
use super::hosts::Hosts;
use super::kernel::{self, fetch, with_kernel};
use super::monitor::{Observation, watch};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "huang-fig10-13",
    source: "Huang et al., SIGCOMM 2013, figures 10 to 13",
    what: "downstream RTT grows with the bytes in flight",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/huang-large-flows.toml");

/// Correlation coefficient of flight and RTT (Pearson).
fn correlation(samples: &[&RttSample]) -> f64 {
    let n = samples.len() as f64;
    let of = |f: fn(&RttSample) -> f64| samples.iter().map(|s| f(s)).sum::<f64>() / n;
    let (x, y) = (of(|s| s.flight_bytes as f64), of(|s| s.rtt_ns as f64));
    let moment = |f: &dyn Fn(f64, f64) -> f64| {
        samples.iter().map(|s| f(s.flight_bytes as f64 - x, s.rtt_ns as f64 - y)).sum::<f64>()
    };
    moment(&|a, b| a * b) / (moment(&|a, _| a * a) * moment(&|_, b| b * b)).sqrt()
}

fn downlink(seen: &Observation) -> Vec<&RttSample> {
    seen.rows
        .iter()
        .filter_map(|row| match row {
            PacketRow::Rtt(sample) if sample.dir == Direction::Dl => Some(sample),
            _ => None,
        })
        .collect()
}

const ENDS: &str = "in flight is the rest when the ACK passes: at a flow's end that is little, \
    while the round trip is still that of a full queue";

/// The initial receive window of over 99 % of the paper's flows (7.2), in an arm added
/// after the first results, in which it does not grow.
const SMALL_WINDOW_BYTES: u64 = 131_712;

/// Bytes in flight after each segment.
fn flights(runs: &[Observation]) -> Vec<u64> {
    let rows = runs.iter().flat_map(|seen| &seen.rows).filter_map(|row| match row {
        PacketRow::Inflight(sample) if sample.dir == Direction::Dl => Some(sample.flight_bytes),
        _ => None,
    });
    rows.collect()
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let found = virtual_time(work, &base)?;
    with_kernel(found, work, |hosts| kernel_tcp(work, hosts, &base))
}

/// The arm with a receive window that does not grow.
fn with_small_window(scenario: &mut Scenario) {
    scenario.phone_tcp.receive.buffer_bytes = SMALL_WINDOW_BYTES;
    scenario.phone_tcp.receive.max_buffer_bytes = SMALL_WINDOW_BYTES;
}

/// The scenario's file over the kernel's TCP: a current server.
fn kernel_tcp(work: &Work<'_>, hosts: &dyn Hosts, base: &Scenario) -> Result<ExperimentResult> {
    let mut cases = Vec::new();
    for small in [false, true] {
        for n in 0..work.size.of(1, 2, 10) {
            let mut scenario = Scenario { seed: 51_000 + n, ..base.clone() };
            if small {
                with_small_window(&mut scenario);
            }
            cases.push((scenario, fetch(work.size.of(2_000_000, 20_000_000, 20_000_000), "", "")));
        }
    }
    let mut runs = kernel::watch(work, hosts, &cases)?;
    let limited = runs.results.split_off(cases.len() / 2);
    let there = |runs: Vec<Option<Observation>>| runs.into_iter().flatten().collect::<Vec<_>>();
    let rows = tabulate(&there(runs.results), &there(limited));
    Ok(ExperimentResult {
        rows,
        lateness: runs.lateness,
        failed: runs.failed,
        ..ExperimentResult::default()
    })
}

fn virtual_time(work: &Work<'_>, base: &Scenario) -> Result<ExperimentResult> {
    let seeds: Vec<u64> = (0..work.size.of(1, 12, 30)).map(|n| 51_000 + n).collect();
    let cases: Vec<(u64, bool)> =
        [false, true].into_iter().flat_map(|w| seeds.iter().map(move |s| (*s, w))).collect();
    let mut runs = work.for_each(&cases, |(seed, small_window)| {
        let mut scenario = Scenario { seed: *seed, ..base.clone() };
        if *small_window {
            with_small_window(&mut scenario);
        }
        watch(&scenario, &StudyOptions::default())
    })?;
    let limited = runs.split_off(seeds.len());
    let rows = tabulate(&runs, &limited);
    let samples: Vec<&RttSample> = runs.iter().flat_map(downlink).collect();
    let (flights, limited) = (flights(&runs), flights(&limited));
    let points = samples.iter().map(|s| (s.flight_bytes as f64 / 1e3, s.rtt_ns as f64 / 1e6));
    let scatter = Figure::new(
        "rtt",
        "Bytes in flight and downstream RTT, large flows",
        Axis::new("downlink bytes in flight (kB)"),
        Axis::new("downstream RTT (ms)"),
    )
    .with(Series::scatter("samples", points.collect()))
    .caption(format!(
        "n = {} samples of {} flows at the gateway, evenly drawn from; figures 10 to 12 show the \
         trend without numbers.",
        samples.len(),
        runs.len()
    ));
    let limited_kb: Vec<f64> = limited.iter().map(|bytes| *bytes as f64 / 1e3).collect();
    let kb: Vec<f64> = flights.iter().map(|bytes| *bytes as f64 / 1e3).collect();
    let distribution = Figure::new(
        "flight",
        "Downlink bytes in flight, large flows",
        Axis::new("downlink bytes in flight (kB)"),
        Axis::cdf("segments up to this (%)"),
    )
    .with(Series::cdf("files alone", &kb))
    .with(Series::cdf("a receive window of 131.7 kB", &limited_kb))
    .paper_point("10 % have over 200 kB, a carrier's traffic", 200.0, 90.0)
    .caption(format!("n = {} segments of {} flows.", kb.len(), runs.len()));
    Ok(ExperimentResult {
        rows,
        figures: vec![scatter, distribution],
        ..ExperimentResult::default()
    })
}

/// Rows of runs with only files, and of runs with a small receive window.
fn tabulate(runs: &[Observation], limited: &[Observation]) -> Vec<Row> {
    let samples: Vec<&RttSample> = runs.iter().flat_map(downlink).collect();
    let per_run: Vec<f64> = runs.iter().map(|seen| correlation(&downlink(seen))).collect();
    let mut rows = vec![
        Row::new("correlation of bytes in flight and RTT, mean of flows", "", mean(&per_run))
            .note("the paper calls the trend obvious, without a number"),
    ];
    for (words, from, to) in [
        ("under 100 kB", 0, 100_000),
        ("100 to 200 kB", 100_000, 200_000),
        ("200 to 400 kB", 200_000, 400_000),
        ("400 to 800 kB", 400_000, 800_000),
        ("from 800 kB", 800_000, u64::MAX),
    ] {
        let within = samples.iter().filter(|s| (from..to).contains(&s.flight_bytes));
        let rtts: Vec<f64> = within.map(|s| s.rtt_ns as f64 / 1e6).collect();
        let mut median = quantile(&rtts, 0.5);
        median.interval = None; // samples of a flow depend on each other
        let row = Row::new(format!("median RTT with {words} in flight"), "ms", median);
        rows.push(if to <= 400_000 { row.note(ENDS) } else { row });
    }
    let (flights, limited) = (flights(runs), flights(limited));
    let over = |flights: &[u64]| flights.iter().filter(|bytes| **bytes > 200_000).count() as u64;
    rows.push(
        Row::new(
            "segments with over 200 kB in flight",
            "%",
            part(over(&flights), flights.len() as u64),
        )
        .paper(10.0)
        .note(
            "the paper's flows over 1 MB are a carrier's traffic, mostly limited by server, \
                receive window or pauses; ours are only files, which fill the queue",
        ),
    );
    let share = part(over(&limited), limited.len() as u64);
    rows.push(Row::new("the same, a receive window that stays at 131.7 kB", "%", share).note(
        "the other extreme: any mix of flows lies between the two, including the \
                paper's 10 %",
    ));
    let most = flights.iter().max().map_or(f64::NAN, |bytes| *bytes as f64 / 1e3);
    let most = super::estimate::Estimate { value: most, n: flights.len() as u64, interval: None };
    rows.push(
        Row::new("most in flight", "kB", most)
            .paper(1_200.0)
            .note("the paper: can be larger than that; a bound by queue and receive window"),
    );
    rows
}
