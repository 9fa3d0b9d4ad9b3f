//! A study on several cores: one thread reads and routes, others analyse, and the
//! caller's collects. On two cores the reader analyses a part itself: with two others, three threads
//! would share them. The result is that of one core, row for row.

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

/// One router feeds about three shards (chosen here by measuring).
const MOST_THREADS: usize = 4;

/// Number of threads for `wanted` (0: one per core), of which there is a maximum.
pub(super) fn count(wanted: usize) -> usize {
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if wanted == 0 { cores() } else { wanted }.clamp(1, MOST_THREADS)
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
        // They share the third-level cache.
        let many_flows = MANY_FLOWS / threads;
        for at in 0..threads {
            let (to_collector, from_shard) = sync_channel(ROUNDS_AHEAD);
            found.push(from_shard);
            let shard = PacketShard::new(options.clone());
            if threads == 2 && at == 0 {
                rounds.push(Dealt::to(Place::Here {
                    shard: Box::new(shard),
                    many_flows,
                    to_collector,
                }));
                continue;
            }
            let (to_shard, from_reader) = sync_channel(ROUNDS_AHEAD);
            let (give_back, used) = channel();
            shards.push(scope.spawn(move || {
                analyse(shard, many_flows, &from_reader, &to_collector, &give_back)
            }));
            rounds.push(Dealt::to(Place::Thread { to: to_shard, used }));
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
        let (reports, quality, own) = read?;
        counts.add(own);
        Ok((reports, collector.finish(quality, counts)))
    })
}

/// What a thread returned. A panic is a bug; it continues in this thread.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Where a shard is.
enum Place {
    Thread {
        to: SyncSender<Round>,
        /// Analysed rounds, whose memory is reused.
        used: Receiver<Round>,
    },
    /// In the reader's thread.
    Here { shard: Box<PacketShard>, many_flows: usize, to_collector: SyncSender<Found> },
}

/// The reader's end of a shard.
struct Dealt {
    place: Place,
    next: Round,
}

impl Dealt {
    fn to(place: Place) -> Self {
        Self { place, next: Round::default() }
    }

    /// Sends the next round; returns whether its receiver has ended.
    fn send(&mut self) -> bool {
        match &mut self.place {
            Place::Thread { to, used } => {
                let next = used.try_recv().unwrap_or_default();
                to.send(std::mem::replace(&mut self.next, next)).is_err()
            }
            Place::Here { shard, many_flows, to_collector } => {
                let found = analysed(&mut self.next, shard, *many_flows);
                to_collector.send(found).is_err()
            }
        }
    }
}

/// Sends packets and changes to shards, in rounds.
struct Dealer {
    shards: Vec<Dealt>,
    /// The shard of each partition, once it has one.
    owners: [Option<usize>; PARTITIONS],
    /// Packets and changes of the round.
    steps: u32,
    bytes: usize,
    /// A shard has ended: nothing sent matters any more.
    over: bool,
}

impl Dealer {
    fn new(shards: Vec<Dealt>) -> Self {
        Self { shards, owners: [None; PARTITIONS], steps: 0, bytes: 0, over: false }
    }

    /// The shard of a partition. The reader's own has three of sixteen, as reading and routing take a third
    /// of a study, and not the first: a single phone's packets are analysed by the other thread.
    fn owner(&mut self, partition: u8) -> usize {
        let place = usize::from(partition) % PARTITIONS;
        if let Some(owner) = self.owners[place] {
            return owner;
        }
        let others = self.owners.iter().flatten().count();
        let here = self.shards.iter().position(|shard| matches!(shard.place, Place::Here { .. }));
        let owner = match here {
            Some(here) if others % 5 == 1 => here,
            Some(here) => 1 - here,
            None => place % self.shards.len(),
        };
        self.owners[place] = Some(owner);
        owner
    }

    fn change(&mut self, change: &Change) {
        let owner = change.partition.map(|partition| self.owner(partition));
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if owner.is_none_or(|owner| owner == at) {
                shard.next.change(self.steps, change);
            }
        }
        self.steps += 1;
        self.send_full();
    }

    fn packet(&mut self, route: Route, packet: &Packet<'_>) {
        let owner = self.owner(route.partition);
        let step = self.steps;
        self.steps += 1;
        self.bytes += packet.payload.len();
        if let Some(shard) = self.shards.get_mut(owner) {
            shard.next.packet(step, route, packet);
        }
        self.send_full();
    }

    /// Sends a round that is full. A capture without flows has changes alone.
    fn send_full(&mut self) {
        if self.steps as usize >= ROUND_PACKETS || self.bytes >= ROUND_BYTES {
            self.send();
        }
    }

    /// Sends every shard its part of the round, even an empty one; other threads first.
    fn send(&mut self) {
        for shard in self.shards.iter_mut().rev() {
            self.over |= shard.send();
        }
        (self.steps, self.bytes) = (0, 0);
    }

    /// What the shards in this thread counted.
    fn own_counts(&self) -> ShardCounts {
        let mut counts = ShardCounts::default();
        for shard in &self.shards {
            if let Place::Here { shard, .. } = &shard.place {
                counts.add(shard.counts());
            }
        }
        counts
    }
}

/// Reads and routes all packets.
fn read(
    reading: CaptureReading<'_>,
    options: &StudyOptions,
    shards: Vec<Dealt>,
    progress: &Progress,
) -> Result<(Vec<FileReport>, Quality, ShardCounts)> {
    let mut router = PacketRouter::new(options.clone());
    let mut dealer = Dealer::new(shards);
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
    Ok((reports, quality, dealer.own_counts()))
}

/// Analyses a round and empties it.
fn analysed(round: &mut Round, shard: &mut PacketShard, many_flows: usize) -> Found {
    let mut found = Found::new();
    round.analyse(shard, many_flows, &mut |step, finding| found.push((step, finding)));
    round.clear();
    found
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
        let found = analysed(&mut round, &mut shard, many_flows);
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
        let mut dealer = Dealer::new(vec![Dealt::to(Place::Thread { to, used })]);
        let mut changes = Vec::new();
        for n in 0..3 * ROUND_PACKETS as i64 {
            router.advance(n * 10_000_000_000, &mut changes);
            changes.drain(..).for_each(|change| dealer.change(&change));
        }
        assert!(rounds.try_iter().count() >= 3);
    }
}
