//! IPv4 (RFC 791) and IPv6 (RFC 8200), down to the transport header.

use airmile_model::packet::{Address, Ecn, Packet, TcpHeader, Transport};

use super::dissect::{Unread, u16_at, u32_at};
use super::{tcp, tunnel};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;

/// Maximum depth of nested tunnels (chosen here).
pub(super) const MAX_TUNNELS: u8 = 3;

/// Maximum number of extension headers (chosen here; RFC 8200 names six).
pub(super) const MAX_EXTENSIONS: usize = 10;

/// An IPv6 extension header (RFC 8200, 4; RFC 4302; RFC 6275).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    /// Hop-by-hop or destination options.
    Options,
    Routing,
    Fragment,
    Authentication,
    Mobility,
}

impl Extension {
    #[inline]
    pub(super) const fn of(protocol: u8) -> Option<Self> {
        match protocol {
            0 | 60 => Some(Self::Options),
            43 => Some(Self::Routing),
            44 => Some(Self::Fragment),
            51 => Some(Self::Authentication),
            135 => Some(Self::Mobility),
            _ => None,
        }
    }

    /// Its length in bytes by its second byte.
    #[inline]
    pub(super) const fn bytes(self, length: u8) -> usize {
        match self {
            Self::Fragment => 8,
            Self::Authentication => 8 + length as usize * 4,
            Self::Options | Self::Routing | Self::Mobility => 8 + length as usize * 8,
        }
    }
}

/// The end of the IP header, and the fields known by then.
pub(super) struct Network {
    src: Address,
    dst: Address,
    protocol: u8,
    ecn: Ecn,
    ip_id: Option<u16>,
    /// Bytes of the whole packet according to its IP header.
    ip_bytes: u32,
    /// Offset of the transport header.
    header_bytes: usize,
    /// `None`: the packet is whole.
    pub(super) fragment: Option<FragmentOf>,
}

/// The position of a fragment in its datagram (RFC 791, 3.1; RFC 8200, 4.5).
#[derive(Debug, Clone, Copy)]
pub(super) struct FragmentOf {
    /// Identification.
    pub(super) id: u32,
    /// The protocol of the whole datagram.
    pub(super) protocol: u8,
    /// Offset of its data within the datagram's.
    pub(super) offset_bytes: u32,
    /// Whether further fragments follow.
    pub(super) more: bool,
    /// Offset of its data within the packet.
    pub(super) at: usize,
}

/// Reads an IP packet into `packet`, through tunnels.
#[inline]
pub(super) fn read<'a>(
    mut data: &'a [u8],
    mut wire_bytes: u32,
    packet: &mut Packet<'a>,
) -> Result<(), Unread> {
    for _ in 0..MAX_TUNNELS {
        one(data, wire_bytes, packet)?;
        let Some(inner) = tunnel::inner(packet) else { return Ok(()) };
        let skipped = length_u32(packet.payload.len() - inner.len());
        wire_bytes = packet.payload_bytes.saturating_sub(skipped);
        data = inner;
        packet.tunnelled = true;
    }
    one(data, wire_bytes, packet)
}

/// Reads one IP packet and its transport header.
#[inline]
fn one<'a>(data: &'a [u8], wire_bytes: u32, packet: &mut Packet<'a>) -> Result<(), Unread> {
    let network = network(data, wire_bytes)?;
    let (above, above_bytes) = network.behind(data, network.header_bytes);
    network.describe(packet);
    packet.payload_bytes = above_bytes;
    packet.payload = above;
    match network.fragment {
        Some(fragment) if fragment.offset_bytes > 0 => packet.transport = Transport::Fragment,
        _ => transport(above, above_bytes, packet)?,
    }
    Ok(())
}

/// The IP header, of either version.
#[inline]
pub(super) fn network(data: &[u8], wire_bytes: u32) -> Result<Network, Unread> {
    match *data.first().ok_or(Unread::Cut("IP"))? >> 4 {
        4 => v4(data, wire_bytes),
        6 => v6(data, wire_bytes),
        _ => Err(Unread::Bad("IP version")),
    }
}

impl Network {
    /// Offset of the transport header.
    pub(super) const fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// The captured bytes after an offset in the packet, and their number on the wire.
    /// Bytes after the packet are padding of the link.
    #[inline]
    pub(super) fn behind<'a>(&self, data: &'a [u8], at: usize) -> (&'a [u8], u32) {
        let end = data.len().min(self.ip_bytes as usize);
        let above = data.get(at..end).unwrap_or_default();
        (above, self.ip_bytes.saturating_sub(length_u32(at)))
    }

    /// Fills in the fields of the header.
    #[inline]
    pub(super) fn describe(&self, packet: &mut Packet<'_>) {
        packet.src = self.src;
        packet.dst = self.dst;
        (packet.src_port, packet.dst_port) = (0, 0);
        packet.protocol = self.protocol;
        packet.transport = Transport::Other;
        packet.ecn = self.ecn;
        packet.ip_id = self.ip_id;
        packet.ip_bytes = self.ip_bytes;
        packet.fragmented |= self.fragment.is_some_and(|fragment| fragment.offset_bytes == 0);
    }
}

/// Reads the header above IP, of `packet.protocol`.
#[inline]
pub(super) fn transport<'a>(
    above: &'a [u8],
    above_bytes: u32,
    packet: &mut Packet<'a>,
) -> Result<(), Unread> {
    match packet.protocol {
        TCP => {
            let mut header = TcpHeader::default();
            let header_bytes = tcp::read(above, &mut header)?;
            (packet.src_port, packet.dst_port) = ports(above).ok_or(Unread::Cut("TCP"))?;
            packet.payload = above.get(header_bytes..).unwrap_or_default();
            packet.payload_bytes = above_bytes
                .checked_sub(length_u32(header_bytes))
                .ok_or(Unread::Bad("TCP data offset"))?;
            packet.transport = Transport::Tcp(header);
        }
        UDP => {
            (packet.src_port, packet.dst_port) = ports(above).ok_or(Unread::Cut("UDP"))?;
            packet.payload = above.get(8..).unwrap_or_default();
            packet.payload_bytes = above_bytes.saturating_sub(8);
            packet.transport = Transport::Udp;
        }
        ICMP | ICMPV6 => packet.transport = Transport::Icmp,
        _ => {}
    }
    Ok(())
}

#[inline]
fn ports(above: &[u8]) -> Option<(u16, u16)> {
    Some((u16_at(above, 0)?, u16_at(above, 2)?))
}

#[inline]
fn v4(data: &[u8], wire_bytes: u32) -> Result<Network, Unread> {
    let header = data.first_chunk::<20>().ok_or(Unread::Cut("IPv4"))?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    if header_bytes < 20 {
        return Err(Unread::Bad("IPv4 header length"));
    }
    // 0: a super-segment that segmentation offload will split, too long for the field
    // (BIG TCP).
    let ip_bytes = match u16::from_be_bytes([header[2], header[3]]) {
        0 => wire_bytes,
        total if usize::from(total) < header_bytes => return Err(Unread::Bad("IPv4 total length")),
        total => u32::from(total),
    };
    let field = u16::from_be_bytes([header[6], header[7]]);
    let id = u16::from_be_bytes([header[4], header[5]]);
    let fragment = (field & 0x3fff != 0).then(|| FragmentOf {
        id: id.into(),
        protocol: header[9],
        offset_bytes: u32::from(field & 0x1fff) * 8,
        more: field & 0x2000 != 0,
        at: header_bytes,
    });
    Ok(Network {
        src: Address::v4([header[12], header[13], header[14], header[15]]),
        dst: Address::v4([header[16], header[17], header[18], header[19]]),
        protocol: header[9],
        ecn: Ecn::of(header[1]),
        ip_id: Some(id),
        ip_bytes,
        header_bytes,
        fragment,
    })
}

fn v6(data: &[u8], wire_bytes: u32) -> Result<Network, Unread> {
    let header = data.first_chunk::<40>().ok_or(Unread::Cut("IPv6"))?;
    let address = |at: usize| header.get(at..).and_then(|rest| rest.first_chunk::<16>());
    let (Some(src), Some(dst)) = (address(8), address(24)) else { return Err(Unread::Cut("IPv6")) };
    let mut network = Network {
        src: Address::v6(*src),
        dst: Address::v6(*dst),
        protocol: header[6],
        // The traffic class begins in the first byte.
        ecn: Ecn::of(header[1] >> 4),
        ip_id: None,
        // 0: a jumbogram (RFC 2675) or a super-segment; the wire length counts.
        ip_bytes: match u16::from_be_bytes([header[4], header[5]]) {
            0 => wire_bytes,
            payload => 40 + u32::from(payload),
        },
        header_bytes: 40,
        fragment: None,
    };
    for _ in 0..MAX_EXTENSIONS {
        let Some(extension) = Extension::of(network.protocol) else { return Ok(network) };
        let at = network.header_bytes;
        let header = data.get(at..at + 8).ok_or(Unread::Cut("IPv6 extension"))?;
        network.protocol = header[0];
        network.header_bytes += extension.bytes(header[1]);
        if extension == Extension::Fragment {
            let field = u16_at(header, 2).unwrap_or(0);
            // Without an offset or more fragments it is complete (RFC 8200, 4.5).
            network.fragment = (field & 0xfff9 != 0).then(|| FragmentOf {
                id: u32_at(header, 4).unwrap_or(0),
                protocol: header[0],
                offset_bytes: u32::from(field & 0xfff8),
                more: field & 1 != 0,
                at: network.header_bytes,
            });
            if field & 0xfff8 != 0 {
                return Ok(network);
            }
        }
    }
    Err(Unread::Bad("number of IPv6 extension headers"))
}

pub(super) fn length_u32(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
