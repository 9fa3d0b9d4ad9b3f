//! Transfers observed at a phone with unknown applications: a request goes up, data comes
//! down (or up), until the next request.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use airmile_model::Direction;

use crate::host::{AppLog, AppNote, TimedTransfer};
use crate::net::{IpPacket, Transport};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Minimum size of a transfer; smaller exchanges, such as control messages and single
/// bytes, are only logged (chosen here: less than a full segment).
const LEAST_BYTES: u64 = 1_460;

/// A connection's two endpoints, the phone's first.
type Ends = (u8, SocketAddrV4, SocketAddrV4);

/// The current exchange of a connection.
#[derive(Debug, Clone)]
struct ObservedExchange {
    start_ns: i64,
    first_dl_ns: Option<i64>,
    last_ns: i64,
    ul_bytes: u64,
    dl_bytes: u64,
}

/// A connection, or datagrams between two endpoints.
#[derive(Debug, Clone, Default)]
struct ObservedConnection {
    open: Option<ObservedExchange>,
    /// Payload sent up after data had come down: the next request if the data pauses now,
    /// as its response takes a round trip; otherwise control data such as HTTP/2's
    /// WINDOW_UPDATE.
    asked: Option<ObservedExchange>,
    syn_ns: Option<i64>,
    /// RTT of the handshake.
    rtt_ns: i64,
    /// The sequence number after the last payload sent up, and up to which it is
    /// acknowledged.
    sent_to: Option<u32>,
    acked_to: Option<u32>,
}

/// Splits the connections of a phone into exchanges. Over TCP an exchange starts with
/// payload sent up after payload has come down, and a response after at least half an RTT
/// of the handshake (chosen here: data in flight arrives sooner, except for a pause of the
/// link; a response later). This is the pattern of a next request, encrypted or not. UDP
/// has no such sign: all data between two endpoints is one exchange.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    connections: BTreeMap<Ends, ObservedConnection>,
    ended: Vec<(Ends, ObservedExchange)>,
}

impl Exchanges {
    /// The phone sends.
    pub(super) fn sent(&mut self, at_ns: i64, packet: &IpPacket) {
        let Some(parsed) = Parsed::from_packet(packet) else { return };
        let connection =
            self.connections.entry((parsed.protocol, packet.src, packet.dst)).or_default();
        if parsed.syn {
            // Another connection between the same endpoints, or a repeated SYN.
            let ObservedConnection { open, asked, .. } = std::mem::take(connection);
            let ends = (parsed.protocol, packet.src, packet.dst);
            self.ended.extend(open.into_iter().chain(asked).map(|exchange| (ends, exchange)));
            connection.syn_ns = Some(at_ns);
        }
        let bytes = connection.new_bytes(&parsed);
        if bytes == 0 {
            return;
        }
        let has_answer = connection.open.as_ref().is_some_and(|open| open.dl_bytes > 0);
        let exchange = if has_answer && parsed.protocol == PROTOCOL_TCP {
            &mut connection.asked
        } else {
            &mut connection.open
        };
        let exchange = exchange.get_or_insert_with(|| ObservedExchange::new(at_ns));
        exchange.ul_bytes += bytes;
        exchange.last_ns = at_ns;
    }

    /// The phone receives.
    pub(super) fn received(&mut self, at_ns: i64, packet: &IpPacket) {
        let Some(parsed) = Parsed::from_packet(packet) else { return };
        let ends = (parsed.protocol, packet.dst, packet.src);
        let connection = self.connections.entry(ends).or_default();
        if parsed.syn {
            connection.rtt_ns = connection.syn_ns.map_or(0, |syn_ns| at_ns - syn_ns);
        }
        let acknowledges = connection.acknowledges(&parsed);
        if parsed.bytes == 0 {
            // An upload ends when its last byte is acknowledged; later acknowledgements are
            // for FINs, probes and windows.
            let ObservedConnection { open, asked, .. } = connection;
            let uploads = asked.as_mut().or(open.as_mut()).filter(|open| open.dl_bytes == 0);
            if let Some(exchange) = uploads.filter(|_| acknowledges) {
                exchange.last_ns = at_ns;
            }
            return;
        }
        if let Some(asked) = connection.asked.take() {
            match &mut connection.open {
                Some(open) if at_ns - asked.start_ns < connection.rtt_ns / 2 => {
                    open.ul_bytes += asked.ul_bytes;
                }
                _ => {
                    let before = connection.open.replace(asked);
                    self.ended.extend(before.map(|exchange| (ends, exchange)));
                }
            }
        }
        let exchange = connection.open.get_or_insert_with(|| ObservedExchange::new(at_ns));
        exchange.dl_bytes += parsed.bytes;
        exchange.first_dl_ns.get_or_insert(at_ns);
        exchange.last_ns = at_ns;
    }

    /// All exchanges as transfers and log entries, in order of their start.
    pub(super) fn into_app_log(mut self) -> AppLog {
        for (ends, ObservedConnection { open, asked, .. }) in std::mem::take(&mut self.connections)
        {
            self.ended.extend(open.into_iter().chain(asked).map(|exchange| (ends, exchange)));
        }
        self.ended.sort_by_key(|(ends, exchange)| (exchange.start_ns, *ends));
        let mut app_log = AppLog::default();
        for (n, (ends, exchange)) in self.ended.into_iter().enumerate() {
            exchange.note_down(ends, n + 1, &mut app_log);
        }
        app_log
    }
}

impl ObservedExchange {
    const fn new(start_ns: i64) -> Self {
        Self { start_ns, first_dl_ns: None, last_ns: start_ns, ul_bytes: 0, dl_bytes: 0 }
    }

    fn note_down(self, (protocol, near, far): Ends, n: usize, app_log: &mut AppLog) {
        let app = if protocol == PROTOCOL_TCP { "tcp" } else { "udp" };
        let id = format!("{app}-{n}");
        let uploads = self.ul_bytes > self.dl_bytes;
        let (dir, bytes) =
            if uploads { (Direction::Ul, self.ul_bytes) } else { (Direction::Dl, self.dl_bytes) };
        let note =
            |event, at_ns| AppNote { event, id: Some(id.clone()), ..AppNote::new(at_ns, app) };
        app_log.notes.push(AppNote {
            bytes: Some(self.ul_bytes),
            what: Some(format!("{near} to {far}")),
            ..note("request", self.start_ns)
        });
        app_log.notes.extend(self.first_dl_ns.map(|at_ns| note("first_byte", at_ns)));
        app_log.notes.push(AppNote { bytes: Some(bytes), ..note("end", self.last_ns) });
        if bytes >= LEAST_BYTES {
            // An observer of packets cannot know whether more data was to come.
            let (start_ns, end_ns, unfinished) = (self.start_ns, self.last_ns, false);
            app_log.ended.push(TimedTransfer { id, dir, start_ns, end_ns, bytes, unfinished });
        }
    }
}

impl ObservedConnection {
    /// Payload bytes sent up for the first time, without retransmissions.
    fn new_bytes(&mut self, parsed: &Parsed) -> u64 {
        if parsed.protocol != PROTOCOL_TCP || parsed.bytes == 0 {
            return parsed.bytes;
        }
        let to = parsed.seq.wrapping_add(u32::try_from(parsed.bytes).unwrap_or(u32::MAX));
        let new = self.sent_to.map_or(parsed.bytes, |before| ahead(to, before).min(parsed.bytes));
        if new > 0 {
            self.sent_to = Some(to);
            self.acked_to.get_or_insert(parsed.seq);
        }
        new
    }

    /// Whether a packet acknowledges new payload.
    fn acknowledges(&mut self, parsed: &Parsed) -> bool {
        let (Some(sent_to), Some(acked_to)) = (self.sent_to, self.acked_to) else { return false };
        // A FIN also has a sequence number.
        let ack = if ahead(parsed.ack, sent_to) > 0 { sent_to } else { parsed.ack };
        let is_new = ahead(ack, acked_to) > 0;
        if is_new {
            self.acked_to = Some(ack);
        }
        is_new
    }
}

/// How far a sequence number is ahead of another (RFC 9293, 3.4); 0 if it is not.
fn ahead(number: u32, of: u32) -> u64 {
    u64::try_from(number.wrapping_sub(of).cast_signed()).unwrap_or(0)
}

/// The fields used of a TCP or UDP packet.
struct Parsed {
    protocol: u8,
    bytes: u64,
    seq: u32,
    ack: u32,
    syn: bool,
}

impl Parsed {
    fn from_packet(packet: &IpPacket) -> Option<Self> {
        const SYN: u8 = 2;
        let Transport::Raw(bytes) = &packet.transport else { return None };
        let header = usize::from(bytes.first()? & 0xf) * 4;
        let protocol = *bytes.get(9)?;
        let word = |at: usize| {
            let bytes = bytes.get(header + at..header + at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let (transport_header, seq, ack, syn) = match protocol {
            PROTOCOL_TCP => {
                let offset = usize::from(bytes.get(header + 12)? >> 4) * 4;
                (offset, word(4)?, word(8)?, bytes.get(header + 13)? & SYN != 0)
            }
            PROTOCOL_UDP => (8, 0, 0, false),
            _ => return None,
        };
        let bytes = bytes.len().checked_sub(header + transport_header)? as u64;
        Some(Self { protocol, bytes, seq, ack, syn })
    }
}
