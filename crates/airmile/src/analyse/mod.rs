//! What the commands answer, from the records that [`crate::session`] gives.

pub mod decode;
pub mod diagnose;
pub mod inspect;
pub mod radio;
mod tracks;

pub use tracks::{EvidenceCounts, ServingCell};
