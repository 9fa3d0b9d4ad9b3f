//! Uploads that stop while another flow is active: what no gate can surpass, as no packet of
//! an upload goes ahead of another flow's, except for those that the firmware already holds.

use std::collections::{HashMap, VecDeque};

use super::class::PacketInfo;

/// A flow with more data than this is an upload (chosen here: more than the other flows of the
/// experiments send).
const UPLOAD_BYTES: u64 = 200_000;

/// The other flows count as active for this time after a packet, in ns: as in the gate.
const ACTIVE_NS: i64 = 300_000_000;

/// The other flows' packets, and when one last arrived.
#[derive(Debug, Clone)]
pub struct StoppedUploads<P> {
    /// Bytes of TCP segments with data by flow.
    sent: HashMap<u64, u64>,
    waiting: VecDeque<(PacketInfo, P)>,
    active_ns: Option<i64>,
}

impl<P> Default for StoppedUploads<P> {
    fn default() -> Self {
        Self { sent: HashMap::new(), waiting: VecDeque::new(), active_ns: None }
    }
}

impl<P> StoppedUploads<P> {
    /// Takes a packet of another flow; returns that of an upload.
    pub(super) fn take(&mut self, now_ns: i64, info: PacketInfo, packet: P) -> Option<P> {
        let sent = self.sent.entry(info.flow).or_default();
        *sent += info.tcp_end.map_or(0, |_| u64::from(info.bytes));
        if *sent > UPLOAD_BYTES {
            return Some(packet);
        }
        self.active_ns = Some(now_ns);
        self.waiting.push_back((info, packet));
        None
    }

    pub(super) fn pop(&mut self) -> Option<(PacketInfo, P)> {
        self.waiting.pop_front()
    }

    pub(super) fn are_stopped(&self, now_ns: i64) -> bool {
        self.active_ns.is_some_and(|at| now_ns - at < ACTIVE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn uploads_stop_for_300_ms_after_another_flows_packet() {
        let data = |flow| PacketInfo { flow, bytes: 1_500, tcp_end: Some(1), ..Default::default() };
        let mut stopped = StoppedUploads::default();
        // 133 packets are 199,500 bytes: no upload yet.
        let passed = (0..140).filter_map(|n| stopped.take(0, data(1), n)).count();
        assert_eq!(passed, 7);
        assert_eq!(std::iter::from_fn(|| stopped.pop()).count(), 133);
        assert!(stopped.take(400 * MS, data(1), 140).is_some());
        assert!(stopped.are_stopped(299 * MS) && !stopped.are_stopped(400 * MS));
        assert!(stopped.take(500 * MS, data(2), 0).is_none());
        assert!(stopped.are_stopped(799 * MS) && !stopped.are_stopped(800 * MS));
    }
}
