//! CLAW: figures 1, 2 and 6 to 20 (MobiSys 2017, sections 3 and 6), in virtual time.
//!
//! Scenarios and seeds were set before any of their results were seen: the seeds of the
//! rows start at [`SEEDS`], and changes to the controller were tested with others.

mod cell;
mod conditions;
mod image;
mod load;
mod motivation;
mod neighbours;
mod pages;
mod shared_line;
mod users;
mod wireline;

use airmile_control::ControllerKind;
use airmile_emulate::workload::{WebConfig, Workload};
use airmile_emulate::{AppConfig, Competing, Scenario};

use super::estimate::mean;
use super::figure::{Axis, Figure, Series};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;
use load::{Loaded, load};

pub(super) use cell::EXPERIMENT as FIGURES_6_10;
pub(super) use conditions::{LOADS, MORE};
pub(super) use image::{FIGURES_11_13, LOSSES, SATURATED};
pub(super) use motivation::EXPERIMENT as FIGURES_1_2;
pub(super) use neighbours::{FRIENDS, HOSTILE};
pub(super) use pages::{FIGURE_16, FIGURE_17};
pub(super) use users::EXPERIMENT as FIGURE_19;
pub(super) use wireline::EXPERIMENT as WIRELINE;

const PAGE: &str = include_str!("../../../experiments/claw-page.toml");

/// The first seed of the rows.
const SEEDS: u64 = 61_000;

const CUBIC: ControllerKind = ControllerKind::Cubic { hystart: true };
const CLAW: ControllerKind = ControllerKind::claw();
const CQIC: ControllerKind = ControllerKind::Cqic;
const VEGAS: ControllerKind = ControllerKind::Vegas;
const VERUS: ControllerKind = ControllerKind::Verus { epoch_ms: 500 };
const BBR3: ControllerKind = ControllerKind::Bbr3 { seed: 0 };
const COPA: ControllerKind = ControllerKind::Copa { radio_delay_ms: 0 };
/// In the manner of Gandalf (arXiv 2507.00337), which subtracts the radio's delays as they
/// occur: a fixed one, of a HARQ retransmission in FDD (TS 36.321, 7.7: 8 ms).
const RADIO_COPA: ControllerKind = ControllerKind::Copa { radio_delay_ms: 8 };
/// Today's rivals.
const RIVALS: [ControllerKind; 3] = [BBR3, COPA, RADIO_COPA];
const RENO: ControllerKind = ControllerKind::NewReno;

/// An algorithm's name in rows.
const fn name(kind: ControllerKind) -> &'static str {
    match kind {
        ControllerKind::NewReno => "NewReno",
        ControllerKind::Cubic { .. } => "Cubic",
        ControllerKind::Vegas => "Vegas",
        ControllerKind::Bbr3 { .. } => "BBRv3",
        ControllerKind::Copa { radio_delay_ms: 0 } => "Copa",
        ControllerKind::Copa { .. } => "radio-aware Copa",
        ControllerKind::Claw { .. } => "CLAW",
        ControllerKind::Cqic => "CQIC",
        ControllerKind::Verus { .. } => "Verus",
    }
}

/// The common scenario with a case's changes.
fn page(change: impl FnOnce(&mut Scenario)) -> Result<Scenario> {
    let mut scenario = read(PAGE)?;
    change(&mut scenario);
    Ok(scenario)
}

/// The page's settings.
fn web(scenario: &mut Scenario) -> Option<&mut WebConfig> {
    scenario.apps.iter_mut().find(|app| app.name == "page").and_then(page_of)
}

fn page_of(app: &mut AppConfig) -> Option<&mut WebConfig> {
    match &mut app.workload {
        Workload::Web(config) => Some(config),
        _ => None,
    }
}

/// Other users with permanent demand.
fn saturate(scenario: &mut Scenario) {
    scenario.competing = vec![Competing::FullBuffer { users: 3 }];
}

/// Other users who fill about 70 % of the cell: each 1.7 Mbit/s for half of the time (set
/// from their load alone, before any page was loaded with them).
fn busy(scenario: &mut Scenario) {
    let on_off =
        Competing::OnOff { users: 12, rate_bps: 1_700_000, mean_on_ms: 1_000, mean_off_ms: 1_000 };
    scenario.competing = vec![on_off];
}

/// Loads of a case: by algorithm, then by seed.
struct LoadCase {
    what: String,
    by: Vec<(ControllerKind, Vec<Loaded>)>,
}

/// Loads a page with each algorithm in each case, all with the same seeds.
fn run_cases(
    work: &Work<'_>,
    cases: &[(String, Scenario)],
    algorithms: &[ControllerKind],
    runs: u64,
) -> Result<Vec<LoadCase>> {
    let mut items = Vec::new();
    for (_, scenario) in cases {
        for kind in algorithms {
            for n in 0..runs {
                let mut one = Scenario { seed: SEEDS + n, ..scenario.clone() };
                one.server_tcp.control = *kind;
                one.quic.control = airmile_emulate::quic::QuicControl::Ours(*kind);
                items.push(one);
            }
        }
    }
    let mut loads = work.for_each(&items, load)?.into_iter();
    let mut take = |kind: &ControllerKind| {
        (*kind, loads.by_ref().take(runs as usize).collect::<Vec<Loaded>>())
    };
    let case = |(what, _): &(String, Scenario)| LoadCase {
        what: what.clone(),
        by: algorithms.iter().map(&mut take).collect(),
    };
    Ok(cases.iter().map(case).collect())
}

/// 8 MB in segments of 1,448 bytes, and some: everything is sent at once.
const AT_ONCE_SEGMENTS: u32 = 6_000;

const BETTER: &str = "better than Cubic with 95 % confidence";
const ALIKE: &str = "no difference is shown: the interval contains 0";
const FEW: &str = "too few runs for a verdict";
const WORSE: &str = "worse than Cubic with 95 % confidence";

/// A change against Cubic; the bar is missed if it is worse.
fn judged(row: Row) -> Row {
    let note = match (row.low, row.high) {
        (None, None) => return row.note(FEW),
        (_, Some(high)) if high < 0.0 => BETTER,
        (Some(low), _) if low > 0.0 => WORSE,
        _ => ALIKE,
    };
    row.not_above(0.0).note(note)
}

impl LoadCase {
    fn of(&self, kind: ControllerKind) -> &[Loaded] {
        self.by.iter().find(|(one, _)| *one == kind).map_or(&[], |(_, loads)| loads)
    }

    fn values(&self, kind: ControllerKind, of: fn(&Loaded) -> f64) -> Vec<f64> {
        self.of(kind).iter().map(of).collect()
    }

    /// Changes of CLAW's load times against another's in percent, seed by seed.
    fn changes(&self, other: ControllerKind) -> Vec<f64> {
        let pairs = self.of(CLAW).iter().zip(self.of(other));
        pairs.map(|(ours, theirs)| 100.0 * (ours.page_ms / theirs.page_ms - 1.0)).collect()
    }

    /// CLAW's load times and its packets' round trips against the rivals' in percent.
    fn against_rivals(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for rival in RIVALS.into_iter().filter(|rival| !self.of(*rival).is_empty()) {
            let (what, other) = (&self.what, name(rival));
            let row = Row::new(
                format!("{what}: CLAW's load time against {other}'s"),
                "%",
                mean(&self.changes(rival)),
            );
            let note = match (row.low, row.high) {
                (None, None) => FEW,
                (_, Some(high)) if high < 0.0 => "CLAW is faster with 95 % confidence",
                (Some(low), _) if low > 0.0 => "CLAW is slower with 95 % confidence",
                _ => ALIKE,
            };
            rows.push(row.note(note));
            rows.push(self.delay_against(rival));
        }
        rows
    }

    /// The packets' round trip with CLAW against that of another, which includes the queue.
    fn delay_against(&self, kind: ControllerKind) -> Row {
        let pairs = self.of(CLAW).iter().zip(self.of(kind));
        let delays: Vec<f64> =
            pairs.map(|(ours, theirs)| 100.0 * (ours.rtt_ms / theirs.rtt_ms - 1.0)).collect();
        let what = format!("{}: round trip of CLAW's packets against {}'s", self.what, name(kind));
        Row::new(what, "%", mean(&delays))
    }

    /// Mean load times, and CLAW against Cubic.
    fn rows(&self, paper: Option<f64>) -> Vec<Row> {
        let mut rows = Vec::new();
        for (kind, _) in &self.by {
            let what = format!("{}, {}: load time, mean", self.what, name(*kind));
            rows.push(Row::new(what, "ms", mean(&self.values(*kind, |l| l.page_ms))));
        }
        rows.push(self.against_cubic(paper));
        rows
    }

    fn against_cubic(&self, paper: Option<f64>) -> Row {
        let what = format!("{}: CLAW's load time against Cubic's", self.what);
        let row = Row::new(what, "%", mean(&self.changes(CUBIC)));
        judged(match paper {
            Some(paper) => row.paper(paper),
            None => row,
        })
    }
}

/// A figure of the cases' mean load times.
fn bars(title: &str, label: &'static str, cases: &[LoadCase]) -> Figure {
    let mut figure =
        Figure::new("loads", title, Axis::new(label), Axis::new("load time (ms), mean"));
    let Some(first) = cases.first() else { return figure };
    let runs = first.by.first().map_or(0, |(_, loads)| loads.len());
    let names: Vec<&str> = cases.iter().map(|case| case.what.as_str()).collect();
    figure = figure.caption(format!("n = {runs} runs each. Cases: {}.", names.join("; ")));
    for (kind, _) in &first.by {
        let points = cases.iter().enumerate().filter(|(_, case)| !case.of(*kind).is_empty());
        let points = points
            .map(|(at, case)| ((at + 1) as f64, mean(&case.values(*kind, |l| l.page_ms)).value));
        figure = figure.with(Series::scatter(name(*kind), points.collect()));
    }
    figure
}

const CASES: &str = "case (number)";
