//! Measures how much faster than real time a saturated 10 MHz cell runs: one measured phone
//! and five others, each with TCP downloads, on one core.
//! `cargo run --release -p airmile-emulate --example speed`

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

#[path = "../tests/it/hosts/mod.rs"]
mod hosts;

use std::time::Instant;

use airmile_emulate::{EPOCH_NS, Scenario, SchedulerKind, Simulation};

fn main() {
    let seconds = 60;
    for scheduler in
        [SchedulerKind::WholeTti, SchedulerKind::RoundRobin, SchedulerKind::PfFrequency]
    {
        let mut scenario = Scenario::default();
        scenario.cell.scheduler = scheduler;
        let link = scenario.link.clone();
        let users = (0..6)
            .map(|n| {
                let core = scenario.core.clone();
                hosts::user(20_000_000, EPOCH_NS, 500_000_000, link.clone(), core, n)
            })
            .collect();
        let mut simulation = Simulation::new(&scenario, users).unwrap();
        let start = Instant::now();
        for _ in 0..seconds * 1_000 {
            simulation.step(&mut ());
        }
        let took = start.elapsed().as_secs_f64();
        let ended = simulation.finish();
        let bytes: u64 = ended.totals.iter().map(|t| t[0].delivered_bytes).sum();
        let used: u64 =
            ended.truth.cell_use.iter().map(|u| u64::from(u.n_prb) * u64::from(u.n_tti)).sum();
        println!(
            "{scheduler:?}: {seconds} s in {took:.2} s, {:.0} times real time; {:.1} Mbit/s, {:.0} % of the PRB pairs",
            f64::from(seconds) / took,
            bytes as f64 * 8.0 / f64::from(seconds) / 1e6,
            used as f64 / (50.0 * f64::from(ended.n_tti)) * 100.0,
        );
    }
}
