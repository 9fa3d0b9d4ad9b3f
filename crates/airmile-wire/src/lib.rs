//! What packets show: flows, round trips, losses, and the cause of each moment of a
//! transfer.
//!
//! Pure state machines: packets go in, findings come out. No file, socket, thread or
//! clock. Everything that takes a stream has the verbs `push`, `poll` and `finish`.
//! The modem's records are the subject of `airmile-radio`; the two crates do not depend
//! on each other, and the facade joins their findings.
//!
//! - [`attribute`]: the cause of each moment of a transfer.
//! - [`clocks`]: clocks of different files, aligned by events that both files contain.
//! - [`compare`]: comparison of groups of transfers: restarts, a rate held down.
//! - [`distribution`]: quantiles in bounded memory.
//! - [`tcp`]: flows, round trips, losses, available bandwidth (Huang).

mod app;
pub mod attribute;
pub mod clocks;
pub mod compare;
pub mod distribution;
pub mod tcp;

pub use app::is_long_header;
