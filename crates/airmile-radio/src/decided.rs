//! How far the findings of a tracker are complete.

use airmile_model::TtiIndex;

/// How far findings are complete: all findings that begin before these TTIs have been
/// reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// Runs of scheduled and of missing TTIs.
    pub runs: TtiIndex,
    /// Bursts, and waits before them.
    pub bursts: TtiIndex,
}

impl Decided {
    /// Nothing is complete.
    pub const NOTHING: Self = Self { runs: TtiIndex(i64::MIN), bursts: TtiIndex(i64::MIN) };
    /// The log has ended.
    pub const ALL: Self = Self { runs: TtiIndex(i64::MAX), bursts: TtiIndex(i64::MAX) };

    /// The part that both have completed.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { runs: self.runs.min(other.runs), bursts: self.bursts.min(other.bursts) }
    }
}
