//! BurstTracker, table 1: the time with a non-empty queue, and the accuracy of its
//! estimates.

use airmile_emulate::workload::Workload;
use airmile_emulate::{Scenario, run, run_into};
use airmile_radio::burst::{BurstOptions, EvidenceChoice};

use super::estimate::quantile;
use super::figure::{Axis, Figure, Series};
use super::runs::{SCHEDULERS, Work, cannot, error_percent, estimate, only, read, truth};
use super::{Experiment, ExperimentResult, Row, Size};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-table1",
    source: "BurstTracker, MobiCom 2019, table 1",
    what: "throughput time as a share of the transfer, and its estimates' error",
    run: run_all,
};

/// Scenarios: typical and adverse conditions.
pub(super) const CONDITIONS: [(&str, &str); 2] = [
    ("typical", include_str!("../../experiments/table1-typical.toml")),
    ("adverse", include_str!("../../experiments/table1-adverse.toml")),
];

/// First seed; not used by any other experiment or accuracy test.
const SEED: u64 = 41_000;

/// Percentiles of the table.
const PERCENTILES: [(&str, f64); 3] = [("25th", 0.25), ("50th", 0.5), ("75th", 0.75)];

/// A workload with the paper's values, by percentile.
struct Application {
    name: &'static str,
    share: [f64; 3],
    rule: [f64; 3],
    active: [f64; 3],
}

const APPLICATIONS: [Application; 2] = [
    Application {
        name: "file",
        share: [83.3, 94.1, 98.4],
        rule: [4.3, 7.2, 12.1],
        active: [50.8, 60.2, 66.9],
    },
    Application {
        name: "video",
        share: [62.3, 73.4, 82.2],
        rule: [3.1, 6.9, 15.2],
        active: [54.6, 59.9, 65.9],
    },
];

/// Kinds of evidence used by the estimates.
const EVIDENCE: [(&str, EvidenceChoice); 5] = [
    ("ours", EvidenceChoice::Auto),
    ("poll bits alone", EvidenceChoice::Poll),
    ("padding alone", EvidenceChoice::Padding),
    ("allocations alone", EvidenceChoice::Grants),
    ("the paper's rule", EvidenceChoice::Paper),
];

/// One run of one workload.
pub(super) struct WorkloadRun {
    pub(super) scheduler: &'static str,
    pub(super) scenario: Scenario,
}

/// Every scheduler and condition with `seeds` seeds each.
pub(super) fn cases(application: &str, seeds: u64, size: Size) -> Result<Vec<WorkloadRun>> {
    let mut cases = Vec::new();
    for (_, text) in CONDITIONS {
        let base = only(&read(text)?, application);
        for (scheduler, kind) in SCHEDULERS {
            for _ in 0..seeds {
                let mut scenario = base.clone();
                scenario.seed = SEED + cases.len() as u64;
                scenario.cell.scheduler = kind;
                if size == Size::Quick {
                    shorten(&mut scenario);
                }
                cases.push(WorkloadRun { scheduler, scenario });
            }
        }
    }
    Ok(cases)
}

/// The shortest version with all features: a megabyte, three segments.
pub(super) fn shorten(scenario: &mut Scenario) {
    for app in &mut scenario.apps {
        match &mut app.workload {
            Workload::File { bytes, .. } => *bytes = 1_000_000,
            Workload::Video(video) => video.duration_ms = 12_000,
            _ => {}
        }
    }
}

/// Result of one run.
struct Scored {
    share: f64,
    errors: [f64; EVIDENCE.len()],
    active: f64,
}

fn score(case: &WorkloadRun) -> Result<Option<(&'static str, Scored)>> {
    let trace = run(&case.scenario).map_err(cannot)?;
    let (true_ms, duration_ms) = truth(&trace.transfers);
    if duration_ms <= 0.0 || true_ms <= 0.0 {
        return Ok(None);
    }
    let estimated = EVIDENCE.map(|(_, evidence)| {
        let options = BurstOptions { evidence, ..BurstOptions::default() };
        estimate(&trace.records, &trace.transfers, &options)
    });
    let scored = Scored {
        share: 100.0 * true_ms / duration_ms,
        errors: estimated.map(|e| error_percent(e.throughput_ms, true_ms)),
        active: error_percent(estimated[0].active_ms, true_ms),
    };
    Ok(Some((case.scheduler, scored)))
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    let mut shares = Vec::new();
    for application in &APPLICATIONS {
        // The paper's 100 runs: five schedulers, two conditions, ten seeds.
        let cases = cases(application.name, work.size.of(1, 5, 10), work.size)?;
        let results = work.for_each(&cases, score)?;
        let unfinished = results.iter().filter(|r| r.is_none()).count() as u64;
        let scored: Vec<(&str, Scored)> = results.into_iter().flatten().collect();
        rows.extend(tabulate(application, &scored));
        figures.push(errors(application, &scored));
        shares.push((application, scored.iter().map(|(_, s)| s.share).collect::<Vec<_>>()));
        if unfinished > 0 {
            let what = format!("{}: runs that did not end, left out", application.name);
            rows.push(Row::new(what, "runs", super::estimate::count(unfinished, cases.len())));
        }
    }
    let cases = cases(PAUSING, work.size.of(1, 5, 10), work.size)?;
    let pausing = work.for_each(&cases, |case| {
        let outcome = run_into(&case.scenario, &mut ()).map_err(cannot)?;
        let (true_ms, duration_ms) = truth(&outcome.transfers);
        Ok(100.0 * true_ms / duration_ms)
    })?;
    for ((of, p), paper) in PERCENTILES.iter().zip(APPLICATIONS[1].share) {
        let what = format!("{PAUSING}: throughput time, {of} percentile");
        let row = Row::new(what, "% of transfer", quantile(&pausing, *p)).paper(paper);
        rows.push(row.note(PAUSES));
    }
    figures.push(throughput_time(&shares).with(Series::cdf(PAUSING, &pausing)));
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

/// Distribution of errors by kind of evidence.
fn errors(application: &Application, scored: &[(&str, Scored)]) -> Figure {
    let (name, title) = match application.name {
        "file" => ("file-error", "Error of throughput time, 20 MB files"),
        _ => ("video-error", "Error of throughput time, videos of 2 min"),
    };
    let mut figure = Figure::new(
        name,
        title,
        Axis::new("absolute error of throughput time (%)").from(0.0, 100.0),
        Axis::cdf("runs up to this error (%)"),
    );
    for (at, (kind, _)) in EVIDENCE.iter().enumerate() {
        let errors: Vec<f64> = scored.iter().map(|(_, s)| s.errors[at]).collect();
        figure = figure.with(Series::cdf(*kind, &errors));
    }
    let active: Vec<f64> = scored.iter().map(|(_, s)| s.active).collect();
    figure = figure.with(Series::cdf("Active time", &active));
    for (at, (_, p)) in PERCENTILES.iter().enumerate() {
        figure = figure.paper_point("its rule", application.rule[at], 100.0 * p);
        figure = figure.paper_point("Active time", application.active[at], 100.0 * p);
    }
    figure.caption(format!(
        "n = {} runs: {} schedulers, typical and adverse conditions. The paper's are from one \
            base station that assigns whole TTIs.",
        scored.len(),
        SCHEDULERS.len()
    ))
}

/// Time in which a transfer waited for the link.
fn throughput_time(shares: &[(&Application, Vec<f64>)]) -> Figure {
    let mut figure = Figure::new(
        "share",
        "Throughput time as a share of the transfer",
        Axis::new("throughput time (% of the transfer)").from(0.0, 100.0),
        Axis::cdf("runs up to this share (%)"),
    );
    let n: Vec<String> = shares.iter().map(|(a, s)| format!("{} {}s", s.len(), a.name)).collect();
    for (application, shares) in shares {
        figure = figure.with(Series::cdf(application.name, shares));
        let name = if application.name == "file" { "files" } else { "video" };
        for (at, (_, p)) in PERCENTILES.iter().enumerate() {
            figure = figure.paper_point(name, application.share[at], 100.0 * p);
        }
    }
    figure.caption(format!("n = {}, by the emulator's truth.", n.join(" and ")))
}

const SHARE: &str = "the shares are higher than the paper's: a player that fills the link with \
    segments of 4 s spends most of each in bursts; with segments of 1 s they are lower (rows \
    below, and figure 6 by arms). The paper's round trips, segment lengths and mix of conditions \
    are unknown";
/// An arm in which the player's buffer is full, so that it pauses before each segment.
const PAUSING: &str = "video, segments of 1 s, buffer full";
const PAUSES: &str =
    "an arm added after the first results, set from figures 7 and 8 before its own were seen";
const RULE: &str = "the rule was made for cells that assign whole TTIs to a user: two of our five \
    schedulers split TTIs among users, and there it fails (rows by scheduler)";
const ACTIVE: &str = "Active time misses contention: much with whole TTIs and full load, little \
    with shared TTIs or an empty cell";

fn tabulate(application: &Application, scored: &[(&str, Scored)]) -> Vec<Row> {
    let name = application.name;
    let mut rows = Vec::new();
    let shares: Vec<f64> = scored.iter().map(|(_, s)| s.share).collect();
    for ((of, p), paper) in PERCENTILES.iter().zip(application.share) {
        let what = format!("{name}: throughput time, {of} percentile");
        rows.push(Row::new(what, "% of transfer", quantile(&shares, *p)).paper(paper).note(SHARE));
    }
    for (at, (kind, evidence)) in EVIDENCE.iter().enumerate() {
        let errors: Vec<f64> = scored.iter().map(|(_, s)| s.errors[at]).collect();
        for ((of, p), paper) in PERCENTILES.iter().zip(application.rule) {
            let what = format!("{name}: error of {kind}, {of} percentile");
            let row = Row::new(what, "%", quantile(&errors, *p)).paper(paper);
            let is_paper = *evidence == EvidenceChoice::Paper;
            rows.push(if is_paper { row.note(RULE) } else { row.at_most(paper) });
        }
    }
    let active: Vec<f64> = scored.iter().map(|(_, s)| s.active).collect();
    for ((of, p), paper) in PERCENTILES.iter().zip(application.active) {
        let what = format!("{name}: error of Active time, {of} percentile");
        rows.push(Row::new(what, "%", quantile(&active, *p)).paper(paper).note(ACTIVE));
    }
    for (scheduler, _) in SCHEDULERS {
        let own: Vec<&Scored> =
            scored.iter().filter(|(s, _)| *s == scheduler).map(|(_, scored)| scored).collect();
        let mut row = |kind: &str, of: &dyn Fn(&Scored) -> f64| {
            let errors: Vec<f64> = own.iter().map(|scored| of(scored)).collect();
            let what = format!("{name}, {scheduler}: error of {kind}, median");
            rows.push(Row::new(what, "%", quantile(&errors, 0.5)));
        };
        row("ours", &|s| s.errors[0]);
        row("the paper's rule", &|s| s.errors[EVIDENCE.len() - 1]);
        row("Active time", &|s| s.active);
    }
    rows
}
