//! `airmile lab`.

use airmile::lab::{run_scenario, scenarios};
use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, LabCommand};
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
    }
    Ok(Outcome::Done)
}
