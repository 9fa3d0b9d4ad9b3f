//! One run: the verdict of `diagnose`, and the lab's truth.

use std::collections::BTreeMap;
use std::path::Path;

use airmile::{Inputs, Progress, RadioOptions, diagnose};
use airmile_model::{Cause, Verdict, VerdictThresholds};
use anyhow::Context;

use super::families::Family;

/// A run counts if its cause cost at least this share of the time: below that, it leads by
/// no measure.
const COSTS: f64 = 0.10;

/// Result of a run.
pub struct Judged {
    pub seed: u64,
    /// Whether the injected cause cost enough to count.
    pub counts: bool,
    pub confidence: f64,
    cause: Cause,
    pub named: Verdict,
    /// The leading cause, and the one to fix.
    leading: Option<Cause>,
    mend: Option<Cause>,
    /// Share of the time attributed to the cause.
    pub share: f64,
    /// Cost of the cause as a share of the time: the truth, our estimate, and its lower and
    /// upper bound.
    pub cost: f64,
    pub cost_ours: f64,
    cost_range: (f64, f64),
    /// True link demand.
    pub demand: f64,
    /// The split in words.
    pub says: Vec<String>,
}

impl Judged {
    /// Whether the verdict is right for the true link demand, whose limits define it: the
    /// radio if its queue was nearly always non-empty; a shared verdict in between, with
    /// the injected cause as the leading one or the one to fix; otherwise that cause. A
    /// cause of the radio must not be named in a run whose queue was mostly empty.
    pub fn is_right(&self) -> bool {
        let named_radio =
            matches!(self.named, Verdict::Radio | Verdict::RadioContention | Verdict::RadioSignal);
        match VerdictThresholds::default().judge(self.demand) {
            Verdict::Radio if self.cause.is_radio() => self.named == Verdict::from(self.cause),
            Verdict::Radio => named_radio,
            Verdict::Mixed => {
                self.named == Verdict::Mixed
                    && [self.leading, self.mend].contains(&Some(self.cause))
            }
            _ if self.cause.is_radio() => !named_radio,
            _ => self.named == Verdict::from(self.cause),
        }
    }

    /// Whether any cause was named.
    pub fn is_named(&self) -> bool {
        self.named != Verdict::Unknown
    }

    /// Whether the answer includes the cost of the cause.
    pub fn is_costed(&self) -> bool {
        self.cost_range != (0.0, 0.0)
    }

    /// Width of the cost's interval.
    pub fn width(&self) -> f64 {
        self.cost_range.1 - self.cost_range.0
    }

    pub fn verdict_name(&self) -> String {
        let shared = self.mend.map(|cause| format!("mixed, {cause}"));
        match self.named {
            Verdict::Mixed if !self.cause.is_radio() => shared.unwrap_or("mixed".to_owned()),
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

/// Runs a family with a seed in a directory.
pub fn judge(family: &Family, seed: u64, dir: &Path) -> anyhow::Result<Judged> {
    let scenario = family.scenario(seed)?;
    airmile_lab::leave(&scenario, dir, true)?;
    let cause = family.cause;
    let truth = truth(dir)?;
    let (with, without) = truth.values().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let cost = (with - without) / with;
    let demand = true_demand(dir, &truth)?;
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
    let session = &answer.session;
    let total_ms: f64 = session.shares.values().sum();
    let share = session.shares.get(cause.as_str()).map_or(0.0, |ms| ms / total_ms);
    let found = session.counterfactuals.iter().find(|one| one.of == cause);
    let cost_of = |ms: f64| (total_ms - ms) / total_ms;
    Ok(Judged {
        seed,
        counts: with > 0.0 && cost >= COSTS,
        confidence: session.confidence,
        cause,
        named: session.verdict,
        leading: session.leading,
        mend: session.counterfactuals.last().map(|one| one.of),
        demand,
        says: session.shares.iter().map(|(n, ms)| format!("{n} {:.2}", ms / total_ms)).collect(),
        share,
        cost,
        cost_ours: found.map_or(0.0, |one| cost_of(one.ms)),
        cost_range: found.map_or((0.0, 0.0), |one| (cost_of(one.high_ms), cost_of(one.low_ms))),
    })
}

/// Cells of a table of the lab, without the header.
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

/// Time in which the phone's queue at the base station was non-empty, over the time of all
/// transfers.
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
