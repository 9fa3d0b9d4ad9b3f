//! A whole run in virtual time: cell, core network and transfers together.

mod apps;
mod bridge;
mod library;
mod outcome;
mod senders;
mod simulation;
mod windows;

use airmile_model::{Record, TruthRun, TtiIndex};

use crate::cell::CellUse;
use crate::host::Readers;
use crate::scenario::{Scenario, ScenarioError};

pub use bridge::{Bridge, NoPacket, PHONE_ADDRESS, SERVER_ADDRESS};
pub use library::{NamedScenario, library, named};
pub use outcome::{ByteTotals, EmulatedTransfer, RunOutcome};
pub use senders::{SenderPlace, SenderState};
pub use simulation::{CapturePoint, DropPoint, Node, RunSink, Simulation, SimulationEnd};

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTrace {
    /// First TTI.
    pub first_tti: TtiIndex,
    /// TTIs.
    pub n_tti: u32,
    /// Records of a modem log, in time order.
    pub records: Vec<Record>,
    /// The phone's downlink queue at the base station, every TTI.
    pub truth: Vec<TruthRun>,
    /// The phone's own uplink queue, every TTI.
    pub ul_truth: Vec<TruthRun>,
    /// PRB pairs of all users together, every TTI.
    pub cell_use: Vec<CellUse>,
    /// Transfers that ended, by start.
    pub transfers: Vec<EmulatedTransfer>,
    /// Bytes by where they are at the end.
    pub totals: [ByteTotals; 2],
}

/// Runs a scenario and keeps all output.
///
/// # Errors
/// A scenario that cannot be run.
pub fn run(scenario: &Scenario) -> Result<RunTrace, ScenarioError> {
    let mut records = Vec::new();
    let outcome = run_into(scenario, &mut Keep(&mut records))?;
    Ok(RunTrace {
        first_tti: outcome.first_tti,
        n_tti: outcome.n_tti,
        records,
        transfers: outcome.transfers,
        truth: outcome.truth.dl,
        ul_truth: outcome.truth.ul,
        cell_use: outcome.truth.cell_use,
        totals: outcome.totals[0],
    })
}

/// Keeps the records.
struct Keep<'a>(&'a mut Vec<Record>);

impl RunSink for Keep<'_> {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

/// Runs a scenario; intermediate output goes to `sink`.
///
/// # Errors
/// A scenario that cannot be run.
pub fn run_into(scenario: &Scenario, sink: &mut impl RunSink) -> Result<RunOutcome, ScenarioError> {
    run_with(scenario, sink, None)
}

/// The same with readers of the modems' logs, for congestion control that needs them
/// (`claw`, `cqic`).
///
/// # Errors
/// A scenario that cannot be run, or congestion control that needs a reader without one.
pub fn run_with(
    scenario: &Scenario,
    sink: &mut impl RunSink,
    readers: Option<&Readers<'_>>,
) -> Result<RunOutcome, ScenarioError> {
    if scenario.traffic.is_empty() {
        return apps::run(scenario, sink, readers);
    }
    windows::run(scenario, sink)
}
