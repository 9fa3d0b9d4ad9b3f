//! The packet study against known truth: captures of emulated links (`emu-*`), and captures
//! changed in one stated way (`drv-*`).

use std::path::Path;

use airmile_model::flow::{BandwidthSample, FlowRow};
use airmile_model::{Direction, Protocol};
use airmile_wire::tcp::SendRateThreshold;
use anyhow::Context;
use serde_json::Value;

use crate::capture::{Kept, Studied, frames, study};

/// Bars: mean error of the bandwidth over 1 s, of G, of promotion.
const BANDWIDTH_BAR: f64 = 0.04;
/// The same where the transfers are short, periodic, or limited by their reader: an estimate is rare.
const BANDWIDTH_BAR_ELSEWHERE: f64 = 0.1;
/// Seconds that follow each other by 100 ms: fewer than these are of one stretch, and not barred.
const MIN_WINDOWS_ELSEWHERE: usize = 20;
/// A second's estimate needs samples that cover nine tenths of it.
const COVERED_NS: i64 = 900_000_000;
const TICK_BAR: f64 = 0.001;
const PROMOTION_BAR: f64 = 0.02;

struct Check {
    all_met: bool,
}

impl Check {
    fn at_most(&mut self, what: &str, value: f64, bar: f64, n: usize, paper: &str) {
        let met = value <= bar && n > 0;
        self.all_met &= met;
        let word = if met { "met" } else { "MISSED" };
        let (value, bar) = (value * 100.0, bar * 100.0);
        println!("  {what:<52} {value:>7.3} %  <= {bar:.1} %  n={n:<5} {word} {paper}");
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: T, expected: T) {
        let met = got == expected;
        self.all_met &= met;
        let word = if met { "met" } else { "MISSED" };
        println!("  {what:<52} {got:?} = {expected:?}  {word}");
    }
}

/// Runs and prints the checks; `None` without the captures.
pub fn measure(shared: &Path) -> anyhow::Result<Option<bool>> {
    let dir = shared.join("data/pcap");
    println!("\n== Packet captures with known truth\n");
    if !dir.join("truth.json").is_file() {
        println!("SKIPPED: no {}", dir.display());
        return Ok(None);
    }
    let mut check = Check { all_met: true };
    let truth: Value = serde_json::from_slice(&std::fs::read(dir.join("truth.json"))?)?;
    counts(&dir, &truth, &mut check)?;
    clocks(&dir, &mut check)?;
    promotions(&dir, &truth, &mut check)?;
    for name in ["lte_bulk_cubic", "lte_bulk_bbr"] {
        bandwidth(&dir, name, BANDWIDTH_BAR, &mut check)?;
    }
    for name in ["lte_mixed", "lte_rwin", "lte_promo", "lte_promo2"] {
        bandwidth(&dir, name, BANDWIDTH_BAR_ELSEWHERE, &mut check)?;
    }
    derived(&dir, &mut check)?;
    Ok(Some(check.all_met))
}

fn open(dir: &Path, name: &str) -> anyhow::Result<Vec<Kept>> {
    Ok(frames(&dir.join(name))?.0)
}

fn counts(dir: &Path, truth: &Value, check: &mut Check) -> anyhow::Result<()> {
    println!("Retransmissions and segments, as counted");
    for (run, about) in truth.as_object().into_iter().flatten() {
        for capture in about["captures"].as_array().into_iter().flatten() {
            let name = capture.as_str().context("a capture's name")?;
            if name.contains(".ue.") {
                continue;
            }
            let studied = study(&open(dir, name)?, SendRateThreshold::Auto);
            let sum = |of: fn(&FlowRow) -> u64| studied.flows.iter().map(of).sum::<u64>();
            let counted = |key: &str| about["counted"][key].as_u64().unwrap_or(u64::MAX);
            let retx = counted("retransmitted_data_packets_down");
            check.same(&format!("{run}: retransmitted, down"), sum(|f| f.dl_retx), retx);
            let retx = counted("retransmitted_data_packets_up");
            check.same(&format!("{run}: retransmitted, up"), sum(|f| f.ul_retx), retx);
            let wrong = studied.flows.iter().map(|f| f.dl_reordered).sum::<u64>();
            check.same(&format!("{run}: reordered"), wrong, 0);
        }
    }
    Ok(())
}

fn clocks(dir: &Path, check: &mut Check) -> anyhow::Result<()> {
    println!("\nTime stamp clocks, G (delta_G 3 s)");
    let runs = [
        ("emu-lte_bulk_cubic.mon.pcap", 1e6),
        ("emu-lte_bulk_bbr.mon.pcap.gz", 1e6),
        ("drv-G10ms.pcap.gz", 1e7),
    ];
    for (name, expected) in runs {
        let studied = study(&open(dir, name)?, SendRateThreshold::Auto);
        let ticks: Vec<f64> = studied.flows.iter().filter_map(|f| f.client_tick_ns).collect();
        let worst = ticks.iter().map(|t| (t / expected - 1.0).abs()).fold(0.0, f64::max);
        check.at_most(&format!("{name}: client"), worst, TICK_BAR, ticks.len(), "[paper 0.1 %]");
        let ticks: Vec<f64> = studied.flows.iter().filter_map(|f| f.server_tick_ns).collect();
        let worst = ticks.iter().map(|t| (t / 1e6 - 1.0).abs()).fold(0.0, f64::max);
        check.at_most(&format!("{name}: server"), worst, TICK_BAR, ticks.len(), "");
    }
    Ok(())
}

fn promotions(dir: &Path, truth: &Value, check: &mut Check) -> anyhow::Result<()> {
    println!("\nPromotion delay");
    let studied = study(&open(dir, "emu-lte_promo2.mon.pcap")?, SendRateThreshold::Auto);
    let expected = truth["lte_promo2"]["settings"]["promotion_ms"].as_f64().unwrap_or(0.0) * 1e6;
    let found: Vec<f64> =
        studied.flows.iter().filter_map(|f| f.promotion_ns).map(|ns| ns as f64).collect();
    let errors: Vec<f64> = found.iter().map(|ns| (ns / expected - 1.0).abs()).collect();
    let mean = mean_of(&errors);
    check.at_most("emu-lte_promo2: mean error", mean, PROMOTION_BAR, errors.len(), "");
    let handshakes = studied.flows.iter().filter(|f| f.protocol == Protocol::Tcp).count();
    check.same("emu-lte_promo2: all handshakes but the first", found.len() + 1, handshakes);
    let studied = study(&open(dir, "emu-lte_promo.mon.pcap")?, SendRateThreshold::Auto);
    let found = studied.flows.iter().filter(|f| f.promotion_ns.is_some()).count();
    check.same("emu-lte_promo: DNS took the promotion, none qualify", found, 0);
    Ok(())
}

fn mean_of(errors: &[f64]) -> f64 {
    errors.iter().fold(0.0, |sum, error| sum + error) / errors.len().max(1) as f64
}

/// A column of a run's truth, by 100 ms.
fn column(path: &Path, name: &str) -> anyhow::Result<Vec<f64>> {
    let text = std::fs::read_to_string(path)?;
    let header = text.lines().next().unwrap_or_default();
    let at = header.split(',').position(|column| column == name).context("a column")?;
    let value = |line: &str| line.split(',').nth(at).and_then(|x| x.parse::<f64>().ok());
    Ok(text.lines().skip(1).filter_map(value).collect())
}

/// Start of the run's truth on the capture's clock: where the uplink bytes of both agree
/// best.
fn run_start(kept: &[Kept], truth: &Path) -> anyhow::Result<i64> {
    let up = column(truth, "up_bytes_delivered")?;
    let first = kept.first().map_or(0, Kept::at_ns);
    let disagreement = |start: i64| {
        let mut seen = vec![0.0; up.len()];
        for packet in kept.iter().filter(|p| p.is_from([10, 9, 0, 2])) {
            let bin = usize::try_from((packet.at_ns() - start) / 100_000_000).unwrap_or(usize::MAX);
            if let Some(bin) = seen.get_mut(bin) {
                *bin += packet.wire_bytes();
            }
        }
        seen.iter().zip(&up).map(|(a, b)| (a - b).abs()).sum::<f64>()
    };
    let starts = (0..600).map(|n| first - n * 5_000_000);
    let best = starts.min_by(|a, b| disagreement(*a).total_cmp(&disagreement(*b)));
    best.context("a start")
}

fn bandwidth(dir: &Path, run: &str, most: f64, check: &mut Check) -> anyhow::Result<()> {
    println!("\nAvailable bandwidth, {run}");
    let name = ["mon.pcap", "mon.pcap.gz"]
        .map(|end| format!("emu-{run}.{end}"))
        .into_iter()
        .find(|name| dir.join(name).is_file())
        .context("a capture of the run")?;
    let kept = open(dir, &name)?;
    let truth = dir.join(format!("emu-{run}.truth.csv"));
    let offered: Vec<f64> =
        column(&truth, "down_opportunities")?.iter().map(|n| n * 1500.0).collect();
    let start = run_start(&kept, &truth)?;
    for (bar, words, barred) in [
        (SendRateThreshold::Auto, "auto", true),
        (SendRateThreshold::Fixed(30e6), "C = 30 Mbit/s", false),
        (SendRateThreshold::Fixed(10e6), "C = 10 Mbit/s", false),
    ] {
        let studied = study(&kept, bar);
        let ip_per_payload = whole_packets(&studied);
        let samples: Vec<&BandwidthSample> = studied
            .bandwidth
            .iter()
            .filter(|s| s.dir == Direction::Dl && s.is_whole_link())
            .collect();
        let errors = window_errors(&samples, &offered, start, ip_per_payload);
        let mean = mean_of(&errors);
        let what = format!("1 s windows, {words}, {} samples", samples.len());
        let (n, elsewhere) = (errors.len(), most > BANDWIDTH_BAR);
        let percent = mean * 100.0;
        match n {
            _ if !barred => println!("  {what:<52} {percent:>7.3} %  n={n}"),
            0 if elsewhere => println!("  {what:<52} no estimate"),
            ..MIN_WINDOWS_ELSEWHERE if elsewhere => {
                println!("  {what:<52} {percent:>7.3} %  n={n:<5} not barred, too few");
            }
            _ => check.at_most(&what, mean, most, n, "[paper 7.9 %]"),
        }
    }
    Ok(())
}

/// IP bytes per payload byte: opportunities count headers, samples do not.
fn whole_packets(studied: &Studied) -> f64 {
    let ip: u64 = studied.flows.iter().map(|f| f.dl_ip_bytes).sum();
    let payload: u64 = studied.flows.iter().map(|f| f.dl_bytes + f.dl_retx_bytes).sum();
    ip as f64 / payload.max(1) as f64
}

/// Errors over 1 s windows, sliding by 100 ms: mean of the samples in the window by their
/// length, against the link's capacity.
fn window_errors(
    samples: &[&BandwidthSample],
    offered: &[f64],
    start: i64,
    ip_per_payload: f64,
) -> Vec<f64> {
    const WINDOW: usize = 10;
    let mut errors = Vec::new();
    for (at, window) in offered.windows(WINDOW).enumerate() {
        let from = start + at as i64 * 100_000_000;
        let within = from..from + WINDOW as i64 * 100_000_000;
        let inside: Vec<_> = samples.iter().filter(|s| within.contains(&s.time_ns)).collect();
        let covered_ns: i64 = inside.iter().map(|s| s.window_ns).sum();
        let truth = window.iter().sum::<f64>() * 8.0;
        // At least three of the four samples in a second; in pieces they miss the pauses.
        if inside.len() >= 3 && covered_ns >= COVERED_NS && truth > 0.0 {
            let bits: f64 =
                inside.iter().map(|s| s.r_rcv_bps * ip_per_payload * s.window_ns as f64).sum();
            let estimate = bits / covered_ns as f64;
            errors.push((estimate / truth - 1.0).abs());
        }
    }
    errors
}

/// A flow row's TCP values that do not depend on the change to the capture.
fn tcp_facts(row: &FlowRow) -> (u64, u64, u64, u64, u64, u64, String) {
    let ends = format!("{} {} {}", row.client, row.server_port, row.termination);
    (row.dl_bytes, row.ul_bytes, row.dl_retx_bytes, row.ul_retx, row.dl_retx, row.dl_dup_acks, ends)
}

fn derived(dir: &Path, check: &mut Check) -> anyhow::Result<()> {
    println!("\nCaptures changed in one way");
    let auto = SendRateThreshold::Auto;
    let facts = |kept: &[Kept]| study(kept, auto).flows.iter().map(tcp_facts).collect::<Vec<_>>();
    let promo = open(dir, "emu-lte_promo.mon.pcap")?;
    let wrapped = open(dir, "drv-seqwrap.pcap")?;
    check.same("drv-seqwrap: flows as before", facts(&wrapped) == facts(&promo), true);
    let rwin = open(dir, "emu-lte_rwin.mon.pcap")?;
    let twice = open(dir, "drv-mirrored-twice.pcap")?;
    let once = rwin.get(..800).context("800 packets")?;
    check.same("drv-mirrored-twice: flows as once", facts(&twice) == facts(once), true);
    check.same("drv-mirrored-twice: copies", study(&twice, auto).summary.quality.copies, 800);
    let cubic = open(dir, "emu-lte_bulk_cubic.mon.pcap")?;
    let merged = study(&open(dir, "drv-gro.pcap")?, auto);
    let apart = study(cubic.get(..4000).context("4000 packets")?, auto);
    let bytes = |s: &Studied| {
        s.flows.iter().map(|f| (f.dl_bytes, f.ul_bytes, f.dl_retx_bytes)).collect::<Vec<_>>()
    };
    check.same("drv-gro: bytes as before", bytes(&merged) == bytes(&apart), true);
    check.same("drv-gro: super-segments", merged.summary.quality.super_segments > 0, true);
    let mixed = open(dir, "emu-lte_mixed.mon.pcap.gz")?;
    let tunnelled = open(dir, "drv-gtpu.pcap.gz")?;
    let plain = mixed.get(..3000).context("3000 packets")?;
    check.same("drv-gtpu: flows as without the tunnel", facts(&tunnelled) == facts(plain), true);
    let (cut, problems) = frames(&dir.join("drv-cut-midrecord.pcap"))?;
    let same = study(&cut, auto).flows.len() == 1;
    check.same(
        "drv-cut-midrecord: read, and the cut is reported",
        (same, problems.len()),
        (true, 1),
    );
    Ok(())
}
