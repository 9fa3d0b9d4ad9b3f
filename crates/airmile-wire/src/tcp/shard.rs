//! The flows and users of some partitions: packets in, findings out.

use std::collections::VecDeque;

use airmile_model::flow::{FlowRow, PacketRow, UserRow};
use airmile_model::packet::{Packet, Transport};
use airmile_model::{Leg, Termination};

use super::bandwidth::SendRateThreshold;
use super::duplicates::RecentPackets;
use super::flight::FlightCounts;
use super::flow::{Closing, FlowState};
use super::options::StudyOptions;
use super::route::{Change, ChangeKind, PARTITIONS, Route};
use super::rows::Sink;
use super::side::Side;
use super::summary::UserSums;
use super::trace::TracedPacket;
use super::unanswered::OfOnePacket;
use super::user::{RadioPacket, UserState};

/// A flow silent for this long keeps no spare memory: the history that an active flow
/// uses (chosen here).
const REST_NS: i64 = super::bandwidth::MEMORY_NS;

/// A row, and data that only the summary needs.
#[derive(Debug)]
pub struct Finding(pub(super) FindingKind);

#[derive(Debug)]
pub(super) enum FindingKind {
    Row(PacketRow),
    /// From the second leg of a split connection: in tables, but in no sum.
    Aside(PacketRow),
    FlowState(Box<FlowRow>, Option<FlightCounts>),
    UserState(Box<UserRow>, Box<UserSums>),
}

/// The part of a capture's quality that shards count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardCounts {
    pub(super) copies: u64,
    pub(super) super_segments: u64,
    pub(super) wild_sequences: u64,
    pub(super) late_segments: u64,
}

impl ShardCounts {
    /// Adds another shard's.
    pub const fn add(&mut self, other: Self) {
        self.copies += other.copies;
        self.super_segments += other.super_segments;
        self.wild_sequences += other.wild_sequences;
        self.late_segments += other.late_segments;
    }
}

/// Analyses the flows of the users of one or more partitions.
#[derive(Debug)]
pub struct PacketShard {
    pub(super) options: StudyOptions,
    pub(super) flows: Vec<Option<Box<FlowState>>>,
    /// Flows with traffic since they last rested.
    pub(super) awake: Vec<u32>,
    pub(super) users: Vec<Option<Box<UserState>>>,
    /// Flows with a single packet.
    pub(super) of_one_packet: OfOnePacket,
    pub(super) recent: [RecentPackets; PARTITIONS],
    pub(super) scratch: Vec<PacketRow>,
    pub(super) counts: ShardCounts,
    pub(super) found: Vec<Finding>,
    pub(super) trace: VecDeque<TracedPacket>,
}

impl PacketShard {
    /// A shard without packets yet.
    #[must_use]
    pub fn new(options: StudyOptions) -> Self {
        Self {
            options,
            flows: Vec::new(),
            awake: Vec::new(),
            users: Vec::new(),
            of_one_packet: OfOnePacket::default(),
            recent: Default::default(),
            scratch: Vec::new(),
            counts: ShardCounts::default(),
            found: Vec::new(),
            trace: VecDeque::new(),
        }
    }

    /// Takes a flow or user that begins or ends, in the router's order.
    pub fn change(&mut self, change: &Change) {
        match change.what {
            ChangeKind::UserBegins { at, number, address, now } => {
                put(&mut self.users, at, Box::new(UserState::new(number, address, now)));
            }
            ChangeKind::FlowBegins { at, flow } => {
                let mut begun = Box::new(FlowState::new(&flow));
                begun.wants_events = self.options.tables.tcp_events;
                begun.traced = self.options.traced.has(flow.number);
                let user = self.user_mut(flow.user);
                if let Some(user) = user.filter(|_| !begun.is_aside()) {
                    user.flows += 1;
                }
                put(&mut self.flows, at, begun);
            }
            ChangeKind::FlowEnds { at, why, leg } => self.end_flow(at, why, leg),
            ChangeKind::UserEnds { at } => self.end_user(at),
            ChangeKind::Rest { now } => {
                let threshold = self.options.send_rate_threshold;
                let (flows, small) = (&mut self.flows, &mut self.of_one_packet);
                self.awake.retain(|at| match flows.get_mut(*at as usize) {
                    Some(Some(flow)) if now - flow.last_ns > REST_NS => {
                        flow.rest(threshold);
                        flow.awake = false;
                        false
                    }
                    Some(Some(_)) => true,
                    _ => {
                        small.rest(*at);
                        false
                    }
                });
            }
        }
    }

    /// Takes a packet on the route chosen by the router.
    #[inline]
    pub fn push(&mut self, route: Route, packet: &Packet<'_>) {
        match packet.transport {
            Transport::Tcp(ref tcp) => self.tcp(packet, tcp, route),
            Transport::Udp => self.udp(packet, route),
            Transport::Icmp | Transport::Fragment | Transport::Other => {}
        }
    }

    /// Prefetches what packets on these routes will need, so that memory accesses
    /// overlap. Changes nothing.
    pub fn load(&self, routes: impl Iterator<Item = Route> + Clone) {
        let flow = |route: Route| self.flows.get(route.flow as usize)?.as_deref();
        // First the flows, then what they point to.
        let flows = routes.clone().filter_map(flow);
        let first: i64 = flows.fold(0, |sum, flow| sum ^ flow.touch_lines());
        let flows = routes.filter_map(|route| Some((flow(route)?, route.sender)));
        let second = flows.fold(0, |sum, (flow, sender)| {
            let user = self.users.get(flow.user as usize).and_then(Option::as_deref);
            sum ^ flow.touch_beyond(sender) ^ user.map_or(0, |user| user.last_ns)
        });
        std::hint::black_box((first, second));
    }

    /// Number of flows with traffic in the last two seconds.
    #[must_use]
    pub const fn active_flows(&self) -> usize {
        self.awake.len()
    }

    /// What was found since the last call, in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Finding> {
        self.found.drain(..)
    }

    /// Whether anything was found since the last [`drain`](Self::drain).
    #[must_use]
    pub const fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// The next packet of the flows that were to be traced.
    pub fn poll_trace(&mut self) -> Option<TracedPacket> {
        self.trace.pop_front()
    }

    /// The open flows with the latest packets, the latest first, as they are now.
    #[must_use]
    pub fn latest_flows(&self, most: usize) -> Vec<FlowRow> {
        let small = self.unanswered(most);
        let mut open: Vec<&FlowState> =
            self.flows.iter().flatten().map(AsRef::as_ref).chain(&small).collect();
        let newest = |flow: &&FlowState| std::cmp::Reverse((flow.last_ns, flow.number));
        if open.len() > most {
            open.select_nth_unstable_by_key(most, newest);
            open.truncate(most);
        }
        open.sort_unstable_by_key(newest);
        let number = |flow: &FlowState| self.user_number(flow.user);
        open.iter()
            .map(|flow| flow.row(number(flow), (Termination::Open, None), &self.options))
            .collect()
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> ShardCounts {
        self.counts
    }

    fn end_user(&mut self, at: u32) {
        let Some(mut user) = self.take_user(at) else { return };
        let mut rows = std::mem::take(&mut self.scratch);
        let number = user.number;
        user.aggregate.finish(number, self.options.send_rate_threshold, &mut rows);
        Self::take_rows(&mut self.found, &mut rows, false);
        self.scratch = rows;
        let row = user.row(&self.options.radio);
        let sums = Box::new(UserSums::from_user(&row, &user));
        self.found.push(Finding(FindingKind::UserState(Box::new(row), sums)));
    }

    fn end_flow(&mut self, at: u32, why: Termination, leg: Option<Leg>) {
        let Some(mut flow) = self.take_flow(at) else { return };
        self.counts.late_segments +=
            flow.ends.0.iter().map(|end| end.stream.losses().late).sum::<u64>();
        let mut rows = std::mem::take(&mut self.scratch);
        // A flow of one packet leaves its user of one packet unchanged.
        let (number, is_lone) = self.user_number_of(flow.user);
        let place = flow.place(number, false);
        flow.app.finish(place, &mut rows);
        let user = if is_lone {
            None
        } else {
            self.users.get_mut(flow.user as usize).and_then(Option::as_deref_mut)
        };
        let mut sink = Sink { options: &self.options, rows: &mut rows };
        let row = flow.end(number, (why, leg), user, &mut sink);
        Self::take_rows(&mut self.found, &mut rows, flow.is_aside());
        self.scratch = rows;
        let flights = std::mem::take(&mut flow.dl_flights);
        let counted = (row.dl_bytes > super::summary::COUNTED_BYTES).then_some(flights);
        self.found.push(Finding(FindingKind::FlowState(Box::new(row), counted)));
    }

    pub(super) fn take_rows(found: &mut Vec<Finding>, rows: &mut Vec<PacketRow>, aside: bool) {
        let kind = if aside { FindingKind::Aside } else { FindingKind::Row };
        found.extend(rows.drain(..).map(|row| Finding(kind(row))));
    }

    fn udp(&mut self, packet: &Packet<'_>, route: Route) {
        let Some(mut flow) = self.flows.get_mut(route.flow as usize).and_then(Option::take) else {
            return;
        };
        let up = route.sender.is_client();
        let stream = flow.stream_number(route.sender);
        let partition = self.recent.get_mut(usize::from(route.partition));
        if partition.is_some_and(|recent| recent.is_datagram_copy(stream, packet)) {
            self.counts.copies += 1;
            if let Some(slot) = self.flows.get_mut(route.flow as usize) {
                *slot = Some(flow);
            }
            return;
        }
        let totals = &mut flow.udp.get_or_insert_default()[route.sender];
        totals.packets += 1;
        totals.bytes += u64::from(packet.payload_bytes);
        totals.ip_bytes += u64::from(packet.ip_bytes);
        totals.first_ns.get_or_insert(packet.at_ns);
        totals.last_ns = Some(packet.at_ns);
        flow.touch(packet, false);
        let mut rows = std::mem::take(&mut self.scratch);
        flow.app.push(flow.place(self.user_number(flow.user), up), packet, &mut rows);
        while let Some((at_ns, rtt_ns)) = flow.app.poll_spin_rtt() {
            flow.spin_rtt(at_ns, rtt_ns, &mut rows);
        }
        Self::take_rows(&mut self.found, &mut rows, false);
        self.scratch = rows;
        if !up && flow.app.is_quic() {
            self.concurrency(&mut flow, route.flow, packet.at_ns);
        }
        self.radio(&flow, packet, route.sender);
        if let Some(slot) = self.flows.get_mut(route.flow as usize) {
            *slot = Some(flow);
        }
    }

    pub(super) fn user_number(&self, at: u32) -> u64 {
        self.user_number_of(at).0
    }

    /// Adds a packet to the user's radio model.
    #[inline]
    pub(super) fn radio(&mut self, flow: &FlowState, packet: &Packet<'_>, sender: Side) {
        let radio = Self::radio_packet(flow, packet, sender);
        let Self { users, of_one_packet, options, .. } = self;
        if let Some(user) = of_one_packet.user_mut(users, flow.user, &options.radio) {
            user.push(&options.radio, radio);
        }
    }

    #[inline]
    pub(super) fn radio_packet(flow: &FlowState, packet: &Packet<'_>, sender: Side) -> RadioPacket {
        RadioPacket {
            at_ns: packet.at_ns,
            ip_bytes: packet.ip_bytes,
            payload_bytes: packet.payload_bytes,
            up: sender.is_client(),
            closing: packet.payload_bytes == 0 && flow.closing != Closing::Open,
            server: flow.server().0,
        }
    }
}

fn put<T>(slots: &mut Vec<Option<T>>, at: u32, value: T) {
    let at = at as usize;
    if at >= slots.len() {
        slots.resize_with(at + 1, || None);
    }
    if let Some(slot) = slots.get_mut(at) {
        *slot = Some(value);
    }
}

impl FlowState {
    /// Reads a word of each line of memory that a packet touches.
    #[inline]
    fn touch_lines(&self) -> i64 {
        let ends = self.ends.0.iter().fold(0, |sum, end| {
            let lines = [
                i64::from(end.clock.is_seen()),
                i64::from(end.zero_windows),
                end.full.total_ns,
                i64::from(end.episodes.slow_starts),
            ];
            lines.iter().fold(sum ^ end.stream.touch_lines(), |sum, line| sum ^ line)
        });
        ends ^ self.last_ns ^ i64::from(self.handshake.ack_ns.is_some())
    }

    /// The same for data outside of the flow.
    #[inline]
    fn touch_beyond(&self, sender: Side) -> i64 {
        let [own, other] = [&self.ends[sender], &self.ends[sender.other()]];
        let waiting = i64::from(other.has_waiting());
        own.stream.touch_segments() ^ other.stream.touch_segments() ^ waiting
    }

    /// Frees memory that only an active flow needs.
    fn rest(&mut self, threshold: SendRateThreshold) {
        for end in &mut self.ends.0 {
            end.stream.rest();
            if let Some(bandwidth) = &mut end.bandwidth {
                bandwidth.rest(threshold);
            }
        }
    }
}
