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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["class", "came", ""], ["urgent", "12", "3 kB"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "class   came\nurgent    12  3 kB\n");
        assert_eq!(columns(&[]), "");
    }
}
