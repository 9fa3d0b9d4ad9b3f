//! Packet captures: opened, studied, summed up, written as tables.

mod compare;
mod given;
mod largest;
mod report;
mod rounds;
pub mod scale;
mod study;
mod tables;
mod threads;
mod views;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_decode::packet::{CaptureReader, Captured, Dissector, FragmentCounts, Unread};
use airmile_model::flow::PacketRow;
use airmile_model::packet::Packet;
use airmile_model::{Problem, Severity};
use airmile_wire::tcp::{Quality, StudyOptions, StudySummary, Tables, Traced};

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::limits::{LimitFilter, Limits};
use crate::recognise::Kind;
use crate::session::FileReport;
use crate::table::ArrowTable;

pub use compare::{Compared, Table1Row};
pub use given::{CaptureStream, Captures, client_network, send_rate_bar};
pub use largest::FlowEntry;
pub use report::PacketReport;
pub use study::{
    AckLine, BandwidthTimeline, Cumulative, Curve, DataRuns, Density, EventLine, Figure, Finding,
    FlowCounts, FlowFacts, FlowName, FlowPlot, Headline, PaperPoint, Plot, RangeLine, Requests,
    Study, Transfer, study, study_page,
};
pub use tables::TableFormat;

use given::Reading;
use largest::Largest;
use study::{Overview, headline};
use tables::{MemoryTables, TableSink};
use views::Views;

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
    /// Only packets within them.
    pub limits: Limits,
}

/// Studies captures, one after the other as one.
///
/// # Errors
/// A file cannot be opened or is no capture, or a table cannot be written.
pub fn packets<'a>(
    captures: impl Into<Captures<'a>>,
    options: &PacketOptions,
    progress: &Progress,
) -> Result<(PacketReport, Vec<(PathBuf, u64)>)> {
    let mut rows = Rows::create(options)?;
    let study = StudyOptions { tables: rows.wanted(), ..options.study.clone() };
    let mut push = |row| rows.push(&row);
    let reading = Reading { captures: captures.into(), limits: options.limits };
    let (report, _) = study_captures(reading, study, options.threads, progress, &mut push)?;
    let written = rows.finish()?;
    Ok((report, written))
}

/// As [`packets`], with the tables in memory instead of `options.output`.
///
/// # Errors
/// As [`packets`].
pub fn packet_tables<'a>(
    captures: impl Into<Captures<'a>>,
    options: &PacketOptions,
    progress: &Progress,
) -> Result<(PacketReport, Vec<ArrowTable>)> {
    let mut tables = MemoryTables::new();
    let study = StudyOptions { tables: Tables::ALL, ..options.study.clone() };
    let reading = Reading { captures: captures.into(), limits: options.limits };
    let mut failed = None;
    let mut push = |row| {
        if failed.is_none() {
            failed = tables.push(&row).err();
        }
    };
    let (report, _) = study_captures(reading, study, options.threads, progress, &mut push)?;
    match failed {
        Some(error) => Err(error),
        None => Ok((report, tables.finish()?)),
    }
}

/// What the frames are that give no packet.
fn unread(reports: &[FileReport]) -> String {
    let frames: u64 = reports.iter().map(|file| file.items).sum();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, n) in reports.iter().flat_map(|file| &file.records) {
        *counts.entry(name).or_default() += n;
    }
    let counts: Vec<String> = counts.iter().map(|(name, n)| format!("{name}: {n}")).collect();
    if counts.is_empty() {
        return String::new();
    }
    format!(" in {frames} frames ({})", counts.join(", "))
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

fn study_captures(
    reading: Reading<'_>,
    options: StudyOptions,
    threads: usize,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(PacketReport, StudySummary)> {
    // Rows alone go to the sink.
    let tables = Tables { flows: true, ..options.tables };
    let options = StudyOptions { traced: Traced::default(), tables, ..options };
    let mut largest = Largest::default();
    let mut overview = Overview::default();
    let mut each = |row| {
        if let PacketRow::Flow(flow) = &row {
            largest.push(flow);
            overview.flow(flow);
        }
        sink(row);
    };
    let names = reading.captures.names();
    let threads = threads::count(threads);
    let (reports, summary) = if threads == 1 {
        rounds::run_alone(reading, &options, progress, &mut each)?
    } else {
        threads::run(reading, &options, threads, progress, &mut each)?
    };
    if summary.quality.packets == 0 {
        let why = unread(&reports);
        return Err(Error::NothingToAnalyse(format!("{names}: no IP packets{why}")));
    }
    let mut report = PacketReport::new(reports, &summary, &options, largest.finish());
    report.headline = Some(headline(&summary, &overview, &report));
    Ok((report, summary))
}

/// What reading tells of a capture's quality.
struct ReadCounts {
    fragments: FragmentCounts,
    repeated_connections: u64,
}

/// Packets are those of the wire, where the study saw datagrams.
fn count_read(quality: &mut Quality, counts: &ReadCounts) {
    quality.repeated_connections = counts.repeated_connections;
    let counts = counts.fragments;
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
    reading: Reading<'_>,
    progress: &Progress,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<(Vec<FileReport>, ReadCounts)> {
    let mut dissector = Dissector::new();
    let mut reports = Vec::new();
    let mut limits = LimitFilter::new(reading.limits);
    let mut views = Views::default();
    match reading.captures {
        Captures::Files([path]) => {
            let input = Input::open(path, progress)?;
            reports.push(read(input, &mut limits, &mut dissector, sink)?);
        }
        Captures::Files(files) => {
            for path in files {
                views.next_file();
                let mut each = |packet: &Packet<'_>| {
                    views.push(packet);
                    sink(packet);
                };
                let input = Input::open(path, progress)?;
                reports.push(read(input, &mut limits, &mut dissector, &mut each)?);
                if let Some(what) = views.same_traffic() {
                    return Err(Error::Unusable { path: path.clone(), what });
                }
            }
        }
        Captures::Stream(CaptureStream { name, read: stream }) => {
            let path = Path::new(&name);
            let input = Input::from_reader(path, None, stream, progress);
            let input = input.map_err(|e| Error::read(path, e))?;
            reports.push(read(input, &mut limits, &mut dissector, sink)?);
        }
    }
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    let fragments = dissector.counts();
    Ok((reports, ReadCounts { fragments, repeated_connections: views.repeated }))
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
    let mut limits = LimitFilter::default();
    let report = read(Input::open(path, progress)?, &mut limits, &mut dissector, sink)?;
    dissector.finish(&mut |packet| packet.map_or((), &mut *sink));
    Ok(report)
}

/// As [`read_capture`]; what waits for its fragments stays in the dissector.
fn read(
    mut input: Input,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) -> Result<FileReport> {
    let kind = Kind::of(input.head());
    if !kind.is_capture() {
        let what = "is no packet capture (pcap or pcapng)".to_owned();
        return Err(Error::Unusable { path: input.path().to_owned(), what });
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
        reader.push(piece, &mut |captured| take(&mut file, &captured, limits, dissector, sink));
    }
    reader.finish(&mut |captured| take(&mut file, &captured, limits, dissector, sink));
    Ok(file)
}

fn take(
    file: &mut FileReport,
    captured: &Captured<'_>,
    limits: &mut LimitFilter,
    dissector: &mut Dissector,
    sink: &mut dyn FnMut(&Packet<'_>),
) {
    let frame = match captured {
        Captured::Frame(frame) => frame,
        Captured::Problem(problem) => return file.problem(problem.clone()),
    };
    if !limits.keeps_ns(frame.at_ns) {
        return;
    }
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
