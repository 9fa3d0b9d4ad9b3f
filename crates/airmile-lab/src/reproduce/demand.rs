//! BurstTracker, figure 6: link demand against link throughput.

use airmile_emulate::{Competing, Scenario, run};
use airmile_radio::burst::BurstOptions;

use super::estimate::mean;
use super::figure::{Axis, Figure, Series};
use super::runs::{Work, cannot, downlink, estimate, only, read, truth};
use super::{Experiment, ExperimentResult, Row, Size, table1};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-fig6",
    source: "BurstTracker, MobiCom 2019, figure 6",
    what: "link demand of files and of video through a middlebox that restarts",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/fig6-demand.toml");

/// Users with full queues in addition to the phone, which spread the link throughput.
const OTHERS: u64 = 8;

/// A run: estimated link demand in percent, link throughput in Mbit/s.
struct DemandPoint {
    demand: f64,
    mbps: f64,
}

fn point(scenario: &Scenario) -> Result<DemandPoint> {
    let trace = run(scenario).map_err(cannot)?;
    let (_, duration_ms) = truth(&trace.transfers);
    let found = estimate(&trace.records, &trace.transfers, &BurstOptions::default());
    let throughput_ms = found.throughput_ms.unwrap_or(f64::NAN);
    let bytes: u64 = downlink(&trace.transfers).filter_map(|t| t.transfer.bytes).sum();
    let mbps = bytes as f64 * 8.0 / (throughput_ms * 1e3);
    Ok(DemandPoint { demand: 100.0 * throughput_ms / duration_ms, mbps })
}

/// An application of the scenario.
struct DemandApp {
    app: &'static str,
    /// Whether the middlebox restarts, as in the paper.
    restarts: bool,
    paper: Option<f64>,
    note: Option<&'static str>,
}

impl DemandApp {
    const fn new(app: &'static str, note: &'static str) -> Self {
        Self { app, restarts: true, paper: Some(67.5), note: Some(note) }
    }

    fn name(&self) -> String {
        format!("{}{}", self.app, if self.restarts { "" } else { ", no restart" })
    }
}

const FULL: &str = "video, segments of 1 s, buffer full";

const ARMS: [DemandApp; 6] = [
    DemandApp {
        paper: Some(95.0),
        ..DemandApp::new("file", "a transfer starts with its request: a round trip and slow start")
    },
    DemandApp::new("video", VIDEO),
    DemandApp::new("video, segments of 1 s", ADDED),
    DemandApp::new("video, buffer full", ADDED),
    DemandApp::new(FULL, ADDED),
    DemandApp { restarts: false, paper: None, ..DemandApp::new(FULL, ADDED) },
];

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let mut cases = Vec::new();
    for (arm, DemandApp { app, restarts, .. }) in ARMS.iter().enumerate() {
        for seed in 0..work.size.of(2, 16, 64) {
            let mut scenario = only(&base, app);
            scenario.seed = 46_000 + seed;
            for port in scenario.proxy.iter_mut().flat_map(|proxy| &mut proxy.ports) {
                port.slow_start_after_idle = *restarts;
            }
            let users = u16::try_from(seed % OTHERS).unwrap_or(0);
            scenario.competing = vec![Competing::FullBuffer { users }];
            if work.size == Size::Quick {
                table1::shorten(&mut scenario);
            }
            cases.push((arm, scenario));
        }
    }
    let points = work.for_each(&cases, |(arm, scenario)| Ok((*arm, point(scenario)?)))?;
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "demand",
        "Link demand against link throughput",
        Axis::new("link throughput (Mbit/s)"),
        Axis::new("link demand (%)").from(50.0, 102.0),
    )
    .paper_y("files, mean 95 %", 95.0)
    .paper_y("video, mean 65 to 70 %", 67.5);
    for (at, arm) in ARMS.iter().enumerate() {
        let own: Vec<&DemandPoint> =
            points.iter().filter(|(a, _)| *a == at).map(|(_, p)| p).collect();
        let drawn = own.iter().map(|p| (p.mbps, p.demand)).collect();
        figure = figure.with(Series::scatter(arm.name(), drawn));
        let all: Vec<f64> = own.iter().map(|p| p.demand).collect();
        let name = arm.name();
        let mut row = Row::new(format!("{name}: mean link demand"), "%", mean(&all));
        row = arm.paper.map_or(row.clone(), |paper| row.paper(paper));
        rows.push(arm.note.map_or(row.clone(), |note| row.note(note)));
        for (words, from, to) in [
            ("under 4 Mbit/s", 0.0, 4.0),
            ("4 to 8 Mbit/s", 4.0, 8.0),
            ("from 8 Mbit/s", 8.0, f64::INFINITY),
        ] {
            let within = own.iter().filter(|p| (from..to).contains(&p.mbps));
            let within: Vec<f64> = within.map(|p| p.demand).collect();
            let what = format!("{name}: mean link demand, link throughput {words}");
            rows.push(Row::new(what, "%", mean(&within)));
        }
    }
    let n = work.size.of(2, 16, 64);
    figure =
        figure.caption(format!("n = {n} runs of each, with 0 to 7 other users with full queues."));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

const VIDEO: &str = "the paper has 65 to 70 %, without segment length or round trip. The \
    request's round trip is a small part of segments of 4 s; the arms below have shorter \
    segments, and pauses";
const ADDED: &str = "an arm added after the first results, set from figures 7 and 8 before its \
    own were seen. The cost is the round trip before each segment. With a full buffer the \
    middlebox restarts at nearly every segment, which changes almost nothing (last arm): 10 \
    segments almost fill a path of 20 ms from it to the phone";
