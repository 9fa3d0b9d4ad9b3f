//! Datagrams by client: what arrived, and whether it is QUIC.

use std::collections::{BTreeMap, HashMap};

use airmile_model::packet::{Address, Packet, Transport};

use super::pauses::Pauses;
use super::phone::{MAX_USERS, add};
use airmile_wire::attribute::Sides;
use airmile_wire::is_long_header;

/// HTTP/3 without its first packets, by the port of its servers (RFC 9114, 3.1.1).
const HTTPS: u16 = 443;
/// Maximum number of flows kept at a time (chosen here, as for users).
const MAX_FLOWS: usize = 16_384;

/// A flow of datagrams.
#[derive(Debug, Default)]
struct DatagramFlow {
    is_quic: bool,
    /// The first one from the client, if it opens a connection of QUIC, until it is answered.
    asked_ns: Option<i64>,
    /// Of what came to the client.
    pauses: Pauses,
    /// Its answer, until the client replies.
    answered_ns: Option<i64>,
}

/// The datagrams of one client.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// Arrivals.
    pub(super) list: Vec<(i64, u32)>,
    /// Payload to the client, the part of it in QUIC, and payload from the client.
    pub(super) bytes: u64,
    pub(super) quic_bytes: u64,
    pub(super) up_bytes: u64,
    /// The shortest times of a handshake of QUIC: from the first datagram to the answer, and from
    /// there to the client's reply.
    pub(super) sides: Sides,
    /// Of each flow.
    pub(super) pauses: Vec<Pauses>,
}

/// All clients' datagrams.
#[derive(Debug, Default)]
pub(super) struct AllDatagrams {
    clients: BTreeMap<Address, Datagrams>,
    /// Flows, by the client's end.
    flows: HashMap<(Address, u16, Address, u16), DatagramFlow>,
}

impl AllDatagrams {
    /// Takes a packet.
    pub(super) fn note(&mut self, packet: &Packet<'_>) {
        let udp = matches!(packet.transport, Transport::Udp);
        if !udp || packet.payload_bytes == 0 {
            return;
        }
        let (down, flow) = self.flow(packet);
        flow.is_quic |=
            packet.src_port == HTTPS || packet.dst_port == HTTPS || is_long_header(packet.payload);
        let is_quic = flow.is_quic;
        let waited_since = if down { &mut flow.asked_ns } else { &mut flow.answered_ns };
        let waited_ns = waited_since.take().map(|since| packet.at_ns.saturating_sub(since));
        if down {
            flow.answered_ns = waited_ns.map(|_| packet.at_ns).or(flow.answered_ns);
            flow.pauses.push(packet.at_ns);
        }
        let client = if down { packet.dst } else { packet.src };
        if self.clients.len() >= MAX_USERS && !self.clients.contains_key(&client) {
            let least = self.clients.iter().min_by_key(|(_, of)| of.list.len());
            least.map(|(a, _)| *a).and_then(|address| self.clients.remove(&address));
        }
        let of = self.clients.entry(client).or_default();
        let Sides { upstream_ns, downstream_ns, .. } = &mut of.sides;
        let least_ns = if down { upstream_ns } else { downstream_ns };
        *least_ns = [*least_ns, waited_ns.filter(|ns| *ns >= 0)].into_iter().flatten().min();
        let bytes = u64::from(packet.payload_bytes);
        if !down {
            of.up_bytes = of.up_bytes.saturating_add(bytes);
            return;
        }
        of.bytes = of.bytes.saturating_add(bytes);
        of.quic_bytes = of.quic_bytes.saturating_add(if is_quic { bytes } else { 0 });
        add(&mut of.list, packet.at_ns, packet.payload_bytes);
    }

    /// A datagram's flow, and whether it goes to the initiator or, if that is unknown, to the end
    /// without a well-known port.
    fn flow(&mut self, packet: &Packet<'_>) -> (bool, &mut DatagramFlow) {
        let ends = (packet.src, packet.src_port, packet.dst, packet.dst_port);
        let back = (packet.dst, packet.dst_port, packet.src, packet.src_port);
        let known = [back, ends].map(|key| self.flows.contains_key(&key));
        if known == [false, false] && self.flows.len() >= MAX_FLOWS {
            self.forget_flows();
        }
        let down = match known {
            [true, _] => true,
            [_, true] => false,
            _ => packet.src_port < 1_024 && packet.dst_port >= 1_024,
        };
        let flow = self.flows.entry(if down { back } else { ends }).or_insert_with(|| {
            // An answer to a name lookup comes from a resolver nearby, and one to an acknowledgement
            // may have been on its way.
            let opens = !down && is_long_header(packet.payload);
            DatagramFlow { asked_ns: opens.then_some(packet.at_ns), ..DatagramFlow::default() }
        });
        (down, flow)
    }

    /// Removes all flows; their clients keep the pauses.
    fn forget_flows(&mut self) {
        for ((client, ..), flow) in self.flows.drain() {
            if flow.pauses.any()
                && let Some(of) = self.clients.get_mut(&client)
            {
                of.pauses.push(flow.pauses);
            }
        }
    }

    /// Each client's.
    pub(super) fn into_clients(mut self) -> BTreeMap<Address, Datagrams> {
        self.forget_flows();
        self.clients
    }
}
