//! The core network: paths, and the middlebox on them.

pub(crate) mod path;
pub mod proxy;
