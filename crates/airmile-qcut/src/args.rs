//! Arguments of `airmile qcut` and of `airmile-qcut`, which are the same.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use airmile_control::qcut::Limit;
use airmile_host::command::seconds;
use clap::{Args, Subcommand, ValueEnum};

use crate::options::{Deploy, ProbeTo};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum QcutCommand {
    /// Keep the uplink of an interface short, until Ctrl-C; then all is as before
    #[command(after_help = "Examples:
  sudo airmile qcut run --up wwan0 --modem /dev/ttyUSB0
  sudo airmile qcut run --up wwan0 --limit 5KB --metrics 127.0.0.1:9478
  sudo airmile qcut run --up eth1 --deploy htb --urgent-port 22,5060
  airmile lab shell busy-video -o run -- sh -c 'airmile qcut run --up lte0 --modem $AIRMILE_MODEM_LOG'

Without --modem round trips of the TCP that passes tell how much the modem holds; it
helps there, too, and is less exact. It needs CAP_NET_ADMIN and CAP_NET_RAW (root).
What it changes is put back when it ends, also after `kill -9`: docs/qcut.md.")]
    Run(QcutRunArgs),
    /// What a running instance holds, sends and drops, by class
    #[command(after_help = "Examples:
  airmile qcut watch
  airmile qcut watch --up wwan0 --json | jq .occupancy_bytes
  AIRMILE_TOKEN=... airmile qcut watch --metrics 192.168.1.1:9478")]
    Watch(QcutWatchArgs),
    /// Put back what an instance has left behind, where its guard was ended, too
    #[command(after_help = "Examples:
  sudo airmile qcut restore --up wwan0")]
    Restore(QcutInterfaceArgs),
    /// The process that puts things back when `run` ends
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

/// By what packets are classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClassifyArg {
    /// Ports 53 and 853 go first
    Dns,
    /// Acknowledgements without data go first
    Acks,
    /// The sender's DSCP counts
    Dscp,
    /// Nothing does
    None,
}

/// Arguments of `run`.
#[derive(Debug, Clone, Args)]
pub struct QcutRunArgs {
    /// The interface of the uplink
    #[arg(long, value_name = "IFACE")]
    pub up: String,
    /// The modem's log: a DIAG port (/dev/ttyUSB0), a log that grows, or - for standard input
    #[arg(long, value_name = "SOURCE")]
    pub modem: Option<PathBuf>,
    /// What the modem may hold: 20ms of its rate, or bytes as 5KB, 20KB
    #[arg(long, value_name = "LIMIT", default_value = "20ms")]
    pub limit: Limit,
    /// The way packets are held
    #[arg(long, value_enum, default_value = "nfqueue")]
    pub deploy: Deploy,
    /// By what packets are told apart, comma separated
    #[arg(long, value_enum, value_delimiter = ',', default_value = "dns,acks,dscp")]
    pub classify: Vec<ClassifyArg>,
    /// Ports at the other end that go first, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub urgent_port: Vec<u16>,
    /// Ports at the other end that go last
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub background_port: Vec<u16>,
    /// Serve /metrics (Prometheus) and /v1/status (JSON) there; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub metrics: SocketAddr,
    /// Ask for this file's token ($AIRMILE_TOKEN otherwise); needed where --metrics is not loopback
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// End after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Whom to ping where no TCP passes, at most each 200 ms: auto (whom the last packet was for), off, or an address
    #[arg(long, value_name = "HOST", default_value = "auto")]
    pub probe: ProbeTo,
}

/// Arguments of `watch`.
#[derive(Debug, Clone, Args)]
pub struct QcutWatchArgs {
    /// The interface, where several instances run
    #[arg(long, value_name = "IFACE")]
    pub up: Option<String>,
    /// An instance by the address of its metrics
    #[arg(long, value_name = "ADDRESS", conflicts_with = "up")]
    pub metrics: Option<SocketAddr>,
    /// Its token's file ($AIRMILE_TOKEN otherwise)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Lines instead of the view, on a terminal too
    #[arg(long)]
    pub lines: bool,
}
