//! The output document of a run: its files, its transfers, and their durations without each
//! cause.

use std::path::PathBuf;

use airmile_emulate::{EmulatedTransfer, RunOutcome, Scenario};
use airmile_model::Direction;
use schemars::JsonSchema;
use serde::Serialize;

use crate::directory::LabFile;

/// Output of a run.
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
    /// Transfers with their true link demand, unfinished ones last.
    pub transfers: Vec<LabTransfer>,
    /// Durations with and without each injected cause.
    pub counterfactuals: Vec<Counterfactual>,
    /// Remarks about these files.
    pub notes: Vec<String>,
    /// Probably unintended settings, and missing parts.
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
    /// Whether it had not ended: all figures are so far.
    pub unfinished: bool,
}

/// Duration of a transfer without a cause: the same seed, with the same bitrate choices of
/// video players.
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
    /// Application bytes with it; for an unfinished one, those so far.
    pub bytes: Option<u64>,
    /// Application bytes without it.
    pub without_bytes: Option<u64>,
}

/// Name of a scenario.
pub(crate) fn name_of(scenario: &Scenario) -> &str {
    if scenario.name.is_empty() { "scenario" } else { &scenario.name }
}

/// Transfers that ended, then unfinished ones.
pub(crate) fn all_transfers(outcome: &RunOutcome) -> impl Iterator<Item = &EmulatedTransfer> {
    outcome.transfers.iter().chain(&outcome.unfinished)
}
