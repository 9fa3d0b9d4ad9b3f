//! Logs that are read as one are of one phone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use airmile_decode::diag::LogReader;
use airmile_decode::diag::names::name;
use airmile_model::printable_path;

use crate::error::{Error, Result};
use crate::file_report::FileReport;

/// Versions of a message: major and minor.
type MessageVersions = BTreeSet<(Option<u16>, u8)>;

/// Refuses logs of several phones, given by path and first bytes: a modem writes a message in one
/// version.
///
/// # Errors
/// Two logs have no version of a message in common.
pub fn check_one_phone(logs: &[(&Path, &[u8])]) -> Result<()> {
    let mut before: Vec<(&Path, BTreeMap<u16, MessageVersions>)> = Vec::new();
    for (path, head) in logs.iter().filter(|_| logs.len() > 1) {
        let own = versions(head);
        for (other, theirs) in &before {
            let shared = own.iter().filter_map(|(code, of)| Some((*code, of, theirs.get(code)?)));
            let differs = shared.into_iter().find(|(_, a, b)| a.is_disjoint(b));
            if let Some((code, of_own, of_other)) = differs {
                return Err(Error::Option(format!(
                    "{} and {} are logs of two phones: message 0x{code:04X} ({}) has version {} in one and {} \
                     in the other; give the logs of one phone at a time",
                    printable_path(other),
                    printable_path(path),
                    name(code).unwrap_or("unknown"),
                    words(of_other),
                    words(of_own)
                )));
            }
        }
        before.push((path, own));
    }
    Ok(())
}

/// The parts of a rotated log may overlap by this much.
const OVERLAP_US: i64 = 1_000_000;
const DAY_US: i64 = 24 * 3_600 * 1_000_000;

/// Earlier times are those of a clock that was not set yet (chosen here: modems count from 1980).
const SET_FROM_US: i64 = 10_957 * DAY_US;

/// Refuses a log that overlaps the one before it.
///
/// # Errors
/// It does.
pub fn check_follows(before: &FileReport, log: &FileReport, first_us: i64) -> Result<()> {
    let Some(end_us) = before.end_us else { return Ok(()) };
    if first_us < end_us.saturating_sub(OVERLAP_US) {
        return Err(Error::Option(format!(
            "{} and {} overlap in time: they are logs of two phones, or the same log twice; analyse them \
             one at a time",
            before.path, log.path
        )));
    }
    Ok(())
}

/// Warns of files that begin more than a day after the end of those before them: a part of a log begins
/// where the one before it ends, but a phone may have been off (a day: chosen here).
pub fn warn_of_pauses<'a>(files: impl Iterator<Item = &'a mut FileReport>) {
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|file| file.start_us);
    let mut last: Option<(i64, String)> = None;
    for file in files {
        let Some((start_us, end_us)) = file.start_us.zip(file.end_us) else { continue };
        let before = last.as_ref().filter(|(before_us, _)| *before_us >= SET_FROM_US);
        let pause = before.map(|(before_us, name)| (start_us.saturating_sub(*before_us), name));
        if let Some((pause_us, before)) = pause.filter(|(pause_us, _)| *pause_us > DAY_US) {
            let days = pause_us as f64 / DAY_US as f64;
            file.warn(format!(
                "begins {days:.1} days after the end of {before}: if they are not of one phone, analyse \
                 them one at a time"
            ));
        }
        if last.as_ref().is_none_or(|(before_us, _)| end_us > *before_us) {
            last = Some((end_us, file.path.clone()));
        }
    }
}

/// The versions of the decoded messages at the start of a log.
fn versions(head: &[u8]) -> BTreeMap<u16, MessageVersions> {
    let mut reader = LogReader::new();
    reader.push(head, &mut |_| ());
    let mut out: BTreeMap<u16, MessageVersions> = BTreeMap::new();
    let stats = reader.stats();
    let decoded = stats.messages.iter().filter(|(_, count)| count.decoded > 0);
    for (key, minor) in decoded.filter_map(|(key, _)| Some((key, key.version?))) {
        out.entry(key.code).or_default().insert((key.major, minor));
    }
    out
}

fn words(versions: &MessageVersions) -> String {
    let each = versions.iter().map(|(major, minor)| match major {
        Some(major) => format!("{major}.{minor}"),
        None => minor.to_string(),
    });
    each.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_days_apart() {
        let days = |from: f64, to: f64| {
            let [start_us, end_us] = [from, to].map(|days| Some((days * DAY_US as f64) as i64));
            let mut file = FileReport::damaged(Path::new("a"), &std::io::Error::other(""));
            file.problems.clear();
            FileReport { start_us, end_us, ..file }
        };
        let warned = |files: &[(f64, f64)]| {
            let mut files: Vec<_> = files.iter().map(|(from, to)| days(*from, *to)).collect();
            warn_of_pauses(files.iter_mut());
            let problems = files.iter().flat_map(|file| &file.problems);
            problems.map(|problem| problem.what.clone()).collect::<Vec<_>>()
        };
        let (friday, monday, later) =
            ((20_000.0, 20_000.5), (20_002.8, 20_003.0), (20_003.9, 20_004.0));
        let found = warned(&[later, monday, friday]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("begins 2.3 days after the end of a"), "{found:?}");
        // The clock was set after the first part, or during it.
        assert_eq!(warned(&[(3_657.0, 3_657.1), monday]), [""; 0]);
        assert_eq!(warned(&[(3_657.0, 20_002.7), monday]), [""; 0]);
    }
}
