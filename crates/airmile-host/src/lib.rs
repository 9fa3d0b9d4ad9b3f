//! Functions common to the programs that run on a host.
//!
//! - [`source`]: sources of bytes: a modem's port, a growing file, standard input, a
//!   network interface. Each source has its own thread.
//! - [`interface`]: captures packets of a network interface (Linux).
//! - `http`: an HTTP server with access control and limits; Prometheus metrics (feature `server`).
//! - `command`: options of all commands, text on a terminal (feature `command`).
//! - `privilege`: rights that a process gives up (feature `privilege`, Linux).
//! - `tls`: a verifier that accepts any certificate (feature `tls`).
//! - [`clock`]: the clocks of the host, in nanoseconds.
//! - [`thread`]: threads that stop when their owner is dropped; locks. `async_thread`: the same
//!   with a runtime (feature `server`).
//! - [`net`]: addresses of hosts. [`files`]: what may be served, and secrets.
//! - [`Attempt`]: errors of the system that name what was attempted.
//!
//! It depends only on the cores, so that a program without diagnosis, such as `airmile
//! qcut`, does not link the facade.

#[cfg(feature = "server")]
pub mod async_thread;
mod attempt;
pub mod clock;
#[cfg(feature = "command")]
pub mod command;
pub mod files;
pub mod format;
#[cfg(feature = "server")]
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
