//! Assigns packets to flows and users, and decides when these begin and end.
//!
//! A [`PacketRouter`] takes every packet and decides what depends on all of them; a
//! [`PacketShard`](super::PacketShard) analyses the flows of some users. In sequence they
//! form a [`PacketStudy`](super::PacketStudy). With several shards, each may run on its
//! own core, and the findings are the same as with one.

mod entry;
mod legs;
mod over;

use std::collections::HashMap;

use airmile_model::packet::{Address, Packet, TcpFlags, TcpHeader, Transport};
use airmile_model::{ClientBy, Leg, Termination};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use entry::{RoutedFlow, UserEntry};

use super::flow::{FlowKey, client_is_source};
use super::mix::mix;
use super::options::StudyOptions;
use super::quality::Quality;
use super::side::Side;

/// Interval of checks for ended flows, in capture time.
const SWEEP_NS: i64 = 10_000_000_000;
/// Interval at which idle flows free memory, in capture time (chosen here).
const REST_EVERY_NS: i64 = 500_000_000;

/// Places for flows of recent packets (chosen here: 4 KB).
const RECENT: usize = 1_024;

/// The multiple of `step` at or before a time.
const fn floor(at_ns: i64, step: i64) -> i64 {
    at_ns - at_ns.rem_euclid(step)
}

/// Users are assigned to this many partitions, and partitions to shards: the state of a
/// partition does not depend on the number of shards (chosen here: enough to divide the work of two
/// threads evenly, of which one also reads).
pub const PARTITIONS: usize = 16;

/// The destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Partition of the flow's user, under [`PARTITIONS`].
    pub partition: u8,
    /// The flow's index.
    pub(super) flow: u32,
    /// Who sent it. With this, an `Option` of all has 8 bytes, which are returned in a register.
    pub(super) sender: Side,
}

/// A flow or user begins or ends before the packet that was pushed.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// The partition concerned; `None`: all.
    pub partition: Option<u8>,
    pub(super) what: ChangeKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ChangeKind {
    UserBegins {
        at: u32,
        number: u64,
        address: Address,
        now: i64,
    },
    FlowBegins {
        at: u32,
        flow: NewFlow,
    },
    FlowEnds {
        at: u32,
        why: Termination,
        /// The leg of a split connection.
        leg: Option<Leg>,
    },
    UserEnds {
        at: u32,
    },
    /// Time to free memory.
    Rest {
        now: i64,
    },
}

/// Properties of a flow from its first packet on.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewFlow {
    pub(super) number: u64,
    pub(super) key: FlowKey,
    pub(super) client: usize,
    pub(super) client_by: ClientBy,
    pub(super) user: u32,
    pub(super) now: i64,
    pub(super) mid_flow: bool,
}

/// Assigns packets to flows and users.
#[derive(Debug)]
pub struct PacketRouter {
    options: StudyOptions,
    index: HashTable<u32>,
    /// The flows of recent packets, each at a hash of its key.
    recent: Box<[u32; RECENT]>,
    flows: Vec<RoutedFlow>,
    /// Their numbers.
    numbers: Vec<u64>,
    free_flows: Vec<u32>,
    addresses: HashMap<Address, u32, FixedState>,
    users: Vec<Option<UserEntry>>,
    free_users: Vec<u32>,
    /// Number of the packet being routed: flows and users that begin with it are numbered
    /// by it.
    packet: u64,
    /// Latest time so far.
    now_ns: i64,
    last_ns: i64,
    next_sweep_ns: i64,
    next_rest_ns: i64,
    quality: Quality,
}

impl PacketRouter {
    /// A router without packets yet.
    #[must_use]
    pub fn new(options: StudyOptions) -> Self {
        Self {
            options,
            index: HashTable::new(),
            recent: Box::new([0; RECENT]),
            flows: Vec::new(),
            numbers: Vec::new(),
            free_flows: Vec::new(),
            addresses: HashMap::default(),
            users: Vec::new(),
            free_users: Vec::new(),
            packet: 0,
            now_ns: i64::MIN,
            last_ns: i64::MIN,
            next_sweep_ns: i64::MIN,
            next_rest_ns: i64::MIN,
            quality: Quality::default(),
        }
    }

    /// Takes the next packet of the capture. What begins or ends before it is added to
    /// `changes`, in order. `None`: it belongs to no flow.
    #[inline]
    pub fn push(&mut self, packet: &Packet<'_>, changes: &mut Vec<Change>) -> Option<Route> {
        // A datagram that waited in vain for a fragment arrives late, and is marked so.
        if packet.at_ns < self.last_ns && !packet.fragmented {
            self.quality.stepped_back(self.last_ns - packet.at_ns);
        }
        self.last_ns = packet.at_ns;
        let number = self.quality.packets;
        self.quality.packet(packet);
        self.place(packet, number, packet.at_ns, changes)
    }

    /// Routes a packet of a capture whose other packets are elsewhere: `number` of them
    /// came before it, the latest at `clock_ns` or before. Their holder counts the
    /// quality; everything else is as if [`push`](Self::push) had taken the whole
    /// capture.
    #[inline]
    pub fn place(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        clock_ns: i64,
        changes: &mut Vec<Change>,
    ) -> Option<Route> {
        self.place_by::<true>(packet, number, clock_ns, changes)
    }

    /// [`place`](Self::place), with or without the short path, which gives the same.
    #[inline]
    pub(super) fn place_by<const SHORT: bool>(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        clock_ns: i64,
        changes: &mut Vec<Change>,
    ) -> Option<Route> {
        self.advance(clock_ns, changes);
        self.packet = number;
        match packet.transport {
            Transport::Tcp(_) | Transport::Udp => {}
            Transport::Icmp | Transport::Fragment | Transport::Other => return None,
        }
        let (key, upwards) = FlowKey::from_packet(packet);
        let hash = key.hash();
        let from = usize::from(!upwards);
        let found = self.find_recent(&key, hash);
        if SHORT && let Some(route) = self.just_pass(packet, found, from) {
            return Some(route);
        }
        self.place_any(packet, (key, hash), found, from, changes)
    }

    /// The short path of a packet that only continues its flow.
    #[inline]
    fn just_pass(&mut self, packet: &Packet<'_>, found: Option<u32>, from: usize) -> Option<Route> {
        let at = found?;
        let flow = self.flows.get_mut(at as usize)?;
        flow.just_continues(packet, &self.options).then(|| flow.pass(packet, at, from))
    }

    /// Routes a packet that may begin or end a flow, or belong to another leg.
    #[inline(never)]
    fn place_any(
        &mut self,
        packet: &Packet<'_>,
        (mut key, hash): (FlowKey, u64),
        mut found: Option<u32>,
        from: usize,
        changes: &mut Vec<Change>,
    ) -> Option<Route> {
        if let Some(tcp) = packet.tcp()
            && (found.is_none() || self.may_be_split(found, packet, tcp, from))
        {
            (key.leg, found) = self.leg_of((&key, hash), found, packet, from, changes);
        }
        if let Some(at) = found
            && let Some(flow) = self.flows.get_mut(at as usize)
        {
            let over = flow.is_over(packet, &self.options);
            let tcp = packet.tcp();
            let replaced = |tcp: &TcpHeader| {
                tcp.flags.has(TcpFlags::SYN)
                    && !tcp.flags.has(TcpFlags::ACK)
                    && flow.is_replaced_by(tcp, from)
            };
            if !(over || tcp.is_some_and(replaced)) {
                if let Some(tcp) = tcp {
                    flow.tcp(tcp, from);
                }
                return Some(flow.pass(packet, at, from));
            }
            self.end_flow(
                at,
                if over { Termination::Idle } else { Termination::Replaced },
                changes,
            );
        }
        self.begin(packet, key, hash, from, changes)
    }

    /// As [`find`](Self::find), without the index for the flow of a recent packet: the index of many flows
    /// is in no core's first cache.
    #[inline]
    fn find_recent(&mut self, key: &FlowKey, hash: u64) -> Option<u32> {
        let near = hash as usize % RECENT;
        let at = self.recent[near];
        let is_it = |flow: &RoutedFlow| flow.is(RoutedFlow::LIVE) && flow.key.is(key);
        if self.flows.get(at as usize).is_some_and(is_it) {
            debug_assert_eq!(self.find(key, hash), Some(at));
            return Some(at);
        }
        let found = self.find(key, hash)?;
        self.recent[near] = found;
        Some(found)
    }

    #[inline]
    pub(super) fn find(&self, key: &FlowKey, hash: u64) -> Option<u32> {
        let flows = &self.flows;
        let is_it = |at: &u32| flows.get(*at as usize).is_some_and(|flow| flow.key.is(key));
        self.index.find(hash, is_it).copied()
    }

    /// The capture's quality so far, without the shards' counts.
    #[must_use]
    pub const fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Number of open flows.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.index.len()
    }

    /// The client of the flow that a packet was just routed to.
    #[must_use]
    pub fn client(&self, route: Route) -> Option<Address> {
        let flow = self.flows.get(route.flow as usize)?;
        Some(flow.key.ends()[flow.client()].0)
    }

    /// Ends the capture: all flows and users end, each with a change passed to `sink`.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Change)) {
        let mut changes = Vec::new();
        let live = self.flows.iter().enumerate().filter(|(_, flow)| flow.is(RoutedFlow::LIVE));
        let number = |at: usize| self.numbers.get(at).copied().unwrap_or(0);
        let mut open: Vec<(u64, u32)> = live.map(|(at, _)| (number(at), at as u32)).collect();
        open.sort_unstable();
        for (_, at) in open {
            self.end_flow(at, Termination::CaptureEnd, &mut changes);
            changes.drain(..).for_each(&mut *sink);
        }
        let number = |at: &u32| Some((self.users.get(*at as usize)?.as_ref()?.number, *at));
        let mut users: Vec<(u64, u32)> = self.addresses.values().filter_map(number).collect();
        users.sort_unstable();
        for (_, at) in users {
            self.end_user(at, &mut changes);
            changes.drain(..).for_each(&mut *sink);
        }
    }

    /// Advances the clock to `now_ns`. Timeouts take effect at multiples of ten seconds,
    /// so that they do not depend on other users' packets.
    #[inline]
    pub fn advance(&mut self, now_ns: i64, changes: &mut Vec<Change>) {
        if now_ns > self.now_ns {
            self.now_ns = now_ns;
            if now_ns >= self.next_rest_ns {
                self.tick(changes);
            }
        }
    }

    #[cold]
    fn tick(&mut self, changes: &mut Vec<Change>) {
        let now = self.now_ns;
        let next_sweep = floor(now, SWEEP_NS).saturating_add(SWEEP_NS);
        if self.next_sweep_ns == i64::MIN {
            self.next_sweep_ns = next_sweep;
        }
        while self.next_sweep_ns <= now {
            let at = self.next_sweep_ns;
            changes.push(Change { partition: None, what: ChangeKind::Rest { now: at } });
            let soonest = self.sweep(at, changes);
            // Over a pause, only the times at which something ends.
            self.next_sweep_ns =
                floor(soonest, SWEEP_NS).max(at).saturating_add(SWEEP_NS).min(next_sweep);
        }
        let rest = floor(now, REST_EVERY_NS);
        if rest >= self.next_rest_ns {
            changes.push(Change { partition: None, what: ChangeKind::Rest { now: rest } });
        }
        self.next_rest_ns = rest.saturating_add(REST_EVERY_NS).min(self.next_sweep_ns);
    }

    /// After a backward clock step, later times count as now.
    pub fn set_back(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
        self.last_ns = self.last_ns.min(now_ns);
        self.next_sweep_ns = self.next_sweep_ns.min(now_ns.saturating_add(SWEEP_NS));
        self.next_rest_ns = self.next_rest_ns.min(now_ns);
        for flow in &mut self.flows {
            flow.last_ns = flow.last_ns.min(now_ns);
        }
        for user in self.users.iter_mut().flatten() {
            user.last_ns = user.last_ns.min(now_ns);
        }
    }

    /// A flow begins with its first packet.
    fn begin(
        &mut self,
        packet: &Packet<'_>,
        key: FlowKey,
        hash: u64,
        from: usize,
        changes: &mut Vec<Change>,
    ) -> Option<Route> {
        self.make_room(changes);
        let now = packet.at_ns;
        let (client_is_source, client_by) = client_is_source(packet, &self.options.client_networks);
        let client = if client_is_source { from } else { 1 - from };
        let (user, partition) = self.user_of(key.ends()[client].0, now, changes);
        let mid_flow = packet.tcp().is_some_and(|tcp| !tcp.flags.has(TcpFlags::SYN));
        let number = self.packet;
        let mut state = RoutedFlow::LIVE;
        state |= if client == 1 { RoutedFlow::CLIENT_HIGH } else { 0 };
        state |= if mid_flow { RoutedFlow::ESTABLISHED } else { 0 };
        state |= if packet.tcp().is_none() { RoutedFlow::UDP } else { 0 };
        let first_seq = [0; 2];
        let mut entry = RoutedFlow { key, last_ns: now, first_seq, user, partition, state };
        if let Some(tcp) = packet.tcp() {
            entry.tcp(tcp, from);
        }
        let at = match self.free_flows.pop() {
            Some(at) => at,
            None => {
                self.flows.push(entry);
                self.numbers.push(number);
                u32::try_from(self.flows.len() - 1).ok()?
            }
        };
        *self.flows.get_mut(at as usize)? = entry;
        *self.numbers.get_mut(at as usize)? = number;
        let flows = &self.flows;
        let rehash = |at: &u32| flows.get(*at as usize).map_or(0, |flow| flow.key.hash());
        self.index.insert_unique(hash, at, rehash);
        let flow = NewFlow { number, key, client, client_by, user, now, mid_flow };
        changes
            .push(Change { partition: Some(partition), what: ChangeKind::FlowBegins { at, flow } });
        Some(Route { partition, flow: at, sender: Side::of(client, from) })
    }

    /// The user at an address, for one more flow.
    fn user_of(&mut self, address: Address, now: i64, changes: &mut Vec<Change>) -> (u32, u8) {
        if let Some(&at) = self.addresses.get(&address) {
            let gap_ns = self.options.user_gap_ns;
            match self.users.get_mut(at as usize).and_then(Option::as_mut) {
                Some(user) if user.open_flows > 0 || now - user.last_ns <= gap_ns => {
                    user.open_flows += 1;
                    return (at, user.partition);
                }
                _ => self.end_user(at, changes),
            }
        }
        let partition = (mix(address.words()[0], address.words()[1]) as usize % PARTITIONS) as u8;
        let number = self.packet;
        let user = UserEntry { number, address, last_ns: now, open_flows: 1, partition };
        let at = self.free_users.pop().unwrap_or_else(|| {
            self.users.push(None);
            u32::try_from(self.users.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = self.users.get_mut(at as usize) {
            *slot = Some(user);
        }
        self.addresses.insert(address, at);
        changes.push(Change {
            partition: Some(partition),
            what: ChangeKind::UserBegins { at, number, address, now },
        });
        (at, partition)
    }

    fn end_user(&mut self, at: u32, changes: &mut Vec<Change>) {
        let Some(user) = self.users.get_mut(at as usize).and_then(Option::take) else { return };
        self.addresses.remove(&user.address);
        self.free_users.push(at);
        changes.push(Change { partition: Some(user.partition), what: ChangeKind::UserEnds { at } });
    }

    fn end_flow(&mut self, at: u32, why: Termination, changes: &mut Vec<Change>) {
        let Some(flow) = self.flows.get_mut(at as usize).filter(|f| f.is(RoutedFlow::LIVE)) else {
            return;
        };
        let leg = flow.leg();
        flow.state = 0;
        let RoutedFlow { key, last_ns, user, partition, .. } = *flow;
        if let Ok(entry) = self.index.find_entry(key.hash(), |other| *other == at) {
            entry.remove();
        }
        self.free_flows.push(at);
        if let Some(user) = self.users.get_mut(user as usize).and_then(Option::as_mut) {
            user.open_flows = user.open_flows.saturating_sub(1);
            user.last_ns = user.last_ns.max(last_ns);
        }
        changes.push(Change {
            partition: Some(partition),
            what: ChangeKind::FlowEnds { at, why, leg },
        });
    }
}
