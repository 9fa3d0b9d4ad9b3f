//! Converts every error of the library to an exception of `airmile.errors`, with the file, byte
//! offset and field as attributes.

use std::path::Path;

use airmile::Error;
use airmile::codec::table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The exception for an error of the library.
pub fn to_py(error: Error) -> PyErr {
    Python::attach(|py| {
        let text = with_arguments(&error.to_string());
        let raised = match &error {
            Error::Read { path, source } => system(py, "AirmileInputError", path, source, &text),
            Error::Write { path, source } => system(py, "AirmileOutputError", path, source, &text),
            Error::Unusable { .. } | Error::Table { .. } => raise(py, "AirmileFormatError", &text),
            Error::NothingToAnalyse(_) => raise(py, "AirmileNoDataError", &text),
            Error::Option(_) | Error::NoScenario { .. } => raise(py, "AirmileOptionError", &text),
            Error::Parquet { .. } | Error::Arrow { .. } => raise(py, "AirmileOutputError", &text),
        };
        raised.and_then(|raised| placed(py, raised, &error)).unwrap_or_else(|failed| failed)
    })
}

/// The exception with the place that the error names.
fn placed(py: Python<'_>, raised: PyErr, error: &Error) -> PyResult<PyErr> {
    let (path, place) = match error {
        Error::Read { path, source } | Error::Write { path, source } => {
            (path.as_path(), Place::of(&source.to_string()))
        }
        Error::Unusable { path, what } | Error::Parquet { path, what } => {
            (path.as_path(), Place::of(what))
        }
        Error::Table { path, source } => (path.as_path(), Place::in_table(source)),
        Error::NothingToAnalyse(text) => match text.split_once(": ") {
            Some((path, what)) if Path::new(path).exists() => (Path::new(path), Place::of(what)),
            _ => return Ok(raised),
        },
        _ => return Ok(raised),
    };
    let value = raised.value(py);
    value.setattr("file", path.as_os_str())?;
    value.setattr("offset", place.offset)?;
    value.setattr("line", place.line)?;
    value.setattr("field", place.field)?;
    Ok(raised)
}

/// Where in a file an error is.
#[derive(Default)]
struct Place {
    offset: Option<u64>,
    line: Option<u64>,
    field: Option<String>,
}

impl Place {
    /// By the parts of a text: `byte 36: log.entries[]: ...`, `line 2, column `id`: ...`.
    fn of(text: &str) -> Self {
        let mut place = Self::default();
        let mut parts = text.split(": ").peekable();
        while let Some(part) = parts.next() {
            let number = |word: &str| part.strip_prefix(word)?.split(',').next()?.parse().ok();
            if let Some(offset) = number("byte ") {
                place.offset = Some(offset);
                let next = parts.peek().map(|next| next.strip_prefix("field ").unwrap_or(next));
                place.field = next.filter(|next| !next.contains(' ')).map(str::to_owned);
            } else if let Some(line) = number("line ") {
                place.line = Some(line);
                let column = part.split_once("column `").and_then(|(_, name)| name.split_once('`'));
                place.field = column.map(|(name, _)| name.to_owned());
            }
        }
        place
    }

    fn in_table(error: &TableError) -> Self {
        let (line, field) = match error {
            TableError::MissingColumn { column, .. } => (Some(1), Some(*column)),
            TableError::BadField { line, column, .. } | TableError::Empty { line, column, .. } => {
                (Some(*line), Some(*column))
            }
            TableError::Row { line, .. } | TableError::Limit { line, .. } => (Some(*line), None),
            TableError::Csv { .. } => (None, None),
        };
        Self { offset: Some(error.offset()), line, field: field.map(str::to_owned) }
    }
}

/// Options of the command that have another form in Python.
const RENAMED: [(&str, &str); 4] = [
    ("from", "from_"),
    ("force", "force=True"),
    ("experimental", "experimental=True"),
    ("out", "output"),
];

/// Options of the command that are arguments in Python.
const ARGUMENTS: [&str; 22] = [
    "by",
    "client",
    "end-threshold",
    "evidence",
    "flow",
    "html",
    "key",
    "min-bytes",
    "not-radio-below",
    "only",
    "output",
    "pause-ms",
    "perfetto",
    "ports",
    "proxy-ports",
    "radio-at-least",
    "rnti",
    "seed",
    "send-rate",
    "sim",
    "start-threshold",
    "to",
];

/// Replaces options of the command line in a message by Python's arguments: `--start-threshold 2`
/// becomes `start_threshold=2`. Other words that start with two hyphens, such as a part of a path,
/// are unchanged, as are command lines.
fn with_arguments(text: &str) -> String {
    let argument = |word: &str| {
        let option = word.strip_prefix("--")?;
        let name = option.trim_end_matches([':', ',', ';', ')', '`']);
        let renamed = RENAMED.iter().find(|(known, _)| *known == name);
        let python = match renamed {
            Some((_, python)) => (*python).to_owned(),
            None => ARGUMENTS.contains(&name).then(|| name.replace('-', "_"))?,
        };
        Some(python + option.strip_prefix(name)?)
    };
    let is_value =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || "-Ni".contains(c));
    let mut words = text.split(' ').peekable();
    let mut out = Vec::new();
    let mut is_command = false;
    while let Some(word) = words.next() {
        is_command |= word.starts_with("`airmile");
        let name = argument(word).filter(|_| !is_command);
        is_command &= !word.trim_start_matches('`').contains('`');
        out.push(match name {
            None => word.to_owned(),
            Some(name) => match words.next_if(|next| next.ends_with(':') && is_value(next)) {
                Some(value) => format!("{name}={value}"),
                None => name,
            },
        });
    }
    out.join(" ")
}

/// The exception for an invalid option.
pub fn option(text: String) -> PyErr {
    to_py(Error::Option(text))
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("airmile.errors")?.getattr(name)
}

fn raise(py: Python<'_>, name: &str, text: &str) -> PyResult<PyErr> {
    Ok(PyErr::from_value(class(py, name)?.call1((text,))?))
}

/// The exception as a Python `OSError`: with `errno`, `strerror` and `filename` if the system gave
/// an error number.
fn system(
    py: Python<'_>,
    name: &str,
    path: &Path,
    source: &std::io::Error,
    text: &str,
) -> PyResult<PyErr> {
    let Some(errno) = source.raw_os_error() else { return raise(py, name, text) };
    let words = py.import("os")?.call_method1("strerror", (errno,))?;
    let args = PyTuple::new(
        py,
        [
            errno.into_pyobject(py)?.into_any(),
            words,
            path.as_os_str().into_pyobject(py)?.into_any(),
        ],
    )?;
    Ok(PyErr::from_value(class(py, name)?.call1(args)?))
}
