//! Arguments of `record`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Where to: a directory without a recording
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// The modem: a serial DIAG port, another device, a socket, or `qrtr`; its logs are turned on
    #[arg(long, value_name = "PATH|qrtr", visible_alias = "modem")]
    pub port: Option<PathBuf>,
    /// The packets of a network interface, too, or alone (Linux, CAP_NET_RAW)
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// A log is closed and the next one begun after so many MB
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub rotate_mb: u64,
    /// And after so many minutes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub rotate_minutes: u64,
    /// Keep this many logs: the oldest goes before another begins
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Stop after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
}
