//! Runs a named scenario, or one from a file, and writes its directory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use airmile::{Error, Progress, Result, SizeLimit, read_text, run_files};
use airmile_emulate::{
    EmulatedTransfer, LinkTrace, RadioReader, ReaderSetup, RunOutcome, RunSink, Scenario,
    ScenarioError, library, named, run_with,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::manifest::Clock;
use crate::output::{Counterfactual, LabRun, all_transfers, name_of};
use crate::radio_agent::RadioAgent;
use crate::writer::RunWriter;

/// Maximum size of a scenario (chosen here: those of the library have 2 kB).
const MAX_SCENARIO: SizeLimit = SizeLimit { name: "MAX_SCENARIO_BYTES", bytes: 1 << 20 };
/// Maximum size of a link trace, decompressed (chosen here: half an hour at 200 Mbit/s).
const MAX_LINK_TRACE: SizeLimit = SizeLimit { name: "MAX_LINK_TRACE_BYTES", bytes: 256 << 20 };

/// A named scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScenarioEntry {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
}

/// Options of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabOptions {
    /// Overrides the scenario's seed.
    pub seed: Option<u64>,
    /// Replace an earlier run in the directory.
    pub force: bool,
}

/// All named scenarios.
#[must_use]
pub fn scenarios() -> Vec<ScenarioEntry> {
    library().iter().map(|s| ScenarioEntry { name: s.name, about: s.about }).collect()
}

/// Runs a scenario, by its name or from a file, into an empty directory.
///
/// # Errors
/// No such scenario; not a scenario file; the directory is not empty; the directory or a
/// file cannot be written.
pub fn run_scenario(name: &str, seed: Option<u64>, dir: &Path) -> Result<LabRun> {
    run_scenario_with(name, LabOptions { seed, force: false }, dir)
}

/// Like [`run_scenario`], with all options.
///
/// # Errors
/// As for [`run_scenario`]; with `force`, an earlier run's directory is replaced.
pub fn run_scenario_with(name: &str, options: LabOptions, dir: &Path) -> Result<LabRun> {
    let mut scenario = load(name)?;
    if let Some(seed) = options.seed {
        scenario.seed = seed;
    }
    leave(&scenario, dir, options.force)
}

/// The scenario with a name or from a file, including its link traces.
///
/// # Errors
/// No such scenario; a file that cannot be read or is not a scenario.
pub fn load(name: &str) -> Result<Scenario> {
    if let Some(found) = named(name) {
        return Ok(Scenario { name: name.to_owned(), ..found.scenario() });
    }
    let path = Path::new(name);
    if path.is_dir() {
        let inside = path.join(run_files::SCENARIO);
        let hint = if inside.is_file() {
            format!("use {} to run it again", inside.display())
        } else {
            "use a scenario file".to_owned()
        };
        let what = format!("is a directory: {hint}");
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    if !path.is_file() {
        let known = library().iter().map(|s| s.name).collect();
        return Err(Error::NoScenario { name: name.to_owned(), known });
    }
    let text = read_text(path, &Progress::default(), MAX_SCENARIO)?;
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
    let text = read_text(path, &Progress::default(), MAX_LINK_TRACE)?;
    let unusable = |what: String| Error::Unusable { path: path.to_owned(), what };
    let trace = LinkTrace::parse(&text)
        .map_err(|e| unusable(format!("is not a link trace (Mahimahi): {e}")))?;
    Ok(Arc::new(trace))
}

/// Runs a scenario and writes its files; `force` replaces an earlier run.
///
/// # Errors
/// It cannot be run, the directory is not empty, or its files cannot be written.
pub fn leave(scenario: &Scenario, dir: &Path, force: bool) -> Result<LabRun> {
    let name = name_of(scenario);
    let cannot = |e| Error::Option(format!("scenario {name}: {e}"));
    let about = format!("airmile lab run, scenario {name}, seed {}", scenario.seed);
    let mut writer = RunWriter::create(scenario, dir, force, about)?;
    let outcome = run(scenario, &mut writer).map_err(cannot)?;
    let mut counterfactuals = Vec::new();
    for n in 0..scenario.causes.len() {
        let without = scenario.without(n).map_err(cannot)?.with_choices(&outcome.choices);
        let other = run(&without, &mut ()).map_err(cannot)?;
        counterfactuals.extend(compare(&scenario.causes[n].label, &outcome, &other));
    }
    writer.finish(scenario, &outcome, counterfactuals, Clock::Virtual)
}

/// Runs a scenario, with a [`RadioAgent`] on each phone whose server needs one.
pub(crate) fn run(
    scenario: &Scenario,
    sink: &mut impl RunSink,
) -> std::result::Result<RunOutcome, ScenarioError> {
    run_with(scenario, sink, Some(&reader))
}

/// A [`RadioAgent`] for a phone.
pub(crate) fn reader(setup: &ReaderSetup) -> Box<dyn RadioReader> {
    Box::new(RadioAgent::new(setup.clone()))
}

/// Each transfer with and without a cause.
fn compare(label: &str, with: &RunOutcome, without: &RunOutcome) -> Vec<Counterfactual> {
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
