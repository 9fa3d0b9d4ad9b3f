//! The changes made by scrubbing.

use std::collections::BTreeMap;

/// Counts of changed or removed items, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes(pub BTreeMap<&'static str, u64>);

impl Changes {
    /// Counts `n` more of a thing.
    pub fn add(&mut self, what: &'static str, n: u64) {
        if n > 0 {
            *self.0.entry(what).or_default() += n;
        }
    }

    /// Number of changes of a kind.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}
