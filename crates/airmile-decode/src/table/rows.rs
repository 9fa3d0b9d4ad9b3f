//! Rows of a CSV by column name, with errors that name line, offset and column.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::str::FromStr;

use airmile_model::problem::{Problem, Problems, Severity};
use airmile_model::tti::TtiIndex;
use airmile_model::{Clock, Direction, Stamp, printable};

use super::TableContent;

/// The maximum size of a row, with the line breaks before it (chosen here: a
/// transfer's name may be a long URL, and no row of numbers has a kilobyte).
pub const MAX_RECORD_BYTES: u64 = 1 << 20;
/// The maximum number of columns (chosen here: the tables have 23 at most, and
/// spreadsheets end at 16,384).
pub const MAX_COLUMNS: usize = 16_384;
/// The maximum number of rows of a table that is kept whole: transfers and truth
/// (chosen here: a transfer a second for eleven days).
pub const MAX_KEPT_ROWS: usize = 1_000_000;
/// The maximum size of the names in a table that is kept whole.
pub const MAX_KEPT_TEXT_BYTES: usize = 256 << 20;
/// Rows of a TTI among which a repeated one is found (chosen here: 32 carriers have two blocks of
/// each direction).
const MAX_ROWS_OF_A_TTI: usize = 1_024;
/// Maximum characters of a field or a header in an error.
const QUOTED_CHARS: usize = 120;

/// Why a table or a row of it could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A required column is not in the header.
    #[error("the header lacks the column `{column}` (it has: {header})")]
    MissingColumn {
        /// The column.
        column: &'static str,
        /// The header as read.
        header: String,
    },
    /// A field is invalid for its column.
    #[error("line {line}, column `{column}`: \"{text}\" is not {expected}")]
    BadField {
        /// Byte offset of the row.
        offset: u64,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The text found.
        text: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A required field is empty.
    #[error("line {line}: the column `{column}` is empty")]
    Empty {
        /// Byte offset of the row.
        offset: u64,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
    },
    /// The row as a whole is invalid.
    #[error("line {line}: {what}")]
    Row {
        /// Byte offset of the row.
        offset: u64,
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The table exceeds a limit.
    #[error("line {line}: over the limit `{limit}` ({maximum})")]
    Limit {
        /// Byte offset of the row.
        offset: u64,
        /// Line, from 1.
        line: u64,
        /// The limit's name.
        limit: &'static str,
        /// Its value.
        maximum: u64,
    },
    /// The CSV itself is broken, or reading failed.
    #[error("{source}")]
    Csv {
        /// Byte offset, where known.
        offset: u64,
        /// The reader's error.
        source: csv::Error,
    },
}

impl TableError {
    /// Byte offset of the row in the (uncompressed) input.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        match self {
            Self::MissingColumn { .. } => 0,
            Self::BadField { offset, .. }
            | Self::Empty { offset, .. }
            | Self::Row { offset, .. }
            | Self::Limit { offset, .. }
            | Self::Csv { offset, .. } => *offset,
        }
    }

    /// Whether nothing more can be read after it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::MissingColumn { .. } | Self::Limit { .. } => true,
            Self::Csv { source, .. } => source.is_io_error(),
            _ => false,
        }
    }

    /// Whether the table is refused, and not only damaged from here on.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::MissingColumn { .. } | Self::Limit { .. })
    }

    /// As a problem of the input.
    #[must_use]
    pub fn to_problem(&self) -> Problem {
        Problem::at(self.offset(), Severity::Damage, self.to_string())
    }
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        error.to_problem()
    }
}

/// A header's name without quotes, spaces and case.
pub(super) fn normalise_name(name: &str) -> String {
    name.trim().trim_matches('"').trim().to_ascii_lowercase()
}

/// The part of a text that an error quotes.
fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(QUOTED_CHARS).collect();
    let mut out = printable(&start).into_owned();
    if chars.next().is_some() {
        out.push_str("...");
    }
    out
}

/// A reader that fails if a row is larger than [`MAX_RECORD_BYTES`]: the CSV reader has
/// no limit of its own.
struct RecordLimit<R> {
    inner: R,
    /// Bytes until the limit; set anew before each row.
    left: u64,
    exceeded: bool,
    /// Whether the first line ends with CR and LF; `None` before its end.
    crlf: Option<bool>,
    last: u8,
}

impl<R> RecordLimit<R> {
    /// What the CSV reader's places lack, in bytes and lines: it ends a row at the CR, and leaves the
    /// LF to the next one.
    fn shift(&self) -> u64 {
        u64::from(self.crlf == Some(true))
    }

    fn note_line_end(&mut self, read: &[u8]) {
        let mut before = self.last;
        for byte in read {
            if *byte == b'\n' {
                self.crlf = Some(before == b'\r');
                return;
            }
            before = *byte;
        }
        self.last = before;
    }
}

impl<R: Read> Read for RecordLimit<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.exceeded = true;
            return Err(io::Error::other("a row is too large"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.inner.read(buf.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(n as u64);
        if self.crlf.is_none() {
            self.note_line_end(buf.get(..n).unwrap_or_default());
        }
        Ok(n)
    }
}

/// A CSV reader that finds fields by column name.
pub(super) struct CsvRows<R> {
    reader: csv::Reader<RecordLimit<R>>,
    names: Vec<String>,
    record: csv::StringRecord,
    /// Of a table in which no row of a TTI can repeat.
    of_tti: Option<RowsOfTti>,
}

/// The rows of the TTI that was read last, as hashes of some columns.
struct RowsOfTti {
    column: usize,
    compared: Vec<usize>,
    tti: String,
    rows: HashSet<u64>,
}

impl RowsOfTti {
    /// Whether the row was there before.
    fn has_or_add(&mut self, row: &csv::StringRecord) -> bool {
        let tti = row.get(self.column).unwrap_or_default();
        if tti != self.tti {
            tti.clone_into(&mut self.tti);
            self.rows.clear();
        }
        let mut hasher = DefaultHasher::new();
        self.compared.iter().for_each(|column| row.get(*column).hash(&mut hasher));
        let hash = hasher.finish();
        self.rows.contains(&hash) || self.rows.len() < MAX_ROWS_OF_A_TTI && !self.rows.insert(hash)
    }
}

impl<R: Read> CsvRows<R> {
    pub(super) fn new(input: R) -> Result<Self, TableError> {
        let (left, exceeded) = (MAX_RECORD_BYTES, false);
        let input = RecordLimit { inner: input, left, exceeded, crlf: None, last: 0 };
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(input);
        let names = match reader.headers() {
            Ok(header) if header.len() > MAX_COLUMNS => {
                let (limit, maximum) = ("MAX_COLUMNS", MAX_COLUMNS as u64);
                return Err(TableError::Limit { offset: 0, line: 1, limit, maximum });
            }
            Ok(header) => header
                .iter()
                .map(|name| normalise_name(name.trim_start_matches('\u{feff}')))
                .collect(),
            Err(source) => return Err(broken(&reader, source)),
        };
        Ok(Self { reader, names, record: csv::StringRecord::new(), of_tti: None })
    }

    /// Refuses a row that repeats one of the same TTI, by the column that numbers it, in these columns.
    pub(super) fn without_repetition<const N: usize>(
        &mut self,
        column: usize,
        in_columns: [&str; N],
    ) {
        let compared = in_columns.into_iter().filter_map(|name| self.column(name)).collect();
        self.of_tti =
            Some(RowsOfTti { column, compared, tti: String::new(), rows: HashSet::new() });
    }

    /// Column index of a name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// Column index of a name that must be there.
    pub(super) fn required(&self, column: &'static str) -> Result<usize, TableError> {
        self.column(column).ok_or_else(|| {
            let header = quoted(&self.names.join(","));
            TableError::MissingColumn { column, header }
        })
    }

    /// Steps to the next row; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<RowRef<'_>, TableError>> {
        self.reader.get_mut().left = MAX_RECORD_BYTES;
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Some(self.row()),
            Ok(false) => None,
            Err(source) => Some(Err(broken(&self.reader, source))),
        }
    }

    /// The row that was read, if it has a field for each column and is no repetition: of a row
    /// that was cut short, the last field is a part, and of one with a field too many, it is
    /// unknown which belongs to which column.
    fn row(&mut self) -> Result<RowRef<'_>, TableError> {
        let row = RowRef { record: &self.record, shift: self.reader.get_ref().shift() };
        let (found, expected) = (self.record.len(), self.names.len());
        let what = if found < expected {
            let last = found.checked_sub(1).and_then(|last| self.names.get(last));
            let last = quoted(last.map_or("", String::as_str));
            format!("the row ends in the column `{last}`, with {found} of {expected} fields")
        } else if found > expected {
            format!("{found} fields, and the header has {expected}")
        } else if self.of_tti.as_mut().is_some_and(|rows| rows.has_or_add(&self.record)) {
            "the row repeats one of the same TTI".into()
        } else {
            return Ok(row);
        };
        let (offset, line) = row.place();
        Err(TableError::Row { offset, line, what })
    }

    /// Reads the rest of a table that is kept whole.
    pub(super) fn keep_all<T>(
        mut self,
        read: impl Fn(RowRef<'_>) -> Result<T, TableError>,
        text_bytes: impl Fn(&T) -> usize,
    ) -> Result<TableContent<T>, TableError> {
        let mut content =
            TableContent { rows: Vec::new(), bad_rows: 0, problems: Problems::default() };
        let mut text = 0_usize;
        while let Some(row) = self.next() {
            let place = row.as_ref().map_or((0, 0), |row| row.place());
            match row.and_then(&read) {
                Ok(row) => {
                    text = text.saturating_add(text_bytes(&row));
                    content.rows.push(row);
                }
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => {
                    content.bad_rows += 1;
                    content.problems.push(error.to_problem());
                }
            }
            let limits = [
                ("MAX_KEPT_ROWS", content.rows.len(), MAX_KEPT_ROWS),
                ("MAX_KEPT_TEXT_BYTES", text, MAX_KEPT_TEXT_BYTES),
            ];
            if let Some((limit, _, maximum)) = limits.into_iter().find(|(_, n, max)| n > max) {
                let ((offset, line), maximum) = (place, maximum as u64);
                return Err(TableError::Limit { offset, line, limit, maximum });
            }
        }
        Ok(content)
    }
}

/// The error of a CSV that cannot be read further.
fn broken<R: Read>(reader: &csv::Reader<RecordLimit<R>>, source: csv::Error) -> TableError {
    if reader.get_ref().exceeded {
        let (offset, line) = (reader.position().byte(), reader.position().line());
        let (limit, maximum) = ("MAX_RECORD_BYTES", MAX_RECORD_BYTES);
        return TableError::Limit { offset, line, limit, maximum };
    }
    let offset = source.position().map_or(0, |at| at.byte() + reader.get_ref().shift());
    TableError::Csv { offset, source }
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct RowRef<'a> {
    record: &'a csv::StringRecord,
    /// See [`RecordLimit::shift`].
    shift: u64,
}

impl<'a> RowRef<'a> {
    fn text(self, index: Option<usize>) -> Option<&'a str> {
        index.and_then(|i| self.record.get(i)).filter(|text| !text.is_empty())
    }

    fn place(self) -> (u64, u64) {
        let place = |at: &csv::Position| (at.byte() + self.shift, at.line() + self.shift);
        self.record.position().map_or((0, 0), place)
    }

    /// An error at a field of this row.
    pub(super) fn bad(
        self,
        column: &'static str,
        text: &str,
        expected: &'static str,
    ) -> TableError {
        let (offset, line) = self.place();
        TableError::BadField { offset, line, column, text: quoted(text), expected }
    }

    /// The error of an empty required field.
    pub(super) fn empty(self, column: &'static str) -> TableError {
        let (offset, line) = self.place();
        TableError::Empty { offset, line, column }
    }

    /// A value through `parse`; `None` if the field is empty or absent.
    pub(super) fn parsed<T>(
        self,
        (column, index): (&'static str, Option<usize>),
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, TableError> {
        match self.text(index) {
            None => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| self.bad(column, text, expected)),
        }
    }

    /// A direction, in any case.
    pub(super) fn direction(self, index: Option<usize>) -> Result<Option<Direction>, TableError> {
        self.parsed(("dir", index), "dl or ul", |text| {
            Direction::parse(text).or_else(|| Direction::parse(&text.to_ascii_lowercase()))
        })
    }

    /// An integer; also in the form `12.0`, as spreadsheets write it.
    pub(super) fn int<T: TryFrom<i64>>(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<T>, TableError> {
        self.parsed(field, "a whole number in range", |text| {
            let value = text.parse::<i64>().ok().or_else(|| whole(text))?;
            T::try_from(value).ok()
        })
    }

    /// A time in whole microseconds; those since 1970 in nanoseconds are beyond any.
    pub(super) fn time(
        self,
        field: (&'static str, Option<usize>),
        clock: Clock,
    ) -> Result<Option<Stamp>, TableError> {
        let Some(us) = self.int::<i64>(field)? else { return Ok(None) };
        let ns = us.checked_mul(1_000).ok_or_else(|| {
            let expected = "a time in microseconds: is it in nanoseconds?";
            self.bad(field.0, &us.to_string(), expected)
        })?;
        Ok(Some(Stamp { clock, ns }))
    }

    /// A TTI; beyond 2^50, some 35,000 years, it is invalid.
    pub(super) fn tti(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<TtiIndex>, TableError> {
        self.parsed(field, "a TTI", |text| {
            let tti = text.parse::<i64>().ok().or_else(|| whole(text))?;
            (tti.unsigned_abs() < 1 << 50).then_some(TtiIndex(tti))
        })
    }

    /// The subcarrier spacing index: 0 to 6 (TS 38.211, table 4.2-1); 0 if it is not
    /// given, as in LTE.
    pub(super) fn numerology(self, field: (&'static str, Option<usize>)) -> Result<u8, TableError> {
        let parse = |text: &str| {
            let value = text.parse::<i64>().ok().or_else(|| whole(text))?;
            u8::try_from(value).ok().filter(|mu| *mu <= 6)
        };
        Ok(self.parsed(field, "a numerology, 0 to 6", parse)?.unwrap_or_default())
    }

    /// A number.
    pub(super) fn number<T: FromStr>(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<T>, TableError> {
        self.parsed(field, "a number", |text| text.parse().ok())
    }

    /// 0, 1, true or false.
    pub(super) fn flag(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<bool>, TableError> {
        self.parsed(field, "0 or 1", |text| match text {
            "0" | "false" | "False" => Some(false),
            "1" | "true" | "True" => Some(true),
            _ => None,
        })
    }

    /// Text.
    pub(super) fn string(self, index: Option<usize>) -> Option<String> {
        self.text(index).map(|text| printable(text).into_owned())
    }
}

fn whole(text: &str) -> Option<i64> {
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i64)
}
