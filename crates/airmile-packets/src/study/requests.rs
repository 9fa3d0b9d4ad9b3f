//! Figure 24: periodic requests of a client to a server, by the client's ports, and the
//! data that the client receives.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airmile_model::packet::{Address, Packet};
use airmile_wire::tcp::PeriodicRequests;
use schemars::JsonSchema;
use serde::Serialize;

use super::line::{PointSeries, SeriesPoint};
use super::words;

/// A pause of this length ends a transfer, as in the search for periods.
const PAUSE_NS: i64 = 1_000_000_000;
/// Maximum number of ports drawn, in the order of their first use (chosen here: rows of a
/// figure).
const MOST_PORTS: usize = 60;
/// Maximum number of transfers drawn per port (chosen here).
const MOST_TRANSFERS: usize = 200;
/// Length of the first bins of what is received (chosen here).
const BIN_NS: i64 = 100_000_000;

/// Periodic requests. Times are in seconds from the client's first packet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Requests {
    /// The client's address.
    pub client: String,
    /// The server's address.
    pub server: String,
    /// Mean interval in seconds.
    pub period_s: f64,
    /// Share of the time without traffic to or from the server.
    pub idle_share: f64,
    /// Transfers from the server, by the client's ports.
    pub transfers: Vec<Transfer>,
    /// Packets with payload in no transfer here: beyond the maximum of ports or
    /// transfers.
    pub packets_left_out: u64,
    /// Length of a bin of `received_bps` in seconds.
    pub bin_s: f64,
    /// `[start of a bin in seconds, IP bytes towards the client in it as bit/s]`;
    /// bins without any are left out.
    pub received_bps: Vec<[f64; 2]>,
}

/// Bytes from the server without a pause of a second.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Transfer {
    /// The client's port.
    pub port: u16,
    /// First packet.
    pub from_s: f64,
    /// Last packet.
    pub to_s: f64,
    /// Payload in bytes.
    pub bytes: u64,
}

#[derive(Debug)]
struct Bin {
    at_ns: i64,
    bytes: u64,
}

impl SeriesPoint for Bin {
    fn at_ns(&self) -> i64 {
        self.at_ns
    }

    fn absorb(&mut self, later: Self) {
        self.bytes += later.bytes;
    }
}

/// Gathers them from the packets of the capture.
#[derive(Debug)]
pub(super) struct RequestsBuilder {
    of: PeriodicRequests,
    client: Address,
    server: Address,
    start_ns: Option<i64>,
    ports: BTreeMap<u16, Vec<(i64, i64, u64)>>,
    left_out: u64,
    bins: Option<PointSeries<Bin>>,
    bin: Option<Bin>,
}

impl RequestsBuilder {
    /// For the rhythm with the most bytes.
    pub(super) fn of(periodic: &[PeriodicRequests]) -> Option<Self> {
        let of = periodic.iter().max_by_key(|p| p.bytes)?;
        let address = |text: &str| text.parse::<IpAddr>().ok().map(Address::from);
        let (client, server) = (address(&of.client)?, address(&of.server)?);
        Some(Self {
            of: of.clone(),
            client,
            server,
            start_ns: None,
            ports: BTreeMap::new(),
            left_out: 0,
            bins: None,
            bin: None,
        })
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        if packet.src != self.client && packet.dst != self.client {
            return;
        }
        let start = *self.start_ns.get_or_insert(packet.at_ns);
        if packet.dst != self.client {
            return;
        }
        self.receive(packet, start);
        if packet.src == self.server && packet.payload_bytes > 0 {
            self.transfer(packet);
        }
    }

    fn receive(&mut self, packet: &Packet<'_>, start: i64) {
        let at_ns = start + (packet.at_ns - start).div_euclid(BIN_NS) * BIN_NS;
        let bytes = u64::from(packet.ip_bytes);
        match &mut self.bin {
            Some(bin) if bin.at_ns == at_ns => bin.bytes += bytes,
            bin => {
                if let Some(over) = bin.replace(Bin { at_ns, bytes }) {
                    // Bins of the line are whole numbers of these.
                    let span = BIN_NS * 2_500;
                    self.bins.get_or_insert_with(|| PointSeries::new(start, span)).push(over);
                }
            }
        }
    }

    fn transfer(&mut self, packet: &Packet<'_>) {
        if !self.ports.contains_key(&packet.dst_port) && self.ports.len() >= MOST_PORTS {
            self.left_out += 1;
            return;
        }
        let transfers = self.ports.entry(packet.dst_port).or_default();
        let (at, bytes) = (packet.at_ns, u64::from(packet.payload_bytes));
        let room = transfers.len() < MOST_TRANSFERS;
        match transfers.last_mut() {
            Some((_, to, sum)) if at - *to < PAUSE_NS => {
                *to = at;
                *sum += bytes;
            }
            _ if room => transfers.push((at, at, bytes)),
            _ => self.left_out += 1,
        }
    }

    pub(super) fn finish(mut self) -> Requests {
        let start = self.start_ns.unwrap_or_default();
        if let (Some(bins), Some(over)) = (&mut self.bins, self.bin.take()) {
            bins.push(over);
        }
        let s = |at: i64| words::rounded_ms(at - start) / 1e3;
        let bins = self.bins.as_ref();
        let bin_ns = bins.map_or(0.0, |b| b.bin_ms() * 1e6).max(BIN_NS as f64);
        let rate = |bin: &Bin| [s(bin.at_ns), (bin.bytes as f64 * 8e9 / bin_ns).round()];
        let transfers = self.ports.iter().flat_map(|(port, transfers)| {
            let port = *port;
            transfers.iter().map(move |&(from, to, bytes)| Transfer {
                port,
                from_s: s(from),
                to_s: s(to),
                bytes,
            })
        });
        Requests {
            client: self.of.client.clone(),
            server: self.of.server.clone(),
            period_s: self.of.period_s,
            idle_share: self.of.idle_share,
            transfers: transfers.collect(),
            packets_left_out: self.left_out,
            bin_s: bin_ns / 1e9,
            received_bps: bins.map(|b| b.points().iter().map(rate).collect()).unwrap_or_default(),
        }
    }
}
