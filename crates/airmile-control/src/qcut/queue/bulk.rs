//! Distinguishes bulk flows, which send more than the link carries, from sparse ones.

use std::collections::HashMap;

use super::queue_of;
use crate::qcut::rate::bytes_in;

/// When each bulk flow last had a backlog.
#[derive(Debug, Clone, Default)]
pub(super) struct Bulk {
    flows: HashMap<u64, i64>,
    last_ns: Option<i64>,
}

/// A flow with more than this waiting counts as bulk, for `BULK_NS` (both chosen here: two
/// large packets are a request or a burst of acknowledgements; a queue that CoDel has
/// emptied is full again within a few round trips).
pub(super) const BULK_BYTES: u64 = 3_000;
const BULK_NS: i64 = 1_000_000_000;

impl Bulk {
    /// Records that a flow's queue has a backlog; the number of queues is bounded.
    pub(super) fn note(&mut self, now_ns: i64, flow: u64) {
        self.flows.insert(flow, now_ns);
        self.last_ns = Some(now_ns);
    }

    /// Whether a flow is not bulk while another one is.
    pub(super) fn is_sparse_during_bulk(&self, now_ns: i64, flow: u64) -> bool {
        self.last_ns.is_some_and(|seen| is_recent(seen, now_ns))
            && !self.flows.get(&flow).is_some_and(|seen| is_recent(*seen, now_ns))
    }
}

const fn is_recent(seen_ns: i64, now_ns: i64) -> bool {
    now_ns.saturating_sub(seen_ns) < BULK_NS
}

/// Bulk flows by the packets that pass, for queues that are not ours: their length is not known.
#[derive(Debug, Clone, Default)]
pub(in crate::qcut) struct PassingFlows {
    /// Bytes of each flow since `since_ns`.
    bytes: HashMap<u64, u64>,
    since_ns: i64,
    bulk: Bulk,
}

/// A flow that passes more than an eighth of the rate in this time, in ns, is bulk (both chosen
/// here: a page's requests and acknowledgements are below it, each of four uploads above).
const PASSING_NS: i64 = 100_000_000;
const BULK_PART: u64 = 8;

impl PassingFlows {
    /// Counts a packet. Returns true if it is of a sparse flow during a bulk transfer.
    pub(in crate::qcut) fn note(
        &mut self,
        now_ns: i64,
        (flow, bytes): (u64, u32),
        bytes_per_s: u64,
    ) -> bool {
        if now_ns.saturating_sub(self.since_ns) >= PASSING_NS {
            self.bytes.clear();
            self.since_ns = now_ns;
        }
        let key = queue_of(flow);
        let passed = self.bytes.entry(key).or_default();
        *passed += u64::from(bytes);
        if *passed > BULK_BYTES.max(bytes_in(PASSING_NS, bytes_per_s) / BULK_PART) {
            self.bulk.note(now_ns, key);
        }
        self.bulk.is_sparse_during_bulk(now_ns, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_flow_is_bulk_by_its_share_of_what_passes() {
        let mut passing = PassingFlows::default();
        // 1 MB/s: an eighth of 100 ms are 12,500 bytes.
        let mut note = |ms: i64, flow, bytes| passing.note(ms * MS, (flow, bytes), 1_000_000);
        assert!(!note(0, 1, 12_500), "nobody is bulk yet");
        assert!(!note(1, 2, 100));
        assert!(!note(2, 1, 1), "bulk itself");
        assert!(note(3, 2, 100), "sparse beside it");
        assert!(note(150, 2, 3_100), "little of what the link carries");
        assert!(note(900, 2, 100));
        assert!(!note(1_010, 2, 100), "bulk a second ago");
    }
}
