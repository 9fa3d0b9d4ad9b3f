//! Packet captures: opened, studied, summed up, written as tables.

mod compare;
mod report;
mod tables;
mod threads;

use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_decode::packet::{CaptureReader, Captured, Unread, dissect_with};
use airmile_infer::tcp::{PacketStudy, StudyOptions, StudySummary, Tables};
use airmile_model::flow::PacketRow;
use airmile_model::packet::Packet;
use airmile_model::{Problem, Severity};

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::{Foreign, Kind};
use crate::session::FileReport;
use crate::table::ArrowTable;

pub use compare::{Compared, Table1Row};
pub use report::PacketReport;
pub use tables::TableFormat;

use tables::{MemoryTables, TableSink};

/// Bytes read at a time: what a core's second cache holds beside flows.
const CHUNK_BYTES: usize = 256 * 1024;

/// What is studied, and where its tables go.
#[derive(Debug, Clone, Default)]
pub struct PacketOptions {
    /// How the capture is studied. Its tables are chosen by `output`.
    pub study: StudyOptions,
    /// Write a file per table into this directory.
    pub output: Option<(PathBuf, TableFormat)>,
    /// Threads that analyse, beside one that reads; 1: all in one, 0: one for
    /// each core. The result is the same.
    pub threads: usize,
}

/// Studies captures, one after the other as one.
///
/// # Errors
/// A file cannot be opened or is no capture, or a table cannot be written.
pub fn packets(
    files: &[PathBuf],
    options: &PacketOptions,
    progress: &Progress,
) -> Result<(PacketReport, Vec<(PathBuf, u64)>)> {
    let sink = match &options.output {
        Some((dir, format)) => Some(TableSink::create(dir, *format)?),
        None => None,
    };
    let wanted = if sink.is_some() { Tables::ALL } else { Tables::NONE };
    let mut rows = Rows { sink, failed: None };
    let study = StudyOptions { tables: wanted, ..options.study.clone() };
    let report = run(files, study, options.threads, progress, &mut |row| rows.push(&row))?;
    let written = rows.finish()?;
    Ok((report, written))
}

/// As [`packets`], with the tables in memory.
///
/// # Errors
/// As [`packets`].
pub fn packet_tables(
    files: &[PathBuf],
    options: &StudyOptions,
    progress: &Progress,
) -> Result<(PacketReport, Vec<ArrowTable>)> {
    let mut tables = MemoryTables::new();
    let study = StudyOptions { tables: Tables::ALL, ..options.clone() };
    let mut failed = None;
    let report = run(files, study, 0, progress, &mut |row| {
        if failed.is_none() {
            failed = tables.push(&row).err();
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok((report, tables.finish()?)),
    }
}

struct Rows {
    sink: Option<TableSink>,
    failed: Option<Error>,
}

impl Rows {
    fn push(&mut self, row: &PacketRow) {
        if let (Some(sink), None) = (&mut self.sink, &self.failed) {
            self.failed = sink.push(row).err();
        }
    }

    fn finish(self) -> Result<Vec<(PathBuf, u64)>> {
        match (self.failed, self.sink) {
            (Some(error), _) => Err(error),
            (None, Some(sink)) => sink.finish(),
            (None, None) => Ok(Vec::new()),
        }
    }
}

fn run(
    files: &[PathBuf],
    options: StudyOptions,
    threads: usize,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<PacketReport> {
    let threads = threads::count(threads);
    let (reports, summary) = if threads == 1 {
        run_alone(files, &options, progress, sink)?
    } else {
        threads::run(files, &options, threads, progress, sink)?
    };
    if summary.quality.packets == 0 {
        let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        let what = format!("{}: no IP packets", names.join(", "));
        return Err(Error::NothingToAnalyse(what));
    }
    Ok(PacketReport::new(reports, &summary, &options))
}

/// All in one thread.
fn run_alone(
    files: &[PathBuf],
    options: &StudyOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(Vec<FileReport>, StudySummary)> {
    let mut study = PacketStudy::new(options.clone());
    let mut reports = Vec::new();
    for path in files {
        reports.push(read_capture(path, progress, &mut |packet| {
            study.push(packet);
            while let Some(row) = study.poll() {
                sink(row);
            }
        })?);
    }
    Ok((reports, study.finish_with(sink)))
}

/// Reads a capture's packets in order.
///
/// # Errors
/// The file cannot be opened, or is no capture. Damage is in the report.
pub fn read_capture(
    path: &Path,
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let mut input = Input::open(path, progress)?;
    let kind = Kind::of(input.head());
    if !matches!(kind, Kind::Foreign(Foreign::Pcap | Foreign::PcapNg)) {
        let what = "is no packet capture (pcap or pcapng)".to_owned();
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    let mut file = FileReport::new(&input, kind);
    let mut reader = CaptureReader::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) => {
                let what = format!("the rest cannot be read: {error}");
                let offset = reader.offset();
                file.problem(Problem { offset, severity: Severity::Damage, what });
                break;
            }
        };
        file.bytes += n as u64;
        let piece = buffer.get(..n).unwrap_or_default();
        reader.push(piece, &mut |captured| take(&mut file, captured, sink));
    }
    reader.finish(&mut |captured| take(&mut file, captured, sink));
    Ok(file)
}

fn take(file: &mut FileReport, captured: Captured<'_>, sink: &mut dyn FnMut(&Packet<'_>)) {
    let frame = match captured {
        Captured::Frame(frame) => frame,
        Captured::Problem(problem) => return file.problem(problem),
    };
    file.items += 1;
    let at_us = frame.at_ns.div_euclid(1_000);
    file.start_us = Some(file.start_us.map_or(at_us, |start| start.min(at_us)));
    file.end_us = Some(file.end_us.map_or(at_us, |end| end.max(at_us)));
    dissect_with(&frame, |packet| match packet {
        Ok(packet) => sink(packet),
        Err(unread) => {
            let name = match unread {
                Unread::NotIp(_) => "not_ip",
                Unread::Link(_) => "unknown_link_type",
                Unread::Cut(_) => "cut_header",
                Unread::Bad(_) => "bad_header",
            };
            file.bad_items += u64::from(!matches!(unread, Unread::NotIp(_)));
            let first = !file.records.contains_key(name);
            *file.records.entry(name).or_default() += 1;
            if first && let Some(what) = told(unread) {
                let problem = Problem { offset: frame.offset, severity: Severity::Warning, what };
                file.problem(problem);
            }
        }
    });
}

/// In words, for the first frame of its kind.
fn told(unread: Unread) -> Option<String> {
    match unread {
        Unread::NotIp(_) => None,
        Unread::Link(link) => Some(format!("frames of link type {link} are not read")),
        Unread::Cut(header) => Some(format!("frame cut within its {header} header")),
        Unread::Bad(field) => Some(format!("frame with a bad {field}")),
    }
}
