//! The lab in real time: the emulated cell between real hosts.
//!
//! ```text
//!  namespace "phone"        this process         namespace "server"
//!   command ── lte0 ══ TUN ══ cell, core ══ TUN ══ core0 ── server
//! ```
//!
//! Each host is a network namespace with a TUN device, whose other end is in this process.
//! A thread wakes at the start of each TTI by an absolute clock (`engine`), reads the
//! hosts' packets, lets [`airmile_emulate::Bridge`] simulate the TTI, and writes the
//! packets that have arrived. A middlebox of the scenario is a namespace between, in which
//! the kernel's TCP terminates connections and opens others (`split`).
//!
//! Nothing has a name outside of the process: namespaces are held by threads and commands,
//! and commands run in a PID namespace whose first process dies with this one
//! ([`inside()`]). However a run ends, nothing is left behind.

#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod events;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod lateness;
#[cfg(target_os = "linux")]
mod marking;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod privilege;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod senders;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(target_os = "linux")]
mod split;

#[cfg(target_os = "linux")]
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use hosts::RealHosts;
#[cfg(target_os = "linux")]
pub use inside::inside;
#[cfg(target_os = "linux")]
pub use shell::{Ended, Shell, shell};
