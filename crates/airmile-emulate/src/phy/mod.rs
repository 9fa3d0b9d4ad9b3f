//! The physical layer: how time is cut into TTIs, the radio channel and link adaptation,
//! and what a phone measures of the cell.

mod frame;
mod link;
mod measure;

pub(crate) use frame::*;
pub(crate) use link::*;
pub(crate) use measure::Meter;
