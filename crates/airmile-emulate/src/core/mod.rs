//! The network behind the base station: paths, and the middlebox on them.

pub(crate) mod path;
pub mod proxy;
