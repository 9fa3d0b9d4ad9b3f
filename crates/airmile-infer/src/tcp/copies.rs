//! Copies that the capture made: mirrored ports, two taps on one path.

use std::hash::{BuildHasher, Hasher};

use airmile_model::packet::{Packet, TcpHeader};
use foldhash::fast::FixedState;

/// Packets of a direction that are remembered (chosen here; a mirror's copy
/// comes at once or behind a few others).
const REMEMBERED: usize = 8;
/// A copy comes within this; two taps on one path are less than a radio RTT
/// apart (chosen here).
const WITHIN_NS: i64 = 5_000_000;

/// The last packets of one direction.
#[derive(Debug, Default)]
pub(super) struct Recent {
    seen: [(u64, i64); REMEMBERED],
    next: usize,
    /// Copies of packets that cannot be sent twice alike: with payload or an
    /// IP identification.
    sure: bool,
}

impl Recent {
    /// Whether the packet is a copy of one just before. A retransmission has
    /// another IP identification; without one (IPv6, 0), packets without
    /// payload count only where sure copies were seen.
    pub(super) fn is_copy(&mut self, packet: &Packet<'_>, tcp: &TcpHeader) -> bool {
        let mark = fingerprint(packet, tcp);
        let now = packet.at_ns;
        let near = |&(other, at): &(u64, i64)| other == mark && (now - at).abs() <= WITHIN_NS;
        let found = self.seen.iter().any(near);
        let distinct = packet.ip_id.is_some_and(|id| id != 0) || packet.payload_bytes > 0;
        if found && (distinct || self.sure) {
            self.sure |= distinct;
            return true;
        }
        if let Some(slot) = self.seen.get_mut(self.next) {
            *slot = (mark, now);
        }
        self.next = (self.next + 1) % REMEMBERED;
        false
    }
}

/// All that a router between two taps leaves as it is.
fn fingerprint(packet: &Packet<'_>, tcp: &TcpHeader) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    let (value, echo) = tcp.timestamps.unwrap_or((0, 0));
    hasher.write_u64(u64::from(tcp.seq.0) << 32 | u64::from(tcp.ack.0));
    hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
    let id = u64::from(packet.ip_id.unwrap_or(0));
    let bits = u64::from(tcp.flags.0) << 32 | u64::from(tcp.window) << 16 | u64::from(tcp.checksum);
    hasher.write_u64(id << 48 | bits);
    hasher.write_u32(packet.payload_bytes);
    for (left, right) in tcp.sack.as_slice() {
        hasher.write_u64(u64::from(left.0) << 32 | u64::from(right.0));
    }
    hasher.finish() | 1
}
