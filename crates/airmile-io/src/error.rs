//! Errors of commands, with the next step for the user.

use std::path::PathBuf;

use airmile_model::{printable, printable_path};

/// Minimum similarity of a name to a known one: strsim's Jaro-Winkler, 0 to 1 (chosen
/// here: one missing, extra or swapped letter passes, other words do not).
const ALIKE: f64 = 0.87;

/// The known name that was probably meant, as text for an error.
#[must_use]
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    let alike = known.iter().map(|known| (strsim::jaro_winkler(name, known), *known));
    let nearest = alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(alike, _)| *alike >= ALIKE);
    nearest.map_or_else(String::new, |(_, known)| format!(" (did you mean `{known}`?)"))
}

/// Errors of the facade.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened or read.
    #[error("{}: {source}", printable_path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file or directory could not be written.
    #[error("{}: cannot write: {source}", printable_path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file was recognised, but cannot be used here.
    #[error("{}: {what}", printable_path(path))]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Its format, and the next step.
        what: String,
    },
    /// A table lacks a column.
    #[error("{}: {source}", printable_path(path))]
    Table {
        /// The file.
        path: PathBuf,
        /// The table's error.
        source: airmile_decode::table::TableError,
    },
    /// None of the inputs has the data that the command needs.
    #[error("{0}")]
    NothingToAnalyse(String),
    /// No scenario has this name, and there is no such file.
    #[error("{}: no scenario has this name, and there is no such file{}; there are {}", printable(name), did_you_mean(name, known), known.join(", "))]
    NoScenario {
        /// The given name.
        name: String,
        /// The existing names.
        known: Vec<&'static str>,
    },
    /// An option's value is invalid.
    #[error("{0}")]
    Option(String),
    /// Parquet or Arrow returned an error.
    #[error("{}: {what}", printable_path(path))]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error.
        what: String,
    },
    /// Arrow rejected a table.
    #[error("table {table}: {what}")]
    Arrow {
        /// The table.
        table: &'static str,
        /// The error.
        what: String,
    },
}

impl Error {
    /// A reading error of a file.
    #[must_use]
    pub fn read(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Read { path: path.into(), source }
    }

    /// A writing error of a file.
    #[must_use]
    pub fn write(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }
}

/// Results of the facade.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_gets_a_suggestion_and_another_word_does_not() {
        let known = ["busy-video", "busy-file", "idle", "driving"];
        let check = |name: &str, expected: &str| {
            let hint = did_you_mean(name, &known);
            let meant = hint.strip_prefix(" (did you mean `").unwrap_or_default();
            assert_eq!(meant.trim_end_matches("`?)"), expected, "{name}");
        };
        check("busy-vidoe", "busy-video");
        check("busyvideo", "busy-video");
        check("busy_file", "busy-file");
        check("iddle", "idle");
        check("Driving", "driving");
        check("upload", "");
        check("x.toml", "");
        check("", "");
    }
}
