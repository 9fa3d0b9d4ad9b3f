//! Transfers as they can be seen at a phone whose applications are not ours: a
//! request goes up, data comes down (or up), until the next request.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use airmile_model::Direction;

use crate::net::{Packet, Transport};
use crate::party::Notebook;
use crate::run::{AppNote, Timed};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// What carries less is noted down, and no transfer: control messages, single
/// bytes (chosen here: less than a full segment).
const LEAST_BYTES: u64 = 1_460;

/// A connection's two ends, the phone's first.
type Ends = (u8, SocketAddrV4, SocketAddrV4);

/// What is going on over a connection.
#[derive(Debug, Clone)]
struct Exchange {
    start_ns: i64,
    first_dl_ns: Option<i64>,
    last_ns: i64,
    ul_bytes: u64,
    dl_bytes: u64,
}

/// Cuts the connections of a phone into exchanges. Over TCP one begins with
/// payload that goes up after payload has come down, which is what a next
/// request looks like, encrypted or not. UDP has no such sign: what passes
/// between two ends is one exchange.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    open: BTreeMap<Ends, Exchange>,
    ended: Vec<(Ends, Exchange)>,
}

impl Exchanges {
    /// The phone sends.
    pub(super) fn sent(&mut self, at_ns: i64, packet: &Packet) {
        let Some((protocol, bytes)) = payload(packet) else { return };
        if bytes == 0 {
            return;
        }
        let ends = (protocol, packet.src, packet.dst);
        let is_next = |open: &Exchange| protocol == PROTOCOL_TCP && open.dl_bytes > 0;
        if self.open.get(&ends).is_some_and(is_next)
            && let Some(exchange) = self.open.remove(&ends)
        {
            self.ended.push((ends, exchange));
        }
        let exchange = self.open.entry(ends).or_insert_with(|| Exchange::new(at_ns));
        exchange.ul_bytes += bytes;
        exchange.last_ns = at_ns;
    }

    /// The phone receives.
    pub(super) fn received(&mut self, at_ns: i64, packet: &Packet) {
        let Some((protocol, bytes)) = payload(packet) else { return };
        if bytes == 0 {
            // What goes up is over when its last byte is acknowledged.
            let ends = (protocol, packet.dst, packet.src);
            if let Some(exchange) = self.open.get_mut(&ends).filter(|open| open.dl_bytes == 0) {
                exchange.last_ns = at_ns;
            }
            return;
        }
        let ends = (protocol, packet.dst, packet.src);
        let exchange = self.open.entry(ends).or_insert_with(|| Exchange::new(at_ns));
        exchange.dl_bytes += bytes;
        exchange.first_dl_ns.get_or_insert(at_ns);
        exchange.last_ns = at_ns;
    }

    /// All exchanges as transfers and notes, in order of their start.
    pub(super) fn into_notebook(mut self) -> Notebook {
        self.ended.extend(std::mem::take(&mut self.open));
        self.ended.sort_by_key(|(ends, exchange)| (exchange.start_ns, *ends));
        let mut notebook = Notebook::default();
        for (n, (ends, exchange)) in self.ended.into_iter().enumerate() {
            exchange.note_down(ends, n + 1, &mut notebook);
        }
        notebook
    }
}

impl Exchange {
    const fn new(start_ns: i64) -> Self {
        Self { start_ns, first_dl_ns: None, last_ns: start_ns, ul_bytes: 0, dl_bytes: 0 }
    }

    fn note_down(self, (protocol, near, far): Ends, n: usize, notebook: &mut Notebook) {
        let app = if protocol == PROTOCOL_TCP { "tcp" } else { "udp" };
        let id = format!("{app}-{n}");
        let uploads = self.ul_bytes > self.dl_bytes;
        let (dir, bytes) =
            if uploads { (Direction::Ul, self.ul_bytes) } else { (Direction::Dl, self.dl_bytes) };
        let note =
            |event, at_ns| AppNote { event, id: Some(id.clone()), ..AppNote::new(at_ns, app) };
        notebook.notes.push(AppNote {
            bytes: Some(self.ul_bytes),
            what: Some(format!("{near} to {far}")),
            ..note("request", self.start_ns)
        });
        notebook.notes.extend(self.first_dl_ns.map(|at_ns| note("first_byte", at_ns)));
        notebook.notes.push(AppNote { bytes: Some(bytes), ..note("end", self.last_ns) });
        if bytes >= LEAST_BYTES {
            // Who watches packets cannot tell what more was to come.
            let (start_ns, end_ns, unfinished) = (self.start_ns, self.last_ns, false);
            notebook.ended.push(Timed { id, dir, start_ns, end_ns, bytes, unfinished });
        }
    }
}

/// Protocol and payload bytes of a packet of TCP or UDP.
fn payload(packet: &Packet) -> Option<(u8, u64)> {
    let Transport::Raw(bytes) = &packet.transport else { return None };
    let header = usize::from(bytes.first()? & 0xf) * 4;
    let protocol = *bytes.get(9)?;
    let transport_header = match protocol {
        PROTOCOL_TCP => usize::from(bytes.get(header + 12)? >> 4) * 4,
        PROTOCOL_UDP => 8,
        _ => return None,
    };
    Some((protocol, bytes.len().checked_sub(header + transport_header)? as u64))
}
