//! Arguments of `claw`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use airmile_claw::OperatorLimits;
use airmile_claw::server::Window;
use clap::{Args, Subcommand, ValueEnum};

use super::whole;

/// Arguments of `claw`.
#[derive(Debug, Subcommand)]
pub enum ClawCommand {
    /// Serve files over HTTP/3, with a congestion window set by clients' reports of their cell
    #[command(after_help = "Examples:
  airmile claw serve site/ --bind 0.0.0.0:443 --name www.example.org --reports 0.0.0.0:4434
  airmile claw serve site/ --cert cert.pem --private-key key.pem --cap 50
  airmile claw serve site/ --window cubic         the same server without CLAW

The server never sends faster than --cap because of a report. An old, forged or repeated report
changes nothing: the window is Cubic's. docs/claw.md describes how browsers are supported.")]
    Serve(ClawServeArgs),
    /// On the phone: read the modem's live log and report its cell to servers
    #[command(after_help = "Examples:
  airmile claw agent --modem /dev/ttyUSB0 --to https://www.example.org/
  airmile claw agent --follow log.qmdl --to 203.0.113.1:4434 --key-file claw.key
  sudo airmile claw agent --follow log.qmdl --tcp-option

An agent asks a server with an https URL for a key. A TCP server (claw attach) and its agent
share a key in a file: (umask 077; openssl rand -hex 32 > claw.key)")]
    Agent(ClawAgentArgs),
    /// Fetch over HTTP/3 and report the cell on the same connection
    #[command(after_help = "Examples:
  airmile claw get https://www.example.org/image.jpg --modem /dev/ttyUSB0 -o image.jpg
  airmile claw get https://localhost:4433/2MB --insecure --report 600000 --json
  airmile claw get https://localhost:4433/2MB --insecure --times 20")]
    Get(ClawGetArgs),
    /// Use CLAW for the kernel's TCP: for any unmodified server in this namespace (root, Linux 6.4)
    #[command(after_help = "Examples:
  sudo airmile claw attach --reports 0.0.0.0:4434 --key-file claw.key
  sudo airmile claw attach --cgroup /sys/fs/cgroup/system.slice/nginx.service --cap 50
  sudo ip netns exec web airmile claw attach --dest 10.0.0.0/8

It runs until Ctrl-C or `airmile claw detach`; connections then continue with Cubic, even if it
was killed. CLAW applies only to connections that open while it runs.
Built with: cargo build --release -p airmile-cli --features bpf")]
    Attach(ClawAttachArgs),
    /// Stop the `claw attach` that runs on this machine
    #[command(after_help = "Examples:
  sudo airmile claw detach")]
    Detach,
}

/// The limits on what reports can set.
#[derive(Debug, Clone, Copy, Args)]
pub struct CapArgs {
    /// Maximum rate in Mbit/s that a report can make the server send to a client
    #[arg(long, value_name = "MBIT/S", default_value = "100", value_parser = mbps)]
    pub cap: u64,
    /// Maximum window in bytes that a report can set
    #[arg(long, value_name = "BYTES", default_value_t = 4_000_000, value_parser = window)]
    pub cap_window: u64,
}

impl From<CapArgs> for OperatorLimits {
    fn from(args: CapArgs) -> Self {
        Self { window_bytes: args.cap_window, rate_bps: args.cap }
    }
}

/// Congestion windows of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WindowArg {
    /// Set by reports; Cubic's without them
    Claw,
    /// quinn's Cubic
    Cubic,
    /// quinn's BBR
    Bbr,
    /// quinn's New Reno
    NewReno,
}

impl From<WindowArg> for Window {
    fn from(arg: WindowArg) -> Self {
        match arg {
            WindowArg::Claw => Self::Claw,
            WindowArg::Cubic => Self::Cubic,
            WindowArg::Bbr => Self::Bbr,
            WindowArg::NewReno => Self::NewReno,
        }
    }
}

/// Arguments of `claw serve`.
#[derive(Debug, Clone, Args)]
pub struct ClawServeArgs {
    /// The directory to serve
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The address to listen on (UDP)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4433")]
    pub bind: SocketAddr,
    /// Also accept reports over UDP on this address, for browsers; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS")]
    pub reports: Option<SocketAddr>,
    /// The key that agents share, in hexadecimal; without it agents request one over HTTPS
    #[arg(long, value_name = "FILE", requires = "reports")]
    pub key_file: Option<PathBuf>,
    /// Certificates in PEM; the default is to create one and print its hash for Chromium
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub cert: Option<PathBuf>,
    /// The certificates' private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub private_key: Option<PathBuf>,
    /// The name in a created certificate
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub name: Vec<String>,
    /// The congestion window to use
    #[arg(long, value_enum, default_value_t = WindowArg::Claw)]
    pub window: WindowArg,
    /// The limits on what reports can set.
    #[command(flatten)]
    pub cap: CapArgs,
}

/// The modem's log or a substitute for it.
#[derive(Debug, Clone, Args)]
pub struct ModemArgs {
    /// The modem: a serial DIAG port, another device, a socket, `qrtr`, or `auto` (searched for);
    /// its logging is enabled
    #[arg(long, value_name = "PATH", conflicts_with = "follow")]
    pub modem: Option<PathBuf>,
    /// A growing modem log; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub follow: Option<PathBuf>,
    /// Without a modem: always report this window, for tests
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>, conflicts_with_all = ["modem", "follow"])]
    pub report: Option<u32>,
    /// With --report: the share of the cell in use, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0", requires = "report")]
    pub load: f64,
}

/// Arguments of `claw agent`.
#[derive(Debug, Clone, Args)]
pub struct ClawAgentArgs {
    /// The modem's log or a substitute for it.
    #[command(flatten)]
    pub modem: ModemArgs,
    /// The server: its https URL, or the address on which it accepts reports
    #[arg(long, value_name = "URL|ADDRESS", required_unless_present = "tcp_option")]
    pub to: Option<String>,
    /// The key; required where --to is an address
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Write reports into the ACKs of this machine's TCP (root, built with `bpf`)
    #[arg(long, conflicts_with_all = ["to", "key_file", "ca", "insecure"])]
    pub tcp_option: bool,
    /// With --tcp-option: only for this control group, not for the whole namespace
    #[arg(long, value_name = "DIR", requires = "tcp_option")]
    pub cgroup: Option<PathBuf>,
    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Trust the certificates of this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Interval between reports in ms
    #[arg(long, value_name = "MS", default_value = "100", value_parser = clap::value_parser!(u64).range(20..=10_000))]
    pub every: u64,
    /// The round trip in ms that windows are computed for, instead of the measured one
    #[arg(long, value_name = "MS", value_parser = rtt)]
    pub rtt: Option<Duration>,
}

/// Arguments of `claw get`.
#[derive(Debug, Clone, Args)]
pub struct ClawGetArgs {
    /// The URL to fetch
    #[arg(value_name = "URL")]
    pub url: String,
    /// The modem's log or a substitute for it.
    #[command(flatten)]
    pub modem: ModemArgs,
    /// Write the body to this file; without it the body is counted and discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of fetches, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub times: u32,
    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Trust the certificates of this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
}

/// Arguments of `claw attach`.
#[derive(Debug, Clone, Args)]
pub struct ClawAttachArgs {
    /// Only connections of this control group's processes, instead of this namespace's
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Only connections to clients in this network
    #[arg(long, value_name = "NETWORK")]
    pub dest: Option<String>,
    /// Accept reports over UDP on this address; without it only options on ACKs count
    #[arg(long, value_name = "ADDRESS", visible_alias = "listen", requires = "key_file")]
    pub reports: Option<SocketAddr>,
    /// The key that agents share, in hexadecimal
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Measure how long ACKs take in the kernel
    #[arg(long)]
    pub measure: bool,
    /// The limits on what reports can set.
    #[command(flatten)]
    pub cap: CapArgs,
}

fn window(text: &str) -> Result<u64, String> {
    let bytes: u64 = whole(text)?;
    if bytes > 0 { Ok(bytes) } else { Err("give bytes above 0".to_owned()) }
}

fn mbps(text: &str) -> Result<u64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|mbps| *mbps > 0.0 && *mbps <= 1e6);
    number.map(|mbps| (mbps * 1e6) as u64).ok_or_else(|| "give Mbit/s above 0".to_owned())
}

fn rtt(text: &str) -> Result<Duration, String> {
    let ms: Option<f64> = text.parse().ok();
    let ms = ms.filter(|ms| (0.1..=60_000.0).contains(ms));
    ms.map(|ms| Duration::from_secs_f64(ms / 1e3)).ok_or_else(|| "give ms, 0.1 to 60000".to_owned())
}
