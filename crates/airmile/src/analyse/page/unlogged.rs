//! Responses in the capture whose requests the browser's log lacks.

use std::collections::HashMap;

use airmile_model::AppTransfer;
use airmile_wire::attribute::Connection;

use super::connections::NEAR_NS;
use airmile_model::spans::merged;

/// The requests that a log has.
pub(super) struct Logged {
    /// By connection of the capture, in order of start.
    of: HashMap<usize, Vec<(i64, i64)>>,
    /// Those whose connection is unknown; merged.
    others: Vec<(i64, i64)>,
}

impl Logged {
    /// From requests, with the connection of each.
    pub(super) fn new<'a>(
        requests: impl Iterator<Item = (&'a AppTransfer, Option<usize>)>,
    ) -> Self {
        let mut of: HashMap<usize, Vec<(i64, i64)>> = HashMap::new();
        let mut others = Vec::new();
        for (request, connection) in requests {
            let from_ns = request.start_ns.saturating_sub(NEAR_NS);
            let span = (from_ns, request.end_ns.saturating_add(NEAR_NS));
            match connection {
                Some(at) => of.entry(at).or_default().push(span),
                None => others.push(span),
            }
        }
        let of = of.into_iter().map(|(at, spans)| (at, merged(spans))).collect();
        Self { of, others: merged(others) }
    }

    fn has(&self, connection: usize, at_ns: i64) -> bool {
        let of = self.of.get(&connection).map_or(&[][..], Vec::as_slice);
        contains(of, at_ns) || contains(&self.others, at_ns)
    }
}

/// Whether one of some merged spans contains a time.
fn contains(spans: &[(i64, i64)], at_ns: i64) -> bool {
    let n = spans.partition_point(|(from, _)| *from <= at_ns);
    n.checked_sub(1).and_then(|last| spans.get(last)).is_some_and(|(_, to)| at_ns <= *to)
}

/// Requests between `from_ns` and `to_ns` on the page's own connections that the log lacks, each
/// until the last byte of its response; by their ends.
pub(super) fn exchanges(
    connections: &[Connection],
    is_own: impl Fn(&Connection) -> bool,
    logged: &Logged,
    (from_ns, to_ns): (i64, i64),
) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    for (at, one) in connections.iter().enumerate().filter(|(_, one)| is_own(one)) {
        let first = one.requests_ns.partition_point(|ns| *ns < from_ns);
        let requests = one.requests_ns.get(first..).unwrap_or_default();
        for (n, request_ns) in requests.iter().take_while(|ns| **ns < to_ns).enumerate() {
            let next_ns = requests.get(n + 1).copied().unwrap_or(i64::MAX);
            let before = one.arrivals_ns.partition_point(|ns| *ns < next_ns);
            let last = before.checked_sub(1).and_then(|last| one.arrivals_ns.get(last));
            if let Some(last_ns) = last.filter(|ns| *ns > request_ns)
                && !logged.has(at, *request_ns)
            {
                out.push((*request_ns, *last_ns));
            }
        }
    }
    out.sort_unstable_by_key(|(_, end_ns)| *end_ns);
    out
}

/// Spans of time, merged once for all questions about them.
#[derive(Debug, Default)]
pub(super) struct MergedSpans {
    /// In order and without overlaps: start, end, and the time that those before it cover.
    pub(super) spans: Vec<(i64, i64, u64)>,
}

impl MergedSpans {
    pub(super) fn new(all: Vec<(i64, i64)>) -> Self {
        let mut covered_ns = 0;
        let with_covered = |(from, to): (i64, i64)| {
            let before_ns = covered_ns;
            covered_ns += to.abs_diff(from);
            (from, to, before_ns)
        };
        let spans = merged(all).into_iter().map(with_covered).collect();
        Self { spans }
    }

    /// How much of a time range they cover together.
    pub(super) fn within_ns(&self, from_ns: i64, to_ns: i64) -> u64 {
        self.until_ns(to_ns).saturating_sub(self.until_ns(from_ns))
    }

    /// The spans, in order and without overlaps.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, i64)> {
        self.spans.iter().map(|(from, to, _)| (*from, *to))
    }

    fn until_ns(&self, at_ns: i64) -> u64 {
        let n = self.spans.partition_point(|(from, ..)| *from < at_ns);
        let last = n.checked_sub(1).and_then(|last| self.spans.get(last));
        last.map_or(0, |(from, to, before_ns)| before_ns + at_ns.min(*to).abs_diff(*from))
    }
}
