//! Simultaneous transfers of one direction, as one: queues are per user (BurstTracker, section 2.1.2),
//! so for parallel transfers only their joint wait is known.

use airmile_model::{Direction, Stamp, Transfer, TransferFinding};
use airmile_radio::usage::Usage;

/// Transfers that overlap by less than this, in nanoseconds, or by less than this part of the
/// shorter one, are consecutive (as for [`TransferFinding::overlapped`]).
const OVERLAP_NS: i64 = 5_000_000;
const OVERLAP_PART: i64 = 100;
/// Length of an LTE TTI, used to compare TTIs without a time.
const TTI_NS: i64 = 1_000_000;

/// Simultaneous transfers, measured as one.
#[derive(Debug, Clone)]
pub(crate) struct Together {
    /// The measures from the start of the first to the end of the last.
    pub(crate) finding: TransferFinding,
    pub(crate) usage: Usage,
    /// Indices of its members among the report's transfers.
    pub(crate) members: Vec<usize>,
}

/// A group of given transfers: their joint span, and the indices of its members.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) transfer: Transfer,
    pub(super) members: Vec<usize>,
}

fn span_ns(transfer: &Transfer) -> Option<(i64, i64)> {
    let by_tti = || {
        let (start, end) = transfer.tti?;
        Some((start.0.saturating_mul(TTI_NS), end.0.saturating_mul(TTI_NS)))
    };
    transfer.time.map(|(start, end)| (start.ns, end.ns)).or_else(by_tti)
}

/// The groups of two or more given transfers of a direction that overlap, downlink then uplink; one of
/// unknown direction can be in a group of each.
pub(super) fn groups(given: &[Transfer]) -> Vec<Group> {
    [Direction::Dl, Direction::Ul].into_iter().flat_map(|dir| groups_of(given, dir)).collect()
}

fn groups_of(given: &[Transfer], dir: Direction) -> Vec<Group> {
    let mut placed: Vec<(i64, i64, usize)> = given
        .iter()
        .enumerate()
        .filter(|(_, one)| one.dir.is_none_or(|own| own == dir))
        .filter_map(|(at, one)| span_ns(one).map(|(from, to)| (from, to, at)))
        .collect();
    placed.sort_unstable();
    let mut groups: Vec<(i64, i64, Vec<usize>)> = Vec::new();
    for (from, to, at) in placed {
        match groups.last_mut() {
            Some((start, end, members)) if overlap((*start, *end), (from, to)) => {
                *end = to.max(*end);
                members.push(at);
            }
            _ => groups.push((from, to, vec![at])),
        }
    }
    let groups = groups.into_iter().filter(|(.., members)| members.len() > 1);
    groups.filter_map(|(.., members)| as_one(given, members, dir)).collect()
}

fn overlap((start, end): (i64, i64), (from, to): (i64, i64)) -> bool {
    let shorter = end.saturating_sub(start).min(to.saturating_sub(from));
    let common = end.min(to).saturating_sub(from);
    common > OVERLAP_NS.max(shorter / OVERLAP_PART)
}

/// The transfer that spans all members; `None` if their times are of different kinds.
fn as_one(given: &[Transfer], members: Vec<usize>, dir: Direction) -> Option<Group> {
    let each = || members.iter().filter_map(|at| given.get(*at));
    let time = each()
        .map(|one| one.time)
        .reduce(|a, b| a.zip(b).map(|(a, b)| (earlier(a.0, b.0), later(a.1, b.1))))?;
    let tti = each()
        .map(|one| one.tti)
        .reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))))?;
    if time.is_none() && tti.is_none() {
        return None;
    }
    let bytes = each().map(|one| one.bytes).sum::<Option<u64>>();
    let transfer = Transfer {
        id: each().map(|one| one.id.as_str()).collect::<Vec<_>>().join("+"),
        time,
        tti,
        bytes,
        dir: Some(dir),
        unfinished: each().any(|one| one.unfinished),
    };
    Some(Group { transfer, members })
}

const fn earlier(a: Stamp, b: Stamp) -> Stamp {
    if a.ns <= b.ns { a } else { b }
}

const fn later(a: Stamp, b: Stamp) -> Stamp {
    if a.ns >= b.ns { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(id: &str, from_ms: i64, to_ms: i64, dir: Option<Direction>) -> Transfer {
        let at = |ms: i64| Stamp::modem(ms * 1_000_000);
        let time = Some((at(from_ms), at(to_ms)));
        Transfer { id: id.into(), time, tti: None, bytes: Some(10), dir, unfinished: false }
    }

    #[test]
    fn transfers_of_a_direction_that_overlap_are_a_group() {
        let given = [
            transfer("a", 0, 1_000, None),
            transfer("b", 500, 2_000, Some(Direction::Dl)),
            transfer("c", 1_500, 2_500, Some(Direction::Dl)),
            // 4 ms are within the tolerance.
            transfer("d", 2_496, 3_000, None),
            transfer("e", 4_000, 5_000, Some(Direction::Dl)),
            transfer("up", 4_000, 5_000, Some(Direction::Ul)),
            transfer("up2", 4_500, 6_000, Some(Direction::Ul)),
        ];
        let groups = groups(&given);
        let [down, up] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((down.transfer.id.as_str(), &down.members[..]), ("a+b+c", &[0, 1, 2][..]));
        assert_eq!((down.transfer.bytes, down.transfer.dir), (Some(30), Some(Direction::Dl)));
        let (start, end) = down.transfer.time.unwrap();
        assert_eq!((start.ns, end.ns), (0, 2_500_000_000));
        assert_eq!((up.transfer.id.as_str(), up.transfer.dir), ("up+up2", Some(Direction::Ul)));
    }
}
