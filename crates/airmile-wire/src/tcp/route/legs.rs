//! Both legs of a connection in one capture, as at a transparent split-connection proxy:
//! the same addresses and ports, other sequence numbers.

use airmile_model::packet::{Packet, SeqNum, TcpFlags, TcpHeader};
use airmile_model::{Leg, Termination};

use super::super::flow::FlowKey;
use super::{Change, PacketRouter, RoutedFlow};

/// A proxy connects to the server within this time of the last packet of the client's
/// leg; a host that reuses a port waits longer (chosen here).
const CONNECTS_WITHIN_NS: i64 = 3_000_000_000;
/// Probes are one below the next sequence number (RFC 9293, 3.8.4).
const BELOW: u32 = 2;

impl RoutedFlow {
    /// The leg of a connection that turned out to be split.
    pub(super) fn leg(&self) -> Option<Leg> {
        let name = if self.key.leg == 0 { Leg::Client } else { Leg::Server };
        self.is(Self::SPLIT).then_some(name)
    }

    /// Whether a SYN belongs not to this connection, but to a parallel leg.
    fn opens_parallel_leg(&self, at_ns: i64, tcp: &TcpHeader, from: usize) -> bool {
        self.is(Self::SYN)
            && !self.is_closing()
            && from == self.client()
            && self.first_seq[from] != tcp.seq.0
            && at_ns - self.last_ns <= CONNECTS_WITHIN_NS
    }

    /// How far a number is ahead of where its end began.
    const fn ahead(&self, end: usize, number: SeqNum) -> u32 {
        number.0.wrapping_sub(self.first_seq[end]).wrapping_add(BELOW)
    }
}

impl PacketRouter {
    /// Whether a packet on known ports may be of another leg than the one found.
    #[inline]
    pub(super) fn may_be_split(
        &self,
        found: Option<u32>,
        packet: &Packet<'_>,
        tcp: &TcpHeader,
        from: usize,
    ) -> bool {
        let Some(flow) = found.and_then(|at| self.flows.get(at as usize)) else { return false };
        flow.is(RoutedFlow::TWIN) || opens(tcp) && flow.opens_parallel_leg(packet.at_ns, tcp, from)
    }

    /// The leg of a TCP packet, and its flow if there is one. `first`: the leg towards
    /// the client, or an unsplit connection.
    #[cold]
    pub(super) fn leg_of(
        &mut self,
        (key, hash): (&FlowKey, u64),
        first: Option<u32>,
        packet: &Packet<'_>,
        from: usize,
        changes: &mut Vec<Change>,
    ) -> (u8, Option<u32>) {
        let mut beyond = *key;
        beyond.leg = 1;
        let second = self.find(&beyond, hash);
        let entry = |at: Option<u32>| self.flows.get(at? as usize).copied();
        let (Some(tcp), one, other) = (packet.tcp(), entry(first), entry(second)) else {
            return (0, first);
        };
        let Some(one) = one else {
            // The client's leg is over; later packets belong to the other.
            return if second.is_some() && !opens(tcp) { (1, second) } else { (0, None) };
        };
        let parallel = opens(tcp) && one.opens_parallel_leg(packet.at_ns, tcp, from);
        let Some(other) = other else {
            if parallel {
                self.mark(first, RoutedFlow::TWIN);
                return (1, None);
            }
            return (0, first);
        };
        if opens(tcp) && other.first_seq[from] != tcp.seq.0 {
            if parallel && self.is_older(second, first) {
                // That one belonged to an earlier connection.
                second.into_iter().for_each(|at| self.end_flow(at, Termination::Replaced, changes));
                self.mark(first, RoutedFlow::TWIN);
                return (1, None);
            }
            return (0, first);
        }
        if nearer(&one, &other, tcp, from) {
            return (1, second);
        }
        if other.is(RoutedFlow::SYN_ACK) && !opens(tcp) {
            self.mark(first, RoutedFlow::SPLIT);
            self.mark(second, RoutedFlow::SPLIT);
        }
        (0, first)
    }

    fn is_older(&self, flow: Option<u32>, than: Option<u32>) -> bool {
        let number = |at: Option<u32>| self.numbers.get(at? as usize);
        number(flow) < number(than)
    }

    fn mark(&mut self, at: Option<u32>, bit: u16) {
        if let Some(entry) = at.and_then(|at| self.flows.get_mut(at as usize)) {
            entry.state |= bit;
        }
    }
}

/// Whether it requests a connection.
fn opens(tcp: &TcpHeader) -> bool {
    tcp.flags.has(TcpFlags::SYN) && !tcp.flags.has(TcpFlags::ACK)
}

/// Whether a packet continues the `other` leg rather than `one`: by the numbers of the
/// client's end, of which both legs have shown a SYN.
fn nearer(one: &RoutedFlow, other: &RoutedFlow, tcp: &TcpHeader, from: usize) -> bool {
    let client = other.client();
    let (end, number) = if from == client {
        (client, tcp.seq)
    } else if tcp.flags.has(TcpFlags::ACK) {
        (client, tcp.ack)
    } else {
        (from, tcp.seq)
    };
    let known = one.is(RoutedFlow::FIRST_SEQ[end]) && other.is(RoutedFlow::FIRST_SEQ[end]);
    known && other.ahead(end, number) < one.ahead(end, number)
}
