//! Who the bottleneck was, by packets alone: probabilities in place of a split.
//!
//! [`CapturedPhones`] takes a capture's packets and keeps what the phone got and when,
//! and what its senders waited for; [`Features`] are numbers of one transfer, or
//! of several; [`Model`] gives each [`Suspect`] a probability. The coefficients
//! are fitted on runs of the lab (`airmile-accuracy --blind-fit`, see
//! docs/decisions/0014-blind.md), and held against others that they have not seen.
//!
//! The downlink's queue is not seen here. What tells it from another link's is how
//! data comes while a queue stands: a wire delivers at one rate and makes up for
//! what the air held back; the air's own rate comes and goes.

mod coefficients;
mod features;
mod model;
mod pattern;
mod phone;
#[cfg(test)]
mod tests;

pub use features::{Features, N_FEATURES, NAMES};
pub use model::{CoefficientTable, Evidence, Model, NAMED_FROM, Suspect, Suspicion};
pub use phone::{CapturedPhone, CapturedPhones, TransferSpan, TransportKind};
