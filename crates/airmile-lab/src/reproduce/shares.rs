//! BurstTracker, figures 3 to 5: how cells share TTIs.

use std::collections::HashMap;

use airmile_emulate::{Competing, RunTrace, Scenario, SchedulerKind, run};
use airmile_model::{Direction, Record};

use super::estimate::{part, quantile};
use super::figure::{Axis, Figure, Series};
use super::runs::{SCHEDULERS, Work, cannot, only, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(super) const FIGURE_3: Experiment = Experiment {
    name: "bursttracker-fig3",
    source: "BurstTracker, MobiCom 2019, figure 3",
    what: "one user a TTI, two persistent downloads",
    run: figure_3,
};

pub(super) const FIGURE_4: Experiment = Experiment {
    name: "bursttracker-fig4",
    source: "BurstTracker, MobiCom 2019, figure 4",
    what: "shares of the resource blocks in a busy cell",
    run: figure_4,
};

pub(super) const FIGURE_5: Experiment = Experiment {
    name: "bursttracker-fig5",
    source: "BurstTracker, MobiCom 2019, figure 5",
    what: "slow transfers (1 Mbit/s) come in large blocks",
    run: figure_5,
};

const TWO_DOWNLOADS: &str = include_str!("../../experiments/fig3-two-downloads.toml");
const PEAK_HOUR: &str = include_str!("../../experiments/fig4-peak-hour.toml");
const SLOW_IDLE: &str = include_str!("../../experiments/fig5-slow-idle.toml");
const SLOW_BUSY: &str = include_str!("../../experiments/fig5-slow-busy.toml");

/// Busy TTIs, and those used by one user alone.
fn alone(trace: &RunTrace) -> (u64, u64) {
    let busy = trace.cell_use.iter().filter(|run| run.users > 0);
    busy.fold((0, 0), |(n, one), run| {
        let ttis = u64::from(run.n_tti);
        (n + ttis, one + if run.users == 1 { ttis } else { 0 })
    })
}

fn with_length(text: &str, seed: u64, kind: SchedulerKind, ms: u64) -> Result<Scenario> {
    let mut scenario = read(text)?;
    scenario.seed = seed;
    scenario.cell.scheduler = kind;
    scenario.duration_ms = u32::try_from(ms).unwrap_or(u32::MAX);
    Ok(scenario)
}

/// TTIs shown in figure 3, with both downloads at full rate.
const SHOWN: std::ops::Range<i64> = 1_000..1_100;

/// Shares of two users in the resource blocks, TTI by TTI, in percent: the phone's from its
/// grants, the other's as the remaining use.
fn schedule(trace: &RunTrace, n_prb: u16) -> [Vec<(f64, f64)>; 2] {
    let own = own_prbs(trace);
    let mut points = [Vec::new(), Vec::new()];
    for run in &trace.cell_use {
        for tti in run.tti.0..run.tti.0 + i64::from(run.n_tti) {
            let at = tti - trace.first_tti.0;
            if SHOWN.contains(&at) {
                let phone = own.get(&tti).copied().unwrap_or(0);
                for (points, prb) in points.iter_mut().zip([phone, run.n_prb.saturating_sub(phone)])
                {
                    let share = 100.0 * f64::from(prb) / f64::from(n_prb);
                    points.push(((at - SHOWN.start) as f64, share));
                }
            }
        }
    }
    points
}

fn figure_3(work: &Work<'_>) -> Result<ExperimentResult> {
    let ms = work.size.of(2_000, 30_000, 60_000);
    let runs = work.for_each(&SCHEDULERS, |(name, kind)| {
        let scenario = with_length(TWO_DOWNLOADS, 43_000, *kind, ms)?;
        let trace = run(&scenario).map_err(cannot)?;
        let drawn = schedule(&trace, scenario.cell.n_prb);
        let shares = own_shares(&trace, scenario.cell.n_prb);
        Ok((*name, alone(&trace), drawn, shares))
    })?;
    let mut shares = Figure::new(
        "shares",
        "Share of the phone in the TTIs in which it is scheduled, with another user's download",
        Axis::new("share of the resource blocks (%)").from(0.0, 102.0),
        Axis::cdf("TTIs up to this share (%)"),
    )
    .caption(format!("n = one run of {} s for each scheduler.", ms / 1_000));
    let mut figures = Vec::new();
    for (name, _, [phone, other], own) in &runs {
        shares = shares.with(Series::cdf(*name, own));
        if *name == "whole TTIs" {
            let time = Axis::new("time (TTIs of 1 ms)");
            let share = Axis::new("share of the resource blocks (%)").from(0.0, 105.0);
            figures.push(
                Figure::new("schedule", "One user a TTI: two persistent downloads", time, share)
                    .with(Series::scatter("user 1, the phone", phone.clone()))
                    .with(Series::scatter("user 2", other.clone()))
                    .caption("100 TTIs of one run, whole TTIs; the paper's figure shows the same."),
            );
        }
    }
    figures.push(shares);
    let rows = runs.iter().map(|(name, (n, one), ..)| {
        let row = Row::new(format!("{name}: busy TTIs that one user has"), "%", part(*one, *n));
        if *name == "whole TTIs" {
            row.paper(100.0).at_least(99.0).note("the figure shows it, without a number")
        } else {
            row.note("not the habit of the carriers that the paper measured")
        }
    });
    Ok(ExperimentResult { rows: rows.collect(), figures, ..ExperimentResult::default() })
}

/// Divisor of the object size in the arm with small objects.
const SMALLER: u32 = 10;

/// Scheduled TTIs, those with over 90 % and under 40 % of the cell, and each one's share in
/// percent. With whole TTIs, the PRBs in use belong to one user.
fn fractions(trace: Option<&RunTrace>, n_prb: u16) -> (u64, u64, u64, Vec<f64>) {
    let (mut n, mut most, mut few) = (0, 0, 0);
    let mut shares = Vec::new();
    let runs = trace.into_iter().flat_map(|trace| &trace.cell_use);
    for run in runs.filter(|run| run.users == 1) {
        let (share, ttis) = (f64::from(run.n_prb) / f64::from(n_prb), run.n_tti);
        n += u64::from(ttis);
        shares.extend(std::iter::repeat_n(100.0 * share, ttis as usize));
        most += if share > 0.9 { u64::from(ttis) } else { 0 };
        few += if share < 0.4 { u64::from(ttis) } else { 0 };
    }
    (n, most, few, shares)
}

fn figure_4(work: &Work<'_>) -> Result<ExperimentResult> {
    let ms = work.size.of(2_000, 60_000, 60_000);
    let scenario = with_length(PEAK_HOUR, 44_000, SchedulerKind::WholeTti, ms)?;
    let mut small = scenario.clone();
    for competing in &mut small.competing {
        match competing {
            Competing::Web { mean_object_bytes: bytes, .. }
            | Competing::Sporadic { mean_file_bytes: bytes, .. } => *bytes /= SMALLER,
            _ => {}
        }
    }
    let traces = work.for_each(&[scenario.clone(), small], |s| run(s).map_err(cannot))?;
    let [(n, most, few, shares), (small_n, small_most, small_few, small_shares)] =
        [0, 1].map(|at| fractions(traces.get(at), scenario.cell.n_prb));
    const SMALL: &str = "an arm added after the first results, to check the previous note";
    const MIX: &str = "the traffic of the paper's cell is unknown. Here each object fills all \
        TTIs except its last: small shares come from small objects, of which the paper's cell had \
        more (rows of objects a tenth as large)";
    let figure = Figure::new(
        "shares",
        "Shares of the resource blocks by user, in a busy cell",
        Axis::new("share of the resource blocks (%)").from(0.0, 102.0),
        Axis::cdf("TTIs up to this share (%)"),
    )
    .with(Series::cdf("all users", &shares))
    .with(Series::cdf("all users, objects a tenth as large", &small_shares))
    .paper_point("40 % of them under 40 %", 40.0, 40.0)
    .paper_point("35 % of them over 90 %", 90.0, 65.0)
    .caption(format!("n = {n} TTIs of {} s in which any user is scheduled.", ms / 1_000));
    let rows = vec![
        Row::new("TTIs in which a user has over 90 %", "%", part(most, n)).paper(35.0).note(MIX),
        Row::new("TTIs in which a user has under 40 %", "%", part(few, n)).paper(40.0).note(MIX),
        Row::new("in between", "%", part(n - most - few, n)).paper(25.0).note(MIX),
        Row::new("over 90 %, objects a tenth as large", "%", part(small_most, small_n))
            .paper(35.0)
            .note(SMALL),
        Row::new("under 40 %, objects a tenth as large", "%", part(small_few, small_n))
            .paper(40.0)
            .note(SMALL),
    ];
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

/// The phone's shares of the cell in percent, in TTIs in which it was scheduled.
fn own_shares(trace: &RunTrace, n_prb: u16) -> Vec<f64> {
    let own = own_prbs(trace);
    own.into_values().map(|prb| 100.0 * f64::from(prb) / f64::from(n_prb)).collect()
}

/// The phone's PRB pairs, by TTI.
fn own_prbs(trace: &RunTrace) -> HashMap<i64, u16> {
    let mut own: HashMap<i64, u16> = HashMap::new();
    for record in &trace.records {
        if let Record::Grant(grant) = record
            && grant.dir == Direction::Dl
            && grant.rnti.is_user()
        {
            let most = own.entry(grant.position.tti.0).or_default();
            *most = (*most).max(grant.n_prb.unwrap_or(0));
        }
    }
    own
}

fn figure_5(work: &Work<'_>) -> Result<ExperimentResult> {
    let ms = work.size.of(4_000, 60_000, 60_000);
    let cases: Vec<(&str, &str, &str, u64)> = [("idle", SLOW_IDLE), ("busy", SLOW_BUSY)]
        .into_iter()
        .flat_map(|(cell, text)| ["written", "datagrams"].map(|app| (cell, text, app)))
        .zip(45_000..)
        .map(|((cell, text, app), seed)| (cell, text, app, seed))
        .collect();
    let found = work.for_each(&cases, |(cell, text, app, seed)| {
        let scenario = with_length(text, *seed, SchedulerKind::WholeTti, ms)?;
        let scenario = only(&scenario, app);
        let trace = run(&scenario).map_err(cannot)?;
        Ok((*cell, *app, own_shares(&trace, scenario.cell.n_prb)))
    })?;
    const WRITTEN: &str = "the paper: more than 50 %, which is only a lower bound. iperf passes \
        TCP 128 kB at a time: data written at once is sent at once";
    const DATAGRAMS: &str = "packets that arrive one by one are sent one by one, in small blocks: \
        our base station serves a queue at once and trims the block to it; those in the paper \
        seem to wait for more data, which it explains by control overhead and battery";
    let mut rows = Vec::new();
    let mut figure = Figure::new(
        "shares",
        "Slow transfers, 1 Mbit/s: share of the phone when it is scheduled",
        Axis::new("share of the resource blocks (%)").from(0.0, 102.0),
        Axis::cdf("TTIs up to this share (%)"),
    );
    for (cell, app, shares) in &found {
        let large = shares.iter().filter(|share| **share >= 50.0).count() as u64;
        let (how, note) = match *app {
            "written" => ("128 kB at a time", WRITTEN),
            _ => ("1,470 bytes at a time", DATAGRAMS),
        };
        figure = figure.with(Series::cdf(format!("{cell} cell, {how}"), shares));
        let what = format!("{cell} cell, {how}: median share when scheduled");
        let mut median = quantile(shares, 0.5);
        median.interval = None; // TTIs are no sample
        rows.push(Row::new(what, "% of PRBs", median).note(note));
        let what = format!("{cell} cell, {how}: TTIs with half of the cell or more");
        rows.push(Row::new(what, "%", part(large, shares.len() as u64)).paper(50.0).note(note));
    }
    figure = figure
        .paper_point("over 50 % of TTIs have half of the cell or more", 50.0, 50.0)
        .caption(format!("n = one run of {} s each, whole TTIs.", ms / 1_000));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}
