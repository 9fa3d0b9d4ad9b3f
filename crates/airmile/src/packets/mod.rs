//! Packet captures: opened, studied, summed up, written as tables.

mod compare;
mod report;
mod study;
mod tables;
mod threads;

use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_decode::packet::{CaptureReader, Captured, Dissector, FragmentCounts, Unread};
use airmile_infer::tcp::{PacketStudy, Quality, StudyOptions, StudySummary, Tables, Traced};
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
pub use study::{
    AckLine, BandwidthTimeline, Cumulative, Curve, DataRuns, Density, EventLine, Figure, Finding,
    FlowCounts, FlowFacts, FlowName, FlowPlot, Headline, PaperPoint, Plot, RangeLine, Requests,
    Study, Transfer, study, study_page,
};
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
    let mut rows = Rows::create(options)?;
    let study = StudyOptions { tables: rows.wanted(), ..options.study.clone() };
    let mut push = |row| rows.push(&row);
    let (report, _) = study_files(files, study, options.threads, progress, &mut push)?;
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
    let (report, _) = study_files(files, study, 0, progress, &mut |row| {
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
    fn create(options: &PacketOptions) -> Result<Self> {
        let sink = match &options.output {
            Some((dir, format)) => Some(TableSink::create(dir, *format)?),
            None => None,
        };
        Ok(Self { sink, failed: None })
    }

    const fn wanted(&self) -> Tables {
        if self.sink.is_some() { Tables::ALL } else { Tables::NONE }
    }

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

fn study_files(
    files: &[PathBuf],
    options: StudyOptions,
    threads: usize,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(PacketReport, StudySummary)> {
    // Rows alone go to the sink.
    let options = StudyOptions { traced: Traced::default(), ..options };
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
    Ok((PacketReport::new(reports, &summary, &options), summary))
}

/// All in one thread.
fn run_alone(
    files: &[PathBuf],
    options: &StudyOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(Vec<FileReport>, StudySummary)> {
    let mut study = PacketStudy::new(options.clone());
    let (reports, counts) = read_captures(files, progress, &mut |packet| {
        study.push(packet);
        while let Some(row) = study.poll() {
            sink(row);
        }
    })?;
    let mut summary = study.finish_with(sink);
    count_fragments(&mut summary.quality, counts);
    Ok((reports, summary))
}

/// Packets are those of the wire, where the study saw datagrams.
fn count_fragments(quality: &mut Quality, counts: FragmentCounts) {
    quality.packets += counts.fragments.saturating_sub(counts.datagrams + counts.incomplete);
    quality.ip_bytes += counts.left_out_bytes;
    quality.later_fragments = counts.left_out;
    quality.reassembled = counts.datagrams;
    quality.incomplete_datagrams = counts.incomplete;
    quality.overlapping_fragments = counts.overlapping;
}

/// Reads the packets of captures one after the other as one: a datagram's
/// fragments may be in two files.
fn read_captures(
    files: &[PathBuf],
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<(Vec<FileReport>, FragmentCounts)> {
    let mut dissector = Dissector::new();
    let mut reports = Vec::new();
    for path in files {
        reports.push(read(path, progress, &mut dissector, sink)?);
    }
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    Ok((reports, dissector.counts()))
}

/// Reads a capture's packets in order, datagrams put together from fragments.
///
/// # Errors
/// The file cannot be opened, or is no capture. Damage is in the report.
pub fn read_capture(
    path: &Path,
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let mut dissector = Dissector::new();
    let report = read(path, progress, &mut dissector, sink)?;
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    Ok(report)
}

/// As [`read_capture`]; what waits for its fragments stays in the dissector.
fn read(
    path: &Path,
    progress: &Progress,
    dissector: &mut Dissector,
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
        reader.push(piece, &mut |captured| take(&mut file, &captured, dissector, sink));
    }
    reader.finish(&mut |captured| take(&mut file, &captured, dissector, sink));
    Ok(file)
}

fn take(
    file: &mut FileReport,
    captured: &Captured<'_>,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) {
    let frame = match captured {
        Captured::Frame(frame) => frame,
        Captured::Problem(problem) => return file.problem(problem.clone()),
    };
    file.items += 1;
    let at_us = frame.at_ns.div_euclid(1_000);
    file.start_us = Some(file.start_us.map_or(at_us, |start| start.min(at_us)));
    file.end_us = Some(file.end_us.map_or(at_us, |end| end.max(at_us)));
    dissector.push(frame, &mut |read| match read {
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
