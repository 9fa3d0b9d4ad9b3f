//! Packets: the fields of one captured IP packet.
//!
//! A [`Packet`] is a small `Copy` value that borrows the captured payload, so passing one
//! on is cheap and does not allocate.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address of either version in one word: IPv4 as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(u128);

impl Address {
    const V4_MAPPED: u128 = 0xffff_0000_0000;

    /// From the four bytes of an IPv4 header.
    #[must_use]
    pub const fn v4(bytes: [u8; 4]) -> Self {
        Self(Self::V4_MAPPED | u32::from_be_bytes(bytes) as u128)
    }

    /// From the sixteen bytes of an IPv6 header.
    #[must_use]
    pub const fn v6(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The upper 64 bits and the lower.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    /// From the upper 64 bits and the lower.
    #[must_use]
    pub const fn from_words([high, low]: [u64; 2]) -> Self {
        Self((high as u128) << 64 | low as u128)
    }

    /// Whether it is an IPv4 address.
    #[must_use]
    pub const fn is_v4(self) -> bool {
        self.0 >> 32 == Self::V4_MAPPED >> 32
    }

    /// As the standard library's type.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        match u32::try_from(self.0 & 0xffff_ffff) {
            Ok(low) if self.is_v4() => IpAddr::V4(Ipv4Addr::from(low)),
            _ => IpAddr::V6(Ipv6Addr::from(self.0)),
        }
    }

    /// Private (RFC 1918), shared (RFC 6598), unique local (RFC 4193) or link-local: the
    /// addresses that carriers assign to handsets.
    #[must_use]
    pub const fn is_private(self) -> bool {
        if self.is_v4() {
            let a = self.0 as u32;
            a >> 24 == 10
                || a >> 20 == 0xac1
                || a >> 16 == 0xc0a8
                || a >> 22 == 0x6440_0000 >> 22
                || a >> 16 == 0xa9fe
        } else {
            self.0 >> 121 == 0x7e || self.0 >> 118 == 0x3fa
        }
    }

    /// Whether the address is in the network of `prefix` bits around `network`.
    #[must_use]
    pub const fn is_in(self, network: Self, prefix: u8) -> bool {
        if self.is_v4() != network.is_v4() {
            return false;
        }
        let bits = if self.is_v4() { 96 + prefix as u32 } else { prefix as u32 };
        match bits {
            0 => true,
            1..=127 => self.0 >> (128 - bits) == network.0 >> (128 - bits),
            _ => self.0 == network.0,
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::v4(ip.octets()),
            IpAddr::V6(ip) => Self::v6(ip.octets()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A TCP sequence number, which wraps at 2^32 (RFC 9293, 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Bytes from `other` to this, modulo 2^32 in the shorter direction.
    #[must_use]
    pub const fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}

/// The ECN field of an IP header (RFC 3168, 5; RFC 8311), with its two bits as the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The transport is not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, of L4S (RFC 9331, 2).
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion was experienced: a queue on the way marked the packet.
    Ce = 3,
}

impl Ecn {
    /// By the two lower bits of a type of service or traffic class.
    #[inline]
    #[must_use]
    pub const fn of(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether its transport is ECN-capable.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Control bits of a TCP header (RFC 9293, 3.1; RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// Echo of a congestion mark (RFC 3168, 6.1).
    pub const ECE: Self = Self(0x40);
    /// The sender reduced its window after an echo.
    pub const CWR: Self = Self(0x80);

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// SACK blocks of one header; four fit at most (RFC 2018, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SeqNum, SeqNum); 4],
    n: u8,
}

impl SackBlocks {
    /// Adds a block, left and right edge; a fifth is ignored.
    pub fn push(&mut self, left: SeqNum, right: SeqNum) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.n)) {
            *slot = (left, right);
            self.n += 1;
        }
    }

    /// The blocks, left and right edge, in the header's order.
    #[must_use]
    pub fn as_slice(&self) -> &[(SeqNum, SeqNum)] {
        self.blocks.get(..usize::from(self.n)).unwrap_or_default()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }
}

/// The fields of a TCP header, as far as they were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Sequence number of the first byte of payload.
    pub seq: SeqNum,
    /// Next sequence number that the sender expects; valid with the ACK bit.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: TcpFlags,
    /// The bit of Accurate ECN before the control bits (RFC 9768, 3).
    pub ae: bool,
    /// Window as sent, not scaled.
    pub window: u16,
    /// Checksum as sent (unset at capture points before an offload).
    pub checksum: u16,
    /// Maximum segment size in bytes, in a SYN (RFC 9293, 3.7.1).
    pub mss_bytes: Option<u16>,
    /// Window scale, in a SYN (RFC 7323, 2).
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted, in a SYN (RFC 2018).
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323, 3).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// True: the options were truncated by the capture's snap length.
    pub options_cut: bool,
}

/// The protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "passed by reference, and TCP is the common case")]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// UDP.
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// A fragment that is not the first: no ports, no header.
    Fragment,
    /// Another protocol.
    Other,
}

/// One IP packet of a capture; the inner one if tunnels were unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Capture time in nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Source address.
    pub src: Address,
    /// Destination address.
    pub dst: Address,
    /// Source port; 0 if the protocol has none.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// The protocol above IP.
    pub transport: Transport,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification of an IPv4 header; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// Bytes of the packet on the wire, IP header included.
    pub ip_bytes: u32,
    /// Bytes of payload above the transport header on the wire, by the IP length.
    pub payload_bytes: u32,
    /// The payload's captured part.
    pub payload: &'a [u8],
    /// True: it came in fragments, or is the first of them.
    pub fragmented: bool,
    /// True: it came out of a GTP-U tunnel.
    pub tunnelled: bool,
    /// Index of the capture's interface.
    pub interface: u32,
}

impl<'a> Packet<'a> {
    /// A whole datagram over IPv4 between two ends, of which the payload's beginning was captured.
    #[must_use]
    pub const fn udp(
        at_ns: i64,
        [(src, src_port), (dst, dst_port)]: [(Address, u16); 2],
        payload_bytes: u32,
        payload: &'a [u8],
    ) -> Self {
        Self {
            at_ns,
            src,
            dst,
            src_port,
            dst_port,
            protocol: 17,
            transport: Transport::Udp,
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 28 + payload_bytes,
            payload_bytes,
            payload,
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }
}

impl Packet<'_> {
    /// The packet with another payload in memory; its sizes on the wire stay.
    #[inline]
    #[must_use]
    pub const fn with_payload<'b>(&self, payload: &'b [u8]) -> Packet<'b> {
        Packet {
            at_ns: self.at_ns,
            src: self.src,
            dst: self.dst,
            src_port: self.src_port,
            dst_port: self.dst_port,
            protocol: self.protocol,
            transport: self.transport,
            ecn: self.ecn,
            ip_id: self.ip_id,
            ip_bytes: self.ip_bytes,
            payload_bytes: self.payload_bytes,
            payload,
            fragmented: self.fragmented,
            tunnelled: self.tunnelled,
            interface: self.interface,
        }
    }

    /// The TCP header, if it has one.
    #[must_use]
    pub const fn tcp(&self) -> Option<&TcpHeader> {
        match &self.transport {
            Transport::Tcp(header) => Some(header),
            _ => None,
        }
    }

    /// Whether payload is missing because the capture truncated it.
    #[must_use]
    pub fn payload_cut(&self) -> bool {
        (self.payload.len() as u64) < u64::from(self.payload_bytes)
    }
}

/// Header form and fixed bit of QUIC (RFC 9000, 17.2).
const LONG_HEADER: u8 = 0xc0;

/// Whether a datagram begins with a long header of a known version: 1 (RFC 9000), 2 (RFC
/// 9369) or a draft.
#[must_use]
pub fn is_long_header(payload: &[u8]) -> bool {
    let Some([first, version @ ..]) = payload.first_chunk::<5>() else { return false };
    first & LONG_HEADER == LONG_HEADER
        && match u32::from_be_bytes(*version) {
            1 | 0x6b33_43cf => true,
            other => other >> 8 == 0x00ff_0000,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn addresses_print_as_written() {
        for text in ["10.9.0.2", "255.255.255.255", "0.0.0.0", "2001:db8::1", "::1"] {
            assert_eq!(address(text).to_string(), text);
        }
    }

    #[test]
    fn private_networks() {
        let private =
            ["10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.9", "fd00::1", "fe80::2"];
        let public = ["11.0.0.1", "172.32.0.1", "8.8.8.8", "100.128.0.1", "2001:db8::1"];
        assert!(private.into_iter().all(|a| address(a).is_private()));
        assert!(!public.into_iter().any(|a| address(a).is_private()));
    }

    #[test]
    fn prefixes() {
        let check = |a: &str, n: &str, prefix, expected| {
            assert_eq!(address(a).is_in(address(n), prefix), expected, "{a} in {n}/{prefix}");
        };
        check("10.1.2.3", "10.1.0.0", 16, true);
        check("10.2.2.3", "10.1.0.0", 16, false);
        check("10.2.2.3", "0.0.0.0", 0, true);
        check("2001:db8::1", "0.0.0.0", 0, false);
        check("2001:db8::1", "::", 0, true);
        check("10.1.2.3", "10.1.2.3", 32, true);
    }

    #[test]
    fn sequence_numbers_go_the_short_way_round() {
        assert_eq!(SeqNum(5).since(SeqNum(u32::MAX)), 6);
        assert_eq!(SeqNum(u32::MAX).since(SeqNum(5)), -6);
    }

    #[test]
    fn versions() {
        assert!(is_long_header(&[0xc3, 0, 0, 0, 1, 8]));
        assert!(is_long_header(&[0xc3, 0xff, 0, 0, 29]));
        assert!(!is_long_header(&[0x43, 0, 0, 0, 1]));
        assert!(!is_long_header(&[0xc3, 0, 0, 0, 7]));
        assert!(!is_long_header(&[0xc3, 0, 0, 0]));
    }
}
