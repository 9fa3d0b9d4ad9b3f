//! Runs held against each other (BurstTracker, 4.5 and 5.1): whether ports or runs
//! differ by more than chance, and in what: slow start that begins again behind
//! pauses, or a rate that is held down.
//!
//! [`Exchanges`] finds transfers in a connection, [`growth()`] measures how one began,
//! [`Sample`]s of transfers go into groups, and [`judge()`] holds these against each
//! other. Statistics and limits are in `docs/compare.md`.

mod exchanges;
mod growth;
mod judge;
mod resample;
mod sample;

pub use exchanges::{Exchanges, RequestExchange};
pub use growth::{Growth, Start, growth};
pub use judge::{ComparisonOutcome, Judgement, MIN_TRANSFERS, PairFinding, judge};
pub use resample::{Difference, Estimate, difference, estimate, holm, share};
pub use sample::{GroupFinding, PAUSE_NS, Restarts, Sample, is_by_turns, measure};
