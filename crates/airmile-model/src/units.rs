//! Units of time.

/// A millisecond, in nanoseconds.
pub const MS_NS: i64 = 1_000_000;
/// A second, in nanoseconds.
pub const SECOND_NS: i64 = 1_000 * MS_NS;
/// A day, in nanoseconds.
pub const DAY_NS: i64 = 86_400 * SECOND_NS;
