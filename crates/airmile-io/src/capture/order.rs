//! Packets in order of time: network cards with several queues, and captures that were joined,
//! write them out of order.

use std::collections::{BTreeMap, VecDeque};

use airmile_model::packet::Packet;
use airmile_model::{Problem, Severity};

use crate::file_report::{FileReport, plural};

/// A packet waits until one that is later by this much was read (chosen here: the queues of a
/// network card and the interfaces of one host are read within tens of milliseconds).
pub(super) const WINDOW_NS: i64 = 500_000_000;
/// Maximum number of packets, and of their bytes, that wait (chosen here).
const MAX_PACKETS: usize = 16_384;
const MAX_BYTES: usize = 32 << 20;
/// Maximum capacity of a buffer that is kept (chosen here: more than a packet of Ethernet's
/// usual 1,500 bytes; with [`MAX_PACKETS`] no more than [`MAX_BYTES`]).
const MAX_KEPT: usize = 2_048;
/// Time stamps of two clocks of one host differ by this (chosen here): such packets are put in
/// order without a note.
pub(super) const USUAL_NS: i64 = 1_000_000;

/// A packet without its payload, and the payload.
struct Waiting {
    packet: Packet<'static>,
    payload: Vec<u8>,
    /// Position in the file, from 1.
    nth: u64,
}

impl Waiting {
    /// By time, then by position in the file.
    const fn key(&self) -> (i64, u64) {
        (self.packet.at_ns, self.nth)
    }
}

/// Delivers packets in order of time, as far as they were read within [`WINDOW_NS`].
#[derive(Default)]
pub(super) struct InOrder {
    /// Packets that were no earlier than the one before them here: in most captures, all.
    queue: VecDeque<Waiting>,
    /// The others.
    overtaken: BTreeMap<(i64, u64), Waiting>,
    pushed: u64,
    bytes: usize,
    /// Payload buffers for use again, of at most [`MAX_KEPT`] each.
    unused: Vec<Vec<u8>>,
    newest_ns: Option<i64>,
    delivered_ns: Option<i64>,
    /// Packets that were read after one that is more than [`USUAL_NS`] later.
    pub(super) moved: u64,
    /// Packets that came too late to be put in order.
    pub(super) late: u64,
    /// Maximum time that a packet was late.
    pub(super) late_ns: i64,
}

impl InOrder {
    pub(super) fn push(&mut self, packet: &Packet<'_>, sink: &mut dyn FnMut(&Packet<'_>)) {
        let at_ns = packet.at_ns;
        let newest_ns = self.newest_ns.map_or(at_ns, |newest| newest.max(at_ns));
        self.newest_ns = Some(newest_ns);
        // A datagram that waited in vain for a fragment comes late from a file in order, too.
        let late_ns = if packet.fragmented { 0 } else { newest_ns.saturating_sub(at_ns) };
        self.moved += u64::from(late_ns > USUAL_NS);
        self.late_ns = self.late_ns.max(late_ns);
        if self.delivered_ns.is_some_and(|delivered| at_ns < delivered) {
            self.late += u64::from(late_ns > USUAL_NS);
            sink(packet);
            return;
        }
        let mut payload = self.unused.pop().unwrap_or_default();
        payload.clear();
        payload.extend_from_slice(packet.payload);
        self.bytes += payload.len();
        self.pushed += 1;
        let waiting = Waiting { packet: packet.with_payload(&[]), payload, nth: self.pushed };
        if self.queue.back().is_none_or(|last| last.packet.at_ns <= at_ns) {
            self.queue.push_back(waiting);
        } else {
            self.overtaken.insert(waiting.key(), waiting);
        }
        let until_ns = newest_ns.saturating_sub(WINDOW_NS);
        while self.queue.len() + self.overtaken.len() > MAX_PACKETS
            || self.bytes > MAX_BYTES
            || self.first().is_some_and(|(first_ns, _)| first_ns < until_ns)
        {
            self.deliver(sink);
        }
    }

    /// Key of the packet that is next to be delivered.
    fn first(&self) -> Option<(i64, u64)> {
        let queued = self.queue.front().map(Waiting::key);
        let Some((&overtaken, _)) = self.overtaken.first_key_value() else { return queued };
        Some(queued.map_or(overtaken, |queued| queued.min(overtaken)))
    }

    fn deliver(&mut self, sink: &mut dyn FnMut(&Packet<'_>)) {
        let first = self.first();
        let next = if first == self.queue.front().map(Waiting::key) {
            self.queue.pop_front()
        } else {
            self.overtaken.pop_first().map(|(_, waiting)| waiting)
        };
        let Some(Waiting { packet, payload, .. }) = next else { return };
        self.delivered_ns = Some(packet.at_ns);
        self.bytes -= payload.len();
        sink(&packet.with_payload(&payload));
        if payload.capacity() <= MAX_KEPT {
            self.unused.push(payload);
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&Packet<'_>)) {
        while self.first().is_some() {
            self.deliver(sink);
        }
    }

    /// Reports packets that were not in order.
    pub(super) fn note(&self, report: &mut FileReport) {
        report.late_records = self.late;
        if let Some(what) = self.says() {
            let severity = if self.late > 0 { Severity::Damage } else { Severity::Warning };
            report.problem(Problem::of_file(severity, what));
        }
    }

    /// What to report; `None` if the packets were in order.
    fn says(&self) -> Option<String> {
        let by = self.late_ns as f64 / 1e9;
        match (self.moved, self.late) {
            (0, _) => None,
            (moved, 0) => Some(format!(
                "{moved} packet{} not in order of time, by up to {by:.3} s: put in order",
                plural(moved)
            )),
            (moved, late) => Some(format!(
                "{moved} packet{} not in order of time, by up to {by:.3} s; {late} came too late to \
                 be put in order: join parts with `mergecap`, sort with `reordercap`",
                plural(moved)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{Address, Ecn, Transport};

    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(at_ns: i64, payload: &[u8]) -> Packet<'_> {
        Packet {
            at_ns,
            src: Address::v4([192, 0, 2, 1]),
            dst: Address::v4([192, 0, 2, 2]),
            src_port: 443,
            dst_port: 50_000,
            protocol: 17,
            transport: Transport::Udp,
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 100,
            payload_bytes: 72,
            payload,
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }

    fn delivered(times_ms: &[i64]) -> (Vec<i64>, InOrder) {
        let (mut order, mut out) = (InOrder::default(), Vec::new());
        let mut sink = |packet: &Packet<'_>| {
            assert_eq!(packet.payload, (packet.at_ns / MS).to_le_bytes(), "its own payload");
            out.push(packet.at_ns / MS);
        };
        for ms in times_ms {
            order.push(&packet(ms * MS, &ms.to_le_bytes()), &mut sink);
        }
        order.finish(&mut sink);
        (out, order)
    }

    #[test]
    fn packets_of_several_queues_are_put_in_order() {
        let (out, order) = delivered(&[1, 5, 3, 30, 8, 8, 700, 650, 2_000]);
        assert_eq!(out, [1, 3, 5, 8, 8, 30, 650, 700, 2_000]);
        assert_eq!((order.moved, order.late), (4, 0));
        assert!(order.says().unwrap().contains("put in order"));
        assert_eq!(delivered(&[1, 2, 3]).1.says(), None);
    }

    #[test]
    fn what_is_too_late_is_delivered_and_counted() {
        let (out, order) = delivered(&[1, 2, 5_000, 6_000, 3, 7_000]);
        assert_eq!(out.len(), 6);
        assert_eq!((order.moved, order.late, order.late_ns), (1, 1, 5_997 * MS));
        assert!(order.says().unwrap().contains("reordercap"));
    }

    #[test]
    fn a_datagram_that_waited_in_vain_is_no_disorder() {
        let (mut order, mut n) = (InOrder::default(), 0);
        for (ms, fragmented) in [(1, false), (40_000, false), (2, true), (40_001, false)] {
            let packet = Packet { fragmented, ..packet(ms * MS, &[]) };
            order.push(&packet, &mut |_| n += 1);
        }
        order.finish(&mut |_| n += 1);
        assert_eq!((n, order.says(), order.late), (4, None, 0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut order = InOrder::default();
        let payload = vec![0; 4_096];
        for n in 0..100_000 {
            order.push(&packet(n % 7, &payload), &mut |_| {});
            assert!(order.queue.len() + order.overtaken.len() <= MAX_PACKETS);
            assert!(order.bytes <= MAX_BYTES);
        }
    }

    #[test]
    fn large_payloads_leave_no_large_buffers() {
        let mut order = InOrder::default();
        let large = vec![0; 60_000];
        for n in 0..150_000 {
            // So few large ones that 16,384 packets fit; each buffer would get one in time.
            let len = if n % 50 == 0 { large.len() } else { 100 };
            order.push(&packet(n, &large[..len]), &mut |_| {});
        }
        let waiting = order.queue.iter().chain(order.overtaken.values()).map(|one| &one.payload);
        let room: usize = waiting.chain(&order.unused).map(Vec::capacity).sum();
        // A buffer that grows has at most twice the bytes that it holds.
        assert!(room <= 2 * MAX_BYTES + MAX_PACKETS * MAX_KEPT, "{room} bytes");
        order.finish(&mut |_| {});
        assert!(order.unused.len() <= MAX_PACKETS);
        assert!(order.unused.iter().all(|payload| payload.capacity() <= MAX_KEPT));
    }
}
