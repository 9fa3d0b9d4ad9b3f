//! Connections of a capture as the client sees them: their exchanges and round trips.

use std::collections::HashMap;

use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags};

use airmile_wire::compare::{RequestTimer, TimedRequest};

/// A connection as the client sees it.
#[derive(Debug)]
pub struct Connection {
    /// The server.
    pub server: Address,
    /// Its port.
    pub port: u16,
    /// From SYN to SYN-ACK, in nanoseconds; at the server, to the handshake's last ACK.
    pub rtt_ns: Option<i64>,
    /// Its exchanges, in order.
    pub exchanges: Vec<TimedRequest>,
}

/// The round trips of handshakes by the sides of the monitor, in nanoseconds: of one, or their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandshakeSides {
    /// Between the monitor and the client.
    pub client_ns: i64,
    /// Between the monitor and the server.
    pub server_ns: i64,
}

impl HandshakeSides {
    /// Whether the capture is nearer to the server than to the client. Data then pass it as they are sent,
    /// and arrive when they are acknowledged. Which of two halves is shorter is all that is asked here:
    /// a capture nearer to the server may still be one between both
    /// ([`CaptureSite`](airmile_wire::attribute::CaptureSite)).
    #[must_use]
    pub const fn is_nearer_server(self) -> bool {
        self.client_ns > self.server_ns
    }

    /// The client's side relative to the whole; `None` without handshakes.
    #[must_use]
    pub fn client_share(self) -> Option<f64> {
        let whole_ns = self.client_ns + self.server_ns;
        (whole_ns > 0).then(|| self.client_ns as f64 / whole_ns as f64)
    }
}

type End = (Address, u16);

/// A capture during reading: connections by the client's end, then the server's.
#[derive(Debug, Default)]
pub struct ConnectionReader {
    open: HashMap<(End, End), ClientConnection>,
    done: Vec<Connection>,
    /// Sums over its handshakes.
    sides: HandshakeSides,
}

#[derive(Debug, Default)]
struct ClientConnection {
    exchanges: RequestTimer,
    done: Vec<TimedRequest>,
    /// Sequence number of the SYN.
    isn: Option<SeqNum>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    rtt_ns: Option<i64>,
    down: PassedData,
    /// The end of the data sent so far.
    up_end: Option<SeqNum>,
    /// The end of the data that the client has acknowledged.
    acked_end: Option<SeqNum>,
    /// Whether the capture is nearer to the server, by the handshake, else by those of earlier connections.
    nearer_server: Option<bool>,
}

/// Maximum number of gaps kept (chosen here: a scoreboard with more is implausible).
const MAX_GAPS: usize = 256;

/// Data of the server that passed: each byte counts once, also one that fills a gap. At the phone the
/// retransmission of lost data is its only copy.
#[derive(Debug, Default)]
struct PassedData {
    end: Option<SeqNum>,
    /// Gaps below the end: start and bytes.
    gaps: Vec<(SeqNum, u32)>,
}

impl PassedData {
    /// New bytes of a segment.
    fn fresh(&mut self, seq: SeqNum, bytes: u32) -> u64 {
        let skipped = self.end.map_or(0, |end| seq.since(end));
        if let (Some(end), 1..) = (self.end, skipped)
            && bytes > 0
        {
            if self.gaps.len() == MAX_GAPS {
                self.gaps.remove(0);
            }
            self.gaps.push((end, skipped.unsigned_abs()));
        }
        let late = skipped < 0 && bytes > 0 && !self.gaps.is_empty();
        let filled = if late { self.fill(seq, bytes) } else { 0 };
        filled + ClientConnection::fresh(&mut self.end, seq, bytes)
    }

    /// Takes a segment's bytes out of the gaps; returns their number.
    fn fill(&mut self, seq: SeqNum, bytes: u32) -> u64 {
        let mut filled = 0;
        for (start, length) in std::mem::take(&mut self.gaps) {
            let length = i64::from(length);
            let from = i64::from(seq.since(start)).clamp(0, length);
            let to = (i64::from(seq.since(start)) + i64::from(bytes)).clamp(0, length);
            filled += (to - from).unsigned_abs();
            for (from, to) in [(0, from), (to, length)].into_iter().filter(|(from, to)| from < to) {
                self.gaps.push((SeqNum(start.0.wrapping_add(from as u32)), (to - from) as u32));
            }
        }
        self.gaps.truncate(MAX_GAPS);
        filled
    }
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
        let Some(sent) = self.down.end else { return 0 };
        let to = if to.since(sent) > 0 { sent } else { to };
        let new = to.since(*self.acked_end.get_or_insert(to));
        if new > 0 {
            self.acked_end = Some(to);
        }
        u64::try_from(new).unwrap_or(0)
    }

    fn finish(mut self, server: End) -> Option<Connection> {
        self.exchanges.finish();
        self.done.extend(std::iter::from_fn(|| self.exchanges.poll()));
        let (server, port) = server;
        let flow = Connection { server, port, rtt_ns: self.rtt_ns, exchanges: self.done };
        (!flow.exchanges.is_empty()).then_some(flow)
    }
}

impl ConnectionReader {
    /// Takes the next packet of the capture.
    pub fn push(&mut self, packet: &Packet<'_>) {
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
        let nearer_server = self.sides.is_nearer_server();
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
                let sides = HandshakeSides { client_ns, server_ns: rtt_ns };
                self.sides.client_ns += sides.client_ns;
                self.sides.server_ns += sides.server_ns;
                if *connection.nearer_server.get_or_insert(sides.is_nearer_server()) {
                    connection.rtt_ns = Some(client_ns + rtt_ns);
                    connection.exchanges.set_rtt(client_ns + rtt_ns);
                }
            }
            if connection.nearer_server == Some(true) && ack {
                let new = connection.acknowledged(tcp.ack);
                connection.exchanges.push_down(packet.at_ns, new);
            }
            let new =
                ClientConnection::fresh(&mut connection.up_end, tcp.seq, packet.payload_bytes);
            if new > 0 {
                connection.exchanges.push_up(packet.at_ns, new, packet.payload);
            }
        } else {
            let new = connection.down.fresh(tcp.seq, packet.payload_bytes);
            if new > 0 && !*connection.nearer_server.get_or_insert(nearer_server) {
                connection.exchanges.push_down(packet.at_ns, new);
            }
        }
        connection.done.extend(std::iter::from_fn(|| connection.exchanges.poll()));
    }

    /// Ends the capture: its connections with exchanges in the order of these, and the round trips of its
    /// handshakes.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Connection>, HandshakeSides) {
        let open = self.open.drain();
        self.done.extend(open.filter_map(|((_, server), connection)| connection.finish(server)));
        self.done.sort_by_key(|flow| flow.exchanges.first().map(|first| first.start_ns));
        (self.done, self.sides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_half_of_the_handshake_is_nearer() {
        let check = |client_ns, server_ns, nearer_server, share| {
            let sides = HandshakeSides { client_ns, server_ns };
            assert_eq!((sides.is_nearer_server(), sides.client_share()), (nearer_server, share));
        };
        check(8, 92, false, Some(0.08));
        check(50, 50, false, Some(0.5));
        check(60, 40, true, Some(0.6));
        check(0, 0, false, None);
    }

    #[test]
    fn each_byte_counts_once_in_any_order() {
        let check = |segments: &[(u32, u32, u64)]| {
            let mut passed = PassedData::default();
            for (at, bytes, new) in segments {
                let seq = SeqNum(at.wrapping_sub(2_000));
                assert_eq!(passed.fresh(seq, *bytes), *new, "{at}");
            }
        };
        check(&[(0, 100, 100), (100, 100, 100), (100, 100, 0), (150, 100, 50)]);
        // A gap is filled by retransmissions, also across the wrap of the numbers.
        check(&[(1_000, 100, 100), (3_000, 1_000, 1_000), (2_500, 600, 500), (2_500, 600, 0)]);
        check(&[
            (0, 100, 100),
            (1_000, 100, 100),
            (400, 100, 100),
            (50, 1_200, 950),
            (99, 1_200, 49),
        ]);
    }
}
