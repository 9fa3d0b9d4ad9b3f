//! The physical layer: division of time into TTIs, the radio channel and link adaptation,
//! and a phone's measurements of the cell.

mod frame;
mod link;
mod measure;

pub(crate) use frame::*;
pub(crate) use link::*;
pub(crate) use measure::Meter;
