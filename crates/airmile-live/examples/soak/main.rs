//! Simulates a day of live operation in some minutes: a log is repeated, each time
//! shifted by its length, through the live engine at full speed; then a day of packets.
//! Prints the resident memory per simulated hour; status 1 if it grew.
//!
//! `soak [--hours 24] [LOG]`; without a log, a generated one.

#![allow(clippy::print_stdout, reason = "the figures are what this is for")]

mod passing;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airmile::RadioOptions;
use airmile::codec::diag::hdlc;
use airmile_host::source::LogSource;
use airmile_live::engine::Engine;

/// A log packet: command, flags, two lengths, code, then 64 bits of time.
const LOG_COMMAND: u8 = 0x10;
const TIME_AT: usize = 8;
/// The SFN wraps after 10.24 s: 8192 ticks of 1.25 ms, stored above 16 bits of chips.
const PERIOD: u64 = 8_192 << 16;
const PERIOD_S: f64 = 10.24;
/// Maximum growth from the second tenth of the run to its end (chosen here: the
/// allocator's own).
const MOST_GROWTH: f64 = 1.1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut hours = 24.0;
    let mut log = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--hours" => hours = words.next().ok_or("--hours: how many?")?.parse()?,
            _ => log = Some(PathBuf::from(word)),
        }
    }
    let dir = tempfile::tempdir()?;
    let log = match log {
        Some(log) => log,
        None => {
            airmile_lab::run_scenario("busy-video", None, &dir.path().join("run"))?;
            dir.path().join("run/modem.mi2log")
        }
    };
    let frames = Frames::read(&log)?;
    let times = (hours * 3600.0 / frames.length_s()).ceil() as u64;
    println!("{}: {:.0} s, {times} times", log.display(), frames.length_s());
    let fifo = dir.path().join("port");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    let source = LogSource::Follow(fifo.clone());
    let mut engine = Engine::start(&source, RadioOptions::default(), None)?;
    let grew = replay(&frames, times, &fifo, &engine)?;
    engine.stop();
    let now = engine.published().now();
    let totals = &now.totals;
    let transfers: u64 = totals.transfers.values().sum();
    println!("{} bursts, {transfers} transfers decided", totals.dl_bursts + totals.ul_bursts);
    drop(engine);
    let packets_grew = pass_packets(hours)?;
    for (what, grew) in [("the log", grew), ("packets", packets_grew)] {
        if grew > MOST_GROWTH {
            return Err(format!("memory grew {grew:.2} times over {what}").into());
        }
    }
    Ok(())
}

/// Returns the memory at the end over that after the second hour.
fn pass_packets(hours: f64) -> Result<f64, Box<dyn Error>> {
    println!("packets of an interface");
    let mut kib = Vec::new();
    let (most_open, over) = passing::pass(hours, &mut |hour| {
        let now_kib = resident_kib().unwrap_or_default();
        println!("hour {hour:>2}: {:>7.1} MiB", now_kib as f64 / 1024.0);
        kib.push(now_kib);
    });
    println!("{most_open} flows open at most, {over} over");
    let early_kib = kib.get(2).or(kib.first()).ok_or("no hours")?;
    Ok(kib.last().copied().unwrap_or_default() as f64 / *early_kib as f64)
}

/// Returns the memory at the end over that after a tenth.
fn replay(
    frames: &Frames,
    times: u64,
    fifo: &Path,
    engine: &Engine,
) -> Result<f64, Box<dyn Error>> {
    let mut port = fs::OpenOptions::new().write(true).open(fifo)?;
    let begun = Instant::now();
    let mut written = 0_u64;
    let mut early_kib = 0;
    let mut next_hour = 0;
    for n in 0..times {
        let bytes = frames.shifted(n);
        port.write_all(&bytes)?;
        written += bytes.len() as u64;
        if n == times / 10 {
            wait(engine, written)?;
            early_kib = resident_kib()?;
        }
        let hour = (n as f64 * frames.length_s() / 3600.0) as u64;
        if hour >= next_hour {
            next_hour = hour + 1;
            let (kib, elapsed) = (resident_kib()?, begun.elapsed().as_secs_f64());
            println!("hour {hour:>2}: {:>7.1} MiB, after {elapsed:.0} s", kib as f64 / 1024.0);
        }
    }
    wait(engine, written)?;
    let (last_kib, elapsed) = (resident_kib()?, begun.elapsed().as_secs_f64());
    println!("end:     {:>7.1} MiB, after {elapsed:.0} s", last_kib as f64 / 1024.0);
    Ok(last_kib as f64 / early_kib as f64)
}

/// Waits until the engine has consumed this many bytes.
fn wait(engine: &Engine, written: u64) -> Result<(), Box<dyn Error>> {
    while engine.published().now().view.intake.bytes < written {
        if engine.has_ended() {
            return Err("the engine is gone".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no VmRSS")?.parse()?)
}

/// The packets of a log, by frame.
struct Frames {
    packets: Vec<Vec<u8>>,
    periods: u64,
}

impl Frames {
    fn read(log: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = fs::read(log)?;
        let mut packets = Vec::new();
        let (mut first, mut last) = (u64::MAX, 0);
        for piece in bytes.split(|byte| *byte == hdlc::TERMINATOR) {
            let mut frame = Vec::new();
            if piece.is_empty() || hdlc::unescape(piece, &mut frame).is_err() {
                continue;
            }
            let Ok(packet) = hdlc::check(&frame) else { continue };
            if let Some(at) = time(packet) {
                (first, last) = (first.min(at), last.max(at));
            }
            packets.push(packet.to_vec());
        }
        if last <= first {
            return Err(format!("{}: no log packets with times", log.display()).into());
        }
        // Whole periods of the SFN, so that it continues.
        Ok(Self { packets, periods: (last - first) / PERIOD + 1 })
    }

    fn length_s(&self) -> f64 {
        self.periods as f64 * PERIOD_S
    }

    /// The log, shifted by this many of its lengths.
    fn shifted(&self, times: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let mut packet = Vec::new();
        for original in &self.packets {
            packet.clear();
            packet.extend_from_slice(original);
            if let Some(at) = time(original) {
                let at = at + times * self.periods * PERIOD;
                packet[TIME_AT..TIME_AT + 8].copy_from_slice(&at.to_le_bytes());
            }
            hdlc::encode(&packet, &mut out);
        }
        out
    }
}

fn time(packet: &[u8]) -> Option<u64> {
    let is_log = packet.first() == Some(&LOG_COMMAND);
    let field = packet.get(TIME_AT..TIME_AT + 8).filter(|_| is_log)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}
