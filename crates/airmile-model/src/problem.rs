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

/// Maximum number of an input's problems kept as text (chosen here: more than a person reads).
const KEPT_PROBLEMS: usize = 100;

/// The problems of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first ones.
    pub kept: Vec<Problem>,
    /// The number of those beyond.
    pub more: u64,
    /// Whether one of all is damage.
    pub damaged: bool,
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        self.damaged |= problem.severity == Severity::Damage;
        if self.kept.len() < KEPT_PROBLEMS {
            self.kept.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Adds those of a part.
    pub fn append(&mut self, part: &Self) {
        part.kept.iter().cloned().for_each(|problem| self.push(problem));
        self.more += part.more;
        self.damaged |= part.damaged;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_beyond_the_first_are_counted() {
        let mut problems = Problems::default();
        let problem = |offset, severity| Problem::at(offset, severity, "odd".into());
        (0..100).for_each(|at| problems.push(problem(at, Severity::Warning)));
        assert_eq!((problems.kept.len(), problems.more, problems.damaged), (100, 0, false));
        problems.push(problem(100, Severity::Damage));
        assert_eq!((problems.kept.len(), problems.more, problems.damaged), (100, 1, true));
        let mut whole = Problems::default();
        whole.push(problem(0, Severity::Normal));
        whole.append(&problems);
        assert_eq!((whole.kept.len(), whole.more, whole.damaged), (100, 2, true));
        assert_eq!(whole.kept[99].offset, Some(98));
    }
}
