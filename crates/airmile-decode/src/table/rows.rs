//! Rows of a CSV by column name, with errors that name line, offset and column.

use std::io::Read;
use std::str::FromStr;

use airmile_model::problem::{Problem, Severity};
use airmile_model::tti::TtiIndex;

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
    /// A field does not hold what its column says.
    #[error("line {line}, column `{column}`: {text:?} is not {expected}")]
    BadField {
        /// Byte offset of the row.
        offset: u64,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What stands there.
        text: String,
        /// What should.
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
    /// The CSV itself is broken, or reading failed.
    #[error("{source}")]
    Csv {
        /// Byte offset, where known.
        offset: u64,
        /// What the reader says.
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
            | Self::Csv { offset, .. } => *offset,
        }
    }

    /// Whether nothing more can be read after it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::MissingColumn { .. } => true,
            Self::Csv { source, .. } => source.is_io_error(),
            _ => false,
        }
    }

    /// As a problem of the input.
    #[must_use]
    pub fn to_problem(&self) -> Problem {
        Problem { offset: self.offset(), severity: Severity::Damage, what: self.to_string() }
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

/// A CSV reader that finds fields by column name.
pub(super) struct Rows<R> {
    reader: csv::Reader<R>,
    names: Vec<String>,
    record: csv::StringRecord,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(input: R) -> Result<Self, TableError> {
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(input);
        let header = reader.headers().map_err(|source| TableError::Csv { offset: 0, source })?;
        let names =
            header.iter().map(|name| normalise_name(name.trim_start_matches('\u{feff}'))).collect();
        Ok(Self { reader, names, record: csv::StringRecord::new() })
    }

    /// Column index of a name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// Column index of a name that must be there.
    pub(super) fn required(&self, column: &'static str) -> Result<usize, TableError> {
        self.column(column)
            .ok_or_else(|| TableError::MissingColumn { column, header: self.names.join(",") })
    }

    /// Steps to the next row; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<RowRef<'_>, TableError>> {
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Some(Ok(RowRef { record: &self.record })),
            Ok(false) => None,
            Err(source) => {
                let offset = source.position().map_or(0, csv::Position::byte);
                Some(Err(TableError::Csv { offset, source }))
            }
        }
    }
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct RowRef<'a> {
    record: &'a csv::StringRecord,
}

impl<'a> RowRef<'a> {
    fn text(self, index: Option<usize>) -> Option<&'a str> {
        index.and_then(|i| self.record.get(i)).filter(|text| !text.is_empty())
    }

    fn place(self) -> (u64, u64) {
        self.record.position().map_or((0, 0), |p| (p.byte(), p.line()))
    }

    /// An error at a field of this row.
    pub(super) fn bad(
        self,
        column: &'static str,
        text: &str,
        expected: &'static str,
    ) -> TableError {
        let (offset, line) = self.place();
        TableError::BadField { offset, line, column, text: text.to_owned(), expected }
    }

    /// The error of an empty required field.
    pub(super) fn empty(self, column: &'static str) -> TableError {
        let (offset, line) = self.place();
        TableError::Empty { offset, line, column }
    }

    /// A value through `parse`; `None` where the field is empty or absent.
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

    /// An integer; also as `12.0` where a spreadsheet wrote it so.
    pub(super) fn int<T: TryFrom<i64>>(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<T>, TableError> {
        self.parsed(field, "a whole number in range", |text| {
            let value = text.parse::<i64>().ok().or_else(|| whole(text))?;
            T::try_from(value).ok()
        })
    }

    /// A TTI; beyond 2^50, some 35,000 years, it is none.
    pub(super) fn tti(
        self,
        field: (&'static str, Option<usize>),
    ) -> Result<Option<TtiIndex>, TableError> {
        self.parsed(field, "a TTI", |text| {
            let tti = text.parse::<i64>().ok().or_else(|| whole(text))?;
            (tti.unsigned_abs() < 1 << 50).then_some(TtiIndex(tti))
        })
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
        self.text(index).map(str::to_owned)
    }
}

fn whole(text: &str) -> Option<i64> {
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i64)
}
