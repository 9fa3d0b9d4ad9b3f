//! The `airmile` program, a wrapper of the library in this crate.

use std::process::ExitCode;

/// The released command is linked with musl, whose own allocator takes more than a third of the time of a
/// study of short flows (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    airmile_cli::run(std::env::args_os()).into()
}
