//! Infers the bottleneck from packets alone, as probabilities.
//!
//! [`CapturedPhones`] takes a capture's packets and keeps, for each phone, what arrived
//! when and what its senders waited for. [`Features`] describe one or several transfers,
//! and [`Model`] gives each [`Suspect`] a probability. The coefficients are fitted on
//! runs of the lab (`airmile-accuracy --blind-fit`, see docs/decisions/0014-blind.md),
//! and validated on runs left out of the fit.
//!
//! The downlink queue is not visible in a capture. The pattern of arrivals while a queue
//! persists distinguishes it from a wired link's: a wired link delivers at a constant
//! rate and catches up with what the air interface delayed; the rate of the air interface
//! varies.

mod coefficients;
mod datagrams;
mod feature;
mod features;
mod model;
mod pattern;
mod pauses;
mod phone;
mod server_side;
mod span;
mod suspect;
#[cfg(test)]
mod tests;
mod together;
mod user;

pub use feature::{Feature, FeatureValues, N_FEATURES};
pub use features::Features;
pub use model::{CoefficientTable, Evidence, Model, NAMED_FROM};
pub use phone::{CapturedPhone, CapturedPhones};
pub use server_side::ServerSide;
pub use span::{TransferSpan, TransportKind};
pub use suspect::{Probabilities, Suspect, Suspicion};
pub use together::JudgedTransfer;
