//! One flow: its 5-tuple, its client, and its two directions.

use airmile_model::ClientBy;
use airmile_model::packet::{Address, Packet, TcpFlags, TcpHeader};

use super::bandwidth::Bandwidth;
use super::clock::TickClock;
use super::cwnd::OwnFlight;
use super::episode::Episodes;
use super::flight::FlightCounts;
use super::mix::mix;
use super::opt64::{Opt32, Opt64};
use super::route::NewFlow;
use super::sender::SenderWindow;
use super::side::{OfSides, Side};
use super::stream::ByteStream;
use super::window::WindowFull;
use crate::app::AppState;

/// Both ends, the lower first, and the protocol, in 40 bytes: words of 64 bits
/// instead of addresses, so that an entry of the router's table is one cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowKey {
    addresses: [[u64; 2]; 2],
    ports: [u16; 2],
    pub(super) protocol: u8,
    /// 1: the leg of a split connection towards the server; 0: any other flow.
    pub(super) leg: u8,
}

impl FlowKey {
    /// Whether both are the same, word by word: a comparison in wider words has to wait
    /// for a key that was just assembled from these.
    #[inline]
    pub(super) const fn is(&self, other: &Self) -> bool {
        let ([[a, b], [c, d]], [[e, f], [g, h]]) = (self.addresses, other.addresses);
        let ([low, high], [other_low, other_high]) = (self.ports, other.ports);
        let ports = (low ^ other_low) | (high ^ other_high);
        let rest = (self.protocol ^ other.protocol) | (self.leg ^ other.leg);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0 && ports == 0 && rest == 0
    }

    /// The key, and whether the packet goes from the lower end to the higher.
    #[inline]
    pub(super) fn from_packet(packet: &Packet<'_>) -> (Self, bool) {
        let src = (packet.src, packet.src_port);
        let dst = (packet.dst, packet.dst_port);
        let upwards = src <= dst;
        let (low, high) = if upwards { (src, dst) } else { (dst, src) };
        (
            Self {
                addresses: [low.0.words(), high.0.words()],
                ports: [low.1, high.1],
                protocol: packet.protocol,
                leg: 0,
            },
            upwards,
        )
    }

    /// A hash of it.
    #[inline]
    pub(super) const fn hash(&self) -> u64 {
        let [low, high] = self.addresses;
        let [low_port, high_port] = self.ports;
        let rest = (low_port as u64) << 24 | (high_port as u64) << 8 | self.protocol as u64;
        if low[0] == 0 && high[0] == 0 {
            // IPv4: the lower halves identify the address.
            return mix(low[1] << 32 | high[1] & 0xffff_ffff, rest);
        }
        mix(mix(low[1], high[1]) ^ mix(low[0], high[0]), rest)
    }

    pub(super) const fn ends(&self) -> [(Address, u16); 2] {
        let ([low, high], [low_port, high_port]) = (self.addresses, self.ports);
        [(Address::from_words(low), low_port), (Address::from_words(high), high_port)]
    }
}

/// Which end is the client: the handset's side. Returns true for the packet's source.
pub(super) fn client_is_source(
    packet: &Packet<'_>,
    client_networks: &[(Address, u8)],
) -> (bool, ClientBy) {
    let listed = |a: Address| client_networks.iter().any(|(net, bits)| a.is_in(*net, *bits));
    let (src, dst) = (packet.src, packet.dst);
    match (listed(src), listed(dst)) {
        (true, false) => return (true, ClientBy::Network),
        (false, true) => return (false, ClientBy::Network),
        _ => {}
    }
    if let Some(tcp) = packet.tcp()
        && tcp.flags.has(TcpFlags::SYN)
    {
        return (!tcp.flags.has(TcpFlags::ACK), ClientBy::Syn);
    }
    client_by_ends(packet)
}

/// Which end is the client by addresses and ports alone: the same for packets of either
/// direction, except by [`ClientBy::FirstPacket`].
pub(super) fn client_by_ends(packet: &Packet<'_>) -> (bool, ClientBy) {
    let (src, dst) = (packet.src, packet.dst);
    // Servers of a data centre also have private addresses: ports come first.
    let private = (src.is_private(), dst.is_private());
    match (is_service(packet.src_port), is_service(packet.dst_port)) {
        (false, true) if private == (true, false) => (true, ClientBy::Private),
        (true, false) if private == (false, true) => (false, ClientBy::Private),
        (false, true) => (true, ClientBy::Port),
        (true, false) => (false, ClientBy::Port),
        _ if private == (true, false) => (true, ClientBy::Private),
        _ if private == (false, true) => (false, ClientBy::Private),
        _ if packet.src_port == packet.dst_port => (true, ClientBy::FirstPacket),
        _ if packet.tcp().is_some() => (packet.src_port > packet.dst_port, ClientBy::Port),
        _ => (true, ClientBy::FirstPacket),
    }
}

/// Ports that servers listen at: the system ports of RFC 6335, and common alternatives.
const fn is_service(port: u16) -> bool {
    port < 1024 || matches!(port, 8080 | 8443 | 5222 | 5228)
}

/// An ACK follows the SYN-ACK sooner than this where the phone itself captured both (chosen here: below
/// any round trip over a radio link).
const AT_PHONE_NS: i64 = 1_000_000;

/// Times of the three-way handshake at the monitor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handshake {
    pub(super) syn_ns: Opt64,
    pub(super) syn_ack_ns: Opt64,
    pub(super) ack_ns: Opt64,
    syns: u8,
    syn_acks: u8,
    /// TSval of the SYN and of the ACK.
    pub(super) syn_ts: Option<u32>,
    pub(super) ack_ts: Option<u32>,
    /// True: the user had been silent long enough for the radio to be idle.
    pub(super) from_idle: bool,
}

impl Handshake {
    /// The part of an end's RTT on its own side of the monitor; 0 if it is unknown.
    #[inline]
    pub(super) fn beyond_ns(&self, end: Side) -> i64 {
        let beyond = match end {
            Side::Client => self.downstream_ns(),
            Side::Server => self.upstream_ns(),
        };
        beyond.unwrap_or_default()
    }

    /// Whether the next segment of the client is its last part.
    #[inline]
    pub(super) const fn awaits_ack(&self) -> bool {
        self.syn_ack_ns.is_some() && self.ack_ns.is_none()
    }

    /// SYN to SYN-ACK, if neither was retransmitted.
    pub(super) fn upstream_ns(&self) -> Option<i64> {
        let once = self.syns == 1 && self.syn_acks == 1;
        Self::span(self.syn_ns, self.syn_ack_ns).filter(|_| once)
    }

    /// SYN-ACK to ACK.
    pub(super) fn downstream_ns(&self) -> Option<i64> {
        let once = self.syn_acks == 1;
        Self::span(self.syn_ack_ns, self.ack_ns).filter(|_| once)
    }

    fn span(from: Opt64, to: Opt64) -> Option<i64> {
        to.get().zip(from.get()).map(|(to, from)| to - from).filter(|span| *span >= 0)
    }

    /// Takes a packet of the client (`up`) or the server.
    pub(super) fn push(&mut self, now: i64, tcp: &TcpHeader, up: bool) {
        let (syn, ack) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::ACK));
        let value = tcp.timestamps.map(|t| t.0);
        match (syn, ack, up) {
            (true, false, true) => {
                self.syns = self.syns.saturating_add(1);
                self.syn_ns.or_set(now);
                self.syn_ts = self.syn_ts.or(value);
            }
            (true, true, false) => {
                self.syn_acks = self.syn_acks.saturating_add(1);
                self.syn_ack_ns.or_set(now);
            }
            (false, true, true) if self.awaits_ack() => {
                self.ack_ns = Opt64::some(now);
                self.ack_ts = value;
            }
            _ => {}
        }
    }

    /// Promotion delay: G (TS_a - TS_b) - RTT (paper 4.2 with its sign corrected).
    pub(super) fn promotion_ns(&self, tick_ns: f64) -> Option<i64> {
        if !self.from_idle || self.syns != 1 {
            return None;
        }
        // At the phone, the promotion is part of the way to the server.
        self.downstream_ns().filter(|ns| *ns >= AT_PHONE_NS)?;
        let ticks = self.ack_ts?.wrapping_sub(self.syn_ts?);
        let experienced = f64::from(ticks) * tick_ns;
        Some(experienced as i64 - self.upstream_ns()? - self.downstream_ns()?)
    }
}

/// The options of a SYN.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offer {
    pub(super) seen: bool,
    pub(super) mss_bytes: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
}

/// One end of a flow: the stream it sends, and its parameters.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) stream: ByteStream,
    /// The capture is known to hold copies of its packets.
    pub(super) sure_copies: bool,
    pub(super) offer: Offer,
    pub(super) clock: TickClock,
    pub(super) initial_window: Opt32,
    pub(super) min_window: Opt32,
    pub(super) zero_windows: u32,
    last_window_zero: bool,
    pub(super) bandwidth: Option<Box<Bandwidth>>,
    pub(super) episodes: Episodes,
    pub(super) sender: SenderWindow,
    /// Present if samples of the window are wanted.
    pub(super) own_flight: Option<Box<OwnFlight>>,
    /// Flow control by the other end.
    pub(super) full: WindowFull,
}

impl End {
    /// Records the options of a SYN, as far as the capture has them.
    pub(super) const fn offered(&mut self, tcp: &TcpHeader) {
        self.offer = Offer {
            seen: !tcp.options_cut,
            mss_bytes: tcp.mss_bytes,
            window_scale: tcp.window_scale,
            sack: tcp.sack_permitted,
            timestamps: tcp.timestamps.is_some(),
        };
    }

    /// Whether windows of its data's bandwidth wait for G.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        self.bandwidth.as_ref().is_some_and(|bandwidth| bandwidth.has_waiting())
    }

    /// Whether a segment to this end is larger than the MSS that it offered.
    #[inline]
    pub(super) fn is_exceeded_by(&self, packet: &Packet<'_>) -> bool {
        self.offer.mss_bytes.is_some_and(|mss| packet.payload_bytes > u32::from(mss))
    }

    /// Records a window; returns true if it just closed.
    #[inline]
    pub(super) fn advertise(&mut self, window: Option<u64>, raw: u16) -> bool {
        // Scaled, a window is 30 bits at most (RFC 7323, 2.3).
        if let Some(window) = window.and_then(|window| u32::try_from(window).ok()) {
            self.initial_window.or_set(window);
            self.min_window = self.min_window.or_min(window);
        }
        let closed = raw == 0 && !self.last_window_zero;
        self.last_window_zero = raw == 0;
        self.zero_windows += u32::from(closed);
        closed
    }
}

/// How a TCP flow ended so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    Open,
    Fin,
    Rst,
}

/// One flow.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) number: u64,
    pub(super) key: FlowKey,
    /// Index of the client in `key.ends()`.
    pub(super) client: u8,
    pub(super) client_by: ClientBy,
    pub(super) user: u32,
    pub(super) start_ns: i64,
    pub(super) last_ns: i64,
    pub(super) max_gap_ns: i64,
    pub(super) last_payload_ns: Opt64,
    pub(super) closing: Closing,
    pub(super) only_syns: bool,
    /// The capture cut off TCP options.
    pub(super) options_cut: bool,
    pub(super) mid_flow: bool,
    pub(super) handshake: Handshake,
    pub(super) ends: OfSides<End>,
    pub(super) keep_alives: u32,
    pub(super) window_probes: u32,
    /// Second in which it last received data, for concurrency.
    pub(super) active_second: i64,
    pub(super) shared: bool,
    /// Listed among the flows that may have memory to free.
    pub(super) awake: bool,
    /// Whether rows of `tcp_events` are wanted.
    pub(super) wants_events: bool,
    /// Whether its packets are wanted individually.
    pub(super) traced: bool,
    /// G of the client's device, if the flow itself was too short for it.
    pub(super) device_tick_ns: Option<f64>,
    pub(super) app: AppState,
    pub(super) udp: Option<Box<OfSides<UdpTotals>>>,
    /// Bytes that the server had in flight.
    pub(super) dl_flights: FlightCounts,
}

/// Totals of one direction of a UDP flow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UdpTotals {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) ip_bytes: u64,
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: Option<i64>,
}

impl FlowState {
    pub(super) fn new(new: &NewFlow) -> Self {
        let NewFlow { number, key, client, client_by, user, now, mid_flow } = *new;
        Self {
            number,
            key,
            client: client as u8,
            client_by,
            user,
            start_ns: now,
            last_ns: now,
            max_gap_ns: 0,
            last_payload_ns: Opt64::NONE,
            closing: Closing::Open,
            only_syns: true,
            options_cut: false,
            mid_flow,
            handshake: Handshake::default(),
            ends: OfSides::default(),
            keep_alives: 0,
            window_probes: 0,
            active_second: i64::MIN,
            shared: false,
            awake: false,
            wants_events: false,
            traced: false,
            device_tick_ns: None,
            app: AppState::default(),
            udp: None,
            dl_flights: FlightCounts::default(),
        }
    }

    /// Whether it is left out of its user's counts, because the other leg counts.
    pub(super) const fn is_aside(&self) -> bool {
        self.key.leg != 0
    }

    /// Whether only one packet has passed.
    pub(super) fn is_of_one_packet(&self) -> bool {
        let [client, server] = &self.ends.0;
        let packets = [client, server].map(|end| end.stream.totals.packets);
        packets == [1, 0]
            && self.is_tcp()
            && !(self.mid_flow || client.sure_copies || server.sure_copies)
            && self.max_gap_ns == 0
            && self.start_ns == self.last_ns
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.key.protocol == 6
    }

    pub(super) fn client(&self) -> (Address, u16) {
        self.key.ends()[usize::from(self.client & 1)]
    }

    pub(super) fn server(&self) -> (Address, u16) {
        self.key.ends()[usize::from(self.client & 1 ^ 1)]
    }

    /// The number of the stream that an end sends.
    #[inline]
    pub(super) const fn stream_number(&self, sender: Side) -> u64 {
        self.number << 1 | sender as u64
    }

    /// Whether data arrives at the client around a packet of an end: what a queue keeps arrives after the
    /// last packet with data has passed.
    #[inline]
    pub(super) fn receives(&self, sender: Side, is_data: bool) -> bool {
        match sender {
            Side::Client => self.ends[Side::Server].stream.flight() > 0,
            Side::Server => is_data,
        }
    }

    /// Takes a packet of the handshake, or a possible one.
    #[inline]
    pub(super) fn greet(&mut self, now: i64, tcp: &TcpHeader, up: bool) {
        let open = up && self.handshake.ack_ns.is_none();
        if open || tcp.flags.has(TcpFlags::SYN) {
            self.handshake.push(now, tcp, up);
        }
    }

    /// The window of an end's segment in bytes, if its scale is known (RFC 7323, 2.2: a
    /// SYN's is never scaled).
    pub(super) fn window_of(&self, sender: Side, tcp: &TcpHeader) -> Option<u64> {
        let raw = u64::from(tcp.window);
        // No scale changes a closed window.
        if tcp.flags.has(TcpFlags::SYN) || raw == 0 {
            return Some(raw);
        }
        self.window_scale(sender).map(|scale| raw << scale)
    }

    /// The scale of an end's windows, if it is known.
    fn window_scale(&self, sender: Side) -> Option<u8> {
        let [a, b] = Side::BOTH.map(|side| self.ends[side].offer);
        if !(a.seen && b.seen) {
            // One SYN without the option disables scaling in both directions.
            let refused =
                (a.seen && a.window_scale.is_none()) || (b.seen && b.window_scale.is_none());
            return refused.then_some(0);
        }
        match (a.window_scale, b.window_scale) {
            (Some(a), Some(b)) => Some(if sender.is_client() { a } else { b }),
            _ => Some(0),
        }
    }

    /// The first window of an end after its SYN, if both are known.
    pub(super) fn initial_window(&self, end: Side) -> Option<u64> {
        let (scale, this) = (self.window_scale(end), &self.ends[end]);
        let known = scale.is_some() && this.stream.syn_seen;
        this.initial_window.get().filter(|_| known).map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth::{Bandwidth, BandwidthWindow};
    use super::super::route::Route;
    use super::super::user::UserState;
    use super::*;

    /// `make bench` measures the memory of an open flow; with these it is less than 2,048 bytes. All are
    /// sizes that the command's allocator has.
    #[test]
    fn the_state_of_a_flow_does_not_grow_unseen() {
        assert!(size_of::<FlowState>() <= 1_024);
        assert!(size_of::<Bandwidth>() <= 80);
        assert!(size_of::<BandwidthWindow>() <= 64);
        assert!(size_of::<UserState>() <= 448);
        assert_eq!(size_of::<Option<Route>>(), 8);
    }
}
