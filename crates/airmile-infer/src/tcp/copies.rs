//! Copies that the capture made: mirrored ports, two taps on one path.

use std::hash::{BuildHasher, Hasher};

use airmile_model::packet::{Packet, TcpFlags, TcpHeader};
use foldhash::fast::FixedState;

/// Packets of a direction that are remembered: so many sets by their hash, of so
/// many each (chosen here; a mirror's copy may come behind a burst).
const SETS: usize = 16;
const WAYS: usize = 8;
/// A copy comes within this; two taps on one path are less than a radio RTT
/// apart (chosen here).
const WITHIN_US: u32 = 5_000;

/// The last packets of one direction.
#[derive(Debug)]
pub(super) struct Recent {
    /// Upper half of the hash, and the time in microseconds.
    seen: [[(u32, u32); WAYS]; SETS],
    next: [u8; SETS],
    /// Copies of packets that cannot be sent twice alike: with payload or an
    /// IP identification.
    sure: bool,
}

impl Recent {
    /// Whether the packet is a copy of one just before. A retransmission has
    /// another IP identification; without one (IPv6, 0), bare ACKs
    /// count only where sure copies were seen.
    pub(super) fn is_copy(&mut self, packet: &Packet<'_>, tcp: &TcpHeader) -> bool {
        let mark = fingerprint(packet, tcp);
        let now_us = packet.at_ns.div_euclid(1_000) as u32;
        let at = mark as usize % SETS;
        let (Some(set), Some(next)) = (self.seen.get_mut(at), self.next.get_mut(at)) else {
            return false;
        };
        let high = (mark >> 32) as u32;
        let near =
            |at_us: u32| now_us.wrapping_sub(at_us).cast_signed().unsigned_abs() <= WITHIN_US;
        if !set.iter().any(|&(other, at_us)| other == high && near(at_us)) {
            set[usize::from(*next) % WAYS] = (high, now_us);
            *next = next.wrapping_add(1);
            return false;
        }
        let distinct = packet.ip_id.is_some_and(|id| id != 0)
            || packet.payload_bytes > 0
            || tcp.flags.has(TcpFlags::SYN);
        self.sure |= distinct;
        self.sure
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self { seen: [[(0, 0); WAYS]; SETS], next: [0; SETS], sure: false }
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
    hasher.finish() | 1 << 32
}
