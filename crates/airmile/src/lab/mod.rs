//! The lab: runs a named scenario of the emulator and leaves what a person
//! would have captured, with the truth beside it.

mod capture;
mod directory;
pub mod reproduce;
mod tables;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airmile_decode::table::{
    write_grants, write_rlc, write_transfer_truth, write_transfers, write_truth,
};
pub use airmile_emulate::Scenario;
use airmile_emulate::{EmulatedTransfer, LinkTrace, Outcome, TraceFiles, library, named, run_into};
use airmile_model::{Direction, Record};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::write::modem_log;
use capture::Recorder;
use directory::Files;
pub use directory::LabFile;

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

/// How a scenario is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabOptions {
    /// Another seed than the scenario's own.
    pub seed: Option<u64>,
    /// Replace a former run that the directory holds.
    pub force: bool,
}

/// All named scenarios.
#[must_use]
pub fn scenarios() -> Vec<ScenarioEntry> {
    library().iter().map(|s| ScenarioEntry { name: s.name, about: s.about }).collect()
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

/// Runs a scenario, by its name or from a file, into an empty directory.
///
/// # Errors
/// No such scenario; a file that is none; the directory is not empty; it or a
/// file cannot be written.
pub fn run_scenario(name: &str, seed: Option<u64>, dir: &Path) -> Result<LabRun> {
    run_scenario_with(name, LabOptions { seed, force: false }, dir)
}

/// As [`run_scenario`], with all options.
///
/// # Errors
/// As of [`run_scenario`]; with `force`, a former run's directory is replaced.
pub fn run_scenario_with(name: &str, options: LabOptions, dir: &Path) -> Result<LabRun> {
    let mut scenario = load(name)?;
    if let Some(seed) = options.seed {
        scenario.seed = seed;
    }
    leave(&scenario, dir, options.force)
}

/// The scenario of a name or file, with the link traces that it names.
///
/// # Errors
/// No such scenario; a file that cannot be read or is none.
pub fn load(name: &str) -> Result<Scenario> {
    if let Some(found) = named(name) {
        return Ok(Scenario { name: name.to_owned(), ..found.scenario() });
    }
    let path = Path::new(name);
    if path.is_dir() {
        let inside = path.join(directory::SCENARIO);
        let hint = if inside.is_file() {
            format!("give {} to run it again", inside.display())
        } else {
            "give a scenario file".to_owned()
        };
        let what = format!("is a directory: {hint}");
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    if !path.is_file() {
        return Err(unknown(path));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::read(path, e))?;
    let unusable = |what: String| Error::Unusable { path: path.to_owned(), what };
    let mut scenario = Scenario::from_toml(&text).map_err(|e| unusable(e.to_string()))?;
    if scenario.name.is_empty()
        && let Some(stem) = path.file_stem()
    {
        scenario.name = stem.to_string_lossy().into_owned();
    }
    if let Some(files) = scenario.link.trace.clone() {
        let base = path.parent().unwrap_or(Path::new(""));
        let read = |file: Option<String>| file.map(|file| read_trace(&base.join(file))).transpose();
        scenario.link.dl_trace = read(files.down)?;
        scenario.link.ul_trace = read(files.up)?;
    }
    Ok(scenario)
}

/// A link trace, compressed or not.
fn read_trace(path: &Path) -> Result<Arc<LinkTrace>> {
    let mut text = String::new();
    let mut input = Input::open(path, &Progress::default())?;
    input.read_to_string(&mut text).map_err(|e| Error::read(path, e))?;
    let unusable = |what: String| Error::Unusable { path: path.to_owned(), what };
    let trace = LinkTrace::parse(&text)
        .map_err(|e| unusable(format!("is no link trace (Mahimahi): {e}")))?;
    Ok(Arc::new(trace))
}

fn unknown(path: &Path) -> Error {
    let names: Vec<&str> = library().iter().map(|s| s.name).collect();
    let what = format!(
        "no scenario has this name, and there is no such file; there are {}",
        names.join(", ")
    );
    Error::Unusable { path: path.to_owned(), what }
}

/// Runs a scenario and leaves its files; `force` replaces a former run.
///
/// # Errors
/// It cannot be run, the directory holds something, or its files cannot be
/// written.
pub fn leave(scenario: &Scenario, dir: &Path, force: bool) -> Result<LabRun> {
    let name = if scenario.name.is_empty() { "scenario" } else { &scenario.name };
    let cannot = |e| Error::Option(format!("scenario {name}: {e}"));
    scenario.validate().map_err(cannot)?;
    directory::prepare(dir, force)?;
    let mut files = Files::new(dir);
    let text = with_traces(scenario, &mut files)?.to_toml().map_err(cannot)?;
    files.write(directory::SCENARIO, &|out| out.write_all(text.as_bytes()))?;
    let about = format!("airmile lab run, scenario {name}, seed {}", scenario.seed);
    let mut recorder = Recorder::new(dir, about);
    let outcome = run_into(scenario, &mut recorder).map_err(cannot)?;
    files.add(recorder.finish()?);
    let mut counterfactuals = Vec::new();
    for n in 0..scenario.causes.len() {
        let without = scenario.without(n).map_err(cannot)?.with_choices(&outcome.choices);
        let other = run_into(&without, &mut ()).map_err(cannot)?;
        counterfactuals.extend(compare(&scenario.causes[n].label, &outcome, &other));
    }
    write_records(&mut files, scenario, &recorder.records)?;
    write_truth_tables(&mut files, scenario, &outcome, &recorder)?;
    files.write("counterfactuals.csv", &|out| tables::counterfactuals(out, &counterfactuals))?;
    files.write("app.jsonl", &|out| tables::app_log(out, &outcome.notes))?;
    let mut run = LabRun {
        scenario: name.to_owned(),
        seed: scenario.seed,
        dir: dir.to_owned(),
        files: files.list()?,
        transfers: all_transfers(&outcome).map(lab_transfer).collect(),
        counterfactuals,
        notes: notes(scenario),
        warnings: warnings(scenario, &outcome),
    };
    files.write(directory::MANIFEST, &|out| write_manifest(out, &run))?;
    run.files = files.list()?;
    Ok(run)
}

/// Writes down what the directory is; nothing in it differs between two runs of
/// the same scenario and seed.
fn write_manifest(out: &mut dyn Write, run: &LabRun) -> std::io::Result<()> {
    let LabRun { scenario, seed, files, notes, warnings, .. } = run;
    let manifest = serde_json::json!({
        "airmile": env!("CARGO_PKG_VERSION"),
        "scenario": scenario,
        "seed": seed,
        "files": files,
        "notes": notes,
        "warnings": warnings,
    });
    serde_json::to_writer_pretty(&mut *out, &manifest)?;
    out.write_all(b"\n")
}

/// The scenario with its link traces beside it, which are written.
fn with_traces(scenario: &Scenario, files: &mut Files) -> Result<Scenario> {
    let mut own = scenario.clone();
    let [down, up] = directory::LINK_TRACES;
    let mut write = |name: &str, trace: &Option<Arc<LinkTrace>>| match trace {
        Some(trace) => {
            files.write(name, &|out| out.write_all(trace.to_text().as_bytes()))?;
            Ok(Some(name.to_owned()))
        }
        None => Ok(None),
    };
    let down = write(down, &scenario.link.dl_trace)?;
    let up = write(up, &scenario.link.ul_trace)?;
    own.link.trace = (down.is_some() || up.is_some()).then_some(TraceFiles { down, up });
    Ok(own)
}

/// Transfers that ended, then those that had not.
fn all_transfers(outcome: &Outcome) -> impl Iterator<Item = &EmulatedTransfer> {
    outcome.transfers.iter().chain(&outcome.unfinished)
}

fn lab_transfer(t: &EmulatedTransfer) -> LabTransfer {
    LabTransfer {
        id: t.transfer.id.clone(),
        dir: t.dir,
        bytes: t.transfer.bytes,
        duration_ms: t.truth.duration_ms,
        link_demand: t.link_demand(),
        unfinished: t.transfer.unfinished,
    }
}

fn notes(scenario: &Scenario) -> Vec<String> {
    let mut out = Vec::new();
    if scenario.cell.numerology > 0 {
        out.push(
            "no modem log: LTE's log messages cannot hold NR's slots; grants.csv and rlc.csv \
             stand in its place"
                .to_owned(),
        );
    }
    out
}

fn warnings(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut out = scenario.warnings();
    let cut: Vec<&str> = outcome.unfinished.iter().map(|t| t.transfer.id.as_str()).collect();
    // A few names are enough to know which.
    let names = match cut.get(..3).filter(|_| cut.len() > 4) {
        Some(first) => format!("{} and {} more", first.join(", "), cut.len() - 3),
        None => cut.join(", "),
    };
    if outcome.transfers.is_empty() {
        let begun = if cut.is_empty() { "none began".to_owned() } else { format!("cut: {names}") };
        out.push(format!("no transfer ended within {} ms: {begun}", scenario.duration_ms));
    } else if !cut.is_empty() {
        out.push(format!(
            "{} of {} transfers had not ended, their bytes are those so far: {names}",
            cut.len(),
            cut.len() + outcome.transfers.len()
        ));
    }
    out
}

/// Each transfer with and without a cause.
fn compare(label: &str, with: &Outcome, without: &Outcome) -> Vec<Counterfactual> {
    let duration = |t: &EmulatedTransfer| t.truth.duration_ms.filter(|_| !t.transfer.unfinished);
    let others: HashMap<&str, &EmulatedTransfer> =
        all_transfers(without).map(|t| (t.transfer.id.as_str(), t)).collect();
    let pair = |t: &EmulatedTransfer| {
        let other = others.get(t.transfer.id.as_str()).copied();
        Counterfactual {
            id: t.transfer.id.clone(),
            label: label.to_owned(),
            duration_ms: duration(t),
            without_ms: other.and_then(duration),
            bytes: t.transfer.bytes,
            without_bytes: other.and_then(|t| t.transfer.bytes),
        }
    };
    all_transfers(with).map(pair).collect()
}

fn csv_io(result: std::result::Result<(), csv::Error>) -> std::io::Result<()> {
    result.map_err(std::io::Error::other)
}

/// What the phone's modem logged. LTE's messages cannot hold NR's slots: those
/// runs leave tables only.
fn write_records(files: &mut Files, scenario: &Scenario, records: &[Record]) -> Result<()> {
    if scenario.cell.numerology == 0 {
        let log = modem_log::write(records, &modem_log::Options::default())
            .map_err(|e| Error::write(files.dir.join("modem.mi2log"), std::io::Error::other(e)))?;
        files.write("modem.mi2log", &|out| out.write_all(&log))?;
    }
    let grants = || records.iter().filter_map(as_grant);
    files.write("grants.csv", &|out| csv_io(write_grants(out, grants())))?;
    let pdus = || records.iter().filter_map(as_rlc);
    files.write("rlc.csv", &|out| csv_io(write_rlc(out, pdus())))
}

fn write_truth_tables(
    files: &mut Files,
    scenario: &Scenario,
    outcome: &Outcome,
    recorder: &Recorder,
) -> Result<()> {
    let transfers = || all_transfers(outcome).map(|t| &t.transfer);
    files.write("transfers.csv", &|out| csv_io(write_transfers(out, transfers())))?;
    let truths = || all_transfers(outcome).map(|t| &t.truth);
    files.write("transfer_truth.csv", &|out| csv_io(write_transfer_truth(out, truths())))?;
    let truth = &outcome.truth;
    files.write("truth.csv", &|out| csv_io(write_truth(out, &truth.dl)))?;
    files.write("ul_truth.csv", &|out| csv_io(write_truth(out, &truth.ul)))?;
    files.write("cell_use.csv", &|out| tables::cell_use(out, outcome))?;
    files.write("rrc.csv", &|out| tables::rrc(out, outcome))?;
    files.write("drops.csv", &|out| tables::drops(out, &recorder.drops))?;
    files.write("senders.csv", &|out| tables::senders(out, &recorder.senders))?;
    files
        .write("sender_events.jsonl", &|out| tables::sender_events(out, &recorder.sender_events))?;
    files.write("causes.csv", &|out| tables::causes(out, scenario, outcome))
}

fn as_grant(record: &Record) -> Option<&airmile_model::Grant> {
    if let Record::Grant(grant) = record { Some(grant) } else { None }
}

fn as_rlc(record: &Record) -> Option<&airmile_model::RlcPdu> {
    if let Record::Rlc(pdu) = record { Some(pdu) } else { None }
}
