//! `airmile inspect`.

use airmile::model::plain_name;
use airmile::{FileReport, InspectReport, Limits, MissingKind, Zone, inspect};
use airmile_host::format::duration;
use anyhow::Result;

use crate::Outcome;
use crate::args::{FilesArgs, Global, inputs};
use crate::output::{self, bytes, id, name, number, table};
use crate::progress::Shown;

pub fn run(global: &Global, args: &FilesArgs) -> Result<Outcome> {
    let inputs = inputs(args, None);
    let shown = Shown::start(global, &inputs);
    let limits = Limits::from(args.limits);
    let report = inspect(&inputs, limits, &shown.progress)?;
    drop(shown);
    let damaged = report.files.iter().any(|f| f.damaged);
    if global.json {
        output::json("inspect", &report)?;
    } else {
        output::print_wrapped(&text(&report, limits.zone))?;
        output::problems(global, &report.files);
    }
    let unread = || report.missing.iter().filter(|one| one.kind == MissingKind::File);
    unread().for_each(|one| output::warn(global, &one.what));
    if report.usable_files == 0 {
        output::warn(global, "nothing could be read");
    }
    if report.usable_files == 0 || unread().next().is_some() {
        return Ok(Outcome::NothingRead);
    }
    Ok(Outcome::of(damaged))
}

/// The result as the command prints it.
pub fn text(report: &InspectReport, zone: Zone) -> String {
    let mut out = String::new();
    for file in &report.files {
        out.push_str(&file_text(file, zone));
        out.push('\n');
    }
    out.push_str("Can answer:\n");
    if report.can_answer.is_empty() {
        out.push_str("  nothing about the radio link\n");
    }
    for answer in &report.can_answer {
        out.push_str(&format!("  - {answer}\n"));
    }
    out.push_str(&output::missing(&report.missing));
    out
}

fn file_text(file: &FileReport, zone: Zone) -> String {
    let mut out = format!("{}: {}, {}", file.path, plain_name(&file.kind), bytes(file.bytes));
    if let (Some(start), Some(end)) = (file.start_us, file.end_us) {
        let seconds = (end - start) as f64 / 1e6;
        out.push_str(&format!(
            "\n  {} to {} {} ({})",
            zone.show(start),
            zone.show(end),
            zone.name_at(start),
            duration(seconds)
        ));
    }
    let has_frames = !file.messages.is_empty() || file.is_capture();
    let what = if has_frames { "frames" } else { "rows" };
    if let Some(why) = &file.left_out {
        return out + &format!("\n  not used: {why}\n");
    }
    out.push_str(&format!("\n  {} {what}, {} bad\n", file.items, file.bad_items));
    if !file.messages.is_empty() {
        let rows = file.messages.iter().map(|m| {
            vec![
                m.code.clone(),
                m.name.to_owned(),
                m.version_text(),
                m.count.to_string(),
                m.decoded.to_string(),
            ]
        });
        let columns =
            [id("code"), name("message"), number("version"), number("count"), number("decoded")];
        out.push_str(&table(columns, rows.collect()));
    }
    if !file.records.is_empty() {
        let records = file.records.iter().map(|(name, n)| format!("{n} {name}"));
        out.push_str(&format!("  records: {}\n", records.collect::<Vec<_>>().join(", ")));
    }
    out
}
