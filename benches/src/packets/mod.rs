//! Packet analysis beside a bare loop, `tcptrace` and `tshark`, in CPU time of
//! one core, and the memory of an open flow.

mod bare;
mod capture;

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use airmile_decode::packet::{CaptureReader, Captured, dissect};
use airmile_infer::tcp::{PacketStudy, StudyOptions};
use anyhow::{Context, Result};

use capture::Shape;

/// Bytes that the reader is given at a time, as in `airmile packets`.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Packets of a tshark run: it reads some 100,000 a second.
const TSHARK_PACKETS: u64 = 150_000;

const SPEED: Shape = Shape { flows: 20_000, segments: 160, span_ns: 60_000_000_000, closes: true };

/// Speed beside the peers; whether the bars were met.
pub fn speed(dir: &Path, runs: usize) -> Result<bool> {
    let (bytes, packets) = capture::generated(SPEED);
    println!(
        "\npackets: {:.1} million of headers alone, {} flows",
        packets as f64 / 1e6,
        SPEED.flows
    );
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs.max(1) {
        let loops: [&dyn Fn() -> u64; 3] =
            [&|| bare::packets(&bytes), &|| dissected(&bytes), &|| studied(&bytes)];
        for (work, times) in loops.iter().zip(&mut times) {
            let start = cpu_seconds(Whose::Own)?;
            let n = black_box(work());
            times.push(cpu_seconds(Whose::Own)? - start);
            anyhow::ensure!(n == packets, "{n} of {packets} packets were read");
        }
    }
    let [bare, headers, ours] = times.map(median);
    println!("  {:26} {:>14} {:>22}", "loop", "million/s", "ratio to the bare loop");
    for (name, seconds) in [("bare loop", bare), ("frames and headers", headers), ("study", ours)] {
        println!("  {name:26} {:>14.2} {:>22.2}", packets as f64 / 1e6 / seconds, bare / seconds);
    }
    let mut met = bar("study to the bare loop", bare / ours, 1.0 / 3.0);
    let each = ours / packets as f64;
    let path = dir.join("packets.pcap");
    std::fs::write(&path, &bytes)?;
    met &= peer("tcptrace", &["-n", "-l", "-r", "-W"], &path, packets, each, 4.0)?;
    let (bytes, packets) = capture::generated(Shape {
        flows: SPEED.flows * TSHARK_PACKETS as u32 / packets.max(1) as u32,
        ..SPEED
    });
    std::fs::write(&path, &bytes)?;
    let fields = ["ip.src", "tcp.seq", "tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight"];
    let mut arguments = vec!["-n", "-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    met &= peer("tshark", &arguments, &path, packets, each, 200.0)?;
    Ok(met)
}

fn bar(what: &str, ratio: f64, least: f64) -> bool {
    let word = super::word(ratio >= least);
    println!("  {what}: {ratio:.2}; bar {least:.2}: {word}");
    ratio >= least
}

/// A peer as a whole process; a peer that is not there misses no bar.
fn peer(
    name: &str,
    arguments: &[&str],
    path: &Path,
    packets: u64,
    each: f64,
    least: f64,
) -> Result<bool> {
    let start = cpu_seconds(Whose::Children)?;
    let status = Command::new(name)
        .args(arguments)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let Ok(status) = status else {
        println!("  SKIPPED: {name} is not installed (apt-get install {name})");
        return Ok(true);
    };
    let theirs = (cpu_seconds(Whose::Children)? - start) / packets as f64;
    if !status.success() {
        println!("  SKIPPED: {name}: {status}");
        return Ok(true);
    }
    println!("  {name}: {:.3} million/s", 1e-6 / theirs);
    Ok(bar(&format!("study to {name}"), theirs / each, least))
}

fn each_packet(capture: &[u8], sink: &mut impl FnMut(&airmile_model::packet::Packet<'_>)) {
    let mut reader = CaptureReader::new();
    let mut take = |captured: Captured<'_>| {
        if let Captured::Frame(frame) = captured
            && let Ok(packet) = dissect(&frame)
        {
            sink(&packet);
        }
    };
    for chunk in capture.chunks(CHUNK_BYTES) {
        reader.push(chunk, &mut take);
    }
    reader.finish(&mut take);
}

fn dissected(capture: &[u8]) -> u64 {
    let mut n = 0;
    each_packet(capture, &mut |packet| {
        black_box(packet);
        n += 1;
    });
    n
}

fn studied(capture: &[u8]) -> u64 {
    let mut study = PacketStudy::new(StudyOptions::default());
    each_packet(capture, &mut |packet| {
        study.push(packet);
        while let Some(row) = study.poll() {
            black_box(&row);
        }
    });
    study.finish().quality.packets
}

/// Memory of an open flow by the slope over three numbers of flows, and that it
/// does not grow with their packets.
pub fn memory() -> Result<bool> {
    println!("\nmemory of open flows (resident, beside the capture):");
    let mut points = Vec::new();
    for (flows, segments) in [(5_000, 40), (10_000, 40), (20_000, 40), (20_000, 160)] {
        let out = Command::new(std::env::current_exe()?)
            .args(["--open-flows", &format!("{flows},{segments}")])
            .output()?;
        let bytes: f64 =
            String::from_utf8_lossy(&out.stdout).trim().parse().context("no figure")?;
        println!(
            "  {flows:>6} flows of {segments:>3} segments {:>8.1} MB, {:>6.0} bytes a flow",
            bytes / 1e6,
            bytes / f64::from(flows)
        );
        points.push((f64::from(flows), bytes));
    }
    let [first, _, last, longer] = points[..] else { anyhow::bail!("a run gave no figure") };
    let slope = (last.1 - first.1) / (last.0 - first.0);
    println!(
        "  {slope:.0} bytes more for each open flow; bar 2048: {}",
        super::word(slope < 2048.0)
    );
    println!("  {:.2} times the memory for 4 times the packets", longer.1 / last.1);
    Ok(slope < 2048.0)
}

/// Prints by how much the process grows while this many flows are open.
pub fn open_flows(flows: u32, segments: u32) -> Result<()> {
    let span_ns = 20_000_000_000;
    let (bytes, _) = capture::generated(Shape { flows, segments, span_ns, closes: false });
    let before = resident()?;
    let mut study = PacketStudy::new(StudyOptions::default());
    each_packet(&bytes, &mut |packet| study.push(packet));
    let after = resident()?;
    anyhow::ensure!(study.open_flows() == flows as usize, "{} are open", study.open_flows());
    black_box(&study);
    println!("{}", after.saturating_sub(before));
    Ok(())
}

/// Resident bytes of this process.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

#[derive(Clone, Copy)]
enum Whose {
    Own,
    Children,
}

/// User CPU time so far, in hundredths of a second (proc(5), `stat`).
fn cpu_seconds(whose: Whose) -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let at = match whose {
        Whose::Own => 11,
        Whose::Children => 13,
    };
    let ticks: f64 = fields.split_whitespace().nth(at).context("/proc/self/stat")?.parse()?;
    Ok(ticks / 100.0)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_loop_and_the_study_read_the_same_packets() {
        let shape = Shape { flows: 40, segments: 120, span_ns: 1_000_000_000, closes: true };
        let (bytes, packets) = capture::generated(shape);
        assert_eq!((bare::packets(&bytes), studied(&bytes)), (packets, packets));
        let mut study = PacketStudy::new(StudyOptions::default());
        each_packet(&bytes, &mut |packet| study.push(packet));
        assert_eq!(study.open_flows(), 40);
        assert_eq!(capture::generated(shape).0, bytes);
    }
}
