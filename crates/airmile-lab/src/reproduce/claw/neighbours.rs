//! Figure 20: Cubic with Cubic, Cubic with CLAW, CLAW with CLAW; and misreporting clients.

use airmile_control::ControllerKind;
use airmile_control::claw::{Bottleneck, Feedback};
use airmile_emulate::{OtherConfig, PhoneView, RadioReader, ReaderSetup, Scenario, SchedulerKind};
use airmile_model::Record;

use super::load::{Loaded, load_with};
use super::{
    Axis, CASES, CLAW, CUBIC, Experiment, ExperimentResult, Figure, Row, SEEDS, Series, Work, mean,
    page,
};
use crate::radio_agent::RadioAgent;
use airmile::Result;

pub(in crate::reproduce) const FRIENDS: Experiment = Experiment {
    name: "claw-fig20",
    source: "CLAW, MobiSys 2017, figure 20",
    what: "two phones load the same page at the same time: the cost of CLAW to a Cubic neighbour",
    run: friends,
};

pub(in crate::reproduce) const HOSTILE: Experiment = Experiment {
    name: "claw-hostile",
    source: "ours",
    what: "misreporting clients: their cost to a Cubic neighbour, and whether the operator's cap holds",
    run: hostile,
};

/// Congestion control of the servers of the measured phone and of the neighbour.
type Pair = (ControllerKind, ControllerKind);

/// Two phones that load the same page at the same time.
fn two(seed: u64, (measured, neighbour): Pair, scheduler: SchedulerKind) -> Result<Scenario> {
    page(|scenario| {
        scenario.seed = seed;
        scenario.cell.scheduler = scheduler;
        scenario.server_tcp.control = measured;
        // The run continues until the neighbour has finished, too.
        scenario.tail_ms = 10_000;
        scenario.others = vec![OtherConfig {
            count: 1,
            link: None,
            core: scenario.core.clone(),
            start_spread_ms: 0,
            control: Some(neighbour),
            apps: scenario.apps.clone(),
        }];
    })
}

/// Kind of misreporting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// Honest reports.
    None,
    /// The maximum window, in an empty cell.
    Window,
    /// The same, with a report at every tick.
    Rate,
    /// The first report repeated.
    Replay,
    /// All losses attributed to the radio.
    Losses,
    /// The same with a bottleneck in the wireline, so that the window is Cubic's.
    Wireline,
    /// The same in a full cell with no window, so that Cubic's is in use.
    NoWindow,
    /// The maximum window, in a full cell.
    Full,
    /// Alternately the maximum and nothing.
    Swings,
    /// An invalid load.
    Nonsense,
}

pub(super) const LIES: [(Lie, &str); 9] = [
    (Lie::Window, "the largest window"),
    (Lie::Rate, "the largest window at every tick"),
    (Lie::Replay, "the first report, repeated"),
    (Lie::Losses, "all losses are the radio's"),
    (Lie::Wireline, "all losses are the radio's, on a wireline"),
    (Lie::NoWindow, "all losses are the radio's, no window in a full cell"),
    (Lie::Full, "the largest window in a full cell"),
    (Lie::Swings, "all and nothing alternately"),
    (Lie::Nonsense, "an invalid load"),
];

/// A misreporting program on the phone.
#[derive(Debug)]
struct Liar {
    honest: RadioAgent,
    lie: Lie,
    first: Option<Feedback>,
    reports: u64,
}

impl RadioReader for Liar {
    fn record(&mut self, record: &Record) {
        self.honest.record(record);
    }

    fn poll(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        let feedback = self.honest.poll(now_ns, phone);
        let every_tick = !matches!(self.lie, Lie::None | Lie::Window | Lie::Replay | Lie::Nonsense);
        let feedback = feedback.or_else(|| self.first.filter(|_| every_tick && phone.busy))?;
        self.reports += 1;
        let first = *self.first.get_or_insert(feedback);
        let lie = Feedback {
            sequence: self.reports,
            w_claw_bytes: u64::MAX,
            load: 0.0,
            bottleneck: Bottleneck::Cellular,
            idle: false,
            ..feedback
        };
        Some(match self.lie {
            Lie::None => feedback,
            Lie::Window | Lie::Rate => lie,
            Lie::Replay => Feedback { sequence: 1, ..Feedback { w_claw_bytes: u64::MAX, ..first } },
            Lie::Losses => Feedback { radio_losses: self.reports, ..lie },
            Lie::Wireline => {
                Feedback { radio_losses: self.reports, bottleneck: Bottleneck::Wireline, ..lie }
            }
            Lie::NoWindow => {
                Feedback { radio_losses: self.reports, load: 1.0, w_claw_bytes: 0, ..lie }
            }
            Lie::Full => Feedback { load: 1.0, ..lie },
            Lie::Swings if self.reports.is_multiple_of(2) => {
                Feedback { w_claw_bytes: 0, load: 1.0, ..lie }
            }
            Lie::Swings => lie,
            Lie::Nonsense => Feedback { load: f64::NAN, ..lie },
        })
    }
}

/// Loads both pages; the neighbour's client misreports.
pub(super) fn run_pair(scenario: &Scenario, lie: Lie) -> Result<Loaded> {
    let reader = |setup: &ReaderSetup| -> Box<dyn RadioReader> {
        let honest = RadioAgent::new(setup.clone());
        Box::new(Liar { honest, lie, first: None, reports: 0 })
    };
    load_with(scenario, &reader)
}

const SCHEDULERS: [(SchedulerKind, &str); 2] =
    [(SchedulerKind::WholeTti, "whole TTIs"), (SchedulerKind::RoundRobin, "round robin")];

/// The measured phone's times against a base, in percent.
pub(super) fn cost(loads: &[Loaded], base: &[Loaded]) -> Vec<f64> {
    let pairs = loads.iter().zip(base);
    pairs.map(|(one, base)| 100.0 * (one.page_ms / base.page_ms - 1.0)).collect()
}

fn friends(work: &Work<'_>) -> Result<ExperimentResult> {
    let arms: [(Pair, &str); 3] = [
        ((CUBIC, CUBIC), "Cubic with Cubic"),
        ((CUBIC, CLAW), "Cubic with CLAW"),
        ((CLAW, CLAW), "CLAW with CLAW"),
    ];
    let runs = work.size.of(1, 16, 20);
    let mut items = Vec::new();
    for (scheduler, _) in SCHEDULERS {
        for (pair, _) in arms {
            for n in 0..runs {
                items.push(two(SEEDS + n, pair, scheduler)?);
            }
        }
    }
    let loads = work.for_each(&items, |scenario| run_pair(scenario, Lie::None))?;
    let mut groups = loads.chunks(runs as usize);
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "pairs",
        "Load times of two phones at the same time",
        Axis::new(CASES),
        Axis::new("load time (ms), mean"),
    )
    .caption(format!("n = {runs} runs each. Cases: {}.", arms.map(|(_, what)| what).join("; ")));
    for (_, scheduler) in SCHEDULERS {
        let groups: Vec<&[Loaded]> = groups.by_ref().take(arms.len()).collect();
        let mut drawn: [Vec<(f64, f64)>; 2] = Default::default();
        for (at, (_, what)) in arms.iter().enumerate() {
            let mine: Vec<f64> = groups[at].iter().map(|l| l.page_ms).collect();
            let theirs: Vec<f64> = groups[at].iter().flat_map(|l| l.others_ms.clone()).collect();
            for (side, (values, who)) in
                [(mine, "the first"), (theirs, "the second")].into_iter().enumerate()
            {
                drawn[side].push(((at + 1) as f64, mean(&values).value));
                let what = format!("{scheduler}, {what}: load time of {who}, mean");
                rows.push(Row::new(what, "ms", mean(&values)));
            }
        }
        let what = format!("{scheduler}: cost of a CLAW neighbour to Cubic");
        let row = Row::new(what, "%", mean(&cost(groups[1], groups[0])));
        rows.push(row.paper(0.0).not_above(MAX_COST));
        for (side, points) in drawn.into_iter().enumerate() {
            let who = ["the first", "the second"][side];
            figure = figure.with(Series::scatter(format!("{scheduler}, {who}"), points));
        }
    }
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// Maximum cost to a Cubic neighbour, in percent (chosen here).
pub(super) const MAX_COST: f64 = 5.0;
/// Maximum rate over the operator's cap; a segment more in 100 ms is within it.
const MAX_OVER_CAP: f64 = 1.01;

/// The operator's limit in the runs with misreporting clients.
const LIMIT_BPS: u64 = 20_000_000;

fn hostile(work: &Work<'_>) -> Result<ExperimentResult> {
    let limited = ControllerKind::Claw { limit_bps: Some(LIMIT_BPS), trust_client: false };
    let runs = work.size.of(1, 12, 20);
    let mut items = Vec::new();
    for n in 0..runs {
        items.push((two(SEEDS + n, (CUBIC, CUBIC), SchedulerKind::RoundRobin)?, Lie::None));
    }
    // With a Cubic phone, and then with the misreporting phone as the measured one.
    for (lie, _) in LIES {
        for pair in [(CUBIC, limited), (limited, CUBIC)] {
            for n in 0..runs {
                items.push((two(SEEDS + n, pair, SchedulerKind::RoundRobin)?, lie));
            }
        }
    }
    let loads = work.for_each(&items, |(scenario, lie)| run_pair(scenario, *lie))?;
    let mut groups = loads.chunks(runs as usize);
    let base = groups.next().unwrap_or_default();
    let mut rows = Vec::new();
    let mut points = Vec::new();
    for (at, (_, what)) in LIES.iter().enumerate() {
        let (neighbour, misreporting) =
            (groups.next().unwrap_or_default(), groups.next().unwrap_or_default());
        let costs = mean(&cost(neighbour, base));
        points.push(((at + 1) as f64, costs.value));
        rows.push(
            Row::new(format!("{what}: cost to a Cubic neighbour"), "%", costs).not_above(MAX_COST),
        );
        let over = |rate: fn(&Loaded) -> f64| {
            let rates: Vec<f64> = misreporting.iter().map(|l| rate(l) / LIMIT_BPS as f64).collect();
            super::load::worst(&rates)
        };
        let asked = format!("{what}: largest rate requested by the window over the cap");
        rows.push(
            Row::new(asked, "times", over(Loaded::asked_bps))
                .at_most(MAX_OVER_CAP)
                .note("window over smoothed round trip; the cap is 20 Mbit/s"),
        );
        let sent = format!("{what}: maximum sent in 100 ms over the cap");
        rows.push(
            Row::new(sent, "times", over(|l| l.sent_bps))
                .at_most(MAX_OVER_CAP)
                .note("payload, including retransmissions"),
        );
    }
    // Effect of the cap: without feedback it does not apply.
    let cubic: Vec<f64> = base.iter().map(|l| l.asked_bps() / LIMIT_BPS as f64).collect();
    rows.push(
        Row::new(
            "Cubic, no client: the same rate over the cap",
            "times",
            super::load::worst(&cubic),
        )
        .note("for comparison: without feedback there is no cap"),
    );
    rows.extend(super::shared_line::rows(work)?);
    let figure = Figure::new(
        "lies",
        "Cost of a misreporting client to a Cubic neighbour",
        Axis::new("lie (number)"),
        Axis::new("change of the neighbour's load time (%)").from(-20.0, 20.0),
    )
    .with(Series::scatter("mean", points))
    .paper_y("the bar", MAX_COST)
    .caption(format!("n = {runs} runs each. Lies: {}.", LIES.map(|(_, what)| what).join("; ")));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
