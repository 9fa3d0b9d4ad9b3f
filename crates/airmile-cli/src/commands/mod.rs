//! One module per command: passes arguments to the library and prints its result.

mod budgets;
#[cfg(feature = "network")]
pub mod claw;
#[cfg(feature = "network")]
mod claw_attach;
pub mod compare;
pub mod decode;
pub mod diagnose;
pub mod engine;
pub mod inspect;
pub mod lab;
#[cfg(feature = "network")]
pub mod live;
pub mod manual;
pub mod packets;
mod pages;
#[cfg(feature = "network")]
pub mod probe;
#[cfg(feature = "network")]
pub mod qcut;
pub mod radio;
#[cfg(feature = "network")]
pub mod record;
pub mod scrub;
#[cfg(feature = "network")]
pub mod shell;

use crate::args::{AnalysisArgs, Evidence, FilesArgs, Global};
use crate::output;
use airmile::model::VerdictThresholds;
use airmile::{BurstOptions, DetectOptions, EvidenceCounts, FileReport, Zone};
#[cfg(feature = "network")]
use shell::hosts;

/// This build runs nothing in real time: experiments that need it are skipped.
#[cfg(not(feature = "network"))]
#[allow(clippy::unnecessary_wraps, reason = "as that of `shell`")]
fn hosts() -> anyhow::Result<Option<Box<dyn airmile_lab::reproduce::Hosts>>> {
    Ok(None)
}

/// Warns of options that change nothing in a result: of `transfers` from where, and of files of which
/// kinds.
fn warn_of_idle_options(
    global: &Global,
    (files, analysis): (&FilesArgs, &AnalysisArgs),
    (transfers_from, read, counts): (&str, &[FileReport], &EvidenceCounts),
) {
    let (bursts, detect) = (BurstOptions::default(), DetectOptions::default());
    // Those of packets alone depend on them, too.
    let is_given = transfers_from == "given" && !read.iter().any(FileReport::is_capture);
    let no_radio = *counts == EvidenceCounts::default();
    let limits = VerdictThresholds::default();
    let of_radio = [
        ("--evidence", analysis.evidence != Evidence::Auto),
        ("--radio-at-least", analysis.radio_at_least != limits.radio_at_least),
        ("--not-radio-below", analysis.not_radio_below != limits.not_radio_below),
        ("--sim", analysis.sim.is_some()),
    ];
    let is_paper = analysis.evidence == Evidence::Paper;
    // Tables of these hold the grants of several users.
    let has_users = read.iter().any(|f| f.kind.starts_with("sniffer") || f.kind.starts_with("gnb"));
    let thresholds = [
        ("--start-threshold", analysis.start_threshold != bursts.start_threshold),
        ("--end-threshold", analysis.end_threshold != bursts.end_threshold),
    ];
    let of_detection = [
        ("--min-bytes", analysis.min_bytes != detect.min_bytes),
        ("--pause-ms", analysis.pause_ms != detect.pause_ms),
    ];
    let idle =
        thresholds.map(|(name, is_set)| (name, is_set && !is_paper, "it is for --evidence paper"));
    let idle = idle.into_iter().chain(
        of_detection.map(|(name, is_set)| (name, is_set && is_given, "the transfers are given")),
    );
    let idle = idle.chain(
        of_radio
            .map(|(name, is_set)| (name, is_set && no_radio, "no file has records of the radio")),
    );
    let rnti = ("--rnti", files.rnti.is_some() && !has_users, "no file is a sniffer's");
    for (name, _, why) in idle.chain([rnti]).filter(|(_, is_idle, _)| *is_idle) {
        output::warn(global, &format!("{name} changes nothing: {why}"));
    }
}

/// Letters of a date and the space after it.
const DATE: usize = 11;

/// How the times of a list are printed: as times of day if all are of one date, which its title
/// then has.
struct Times {
    date: Option<String>,
    zone: Zone,
    /// The first time; `None` if there are none.
    first_us: Option<i64>,
}

impl Times {
    fn of(zone: Zone, times_us: impl Iterator<Item = i64>) -> Self {
        let mut times_us = times_us.peekable();
        let first_us = times_us.peek().copied();
        let mut dates: Vec<String> = times_us.map(|us| date(zone, us)).collect();
        dates.dedup();
        Self { date: dates.pop().filter(|_| dates.is_empty()), zone, first_us }
    }

    /// What a title says of them, after what it says of something else.
    fn title(&self, before: &str) -> String {
        let Some(first_us) = self.first_us else { return before.to_owned() };
        let date = self.date.as_ref().map_or_else(String::new, |date| format!(", {date}"));
        format!("{before}; times in {}{date}", self.zone.name_at(first_us))
    }

    fn show(&self, us: i64) -> String {
        let text = self.zone.show(us);
        let from = if self.date.is_some() { DATE } else { 0 };
        text.get(from..).unwrap_or(&text).to_owned()
    }
}

fn date(zone: Zone, us: i64) -> String {
    let text = zone.show(us);
    text.get(..DATE).unwrap_or(&text).trim_end().to_owned()
}
