//! Processes packets in rounds: some hundred are routed, then analysed. While many flows are
//! active, the state of those in a part of a round is prefetched: flows are scattered over
//! memory, and the accesses overlap. A study in one thread collects packets in rounds only then;
//! one in several threads always does.

use airmile_model::flow::PacketRow;
use airmile_model::packet::Packet;
use airmile_wire::tcp::{
    Change, Collector, Finding, PacketRouter, PacketShard, Quality, Route, StudyOptions,
    StudySummary,
};

use super::count_read;
use airmile_io::FileReport;
use airmile_io::capture::{CaptureReading, read_captures};
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// Number of packets whose flows are prefetched together (chosen here by measuring: a
/// core has some ten loads in flight, and its first-level cache holds their data).
const AHEAD: usize = 16;
/// Packets per round in one thread (chosen here: 50 KB of them).
const ROUND_PACKETS: usize = 256;
/// With more active flows than this, whose state of some 2 KB no longer fits a third-level cache,
/// one thread processes packets in rounds and prefetches that state (chosen here by measuring). Each of
/// n shards prefetches above an n-th of it (chosen here: they share the cache).
pub(super) const MANY_FLOWS: usize = 8_192;

/// A packet on its way to a shard.
struct Carried {
    /// Its position among packets and changes of the round.
    step: u32,
    route: Route,
    /// Its payload in the round's bytes.
    payload: (usize, usize),
    packet: Packet<'static>,
}

/// The part of a round for one shard.
#[derive(Default)]
pub(super) struct Round {
    packets: Vec<Carried>,
    /// Each with the number of `packets` before it, and its step.
    changes: Vec<(usize, u32, Change)>,
    bytes: Vec<u8>,
}

impl Round {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.changes.clear();
        self.bytes.clear();
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.changes.is_empty()
    }

    /// Adds a beginning or end after the packets so far.
    pub(super) fn change(&mut self, step: u32, change: &Change) {
        self.changes.push((self.packets.len(), step, *change));
    }

    /// Adds a packet.
    pub(super) fn packet(&mut self, step: u32, route: Route, packet: &Packet<'_>) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(packet.payload);
        let payload = (from, self.bytes.len());
        self.packets.push(Carried { step, route, payload, packet: packet.with_payload(&[]) });
    }

    /// Passes everything to a shard; its findings go to `found` with their steps. Flows are prefetched
    /// while the shard has more than `many_flows`.
    pub(super) fn analyse(
        &self,
        shard: &mut PacketShard,
        many_flows: usize,
        found: &mut dyn FnMut(u32, Finding),
    ) {
        let mut changes = self.changes.iter().peekable();
        for (part, packets) in self.packets.chunks(AHEAD).enumerate() {
            if shard.active_flows() > many_flows {
                shard.load(packets.iter().map(|carried| carried.route));
            }
            for (n, carried) in packets.iter().enumerate() {
                let at = part * AHEAD + n;
                while let Some((_, step, change)) = changes.next_if(|change| change.0 <= at) {
                    shard.change(change);
                    shard.drain().for_each(|finding| found(*step, finding));
                }
                let (from, to) = carried.payload;
                let payload = self.bytes.get(from..to).unwrap_or_default();
                if payload.is_empty() {
                    // For captures of headers alone: no packet is copied for its payload.
                    shard.push(carried.route, &carried.packet);
                } else {
                    shard.push(carried.route, &carried.packet.with_payload(payload));
                }
                if shard.has_found() {
                    shard.drain().for_each(|finding| found(carried.step, finding));
                }
            }
        }
        for (_, step, change) in changes {
            shard.change(change);
            shard.drain().for_each(|finding| found(*step, finding));
        }
    }
}

/// Router, shard and collector in sequence: a study in one thread, or of one part of the
/// users.
pub(super) struct Lone {
    router: PacketRouter,
    shard: PacketShard,
    collector: Collector,
    round: Round,
    changes: Vec<Change>,
    /// [`MANY_FLOWS`].
    many_flows: usize,
}

impl Lone {
    pub(super) fn new(options: &StudyOptions) -> Self {
        Self {
            router: PacketRouter::new(options.clone()),
            shard: PacketShard::new(options.clone()),
            collector: Collector::new(options.tables),
            round: Round::default(),
            changes: Vec::new(),
            many_flows: MANY_FLOWS,
        }
    }

    /// Takes the next packet of a capture.
    pub(super) fn push(&mut self, packet: &Packet<'_>, sink: &mut dyn FnMut(PacketRow)) {
        let route = self.router.push(packet, &mut self.changes);
        self.routed(packet, route, sink);
    }

    /// As [`PacketRouter::place`].
    pub(super) fn place(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        clock_ns: i64,
        sink: &mut dyn FnMut(PacketRow),
    ) {
        let route = self.router.place(packet, number, clock_ns, &mut self.changes);
        self.routed(packet, route, sink);
    }

    /// As [`PacketRouter::advance`].
    pub(super) fn advance(&mut self, now_ns: i64) {
        self.router.advance(now_ns, &mut self.changes);
    }

    #[inline]
    fn routed(
        &mut self,
        packet: &Packet<'_>,
        route: Option<Route>,
        sink: &mut dyn FnMut(PacketRow),
    ) {
        if self.shard.active_flows() > self.many_flows {
            return self.in_rounds(packet, route, sink);
        }
        if !self.changes.is_empty() || !self.round.is_empty() {
            self.catch_up(sink);
        }
        if let Some(route) = route {
            self.shard.push(route, packet);
        }
        if self.shard.has_found() {
            self.shard.drain().for_each(|finding| self.collector.push(finding, sink));
        }
    }

    /// Adds a packet to the round, and analyses a full one.
    fn in_rounds(
        &mut self,
        packet: &Packet<'_>,
        route: Option<Route>,
        sink: &mut dyn FnMut(PacketRow),
    ) {
        self.changes.drain(..).for_each(|change| self.round.change(0, &change));
        if let Some(route) = route {
            self.round.packet(0, route, packet);
        }
        // A capture without flows has changes alone.
        if self.round.packets.len() + self.round.changes.len() >= ROUND_PACKETS {
            self.settle(sink);
        }
    }

    /// Analyses what waits in a round, and then the changes since.
    fn catch_up(&mut self, sink: &mut dyn FnMut(PacketRow)) {
        if !self.round.is_empty() {
            self.settle(sink);
        }
        let Self { shard, changes, .. } = self;
        changes.drain(..).for_each(|change| shard.change(&change));
    }

    fn settle(&mut self, sink: &mut dyn FnMut(PacketRow)) {
        let Self { shard, collector, round, many_flows, .. } = self;
        round.analyse(shard, *many_flows, &mut |_, finding| collector.push(finding, sink));
        round.clear();
    }

    /// Ends the study. `quality`: the quality of the packets, if it was not counted here.
    pub(super) fn finish(
        mut self,
        quality: Option<Quality>,
        sink: &mut dyn FnMut(PacketRow),
    ) -> StudySummary {
        self.settle(sink);
        self.changes.drain(..).for_each(|change| self.round.change(0, &change));
        let Self { router, shard, collector, round, many_flows, .. } = &mut self;
        let mut waiting = 0;
        router.finish(&mut |change| {
            round.change(0, &change);
            waiting += 1;
            if waiting == ROUND_PACKETS {
                waiting = 0;
                round.analyse(shard, *many_flows, &mut |_, finding| collector.push(finding, sink));
                round.clear();
            }
        });
        self.settle(sink);
        let quality = quality.unwrap_or(*self.router.quality());
        self.collector.finish(quality, self.shard.counts())
    }
}

/// All in one thread.
pub(super) fn run_alone(
    reading: CaptureReading<'_>,
    options: &StudyOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(Vec<FileReport>, StudySummary)> {
    let mut lone = Lone::new(options);
    let (reports, counts) =
        read_captures(reading, progress, &mut |packet| lone.push(packet, sink))?;
    let mut summary = lone.finish(None, sink);
    count_read(&mut summary.quality, &counts);
    Ok((reports, summary))
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{Address, Ecn, SeqNum, TcpFlags, TcpHeader, Transport};
    use airmile_wire::tcp::Tables;

    use super::*;

    /// The packet of flow `n` at a time: the flow begins at `n` * 50 ms and sends 1,000 bytes
    /// each ms, with a bare ACK after every second one.
    fn packet(n: u16, ms: u32) -> Packet<'static> {
        let (up, sent) = (ms % 3 == 2, ms - ms / 3);
        let (client, server) =
            (Address::v4([10, 0, 0, (n / 4) as u8]), Address::v4([192, 0, 2, 1]));
        let bytes = if up { 0 } else { 1_000 };
        let (seq, ack) = if up { (7, sent * 1_000) } else { (sent * 1_000, 7) };
        let header = TcpHeader {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags: TcpFlags::ACK,
            window: 500,
            timestamps: Some((ms, ms)),
            ..TcpHeader::default()
        };
        Packet {
            at_ns: (i64::from(n) * 50 + i64::from(ms)) * 1_000_000,
            src: if up { client } else { server },
            dst: if up { server } else { client },
            src_port: if up { 40_000 + n } else { 443 },
            dst_port: if up { 443 } else { 40_000 + n },
            protocol: 6,
            transport: Transport::Tcp(header),
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 52 + bytes,
            payload_bytes: bytes,
            payload: &[],
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }

    /// Rows and sums of 100 flows of 300 packets each.
    fn studied(many_flows: usize) -> String {
        let mut packets: Vec<_> =
            (0..100).flat_map(|n| (0..300).map(move |ms| packet(n, ms))).collect();
        packets.sort_by_key(|packet| packet.at_ns);
        let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
        let mut lone = Lone { many_flows, ..Lone::new(&options) };
        let mut rows = Vec::new();
        packets.iter().for_each(|packet| lone.push(packet, &mut |row| rows.push(row)));
        let summary = lone.finish(None, &mut |row| rows.push(row));
        assert!(rows.len() > 30_000, "{}", rows.len());
        format!("{rows:?} {summary:?}")
    }

    /// Packets without a flow, seconds apart: each is a time to free memory.
    #[test]
    fn a_round_of_changes_alone_ends() {
        let options = StudyOptions::default();
        let mut lone = Lone { many_flows: 0, ..Lone::new(&options) };
        lone.push(&packet(0, 0), &mut |_| {});
        for n in 0..3 * ROUND_PACKETS as i64 {
            let at_ns = n * 10_000_000_000;
            let icmp = Packet { at_ns, protocol: 1, transport: Transport::Icmp, ..packet(0, 0) };
            lone.push(&icmp, &mut |_| {});
            assert!(lone.round.changes.len() <= ROUND_PACKETS);
        }
    }

    /// Some 40 flows are active at a time, fewer at the beginning.
    #[test]
    fn packets_in_rounds_and_at_once_give_the_same() {
        let at_once = studied(usize::MAX);
        assert!([0, 20].map(studied).iter().all(|rows| *rows == at_once));
    }
}
