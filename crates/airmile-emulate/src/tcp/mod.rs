//! TCP without I/O.

mod segment;

pub use segment::{Flags, SackBlock, Segment};
