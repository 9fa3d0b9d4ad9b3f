//! Arguments of `lab`.

#[cfg(feature = "network")]
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::whole;

/// Arguments of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the scenarios
    #[command(after_help = "Examples:
  airmile lab list
  airmile lab list --json | jq -r '.scenarios[].name'")]
    List,
    /// Run a scenario: writes a modem log, captures, tables and the truth
    #[command(after_help = "Examples:
  airmile lab run busy-video -o run
  airmile lab run my-cell.toml --seed 7 -o run
  airmile diagnose run --html report.html

docs/lab.md describes scenario files, and every file and column of a run.
Exit status 3: no such scenario or file, a scenario that cannot be run, or a directory that is
not empty.")]
    Run(LabRunArgs),
    #[cfg(feature = "network")]
    /// Run a command as the phone, in real time: real TCP, real programs (Linux)
    #[command(
        after_help = "The server is at $AIRMILE_SERVER (203.0.113.1), the phone at $AIRMILE_PHONE (10.0.0.2).
With -o its modem log grows at $AIRMILE_MODEM_LOG. Without a command: $SHELL. Needs root or user
namespaces, and /dev/net/tun. The exit status is the command's; 5 if that is 0 and TTIs were late.

Examples:
  airmile lab shell busy-video --serve videos -- curl -o /dev/null http://203.0.113.1/a.mp4
  airmile lab shell idle --server 'iperf3 -s' -o run -- iperf3 -c 203.0.113.1 -R
  airmile lab shell busy-video --serve videos -- sh -c 'curl -sO $AIRMILE_URL/a.mp4'
  airmile lab shell busy-video --serve video -o run -- lab/player/play.mjs
  airmile diagnose run"
    )]
    Shell(LabShellArgs),
    #[cfg(feature = "network")]
    /// The first process of a command run by `shell`
    #[command(hide = true)]
    Inside(LabInsideArgs),
    /// Repeat tables and figures of papers, with the papers' values for comparison
    #[command(after_help = "Examples:
  airmile lab reproduce --list
  airmile lab reproduce bursttracker-table1
  airmile lab reproduce qcut              all of a paper
  airmile lab reproduce --full -o results

Exit status: 1 a bar was missed (not with --quick), 5 a run in real time was late, 6 an experiment
failed.")]
    Reproduce(LabReproduceArgs),
}

/// Arguments of `lab run`.
#[derive(Debug, Clone, Args)]
pub struct LabRunArgs {
    /// The scenario's name, or a scenario file (docs/lab.md)
    #[arg(value_name = "NAME|FILE.toml")]
    pub scenario: String,
    /// Where to write the results: a new or empty directory
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace an earlier run in the directory
    #[arg(long)]
    pub force: bool,
    /// A seed instead of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: Option<u64>,
}

/// Arguments of `lab shell`.
#[cfg(feature = "network")]
#[derive(Debug, Clone, Args)]
pub struct LabShellArgs {
    /// The scenario's name, or a scenario file (docs/schema/scenario.json)
    #[arg(value_name = "NAME|FILE.toml")]
    pub scenario: String,
    /// Write the results to this new or empty directory
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an earlier run in the directory
    #[arg(long, requires = "output")]
    pub force: bool,
    /// A seed instead of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: Option<u64>,
    /// Serve this directory over HTTP/1.1 on port 80 and on each port of the middlebox
    #[arg(long, value_name = "DIR")]
    pub serve: Option<PathBuf>,
    /// Also serve it on this port
    #[arg(long, value_name = "PORT", requires = "serve")]
    pub serve_port: Vec<u16>,
    /// Run this command in the server's namespace, and wait until it listens
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// The modem marks ECN-capable packets (CE) that waited this much longer than the shortest uplink
    #[arg(long, value_name = "MS", value_parser = positive_ms)]
    pub mark_uplink_above_ms: Option<f64>,
    /// The run is invalid if the 99th percentile of TTI lateness exceeds this
    #[arg(long, value_name = "MS", default_value = "1", value_parser = positive_ms)]
    pub late_limit_ms: f64,
    /// End when the parent process ends
    #[arg(long, hide = true)]
    pub dies_with_parent: bool,
    /// The command to run as the phone
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `lab inside`, which waits until all processes have ended, and ends if a thread has.
#[cfg(feature = "network")]
#[derive(Debug, Clone, Args)]
pub struct LabInsideArgs {
    #[arg(long)]
    pub linger: bool,
    #[arg(long)]
    pub parent: Option<String>,
    /// The command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[cfg(feature = "network")]
fn positive_ms(text: &str) -> Result<f64, String> {
    let ms = text.parse().ok().filter(|ms: &f64| *ms > 0.0 && *ms <= 60_000.0);
    ms.ok_or_else(|| "give ms above 0, and at most 60000".into())
}

/// Arguments of `lab reproduce`.
#[derive(Debug, Clone, Args)]
pub struct LabReproduceArgs {
    /// Experiments, or a prefix of their names (a paper's); all by default
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// List the experiments
    #[arg(long)]
    pub list: bool,
    /// The papers' number of runs; takes hours
    #[arg(long)]
    pub full: bool,
    /// One short run of each: shows only that it works
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Write rows (Parquet, CSV, JSON) and figures to this directory after each experiment
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an earlier reproduction in the directory
    #[arg(long, requires = "output")]
    pub force: bool,
}
