//! Arguments of `record`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

/// Arguments of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// The directory for the recording; it must not hold one already
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// The modem: a serial DIAG port, another device, a socket, `qrtr`, or `auto` (searched for);
    /// its logging is enabled
    #[arg(long, value_name = "PATH|qrtr|auto", visible_alias = "modem")]
    pub port: Option<PathBuf>,
    /// Also capture the packets of a network interface, or only those (Linux, CAP_NET_RAW)
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Start a new log after this many MB
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub rotate_mb: u64,
    /// Start a new log after this many minutes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub rotate_minutes: u64,
    /// Keep this many logs: the oldest is deleted before a new one starts; not with --interface
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub keep: Option<usize>,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        args: RecordArgs,
    }

    #[test]
    fn at_least_one_log_is_kept() {
        let kept = |n: &str| {
            let words = ["record", "-o", "dir", "--keep", n];
            Program::try_parse_from(words).ok().map(|program| program.args.keep)
        };
        assert_eq!([kept("0"), kept("1")], [None, Some(Some(1))]);
    }
}
