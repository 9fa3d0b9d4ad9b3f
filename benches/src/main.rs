//! Speed compared with peers, in one run, as ratios: machines are noisy, so a single
//! figure is not meaningful.
//!
//! - decoding in CPU time of one core, compared with a bare loop that only unescapes HDLC
//!   and checks CRCs, and with `signalcat` if it is installed;
//! - inference in TTIs per second, on one core;
//! - memory on a log and on one 100 times longer, and of an open flow;
//! - packet analysis compared with a bare loop, `tcptrace` and `tshark`.

#![allow(clippy::print_stdout, reason = "the figures are what this is for")]

mod bare;
mod logs;
mod packets;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use airmile::codec::diag::{Deframer, Event, LogReader, Message};
use airmile::model::Record;
use airmile::{Inputs, Progress, RadioOptions, diagnose};
use airmile_radio::burst::{BurstOptions, BurstTracker};
use anyhow::{Context, Result};
use clap::Parser;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Args {
    /// Runs of each loop, alternating
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// The `signalcat` command, to compare with
    #[arg(long)]
    signalcat: Option<PathBuf>,
    /// A log to use in addition to the generated one
    #[arg(long)]
    log: Option<PathBuf>,
    /// Exit with status 1 if a bar is missed
    #[arg(long)]
    strict: bool,
    /// Only these parts
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Internal: diagnose this log and print the peak memory
    #[arg(long, hide = true)]
    peak: Option<PathBuf>,
    /// Internal: study this capture, of flows that stay open, and print the memory used
    #[arg(long, hide = true)]
    open_flows: Option<PathBuf>,
    /// For profilers: one loop over a capture
    #[arg(long, hide = true, requires = "capture")]
    one: Option<packets::Loop>,
    /// The capture of that loop; the generated one is written there if it is missing
    #[arg(long, hide = true)]
    capture: Option<PathBuf>,
    /// Flows and segments a flow of the capture that is generated
    #[arg(long, hide = true, num_args = 2, requires = "capture")]
    shape: Vec<u32>,
    /// For profilers: one loop over `--log`, or the generated one
    #[arg(long, hide = true)]
    alone: Option<LogLoop>,
    /// MB to which logs are lengthened
    #[arg(long, hide = true, default_value_t = 64)]
    log_mb: usize,
}

/// Loops over a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogLoop {
    Bare,
    Frames,
    Messages,
    Records,
    Bursts,
}

impl LogLoop {
    const ALL: [(&'static str, Self); 5] = [
        ("bare loop: unescape, CRC", Self::Bare),
        ("frames", Self::Frames),
        ("frames and messages", Self::Messages),
        ("records", Self::Records),
        ("records and bursts", Self::Bursts),
    ];

    fn run(self, log: &[u8]) -> u64 {
        match self {
            Self::Bare => bare::good_frames(log),
            Self::Frames => frames(log),
            Self::Messages => messages(log),
            Self::Records => records(log),
            Self::Bursts => bursts(log),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Decoding,
    Signalcat,
    Inference,
    Memory,
    Packets,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(log) = &args.peak {
        return peak(log);
    }
    if let Some(capture) = &args.open_flows {
        return packets::open_flows(capture);
    }
    if let (Some(one), Some(capture)) = (args.one, &args.capture) {
        return packets::run_one(one, capture, &args.shape, args.runs);
    }
    if let Some(alone) = args.alone {
        return run_alone(alone, args.log.as_deref(), args.log_mb << 20, args.runs);
    }
    let dir = tempfile::tempdir()?;
    let mut met = true;
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    if wanted(Part::Packets) {
        met &= packets::speed(dir.path(), args.runs.min(3))?;
    }
    if args.only == [Part::Packets] {
        return verdict(args.strict, met);
    }
    let generated = logs::generated()?;
    if wanted(Part::Decoding) {
        println!("generated log:");
        met &= decoding(&logs::repeated(&generated, args.log_mb << 20), args.runs);
        if let Some(path) = &args.log {
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            println!("\n{}:", path.file_name().unwrap_or_default().display());
            met &= decoding(&logs::repeated(&bytes, args.log_mb << 20), args.runs);
        }
    }
    if wanted(Part::Signalcat) {
        match &args.signalcat {
            Some(command) => {
                signalcat(command, dir.path(), &logs::repeated(&generated, 8 << 20))?;
            }
            None => println!("\nSKIPPED: signalcat (--signalcat COMMAND; pip install signalcat)"),
        }
    }
    if wanted(Part::Inference) {
        met &= inference(args.runs)?;
    }
    if wanted(Part::Memory) {
        memory(dir.path(), &generated)?;
        met &= packets::memory(dir.path())?;
    }
    verdict(args.strict, met)
}

fn verdict(strict: bool, met: bool) -> Result<()> {
    anyhow::ensure!(!strict || met, "a bar was missed");
    Ok(())
}

/// Median CPU time of each loop in seconds, run in alternation.
fn in_turn(runs: usize, loops: &[(&'static str, &dyn Fn() -> u64)]) -> Vec<f64> {
    let mut times = vec![Vec::new(); loops.len()];
    for _ in 0..runs.max(1) {
        for ((_, work), times) in loops.iter().zip(&mut times) {
            let start = packets::cpu_seconds();
            black_box(work());
            times.push(packets::cpu_seconds() - start);
        }
    }
    times.into_iter().map(packets::median).collect()
}

/// Bytes of a log that a core turns into records each second.
const RECORDS_BAR: f64 = 300e6;

fn decoding(log: &[u8], runs: usize) -> bool {
    let each = LogLoop::ALL.map(|(name, work)| (name, move || work.run(log)));
    let loops = each.each_ref().map(|(name, work)| (*name, work as &dyn Fn() -> u64));
    let times = in_turn(runs, &loops);
    let bare = times.first().copied().unwrap_or_default();
    println!("  {:26} {:>10} {:>22}", "loop", "MB/s", "ratio to the bare loop");
    for ((name, _), seconds) in loops.iter().zip(&times) {
        println!("  {name:26} {:>10.0} {:>22.2}", log.len() as f64 / 1e6 / seconds, bare / seconds);
    }
    let rate = log.len() as f64 / times.get(3).copied().unwrap_or_default();
    let met = rate >= RECORDS_BAR;
    println!("  bar: records at {:.0} MB/s of a core: {}", RECORDS_BAR / 1e6, word(met));
    met
}

/// Runs one loop over a log, alone for a profiler.
fn run_alone(alone: LogLoop, log: Option<&Path>, bytes: usize, runs: usize) -> Result<()> {
    let log = match log {
        Some(path) => std::fs::read(path).with_context(|| path.display().to_string())?,
        None => logs::generated()?,
    };
    let log = logs::repeated(&log, bytes);
    if runs == 0 {
        // Without the clock, which valgrind 3.19 cannot read.
        println!("{alone:?}: {}", alone.run(&log));
    }
    for _ in 0..runs {
        let start = packets::cpu_seconds();
        let n = alone.run(&log);
        let seconds = packets::cpu_seconds() - start;
        println!("{alone:?}: {n}, {:.1} MB/s of CPU time", log.len() as f64 / 1e6 / seconds);
    }
    Ok(())
}

const fn word(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn frames(log: &[u8]) -> u64 {
    let mut deframer = Deframer::new();
    for chunk in log.chunks(256 * 1024) {
        deframer.push(chunk);
        while let Some(event) = deframer.poll() {
            black_box(&event);
        }
    }
    deframer.finish();
    while deframer.poll().is_some() {}
    deframer.counts().good_frames
}

fn messages(log: &[u8]) -> u64 {
    let mut deframer = Deframer::new();
    let mut decoded = 0;
    for chunk in log.chunks(256 * 1024) {
        deframer.push(chunk);
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                let parsed = black_box(Message::parse(packet.code, packet.payload));
                decoded += u64::from(matches!(parsed, Ok(Some(_))));
            }
        }
    }
    decoded
}

fn each_record(log: &[u8], sink: &mut dyn FnMut(&Record)) {
    let mut reader = LogReader::new();
    for chunk in log.chunks(256 * 1024) {
        reader.push(chunk, &mut |tagged| sink(&tagged.record));
    }
    reader.finish(&mut |tagged| sink(&tagged.record));
}

fn records(log: &[u8]) -> u64 {
    let mut n = 0;
    each_record(log, &mut |record| {
        black_box(record);
        n += 1;
    });
    n
}

fn bursts(log: &[u8]) -> u64 {
    let mut tracker = BurstTracker::new(BurstOptions::default());
    each_record(log, &mut |record| tracker.push(record));
    tracker.finish().len() as u64
}

/// `signalcat` reads the same file; both as whole processes.
fn signalcat(command: &Path, dir: &Path, log: &[u8]) -> Result<()> {
    let path = dir.join("peer.qmdl");
    std::fs::write(&path, log)?;
    let start = Instant::now();
    let status = Command::new(command)
        .args(["-t", "qc", "-F"])
        .arg(dir.join("peer.pcap"))
        .arg("-d")
        .arg(&path)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .with_context(|| command.display().to_string())?;
    let theirs = start.elapsed();
    let start = Instant::now();
    black_box(records(log));
    let ours = start.elapsed();
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "\nsignalcat on {:.0} MB ({status}): {:.2} s, our records {:.3} s, {ratio:.0} times; bar 100: {}",
        log.len() as f64 / 1e6,
        theirs.as_secs_f64(),
        ours.as_secs_f64(),
        word(ratio >= 100.0)
    );
    Ok(())
}

/// Million TTIs that a core judges each second.
const INFERENCE_BAR: f64 = 20.0;

/// A user scheduled in nearly every TTI: the most work per TTI.
fn inference(runs: usize) -> Result<bool> {
    let busy = logs::busy_records(false)?;
    let bursty = logs::busy_records(true)?;
    println!("\ninference, one core:");
    let mut met = true;
    for (name, (records, n_tti)) in [("every TTI scheduled", busy), ("one user of several", bursty)]
    {
        let run: &dyn Fn() -> u64 = &|| {
            let mut tracker = BurstTracker::new(BurstOptions::default());
            records.iter().for_each(|record| tracker.push(record));
            tracker.finish().len() as u64
        };
        let time = in_turn(runs, &[("bursts", run)]).first().copied().unwrap_or_default();
        let rate = n_tti as f64 / time / 1e6;
        let per_record = records.len() as f64 / time / 1e6;
        println!(
            "  {name:22} {rate:>8.1} million TTIs/s, {per_record:.1} million records/s ({} records)",
            records.len()
        );
        met &= rate >= INFERENCE_BAR;
    }
    println!("  bar: {INFERENCE_BAR:.0} million TTIs a second, either way: {}", word(met));
    Ok(met)
}

fn memory(dir: &Path, log: &[u8]) -> Result<()> {
    println!("\npeak memory of diagnose:");
    let mut peaks = Vec::new();
    for times in [1, 10, 100] {
        let path = dir.join(format!("x{times}.mi2log"));
        std::fs::write(&path, logs::repeated(log, log.len() * times))?;
        let out = Command::new(std::env::current_exe()?).arg("--peak").arg(&path).output()?;
        let kib: u64 = String::from_utf8_lossy(&out.stdout).trim().parse().unwrap_or_default();
        println!(
            "  log x{times:<4} {:>8.1} MB of log, {:>8.1} MiB",
            (log.len() * times) as f64 / 1e6,
            kib as f64 / 1024.0
        );
        peaks.push(kib as f64);
    }
    if let [first, .., last] = peaks[..] {
        println!("  {:.2} times the memory for 100 times the log", last / first);
    }
    Ok(())
}

fn peak(log: &Path) -> Result<()> {
    let inputs = Inputs { files: vec![log.to_owned()], ..Inputs::default() };
    black_box(diagnose(&inputs, &RadioOptions::default(), &Progress::default())?);
    println!("{}", packets::resident("VmHWM:")? / 1024);
    Ok(())
}
