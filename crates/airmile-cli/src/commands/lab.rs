//! `airmile lab`.

use std::path::Path;

use airmile::model::{plain_name, printable_path};
use airmile_lab::reproduce::{
    Bar, Experiment, Follower, Reproduced, Reproduction, Row, Size, experiments, prepare,
    reproduce, write_files,
};
use airmile_lab::{LabOptions, LabRun, run_scenario_with, scenarios};
use anyhow::Result;

use super::hosts;
use crate::Outcome;
use crate::args::{Global, LabCommand, LabReproduceArgs};
use crate::output::{self, id, name, number as column, percent, table, text as text_column};
use crate::progress::Runs;

pub fn run(global: &Global, command: &LabCommand) -> Result<Outcome> {
    match command {
        LabCommand::List => {
            let list = scenarios();
            if global.json {
                output::json("lab_list", serde_json::json!({ "scenarios": list }))?;
            } else {
                let rows = list.iter().map(|s| vec![s.name.to_owned(), s.about.to_owned()]);
                output::print(&table(
                    [id("scenario"), text_column("what it shows")],
                    rows.collect(),
                ))?;
            }
        }
        LabCommand::Run(args) => {
            let options = LabOptions { seed: args.seed, force: args.force };
            let run = run_scenario_with(&args.scenario, options, &args.output)?;
            run.warnings.iter().for_each(|warning| output::warn(global, warning));
            if global.json {
                output::json("lab_run", &run)?;
            } else {
                output::print_wrapped(&run_text(&run))?;
            }
        }
        #[cfg(feature = "network")]
        LabCommand::Shell(args) => return super::shell::run(global, args),
        #[cfg(feature = "network")]
        LabCommand::Inside(args) => return super::shell::inside(args),
        LabCommand::Reproduce(args) => return run_experiments(global, args),
    }
    Ok(Outcome::Done)
}

/// Files, transfers and causes of a run.
pub fn run_text(run: &LabRun) -> String {
    let mut out =
        format!("{}, seed {}, in {}\n\n", run.scenario, run.seed, printable_path(&run.dir));
    let files = run.files.iter().filter(|file| file.bytes > 0);
    let files = files.map(|f| vec![f.name.clone(), output::bytes(f.bytes), f.what.to_owned()]);
    let columns = [name("file"), column("size"), text_column("what it holds")];
    out.push_str(&table(columns, files.collect()));
    for note in &run.notes {
        out.push_str(&format!("\n{note}\n"));
    }
    let transfers = run.transfers.iter().map(|t| {
        let ended = if t.unfinished { "unfinished" } else { "" };
        vec![
            t.id.clone(),
            t.dir.to_string(),
            output::or_dash(t.bytes, output::bytes),
            output::or_dash(t.duration_ms, |ms| format!("{ms:.0}")),
            percent(t.link_demand),
            ended.to_owned(),
        ]
    });
    let columns = [
        id("transfer"),
        id("dir"),
        column("bytes"),
        column("ms"),
        column("true link demand"),
        text_column(""),
    ];
    out.push('\n');
    out.push_str(&table(columns, transfers.collect()));
    if !run.counterfactuals.is_empty() {
        let columns = [
            text_column("injected"),
            column("transfers"),
            column("ms with it"),
            column("ms without it"),
            text_column("effect"),
        ];
        out.push('\n');
        out.push_str(&table(columns, causes(run)));
    }
    out
}

/// Each cause, with the durations of the transfers that ended both with it and without it.
fn causes(run: &LabRun) -> Vec<Vec<String>> {
    let mut labels: Vec<&str> = Vec::new();
    for found in &run.counterfactuals {
        if !labels.contains(&found.label.as_str()) {
            labels.push(&found.label);
        }
    }
    let row = |label: &str| {
        let of = run.counterfactuals.iter().filter(|found| found.label == label);
        let both: Vec<(f64, f64)> =
            of.filter_map(|found| found.duration_ms.zip(found.without_ms)).collect();
        let sum = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>();
        let (with, without) = (sum(|ms| ms.0), sum(|ms| ms.1));
        let slower = (without > 0.0).then(|| (with / without - 1.0) * 100.0);
        vec![
            plain_name(label).into_owned(),
            both.len().to_string(),
            format!("{with:.0}"),
            format!("{without:.0}"),
            output::or_dash(slower, |percent| match percent {
                -0.05..0.05 => "no difference".to_owned(),
                ..0.0 => format!("{:.1} % faster", -percent),
                _ => format!("{percent:.1} % slower"),
            }),
        ]
    };
    labels.into_iter().map(row).collect()
}

/// The exit status if a bar was missed, as for budgets, or if runs in real time were late, as for
/// `shell`, or failed.
const MISSED: u8 = 1;
const LATE: u8 = 5;
const FAILED: u8 = 6;

fn run_experiments(global: &Global, args: &LabReproduceArgs) -> Result<Outcome> {
    if args.list {
        let list = experiments();
        if global.json {
            output::json("lab_experiments", serde_json::json!({ "experiments": list }))?;
            return Ok(Outcome::Done);
        }
        let row = |e: &Experiment| vec![e.name.to_owned(), e.source.to_owned(), e.what.to_owned()];
        let columns = [id("experiment"), text_column("from"), text_column("what it shows")];
        output::print(&table(columns, list.iter().map(row).collect()))?;
        return Ok(Outcome::Done);
    }
    let size = match (args.quick, args.full) {
        (true, _) => Size::Quick,
        (_, true) => Size::Full,
        _ => Size::Default,
    };
    // Checked before hours of work.
    args.output.as_deref().map_or(Ok(()), |dir| prepare(dir, args.force))?;
    let shown = Runs::start(global);
    let mut following = Following { shown: &shown, dir: args.output.as_deref() };
    let hosts = hosts()?;
    let done = reproduce(&args.names, size, hosts.as_deref(), &shown.count, &mut following)?;
    drop(shown);
    if global.json {
        output::json("lab_reproduce", &done)?;
    } else {
        output::print_wrapped(&text(&done))?;
    }
    for experiment in &done.experiments {
        // Shown even with --quiet, and not in a table in a file.
        for problem in problems(experiment) {
            output::notice(&format!("airmile: {}: {problem}", experiment.name));
        }
    }
    let any = |is: fn(&Reproduced) -> bool| done.experiments.iter().any(is);
    Ok(if any(|experiment| experiment.failed.is_some()) {
        Outcome::Status(FAILED)
    } else if any(|experiment| experiment.invalid.is_some()) {
        Outcome::Status(LATE)
    } else if !matches!(size, Size::Quick) && bars(&done).any(|bar| !bar.held) {
        Outcome::Status(MISSED)
    } else {
        Outcome::Done
    })
}

fn bars(done: &Reproduction) -> impl Iterator<Item = &Bar> {
    done.experiments.iter().flat_map(|each| &each.rows).filter_map(|row| row.bar.as_ref())
}

/// What of an experiment was skipped, failed, or is invalid.
fn problems(experiment: &Reproduced) -> impl Iterator<Item = String> {
    let skipped = experiment.skipped.iter().map(|why| format!("SKIPPED: {why}"));
    let failed = experiment.failed.iter().map(|why| format!("FAILED: {why}"));
    skipped.chain(failed).chain(experiment.invalid.iter().map(|why| format!("INVALID: {why}")))
}

/// Shows progress, and writes the files after each experiment: an interrupted run keeps those of
/// completed experiments.
struct Following<'a> {
    shown: &'a Runs,
    dir: Option<&'a Path>,
}

impl Follower for Following<'_> {
    fn begins(&mut self, experiment: &Experiment, at: usize, of: usize) {
        self.shown.begin(format!("{} ({at} of {of})", experiment.name));
    }

    fn ended(&mut self, so_far: &Reproduction) -> airmile::Result<()> {
        self.dir.map_or(Ok(()), |dir| write_files(so_far, dir).map(|_| ()))
    }
}

/// A value with about three digits.
fn number(value: f64) -> String {
    match value.abs() {
        ..10.0 => format!("{value:.2}"),
        10.0..1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All rows as one table, followed by the notes on them.
pub fn text(done: &Reproduction) -> String {
    let mut notes: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for experiment in &done.experiments {
        for (at, row) in experiment.rows.iter().enumerate() {
            let mark = row.note.map(|note| {
                let known = notes.iter().position(|n| *n == note);
                known.unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                }) + 1
            });
            let name = if at == 0 { experiment.name } else { "" };
            rows.push(line(name, row, mark));
        }
        let problems = problems(experiment).enumerate().map(|(at, what)| {
            let is_first = at == 0 && experiment.rows.is_empty();
            let name = if is_first { experiment.name.to_owned() } else { String::new() };
            [name, what].into_iter().chain(std::iter::repeat_n(String::new(), 8)).collect()
        });
        rows.extend(problems);
    }
    let mut columns = vec![
        id("experiment"),
        text_column("what"),
        column("paper"),
        text_column("bar"),
        column("ours"),
        id("unit"),
        column("ratio").goes(1),
        column("n"),
        column("95 %").goes(2),
        column("note"),
    ];
    let n_bars = bars(done).count();
    let has_bars = n_bars > 0;
    if !has_bars {
        columns.remove(BAR);
        for row in &mut rows {
            row.remove(BAR);
        }
    }
    let mut out = table(columns, rows);
    for (at, note) in notes.iter().enumerate() {
        out.push_str(&format!("{}[{}] {note}\n", if at == 0 { "\n" } else { "" }, at + 1));
    }
    out.push_str(match done.size {
        Size::Quick => "\nOne short run of each: shows only that it works.\n",
        Size::Default => "\nFewer runs than in the papers (column n); --full runs as many.\n",
        Size::Full => "\nThe papers' number of runs, where they state it.\n",
    });
    if has_bars && !matches!(done.size, Size::Quick) {
        let n_held = bars(done).filter(|bar| bar.held).count();
        out.push_str(&format!("Bars held: {n_held} of {n_bars}.\n"));
    }
    out
}

/// Index of the column with target values.
const BAR: usize = 3;

fn bar(bar: &Bar) -> String {
    let (words, value) = match (bar.at_least, bar.at_most) {
        (Some(least), _) => ("at least ", number(least)),
        (None, Some(most)) => ("at most ", number(most)),
        (None, None) => ("", String::new()),
    };
    format!("{words}{value}{}", if bar.held { "" } else { ": MISSED" })
}

fn line(name: &str, row: &Row, mark: Option<usize>) -> Vec<String> {
    let dash = |value: Option<f64>| output::or_dash(value, number);
    let interval = row.low.zip(row.high);
    vec![
        name.to_owned(),
        row.what.clone(),
        dash(row.paper),
        row.bar.as_ref().map_or_else(String::new, bar),
        dash(row.ours),
        row.unit.to_owned(),
        output::or_dash(row.ratio, |ratio| format!("{ratio:.2}")),
        row.n.to_string(),
        output::or_dash(interval, |(low, high)| format!("{} to {}", number(low), number(high))),
        mark.map_or_else(String::new, |mark| format!("[{mark}]")),
    ]
}
