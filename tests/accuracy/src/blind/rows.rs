//! A run of the lab as seen from packets alone, and its truth.

use std::collections::BTreeMap;
use std::path::Path;

use airmile_blind::{
    CapturedPhones, Features, JudgedTransfer, Model, Suspect, Suspicion, TransferSpan,
};
use airmile_capture::packet::{Frame, dissect};
use airmile_emulate::net::IpPacket;
use airmile_emulate::{CapturePoint, EmulatedTransfer, RunSink, Scenario, run_into};
use airmile_model::{Direction, VerdictThresholds};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Traced};
use anyhow::Context;

use super::families::Family;
use crate::jobs::on_all_cores;

/// A cause counts if it cost at least this share of the time (as in `causes.rs`).
const COUNTS: f64 = 0.10;
/// Downloads of fewer bytes are left out, as `diagnose` does.
const MIN_BYTES: u64 = 20_000;
/// LINKTYPE_RAW.
const RAW: u32 = 101;

/// One in this many runs is also captured by a monitor that starts late, after this share
/// of the time.
const LATE_EVERY: u64 = 2;
const LATE_SHARES: [f64; 3] = [0.25, 0.4, 0.55];

/// Where a run was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Phone,
    /// At the phone, by a capture that starts inside the transfer.
    Late,
    Server,
}

/// A transfer's duration in nanoseconds, and its features, if it has any.
pub type Transfer = (i64, Option<Features>);

/// A run.
pub struct Row {
    pub family: &'static str,
    pub seed: u64,
    pub view: View,
    /// Of all transfers at once, for the fit.
    pub features: Features,
    /// Of each transfer.
    pub each: Vec<Transfer>,
    pub truth: Suspect,
    /// Link demand, and the cost of the cause as a share.
    pub demand: f64,
    pub cost: f64,
    /// Weight in the fit.
    pub weight: f64,
}

impl Row {
    /// Its transfers judged together: all probabilities, and what is named.
    pub fn judge(&self) -> (Vec<Suspicion>, Option<Suspicion>) {
        let own = self.each.iter().map(|(_, of)| of.as_ref().map(Model::judge).unwrap_or_default());
        let own: Vec<Vec<Suspicion>> = own.collect();
        let each = self.each.iter().zip(&own).map(|((ns, features), suspects)| {
            let features = features.as_ref();
            let first = suspects.first().copied().zip(features);
            let named = first.filter(|(first, of)| Model::names(of, first));
            JudgedTransfer { ns: *ns, features, suspects, named: named.map(|(first, _)| first) }
        });
        Model::judge_together(&each.collect::<Vec<_>>())
    }
}

/// A capture in progress.
struct Monitor {
    point: CapturePoint,
    study: PacketStudy,
    phones: CapturedPhones,
    offset: u64,
}

impl Monitor {
    fn new(point: CapturePoint) -> Self {
        let options = StudyOptions { traced: Traced::All, ..StudyOptions::default() };
        Self { point, study: PacketStudy::new(options), phones: CapturedPhones::new(), offset: 0 }
    }

    /// The features of all transfers at once, and of each.
    fn features(self) -> Option<(Features, Vec<Transfer>)> {
        let phones = self.phones.finish();
        let phone = phones.first()?;
        let spans = phone.transfers(MIN_BYTES);
        let of = |span: &TransferSpan| Features::from_spans(phone, std::slice::from_ref(span));
        let each = spans.iter().map(|span| (span.ns(), of(span))).collect();
        Some((Features::from_spans(phone, &spans)?, each))
    }

    fn packet(&mut self, at_ns: i64, wire_bytes: u32, data: &[u8]) {
        let offset = self.offset;
        self.offset += u64::from(wire_bytes);
        let frame = Frame { offset, at_ns, interface: 0, link: RAW, wire_bytes, data };
        if let Ok(packet) = dissect(&frame) {
            self.study.push(&packet);
            self.phones.note(&packet);
            while let Some(traced) = self.study.poll_trace() {
                self.phones.push(&traced);
            }
        }
    }
}

/// Captures of one run, and the packets at the phone if a monitor will start late.
struct Watch {
    monitors: [Monitor; 2],
    keeps: bool,
    kept: Vec<(i64, IpPacket)>,
}

impl RunSink for Watch {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        if let Some(monitor) = self.monitors.iter_mut().find(|one| one.point == point) {
            monitor.packet(at_ns, packet.ip_bytes(), &packet.emit());
        }
        if self.keeps && point == CapturePoint::Phone {
            self.kept.push((at_ns, packet.clone()));
        }
    }
}

fn durations(transfers: &[EmulatedTransfer]) -> BTreeMap<&str, f64> {
    let downlink = transfers.iter().filter(|t| t.dir == Direction::Dl);
    downlink.filter_map(|t| Some((t.transfer.id.as_str(), t.truth.duration_ms?))).collect()
}

/// Runs a scenario; returns a row for each capture point. Empty if its transfers did not
/// end, or there is no data.
fn run(family: &Family, scenario: &Scenario, seed: u64) -> anyhow::Result<Vec<Row>> {
    let monitors = [CapturePoint::Phone, CapturePoint::Server].map(Monitor::new);
    let mut watch = Watch { monitors, keeps: seed.is_multiple_of(LATE_EVERY), kept: Vec::new() };
    let fails = || format!("{}, seed {seed}", family.name);
    let outcome = run_into(scenario, &mut watch).with_context(fails)?;
    let with = durations(&outcome.transfers);
    let unfinished = outcome.unfinished.iter().any(|t| t.dir == Direction::Dl);
    if with.is_empty() || unfinished {
        return Ok(Vec::new());
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
    let row = |view, (features, each)| Row {
        family: family.name,
        seed,
        view,
        features,
        each,
        truth,
        demand,
        cost,
        weight: 1.0,
    };
    let views = [View::Phone, View::Server].into_iter().zip(watch.monitors);
    let mut rows: Vec<Row> =
        views.filter_map(|(view, monitor)| Some(row(view, monitor.features()?))).collect();
    if watch.keeps {
        let share = LATE_SHARES[(seed / LATE_EVERY) as usize % LATE_SHARES.len()];
        let after_ns = (with.values().sum::<f64>() * share * 1e6) as i64;
        let mut late = Monitor::new(CapturePoint::Phone);
        let from_ns = watch.kept.first().map_or(0, |(at_ns, _)| *at_ns) + after_ns;
        for (at_ns, packet) in watch.kept.iter().filter(|(at_ns, _)| *at_ns >= from_ns) {
            late.packet(*at_ns, packet.ip_bytes(), &packet.emit());
        }
        rows.extend(late.features().map(|features| row(View::Late, features)));
    }
    Ok(rows)
}

/// The true bottleneck: the radio according to its queue, as in `diagnose`; otherwise the
/// injected cause, if it cost enough; otherwise none alone.
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

/// Results of many runs.
pub struct Runs {
    pub rows: Vec<Row>,
    /// Runs that did not end, or had no data.
    pub left_out: usize,
    /// Families without their link traces.
    pub skipped: Vec<&'static str>,
}

/// The rows of a run, empty if it did not end; or the family whose link trace is missing.
type Tried = Result<Vec<Row>, &'static str>;

/// Runs `runs` runs of each family on all cores, with seeds from `seed`.
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
    let tried = on_all_cores(&jobs, |_, (family, seed)| -> anyhow::Result<Tried> {
        Ok(match family.scenario(held, *seed, shared)? {
            Some(scenario) => Ok(run(family, &scenario, *seed)?),
            None => Err(family.name),
        })
    })?;
    let mut out = Runs { rows: Vec::new(), left_out: 0, skipped: Vec::new() };
    for row in tried {
        match row {
            Ok(rows) if rows.is_empty() => out.left_out += 1,
            Ok(rows) => out.rows.extend(rows),
            Err(name) if out.skipped.contains(&name) => {}
            Err(name) => out.skipped.push(name),
        }
    }
    Ok(out)
}
