//! `inspect`: what files contain, and which questions they can answer.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use airmile_model::printable_path;
use airmile_radio::burst::EvidenceChoice;
use airmile_radio::evidence::EvidenceCounts;
use airmile_wire::attribute::CaptureSite;

use super::application;
use super::blind::{self, Look};
use super::radio::{Missing, MissingKind, missing, summary};
use super::unread;
use crate::session::{Inputs, Sorted, read_inputs};
use airmile_io::FileReport;
use airmile_io::error::{Error, Result};
use airmile_io::input::{Input, Progress, comes_once};
use airmile_io::limits::{LimitFilter, Limits};
use airmile_io::recognise::Kind;

/// The result of `inspect`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InspectReport {
    /// The files.
    pub files: Vec<FileReport>,
    /// Questions that they can answer, with the evidence.
    pub can_answer: Vec<String>,
    /// What is missing, and how to capture it.
    pub missing: Vec<Missing>,
    /// Files with readable content.
    pub usable_files: usize,
    /// The amount of each kind of evidence.
    pub evidence_counts: EvidenceCounts,
}

/// Inspects files, logs as one session where they can be; an unusable file has a report, too.
///
/// # Errors
/// A file cannot be opened or read.
pub fn inspect(inputs: &Inputs, limits: Limits, progress: &Progress) -> Result<InspectReport> {
    limits.check()?;
    let mut counts = EvidenceCounts::default();
    let mut files = Vec::new();
    let mut missing_files = Vec::new();
    let mut transfers_given = false;
    let mut applications = Vec::new();
    let mut usable_files = 0;
    let mut captures = Vec::new();
    let (mut unread, mut logs) = (Vec::new(), Vec::new());
    for path in inputs.paths().map(Path::to_owned) {
        let sorted = Sorted::of(std::slice::from_ref(&path))?;
        for path in &sorted.captures {
            let look = blind::look(path, limits, progress)?;
            usable_files += usize::from(look.report.items > look.report.bad_items);
            captures.push(look);
        }
        let has_others = !sorted.captures.is_empty() || !sorted.unread.is_empty();
        unread.extend(sorted.unread);
        let found = match sorted.logs {
            found if !found.is_empty() => found,
            _ if has_others => continue,
            // The error is about the directory.
            _ => vec![path.clone()],
        };
        logs.extend(found);
    }
    // As one session, in which a rotated log continues; logs that are none, each by itself.
    let mut together = if logs.iter().any(|path| comes_once(path)) { 1 } else { logs.len() };
    let mut rest = logs.as_slice();
    while let [path, ..] = rest {
        let (group, later) = rest.split_at(together);
        let session = Inputs { files: group.to_vec(), transfers: None, ..inputs.clone() };
        let mut filter = LimitFilter::new(limits);
        let mut counted = counts;
        let read = read_inputs(&session, progress, &mut |tagged| {
            if filter.keeps(&tagged.record) {
                counted.count(&tagged.record);
            }
        });
        match read {
            Ok(loaded) => {
                counts = counted;
                transfers_given |= !loaded.transfers.is_empty();
                usable_files += loaded.files.iter().filter(|f| f.items > f.bad_items).count();
                files.extend(loaded.files);
                applications.extend(loaded.applications);
            }
            Err(_) if group.len() > 1 => {
                together = 1;
                continue;
            }
            // Standard input cannot be opened again.
            Err(Error::Unusable { what, .. }) if !comes_once(path) && !path.is_dir() => {
                let input = Input::open(path, progress)?;
                files.push(FileReport::unusable(&input, Kind::of(input.head()), &what));
                missing_files.push(unusable(&printable_path(path), what));
            }
            Err(error) => return Err(error),
        }
        rest = later;
    }
    let no_radio = counts == EvidenceCounts::default();
    // What a base station logs, the phone's modem logs under other names.
    let of_station = files.iter().any(|file| file.kind.starts_with("gnb_"));
    let is_empty = captures.iter().all(|look| look.report.items == 0)
        && files.iter().all(|file| file.bytes == 0);
    let mut missing = if is_empty {
        Vec::new()
    } else if no_radio && (!captures.is_empty() || of_station) {
        let has_server = captures.iter().any(|look| look.place == CaptureSite::Server);
        blind::missing(None, &[], has_server)
    } else if no_radio && !applications.is_empty() {
        application::missing()
    } else {
        missing(&counts, EvidenceChoice::Auto, transfers_given)
    };
    unread::advise(&mut missing, files.iter().flat_map(|f| &f.messages));
    let mut can_answer = answers(&counts);
    can_answer.extend(layout_answers(&files));
    can_answer.extend(files.iter().filter_map(summary).map(str::to_owned));
    for one in &applications {
        can_answer.extend(application::answers(one));
        missing.extend(application::lacks(one));
    }
    let is_at_phone = captures.iter().any(|look| look.place == CaptureSite::Phone);
    for Look { report, answers, lacks, phone_side, .. } in captures {
        can_answer.extend(answers);
        missing.extend(lacks);
        missing.extend(phone_side.filter(|_| !is_at_phone));
        files.push(report);
    }
    // An empty or damaged file stops no other.
    for file in unread.iter().filter(|file| file.damaged && usable_files == 0) {
        let whats = file.problems.iter().map(|problem| problem.what.clone());
        missing_files.extend(whats.map(|what| unusable(&file.path, what)));
    }
    missing.extend(missing_files);
    files.extend(unread);
    Ok(InspectReport { files, can_answer, missing, usable_files, evidence_counts: counts })
}

fn unusable(path: &str, how_to_capture: String) -> Missing {
    Missing::new(MissingKind::File, format!("{path} cannot be used"), how_to_capture)
}

/// Whether the blocks of all files confirm the layout assumed for a message, where a check is possible.
fn layout_answers(files: &[FileReport]) -> Vec<String> {
    let mut sums: BTreeMap<(&str, String), [u64; 2]> = BTreeMap::new();
    for row in files.iter().flat_map(|file| &file.messages) {
        if let Some([checked, passed]) = row.size_check.filter(|[checked, _]| *checked > 0) {
            let sum = sums.entry((&row.code, row.version_text())).or_default();
            *sum = [sum[0] + checked, sum[1] + passed];
        }
    }
    let says = |((code, version), [checked, passed]): ((&str, String), [u64; 2])| {
        format!(
            "is {code} {version} laid out as assumed: {passed} of {checked} new blocks have a size of \
             TS 38.214, 5.1.3.2"
        )
    };
    sums.into_iter().map(says).collect()
}

fn answers(counts: &EvidenceCounts) -> Vec<String> {
    let mut out = Vec::new();
    let mut evidence = Vec::new();
    if counts.dl_pdus_with_poll > 0 {
        evidence.push(format!("{} RLC PDUs with poll bits", counts.dl_pdus_with_poll));
    }
    if counts.dl_blocks_with_padding > 0 {
        evidence.push(format!("the padding of {} blocks", counts.dl_blocks_with_padding));
    }
    if counts.dl_blocks_with_prb > 0 {
        evidence.push(format!("the PRBs of {} blocks", counts.dl_blocks_with_prb));
    }
    if counts.dl_blocks == 0 && counts.dl_pdus_with_poll > 0 {
        out.push(format!(
            "when data waited at the base station (bursts): from {}; not whether the downlink was \
             the bottleneck of a transfer, which also needs allocations",
            evidence.join(", ")
        ));
    } else if !evidence.is_empty() {
        out.push(format!(
            "was the downlink the bottleneck (bursts, throughput time, link demand): from {}",
            evidence.join(", ")
        ));
    }
    if counts.ul_blocks > 0 && counts.buffer_samples + counts.bsr_reports > 0 {
        out.push(format!(
            "was the uplink the bottleneck: from {} blocks, {} samples of the phone's buffer and \
             {} buffer status reports",
            counts.ul_blocks, counts.buffer_samples, counts.bsr_reports
        ));
    }
    if counts.measurements > 0 {
        out.push(format!("signal quality: from {} measurements", counts.measurements));
    }
    out
}

#[cfg(test)]
mod tests {
    use airmile_io::MessageRow;

    use super::*;

    #[test]
    fn the_blocks_of_all_files_confirm_a_layout() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, "x").unwrap();
        let input = Input::open(&path, &Progress::default()).unwrap();
        let file = |minor: u8, size_check| {
            let mut file = FileReport::new(&input, Kind::Unknown);
            let code = "0xB887".to_owned();
            let (name, version, major) = (String::new(), Some(minor), Some(2));
            let (count, decoded, subpacket_version) = (1, 1, None);
            file.messages = vec![MessageRow {
                code,
                name,
                version,
                major,
                subpacket_version,
                count,
                decoded,
                size_check,
            }];
            file
        };
        let files = [file(5, Some([40, 39])), file(5, Some([2, 2])), file(6, Some([1, 1]))];
        let says = layout_answers(&files);
        assert_eq!(says.len(), 2);
        assert!(says[0].starts_with("is 0xB887 2.5 laid out as assumed: 41 of 42 "), "{}", says[0]);
        assert!(layout_answers(&[file(5, None)]).is_empty());
    }
}
