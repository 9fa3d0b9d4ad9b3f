//! Cell load: a real log, emulated cells, and simulated ones.
//!
//! In the real log only the phone's own share of the cell's load is known: a lower bound.
//! Fitted on one half of the time, evaluated on the other.

mod simulated;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use airmile_decode::diag::LogReader;
use airmile_emulate::{
    CellConfig, Competing, LinkConfig, MeasurementConfig, RlcConfig, RunTrace, Scenario,
    SchedulerKind, Traffic, UplinkConfig, WindowConfig,
};
use airmile_model::{Direction, Measurement, Position, Record};
use airmile_radio::load::{
    ANCHOR_SHARE, Fit, LoadEstimate, LoadEstimator, LoadOptions, NoiseFloor, Slope, data_power,
    plain_rsrq_db, plain_share_of,
};
use anyhow::Context;

use crate::run::open;
use crate::score::percentile;

/// The log for the thresholds.
const LOG: &str = "data/diag/pixelxl_2018_download.mi2log";
/// Idle: nothing scheduled within this many TTIs.
const IDLE_TTIS: i64 = 30;
/// Seeds of the emulated runs for the thresholds; nothing was fitted to them.
const SERIES: u64 = 66_601;
/// Values below it are printed, not checked (half of the scale).
const SURE: f64 = 0.5;

/// A subframe with a measurement.
struct Subframe {
    m: Measurement,
    own_prb: u16,
    idle: bool,
    n_prb_cell: u16,
    n_ant: u8,
}

impl Subframe {
    fn own_share(&self) -> f64 {
        f64::from(self.own_prb) / f64::from(self.n_prb_cell)
    }

    fn plain(&self) -> Option<f64> {
        plain_share_of(&self.m, self.n_ant)
    }

    fn calibrated(&self, slope: Slope) -> Option<f64> {
        data_power(&self.m, self.n_ant, &NoiseFloor::default()).map(|power| slope.share(power))
    }
}

fn read_log(path: &Path) -> anyhow::Result<Vec<Record>> {
    let mut bytes = Vec::new();
    File::open(path).context("opening the log")?.read_to_end(&mut bytes)?;
    let (mut records, mut reader) = (Vec::new(), LogReader::new());
    let mut sink = |tagged: airmile_decode::diag::Tagged| records.push(tagged.record);
    reader.push(&bytes, &mut sink);
    reader.finish(&mut sink);
    Ok(records)
}

const fn tti_of(record: &Record) -> Option<i64> {
    match record {
        Record::Grant(grant) => Some(grant.position.tti.0),
        Record::Measurement(m) => Some(m.position.tti.0),
        _ => None,
    }
}

fn subframes(records: &[Record]) -> Vec<Subframe> {
    let mut own: BTreeMap<i64, u16> = BTreeMap::new();
    let (mut n_prb_cell, mut n_ant) = (50, 2);
    for record in records {
        match record {
            Record::Grant(g) if g.dir == Direction::Dl && g.rnti.is_user() => {
                let prb = own.entry(g.position.tti.0).or_default();
                *prb = (*prb).max(g.n_prb.unwrap_or(0));
            }
            Record::CellInfo(info) => {
                n_prb_cell = info.n_prb_dl.unwrap_or(n_prb_cell);
                n_ant = info.n_tx_antennas.unwrap_or(n_ant);
            }
            _ => {}
        }
    }
    let measured = records.iter().filter_map(|record| match record {
        Record::Measurement(m) => Some((**m).clone()),
        _ => None,
    });
    let subframe = |m: Measurement| {
        let tti = m.position.tti.0;
        let idle = own.range(tti - IDLE_TTIS..=tti + IDLE_TTIS).next().is_none();
        let own_prb = own.get(&tti).copied().unwrap_or(0);
        Subframe { m, own_prb, idle, n_prb_cell, n_ant }
    };
    measured.map(subframe).collect()
}

/// A subframe's own share, and its plain and calibrated load.
#[derive(Clone, Copy)]
struct Judged {
    own: f64,
    own_prb: u16,
    idle: bool,
    rsrq_db: f64,
    plain: f64,
    calibrated: f64,
}

/// Checks the real log; `None` without it.
fn real_log(shared: &Path) -> anyhow::Result<Option<bool>> {
    let path = shared.join(LOG);
    if !path.is_file() {
        println!("SKIPPED: no log at {}\n", path.display());
        return Ok(None);
    }
    let records = read_log(&path)?;
    let subframes = subframes(&records);
    let ttis = subframes.iter().map(|s| s.m.position.tti.0);
    let (first, last) = (ttis.clone().min().unwrap_or(0), ttis.max().unwrap_or(0));
    let middle = i64::midpoint(first, last);
    println!("Pixel XL log, {} measurements; each half judged by the other's fit", subframes.len());
    let mut judged = Vec::new();
    let mut unknown = 0;
    for first_half in [true, false] {
        let mut estimator = LoadEstimator::default();
        let fits = |tti| (tti < middle) == first_half;
        let half = records.iter().filter(|record| tti_of(record).is_none_or(fits));
        half.for_each(|record| estimator.push(record));
        estimator.finish();
        let slope =
            subframes.first().map_or(Slope::PRIOR, |s| estimator.slope(s.m.pci, s.m.earfcn));
        let half = if first_half { "first" } else { "second" };
        println!("  slope of the {half} half: {:.3}, {} anchors", slope.value, slope.anchors);
        for s in subframes.iter().filter(|s| !fits(s.m.position.tti.0)) {
            let (Some(plain), Some(calibrated)) = (s.plain(), s.calibrated(slope)) else {
                unknown += 1;
                continue;
            };
            judged.push(Judged {
                own: s.own_share(),
                own_prb: s.own_prb,
                idle: s.idle,
                rsrq_db: s.m.rsrq_db.map_or(f64::NAN, f64::from),
                plain,
                calibrated,
            });
        }
    }
    println!("  {unknown} subframes cannot be estimated (SNR under 0 dB or no reading)\n");
    let mut met = true;
    for (name, of) in
        [("plain", (|j| j.plain) as fn(&Judged) -> f64), ("calibrated", |j| j.calibrated)]
    {
        let barred = name == "calibrated";
        let idle: Vec<f64> = judged.iter().filter(|j| j.idle).map(of).collect();
        let median = percentile(&idle, 0.5);
        let within = share(&idle, |load| *load <= 0.1);
        let holds = state(median <= 0.1, barred);
        println!(
            "{name:<11} idle 30 ms:   median load {median:.2} (<= 0.10)  n={:<4} {within:.0} % \
             within  {holds}",
            idle.len()
        );
        let most = judged.iter().filter(|j| j.own >= ANCHOR_SHARE);
        let above: Vec<f64> = most.clone().map(|j| of(j) - j.own).collect();
        let loads: Vec<f64> = most.map(of).collect();
        let off = percentile(&above, 0.5);
        let within = share(&above, |off| *off >= -0.15);
        let holds = state(off >= -0.15, barred);
        println!(
            "{name:<11} own >= 0.75:  median load {:.2}, less own {off:+.2} (>= -0.15)  n={:<4} \
             {within:.0} % within  {holds}",
            percentile(&loads, 0.5),
            above.len()
        );
        met &= !barred || (median <= 0.1 && off >= -0.15);
    }
    println!("(plain is printed for comparison, not barred)\n");
    figure_6(&judged);
    Ok(Some(met))
}

const fn state(holds: bool, barred: bool) -> &'static str {
    match (holds, barred) {
        (true, true) => "met",
        (false, true) => "MISSED",
        (true, false) => "would be met",
        (false, false) => "would be missed",
    }
}

fn share(values: &[f64], holds: impl Fn(&f64) -> bool) -> f64 {
    100.0 * values.iter().filter(|v| holds(v)).count() as f64 / values.len() as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
    sum / n
}

/// CLAW's figure 6: mean RSRQ by own PRBs against equation 6. The paper gives no numbers
/// for the figure; these are the log's.
fn figure_6(judged: &[Judged]) {
    println!("Figure 6 on this log: RSRQ in dB by own PRBs (others' are not known)");
    println!(
        "{:<8}{:>5}{:>9}{:>7}{:>12}{:>10}{:>12}",
        "own PRB", "n", "RSRQ", "std", "equation 6", "plain r", "calibrated"
    );
    for (low, high) in [(0, 0), (1, 12), (13, 24), (25, 37), (38, 43), (44, 50)] {
        // For no own PRB: subframes without own traffic nearby.
        let bin = |j: &&Judged| (low..=high).contains(&j.own_prb) && (low > 0 || j.idle);
        let bin: Vec<&Judged> = judged.iter().filter(bin).collect();
        if bin.is_empty() {
            println!("{:<8}{:>5}", format!("{low}-{high}"), 0);
            continue;
        }
        let of = |f: fn(&Judged) -> f64| mean(bin.iter().map(|j| f(j)));
        let rsrq_db = of(|j| j.rsrq_db);
        let deviation = mean(bin.iter().map(|j| (j.rsrq_db - rsrq_db).powi(2))).sqrt();
        println!(
            "{:<8}{:>5}{rsrq_db:>9.2}{deviation:>7.2}{:>12.2}{:>10.2}{:>12.2}",
            format!("{low}-{high}"),
            bin.len(),
            plain_rsrq_db(of(|j| j.own), 2),
            of(|j| j.plain),
            of(|j| j.calibrated),
        );
    }
    println!();
}

/// A window's error in points.
#[derive(Clone)]
struct WindowError {
    group: String,
    /// Against the load of the whole window.
    calibrated: f64,
    /// Against the load of the subframes measured in it.
    sampled: f64,
    plain: f64,
    confidence: f64,
    anchored: bool,
}

/// Load by TTI of a run that started at `first`.
struct TrueLoad {
    first: i64,
    load: Vec<f64>,
}

impl TrueLoad {
    fn emulated(trace: &RunTrace, n_prb: u16) -> Self {
        let load = trace.cell_use.iter().flat_map(|run| {
            let load = f64::from(run.n_prb) / f64::from(n_prb);
            std::iter::repeat_n(load, run.n_tti as usize)
        });
        Self { first: trace.first_tti.0, load: load.collect() }
    }

    fn at(&self, tti: i64) -> Option<f64> {
        self.load.get(usize::try_from(tti - self.first).ok()?).copied()
    }

    fn window(&self, window: &LoadEstimate) -> f64 {
        let ttis = window.tti.0..window.tti.0 + window.n_tti;
        mean(ttis.filter_map(|tti| self.at(tti)))
    }
}

fn estimate(records: &[Record], fit: Fit) -> Vec<LoadEstimate> {
    let mut estimator = LoadEstimator::new(LoadOptions { fit, ..LoadOptions::default() });
    records.iter().for_each(|record| estimator.push(record));
    estimator.finish()
}

/// Errors of a run's windows; `sampled` gives the true load of a measurement.
fn errors(
    group: &str,
    records: &[Record],
    truth: &TrueLoad,
    sampled: impl Fn(i64) -> Option<f64>,
) -> (Vec<WindowError>, usize) {
    let mut by_window: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let found = estimate(records, Fit::Others);
    let (origin, n_tti) = found.first().map_or((0, 1), |w| (w.tti.0, w.n_tti));
    for record in records {
        if let Record::Measurement(m) = record {
            let number = (m.position.tti.0 - origin).div_euclid(n_tti);
            by_window.entry(number).or_default().extend(sampled(m.position.tti.0));
        }
    }
    let plain = estimate(records, Fit::Plain);
    let mut out = Vec::new();
    let mut unknown = 0;
    for (window, plain) in found.iter().zip(&plain) {
        let Some(load) = window.load else {
            unknown += 1;
            continue;
        };
        let number = (window.tti.0 - origin).div_euclid(n_tti);
        let sampled = mean(by_window.get(&number).into_iter().flatten().copied());
        let whole = truth.window(window);
        out.push(WindowError {
            group: group.to_owned(),
            calibrated: 100.0 * (load - whole).abs(),
            sampled: 100.0 * (load - sampled).abs(),
            plain: 100.0 * (plain.load.unwrap_or(f64::NAN) - whole).abs(),
            confidence: window.confidence,
            anchored: (window.slope - 1.0).abs() > f64::EPSILON,
        });
    }
    (out, unknown)
}

fn print_errors(title: &str, errors: &[WindowError]) {
    println!("{title:<34}{:>7}{:>12}{:>10}{:>8}", "windows", "calibrated", "sampled", "plain");
    let groups: BTreeSet<&str> = errors.iter().map(|e| e.group.as_str()).collect();
    for group in groups {
        print_row(group, &errors.iter().filter(|e| e.group == group).collect::<Vec<_>>());
    }
    print_row("all", &errors.iter().collect::<Vec<_>>());
    let sure: Vec<_> = errors.iter().filter(|e| e.confidence >= SURE).collect();
    print_row("confidence of 0.5 or more", &sure);
    let rest: Vec<_> = errors.iter().filter(|e| e.confidence < SURE).collect();
    print_row("confidence under 0.5", &rest);
    let prior: Vec<_> = errors.iter().filter(|e| !e.anchored).collect();
    print_row("no subframe of its own to learn on", &prior);
}

fn print_row(name: &str, errors: &[&WindowError]) {
    if errors.is_empty() {
        println!("{name:<34}{:>7}", 0);
        return;
    }
    let of = |f: fn(&WindowError) -> f64| mean(errors.iter().map(|e| f(e)));
    println!(
        "{name:<34}{:>7}{:>12.1}{:>10.1}{:>8.1}",
        errors.len(),
        of(|e| e.calibrated),
        of(|e| e.sampled),
        of(|e| e.plain)
    );
}

/// Measures the errors in emulated cells; returns whether the bar is met.
fn emulated() -> anyhow::Result<bool> {
    let mut all = Vec::new();
    let (mut runs, mut unknown) = (0, 0);
    for (name, scenario) in matrix() {
        let trace = airmile_emulate::run(&scenario).with_context(|| name.clone())?;
        let truth = TrueLoad::emulated(&trace, scenario.cell.n_prb);
        let (errors, no_value) = errors(&name, &trace.records, &truth, |tti| truth.at(tti));
        all.extend(errors);
        unknown += no_value;
        runs += 1;
    }
    println!(
        "Emulated cells: {runs} runs; {unknown} windows cannot be estimated (SNR under 0 dB)."
    );
    println!("Mean absolute error in points, against the whole window's true load; `sampled`:");
    println!("against that of the measured subframes alone\n");
    print_errors("others, scheduler", &all);
    let error = mean(all.iter().map(|e| e.calibrated));
    println!(
        "mean absolute error of all windows, points  {error:.2} <= 5.00  n={} {}\n",
        all.len(),
        state(error <= 5.0, true)
    );
    Ok(error <= 5.0)
}

/// All combinations of data power, SNR, interference, readings and load of the cell; the
/// estimator knows none of them.
fn matrix() -> Vec<(String, Scenario)> {
    let others = [
        ("none", None),
        (
            "sporadic",
            Some(Competing::Sporadic { users: 4, mean_file_bytes: 300_000, mean_pause_ms: 800 }),
        ),
        ("full", Some(Competing::FullBuffer { users: 3 })),
    ];
    let schedulers =
        [("whole TTI", SchedulerKind::WholeTti), ("round robin", SchedulerKind::RoundRobin)];
    // P_A of 0, -3 and -6 dB.
    let powers = [1.0, 0.5, 0.25];
    let mut out = Vec::new();
    for (load, competing) in &others {
        for (name, scheduler) in schedulers {
            for data_to_reference_power in powers {
                for place in 0..3_u32 {
                    let seed = (SERIES << 16) + out.len() as u64;
                    let window = WindowConfig::default();
                    let scenario = Scenario {
                        seed,
                        duration_ms: 15_000,
                        tail_ms: 2_000,
                        first_tti: 7_003,
                        cell: CellConfig {
                            scheduler,
                            data_to_reference_power,
                            ..CellConfig::default()
                        },
                        link: LinkConfig {
                            snr_mean_db: 8.0 + 5.0 * f64::from(place),
                            ..LinkConfig::default()
                        },
                        measurement: MeasurementConfig {
                            period_ms: 10,
                            snr_error_sigma_db: 0.5,
                            interference_share: 0.25 * f64::from(place),
                            rx1_stuck: seed.is_multiple_of(4),
                            ..MeasurementConfig::default()
                        },
                        dl_rlc: RlcConfig::default(),
                        ul_rlc: RlcConfig::default(),
                        uplink: UplinkConfig::default(),
                        core: airmile_emulate::CoreConfig::default(),
                        competing: competing.iter().cloned().collect(),
                        traffic: vec![
                            Traffic::Download {
                                id: "file".to_owned(),
                                start_ms: 1_500,
                                bytes: 3_000_000,
                                window,
                            },
                            Traffic::Paced {
                                id: "paced".to_owned(),
                                start_ms: 7_000,
                                bytes: 1_000_000,
                                rate_bps: 2_000_000,
                            },
                        ],
                        ..Scenario::default()
                    };
                    out.push((format!("{load}, {name}"), scenario));
                }
            }
        }
    }
    out
}

/// Runs all parts; returns whether the bars are met, `None` if a part was skipped.
pub fn measure(shared: &Path) -> anyhow::Result<Option<bool>> {
    println!("\n== Cell load\n");
    let log = real_log(shared)?;
    let lab = emulated()?;
    if shared.join("data/ns3").is_dir() {
        simulated::simulated(shared)?;
    } else {
        println!("SKIPPED: no simulated cells\n");
    }
    Ok(match log {
        Some(met) => Some(met && lab),
        None => lab.then_some(()).map_or(Some(false), |()| None),
    })
}
