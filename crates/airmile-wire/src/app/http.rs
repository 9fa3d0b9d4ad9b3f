//! HTTP/1 (RFC 9112), parsed from message heads.

use std::collections::VecDeque;

use airmile_model::flow::{HttpRow, PacketRow};
use airmile_model::packet::Packet;
use airmile_model::printable;

use super::{PacketContext, http_row};

/// Maximum number of requests kept while they wait for a response (chosen here).
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
pub(crate) fn is_request(payload: &[u8]) -> bool {
    METHODS.iter().any(|method| payload.starts_with(method))
}

#[derive(Debug, Default)]
pub(super) struct HttpState {
    /// Requests in order; the response to the first may be in progress.
    pending: VecDeque<HttpRow>,
    host: Option<String>,
}

impl HttpState {
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(super) fn push(
        &mut self,
        place: PacketContext,
        packet: &Packet<'_>,
        rows: &mut Vec<PacketRow>,
    ) {
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

    fn request(&mut self, place: PacketContext, packet: &Packet<'_>) {
        let mut lines = lines(packet.payload);
        let mut words = lines.next().unwrap_or_default().split(' ');
        let method = printable(words.next().unwrap_or_default()).into_owned();
        let target = words.next().unwrap_or_default();
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let path = printable(path).into_owned();
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
                "host" => row.host = Some(printable(value).into_owned()),
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
        // A final response ends the previous one; 1xx responses are not final.
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
                    row.content_type =
                        Some(printable(&kind.trim().to_ascii_lowercase()).into_owned());
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

/// Lines of a message's head. In a head cut by the capture or by a segment boundary, the
/// last line is kept only if it ends with a space; incomplete lines are left out.
fn lines(payload: &[u8]) -> impl Iterator<Item = &str> {
    let text = match std::str::from_utf8(payload) {
        Ok(text) => text,
        Err(error) => payload
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    };
    let end = text.rfind("\r\n").or_else(|| text.rfind(' '));
    let whole = end.and_then(|end| text.get(..end)).unwrap_or_default();
    whole.split("\r\n").take_while(|line| !line.is_empty())
}

fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim()))
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{Address, Ecn, Transport};

    use super::*;

    fn push(http: &mut HttpState, ms: i64, up: bool, payload: &[u8], bytes: u32) -> Vec<PacketRow> {
        let packet = Packet {
            at_ns: ms * 1_000_000,
            src: Address::v4([10, 0, 0, 1]),
            dst: Address::v4([192, 0, 2, 1]),
            src_port: 40_000,
            dst_port: 80,
            protocol: 6,
            transport: Transport::Other,
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 40 + bytes,
            payload_bytes: bytes,
            payload,
            fragmented: false,
            tunnelled: false,
            interface: 0,
        };
        let mut rows = Vec::new();
        let place = PacketContext { flow: 1, user: 2, up, server_port: 80, tcp: true };
        http.push(place, &packet, &mut rows);
        rows
    }

    #[test]
    fn requests_on_one_connection_with_cut_payload() {
        let mut http = HttpState::default();
        let get = b"GET /v.mp4?token=1 HTTP/1.1\r\nHost: a.example\r\nRange: bytes=0-99\r\n\r\n";
        assert!(push(&mut http, 0, true, get, get.len() as u32).is_empty());
        let head = b"HTTP/1.1 206 Partial Content\r\nContent-Type: Video/MP4; x=1\r\nContent-Length: 3000\r\nX-Cut: a";
        assert!(push(&mut http, 50, false, head, 1448).is_empty());
        assert!(push(&mut http, 60, false, &[], 1448).is_empty());
        push(&mut http, 70, true, b"HEAD / HTTP/1.1\r\nHost: b\r\n\r\n", 30);
        let rows = push(&mut http, 99, false, b"HTTP/1.1 404 Not Found\r\n\r\n", 30);
        let [PacketRow::Http(row)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.method.as_str(), row.path.as_str(), row.range), ("GET", "/v.mp4", true));
        assert_eq!(row.host.as_deref(), Some("a.example"));
        assert_eq!((row.status, row.content_type.as_deref()), (Some(206), Some("video/mp4")));
        assert_eq!((row.content_length_bytes, row.response_bytes), (Some(3000), 2896));
        assert_eq!((row.response_ns, row.end_ns), (Some(50_000_000), Some(60_000_000)));
        let mut rest = Vec::new();
        http.finish(&mut rest);
        let [PacketRow::Http(row)] = rest.as_slice() else { panic!("{rest:?}") };
        assert_eq!((row.status, row.method.as_str()), (Some(404), "HEAD"));
    }

    #[test]
    fn what_the_capture_cut_is_left_out() {
        let mut http = HttpState::default();
        push(&mut http, 0, true, b"GET /a HTTP/1.1\r\nHost: exam", 90);
        push(&mut http, 1, true, b"GET /a/long", 90);
        push(&mut http, 2, false, b"HTTP/1.1 200 OK\r\nContent-Length: 37", 1448);
        let mut rows = Vec::new();
        http.finish(&mut rows);
        let [PacketRow::Http(one), PacketRow::Http(two)] = rows.as_slice() else { panic!() };
        assert_eq!((one.path.as_str(), one.host.as_deref(), one.status), ("/a", None, Some(200)));
        assert_eq!((one.content_length_bytes, two.method.as_str()), (None, "GET"));
        assert_eq!(two.path, "");
    }

    #[test]
    fn an_interim_response_is_not_the_answer() {
        let mut http = HttpState::default();
        push(&mut http, 0, true, b"POST /u HTTP/1.1\r\n\r\n", 20);
        push(&mut http, 1, false, b"HTTP/1.1 100 Continue\r\n\r\n", 25);
        push(&mut http, 2, false, b"HTTP/1.1 201 Created\r\n\r\n", 24);
        let mut rows = Vec::new();
        http.finish(&mut rows);
        let [PacketRow::Http(row)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.status, row.response_ns), (Some(201), Some(1_000_000)));
    }
}
