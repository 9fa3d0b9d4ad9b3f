//! The program `airmile-qcut` as its users start it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod program;
