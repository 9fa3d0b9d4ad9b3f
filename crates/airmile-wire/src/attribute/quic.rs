//! Sender models for QUIC, from datagrams alone: packet numbers and acknowledgements are
//! encrypted (RFC 9001, 5).
//!
//! A flow is passed to [`SenderModel`](super::SenderModel) as a connection whose client
//! acknowledges, with each of its datagrams, all data that had arrived: clients
//! acknowledge at least every second datagram (RFC 9000, 13.2.2). Whatever needs packet
//! numbers, losses or the receive window stays unknown.

use std::collections::{HashMap, VecDeque};

use airmile_model::Direction;
use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags, Transport};

use crate::app::is_long_header;
use crate::tcp::{TracedAck, TracedPacket};

/// Maximum number of flows tracked; further ones are ignored (chosen here).
const MAX_FLOWS: usize = 4_096;
/// Maximum number of server datagrams in flight that are kept (chosen here).
const MAX_SENT: usize = 16_384;
/// Minimum size to which a client's first datagram is padded (RFC 9000, 14.1).
const INITIAL_BYTES: u32 = 1_200;
/// A smaller client datagram holds acknowledgements only; a request takes more (chosen
/// here: a short header, an ACK frame of some ranges, and a tag take 30 to 55 bytes).
const REQUEST_BYTES: u32 = 60;
/// The answers to a client's first requests show the round trip: maximum number of server
/// datagrams used for it (chosen here; later ones arrive while others are in flight).
const FIRST_DATAGRAMS: u32 = 20;
/// If the client side's round trip is less than this part of the other, the capture was
/// taken at the client.
const AT_CLIENT_PART: i64 = 4;
/// Long headers belong to the handshake (RFC 9000, 17.2).
const LONG: u8 = 0x80;
/// First bytes of TLS handshake records, and of application data (RFC 8446, 5.1).
const TLS_HANDSHAKE: [u8; 3] = [22, 3, 3];
const TLS_DATA: [u8; 3] = [23, 3, 3];
const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

/// Both ends of a flow, the client first.
pub type QuicEnds = [(Address, u16); 2];

/// A datagram in the form of a packet for a sender model.
#[derive(Debug, Clone, Copy)]
pub struct FollowedDatagram {
    /// The flow's number, distinct from those of TCP connections.
    pub flow: u64,
    /// Its ends, the client first.
    pub ends: QuicEnds,
    /// The connection set-up that it begins or ends, if any; then the datagram itself.
    pub packets: [Option<TracedPacket>; 2],
    /// Round trip on the server's side that it completes, in nanoseconds.
    pub upstream_rtt_ns: Option<i64>,
    /// For a client: how a record of the same kind would begin over TCP.
    pub begins: Option<[u8; 3]>,
}

/// Tracks the flows of a capture.
#[derive(Debug, Default)]
pub struct QuicSenders {
    flows: HashMap<QuicEnds, QuicFlow>,
}

/// One flow.
#[derive(Debug, Default)]
struct QuicFlow {
    number: u64,
    /// Bytes from the server, and when they passed.
    down_bytes: i64,
    sent: VecDeque<(i64, i64)>,
    arrived_bytes: i64,
    down_datagrams: u32,
    up_bytes: i64,
    /// Last request without an answer.
    asked_ns: Option<i64>,
    /// When the first answer passed, until the client's next datagram.
    answered_ns: Option<i64>,
    upstream_ns: Option<i64>,
    downstream_ns: Option<i64>,
}

impl QuicSenders {
    /// Takes a packet; returns `None` if it is no datagram of a flow captured from its
    /// start.
    pub fn push(&mut self, packet: &Packet<'_>) -> Option<FollowedDatagram> {
        if !matches!(packet.transport, Transport::Udp) || packet.payload_bytes == 0 {
            return None;
        }
        let (from, to) = ((packet.src, packet.src_port), (packet.dst, packet.dst_port));
        let (ends, up) = match () {
            () if self.flows.contains_key(&[from, to]) => ([from, to], true),
            () if self.flows.contains_key(&[to, from]) => ([to, from], false),
            () => {
                let begins = packet.payload_bytes >= INITIAL_BYTES
                    && self.flows.len() < MAX_FLOWS
                    && is_long_header(packet.payload);
                begins.then_some(([from, to], true))?
            }
        };
        let number = (1 << 63) | self.flows.len() as u64;
        let flow =
            self.flows.entry(ends).or_insert_with(|| QuicFlow { number, ..QuicFlow::default() });
        let long = packet.payload.first().is_some_and(|first| first & LONG != 0);
        let (packets, begins, upstream_rtt_ns) = if up {
            (flow.client(packet), Some(if long { TLS_HANDSHAKE } else { TLS_DATA }), None)
        } else {
            let (packets, rtt_ns) = flow.server(packet);
            (packets, None, rtt_ns)
        };
        Some(FollowedDatagram { flow: flow.number, ends, packets, upstream_rtt_ns, begins })
    }
}

impl QuicFlow {
    fn traced(&self, packet: &Packet<'_>, dir: Direction, flags: TcpFlags) -> TracedPacket {
        TracedPacket {
            flow: self.number,
            user: 0,
            at_ns: packet.at_ns,
            dir,
            seq: SeqNum(0),
            flags,
            timestamps: None,
            event: None,
            offset_bytes: 0,
            payload_bytes: packet.payload_bytes,
            new_bytes: packet.payload_bytes.into(),
            flight_bytes: 0,
            ack: None,
        }
    }

    fn client(&mut self, packet: &Packet<'_>) -> [Option<TracedPacket>; 2] {
        let now = packet.at_ns;
        if let Some(at) = self.answered_ns.take() {
            self.downstream_ns = Some(now - at);
        }
        let asks = packet.payload_bytes >= REQUEST_BYTES;
        let early = asks && self.down_datagrams < FIRST_DATAGRAMS;
        if early {
            self.asked_ns = Some(now);
        }
        let lag_ns = match (self.upstream_ns, self.downstream_ns) {
            (Some(up), Some(down)) if down > up / AT_CLIENT_PART => down,
            _ => 0,
        };
        while let Some((bytes, at)) = self.sent.front()
            && *at <= now - lag_ns
        {
            self.arrived_bytes = *bytes;
            self.sent.pop_front();
        }
        let ack = TracedAck {
            offset_bytes: self.arrived_bytes,
            rwnd_bytes: None,
            duplicate: false,
            flight_bytes: 0,
            sack: [(0, 0); 4],
        };
        let datagram = TracedPacket {
            offset_bytes: self.up_bytes,
            new_bytes: if asks { packet.payload_bytes.into() } else { 0 },
            ack: Some(ack),
            ..self.traced(packet, Direction::Ul, TcpFlags::ACK)
        };
        self.up_bytes += i64::from(packet.payload_bytes);
        let begins = (early && self.down_datagrams == 0)
            .then(|| self.traced(packet, Direction::Ul, TcpFlags::SYN));
        [begins, Some(datagram)]
    }

    fn server(&mut self, packet: &Packet<'_>) -> ([Option<TracedPacket>; 2], Option<i64>) {
        let now = packet.at_ns;
        let rtt_ns = self.asked_ns.take().map(|asked| now - asked);
        if let Some(rtt_ns) = rtt_ns {
            let least = self.upstream_ns.map_or(rtt_ns, |known| known.min(rtt_ns));
            self.upstream_ns = Some(least);
        }
        let first = self.down_datagrams == 0;
        let answers = first.then(|| self.traced(packet, Direction::Dl, SYN_ACK));
        if first {
            self.answered_ns = Some(now);
        }
        let datagram = TracedPacket {
            offset_bytes: self.down_bytes,
            ..self.traced(packet, Direction::Dl, TcpFlags::ACK)
        };
        self.down_datagrams = self.down_datagrams.saturating_add(1);
        self.down_bytes += i64::from(packet.payload_bytes);
        if self.sent.len() < MAX_SENT {
            self.sent.push_back((self.down_bytes, now));
        }
        ([answers, Some(datagram)], rtt_ns)
    }
}
