//! `airmile._airmile`: the library's functions for Python. It has wrappers only, without logic;
//! their documentation is in Python (`python/airmile`).

#[cfg(feature = "extension")]
mod ask;
#[cfg(feature = "extension")]
mod error;
#[cfg(feature = "extension")]
mod module;
#[cfg(feature = "extension")]
mod report;
#[cfg(feature = "extension")]
mod scale;
#[cfg(feature = "extension")]
mod table;
