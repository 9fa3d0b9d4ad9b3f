//! Sender models for QUIC, from datagrams alone: packet numbers and acknowledgements are
//! encrypted (RFC 9001, 5).
//!
//! A flow is passed to [`SenderModel`](super::SenderModel) as a connection whose client
//! acknowledges, with each of its datagrams, all data that had arrived: clients
//! acknowledge at least every second datagram (RFC 9000, 13.2.2). Whatever needs packet
//! numbers, losses or the receive window stays unknown. So does what a sender waited for until a
//! datagram that acknowledges nothing new ([`WindowUpdates`]).

use std::collections::{HashMap, VecDeque};

use airmile_model::Direction;
use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags, Transport};

use super::requests::MIN_REQUEST_BYTES;
use crate::app::is_long_header;
use crate::tcp::{TracedAck, TracedPacket};

/// Maximum number of flows tracked; further ones are ignored (chosen here).
const MAX_FLOWS: usize = 4_096;
/// Maximum number of server datagrams in flight that are kept (chosen here).
const MAX_SENT: usize = 16_384;
/// Minimum size to which a client's first datagram is padded (RFC 9000, 14.1).
pub(super) const INITIAL_BYTES: u32 = 1_200;
/// The answers to a client's first requests show the round trip: maximum number of server
/// datagrams used for it (chosen here; later ones arrive while others are in flight).
const FIRST_DATAGRAMS: u32 = 20;
/// If the client side's round trip is less than this part of the other, the capture was
/// taken at the client.
const AT_CLIENT_PART: i64 = 4;
/// Long headers belong to the handshake (RFC 9000, 17.2).
const LONG: u8 = 0x80;
/// Of a client's, those of Handshake packets have this bit, too (RFC 9000, 17.2.4; RFC 9369, 3.2).
const HANDSHAKE: u8 = LONG | 0x20;
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
    /// When the server's last datagram passed.
    last_down_ns: Option<i64>,
    /// When the first answer passed, until the client's next datagram.
    answered_ns: Option<i64>,
    upstream_ns: Option<i64>,
    downstream_ns: Option<i64>,
}

/// MAX_STREAM_DATA and MAX_DATA take five bytes and more (RFC 9000, 19.9 and 19.10); so do three ranges of
/// an acknowledgement, which show losses.
const UPDATE_BYTES: u32 = 5;
/// Of so many acknowledgements the smallest has neither (chosen here).
const RECENT_ACKS: usize = 16;

/// Datagrams of a client that acknowledge nothing new, as when its application has read and the window
/// has room again: what comes a round trip later may have waited for them.
#[derive(Debug, Default)]
pub(super) struct WindowUpdates {
    last_ns: Option<i64>,
    /// Bytes of the last acknowledgements, and when one was larger than needed.
    recent: VecDeque<u32>,
    larger_ns: Option<i64>,
}

impl WindowUpdates {
    /// Takes the client's next acknowledgement.
    pub(super) fn ack(&mut self, at_ns: i64, bytes: u32) {
        let least = self.recent.iter().min().copied().unwrap_or(bytes);
        if bytes >= least + UPDATE_BYTES {
            self.larger_ns = Some(at_ns);
        }
        if self.recent.len() >= RECENT_ACKS {
            self.recent.pop_front();
        }
        self.recent.push_back(bytes);
    }

    /// Whether one since then was larger, as if it also made room in a window.
    pub(super) fn larger_since(&self, from_ns: i64) -> bool {
        self.larger_ns.is_some_and(|at| at >= from_ns)
    }

    pub(super) const fn push(&mut self, at_ns: i64) {
        self.last_ns = Some(at_ns);
    }

    /// Takes the server's next data, with the round trip to the server: how long before it the last one
    /// passed, unless it cannot have reached the server yet.
    pub(super) fn before(&mut self, data_ns: i64, round_trip_ns: i64) -> Option<i64> {
        // The minimum of few round trips is too long at times.
        let since_ns = self.last_ns.map(|at| data_ns - at).filter(|ns| *ns >= round_trip_ns / 2)?;
        self.last_ns = None;
        Some(since_ns)
    }
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
        let first = packet.payload.first().copied().unwrap_or(0);
        let (long, is_handshake) = (first & LONG != 0, first & HANDSHAKE == HANDSHAKE);
        let (packets, begins, upstream_rtt_ns) = if up {
            (
                flow.client(packet, is_handshake),
                Some(if long { TLS_HANDSHAKE } else { TLS_DATA }),
                None,
            )
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

    fn client(&mut self, packet: &Packet<'_>, is_handshake: bool) -> [Option<TracedPacket>; 2] {
        let now = packet.at_ns;
        if let Some(at) = self.answered_ns.take() {
            self.downstream_ns = Some(now - at);
        }
        let asks = u64::from(packet.payload_bytes) >= MIN_REQUEST_BYTES;
        let early = asks && self.down_datagrams < FIRST_DATAGRAMS;
        // What comes after one in the middle of a flight answers nothing: after the acknowledgement of an
        // Initial packet, a probe of the path's MTU (RFC 9000, 14.3) or a second request.
        let flight = self.last_down_ns.zip(self.upstream_ns);
        let is_amid = flight.is_some_and(|(last_ns, rtt_ns)| now - last_ns < rtt_ns / 2);
        if early && (is_handshake || !is_amid) {
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
        self.last_down_ns = Some(now);
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
        // Acknowledgements and control are not acknowledged (RFC 9000, 13.2.1).
        let is_data = u64::from(packet.payload_bytes) >= MIN_REQUEST_BYTES;
        let bytes = if is_data { packet.payload_bytes } else { 0 };
        let datagram = TracedPacket {
            offset_bytes: self.down_bytes,
            payload_bytes: bytes,
            new_bytes: bytes.into(),
            ..self.traced(packet, Direction::Dl, TcpFlags::ACK)
        };
        self.down_datagrams = self.down_datagrams.saturating_add(1);
        self.down_bytes += i64::from(bytes);
        if is_data && self.sent.len() < MAX_SENT {
            self.sent.push_back((self.down_bytes, now));
        }
        ([answers, Some(datagram)], rtt_ns)
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Cause;

    use super::super::{Attribution, ByteBins, RadioEvidence, SenderModel, WaitTimeline};
    use super::*;

    const MS: i64 = 1_000_000;

    /// A flow as captured at the phone, and what its sender waited for.
    struct Flow {
        senders: QuicSenders,
        sender: SenderModel,
        waits: WaitTimeline,
    }

    impl Flow {
        /// Set up at 0, over a round trip of 50 ms; a request at 51 ms.
        fn open() -> Self {
            const INITIAL: [u8; 5] = [0xc0, 0, 0, 0, 1];
            let mut flow = Self {
                senders: QuicSenders::default(),
                sender: SenderModel::encrypted(),
                waits: WaitTimeline::new(),
            };
            flow.pass(0, true, 1_200, &INITIAL);
            flow.pass(50, false, 1_200, &INITIAL);
            flow.pass(51, true, 300, &[0x40]);
            flow
        }

        fn pass(&mut self, ms: i64, up: bool, payload_bytes: u32, payload: &[u8]) {
            let client = (Address::v4([10, 0, 0, 1]), 40_000);
            let server = (Address::v4([192, 0, 2, 1]), 443);
            let ends = if up { [client, server] } else { [server, client] };
            let packet = Packet::udp(ms * MS, ends, payload_bytes, payload);
            let datagram = self.senders.push(&packet).unwrap();
            if let Some(begins) = &datagram.begins {
                self.sender.client_payload(begins);
            }
            if let Some(rtt_ns) = datagram.upstream_rtt_ns {
                self.sender.note_upstream_rtt_ns(rtt_ns);
            }
            for one in datagram.packets.iter().flatten() {
                let mut held = Vec::new();
                self.sender.push(one, &mut held);
                self.waits.push(&held, one.dir == Direction::Dl);
            }
        }

        /// 50 datagrams, each second one acknowledged; returns when the last one passed.
        fn burst(&mut self, from_ms: i64, bytes: u32) -> i64 {
            for at in from_ms..from_ms + 50 {
                self.pass(at, false, bytes, &[0x40]);
                if at % 2 == 0 {
                    self.pass(at, true, 40, &[0x40]);
                }
            }
            self.pass(from_ms + 74, true, 40, &[0x40]);
            from_ms + 49
        }

        fn split(self, from_ms: i64, to_ms: i64) -> Vec<(Cause, i64)> {
            let one = Attribution::new(self.waits, ByteBins::default()).with_round_trip(50 * MS);
            let shares = one.split(from_ms * MS, to_ms * MS, Some(RadioEvidence::default()));
            shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS)).collect()
        }
    }

    /// The client reads as much each second as its window holds; between, it asks whether the server is
    /// still there. Neither says of what the server, or the path, was slow.
    #[test]
    fn a_reader_that_is_slow_is_neither_a_line_nor_a_server() {
        let mut flow = Flow::open();
        let mut ends = Vec::new();
        for second in 0..4 {
            let from_ms = second * 1_000 + 100;
            ends.push(flow.burst(from_ms, 1_400));
            flow.pass(from_ms + 500, true, 41, &[0x40]);
            flow.pass(from_ms + 550, false, 34, &[0x40]);
            flow.pass(from_ms + 950, true, 45, &[0x40]);
        }
        let (first, last) = (ends[0], ends[3]);
        let shares = flow.split(first, last);
        let unknown_ms: i64 =
            shares.iter().filter(|one| one.0 == Cause::Unknown).map(|one| one.1).sum();
        // Between the four bursts.
        assert!(unknown_ms >= 3 * 951, "{shares:?}");
        let named = |cause: &Cause| [Cause::Wireline, Cause::SenderLimited].contains(cause);
        assert!(!shares.iter().any(|(cause, _)| named(cause)), "{shares:?}");
    }

    /// The window holds 51 datagrams, the last of them in part: acknowledgements that make room for the
    /// next flight are larger. Without these the application has no more data.
    #[test]
    fn flights_of_one_size_may_fill_a_window() {
        for update in [6, 0] {
            let mut flow = Flow::open();
            let mut ends = Vec::new();
            for n in 0..20 {
                let from_ms = 100 + n * 130;
                flow.burst(from_ms, 1_400);
                flow.pass(from_ms + 75, false, 500, &[0x40]);
                flow.pass(from_ms + 75, true, 40 + update, &[0x40]);
                ends.push(from_ms + 75);
            }
            let shares = flow.split(ends[10], ends[19]);
            let own = shares.iter().find(|(of, _)| *of == Cause::SenderLimited);
            let own_ms = own.map_or(0, |(_, ms)| *ms);
            let expected = if update == 0 { 9 * 55 } else { 0 };
            assert!((expected..=2 * expected).contains(&own_ms), "{update}: {shares:?}");
        }
    }

    /// A server, too, probes the MTU, with a larger datagram than the others.
    #[test]
    fn a_probe_of_the_mtu_makes_no_datagram_short() {
        let mut flow = Flow::open();
        flow.pass(110, false, 1_452, &[0x40]);
        // Rounds of a slow start.
        let mut from_ms = 120;
        for n in 0..4 {
            for _ in 0..10 << n {
                flow.pass(from_ms, false, 1_200, &[0x40]);
                flow.pass(from_ms, true, 40, &[0x40]);
            }
            from_ms += 52;
        }
        let shares = flow.split(120, from_ms - 52);
        assert_eq!(shares, [(Cause::FirstSlowStart, 156)]);
    }

    /// In the middle of a flight the client acknowledges an Initial packet, and probes the path's MTU.
    #[test]
    fn round_trips_are_of_requests() {
        let mut flow = Flow::open();
        flow.pass(52, true, 1_200, &[0xc0]);
        flow.pass(54, false, 1_200, &[0xe0]);
        // The last message of its handshake.
        flow.pass(54, true, 300, &[0xe0]);
        for at in 100..110 {
            flow.pass(at, false, 1_200, &[0x40]);
            flow.pass(at, true, 1_400, &[0x40]);
        }
        assert_eq!(flow.sender.upstream_rtt_ns(), Some(46 * MS));
    }

    /// Nothing that the client sent preceded the data after the pause.
    #[test]
    fn a_server_without_data_is_the_sender() {
        let mut flow = Flow::open();
        let end = flow.burst(100, 1_400);
        flow.burst(1_100, 1_400);
        assert_eq!(flow.split(end + 100, 1_100), [(Cause::SenderLimited, 851)]);
    }
}
