//! What the sender of each connection waited for, per connection: a page's requests use
//! several connections, and each waits separately.

use std::collections::BTreeMap;
use std::sync::Arc;

use airmile_model::Direction;
use airmile_model::packet::{Address, Packet, TcpFlags};

use super::downlink_delay::{SendStamps, UnheardAcks};
use super::uplink_delay::UploadRoundTrips;
use super::{
    Attribution, ByteBins, CaptureSite, DownlinkDelay, SenderModel, Sides, UplinkDelay, WaitSpan,
    WaitTimeline,
};
use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;

/// Maximum number of connections kept (chosen here: a page has tens, a phone's hour some
/// thousand).
const MAX_CONNECTIONS: usize = 8_192;
/// Data within this time counts as one arrival (chosen here).
const MERGE_NS: i64 = 1_000_000;

/// Collects connections while a capture is read.
#[derive(Debug, Default)]
pub struct ConnectionCollector {
    connections: BTreeMap<u64, OpenConnection>,
    uplink: ByteBins,
    ends: Option<[(Address, u16); 2]>,
    held: Vec<WaitSpan>,
}

#[derive(Debug, Default)]
struct OpenConnection {
    client: Option<(Address, u16)>,
    server: Option<(Address, u16)>,
    model: SenderModel,
    uploads: UploadRoundTrips,
    unheard: UnheardAcks,
    stamps: SendStamps,
    waits: WaitTimeline,
    syns_ns: Vec<i64>,
    requests_ns: Vec<i64>,
    arrivals_ns: Vec<i64>,
}

/// A connection of a capture. Times are in nanoseconds on the aligned clock.
#[derive(Debug)]
pub struct Connection {
    /// The client's address and port.
    pub client: Option<(Address, u16)>,
    /// The server's.
    pub server: Option<(Address, u16)>,
    /// Times of its SYNs: more than one where SYNs were lost.
    pub syns_ns: Vec<i64>,
    /// Times of its requests.
    pub requests_ns: Vec<i64>,
    /// Times at which data arrived, merged within a millisecond.
    pub arrivals_ns: Vec<i64>,
    /// What its sender waited for.
    pub attribution: Attribution,
    /// Minimum round trip to its server.
    pub round_trip_ns: i64,
    /// By how much the phone's uploads delayed what it sent.
    pub uplink_delay: Arc<UplinkDelay>,
    /// Since when data that the phone received had been queued.
    pub downlink_delay: Arc<DownlinkDelay>,
}

impl ConnectionCollector {
    /// No packets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a packet as captured, before it is analysed.
    pub fn note(&mut self, packet: &Packet<'_>) {
        self.ends = Some([(packet.src, packet.src_port), (packet.dst, packet.dst_port)]);
    }

    /// Takes the engine's analysis of a TCP packet.
    pub fn push(&mut self, packet: &TracedPacket) {
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&packet.flow)
        {
            self.connections.pop_first();
        }
        let up = packet.dir == Direction::Ul;
        let one = self.connections.entry(packet.flow).or_default();
        if let Some([src, dst]) = self.ends {
            let (client, server) = if up { (src, dst) } else { (dst, src) };
            one.client.get_or_insert(client);
            one.server.get_or_insert(server);
        }
        if up {
            if packet.flags.has(TcpFlags::SYN) {
                one.syns_ns.push(packet.at_ns);
            }
            self.uplink.add(packet.at_ns, packet.new_bytes);
            if one.model.is_request(packet) {
                one.requests_ns.push(packet.at_ns);
            }
        } else if packet.new_bytes > 0 {
            match one.arrivals_ns.last_mut() {
                Some(last) if packet.at_ns.saturating_sub(*last) < MERGE_NS => {}
                _ => one.arrivals_ns.push(packet.at_ns),
            }
        }
        one.uploads.push(packet);
        self.held.clear();
        one.model.push(packet, &mut self.held);
        one.waits.push(&self.held, !up);
        one.unheard.push(packet, &one.model);
        one.stamps.push(packet);
    }

    /// Returns the connections, with their times moved to the clock of `line`.
    #[must_use]
    pub fn finish(self, line: Option<&ClockLine>) -> Vec<Connection> {
        let Self { connections, uplink, .. } = self;
        let sides = Sides::from_connections(connections.values().map(|one| &one.model));
        // At a monitor away from the phone, packets reach the phone half a round trip
        // later.
        let delay_ns = match sides.place() {
            CaptureSite::Phone => 0,
            _ => sides.downstream_ns.unwrap_or(0) / 2,
        };
        let set = |ns: i64| line.map_or(ns, |line| line.to_reference(ns));
        let uploads = connections.values().map(|one| &one.uploads);
        let uplink_delay = Arc::new(UplinkDelay::from_connections(uploads, line));
        let servers = Servers::from_connections(connections.values());
        let each = connections.values();
        let each = each.map(|one| (&one.unheard, &one.stamps, servers.upstream_ns(one)));
        let late = |ns: i64| set(ns.saturating_add(delay_ns));
        let downlink_delay = Arc::new(DownlinkDelay::from_connections(each, late));
        let each = connections.into_values().map(|one| {
            let up = one.model.upstream_rtt_ns().map_or(0, |_| servers.upstream_ns(&one));
            let round_trip_ns = up.saturating_add(one.model.downstream_rtt_ns().unwrap_or(0));
            let mut attribution = Attribution::new(one.waits.later(delay_ns), uplink.clone())
                .with_lost(one.model.lost().to_vec())
                .with_round_trip(round_trip_ns);
            if let Some(line) = line {
                attribution.set_clock(line);
            }
            attribution = attribution.with_downlink_delay(Arc::clone(&downlink_delay));
            let early = |at: Vec<i64>| at.into_iter().map(|ns| set(ns.saturating_sub(delay_ns)));
            Connection {
                client: one.client,
                server: one.server,
                syns_ns: early(one.syns_ns).collect(),
                requests_ns: early(one.requests_ns).collect(),
                arrivals_ns: one.arrivals_ns.into_iter().map(late).collect(),
                attribution,
                round_trip_ns,
                uplink_delay: Arc::clone(&uplink_delay),
                downlink_delay: Arc::clone(&downlink_delay),
            }
        });
        each.collect()
    }
}

/// Minimum round trips from the monitor to each server: a connection that began while a queue
/// existed has none of its own without it.
struct Servers {
    upstream_ns: BTreeMap<Option<(Address, u16)>, i64>,
}

impl Servers {
    fn from_connections<'a>(connections: impl Iterator<Item = &'a OpenConnection>) -> Self {
        let mut upstream_ns = BTreeMap::new();
        for one in connections {
            if let Some(ns) = one.model.upstream_rtt_ns() {
                let least = upstream_ns.entry(one.server).or_insert(ns);
                *least = ns.min(*least);
            }
        }
        Self { upstream_ns }
    }

    /// The minimum to a connection's server; the maximum value if there is none.
    fn upstream_ns(&self, connection: &OpenConnection) -> i64 {
        self.upstream_ns.get(&connection.server).copied().unwrap_or(i64::MAX)
    }
}
