//! A bottleneck before the cell: figures 8 and 14.

use airmile_control::ControllerKind;
use airmile_emulate::{RateLimit, Scenario};

use super::{CASES, CLAW, CUBIC, Case, Experiment, Found, Row, Work, bars, mean, page, run_cases};
use crate::error::Result;

pub(in crate::lab::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "claw-fig8-14",
    source: "CLAW, MobiSys 2017, figures 8 and 14",
    what: "the page of one image over a throttled line before the cell, with the detector and without",
    run: run_all,
};

/// The paper throttles to 30 kbit/s, at which its page would take nine minutes and not 11
/// s: at 1.5 Mbit/s it takes those.
const RATE_BPS: u64 = 1_500_000;

/// A sender that believes the client whatever the path delivers: what the paper's has.
const CREDULOUS: ControllerKind = ControllerKind::Claw { limit_bps: None, credulous: true };

fn throttled(scenario: &mut Scenario) {
    let limit = RateLimit { rate_bps: RATE_BPS, queue_bytes: 250_000, from_ms: 0, to_ms: None };
    scenario.core.down.limit = Some(limit);
}

fn run_all(work: &Work<'_>) -> Result<Found> {
    let undetected = |scenario: &mut Scenario| {
        throttled(scenario);
        scenario.radio_reports.detector = false;
    };
    let cases = [
        ("cellular bottleneck".to_owned(), page(|_| {})?),
        ("wireline, detector".to_owned(), page(throttled)?),
        ("wireline, no detector".to_owned(), page(undetected)?),
    ];
    let runs = work.size.of(1, 12, 20);
    let cases = run_cases(work, &cases, &[CLAW, CREDULOUS, CUBIC], runs)?;
    let mut rows: Vec<Row> = cases.iter().map(|case| case.against_cubic(None)).collect();
    for case in &cases {
        for (kind, what) in
            [(CLAW, "CLAW"), (CREDULOUS, "CLAW as in the paper, without a check"), (CUBIC, "Cubic")]
        {
            let what = |of: &str| format!("{}, {what}: {of}", case.what);
            let loads = mean(&case.values(kind, |l| l.page_ms));
            rows.push(Row::new(what("load time, mean"), "ms", loads));
            let rtts = mean(&case.values(kind, |l| l.rtt_ms));
            rows.push(Row::new(what("packets' round trip, mean"), "ms", rtts));
        }
        // Figure 8: what the phone has of the cell behind the first second.
        let shares: Vec<f64> =
            case.of(CLAW).iter().map(|l| l.share_between(1_000.0, l.page_ms)).collect();
        let what = format!("{}: the phone's share of PRBs behind 1 s", case.what);
        rows.push(Row::new(what, "%", mean(&shares)));
    }
    let against = |a: &Case, b: &Case, kind| {
        let pairs = a.of(kind).iter().zip(b.of(kind));
        let changes: Vec<f64> = pairs.map(|(a, b)| 100.0 * (a.page_ms / b.page_ms - 1.0)).collect();
        mean(&changes)
    };
    let what = "without a check: detector against none";
    rows.push(Row::new(what, "%", against(&cases[1], &cases[2], CREDULOUS)).paper(-20.0));
    let what = "with the check: detector against none";
    rows.push(Row::new(what, "%", against(&cases[1], &cases[2], CLAW)));
    let figure = bars("Load time over a throttled line", CASES, &cases);
    Ok(Found { rows, figures: vec![figure], ..Found::default() })
}
