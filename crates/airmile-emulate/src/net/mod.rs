//! Interface between the parts of the emulated network: IP packets, and the hosts that send
//! and receive them.
//!
//! A host does no I/O and has no clock. Its driver calls [`Host::handle_packet`] and
//! [`Host::handle_timeout`] with the time, then [`Host::poll_transmit`] until it returns
//! `None`, and calls again at [`Host::poll_timeout`].

mod contents;
mod segment;
mod wire;

use std::net::{Ipv4Addr, SocketAddrV4};

pub(crate) use contents::Contents;
pub use contents::{Literal, bytes_of};
pub use segment::{Flags, SackBlock, TcpSegment};
pub use wire::WireError;

/// Bytes of an IPv4 header without options (RFC 791).
pub const IPV4_HEADER_BYTES: u32 = 20;

/// Bytes of a UDP header (RFC 768).
pub const UDP_HEADER_BYTES: u32 = 8;

/// An IPv4 packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpPacket {
    /// Sender.
    pub src: SocketAddrV4,
    /// Receiver.
    pub dst: SocketAddrV4,
    /// Identification (RFC 791, 3.1): counts per sender, so that a packet can be identified
    /// at another capture point.
    pub ip_id: u16,
    /// The payload.
    pub transport: Transport,
}

/// Payload of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(TcpSegment),
    /// A UDP datagram's payload.
    Udp(Vec<u8>),
    /// A whole IP packet of any protocol with its header, as sent by an outside host:
    /// carried without parsing.
    Raw(Vec<u8>),
}

impl IpPacket {
    /// Total length of the IP packet in bytes.
    #[must_use]
    pub fn ip_bytes(&self) -> u32 {
        let of = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        match &self.transport {
            Transport::Tcp(segment) => {
                IPV4_HEADER_BYTES + segment.header_bytes() + segment.payload_bytes()
            }
            Transport::Udp(payload) => IPV4_HEADER_BYTES + UDP_HEADER_BYTES + of(payload),
            Transport::Raw(packet) => of(packet),
        }
    }
}

/// A phone program's view of the phone's own transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhoneView {
    /// Minimum RTT of its connections to servers.
    pub min_rtt_ns: Option<i64>,
    /// Whether a response is outstanding.
    pub busy: bool,
}

/// An endpoint of the network or a box within it: everything that sends.
pub trait Host {
    /// A packet has arrived.
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket);

    /// The time from [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now_ns: i64);

    /// A packet to send now.
    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket>;

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    fn poll_timeout(&self) -> Option<i64>;

    /// For a phone: a program's view of its transports.
    fn phone_view(&self) -> PhoneView {
        PhoneView::default()
    }

    /// For a phone: the servers of its applications.
    fn servers(&self) -> Vec<Ipv4Addr> {
        Vec::new()
    }
}
