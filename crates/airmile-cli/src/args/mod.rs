//! The command line's arguments.

#[cfg(feature = "network")]
mod claw;
mod compare;
mod lab;
#[cfg(feature = "network")]
mod live;
mod packets;
#[cfg(feature = "network")]
mod probe;
#[cfg(feature = "network")]
mod record;
mod scrub;

use std::io::IsTerminal;
use std::path::PathBuf;

use airmile::model::VerdictThresholds;
use airmile::{
    BurstOptions, DetectOptions, EvidenceChoice, Exports, Inputs, Limits, RadioOptions, TimePoint,
    Zone,
};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use airmile_host::command::Global;
#[cfg(feature = "network")]
pub use airmile_qcut::args::QcutCommand;
#[cfg(feature = "network")]
pub use claw::{ClawAgentArgs, ClawAttachArgs, ClawCommand, ClawGetArgs, ClawServeArgs, ModemArgs};
pub use compare::CompareArgs;
pub use lab::{LabCommand, LabReproduceArgs};
#[cfg(feature = "network")]
pub use lab::{LabInsideArgs, LabShellArgs};
#[cfg(feature = "network")]
pub use live::LiveArgs;
pub use packets::PacketsArgs;
#[cfg(feature = "network")]
pub use probe::{ProbeCommand, ProbeRunArgs, ProbeServeArgs};
#[cfg(feature = "network")]
pub use record::RecordArgs;
pub use scrub::ScrubArgs;

use crate::budget::BudgetReport;

/// The version, followed by the commit if built from a checkout: `-V`, and the first line of
/// `--version`.
const VERSION: &str = env!("AIRMILE_VERSION");

/// What `--version` prints: the build, for a report of a fault.
const LONG_VERSION: &str = concat!(
    env!("AIRMILE_VERSION"),
    "\ncommit: ",
    env!("AIRMILE_COMMIT"),
    "\nfeatures: ",
    env!("AIRMILE_FEATURES"),
    "\ntarget: ",
    env!("AIRMILE_TARGET"),
);

/// Find what limits mobile transfers: the radio link, or something that can be fixed
///
/// Reads a phone's modem log, packet captures and application logs, and reports for each transfer
/// whether the radio link was the bottleneck, and why.
#[derive(Debug, Parser)]
#[command(name = "airmile", version = VERSION, long_version = LONG_VERSION, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  airmile inspect log.mi2log              what the log holds, what it can answer
  airmile diagnose log.mi2log phone.pcap  what limited each transfer, and why
  airmile diagnose log.qmdl --transfers player.csv --json
  airmile radio grants.csv rlc.csv        bursts and link demand, from tables
  airmile decode log.dlf --only grant --format csv > grants.csv
  airmile packets capture.pcap            flows, round trips, losses
  airmile lab run sample-download -o run  a sample, with the truth

Exit status: 0 done, 1 a --fail-if budget was exceeded or `lab reproduce` missed a bar, 2 usage,
3 could not run, 4 done but the input was damaged, 5 a run in real time was late,
6 an experiment of `lab reproduce` failed, 7 a budget cannot be evaluated, as a value is absent.")]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what files contain, and which questions they can answer
    #[command(after_help = "Examples:
  airmile inspect log.mi2log
  airmile inspect part1.qmdl part2.qmdl --json | jq .can_answer")]
    Inspect(FilesArgs),
    /// Print every record, as JSON lines, CSV or Parquet
    #[command(after_help = "Examples:
  airmile decode log.mi2log | head
  airmile decode log.mi2log --only grant,rlc -o tables
  airmile decode log.mi2log --only grant --format csv > grants.csv
  airmile decode log.mi2log --format pcapng -o log.pcapng")]
    Decode(DecodeArgs),
    /// Report bursts, throughput time and link demand
    #[command(after_help = "Examples:
  airmile radio log.mi2log
  airmile radio log.mi2log --evidence paper --start-threshold 0.8
  airmile radio grants.csv.gz rlc.csv.gz --transfers transfers.csv --json
  airmile radio log.mi2log --from 12:01:29 --to 12:01:31")]
    Radio(RadioArgs),
    /// Find the bottleneck: a verdict for each transfer, with its evidence
    #[command(after_help = "Examples:
  airmile diagnose log.mi2log
  airmile diagnose log.mi2log page.har
  airmile diagnose phone.pcapng
  airmile diagnose log.mi2log --html report.html
  airmile diagnose log.mi2log --perfetto trace.pftrace
  airmile diagnose log.mi2log --fail-if 'link_demand < 0.5 and bytes > 1000000'
  airmile diagnose page.har phone.pcapng --fail-if 'page.load_ms > 3000'
  gunzip -c log.qmdl.gz | airmile diagnose - --json")]
    Diagnose(DiagnoseArgs),
    /// Compare runs or ports: slow start restarts, throttling
    #[command(
        after_help = "A run is a directory of `lab run` or `probe run`, or any with a modem log, captures or
an application's log; or one such file. Ports in a run are separated automatically.

Examples:
  airmile compare run                     the ports in one run
  airmile compare run-80 run-443 run-7777
  airmile compare monday tuesday --by run
  airmile compare run --ports 443,7777 --json | jq .verdict
  airmile compare before after --fail-if 'page.difference_ms > 300'

docs/compare.md has the statistics and the limits of the verdicts."
    )]
    Compare(CompareArgs),
    #[cfg(feature = "network")]
    /// Test ports: fetch segments over several ports in turn, and compare
    #[command(subcommand)]
    Probe(ProbeCommand),
    /// Study packet captures: flows, RTTs, losses, available bandwidth, next to a published LTE
    /// study
    #[command(after_help = "Examples:
  airmile packets capture.pcap
  airmile packets day1.pcap.gz day2.pcap.zst --json
  airmile packets capture.pcapng --out tables --table-format csv
  airmile packets capture.pcap --html study.html
  airmile packets capture.pcap --html flow.html --flow 10.0.0.1:40000-192.0.2.1:443
  airmile packets day/ --engine ray --out study        # past one machine: docs/scale.md
  tcpdump -w - -s 128 | airmile packets -
  airmile packets --interface eth0 --duration 60 --html now.html")]
    Packets(PacketsArgs),
    /// Make a copy that can be shared: payload removed, addresses and identities replaced by
    /// pseudonyms
    #[command(after_help = "Examples:
  airmile scrub capture.pcap -o shared.pcap
  airmile scrub log.mi2log capture.pcapng.gz page.har -o shared/ --key my.key
  airmile scrub run/ -o shared/
  airmile scrub log.qmdl -o shared.qmdl --json | jq .files[].changes

The key makes pseudonyms the same in all copies made with it. Do not share it: with the key,
pseudonyms can be traced back.
A manifest next to the copy lists what was changed and what was not.")]
    Scrub(ScrubArgs),
    #[cfg(feature = "network")]
    /// Record a modem's log and an interface's packets to files, for a later diagnosis
    #[command(after_help = "Examples:
  airmile record --port /dev/ttyUSB0 -o drive
  airmile record --port /dev/wwan0qcdm0 --interface wwan0 -o drive --rotate-minutes 5
  airmile record --port qrtr -o drive --for 600      on the phone or router itself
  airmile diagnose drive

docs/phones.md: how to get the log, by phone and modem.
Exit status 3: nothing came, or a file cannot be written.")]
    Record(RecordArgs),
    #[cfg(feature = "network")]
    /// Report bursts and verdicts as they happen, from a modem's port or a growing log
    #[command(mut_arg("transfers", |arg| arg.hide(true)))]
    #[command(after_help = "Examples:
  airmile live --port /dev/ttyUSB0
  airmile live --port qrtr                on the phone or router itself
  airmile live --follow log.qmdl --listen 127.0.0.1:8787
  tail -c +1 -f log.qmdl | airmile live --json")]
    Live(LiveArgs),
    #[cfg(feature = "network")]
    /// Keep the uplink queue of this host short, so that an upload delays other traffic less (Linux)
    #[command(subcommand)]
    Qcut(QcutCommand),
    #[cfg(feature = "network")]
    /// Serve with a congestion window that follows the phone's cell: over QUIC or the kernel's TCP
    #[command(subcommand)]
    Claw(ClawCommand),
    /// Run an emulated cell: sample logs and captures, with the truth
    #[command(subcommand)]
    Lab(LabCommand),
    /// Print completions for a shell
    #[command(after_help = "Examples:
  airmile completions bash > /etc/bash_completion.d/airmile
  airmile completions zsh > ~/.zfunc/_airmile
  airmile completions fish > ~/.config/fish/completions/airmile.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual, one page per command, to a directory
    #[command(after_help = "Examples:
  airmile man /usr/local/share/man/man1 && man airmile-packets")]
    Man {
        /// The directory to write to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Files and limits.
#[derive(Debug, Clone, Args)]
pub struct FilesArgs {
    /// Modem logs (.mi2log, .qmdl, .qmdl2, .dlf, .hdf, QXDM text), tables, and for `inspect` and
    /// `diagnose` captures and application logs (HAR, NetLog, qlog, players), compressed or not; or
    /// directories of them; `-` is standard input, which cannot be a capture
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Use only the grants of this RNTI from a sniffer's table (default: the one with the most
    /// bytes)
    #[arg(long, value_name = "N", help_heading = "Input", allow_negative_numbers = true, value_parser = whole::<u16>)]
    pub rnti: Option<u16>,
    /// Also read messages whose layout is from a single public source, without a sample: 0xB857
    /// (docs/versions.md)
    #[arg(long, help_heading = "Input")]
    pub experimental: bool,
    /// Limits on the time.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Limits on the time.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Ignore everything before this time: seconds since the start, HH:MM:SS, or a date with or
    /// without a time; of --time-zone, or with Z or +02:00 after a date and time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = TimePoint::parse)]
    pub from: Option<TimePoint>,
    /// Ignore everything from this time on
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = TimePoint::parse)]
    pub to: Option<TimePoint>,
    /// The zone.
    #[command(flatten)]
    pub zone: ZoneArgs,
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        Self { from: args.from, to: args.to, zone: args.zone.zone() }
    }
}

/// The zone of times for people.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Limits")]
pub struct ZoneArgs {
    /// Time zone of times in texts and pages: `UTC`, `local`, +02:00 or a name (Europe/Berlin)
    /// [default: local on a terminal, else UTC]; JSON, CSV and Parquet hold microseconds
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true, value_parser = Zone::parse)]
    pub time_zone: Option<Zone>,
}

impl ZoneArgs {
    /// The zone given, or the default.
    pub fn zone(self) -> Zone {
        let default = || if std::io::stdout().is_terminal() { Zone::local() } else { Zone::UTC };
        self.time_zone.unwrap_or_else(default)
    }
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object per line
    Json,
    /// The table of one record type
    Csv,
    /// A file for each record type, in the directory of -o
    Parquet,
    /// Signalling and MAC headers as packets for Wireshark (GSMTAP); they hold identities of
    /// the subscriber
    Pcapng,
}

/// Arguments of `decode`.
#[derive(Debug, Clone, Args)]
pub struct DecodeArgs {
    /// Files and limits.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Only these record types, comma separated (docs/records.md)
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Output format [default: json, and Parquet with -o]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write one Parquet file per record type into this directory; with --format pcapng, this
    /// file
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Only this subscription of a multi-SIM phone
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u8>)]
    pub sim: Option<u8>,
}

/// Which evidence ends a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Evidence {
    /// All that the log has, combined
    Auto,
    /// RLC poll bits
    Poll,
    /// MAC padding
    Padding,
    /// Allocations alone, fitted to the log
    Grants,
    /// BurstTracker's literal rule
    Paper,
}

impl From<Evidence> for EvidenceChoice {
    fn from(evidence: Evidence) -> Self {
        match evidence {
            Evidence::Auto => Self::Auto,
            Evidence::Poll => Self::Poll,
            Evidence::Padding => Self::Padding,
            Evidence::Grants => Self::Grants,
            Evidence::Paper => Self::Paper,
        }
    }
}

/// Options of the radio analysis.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Analysis")]
pub struct AnalysisArgs {
    /// Which evidence ends a burst
    #[arg(long, value_enum, default_value_t = Evidence::Auto)]
    pub evidence: Evidence,
    /// `paper`: a burst starts above this share of the cell's PRBs
    #[arg(long, value_name = "SHARE", default_value_t = BurstOptions::default().start_threshold, allow_negative_numbers = true, value_parser = share)]
    pub start_threshold: f64,
    /// `paper`: a burst may end below this share of the cell's PRBs
    #[arg(long, value_name = "SHARE", default_value_t = BurstOptions::default().end_threshold, allow_negative_numbers = true, value_parser = share)]
    pub end_threshold: f64,
    /// The application's transfers: its log, or a CSV with id,start_us,end_us,bytes (or tti)
    #[arg(long, value_name = "FILE")]
    pub transfers: Option<PathBuf>,
    /// Without a list of transfers: a pause of this many ms separates transfers
    #[arg(long, value_name = "MS", default_value_t = DetectOptions::default().pause_ms, allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub pause_ms: u32,
    /// Without a list of transfers: activity of fewer bytes is not a transfer
    #[arg(long, value_name = "BYTES", default_value_t = DetectOptions::default().min_bytes, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub min_bytes: u64,
    /// Minimum link demand at which the downlink is the bottleneck
    #[arg(long, value_name = "SHARE", default_value_t = VerdictThresholds::default().radio_at_least, allow_negative_numbers = true, value_parser = share)]
    pub radio_at_least: f64,
    /// Link demand below which it is not
    #[arg(long, value_name = "SHARE", default_value_t = VerdictThresholds::default().not_radio_below, allow_negative_numbers = true, value_parser = share)]
    pub not_radio_below: f64,
    /// Subscription of a multi-SIM phone (default: the one with the most data)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u8>)]
    pub sim: Option<u8>,
}

/// A whole number without a sign.
fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    Err(match text.parse::<u64>() {
        Ok(_) => "the number is too large".into(),
        Err(_) => "give a number of 0 or more, without a fraction".into(),
    })
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("give a share between 0 and 1".into()),
    }
}

impl AnalysisArgs {
    /// Returns the options of the library.
    pub fn options(&self, limits: LimitArgs) -> airmile::Result<RadioOptions> {
        let mut options = RadioOptions {
            burst: BurstOptions {
                evidence: self.evidence.into(),
                start_threshold: self.start_threshold,
                end_threshold: self.end_threshold,
                ..BurstOptions::default()
            },
            detect: DetectOptions { pause_ms: self.pause_ms, min_bytes: self.min_bytes },
            limits: limits.into(),
            subscription: self.sim,
            ..RadioOptions::default()
        };
        options.thresholds.radio_at_least = self.radio_at_least;
        options.thresholds.not_radio_below = self.not_radio_below;
        options.check()?;
        Ok(options)
    }
}

/// Files written in addition to the output.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files to write")]
pub struct ExportArgs {
    /// Also write a report as one HTML file for any browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write a trace for ui.perfetto.dev: transfers, bursts, grants, counters
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

impl From<&ExportArgs> for Exports {
    fn from(args: &ExportArgs) -> Self {
        Self { html: args.html.clone(), perfetto: args.perfetto.clone() }
    }
}

/// Budgets for continuous integration.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Budgets")]
pub struct BudgetArgs {
    /// Exit with status 1 if this holds: of `diagnose` and `radio` for any transfer
    /// (`link_demand > 0.9`) or page, of `compare` for the comparison, any page, group or pair
    /// (`page.difference_ms > 300`); with 7 if a value is absent; may be repeated (docs/inputs.md)
    #[arg(long, alias = "budget", value_name = "EXPR")]
    pub fail_if: Vec<String>,
    /// Report budgets: `junit=FILE` writes JUnit XML, `github` prints GitHub Actions annotations on
    /// standard error
    #[arg(long, value_name = "WHERE", requires = "fail_if", value_parser = BudgetReport::parse)]
    pub report: Vec<BudgetReport>,
}

/// Arguments of `radio`.
#[derive(Debug, Clone, Args)]
pub struct RadioArgs {
    /// Files and limits.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Options of the radio analysis.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    /// Files written in addition to the output.
    #[command(flatten)]
    pub exports: ExportArgs,
    /// Budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

/// Arguments of `diagnose`.
#[derive(Debug, Clone, Args)]
pub struct DiagnoseArgs {
    /// Files and limits.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Options of the radio analysis.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    /// Also write the document of --json into this directory, as diagnose.json
    #[arg(short, long, value_name = "DIR", help_heading = "Files to write")]
    pub output: Option<PathBuf>,
    /// Files written in addition to the output.
    #[command(flatten)]
    pub exports: ExportArgs,
    /// Budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

/// Returns the files and transfers as the library's inputs.
pub fn inputs(files: &FilesArgs, transfers: Option<&PathBuf>) -> Inputs {
    let (transfers, rnti, experimental) = (transfers.cloned(), files.rnti, files.experimental);
    Inputs { files: files.files.clone(), transfers, rnti, experimental, ..Inputs::default() }
}
