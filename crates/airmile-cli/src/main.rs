//! The `airmile` command: arguments in, the facade's answers out.
//!
//! Results go to standard output, progress and warnings to standard error.
//! Exit status: 0 done, 1 a budget was exceeded, 2 usage, 3 could not run,
//! 4 done, but the input was damaged.

mod args;
mod commands;
mod output;
mod progress;

use std::process::ExitCode;

use airmile::Error;
use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Inspect(args) => commands::inspect::run(&cli.global, args),
        Command::Decode(args) => commands::decode::run(&cli.global, args),
        Command::Radio(args) => commands::radio::run(&cli.global, args),
        Command::Diagnose(args) => commands::diagnose::run(&cli.global, args),
        Command::Lab(args) => commands::lab::run(&cli.global, args),
    };
    match outcome {
        Ok(outcome) => outcome.code(),
        Err(error) => {
            // A reader that has seen enough (`| head`) is no failure.
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            output::error(&error);
            match error.downcast_ref::<Error>() {
                Some(Error::Option(_)) => ExitCode::from(2),
                _ => ExitCode::from(3),
            }
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// How a command ended, where it could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// A stated budget was exceeded.
    OverBudget,
    /// Done, but the input was damaged.
    Damaged,
}

impl Outcome {
    /// Done, or damaged.
    const fn of(damaged: bool) -> Self {
        if damaged { Self::Damaged } else { Self::Done }
    }

    fn code(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::OverBudget => ExitCode::from(1),
            Self::Damaged => ExitCode::from(4),
        }
    }
}
