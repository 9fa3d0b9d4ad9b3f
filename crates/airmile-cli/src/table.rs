//! Tables that fit a terminal without breaking words or digits.

use std::io::IsTerminal;
use std::ops::Range;

use airmile::model::printable;
use comfy_table::{CellAlignment, Table, presets};

/// Minimum width of a text column (chosen here: the end of a URL, which differs between the
/// requests of a page).
const LEAST_TEXT: usize = 12;
/// The letters of a name that are worth showing after its identifier (chosen here).
const LEAST_NAME: usize = 4;
/// A text of this many words is a sentence (chosen here: more than an identifier and a URL).
const LEAST_WORDS: usize = 4;

/// A table with right-aligned numbers; `left` columns are text. Columns without any value are
/// omitted. On a terminal, sentences are wrapped and names shortened at their start, and then
/// columns of numbers omitted from the right, the last one (a confidence) after the others, until the
/// table fits; a pipe or file gets all.
pub fn table(header: &[&str], left: &[usize], rows: Vec<Vec<String>>) -> String {
    let shown = |cell: String| printable(&cell).into_owned();
    let mut columns: Vec<Column> = header
        .iter()
        .enumerate()
        .map(|(at, name)| Column {
            name: (*name).to_owned(),
            is_text: left.contains(&at),
            cells: Vec::with_capacity(rows.len()),
        })
        .collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.cells.push(shown(cell));
        }
    }
    let mut first = true;
    columns.retain(|column| {
        let is_first = std::mem::take(&mut first);
        is_first || column.cells.is_empty() || column.cells.iter().any(|cell| cell != "-")
    });
    let mut table = Table::new();
    if let Some(width) = terminal_width() {
        fit(&mut columns, width);
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    table.load_style(presets::NOTHING).set_header(names);
    let n = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for at in 0..n {
        table.add_row(columns.iter().map(|column| column.cells.get(at).map_or("", |cell| cell)));
    }
    for (index, (column, of)) in table.column_iter_mut().zip(&columns).enumerate() {
        column.set_padding((if index == 0 { 0 } else { 1 }, 1));
        if !of.is_text {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|l| l.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// The width of the terminal; `None` if standard output is a pipe or file.
pub(crate) fn terminal_width() -> Option<usize> {
    let width = Table::new().width().filter(|_| std::io::stdout().is_terminal());
    width.map(usize::from).filter(|width| *width > 0)
}

/// The width of the terminal of standard error; `None` if it is a pipe or file.
pub(crate) fn stderr_width() -> Option<usize> {
    let width = Table::new().use_stderr().width().filter(|_| std::io::stderr().is_terminal());
    width.map(usize::from).filter(|width| *width > 0)
}

struct Column {
    name: String,
    is_text: bool,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let lines = self.cells.iter().flat_map(|cell| cell.split('\n'));
        lines.map(|line| line.chars().count()).chain([self.name.chars().count()]).max().unwrap_or(0)
    }

    /// The width to which it can be shortened. The words of a verdict stay whole, but not those of the
    /// first column.
    fn least(&self, is_first: bool) -> usize {
        let plain = self.cells.iter().filter(|cell| !is_first && !cell.contains('/'));
        let words = plain.flat_map(|cell| cell.split_whitespace());
        let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
        LEAST_TEXT.max(self.name.chars().count()).max(longest)
    }

    /// Wraps its sentences and verdicts, and keeps the ends of its names, at `width` letters.
    fn shorten(&mut self, width: usize, is_first: bool) {
        for cell in &mut self.cells {
            let is_verdict = !is_first && !cell.contains('/');
            let is_text = is_verdict || cell.split_whitespace().count() >= LEAST_WORDS;
            *cell = if is_text { lines(cell, width) } else { name_in(cell, width) };
        }
    }
}

/// A name in at most `width` letters: the end of it, after an identifier if there is room for both.
fn name_in(text: &str, width: usize) -> String {
    let parts = text.split_once(' ').map(|(id, name)| (id, name, id.chars().count() + 1));
    match parts.filter(|(_, _, before)| before + LEAST_NAME <= width) {
        Some((id, name, before)) => format!("{id} {}", end_of(name, width - before)),
        None => end_of(text, width),
    }
}

/// A sentence in lines of at most `width` letters, broken between words.
fn lines(text: &str, width: usize) -> String {
    let words: Vec<String> = text.split_whitespace().map(|word| end_of(word, width)).collect();
    wrapped(&words.join(" "), width)
}

/// Breaks lines between words at a width, and indents what continues an item of a list. Rows of
/// tables, which fit already, and words that are longer stay whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        let is_row = body.trim_end().contains("  ");
        if line.trim_end().chars().count() <= width || is_row {
            out.push_str(line);
            continue;
        }
        let hanging = if body.starts_with("- ") { indent + 2 } else { indent };
        let mut used = indent;
        out.push_str(&" ".repeat(indent));
        for (n, word) in body.split_whitespace().enumerate() {
            let letters = word.chars().count();
            if n > 0 && used + 1 + letters > width {
                out.push('\n');
                out.push_str(&" ".repeat(hanging));
                used = hanging;
            } else if n > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += letters;
        }
        out.push_str(if line.ends_with('\n') { "\n" } else { "" });
    }
    out
}

/// The end of a text, by which paths and URLs differ, in at most `width` characters.
pub(crate) fn end_of(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let end = text.chars().skip(count - width.saturating_sub(1));
    std::iter::once('…').chain(end).collect()
}

/// Total width, with two spaces between columns.
fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + 2).sum::<usize>().saturating_sub(2)
}

fn fit(columns: &mut Vec<Column>, width: usize) {
    while let Some(over) = total(columns).checked_sub(width + 1).map(|more| more + 1) {
        let texts = columns.iter_mut().enumerate().filter(|(_, column)| column.is_text);
        let texts = texts.map(|(at, column)| (column.least(at == 0), at == 0, column));
        let shortened = texts.filter(|(least, _, column)| column.width() > *least);
        match shortened.max_by_key(|(.., column)| column.width()) {
            Some((least, is_first, column)) => {
                let to = column.width().saturating_sub(over).max(least);
                column.shorten(to, is_first);
            }
            None => {
                let numbers = |of: Range<usize>| {
                    of.rev().find(|at| columns.get(*at).is_some_and(|column| !column.is_text))
                };
                let last = columns.len().saturating_sub(1);
                match numbers(1..last).or_else(|| numbers(1.max(last)..columns.len())) {
                    Some(at) => drop(columns.remove(at)),
                    None => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_a_value_is_left_out() {
        let rows = vec![vec!["x".into(), "-".into(), "1".into()]];
        assert_eq!(table(&["a", "b", "c"], &[0], rows), "a  c\nx  1\n");
    }

    #[test]
    fn a_cell_stays_in_its_row() {
        let shown = table(&["a"], &[0], vec![vec!["x\nVerdict: radio\u{1b}[2J".into()]]);
        assert_eq!(shown, "a\nx\\nVerdict: radio\\u{1b}[2J\n");
    }

    #[test]
    fn a_table_fits_without_broken_words_or_digits() {
        let column = |name: &str, is_text, cell: &str| Column {
            name: name.into(),
            is_text,
            cells: vec![cell.into()],
        };
        let of = || {
            vec![
                column("id", true, "https://a.example/a/long/way/to/an/image.png"),
                column("ms", false, "123456"),
                column("verdict", true, "radio"),
                column("confidence", false, "99 %"),
            ]
        };
        let shown = |width: usize| {
            let mut columns = of();
            fit(&mut columns, width);
            let cells = columns.iter().map(|one| one.cells[0].clone()).collect::<Vec<_>>();
            (total(&columns) <= width, cells.join(" "))
        };
        assert_eq!(shown(80).1, "https://a.example/a/long/way/to/an/image.png 123456 radio 99 %");
        assert_eq!(shown(50), (true, "…/way/to/an/image.png 123456 radio 99 %".into()));
        assert_eq!(shown(33), (true, "…n/image.png radio 99 %".into()));
        assert_eq!(shown(32), (true, "…n/image.png radio".into()));
    }

    #[test]
    fn sentences_are_wrapped_at_words_and_tables_are_not() {
        let check = |text: &str, expected: &str| assert_eq!(wrapped(text, 20), expected);
        check("Twenty letters only.\n", "Twenty letters only.\n");
        check("Twenty-one letters is\n\n", "Twenty-one letters\nis\n\n");
        check("  - an item of a list of three", "  - an item of a\n    list of three");
        check("  next: one two three four\n", "  next: one two\n  three four\n");
        check("id     ms    verdict of a row\n", "id     ms    verdict of a row\n");
        check("see https://a.example/a/long/path\n", "see\nhttps://a.example/a/long/path\n");
        check("é é é é é é é é é é é\n", "é é é é é é é é é é\né\n");
    }

    #[test]
    fn sentences_are_wrapped_and_words_stay_whole() {
        let text = |name: &str, cell: &str| Column {
            name: name.into(),
            is_text: true,
            cells: vec![cell.into()],
        };
        assert_eq!(name_in("page-9 /page/0/8?…", 14), "page-9 …/0/8?…");
        let mut columns = vec![
            text("scenario", "idle"),
            text("what it shows", "three small exchanges, each from idle"),
            text("verdict", "receive_window"),
        ];
        fit(&mut columns, 50);
        let cells = columns.iter().map(|one| one.cells[0].as_str()).collect::<Vec<_>>();
        assert_eq!(cells, ["idle", "three small exchanges,\neach from idle", "receive_window"]);
        let mut verdict = text("verdict", "loss recovery (congestion)");
        assert_eq!(verdict.least(false), "(congestion)".len());
        verdict.shorten(13, false);
        assert_eq!(verdict.cells, ["loss recovery\n(congestion)"]);
    }
}
