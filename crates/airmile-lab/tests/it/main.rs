//! A single binary for all integration tests, with one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests: helpers too"
)]

mod documents;
mod lab;
mod nr;
mod uploads;
