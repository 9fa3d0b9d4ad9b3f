//! Transfers at the same time, as one: queues are per user (BurstTracker, section 2.1.2), so
//! of parallel transfers only what all of them waited for can be told.

use airmile_model::{Direction, TransferFinding, Verdict, VerdictThresholds};
use airmile_radio::usage::Usage;

use super::super::diagnose::{SessionVerdict, says};
use super::super::radio::RadioReport;

/// The measures of transfers at the same time, the usage of the largest, and how many they are.
pub(super) type Group = (TransferFinding, Usage, usize);

/// Downloads, those that overlap joined, each with the usage of its largest.
pub(super) fn groups(report: &RadioReport, thresholds: &VerdictThresholds) -> Vec<Group> {
    let downloads = report.transfers.iter().zip(&report.usage);
    let mut downloads: Vec<(&TransferFinding, &Usage)> =
        downloads.filter(|(finding, _)| finding.dir == Direction::Dl).collect();
    downloads.sort_by_key(|(finding, _)| (finding.start_tti, finding.end_tti));
    let mut out: Vec<Group> = Vec::new();
    let mut largest = 0;
    for (finding, usage) in downloads {
        match out.last_mut() {
            Some((group, of, n)) if finding.overlapped && finding.start_tti < group.end_tti => {
                *n += 1;
                join(group, finding, report, thresholds);
                if finding.bytes.unwrap_or(0) > largest {
                    largest = finding.bytes.unwrap_or(0);
                    *of = usage.clone();
                }
            }
            _ => {
                largest = finding.bytes.unwrap_or(0);
                out.push((finding.clone(), usage.clone(), 1));
            }
        }
    }
    out
}

/// Takes a transfer into a group: its measures are those of the time of both.
fn join(
    group: &mut TransferFinding,
    other: &TransferFinding,
    report: &RadioReport,
    thresholds: &VerdictThresholds,
) {
    group.end_tti = group.end_tti.max(other.end_tti);
    group.start_us = group.start_us.zip(other.start_us).map(|(a, b)| a.min(b));
    group.end_us = group.end_us.zip(other.end_us).map(|(a, b)| a.max(b));
    let ttis = group.end_tti.since(group.start_tti);
    group.duration_ms = ttis as f64 * report.tti_ms;
    group.bytes = group.bytes.zip(other.bytes).map(|(a, b)| a.saturating_add(b));
    group.unknown_ms = group.unknown_ms.max(other.unknown_ms).min(group.duration_ms);
    group.burst_throughput_bps =
        group.burst_throughput_bps.into_iter().chain(other.burst_throughput_bps).reduce(f64::max);
    group.overlapped = false;
    group.notes.clear();
    let inside = report.bursts.iter().filter(|burst| burst.dir == Direction::Dl);
    let queued: i64 = inside
        .map(|burst| {
            let from = burst.start_tti.max(group.start_tti);
            burst.end_tti.min(group.end_tti).since(from).max(0)
        })
        .sum();
    let known = group.throughput_time_ms.is_some();
    group.throughput_time_ms = known.then_some(queued as f64 * report.tti_ms);
    group.link_demand =
        group.throughput_time_ms.filter(|_| group.duration_ms > 0.0).map(|t| t / group.duration_ms);
    group.link_throughput_bps = None;
    group.confidence = group.confidence.max(other.confidence);
    group.verdict = group.link_demand.map_or(Verdict::Unknown, |demand| thresholds.judge(demand));
}

/// The session's verdict where transfers were joined: their own said nothing of it.
pub(super) fn judge(
    session: &mut SessionVerdict,
    groups: &[Group],
    thresholds: &VerdictThresholds,
) {
    let judged: Vec<&TransferFinding> =
        groups.iter().map(|group| &group.0).filter(|f| f.link_demand.is_some()).collect();
    let duration_ms: f64 = judged.iter().map(|finding| finding.duration_ms).sum();
    if !groups.iter().any(|group| group.2 > 1) || duration_ms <= 0.0 {
        return;
    }
    let unknown = judged.iter().any(|f| f.verdict == Verdict::Unknown);
    if unknown {
        return;
    }
    let queued_ms: f64 = judged.iter().filter_map(|finding| finding.throughput_time_ms).sum();
    let demand = queued_ms / duration_ms;
    let verdict = thresholds.judge(demand);
    if session.verdict == verdict && session.link_demand.is_some() {
        return;
    }
    let confidence = judged.iter().map(|f| f.confidence * f.duration_ms).sum::<f64>() / duration_ms;
    let says = says(verdict, Direction::Dl, demand, judged.len(), thresholds);
    *session = SessionVerdict {
        verdict,
        confidence,
        dir: Some(Direction::Dl),
        link_demand: Some(demand),
        ..SessionVerdict::unknown(says)
    };
}
