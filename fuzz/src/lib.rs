//! Fuzz targets as ordinary functions, and inputs for them.
//!
//! See `README.md` for the drivers.

pub mod generate;
pub mod mutate;
pub mod targets;
