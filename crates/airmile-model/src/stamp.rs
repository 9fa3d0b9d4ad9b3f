//! Time stamps: integer nanoseconds with the clock that they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

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

    /// Nanoseconds from `earlier` to `self`; `None` if the clocks differ or the
    /// difference does not fit.
    #[must_use]
    pub fn checked_since_ns(self, earlier: Self) -> Option<i64> {
        if self.clock == earlier.clock { self.ns.checked_sub(earlier.ns) } else { None }
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
    fn clocks_never_mix() {
        let modem = Stamp::modem(5);
        let phone = Stamp { clock: Clock::Phone, ns: 9 };
        assert_eq!(phone.checked_since_ns(modem), None);
        assert_eq!(Stamp::modem(9).checked_since_ns(modem), Some(4));
        assert_eq!(Stamp::modem(i64::MAX).checked_since_ns(Stamp::modem(-1)), None);
    }
}
