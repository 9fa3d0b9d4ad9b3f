//! The time since the process began, for cores that have no clock.

use std::sync::OnceLock;
use std::time::Instant;

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Now in nanoseconds.
pub(crate) fn now_ns() -> i64 {
    ns_of(Instant::now())
}

/// A time in nanoseconds, never before 1 s, so that differences have room.
pub(crate) fn ns_of(at: Instant) -> i64 {
    let origin = *ORIGIN.get_or_init(|| at);
    let since = at.saturating_duration_since(origin).as_nanos();
    i64::try_from(since).unwrap_or(i64::MAX / 2).saturating_add(1_000_000_000)
}
