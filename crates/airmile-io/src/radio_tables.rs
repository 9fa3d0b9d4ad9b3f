//! Grant and RLC tables as one stream of records, in TTI order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;

use airmile_decode::diag::Tagged;
use airmile_decode::table::{GrantReader, RlcReader, TableError, TtiTimes};
use airmile_model::{Clock, Direction, Grant, Position, Record, RlcPdu, RntiType, Stamp, TtiSpan};

use crate::FileReport;
use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::Kind;

/// An open input, and its place among a command's inputs.
pub struct Opened {
    /// Its place, from 0.
    pub order: usize,
    /// Its contents.
    pub input: Input,
    /// Its format.
    pub kind: Kind,
}

/// Maximum number of rows held to sort a table (chosen here: any order within half an hour of one
/// grant per TTI, 0.5 GB). A row that belongs further ahead is an error.
const MAX_HELD_ROWS: usize = 1 << 21;

/// From this span of TTIs on, their times are compared with it, and have to advance by this part of it
/// at least (chosen here: times in ms advance by a thousandth, and times of whole seconds by half). In
/// nanoseconds they advance by a thousand times of it; a log with pauses may by any other number.
const MIN_SPAN_US: i64 = 2_000_000;
const MIN_PACE: i64 = 100;
const NANOSECONDS_PACE: std::ops::Range<u64> = 900..1_100;

/// SFN and subframe repeat after so TTIs: 1,024 frames (TS 36.211, 4.1).
const SFN_TTIS: i64 = 10_240;

type TableRows = Box<dyn Iterator<Item = std::result::Result<Record, TableError>>>;

/// Timing segment and TTI.
type Key = (u32, i64);

/// Of a row: tables have grants and PDUs.
const fn position(record: &Record) -> Position {
    match record {
        Record::Grant(g) => g.position,
        Record::Rlc(p) => p.position,
        _ => Position::lte(0),
    }
}

const fn key(record: &Record) -> Key {
    let Position { timing_segment, tti, .. } = position(record);
    (timing_segment, tti.0)
}

/// A table that is read in steps. Half of the held rows are passed on before more are read, so that
/// a row may be that far from its place.
struct SteppedTable {
    path: PathBuf,
    order: usize,
    report: FileReport,
    bytes: Progress,
    rows: Option<TableRows>,
    held: VecDeque<Record>,
    max_held: usize,
    given: Option<Key>,
    /// Rows whose time was corrected.
    mended: usize,
}

impl SteppedTable {
    fn open(
        opened: Opened,
        rows: impl FnOnce(Input) -> std::result::Result<TableRows, TableError>,
        max_held: usize,
    ) -> Result<Self> {
        let Opened { order, input, kind } = opened;
        let report = FileReport::new(&input, kind);
        let path = input.path().to_owned();
        let bytes = input.decompressed();
        let rows = match rows(input) {
            Ok(rows) => Some(rows),
            Err(source) => return Err(Error::Table { path, source }),
        };
        let held = VecDeque::new();
        let mut table =
            Self { path, order, report, bytes, rows, held, max_held, given: None, mended: 0 };
        table.fill()?;
        table.check_unit()?;
        Ok(table)
    }

    /// Refuses times that do not advance with the TTIs, as in another unit.
    fn check_unit(&self) -> Result<()> {
        let timed = |record: &&Record| record.at().is_some();
        let first = self.held.iter().find(timed);
        let is_near = |one: &&Record| first.is_some_and(|first| key(first).0 == key(one).0);
        let last = self.held.iter().rev().filter(is_near).find(timed);
        let Some((first, last)) = first.zip(last) else { return Ok(()) };
        let slot_us = 1_000 >> position(last).numerology.min(6);
        let ttis = key(last).1.saturating_sub(key(first).1);
        let expected_us = ttis.saturating_mul(slot_us);
        if expected_us < MIN_SPAN_US {
            return Ok(());
        }
        let us = |record: &Record| record.at().map_or(0, Stamp::micros);
        let advance_us = us(last).abs_diff(us(first));
        let pace = advance_us / expected_us.unsigned_abs();
        let is_slow = advance_us < (expected_us / MIN_PACE).unsigned_abs();
        // In the order of their TTIs, the times of several rounds of SFNs go up and down.
        let times_us = || self.held.iter().filter(timed).filter(is_near).map(us);
        let pairs = times_us().zip(times_us().skip(1));
        let falls = pairs.filter(|(before, after)| before - after > MIN_SPAN_US).count();
        let what = if key(last).1 < SFN_TTIS && falls + self.mended > times_us().count() / 10 {
            format!(
                "the same `tti`, below {SFN_TTIS}, has several times: TTIs are counted on; of frames and \
                 subframes give `sfn` and `subframe`"
            )
        } else if is_slow || NANOSECONDS_PACE.contains(&pace) {
            let unit = if is_slow { "milliseconds or seconds" } else { "nanoseconds" };
            format!(
                "`time_us` advances by {advance_us} in {ttis} TTIs: are its times in {unit}? \
                 `time_us` is in microseconds"
            )
        } else {
            return Ok(());
        };
        Err(Error::Unusable { path: self.path.clone(), what })
    }

    /// Reads until the end of the table, or until the maximum number of rows is held.
    fn fill(&mut self) -> Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let mut ended = false;
        while self.held.len() < self.max_held {
            let Some(row) = rows.next() else {
                ended = true;
                break;
            };
            self.report.items += 1;
            match row {
                Ok(record) => self.held.push_back(record),
                Err(source) if source.is_refusal() => {
                    return Err(Error::Table { path: self.path.clone(), source });
                }
                Err(error) => {
                    self.report.bad_items += 1;
                    self.report.problem(error.to_problem());
                    if error.is_fatal() {
                        ended = true;
                        break;
                    }
                }
            }
        }
        if ended {
            self.rows = None;
        }
        let held = self.held.make_contiguous();
        held.sort_by_key(key);
        self.mended += mend_times(held);
        let first = self.held.front().map(key);
        match (self.given, first) {
            (Some(given), Some(first)) if first < given => Err(Error::Unusable {
                path: self.path.clone(),
                what: format!(
                    "the row of TTI {} is too far from its sorted place: over the limit \
                     `MAX_HELD_ROWS` ({}); sort the table by timing_segment and tti",
                    first.1, self.max_held
                ),
            }),
            _ => Ok(()),
        }
    }

    fn first(&self) -> Option<Key> {
        self.held.front().map(key)
    }

    /// Takes the first record.
    fn take(&mut self) -> Result<Option<Tagged>> {
        let Some(record) = self.held.pop_front() else { return Ok(None) };
        self.given = Some(key(&record));
        if self.rows.is_some() && self.held.len() <= self.max_held / 2 {
            self.fill()?;
        }
        if let Some(us) = record.at().map(Stamp::micros) {
            self.report.start_us = Some(self.report.start_us.map_or(us, |s| s.min(us)));
            self.report.end_us = self.report.end_us.max(Some(us));
        }
        let tagged = Tagged { subscription: 0, record };
        self.report.count(&tagged);
        Ok(Some(tagged))
    }

    fn finish(mut self) -> (usize, FileReport) {
        self.report.bytes = self.bytes.bytes();
        (self.order, self.report)
    }
}

/// Corrects the time of a TTI's rows, in order of TTI, if it is out of order by the TTIs between two
/// that are in order: it would be a step of the log's clock. Returns the number of such rows.
fn mend_times(rows: &mut [Record]) -> usize {
    let mut mended = 0;
    // By numerology, as each has a TTI count of its own: the last rows' first index, and their time less
    // their TTIs.
    let mut last: BTreeMap<u8, [Option<(usize, i64)>; 2]> = BTreeMap::new();
    let off_ns = |row: &Record| {
        let Position { numerology, tti, .. } = position(row);
        row.at().map(|at| (numerology, at.ns.saturating_sub(TtiSpan(tti.0).ns(numerology))))
    };
    for i in 0..rows.len() {
        let Some((numerology, off)) = rows.get(i).and_then(off_ns) else { continue };
        let [before, one] = last.entry(numerology).or_default();
        if one.is_some_and(|one| one.1 == off) {
            continue;
        }
        if let (Some((_, right)), Some((from, wrong))) = (*before, *one)
            && Stamp::is_lone(right, wrong, off)
        {
            let rows = rows.get_mut(from..i).unwrap_or_default();
            for row in rows.iter_mut().filter(|row| off_ns(row) == Some((numerology, wrong))) {
                if let Record::Grant(Grant { at: Some(at), .. })
                | Record::Rlc(RlcPdu { at: Some(at), .. }) = row
                {
                    at.ns = at.ns.saturating_sub(wrong).saturating_add(right);
                    mended += 1;
                }
            }
            *one = *before;
        }
        *before = one.replace((i, off));
    }
    mended
}

/// The blocks of a TTI, with their tables.
#[derive(Default)]
struct Blocks {
    of: Key,
    tables: HashMap<(Position, Direction, u8, RntiType), usize>,
}

impl Blocks {
    /// The table before that has the same block.
    fn in_another(&mut self, table: usize, grant: &Grant) -> Option<usize> {
        let Position { timing_segment, tti, .. } = grant.position;
        if std::mem::replace(&mut self.of, (timing_segment, tti.0)) != self.of {
            self.tables.clear();
        }
        let block = (grant.position, grant.dir, grant.tb, grant.rnti);
        Some(*self.tables.entry(block).or_insert(table)).filter(|first| *first != table)
    }
}

/// Reads tables; grants come before PDUs of the same TTI.
///
/// # Errors
/// A table cannot be read, or two have the same block.
pub fn read(
    grants: Vec<Opened>,
    rlc: Vec<Opened>,
    sink: &mut dyn FnMut(Tagged),
) -> Result<Vec<(usize, FileReport)>> {
    read_holding(MAX_HELD_ROWS, grants, rlc, sink)
}

fn read_holding(
    max_held: usize,
    grants: Vec<Opened>,
    rlc: Vec<Opened>,
    sink: &mut dyn FnMut(Tagged),
) -> Result<Vec<(usize, FileReport)>> {
    let mut tables = Vec::new();
    let mut times = None;
    for opened in grants {
        let open = |input| -> std::result::Result<TableRows, _> {
            let rows = GrantReader::new(input, Clock::Modem)?;
            Ok(Box::new(rows.map(|row| row.map(Record::from))))
        };
        let table = SteppedTable::open(opened, open, max_held)?;
        if let Some(Record::Grant(Grant { at: Some(at), position, .. })) = table.held.front() {
            times = times.or(Some(TtiTimes { tti: position.tti, time_us: at.micros() }));
        }
        tables.push(table);
    }
    for opened in rlc {
        let open = |input| -> std::result::Result<TableRows, _> {
            let rows = RlcReader::new(input, Clock::Modem, times)?;
            Ok(Box::new(rows.map(|row| row.map(Record::from))))
        };
        tables.push(SteppedTable::open(opened, open, max_held)?);
    }
    // Of tables with the same TTI, the first one named.
    let next = |tables: &[SteppedTable]| {
        let firsts = tables.iter().enumerate().filter_map(|(n, t)| Some((t.first()?, n)));
        firsts.min().map(|(_, n)| n)
    };
    let mut blocks = Blocks::default();
    while let Some(n) = next(&tables)
        && let Some(table) = tables.get_mut(n)
    {
        let Some(tagged) = table.take()? else { continue };
        if let Record::Grant(grant) = &tagged.record
            && let Some(other) = blocks.in_another(n, grant).and_then(|other| tables.get(other))
        {
            let name = |table: &SteppedTable| table.path.display().to_string();
            let Position { cell, tti, .. } = grant.position;
            return Err(Error::Option(format!(
                "{} and {} have the same block in TTI {tti} (dir {}, cell {cell}, tb {}): they are one \
                 table twice, or those of two carriers without the column `cell`",
                name(other),
                tables.get(n).map(name).unwrap_or_default(),
                grant.dir,
                grant.tb
            )));
        }
        sink(tagged);
    }
    Ok(tables.into_iter().map(SteppedTable::finish).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn opened(text: &str) -> Opened {
        let reader = std::io::Cursor::new(text.to_owned().into_bytes());
        let progress = Progress::default();
        let input = Input::from_reader(Path::new("grants.csv"), None, reader, &progress).unwrap();
        let kind = Kind::of(input.head());
        Opened { order: 0, input, kind }
    }

    /// The TTIs in their order, and the report's number of rows.
    fn read_ttis(max_held: usize, ttis: &[i64]) -> Result<(Vec<i64>, u64)> {
        let rows: String = ttis.iter().map(|tti| format!("{tti},dl,5\n")).collect();
        let mut out = Vec::new();
        let grants = vec![opened(&format!("tti,dir,n_prb\n{rows}"))];
        let reports = read_holding(max_held, grants, Vec::new(), &mut |tagged| {
            out.push(key(&tagged.record).1);
        })?;
        Ok((out, reports[0].1.items))
    }

    #[test]
    fn tables_of_any_length_are_read_in_steps() {
        let ttis: Vec<i64> = (0..10_000).map(|n| n ^ 1).collect();
        let (read, items) = read_ttis(8, &ttis).unwrap();
        assert_eq!((read, items), ((0..10_000).collect(), 10_000));
    }

    #[test]
    fn tables_within_the_limit_are_in_any_order() {
        let ttis: Vec<i64> = (0..8).rev().collect();
        assert_eq!(read_ttis(8, &ttis).unwrap().0, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn tables_with_a_row_too_far_from_its_place_are_refused() {
        let mut ttis: Vec<i64> = (10..110).collect();
        ttis.push(3);
        let error = read_ttis(8, &ttis).unwrap_err().to_string();
        assert!(error.contains("the row of TTI 3"), "{error}");
        assert!(error.contains("`MAX_HELD_ROWS` (8)"), "{error}");
    }

    #[test]
    fn times_in_another_unit_are_refused() {
        let read = |us: fn(i64) -> i64, ttis: i64, numerology: u8| {
            let row = |tti: i64| format!("{tti},{},dl,5,{numerology}\n", us(tti));
            let rows: String = (0..=ttis).step_by(100).map(row).collect();
            let table = opened(&format!("tti,time_us,dir,n_prb,numerology\n{rows}"));
            let read = read_holding(MAX_HELD_ROWS, vec![table], Vec::new(), &mut |_| ());
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        let ms = |tti| 1_767_600_000_000 + tti;
        let what = "grants.csv: `time_us` advances by 2000 in 2000 TTIs: are its times in \
                    milliseconds or seconds? `time_us` is in microseconds";
        assert_eq!(read(ms, 2_000, 0), Err(what.to_owned()));
        assert!(read(ms, 1_900, 0).is_ok());
        // As a spreadsheet rounds them.
        assert!(read(|_| 1_767_600_000_000, 16_000, 3).is_err());
        assert!(read(|tti| tti / 1_000 * 1_000_000, 2_000, 0).is_ok());
        assert!(read(|tti| tti * 125, 20_000, 3).is_ok());
        // Nanoseconds, and TTIs of a system frame number.
        let error = read(|tti| tti * 1_000_000, 2_000, 0).unwrap_err();
        assert!(error.contains("in nanoseconds?"), "{error}");
        assert!(read(|tti| tti * 60_000, 2_000, 0).is_ok(), "pauses");
        let rows: String = (0..30_000_i64)
            .step_by(100)
            .map(|tti| format!("{},{},dl,5,0\n", tti % 10_240, 1_000 * tti))
            .collect();
        let table = opened(&format!("tti,time_us,dir,n_prb,numerology\n{rows}"));
        let error =
            read_holding(MAX_HELD_ROWS, vec![table], Vec::new(), &mut |_| ()).err().unwrap();
        assert!(error.to_string().contains("`sfn` and `subframe`"), "{error}");
    }

    /// One row, or those of one TTI, between others whose times advance as their TTIs do; LTE's and NR's
    /// TTIs have counts of their own.
    #[test]
    fn one_wrong_time_is_that_of_its_tti() {
        let read = |off_us: i64, wrong: std::ops::Range<i64>| {
            let row = |(tti, numerology, us): (i64, i64, i64)| {
                format!("{tti},{us},dl,5,{numerology}\n{tti},{us},ul,5,{numerology}\n")
            };
            let lte = (0..10).map(|i| {
                let off_us = if wrong.contains(&i) { off_us } else { 0 };
                (700 + i, 0, 8_000_000 + i * 1_000 + off_us)
            });
            let nr = (0..10).map(|i| (701 + i, 1, 3_000_000 + i * 500));
            let rows: String = lte.chain(nr).map(row).collect();
            let table = opened(&format!("tti,time_us,dir,n_prb,numerology\n{rows}"));
            let mut out = Vec::new();
            let mut sink = |tagged: Tagged| {
                out.push((position(&tagged.record), tagged.record.at().unwrap().micros()));
            };
            let reports = read_holding(MAX_HELD_ROWS, vec![table], Vec::new(), &mut sink).unwrap();
            (out, reports[0].1.end_us)
        };
        let right = read(0, 0..0);
        for off_us in [-90_000_000, -2_000_000, -500_000, 500_000, 2_000_000, 90_000_000] {
            assert_eq!(read(off_us, 5..6), right, "{off_us}");
            // A clock that was set, and the last row, which no other confirms.
            let of = |(read, _): (Vec<(Position, i64)>, _)| {
                read.iter().filter(|row| !right.0.contains(row)).count()
            };
            assert_eq!((of(read(off_us, 5..10)), of(read(off_us, 9..10))), (10, 2), "{off_us}");
        }
    }

    #[test]
    fn a_block_is_in_one_table() {
        let read = |tables: [&str; 2]| {
            let grants = tables.into_iter().map(opened).collect();
            let read = read_holding(MAX_HELD_ROWS, grants, Vec::new(), &mut |_| ());
            read.map(|reports| reports.len()).map_err(|error| error.to_string())
        };
        let table = "tti,dir,n_prb,cell\n5,dl,1,0\n5,dl,1,0\n6,dl,1,0\n";
        assert_eq!(read([table, "tti,dir,n_prb,cell\n5,dl,1,1\n6,ul,1,0\n7,dl,1,0\n"]), Ok(2));
        let twice = "grants.csv and grants.csv have the same block in TTI 6 (dir dl, cell 0, tb 0): they \
                     are one table twice, or those of two carriers without the column `cell`";
        assert_eq!(read([table, "tti,dir,n_prb\n6,dl,9\n"]), Err(twice.to_owned()));
    }

    #[test]
    fn tables_are_merged_by_tti_grants_first() {
        let grants = vec![opened("tti,dir,n_prb\n5,dl,1\n1,dl,1\n")];
        let rlc = vec![opened("tti,dir,size_bytes\n5,dl,9\n0,dl,9\n1,dl,9\n")];
        let mut out = Vec::new();
        read_holding(4, grants, rlc, &mut |t| out.push((key(&t.record).1, t.record.name())))
            .unwrap();
        assert_eq!(out, [(0, "rlc"), (1, "grant"), (1, "rlc"), (5, "grant"), (5, "rlc")]);
    }
}
