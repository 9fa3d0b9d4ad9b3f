//! `airmile completions` and `airmile man`: made from the arguments themselves.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;
use crate::args::Cli;
use crate::output;

/// Prints a shell's completions.
pub fn completions(shell: Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "airmile", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(Outcome::Done)
}

/// Writes a page for each command.
pub fn pages(dir: &Path) -> Result<Outcome> {
    let fail = || format!("{}: cannot write the manual", dir.display());
    std::fs::create_dir_all(dir).with_context(fail)?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(fail)?;
    Ok(Outcome::Done)
}
