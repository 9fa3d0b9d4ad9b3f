//! The program `airmile-qcut` as its users start it.
#![cfg(target_os = "linux")]

mod program;
