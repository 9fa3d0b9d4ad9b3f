//! QCut on a Linux host or router: the core of [`airmile_control::qcut`] joined to
//! the kernel, in one of three ways ([`Deploy`]).
//!
//! ```text
//!  nfqueue   hosts ── routing, NAT ── rule ── kernel's queue ⇄ gate ── qdisc ── modem
//!  tun       hosts ── rule ── TUN ── gate ── raw socket ── qdisc ── modem
//!  htb       hosts ── routing, NAT ── HTB, its rate by netlink ── modem
//! ```
//!
//! - [`run()`]: a deployment until it is told to end.
//! - [`guard()`]: the process that puts things back, however that one ended.
//! - [`restore()`]: the same by hand, where the guard was ended, too.
//! - [`watch`]: what a running instance tells.
//! - [`args`] and [`command`]: the command, for `airmile qcut` and for the program
//!   `airmile-qcut` of this crate, which is small enough for a router.
//!
//! Each change of the system is written to a file before it is made; the guard
//! undoes them, the last first, when the pipe from the instance closes. There is
//! no other way back, so that it is the same after the end, a signal, a panic and
//! `kill -9`.

pub mod args;
#[cfg(target_os = "linux")]
pub mod command;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod firewall;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod header;
#[cfg(target_os = "linux")]
mod instance;
#[cfg(target_os = "linux")]
mod modem;
#[cfg(target_os = "linux")]
mod netlink;
mod options;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod shaper;
#[cfg(target_os = "linux")]
pub mod status;
#[cfg(target_os = "linux")]
mod tap;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(all(feature = "view", target_os = "linux"))]
mod view;
#[cfg(target_os = "linux")]
pub mod watch;

/// Why there is nothing to run elsewhere.
pub const NEEDS_LINUX: &str =
    "keeping an uplink short needs Linux: NFQUEUE, HTB and TUN devices are its own";

#[cfg(target_os = "linux")]
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use guard::{Restored, guard, restore};
#[cfg(target_os = "linux")]
pub use instance::{Instance, instances};
pub use options::{Deploy, Options, ProbeTo};
#[cfg(target_os = "linux")]
pub use run::{Summary, run};
