//! The `airmile` command: parses arguments and prints the library's results.
//!
//! Results go to standard output, progress and warnings to standard error. Exit status: 0 done, 1 a
//! budget was exceeded, 2 usage, 3 could not run, 4 done but the input was damaged, 5 a run in real
//! time was late, 6 an experiment failed, 7 a budget could not be evaluated.

mod args;
mod budget;
mod commands;
mod output;
mod progress;
mod table;

use std::ffi::OsString;
use std::io::Write;

use airmile::Error;
use clap::Parser;

use args::{Cli, Command};

/// Results as the command prints them; the last argument of some functions selects all that `-v`
/// shows.
pub mod text {
    pub use crate::commands::compare::text as compare;
    pub use crate::commands::diagnose::text as diagnose;
    pub use crate::commands::inspect::text as inspect;
    pub use crate::commands::lab::{run_text as lab_run, text as lab_reproduce};
    pub use crate::commands::packets::text as packets;
    pub use crate::commands::radio::text as radio;
    pub use crate::commands::scrub::text as scrub;
}

/// What a build without the feature `network` says of a command that it does not know.
#[cfg(not(feature = "network"))]
const WITHOUT_NETWORK: &str = "this build has no `live`, `record`, `probe`, `claw`, `qcut` and \
                               `lab shell` (feature `network`); `make build` has them";

/// Runs the command with its arguments, the first of which is its own name, and returns the exit
/// status. The program and the Python package both call this.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let status = match Cli::try_parse_from(args) {
        Ok(cli) => run_parsed(&cli),
        Err(printed) => {
            // Help and version come here, too. A failure to print them cannot be reported.
            let _ = printed.print();
            #[cfg(not(feature = "network"))]
            if printed.kind() == clap::error::ErrorKind::InvalidSubcommand {
                output::notice(WITHOUT_NETWORK);
            }
            u8::try_from(printed.exit_code()).unwrap_or(2)
        }
    };
    // Inside another program nothing else flushes at the end.
    let _ = std::io::stdout().flush();
    status
}

fn run_parsed(cli: &Cli) -> u8 {
    let outcome = match &cli.command {
        Command::Inspect(args) => commands::inspect::run(&cli.global, args),
        Command::Decode(args) => commands::decode::run(&cli.global, args),
        Command::Radio(args) => commands::radio::run(&cli.global, args),
        Command::Diagnose(args) => commands::diagnose::run(&cli.global, args),
        Command::Compare(args) => commands::compare::run(&cli.global, args),
        #[cfg(feature = "network")]
        Command::Probe(command) => commands::probe::run(&cli.global, command),
        Command::Packets(args) => commands::packets::run(&cli.global, args),
        Command::Scrub(args) => commands::scrub::run(&cli.global, args),
        #[cfg(feature = "network")]
        Command::Claw(command) => commands::claw::run(&cli.global, command),
        #[cfg(feature = "network")]
        Command::Record(args) => commands::record::run(&cli.global, args),
        #[cfg(feature = "network")]
        Command::Live(args) => commands::live::run(&cli.global, args),
        #[cfg(feature = "network")]
        Command::Qcut(command) => commands::qcut::run(&cli.global, command),
        Command::Lab(args) => commands::lab::run(&cli.global, args),
        Command::Completions { shell } => commands::manual::completions(*shell),
        Command::Man { dir } => commands::manual::pages(dir),
    };
    match outcome {
        Ok(outcome) => outcome.code(),
        Err(error) => {
            // A reader that has closed early (`| head`) is no failure.
            if is_broken_pipe(&error) {
                return 0;
            }
            output::error(&error);
            if is_usage(&error) { 2 } else { 3 }
        }
    }
}

/// Whether other arguments would avoid an error.
fn is_usage(error: &anyhow::Error) -> bool {
    #[cfg(feature = "network")]
    {
        use airmile_host::http::HttpError;
        let of_server = error.downcast_ref::<HttpError>();
        if matches!(of_server, Some(HttpError::NoToken(_) | HttpError::WeakToken)) {
            return true;
        }
    }
    matches!(error.downcast_ref::<Error>(), Some(Error::Option(_) | Error::NoScenario { .. }))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done.
    Done,
    /// A budget was exceeded.
    OverBudget,
    /// A budget depends on an absent value.
    BudgetNotEvaluable,
    /// There was nothing to read.
    NothingRead,
    /// Done, but the input was damaged.
    Damaged,
    /// The status of a program that was run.
    Status(u8),
}

impl Outcome {
    /// Done, or damaged.
    const fn of(damaged: bool) -> Self {
        if damaged { Self::Damaged } else { Self::Done }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::OverBudget => 1,
            Self::NothingRead => 3,
            Self::Damaged => 4,
            Self::BudgetNotEvaluable => 7,
            Self::Status(status) => status,
        }
    }
}
