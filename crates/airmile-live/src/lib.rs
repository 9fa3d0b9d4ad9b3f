//! Live operation: a modem's port, a growing file or standard input as input
//! ([`airmile_host::source`]); a terminal view, lines, and an HTTP interface as output.
//! Diagnoses come from [`airmile::live`], the same engine as for files.
//!
//! - [`engine`]: the thread that feeds the engine, and publishes events.
//! - [`record`]: records the input into rotated files.
//! - [`server`]: HTTP: Prometheus metrics, JSON, server-sent events, a page.
//! - [`terminal`]: the view on a terminal.
//!
//! Readers cannot block the engine: it publishes a snapshot that replaces the previous
//! one, and events into a ring buffer that drops slow readers.

pub mod engine;
mod published;
pub mod record;
pub mod server;
pub mod snapshot;
pub mod terminal;
mod unlike;
