//! The lab: runs a named scenario of the emulator and leaves what a person
//! would have captured, with the truth beside it.

mod capture;
mod manifest;
pub mod reproduce;
mod tables;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airmile_decode::table::{
    write_grants, write_rlc, write_transfer_truth, write_transfers, write_truth,
};
pub use airmile_emulate::Scenario;
use airmile_emulate::net::Packet;
use airmile_emulate::tcp::ConnectionEvent;
use airmile_emulate::{
    CapturePoint, DropPoint, LinkTrace, Outcome, SenderPlace, SenderState, Sink, library, named,
    run_into,
};
use airmile_model::{Direction, Record};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::write::modem_log;
use capture::Recorder;
pub use manifest::{Clock, Lateness, Manifest, RealTime};

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
    /// Durations with and without each injected cause.
    pub counterfactuals: Vec<Counterfactual>,
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

/// What a transfer would have taken without a cause: the same seed again.
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
}

/// Runs a scenario, by its name or from a file, into a directory.
///
/// # Errors
/// No such scenario; a file that is none; the directory or a file cannot be
/// written.
pub fn run_scenario(name: &str, seed: Option<u64>, dir: &Path) -> Result<LabRun> {
    let mut scenario = load(name)?;
    if let Some(seed) = seed {
        scenario.seed = seed;
    }
    leave(name, &scenario, dir)
}

/// The scenario of a name or file, with the link traces that it names.
///
/// # Errors
/// No such scenario; a file that cannot be read or is none.
pub fn load(name: &str) -> Result<Scenario> {
    if let Some(found) = named(name) {
        return Ok(found.scenario());
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "toml") && !path.is_file() {
        return Err(unknown(name));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::read(path, e))?;
    let unusable = |what: String| Error::Unusable { path: path.to_owned(), what };
    let mut scenario = Scenario::from_toml(&text).map_err(|e| unusable(e.to_string()))?;
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

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = library().iter().map(|s| s.name).collect();
    Error::Option(format!("no scenario `{name}`, and no such file; there are {}", names.join(", ")))
}

/// Runs a scenario and leaves its files.
///
/// # Errors
/// It cannot be run, or its files cannot be written.
pub fn leave(name: &str, scenario: &Scenario, dir: &Path) -> Result<LabRun> {
    let cannot = |e| Error::Option(format!("scenario {name}: {e}"));
    let about = format!("airmile lab run {name} --seed {}", scenario.seed);
    let mut writer = RunWriter::create(dir, about)?;
    let outcome = run_into(scenario, &mut writer).map_err(cannot)?;
    let mut counterfactuals = Vec::new();
    for n in 0..scenario.causes.len() {
        let without = scenario.without(n).map_err(cannot)?;
        let other = run_into(&without, &mut ()).map_err(cannot)?;
        counterfactuals.extend(compare(&scenario.causes[n].label, &outcome, &other));
    }
    writer.finish(name, scenario, &outcome, counterfactuals, Clock::Virtual)
}

/// Takes what a run leaves while it runs, and leaves its files at the end.
pub struct RunWriter {
    dir: PathBuf,
    about: String,
    recorder: Recorder,
}

impl RunWriter {
    /// Into a directory, which is made if need be; `about` tells the command
    /// that made it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn create(dir: &Path, about: String) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
        let recorder = Recorder::new(dir, about.clone());
        Ok(Self { dir: dir.to_owned(), about, recorder })
    }

    /// Writes what is known at the end.
    ///
    /// # Errors
    /// A file, or a capture on the way, could not be written.
    pub fn finish(
        mut self,
        name: &str,
        scenario: &Scenario,
        outcome: &Outcome,
        counterfactuals: Vec<Counterfactual>,
        clock: Clock,
    ) -> Result<LabRun> {
        let cannot = |e| Error::Option(format!("scenario {name}: {e}"));
        let text = scenario.to_toml().map_err(cannot)?;
        let captures = self.recorder.finish()?;
        let mut files = Files { dir: &self.dir, names: Vec::new() };
        write_records(&mut files, scenario, &self.recorder.records)?;
        write_truth_tables(&mut files, scenario, outcome, &self.recorder)?;
        files
            .write("counterfactuals.csv", &|out| tables::counterfactuals(out, &counterfactuals))?;
        files.write("app.jsonl", &|out| tables::app_log(out, &outcome.notes))?;
        files.write("scenario.toml", &|out| out.write_all(text.as_bytes()))?;
        files.names.extend(captures);
        if let Clock::Real(real_time) = &clock {
            files.write("late_ttis.csv", &|out| tables::late_ttis(out, &real_time.late_ttis))?;
        }
        let manifest = Manifest::new(self.about, name, scenario, outcome, clock);
        files.write("manifest.json", &|out| manifest.write(out))?;
        let transfers = outcome.transfers.iter().map(|t| LabTransfer {
            id: t.transfer.id.clone(),
            dir: t.dir,
            link_demand: t.link_demand(),
        });
        let transfers = transfers.collect();
        let files = files.names;
        Ok(LabRun {
            scenario: name.to_owned(),
            seed: scenario.seed,
            dir: self.dir,
            files,
            transfers,
            counterfactuals,
        })
    }
}

impl Sink for RunWriter {
    fn record(&mut self, record: Record) {
        self.recorder.record(record);
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &Packet) {
        self.recorder.packet(at_ns, point, packet);
    }

    fn dropped(&mut self, at_ns: i64, user: usize, point: DropPoint, packet: &Packet) {
        self.recorder.dropped(at_ns, user, point, packet);
    }

    fn wants_senders(&self) -> bool {
        self.recorder.wants_senders()
    }

    fn sender_state(&mut self, state: &SenderState) {
        self.recorder.sender_state(state);
    }

    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        self.recorder.sender_event(place, event);
    }
}

/// Each transfer with and without a cause.
fn compare(label: &str, with: &Outcome, without: &Outcome) -> Vec<Counterfactual> {
    let duration = |outcome: &Outcome, id: &str| {
        let found = outcome.transfers.iter().find(|t| t.transfer.id == id);
        found.and_then(|t| t.truth.duration_ms)
    };
    let ids = with.transfers.iter().map(|t| &t.transfer.id);
    ids.map(|id| Counterfactual {
        id: id.clone(),
        label: label.to_owned(),
        duration_ms: duration(with, id),
        without_ms: duration(without, id),
    })
    .collect()
}

/// Files of a directory, as they are written.
struct Files<'a> {
    dir: &'a Path,
    names: Vec<String>,
}

impl Files<'_> {
    fn write(
        &mut self,
        name: &str,
        write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.dir.join(name);
        let created = File::create(&path).map_err(|e| Error::write(&path, e))?;
        let mut out = BufWriter::new(created);
        write(&mut out).and_then(|()| out.flush()).map_err(|e| Error::write(&path, e))?;
        self.names.push(name.to_owned());
        Ok(())
    }
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
    let transfers = || outcome.transfers.iter().map(|t| &t.transfer);
    files.write("transfers.csv", &|out| csv_io(write_transfers(out, transfers())))?;
    let truths = || outcome.transfers.iter().map(|t| &t.truth);
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
