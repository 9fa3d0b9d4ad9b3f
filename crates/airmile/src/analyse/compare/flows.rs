//! Captures of a run: the phone's connections, their exchanges and round trips.

use std::collections::HashMap;
use std::path::PathBuf;

use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags};
use airmile_wire::compare::{Exchanges, RequestExchange};

use airmile_io::FileReport;
use airmile_io::capture::read_capture;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// The capture is at the client if the client's share of the round trip is below this (chosen here,
/// as in a diagnosis).
const AT_CLIENT: f64 = 0.1;

/// A connection as the client sees it.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) server: Address,
    pub(super) port: u16,
    /// From SYN to SYN-ACK; at the server, to the handshake's last ACK.
    pub(super) rtt_ns: Option<i64>,
    pub(super) exchanges: Vec<RequestExchange>,
}

/// A capture's connections.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) name: String,
    pub(super) report: FileReport,
    pub(super) flows: Vec<Flow>,
    /// The client's side of the round trip relative to the whole; `None` without handshakes.
    client_share: Option<f64>,
}

/// Reads captures and keeps those nearest to the client.
///
/// # Errors
/// One cannot be read.
pub(super) fn read(
    captures: &[PathBuf],
    progress: &Progress,
) -> Result<(Vec<Captured>, Vec<FileReport>)> {
    let mut all = Vec::new();
    for path in captures {
        let mut reading = ConnectionReader::default();
        let report = read_capture(path, progress, &mut |packet| reading.push(packet))?;
        all.push(reading.finish(report));
    }
    let reports = all.iter().map(|one| one.report.clone()).collect();
    let nearest = all
        .iter()
        .filter_map(|one| one.client_share)
        .reduce(f64::min)
        .map_or(1.0, |least| least.max(AT_CLIENT));
    // Without a handshake the place of a capture is unknown: it is kept if it is the only one.
    let alone = all.len() == 1;
    all.retain(|one| alone || one.client_share.is_some_and(|share| share <= nearest));
    // A proxy is a client of the server, too, with a shorter path to it.
    let longest = all.iter().filter_map(Captured::round_trip_ns).max().unwrap_or(0);
    all.retain(|one| one.round_trip_ns().is_none_or(|rtt_ns| rtt_ns >= longest / 2));
    least_round_trips(&mut all);
    Ok((all, reports))
}

impl Captured {
    /// Whether it was taken nearer to the server than to the client; `None` without handshakes.
    pub(super) fn is_at_server(&self) -> Option<bool> {
        self.client_share.map(|share| share > 0.5)
    }

    /// The median round trip of handshakes, in nanoseconds.
    fn round_trip_ns(&self) -> Option<i64> {
        let mut all: Vec<i64> = self.flows.iter().filter_map(|flow| flow.rtt_ns).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

/// Sets each connection's round trip to the minimum of those to its server's port: a handshake may
/// have waited for the radio.
fn least_round_trips(all: &mut [Captured]) {
    let mut least: HashMap<(Address, u16), i64> = HashMap::new();
    for flow in all.iter().flat_map(|one| &one.flows) {
        if let Some(own) = flow.rtt_ns {
            let slot = least.entry((flow.server, flow.port)).or_insert(own);
            *slot = (*slot).min(own);
        }
    }
    for flow in all.iter_mut().flat_map(|one| &mut one.flows) {
        flow.rtt_ns = least.get(&(flow.server, flow.port)).copied();
    }
}

type End = (Address, u16);

/// A capture during reading: connections by the client's end, then the server's.
#[derive(Debug, Default)]
struct ConnectionReader {
    open: HashMap<(End, End), ClientConnection>,
    done: Vec<Flow>,
    client_ns: i64,
    whole_ns: i64,
}

#[derive(Debug, Default)]
struct ClientConnection {
    exchanges: Exchanges,
    done: Vec<RequestExchange>,
    /// Sequence number of the SYN.
    isn: Option<SeqNum>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    rtt_ns: Option<i64>,
    /// The end of the data received so far.
    down_end: Option<SeqNum>,
    up_end: Option<SeqNum>,
    /// The end of the data that the client has acknowledged.
    acked_end: Option<SeqNum>,
    /// Whether the capture is nearer to the server. Data then pass it as they are sent, and arrive
    /// when they are acknowledged. By the handshake, else by those of earlier connections.
    at_server: Option<bool>,
}

impl ClientConnection {
    /// New bytes of a segment, given the end of the previous ones.
    fn fresh(end: &mut Option<SeqNum>, seq: SeqNum, bytes: u32) -> u64 {
        let to = SeqNum(seq.0.wrapping_add(bytes));
        let new = end.map_or_else(|| i32::try_from(bytes).unwrap_or(0), |end| to.since(end));
        if new > 0 {
            *end = Some(to);
        }
        u64::try_from(new).unwrap_or(0).min(u64::from(bytes))
    }

    /// Bytes of the captured data that an acknowledgement is the first for.
    fn acknowledged(&mut self, to: SeqNum) -> u64 {
        // A FIN is acknowledged, too.
        let Some(sent) = self.down_end else { return 0 };
        let to = if to.since(sent) > 0 { sent } else { to };
        let new = to.since(*self.acked_end.get_or_insert(to));
        if new > 0 {
            self.acked_end = Some(to);
        }
        u64::try_from(new).unwrap_or(0)
    }

    fn finish(mut self, server: End) -> Option<Flow> {
        self.exchanges.finish();
        self.done.extend(std::iter::from_fn(|| self.exchanges.poll()));
        let (server, port) = server;
        let flow = Flow { server, port, rtt_ns: self.rtt_ns, exchanges: self.done };
        (!flow.exchanges.is_empty()).then_some(flow)
    }
}

impl ConnectionReader {
    fn push(&mut self, packet: &Packet<'_>) {
        let Some(tcp) = packet.tcp() else { return };
        let (src, dst) = ((packet.src, packet.src_port), (packet.dst, packet.dst_port));
        let (syn, ack) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::ACK));
        if syn && !ack {
            // Reused ports, unless it is a retransmitted SYN: which of the two was answered is
            // unknown (Karn).
            let again = self.open.get(&(src, dst)).is_some_and(|c| c.isn == Some(tcp.seq));
            if again {
                if let Some(connection) = self.open.get_mut(&(src, dst)) {
                    connection.syn_ns = None;
                }
                return;
            }
            if let Some(old) = self.open.remove(&(src, dst)) {
                self.done.extend(old.finish(dst));
            }
            let connection = self.open.entry((src, dst)).or_default();
            (connection.syn_ns, connection.isn) = (Some(packet.at_ns), Some(tcp.seq));
            return;
        }
        let is_up = self.open.contains_key(&(src, dst))
            // Started before the capture: the server has the lower port.
            || !self.open.contains_key(&(dst, src)) && packet.dst_port < packet.src_port;
        let key = if is_up { (src, dst) } else { (dst, src) };
        let at_server = self.client_ns > self.whole_ns / 2;
        let connection = self.open.entry(key).or_default();
        if syn {
            // The first of retransmissions counts.
            let Some(syn_ns) = connection.syn_ns.take() else { return };
            connection.syn_ack_ns = Some(packet.at_ns);
            connection.rtt_ns = Some(packet.at_ns - syn_ns);
            connection.acked_end = Some(SeqNum(tcp.seq.0.wrapping_add(1)));
            if let Some(rtt_ns) = connection.rtt_ns {
                connection.exchanges.set_rtt(rtt_ns);
            }
            return;
        }
        if is_up {
            if let (Some(rtt_ns), Some(syn_ack_ns)) =
                (connection.rtt_ns, connection.syn_ack_ns.take())
            {
                let client_ns = packet.at_ns - syn_ack_ns;
                self.client_ns += client_ns;
                self.whole_ns += client_ns + rtt_ns;
                if *connection.at_server.get_or_insert(client_ns > rtt_ns) {
                    connection.rtt_ns = Some(client_ns + rtt_ns);
                    connection.exchanges.set_rtt(client_ns + rtt_ns);
                }
            }
            if connection.at_server == Some(true) && ack {
                let new = connection.acknowledged(tcp.ack);
                connection.exchanges.push_down(packet.at_ns, new);
            }
            if ClientConnection::fresh(&mut connection.up_end, tcp.seq, packet.payload_bytes) > 0 {
                connection.exchanges.push_up(packet.at_ns);
            }
        } else {
            let end = &mut connection.down_end;
            let new = ClientConnection::fresh(end, tcp.seq, packet.payload_bytes);
            if new > 0 && !*connection.at_server.get_or_insert(at_server) {
                connection.exchanges.push_down(packet.at_ns, new);
            }
        }
        connection.done.extend(std::iter::from_fn(|| connection.exchanges.poll()));
    }

    fn finish(mut self, report: FileReport) -> Captured {
        let open = self.open.drain();
        self.done.extend(open.filter_map(|((_, server), connection)| connection.finish(server)));
        self.done.sort_by_key(|flow| flow.exchanges.first().map(|first| first.start_ns));
        let share = self.client_ns as f64 / self.whole_ns.max(1) as f64;
        Captured {
            name: report.path.clone(),
            report,
            flows: self.done,
            client_share: (self.whole_ns > 0).then_some(share),
        }
    }
}
