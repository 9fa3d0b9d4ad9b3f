//! Flows without an answer: in a scan or a flood each packet is a flow, and often a user.
//!
//! A flow with only its first SYN is kept as that SYN, and a user without anything else
//! as that packet: a tenth of the memory. The full state is rebuilt from it when another
//! packet follows, and when they end.

use airmile_model::packet::{Address, Ecn, Packet, TcpFlags, TcpHeader, Transport};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::energy::RadioModel;
use super::flow::FlowState;
use super::options::StudyOptions;
use super::route::NewFlow;
use super::rows::Sink;
use super::shard::PacketShard;
use super::side::Side;
use super::user::{RadioPacket, UserState};

/// A flow of one SYN.
#[derive(Debug)]
pub(super) struct Unanswered {
    new: NewFlow,
    tcp: TcpHeader,
    ip_id: Option<u16>,
    ip_bytes: u32,
    interface: u32,
    fragmented: bool,
    tunnelled: bool,
    from_idle: bool,
    awake: bool,
    shared: bool,
}

/// A user of one packet, the SYN of a flow.
#[derive(Debug)]
struct Lone {
    number: u64,
    address: Address,
    start_ns: i64,
    packet: RadioPacket,
}

/// Flows and users of one packet, by their indices.
#[derive(Debug, Default)]
pub(super) struct OfOnePacket {
    flows: HashMap<u32, Box<Unanswered>, FixedState>,
    users: HashMap<u32, Box<Lone>, FixedState>,
}

impl Unanswered {
    /// The flow's state after its SYN.
    fn flow(&self, options: &StudyOptions) -> FlowState {
        let mut flow = FlowState::new(&self.new);
        let ends = self.new.key.ends();
        let (src, src_port) = ends[self.new.client & 1];
        let (dst, dst_port) = ends[self.new.client & 1 ^ 1];
        let packet = Packet {
            at_ns: self.new.now,
            src,
            dst,
            src_port,
            dst_port,
            protocol: self.new.key.protocol,
            transport: Transport::Tcp(self.tcp),
            ecn: Ecn::NotEct,
            ip_id: self.ip_id,
            ip_bytes: self.ip_bytes,
            payload_bytes: 0,
            payload: &[],
            fragmented: self.fragmented,
            tunnelled: self.tunnelled,
            interface: self.interface,
        };
        // Its rows were reported when it passed.
        let mut sink = Sink { options, rows: &mut Vec::new() };
        flow.ingest(&packet, &self.tcp, Side::Client, &mut sink);
        flow.wants_events = options.tables.tcp_events;
        // Its packet was traced when it passed; the next ones are to be.
        flow.traced = options.traced.has(flow.number);
        flow.handshake.from_idle = self.from_idle;
        flow.awake = self.awake;
        flow.shared = self.shared;
        flow
    }
}

impl Lone {
    fn user(&self, model: &RadioModel) -> Box<UserState> {
        let mut user = Box::new(UserState::new(self.number, self.address, self.start_ns));
        user.flows = 1;
        user.push(model, self.packet);
        user
    }
}

impl PacketShard {
    /// Removes a flow.
    #[inline]
    pub(super) fn take_flow(&mut self, at: u32) -> Option<Box<FlowState>> {
        let flow = self.flows.get_mut(at as usize).and_then(Option::take);
        if flow.is_some() { flow } else { self.take_small(at) }
    }

    #[cold]
    fn take_small(&mut self, at: u32) -> Option<Box<FlowState>> {
        let small = self.of_one_packet.flows.remove(&at)?;
        Some(Box::new(small.flow(&self.options)))
    }

    /// Stores a flow that a packet has just passed through; `up`: from the client, and no
    /// duplicate.
    #[inline]
    pub(super) fn put_flow(
        &mut self,
        at: u32,
        flow: Box<FlowState>,
        packet: &Packet<'_>,
        up: bool,
    ) {
        if up
            && let Some(tcp) = packet.tcp()
            && tcp.flags.has(TcpFlags::SYN)
            && flow.only_syns
            && packet.payload_bytes == 0
            && flow.is_of_one_packet()
        {
            self.put_small(at, &flow, packet, tcp);
        } else if let Some(slot) = self.flows.get_mut(at as usize) {
            *slot = Some(flow);
        }
    }

    #[cold]
    fn put_small(&mut self, at: u32, flow: &FlowState, packet: &Packet<'_>, tcp: &TcpHeader) {
        let small = Unanswered {
            new: NewFlow {
                number: flow.number,
                key: flow.key,
                client: usize::from(flow.client),
                client_by: flow.client_by,
                user: flow.user,
                now: flow.start_ns,
                mid_flow: flow.mid_flow,
            },
            tcp: *tcp,
            ip_id: packet.ip_id,
            ip_bytes: packet.ip_bytes,
            interface: packet.interface,
            fragmented: packet.fragmented,
            tunnelled: packet.tunnelled,
            from_idle: flow.handshake.from_idle,
            awake: flow.awake,
            shared: flow.shared,
        };
        self.of_one_packet.flows.insert(at, Box::new(small));
        let place = flow.user as usize;
        let lone = |user: &UserState| user.flows == 1 && user.packets == 1 && !flow.is_aside();
        let user = self.users.get_mut(place).filter(|user| user.as_deref().is_some_and(lone));
        if let Some(user) = user.and_then(Option::take) {
            let lone = Lone {
                number: user.number,
                address: user.address,
                start_ns: user.start_ns(),
                packet: Self::radio_packet(flow, packet, Side::Client),
            };
            self.of_one_packet.users.insert(flow.user, Box::new(lone));
        }
    }

    /// The user at an index.
    #[inline]
    pub(super) fn user_mut(&mut self, at: u32) -> Option<&mut UserState> {
        self.of_one_packet.user_mut(&mut self.users, at, &self.options.radio)
    }

    /// Removes a user.
    pub(super) fn take_user(&mut self, at: u32) -> Option<Box<UserState>> {
        match self.users.get_mut(at as usize).and_then(Option::take) {
            Some(user) => Some(user),
            None => self.of_one_packet.take_lone(at, &self.options.radio),
        }
    }

    /// The number of a user, and whether it consists of one packet.
    pub(super) fn user_number_of(&self, at: u32) -> (u64, bool) {
        match self.users.get(at as usize).and_then(Option::as_ref) {
            Some(user) => (user.number, false),
            None => {
                self.of_one_packet.users.get(&at).map_or((0, false), |lone| (lone.number, true))
            }
        }
    }

    /// The latest flows of one SYN.
    pub(super) fn unanswered(&self, most: usize) -> Vec<FlowState> {
        let mut small: Vec<&Unanswered> =
            self.of_one_packet.flows.values().map(AsRef::as_ref).collect();
        let newest = |small: &&Unanswered| std::cmp::Reverse((small.new.now, small.new.number));
        if small.len() > most {
            small.select_nth_unstable_by_key(most, newest);
            small.truncate(most);
        }
        small.into_iter().map(|small| small.flow(&self.options)).collect()
    }
}

impl OfOnePacket {
    /// The user at an index, with its full state from now on.
    #[inline]
    pub(super) fn user_mut<'a>(
        &mut self,
        users: &'a mut [Option<Box<UserState>>],
        at: u32,
        model: &RadioModel,
    ) -> Option<&'a mut UserState> {
        let slot = users.get_mut(at as usize)?;
        if slot.is_none() {
            *slot = self.take_lone(at, model);
        }
        slot.as_deref_mut()
    }

    #[cold]
    fn take_lone(&mut self, at: u32, model: &RadioModel) -> Option<Box<UserState>> {
        Some(self.users.remove(&at)?.user(model))
    }

    /// A flow of one SYN has no memory to free.
    pub(super) fn rest(&mut self, at: u32) {
        if let Some(flow) = self.flows.get_mut(&at) {
            flow.awake = false;
        }
    }

    /// Records that another flow of the user at `user` received in the same second.
    pub(super) fn share(&mut self, at: u32, user: u32) {
        if let Some(flow) = self.flows.get_mut(&at).filter(|flow| flow.new.user == user) {
            flow.shared = true;
        }
    }
}
