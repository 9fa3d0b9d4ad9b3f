//! Arguments of `live`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::{AnalysisArgs, ZoneArgs};

/// Arguments of `live`.
#[derive(Debug, Clone, Args)]
pub struct LiveArgs {
    /// A growing modem log; standard input is read if neither --port nor --interface is given
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    pub follow: Option<PathBuf>,
    /// The modem: a serial DIAG port, another device, a socket, `qrtr`, or `auto` (searched for);
    /// its logging is enabled
    #[arg(long, value_name = "PATH|qrtr|auto", visible_alias = "modem")]
    pub port: Option<PathBuf>,
    /// Also capture the packets of a network interface, or only those (Linux, CAP_NET_RAW)
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Serve a page, JSON, events and Prometheus metrics on this address; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Require this file's token (default: $AIRMILE_TOKEN); needed if --listen is not loopback
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,
    /// Require no token on loopback, although --interface shows the connections of all users
    #[arg(long, requires = "listen", conflicts_with = "token_file")]
    pub no_token: bool,
    /// Print a line for each finding instead of the view, even on a terminal
    #[arg(long)]
    pub lines: bool,
    /// The zone.
    #[command(flatten)]
    pub zone: ZoneArgs,
    /// Options of the radio analysis.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
}
