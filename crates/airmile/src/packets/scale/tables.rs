//! Tables of a bucket, a file for each day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_model::flow::PacketRow;

use crate::error::{Error, Result};
use crate::limits::format_utc;
use crate::table::arrow_schema;
use crate::write::parquet::Table;

const DAY_NS: i64 = 86_400_000_000_000;
/// Days of a table whose files are open: rows of a flow come until an hour behind
/// its last packet (chosen here; a day that comes again gets another file).
const OPEN_DAYS: usize = 2;

/// Files in `<table>/day=YYYY-MM-DD/bucket=N/part-K.parquet`.
pub(super) struct DayTables {
    dir: PathBuf,
    bucket: u32,
    schemas: BTreeMap<&'static str, arrow_schema::SchemaRef>,
    open: BTreeMap<(&'static str, i64), (Table, PathBuf)>,
    parts: BTreeMap<(&'static str, i64), u32>,
    files: Vec<(String, u64)>,
}

impl DayTables {
    pub(super) fn create(dir: &Path, bucket: u32) -> Self {
        let tables = PacketRow::tables().into_iter();
        Self {
            dir: dir.to_owned(),
            bucket,
            schemas: tables.map(|(name, _, columns)| (name, arrow_schema(&columns))).collect(),
            open: BTreeMap::new(),
            parts: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: &PacketRow) -> Result<()> {
        let key = (row.name(), time_ns(row).div_euclid(DAY_NS));
        if !self.open.contains_key(&key) {
            self.begin(key)?;
        }
        match self.open.get_mut(&key) {
            Some((table, _)) => table.push(row),
            None => Ok(()),
        }
    }

    fn begin(&mut self, key: (&'static str, i64)) -> Result<()> {
        let (name, day) = key;
        let days = self.open.keys().filter(|(table, _)| *table == name);
        let oldest = days.map(|(_, day)| *day).collect::<Vec<_>>();
        if oldest.len() >= OPEN_DAYS
            && let Some(first) = oldest.first()
            && let Some((table, path)) = self.open.remove(&(name, *first))
        {
            self.close(table, &path)?;
        }
        let part = self.parts.entry(key).or_default();
        let date = format_utc(day * DAY_NS);
        let date = date.get(..10).unwrap_or(&date);
        let path = format!("{name}/day={date}/bucket={:05}/part-{part}.parquet", self.bucket);
        *part += 1;
        let (relative, path) = (PathBuf::from(&path), self.dir.join(path));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::write(parent, e))?;
        }
        let schema = self
            .schemas
            .get(name)
            .cloned()
            .ok_or_else(|| Error::Arrow { table: name, what: "no such table".into() })?;
        self.open.insert(key, (Table::create(path, schema)?, relative));
        Ok(())
    }

    fn close(&mut self, table: Table, path: &Path) -> Result<()> {
        let (_, rows) = table.finish()?;
        self.files.push((path.display().to_string(), rows));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<(String, u64)>> {
        for (table, path) in std::mem::take(&mut self.open).into_values() {
            self.close(table, &path)?;
        }
        self.files.sort();
        Ok(self.files)
    }
}

/// Which day a row is of.
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
