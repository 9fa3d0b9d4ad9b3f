//! Duplicate packets in a capture: mirrored ports, or two taps on one path.

use airmile_model::packet::{Packet, TcpFlags, TcpHeader};

use super::mix::mix;

/// Sets of a hash table of the recent packets of a partition's flows (chosen here: 8192
/// packets of all partitions in 5 ms are 1.6 million a second, and 64 KB stay in a core's
/// cache, which a table for each flow does not).
const SETS: usize = 256;
const WAYS: usize = 8;
/// Maximum delay of a copy; two taps on one path are less than a radio RTT apart (chosen
/// here).
const WITHIN_US: u32 = 5_000;

/// Minimum payload that identifies a datagram without an IP identification (chosen here:
/// less may be a repeated keep-alive).
const TELLING_BYTES: usize = 8;

/// The most recent packets of all flows.
#[derive(Debug)]
pub(super) struct RecentPackets {
    /// Upper half of the hash, and the time in microseconds.
    seen: Vec<[(u32, u32); WAYS]>,
    next: Vec<u8>,
}

impl RecentPackets {
    /// Records a packet; returns whether it is a copy of a recent one. A retransmission
    /// has another IP identification; without one (IPv6, 0), bare ACKs count only after
    /// certain copies were seen.
    ///
    /// `stream` identifies the direction of a flow. `sure` is kept with it: whether
    /// copies were seen of packets that cannot be sent twice identically, with payload or
    /// an IP identification. A `fresh` packet extends the stream, so it has no original:
    /// it is recorded without a lookup, as the table is seldom in the cache.
    #[inline]
    pub(super) fn is_copy(
        &mut self,
        stream: u64,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        fresh: bool,
        sure: &mut bool,
    ) -> bool {
        if !self.note(fingerprint(stream, packet, tcp), packet.at_ns, fresh) {
            return false;
        }
        let distinct = packet.ip_id.is_some_and(|id| id != 0)
            || packet.payload_bytes > 0
            || tcp.flags.has(TcpFlags::SYN);
        *sure |= distinct;
        *sure
    }

    /// Records a packet that has no original.
    #[inline]
    pub(super) fn record(&mut self, stream: u64, packet: &Packet<'_>, tcp: &TcpHeader) {
        self.note(fingerprint(stream, packet, tcp), packet.at_ns, true);
    }

    /// The same for UDP, by IP identification and the first bytes of payload.
    pub(super) fn is_datagram_copy(&mut self, stream: u64, packet: &Packet<'_>) -> bool {
        let id = packet.ip_id.unwrap_or(0);
        let words = packet
            .payload
            .chunks(8)
            .take(4)
            .map(|word| word.iter().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte)));
        let payload = words.fold(0, mix);
        let sizes = u64::from(id) << 32 | u64::from(packet.payload_bytes);
        let mark = mix(mix(payload, sizes), stream) | 1 << 32;
        // A datagram without an identification may have been sent twice.
        let says = id != 0 || packet.payload.len() >= TELLING_BYTES;
        says && self.note(mark, packet.at_ns, false)
    }

    /// Records a mark; returns whether it was already there.
    #[inline]
    fn note(&mut self, mark: u64, at_ns: i64, fresh: bool) -> bool {
        let now_us = at_ns.div_euclid(1_000) as u32;
        let at = mark as usize % SETS;
        let (Some(set), Some(next)) = (self.seen.get_mut(at), self.next.get_mut(at)) else {
            return false;
        };
        let high = (mark >> 32) as u32;
        if !fresh && holds(set, high, now_us) {
            return true;
        }
        set[usize::from(*next) % WAYS] = (high, now_us);
        *next = next.wrapping_add(1);
        false
    }
}

fn holds(set: &[(u32, u32); WAYS], high: u32, now_us: u32) -> bool {
    let near = |at_us: u32| now_us.wrapping_sub(at_us).cast_signed().unsigned_abs() <= WITHIN_US;
    set.iter().any(|&(other, at_us)| other == high && near(at_us))
}

impl Default for RecentPackets {
    fn default() -> Self {
        Self { seen: vec![[(0, 0); WAYS]; SETS], next: vec![0; SETS] }
    }
}

/// Hashes all fields that a router between two taps leaves unchanged.
#[inline]
fn fingerprint(stream: u64, packet: &Packet<'_>, tcp: &TcpHeader) -> u64 {
    let (value, echo) = tcp.timestamps.unwrap_or((0, 0));
    let id = u64::from(packet.ip_id.unwrap_or(0));
    let bits = u64::from(tcp.flags.0) << 32 | u64::from(tcp.window) << 16 | u64::from(tcp.checksum);
    let numbers = mix(pair(tcp.seq.0, tcp.ack.0), pair(value, echo));
    let rest = mix(id << 48 | bits, stream << 24 ^ u64::from(packet.payload_bytes));
    let mut mark = mix(numbers, rest);
    for (left, right) in tcp.sack.as_slice() {
        mark = mix(mark, pair(left.0, right.0));
    }
    mark | 1 << 32
}

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}
