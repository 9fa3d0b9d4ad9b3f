//! Every error of the facade as an exception of `airmile.errors`, once.

use std::path::Path;

use airmile::Error;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The exception for an error of the facade.
pub fn to_py(error: Error) -> PyErr {
    Python::attach(|py| {
        let text = error.to_string();
        let raised = match &error {
            Error::Read { path, source } => system(py, "AirmileInputError", path, source, &text),
            Error::Write { path, source } => system(py, "AirmileOutputError", path, source, &text),
            Error::Unusable { .. } | Error::Table { .. } => raise(py, "AirmileFormatError", &text),
            Error::NothingToAnalyse(_) => raise(py, "AirmileNoDataError", &text),
            Error::Option(_) | Error::NoScenario { .. } => {
                raise(py, "AirmileOptionError", &with_arguments(&text))
            }
            Error::Parquet { .. } | Error::Arrow { .. } => raise(py, "AirmileOutputError", &text),
        };
        raised.unwrap_or_else(|failed| failed)
    })
}

/// A message whose options, named as on the command line, are Python's arguments:
/// `--start-threshold 2` is `start_threshold=2`.
fn with_arguments(text: &str) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        let (name, rest) = part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len()));
        if name.is_empty() {
            out.push_str("--");
        } else {
            out.push_str(&name.replace('-', "_"));
            out.push('=');
        }
        let value =
            rest.strip_prefix(' ').filter(|value| value.starts_with(|c: char| c.is_numeric()));
        out.push_str(value.unwrap_or(rest));
    }
    out
}

/// An option that cannot be.
pub fn option(text: String) -> PyErr {
    to_py(Error::Option(text))
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("airmile.errors")?.getattr(name)
}

fn raise(py: Python<'_>, name: &str, text: &str) -> PyResult<PyErr> {
    Ok(PyErr::from_value(class(py, name)?.call1((text,))?))
}

/// As Python's own: with `errno`, `strerror` and `filename` where the system
/// gave a number.
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
