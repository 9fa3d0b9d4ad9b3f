//! Arguments of `scrub`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `scrub`.
#[derive(Debug, Clone, Args)]
pub struct ScrubArgs {
    /// Captures (pcap, pcapng), modem logs (.mi2log, .qmdl, .dlf, .hdf) and HARs, compressed or not, or directories of them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The copy; for several files or a directory, or if it ends in /, a directory of copies
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The key file, created if missing [default: OUT.key, which must not exist]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}
