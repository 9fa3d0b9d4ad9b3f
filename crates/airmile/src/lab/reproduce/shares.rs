//! BurstTracker, figures 3 to 5: how cells share TTIs.

use std::collections::HashMap;

use airmile_emulate::{Scenario, SchedulerKind, Trace, run};
use airmile_model::{Direction, Record};

use super::estimate::{part, quantile};
use super::runs::{SCHEDULERS, cannot, for_each, only, read};
use super::{Experiment, Row, Size};
use crate::error::Result;

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

const TWO_DOWNLOADS: &str = include_str!("../../../experiments/fig3-two-downloads.toml");
const PEAK_HOUR: &str = include_str!("../../../experiments/fig4-peak-hour.toml");
const SLOW_IDLE: &str = include_str!("../../../experiments/fig5-slow-idle.toml");
const SLOW_BUSY: &str = include_str!("../../../experiments/fig5-slow-busy.toml");

/// Busy TTIs, and those that one user has alone.
fn alone(trace: &Trace) -> (u64, u64) {
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

fn figure_3(size: Size) -> Result<Vec<Row>> {
    let ms = size.of(2_000, 20_000, 60_000);
    let found = for_each(&SCHEDULERS, |(name, kind)| {
        let scenario = with_length(TWO_DOWNLOADS, 43_000, *kind, ms)?;
        Ok((*name, alone(&run(&scenario).map_err(cannot)?)))
    })?;
    let row = |(name, (n, one)): &(&str, (u64, u64))| {
        let row = Row::new(format!("{name}: busy TTIs that one user has"), "%", part(*one, *n));
        if *name == "whole TTIs" {
            row.paper(100.0).note("the figure shows it, without a number")
        } else {
            row.note("not the habit of the carriers that the paper measured")
        }
    };
    Ok(found.iter().map(row).collect())
}

fn figure_4(size: Size) -> Result<Vec<Row>> {
    let ms = size.of(2_000, 60_000, 60_000);
    let scenario = with_length(PEAK_HOUR, 44_000, SchedulerKind::WholeTti, ms)?;
    let trace = run(&scenario).map_err(cannot)?;
    // Where TTIs are given whole, what is in use is one user's share.
    let (mut n, mut most, mut few) = (0, 0, 0);
    for run in trace.cell_use.iter().filter(|run| run.users == 1) {
        let (share, ttis) = (f64::from(run.n_prb) / f64::from(scenario.cell.n_prb), run.n_tti);
        n += u64::from(ttis);
        most += if share > 0.9 { u64::from(ttis) } else { 0 };
        few += if share < 0.4 { u64::from(ttis) } else { 0 };
    }
    const MIX: &str = "the traffic of the paper's cell is not known. Here each object fills TTIs but for its \
     last: small shares come from small objects, of which its cell had more";
    Ok(vec![
        Row::new("TTIs in which a user has over 90 %", "%", part(most, n)).paper(35.0).note(MIX),
        Row::new("TTIs in which a user has under 40 %", "%", part(few, n)).paper(40.0).note(MIX),
        Row::new("in between", "%", part(n - most - few, n)).paper(25.0).note(MIX),
    ])
}

/// Shares of the cell that the phone had in each TTI in which it had any.
fn own_shares(trace: &Trace, n_prb: u16) -> Vec<f64> {
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
    own.into_values().map(|prb| 100.0 * f64::from(prb) / f64::from(n_prb)).collect()
}

fn figure_5(size: Size) -> Result<Vec<Row>> {
    let ms = size.of(4_000, 60_000, 60_000);
    let cases: Vec<(&str, &str, &str, u64)> = [("idle", SLOW_IDLE), ("busy", SLOW_BUSY)]
        .into_iter()
        .flat_map(|(cell, text)| ["written", "datagrams"].map(|app| (cell, text, app)))
        .zip(45_000..)
        .map(|((cell, text, app), seed)| (cell, text, app, seed))
        .collect();
    let found = for_each(&cases, |(cell, text, app, seed)| {
        let scenario = with_length(text, *seed, SchedulerKind::WholeTti, ms)?;
        let scenario = only(&scenario, app);
        let trace = run(&scenario).map_err(cannot)?;
        Ok((*cell, *app, own_shares(&trace, scenario.cell.n_prb)))
    })?;
    const WRITTEN: &str = "iperf hands TCP 128 kB at a time, as the paper's: what is written at \
                           once is sent at once";
    const DATAGRAMS: &str = "packets that come one by one leave one by one, in small blocks: our \
                             base station serves a queue at once and trims the block to it; those \
                             that the paper measured seem to wait until there is more, which it \
                             explains by control overhead and battery";
    let mut rows = Vec::new();
    for (cell, app, shares) in &found {
        let large = shares.iter().filter(|share| **share >= 50.0).count() as u64;
        let (how, note) = match *app {
            "written" => ("128 kB at a time", WRITTEN),
            _ => ("1,470 bytes at a time", DATAGRAMS),
        };
        let what = format!("{cell} cell, {how}: median share when scheduled");
        let mut median = quantile(shares, 0.5);
        median.interval = None; // TTIs are no sample
        rows.push(Row::new(what, "% of PRBs", median).note(note));
        let what = format!("{cell} cell, {how}: TTIs with half of the cell or more");
        rows.push(Row::new(what, "%", part(large, shares.len() as u64)).paper(50.0).note(note));
    }
    Ok(rows)
}
