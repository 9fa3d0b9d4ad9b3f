//! Clocks of different files, aligned by what passed in both.
//!
//! A modem log, a capture and an application's log each have a clock of their
//! own. The same bytes are in all of them: what the radio delivered comes to
//! the phone's IP stack a few milliseconds later ([`between_arrivals`]), a
//! segment passes two captures in order ([`between_points`]), and a transfer
//! ends with its last byte ([`align_transfers`]). Each gives a [`ClockLine`]:
//! offset and drift, with a bound of the error, or says why there is none
//! ([`Unaligned`]).

mod arrivals;
mod correlate;
mod line;
mod points;
#[cfg(test)]
mod tests;
mod transfers;

pub use arrivals::{Arrivals, between_arrivals};
pub use line::{Aligned, ClockLine, Unaligned};
pub use points::{PointPair, between_points};
pub use transfers::align_transfers;
