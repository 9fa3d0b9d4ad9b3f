//! Tables that fit a terminal without breaking words or digits.

use std::io::IsTerminal;

use airmile::model::printable;
use airmile_host::format::unbroken;
use comfy_table::{CellAlignment, Table, presets};

/// Minimum width of a name (chosen here: the end of a URL, which differs between the requests of
/// a page).
const LEAST_NAME: usize = 12;
/// Maximum width of a URL in a table of any width (chosen here: a line of a terminal).
pub(crate) const MOST_LETTERS: usize = 80;
/// Minimum width of a text, if its words are shorter (chosen here: two words of a verdict).
const LEAST_TEXT: usize = 16;

/// What a column holds: how it becomes narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    /// Numbers, right-aligned: never shortened.
    Number,
    /// Identifiers: never shortened.
    Id,
    /// Paths and URLs: shortened at their start.
    Name,
    /// Verdicts and sentences: wrapped between words.
    Text,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    name: &'static str,
    kind: CellKind,
    /// Its place among the columns that a narrow terminal leaves out.
    goes: Option<u8>,
    /// The name in the lines in which it is printed.
    header: String,
    cells: Vec<String>,
}

/// A column of right-aligned numbers.
pub const fn number(name: &'static str) -> Column {
    Column::new(name, CellKind::Number)
}

/// A column of identifiers, which stay whole.
pub const fn id(name: &'static str) -> Column {
    Column::new(name, CellKind::Id)
}

/// A column of paths or URLs, of which the end is kept.
pub const fn name(name: &'static str) -> Column {
    Column::new(name, CellKind::Name)
}

/// A column of verdicts or sentences, which are wrapped.
pub const fn text(name: &'static str) -> Column {
    Column::new(name, CellKind::Text)
}

impl Column {
    const fn new(name: &'static str, kind: CellKind) -> Self {
        Self { name, kind, goes: None, header: String::new(), cells: Vec::new() }
    }

    /// A narrow terminal may leave it out, as the `place`-th: the least useful is the first.
    pub fn goes(mut self, place: u8) -> Self {
        self.goes = Some(place);
        self
    }

    fn width(&self) -> usize {
        let lines = self.cells.iter().flat_map(|cell| cell.split('\n'));
        lines.chain(self.header.split('\n')).map(letters).max().unwrap_or(0)
    }

    /// Breaks the header between words as far as the cells are narrower.
    fn wrap_header(&mut self) {
        let words = self.name.split(' ').map(letters);
        let cells = self.cells.iter().map(|cell| letters(cell));
        let width = words.chain(cells).max().unwrap_or(0);
        self.header = lines(self.name, width);
    }

    /// The width to which it can be narrowed.
    fn least(&self) -> usize {
        let least = match self.kind {
            CellKind::Number | CellKind::Id => return self.width(),
            CellKind::Name => LEAST_NAME,
            CellKind::Text => {
                let longest = |cell: &String| unbroken(cell).split([' ', '\n']).map(letters).max();
                self.cells.iter().filter_map(longest).max().unwrap_or(0).max(LEAST_TEXT)
            }
        };
        let header = self.header.split('\n').map(letters).max().unwrap_or(0);
        least.max(header).min(self.width())
    }

    /// Narrows a name or text to `width` letters.
    fn shorten(&mut self, width: usize) {
        for cell in &mut self.cells {
            *cell = match self.kind {
                CellKind::Number | CellKind::Id => continue,
                CellKind::Name => end_of(cell, width),
                CellKind::Text => lines(cell, width),
            };
        }
    }
}

/// A table. Columns without any value are omitted. On a terminal, headers and texts are wrapped and
/// names shortened; columns that [may go](Column::goes) are left out only where that is not enough,
/// and then a line below the table names them; on a very narrow one, the last ones with numbers, too.
/// A pipe or file gets all.
pub fn table(columns: impl IntoIterator<Item = Column>, rows: Vec<Vec<String>>) -> String {
    drawn(columns, rows, terminal_width())
}

/// The table at a width.
fn drawn(
    columns: impl IntoIterator<Item = Column>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
) -> String {
    let mut columns: Vec<Column> = columns.into_iter().collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.cells.push(printable(&cell).into_owned());
        }
    }
    let mut first = true;
    columns.retain(|column| {
        let is_first = std::mem::take(&mut first);
        is_first || column.cells.is_empty() || column.cells.iter().any(|cell| cell != "-")
    });
    columns.iter_mut().for_each(|column| column.header = column.name.to_owned());
    let left_out = width.map_or_else(Vec::new, |width| fit(&mut columns, width));
    let mut table = Table::new();
    let headers: Vec<&str> = columns.iter().map(|column| column.header.as_str()).collect();
    table.load_style(presets::NOTHING).set_header(headers);
    let n = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for at in 0..n {
        table.add_row(columns.iter().map(|column| column.cells.get(at).map_or("", |cell| cell)));
    }
    for (index, (column, of)) in table.column_iter_mut().zip(&columns).enumerate() {
        column.set_padding((if index == 0 { 0 } else { 1 }, 1));
        if of.kind == CellKind::Number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|l| l.trim_end().to_owned()).collect();
    let note = match left_out.as_slice() {
        [] => String::new(),
        names => {
            let text = format!("(Without {}: `| cat` shows all columns.)", names.join(", "));
            width.map_or_else(String::new, |width| wrapped(&text, width) + "\n")
        }
    };
    lines.join("\n") + "\n" + &note
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

/// A sentence in lines of at most `width` letters, broken between words; a longer word keeps its end.
fn lines(text: &str, width: usize) -> String {
    let whole = unbroken(text);
    let words: Vec<String> =
        whole.split([' ', '\n']).filter(|w| !w.is_empty()).map(|w| end_of(w, width)).collect();
    wrapped(&words.join(" "), width)
}

/// Breaks lines between words at a width, never between a number and its unit, and indents what
/// continues an item of a list. Rows of tables, which fit already, and words that are longer stay
/// whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        let is_row = body.trim_end().contains("  ");
        if letters(line.trim_end()) <= width || is_row {
            out.push_str(line);
            continue;
        }
        let hanging = if body.starts_with("- ") { indent + 2 } else { indent };
        let mut used = indent;
        out.push_str(&" ".repeat(indent));
        for (n, word) in unbroken(body.trim_end()).split(' ').enumerate() {
            let letters = letters(word);
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
    // For who copies a line.
    out.replace('\u{a0}', " ")
}

/// The end of a text, by which paths and URLs differ, in at most `width` characters.
pub(crate) fn end_of(text: &str, width: usize) -> String {
    let count = letters(text);
    if count <= width {
        return text.to_owned();
    }
    let end = text.chars().skip(count - width.saturating_sub(1));
    std::iter::once('…').chain(end).collect()
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Total width, with two spaces between columns.
fn total(columns: &[Column], width: fn(&Column) -> usize) -> usize {
    columns.iter().map(|column| width(column) + 2).sum::<usize>().saturating_sub(2)
}

/// Makes columns fit, and returns the names of those left out.
fn fit(columns: &mut Vec<Column>, width: usize) -> Vec<&'static str> {
    if total(columns, Column::width) <= width {
        return Vec::new();
    }
    columns.iter_mut().for_each(Column::wrap_header);
    let mut left_out = Vec::new();
    while total(columns, Column::least) > width {
        let Some(at) = next_to_go(columns) else { break };
        left_out.push(columns.remove(at).name);
    }
    while let Some(over) = total(columns, Column::width).checked_sub(width).filter(|n| *n > 0) {
        let texts = columns.iter_mut().filter(|column| column.width() > column.least());
        let Some(widest) = texts.max_by_key(|column| column.width()) else { break };
        let to = widest.width().saturating_sub(over).max(widest.least());
        widest.shorten(to);
    }
    left_out
}

/// The least useful column; on a very narrow terminal, the last one with numbers.
fn next_to_go(columns: &[Column]) -> Option<usize> {
    let places = columns.iter().enumerate().filter_map(|(at, column)| Some((column.goes?, at)));
    let last = || {
        let is_number = |at: &usize| columns.get(*at).is_some_and(|c| c.kind == CellKind::Number);
        (1..columns.len()).rev().find(is_number)
    };
    places.min().map(|(_, at)| at).or_else(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn a_column_without_a_value_is_left_out() {
        let columns = [id("a"), number("b"), number("c")];
        assert_eq!(drawn(columns, vec![row(&["x", "-", "1"])], None), "a  c\nx  1\n");
    }

    #[test]
    fn a_cell_stays_in_its_row() {
        let shown = drawn([id("a")], vec![row(&["x\nVerdict: radio\u{1b}[2J"])], None);
        assert_eq!(shown, "a\nx\\nVerdict: radio\\u{1b}[2J\n");
    }

    /// Headers are wrapped first, then names and verdicts are narrowed; then columns go, the least
    /// useful first. Ids and digits stay whole.
    #[test]
    fn a_table_fits_without_broken_words_or_digits() {
        let check = |width: usize, expected: &str| {
            let columns = [
                id("id"),
                name("what").goes(2),
                number("duration ms").goes(1),
                number("link demand"),
                text("verdict (confidence)"),
            ];
            let rows = vec![row(&[
                "page-11",
                "/a/long/way/to/an/image",
                "123456",
                "7 %",
                "not radio (99 %)",
            ])];
            let shown = drawn(columns, rows, Some(width));
            let fits = shown.lines().all(|line| letters(line) <= width);
            assert!(fits, "{width}: {shown}");
            assert_eq!(shown, expected, "{width}: {shown}");
        };
        check(
            90,
            "id       what                     duration ms  link demand  verdict (confidence)\n\
             page-11  /a/long/way/to/an/image       123456          7 %  not radio (99 %)\n",
        );
        check(
            74,
            "id       what                     duration    link  verdict\n\
             \u{20}                                       ms  demand  (confidence)\n\
             page-11  /a/long/way/to/an/image    123456     7 %  not radio (99 %)\n",
        );
        check(
            57,
            "id       what          duration    link  verdict\n\
             \u{20}                            ms  demand  (confidence)\n\
             page-11  …to/an/image    123456     7 %  not radio (99 %)\n",
        );
        check(
            47,
            "id       what            link  verdict\n\
             \u{20}                      demand  (confidence)\n\
             page-11  …to/an/image     7 %  not radio (99 %)\n\
             (Without duration ms: `| cat` shows all\n\
             columns.)\n",
        );
        check(
            35,
            "id         link  verdict\n\
             \u{20}        demand  (confidence)\n\
             page-11     7 %  not radio (99 %)\n\
             (Without duration ms, what: `| cat`\n\
             shows all columns.)\n",
        );
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
        check("empty for the whole 96 % of it\n", "empty for the whole\n96 % of it\n");
    }

    #[test]
    fn sentences_are_wrapped_and_words_stay_whole() {
        let columns = [id("scenario"), text("what it shows"), text("verdict")];
        let rows = vec![row(&["idle", "three small exchanges, each from idle", "receive_window"])];
        let expected = "scenario  what it shows           verdict\n\
                        idle      three small exchanges,  receive_window\n\
                        \u{20}         each from idle\n";
        assert_eq!(drawn(columns, rows, Some(50)), expected);
        assert_eq!(
            lines("loss recovery (congestion) 90 %", 13),
            "loss recovery\n(congestion)\n90 %"
        );
    }
}
