//! `airmile lab`.

use airmile::lab::reproduce::{Reproduction, Row, Size, experiments, reproduce, write_rows};
use airmile::lab::{run_scenario, scenarios};
use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, LabCommand, LabReproduceArgs};
use crate::output::{self, percent, table};

pub fn run(global: &Global, command: &LabCommand) -> Result<Outcome> {
    match command {
        LabCommand::List => {
            let list = scenarios();
            if global.json {
                output::json("lab_list", serde_json::json!({ "scenarios": list }))?;
            } else {
                let rows = list.iter().map(|s| vec![s.name.to_owned(), s.about.to_owned()]);
                output::print(&table(&["scenario", "what it shows"], &[0, 1], rows.collect()))?;
            }
        }
        LabCommand::Run(args) => {
            let run = run_scenario(&args.scenario, args.seed, &args.output)?;
            if global.json {
                output::json("lab_run", &run)?;
            } else {
                let rows = run
                    .transfers
                    .iter()
                    .map(|t| vec![t.id.clone(), t.dir.to_string(), percent(t.link_demand)]);
                let header = ["transfer", "dir", "true link demand"];
                output::print(&format!(
                    "{}, seed {}: {} in {}\n{}",
                    run.scenario,
                    run.seed,
                    run.files.join(", "),
                    run.dir.display(),
                    table(&header, &[0, 1], rows.collect())
                ))?;
            }
        }
        LabCommand::Shell(args) => return super::shell::run(global, args),
        LabCommand::Inside(args) => return super::shell::inside(args),
        LabCommand::Reproduce(args) => run_experiments(global, args)?,
    }
    Ok(Outcome::Done)
}

fn run_experiments(global: &Global, args: &LabReproduceArgs) -> Result<()> {
    if args.list {
        let list = experiments();
        if global.json {
            return output::json("lab_experiments", serde_json::json!({ "experiments": list }));
        }
        let row = |e: &airmile::lab::reproduce::Experiment| {
            vec![e.name.to_owned(), e.source.to_owned(), e.what.to_owned()]
        };
        let header = ["experiment", "from", "what it shows"];
        return output::print(&table(&header, &[0, 1, 2], list.iter().map(row).collect()));
    }
    let size = match (args.quick, args.full) {
        (true, _) => Size::Quick,
        (_, true) => Size::Full,
        _ => Size::Default,
    };
    let told = &mut |experiment: &airmile::lab::reproduce::Experiment| {
        if global.verbose > 0 {
            output::warn(global, &format!("running {}", experiment.name));
        }
    };
    let done = reproduce(&args.names, size, told)?;
    if let Some(dir) = &args.output {
        write_rows(&done, dir)?;
    }
    if global.json { output::json("lab_reproduce", &done) } else { output::print(&text(&done)) }
}

/// A value with about three digits.
fn number(value: f64) -> String {
    match value.abs() {
        ..10.0 => format!("{value:.2}"),
        10.0..1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All rows as one table, and below it what has to be said of them.
fn text(done: &Reproduction) -> String {
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
    }
    let header = ["experiment", "what", "paper", "ours", "unit", "ratio", "n", "95 %", "note"];
    let mut out = table(&header, &[0, 1, 4], rows);
    for (at, note) in notes.iter().enumerate() {
        out.push_str(&format!("{}[{}] {note}\n", if at == 0 { "\n" } else { "" }, at + 1));
    }
    if done.size == Size::Quick {
        out.push_str("\nOne short run of each: tells that it works, nothing more.\n");
    }
    out
}

fn line(name: &str, row: &Row, mark: Option<usize>) -> Vec<String> {
    let dash = |value: Option<f64>| output::or_dash(value, number);
    let interval = row.low.zip(row.high);
    vec![
        name.to_owned(),
        row.what.clone(),
        dash(row.paper),
        dash(row.ours),
        row.unit.to_owned(),
        output::or_dash(row.ratio, |ratio| format!("{ratio:.2}")),
        row.n.to_string(),
        output::or_dash(interval, |(low, high)| format!("{} to {}", number(low), number(high))),
        mark.map_or_else(String::new, |mark| format!("[{mark}]")),
    ]
}
