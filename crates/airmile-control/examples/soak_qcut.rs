//! Simulates hours of an uplink in minutes: the rate changes, the modem falls silent, the
//! phone changes cells, flows start and end. No packet may be lost except by a CoDel drop,
//! the gate may not stay shut, and memory may not grow. Exits with status 1 otherwise.
//!
//! `soak_qcut [--hours 30] [--seed 1]`
//!
//! The modem is a queue that sends at a given rate each TTI and writes a log in delayed
//! batches, as a phone does. Each sender has a window that grows by a packet a round trip
//! and halves at a drop.

#![allow(clippy::print_stdout, reason = "the example prints figures")]

use std::collections::VecDeque;
use std::error::Error;
use std::process::ExitCode;

use airmile_control::qcut::{BufferEvidence, ModemReport, PacketInfo, Qcut, QcutConfig, TCP, UDP};

const MS: i64 = 1_000_000;
const HOUR_TTIS: i64 = 3_600_000;
/// Round trip from the air interface to the remote host and back.
const PATH_TTIS: i64 = 50;
/// Delay from a log batch to its evaluation.
const LATE_TTIS: i64 = 5;
/// The gate opens after a second without any evidence; plus one poll.
const STUCK_TTIS: i64 = 1_020;
/// Maximum memory growth from the second tenth of the run to its end (chosen here: the
/// allocator's own variation).
const MAX_GROWTH: f64 = 1.1;

/// Deterministic pseudo-random numbers (SplitMix64, Steele, Lea, Flood: OOPSLA 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[derive(Clone, Copy)]
struct SoakPacket {
    flow: usize,
    bytes: u32,
    end: u32,
}

/// A sender of large packets; its window is in packets.
#[derive(Clone, Copy, Default)]
struct Sender {
    window: f64,
    out: u32,
    sent: u32,
    runs: bool,
}

/// The radio and the modem below the gate.
#[derive(Default)]
struct ModemModel {
    queue: VecDeque<(SoakPacket, u32)>,
    queued_bytes: u64,
    bytes_per_tti: u64,
    credit: u64,
    interrupted_until: i64,
    silent_until: i64,
    /// Blocks that are not written yet, and written ones by the time at which they are
    /// read.
    batch: Vec<(i64, u64)>,
    written: VecDeque<(i64, ModemReport)>,
    written_until: i64,
    most_bytes: u64,
}

impl ModemModel {
    fn step(&mut self, tti: i64, arrived: &mut VecDeque<(i64, SoakPacket)>) {
        self.most_bytes = self.most_bytes.max(self.queued_bytes);
        let can = if tti < self.interrupted_until { 0 } else { self.bytes_per_tti };
        self.credit = (self.credit + can).min(20_000);
        // Blocks smaller than a packet are granted every few TTIs.
        let block = self.credit.min(self.queued_bytes);
        if block > 0 && (block >= 200 || self.credit >= 3_000) {
            self.credit -= block;
            self.queued_bytes -= block;
            let mut left = block;
            while let Some((packet, rest)) = self.queue.front_mut() {
                let part = left.min((*rest).into());
                *rest -= part as u32;
                left -= part;
                if *rest > 0 {
                    break;
                }
                arrived.push_back((tti + PATH_TTIS, *packet));
                self.queue.pop_front();
            }
            self.batch.push((tti, block));
        }
        let is_quiet = self.batch.last().is_some_and(|(last, _)| tti - last >= 10);
        if self.batch.len() >= 11 || is_quiet {
            let is_silent = tti < self.silent_until;
            for (at, bytes) in std::mem::take(&mut self.batch) {
                let from = if at - self.written_until > 100 { at } else { self.written_until };
                self.written_until = at + 1;
                let report = ModemReport::Sent {
                    from_ns: from.min(at) * MS,
                    to_ns: (at + 1) * MS,
                    low_bytes: bytes - bytes / 25,
                    high_bytes: bytes + 20,
                    largest_bytes: bytes,
                };
                if !is_silent {
                    self.written.push_back((tti + LATE_TTIS, report));
                }
            }
        }
        if tti % 40 == 0 && tti >= self.silent_until {
            // A range of 10 %, as the table's steps are (TS 36.321, 6.1.3.1).
            let bytes = self.queued_bytes;
            let (low_bytes, high_bytes) = (bytes - bytes / 10, bytes + bytes / 10 + 10);
            let report = ModemReport::Waiting { at_ns: (tti + 1) * MS - 1, low_bytes, high_bytes };
            self.written.push_back((tti + LATE_TTIS, report));
        }
    }
}

/// The state of a run.
struct Soak {
    random: SplitMix64,
    qcut: Qcut<SoakPacket>,
    modem: ModemModel,
    flows: Vec<Sender>,
    arrived: VecDeque<(i64, SoakPacket)>,
    handed: u64,
    delivered: u64,
    dropped: u64,
    sent: u64,
    last_handed: i64,
    most_idle: i64,
    probes: VecDeque<(i64, airmile_control::qcut::ProbeId)>,
    changes: [u64; 3],
}

impl Soak {
    fn new(seed: u64, evidence: BufferEvidence) -> Self {
        Self {
            random: SplitMix64(seed),
            qcut: Qcut::new(QcutConfig { evidence, ..QcutConfig::default() }),
            modem: ModemModel { bytes_per_tti: 800, ..ModemModel::default() },
            flows: vec![Sender { window: 4.0, ..Sender::default() }; 8],
            arrived: VecDeque::new(),
            handed: 0,
            delivered: 0,
            dropped: 0,
            sent: 0,
            last_handed: 0,
            most_idle: 0,
            probes: VecDeque::new(),
            changes: [0; 3],
        }
    }

    /// Triggers the events that occur every few seconds.
    fn disturb(&mut self, tti: i64) {
        match self.random.below(12_000) {
            // 0.1 to 20 Mbit/s, log-uniform.
            0..=2 => {
                let order = self.random.below(2_300) as f64 / 1_000.0;
                self.modem.bytes_per_tti = (12.5 * 10_f64.powf(order)) as u64;
                self.changes[0] += 1;
            }
            3 => {
                self.modem.silent_until = tti + 200 + self.random.below(4_000) as i64;
                self.changes[1] += 1;
            }
            4 => {
                self.modem.interrupted_until = tti + 30 + self.random.below(400) as i64;
                self.modem.bytes_per_tti = 50 + self.random.below(2_000);
                self.changes[2] += 1;
            }
            5..=8 => {
                let at = self.random.below(7) as usize;
                let flow = &mut self.flows[at];
                flow.runs = !flow.runs;
                flow.window = 4.0;
            }
            _ => {}
        }
    }

    fn push(&mut self, now_ns: i64, flow: usize, bytes: u32) {
        let sender = &mut self.flows[flow];
        sender.sent = sender.sent.wrapping_add(bytes);
        let is_voice = flow == 7;
        let info = PacketInfo {
            flow: flow as u64,
            bytes,
            protocol: if is_voice { UDP } else { TCP },
            dscp: if is_voice { 46 } else { 0 },
            far_port: 443,
            tcp_end: (!is_voice).then_some(sender.sent),
            ..PacketInfo::default()
        };
        self.sent += 1;
        self.qcut.push(now_ns, info, SoakPacket { flow, bytes, end: sender.sent });
    }

    fn step(&mut self, tti: i64) {
        let now_ns = tti * MS;
        self.disturb(tti);
        self.modem.step(tti, &mut self.arrived);
        while let Some((due, report)) = self.modem.written.front().copied()
            && due <= tti
        {
            self.modem.written.pop_front();
            self.qcut.report(now_ns, report);
        }
        while let Some((due, packet)) = self.arrived.front().copied()
            && due <= tti
        {
            self.arrived.pop_front();
            self.delivered += 1;
            let flow = &mut self.flows[packet.flow];
            flow.out = flow.out.saturating_sub(1);
            flow.window += 1.0 / flow.window;
            if packet.flow != 7 {
                self.qcut.acknowledged(now_ns, packet.flow as u64, packet.end);
            }
        }
        while let Some((due, probe)) = self.probes.front().copied()
            && due <= tti
        {
            self.probes.pop_front();
            self.qcut.probe_answered(now_ns, probe);
        }
        for at in 0..7 {
            for _ in 0..20 {
                let flow = &mut self.flows[at];
                if !flow.runs || f64::from(flow.out) >= flow.window.min(2_000.0) {
                    break;
                }
                flow.out += 1;
                self.push(now_ns, at, 1_500);
            }
        }
        // A voice packet every 20 ms.
        if tti % 20 == 0 {
            self.push(now_ns, 7, 200);
        }
        self.hand_over(tti);
    }

    fn hand_over(&mut self, tti: i64) {
        let now_ns = tti * MS;
        if let Some(probe) = self.qcut.poll_probe(now_ns) {
            self.probes.push_back((tti + PATH_TTIS, probe));
        }
        let waits = self.qcut.counts().waiting.packets > 0;
        while let Some(packet) = self.qcut.poll(now_ns) {
            self.handed += 1;
            self.last_handed = tti;
            self.modem.queue.push_back((packet, packet.bytes + 2));
            self.modem.queued_bytes += u64::from(packet.bytes) + 2;
        }
        while let Some((_, packet)) = self.qcut.poll_dropped() {
            self.dropped += 1;
            let flow = &mut self.flows[packet.flow];
            flow.out = flow.out.saturating_sub(1);
            flow.window = (flow.window / 2.0).max(2.0);
        }
        if waits {
            self.most_idle = self.most_idle.max(tti - self.last_handed);
        } else {
            self.last_handed = tti;
        }
    }

    /// The violated invariant, if any.
    fn wrong(&self) -> Option<String> {
        let counts = self.qcut.counts();
        let sum = counts.sent.packets
            + counts.dropped_aqm.packets
            + counts.dropped_full.packets
            + counts.waiting.packets;
        let below = self.modem.queue.len() as u64 + self.arrived.len() as u64;
        if counts.arrived.packets != self.sent || sum != self.sent {
            return Some(format!("{} packets arrived, {sum} are accounted for", self.sent));
        }
        if self.handed != self.delivered + below || counts.sent.packets != self.handed {
            return Some(format!("{} went, {} + {below} are there", self.handed, self.delivered));
        }
        if counts.dropped_aqm.packets + counts.dropped_full.packets != self.dropped {
            return Some(format!("{} drops were reported of {counts:?}", self.dropped));
        }
        (self.most_idle > STUCK_TTIS).then(|| format!("nothing went for {} ms", self.most_idle))
    }
}

/// Resident memory in MB (proc(5)).
fn resident_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4_096.0 / 1e6
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut hours, mut seed) = (30_u64, 1_u64);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("a number is missing")?.parse()?;
        match word.as_str() {
            "--hours" => hours = value,
            "--seed" => seed = value,
            _ => return Err(format!("{word}: there are --hours and --seed").into()),
        }
    }
    let mut failed = false;
    // Evidence from the modem's log for two thirds of the time, from round trips for the
    // rest.
    for (name, evidence, share) in [
        ("the modem's log", BufferEvidence::Modem, 2),
        ("round trips", BufferEvidence::RoundTrips, 1),
    ] {
        let n_hours = u64::div_ceil(hours * share, 3);
        let mut soak = Soak::new(seed, evidence);
        let mut memory = Vec::new();
        println!("by {name}, {n_hours} hours");
        for hour in 0..n_hours as i64 {
            for tti in hour * HOUR_TTIS..(hour + 1) * HOUR_TTIS {
                soak.step(tti);
            }
            memory.push(resident_mb());
            let counts = soak.qcut.counts();
            println!(
                "hour {:2}: {} packets, {} dropped by CoDel, {} for room, {} wait; the modem held {} kB \
                 at most; longest wait {} ms; {} rates, {} silences ({} seen), {} handovers; {:.1} MB",
                hour + 1,
                counts.sent.packets,
                counts.dropped_aqm.packets,
                counts.dropped_full.packets,
                counts.waiting.packets,
                soak.modem.most_bytes / 1_000,
                soak.most_idle,
                soak.changes[0],
                soak.changes[1],
                soak.qcut.silences(),
                soak.changes[2],
                resident_mb(),
            );
            if let Some(wrong) = soak.wrong() {
                println!("FAILED: {wrong}");
                failed = true;
            }
        }
        let early = memory.get(memory.len() / 5).copied().unwrap_or(0.0);
        let last = memory.last().copied().unwrap_or(0.0);
        // The first hours fill the caches.
        if last > early * MAX_GROWTH + 1.0 {
            println!("FAILED: memory grew from {early:.1} to {last:.1} MB");
            failed = true;
        }
        let before = soak.qcut.counts().waiting.packets;
        let rest = soak.qcut.finish().count() as u64;
        if rest != before {
            println!("FAILED: {before} packets waited, {rest} were returned");
            failed = true;
        }
    }
    println!("{}", if failed { "FAILED" } else { "nothing lost, nothing stuck, no growth" });
    Ok(ExitCode::from(u8::from(failed)))
}
