//! Arguments of `airmile qcut` and of the program `airmile-qcut`, which are the same.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use airmile_control::qcut::Limit;
use airmile_host::command::seconds;
use clap::{Args, Subcommand, ValueEnum};

use crate::options::{Deploy, ProbeTo, PublishTo};

/// Arguments of `qcut`.
#[derive(Debug, Subcommand)]
pub enum QcutCommand {
    /// Keep the uplink queue of an interface short until Ctrl-C, then restore the interface
    #[command(after_help = "Examples:
  sudo airmile qcut run --up wwan0 --modem /dev/ttyUSB0
  sudo airmile qcut run --up wwan0 --limit 5KB --metrics 127.0.0.1:9478
  sudo airmile qcut run --up eth1 --deploy htb --urgent-port 22,5060
  sudo airmile qcut run --up wwan0 --deploy none --publish file:/run/airmile/uplink.json
  airmile lab shell busy-video -o run -- sh -c 'airmile qcut run --up lte0 --modem $AIRMILE_MODEM_LOG'

Without --modem, round trips of TCP show how much the modem holds, which is less exact.
Needs CAP_NET_ADMIN and CAP_NET_RAW (root).
All changes are undone when it ends, even after `kill -9`: docs/qcut.md.")]
    Run(QcutRunArgs),
    /// Check what this machine has for each deployment, and name what is missing; changes nothing
    #[command(after_help = "Examples:
  sudo airmile qcut check --up wwan0
  sudo airmile qcut check --up wwan0 --modem /dev/ttyUSB0 --json | jq .auto

Exit status: 0 the deployment of --deploy works, 3 it does not.")]
    Check(QcutCheckArgs),
    /// Show what a running instance holds, sends and drops, by class
    #[command(after_help = "Examples:
  airmile qcut watch
  airmile qcut watch --up wwan0 --json | jq .occupancy_bytes
  AIRMILE_TOKEN=... airmile qcut watch --metrics 192.168.1.1:9478")]
    Watch(QcutWatchArgs),
    /// Undo what an instance left behind, even if its guard process was killed
    #[command(after_help = "Examples:
  sudo airmile qcut restore --up wwan0")]
    Restore(QcutInterfaceArgs),
    /// The process that undoes the changes when `run` ends
    #[command(hide = true)]
    Guard(QcutInterfaceArgs),
}

/// An interface.
#[derive(Debug, Clone, Args)]
pub struct QcutInterfaceArgs {
    /// The interface of the uplink
    #[arg(long, value_name = "IFACE")]
    pub up: String,
}

/// How packets are classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClassifyArg {
    /// Ports 53 and 853 go first
    Dns,
    /// Acknowledgements without data go first
    Acks,
    /// By the sender's DSCP
    Dscp,
    /// Not at all
    None,
}

/// Arguments of `qcut run`.
#[derive(Debug, Clone, Args)]
pub struct QcutRunArgs {
    /// The interface of the uplink
    #[arg(long, value_name = "IFACE")]
    pub up: String,
    /// The modem's log: a DIAG port (/dev/ttyUSB0), `qrtr`, `auto` (searched for), a growing log,
    /// or - for standard input
    #[arg(long, value_name = "PATH|qrtr|auto")]
    pub modem: Option<PathBuf>,
    /// Maximum that the modem holds: what leaves in a time (20ms), or bytes (5KB, 20KB)
    #[arg(long, value_name = "LIMIT", default_value = "20ms")]
    pub limit: Limit,
    /// How packets are held
    #[arg(long, value_enum, default_value = "nfqueue")]
    pub deploy: Deploy,
    /// How packets are classified, comma separated
    #[arg(long, value_enum, value_delimiter = ',', default_value = "dns,acks,dscp")]
    pub classify: Vec<ClassifyArg>,
    /// Remote ports whose packets go first, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub urgent_port: Vec<u16>,
    /// Remote ports whose packets go last
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub background_port: Vec<u16>,
    /// Serve /metrics (Prometheus) and /v1/status (JSON) on this address; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub metrics: SocketAddr,
    /// Require this file's token (default: $AIRMILE_TOKEN); needed if --metrics is not loopback
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// End after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// The host to ping while no TCP flows, at most every 200 ms: auto (the last packet's
    /// destination), off, or an address
    #[arg(long, value_name = "HOST", default_value = "auto")]
    pub probe: ProbeTo,
    /// Publish rate and queue for other programs: file:PATH, ubus, or mqtt://HOST:PORT/TOPIC;
    /// may be given several times
    #[arg(long, value_name = "TARGET")]
    pub publish: Vec<PublishTo>,
}

/// Arguments of `qcut check`.
#[derive(Debug, Clone, Args)]
pub struct QcutCheckArgs {
    /// The interface of the uplink
    #[arg(long, value_name = "IFACE")]
    pub up: String,
    /// The modem's log as for `run`, which is read for 3 seconds
    #[arg(long, value_name = "PATH|qrtr|auto")]
    pub modem: Option<PathBuf>,
    /// The deployment that must work for status 0
    #[arg(long, value_enum, default_value = "auto")]
    pub deploy: Deploy,
}

/// Arguments of `qcut watch`.
#[derive(Debug, Clone, Args)]
pub struct QcutWatchArgs {
    /// The interface; required if several instances run
    #[arg(long, value_name = "IFACE")]
    pub up: Option<String>,
    /// The metrics address of an instance
    #[arg(long, value_name = "ADDRESS", conflicts_with = "up")]
    pub metrics: Option<SocketAddr>,
    /// The file of its token (default: $AIRMILE_TOKEN)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print lines instead of the view, even on a terminal
    #[arg(long)]
    pub lines: bool,
}
