//! Whether queues of the radio link mark packets (ECN), by captures and a modem log.

use airmile_model::{Direction, EcnSource};
use airmile_wire::attribute::{EcnCount, EcnPath};

use super::causes::queued_ns;
use super::radio::RadioReport;
use super::wire::Wire;
use crate::fact::EcnReport;
use crate::wording;
use airmile_model::spans::merged;

/// A queue stands after this time without being empty (chosen here: the wait for a first grant, which
/// is no queue, and 5 ms, from which on a modem marks).
const STANDS_AFTER_NS: i64 = 25_000_000;
/// Fewer packets than this do not show that a queue is not marked (chosen here: several round trips).
const ENOUGH_PACKETS: u64 = 100;

/// Reports of the directions in which packets were ECN-capable.
pub(super) fn reports(wire: &Wire, report: &RadioReport) -> Vec<EcnReport> {
    wire.ecn.iter().map(|path| EcnReport::of(path, &standing(path.dir, report))).collect()
}

/// When the queue of a direction stood, in nanoseconds; in order, without overlaps.
fn standing(dir: Direction, report: &RadioReport) -> Vec<(i64, i64)> {
    let transfers = report.transfers.iter().filter(|finding| finding.dir == dir);
    let spans = merged(transfers.flat_map(|one| queued_ns(one, dir, report)).collect());
    let stands = spans.into_iter().map(|(from, to)| (from.saturating_add(STANDS_AFTER_NS), to));
    stands.filter(|(from, to)| from < to).collect()
}

impl EcnReport {
    pub(super) fn of(path: &EcnPath, standing: &[(i64, i64)]) -> Self {
        let all = path.counts.total();
        let mut queued = EcnCount::default();
        for (from_ns, to_ns) in standing {
            queued.add(path.counts.within(*from_ns, *to_ns));
        }
        let seen = path.source != EcnSource::Unknown && !path.cleared;
        let queue_is_marked = match (seen, queued.marked) {
            (true, 0) if queued.capable < ENOUGH_PACKETS => None,
            (true, marked) => Some(marked > 0),
            (false, _) => None,
        };
        let mut report = Self {
            dir: path.dir,
            counted_by: path.source,
            capable_packets: all.capable,
            ect1_packets: all.ect1,
            marked_packets: seen.then_some(all.marked),
            queued_packets: queued.capable,
            queued_marked_packets: seen.then_some(queued.marked),
            queue_is_marked,
            says: String::new(),
        };
        report.says = wording::ecn(&report, path.cleared);
        report
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::Ecn;
    use airmile_wire::attribute::EcnBins;

    use super::*;

    const MS: i64 = 1_000_000;

    /// A packet each 10 ms for 4 s, of which those that `marked` names are marked.
    fn path(dir: Direction, source: EcnSource, ecn: Ecn, marked: impl Fn(i64) -> bool) -> EcnPath {
        let mut counts = EcnBins::default();
        for ms in (0..4_000).step_by(10) {
            counts.push(ms * MS, if marked(ms) { Ecn::Ce } else { ecn });
        }
        EcnPath { dir, counts, source, cleared: false }
    }

    #[test]
    fn a_queue_that_is_marked_and_one_that_is_not() {
        let standing = [(1_000 * MS, 2_500 * MS)];
        let marks =
            path(Direction::Ul, EcnSource::Arrivals, Ecn::Ect1, |ms| (1_500..2_000).contains(&ms));
        let report = EcnReport::of(&marks, &standing);
        assert_eq!((report.queued_packets, report.queued_marked_packets), (150, Some(50)));
        assert_eq!((report.queue_is_marked, report.ect1_packets), (Some(true), 350));
        assert_eq!(
            report.says,
            "uplink: while the phone's own queue stood, 50 of 150 packets with ECT(1) were marked \
             (33 %), otherwise none of 250: its queue is marked"
        );
        let always = path(Direction::Ul, EcnSource::Arrivals, Ecn::Ect0, |ms| ms % 100 < 50);
        let report = EcnReport::of(&always, &standing);
        assert!(report.says.ends_with("without need, or for another queue"), "{}", report.says);
        let silent = path(Direction::Dl, EcnSource::Arrivals, Ecn::Ect0, |_| false);
        let report = EcnReport::of(&silent, &standing);
        assert_eq!(report.queue_is_marked, Some(false));
        assert_eq!(
            report.says,
            "downlink: while the queue at the base station stood, none of 150 packets with ECT(0) \
             was marked, otherwise none of 250: its queue is not marked, or only that of L4S, which \
             needs ECT(1)"
        );
    }

    #[test]
    fn what_does_not_show_it_is_not_told() {
        let up = |source, ecn| path(Direction::Ul, source, ecn, |_| false);
        let unknown = EcnReport::of(&up(EcnSource::Unknown, Ecn::Ect0), &[(0, 4_000 * MS)]);
        assert_eq!((unknown.marked_packets, unknown.queue_is_marked), (None, None));
        assert!(unknown.says.contains("capture at the server, too"), "{}", unknown.says);
        let short = EcnReport::of(&up(EcnSource::AccurateEcn, Ecn::Ect1), &[(0, 500 * MS)]);
        assert_eq!((short.queued_packets, short.queue_is_marked), (50, None));
        assert!(short.says.contains("too few"), "{}", short.says);
        let cleared = EcnPath { cleared: true, ..up(EcnSource::Arrivals, Ecn::Ect1) };
        let cleared = EcnReport::of(&cleared, &[(0, 4_000 * MS)]);
        assert_eq!((cleared.marked_packets, cleared.queue_is_marked), (None, None));
        assert!(cleared.says.contains("clears the ECN field"), "{}", cleared.says);
    }
}
