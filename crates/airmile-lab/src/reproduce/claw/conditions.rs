//! Figure 18: one page with other cells, channels, phones and protocols. The paper loads a
//! LinkedIn profile without giving its size; here it is the median page.

use airmile_emulate::quic::QuicControl;
use airmile_emulate::{LinkConfig, Scenario, SchedulerKind, SecondaryConfig, TransportKind};

use super::load::load;
use super::{
    BBR3, CASES, CLAW, COPA, CQIC, CUBIC, Experiment, ExperimentResult, LoadCase, RADIO_COPA, Row,
    SEEDS, VEGAS, VERUS, Work, bars, busy, mean, page, run_cases, web,
};
use airmile::Result;

pub(in crate::reproduce) const LOADS: Experiment = Experiment {
    name: "claw-fig18a",
    source: "CLAW, MobiSys 2017, figure 18a",
    what: "the median page in an idle cell and in one that is 70 % full",
    run: loads,
};

pub(in crate::reproduce) const MORE: Experiment = Experiment {
    name: "claw-fig18b-f",
    source: "CLAW, MobiSys 2017, figures 18b to 18f",
    what: "the same page by channel quality, speed, scheduler, device and protocol",
    run: more,
};

/// The median page of the HTTP Archive (Web Almanac 2024): 2,311 kB, 66 requests.
fn median(scenario: &mut Scenario) {
    if let Some(web) = web(scenario) {
        web.page_bytes = 2_311_000;
        web.objects = 66;
        web.depth = 4;
    }
}

fn with(change: impl FnOnce(&mut Scenario)) -> Result<Scenario> {
    page(|scenario| {
        median(scenario);
        change(scenario);
    })
}

/// Changes against Cubic and CQIC, and the load, for each case.
const PAPER: [[f64; 3]; 3] = [[-66.0, -38.0, 0.0], [-59.0, -51.0, 70.0], [-59.0, -51.0, 70.0]];

fn loads(work: &Work<'_>) -> Result<ExperimentResult> {
    let shared = |scenario: &mut Scenario| {
        busy(scenario);
        scenario.cell.scheduler = SchedulerKind::PfFrequency;
    };
    let cases = [
        ("idle cell".to_owned(), with(|_| {})?),
        ("busy cell".to_owned(), with(shared)?),
        // Small users take whole TTIs: idle PRBs in them are not available.
        ("busy cell, whole TTIs".to_owned(), with(busy)?),
    ];
    let algorithms = [CLAW, CUBIC, CQIC, VEGAS, VERUS, BBR3, COPA];
    let cases = run_cases(work, &cases, &algorithms, work.size.of(1, 20, 20))?;
    let mut rows = Vec::new();
    for (case, [cubic, cqic, load]) in cases.iter().zip(PAPER) {
        rows.extend(case.rows(Some(cubic)));
        let what = format!("{}: CLAW's load time against CQIC's", case.what);
        rows.push(Row::new(what, "%", mean(&case.changes(CQIC))).paper(cqic));
        rows.push(case.delay_against(CUBIC));
        rows.extend(case.against_rivals());
        let before = mean(&case.values(CLAW, |l| 100.0 * l.load_before));
        rows.push(
            Row::new(format!("{}: load before the page", case.what), "%", before).paper(load),
        );
    }
    let figure = bars("Load time by the cell's load", CASES, &cases);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// A phone moving at a speed in metres per second: coherence falls with speed from the
/// scenario's 80 ms at 3 km/h, shadowing decorrelates over 50 m (TR 36.814).
fn moving(metres_per_s: f64, snr_mean_db: f64) -> impl FnOnce(&mut Scenario) {
    move |scenario| {
        scenario.link = LinkConfig {
            snr_mean_db,
            fading_coherence_ms: 80.0 * (3.0 / 3.6) / metres_per_s,
            shadowing_sigma_db: 6.0,
            shadowing_coherence_ms: 50_000.0 / metres_per_s,
            ..scenario.link.clone()
        };
    }
}

/// Quinn's own controllers. Its BBR draws from the system's random numbers: it would differ in
/// each run.
const QUINNS: [(QuicControl, &str); 2] =
    [(QuicControl::QuinnCubic, "quinn's Cubic"), (QuicControl::QuinnNewReno, "quinn's NewReno")];

/// CLAW over HTTP/3 compared with quinn's own controllers.
fn against_quinns(work: &Work<'_>, scenario: &Scenario, case: &LoadCase) -> Result<Vec<Row>> {
    let claw = case.of(CLAW);
    let mut rows = Vec::new();
    for (control, what) in QUINNS {
        let one = |n: usize| {
            let mut one = Scenario { seed: SEEDS + n as u64, ..scenario.clone() };
            one.quic.control = control;
            one
        };
        let items: Vec<Scenario> = (0..claw.len()).map(one).collect();
        let loads = work.for_each(&items, load)?;
        let times: Vec<f64> = loads.iter().map(|l| l.page_ms).collect();
        rows.push(Row::new(format!("HTTP/3, {what}: load time, mean"), "ms", mean(&times)));
        let changes: Vec<f64> =
            claw.iter().zip(&times).map(|(l, ms)| 100.0 * (l.page_ms / ms - 1.0)).collect();
        let what = format!("HTTP/3: CLAW's load time against {what}");
        rows.push(Row::new(what, "%", mean(&changes)));
    }
    Ok(rows)
}

fn more(work: &Work<'_>) -> Result<ExperimentResult> {
    // With the paper's change against Cubic, if given.
    let cases: [(&str, Scenario, Option<f64>); 9] = [
        // The other cases change one thing in it. The paper's -46 is over HTTP/2; it has
        // -36 for an operator and -35 for a device.
        ("12 dB, whole TTIs, one carrier, HTTP/2", with(|_| {})?, Some(-46.0)),
        ("SINR 5 dB", with(|s| s.link.snr_mean_db = 5.0)?, Some(-44.0)),
        // The slow drive is between tall buildings, the fast one in the open (6.2.2).
        ("10 mph", with(moving(4.5, 8.0))?, None),
        ("20 mph", with(moving(8.9, 11.0))?, None),
        ("50 mph", with(moving(22.4, 17.0))?, None),
        (
            "scheduler in frequency",
            with(|s| s.cell.scheduler = SchedulerKind::PfFrequency)?,
            Some(-35.0),
        ),
        (
            "device of two carriers",
            with(|s| s.cell.secondary = Some(SecondaryConfig::default()))?,
            Some(-35.0),
        ),
        (
            "HTTP/1.1",
            with(|s| web(s).into_iter().for_each(|w| w.multiplexed = false))?,
            Some(-18.0),
        ),
        (
            "HTTP/3",
            with(|s| {
                web(s).into_iter().for_each(|w| (w.multiplexed, w.lanes) = (false, 100));
                s.apps.iter_mut().for_each(|app| app.transport = TransportKind::Quic);
            })?,
            None,
        ),
    ];
    let papers: Vec<Option<f64>> = cases.iter().map(|(_, _, paper)| *paper).collect();
    let scenarios = cases.map(|(what, scenario, _)| (what.to_owned(), scenario));
    let runs = work.size.of(1, 8, 20);
    let [tcp @ .., http3] = &scenarios;
    let mut cases = run_cases(work, tcp, &[CLAW, CUBIC, CQIC, BBR3, COPA, RADIO_COPA], runs)?;
    // Quinn paces by the window: without their own pace the rivals would be others.
    cases.extend(run_cases(work, std::slice::from_ref(http3), &[CLAW, CUBIC, CQIC], runs)?);
    let mut rows: Vec<Row> =
        cases.iter().zip(papers).flat_map(|(case, paper)| case.rows(paper)).collect();
    rows.extend(cases.iter().take(tcp.len()).flat_map(LoadCase::against_rivals));
    if let Some(case) = cases.last() {
        rows.extend(against_quinns(work, &http3.1, case)?);
    }
    let figure = bars("Load time of the median page", CASES, &cases);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
