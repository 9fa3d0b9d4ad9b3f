//! What the commands answer, from the records that [`crate::session`] gives.

pub mod application;
mod belong;
pub(crate) mod beside;
pub mod blind;
mod causes;
mod clocks;
pub mod compare;
pub mod decode;
pub mod diagnose;
mod echoes;
mod evidence_counts;
mod explained;
pub mod inspect;
pub mod lanes;
mod one_leg;
mod other_leg;
pub mod page;
pub mod player;
pub mod radio;
pub mod report;
pub mod series;
mod silent;
mod together;
pub(crate) mod tracks;
mod unread;
mod watch;
mod wire;

pub use clocks::ClockReport;
pub use tracks::{EvidenceCounts, ServingCell};
