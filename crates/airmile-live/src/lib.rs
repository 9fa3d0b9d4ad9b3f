//! Live edges: a modem's port, a growing file or standard input go in
//! ([`airmile_host::source`]); a terminal view, lines, and an HTTP interface come out.
//! Diagnoses come from [`airmile::live`], the same engine as for files.
//!
//! - [`engine`]: the thread that feeds the engine, and publishes what is new.
//! - [`record`]: what comes into files, closed one after the other.
//! - [`server`]: HTTP: Prometheus metrics, JSON, server-sent events, a page.
//! - [`terminal`]: the view on a terminal.
//!
//! Nobody who watches can hold the engine up: it publishes a snapshot that
//! replaces the one before, and events into a ring that slow readers fall out of.

pub mod engine;
pub mod record;
pub mod server;
pub mod snapshot;
pub mod terminal;
