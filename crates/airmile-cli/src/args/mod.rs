//! What can be said on the command line.

mod claw;
mod compare;
mod lab;
mod live;
mod packets;
mod probe;
mod record;
mod scrub;

use std::path::PathBuf;

use airmile::model::VerdictThresholds;
use airmile::{
    BudgetReport, BurstOptions, DetectOptions, EvidenceChoice, Exports, Inputs, Limits,
    RadioOptions, TimePoint,
};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use airmile_host::command::Global;
pub use airmile_qcut::args::QcutCommand;
pub use claw::{ClawAgentArgs, ClawAttachArgs, ClawCommand, ClawGetArgs, ClawServeArgs, ModemArgs};
pub use compare::CompareArgs;
pub use lab::{LabCommand, LabInsideArgs, LabReproduceArgs, LabShellArgs};
pub use live::LiveArgs;
pub use packets::PacketsArgs;
pub use probe::{ProbeCommand, ProbeRunArgs, ProbeServeArgs};
pub use record::RecordArgs;
pub use scrub::ScrubArgs;

/// The version, with the commit where it was built from a checkout.
const VERSION: &str = env!("AIRMILE_VERSION");

/// Is it the air, and if not, who?
///
/// Reads a phone's modem log (and tables made from one) and tells, per
/// transfer, whether the radio link was the bottleneck, with evidence.
#[derive(Debug, Parser)]
#[command(name = "airmile", version = VERSION, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  airmile inspect log.mi2log              what the log holds, what it can answer
  airmile diagnose log.mi2log             who was the bottleneck
  airmile diagnose log.qmdl --transfers player.csv --json
  airmile radio grants.csv rlc.csv        the same from tables
  airmile decode log.dlf --only grant --format csv > grants.csv
  airmile packets capture.pcap            what the wire saw: flows, RTTs, losses
  airmile lab run sample-download -o run  a sample, with the truth

Exit status: 0 done, 1 a --fail-if budget was exceeded, 2 usage,
3 could not run, 4 done but the input was damaged, 5 a run in real time was late.")]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What files hold, and what can and cannot be answered from them
    #[command(after_help = "Examples:
  airmile inspect log.mi2log
  airmile inspect part1.qmdl part2.qmdl --json | jq .can_answer")]
    Inspect(FilesArgs),
    /// Every record, as JSON lines, CSV or Parquet
    #[command(after_help = "Examples:
  airmile decode log.mi2log | head
  airmile decode log.mi2log --only grant,rlc -o tables
  airmile decode log.mi2log --only grant --format csv > grants.csv")]
    Decode(DecodeArgs),
    /// Bursts, throughput time and link demand
    #[command(after_help = "Examples:
  airmile radio log.mi2log
  airmile radio log.mi2log --evidence paper --start-threshold 0.8
  airmile radio grants.csv.gz rlc.csv.gz --transfers transfers.csv --json
  airmile radio log.mi2log --from 12:01:29 --to 12:01:31")]
    Radio(RadioArgs),
    /// Who was the bottleneck: one verdict per transfer, with evidence
    #[command(after_help = "Examples:
  airmile diagnose log.mi2log
  airmile diagnose log.mi2log page.har
  airmile diagnose phone.pcapng
  airmile diagnose log.mi2log --html report.html
  airmile diagnose log.mi2log --perfetto trace.pftrace
  airmile diagnose log.mi2log --fail-if 'link_demand < 0.5 and bytes > 1000000'
  gunzip -c log.qmdl.gz | airmile diagnose - --json")]
    Diagnose(DiagnoseArgs),
    /// Runs or ports held against each other: restarts of slow start, throttling
    #[command(
        after_help = "A run is a directory of `lab run` or `probe run`, or any with a modem log, captures or
an application's log; or one such file. Ports in it are told apart by themselves.

Examples:
  airmile compare run                     the ports in one run
  airmile compare run-80 run-443 run-7777
  airmile compare monday tuesday --by run
  airmile compare run --ports 443,7777 --json | jq .verdict

docs/compare.md has the statistics and the limits of the verdicts."
    )]
    Compare(CompareArgs),
    /// The port test: fetch segments over several ports by turns, and compare
    #[command(subcommand)]
    Probe(ProbeCommand),
    /// Packet captures: flows, RTTs, losses, available bandwidth, beside a study of an LTE network
    #[command(after_help = "Examples:
  airmile packets capture.pcap
  airmile packets day1.pcap.gz day2.pcap.zst --json
  airmile packets capture.pcapng --out tables --table-format csv
  airmile packets capture.pcap --html study.html
  airmile packets capture.pcap --html flow.html --flow 10.0.0.1:40000-192.0.2.1:443
  airmile packets day/ --engine ray --out study        # past one machine: docs/scale.md
  tcpdump -w - -s 96 | airmile packets -
  airmile packets --interface eth0 --duration 60 --html now.html")]
    Packets(PacketsArgs),
    /// A copy that can be shared: payload cut, addresses and identities under pseudonyms
    #[command(after_help = "Examples:
  airmile scrub capture.pcap -o shared.pcap
  airmile scrub log.mi2log capture.pcapng.gz -o shared/ --key my.key
  airmile scrub log.qmdl -o shared.qmdl --json | jq .files[].changes

The key makes pseudonyms the same in all copies that it is used for. Keep it, and
do not share it: who has it can find out who is behind a pseudonym.
Beside the copy comes a manifest of what was changed and what was not.")]
    Scrub(ScrubArgs),
    /// A modem's log and an interface's packets into files, to be diagnosed later
    #[command(after_help = "Examples:
  airmile record --port /dev/ttyUSB0 -o drive
  airmile record --port /dev/wwan0qcdm0 --interface wwan0 -o drive --rotate-minutes 5
  airmile record --port qrtr -o drive --for 600      on the phone or router itself
  airmile diagnose drive

docs/phones.md: how to get at the log, by phone and modem.
Exit status 3: nothing came, or a file cannot be written.")]
    Record(RecordArgs),
    /// As it happens: bursts and verdicts from a modem's port or a growing log
    #[command(after_help = "Examples:
  airmile live --port /dev/ttyUSB0
  airmile live --port qrtr                on the phone or router itself
  airmile live --follow log.qmdl --listen 127.0.0.1:8787
  tail -c +1 -f log.qmdl | airmile live --json")]
    Live(LiveArgs),
    /// The uplink's queue kept short on this host, so that an upload delays nothing (Linux)
    #[command(subcommand)]
    Qcut(QcutCommand),
    /// Servers whose congestion window follows the phone's cell: QUIC, and the kernel's TCP
    #[command(subcommand)]
    Claw(ClawCommand),
    /// A cell whose queues can be seen: sample logs with the truth
    #[command(subcommand)]
    Lab(LabCommand),
    /// Completions for a shell, on standard output
    #[command(after_help = "Examples:
  airmile completions bash > /etc/bash_completion.d/airmile
  airmile completions zsh > ~/.zfunc/_airmile
  airmile completions fish > ~/.config/fish/completions/airmile.fish")]
    Completions {
        /// Which shell's
        shell: clap_complete::Shell,
    },
    /// The manual: a page for each command, into a directory
    #[command(after_help = "Examples:
  airmile man /usr/local/share/man/man1 && man airmile-packets")]
    Man {
        /// Where to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Files and limits.
#[derive(Debug, Clone, Args)]
pub struct FilesArgs {
    /// Modem logs (.mi2log, .qmdl, .qmdl2, .dlf, .hdf, QXDM text), tables, and for `diagnose` captures and applications' logs (HAR, NetLog, qlog, players), compressed or not; a directory of them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Of a sniffer's table: this RNTI's grants (default: the one with the most bytes)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u16>)]
    pub rnti: Option<u16>,
    /// Limits on the time.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Limits on the time.
#[derive(Debug, Clone, Copy, Args)]
pub struct LimitArgs {
    /// Leave out what is before: seconds since the start, HH:MM:SS (UTC) or a date and time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = TimePoint::parse)]
    pub from: Option<TimePoint>,
    /// Leave out what is from then on
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = TimePoint::parse)]
    pub to: Option<TimePoint>,
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        Self { from: args.from, to: args.to }
    }
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A JSON object a line
    Json,
    /// The table of one record type
    Csv,
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
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
    /// Write a Parquet file per record type into this directory instead
    #[arg(short, long, value_name = "DIR", conflicts_with = "format")]
    pub output: Option<PathBuf>,
    /// Only this subscription of a multi-SIM phone
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u8>)]
    pub sim: Option<u8>,
}

/// Which evidence ends a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Evidence {
    /// All that the log has, together
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

/// How the radio is analysed.
#[derive(Debug, Clone, Args)]
pub struct AnalysisArgs {
    /// Which evidence ends a burst
    #[arg(long, value_enum, default_value_t = Evidence::Auto)]
    pub evidence: Evidence,
    /// `paper`: a burst begins above this share of the cell's PRBs
    #[arg(long, value_name = "SHARE", default_value_t = BurstOptions::default().start_threshold, allow_negative_numbers = true, value_parser = share)]
    pub start_threshold: f64,
    /// `paper`: a burst may end below this share of the cell's PRBs
    #[arg(long, value_name = "SHARE", default_value_t = BurstOptions::default().end_threshold, allow_negative_numbers = true, value_parser = share)]
    pub end_threshold: f64,
    /// The application's transfers: its log, or a CSV with id,start_us,end_us,bytes (or tti)
    #[arg(long, value_name = "FILE")]
    pub transfers: Option<PathBuf>,
    /// Without --transfers: a pause of this many ms separates transfers
    #[arg(long, value_name = "MS", default_value_t = DetectOptions::default().pause_ms, allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub pause_ms: u32,
    /// Without --transfers: activity of fewer bytes is no transfer
    #[arg(long, value_name = "BYTES", default_value_t = DetectOptions::default().min_bytes, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub min_bytes: u64,
    /// Link demand from which the downlink is the bottleneck
    #[arg(long, value_name = "SHARE", default_value_t = VerdictThresholds::default().radio_at_least, allow_negative_numbers = true, value_parser = share)]
    pub radio_at_least: f64,
    /// Link demand under which it is not
    #[arg(long, value_name = "SHARE", default_value_t = VerdictThresholds::default().not_radio_below, allow_negative_numbers = true, value_parser = share)]
    pub not_radio_below: f64,
    /// Which subscription of a multi-SIM phone (default: the one with the most data)
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
    /// As the facade takes them.
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

/// Files beside the answer.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Write a report that any browser opens, too: one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a trace, too, that ui.perfetto.dev opens: transfers, bursts, grants, counters
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
    /// Exit with status 1 where this holds for a transfer, a page or the session: `shares.radio > 0.5`, `page.load_ms > 3000`; may be given several times
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
    /// Report budgets: `junit=FILE` writes JUnit's XML, `github` prints annotations of GitHub Actions on standard error
    #[arg(long, value_name = "WHERE", requires = "fail_if", value_parser = BudgetReport::parse)]
    pub report: Vec<BudgetReport>,
}

/// Arguments of `radio`.
#[derive(Debug, Clone, Args)]
pub struct RadioArgs {
    /// Files and limits.
    #[command(flatten)]
    pub files: FilesArgs,
    /// How the radio is analysed.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    /// Budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Files beside the answer.
    #[command(flatten)]
    pub exports: ExportArgs,
}

/// Arguments of `diagnose`.
#[derive(Debug, Clone, Args)]
pub struct DiagnoseArgs {
    /// Files and limits.
    #[command(flatten)]
    pub files: FilesArgs,
    /// How the radio is analysed.
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    /// Budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Write the document and tables into this directory, too
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Files beside the answer.
    #[command(flatten)]
    pub exports: ExportArgs,
}

/// Files and transfers as the facade takes them.
pub fn inputs(files: &FilesArgs, transfers: Option<&PathBuf>) -> Inputs {
    let (transfers, rnti) = (transfers.cloned(), files.rnti);
    Inputs { files: files.files.clone(), transfers, rnti, ..Inputs::default() }
}
