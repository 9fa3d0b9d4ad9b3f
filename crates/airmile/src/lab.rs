//! The lab: runs a named scenario of the emulator and leaves what a person
//! would have captured, with the truth beside it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airmile_decode::table::{
    write_grants, write_rlc, write_transfer_truth, write_transfers, write_truth,
};
use airmile_emulate::{Trace, library, named, run};
use airmile_model::{Direction, Record};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::write::modem_log;

/// A scenario that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScenarioEntry {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
}

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
    pub files: Vec<String>,
    /// Transfers with their true link demand.
    pub transfers: Vec<LabTransfer>,
}

/// A transfer of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabTransfer {
    /// Its name.
    pub id: String,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// True throughput time / duration.
    pub link_demand: f64,
}

/// All named scenarios.
#[must_use]
pub fn scenarios() -> Vec<ScenarioEntry> {
    library().iter().map(|s| ScenarioEntry { name: s.name, about: s.about }).collect()
}

/// Runs a scenario into a directory.
///
/// # Errors
/// No such scenario; the directory or a file cannot be written.
pub fn run_scenario(name: &str, seed: Option<u64>, dir: &Path) -> Result<LabRun> {
    let mut scenario = named(name).ok_or_else(|| unknown(name))?.scenario();
    if let Some(seed) = seed {
        scenario.seed = seed;
    }
    let trace = run(&scenario).map_err(|e| Error::Option(format!("scenario {name}: {e}")))?;
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
    let files = leave(&trace, dir)?;
    let transfers = trace.transfers.iter().map(|t| LabTransfer {
        id: t.transfer.id.clone(),
        dir: t.dir,
        link_demand: t.link_demand(),
    });
    Ok(LabRun {
        scenario: name.to_owned(),
        seed: scenario.seed,
        dir: dir.to_owned(),
        files,
        transfers: transfers.collect(),
    })
}

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = library().iter().map(|s| s.name).collect();
    Error::Option(format!("no scenario `{name}`; there are {}", names.join(", ")))
}

fn leave(trace: &Trace, dir: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut file = |name: &str, write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>| {
        let path = dir.join(name);
        let created = File::create(&path).map_err(|e| Error::write(&path, e))?;
        let mut out = BufWriter::new(created);
        write(&mut out).and_then(|()| out.flush()).map_err(|e| Error::write(&path, e))?;
        files.push(name.to_owned());
        Ok(())
    };
    let csv = |result: std::result::Result<(), _>| result.map_err(csv_to_io);
    let path = dir.join("modem.mi2log");
    let log = modem_log::write(&trace.records, &modem_log::Options::default())
        .map_err(|e| Error::write(path, std::io::Error::other(e)))?;
    file("modem.mi2log", &|out| out.write_all(&log))?;
    let grants = || trace.records.iter().filter_map(as_grant);
    file("grants.csv", &|out| csv(write_grants(out, grants())))?;
    let pdus = || trace.records.iter().filter_map(as_rlc);
    file("rlc.csv", &|out| csv(write_rlc(out, pdus())))?;
    let transfers = || trace.transfers.iter().map(|t| &t.transfer);
    file("transfers.csv", &|out| csv(write_transfers(out, transfers())))?;
    let truths = || trace.transfers.iter().map(|t| &t.truth);
    file("transfer_truth.csv", &|out| csv(write_transfer_truth(out, truths())))?;
    file("truth.csv", &|out| csv(write_truth(out, &trace.truth)))?;
    Ok(files)
}

fn csv_to_io(error: impl std::error::Error + Send + Sync + 'static) -> std::io::Error {
    std::io::Error::other(error)
}

fn as_grant(record: &Record) -> Option<&airmile_model::Grant> {
    if let Record::Grant(grant) = record { Some(grant) } else { None }
}

fn as_rlc(record: &Record) -> Option<&airmile_model::RlcPdu> {
    if let Record::Rlc(pdu) = record { Some(pdu) } else { None }
}
