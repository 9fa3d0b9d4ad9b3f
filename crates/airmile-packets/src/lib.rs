//! Packet captures: reading, studying, summing up, writing tables; the phone in them.

mod compare;
pub mod connections;
mod given;
mod largest;
pub mod live;
pub mod phone;
pub mod phones;
mod report;
mod rounds;
pub mod same_run;
pub mod scale;
mod study;
mod tables;
mod threads;

use std::collections::BTreeMap;
use std::path::PathBuf;

use airmile_model::flow::PacketRow;
use airmile_wire::tcp::{Quality, StudyOptions, StudySummary, Tables, Traced};

use airmile_io::FileReport;
use airmile_io::capture::{CaptureReading, Captures, ReadCounts};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::Limits;
use airmile_io::table::ArrowTable;

pub use compare::{Compared, Table1Row};
pub use given::{client_network, send_rate_threshold};
pub use largest::FlowEntry;
pub use report::PacketReport;
pub use study::{
    AckLine, BandwidthTimeline, Cumulative, Curve, DataRuns, Density, EventLine, Figure, Finding,
    FlowCounts, FlowFacts, FlowName, FlowPlot, Headline, PaperPoint, Plot, RangeLine, Requests,
    Study, Transfer, count, study,
};
pub use tables::TableFormat;

use largest::Largest;
use study::{Overview, headline};
use tables::{MemoryTables, TableSink};

/// Options of a study, and where its tables go.
#[derive(Debug, Clone, Default)]
pub struct PacketOptions {
    /// How the capture is studied. Its tables are chosen by `output`.
    pub study: StudyOptions,
    /// Write a file per table into this directory.
    pub output: Option<(PathBuf, TableFormat)>,
    /// Analysis threads, in addition to a reading one; 1: everything in one, 0: one for
    /// each core. The result is the same.
    pub threads: usize,
    /// Packets outside of these limits are left out.
    pub limits: Limits,
}

/// Studies captures in sequence, as one.
///
/// # Errors
/// A file cannot be opened or is no capture, or a table cannot be written.
pub fn packets<'a>(
    captures: impl Into<Captures<'a>>,
    options: &PacketOptions,
    progress: &Progress,
) -> Result<(PacketReport, Vec<(PathBuf, u64)>)> {
    options.limits.check()?;
    let captures = captures.into();
    let mut rows = Rows::create(options, &captures)?;
    let study = StudyOptions { tables: rows.wanted(), ..options.study.clone() };
    let mut push = |row| rows.push(&row);
    let reading = CaptureReading { captures, limits: options.limits };
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
    options.limits.check()?;
    let mut tables = MemoryTables::new();
    let study = StudyOptions { tables: Tables::ALL, ..options.study.clone() };
    let reading = CaptureReading { captures: captures.into(), limits: options.limits };
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

/// Describes the frames that contain no packet.
fn unread(reports: &[FileReport]) -> String {
    let frames: u64 = reports.iter().map(|file| file.items).sum();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, n) in reports.iter().flat_map(|file| &file.records) {
        *counts.entry(name).or_default() += n;
    }
    let counts: Vec<String> = counts.iter().map(|(name, n)| format!("{name}: {n}")).collect();
    let in_frames = match counts.is_empty() {
        true => String::new(),
        false => format!(" in {frames} frames ({})", counts.join(", ")),
    };
    // That a file's packets are outside of the limits is its last one.
    let problem = reports.iter().find_map(|file| file.problems.iter().last());
    in_frames + &problem.map_or_else(String::new, |problem| format!(": {problem}"))
}

struct Rows {
    sink: Option<TableSink>,
    failed: Option<Error>,
}

impl Rows {
    fn create(options: &PacketOptions, captures: &Captures<'_>) -> Result<Self> {
        let inputs = match captures {
            Captures::Files(files) => *files,
            Captures::Stream(_) => &[],
        };
        let sink = match &options.output {
            Some((dir, format)) => Some(TableSink::create(dir, *format, inputs)?),
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
    reading: CaptureReading<'_>,
    options: StudyOptions,
    threads: usize,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(PacketReport, StudySummary)> {
    // Only rows go to the sink.
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
    let when = reading.limits.words();
    let threads = threads::count(threads);
    let (reports, summary) = if threads == 1 {
        rounds::run_alone(reading, &options, progress, &mut each)?
    } else {
        threads::run(reading, &options, threads, progress, &mut each)?
    };
    if summary.quality.packets == 0 {
        let why = unread(&reports);
        return Err(Error::NothingToAnalyse(format!("{names}: no IP packets{when}{why}")));
    }
    let mut report = PacketReport::new(reports, &summary, &options, largest.finish());
    report.set_headline(headline(&summary, &overview, &report));
    Ok((report, summary))
}

/// Packets count as on the wire, although the study counted datagrams.
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
