//! Tables of a study: Parquet or CSV files, or Arrow in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airmile_model::flow::PacketRow;
use airmile_model::row::Column;
use arrow_array::RecordBatch;

use airmile_io::error::{Error, Result};
use airmile_io::table::csv::line;
use airmile_io::table::parquet::{self, ParquetDir};
use airmile_io::table::{ArrowTable, BATCH_ROWS, RecordColumns, arrow_schema};
use airmile_io::{Replacement, check_outputs};

/// The file format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet, compressed with zstd.
    Parquet,
    /// CSV with a header.
    Csv,
}

/// The destination of rows.
pub(super) enum TableSink {
    Parquet(Box<ParquetDir>),
    Csv(CsvDir),
}

impl TableSink {
    pub(super) fn create(dir: &Path, format: TableFormat, inputs: &[PathBuf]) -> Result<Self> {
        let (ending, is_csv) = match format {
            TableFormat::Parquet => ("parquet", false),
            TableFormat::Csv => ("csv", true),
        };
        let headers: Vec<String> = PacketRow::NAMES.iter().map(|name| header(name)).collect();
        let outputs = PacketRow::NAMES.iter().zip(&headers).map(|(name, header)| {
            let begins = if is_csv { header.as_bytes() } else { parquet::BEGINS };
            (dir.join(format!("{name}.{ending}")), begins)
        });
        check_outputs(outputs, inputs.iter().map(PathBuf::as_path))?;
        let mut folders = PacketRow::tables().into_iter().map(|(name, ..)| dir.join(name));
        if let Some(path) = folders.find(|path| path.is_dir()) {
            let what = "it holds a table of a study on an engine: name another directory".into();
            return Err(Error::Unusable { path, what });
        }
        Ok(match format {
            TableFormat::Parquet => {
                Self::Parquet(Box::new(ParquetDir::with_tables(dir, PacketRow::tables())?))
            }
            TableFormat::Csv => Self::Csv(CsvDir::create(dir)?),
        })
    }

    pub(super) fn push(&mut self, row: &PacketRow) -> Result<()> {
        match self {
            Self::Parquet(dir) => dir.push_row(row),
            Self::Csv(dir) => dir.push(row),
        }
    }

    /// Each table gets a file, even an empty one, so that an earlier run's file does not
    /// remain.
    pub(super) fn finish(self) -> Result<Vec<(PathBuf, u64)>> {
        match self {
            Self::Parquet(mut dir) => {
                dir.open_rest()?;
                dir.finish()
            }
            Self::Csv(dir) => dir.finish(),
        }
    }
}

struct CsvFile {
    path: PathBuf,
    out: Replacement,
    file: BufWriter<File>,
    rows: u64,
}

/// A directory with a `<table>.csv` for each table.
pub(super) struct CsvDir {
    dir: PathBuf,
    files: BTreeMap<&'static str, CsvFile>,
}

impl CsvDir {
    fn create(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
        Ok(Self { dir: dir.to_owned(), files: BTreeMap::new() })
    }

    fn push(&mut self, row: &PacketRow) -> Result<()> {
        let name = row.name();
        let CsvFile { path, file, rows, .. } = match self.files.entry(name) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(begin(&self.dir, name)?)
            }
        };
        *rows += 1;
        let text = line(|sink| row.values(sink));
        writeln!(file, "{text}").map_err(|e| Error::write(&*path, e))
    }

    fn finish(mut self) -> Result<Vec<(PathBuf, u64)>> {
        for (name, ..) in PacketRow::tables() {
            if !self.files.contains_key(name) {
                self.files.insert(name, begin(&self.dir, name)?);
            }
        }
        let files = self.files.into_values().map(|CsvFile { path, out, mut file, rows }| {
            file.flush().map_err(|e| Error::write(&path, e))?;
            out.done()?;
            Ok((path, rows))
        });
        files.collect()
    }
}

/// A table's file with its header.
fn begin(dir: &Path, name: &str) -> Result<CsvFile> {
    let path = dir.join(format!("{name}.csv"));
    let (out, file) = Replacement::begin(&path)?;
    let mut file = BufWriter::new(file);
    writeln!(file, "{}", header(name)).map_err(|e| Error::write(&path, e))?;
    Ok(CsvFile { path, out, file, rows: 0 })
}

fn header(name: &str) -> String {
    let columns = PacketRow::tables().into_iter().find(|(table, ..)| *table == name);
    let columns: Vec<Column> = columns.map(|(.., columns)| columns).unwrap_or_default();
    columns.iter().map(|c| c.name).collect::<Vec<_>>().join(",")
}

/// All tables in memory, in the order of [`PacketRow::NAMES`].
pub(super) struct MemoryTables(Vec<(&'static str, RecordColumns, Vec<RecordBatch>)>);

impl MemoryTables {
    pub(super) fn new() -> Self {
        let tables = PacketRow::tables().into_iter();
        let empty = |columns: Vec<Column>| RecordColumns::new(arrow_schema(&columns));
        Self(tables.map(|(name, _, columns)| (name, empty(columns), Vec::new())).collect())
    }

    pub(super) fn push(&mut self, row: &PacketRow) -> Result<()> {
        let name = row.name();
        let Some((_, columns, batches)) = self.0.iter_mut().find(|(table, ..)| *table == name)
        else {
            return Ok(());
        };
        columns.push(row);
        if columns.pending() >= BATCH_ROWS {
            batches.push(batch(name, columns)?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Vec<ArrowTable>> {
        let finished = self.0.into_iter().map(|(name, mut columns, mut batches)| {
            if columns.pending() > 0 {
                batches.push(batch(name, &mut columns)?);
            }
            Ok(ArrowTable { name, schema: columns.schema().clone(), batches })
        });
        finished.collect()
    }
}

fn batch(table: &'static str, columns: &mut RecordColumns) -> Result<RecordBatch> {
    columns.batch().map_err(|e| Error::Arrow { table, what: e.to_string() })
}
