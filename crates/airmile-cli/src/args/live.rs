//! What can be said of `live`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::AnalysisArgs;

/// Arguments of `live`.
#[derive(Debug, Clone, Args)]
pub struct LiveArgs {
    /// A modem log that grows; without it, --port and --interface, standard input
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    pub follow: Option<PathBuf>,
    /// The modem: a serial DIAG port, another device, a socket, or `qrtr`; its logs are turned on
    #[arg(long, value_name = "PATH|qrtr", visible_alias = "modem")]
    pub port: Option<PathBuf>,
    /// The packets of a network interface, too, or alone (Linux, CAP_NET_RAW)
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Serve a page, JSON, events and Prometheus metrics there; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Ask for this file's token ($AIRMILE_TOKEN otherwise); needed where --listen is not loopback
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,
    /// Ask for no token on loopback, though --interface shows everybody's connections
    #[arg(long, requires = "listen", conflicts_with = "token_file")]
    pub no_token: bool,
    /// A line per finding instead of the view, on a terminal too
    #[arg(long)]
    pub lines: bool,
    /// How the radio is analysed.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
}
