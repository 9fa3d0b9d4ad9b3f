//! `airmile scrub`.

use airmile::{Inputs, ScrubOptions, ScrubReport, model::Severity, model::printable_path, scrub};
use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, ScrubArgs};
use crate::output::{self, bytes, number, table, text as column};
use crate::progress::Shown;

pub fn run(global: &Global, args: &ScrubArgs) -> Result<Outcome> {
    let inputs = Inputs { files: args.files.clone(), ..Inputs::default() };
    let shown = Shown::start(global, &inputs);
    let options = ScrubOptions { output: args.output.clone(), key: args.key.clone() };
    let report = scrub(&args.files, &options, &shown.progress)?;
    drop(shown);
    if report.key_made {
        let key = report.key_file.display();
        output::warn(global, &format!("created the key {key}: keep it, and do not share it"));
    }
    output::warn(global, &format!("wrote {}", report.manifest.display()));
    for (path, file) in report.inputs.iter().zip(&report.files) {
        let worth = |p: &&airmile::model::Problem| p.severity != Severity::Normal;
        for problem in file.problems.iter().filter(worth) {
            output::warn(global, &format!("{}: {problem}", path.display()));
        }
        if file.more_problems > 0 {
            let more = file.more_problems;
            output::warn(global, &format!("{}: {more} more problems", path.display()));
        }
    }
    output::problems(global, &report.left_out);
    let others = report.left_out.iter().filter(|file| !file.damaged);
    let others: Vec<&str> = others.map(|file| file.path.as_str()).collect();
    if !others.is_empty() {
        let what = "not copied, as no captures, modem logs or HARs";
        output::warn(global, &format!("{what}: {}", others.join(", ")));
    }
    let damaged = report.damaged();
    if global.json {
        output::json("scrub", &report)?;
    } else {
        output::print_wrapped(&text(&report))?;
    }
    Ok(Outcome::of(damaged))
}

/// The result as the command prints it.
pub fn text(report: &ScrubReport) -> String {
    let mut out = String::new();
    for (path, file) in report.inputs.iter().zip(&report.files) {
        let sizes = (bytes(file.input_bytes), bytes(file.output_bytes));
        out.push_str(&format!(
            "{} ({}) became {} ({})\n",
            printable_path(path),
            sizes.0,
            file.output,
            sizes.1
        ));
        let rows = file.changes.iter();
        let rows = rows.map(|(what, n)| vec![what.replace('_', " "), n.to_string()]);
        if !file.changes.is_empty() {
            out.push_str(&table([column("changed, cut or counted"), number("n")], rows.collect()));
        }
    }
    for (title, list) in [("Unchanged", &report.kept), ("Not in the copies", &report.lacks)] {
        out.push_str(&format!("\n{title}:\n"));
        list.iter().for_each(|what| out.push_str(&format!("  - {what}\n")));
    }
    out.push_str(&format!("Key fingerprint {}\n", report.key_fingerprint));
    out
}
