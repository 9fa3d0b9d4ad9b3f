//! BurstTracker, section 3.2.2: sensitivity to the two thresholds.

use airmile_emulate::run;
use airmile_radio::burst::{BurstOptions, EvidenceChoice};

use super::estimate::{Estimate, quantile};
use super::figure::{Axis, Figure, Series};
use super::runs::{Work, cannot, error_percent, estimate, truth};
use super::{Experiment, ExperimentResult, Row, table1};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-thresholds",
    source: "BurstTracker, MobiCom 2019, section 3.2.2",
    what: "the paper's rule with other thresholds, in cells that assign whole TTIs",
    run: run_all,
};

/// Start and end thresholds: the paper's, and each of them varied separately.
const THRESHOLDS: [(f64, f64); 9] = [
    (0.9, 0.4),
    (0.6, 0.4),
    (0.7, 0.4),
    (0.8, 0.4),
    (0.95, 0.4),
    (0.9, 0.2),
    (0.9, 0.3),
    (0.9, 0.5),
    (0.9, 0.6),
];

const NOTE: &str = "the paper states that its rule is not sensitive, without numbers";

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "error",
        "The paper's rule with other thresholds",
        Axis::new("threshold (% of the resource blocks)").from(0.0, 100.0),
        Axis::new("median error of throughput time (%)"),
    );
    let mut runs = 0;
    for application in ["file", "video"] {
        // Other seeds than in table 1.
        let mut cases = table1::cases(application, work.size.of(1, 10, 20), work.size)?;
        cases.retain(|case| case.scheduler == "whole TTIs");
        for case in &mut cases {
            case.scenario.seed += 1_000;
        }
        runs = cases.len();
        let errors = work.for_each(&cases, |case| {
            let trace = run(&case.scenario).map_err(cannot)?;
            let (true_ms, _) = truth(&trace.transfers);
            Ok(THRESHOLDS.map(|(start_threshold, end_threshold)| {
                let evidence = EvidenceChoice::Paper;
                let options = BurstOptions {
                    evidence,
                    start_threshold,
                    end_threshold,
                    ..BurstOptions::default()
                };
                let found = estimate(&trace.records, &trace.transfers, &options);
                error_percent(found.throughput_ms, true_ms)
            }))
        })?;
        let medians: Vec<Estimate> = (0..THRESHOLDS.len())
            .map(|at| quantile(&errors.iter().map(|e| e[at]).collect::<Vec<_>>(), 0.5))
            .collect();
        for ((start, end), median) in THRESHOLDS.iter().zip(&medians) {
            let (start, end) = (100.0 * start, 100.0 * end);
            let what =
                format!("{application}: median error, over {start:.0} % to under {end:.0} %");
            rows.push(Row::new(what, "%", *median).note(NOTE));
        }
        let curve = |of: fn(&(f64, f64)) -> Option<f64>| {
            let both = THRESHOLDS.iter().zip(&medians);
            let points = both.filter_map(|(t, median)| Some((100.0 * of(t)?, median.value)));
            let mut points: Vec<_> = points.collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let ends = curve(|(start, end)| (*start == 0.9).then_some(*end));
        let starts = curve(|(start, end)| (*end == 0.4).then_some(*start));
        figure = figure
            .with(Series::curve(format!("{application}: end threshold, start at 90 %"), ends))
            .with(Series::curve(format!("{application}: start threshold, end at 40 %"), starts));
    }
    figure = figure
        .paper_x("its end threshold", 40.0)
        .paper_x("its start threshold", 90.0)
        .caption(format!("n = {runs} runs of each application, in cells that assign whole TTIs."));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
