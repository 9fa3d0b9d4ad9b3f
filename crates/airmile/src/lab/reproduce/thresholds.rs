//! BurstTracker, section 3.2.2: how much hangs on the two thresholds.

use airmile_emulate::run;
use airmile_infer::burst::{BurstOptions, EvidenceChoice};

use super::estimate::{Estimate, quantile};
use super::runs::{cannot, error_percent, estimate, for_each, truth};
use super::{Experiment, Row, Size, table1};
use crate::error::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-thresholds",
    source: "BurstTracker, MobiCom 2019, section 3.2.2",
    what: "the paper's rule under other thresholds, in cells that give whole TTIs",
    run: run_all,
};

/// Start and end thresholds: the paper's, and each of them alone moved.
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

const NOTE: &str = "the paper says that its rule is not sensitive, and gives no numbers";

fn run_all(size: Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for application in ["file", "video"] {
        // Other seeds than table 1 has.
        let mut cases = table1::cases(application, size.of(1, 4, 20), size)?;
        cases.retain(|case| case.scheduler == "whole TTIs");
        for case in &mut cases {
            case.scenario.seed += 1_000;
        }
        let errors = for_each(&cases, |case| {
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
    }
    Ok(rows)
}
