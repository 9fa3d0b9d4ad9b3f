//! Live edges: a modem's port, a growing file or standard input go in; a
//! terminal view, lines, and an HTTP interface come out. What is said comes
//! from [`airmile::live`], the same engine as for files.
//!
//! - [`source`]: where bytes come from; each source is a thread of its own.
//! - [`port`]: a modem's serial DIAG port.
//! - [`engine`]: the thread that feeds the engine, and tells what is new.
//! - [`server`]: HTTP: Prometheus metrics, JSON, server-sent events, a page.
//! - `interface`: what passes a network interface, as a capture (Linux).
//! - [`terminal`]: the view on a terminal.
//!
//! Nobody who watches can hold the engine up: it publishes a snapshot that
//! replaces the one before, and events into a ring that slow readers fall out of.

pub mod engine;
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(target_os = "linux")]
mod passing;
pub mod port;
pub mod server;
pub mod snapshot;
pub mod source;
pub mod terminal;
