//! An experiment's rows as files: CSV and JSON.

use std::path::{Path, PathBuf};

use super::Reproduction;
use crate::error::{Error, Result};

const HEADER: [&str; 12] = [
    "experiment",
    "source",
    "what",
    "unit",
    "paper",
    "ours",
    "ratio",
    "n",
    "low",
    "high",
    "note",
    "size",
];

/// Writes all rows into `reproduce.csv` and the document into `reproduce.json`
/// of a directory.
///
/// # Errors
/// A file cannot be written.
pub fn write_rows(reproduction: &Reproduction, dir: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
    let table = dir.join("reproduce.csv");
    let fail = |e: csv::Error| Error::write(&table, std::io::Error::other(e));
    let mut csv = csv::Writer::from_path(&table).map_err(fail)?;
    csv.write_record(HEADER).map_err(fail)?;
    let size = match reproduction.size {
        super::Size::Quick => "quick",
        super::Size::Default => "default",
        super::Size::Full => "full",
    };
    for experiment in &reproduction.experiments {
        for row in &experiment.rows {
            let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
            csv.write_record([
                experiment.name.to_owned(),
                experiment.source.to_owned(),
                row.what.clone(),
                row.unit.to_owned(),
                number(row.paper),
                number(row.ours),
                number(row.ratio),
                row.n.to_string(),
                number(row.low),
                number(row.high),
                row.note.unwrap_or_default().to_owned(),
                size.to_owned(),
            ])
            .map_err(fail)?;
        }
    }
    csv.flush().map_err(|e| Error::write(&table, e))?;
    let document = dir.join("reproduce.json");
    let text = serde_json::to_vec_pretty(&crate::Document::new("lab_reproduce", reproduction))
        .map_err(|e| Error::write(&document, std::io::Error::other(e)))?;
    std::fs::write(&document, text).map_err(|e| Error::write(&document, e))?;
    Ok(vec![table, document])
}
