//! QCut on a Linux host or router: connects the core of [`airmile_control::qcut`] to the
//! kernel in one of three ways ([`Deploy`]).
//!
//! ```text
//!  nfqueue   hosts ── routing, NAT ── rule ── kernel's queue ⇄ gate ── qdisc ── modem
//!  tun       hosts ── rule ── TUN ── gate ── raw socket ── qdisc ── modem
//!  htb       hosts ── routing, NAT ── HTB, its rate by netlink ── modem
//! ```
//!
//! - [`run()`]: a deployment, until it is asked to end.
//! - [`check()`]: what this machine has for each deployment, by name.
//! - [`guard()`]: the process that restores the system, however the instance ended.
//! - [`restore()`]: the same by hand, if the guard was killed, too.
//! - [`watch`]: shows the status of a running instance.
//! - [`args`] and [`command`]: the command, shared by `airmile qcut` and by this crate's program
//!   `airmile-qcut`, which is small enough for a router.
//!
//! Each change of the system is written to a file before it is made; the guard undoes the
//! changes in reverse order when the pipe from the instance closes. This is the only way
//! back, so the result is the same after a normal end, a signal, a panic and `kill -9`.

pub mod args;
#[cfg(target_os = "linux")]
mod check;
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
mod kernel;
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
mod publish;
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
mod waiting;
#[cfg(target_os = "linux")]
pub mod watch;

/// Why there is nothing to run elsewhere.
pub const NEEDS_LINUX: &str =
    "keeping an uplink short needs Linux: NFQUEUE, HTB and TUN devices are its own";

#[cfg(target_os = "linux")]
pub use check::{CheckReport, DeployCheck, ModemCheck, check, choose_deploy};
#[cfg(target_os = "linux")]
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use guard::{Restored, guard, restore};
#[cfg(target_os = "linux")]
pub use instance::{Instance, instances};
pub use options::{Deploy, Options, ProbeTo, PublishTo};
#[cfg(target_os = "linux")]
pub use run::{Summary, run};
