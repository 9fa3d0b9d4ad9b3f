//! One run: what `diagnose` says of it, and what the lab knows.

use std::collections::BTreeMap;
use std::path::Path;

use airmile::{Inputs, Progress, RadioOptions, diagnose};
use airmile_model::{Cause, Verdict, VerdictThresholds};
use anyhow::Context;

use super::families::Family;

/// A run counts where its cause cost at least this share of the time: below, it leads
/// by no measure.
const COSTS: f64 = 0.10;

/// What came of a run.
pub struct Judged {
    pub seed: u64,
    /// Whether the cause that was put in leads, by the lab's truth.
    pub counts: bool,
    cause: Cause,
    pub named: Verdict,
    /// The leading cause, and the one to mend.
    leading: Option<Cause>,
    mend: Option<Cause>,
    /// Share of the time that went to the cause.
    pub share: f64,
    /// What the cause cost as a share of the time: true, ours, and ours at least and at most.
    pub cost: f64,
    pub cost_ours: f64,
    cost_range: (f64, f64),
    /// True link demand.
    pub demand: f64,
    /// The split in words.
    pub says: Vec<String>,
}

impl Judged {
    /// Of a shared verdict, the leading cause and the one beside the radio are told.
    pub fn is_right(&self) -> bool {
        let mixed = || [self.leading, self.mend].contains(&Some(self.cause));
        self.named == Verdict::from(self.cause) || self.named == Verdict::Mixed && mixed()
    }

    pub fn told(&self) -> String {
        let beside = self.mend.map(|cause| format!("mixed, {cause}"));
        match self.named {
            Verdict::Mixed if !self.cause.is_radio() => beside.unwrap_or("mixed".to_owned()),
            other => other.to_string(),
        }
    }

    pub fn error(&self) -> f64 {
        (self.cost_ours - self.cost).abs()
    }

    pub fn is_within(&self) -> bool {
        (self.cost_range.0..=self.cost_range.1).contains(&self.cost)
    }
}

/// Runs a seed of a family in a directory.
pub fn judge(family: &Family, seed: u64, dir: &Path) -> anyhow::Result<Judged> {
    let scenario = family.scenario(seed)?;
    airmile_lab::leave(&scenario, dir, true)?;
    let cause = family.cause;
    let truth = truth(dir)?;
    let (with, without) = truth.values().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let cost = (with - without) / with;
    let demand = true_demand(dir, &truth)?;
    let thresholds = VerdictThresholds::default();
    // What the limits on link demand leave to a cause.
    let leads = match cause.is_radio() {
        true => demand >= thresholds.not_radio_below,
        false => demand < thresholds.radio_at_least,
    };
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
    let session = &answer.session;
    let total_ms: f64 = session.shares.values().sum();
    let share = session.shares.get(cause.as_str()).map_or(0.0, |ms| ms / total_ms);
    let told = session.counterfactuals.iter().find(|told| told.of == cause);
    let cost_of = |ms: f64| (total_ms - ms) / total_ms;
    Ok(Judged {
        seed,
        counts: with > 0.0 && cost >= COSTS && leads,
        cause,
        named: session.verdict,
        leading: session.leading,
        mend: session.counterfactuals.last().map(|told| told.of),
        demand,
        says: session.shares.iter().map(|(n, ms)| format!("{n} {:.2}", ms / total_ms)).collect(),
        share,
        cost,
        cost_ours: told.map_or(0.0, |told| cost_of(told.ms)),
        cost_range: told.map_or((0.0, 0.0), |told| (cost_of(told.high_ms), cost_of(told.low_ms))),
    })
}

/// Cells of a table of the lab, its head left out.
fn rows(path: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    Ok(text.lines().skip(1).map(cells).collect())
}

/// Milliseconds of each transfer with and without its cause.
fn truth(dir: &Path) -> anyhow::Result<BTreeMap<String, (f64, f64)>> {
    let rows = rows(&dir.join("counterfactuals.csv"))?;
    let rows = rows.into_iter().filter_map(|cells| {
        let ms = |n: usize| cells.get(n)?.parse::<f64>().ok();
        Some((cells.first()?.clone(), (ms(2)?, ms(3)?)))
    });
    Ok(rows.collect())
}

/// Time in which the phone's queue at the base station was not empty, over the time of
/// all transfers.
fn true_demand(dir: &Path, of: &BTreeMap<String, (f64, f64)>) -> anyhow::Result<f64> {
    let file = std::fs::File::open(dir.join("transfer_truth.csv"))?;
    let truth = airmile_decode::table::read_transfer_truth(file)?.rows;
    let (mut queued, mut total) = (0.0, 0.0);
    for row in truth.iter().filter(|row| of.contains_key(&row.id)) {
        queued += row.throughput_time_ms;
        total += of.get(&row.id).map_or(0.0, |(with, _)| *with);
    }
    Ok(queued / f64::max(total, 1.0))
}
