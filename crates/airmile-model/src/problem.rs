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
    /// Byte offset in the (uncompressed) input.
    pub offset: u64,
    /// Its severity.
    pub severity: Severity,
    /// A description, with the field if one is known.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = printable(&self.what);
        match (self.offset, self.severity) {
            // Of the file as a whole.
            (0, Severity::Warning) => write!(f, "{what}"),
            (offset, _) => write!(f, "byte {offset}: {what}"),
        }
    }
}
