//! Formats numbers for people.

/// Bytes in a suitable unit.
#[must_use]
pub fn size(bytes: u64) -> String {
    let x = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", x / 1e6),
        _ => format!("{:.1} GB", x / 1e9),
    }
}

/// Lines of cells, two spaces apart: the first column to the left, the others to the right.
#[must_use]
pub fn columns(rows: &[Vec<String>]) -> String {
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let letters = |cell: Option<&String>| cell.map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> =
        (0..n).map(|at| rows.iter().map(|row| letters(row.get(at))).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        out.push_str(cells.collect::<String>().trim_end());
        out.push('\n');
    }
    out
}

/// A rate in Mbit/s.
#[must_use]
pub fn mbps(bps: f64) -> String {
    format!("{:.1} Mbit/s", bps / 1e6)
}

/// A duration in a suitable unit.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// Units that stay on the line of their number (SI and IEC symbols that results have).
const UNITS: [&str; 28] = [
    "%", "ns", "us", "ms", "s", "min", "h", "B", "kB", "KB", "MB", "GB", "TB", "bit/s", "kbit/s",
    "Mbit/s", "Gbit/s", "dB", "dBm", "Hz", "kHz", "MHz", "GHz", "PRB", "PRBs", "TTIs", "J",
    "ms/tick",
];

/// The text with no-break spaces (U+00A0) between numbers and their units.
#[must_use]
pub fn unbroken(text: &str) -> String {
    let is_number = |word: &str| {
        let digits = word.trim_start_matches(['(', '+', '-', '<', '>', '~', '=', '`']);
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | ':');
        digits.ends_with(|c: char| c.is_ascii_digit()) && digits.chars().all(is_part)
    };
    let is_unit = |word: &str| {
        let end = |c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':' | ')' | '`');
        UNITS.contains(&word.trim_end_matches(end))
    };
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut before = None;
    for word in text.split(' ') {
        match before {
            None => {}
            Some(before) if is_number(before) && is_unit(word) => out.push('\u{a0}'),
            Some(_) => out.push(' '),
        }
        out.push_str(word);
        before = Some(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, shown) in [
            (0.0, "0 ms"),
            (17.12, "17.1 s"),
            (600.0, "10.0 min"),
            (52_363.1, "14.5 h"),
            (3_200_880.7, "37.0 days"),
        ] {
            assert_eq!(duration(seconds), shown);
        }
    }

    #[test]
    fn a_number_and_its_unit_are_not_parted() {
        for (text, shown) in [
            ("during 96 % of the time", "during 96~% of the time"),
            ("sent 1.99 Mbit/s (11 %; 39 to 54 %),", "sent 1.99~Mbit/s (11~%; 39 to 54~%),"),
            ("RSRP -96 dBm,\n  12 ms", "RSRP -96~dBm,\n  12~ms"),
            ("page/7 s, MCS 28 on", "page/7 s, MCS 28 on"),
            ("  two  spaces 5 ms\n", "  two  spaces 5~ms\n"),
        ] {
            assert_eq!(unbroken(text).replace('\u{a0}', "~"), shown);
        }
    }

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["class", "came", ""], ["urgent", "12", "3 kB"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "class   came\nurgent    12  3 kB\n");
        assert_eq!(columns(&[]), "");
    }
}
