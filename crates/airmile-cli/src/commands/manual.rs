//! `airmile completions` and `airmile man`: generated from the arguments.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::Outcome;
use crate::args::Cli;
use crate::output;

/// The subcommands of `lab` that take a scenario.
const WITH_SCENARIO: [&str; 2] = ["run", "shell"];

/// Prints a shell's completions, with the names of the lab's scenarios: `clap_complete` offers no
/// values of positional arguments.
pub fn completions(shell: Shell) -> Result<Outcome> {
    let names: Vec<&str> = airmile_lab::scenarios().iter().map(|one| one.name).collect();
    let names = names.join(" ");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "airmile", &mut script);
    let script = String::from_utf8(script)?;
    output::print(&match shell {
        Shell::Bash => bash_scenarios(&script, &names),
        Shell::Zsh => zsh_scenarios(&script, &names),
        Shell::Fish => script + &fish_scenarios(&names),
        _ => script,
    })?;
    Ok(Outcome::Done)
}

/// Bash offers the words of a command's `opts`, and files where none fits.
fn bash_scenarios(script: &str, names: &str) -> String {
    let of_lab = |line: &str| {
        WITH_SCENARIO
            .iter()
            .any(|name| line.ends_with(&format!("airmile__subcmd__lab__subcmd__{name})")))
    };
    let mut in_lab = false;
    let lines = script.lines().map(|line| {
        let is_words = std::mem::replace(&mut in_lab, of_lab(line));
        match line.strip_suffix('"').filter(|_| is_words) {
            Some(words) => format!("{words} {names}\"\n"),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// Zsh offers what the action of an argument gives: names, or files.
fn zsh_scenarios(script: &str, names: &str) -> String {
    let action = format!(
        ":{{_alternative \"scenarios:scenario:({names})\" \"files:file:_files -g \\\"*.toml\\\"\"}}' \\"
    );
    let lines = script.lines().map(|line| match line.strip_suffix(":_default' \\") {
        Some(argument) if argument.starts_with("':scenario -- ") => format!("{argument}{action}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Fish offers the words of all lines whose condition holds.
fn fish_scenarios(names: &str) -> String {
    let of = |name: &str| {
        format!(
            "complete -c airmile -n \"__fish_airmile_using_subcommand lab; and \
             __fish_seen_subcommand_from {name}\" -a \"{names}\"\n"
        )
    };
    WITH_SCENARIO.iter().map(|name| of(name)).collect()
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
