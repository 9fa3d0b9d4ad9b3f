//! The lab: runs a scenario of the emulator and writes the files that a person would have
//! captured, with the ground truth in separate files; and reproduces the papers'
//! experiments.
//!
//! ```no_run
//! let left = airmile_lab::run_scenario("busy-video", None, "run".as_ref())?;
//! println!("{} files", left.files.len());
//! # Ok::<(), airmile::Error>(())
//! ```

mod capture;
mod directory;
mod har;
mod manifest;
mod output;
mod radio_agent;
pub mod reproduce;
mod run;
mod schemas;
mod tables;
mod writer;

pub use airmile_emulate::Scenario;
pub use directory::LabFile;
pub use manifest::{Clock, Lateness, Manifest, RealTime};
pub use output::{Counterfactual, LabRun, LabTransfer};
pub use radio_agent::RadioAgent;
pub use run::{LabOptions, ScenarioEntry, leave, load, run_scenario, run_scenario_with, scenarios};
pub use schemas::schemas;
pub use writer::RunWriter;
