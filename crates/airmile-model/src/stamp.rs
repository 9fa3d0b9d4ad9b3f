//! Time stamps: integer nanoseconds with the clock that they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// By more than this, times are out of order (chosen here: the messages of modem logs are by at most
/// 2 ms, and a table's rows by the delay with which they were written).
pub const MAX_DISORDER_NS: i64 = 250_000_000;

/// The clock of a stamp. Stamps of two clocks are never compared without an alignment between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The modem's log clock (DIAG time stamps, treated as UTC).
    Modem,
    /// The phone's or capturing host's system clock.
    Phone,
    /// The server's system clock.
    Server,
    /// The application's own log (player, browser).
    Player,
}

impl Clock {
    /// The name used in documents and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Modem => "modem",
            Self::Phone => "phone",
            Self::Server => "server",
            Self::Player => "player",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A point in time: nanoseconds since the Unix epoch on one [`Clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The clock.
    pub clock: Clock,
    /// Nanoseconds since 1970-01-01T00:00:00Z on that clock.
    pub ns: i64,
}

impl Stamp {
    /// A stamp on the modem's clock.
    #[must_use]
    pub const fn modem(ns: i64) -> Self {
        Self { clock: Clock::Modem, ns }
    }

    /// Whether a time is out of order between two that are in order: it alone is wrong. All are in
    /// nanoseconds on one clock.
    #[must_use]
    pub const fn is_lone(before_ns: i64, at_ns: i64, after_ns: i64) -> bool {
        const fn is_past(ns: i64, of_ns: i64) -> bool {
            ns.saturating_sub(of_ns) > MAX_DISORDER_NS
        }
        !is_past(before_ns, after_ns) && (is_past(before_ns, at_ns) || is_past(at_ns, after_ns))
    }

    /// Microseconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.ns.div_euclid(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_wrong_alone_between_two_in_order() {
        const MS: i64 = 1_000_000;
        for off in [-90_000, -2_000, -500, 500, 2_000, 90_000] {
            assert!(Stamp::is_lone(7 * MS, (8 + off) * MS, 9 * MS), "{off}");
            // The next one agrees with it: the clock was set.
            assert!(!Stamp::is_lone(7 * MS, (8 + off) * MS, (9 + off) * MS), "{off}");
        }
        // A pause, and messages of several tasks.
        assert!(!Stamp::is_lone(0, 10_000 * MS, 10_001 * MS));
        assert!(!Stamp::is_lone(100 * MS, 95 * MS, 101 * MS));
    }
}
