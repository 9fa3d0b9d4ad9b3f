//! BurstTracker, figure 6: link demand against link throughput.

use airmile_emulate::{Competing, Scenario, run};
use airmile_infer::burst::BurstOptions;

use super::estimate::mean;
use super::figure::{Axis, Figure, Series};
use super::runs::{Work, cannot, downlink, estimate, only, read, truth};
use super::{Experiment, Found, Row, Size, table1};
use crate::error::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-fig6",
    source: "BurstTracker, MobiCom 2019, figure 6",
    what: "link demand of files and of video behind a middlebox that restarts",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../../experiments/fig6-demand.toml");

/// Users with full queues beside the phone: what spreads the link throughput.
const OTHERS: u64 = 8;

/// A run: estimated link demand in percent, link throughput in Mbit/s.
struct Point {
    demand: f64,
    mbps: f64,
}

fn point(scenario: &Scenario) -> Result<Point> {
    let trace = run(scenario).map_err(cannot)?;
    let (_, duration_ms) = truth(&trace.transfers);
    let found = estimate(&trace.records, &trace.transfers, &BurstOptions::default());
    let throughput_ms = found.throughput_ms.unwrap_or(f64::NAN);
    let bytes: u64 = downlink(&trace.transfers).filter_map(|t| t.transfer.bytes).sum();
    let mbps = bytes as f64 * 8.0 / (throughput_ms * 1e3);
    Ok(Point { demand: 100.0 * throughput_ms / duration_ms, mbps })
}

fn run_all(work: &Work<'_>) -> Result<Found> {
    let base = read(SCENARIO)?;
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "demand",
        "Link demand against link throughput",
        Axis::new("link throughput (Mbit/s)"),
        Axis::new("link demand (%)").from(0.0, 102.0),
    )
    .paper_y("files, mean 95 %", 95.0)
    .paper_y("video, mean 65 to 70 %", 67.5);
    let mut counts = Vec::new();
    for (app, paper, note) in [
        ("file", 95.0, "a transfer begins with its request: a round trip and the slow start"),
        (
            "video",
            67.5,
            "the paper has 65 to 70 %: segments of 4 s that fill the link hide the restart, see table 1; \
             the paper gives neither segment length nor round trip",
        ),
    ] {
        let mut scenarios = Vec::new();
        for seed in 0..work.size.of(2, 16, 64) {
            let mut scenario = only(&base, app);
            scenario.seed = 46_000 + seed;
            let users = u16::try_from(seed % OTHERS).unwrap_or(0);
            scenario.competing = vec![Competing::FullBuffer { users }];
            if work.size == Size::Quick {
                table1::shorten(&mut scenario);
            }
            scenarios.push(scenario);
        }
        let points = work.for_each(&scenarios, point)?;
        let drawn = points.iter().map(|p| (p.mbps, p.demand)).collect();
        figure = figure.with(Series::scatter(app, drawn));
        counts.push(format!("{} {app}", points.len()));
        let all: Vec<f64> = points.iter().map(|p| p.demand).collect();
        let what = format!("{app}: mean link demand");
        rows.push(Row::new(what, "%", mean(&all)).paper(paper).note(note));
        for (words, from, to) in [
            ("under 4 Mbit/s", 0.0, 4.0),
            ("4 to 8 Mbit/s", 4.0, 8.0),
            ("from 8 Mbit/s", 8.0, f64::INFINITY),
        ] {
            let within = points.iter().filter(|p| (from..to).contains(&p.mbps));
            let within: Vec<f64> = within.map(|p| p.demand).collect();
            let what = format!("{app}: mean link demand, link throughput {words}");
            rows.push(Row::new(what, "%", mean(&within)));
        }
    }
    figure =
        figure.caption(format!("n = {} runs, each beside 0 to 7 full queues.", counts.join(", ")));
    Ok(Found { rows, figures: vec![figure] })
}
