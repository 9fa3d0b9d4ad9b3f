//! Records as Parquet, one file per record type, compressed with zstd.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use airmile_model::Record;
use airmile_model::row::Column;
use arrow_schema::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::replacement::Replacement;
use crate::table::{ArrowTable, BATCH_ROWS, RecordColumns, TableRow, arrow_schema};

/// Name, documentation and columns of a table.
type TableOf = (&'static str, &'static str, Vec<Column>);

/// A directory with a `<record type>.parquet` for each type that occurs.
pub struct ParquetDir {
    dir: PathBuf,
    schemas: HashMap<&'static str, SchemaRef>,
    tables: BTreeMap<&'static str, ParquetTable>,
}

impl ParquetDir {
    /// Creates the directory.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(dir: &Path) -> Result<Self> {
        Self::with_tables(dir, Record::tables())
    }

    /// Creates the directory for these tables.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn with_tables(dir: &Path, tables: Vec<TableOf>) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
        let schemas =
            tables.into_iter().map(|(name, _, columns)| (name, arrow_schema(&columns))).collect();
        Ok(Self { dir: dir.to_owned(), schemas, tables: BTreeMap::new() })
    }

    /// Also creates the files of tables without rows.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn open_rest(&mut self) -> Result<()> {
        for (name, schema) in &self.schemas {
            if !self.tables.contains_key(name) {
                let path = self.dir.join(format!("{name}.parquet"));
                self.tables.insert(name, ParquetTable::create(path, schema.clone())?);
            }
        }
        Ok(())
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, record: &Record) -> Result<()> {
        self.push_row(record)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push_row(&mut self, row: &impl TableRow) -> Result<()> {
        let name = row.table();
        let table = match self.tables.entry(name) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let path = self.dir.join(format!("{name}.parquet"));
                let schema = self.schemas.get(name).cloned().unwrap_or_else(empty_schema);
                entry.insert(ParquetTable::create(path, schema)?)
            }
        };
        table.push(row)
    }

    /// Writes the remaining rows and the files' ends; returns the files and their rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<Vec<(PathBuf, u64)>> {
        self.tables.into_values().map(ParquetTable::finish).collect()
    }
}

fn empty_schema() -> SchemaRef {
    Arc::new(Schema::empty())
}

/// A table as the bytes of a Parquet file; errors name `path`.
///
/// # Errors
/// Parquet rejects the table.
pub fn parquet_bytes(path: &Path, table: &ArrowTable) -> Result<Vec<u8>> {
    let refused = |e| refused(path, &e);
    let mut writer = ArrowWriter::try_new(Vec::new(), table.schema.clone(), Some(properties()))
        .map_err(refused)?;
    for batch in &table.batches {
        writer.write(batch).map_err(refused)?;
    }
    writer.into_inner().map_err(refused)
}

fn properties() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build()
}

/// What every Parquet file begins with.
pub const BEGINS: &[u8] = b"PAR1";

/// A file of one table.
pub struct ParquetTable {
    path: PathBuf,
    columns: RecordColumns,
    rows: u64,
    writer: ArrowWriter<File>,
    out: Replacement,
}

impl ParquetTable {
    /// Creates the file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: PathBuf, schema: SchemaRef) -> Result<Self> {
        let (out, file) = Replacement::begin(&path)?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties()))
            .map_err(|e| refused(&path, &e))?;
        Ok(Self { path, columns: RecordColumns::new(schema), rows: 0, writer, out })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, row: &impl TableRow) -> Result<()> {
        self.columns.push(row);
        self.rows += 1;
        if self.columns.pending() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.columns.pending() == 0 {
            return Ok(());
        }
        let batch = self.columns.batch().map_err(|e| refused(&self.path, &e))?;
        self.writer.write(&batch).map_err(|e| refused(&self.path, &e))
    }

    /// Writes the end; returns the file and its rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(PathBuf, u64)> {
        self.flush()?;
        self.writer.close().map_err(|e| refused(&self.path, &e))?;
        self.out.done()?;
        Ok((self.path, self.rows))
    }
}

fn refused(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Parquet { path: path.to_owned(), what: what.to_string() }
}

#[cfg(test)]
mod tests {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use airmile_model::{Direction, Grant, Position};

    use super::*;

    #[test]
    fn rows_come_back_with_types_and_nulls() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = ParquetDir::create(dir.path()).unwrap();
        for tti in 0..70_000 {
            let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 5);
            grant.tbs_bytes = (tti % 2 == 0).then_some(77);
            out.push(&grant.into()).unwrap();
        }
        let written = out.finish().unwrap();
        assert_eq!(written, [(dir.path().join("grant.parquet"), 70_000)]);
        let file = File::open(&written[0].0).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let (mut rows, mut nulls) = (0, 0);
        for batch in reader {
            let batch = batch.unwrap();
            rows += batch.num_rows();
            nulls += batch.column_by_name("tbs_bytes").unwrap().null_count();
            assert!(
                batch.schema().field_with_name("n_prb").unwrap().metadata().contains_key("doc")
            );
        }
        assert_eq!((rows, nulls), (70_000, 35_000));
    }
}
