//! Virtual time for the QUIC library.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The instant that stands for 0 ns. Only differences matter, so any instant will do.
#[allow(clippy::disallowed_methods)]
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

pub(super) fn instant_of(now_ns: i64) -> Instant {
    base() + Duration::from_nanos(u64::try_from(now_ns).unwrap_or(0))
}

pub(super) fn ns_of(instant: Instant) -> i64 {
    i64::try_from(instant.saturating_duration_since(base()).as_nanos()).unwrap_or(i64::MAX)
}
