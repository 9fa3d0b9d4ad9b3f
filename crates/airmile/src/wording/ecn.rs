//! The sentences of congestion marks.

use airmile_model::{Direction, EcnSource};

use super::{link, whole_percent};
use crate::fact::EcnReport;

/// The sentence of a report; `cleared`: no packet arrived ECN-capable.
pub(crate) fn ecn(report: &EcnReport, cleared: bool) -> String {
    // A mark replaces the code point.
    let rest = report.capable_packets - report.ect1_packets;
    let field = match (report.ect1_packets, rest > report.marked_packets.unwrap_or(0)) {
        (0, _) => "ECT(0)",
        (_, false) => "ECT(1)",
        (_, true) => "ECT(0) or ECT(1)",
    };
    let dir = link(report.dir);
    if cleared {
        return format!(
            "{dir}: the phone sent {} packets with {field}, and none arrived so at the server: a \
             host on the way clears the ECN field",
            report.capable_packets
        );
    }
    let (Some(marked), Some(queued_marked)) = (report.marked_packets, report.queued_marked_packets)
    else {
        return format!(
            "{dir}: {} packets with {field}, but no acknowledgement shows which were marked: \
             capture at the server, too",
            report.capable_packets
        );
    };
    let counted = |marked, all| part(report.counted_by, marked, all);
    let queue = match report.dir {
        Direction::Ul => "the phone's own queue",
        Direction::Dl => "the queue at the base station",
    };
    let (marked_else, all_else) = otherwise(report, marked, queued_marked);
    let otherwise = counted(marked_else, all_else);
    format!(
        "{dir}: while {queue} stood, {} packets with {field} {} marked{}, otherwise \
         {otherwise}: {}",
        counted(queued_marked, report.queued_packets),
        if queued_marked < 2 { "was" } else { "were" },
        percent(queued_marked, report.queued_packets),
        conclusion(report)
    )
}

/// Marks that acknowledgements report are a lower bound.
fn part(counted_by: EcnSource, marked: u64, all: u64) -> String {
    match (marked, counted_by) {
        (0, _) => format!("none of {all}"),
        (_, EcnSource::Arrivals) => format!("{marked} of {all}"),
        _ => format!("at least {marked} of {all}"),
    }
}

/// Packets marked while the queue did not stand, and all of that time.
const fn otherwise(report: &EcnReport, marked: u64, queued_marked: u64) -> (u64, u64) {
    let all = report.capable_packets.saturating_sub(report.queued_packets);
    (marked.saturating_sub(queued_marked), all)
}

fn share(marked: u64, all: u64) -> f64 {
    marked as f64 / all.max(1) as f64
}

fn percent(marked: u64, all: u64) -> String {
    // Exact at halves, as the quotient is not.
    let percent = whole_percent((marked as f64 * 100.0 / all.max(1) as f64).min(100.0));
    if marked == 0 { String::new() } else { format!(" ({percent} %)") }
}

fn conclusion(report: &EcnReport) -> &'static str {
    match report.queue_is_marked {
        Some(true) if marks_elsewhere(report) => {
            "packets are marked whether its queue stands or not: the sender slows down without need, \
             or for another queue"
        }
        Some(true) => "its queue is marked",
        Some(false) if report.ect1_packets > 0 => "its queue is not marked",
        Some(false) => "its queue is not marked, or only that of L4S, which needs ECT(1)",
        None => "too few to tell whether its queue is marked",
    }
}

/// Whether as large a share is marked while the queue does not stand; of half it may still be the queue,
/// as times are in bins.
fn marks_elsewhere(report: &EcnReport) -> bool {
    let marks = report.marked_packets.zip(report.queued_marked_packets);
    let Some((marked, queued_marked)) = marks else { return false };
    let (marked, all) = otherwise(report, marked, queued_marked);
    share(marked, all) > share(queued_marked, report.queued_packets) / 2.0
}
