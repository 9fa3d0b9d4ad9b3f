//! What the programs at the edge of a host share, each thing once.
//!
//! - [`source`]: where bytes come from: a modem's port, a growing file, standard
//!   input, a network interface. Each source is a thread of its own.
//! - [`interface`]: packets of a network interface as a capture (Linux).
//! - [`http`]: an HTTP server with access control and limits; Prometheus metrics.
//! - `command`: options of all commands, text on a terminal (feature `command`).
//! - `privilege`: rights that a process gives up (feature `privilege`, Linux).
//! - `tls`: a verifier that accepts any certificate (feature `tls`).
//! - [`clock`]: the clocks of the host, in nanoseconds.
//! - [`thread`]: threads that stop when their owner is dropped; locks.
//! - [`net`]: addresses of hosts. [`files`]: what may be served, and secrets.
//! - [`Attempt`]: errors of the system that name what was attempted.
//!
//! It depends on the cores alone, so that a program that needs no diagnosis, such as
//! `airmile qcut`, does not carry the facade.

mod attempt;
pub mod clock;
#[cfg(feature = "command")]
pub mod command;
pub mod files;
pub mod format;
pub mod http;
#[cfg(target_os = "linux")]
pub mod interface;
pub mod net;
#[cfg(all(feature = "privilege", target_os = "linux"))]
pub mod privilege;
pub mod source;
pub mod thread;
#[cfg(feature = "tls")]
pub mod tls;

pub use attempt::{Attempt, SystemError};
