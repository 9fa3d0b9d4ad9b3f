//! A page with a single image: figures 11 to 13, the saturated cell of figure 7, and
//! losses.

use airmile_emulate::{RlcConfig, Scenario};

use super::load::worst;
use super::{AT_ONCE_SEGMENTS, Axis, CASES, Figure, Series, judged};
use super::{
    BBR3, CLAW, COPA, CQIC, CUBIC, Experiment, ExperimentResult, LoadCase, RADIO_COPA, RENO, Row,
    VEGAS, VERUS, Work, bars, mean, name, page, run_cases, saturate, web,
};
use airmile::Result;

pub(in crate::reproduce) const FIGURES_11_13: Experiment = Experiment {
    name: "claw-fig11-13",
    source: "CLAW, MobiSys 2017, figures 11 to 13",
    what: "a page of one image of 2 MB in an idle cell, 20 runs each: window, load time, round trip",
    run: figures_11_13,
};

pub(in crate::reproduce) const SATURATED: Experiment = Experiment {
    name: "claw-fig7",
    source: "CLAW, MobiSys 2017, figure 7",
    what: "the same page in a cell that three other users fill: hybrid mode",
    run: saturated,
};

pub(in crate::reproduce) const LOSSES: Experiment = Experiment {
    name: "claw-losses",
    source: "CLAW, MobiSys 2017, section 4.3.2",
    what: "the same page with losses in the radio or in a queue, with and without loss attribution",
    run: losses,
};

const PAPER_RTT: &str = "the paper's Vegas: 15 % below CLAW's";

fn figures_11_13(work: &Work<'_>) -> Result<ExperimentResult> {
    let cases = [("one image of 2 MB".to_owned(), page(|_| {})?)];
    let algorithms = [CLAW, CUBIC, CQIC, VEGAS, VERUS, BBR3, COPA, RADIO_COPA, RENO];
    let runs = work.size.of(1, 20, 20);
    let cases = run_cases(work, &cases, &algorithms, runs)?;
    let case = &cases[0];
    let mut rows = case.rows(Some(-56.0));
    // Lower bound for any window: only the link, the handshakes and the receiver.
    let at_once = page(|scenario| {
        scenario.server_tcp.initial_window_segments = AT_ONCE_SEGMENTS;
    })?;
    let floor = run_cases(work, &[("at once".to_owned(), at_once)], &[CUBIC], runs)?;
    let floor = &floor[0];
    let what = "the floor, all sent at once: load time, mean";
    rows.push(Row::new(what, "ms", mean(&floor.values(CUBIC, |l| l.page_ms))));
    let pairs = floor.of(CUBIC).iter().zip(case.of(CUBIC));
    let changes: Vec<f64> =
        pairs.map(|(floor, cubic)| 100.0 * (floor.page_ms / cubic.page_ms - 1.0)).collect();
    let row = Row::new("the floor against Cubic", "%", mean(&changes));
    rows.push(row.note("a lower bound for any window here"));
    for kind in algorithms {
        let worst = worst(&case.values(kind, |l| l.page_ms));
        rows.push(Row::new(format!("{}: load time, worst", name(kind)), "ms", worst));
    }
    let most = |kind| worst(&case.values(kind, |l| l.page_ms)).value;
    let worst_change = 100.0 * (most(CLAW) / most(CUBIC) - 1.0);
    let worst_change =
        super::super::estimate::Estimate { value: worst_change, n: runs, interval: None };
    rows.push(Row::new("worst load time of CLAW against Cubic's", "%", worst_change).paper(-73.0));
    for kind in algorithms {
        let rtt = mean(&case.values(kind, |l| l.rtt_ms));
        rows.push(Row::new(format!("{}: packets' round trip, mean", name(kind)), "ms", rtt));
    }
    let pairs = |of: fn(&super::Loaded) -> f64| -> Vec<f64> {
        let both = case.of(VEGAS).iter().zip(case.of(CLAW));
        both.map(|(vegas, claw)| of(vegas) / of(claw)).collect()
    };
    let rtt: Vec<f64> = pairs(|l| l.rtt_ms).iter().map(|r| 100.0 * (r - 1.0)).collect();
    let row = Row::new("round trip of Vegas against CLAW's", "%", mean(&rtt));
    rows.push(row.paper(-15.0).note(PAPER_RTT));
    let times = mean(&pairs(|l| l.page_ms));
    rows.push(Row::new("load time of Vegas over CLAW's", "times", times).paper(2.2));
    rows.extend(case.against_rivals());
    let mut windows = Figure::new(
        "cwnd",
        "The server's window during a page's load",
        Axis::new("time since the page's start (ms)"),
        Axis::new("cwnd (kB)"),
    )
    .caption("The first run of each.");
    let mut shares = Figure::new(
        "prb",
        "PRBs of the phone during a page's load",
        Axis::new("time since the page's start (ms)"),
        Axis::new("share of the cell's PRBs (%)"),
    )
    .caption("The first run of each, in steps of 50 ms.");
    for kind in [CLAW, CUBIC, VEGAS, BBR3, COPA] {
        let Some(first) = case.of(kind).first() else { continue };
        let during = first.cwnd.iter().filter(|(at, _)| (0.0..=first.page_ms).contains(at));
        windows = windows.with(Series::curve(name(kind), during.copied().collect()));
        let steps = (0..(first.page_ms / 50.0).ceil() as usize).map(|n| n as f64 * 50.0);
        let points = steps.map(|at| (at, first.share_between(at, at + 50.0)));
        shares = shares.with(Series::curve(name(kind), points.collect()));
    }
    let figure = bars("Load time of one image of 2 MB", CASES, &cases);
    Ok(ExperimentResult {
        rows,
        figures: vec![figure, windows, shares],
        ..ExperimentResult::default()
    })
}

/// What a shorter interval between reports could save.
const BOUND_OF_REPORTS: &str = "worse than Cubic with 95 % confidence; bound: the next row";
const OFTEN_MS: u32 = 20;

fn saturated(work: &Work<'_>) -> Result<ExperimentResult> {
    let runs = work.size.of(1, 20, 20);
    let cases = [("saturated cell".to_owned(), page(saturate)?)];
    let cases = run_cases(work, &cases, &[CLAW, CUBIC, CQIC, VEGAS], runs)?;
    let case = &cases[0];
    let mut rows = case.rows(None);
    if let Some(row) = rows.last_mut().filter(|row| row.bar.is_some_and(|bar| !bar.held)) {
        row.note = Some(BOUND_OF_REPORTS);
    }
    let often = page(|scenario| {
        saturate(scenario);
        scenario.radio_reports.every_ms = OFTEN_MS;
    })?;
    let often = ("saturated cell, a report every 20 ms".to_owned(), often);
    let often = run_cases(work, &[often], &[CLAW, CUBIC], runs)?;
    rows.push(Row { bar: None, ..often[0].against_cubic(None) });
    let before = mean(&case.values(CLAW, |l| 100.0 * l.load_before));
    rows.push(Row::new("cell load before the page", "%", before));
    for (what, ms) in [("1 s", 1_000.0), ("2 s", 2_000.0)] {
        for kind in [CLAW, CUBIC] {
            let cwnd: Vec<f64> = case.of(kind).iter().map(|l| l.cwnd_at(ms)).collect();
            let what = format!("{}: window {what} after the page's start", name(kind));
            rows.push(Row::new(what, "kB", mean(&cwnd)));
        }
    }
    let mut windows = Figure::new(
        "cwnd",
        "The server's window in a saturated cell",
        Axis::new("time since the page's start (ms)"),
        Axis::new("cwnd (kB)"),
    )
    .caption("The first run of each.");
    for kind in [CLAW, CUBIC] {
        let Some(first) = case.of(kind).first() else { continue };
        let during = first.cwnd.iter().filter(|(at, _)| (0.0..=first.page_ms).contains(at));
        windows = windows.with(Series::curve(name(kind), during.copied().collect()));
    }
    Ok(ExperimentResult { rows, figures: vec![windows], ..ExperimentResult::default() })
}

/// Measured beside it: only the link and the receiver limit the first sending.
const BOUND_OF_LOSSES: &str = "bound: the row of all sent at once";

/// A buffer for the whole of the largest page.
const WHOLE_BYTES: u64 = 16_000_000;

/// A radio that gives up about one block in a hundred, with RLC in unacknowledged mode.
fn lossy(scenario: &mut Scenario) {
    scenario.link.bler_target = 0.01;
    scenario.cell.dl_harq_transmissions = 1;
    scenario.dl_rlc = RlcConfig { unacknowledged: true, ..scenario.dl_rlc.clone() };
}

/// A larger page, in which the last round trip has less weight.
fn longer(scenario: &mut Scenario, change: impl FnOnce(&mut Scenario)) {
    change(scenario);
    if let Some(web) = web(scenario) {
        web.page_bytes = 8_000_000;
    }
}

fn losses(work: &Work<'_>) -> Result<ExperimentResult> {
    let without = |change: fn(&mut Scenario)| {
        page(|scenario| {
            change(scenario);
            scenario.radio_reports.losses = false;
        })
    };
    // The same radio, with RLC retransmissions.
    let repeated = |scenario: &mut Scenario| {
        lossy(scenario);
        scenario.dl_rlc.unacknowledged = false;
    };
    let short_queue = |scenario: &mut Scenario| scenario.cell.queue_bytes = 150_000;
    let cases = [
        ("no radio loss".to_owned(), page(repeated)?),
        ("1 % radio loss, reported".to_owned(), page(lossy)?),
        ("1 % radio loss, not reported".to_owned(), without(lossy)?),
        ("8 MB, no radio loss".to_owned(), page(|s| longer(s, repeated))?),
        ("8 MB, 1 % radio loss, reported".to_owned(), page(|s| longer(s, lossy))?),
        // Packets without room have no sequence number yet: their loss is invisible to the
        // modem.
        ("a short queue".to_owned(), page(short_queue)?),
    ];
    let cases = run_cases(work, &cases, &[CLAW, CUBIC], work.size.of(1, 20, 20))?;
    let mut rows: Vec<Row> = cases.iter().flat_map(|case| case.rows(None)).collect();
    let at_once = |what: &str, change: &dyn Fn(&mut Scenario)| -> Result<(String, Scenario)> {
        let scenario = page(|scenario| {
            change(scenario);
            scenario.server_tcp.initial_window_segments = AT_ONCE_SEGMENTS;
            // Room for all of it.
            let receive = &mut scenario.phone_tcp.receive;
            (receive.buffer_bytes, receive.max_buffer_bytes) = (WHOLE_BYTES, WHOLE_BYTES);
            scenario.server_tcp.send_buffer_bytes = WHOLE_BYTES;
            scenario.cell.queue_bytes = WHOLE_BYTES;
        })?;
        Ok((format!("at once{what}"), scenario))
    };
    let floors = [
        at_once("", &repeated)?,
        at_once(", loss", &lossy)?,
        at_once(", 8 MB", &|s| longer(s, repeated))?,
        at_once(", 8 MB, loss", &|s| longer(s, lossy))?,
    ];
    let floors = run_cases(work, &floors, &[CUBIC], work.size.of(1, 20, 20))?;
    let against_of = |kind, what: &'static str, a: &LoadCase, b: &LoadCase| {
        let pairs = a.of(kind).iter().zip(b.of(kind));
        let changes: Vec<f64> = pairs.map(|(a, b)| 100.0 * (a.page_ms / b.page_ms - 1.0)).collect();
        Row::new(what, "%", mean(&changes))
    };
    let against = |what, a, b| against_of(CLAW, what, a, b);
    let lost: Vec<f64> =
        cases[1].of(CLAW).iter().map(|l| 100.0 * l.again as f64 / l.sent.max(1) as f64).collect();
    rows.push(Row::new("segments retransmitted under radio loss", "%", mean(&lost)));
    rows.push(
        against("CLAW: radio loss, reported, against none", &cases[1], &cases[0])
            .at_most(10.0)
            .note(BOUND_OF_LOSSES),
    );
    rows.push(
        against("CLAW, 8 MB: radio loss, reported, against none", &cases[4], &cases[3])
            .at_most(10.0)
            .note(BOUND_OF_LOSSES),
    );
    let what = "all sent at once: radio loss against none";
    rows.push(against_of(CUBIC, what, &floors[1], &floors[0]));
    let what = "all sent at once, 8 MB: radio loss against none";
    rows.push(against_of(CUBIC, what, &floors[3], &floors[2]));
    rows.push(against("CLAW: radio loss, not reported, against none", &cases[2], &cases[0]));
    rows.push(judged(against(
        "CLAW: radio loss, reported against not reported",
        &cases[1],
        &cases[2],
    )));
    let figure = bars("Load time by the cause of losses", CASES, &cases);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
