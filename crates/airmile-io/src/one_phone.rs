//! Logs that are read as one are of one phone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use airmile_decode::diag::LogReader;
use airmile_decode::diag::names::name;
use airmile_model::printable_path;

use crate::error::{Error, Result};
use crate::file_report::{FileReport, plural};

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

/// Refuses a log that overlaps the one before it, or begins more than a day after its end: a part of a
/// log begins where the one before it ends (a day: chosen here).
///
/// # Errors
/// It does either.
pub fn check_follows(before: &FileReport, log: &FileReport, first_us: i64) -> Result<()> {
    let Some(end_us) = before.end_us else { return Ok(()) };
    let pause_us = first_us.saturating_sub(end_us);
    let (before, log) = (&before.path, &log.path);
    if pause_us < -OVERLAP_US {
        return Err(Error::Option(format!(
            "{before} and {log} overlap in time: they are logs of two phones, or the same log twice; \
             analyse them one at a time"
        )));
    }
    if pause_us > DAY_US {
        let days = pause_us / DAY_US;
        let s = plural(days.unsigned_abs());
        return Err(Error::Option(format!(
            "{log} begins {days} day{s} after the end of {before}: they are not parts of one log; \
             analyse them one at a time"
        )));
    }
    Ok(())
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
