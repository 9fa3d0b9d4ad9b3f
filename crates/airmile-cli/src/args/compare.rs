//! Arguments of `compare`.

use std::path::PathBuf;

use airmile::{CompareOptions, GroupBy, RadioOptions};
use clap::{Args, ValueEnum};

use super::{BudgetArgs, LimitArgs, whole};

/// How transfers are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareBy {
    /// By port if there are several, else by run
    Auto,
    /// By server port, across all runs
    Port,
    /// By run
    Run,
}

/// Arguments of `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Runs: directories or files
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// What the groups are
    #[arg(long, value_enum, default_value_t = CompareBy::Auto)]
    pub by: CompareBy,
    /// Only these server ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// Seed for intervals and tests
    #[arg(long, value_name = "N", default_value_t = CompareOptions::SEED, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: u64,
    /// Limits on the time, of each run.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

impl CompareArgs {
    /// Returns the options of the library.
    pub fn options(&self) -> CompareOptions {
        let by = match self.by {
            CompareBy::Auto => GroupBy::Auto,
            CompareBy::Port => GroupBy::Port,
            CompareBy::Run => GroupBy::Run,
        };
        let ports = self.ports.clone();
        let radio = RadioOptions { limits: self.limits.into(), ..RadioOptions::default() };
        CompareOptions { by, ports, seed: self.seed, radio }
    }
}
