//! Joins the parts' results into the study's.

use std::cmp::Reverse;

use airmile_capture::packet::FragmentCounts;
use airmile_model::flow::FlowRow;
use airmile_wire::tcp::{Quality, StudySummary};

use super::ScaleOptions;
use super::bucket::BucketReport;
use super::deal::DealReport;
use crate::largest::{FlowEntry, Largest, MOST_FLOWS};
use crate::report::PacketReport;
use crate::study::{Overview, headline};
use crate::{count_read, unread};
use airmile_io::FileReport;
use airmile_io::capture::{ReadCounts, Views};
use airmile_io::error::{Error, Result};

/// The start of a part of the capture: number of packets before it, and the clock.
pub type Clocks = Vec<(u64, Option<i64>)>;

/// For each part, in the order of the capture, where it begins; and the clock at the end.
#[must_use]
pub fn clocks(parts: &[DealReport]) -> (Clocks, Option<i64>) {
    let (mut packets, mut clock_ns) = (0, None);
    let begins = parts.iter().map(|part| {
        let begin = (packets, clock_ns);
        packets += part.quality.packets;
        clock_ns = clock_ns.max(part.clock_ns);
        begin
    });
    (begins.collect(), clock_ns)
}

/// The document of a study: `files` has the parts of each capture, with the marks of the
/// connections that begin there (`.syns`).
///
/// # Errors
/// There is nothing to analyse, or two captures are views of the same traffic.
pub fn join(
    files: Vec<Vec<(DealReport, Vec<u8>)>>,
    buckets: Vec<BucketReport>,
    options: &ScaleOptions,
) -> Result<PacketReport> {
    let repeated_connections = repeated(&files)?;
    let mut quality = Quality::default();
    let mut fragments = [0_u64; 6];
    let mut last: Option<i64> = None;
    let mut reports: Vec<FileReport> = Vec::new();
    for parts in files {
        let mut report: Option<FileReport> = None;
        for (part, _) in parts {
            // Between two parts; each part counts its own interior.
            if let (Some((first_ns, false)), Some(last_ns)) = (part.first, last)
                && first_ns < last_ns
            {
                quality.stepped_back(last_ns - first_ns);
            }
            last = part.last_ns.or(last);
            quality.merge(part.quality);
            fragments.iter_mut().zip(part.fragments).for_each(|(sum, n)| *sum += n);
            match &mut report {
                None => report = Some(part.file),
                Some(report) => report.merge(part.file),
            }
        }
        reports.extend(report);
    }
    let [fragments, datagrams, incomplete, overlapping, left_out, left_out_bytes] = fragments;
    let fragments =
        FragmentCounts { fragments, datagrams, incomplete, overlapping, left_out, left_out_bytes };
    if quality.packets == 0 {
        let names: Vec<&str> = reports.iter().map(|file| file.path.as_str()).collect();
        let what = format!("{}: no IP packets{}", names.join(", "), unread(&reports));
        return Err(Error::NothingToAnalyse(what));
    }
    let mut summary = StudySummary::default();
    let mut overview = Overview::default();
    let (mut largest, mut left_out) = (Vec::new(), 0);
    for bucket in buckets {
        summary.merge(bucket.summary);
        overview.merge(bucket.overview);
        largest.extend(bucket.largest.0);
        left_out += bucket.largest.1;
    }
    summary.quality.merge(quality);
    count_read(&mut summary.quality, &ReadCounts { fragments, repeated_connections });
    let largest = largest_of(largest, left_out)?;
    let mut report = PacketReport::new(reports, &summary, &options.study, largest);
    report.set_headline(headline(&summary, &overview, &report));
    Ok(report)
}

/// The largest flows of all, from those of the buckets.
fn largest_of(
    mut rows: Vec<serde_json::Map<String, serde_json::Value>>,
    left_out: u64,
) -> Result<(Vec<FlowEntry>, u64)> {
    let number = |row: &serde_json::Map<String, serde_json::Value>, name: &str| {
        row.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0)
    };
    let payload = |row: &_| number(row, "dl_bytes") + number(row, "ul_bytes");
    rows.sort_by_key(|row| (Reverse(payload(row)), number(row, "flow")));
    let left_out = left_out + rows.len().saturating_sub(MOST_FLOWS) as u64;
    rows.truncate(MOST_FLOWS);
    let refused = |e: serde_json::Error| Error::Arrow { table: "flows", what: e.to_string() };
    let text = serde_json::to_string(&rows).map_err(refused)?;
    let rows: Vec<FlowRow> = serde_json::from_str(&text).map_err(refused)?;
    let mut largest = Largest::default();
    rows.iter().for_each(|row| largest.push(row));
    let (entries, more) = largest.finish();
    Ok((entries, left_out + more))
}

/// Number of connections that also begin in an earlier capture.
fn repeated(files: &[Vec<(DealReport, Vec<u8>)>]) -> Result<u64> {
    let mut views = Views::default();
    if files.len() < 2 {
        return Ok(0);
    }
    for parts in files {
        views.next_file();
        for mark in parts.iter().flat_map(|(_, syns)| syns.chunks_exact(8)) {
            views.push_mark(mark.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
        if let (Some(what), Some((part, _))) = (views.same_traffic(), parts.first()) {
            return Err(Error::Unusable { path: part.file.path.clone().into(), what });
        }
    }
    Ok(views.repeated)
}
