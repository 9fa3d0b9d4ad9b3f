//! An experiment's rows and figures as files: Parquet, CSV, JSON, SVG.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{Figure, Kind};
use super::{Reproduced, Reproduction, Size, draw};
use airmile::ArrowTable;
use airmile::parquet_bytes;
use airmile::{Error, Result};

/// A row of `reproduce.parquet` and `reproduce.csv`.
#[derive(Serialize, JsonSchema)]
struct FlatRow<'a> {
    /// Name of the experiment.
    experiment: &'a str,
    /// Paper, table or figure.
    source: &'a str,
    /// What was measured.
    what: &'a str,
    /// Unit of `paper`, `ours`, `low` and `high`; empty: a ratio.
    unit: &'a str,
    /// The paper's value; null: the paper has none.
    paper: Option<f64>,
    /// The value found here; null: nothing could be measured.
    ours: Option<f64>,
    /// `ours` / `paper`.
    ratio: Option<f64>,
    /// The threshold, if it is a lower bound.
    at_least: Option<f64>,
    /// The threshold, if it is an upper bound.
    at_most: Option<f64>,
    /// Whether the threshold was met; null: there is none.
    held: Option<bool>,
    /// Sample size.
    n: u64,
    /// Lower end of the 95 % interval; null: too few, or not a sample.
    low: Option<f64>,
    /// Upper end of the 95 % interval.
    high: Option<f64>,
    /// Explanation of a difference, or remark.
    note: Option<&'a str>,
    /// Amount of work: `quick`, `default` or `full`.
    size: Size,
    /// Whether it is valid: false if the experiment's runs in real time were late.
    valid: bool,
}

/// A row of `reproduce_series.parquet`: a point of a figure.
#[derive(Serialize, JsonSchema)]
struct FlatPoint<'a> {
    /// Name of the experiment.
    experiment: &'a str,
    /// Name of the figure within it; drawn as `<experiment>-<figure>.svg`.
    figure: &'a str,
    /// Name of the series within the figure.
    series: &'a str,
    /// Source of the point: `ours` or `paper`.
    of: &'a str,
    /// How the series is drawn: `curve`, `cdf` or `scatter`.
    kind: Kind,
    /// Position on the horizontal axis; null: a value of the paper for any x.
    x: Option<f64>,
    /// Position on the vertical axis; null: a value of the paper for any y.
    y: Option<f64>,
    /// Quantity of the horizontal axis, with its unit.
    x_label: &'a str,
    /// Quantity of the vertical axis, with its unit.
    y_label: &'a str,
}

/// Names of the files of every reproduction.
const TABLES: [&str; 4] =
    ["reproduce.csv", "reproduce.json", "reproduce.parquet", "reproduce_series.parquet"];

/// Prepares a directory for the files of a reproduction; with `force` also one with an
/// earlier reproduction, whose files are replaced.
///
/// # Errors
/// It contains an earlier reproduction and `force` is not set, or it cannot be created.
pub fn prepare(dir: &Path, force: bool) -> Result<()> {
    let there = TABLES.iter().any(|name| dir.join(name).exists());
    if there && !force {
        let what = "contains an earlier reproduction: use another, or --force to replace it";
        return Err(Error::Unusable { path: dir.to_owned(), what: what.to_owned() });
    }
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))
}

/// All rows as a table, as in `reproduce.parquet`.
///
/// # Errors
/// Arrow rejects the table.
pub fn rows_table(reproduction: &Reproduction) -> Result<ArrowTable> {
    ArrowTable::of_rows("reproduce", &all_rows(reproduction))
}

fn all_rows(reproduction: &Reproduction) -> Vec<FlatRow<'_>> {
    let each = reproduction.experiments.iter();
    each.flat_map(|experiment| flat_rows(experiment, reproduction.size)).collect()
}

/// Writes to a directory: all rows as `reproduce.parquet` and `reproduce.csv`, the document
/// as `reproduce.json`, the figures' points as `reproduce_series.parquet`, and each figure
/// as `<experiment>-<figure>.svg`. Existing files are replaced atomically.
///
/// # Errors
/// A file cannot be written.
pub fn write_files(reproduction: &Reproduction, dir: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).map_err(|e| Error::write(dir, e))?;
    let rows = all_rows(reproduction);
    let points: Vec<FlatPoint<'_>> =
        reproduction.experiments.iter().flat_map(flat_points).collect();
    let mut files = Vec::new();
    let mut write = |name: &str, contents: &dyn Fn(&Path) -> Result<Vec<u8>>| {
        let path = dir.join(name);
        let contents = contents(&path)?;
        replace(&path, &contents)?;
        files.push(path);
        Ok(())
    };
    write("reproduce.csv", &|path| csv(&rows, path))?;
    write("reproduce.json", &|path| {
        serde_json::to_vec_pretty(&airmile::Document::new("lab_reproduce", reproduction))
            .map_err(|e| Error::write(path, std::io::Error::other(e)))
    })?;
    write("reproduce.parquet", &|path| parquet_bytes(path, &rows_table(reproduction)?))?;
    write("reproduce_series.parquet", &|path| {
        parquet_bytes(path, &ArrowTable::of_rows("reproduce_series", &points)?)
    })?;
    for experiment in &reproduction.experiments {
        for figure in &experiment.figures {
            write(&format!("{}-{}.svg", experiment.name, figure.name), &|path| {
                let mut figure = figure.clone();
                if experiment.invalid.is_some() {
                    figure.caption.insert_str(0, "INVALID, TTIs were late. ");
                }
                let text = draw::svg(&figure);
                let text = text.map_err(|e| Error::write(path, std::io::Error::other(e)))?;
                Ok(text.into_bytes())
            })?;
        }
    }
    Ok(files)
}

/// Replaces a file atomically: a run may be interrupted at any time.
fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    airmile::write_whole(path, contents)
}

fn flat_rows(experiment: &Reproduced, size: Size) -> impl Iterator<Item = FlatRow<'_>> {
    experiment.rows.iter().map(move |row| FlatRow {
        experiment: experiment.name,
        source: experiment.source,
        what: &row.what,
        unit: row.unit,
        paper: row.paper,
        ours: row.ours,
        ratio: row.ratio,
        at_least: row.bar.and_then(|bar| bar.at_least),
        at_most: row.bar.and_then(|bar| bar.at_most),
        held: row.bar.map(|bar| bar.held),
        n: row.n,
        low: row.low,
        high: row.high,
        note: row.note,
        size,
        valid: experiment.invalid.is_none(),
    })
}

fn flat_points(experiment: &Reproduced) -> impl Iterator<Item = FlatPoint<'_>> {
    experiment.figures.iter().flat_map(move |figure: &Figure| {
        let point = move |series, of, kind, x, y| FlatPoint {
            experiment: experiment.name,
            figure: figure.name,
            series,
            of,
            kind,
            x,
            y,
            x_label: figure.x.label,
            y_label: figure.y.label,
        };
        let ours = figure.series.iter().flat_map(move |series| {
            let points = series.points.iter();
            points.map(move |&(x, y)| point(&series.name, "ours", series.kind, Some(x), Some(y)))
        });
        let paper = figure.paper.iter();
        ours.chain(paper.map(move |r| point(r.name, "paper", Kind::Scatter, r.x, r.y)))
    })
}

fn csv(rows: &[FlatRow<'_>], path: &Path) -> Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for row in rows {
        csv.serialize(row).map_err(|e| Error::write(path, std::io::Error::other(e)))?;
    }
    csv.into_inner().map_err(|e| Error::write(path, std::io::Error::other(e.to_string())))
}
