//! The `airmile` program; all of it is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    airmile_cli::run(std::env::args_os()).into()
}
