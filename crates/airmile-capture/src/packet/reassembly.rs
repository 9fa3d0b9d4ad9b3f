//! Reassembles datagrams from fragments (RFC 791, 3.2; RFC 8200, 4.5).
//!
//! A capture of headers alone is enough: the transport header comes from the first
//! fragment, the datagram's length from all of them. A datagram is returned when it is
//! complete, with the time of the fragment that completed it.

use std::collections::HashMap;

use airmile_model::packet::{Address, Packet, Transport};

use super::capture::Frame;
use super::dissect::{Unread, dissect_with, empty, ether_type, network_layer};
use super::ip::{self, Extension, FragmentOf, MAX_EXTENSIONS, MAX_TUNNELS, length_u32};
use super::tunnel;

/// How long a datagram waits for its fragments: Linux's value (`ipfrag_time`). RFC 8200,
/// 4.5 asks for 60 s, RFC 791 suggests 15 s.
const WAIT_NS: i64 = 30_000_000_000;

/// Maximum number of waiting datagrams, and of bytes kept for them; the one that has
/// waited longest is evicted (chosen here; Linux has 4 MB).
const MAX_WAITING: usize = 1024;
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Memory overhead of a fragment (chosen here, about its true size).
const FRAGMENT_BYTES: usize = 64;

/// Maximum length of a datagram's data: the length field has 16 bits.
const MAX_DATAGRAM_BYTES: u32 = 65_535;

/// Counts of fragments and datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FragmentCounts {
    /// Fragments, of all positions.
    pub fragments: u64,
    /// Reassembled datagrams.
    pub datagrams: u64,
    /// Datagrams with a first fragment of which another one is missing; returned up to
    /// the first gap.
    pub incomplete: u64,
    /// Fragments that overlap an earlier one; the earlier one counts.
    pub overlapping: u64,
    /// Fragments that fit no datagram: without a first fragment, or beyond the end or the
    /// maximum length of a datagram.
    pub left_out: u64,
    /// Bytes of these, with their IP headers.
    pub left_out_bytes: u64,
}

/// The key that a datagram's fragments have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    src: Address,
    dst: Address,
    protocol: u8,
    id: u32,
    tunnelled: bool,
}

/// A part of a datagram, without overlaps.
#[derive(Debug)]
struct Fragment {
    from: u32,
    to: u32,
    /// The captured part.
    data: Vec<u8>,
}

#[derive(Debug)]
struct Datagram {
    /// Addresses and the like, the same in any fragment.
    packet: Packet<'static>,
    depth: u8,
    /// In order of offset.
    parts: Vec<Fragment>,
    /// Length of the whole data, once the last fragment is known.
    total_bytes: Option<u32>,
    ip_bytes: u32,
    fragments: u64,
    since_ns: i64,
}

/// Returns the packets of frames, with datagrams reassembled from fragments.
///
/// Call [`push`](Self::push) with each frame in the capture's order, and
/// [`finish`](Self::finish) at its end. Memory is bounded; frames without
/// fragments cost what [`dissect`](super::dissect) does.
#[derive(Debug, Default)]
pub struct Dissector {
    waiting: HashMap<Key, Datagram>,
    kept_bytes: usize,
    /// When the oldest waiting datagram expires.
    expiry_ns: Option<i64>,
    counts: FragmentCounts,
}

/// Takes packets, or the reason why a frame holds none.
type Taker<'a> = &'a mut dyn FnMut(Result<&Packet<'_>, Unread>);

impl Dissector {
    /// Without fragments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts so far.
    #[must_use]
    pub const fn counts(&self) -> FragmentCounts {
        self.counts
    }

    /// Takes a frame; returns its packet, a datagram that it completes, or expired
    /// datagrams.
    #[inline]
    pub fn push(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Result<&Packet<'_>, Unread>)) {
        if self.expiry_ns.is_some_and(|expiry_ns| frame.at_ns > expiry_ns) {
            self.expire(frame.at_ns, sink);
        }
        dissect_with(frame, |read| match read {
            Ok(packet) if !packet.fragmented && packet.transport != Transport::Fragment => {
                sink(Ok(packet));
            }
            Err(unread @ (Unread::NotIp(_) | Unread::Link(_))) => sink(Err(unread)),
            Ok(_) | Err(_) => self.fragment(frame, sink),
        });
    }

    /// Ends the capture: waiting datagrams are returned as far as they go.
    pub fn finish(&mut self, sink: &mut impl FnMut(Result<&Packet<'_>, Unread>)) {
        self.give_up(sink, |_| true);
    }

    /// Takes a frame with a fragment, or an unreadable one.
    fn fragment(&mut self, frame: &Frame<'_>, sink: Taker<'_>) {
        let read = network_layer(frame.link, frame.data).and_then(|(protocol, at)| {
            if !matches!(protocol, ether_type::IPV4 | ether_type::IPV6) {
                return Err(Unread::NotIp(protocol));
            }
            let data = frame.data.get(at..).unwrap_or_default();
            let wire_bytes = frame.wire_bytes.saturating_sub(length_u32(at));
            self.network(data, wire_bytes, empty(frame), 0, sink)
        });
        if let Err(unread) = read {
            sink(Err(unread));
        }
        while self.waiting.len() > MAX_WAITING || self.kept_bytes > MAX_KEPT_BYTES {
            let order = |(key, datagram): &(&Key, &Datagram)| (datagram.since_ns, key.src, key.id);
            let Some(key) = self.waiting.iter().min_by_key(order).map(|(key, _)| *key) else {
                break;
            };
            self.end_incomplete(&key, sink);
        }
    }

    /// An IP packet within `depth` tunnels.
    fn network(
        &mut self,
        data: &[u8],
        wire_bytes: u32,
        mut packet: Packet<'static>,
        depth: u8,
        sink: Taker<'_>,
    ) -> Result<(), Unread> {
        let network = ip::network(data, wire_bytes)?;
        network.describe(&mut packet);
        let Some(fragment) = network.fragment else {
            let (above, above_bytes) = network.behind(data, network.header_bytes());
            return self.above(above, above_bytes, packet, depth, sink);
        };
        packet.protocol = fragment.protocol;
        packet.fragmented = true;
        let (data, bytes) = network.behind(data, fragment.at);
        let Some(whole) = self.insert(fragment, data, bytes, packet, depth) else { return Ok(()) };
        self.counts.datagrams += 1;
        self.datagram(whole, sink)
    }

    /// Reads the layers above IP, through tunnels.
    fn above(
        &mut self,
        data: &[u8],
        bytes: u32,
        template: Packet<'static>,
        depth: u8,
        sink: Taker<'_>,
    ) -> Result<(), Unread> {
        let mut packet: Packet<'_> = template;
        (packet.payload, packet.payload_bytes) = (data, bytes);
        ip::transport(data, bytes, &mut packet)?;
        let inner = tunnel::inner(&packet).filter(|_| depth < MAX_TUNNELS);
        let Some(inner) = inner else {
            sink(Ok(&packet));
            return Ok(());
        };
        let skipped = length_u32(packet.payload.len() - inner.len());
        let wire_bytes = packet.payload_bytes.saturating_sub(skipped);
        self.network(inner, wire_bytes, Packet { tunnelled: true, ..template }, depth + 1, sink)
    }

    /// Keeps a fragment; returns the datagram that it completes.
    fn insert(
        &mut self,
        fragment: FragmentOf,
        data: &[u8],
        bytes: u32,
        packet: Packet<'static>,
        depth: u8,
    ) -> Option<Datagram> {
        self.counts.fragments += 1;
        let from = fragment.offset_bytes;
        let to = from.saturating_add(bytes);
        // All but the last one have a multiple of eight bytes.
        let sound =
            to <= MAX_DATAGRAM_BYTES && (!fragment.more || bytes.is_multiple_of(8)) && bytes > 0;
        if !sound {
            self.leave_out(1, packet.ip_bytes);
            return None;
        }
        let Packet { src, dst, tunnelled, .. } = packet;
        let key = Key { src, dst, protocol: fragment.protocol, id: fragment.id, tunnelled };
        let datagram = self.waiting.entry(key).or_insert_with(|| Datagram {
            packet,
            depth,
            parts: Vec::new(),
            total_bytes: None,
            ip_bytes: 0,
            fragments: 0,
            since_ns: packet.at_ns,
        });
        datagram.packet.at_ns = packet.at_ns;
        datagram.ip_bytes = datagram.ip_bytes.saturating_add(packet.ip_bytes);
        datagram.fragments += 1;
        let expiry_ns = datagram.since_ns.saturating_add(WAIT_NS);
        self.expiry_ns = Some(self.expiry_ns.map_or(expiry_ns, |first| first.min(expiry_ns)));
        if !fragment.more {
            datagram.total_bytes.get_or_insert(to);
        }
        let (added, overlaps) = datagram.add(from, to, data);
        self.kept_bytes += added;
        self.counts.overlapping += u64::from(overlaps);
        if datagram.is_complete() {
            return self.take(&key);
        }
        None
    }

    fn take(&mut self, key: &Key) -> Option<Datagram> {
        let datagram = self.waiting.remove(key)?;
        self.kept_bytes = self.kept_bytes.saturating_sub(datagram.kept_bytes());
        if self.waiting.is_empty() {
            self.expiry_ns = None;
        }
        Some(datagram)
    }

    fn leave_out(&mut self, fragments: u64, bytes: u32) {
        self.counts.left_out += fragments;
        self.counts.left_out_bytes += u64::from(bytes);
    }

    /// Returns a datagram, up to its first gap.
    fn datagram(&mut self, datagram: Datagram, sink: Taker<'_>) -> Result<(), Unread> {
        let (bytes, data) = datagram.beginning();
        let mut packet = Packet { ip_bytes: datagram.ip_bytes, ..datagram.packet };
        let (mut data, mut bytes) = (&data[..], bytes);
        // Destination options may be included (RFC 8200, 4.5).
        for _ in 0..MAX_EXTENSIONS {
            let Some(extension) = Extension::of(packet.protocol) else { break };
            let &[next, length, ..] =
                data.first_chunk::<8>().ok_or(Unread::Cut("IPv6 extension"))?;
            packet.protocol = next;
            let skipped = extension.bytes(length);
            data = data.get(skipped..).unwrap_or_default();
            bytes = bytes.saturating_sub(length_u32(skipped));
        }
        self.above(data, bytes, packet, datagram.depth, sink)
    }

    /// Evicts datagrams that have expired or exceed the limits.
    #[cold]
    fn expire(&mut self, now_ns: i64, sink: Taker<'_>) {
        self.give_up(sink, |since_ns| now_ns.saturating_sub(since_ns) > WAIT_NS);
    }

    /// Evicts the datagrams that wait since a time that is `over`, in that order.
    fn give_up(&mut self, sink: Taker<'_>, over: impl Fn(i64) -> bool) {
        let mut keys: Vec<(i64, Key)> =
            self.waiting.iter().map(|(key, datagram)| (datagram.since_ns, *key)).collect();
        keys.sort_unstable_by_key(|&(since_ns, key)| (since_ns, key.src, key.dst, key.id));
        for (_, key) in keys.iter().take_while(|(since_ns, _)| over(*since_ns)) {
            self.end_incomplete(key, sink);
        }
        let first = self.waiting.values().map(|datagram| datagram.since_ns).min();
        self.expiry_ns = first.map(|since_ns| since_ns.saturating_add(WAIT_NS));
    }

    fn end_incomplete(&mut self, key: &Key, sink: Taker<'_>) {
        let Some(datagram) = self.take(key) else { return };
        if datagram.parts.first().is_none_or(|part| part.from > 0) {
            self.leave_out(datagram.fragments, datagram.ip_bytes);
            return;
        }
        self.counts.incomplete += 1;
        if let Err(unread) = self.datagram(datagram, sink) {
            sink(Err(unread));
        }
    }
}

impl Datagram {
    /// Adds the data of a range where there is none yet; returns the growth of memory,
    /// and whether data was there.
    fn add(&mut self, from: u32, to: u32, data: &[u8]) -> (usize, bool) {
        let before = self.kept_bytes();
        let mut overlaps = false;
        let mut at = from;
        let mut index = self.parts.partition_point(|part| part.to <= from);
        while at < to {
            let next = self.parts.get(index).map_or(to, |part| part.from.clamp(at, to));
            if next > at {
                let within = |place: u32| data.len().min((place - from) as usize);
                let data = data.get(within(at)..within(next)).unwrap_or_default().to_vec();
                self.parts.insert(index, Fragment { from: at, to: next, data });
                index += 1;
            }
            at = next;
            if let Some(part) = self.parts.get(index)
                && part.from < to
            {
                overlaps = true;
                at = at.max(part.to);
                index += 1;
            }
        }
        (self.kept_bytes().saturating_sub(before), overlaps)
    }

    fn kept_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.data.len() + FRAGMENT_BYTES).sum()
    }

    fn is_complete(&self) -> bool {
        self.total_bytes.is_some_and(|total| self.reached() >= total)
    }

    /// The end of the data before the first gap.
    fn reached(&self) -> u32 {
        let mut reached = 0;
        for part in &self.parts {
            if part.from > reached {
                break;
            }
            reached = part.to;
        }
        reached
    }

    /// Bytes from the start to the first gap or the end, and the captured part of them.
    fn beginning(&self) -> (u32, Vec<u8>) {
        let reached = self.reached().min(self.total_bytes.unwrap_or(u32::MAX));
        let mut data = Vec::new();
        for part in &self.parts {
            if part.from as usize != data.len() || part.from >= reached {
                break;
            }
            data.extend_from_slice(&part.data);
        }
        data.truncate(reached as usize);
        (reached, data)
    }
}

#[cfg(test)]
mod tests;
