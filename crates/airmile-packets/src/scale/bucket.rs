//! The second pass: the users of a bucket, in the order of the capture.

use std::collections::HashSet;
use std::iter::Peekable;
use std::path::Path;

use airmile_model::flow::{FlowRow, PacketRow};
use airmile_model::row::Row;
use airmile_wire::tcp::{FlowEnds, Quality, StudySummary, Tables, Traced};
use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::ScaleOptions;
use super::records::{Columns, RecordBatches};
use super::tables::DayTables;
use crate::largest::Largest;
use crate::rounds::Lone;
use crate::study::Overview;
use airmile_io::error::{Error, Result};

/// Records of a bucket from one part of the capture.
pub struct BucketPart {
    /// Its records, in order.
    pub batches: RecordBatches,
    /// Number of packets of the capture before the part.
    pub first_packet: u64,
    /// The capture's clock at the start of the part; `None`: the part starts the capture.
    pub clock_ns: Option<i64>,
}

/// The result of a bucket.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketReport {
    /// Number of packets analysed.
    pub packets: u64,
    /// Sums over its flows and users.
    pub(super) summary: StudySummary,
    pub(super) overview: Overview,
    /// The largest flows, as rows of their table, and the number of others.
    pub(super) largest: (Vec<serde_json::Map<String, serde_json::Value>>, u64),
    /// The files of the tables, relative to the directory, and their rows.
    pub files: Vec<(String, u64)>,
}

/// Studies a bucket: the parts in the order of the capture, and `settled`, the records of
/// flows between `strays` ends that belong here. `end_ns` is the capture's clock at its
/// end. Tables are written to `dir`, in the folders `<table>/day=YYYY-MM-DD/bucket=N`.
///
/// # Errors
/// Records cannot be read, or a table cannot be written.
pub fn study_bucket(
    bucket: u32,
    parts: Vec<BucketPart>,
    settled: Option<RecordBatches>,
    strays: &HashSet<FlowEnds>,
    end_ns: i64,
    options: &ScaleOptions,
    dir: &Path,
) -> Result<BucketReport> {
    let study = airmile_wire::tcp::StudyOptions {
        tables: Tables::ALL,
        traced: Traced::default(),
        ..options.study.clone()
    };
    let mut sink = RowSink::new(DayTables::create(dir, bucket));
    let mut lone = Lone::new(&study);
    let mut settled = Settled::of(settled)?;
    let mut packets = 0;
    for part in parts {
        let clock_ns = part.clock_ns.unwrap_or(i64::MIN);
        for batch in part.batches {
            let batch = batch?;
            let columns = Columns::of(&batch)?;
            for row in 0..batch.num_rows() {
                let record = columns.packet(row)?;
                if !strays.is_empty() && strays.contains(&FlowEnds::from_packet(&record.packet)) {
                    continue;
                }
                let number = part.first_packet + record.number;
                packets += settled.give(number, &mut lone, &mut sink)?;
                let clock_ns = record.clock_ns.max(clock_ns);
                lone.place(&record.packet, number, clock_ns, &mut |row| sink.push(row));
                packets += 1;
            }
        }
    }
    packets += settled.give(u64::MAX, &mut lone, &mut sink)?;
    lone.advance(end_ns);
    let summary = lone.finish(Some(Quality::default()), &mut |row| sink.push(row));
    if let Some(error) = sink.failed {
        return Err(error);
    }
    let files = sink.tables.finish()?;
    let (largest, left_out) = sink.largest.finish();
    let largest = largest.iter().map(|entry| entry.row().to_json()).collect();
    let overview = sink.overview;
    Ok(BucketReport { packets, summary, overview, largest: (largest, left_out), files })
}

/// The sink of rows.
struct RowSink {
    tables: DayTables,
    largest: Largest,
    overview: Overview,
    failed: Option<Error>,
}

impl RowSink {
    fn new(tables: DayTables) -> Self {
        Self { tables, largest: Largest::default(), overview: Overview::default(), failed: None }
    }

    fn push(&mut self, row: PacketRow) {
        if let PacketRow::Flow(flow) = &row {
            let flow: &FlowRow = flow;
            self.largest.push(flow);
            self.overview.flow(flow);
        }
        if self.failed.is_none() {
            self.failed = self.tables.push(&row).err();
        }
    }
}

/// Records settled by the second pass, merged in by their numbers; numbers and clock are
/// the capture's.
struct Settled {
    batches: Option<Peekable<RecordBatches>>,
    batch: Option<RecordBatch>,
    row: usize,
}

impl Settled {
    fn of(batches: Option<RecordBatches>) -> Result<Self> {
        let mut settled = Self { batches: batches.map(Iterator::peekable), batch: None, row: 0 };
        settled.next_batch()?;
        Ok(settled)
    }

    fn next_batch(&mut self) -> Result<()> {
        self.row = 0;
        self.batch = self.batches.as_mut().and_then(Iterator::next).transpose()?;
        Ok(())
    }

    /// Analyses those before `number`; returns how many.
    fn give(&mut self, number: u64, lone: &mut Lone, sink: &mut RowSink) -> Result<u64> {
        let mut given = 0;
        while let Some(batch) = &self.batch {
            let columns = Columns::of(batch)?;
            while self.row < batch.num_rows() {
                let record = columns.packet(self.row)?;
                if record.number >= number {
                    return Ok(given);
                }
                let clock_ns = record.clock_ns;
                lone.place(&record.packet, record.number, clock_ns, &mut |row| sink.push(row));
                self.row += 1;
                given += 1;
            }
            self.next_batch()?;
        }
        Ok(given)
    }
}
