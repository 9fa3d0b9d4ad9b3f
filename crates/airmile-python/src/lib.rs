//! `airmile._airmile`: the facade under Python. Wrappers and no logic; what
//! they mean is documented on the Python side (`python/airmile`).

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
