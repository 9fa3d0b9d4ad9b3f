//! When the same data passed at two captures: bytes of a stream, and datagrams.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};

use airmile_model::packet::{Packet, Transport};

use super::path::Passage;
use crate::clocks::PointPair;

/// A connection's stream is marked at most once per this many bytes, or per [`MARK_NS`] (chosen
/// here).
const MARK_BYTES: i64 = 4_096;
const MARK_NS: i64 = 50_000_000;
/// No packet has more payload, with any offload.
const MOST_AT_ONCE: i64 = 65_536;

/// When the bytes up to an offset had first passed.
///
/// Marks are at multiples of `MARK_BYTES`, so that they are the same however an offload cuts
/// segments, and at the ends of packets that arrive after `MARK_NS`.
#[derive(Debug, Default)]
pub struct Marks {
    /// Offsets, nanoseconds, and how often the byte before passed again.
    at: Vec<(i64, i64, u32)>,
    again_bytes: u64,
}

impl Marks {
    /// Adds the end of a packet, if it is after the last mark.
    pub fn add(&mut self, offset: i64, at_ns: i64) {
        let (last, since) = self.at.last().map_or((0, i64::MIN), |(last, at, _)| (*last, *at));
        // A gap in the capture is no packet: its content passed at another time.
        let crossed = (last.div_euclid(MARK_BYTES) + 1..=offset.div_euclid(MARK_BYTES))
            .map(|n| n * MARK_BYTES)
            .filter(|mark| offset - mark < MOST_AT_ONCE);
        self.at.extend(crossed.map(|mark| (mark, at_ns, 0)));
        let end = self.at.last().map_or(0, |(last, ..)| *last);
        if offset > end && at_ns.saturating_sub(since) >= MARK_NS {
            self.at.push((offset, at_ns, 0));
        }
    }

    /// Takes bytes that had passed before.
    pub fn again(&mut self, from: i64, to: i64) {
        self.again_bytes = self.again_bytes.saturating_add((to - from).max(0).unsigned_abs());
        let first = self.at.partition_point(|(offset, ..)| *offset <= from);
        let marks = self.at.iter_mut().skip(first).take_while(|(offset, ..)| *offset <= to);
        marks.for_each(|(.., times)| *times = times.saturating_add(1));
    }

    /// Bytes that passed again.
    #[must_use]
    pub const fn again_bytes(&self) -> u64 {
        self.again_bytes
    }

    /// Whether no byte passed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The same offsets at another place. Which copy arrived is unknown of bytes that passed more often at
    /// one of them.
    pub fn pairs<'a>(
        &'a self,
        other: &'a Self,
        outward: bool,
    ) -> impl Iterator<Item = PointPair> + 'a {
        self.at.iter().filter_map(move |(offset, reference_ns, times)| {
            let at = other.at.binary_search_by_key(offset, |mark| mark.0).ok()?;
            let (_, other_ns, _) = *other.at.get(at).filter(|mark| mark.2 == *times)?;
            Some(PointPair { reference_ns: *reference_ns, other_ns, outward })
        })
    }
}

/// Maximum number of remembered datagrams; the digest of their first bytes is unique, since they
/// are encrypted (chosen here).
const MAX_DATAGRAMS: usize = 2_000_000;
const DATAGRAM_HEAD_BYTES: usize = 48;
/// The smallest packet that QUIC sends (RFC 9000, 10.3): an acknowledgement is hardly larger.
const LEAST_QUIC_BYTES: usize = 21;
/// One in this many of a client's datagrams is remembered, by its digest (chosen here: enough for the
/// offset of a clock).
const CLIENTS_EVERY: u64 = 4;

/// Datagrams of QUIC are not fragmented, so that none is larger (RFC 9000, 14; Ethernet's MTU): larger
/// ones were joined by an offload.
const MAX_DATAGRAM_BYTES: u32 = 1_500;

/// A datagram seen again within this time is the capture's own copy (chosen here).
const COPY_NS: i64 = 50_000_000;

/// The first and last time of datagrams, by a digest.
#[derive(Debug, Default)]
struct PassedAt(HashMap<u64, (i64, i64)>);

impl PassedAt {
    fn note(&mut self, digest: u64, at_ns: i64) {
        let (_, last_ns) = self.0.entry(digest).or_insert((at_ns, at_ns));
        *last_ns = at_ns;
    }

    /// The times of those that passed here once, and once at another place. What is repeated later is a
    /// query or a keep-alive, and not encrypted.
    fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (i64, i64)> + 'a {
        let once = |(first_ns, last_ns): (i64, i64)| {
            (last_ns.saturating_sub(first_ns) < COPY_NS).then_some(first_ns)
        };
        self.0
            .iter()
            .filter_map(move |(digest, own)| Some((once(*own)?, once(*other.0.get(digest)?)?)))
    }
}

/// When datagrams passed, by a digest of their first bytes: those of QUIC are encrypted, and no two
/// are equal (RFC 9001, 5).
#[derive(Debug, Default)]
pub struct Datagrams {
    at_ns: PassedAt,
    /// Some of those from the client.
    from_client_ns: PassedAt,
    /// Some are joined or not remembered: what is missing elsewhere may have passed.
    incomplete: bool,
}

impl Datagrams {
    /// Records a datagram.
    pub fn note(&mut self, packet: &Packet<'_>) {
        if !matches!(packet.transport, Transport::Udp) || packet.src_port == packet.dst_port {
            return;
        }
        let is_down = packet.src_port < packet.dst_port;
        let least = if is_down { DATAGRAM_HEAD_BYTES } else { LEAST_QUIC_BYTES };
        let captured = packet.payload.len();
        let is_cut = captured < packet.payload_bytes as usize && captured < DATAGRAM_HEAD_BYTES;
        if captured < least || is_cut {
            return;
        }
        let head = packet.payload.get(..DATAGRAM_HEAD_BYTES).unwrap_or(packet.payload);
        self.incomplete |= is_down && packet.payload_bytes > MAX_DATAGRAM_BYTES;
        let mut hasher = std::hash::DefaultHasher::new();
        // The client's end may be translated.
        let server_port = packet.src_port.min(packet.dst_port);
        (head, packet.payload_bytes, server_port).hash(&mut hasher);
        let digest = hasher.finish();
        let known = if is_down { &mut self.at_ns } else { &mut self.from_client_ns };
        if known.0.len() >= MAX_DATAGRAMS {
            self.incomplete |= is_down;
        } else if is_down || digest.is_multiple_of(CLIENTS_EVERY) {
            known.note(digest, packet.at_ns);
        }
    }

    /// Those of both directions that also passed at a capture nearer to the server.
    pub fn pairs<'a>(&'a self, server: &'a Self) -> impl Iterator<Item = PointPair> + 'a {
        let down = self.passages(server).map(|one| PointPair {
            reference_ns: one.arrived_ns,
            other_ns: one.sent_ns,
            outward: false,
        });
        let up = self.from_client_ns.pairs(&server.from_client_ns);
        down.chain(up.map(|(reference_ns, other_ns)| PointPair {
            reference_ns,
            other_ns,
            outward: true,
        }))
    }

    /// Those that also passed at the server.
    pub fn passages<'a>(&'a self, server: &'a Self) -> impl Iterator<Item = Passage> + 'a {
        let pairs = self.at_ns.pairs(&server.at_ns);
        pairs.map(|(arrived_ns, sent_ns)| Passage { sent_ns, arrived_ns })
    }

    /// When the server sent those that never arrived; none if either side is incomplete.
    pub fn lost<'a>(&'a self, server: &'a Self) -> impl Iterator<Item = i64> + 'a {
        let incomplete = self.incomplete || server.incomplete;
        let lost = move |digest| !incomplete && !self.at_ns.0.contains_key(digest);
        let sent = server.at_ns.0.iter().filter(move |(digest, _)| lost(digest));
        sent.map(|(_, (first_ns, _))| *first_ns)
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::Address;

    use super::*;

    /// A datagram of the numbered content, on the ports of a client's or its server's.
    fn note(
        datagrams: &mut Datagrams,
        at_ns: i64,
        (from_client, content): (bool, u8),
        bytes: usize,
    ) {
        let payload = vec![content; bytes];
        let ends = [(Address::v4([10, 0, 0, 1]), 50_000), (Address::v4([192, 0, 2, 1]), 443)];
        let ends = if from_client { ends } else { [ends[1], ends[0]] };
        datagrams.note(&Packet::udp(at_ns, ends, bytes as u32, &payload));
    }

    /// Some of a client's datagrams are remembered, the same at both places; those too short to be
    /// encrypted are not.
    #[test]
    fn datagrams_of_both_directions_are_paired() {
        let [mut phone, mut server] = [Datagrams::default(), Datagrams::default()];
        for content in 0..200 {
            let at_ns = i64::from(content) * 1_000;
            note(&mut server, at_ns, (false, content), 1_200);
            note(&mut phone, at_ns + 30, (false, content), 1_200);
            note(&mut phone, at_ns + 40, (true, content), 40);
            note(&mut server, at_ns + 70, (true, content), 40);
        }
        // Too short to be encrypted, and repeated.
        for at_ns in [0, 1_000_000_000] {
            note(&mut phone, at_ns, (true, 201), 20);
            note(&mut server, at_ns, (true, 201), 20);
            note(&mut phone, at_ns, (false, 202), 1_200);
            note(&mut server, at_ns, (false, 202), 1_200);
        }
        let pairs: Vec<PointPair> = phone.pairs(&server).collect();
        let of = |outward: bool| pairs.iter().filter(move |pair| pair.outward == outward);
        assert!(of(false).all(|pair| pair.reference_ns == pair.other_ns + 30));
        assert!(of(true).all(|pair| pair.other_ns == pair.reference_ns + 30));
        assert_eq!(of(false).count(), 200);
        let from_client = of(true).count();
        assert!((20..100).contains(&from_client), "{from_client}");
    }

    /// The first copy was lost, or both arrived.
    #[test]
    fn bytes_that_were_sent_again_show_no_delay_unless_both_copies_arrive() {
        let check = |arrives_again: bool, expected: &[i64]| {
            let [mut server, mut phone] = [Marks::default(), Marks::default()];
            for n in 1..=4 {
                server.add(n * MARK_BYTES, n);
                phone.add(n * MARK_BYTES, 100 * n);
            }
            server.again(MARK_BYTES, 3 * MARK_BYTES);
            if arrives_again {
                phone.again(MARK_BYTES, 3 * MARK_BYTES);
            }
            let pairs = phone.pairs(&server, false).map(|pair| pair.other_ns);
            assert_eq!(pairs.collect::<Vec<_>>(), expected);
            assert_eq!(server.again_bytes(), 8_192);
        };
        check(true, &[1, 2, 3, 4]);
        check(false, &[1, 4]);
    }

    /// Marks are the same, however an offload joins segments.
    #[test]
    fn marks_over_joined_segments() {
        let check = |ends: &[i64], expected: &[(i64, i64)]| {
            let mut marks = Marks::default();
            ends.iter().enumerate().for_each(|(i, end)| marks.add(*end, i as i64));
            let at = marks.at.iter().map(|(offset, at_ns, _)| (*offset, *at_ns));
            assert_eq!(at.collect::<Vec<_>>(), expected);
        };
        check(
            &[1_000, 9_000, 10_000, 17_000],
            &[(1_000, 0), (4_096, 1), (8_192, 1), (12_288, 3), (16_384, 3)],
        );
        check(&[9_000], &[(4_096, 0), (8_192, 0), (9_000, 0)]);
        // After a hole only what one packet can hold is marked: its last 64 KiB.
        let marks: Vec<(i64, i64)> = (229..=244).map(|n| (n * 4_096, 0)).collect();
        check(&[1_000_000], &[marks, vec![(1_000_000, 0)]].concat());
    }
}
