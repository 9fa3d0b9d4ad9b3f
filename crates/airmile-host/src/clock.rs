//! The clocks of the host.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, in ns.
#[must_use]
pub fn monotonic_ns() -> i64 {
    now_ns(ClockId::Monotonic)
}

/// The wall clock, in ns since the Unix epoch.
#[must_use]
pub fn wall_ns() -> i64 {
    now_ns(ClockId::Realtime)
}

/// Processor time of this process on all processors, in ns.
#[must_use]
pub fn process_cpu_ns() -> i64 {
    now_ns(ClockId::ProcessCPUTime)
}

fn now_ns(clock: ClockId) -> i64 {
    // Through a duration: the width of a time's fields differs from machine to machine. The
    // conversion fails only before the clock's origin.
    let since = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// An instant in ns, for cores without a clock: relative to the first one requested, and
/// never before 1 s, so that differences do not underflow.
#[must_use]
pub fn instant_ns(at: Instant) -> i64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(|| at);
    let since = at.saturating_duration_since(origin).as_nanos();
    i64::try_from(since).unwrap_or(i64::MAX / 2).saturating_add(1_000_000_000)
}

/// The current time, in the form of [`instant_ns`].
#[must_use]
pub fn now_since_start_ns() -> i64 {
    instant_ns(Instant::now())
}

/// The wall clock at the start, continued with the monotonic clock: setting the wall
/// clock does not change it.
#[derive(Debug, Clone, Copy)]
pub struct SteadyWallClock {
    wall_ns: i64,
    start_ns: i64,
}

impl SteadyWallClock {
    /// Reads both clocks.
    #[must_use]
    pub fn start() -> Self {
        Self { wall_ns: wall_ns(), start_ns: monotonic_ns() }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.wall_ns.saturating_add(monotonic_ns() - self.start_ns) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_agree() {
        let steady = SteadyWallClock::start();
        let (before, wall) = (monotonic_ns(), wall_ns());
        assert!((steady.now_us() - wall / 1_000).abs() < 1_000_000);
        assert!(monotonic_ns() >= before && process_cpu_ns() > 0);
        let now = Instant::now();
        assert!(instant_ns(now) >= 1_000_000_000);
        assert!(instant_ns(now + std::time::Duration::from_secs(2)) - instant_ns(now) > 0);
    }
}
