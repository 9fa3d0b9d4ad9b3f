//! Processes packets in rounds: some hundred are routed, then analysed. The state of the
//! flows in a part of a round is prefetched: flows are scattered over memory, and the
//! accesses overlap.

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

    /// Passes everything to a shard; its findings go to `found` with their steps.
    pub(super) fn analyse(&self, shard: &mut PacketShard, found: &mut dyn FnMut(u32, Finding)) {
        let mut changes = self.changes.iter().peekable();
        for (part, packets) in self.packets.chunks(AHEAD).enumerate() {
            shard.load(packets.iter().map(|carried| carried.route));
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
}

impl Lone {
    pub(super) fn new(options: &StudyOptions) -> Self {
        Self {
            router: PacketRouter::new(options.clone()),
            shard: PacketShard::new(options.clone()),
            collector: Collector::new(options.tables),
            round: Round::default(),
            changes: Vec::new(),
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

    fn routed(
        &mut self,
        packet: &Packet<'_>,
        route: Option<Route>,
        sink: &mut dyn FnMut(PacketRow),
    ) {
        self.changes.drain(..).for_each(|change| self.round.change(0, &change));
        if let Some(route) = route {
            self.round.packet(0, route, packet);
        }
        if self.round.packets.len() >= ROUND_PACKETS {
            self.settle(sink);
        }
    }

    fn settle(&mut self, sink: &mut dyn FnMut(PacketRow)) {
        let Self { shard, collector, round, .. } = self;
        round.analyse(shard, &mut |_, finding| collector.push(finding, sink));
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
        let Self { router, shard, collector, round, .. } = &mut self;
        let mut waiting = 0;
        router.finish(&mut |change| {
            round.change(0, &change);
            waiting += 1;
            if waiting == ROUND_PACKETS {
                waiting = 0;
                round.analyse(shard, &mut |_, finding| collector.push(finding, sink));
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
