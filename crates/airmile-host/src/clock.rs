//! The host's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now by the clock that the gate goes by, in ns: monotonic.
pub(crate) fn now_ns() -> i64 {
    of(ClockId::Monotonic)
}

/// Now by the wall clock, in ns since the Unix epoch.
pub(crate) fn wall_ns() -> i64 {
    of(ClockId::Realtime)
}

/// Time that this process has used of all processors, in ns.
pub(crate) fn cpu_ns() -> i64 {
    of(ClockId::ProcessCPUTime)
}

fn of(clock: ClockId) -> i64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec * 1_000_000_000 + tv_nsec
}
