//! A bottleneck before the cell: figures 8 and 14.

use std::sync::{Arc, Mutex, PoisonError};

use airmile_control::ControllerKind;
use airmile_control::claw::{Bottleneck, Feedback};
use airmile_emulate::{PhoneView, RadioReader, RateLimit, ReaderSetup, Scenario};
use airmile_model::Record;

use super::load::load_with;
use super::{
    CASES, CLAW, CUBIC, Experiment, ExperimentResult, LoadCase, Row, SEEDS, Work, bars, mean, page,
    run_cases,
};
use crate::radio_agent::RadioAgent;
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "claw-fig8-14",
    source: "CLAW, MobiSys 2017, figures 8 and 14",
    what: "the page of one image over a throttled line before the cell, with the detector and without",
    run: run_all,
};

/// The paper throttles to 30 kbit/s, at which its page would take nine minutes instead of
/// 11 s; at 1.5 Mbit/s it takes 11 s.
const RATE_BPS: u64 = 1_500_000;

/// A sender that trusts the client whatever the path delivers, as in the paper.
const TRUSTS_CLIENT: ControllerKind = ControllerKind::Claw { limit_bps: None, trust_client: true };

const BOUND_OF_ROUNDS: &str = "since the first reported window fills the cell; bound: about 3.3, as \
    loads come in steps of 50 ms, a third of a round trip";

fn throttled(scenario: &mut Scenario) {
    let limit = RateLimit { rate_bps: RATE_BPS, queue_bytes: 250_000, from_ms: 0, to_ms: None };
    scenario.core.down.limit = Some(limit);
}

/// Reports of a phone's program on the bottleneck.
#[derive(Debug, Clone, Copy, Default)]
struct BottleneckReports {
    /// When the phone was first busy, and when the wireline was first reported, in ns.
    first_ns: Option<i64>,
    wireline_ns: Option<i64>,
    min_rtt_ns: i64,
    /// Number of reports, and of those that reported another bottleneck than the cell.
    reports: u64,
    other: u64,
}

/// The program, and a record of its reports.
#[derive(Debug)]
struct Noting {
    agent: RadioAgent,
    reports: Arc<Mutex<BottleneckReports>>,
}

impl RadioReader for Noting {
    fn record(&mut self, record: &Record) {
        self.agent.record(record);
    }

    fn poll(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        let feedback = self.agent.poll(now_ns, phone)?;
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if !feedback.idle {
            reports.first_ns.get_or_insert(now_ns);
            reports.min_rtt_ns = phone.min_rtt_ns.unwrap_or(reports.min_rtt_ns);
            reports.reports += 1;
            reports.other += u64::from(feedback.bottleneck != Bottleneck::Cellular);
        }
        if feedback.bottleneck == Bottleneck::Wireline {
            reports.wireline_ns.get_or_insert(now_ns);
        }
        Some(feedback)
    }
}

/// Reports of the phone's program on the bottleneck in a run of CLAW.
fn reports(scenario: &Scenario) -> Result<BottleneckReports> {
    let reports = Arc::new(Mutex::new(BottleneckReports::default()));
    let reader = |setup: &ReaderSetup| -> Box<dyn RadioReader> {
        Box::new(Noting { agent: RadioAgent::new(setup.clone()), reports: Arc::clone(&reports) })
    };
    load_with(scenario, &reader)?;
    let reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(*reports)
}

/// How fast the detector decides, and how often it is wrong.
fn decisions(work: &Work<'_>, runs: u64) -> Result<Vec<Row>> {
    let mut items = Vec::new();
    let changes: [fn(&mut Scenario); 2] = [throttled, |_| {}];
    for change in changes {
        for n in 0..runs {
            items.push(page(|scenario| {
                change(scenario);
                scenario.seed = SEEDS + n;
                scenario.server_tcp.control = CLAW;
            })?);
        }
    }
    let found = work.for_each(&items, reports)?;
    let (wireline, cellular) = found.split_at((runs as usize).min(found.len()));
    let took: Vec<f64> = wireline
        .iter()
        .filter_map(|reports| {
            let took_ns = reports.wireline_ns? - reports.first_ns?;
            // The first reported window fills the cell two round trips later.
            Some(took_ns as f64 / reports.min_rtt_ns.max(1) as f64 - 2.0)
        })
        .collect();
    let found_share = 100.0 * took.len() as f64 / wireline.len().max(1) as f64;
    let share =
        |reports: &BottleneckReports| 100.0 * reports.other as f64 / reports.reports.max(1) as f64;
    let wrong: Vec<f64> = cellular.iter().map(share).collect();
    Ok(vec![
        Row::new("wireline: runs in which it is named", "%", mean(&[found_share])).at_least(100.0),
        Row::new("wireline: round trips until it is named", "", mean(&took))
            .paper(3.0)
            .at_most(3.0)
            .note(BOUND_OF_ROUNDS),
        Row::new("cellular bottleneck: reports that name another", "%", mean(&wrong)).at_most(0.0),
    ])
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
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
    let cases = run_cases(work, &cases, &[CLAW, TRUSTS_CLIENT, CUBIC], runs)?;
    let mut rows: Vec<Row> = cases.iter().map(|case| case.against_cubic(None)).collect();
    for case in &cases {
        for (kind, what) in [
            (CLAW, "CLAW"),
            (TRUSTS_CLIENT, "CLAW as in the paper, without a check"),
            (CUBIC, "Cubic"),
        ] {
            let what = |of: &str| format!("{}, {what}: {of}", case.what);
            let loads = mean(&case.values(kind, |l| l.page_ms));
            rows.push(Row::new(what("load time, mean"), "ms", loads));
            let rtts = mean(&case.values(kind, |l| l.rtt_ms));
            rows.push(Row::new(what("packets' round trip, mean"), "ms", rtts));
        }
        // Figure 8: the phone's share of the cell after the first second.
        let shares: Vec<f64> =
            case.of(CLAW).iter().map(|l| l.share_between(1_000.0, l.page_ms)).collect();
        let what = format!("{}: the phone's share of PRBs after 1 s", case.what);
        rows.push(Row::new(what, "%", mean(&shares)));
    }
    let against = |a: &LoadCase, b: &LoadCase, kind| {
        let pairs = a.of(kind).iter().zip(b.of(kind));
        let changes: Vec<f64> = pairs.map(|(a, b)| 100.0 * (a.page_ms / b.page_ms - 1.0)).collect();
        mean(&changes)
    };
    let what = "without a check: detector against none";
    rows.push(Row::new(what, "%", against(&cases[1], &cases[2], TRUSTS_CLIENT)).paper(-20.0));
    let what = "with the check: detector against none";
    rows.push(Row::new(what, "%", against(&cases[1], &cases[2], CLAW)));
    rows.extend(decisions(work, runs)?);
    let figure = bars("Load time over a throttled line", CASES, &cases);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
