//! The steps of a divided study (`airmile::packets::scale`), run by `airmile.scale`.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::PathBuf;

use airmile::capture::packet::CaptureReader;
use airmile::packet_study::FlowEnds;
use airmile::packets::scale::{
    self, BucketPart, BucketReport, DealReport, DealSource, RecordBatches, ScaleOptions,
};
use airmile::{ArrowTable, Error, Result};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::ask;
use crate::error::{option, to_py};
use crate::report::Packets;
use crate::table::Table;

fn options(ask: ask::Packets, buckets: u32) -> PyResult<ScaleOptions> {
    let (_, options) = ask.options()?;
    if options.limits.are_given() {
        return Err(option("from and to: an engine studies whole captures".into()));
    }
    Ok(ScaleOptions { study: options.study, buckets })
}

fn text<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A Python file object opened for reading.
struct FileObject(Py<PyAny>);

impl Read for FileObject {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.call_method1(py, "read", (buf.len(),));
            let bytes = read.map_err(|e| io::Error::other(e.to_string()))?;
            let bytes = bytes.bind(py).cast::<PyBytes>();
            let bytes = bytes.map_err(|e| io::Error::other(e.to_string()))?.as_bytes();
            let n = bytes.len().min(buf.len());
            buf[..n].copy_from_slice(&bytes[..n]);
            Ok(n)
        })
    }
}

/// A path and a range of its bytes, or a name and a file object.
#[derive(FromPyObject)]
pub enum Source {
    File(PathBuf, Option<(u64, u64)>),
    Object(String, Py<PyAny>),
}

/// Row groups of a file, or an object with `__arrow_c_stream__`.
#[derive(FromPyObject)]
pub enum Records {
    File(PathBuf, Vec<usize>),
    Stream(Py<PyAny>),
}

/// Records, the number of packets before the part, and the clock at its start.
#[derive(FromPyObject)]
pub struct Part(Records, u64, Option<i64>);

impl Records {
    fn batches(self, py: Python<'_>) -> PyResult<RecordBatches> {
        match self {
            Self::File(path, groups) => Ok(scale::records_of(&path, groups)),
            Self::Stream(object) => {
                let capsule = object.call_method0(py, "__arrow_c_stream__")?;
                let capsule = capsule.bind(py).cast::<PyCapsule>().map_err(PyErr::from)?;
                Ok(Box::new(stream(capsule)?.map(|batch| batch.map_err(|e| refused(&e)))))
            }
        }
    }
}

fn refused(what: &dyn std::fmt::Display) -> Error {
    Error::Arrow { table: "records", what: what.to_string() }
}

#[allow(unsafe_code, reason = "the Arrow PyCapsule interface hands over a C struct")]
fn stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds such a stream, and its consumer marks it as released,
    // which `from_raw` does; the capsule is alive here.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    RecordBatchStreamReader::try_new(stream).map_err(|e| to_py(refused(&e)))
}

fn parts(py: Python<'_>, parts: Vec<Part>) -> PyResult<Vec<BucketPart>> {
    let part = |Part(records, first_packet, clock_ns)| {
        Ok(BucketPart { batches: records.batches(py)?, first_packet, clock_ns })
    };
    parts.into_iter().map(part).collect()
}

fn ends(bytes: &[u8]) -> HashSet<FlowEnds> {
    let each = bytes.chunks_exact(FlowEnds::BYTES).filter_map(|ends| ends.first_chunk());
    each.map(|ends| FlowEnds::from_bytes(*ends)).collect()
}

/// Whether a file with this start is a capture that can be split.
#[pyfunction]
pub fn is_capture(head: &[u8]) -> bool {
    CaptureReader::recognise(head).is_some()
}

/// The columns of a record, as a table without rows.
#[pyfunction]
pub fn record_schema() -> Table {
    Table::raw(ArrowTable { name: "records", schema: scale::record_schema(), batches: Vec::new() })
}

#[pyfunction]
pub fn split_capture(py: Python<'_>, path: PathBuf, part_bytes: u64) -> PyResult<Vec<u64>> {
    py.detach(|| scale::split_capture(&path, part_bytes)).map_err(to_py)
}

/// Returns the report as JSON.
#[pyfunction]
pub fn deal(
    py: Python<'_>,
    ask: ask::Packets,
    buckets: u32,
    source: Source,
    out: PathBuf,
) -> PyResult<String> {
    let options = options(ask, buckets)?;
    let source = match source {
        Source::File(path, range) => DealSource::File(path, range.map(|(from, to)| from..to)),
        Source::Object(name, object) => DealSource::Stream(name, Box::new(FileObject(object))),
    };
    let report = py.detach(|| scale::deal(source, &options, &out)).map_err(to_py)?;
    text(&report)
}

/// Returns the start of each part (packets before it, clock), and the clock at the end.
#[pyfunction]
pub fn clocks(reports: Vec<String>) -> PyResult<(scale::Clocks, Option<i64>)> {
    let reports: PyResult<Vec<DealReport>> = reports.iter().map(|report| parsed(report)).collect();
    Ok(scale::clocks(&reports?))
}

/// Returns the row groups as JSON.
#[pyfunction]
pub fn settle(
    py: Python<'_>,
    ask: ask::Packets,
    buckets: u32,
    capture: Vec<Vec<Part>>,
    strays: &[u8],
    out: PathBuf,
) -> PyResult<String> {
    let options = options(ask, buckets)?;
    let capture: PyResult<Vec<_>> = capture.into_iter().map(|part| parts(py, part)).collect();
    let (capture, strays) = (capture?, ends(strays));
    let groups = py.detach(|| scale::settle(capture, &strays, &options, &out)).map_err(to_py)?;
    text(&groups)
}

/// Returns the report as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "those of the library")]
pub fn study_bucket(
    py: Python<'_>,
    ask: ask::Packets,
    buckets: u32,
    bucket: u32,
    capture: Vec<Part>,
    settled: Option<Records>,
    strays: &[u8],
    end_ns: i64,
    dir: PathBuf,
) -> PyResult<String> {
    let options = options(ask, buckets)?;
    let capture = parts(py, capture)?;
    let settled = settled.map(|records| records.batches(py)).transpose()?;
    let strays = ends(strays);
    let study = || -> Result<BucketReport> {
        scale::study_bucket(bucket, capture, settled, &strays, end_ns, &options, &dir)
    };
    text(&py.detach(study).map_err(to_py)?)
}

/// Returns the study's report, without tables.
#[pyfunction]
pub fn join(
    py: Python<'_>,
    ask: ask::Packets,
    files: Vec<Vec<(String, Vec<u8>)>>,
    reports: Vec<String>,
) -> PyResult<Packets> {
    let options = options(ask, 1)?;
    let part = |(report, syns): &(String, Vec<u8>)| Ok((parsed(report)?, syns.clone()));
    let files = files.iter().map(|parts| parts.iter().map(part).collect::<PyResult<Vec<_>>>());
    let files = files.collect::<PyResult<Vec<_>>>()?;
    let reports = reports.iter().map(|report| parsed(report)).collect::<PyResult<Vec<_>>>()?;
    let report = py.detach(|| scale::join(files, reports, &options)).map_err(to_py)?;
    Ok(Packets { report, tables: Vec::new() })
}
