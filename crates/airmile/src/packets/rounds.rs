//! Packets in rounds: some hundred are routed, then analysed. Of the flows that a
//! part of a round is of, what will be needed is loaded ahead: their packets come
//! from all over the memory, and waits for it overlap.

use airmile_infer::tcp::{
    Change, Collector, Finding, PacketRouter, PacketShard, Route, StudyOptions, StudySummary,
};
use airmile_model::flow::PacketRow;
use airmile_model::packet::Packet;

use super::given::Reading;
use super::{count_read, read_captures};
use crate::error::Result;
use crate::input::Progress;
use crate::session::FileReport;

/// Packets whose flows are loaded together (chosen here by measuring: a core has
/// some ten loads under way, and its first cache holds what so many touch).
const AHEAD: usize = 16;
/// Packets of a round in one thread (chosen here: 50 KB of them).
const ROUND_PACKETS: usize = 256;

/// A packet on its way to a shard.
struct Carried {
    /// Its place among packets and changes of the round.
    step: u32,
    route: Route,
    /// Its payload in the round's bytes.
    payload: (usize, usize),
    packet: Packet<'static>,
}

/// What one shard gets of a round.
#[derive(Default)]
pub(super) struct Round {
    packets: Vec<Carried>,
    /// With how many of `packets` are before it, and its step.
    changes: Vec<(usize, u32, Change)>,
    bytes: Vec<u8>,
}

impl Round {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.changes.clear();
        self.bytes.clear();
    }

    /// Adds what begins or ends behind the packets so far.
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

    /// Hands all of it to a shard; its findings go to `found` with their steps.
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
                    // Captures of headers alone: no packet is copied for its payload.
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

/// All in one thread.
pub(super) fn run_alone(
    reading: Reading<'_>,
    options: &StudyOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(Vec<FileReport>, StudySummary)> {
    let mut router = PacketRouter::new(options.clone());
    let mut shard = PacketShard::new(options.clone());
    let mut collector = Collector::new(options.tables);
    let mut round = Round::default();
    let mut changes = Vec::new();
    let mut settle = |round: &mut Round| {
        round.analyse(&mut shard, &mut |_, finding| collector.push(finding, sink));
        round.clear();
    };
    let (reports, counts) = read_captures(reading, progress, &mut |packet| {
        let route = router.push(packet, &mut changes);
        changes.drain(..).for_each(|change| round.change(0, &change));
        if let Some(route) = route {
            round.packet(0, route, packet);
        }
        if round.packets.len() >= ROUND_PACKETS {
            settle(&mut round);
        }
    })?;
    settle(&mut round);
    router.finish(&mut changes);
    for some in changes.chunks(ROUND_PACKETS) {
        some.iter().for_each(|change| round.change(0, change));
        settle(&mut round);
    }
    let counted = shard.counts();
    let mut summary = collector.finish(*router.quality(), counted);
    count_read(&mut summary.quality, &counts);
    Ok((reports, summary))
}
