//! What scrubbing did.

use std::collections::BTreeMap;

/// What was changed or cut, by what it was, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes(pub BTreeMap<&'static str, u64>);

impl Changes {
    /// Counts `n` more of a thing.
    pub fn add(&mut self, what: &'static str, n: u64) {
        if n > 0 {
            *self.0.entry(what).or_default() += n;
        }
    }

    /// How often a thing was changed.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}
