//! A study on several cores: one thread reads and routes, others analyse, and the
//! caller's collects. The result is that of one core, row for row.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use airmile_model::flow::PacketRow;
use airmile_model::packet::Packet;
use airmile_wire::tcp::{
    Change, Collector, Finding, PARTITIONS, PacketRouter, PacketShard, Quality, Route, ShardCounts,
    StudyOptions, StudySummary,
};

use super::count_read;
use super::rounds::{MANY_FLOWS, Round};
use airmile_io::FileReport;
use airmile_io::capture::{CaptureReading, read_captures};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;

/// Packets and changes of all shards in a round (chosen here by measuring: a round takes half a millisecond, so that
/// threads seldom wake each other).
const ROUND_PACKETS: usize = 8_192;
/// Bytes of payload after which a round is over (chosen here: 8,192 full packets would have 12 MB).
const ROUND_BYTES: usize = 1 << 20;
/// Maximum number of rounds that wait for a shard or for the collector: memory is
/// bounded, and a thread that others wait for has work (chosen here).
const ROUNDS_AHEAD: usize = 8;

/// Number of threads for `wanted` (0: one per core): at most the number of partitions.
pub(super) fn count(wanted: usize) -> usize {
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if wanted == 0 { cores() } else { wanted }.clamp(1, PARTITIONS)
}

/// Findings of a round, each with the step that made it.
type Found = Vec<(u32, Finding)>;

/// As the study of one thread, with `threads` shards.
pub(super) fn run(
    reading: CaptureReading<'_>,
    options: &StudyOptions,
    threads: usize,
    progress: &Progress,
    sink: &mut dyn FnMut(PacketRow),
) -> Result<(Vec<FileReport>, StudySummary)> {
    thread::scope(|scope| {
        let mut rounds = Vec::new();
        let mut shards = Vec::new();
        let mut found = Vec::new();
        for _ in 0..threads {
            let (to_shard, from_reader) = sync_channel(ROUNDS_AHEAD);
            let (to_collector, from_shard) = sync_channel(ROUNDS_AHEAD);
            let (give_back, used) = channel();
            let shard = PacketShard::new(options.clone());
            shards.push(scope.spawn(move || {
                // They share the third-level cache.
                let many_flows = MANY_FLOWS / threads;
                analyse(shard, many_flows, &from_reader, &to_collector, &give_back)
            }));
            rounds.push(ToShard { to: to_shard, used, next: Round::default() });
            found.push(from_shard);
        }
        let reader = scope.spawn(move || read(reading, options, rounds, progress));
        let mut collector = Collector::new(options.tables);
        collect(&found, &mut collector, sink);
        // If a shard ended early, nobody waits for the findings of the others.
        drop(found);
        let read = joined(reader);
        let mut counts = ShardCounts::default();
        for shard in shards {
            counts.add(joined(shard));
        }
        let (reports, quality) = read?;
        Ok((reports, collector.finish(quality, counts)))
    })
}

/// What a thread returned. A panic is a bug; it continues in this thread.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The reader's end of a shard.
struct ToShard {
    to: SyncSender<Round>,
    /// Analysed rounds, whose memory is reused.
    used: Receiver<Round>,
    next: Round,
}

/// Sends packets and changes to shards, in rounds.
struct Dealer {
    shards: Vec<ToShard>,
    /// Packets and changes of the round.
    steps: u32,
    bytes: usize,
    /// A shard has ended: nothing sent matters any more.
    over: bool,
}

impl Dealer {
    fn change(&mut self, change: &Change) {
        let n = self.shards.len();
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if change.partition.is_none_or(|partition| usize::from(partition) % n == at) {
                shard.next.change(self.steps, change);
            }
        }
        self.steps += 1;
        self.send_full();
    }

    fn packet(&mut self, route: Route, packet: &Packet<'_>) {
        let n = self.shards.len();
        let step = self.steps;
        self.steps += 1;
        self.bytes += packet.payload.len();
        if let Some(ToShard { next, .. }) = self.shards.get_mut(usize::from(route.partition) % n) {
            next.packet(step, route, packet);
        }
        self.send_full();
    }

    /// Sends a round that is full. A capture without flows has changes alone.
    fn send_full(&mut self) {
        if self.steps as usize >= ROUND_PACKETS || self.bytes >= ROUND_BYTES {
            self.send();
        }
    }

    /// Sends every shard its part of the round, even an empty one.
    fn send(&mut self) {
        for shard in &mut self.shards {
            let next = shard.used.try_recv().unwrap_or_default();
            self.over |= shard.to.send(std::mem::replace(&mut shard.next, next)).is_err();
        }
        (self.steps, self.bytes) = (0, 0);
    }
}

/// Reads and routes all packets.
fn read(
    reading: CaptureReading<'_>,
    options: &StudyOptions,
    shards: Vec<ToShard>,
    progress: &Progress,
) -> Result<(Vec<FileReport>, Quality)> {
    let mut router = PacketRouter::new(options.clone());
    let mut dealer = Dealer { shards, steps: 0, bytes: 0, over: false };
    let mut changes = Vec::new();
    let (reports, counts) = read_captures(reading, progress, &mut |packet| {
        if dealer.over {
            return;
        }
        let route = router.push(packet, &mut changes);
        changes.drain(..).for_each(|change| dealer.change(&change));
        if let Some(route) = route {
            dealer.packet(route, packet);
        }
    })?;
    dealer.send();
    // Rows of the end, some flows at a time.
    router.finish(&mut |change| dealer.change(&change));
    dealer.send();
    if dealer.over {
        return Err(Error::NothingToAnalyse("a thread of the study ended early".into()));
    }
    let mut quality = *router.quality();
    count_read(&mut quality, &counts);
    Ok((reports, quality))
}

/// Analyses rounds until there are no more.
fn analyse(
    mut shard: PacketShard,
    many_flows: usize,
    rounds: &Receiver<Round>,
    collector: &SyncSender<Found>,
    give_back: &Sender<Round>,
) -> ShardCounts {
    for mut round in rounds {
        let mut found = Found::new();
        round.analyse(&mut shard, many_flows, &mut |step, finding| found.push((step, finding)));
        round.clear();
        // Neither end waits for what the other has dropped.
        let _ = give_back.send(round);
        if collector.send(found).is_err() {
            break;
        }
    }
    shard.counts()
}

/// Puts the findings of each round in order.
fn collect(shards: &[Receiver<Found>], collector: &mut Collector, sink: &mut dyn FnMut(PacketRow)) {
    loop {
        let mut round = Found::new();
        let mut ended = false;
        for shard in shards {
            match shard.recv() {
                Ok(found) if round.is_empty() => round = found,
                Ok(found) => round.extend(found),
                Err(_) => ended = true,
            }
        }
        // A step belongs to one shard, and its findings are in order.
        round.sort_by_key(|(step, _)| *step);
        round.into_iter().for_each(|(_, finding)| collector.push(finding, sink));
        if ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets without a flow, seconds apart: each is a time to free memory, for every shard.
    #[test]
    fn a_round_of_changes_alone_is_sent() {
        let mut router = PacketRouter::new(StudyOptions::default());
        let (to, rounds) = sync_channel(64);
        let (_, used) = channel();
        let shards = vec![ToShard { to, used, next: Round::default() }];
        let mut dealer = Dealer { shards, steps: 0, bytes: 0, over: false };
        let mut changes = Vec::new();
        for n in 0..3 * ROUND_PACKETS as i64 {
            router.advance(n * 10_000_000_000, &mut changes);
            changes.drain(..).for_each(|change| dealer.change(&change));
        }
        assert!(rounds.try_iter().count() >= 3);
    }
}
