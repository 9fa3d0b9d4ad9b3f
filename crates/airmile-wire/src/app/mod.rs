//! Identifies applications by the first bytes of their payload: HTTP/1, TLS, DNS, QUIC.
//! Truncated payload is parsed as far as it goes.

mod dns;
mod http;
mod quic;
mod tls;

pub use airmile_model::packet::is_long_header;
pub(crate) use http::is_request as is_http_request;

use airmile_model::flow::{DnsRow, HttpRow, PacketRow};
use airmile_model::packet::Packet;

/// Payloads examined before a flow's application counts as unknown (chosen here).
const MAX_TRIES: u8 = 6;

/// What is known of a flow's application.
#[derive(Debug, Default)]
pub(crate) struct AppState {
    kind: AppProtocol,
    names: Option<Box<Names>>,
}

/// State that few flows need.
#[derive(Debug, Default)]
struct Names {
    server: Option<String>,
    alpn: Option<String>,
}

/// Progress in reading a client hello.
#[derive(Debug, Default)]
struct HelloBytes(Vec<u8>);

#[derive(Debug)]
enum AppProtocol {
    Unknown(u8),
    Http(Box<http::HttpState>),
    Dns(Box<dns::DnsState>),
    Quic(Box<quic::QuicState>),
    /// A client hello that may continue in the next segment.
    Hello(Box<HelloBytes>),
    Tls,
    Other,
}

impl Default for AppProtocol {
    fn default() -> Self {
        Self::Unknown(0)
    }
}

/// The flow and direction of a payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketContext {
    pub(crate) flow: u64,
    pub(crate) user: u64,
    /// From the client.
    pub(crate) up: bool,
    pub(crate) server_port: u16,
    pub(crate) tcp: bool,
}

impl AppState {
    /// Whether more payload could add information.
    #[inline]
    pub(crate) const fn looks(&self) -> bool {
        !matches!(self.kind, AppProtocol::Tls | AppProtocol::Other)
    }

    /// Whether it is QUIC.
    pub(crate) const fn is_quic(&self) -> bool {
        matches!(self.kind, AppProtocol::Quic(_))
    }

    /// Takes new payload, in order.
    pub(crate) fn push(
        &mut self,
        place: PacketContext,
        packet: &Packet<'_>,
        rows: &mut Vec<PacketRow>,
    ) {
        match &mut self.kind {
            AppProtocol::Tls | AppProtocol::Other => {}
            AppProtocol::Unknown(tries) => {
                *tries += 1;
                let last = *tries >= MAX_TRIES;
                self.begin(place, packet, rows);
                if last && matches!(self.kind, AppProtocol::Unknown(_)) {
                    self.kind = AppProtocol::Other;
                }
            }
            AppProtocol::Http(http) => {
                http.push(place, packet, rows);
                if let Some(host) = http.host().filter(|_| self.names.is_none()) {
                    let server = Some(host.to_owned());
                    self.names = Some(Box::new(Names { server, alpn: None }));
                }
            }
            AppProtocol::Dns(dns) => dns.push(place, packet, rows),
            AppProtocol::Hello(hello) => {
                let HelloBytes(bytes) = &mut **hello;
                if place.up {
                    bytes.extend_from_slice(packet.payload);
                }
                if !place.up || packet.payload_cut() || tls::is_whole(bytes) {
                    self.read_hello();
                }
            }
            AppProtocol::Quic(quic) => {
                quic.push(place.up, packet);
                if let Some(hello) = quic.take_hello() {
                    let (server, alpn) = (hello.server_name, hello.alpn);
                    self.names = Some(Box::new(Names { server, alpn }));
                }
            }
        }
    }

    /// The next downstream RTT that QUIC's spin bit shows, with its time, in ns. RTTs from
    /// before the bit was known to spin come later than their time.
    pub(crate) fn poll_spin_rtt(&mut self) -> Option<(i64, i64)> {
        match &mut self.kind {
            AppProtocol::Quic(quic) => quic.poll_rtt(),
            _ => None,
        }
    }

    fn begin(&mut self, place: PacketContext, packet: &Packet<'_>, rows: &mut Vec<PacketRow>) {
        let payload = packet.payload;
        self.kind = if place.server_port == 53 {
            AppProtocol::Dns(Box::default())
        } else if place.tcp && place.up && http::is_request(payload) {
            AppProtocol::Http(Box::default())
        } else if place.tcp && place.up && tls::is_hello(payload) {
            AppProtocol::Hello(Box::default())
        } else if !place.tcp && is_long_header(payload) {
            AppProtocol::Quic(Box::default())
        } else {
            return;
        };
        self.push(place, packet, rows);
    }

    fn read_hello(&mut self) {
        if let AppProtocol::Hello(hello) = &self.kind {
            let hello = tls::client_hello(&hello.0);
            self.names = Some(Box::new(Names { server: hello.server_name, alpn: hello.alpn }));
            self.kind = AppProtocol::Tls;
        }
    }

    /// The server's name, as requested by the client.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.names.as_ref()?.server.as_deref()
    }

    fn alpn(&self) -> Option<&str> {
        self.names.as_ref()?.alpn.as_deref()
    }

    /// The application's name.
    pub(crate) fn name(&self) -> Option<String> {
        let name = match &self.kind {
            AppProtocol::Http(_) => "http",
            AppProtocol::Dns(_) => "dns",
            AppProtocol::Quic(_) => self.alpn().unwrap_or("quic"),
            AppProtocol::Tls | AppProtocol::Hello(_) => self.alpn().unwrap_or("tls"),
            AppProtocol::Unknown(_) | AppProtocol::Other => return None,
        };
        Some(name.to_owned())
    }

    /// Length of QUIC's handshake in nanoseconds.
    pub(crate) fn quic_handshake_ns(&self) -> Option<i64> {
        match &self.kind {
            AppProtocol::Quic(quic) => quic.handshake_ns(),
            _ => None,
        }
    }

    /// Ends the flow: reports what was in progress.
    pub(crate) fn finish(&mut self, place: PacketContext, rows: &mut Vec<PacketRow>) {
        match &mut self.kind {
            AppProtocol::Http(http) => http.finish(rows),
            AppProtocol::Dns(dns) => dns.finish(place, rows),
            AppProtocol::Hello(_) => self.read_hello(),
            _ => {}
        }
    }
}

fn http_row(row: HttpRow) -> PacketRow {
    PacketRow::Http(Box::new(row))
}

fn dns_row(row: DnsRow) -> PacketRow {
    PacketRow::Dns(Box::new(row))
}
