//! One binary for all integration tests of the crate, with one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests: helpers too"
)]

mod air_packets;
mod application;
mod budgets;
mod claw;
mod command;
mod inputs;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(unix)]
mod live;
mod manual;
mod options;
mod outputs;
#[cfg(target_os = "linux")]
mod privileges;
mod probe;
#[cfg(target_os = "linux")]
mod realtime;
mod same_output;
mod study;
#[cfg(target_os = "linux")]
mod terminal;
mod trust;
mod tutorials;
