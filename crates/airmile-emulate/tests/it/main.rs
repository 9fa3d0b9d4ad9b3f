//! A single binary for all integration tests, with one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests: helpers too"
)]

mod hosts;
mod library;
mod nr;
mod properties;
mod quic;
mod simulation;
mod standards;
mod support;
mod tcp;
mod tcp_segments;
mod uplink_queue;
mod wire;
mod workload;
