//! `make accuracy`: burst inference against the simulated cells of
//! `$AIRMILE_SHARED/data/ns3`, whose truth is known.
//!
//! Prints the error per scheduler, workload and kind of evidence beside
//! BurstTracker's literal rule and the Active-time baseline, the agreement of
//! verdicts, and the bars; leaves with status 1 when a bar is missed.

#![allow(clippy::print_stdout, reason = "this program is its printout")]

mod bars;
mod run;
mod score;
mod uplink;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use run::{Run, Spoil};
use score::{Kind, Score};

fn main() -> anyhow::Result<ExitCode> {
    let shared = std::env::var_os("AIRMILE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let root = shared.join("data/ns3");
    if !root.is_dir() {
        println!("SKIPPED: no simulated cells at {}", root.display());
        println!("SKIPPED: nothing was measured; set AIRMILE_SHARED to the shared material");
        return Ok(ExitCode::SUCCESS);
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .with_context(|| format!("reading {}", root.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("grants.csv.gz").is_file())
        .collect();
    folders.sort();

    let spoils = [
        ("each transfer as a log of its own", Spoil::EachAlone),
        ("2 % of the TTIs lost", Spoil::Lost { percent: 2 }),
        ("5 % of the TTIs lost", Spoil::Lost { percent: 5 }),
        ("no RLC table", Spoil::NoRlc),
        ("padding not known", Spoil::NoPadding),
    ];
    let mut spoilt: Vec<Vec<Score>> = vec![Vec::new(); spoils.len()];
    let mut scores: Vec<Score> = Vec::new();
    let mut bad_rows = 0;
    let mut uplink_error = f64::NAN;
    for folder in &folders {
        if folder.join("ul_queue.csv.gz").is_file() {
            uplink_error = uplink::print(folder)?.max(uplink_error);
        }
        let run = Run::read(folder)?;
        if run.truth.is_empty() {
            continue;
        }
        bad_rows += run.bad_rows;
        for kind in Kind::ALL {
            scores.extend(run.score(kind));
        }
        for ((_, how), scores) in spoils.iter().zip(&mut spoilt) {
            for part in run.spoil(*how) {
                for kind in [Kind::Auto, Kind::Poll, Kind::Padding, Kind::Grants] {
                    scores.extend(part.score(kind));
                }
            }
        }
    }
    println!("What is left when something is missing (not barred):\n");
    for ((name, _), scores) in spoils.iter().zip(&spoilt) {
        println!("{name}");
        score::print_by("scheduler", scores, &|s| s.scheduler().to_owned());
    }
    let transfers = scores.len() / Kind::ALL.len();
    println!("{} runs, {transfers} transfers, {bad_rows} rows not readable\n", folders.len());
    score::print_tables(&scores);
    let met = bars::print(&scores, uplink_error);
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
