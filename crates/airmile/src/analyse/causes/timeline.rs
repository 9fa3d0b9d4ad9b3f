//! A transfer's bursts on the time line of its packets.

use airmile_model::{Burst, Direction, TransferFinding, TtiIndex};
use airmile_wire::attribute::RadioSpan;

use super::super::radio::RadioReport;

/// A transfer's time, and the place of TTIs relative to its start.
pub(super) struct TransferTimeline {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    start: TtiIndex,
    tti_ns: f64,
}

impl TransferTimeline {
    /// `None` if the transfer's time is unknown.
    pub(super) fn of(finding: &TransferFinding, report: &RadioReport) -> Option<Self> {
        Some(Self {
            start_ns: finding.start_us? * 1_000,
            end_ns: finding.end_us? * 1_000,
            start: finding.start_tti,
            tti_ns: report.tti_ms * 1e6,
        })
    }

    pub(super) fn at(&self, tti: TtiIndex) -> i64 {
        let ns = tti.0.saturating_sub(self.start.0) as f64 * self.tti_ns;
        self.start_ns.saturating_add(ns as i64)
    }

    /// Bursts of a transfer as spans of time.
    pub(super) fn bursts(
        &self,
        finding: &TransferFinding,
        dir: Direction,
        report: &RadioReport,
    ) -> Vec<RadioSpan> {
        bursts_within(finding, dir, report)
            .map(|b| RadioSpan {
                from_ns: self.at(b.start_tti),
                to_ns: self.at(b.end_tti),
                queued: true,
            })
            .collect()
    }
}

/// Spans without what others cover; both in order.
pub(super) fn without_spans(spans: &[RadioSpan], others: &[(i64, i64)]) -> Vec<RadioSpan> {
    let mut out = Vec::new();
    for span in spans {
        let first = others.partition_point(|(_, to)| *to <= span.from_ns);
        let within = others.iter().skip(first).take_while(|(from, _)| *from < span.to_ns);
        let mut at = span.from_ns;
        for (from, to) in within.copied().chain([(span.to_ns, span.to_ns)]) {
            if from > at {
                out.push(RadioSpan { from_ns: at, to_ns: from, ..*span });
            }
            at = at.max(to);
        }
    }
    out
}

/// The times of a transfer in which a queue was not empty, in nanoseconds; none if its time is unknown.
pub(in super::super) fn queued_ns(
    finding: &TransferFinding,
    dir: Direction,
    report: &RadioReport,
) -> Vec<(i64, i64)> {
    let Some(place) = TransferTimeline::of(finding, report) else { return Vec::new() };
    let bursts = place.bursts(finding, dir, report).into_iter();
    bursts.map(|span| (span.from_ns.max(place.start_ns), span.to_ns.min(place.end_ns))).collect()
}

/// Clear bursts of which a part is within a transfer.
pub(super) fn bursts_within<'a>(
    finding: &'a TransferFinding,
    dir: Direction,
    report: &'a RadioReport,
) -> impl Iterator<Item = &'a Burst> {
    report.bursts.iter().filter(move |b| {
        b.dir == dir
            && b.is_clear()
            && b.start_tti < finding.end_tti
            && b.end_tti > finding.start_tti
    })
}

/// The error of the time in bursts: the end of an uncertain burst contributes a share of the burst,
/// and ends are independent.
pub(super) fn burst_error_ns(finding: &TransferFinding, report: &RadioReport) -> f64 {
    let squares: f64 = bursts_within(finding, finding.dir, report)
        .map(|b| {
            let within = b.end_tti.min(finding.end_tti).since(b.start_tti.max(finding.start_tti));
            ((1.0 - b.confidence) * within as f64 * report.tti_ms * 1e6).powi(2)
        })
        .sum();
    squares.sqrt()
}
