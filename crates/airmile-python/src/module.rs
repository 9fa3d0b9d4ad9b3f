//! The functions. Each releases the interpreter for other Python threads while it reads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use airmile::{Error, Exports, FlowName, Progress, ScrubOptions, Subject};
use airmile_lab::LabOptions;
use airmile_lab::reproduce::{
    Follower, Reproduction, RunCount, experiments, prepare, reproduce, write_files,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::ask::{self, Analysis, Decode, Files};
use crate::error::{option, to_py};
use crate::report::{
    Compare, Diagnose, Inspect, LabReproduction, LabRun, Packets, Radio, Scrub, json,
};
use crate::scale;
use crate::table::{TIMES, Table};

/// How often Ctrl-C is looked for (chosen here: not noticed by a person).
const SIGNALS_EVERY: Duration = Duration::from_millis(100);
/// As the main thread's.
const STACK_BYTES: usize = 8 << 20;

/// Reads in a thread of its own, so that Ctrl-C ends the call; the thread's inputs end then.
fn read<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Progress) -> airmile::Result<T> + Send + 'static,
) -> PyResult<T> {
    let progress = Progress::default();
    let (send, mut receive) = mpsc::sync_channel(1);
    let of_work = progress.clone();
    let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        // Nobody waits any more after Ctrl-C.
        let _ = send.send(work(&of_work));
    });
    let thread = started.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    loop {
        let waited = py.detach(move || (receive.recv_timeout(SIGNALS_EVERY), receive));
        receive = waited.1;
        match waited.0 {
            Ok(done) => return done.map_err(to_py),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| progress.end())?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Ok(()) => return Err(PyRuntimeError::new_err("the analysis has no result")),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}

#[pyfunction]
fn inspect(py: Python<'_>, ask: Files) -> PyResult<Inspect> {
    let (inputs, limits) = ask.inputs()?;
    read(py, move |progress| airmile::inspect(&inputs, limits, progress)).map(Inspect)
}

#[pyfunction]
fn radio(py: Python<'_>, ask: Analysis) -> PyResult<Radio> {
    let (inputs, options) = ask.options()?;
    read(py, move |progress| airmile::radio(&inputs, &options, progress)).map(Radio)
}

#[pyfunction]
fn diagnose(py: Python<'_>, ask: Analysis) -> PyResult<Diagnose> {
    let (inputs, options) = ask.options()?;
    read(py, move |progress| airmile::diagnose(&inputs, &options, progress)).map(Diagnose)
}

#[pyfunction]
fn compare(py: Python<'_>, ask: ask::Compare) -> PyResult<Compare> {
    let (runs, options) = ask.options()?;
    read(py, move |progress| airmile::compare(&runs, &options, progress)).map(Compare)
}

#[pyfunction]
fn scrub(
    py: Python<'_>,
    files: Vec<PathBuf>,
    output: PathBuf,
    key: Option<PathBuf>,
) -> PyResult<Scrub> {
    let options = ScrubOptions { output, key };
    let report = py.detach(|| airmile::scrub(&files, &options, &Progress::default()));
    report.map(Scrub).map_err(to_py)
}

/// Writes the files in addition to a result.
#[pyfunction]
fn export(
    py: Python<'_>,
    ask: Analysis,
    html: Option<PathBuf>,
    perfetto: Option<PathBuf>,
    of_radio: bool,
) -> PyResult<()> {
    let (inputs, options) = ask.options()?;
    let exports = Exports { html, perfetto };
    let subject = if of_radio { Subject::Radio } else { Subject::Diagnosis };
    let done =
        py.detach(|| airmile::export(&inputs, &options, &exports, subject, &Progress::default()));
    done.map(|_| ()).map_err(to_py)
}

/// Returns the tables, and the files' reports as JSON.
#[pyfunction]
fn decode(py: Python<'_>, ask: Decode) -> PyResult<(Vec<Table>, String)> {
    let (inputs, options) = ask.options()?;
    let (loaded, tables) =
        read(py, move |progress| airmile::decode_tables(&inputs, &options, progress))?;
    let files = serde_json::json!({ "damaged": loaded.damaged(), "files": loaded.files });
    let tables = tables.into_iter().map(Table::new).collect::<PyResult<_>>()?;
    Ok((tables, json(py, "decode", &files)?))
}

/// Returns the report and all tables.
#[pyfunction]
fn packets(py: Python<'_>, ask: ask::Packets) -> PyResult<Packets> {
    let (files, options) = ask.options()?;
    let (report, tables) =
        read(py, move |progress| airmile::packet_tables(&files, &options, progress))?;
    Ok(Packets { report, tables })
}

/// Writes the study's page, with these flows as graphs.
#[pyfunction]
fn packets_html(
    py: Python<'_>,
    ask: ask::Packets,
    flows: Vec<String>,
    html: PathBuf,
) -> PyResult<()> {
    let (files, options) = ask.options()?;
    let flows: Result<Vec<FlowName>, String> = flows.iter().map(|name| name.parse()).collect();
    let flows = flows.map_err(|what| option(format!("flow: {what}")))?;
    let progress = Progress::default();
    let done = py.detach(|| airmile::study_page(&files, &options, &flows, &html, &progress));
    done.map(|_| ()).map_err(to_py)
}

/// Returns names and descriptions.
#[pyfunction]
fn lab_list() -> Vec<(&'static str, &'static str)> {
    airmile_lab::scenarios().into_iter().map(|s| (s.name, s.about)).collect()
}

#[pyfunction]
fn lab_run(
    py: Python<'_>,
    scenario: &str,
    seed: Option<u64>,
    force: bool,
    dir: PathBuf,
) -> PyResult<LabRun> {
    let options = LabOptions { seed, force };
    let run = py.detach(|| airmile_lab::run_scenario_with(scenario, options, &dir));
    run.map(LabRun).map_err(to_py)
}

/// Returns names, sources and descriptions.
#[pyfunction]
fn lab_experiments() -> Vec<(&'static str, &'static str, &'static str)> {
    experiments().iter().map(|e| (e.name, e.source, e.what)).collect()
}

/// Writes the files after each experiment, and lets Ctrl-C end the run there.
struct Following<'a> {
    dir: Option<&'a Path>,
    interrupted: Option<PyErr>,
}

impl Follower for Following<'_> {
    fn ended(&mut self, so_far: &Reproduction) -> airmile::Result<()> {
        if let Some(dir) = self.dir {
            write_files(so_far, dir)?;
        }
        let signal = Python::attach(|py| py.check_signals());
        signal.map_err(|raised| {
            self.interrupted = Some(raised);
            Error::Option("interrupted".to_owned())
        })
    }
}

/// Experiments between real hosts are skipped: a process of Python cannot be such a host.
#[pyfunction]
fn lab_reproduce(
    py: Python<'_>,
    names: Vec<String>,
    size: &str,
    dir: Option<PathBuf>,
    force: bool,
) -> PyResult<LabReproduction> {
    let size = ask::size(size)?;
    let mut following = Following { dir: dir.as_deref(), interrupted: None };
    let done = py.detach(|| {
        // Checked before hours of work.
        following.dir.map_or(Ok(()), |dir| prepare(dir, force))?;
        reproduce(&names, size, None, &RunCount::default(), &mut following)
    });
    match (done, following.interrupted) {
        (_, Some(raised)) => Err(raised),
        (done, None) => done.map(LabReproduction).map_err(to_py),
    }
}

/// Runs the `airmile` command; returns its exit status.
#[pyfunction]
fn command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| airmile_cli::run(args))
}

#[pymodule]
fn _airmile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TIMES", TIMES.into_iter().collect::<std::collections::BTreeMap<_, _>>())?;
    module.add_class::<Inspect>()?;
    module.add_class::<Radio>()?;
    module.add_class::<Diagnose>()?;
    module.add_class::<Packets>()?;
    module.add_class::<Compare>()?;
    module.add_class::<Scrub>()?;
    module.add_class::<LabReproduction>()?;
    module.add_class::<LabRun>()?;
    module.add_class::<Table>()?;
    module.add_function(wrap_pyfunction!(ask::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(inspect, module)?)?;
    module.add_function(wrap_pyfunction!(radio, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(scrub, module)?)?;
    module.add_function(wrap_pyfunction!(export, module)?)?;
    module.add_function(wrap_pyfunction!(decode, module)?)?;
    module.add_function(wrap_pyfunction!(packets, module)?)?;
    module.add_function(wrap_pyfunction!(packets_html, module)?)?;
    module.add_function(wrap_pyfunction!(scale::is_capture, module)?)?;
    module.add_function(wrap_pyfunction!(scale::record_schema, module)?)?;
    module.add_function(wrap_pyfunction!(scale::split_capture, module)?)?;
    module.add_function(wrap_pyfunction!(scale::deal, module)?)?;
    module.add_function(wrap_pyfunction!(scale::clocks, module)?)?;
    module.add_function(wrap_pyfunction!(scale::settle, module)?)?;
    module.add_function(wrap_pyfunction!(scale::study_bucket, module)?)?;
    module.add_function(wrap_pyfunction!(scale::join, module)?)?;
    module.add_function(wrap_pyfunction!(lab_list, module)?)?;
    module.add_function(wrap_pyfunction!(lab_run, module)?)?;
    module.add_function(wrap_pyfunction!(lab_experiments, module)?)?;
    module.add_function(wrap_pyfunction!(lab_reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
