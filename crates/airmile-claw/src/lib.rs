//! CLAW between real hosts (MobiSys 2017): a phone's modem log controls a server's
//! congestion window.
//!
//! - [`server`]: files over HTTP/3, with the core as QUIC's congestion controller.
//! - [`agent`]: the phone's side: converts a live modem log to reports ([`live_cell`]), sent over UDP.
//! - [`client`]: fetches over HTTP/3 with reports on the same connection.
//! - [`listener`]: receives reports over UDP, for any of the servers.
//! - [`kernel`]: CLAW in the kernel's TCP, for servers that cannot be modified (feature `bpf`).
//!
//! All decisions are made in `airmile_control::claw`; this crate adds sockets and clocks.

pub mod agent;
pub mod client;
mod controller;
mod error;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod keys;
pub mod listener;
pub mod live_cell;
mod peers;
pub mod server;
#[cfg(target_os = "linux")]
mod signals;
mod tls;

pub use airmile_control::claw::OperatorLimits;
pub use airmile_control::claw::feedback::FeedbackReport;
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use signals::Signals;
