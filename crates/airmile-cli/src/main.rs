//! The `airmile` program, a wrapper of the library in this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    airmile_cli::run(std::env::args_os()).into()
}
