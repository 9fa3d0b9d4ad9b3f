//! One binary for all integration tests of the crate: a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests: helpers too"
)]

mod clock;
mod messages;
mod modern;
mod nr_contents;
mod nr_segments;
mod reference;
mod stream;
mod text;
mod trust;
mod versions;
