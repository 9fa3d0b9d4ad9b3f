//! The manifest of a run's files.

use std::io::Write;

use airmile_emulate::RunOutcome;
use airmile_model::TtiIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::directory::LabFile;
use crate::output::LabRun;

/// Summary of a run: `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Manifest {
    /// Version of airmile.
    pub airmile: &'static str,
    /// The command that made it.
    pub about: String,
    /// The scenario's name.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// First TTI.
    pub first_tti: i64,
    /// TTIs.
    pub n_tti: u32,
    /// Length of a TTI in us.
    pub slot_us: i64,
    /// Start of the run in us since the Unix epoch.
    pub start_us: i64,
    /// The clock that drove it.
    pub clock: Clock,
    /// The files of the run.
    pub files: Vec<LabFile>,
    /// Remarks about these files.
    pub notes: Vec<String>,
    /// Probably unintended settings, and missing parts.
    pub warnings: Vec<String>,
}

/// The clock that drove a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Clock {
    /// Virtual time: the same scenario and seed give the same files.
    Virtual,
    /// Real time, with real hosts.
    Real(Box<RealTime>),
}

/// A run in real time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RealTime {
    /// The phone's command.
    pub command: Vec<String>,
    /// The server's command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Directory that was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve: Option<String>,
    /// The command's exit status.
    pub exit_status: u8,
    /// Exit status of the server's command, if it ended before the phone's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_exit_status: Option<u8>,
    /// Whether TTIs were on time.
    pub valid: bool,
    /// Lateness of TTIs.
    pub lateness: Lateness,
    /// TTIs later than a TTI's length, with their lateness in us; written to a separate
    /// table.
    #[serde(skip)]
    pub late_ttis: Vec<(TtiIndex, u64)>,
    /// Load averages of the machine over 1, 5 and 15 minutes, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_average: Option<[f64; 3]>,
    /// Packets that hosts sent and that were not carried, as they were not IPv4.
    pub not_ipv4: u64,
    /// Packets lost between a host and the cell because the device was full.
    pub lost_at_device: u64,
}

/// Lateness of the TTIs of a run in real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// TTIs.
    pub n_tti: u64,
    /// Median in us.
    pub p50_us: u64,
    /// 99th percentile in us.
    pub p99_us: u64,
    /// 99.9th percentile in us.
    pub p999_us: u64,
    /// Maximum in us.
    pub max_us: u64,
    /// TTIs later than a TTI's length.
    pub late_ttis: u64,
    /// Limit of the 99th percentile in us.
    pub limit_us: u64,
    /// 99th percentile in us of the work of a TTI.
    pub work_p99_us: u64,
}

impl RealTime {
    /// Problems other than the command's status and late TTIs.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.lost_at_device > 0 {
            let lost = self.lost_at_device;
            out.push(format!("{lost} packets were lost at a device, before the cell"));
        }
        if let Some(status) = self.server_exit_status {
            out.push(format!("the server's command ended early, with status {status}"));
        }
        out
    }
}

impl Lateness {
    /// Whether the run was on time.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.p99_us <= self.limit_us
    }
}

impl Manifest {
    pub(crate) fn new(about: String, run: &LabRun, outcome: &RunOutcome, clock: Clock) -> Self {
        let start_ns = outcome.epoch_ns + outcome.first_tti.0 * outcome.slot_ns;
        Self {
            airmile: env!("CARGO_PKG_VERSION"),
            about,
            scenario: run.scenario.clone(),
            seed: run.seed,
            first_tti: outcome.first_tti.0,
            n_tti: outcome.n_tti,
            slot_us: outcome.slot_ns / 1_000,
            start_us: start_ns / 1_000,
            clock,
            files: run.files.clone(),
            notes: run.notes.clone(),
            warnings: run.warnings.clone(),
        }
    }

    pub(crate) fn write(&self, mut out: &mut dyn Write) -> std::io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }
}
