//! Senders observed from the gateway, compared with their own state in runs of the lab:
//! undesired slow starts, and congestion windows.

use std::collections::HashSet;

use airmile_capture::packet::{Frame, dissect};
use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::tcp::{ConnectionEvent, EventKind, Retransmission};
use airmile_emulate::{
    CapturePoint, DropPoint, RunSink, Scenario, SenderPlace, SenderState, UserId, named, run_into,
};
use airmile_model::flow::{InflightSample, PacketRow, TcpEvent};
use airmile_model::{Direction, TcpEventKind};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Tables};
use anyhow::Context;

use crate::jobs::on_all_cores;
use crate::score::percentile;

/// Thresholds: precision and recall of undesired slow starts, and the error of the sender's
/// window.
const FOUND_BAR: f64 = 0.95;
const WINDOW_BAR: f64 = 0.10;
/// Runs of each condition; no experiment and no other test uses these seeds, and the rules
/// were developed on others (81,000 on).
const SEED: u64 = 82_000;
const RUNS: u64 = 12;
/// LINKTYPE_RAW.
const RAW: u32 = 101;

/// A data segment as sent by the server.
struct Sent {
    at_ns: i64,
    seq: u32,
    ip_id: u16,
}

/// Observations of a run.
struct Watch {
    study: PacketStudy,
    rows: Vec<PacketRow>,
    offset: u64,
    sent: Vec<Sent>,
    dropped: HashSet<u16>,
    states: Vec<SenderState>,
    /// Timeouts during loss recovery: time, and the first stream byte that was
    /// retransmitted.
    timers: Vec<(i64, Option<u64>)>,
}

impl RunSink for Watch {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        let to_phone = packet.dst.ip().is_private();
        if point == CapturePoint::Server && to_phone && segment.payload_bytes() > 0 {
            self.sent.push(Sent { at_ns, seq: segment.seq, ip_id: packet.ip_id });
        }
        if point != CapturePoint::ProxyRan {
            return;
        }
        let data = packet.emit();
        let (offset, wire_bytes) = (self.offset, packet.ip_bytes());
        self.offset += u64::from(wire_bytes);
        let frame = Frame { offset, at_ns, interface: 0, link: RAW, wire_bytes, data: &data };
        if let Ok(packet) = dissect(&frame) {
            self.study.push(&packet);
        }
        self.rows.extend(std::iter::from_fn(|| self.study.poll()));
    }

    fn dropped(&mut self, _at_ns: i64, user: UserId, _point: DropPoint, packet: &IpPacket) {
        if user.is_measured() && packet.dst.ip().is_private() {
            self.dropped.insert(packet.ip_id);
        }
    }

    fn wants_senders(&self) -> bool {
        true
    }

    fn sender_state(&mut self, state: &SenderState) {
        if state.place == SenderPlace::Server {
            self.states.push(*state);
        }
    }

    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        if place != SenderPlace::Server {
            return;
        }
        match &event.event.kind {
            EventKind::RtoExpired { in_recovery: true, .. } => {
                self.timers.push((event.event.at_ns, None));
            }
            EventKind::Retransmitted { kind: Retransmission::Rto, range } => {
                if let Some((_, again @ None)) = self.timers.last_mut() {
                    *again = Some(range.start);
                }
            }
            _ => {}
        }
    }
}

fn watch(scenario: &Scenario) -> anyhow::Result<Watch> {
    let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
    let mut watch = Watch {
        study: PacketStudy::new(options.clone()),
        rows: Vec::new(),
        offset: 0,
        sent: Vec::new(),
        dropped: HashSet::new(),
        states: Vec::new(),
        timers: Vec::new(),
    };
    run_into(scenario, &mut watch)?;
    let study = std::mem::replace(&mut watch.study, PacketStudy::new(options));
    let rows = &mut watch.rows;
    let _summary = study.finish_with(&mut |row| rows.push(row));
    Ok(watch)
}

impl Watch {
    /// Stream positions of timeouts while the last retransmission was in transit, or had
    /// arrived.
    fn too_soon(&self) -> Vec<i64> {
        let Some(first) = self.sent.first() else { return Vec::new() };
        let mut last = None;
        let mut found = Vec::new();
        for &(at_ns, again) in &self.timers {
            let Some(again) = again else { continue };
            let seq = first.seq.wrapping_add(again as u32);
            let mut before = self.sent.iter().rev().filter(|s| s.at_ns < at_ns);
            let copy = before.find(|s| s.seq == seq);
            let lost = copy.is_none_or(|copy| self.dropped.contains(&copy.ip_id));
            // A repeated timeout for the same data: still one slow start.
            if !lost && last.replace(again) != Some(again) {
                found.push(again as i64);
            }
        }
        found
    }

    fn bursts(&self) -> impl Iterator<Item = &TcpEvent> {
        self.rows.iter().filter_map(|row| match row {
            PacketRow::Tcp(event)
                if event.dir == Direction::Dl
                    && matches!(event.event, TcpEventKind::SlowStart | TcpEventKind::Recovered) =>
            {
                Some(&**event)
            }
            _ => None,
        })
    }
}

/// Counts of true positives, reported events, and actual events.
#[derive(Default)]
struct Found {
    right: usize,
    reported: usize,
    there: usize,
}

impl Found {
    fn take(&mut self, truth: &[i64], reported: impl Iterator<Item = i64>) {
        let mut left = truth.to_vec();
        self.there += truth.len();
        for at in reported {
            self.reported += 1;
            if let Some(found) = left.iter().position(|there| *there == at) {
                left.swap_remove(found);
                self.right += 1;
            }
        }
    }

    /// Prints precision and recall; returns whether both reach the bar.
    fn print(&self, what: &str, bar: Option<f64>) -> bool {
        let precision = self.right as f64 / self.reported.max(1) as f64;
        let recall = self.right as f64 / self.there.max(1) as f64;
        let met = bar.is_none_or(|bar| precision >= bar && recall >= bar && self.there > 0);
        let word = if bar.is_none() {
            ""
        } else if met {
            "met"
        } else {
            "MISSED"
        };
        let Self { reported, there, .. } = self;
        println!(
            "  {what:<44} precision {:>5.1} %  recall {:>5.1} %  reported {reported}, actual {there}  {word}",
            100.0 * precision,
            100.0 * recall
        );
        met
    }
}

/// Conditions: loss, mean SNR in dB, round trip of the core in ms, and whether the server
/// takes RTT samples from SACK.
const CONDITIONS: [(f64, f64, u32, bool); 6] = [
    (0.0005, 8.0, 40, false),
    (0.002, 8.0, 40, false),
    (0.0005, 12.0, 80, false),
    (0.001, 5.0, 60, false),
    (0.005, 14.0, 30, false),
    (0.001, 8.0, 40, true),
];

fn slow_starts() -> anyhow::Result<bool> {
    println!("Undesired slow starts: timeouts while the retransmission was in transit");
    let base = named("undesired-slow-start").context("a scenario of the library")?.scenario();
    let (mut ours, mut paper) = (Found::default(), Found::default());
    for (n, &(loss, snr_db, rtt_ms, from_sack)) in CONDITIONS.iter().enumerate() {
        let mut here = Found::default();
        let runs: Vec<u64> = (0..RUNS).collect();
        let seen = on_all_cores(&runs, |_, run| {
            let mut scenario = base.clone();
            scenario.seed = SEED + 100 * n as u64 + run;
            scenario.core.down.loss = loss;
            scenario.core.rtt_ms = rtt_ms;
            scenario.core.proxy_rtt_ms = 10;
            scenario.link.snr_mean_db = snr_db;
            scenario.server_tcp.rtt_from_sack = from_sack;
            scenario.proxy = Some(airmile_emulate::proxy::ProxyConfig::default());
            scenario.causes.clear();
            watch(&scenario)
        })?;
        for seen in seen {
            let truth = seen.too_soon();
            let too_soon = |e: &&TcpEvent| e.timer_too_soon == Some(true);
            let times: Vec<i64> = seen.bursts().filter(too_soon).map(place_of).collect();
            here.take(&truth, times.iter().copied());
            ours.take(&truth, times.into_iter());
            let by_rate = seen.bursts().filter(|e| e.event == TcpEventKind::SlowStart);
            paper.take(&truth, by_rate.map(place_of));
        }
        let sack = if from_sack { ", RTT from SACK" } else { "" };
        let what = format!("loss {loss}, {snr_db} dB, {rtt_ms} ms{sack}");
        here.print(&what, None);
    }
    let met = ours.print("all", Some(FOUND_BAR));
    paper.print("all, by the paper's R_ss", None);
    Ok(met)
}

/// The library's scenarios in which the server sends over TCP.
const WINDOWS: [&str; 8] = [
    "idle",
    "busy-file",
    "weak-signal",
    "driving",
    "wireline-limited",
    "receive-window",
    "rate-limited-server",
    "busy-video",
];

fn windows() -> anyhow::Result<bool> {
    println!("\nCongestion window by its flight, at send opportunities, against the sender's own");
    let mut all = Vec::new();
    for (n, name) in WINDOWS.iter().enumerate() {
        let base = named(name).context("a scenario of the library")?.scenario();
        let (mut errors, mut samples) = (Vec::new(), 0);
        let found = on_all_cores(&[0, 1, 2, 3], |_, run| {
            let mut scenario = base.clone();
            scenario.seed = SEED + 5_000 + 100 * n as u64 + run;
            scenario.causes.clear();
            scenario.proxy = Some(airmile_emulate::proxy::ProxyConfig::default());
            scenario.core.proxy_rtt_ms = scenario.core.rtt_ms / 4;
            let distance_ns =
                i64::from(scenario.core.rtt_ms - scenario.core.proxy_rtt_ms) * 1_000_000 / 2;
            Ok(watch(&scenario)?.window_errors(distance_ns))
        })?;
        for (of_run, of_all) in found {
            errors.extend(of_run);
            samples += of_all;
        }
        let (mean, p90) = (mean_of(&errors), percentile(&errors, 0.9));
        println!(
            "  {name:<22} mean {:>6.2} %  90th percentile {:>6.2} %  n={} of {samples}",
            100.0 * mean,
            100.0 * p90,
            errors.len()
        );
        all.extend(errors);
    }
    let mean = mean_of(&all);
    let met = mean <= WINDOW_BAR && !all.is_empty();
    let word = if met { "met" } else { "MISSED" };
    println!(
        "  {:<22} mean {:>6.2} %  <= {:.0} %  n={}  {word}",
        "all",
        100.0 * mean,
        100.0 * WINDOW_BAR,
        all.len()
    );
    Ok(met)
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Watch {
    /// Relative errors of estimated windows, and the total number of samples.
    fn window_errors(&self, distance_ns: i64) -> (Vec<f64>, usize) {
        let samples: Vec<&InflightSample> = self
            .rows
            .iter()
            .filter_map(|row| match row {
                PacketRow::Inflight(sample) if sample.dir == Direction::Dl => Some(sample),
                _ => None,
            })
            .collect();
        let error = |sample: &&InflightSample| {
            let estimated = sample.cwnd_bytes? as f64;
            let sent_ns = sample.time_ns - distance_ns;
            let at = self.states.partition_point(|state| state.at_ns < sent_ns);
            let own = self.states.get(at)?.snapshot.cwnd_bytes as f64;
            Some((estimated / own - 1.0).abs())
        };
        (samples.iter().filter_map(error).collect(), samples.len())
    }
}

/// Stream offset of the first missing byte, as its sender counts.
fn place_of(event: &TcpEvent) -> i64 {
    event.offset_bytes - 1
}

/// Runs and prints the checks.
pub fn measure() -> anyhow::Result<bool> {
    println!("\n== Senders, seen from the gateway in runs of the lab\n");
    let found = slow_starts()?;
    Ok(windows()? && found)
}
