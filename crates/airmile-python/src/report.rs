//! Results for Python: the document as printed by the command's `--json`, the text as printed by
//! the command, and each array as a table.

use std::path::{Path, PathBuf};

use airmile::model::Cause;
use airmile::{
    ArrowTable, Comparison, Diagnosis, Document, FileReport, InspectReport, MessageRow,
    PacketReport, RadioReport, Result, ScrubReport, Zone,
};
use airmile_lab::reproduce::{Reproduction, rows_table};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::to_py;
use crate::table::Table;

/// The result of `inspect`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Inspect(pub InspectReport);

/// The result of `radio`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Radio(pub RadioReport);

/// The result of `diagnose`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Diagnose(pub Diagnosis);

/// The result of `packets`, and the tables that `-o` writes.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Packets {
    pub report: PacketReport,
    pub tables: Vec<ArrowTable>,
}

/// The result of `compare`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Compare(pub Comparison);

/// The result of `scrub`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct Scrub(pub ScrubReport);

/// The result of `lab reproduce`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct LabReproduction(pub Reproduction);

/// The result of `lab run`.
#[pyclass(frozen, module = "airmile._airmile")]
pub struct LabRun(pub airmile_lab::LabRun);

/// A document's text, as `--json` prints it.
pub fn json<T: serde::Serialize + Sync>(
    py: Python<'_>,
    name: &'static str,
    body: &T,
) -> PyResult<String> {
    py.detach(|| serde_json::to_string_pretty(&Document::new(name, body)))
        .map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

fn table(made: Result<ArrowTable>) -> PyResult<Table> {
    Table::new(made.map_err(to_py)?)
}

fn damaged(files: &[FileReport]) -> bool {
    files.iter().any(|f| f.damaged)
}

#[pymethods]
impl Inspect {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "inspect", &self.0)
    }

    fn text(&self) -> String {
        airmile_cli::text::inspect(&self.0, Zone::UTC)
    }

    fn damaged(&self) -> bool {
        damaged(&self.0.files)
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.0.files))
    }

    fn messages(&self) -> PyResult<Table> {
        let rows: Vec<MessageRow> =
            self.0.files.iter().flat_map(|f| f.messages.iter().cloned()).collect();
        table(ArrowTable::of_rows("messages", &rows))
    }

    fn missing(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("missing", &self.0.missing))
    }
}

#[pymethods]
impl Radio {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "radio", &self.0)
    }

    fn text(&self, all: bool) -> String {
        airmile_cli::text::radio(&self.0, all, Zone::UTC)
    }

    fn damaged(&self) -> bool {
        damaged(&self.0.files)
    }

    fn subscription(&self) -> u8 {
        self.0.subscription
    }

    fn tti_ms(&self) -> f64 {
        self.0.tti_ms
    }

    fn n_prb_cell(&self) -> Option<u16> {
        self.0.n_prb_cell
    }

    fn transfers(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("transfers", &self.0.transfers))
    }

    fn bursts(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("bursts", &self.0.bursts))
    }

    fn usage(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("usage", &self.0.usage))
    }

    fn cell_load(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("cell_load", &self.0.cell_load))
    }

    fn cells(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("cells", &self.0.cells))
    }

    fn missing(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("missing", &self.0.missing))
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.0.files))
    }
}

#[pymethods]
impl Diagnose {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "diagnose", &self.0)
    }

    fn text(&self, all: bool) -> String {
        airmile_cli::text::diagnose(&self.0, all, Zone::UTC)
    }

    fn damaged(&self) -> bool {
        damaged(&self.0.files)
    }

    fn verdict(&self) -> &'static str {
        self.0.session.verdict.as_str()
    }

    fn confidence(&self) -> f64 {
        self.0.session.confidence
    }

    fn link_demand(&self) -> Option<f64> {
        self.0.session.link_demand
    }

    fn says(&self) -> &str {
        &self.0.session.says
    }

    fn transfers(&self) -> PyResult<Table> {
        let causes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        let transfers = table(ArrowTable::of_rows("transfers", &self.0.transfers))?;
        transfers.with_shares("shares", &["radio", "not_radio"], &causes)
    }

    fn cells(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("cells", &self.0.cells))
    }

    fn missing(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("missing", &self.0.missing))
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.0.files))
    }
}

#[pymethods]
impl Packets {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "packets", &self.report)
    }

    fn text(&self, all: bool) -> String {
        airmile_cli::text::packets(&self.report, all)
    }

    fn damaged(&self) -> bool {
        self.report.damaged()
    }

    fn says(&self) -> &str {
        &self.report.says
    }

    /// The study's tables, by the names of their files.
    fn tables(&self) -> PyResult<Vec<Table>> {
        self.tables.iter().cloned().map(Table::new).collect()
    }

    fn summary(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("summary", &self.report.summary))
    }

    fn table1(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("table1", &self.report.table1))
    }

    fn periodic(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("periodic", &self.report.periodic))
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.report.files))
    }
}

#[pymethods]
impl Compare {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "compare", &self.0)
    }

    fn text(&self, all: bool) -> String {
        airmile_cli::text::compare(&self.0, all)
    }

    fn damaged(&self) -> bool {
        self.0.damaged()
    }

    fn confidence(&self) -> f64 {
        self.0.confidence
    }

    fn says(&self) -> &str {
        &self.0.says
    }

    fn groups(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("groups", &self.0.groups))
    }

    fn pairs(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("pairs", &self.0.pairs))
    }

    fn runs(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("runs", &self.0.runs))
    }

    fn missing(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("missing", &self.0.missing))
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.0.files))
    }
}

#[pymethods]
impl Scrub {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "scrub", &self.0)
    }

    fn text(&self) -> String {
        airmile_cli::text::scrub(&self.0)
    }

    fn damaged(&self) -> bool {
        self.0.damaged()
    }

    fn inputs(&self) -> &[PathBuf] {
        &self.0.inputs
    }

    fn key_file(&self) -> &Path {
        &self.0.key_file
    }

    fn key_made(&self) -> bool {
        self.0.key_made
    }

    fn manifest(&self) -> &Path {
        &self.0.manifest
    }

    fn files(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("files", &self.0.files))
    }

    fn left_out(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("left_out", &self.0.left_out))
    }
}

#[pymethods]
impl LabReproduction {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "lab_reproduce", &self.0)
    }

    fn text(&self) -> String {
        airmile_cli::text::lab_reproduce(&self.0)
    }

    fn rows(&self) -> PyResult<Table> {
        table(rows_table(&self.0))
    }
}

#[pymethods]
impl LabRun {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, "lab_run", &self.0)
    }

    fn text(&self) -> String {
        airmile_cli::text::lab_run(&self.0)
    }

    fn transfers(&self) -> PyResult<Table> {
        table(ArrowTable::of_rows("transfers", &self.0.transfers))
    }
}
