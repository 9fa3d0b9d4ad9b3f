//! What a run left, as a document: its files, its transfers, and what each would have
//! taken without a cause.

use std::path::PathBuf;

use airmile_emulate::{EmulatedTransfer, RunOutcome, Scenario};
use airmile_model::Direction;
use schemars::JsonSchema;
use serde::Serialize;

use crate::directory::LabFile;

/// What a run left.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabRun {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The directory.
    pub dir: PathBuf,
    /// The files in it.
    pub files: Vec<LabFile>,
    /// Transfers with their true link demand, those that had not ended last.
    pub transfers: Vec<LabTransfer>,
    /// Durations with and without each injected cause.
    pub counterfactuals: Vec<Counterfactual>,
    /// What is to be known of these files.
    pub notes: Vec<String>,
    /// What is hardly meant, or missing.
    pub warnings: Vec<String>,
}

/// A transfer of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabTransfer {
    /// Its name.
    pub id: String,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Application bytes.
    pub bytes: Option<u64>,
    /// Duration in ms.
    pub duration_ms: Option<f64>,
    /// True throughput time / duration.
    pub link_demand: f64,
    /// Whether it had not ended: all of this is so far.
    pub unfinished: bool,
}

/// What a transfer would have taken without a cause: the same seed again, and
/// video players that choose the bitrates they chose with it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Counterfactual {
    /// The transfer's name.
    pub id: String,
    /// The cause's label.
    pub label: String,
    /// Duration in ms with it; absent: the transfer did not end.
    pub duration_ms: Option<f64>,
    /// Duration in ms without it; absent: the transfer did not end.
    pub without_ms: Option<f64>,
    /// Application bytes with it; of one that did not end, those so far.
    pub bytes: Option<u64>,
    /// Application bytes without it.
    pub without_bytes: Option<u64>,
}

/// What a scenario is called.
pub(crate) fn name_of(scenario: &Scenario) -> &str {
    if scenario.name.is_empty() { "scenario" } else { &scenario.name }
}

/// Transfers that ended, then those that had not.
pub(crate) fn all_transfers(outcome: &RunOutcome) -> impl Iterator<Item = &EmulatedTransfer> {
    outcome.transfers.iter().chain(&outcome.unfinished)
}
