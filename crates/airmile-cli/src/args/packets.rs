//! Arguments of `packets`.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use airmile::model::packet::Address;
use airmile::model::units::SECOND_NS;
use airmile::packet_study::{RadioModel, SendRateThreshold, StudyOptions};
use airmile::packets::{client_network, send_rate_threshold};
use airmile::{FlowName, PacketOptions, TableFormat};
use airmile_host::command::seconds;
use clap::{Args, ValueEnum};

use super::{LimitArgs, whole};

/// File formats of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// Parquet, with internal compression
    Parquet,
    /// CSV with a header
    Csv,
}

/// Arguments of `packets`.
#[derive(Debug, Clone, Args)]
pub struct PacketsArgs {
    /// Captures (pcap or pcapng, compressed or not), read in order of their first packets; a run's
    /// directory stands for its server's capture; `-` is standard input
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Capture on this network interface instead, until Ctrl-C (Linux)
    #[arg(long, value_name = "NAME", conflicts_with = "files", help_heading = "Capture")]
    pub interface: Option<String>,
    /// Capture for this many seconds
    #[arg(long, value_name = "S", requires = "interface", conflicts_with = "files", value_parser = seconds, help_heading = "Capture")]
    pub duration: Option<Duration>,
    /// Write tables into this directory: flows, tcp_events, rtt_samples, ...
    #[arg(short, long, value_name = "DIR", help_heading = "Files to write")]
    pub out: Option<PathBuf>,
    /// Format of the tables
    #[arg(long, value_enum, default_value_t = TableKind::Parquet, help_heading = "Files to write")]
    pub table_format: TableKind,
    /// Also write the study as an HTML page for any browser: the paper's figures, flows as graphs
    #[arg(long, value_name = "FILE", help_heading = "Files to write")]
    pub html: Option<PathBuf>,
    /// Draw these flows instead of the most notable ones: numbers, or ends as A:PORT-B:PORT
    /// (separated by commas; may be repeated)
    #[arg(
        long,
        value_name = "FLOW",
        requires = "html",
        value_delimiter = ',',
        help_heading = "Files to write"
    )]
    pub flow: Vec<FlowName>,
    /// An address or network of the clients (may be repeated); by default clients are identified by
    /// SYN, address and port
    #[arg(long, alias = "client-net", value_name = "ADDRESS[/BITS]", value_parser = client_network, help_heading = "Analysis")]
    pub client: Vec<(Address, u8)>,
    /// Server ports behind a proxy that splits connections
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = PROXY_PORTS.as_str(), help_heading = "Analysis")]
    pub proxy_ports: Vec<u16>,
    /// A flow ends after this many seconds without a packet
    #[arg(long, value_name = "S", default_value_t = StudyOptions::default().idle_s(), allow_negative_numbers = true, value_parser = whole::<u32>, help_heading = "Analysis")]
    pub idle_s: u32,
    /// The radio is idle after this many seconds without a packet (promotion delay)
    #[arg(long, value_name = "S", default_value_t = StudyOptions::default().promotion_idle_s(), allow_negative_numbers = true, value_parser = whole::<u32>, help_heading = "Analysis")]
    pub promotion_idle_s: u32,
    /// The radio's tail in seconds (energy)
    #[arg(long, value_name = "S", default_value_t = StudyOptions::default().tail_s(), allow_negative_numbers = true, value_parser = whole::<u32>, help_heading = "Analysis")]
    pub tail_s: u32,
    /// Minimum retransmission timeout of the senders in ms: 200 in Linux, 1000 by RFC 6298
    #[arg(long, value_name = "MS", default_value_t = StudyOptions::default().min_rto_ms(), allow_negative_numbers = true, value_parser = whole::<u32>, help_heading = "Analysis")]
    pub min_rto_ms: u32,
    /// A sending rate in Mbit/s that shows the available bandwidth; `auto`: estimate it from the
    /// queue
    #[arg(long, value_name = "MBPS", default_value_t = StudyOptions::default().send_rate_threshold, allow_negative_numbers = true, value_parser = send_rate_threshold, help_heading = "Analysis")]
    pub send_rate: SendRateThreshold,
    /// Analysis threads; 0 is one per core
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u16>, help_heading = "Analysis")]
    pub threads: u16,
    /// Limits on the time.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where the study runs.
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Options of a study on several machines.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several machines")]
pub struct EngineArgs {
    /// Run on `ray` (this machine, or the cluster of RAY_ADDRESS), `ray://HOST:PORT` or
    /// `processes`; captures and --out may be directories and object stores (s3://...). Needs
    /// Python with airmile[ray]
    #[arg(long, value_name = "ENGINE", requires = "out", conflicts_with_all = ["interface", "html", "flow", "table_format", "from", "to", "time_zone", "threads"])]
    pub engine: Option<String>,
    /// Workers of an engine on this machine; 0 is one per core
    #[arg(long, value_name = "N", default_value_t = 0, requires = "engine", allow_negative_numbers = true, value_parser = whole::<u16>)]
    pub workers: u16,
    /// Parts into which an engine divides users; 0 is several per worker
    #[arg(long, value_name = "N", default_value_t = 0, requires = "engine", allow_negative_numbers = true, value_parser = whole::<u16>)]
    pub buckets: u16,
}

/// The default ports, formatted as an argument.
static PROXY_PORTS: LazyLock<String> = LazyLock::new(|| {
    let ports = StudyOptions::default().proxy_ports;
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
});

impl PacketsArgs {
    /// Returns the options of the library.
    pub fn options(&self) -> PacketOptions {
        let defaults = StudyOptions::default();
        let format = match self.table_format {
            TableKind::Parquet => TableFormat::Parquet,
            TableKind::Csv => TableFormat::Csv,
        };
        PacketOptions {
            study: StudyOptions {
                idle_ns: i64::from(self.idle_s) * SECOND_NS,
                promotion_idle_ns: i64::from(self.promotion_idle_s) * SECOND_NS,
                proxy_ports: self.proxy_ports.clone(),
                client_networks: self.client.clone(),
                send_rate_threshold: self.send_rate,
                min_rto_ns: i64::from(self.min_rto_ms) * 1_000_000,
                radio: RadioModel { tail_ns: i64::from(self.tail_s) * SECOND_NS, ..defaults.radio },
                ..defaults
            },
            output: self.out.clone().map(|dir| (dir, format)),
            threads: self.threads.into(),
            limits: self.limits.into(),
        }
    }
}
