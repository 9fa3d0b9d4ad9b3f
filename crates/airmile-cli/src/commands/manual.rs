//! `airmile completions` and `airmile man`: generated from the arguments.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

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
    // A page has the version in one line.
    let mut command = Cli::command().disable_help_subcommand(true).long_version(None);
    command.build();
    page(&command, dir)?;
    Ok(Outcome::Done)
}

/// The page of a command and those of its subcommands.
fn page(command: &Command, dir: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        page(subcommand, dir)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(airmile::write_whole(&dir.join(page.get_filename()), &text)?)
}
