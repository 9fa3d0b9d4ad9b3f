//! The queueing above the gate: a queue for each flow, sparse flows first, CoDel in each
//! (RFC 8290), in tiers.

mod bulk;
mod counts;

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::class::{ClassConfig, PacketInfo, Tier};
use super::codel::{Codel, CodelConfig};
use bulk::{BULK_BYTES, Bulk};

pub(super) use bulk::PassingFlows;
pub use counts::{DropReason, QueueCounts, Tally};

/// Parameters of the queueing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// One queue for each flow; otherwise one for all, without tiers.
    pub flows: bool,
    /// Criteria of the classification.
    pub classes: ClassConfig,
    /// CoDel in each queue; absent: packets are dropped only for lack of room.
    pub codel: Option<CodelConfig>,
    /// Bytes that a flow may send before the next one's turn (RFC 8290, 5.2.4: 1514).
    pub quantum_bytes: u32,
    /// Maximum packets waiting (RFC 8290, 5.2.3: 10240).
    pub max_packets: usize,
    /// Maximum bytes waiting (chosen here: 6 s of 50 Mbit/s).
    pub max_bytes: u64,
    /// Bytes that one tier may send ahead of a waiting lower one before that one sends a
    /// packet, so that none starves (chosen here: 20 large packets, 5 % of the link).
    pub ahead_bytes: u64,
}

/// CoDel's target with a queue for each flow, in ns (chosen here: its interval). A flow's
/// own queue delays no other flow, and a queue that CoDel empties leaves the modem without
/// data until the sender's window has grown again: with 5 ms (RFC 8289) nothing waited in
/// three quarters of all TTIs, and Cubic lost 5 to 10 % (docs/papers/qcut.md).
pub const OWN_TARGET_NS: i64 = 100_000_000;

/// CoDel's interval with a queue for each flow, in ns (RFC 8289, 4.3: the largest round trip
/// that is expected; here the target, what the modem holds, and 100 ms of path). With 100 ms
/// CoDel dropped again before its first drop could show.
pub const OWN_INTERVAL_NS: i64 = 250_000_000;

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            flows: true,
            classes: ClassConfig::default(),
            codel: Some(CodelConfig { target_ns: OWN_TARGET_NS, interval_ns: OWN_INTERVAL_NS }),
            quantum_bytes: 1_514,
            max_packets: 10_240,
            max_bytes: 37_500_000,
            ahead_bytes: 30_000,
        }
    }
}

/// A packet that waits.
#[derive(Debug, Clone)]
struct QueuedPacket<P> {
    since_ns: i64,
    bytes: u32,
    tier: Tier,
    packet: P,
}

/// A flow's queue, in a list of its tier while it is in use.
#[derive(Debug, Clone)]
struct FlowQueue<P> {
    key: u64,
    packets: VecDeque<QueuedPacket<P>>,
    bytes: u64,
    credit_bytes: i64,
    codel: Codel,
    /// The lowest tier among its waiting packets: packets of a flow keep their order.
    tier: Tier,
}

/// Flows of a tier; newly active ones come first (RFC 8290, 4.2).
#[derive(Debug, Clone, Default)]
struct Lists {
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

/// The queues above the gate.
#[derive(Debug, Clone)]
pub struct FlowQueues<P> {
    config: QueueConfig,
    /// Raised if one large packet takes longer (RFC 8290, 5.2.2).
    target_ns: i64,
    flows: Vec<FlowQueue<P>>,
    free: Vec<usize>,
    by_key: HashMap<u64, usize>,
    tiers: [Lists; 3],
    /// Bytes that each tier has sent ahead of waiting lower ones.
    ahead_bytes: [u64; 3],
    /// Counts by the tier of each packet.
    counts: [QueueCounts; 3],
    dropped: VecDeque<(DropReason, P)>,
    bulk: Bulk,
}

/// Number of queues over which flows are hashed (RFC 8290, 4.1.3: 1024).
const QUEUE_BITS: u32 = 10;

/// The queue of a flow: the upper bits of a product with the golden ratio (Knuth, The Art
/// of Computer Programming, volume 3, 6.4), as keys may differ in any bits.
const fn queue_of(flow: u64) -> u64 {
    flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - QUEUE_BITS)
}

/// The maximum expected packet size, in bytes (Ethernet's MTU).
pub(super) const MTU_BYTES: u32 = 1_500;

impl<P> FlowQueues<P> {
    /// Empty queues.
    #[must_use]
    pub fn new(config: QueueConfig) -> Self {
        let target_ns = config.codel.map_or(0, |codel| codel.target_ns);
        Self {
            config,
            target_ns,
            flows: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            tiers: Default::default(),
            ahead_bytes: [0; 3],
            counts: Default::default(),
            dropped: VecDeque::new(),
            bulk: Bulk::default(),
        }
    }

    /// Sets the rate at which packets leave: CoDel's target is kept at 1.5 times a large
    /// packet's transmission time or more (RFC 8290, 5.2.2 asks for one; the half is chosen
    /// here).
    pub fn set_rate(&mut self, bytes_per_s: u64) {
        if let Some(codel) = self.config.codel {
            let packet_ns = u64::from(MTU_BYTES) * 1_500_000_000 / bytes_per_s.max(1_000);
            self.target_ns = codel.target_ns.max(i64::try_from(packet_ns).unwrap_or(i64::MAX));
        }
    }

    /// Queues a packet. If there is no room, the longest queue loses its oldest packets
    /// (RFC 8290, 4.1). Returns true if the packet is of a sparse flow during a bulk
    /// transfer, so that it should not wait.
    pub fn push(&mut self, now_ns: i64, info: &PacketInfo, packet: P) -> bool {
        let (key, tier) = if self.config.flows {
            (queue_of(info.flow), self.config.classes.tier(info))
        } else {
            (0, Tier::Normal)
        };
        let counts = &mut self.counts[tier as usize];
        counts.arrived.add(info.bytes);
        counts.waiting.add(info.bytes);
        let at = self.flow(key, tier);
        let flow = &mut self.flows[at];
        flow.packets.push_back(QueuedPacket { since_ns: now_ns, bytes: info.bytes, tier, packet });
        flow.bytes += u64::from(info.bytes);
        if flow.bytes > BULK_BYTES {
            self.bulk.note(now_ns, key);
        }
        let is_awaited = tier != Tier::Background && self.bulk.is_sparse_during_bulk(now_ns, key);
        loop {
            let Tally { packets, bytes } = self.counts().waiting;
            let is_over = packets > self.config.max_packets.max(1) as u64
                || (bytes > self.config.max_bytes && packets > 1);
            if !is_over {
                break;
            }
            self.drop_from_longest();
        }
        is_awaited
    }

    /// Dequeues the next packet.
    pub fn pop(&mut self, now_ns: i64) -> Option<P> {
        let mut skipped = [false; 3];
        while let Some(tier) = self.next_tier(&skipped) {
            if let Some((bytes, packet)) = self.pop_tier(now_ns, tier) {
                self.note_sent(tier, bytes);
                return Some(packet);
            }
            // Its flows were listed but empty, or CoDel dropped all packets.
            skipped[tier] = true;
        }
        None
    }

    /// A packet that was dropped, and the reason.
    pub fn poll_dropped(&mut self) -> Option<(DropReason, P)> {
        self.dropped.pop_front()
    }

    /// Whether no packet waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts[0].waiting.packets == 0
            && self.counts[1].waiting.packets == 0
            && self.counts[2].waiting.packets == 0
    }

    /// Whether the next packet is of a flow that had nothing waiting (RFC 8290, 4.2): up to a
    /// quantum of its bytes go ahead of the others.
    #[must_use]
    pub fn is_next_sparse(&self) -> bool {
        let first = self.next_tier(&[false; 3]).and_then(|tier| self.tiers[tier].new.front());
        first.is_some_and(|at| {
            let flow = &self.flows[*at];
            !flow.packets.is_empty() && flow.credit_bytes > 0
        })
    }

    /// Packet counts.
    #[must_use]
    pub const fn counts(&self) -> QueueCounts {
        let [urgent, normal, background] = &self.counts;
        urgent.sum(normal).sum(background)
    }

    /// Packet counts of a tier.
    #[must_use]
    pub const fn counts_of(&self, tier: Tier) -> QueueCounts {
        self.counts[tier as usize]
    }

    /// CoDel's current target, in ns.
    #[must_use]
    pub const fn target_ns(&self) -> i64 {
        self.target_ns
    }

    /// The listed flow of a key. A flow waiting in a higher tier than its new packet moves
    /// down as a whole, so that its order is kept.
    fn flow(&mut self, key: u64, tier: Tier) -> usize {
        if let Some(&at) = self.by_key.get(&key) {
            let flow = &self.flows[at];
            let now = if flow.packets.is_empty() { tier } else { flow.tier.max(tier) };
            if now != flow.tier {
                self.tiers[flow.tier as usize].leave(at);
                self.flows[at].tier = now;
                self.tiers[now as usize].old.push_back(at);
            }
            return at;
        }
        let flow = FlowQueue {
            key,
            packets: VecDeque::new(),
            bytes: 0,
            credit_bytes: i64::from(self.config.quantum_bytes),
            codel: Codel::default(),
            tier,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.flows[at] = flow;
                at
            }
            None => {
                self.flows.push(flow);
                self.flows.len() - 1
            }
        };
        self.by_key.insert(key, at);
        self.tiers[tier as usize].new.push_back(at);
        at
    }

    /// The highest tier with flows, unless a lower one has already waited for too many of
    /// its bytes; and so on.
    fn next_tier(&self, skipped: &[bool; 3]) -> Option<usize> {
        let ready = |tier: &usize| !skipped[*tier] && !self.tiers[*tier].is_empty();
        let mut next = (0..3).find(ready)?;
        while self.ahead_bytes[next] >= self.config.ahead_bytes.max(1)
            && let Some(lower) = (next + 1..3).find(ready)
        {
            next = lower;
        }
        Some(next)
    }

    fn note_sent(&mut self, tier: usize, bytes: u32) {
        for higher in &mut self.ahead_bytes[..tier] {
            *higher = 0;
        }
        let waits = self.tiers[tier + 1..].iter().any(|lists| !lists.is_empty());
        let ahead = &mut self.ahead_bytes[tier];
        *ahead = if waits { *ahead + u64::from(bytes) } else { 0 };
    }

    /// Deficit round robin with sparse flows first (RFC 8290, 4.2).
    fn pop_tier(&mut self, now_ns: i64, tier: usize) -> Option<(u32, P)> {
        loop {
            let lists = &mut self.tiers[tier];
            let from_new = !lists.new.is_empty();
            let list = if from_new { &mut lists.new } else { &mut lists.old };
            let at = *list.front()?;
            if self.flows[at].credit_bytes <= 0 {
                self.flows[at].credit_bytes += i64::from(self.config.quantum_bytes.max(1));
                list.pop_front();
                lists.old.push_back(at);
                continue;
            }
            if let Some((bytes, packet)) = self.pop_flow(now_ns, at) {
                self.flows[at].credit_bytes -= i64::from(bytes);
                return Some((bytes, packet));
            }
            let lists = &mut self.tiers[tier];
            if from_new {
                // One more round before it counts as idle again.
                lists.new.pop_front();
                lists.old.push_back(at);
            } else {
                lists.old.pop_front();
                self.by_key.remove(&self.flows[at].key);
                self.free.push(at);
            }
        }
    }

    /// The first packet of a flow's queue that CoDel does not drop.
    fn pop_flow(&mut self, now_ns: i64, at: usize) -> Option<(u32, P)> {
        let flow = &mut self.flows[at];
        while let Some(head) = flow.packets.pop_front() {
            let little = flow.bytes <= u64::from(MTU_BYTES);
            flow.bytes -= u64::from(head.bytes);
            let counts = &mut self.counts[head.tier as usize];
            counts.waiting.subtract(head.bytes);
            let dropped = self.config.codel.is_some_and(|codel| {
                let config = CodelConfig { target_ns: self.target_ns, ..codel };
                flow.codel.drops(now_ns, now_ns - head.since_ns, little, &config)
            });
            if !dropped {
                if flow.packets.is_empty() {
                    flow.codel.emptied();
                }
                counts.sent.add(head.bytes);
                return Some((head.bytes, head.packet));
            }
            counts.dropped_aqm.add(head.bytes);
            self.dropped.push_back((DropReason::Aqm, head.packet));
        }
        flow.codel.emptied();
        None
    }

    fn drop_from_longest(&mut self) {
        let longest = (0..self.flows.len()).max_by_key(|at| self.flows[*at].bytes);
        let head = longest.and_then(|at| {
            let head = self.flows[at].packets.pop_front()?;
            self.flows[at].bytes -= u64::from(head.bytes);
            Some(head)
        });
        if let Some(head) = head {
            let counts = &mut self.counts[head.tier as usize];
            counts.waiting.subtract(head.bytes);
            counts.dropped_full.add(head.bytes);
            self.dropped.push_back((DropReason::Full, head.packet));
        }
    }

    /// All waiting packets, in the order of tiers and then of flows; nothing is dropped.
    pub fn drain(&mut self) -> impl Iterator<Item = P> + '_ {
        let mut order: Vec<usize> = self.by_key.values().copied().collect();
        order.sort_by_key(|at| (self.flows[*at].tier, *at));
        for lists in &mut self.tiers {
            lists.new.clear();
            lists.old.clear();
        }
        self.by_key.clear();
        self.free.clear();
        self.ahead_bytes = [0; 3];
        for counts in &mut self.counts {
            counts.sent = counts.sent.sum(&counts.waiting);
            counts.waiting = Tally::default();
        }
        let mut all = Vec::new();
        for at in order {
            all.extend(self.flows[at].packets.drain(..).map(|waiting| waiting.packet));
        }
        self.flows.clear();
        all.into_iter()
    }

    /// Bytes waiting in a tier.
    #[must_use]
    pub fn waiting_bytes(&self, tier: Tier) -> u64 {
        let of = |flow: &FlowQueue<P>| {
            let packets = flow.packets.iter().filter(|waiting| waiting.tier == tier);
            packets.map(|waiting| u64::from(waiting.bytes)).sum::<u64>()
        };
        self.flows.iter().map(of).sum()
    }
}

impl Lists {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    fn leave(&mut self, at: usize) {
        self.new.retain(|other| *other != at);
        self.old.retain(|other| *other != at);
    }
}

#[cfg(test)]
mod tests;
