//! HTTP/1 (RFC 9112) by the heads of its messages.

use std::collections::VecDeque;

use airmile_model::flow::{HttpRow, PacketRow};
use airmile_model::packet::Packet;

use super::{Place, http_row};

/// Requests without a response that are remembered (chosen here).
const MAX_PENDING: usize = 64;

/// RFC 9110, 9.3 and RFC 5789.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
];

/// Whether a payload begins a request.
pub(super) fn is_request(payload: &[u8]) -> bool {
    METHODS.iter().any(|method| payload.starts_with(method))
}

#[derive(Debug, Default)]
pub(super) struct HttpState {
    /// Requests in order; the first may have its response under way.
    pending: VecDeque<HttpRow>,
    host: Option<String>,
}

impl HttpState {
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(super) fn push(&mut self, place: Place, packet: &Packet<'_>, rows: &mut Vec<PacketRow>) {
        let payload = packet.payload;
        if place.up {
            if is_request(payload) {
                self.request(place, packet);
            }
        } else if payload.starts_with(b"HTTP/1.") {
            self.response(packet, rows);
        } else if let Some(row) = self.pending.front_mut().filter(|row| row.response_ns.is_some()) {
            row.response_bytes += u64::from(packet.payload_bytes);
            row.end_ns = Some(packet.at_ns);
        }
    }

    fn request(&mut self, place: Place, packet: &Packet<'_>) {
        let mut lines = lines(packet.payload);
        let mut words = lines.next().unwrap_or_default().split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
        let mut row = HttpRow {
            flow: place.flow,
            user: place.user,
            request_ns: packet.at_ns,
            response_ns: None,
            end_ns: None,
            method,
            host: None,
            path,
            range: false,
            status: None,
            content_type: None,
            content_length_bytes: None,
            response_bytes: 0,
        };
        for (name, value) in lines.filter_map(field) {
            match name.as_str() {
                "host" => row.host = Some(value.to_owned()),
                "range" => row.range = true,
                _ => {}
            }
        }
        if self.host.is_none() {
            self.host.clone_from(&row.host);
        }
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back(row);
    }

    fn response(&mut self, packet: &Packet<'_>, rows: &mut Vec<PacketRow>) {
        // A final response before this one is over; 1xx are not final.
        if self.pending.front().is_some_and(|row| row.status.is_some_and(|s| s >= 200)) {
            rows.extend(self.pending.pop_front().map(http_row));
        }
        let Some(row) = self.pending.front_mut() else { return };
        let mut lines = lines(packet.payload);
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        row.status = status;
        row.response_ns.get_or_insert(packet.at_ns);
        row.end_ns = Some(packet.at_ns);
        row.response_bytes += u64::from(packet.payload_bytes);
        for (name, value) in lines.filter_map(field) {
            match name.as_str() {
                "content-type" => {
                    let kind = value.split(';').next().unwrap_or_default();
                    row.content_type = Some(kind.trim().to_ascii_lowercase());
                }
                "content-length" => row.content_length_bytes = value.parse().ok(),
                _ => {}
            }
        }
    }

    pub(super) fn finish(&mut self, rows: &mut Vec<PacketRow>) {
        rows.extend(self.pending.drain(..).map(http_row));
    }
}

/// Lines of a message's head. The last one may be cut.
fn lines(payload: &[u8]) -> impl Iterator<Item = &str> {
    let text = match std::str::from_utf8(payload) {
        Ok(text) => text,
        Err(error) => payload
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    };
    text.split("\r\n").take_while(|line| !line.is_empty())
}

fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim()))
}
