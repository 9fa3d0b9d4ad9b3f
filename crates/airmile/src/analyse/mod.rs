//! The commands' analyses of the records of [`crate::session`].

pub(crate) mod aligned;
pub mod application;
mod belong;
pub mod blind;
mod cause_marks;
mod causes;
mod clocks;
pub mod compare;
pub mod decode;
pub mod diagnose;
mod ecn;
mod explained;
mod frames;
pub mod inspect;
pub mod lanes;
mod logged;
mod one_leg;
pub mod page;
pub mod player;
pub mod radio;
pub mod report;
mod silent;
pub(crate) mod subscription;
mod together;
mod track;
mod unread;
mod windows;
mod wire;

pub use airmile_radio::evidence::EvidenceCounts;
pub use clocks::ClockReport;
pub use subscription::ServingCell;
