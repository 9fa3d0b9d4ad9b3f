//! `decode`: every record, as JSON lines, CSV or Parquet.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use airmile_decode::diag::Tagged;
use airmile_decode::table::{GrantWriter, RlcWriter};
use airmile_model::Record;
use airmile_model::row::Column;
use arrow_array::RecordBatch;
use serde_json::Map;

use super::radio::check_subscription;
use crate::session::{Inputs, Loaded, read_inputs};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_io::table::csv::line;
use airmile_io::table::parquet::ParquetDir;
use airmile_io::table::{ArrowTable, BATCH_ROWS, RecordColumns, arrow_schema};
use airmile_io::{check_outputs, table};

/// Output format of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeTo {
    /// One JSON object per line.
    JsonLines,
    /// CSV: the documented tables for `grant` and `rlc`, else all columns.
    Csv,
    /// One Parquet file per record type in a directory.
    Parquet(PathBuf),
}

/// Options of `decode`.
#[derive(Debug, Clone)]
pub struct DecodeOptions {
    /// Record types; empty: all.
    pub only: BTreeSet<String>,
    /// Output format.
    pub to: DecodeTo,
    /// Limits on the time.
    pub limits: Limits,
    /// Subscription; all if `None`.
    pub subscription: Option<u8>,
}

impl DecodeOptions {
    /// Checks the record types, and that CSV has exactly one table.
    ///
    /// # Errors
    /// An unknown record type; CSV without exactly one type.
    pub fn check(&self) -> Result<()> {
        self.check_names()?;
        if self.to == DecodeTo::Csv && self.only.len() != 1 {
            return Err(Error::Option(
                "--format csv writes one table: name it with --only, such as --only grant".into(),
            ));
        }
        self.limits.check()
    }

    fn check_names(&self) -> Result<()> {
        for name in &self.only {
            if !Record::NAMES.contains(&name.as_str()) {
                return Err(Error::Option(format!(
                    "--only: unknown record type `{name}`; known are {}",
                    Record::NAMES.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Decodes the inputs' records to `out` (or to the Parquet directory); returns the written files
/// and their rows.
///
/// # Errors
/// The inputs cannot be read, or the output cannot be written.
pub fn decode(
    inputs: &Inputs,
    options: &DecodeOptions,
    progress: &Progress,
    out: &mut dyn Write,
) -> Result<(Loaded, Vec<(PathBuf, u64)>)> {
    options.check()?;
    if let DecodeTo::Parquet(dir) = &options.to {
        let path = |name| (dir.join(format!("{name}.parquet")), table::parquet::BEGINS);
        let outputs = Record::NAMES.iter().map(path);
        check_outputs(outputs, inputs.files.iter().map(PathBuf::as_path))?;
    }
    let mut sink = Sink::new(options, out)?;
    let loaded = each_wanted(inputs, options, progress, &mut |tagged| sink.push(tagged))?;
    Ok((loaded, sink.finish()?))
}

/// Decodes the inputs' records to a table for each requested record type, even if it has no rows.
/// Ignores [`DecodeOptions::to`].
///
/// # Errors
/// The inputs cannot be read.
pub fn decode_tables(
    inputs: &Inputs,
    options: &DecodeOptions,
    progress: &Progress,
) -> Result<(Loaded, Vec<ArrowTable>)> {
    options.check_names()?;
    let mut tables: BTreeMap<&'static str, (RecordColumns, Vec<RecordBatch>)> = Record::tables()
        .into_iter()
        .filter(|(name, ..)| options.only.is_empty() || options.only.contains(*name))
        .map(|(name, _, columns)| (name, (RecordColumns::new(arrow_schema(&columns)), Vec::new())))
        .collect();
    let refused = |table, e: &dyn std::fmt::Display| Error::Arrow { table, what: e.to_string() };
    let loaded = each_wanted(inputs, options, progress, &mut |tagged| {
        let name = tagged.record.name();
        if let Some((columns, batches)) = tables.get_mut(name) {
            columns.push(&tagged.record);
            if columns.pending() >= BATCH_ROWS {
                batches.push(columns.batch().map_err(|e| refused(name, &e))?);
            }
        }
        Ok(())
    })?;
    let finished = tables.into_iter().map(|(name, (mut columns, mut batches))| {
        if columns.pending() > 0 {
            batches.push(columns.batch().map_err(|e| refused(name, &e))?);
        }
        Ok(ArrowTable { name, schema: columns.schema().clone(), batches })
    });
    Ok((loaded, finished.collect::<Result<_>>()?))
}

/// Passes the requested records to `sink`, until it fails.
fn each_wanted(
    inputs: &Inputs,
    options: &DecodeOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(&Tagged) -> Result<()>,
) -> Result<Loaded> {
    let mut filter = LimitFilter::new(options.limits);
    let (mut failed, mut has, mut in_limits) = (None, BTreeSet::new(), false);
    let mut loaded = read_inputs(inputs, progress, &mut |tagged| {
        has.insert(tagged.subscription);
        let keeps = filter.keeps(&tagged.record);
        in_limits |= keeps;
        let wanted = failed.is_none()
            && keeps
            && (options.only.is_empty() || options.only.contains(tagged.record.name()))
            && options.subscription.is_none_or(|s| s == tagged.subscription);
        if wanted {
            failed = sink(&tagged).err();
        }
    })?;
    check_subscription(options.subscription, &has)?;
    if let Some(file) = loaded.files.first_mut().filter(|_| !has.is_empty() && !in_limits) {
        file.warn("no record lies within --from and --to".into());
    }
    if !loaded.applications.is_empty() && loaded.files.len() == loaded.applications.len() {
        let what = "an application's log holds no records to decode: use `airmile diagnose` or \
                    `airmile inspect`";
        return Err(Error::NothingToAnalyse(what.into()));
    }
    failed.map_or(Ok(loaded), Err)
}

enum Sink<'a> {
    Json(&'a mut dyn Write),
    Grants(GrantWriter<&'a mut dyn Write>),
    Rlc(RlcWriter<&'a mut dyn Write>),
    Columns(&'a mut dyn Write),
    Parquet(ParquetDir),
}

fn to_stdout(source: std::io::Error) -> Error {
    Error::Write { path: Path::new("standard output").to_owned(), source }
}

/// The system's own error, by which a closed pipe is recognised.
fn csv_error(error: csv::Error) -> Error {
    to_stdout(match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => std::io::Error::other(format!("{other:?}")),
    })
}

impl<'a> Sink<'a> {
    fn new(options: &DecodeOptions, out: &'a mut dyn Write) -> Result<Self> {
        let only = options.only.first().map(String::as_str);
        Ok(match (&options.to, only) {
            (DecodeTo::Parquet(dir), _) => Self::Parquet(ParquetDir::create(dir)?),
            (DecodeTo::JsonLines, _) => Self::Json(out),
            (DecodeTo::Csv, Some("grant")) => {
                Self::Grants(GrantWriter::new(out).map_err(csv_error)?)
            }
            (DecodeTo::Csv, Some("rlc")) => Self::Rlc(RlcWriter::new(out).map_err(csv_error)?),
            (DecodeTo::Csv, only) => {
                let columns: Vec<Column> = Record::tables()
                    .into_iter()
                    .find(|(name, ..)| Some(*name) == only)
                    .map(|(.., columns)| columns)
                    .unwrap_or_default();
                let names: Vec<&str> = columns.iter().map(|c| c.name).collect();
                writeln!(out, "{}", names.join(",")).map_err(to_stdout)?;
                Self::Columns(out)
            }
        })
    }

    fn push(&mut self, tagged: &Tagged) -> Result<()> {
        match (self, &tagged.record) {
            (Self::Json(out), record) => json_line(*out, tagged.subscription, record),
            (Self::Grants(writer), Record::Grant(grant)) => writer.push(grant).map_err(csv_error),
            (Self::Rlc(writer), Record::Rlc(pdu)) => writer.push(pdu).map_err(csv_error),
            (Self::Columns(out), record) => csv_line(*out, record),
            (Self::Parquet(dir), record) => dir.push(record),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Vec<(PathBuf, u64)>> {
        match self {
            Self::Json(out) | Self::Columns(out) => out.flush().map_err(to_stdout)?,
            Self::Grants(writer) => writer.finish().map_err(csv_error)?,
            Self::Rlc(writer) => writer.finish().map_err(csv_error)?,
            Self::Parquet(dir) => return dir.finish(),
        }
        Ok(Vec::new())
    }
}

fn json_line(out: &mut dyn Write, subscription: u8, record: &Record) -> Result<()> {
    let mut line = Map::new();
    line.insert("type".into(), record.name().into());
    line.insert("subscription".into(), subscription.into());
    if let Record::Grant(grant) = record {
        let mut fields = grant_json(grant);
        line.append(&mut fields);
    } else {
        line.append(&mut record.to_json());
    }
    serde_json::to_writer(&mut *out, &line).map_err(|e| to_stdout(e.into()))?;
    out.write_all(b"\n").map_err(to_stdout)
}

/// A grant with its wrapped time, and its sources by name.
fn grant_json(grant: &airmile_model::Grant) -> Map<String, serde_json::Value> {
    use airmile_model::Row;
    let mut fields = grant.to_json();
    // Slots per frame: 10 * 2^mu (TS 38.211, 4.3.2). Later timing segments have their own SFN
    // phase.
    if grant.position.timing_segment == 0 {
        let (tti, mu) = (grant.position.tti.0, grant.position.numerology.min(4));
        let slot = tti.rem_euclid(10 << mu);
        fields.insert("sfn".into(), tti.div_euclid(10 << mu).rem_euclid(1_024).into());
        fields.insert("subframe".into(), (slot >> mu).into());
        if mu > 0 {
            fields.insert("slot".into(), slot.into());
        }
    }
    let names: Vec<_> = grant.sources.names().collect();
    fields.insert("sources".into(), names.into());
    fields
}

fn csv_line(out: &mut dyn Write, record: &Record) -> Result<()> {
    let text = line(|sink| record.values(sink));
    writeln!(out, "{text}").map_err(to_stdout)
}
