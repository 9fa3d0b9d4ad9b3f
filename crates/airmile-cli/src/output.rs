//! Printing: tables a person can read, documents, warnings.

use std::io::{IsTerminal, Write};

use airmile::{Document, FileReport, Missing};
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::args::Global;

/// Warnings shown per file without `-v`.
const SHOWN_PROBLEMS: usize = 5;

/// An error, with what to do next.
pub fn error(error: &anyhow::Error) {
    // The facade's errors have their causes in their words.
    match error.downcast_ref::<airmile::Error>() {
        Some(error) => to_stderr(&format!("airmile: {error}")),
        None => to_stderr(&format!("airmile: {error:#}")),
    }
}

/// A line on standard error. That nobody reads it any more (`2>&1 | head`)
/// cannot be told to anybody.
fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Something on standard error that is told always.
pub fn tell(text: &str) {
    to_stderr(text);
}

/// A warning.
pub fn warn(global: &Global, text: &str) {
    if !global.quiet {
        to_stderr(&format!("airmile: {text}"));
    }
}

/// What was wrong with the inputs.
pub fn problems(global: &Global, files: &[FileReport]) {
    for file in files {
        let shown = if global.verbose > 0 { file.problems.len() } else { SHOWN_PROBLEMS };
        let worth_telling = file
            .problems
            .iter()
            .filter(|p| global.verbose > 0 || p.severity != airmile::model::Severity::Normal);
        let all: Vec<_> = worth_telling.collect();
        for problem in all.iter().take(shown) {
            warn(global, &format!("{}: {problem}", file.path));
        }
        let more = all.len().saturating_sub(shown) as u64 + file.more_problems;
        if more > 0 {
            let hint = if global.verbose > 0 { "" } else { " (-v shows them)" };
            warn(global, &format!("{}: {more} more problems{hint}", file.path));
        }
    }
}

/// A JSON document on standard output.
pub fn json<T: serde::Serialize>(name: &'static str, body: T) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &Document::new(name, body))
        .map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Text on standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    Ok(out.write_all(text.as_bytes())?)
}

/// A table with numbers to the right; `left` columns are text.
pub fn table(header: &[&str], left: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    // Into a pipe or a file nothing is wrapped.
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 0 } else { 1 }, 1));
        if !left.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|l| l.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// What is missing, and how to capture it.
pub fn missing(missing: &[Missing]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nMissing for a better answer:\n");
    for item in missing {
        out.push_str(&format!("  - {}\n      {}\n", item.what, item.how_to_capture));
    }
    out
}

/// A number, or a dash where it is not known.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Bytes in a unit that fits.
pub fn bytes(bytes: u64) -> String {
    let x = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", x / 1e6),
        _ => format!("{:.2} GB", x / 1e9),
    }
}

/// A percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Mbit/s.
pub fn mbps(bps: f64) -> String {
    format!("{:.2}", bps / 1e6)
}
