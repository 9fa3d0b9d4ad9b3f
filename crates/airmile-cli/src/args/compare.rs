//! What can be said of `compare`.

use std::path::PathBuf;

use airmile::{CompareOptions, GroupBy, RadioOptions};
use clap::{Args, ValueEnum};

use super::whole;

/// How transfers are put into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareBy {
    /// By port where there are several, else by run
    Auto,
    /// By the server's port, over all runs
    Port,
    /// By run
    Run,
}

/// Arguments of `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Runs: directories, or files
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// What is held against each other
    #[arg(long, value_enum, default_value_t = CompareBy::Auto)]
    pub by: CompareBy,
    /// Only these server ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// What intervals and tests are drawn from
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: u64,
}

impl CompareArgs {
    /// As the facade takes them.
    pub fn options(&self) -> CompareOptions {
        let by = match self.by {
            CompareBy::Auto => GroupBy::Auto,
            CompareBy::Port => GroupBy::Port,
            CompareBy::Run => GroupBy::Run,
        };
        let ports = self.ports.clone();
        CompareOptions { by, ports, seed: self.seed, radio: RadioOptions::default() }
    }
}
