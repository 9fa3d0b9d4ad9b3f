//! Compares runs (BurstTracker, 4.5 and 5.1): whether ports or runs differ by more than
//! chance, and in which respect: slow start that restarts after pauses, or a throttled
//! rate.
//!
//! [`RequestTimer`] finds the transfers of a connection, [`growth()`] measures how one began,
//! [`Sample`]s of transfers form groups, [`judge()`] compares the groups, and [`largest_difference`] the
//! load times of pages. Statistics and limits are in `docs/compare.md`.

mod growth;
mod judge;
mod loads;
mod requests;
mod resample;
mod sample;

pub use growth::{Growth, Start, growth};
pub use judge::{ComparisonOutcome, Judgement, MIN_TRANSFERS, PairFinding, judge};
pub use loads::{LoadDifference, largest_difference};
pub use requests::{RequestTimer, TimedRequest};
pub use resample::{Difference, Estimate, difference, estimate, holm, share};
pub use sample::{
    GroupFinding, PAUSE_NS, Restarts, RestartsSeen, Sample, is_by_turns, measure,
    restarts_after_pauses,
};
