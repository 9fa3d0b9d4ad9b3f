//! `make accuracy`: accuracy of burst inference against known truth.
//!
//! Three parts, each with bars; a missed bar sets the exit status 1. The cells of our own
//! emulator are always available. The simulated cells are those of
//! `$AIRMILE_SHARED/data/ns3`; without them that part prints SKIPPED.
//!
//! Prints the error by scheduler, workload and kind of evidence, compared with
//! BurstTracker's literal rule and the Active-time baseline, and the agreement of verdicts.
//! `--series N` runs other emulated cells and lists their worst transfers, to investigate
//! errors; `--load` measures only the cell load, `--packets` the packet study, `--senders`
//! its results on senders, `--causes` the causes named by `diagnose` (`tuned`: on the
//! families used for tuning), `--clocks` its alignment of clocks, `--blind` its answers
//! from packets alone (`--blind-fit` fits the model, `--blind-show` lists a family's
//! features), `--peers` compares that study with tshark and tcptrace.

#![allow(clippy::print_stdout, reason = "this program is its printout")]

mod bars;
mod blind;
mod capture;
mod causes;
mod clocks;
mod emulated;
mod jobs;
mod load;
mod packets;
mod peers;
mod reliability;
mod run;
mod score;
mod senders;
mod uplink;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airmile_testing::shared;
use anyhow::{Context, bail};

use run::{Run, Spoil};
use score::{Kind, Score};

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {}
        [flag, series] if flag == "--series" => {
            let scores = emulated::measure(series.parse().context("--series takes a number")?)?;
            emulated_tables(&scores);
            score::print_worst(&scores.downlink, 40);
            return Ok(ExitCode::SUCCESS);
        }
        [flag] if flag == "--load" => return Ok(status(load::measure(&shared())? != Some(false))),
        [flag] if flag == "--packets" => {
            return Ok(status(packets::measure(&shared())? != Some(false)));
        }
        [flag] if flag == "--senders" => return Ok(status(senders::measure()?)),
        [flag, rest @ ..] if flag == "--causes" => {
            let (tuned, rest) = match rest {
                [word, rest @ ..] if word == "tuned" => (true, rest),
                rest => (false, rest),
            };
            let runs = match rest {
                [] => causes::RUNS,
                [runs] => runs.parse().context("--causes takes a number")?,
                _ => bail!("--causes [tuned] [N]"),
            };
            return Ok(status(causes::measure(tuned, runs)?));
        }
        [flag] if flag == "--blind" => {
            return Ok(status(blind::measure(blind::RUNS, &shared())?));
        }
        [flag, runs] if flag == "--blind" => {
            let runs = runs.parse().context("--blind takes a number")?;
            return Ok(status(blind::measure(runs, &shared())?));
        }
        [flag, runs, path] if flag == "--blind-fit" => {
            let runs = runs.parse().context("--blind-fit takes a number and a file")?;
            blind::fit(runs, Path::new(path), &shared())?;
            return Ok(ExitCode::SUCCESS);
        }
        [flag, family, runs] if flag == "--blind-show" => {
            let runs = runs.parse().context("--blind-show takes a family and a number")?;
            blind::show(family, runs, &shared())?;
            return Ok(ExitCode::SUCCESS);
        }
        [flag] if flag == "--clocks" => return Ok(status(clocks::measure()?)),
        [flag] if flag == "--peers" => {
            return Ok(status(peers::measure(&shared())? != Some(false)));
        }
        _ => bail!(
            "no arguments, --load, --packets, --senders, --causes [tuned] [N], --clocks, --blind [N], \
             --blind-fit N FILE, --blind-show FAMILY N, --peers, or --series N"
        ),
    }
    let met = [
        emulated_cells()?,
        simulated_cells()?,
        load::measure(&shared())?,
        packets::measure(&shared())?,
        Some(senders::measure()?),
        Some(clocks::measure()?),
        Some(blind::measure(blind::RUNS, &shared())?),
        Some(causes::measure(false, causes::RUNS)?),
    ];
    let all = met.iter().all(|met| met.unwrap_or(true));
    println!("\n{}", if all { "all bars that are held are met" } else { "A BAR IS MISSED" });
    if met.contains(&None) {
        println!("SKIPPED: parts without their data (above); the others were measured");
    }
    Ok(status(all))
}

/// Exit status of the program.
fn status(met: bool) -> ExitCode {
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks the emulated cells; returns whether the bars are met.
fn emulated_cells() -> anyhow::Result<Option<bool>> {
    let scores = emulated::measure(emulated::BARRED_SERIES)?;
    emulated_tables(&scores);
    Ok(Some(bars::print_emulated(&scores)))
}

fn emulated_tables(scores: &emulated::Scores) {
    println!("== Emulated cells (own lab, seeds not used for fitting)\n");
    let transfers = scores.downlink.len() / Kind::ALL.len();
    println!("{} runs, {transfers} transfers on the downlink\n", scores.runs);
    println!("Error of throughput time in %, median / 75th percentile\n");
    for (n, title) in ["workload", "scheduler", "users", "polls"].into_iter().enumerate() {
        score::print_by(title, &scores.downlink, &|s| s.part(n).to_owned());
    }
    let in_cell = |s: &Score| format!("{} {}", s.part(0), s.part(1));
    score::print_by("workload in a cell", &scores.downlink, &in_cell);
    let errors = |of: fn(&emulated::UploadScore) -> f64| {
        let errors: Vec<f64> = scores.uploads.iter().map(of).collect();
        [0.5, 0.75].map(|p| score::percentile(&errors, p))
    };
    let ([s50, s75], [r50, r75]) = (errors(|u| u.by_samples), errors(|u| u.by_reports));
    println!("Uploads, {}, error of throughput time in %:", scores.uploads.len());
    println!("  by buffer samples        {s50:.2} / {s75:.2}");
    println!("  by buffer status reports {r50:.2} / {r75:.2}\n");
}

/// Checks the simulated cells; `None` without them.
fn simulated_cells() -> anyhow::Result<Option<bool>> {
    println!("\n== Simulated cells (ns-3)\n");
    let root = shared().join("data/ns3");
    if !root.is_dir() {
        println!("SKIPPED: no simulated cells at {}", root.display());
        println!("SKIPPED: this part measured nothing; set AIRMILE_SHARED to the shared material");
        return Ok(None);
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
    /// Gaps of 200 ms, in percent of the time.
    const HOLES: [i64; 3] = [2, 10, 20];
    let mut with_holes: Vec<Vec<Score>> = vec![Vec::new(); HOLES.len()];
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
        for (percent, scores) in HOLES.into_iter().zip(&mut with_holes) {
            for kind in [Kind::Auto, Kind::Poll, Kind::Padding, Kind::Grants] {
                scores.extend(run.holes(200, percent).score(kind));
            }
        }
        for ((_, how), scores) in spoils.iter().zip(&mut spoilt) {
            for part in run.spoil(*how) {
                for kind in [Kind::Auto, Kind::Poll, Kind::Padding, Kind::Grants] {
                    scores.extend(part.score(kind));
                }
            }
        }
    }
    println!("Accuracy with missing data (not checked):\n");
    for ((name, _), scores) in spoils.iter().zip(&spoilt) {
        println!("{name}");
        score::print_by("scheduler", scores, &|s| s.scheduler().to_owned());
    }
    let transfers = scores.len() / Kind::ALL.len();
    println!("{} runs, {transfers} transfers, {bad_rows} rows not readable\n", folders.len());
    score::print_tables(&scores);
    score::print_two_layers(&scores);
    score::print_reliability("whole logs", &scores);
    for (percent, scores) in HOLES.into_iter().zip(&with_holes) {
        score::print_reliability(&format!("holes of 200 ms in {percent} % of the time"), scores);
    }
    Ok(Some(bars::print_simulated(&scores, uplink_error)))
}
