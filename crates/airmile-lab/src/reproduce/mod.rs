//! Reproduces tables and figures of papers, next to the papers' own values: in virtual
//! time, and between real hosts for those that need real endpoints ([`Hosts`]).
//!
//! An experiment is a module: scenario files (`experiments/*.toml`), whose parameters were
//! derived from the papers' text before any result was seen, and a function that runs them
//! and returns rows.

mod claw;
mod clocks;
mod demand;
mod draw;
mod estimate;
mod figure;
mod follow;
mod hosts;
mod in_flight;
mod keep_warm;
mod kernel;
mod middlebox;
mod monitor;
mod player_log;
mod players;
mod ports;
mod qcut;
mod release;
mod runs;
mod shares;
mod slow_start;
mod table1;
mod thresholds;
mod ticks;
mod utilisation;
mod write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::manifest::Lateness;
use airmile::{Error, Result, did_you_mean};
use estimate::Estimate;
use runs::Work;

pub use figure::{Axis, Figure, Kind, MAX_POINTS, Reference, Series};
pub use follow::{Follower, RunCount};
pub use hosts::{Hosts, Job, Program, Video};
pub use write::{prepare, rows_table, write_files};

/// Amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// The minimum that exercises everything: shows only that it works.
    Quick,
    /// Fewer runs than the papers.
    Default,
    /// The papers' counts, if given.
    Full,
}

impl Size {
    /// The value for this size.
    pub(super) const fn of(self, quick: u64, default: u64, full: u64) -> u64 {
        match self {
            Self::Quick => quick,
            Self::Default => default,
            Self::Full => full,
        }
    }
}

/// A table or figure of a paper that can be reproduced.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Paper, table or figure.
    pub source: &'static str,
    /// What it shows.
    pub what: &'static str,
    #[serde(skip)]
    run: fn(&Work<'_>) -> Result<ExperimentResult>,
}

impl Experiment {
    /// Whether a name selects it: its own, or that of its paper's experiments, the part
    /// before the first hyphen.
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.group() == name
    }

    /// The name of its paper's experiments.
    fn group(&self) -> &'static str {
        self.name.split_once('-').map_or(self.name, |(group, _)| group)
    }
}

/// Result of an experiment.
#[derive(Default)]
struct ExperimentResult {
    rows: Vec<Row>,
    figures: Vec<Figure>,
    /// Why a part, or all, was not run.
    skipped: Option<String>,
    /// Lateness of its runs between real hosts.
    lateness: Vec<Lateness>,
    /// The reason for each failed run.
    failed: Vec<String>,
}

impl ExperimentResult {
    fn skipped(why: String) -> Self {
        Self { skipped: Some(why), ..Self::default() }
    }
}

/// Threshold of a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Whether it was met; a value that could not be measured does not meet it.
    pub held: bool,
}

/// Result of an experiment for one value of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's value; absent: the paper has none.
    pub paper: Option<f64>,
    /// Ours; absent: nothing could be measured.
    pub ours: Option<f64>,
    /// Ours over the paper's.
    pub ratio: Option<f64>,
    /// The threshold set in advance; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<Bar>,
    /// Sample size.
    pub n: u64,
    /// 95 % interval, if the sample is large enough.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Explanation of a difference, or remark.
    pub note: Option<&'static str>,
}

impl Row {
    fn new(what: impl Into<String>, unit: &'static str, ours: Estimate) -> Self {
        let value = (ours.n > 0 && ours.value.is_finite()).then_some(ours.value);
        let (low, high) = ours.interval.unzip();
        let what = what.into();
        let (paper, ratio, bar, note) = (None, None, None, None);
        Self { what, unit, paper, ours: value, ratio, bar, n: ours.n, low, high, note }
    }

    fn at_least(mut self, least: f64) -> Self {
        let held = self.ours.is_some_and(|ours| ours >= least);
        self.bar = Some(Bar { at_least: Some(least), at_most: None, held });
        self
    }

    fn at_most(mut self, most: f64) -> Self {
        let held = self.ours.is_some_and(|ours| ours <= most);
        self.bar = Some(Bar { at_least: None, at_most: Some(most), held });
        self
    }

    /// As [`at_most`](Self::at_most), missed only if the 95 % interval is above.
    fn not_above(mut self, most: f64) -> Self {
        let low = self.low.or(self.ours);
        let held = low.is_some_and(|low| low <= most);
        self.bar = Some(Bar { at_least: None, at_most: Some(most), held });
        self
    }

    /// As [`at_least`](Self::at_least), missed only if the 95 % interval is below.
    fn not_below(mut self, least: f64) -> Self {
        let high = self.high.or(self.ours);
        let held = high.is_some_and(|high| high >= least);
        self.bar = Some(Bar { at_least: Some(least), at_most: None, held });
        self
    }

    fn paper(mut self, paper: f64) -> Self {
        self.paper = Some(paper);
        self.ratio = self.ours.filter(|_| paper != 0.0).map(|ours| ours / paper);
        self
    }

    fn note(mut self, note: &'static str) -> Self {
        self.note = Some(note);
        self
    }
}

/// An experiment's rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reproduced {
    /// The experiment.
    pub name: &'static str,
    /// Paper, table or figure.
    pub source: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Why its runs between real hosts, possibly all of it, were skipped; absent: they were
    /// not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Set if runs in real time were late, so that its rows are invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Set if runs failed, which its rows exclude, or if all of it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Its figures: drawn and written as points, not part of the document.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// The experiments that were run, and their results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reproduction {
    /// Amount of work.
    pub size: Size,
    /// Results by experiment.
    pub experiments: Vec<Reproduced>,
}

/// All experiments, in the papers' order.
#[must_use]
pub const fn experiments() -> &'static [Experiment] {
    EXPERIMENTS
}

const EXPERIMENTS: &[Experiment] = &[
    middlebox::FIGURE_1,
    table1::EXPERIMENT,
    thresholds::EXPERIMENT,
    shares::FIGURE_3,
    shares::FIGURE_4,
    shares::FIGURE_5,
    demand::EXPERIMENT,
    release::EXPERIMENT,
    middlebox::FIGURE_8,
    ports::FIGURE_9,
    keep_warm::KEEP_WARM,
    in_flight::EXPERIMENT,
    slow_start::EXPERIMENT,
    ticks::EXPERIMENT,
    utilisation::EXPERIMENT,
    players::FIGURE_23,
    players::FIGURE_24,
    qcut::FIGURE_20,
    qcut::FIGURE_21,
    qcut::FIGURE_22,
    qcut::STEPS,
    qcut::LOG,
    clocks::EXPERIMENT,
    claw::FIGURES_1_2,
    claw::FIGURES_6_10,
    claw::SATURATED,
    claw::WIRELINE,
    claw::FIGURES_11_13,
    claw::LOSSES,
    claw::FIGURE_16,
    claw::FIGURE_17,
    claw::LOADS,
    claw::MORE,
    claw::FIGURE_19,
    claw::FRIENDS,
    claw::HOSTILE,
];

/// Runs experiments by name, by a paper's prefix (`qcut`), or all, counting their runs in
/// `runs`. Experiments that need `hosts` are skipped with a reason if there are none; a
/// failure is reported and does not affect the others.
///
/// # Errors
/// No such experiment, or an error of the follower.
pub fn reproduce(
    names: &[String],
    size: Size,
    hosts: Option<&dyn Hosts>,
    runs: &RunCount,
    follower: &mut dyn Follower,
) -> Result<Reproduction> {
    let all = names.is_empty() || names.iter().any(|name| name == "all");
    let unknown = |name: &&String| {
        *name != "all" && !EXPERIMENTS.iter().any(|experiment| experiment.is_named(name))
    };
    if let Some(name) = names.iter().find(unknown) {
        let mut known: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
        known.extend(EXPERIMENTS.iter().map(|e| e.group()));
        known.dedup();
        let meant = did_you_mean(name, &known);
        let known = known.join(", ");
        return Err(Error::Option(format!("no experiment `{name}`{meant}; there are {known}")));
    }
    let wanted = EXPERIMENTS.iter().filter(|e| all || names.iter().any(|name| e.is_named(name)));
    let wanted: Vec<&Experiment> = wanted.collect();
    let mut done = Reproduction { size, experiments: Vec::new() };
    for (at, experiment) in wanted.iter().enumerate() {
        runs.begin();
        follower.begins(experiment, at + 1, wanted.len());
        let found = (experiment.run)(&Work { size, hosts, runs });
        let found = found.unwrap_or_else(|error| ExperimentResult {
            failed: vec![error.to_string()],
            ..ExperimentResult::default()
        });
        let ExperimentResult { mut rows, figures, skipped, lateness, failed } = found;
        let (row, invalid) = hosts::lateness_row(&lateness);
        rows.extend(row);
        let failed = (!failed.is_empty()).then(|| failed.join("; "));
        let Experiment { name, source, what, .. } = **experiment;
        let one = Reproduced { name, source, what, rows, skipped, invalid, failed, figures };
        done.experiments.push(one);
        follower.ended(&done)?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests;
