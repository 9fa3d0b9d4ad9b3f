//! Tables of a bucket, a file for each day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_model::flow::PacketRow;
use airmile_model::units::DAY_NS;
use arrow_schema::SchemaRef;

use airmile_io::error::{Error, Result};
use airmile_io::limits::format_utc;
use airmile_io::table::arrow_schema;
use airmile_io::table::parquet::ParquetTable;

/// Open files per table, in days: a flow's rows come until an hour after its last packet
/// (chosen here; a day that recurs gets another file).
const OPEN_DAYS: usize = 2;

/// Files in `<table>/day=YYYY-MM-DD/bucket=N/part-K.parquet`.
pub(super) struct DayTables {
    dir: PathBuf,
    bucket: u32,
    schemas: BTreeMap<&'static str, SchemaRef>,
    /// The open days of each table.
    open: Vec<Day>,
    parts: BTreeMap<(&'static str, i64), u32>,
    files: Vec<(String, u64)>,
}

/// A day of a table.
struct Day {
    name: &'static str,
    day: i64,
    table: ParquetTable,
    /// Relative to the directory.
    path: String,
}

impl DayTables {
    pub(super) fn create(dir: &Path, bucket: u32) -> Self {
        let tables = PacketRow::tables().into_iter();
        Self {
            dir: dir.to_owned(),
            bucket,
            schemas: tables.map(|(name, _, columns)| (name, arrow_schema(&columns))).collect(),
            open: Vec::new(),
            parts: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: &PacketRow) -> Result<()> {
        let (name, day) = (row.name(), time_ns(row).div_euclid(DAY_NS));
        if let Some(open) = self.open.iter_mut().find(|open| open.day == day && open.name == name) {
            return open.table.push(row);
        }
        let mut begun = self.begin(name, day)?;
        begun.table.push(row)?;
        self.open.push(begun);
        Ok(())
    }

    fn begin(&mut self, name: &'static str, day: i64) -> Result<Day> {
        let days = self.open.iter().enumerate().filter(|(_, open)| open.name == name);
        if days.clone().count() >= OPEN_DAYS
            && let Some((first, _)) = days.min_by_key(|(_, open)| open.day)
        {
            let first = self.open.remove(first);
            self.close(first)?;
        }
        let part = self.parts.entry((name, day)).or_default();
        let date = format_utc(day * DAY_NS);
        let date = date.get(..10).unwrap_or(&date);
        let path = format!("{name}/day={date}/bucket={:05}/part-{part}.parquet", self.bucket);
        *part += 1;
        let file = self.dir.join(&path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::write(parent, e))?;
        }
        let schema = self
            .schemas
            .get(name)
            .cloned()
            .ok_or_else(|| Error::Arrow { table: name, what: "no such table".into() })?;
        Ok(Day { name, day, table: ParquetTable::create(file, schema)?, path })
    }

    fn close(&mut self, day: Day) -> Result<()> {
        let (_, rows) = day.table.finish()?;
        self.files.push((day.path, rows));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<(String, u64)>> {
        for day in std::mem::take(&mut self.open) {
            self.close(day)?;
        }
        self.files.sort();
        Ok(self.files)
    }
}

/// The time that decides a row's day.
const fn time_ns(row: &PacketRow) -> i64 {
    match row {
        PacketRow::Flow(row) => row.start_ns,
        PacketRow::Tcp(row) => row.time_ns,
        PacketRow::Rtt(row) => row.time_ns,
        PacketRow::Inflight(row) => row.time_ns,
        PacketRow::Bandwidth(row) => row.time_ns,
        PacketRow::Http(row) => row.request_ns,
        PacketRow::Dns(row) => row.query_ns,
        PacketRow::User(row) => row.start_ns,
    }
}
