//! Aligns the clocks of different files by the data that appears in both.
//!
//! A modem log, a capture and an application log each have their own clock, and all
//! contain the same bytes: what the radio delivers reaches the phone's IP stack a few
//! milliseconds later ([`between_arrivals`]), a segment passes two captures in order
//! ([`between_points`]), a request leaves its
//! browser and passes the phone's interface ([`align_requests`]), and a transfer ends with its last
//! byte ([`align_transfers`], [`align_uploads`]).
//! Each method returns a [`ClockLine`] (offset and drift, with an error bound), or the
//! reason why there is none ([`Unaligned`]).

mod arrivals;
mod correlate;
mod likeness;
mod line;
mod points;
mod requests;
#[cfg(test)]
mod tests;
mod transfers;

pub use arrivals::{Arrivals, between_arrivals};
pub use likeness::{Likeness, likeness};
pub use line::{Aligned, ClockLine, Unaligned};
pub use points::{PointPair, between_points, may_be_split};
pub use requests::align_requests;
pub use transfers::{align_transfers, align_uploads};
