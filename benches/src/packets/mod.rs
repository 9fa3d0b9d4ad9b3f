//! Packet analysis compared with a bare loop, `tcptrace` and `tshark`, in CPU time of one
//! core, and the memory of an open flow.

mod bare;
mod capture;

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use airmile::packets::{PacketOptions, TableFormat};
use airmile::{Progress, read_capture};
use airmile_wire::tcp::{PacketStudy, StudyOptions};
use anyhow::{Context, Result, bail};

use capture::Shape;

/// Packets of a tshark run: it reads some 100,000 a second.
const TSHARK_PACKETS: u64 = 150_000;

/// Fields equivalent to our tables, which `../shared/data/pcap` has for each capture.
const TSHARK_FIELDS: &str = "frame.number frame.time_relative tcp.stream ip.src ip.dst \
    tcp.srcport tcp.dstport tcp.seq tcp.ack tcp.len tcp.flags tcp.window_size_value \
    tcp.window_size tcp.analysis.retransmission tcp.analysis.fast_retransmission \
    tcp.analysis.spurious_retransmission tcp.analysis.out_of_order \
    tcp.analysis.duplicate_ack tcp.analysis.zero_window tcp.analysis.window_full \
    tcp.analysis.lost_segment tcp.analysis.bytes_in_flight tcp.analysis.ack_rtt \
    tcp.options.timestamp.tsval tcp.options.timestamp.tsecr tcp.options.sack_le \
    tcp.options.sack_re";

const SPEED: Shape =
    Shape { flows: 20_000, segments: 160, span_ns: 60_000_000_000, closes: true, outstanding: 0 };

/// Speed compared with the peers; returns whether the thresholds were met. All read the
/// same file, which is in the page cache.
pub fn speed(dir: &Path, runs: usize) -> Result<bool> {
    let path = dir.join("packets.pcap");
    let packets = write(&path, SPEED)?;
    println!(
        "\npackets: {:.1} million of headers alone, {} flows",
        packets as f64 / 1e6,
        SPEED.flows
    );
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs.max(1) {
        let loops: [&dyn Fn() -> Result<u64>; 3] =
            [&|| bare_loop(&path), &|| dissected(&path), &|| studied(&path, 1)];
        for (work, times) in loops.iter().zip(&mut times) {
            let start = cpu_seconds();
            let n = black_box(work()?);
            times.push(cpu_seconds() - start);
            anyhow::ensure!(n == packets, "{n} of {packets} packets were read");
        }
    }
    let [bare, headers, ours] = times.map(median);
    println!("  {:26} {:>14} {:>22}", "loop", "million/s", "ratio to the bare loop");
    for (name, seconds) in [("bare loop", bare), ("frames and headers", headers), ("study", ours)] {
        println!("  {name:26} {:>14.2} {:>22.2}", packets as f64 / 1e6 / seconds, bare / seconds);
    }
    let mut met = bar("study to the bare loop", bare / ours, 1.0 / 3.0);
    met &= cores(&path, runs)?;
    let each = ours / packets as f64;
    met &= peer("tcptrace", tcptrace(), &path, packets, each, 4.0)?;
    let flows = SPEED.flows * TSHARK_PACKETS as u32 / packets.max(1) as u32;
    let packets = write(&path, Shape { flows, ..SPEED })?;
    met &= peer("tshark", tshark(), &path, packets, each, 200.0)?;
    Ok(met)
}

/// Loops that can be run alone under a profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Loop {
    Bare,
    Headers,
    Study,
    TwoThreads,
    Tcptrace,
    Tshark,
    /// Writes the tables, with one thread and more, beside the capture: to compare two builds.
    Tables,
}

/// Runs one loop over a capture, alone for a profiler.
pub fn run_one(which: Loop, path: &Path, shape: &[u32], runs: usize) -> Result<()> {
    if !path.exists() {
        let shape = match *shape {
            [flows, segments] => Shape { flows, segments, ..SPEED },
            _ => SPEED,
        };
        write(path, shape)?;
    }
    let run = |known| match which {
        Loop::Bare => bare_loop(path),
        Loop::Headers => dissected(path),
        Loop::Study => studied(path, 1),
        Loop::TwoThreads => studied(path, 2),
        Loop::Tcptrace => run_peer(&mut tcptrace(), path).map(|()| known),
        Loop::Tshark => run_peer(&mut tshark(), path).map(|()| known),
        Loop::Tables => tables(path),
    };
    if runs == 0 {
        // Without the clock, which valgrind 3.19 cannot read.
        println!("{which:?}: {} packets", run(0)?);
    }
    for _ in 0..runs {
        let known =
            if matches!(which, Loop::Tcptrace | Loop::Tshark) { bare_loop(path)? } else { 0 };
        let (clock, start, others) = (Instant::now(), cpu_seconds(), children_seconds()?);
        let packets = run(known)?;
        let seconds = cpu_seconds() - start + children_seconds()? - others;
        println!(
            "{which:?}: {packets} packets, {:.3} million/s of CPU time, {:.3} million/s on the wall, \
             {:.0} MB at most",
            packets as f64 / 1e6 / seconds,
            packets as f64 / 1e6 / clock.elapsed().as_secs_f64(),
            resident("VmHWM:")? as f64 / 1e6,
        );
    }
    Ok(())
}

fn tables(path: &Path) -> Result<u64> {
    let mut packets = 0;
    for threads in 1..=3 {
        let dir = PathBuf::from(format!("{}.tables-{threads}", path.display()));
        let output = Some((dir.clone(), TableFormat::Csv));
        let options = PacketOptions { threads, output, ..PacketOptions::default() };
        let (report, _) =
            airmile::packets::packets(&[path.to_owned()], &options, &Progress::default())?;
        std::fs::write(dir.join("report.txt"), format!("{report:#?}"))?;
        packets = report.quality.packets;
    }
    Ok(packets)
}

/// Writes its summary of each connection, with round trips.
fn tcptrace() -> Command {
    let mut command = Command::new("tcptrace");
    command.args(["-n", "-l", "-r", "-W"]);
    command
}

fn tshark() -> Command {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields"]);
    TSHARK_FIELDS.split_whitespace().for_each(|field| _ = command.args(["-e", field]));
    command.arg("-r");
    command
}

/// Runs a peer over a capture. An error: its status, and the last line that it wrote to stderr.
fn run_peer(command: &mut Command, path: &Path) -> Result<()> {
    let mut errors = tempfile::tempfile()?;
    let command = command.arg(path).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(errors.try_clone()?).status()?;
    if !status.success() {
        errors.rewind()?;
        let text = std::io::read_to_string(errors)?;
        bail!("{status}: {}", text.trim_end().lines().next_back().unwrap_or("no message"));
    }
    Ok(())
}

/// Whether a command could not be run because it is not installed.
fn is_missing(why: &anyhow::Error) -> bool {
    why.downcast_ref::<std::io::Error>().is_some_and(|why| why.kind() == ErrorKind::NotFound)
}

/// Two threads compared with one. If other processes use the cores, wall time is not
/// meaningful, so the best run counts, and the CPU time of both threads, which two free
/// cores would share, is printed with it.
fn cores(path: &Path, runs: usize) -> Result<bool> {
    let mut wall = [f64::MAX; 2];
    let mut cpu = [f64::MAX; 2];
    for _ in 0..runs.max(1) {
        for (at, (wall, cpu)) in wall.iter_mut().zip(&mut cpu).enumerate() {
            let (start, cpu_start) = (Instant::now(), cpu_seconds());
            black_box(studied(path, at + 1)?);
            *wall = wall.min(start.elapsed().as_secs_f64());
            *cpu = cpu.min(cpu_seconds() - cpu_start);
        }
    }
    println!(
        "  two threads: {:.2} times the CPU time of one, so {:.2} times as fast on two free cores",
        cpu[1] / cpu[0],
        2.0 * cpu[0] / cpu[1]
    );
    Ok(bar("two threads to one, on the wall", wall[0] / wall[1], 1.7))
}

fn write(path: &Path, shape: Shape) -> Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    let packets = capture::generate(shape, &mut out)?;
    out.flush()?;
    Ok(packets)
}

fn bar(what: &str, ratio: f64, least: f64) -> bool {
    let word = super::word(ratio >= least);
    println!("  {what}: {ratio:.2}; bar {least:.2}: {word}");
    ratio >= least
}

/// A peer as a whole process; a missing peer fails no threshold, one that fails does.
fn peer(
    name: &str,
    mut command: Command,
    path: &Path,
    packets: u64,
    each: f64,
    least: f64,
) -> Result<bool> {
    let start = children_seconds()?;
    let ran = run_peer(&mut command, path);
    let theirs = (children_seconds()? - start) / packets as f64;
    if let Err(why) = ran {
        let missing = is_missing(&why);
        let what = if missing { "SKIPPED" } else { "FAILED" };
        let hint = if missing { format!(" (apt-get install {name})") } else { String::new() };
        println!("  {what}: {name}{hint}: {why}");
        return Ok(missing);
    }
    println!("  {name}: {:.3} million/s", 1e-6 / theirs);
    Ok(bar(&format!("study to {name}"), theirs / each, least))
}

fn bare_loop(path: &Path) -> Result<u64> {
    Ok(bare::packets(std::fs::File::open(path)?)?)
}

fn dissected(path: &Path) -> Result<u64> {
    let mut n = 0;
    read_capture(path, &Progress::default(), &mut |packet| {
        black_box(packet);
        n += 1;
    })?;
    Ok(n)
}

/// The work of `airmile packets --threads N` without tables.
fn studied(path: &Path, threads: usize) -> Result<u64> {
    let options = PacketOptions { threads, ..PacketOptions::default() };
    let (report, _) =
        airmile::packets::packets(&[path.to_owned()], &options, &Progress::default())?;
    Ok(report.quality.packets)
}

/// Memory of an open flow, by the slope over three numbers of flows, and of an
/// outstanding segment; and a check that it does not grow with packets.
pub fn memory(dir: &Path) -> Result<bool> {
    println!(
        "\nmemory of open flows (resident, without the capture; freed memory is returned at once):"
    );
    let path = dir.join("open.pcap");
    let measured = |flows: u32, segments: u32, outstanding: u32| -> Result<f64> {
        let span_ns = 20_000_000_000;
        write(&path, Shape { flows, segments, span_ns, closes: false, outstanding })?;
        // By itself the allocator returns freed memory after a second, which is longer than this takes.
        let out = Command::new(std::env::current_exe()?)
            .env("MIMALLOC_PURGE_DELAY", "0")
            .arg("--open-flows")
            .arg(&path)
            .output()?;
        let out = String::from_utf8_lossy(&out.stdout);
        let (bytes, open) = out.trim().split_once(' ').context("no figure")?;
        anyhow::ensure!(open == flows.to_string(), "{open} of {flows} flows are open");
        let bytes: f64 = bytes.parse()?;
        println!(
            "  {flows:>6} flows of {segments:>3} segments, {outstanding:>3} outstanding: {:>6.1} MB",
            bytes / 1e6
        );
        Ok(bytes)
    };
    let sizes = [10_000, 20_000, 40_000];
    let mut points = Vec::new();
    for flows in sizes {
        points.push(measured(flows, 40, 0)?);
    }
    let [first, middle, last] = points[..] else { bail!("a run gave no figure") };
    let slope = (last - first) / f64::from(sizes[2] - sizes[0]);
    let longer = measured(sizes[1], 160, 0)?;
    let outstanding = measured(sizes[1], 40, 64)?;
    println!(
        "  {slope:.0} bytes more for each open flow; bar 2048: {}",
        super::word(slope < 2048.0)
    );
    println!("  {:.2} times the memory for 4 times the packets", longer / middle);
    println!(
        "  {:.0} bytes more for each outstanding segment",
        (outstanding - middle) / 64.0 / f64::from(sizes[1])
    );
    Ok(slope < 2048.0)
}

/// Prints how much the process grows by a study of a capture, and how many flows are still open.
pub fn open_flows(path: &Path) -> Result<()> {
    let before = resident("VmRSS:")?;
    let mut study = PacketStudy::new(StudyOptions::default());
    read_capture(path, &Progress::default(), &mut |packet| study.push(packet))?;
    let after = resident("VmRSS:")?;
    println!("{} {}", after.saturating_sub(before), study.open_flows());
    Ok(())
}

/// Resident bytes of this process: `VmRSS:` now, `VmHWM:` at most.
pub fn resident(which: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix(which)).context("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// CPU time of all threads of this process so far, the kernel's part included.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of children that ended, in hundredths of a second (proc(5), `stat`).
fn children_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse().unwrap_or(0)).sum();
    Ok(ticks as f64 / 100.0)
}

/// The middle one of some times.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_is_not_missing() {
        let fails = |command: &str| {
            let mut shell = Command::new("sh");
            run_peer(shell.args(["-c", command]), Path::new("x.pcap")).unwrap_err()
        };
        let why = fails("echo one >&2; echo 'no such packet' >&2; exit 3");
        assert_eq!(
            (why.to_string().as_str(), is_missing(&why)),
            ("exit status: 3: no such packet", false)
        );
        assert_eq!(fails("exit 1").to_string(), "exit status: 1: no message");
        let missing = run_peer(&mut Command::new("./no-such-peer"), Path::new("x.pcap"));
        assert!(is_missing(&missing.unwrap_err()));
    }

    #[test]
    fn the_bare_loop_and_the_study_read_the_same_packets() {
        let shape = Shape {
            flows: 40,
            segments: 120,
            span_ns: 1_000_000_000,
            closes: true,
            outstanding: 0,
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pcap");
        let packets = write(&path, shape).unwrap();
        assert_eq!(bare_loop(&path).unwrap(), packets);
        assert_eq!((dissected(&path).unwrap(), studied(&path, 1).unwrap()), (packets, packets));
        let mut again = Vec::new();
        assert_eq!(capture::generate(shape, &mut again).unwrap(), packets);
        assert_eq!(again, std::fs::read(&path).unwrap());
    }
}
