//! A run of the lab as packets alone show it, and its truth.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use airmile_decode::packet::{Frame, dissect};
use airmile_emulate::net::IpPacket;
use airmile_emulate::{CapturePoint, EmulatedTransfer, RunSink, Scenario, run_into};
use airmile_model::{Direction, VerdictThresholds};
use airmile_wire::packets_only::{CapturedPhones, Features, Suspect};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Traced};
use anyhow::Context;

use super::families::Family;

/// A cause counts where it cost at least this share of the time (as in `causes.rs`).
const COUNTS: f64 = 0.10;
/// Downloads of fewer bytes are left out, as `diagnose` does.
const MIN_BYTES: u64 = 20_000;
/// LINKTYPE_RAW.
const RAW: u32 = 101;

/// A run.
pub struct Row {
    pub family: &'static str,
    pub seed: u64,
    pub features: Features,
    pub truth: Suspect,
    /// Link demand, and what the cause cost as a share.
    pub demand: f64,
    pub cost: f64,
}

/// The phone's own capture.
struct Watch {
    study: PacketStudy,
    phones: CapturedPhones,
    offset: u64,
}

impl RunSink for Watch {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        if point != CapturePoint::Phone {
            return;
        }
        let data = packet.emit();
        let (offset, wire_bytes) = (self.offset, packet.ip_bytes());
        self.offset += u64::from(wire_bytes);
        let frame = Frame { offset, at_ns, interface: 0, link: RAW, wire_bytes, data: &data };
        if let Ok(packet) = dissect(&frame) {
            self.study.push(&packet);
            self.phones.note(&packet);
            while let Some(traced) = self.study.poll_trace() {
                self.phones.push(&traced);
            }
        }
    }
}

fn durations(transfers: &[EmulatedTransfer]) -> BTreeMap<&str, f64> {
    let downlink = transfers.iter().filter(|t| t.dir == Direction::Dl);
    downlink.filter_map(|t| Some((t.transfer.id.as_str(), t.truth.duration_ms?))).collect()
}

/// Runs a scenario; `None` where its transfers did not end, or nothing is to be seen.
fn run(family: &Family, scenario: &Scenario, seed: u64) -> anyhow::Result<Option<Row>> {
    let options = StudyOptions { traced: Traced::All, ..StudyOptions::default() };
    let mut watch =
        Watch { study: PacketStudy::new(options), phones: CapturedPhones::new(), offset: 0 };
    let fails = || format!("{}, seed {seed}", family.name);
    let outcome = run_into(scenario, &mut watch).with_context(fails)?;
    let with = durations(&outcome.transfers);
    let unfinished = outcome.unfinished.iter().any(|t| t.dir == Direction::Dl);
    if with.is_empty() || unfinished {
        return Ok(None);
    }
    let downlink = || outcome.transfers.iter().filter(|t| t.dir == Direction::Dl);
    let queued: f64 = downlink().map(|t| t.truth.throughput_time_ms).sum();
    let demand = queued / with.values().sum::<f64>();
    let cost = if scenario.causes.is_empty() {
        0.0
    } else {
        let without = scenario.without(0).with_context(fails)?.with_choices(&outcome.choices);
        let other = run_into(&without, &mut ()).with_context(fails)?;
        let other = durations(&other.transfers);
        let both = with.iter().filter_map(|(id, ms)| Some((ms, other.get(id)?)));
        let (a, b) = both.fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        if a > 0.0 { (a - b) / a } else { 0.0 }
    };
    let truth = truth(family, demand, cost);
    let phones = watch.phones.finish();
    let Some(phone) = phones.first() else { return Ok(None) };
    let spans = phone.transfers(MIN_BYTES);
    let Some(features) = Features::from_spans(phone, &spans) else { return Ok(None) };
    Ok(Some(Row { family: family.name, seed, features, truth, demand, cost }))
}

/// Whose fault it was: the radio's by its queue, as `diagnose` has it; else that of
/// what was put in, where it cost enough; else nobody's alone.
fn truth(family: &Family, demand: f64, cost: f64) -> Suspect {
    let limits = VerdictThresholds::default();
    let radio = family.injected == Some(Suspect::Radio) && cost >= COUNTS;
    match family.injected {
        _ if demand >= limits.radio_at_least => Suspect::Radio,
        _ if demand >= limits.not_radio_below && radio => Suspect::Radio,
        _ if demand >= limits.not_radio_below => Suspect::Other,
        Some(Suspect::Radio) | None => Suspect::Other,
        Some(suspect) if cost >= COUNTS => suspect,
        Some(_) => Suspect::Other,
    }
}

/// What came of many runs.
pub struct Runs {
    pub rows: Vec<Row>,
    /// Runs that did not end, or that showed nothing.
    pub left_out: usize,
    /// Families without their link traces.
    pub skipped: Vec<&'static str>,
}

/// A run; `None`: it did not end. Or the family whose link trace is not there.
type Tried = Result<Option<Row>, &'static str>;

/// Runs `runs` of each family on all cores, seeds from `seed`.
pub fn gather(
    families: &[Family],
    held: bool,
    (runs, seed): (u64, u64),
    shared: &Path,
) -> anyhow::Result<Runs> {
    let jobs: Vec<(&Family, u64)> = (0..runs)
        .flat_map(|run| {
            families.iter().enumerate().map(move |(at, f)| (f, seed + at as u64 * 100_000 + run))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, Tried)>> {
        let mut done = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some((family, seed)) = jobs.get(at)
        {
            let row = match family.scenario(held, *seed, shared)? {
                Some(scenario) => Ok(run(family, &scenario, *seed)?),
                None => Err(family.name),
            };
            done.push((at, row));
        }
        Ok(done)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.map_err(|_| anyhow::anyhow!("a run panicked"))??);
    }
    all.sort_by_key(|(at, _)| *at);
    let mut out = Runs { rows: Vec::new(), left_out: 0, skipped: Vec::new() };
    for (_, row) in all {
        match row {
            Ok(Some(row)) => out.rows.push(row),
            Ok(None) => out.left_out += 1,
            Err(name) if out.skipped.contains(&name) => {}
            Err(name) => out.skipped.push(name),
        }
    }
    Ok(out)
}
