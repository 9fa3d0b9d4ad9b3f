//! What the commands answer, from the records that [`crate::session`] gives.

pub mod decode;
pub mod diagnose;
pub mod export;
pub mod inspect;
pub mod radio;
pub mod report;
pub mod series;
mod tracks;

pub use tracks::{EvidenceCounts, ServingCell};
