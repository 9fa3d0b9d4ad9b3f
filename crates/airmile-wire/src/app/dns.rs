//! DNS lookups over UDP and TCP (RFC 1035).

use airmile_model::Protocol;
use airmile_model::flow::{DnsRow, PacketRow};
use airmile_model::packet::Packet;

use super::{PacketContext, dns_row};

/// Maximum number of pending lookups kept per flow (chosen here).
const MAX_PENDING: usize = 64;

#[derive(Debug, Default)]
pub(super) struct DnsState {
    pending: Vec<(u16, DnsRow)>,
}

struct DnsMessage {
    id: u16,
    is_response: bool,
    response_code: u8,
    name: Option<String>,
    query_type: Option<u16>,
}

impl DnsState {
    pub(super) fn push(
        &mut self,
        place: PacketContext,
        packet: &Packet<'_>,
        rows: &mut Vec<PacketRow>,
    ) {
        // RFC 1035, 4.2.2: over TCP two bytes of length come first.
        let payload = packet.payload.get(if place.tcp { 2 } else { 0 }..).unwrap_or_default();
        let Some(message) = read(payload) else { return };
        if message.is_response == place.up {
            return;
        }
        let at = self.pending.iter().position(|(id, _)| *id == message.id);
        if !message.is_response {
            return self.query(place, packet.at_ns, message, at);
        }
        let Some(at) = at else { return };
        let (_, mut row) = self.pending.swap_remove(at);
        row.lookup_ns = Some((packet.at_ns - row.query_ns).max(0));
        row.response_code = Some(message.response_code);
        rows.push(dns_row(row));
    }

    fn query(&mut self, place: PacketContext, now: i64, message: DnsMessage, at: Option<usize>) {
        if let Some((_, row)) = at.and_then(|at| self.pending.get_mut(at)) {
            row.queries += 1;
            return;
        }
        if self.pending.len() >= MAX_PENDING {
            self.pending.remove(0);
        }
        let row = DnsRow {
            flow: place.flow,
            user: place.user,
            query_ns: now,
            lookup_ns: None,
            name: message.name,
            query_type: message.query_type,
            response_code: None,
            queries: 1,
            transport: if place.tcp { Protocol::Tcp } else { Protocol::Udp },
        };
        self.pending.push((message.id, row));
    }

    /// Reports lookups without an answer.
    pub(super) fn finish(&mut self, _: PacketContext, rows: &mut Vec<PacketRow>) {
        rows.extend(self.pending.drain(..).map(|(_, row)| dns_row(row)));
    }
}

fn read(payload: &[u8]) -> Option<DnsMessage> {
    let header = payload.first_chunk::<12>()?;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    let mut message = DnsMessage {
        id: u16::from_be_bytes([header[0], header[1]]),
        is_response: header[2] & 0x80 != 0,
        response_code: header[3] & 0x0f,
        name: None,
        query_type: None,
    };
    if questions > 0
        && let Some((name, rest)) = read_name(payload.get(12..)?)
    {
        message.name = Some(name);
        message.query_type = rest.first_chunk::<2>().map(|t| u16::from_be_bytes(*t));
    }
    Some(message)
}

/// Reads the labels of a question. No name precedes it, so there are no compression
/// pointers.
fn read_name(mut rest: &[u8]) -> Option<(String, &[u8])> {
    let mut name = String::new();
    loop {
        let (&length, behind) = rest.split_first()?;
        let length = usize::from(length);
        if length == 0 {
            return Some((name, behind));
        }
        if length > 63 || name.len() > 253 {
            return None;
        }
        let label = behind.get(..length)?;
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|&b| if b.is_ascii_graphic() { char::from(b) } else { '?' }));
        rest = behind.get(length..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_what_is_none() {
        let query =
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x02ab\x00\x00\x1c\x00\x01";
        let message = read(query).unwrap();
        assert_eq!((message.id, message.is_response), (0x1234, false));
        assert_eq!((message.name.as_deref(), message.query_type), (Some("www.ab"), Some(28)));
        assert!(read(&query[..11]).is_none());
        assert_eq!(read(&query[..15]).unwrap().name, None);
    }
}
