//! What experiments put in the gate's place, or above it.

use std::collections::{BTreeMap, VecDeque};

use super::class::PacketInfo;
use super::gate_controller::Qcut;
use super::htb::Htb;
use super::stop::StoppedUploads;

/// The queueing of an experiment around its gate.
#[derive(Debug, Clone)]
pub enum GateBench<P> {
    /// The gate alone.
    Gate,
    /// TCP Small Queues above it.
    Sockets(SmallQueues<P>),
    /// An HTB in its place; the gate only measures.
    Htb(Box<Htb<P>>),
    /// Uploads stop while another flow is active.
    Stop(StoppedUploads<P>),
}

/// State of TCP Small Queues.
#[derive(Debug, Clone)]
pub struct SmallQueues<P> {
    flow_bytes: u64,
    describe: fn(&P) -> PacketInfo,
    flows: BTreeMap<u64, Socket<P>>,
}

#[derive(Debug, Clone)]
struct Socket<P> {
    /// Bytes in the queue.
    queued_bytes: u64,
    waiting: VecDeque<(PacketInfo, P)>,
}

impl<P> GateBench<P> {
    /// A packet that a host sends.
    pub fn push(&mut self, gate: &mut Qcut<P>, now_ns: i64, info: PacketInfo, packet: P) {
        let passes = match self {
            Self::Gate => Some(packet),
            Self::Sockets(sockets) => sockets.take(info, packet),
            Self::Stop(stopped) => stopped.take(now_ns, info, packet),
            Self::Htb(htb) => return htb.push(now_ns, info, packet),
        };
        if let Some(packet) = passes {
            gate.push(now_ns, info, packet);
        }
    }

    /// The next packet for the modem.
    pub fn pop(&mut self, gate: &mut Qcut<P>, now_ns: i64) -> Option<P> {
        match self {
            Self::Htb(htb) => return htb.pop(now_ns, gate),
            Self::Stop(stopped) => {
                if let Some((info, packet)) = stopped.pop() {
                    gate.passed(now_ns, &info);
                    return Some(packet);
                }
                if stopped.are_stopped(now_ns) {
                    return None;
                }
            }
            Self::Gate | Self::Sockets(_) => {}
        }
        let packet = gate.poll(now_ns)?;
        self.left_queue(gate, now_ns, &packet);
        Some(packet)
    }

    /// A packet that was dropped.
    pub fn poll_dropped(&mut self, gate: &mut Qcut<P>, now_ns: i64) -> Option<P> {
        if let Self::Htb(htb) = self {
            return htb.poll_dropped();
        }
        let (_, packet) = gate.poll_dropped()?;
        self.left_queue(gate, now_ns, &packet);
        Some(packet)
    }

    fn left_queue(&mut self, gate: &mut Qcut<P>, now_ns: i64, packet: &P) {
        if let Self::Sockets(sockets) = self {
            sockets.left_queue(packet, |info, packet| gate.push(now_ns, info, packet));
        }
    }
}

impl<P> SmallQueues<P> {
    /// Queues of at most so many bytes a flow.
    #[must_use]
    pub const fn new(flow_bytes: u64, describe: fn(&P) -> PacketInfo) -> Self {
        Self { flow_bytes, describe, flows: BTreeMap::new() }
    }

    /// Takes a packet for which its flow has no room; returns another.
    fn take(&mut self, info: PacketInfo, packet: P) -> Option<P> {
        let empty = || Socket { queued_bytes: 0, waiting: VecDeque::new() };
        let socket = self.flows.entry(info.flow).or_insert_with(empty);
        if !socket.waiting.is_empty() || socket.queued_bytes >= self.flow_bytes {
            socket.waiting.push_back((info, packet));
            return None;
        }
        socket.queued_bytes += u64::from(info.bytes);
        Some(packet)
    }

    /// A packet has left the queue: its socket may queue the next one.
    fn left_queue(&mut self, packet: &P, mut push: impl FnMut(PacketInfo, P)) {
        let info = (self.describe)(packet);
        let Some(socket) = self.flows.get_mut(&info.flow) else { return };
        socket.queued_bytes = socket.queued_bytes.saturating_sub(u64::from(info.bytes));
        while socket.queued_bytes < self.flow_bytes
            && let Some((info, packet)) = socket.waiting.pop_front()
        {
            socket.queued_bytes += u64::from(info.bytes);
            push(info, packet);
        }
        if socket.queued_bytes == 0 {
            self.flows.remove(&info.flow);
        }
    }
}
