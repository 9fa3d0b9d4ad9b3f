//! One binary for all integration tests of the crate, with one module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests: helpers too"
)]

mod application;
mod blind;
mod causes;
mod clocks;
mod common;
mod compare;
mod confidence;
mod curves;
mod detected;
mod documents;
mod en_dc;
mod figures;
mod given_to_packets;
mod live;
mod live_packets;
mod modern;
mod nr_handover;
mod outside;
mod packets;
mod page;
mod page_loads;
mod page_set;
mod pieces;
mod real_logs;
mod report;
mod scrub;
mod several;
mod study;
mod uploads;
mod wording;
