//! What was wrong with an input, and where.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::printable::printable;

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Normal for a rotated log: a torn first frame, or a torn last one of a
    /// part that another follows. Not damage.
    Normal,
    /// Worth knowing; what is around it was read.
    Warning,
    /// Bytes of the input could not be read: exit status 4.
    Damage,
}

/// Something wrong in an input, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Byte offset in the (uncompressed) input.
    pub offset: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What it is, with the field where one is known.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, printable(&self.what))
    }
}
