//! Printing: tables, documents, warnings.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use airmile::model::printable::is_active;
use airmile::model::printable_path;
use airmile::model::{PageCause, Problem, Severity, Verdict, printable};
use airmile::{Document, FileReport, Missing, plural};
use airmile_host::command::{Colour, print_coloured, to_stderr};
use anyhow::Result;

use crate::args::Global;
pub use crate::table::{id, name, number, table, text};
use crate::table::{stderr_width, terminal_width, wrapped};

/// Warnings shown per file without `-v`.
const SHOWN_PROBLEMS: usize = 5;

/// Prints an error and what to do next.
pub fn error(error: &anyhow::Error) {
    // The text of the library's errors includes their causes.
    match error.downcast_ref::<airmile::Error>() {
        Some(error) => notice(&format!("airmile: {error}")),
        None => notice(&format!("airmile: {error:#}")),
    }
}

/// Prints a line on standard error, even with --quiet.
pub fn notice(text: &str) {
    match stderr_width() {
        Some(width) => to_stderr(&wrapped(text, width)),
        None => to_stderr(text),
    }
}

/// Prints a one-line warning.
pub fn warn(global: &Global, text: &str) {
    if !global.quiet {
        notice(&format!("airmile: {}", printable(text)));
    }
}

/// Prints the number of rows of a table that was written.
pub fn wrote_rows(global: &Global, rows: u64, path: &Path) {
    warn(global, &format!("wrote {rows} row{} to {}", plural(rows), path.display()));
}

/// Prints the files written in addition to the output, with their sizes.
pub fn written<'a>(global: &Global, paths: impl IntoIterator<Item = &'a Option<PathBuf>>) {
    for path in paths.into_iter().flatten() {
        let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
        if !global.quiet {
            to_stderr(&format!("wrote {} ({})", printable_path(path), bytes(size)));
        }
    }
}

/// Prints the problems of the inputs.
pub fn problems(global: &Global, files: &[FileReport]) {
    for file in files {
        let mut lines = ProblemLines::new(global, &file.path);
        file.problems.iter().for_each(|problem| lines.print(problem));
        lines.finish(file.more_problems);
    }
}

/// The problems of an input, of which a limited number is printed.
pub struct ProblemLines<'a> {
    global: &'a Global,
    path: &'a str,
    printed: usize,
    more: u64,
}

impl<'a> ProblemLines<'a> {
    pub const fn new(global: &'a Global, path: &'a str) -> Self {
        Self { global, path, printed: 0, more: 0 }
    }

    pub fn print(&mut self, problem: &Problem) {
        if self.global.verbose == 0 {
            if problem.severity == Severity::Normal {
                return;
            }
            if self.printed == SHOWN_PROBLEMS {
                self.more += 1;
                return;
            }
        }
        self.printed += 1;
        warn(self.global, &format!("{}: {problem}", self.path));
    }

    /// States the number of the others, of which `unlisted` are known by their number alone.
    pub fn finish(self, unlisted: u64) {
        let more = self.more + unlisted;
        if more > 0 {
            let hint = if self.global.verbose > 0 { "" } else { " (-v shows them)" };
            warn(self.global, &format!("{}: {more} more problems{hint}", self.path));
        }
    }
}

/// Prints a JSON document on standard output.
pub fn json<T: serde::Serialize>(name: &'static str, body: T) -> Result<()> {
    let text =
        serde_json::to_string_pretty(&Document::new(name, body)).map_err(std::io::Error::from)?;
    Ok(writeln!(std::io::stdout().lock(), "{}", json_printable(&text))?)
}

/// JSON without control characters in its strings: those that JSON permits unescaped are escaped,
/// which leaves the text equal.
pub fn json_printable(text: &str) -> Cow<'_, str> {
    let escaped = |c: char| is_active(c) && c != '\n';
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if escaped(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Prints a text on standard output.
pub fn print(text: &str) -> Result<()> {
    Ok(airmile_host::command::print(text)?)
}

/// Prints sentences and tables on standard output; on a terminal, sentences are wrapped.
pub fn print_wrapped(text: &str) -> Result<()> {
    match terminal_width() {
        Some(width) => print(&wrapped(text, width)),
        None => print(text),
    }
}

/// Prints the sentences of a verdict as [`print_wrapped`] does, in the verdict's colour: the hues of
/// the HTML report, in the terminal's own shades.
pub fn print_verdict(global: &Global, verdict: Verdict, text: &str) -> Result<()> {
    let colour = match verdict {
        Verdict::Radio | Verdict::RadioContention | Verdict::RadioSignal => Colour::Blue,
        Verdict::Mixed => Colour::Magenta,
        Verdict::Unknown => Colour::Default,
        _ => Colour::Yellow,
    };
    print_in(global, colour, text)
}

/// Prints the headline of a page, as [`print_verdict`] does.
pub fn print_page_verdict(global: &Global, verdict: PageCause, text: &str) -> Result<()> {
    let colour = match verdict {
        PageCause::Radio => Colour::Blue,
        PageCause::Unknown | PageCause::Unlogged => Colour::Default,
        _ => Colour::Yellow,
    };
    print_in(global, colour, text)
}

fn print_in(global: &Global, colour: Colour, text: &str) -> Result<()> {
    if !global.has_colour() {
        return print_wrapped(text);
    }
    let lines = terminal_width().map_or_else(|| text.to_owned(), |width| wrapped(text, width));
    Ok(print_coloured(&lines, colour)?)
}

/// The list of missing evidence, and how to capture it.
pub fn missing(missing: &[Missing]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nMissing for a better result:\n");
    for item in missing {
        out.push_str(&format!("  - {}\n      {}\n", item.what, item.how_to_capture));
    }
    out
}

/// A number, or a dash if it is unknown.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Bytes in a suitable unit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_as_the_same_text() {
        let text = "a\u{9b}b\u{202e}c\u{e0041}d\n\u{1b}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = json_printable(&json);
        assert!(!shown.contains(|c| is_active(c) && c != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [text]);
    }
}
