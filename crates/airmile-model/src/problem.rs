//! Problems of an input, with their position.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::printable::printable;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Normal for a rotated log: a truncated first frame, or a truncated last one of a
    /// part that is followed by another. Not damage.
    Normal,
    /// Notable; the data around it was read.
    Warning,
    /// Bytes of the input could not be read: exit status 4.
    Damage,
}

/// A problem of an input, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Byte offset in the (uncompressed) input; none if it is of the whole.
    pub offset: Option<u64>,
    /// Its severity.
    pub severity: Severity,
    /// A description, with the field if one is known.
    pub what: String,
}

impl Problem {
    /// A problem at a byte offset.
    #[must_use]
    pub const fn at(offset: u64, severity: Severity, what: String) -> Self {
        Self { offset: Some(offset), severity, what }
    }

    /// The damage of an input that cannot be read from an offset on.
    #[must_use]
    pub fn stopped(offset: u64, error: &impl fmt::Display) -> Self {
        Self::at(offset, Severity::Damage, format!("reading stopped here: {error}"))
    }

    /// A problem of the whole input.
    #[must_use]
    pub const fn of_file(severity: Severity, what: String) -> Self {
        Self { offset: None, severity, what }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = printable(&self.what);
        match self.offset {
            None => write!(f, "{what}"),
            Some(offset) => write!(f, "byte {offset}: {what}"),
        }
    }
}
