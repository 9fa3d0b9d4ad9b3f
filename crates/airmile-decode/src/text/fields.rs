//! The two forms of fields in a body: a table with `|` between its columns, and nested
//! blocks of `Key = value`.

/// A line of a packet's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Byte offset in the input.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A name in the form used for lookups: letters and digits only.
pub(super) fn normalise(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A table: its columns' names, and its rows as they stand.
#[derive(Debug)]
pub(super) struct TextTable<'a> {
    names: Vec<String>,
    rows: &'a [Line],
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    names: &'a [String],
    pub(super) offset: u64,
    text: &'a str,
}

fn is_rule(line: &Line) -> bool {
    line.text.trim_start().starts_with("---")
}

fn is_row(line: &Line) -> bool {
    line.text.trim_start().starts_with('|')
}

impl<'a> TextTable<'a> {
    /// The tables of a body, in order.
    pub(super) fn all(body: &'a [Line]) -> Vec<Self> {
        let mut out = Vec::new();
        let mut rest = body;
        while let Some(table) = Self::first(rest) {
            // The part before the end of its rows is consumed.
            let last = table.rows.last().or_else(|| rest.iter().find(|line| is_row(line)));
            let Some(at) = rest.iter().position(|line| last.is_some_and(|l| std::ptr::eq(l, line)))
            else {
                break;
            };
            rest = &rest[at + 1..];
            out.push(table);
        }
        out
    }

    /// The first table of a body.
    pub(super) fn first(body: &'a [Line]) -> Option<Self> {
        let start = body.iter().position(is_row)?;
        let body = &body[start..];
        let header_len = body.iter().take_while(|line| is_row(line)).count();
        let ruled = body.get(header_len).is_some_and(is_rule);
        let (header, rows) = if ruled {
            (&body[..header_len], &body[header_len + 1..])
        } else {
            // Without a rule the rows begin where the first column has numbers.
            let counts = |line: &Line| {
                line.text.split('|').nth(1).is_some_and(|cell| cell.trim().parse::<u32>().is_ok())
            };
            let n = body[..header_len].iter().position(counts)?;
            body.split_at(n)
        };
        let n_rows = rows.iter().take_while(|line| is_row(line)).count();
        Some(Self { names: names(header), rows: &rows[..n_rows] })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let names = &self.names[..];
        self.rows.iter().map(move |line| Row { names, offset: line.offset, text: &line.text })
    }

    /// Whether there is a column of each of these names.
    pub(super) fn lacks(&self, wanted: &[&'static str]) -> Option<&'static str> {
        wanted.iter().copied().find(|name| !self.names.iter().any(|n| n == name))
    }
}

/// Column names: of each header line the text exactly between a column's two bars, so
/// that titles over several columns are left out.
fn names(header: &[Line]) -> Vec<String> {
    let bars_of = |line: &str| line.match_indices('|').map(|(at, _)| at).collect::<Vec<_>>();
    let Some(bars) = header.last().map(|line| bars_of(&line.text)) else { return Vec::new() };
    let name = |pair: &[usize]| {
        let cells = header.iter().filter_map(|line| {
            let cell = line.text.get(pair[0] + 1..pair[1])?;
            let bar = |at: usize| line.text.as_bytes().get(at) == Some(&b'|');
            (bar(pair[0]) && bar(pair[1])).then_some(cell)
        });
        normalise(&cells.collect::<String>())
    };
    bars.windows(2).map(name).collect()
}

impl<'a> Row<'a> {
    /// The cell of the first column of this name; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let at = self.names.iter().position(|n| n == name)?;
        self.text.split('|').nth(at + 1).map(str::trim).filter(|cell| !cell.is_empty())
    }

    /// Whether its number of cells equals the table's number of columns.
    pub(super) fn whole(&self) -> bool {
        self.text.matches('|').count() == self.names.len() + 1
    }
}

/// A `Key = value` line; the value may be empty.
pub(super) fn key_value(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once('=')?;
    Some((normalise(key), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        text.lines().map(|text| Line { offset: 0, text: text.to_owned() }).collect()
    }

    #[test]
    fn names_stand_over_each_other() {
        let body = lines(
            "Version = 1\n ----\n |   |Group of two|\n |   |Num |       |\n |#  |RBs |TB Size|\n ----\n \
             |  0|   5|     18|\n |   |    |     19|\nend",
        );
        let table = TextTable::first(&body).unwrap();
        assert_eq!(table.names, ["", "numrbs", "tbsize"]);
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].get("numrbs"), rows[0].get("tbsize")), (Some("5"), Some("18")));
        assert_eq!((rows[1].get("numrbs"), rows[1].get("nothing")), (None, None));
        assert_eq!(table.lacks(&["numrbs", "mcs"]), Some("mcs"));
        assert!(rows[1].whole());
    }
}
