//! From a frame to a packet: link layers, then IP.
//!
//! Parsing is lax: a header is read as far as it was captured, and lengths come from the
//! IP header, so captures of headers alone are read completely.

use airmile_model::packet::{Address, Ecn, Packet, Transport};

use super::capture::Frame;
use super::common::Usual;
use super::{ip, link};

/// Why a frame holds no packet that can be analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unread {
    /// Not IP: ARP, LLDP and the like; the EtherType or protocol number.
    NotIp(u16),
    /// An unsupported link type.
    Link(u32),
    /// The frame was truncated before the end of this header.
    Cut(&'static str),
    /// This field of a header is invalid.
    Bad(&'static str),
}

/// The protocol after a link header, or an EtherType.
pub(super) mod ether_type {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const QINQ: u16 = 0x88a8;
    pub(crate) const QINQ_OLD: u16 = 0x9100;
    pub(crate) const PPPOE: u16 = 0x8864;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const RARP: u16 = 0x8035;
}

/// VLAN tags and MPLS labels one frame may have (chosen here).
const MAX_TAGS: usize = 8;

/// Reads the headers of a frame down to TCP or UDP, through tunnels.
///
/// # Errors
///
/// The frame holds no IP packet, or its IP header cannot be read.
#[inline]
pub fn dissect<'a>(frame: &Frame<'a>) -> Result<Packet<'a>, Unread> {
    match usual(frame) {
        Some(usual) => Ok(usual.read(frame, |packet| *packet)),
        None => any(frame),
    }
}

/// As [`dissect`], passing the packet by reference: moving one costs as much as reading
/// it.
#[inline]
pub fn dissect_with<'a, R>(
    frame: &Frame<'a>,
    take: impl FnOnce(Result<&Packet<'a>, Unread>) -> R,
) -> R {
    match usual(frame) {
        Some(usual) => usual.read(frame, |packet| take(Ok(packet))),
        None => take(any(frame).as_ref().map_err(|unread| *unread)),
    }
}

#[inline]
fn usual<'a>(frame: &Frame<'a>) -> Option<Usual<'a>> {
    if frame.link == link::ETHERNET { Usual::of(frame.data) } else { None }
}

/// Reads any frame, header by header.
pub(super) fn any<'a>(frame: &Frame<'a>) -> Result<Packet<'a>, Unread> {
    let (protocol, at) = network_layer(frame.link, frame.data)?;
    let data = frame.data.get(at..).unwrap_or_default();
    let wire_bytes = frame.wire_bytes.saturating_sub(u32::try_from(at).unwrap_or(u32::MAX));
    match protocol {
        ether_type::IPV4 | ether_type::IPV6 => {
            let mut packet = empty(frame);
            ip::read(data, wire_bytes, &mut packet)?;
            Ok(packet)
        }
        other => Err(Unread::NotIp(other)),
    }
}

/// An empty packet.
#[inline]
pub(super) fn empty<'a>(frame: &Frame<'_>) -> Packet<'a> {
    let nowhere = Address::v4([0; 4]);
    Packet {
        at_ns: frame.at_ns,
        src: nowhere,
        dst: nowhere,
        src_port: 0,
        dst_port: 0,
        protocol: 0,
        transport: Transport::Other,
        ecn: Ecn::NotEct,
        ip_id: None,
        ip_bytes: 0,
        payload_bytes: 0,
        payload: &[],
        fragmented: false,
        tunnelled: false,
        interface: frame.interface,
    }
}

/// The EtherType of the frame's contents, and its offset.
#[inline]
pub(super) fn network_layer(link_type: u32, data: &[u8]) -> Result<(u16, usize), Unread> {
    match link_type {
        link::ETHERNET => tagged(data, 12),
        link::RAW | link::RAW_12 | link::RAW_14 | link::IPV4 | link::IPV6 => by_version(data, 0),
        link::LINUX_SLL => tagged(data, 14),
        link::LINUX_SLL2 => {
            let protocol = u16_at(data, 0).ok_or(Unread::Cut("SLL2"))?;
            behind_tags(data, protocol, 20)
        }
        link::NULL | link::LOOP => by_version(data, 4),
        link::PPP | link::PPP_HDLC => {
            ppp(data, if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 })
        }
        link::NFLOG => nflog(data),
        link::PKTAP | link::USER2 => {
            let (inner, at) = pktap(link_type, data)?;
            let (protocol, behind) = network_layer(inner, data.get(at..).unwrap_or_default())?;
            Ok((protocol, at + behind))
        }
        other => Err(Unread::Link(other)),
    }
}

/// Reads an EtherType at `at`, then tags.
fn tagged(data: &[u8], at: usize) -> Result<(u16, usize), Unread> {
    let protocol = u16_at(data, at).ok_or(Unread::Cut("link"))?;
    match protocol {
        ether_type::IPV4 | ether_type::IPV6 => Ok((protocol, at + 2)),
        _ => behind_tags(data, protocol, at + 2),
    }
}

fn behind_tags(data: &[u8], mut protocol: u16, mut at: usize) -> Result<(u16, usize), Unread> {
    for _ in 0..MAX_TAGS {
        match protocol {
            // IEEE 802.1Q: two bytes of tag, then the next EtherType.
            ether_type::VLAN | ether_type::QINQ | ether_type::QINQ_OLD => {
                protocol = u16_at(data, at + 2).ok_or(Unread::Cut("VLAN tag"))?;
                at += 4;
            }
            // RFC 3032: the bottom of the stack has bit 8 of the label entry set.
            ether_type::MPLS => {
                let bottom = data.get(at + 2).ok_or(Unread::Cut("MPLS label"))? & 1 == 1;
                at += 4;
                if bottom {
                    return by_version(data, at);
                }
            }
            // RFC 2516: six bytes, then PPP.
            ether_type::PPPOE => return ppp(data, at + 6),
            _ => return Ok((protocol, at)),
        }
    }
    Err(Unread::Bad("number of VLAN tags"))
}

/// PPP's protocol field (RFC 1661, 2), one byte if it is compressed.
fn ppp(data: &[u8], at: usize) -> Result<(u16, usize), Unread> {
    let first = *data.get(at).ok_or(Unread::Cut("PPP"))?;
    let (protocol, at) = if first & 1 == 1 {
        (u16::from(first), at + 1)
    } else {
        (u16_at(data, at).ok_or(Unread::Cut("PPP"))?, at + 2)
    };
    match protocol {
        0x0021 => Ok((ether_type::IPV4, at)),
        0x0057 => Ok((ether_type::IPV6, at)),
        other => Err(Unread::NotIp(other)),
    }
}

/// The payload among the attributes of a netfilter log record
/// (LINKTYPE_NFLOG): host byte order, which is read as little-endian.
fn nflog(data: &[u8]) -> Result<(u16, usize), Unread> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let head = data.get(at..at + 4).ok_or(Unread::Cut("NFLOG"))?;
        let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let kind = u16::from_le_bytes([head[2], head[3]]) & 0x7fff;
        if kind == PAYLOAD {
            return by_version(data, at + 4);
        }
        if length < 4 {
            return Err(Unread::Bad("NFLOG attribute length"));
        }
        at += length.next_multiple_of(4);
    }
}

/// Least bytes of a PKTAP header, and the most that is expected of one (chosen here).
const PKTAP_BYTES: std::ops::RangeInclusive<usize> = 108..=1_024;

/// The link type of the frame in a PKTAP frame (LINKTYPE_PKTAP), and its offset: three words, the
/// header's length, the kind of what follows, and its link type. Host byte order: little-endian on
/// every Mac since 2006.
pub(super) fn pktap(link_type: u32, data: &[u8]) -> Result<(u32, usize), Unread> {
    const PACKET: u32 = 1;
    let word = |at| data.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    let words = (word(0), word(4), word(8));
    let (Some(bytes), Some(kind), Some(inner)) = words else { return Err(Unread::Cut("PKTAP")) };
    let at = bytes as usize;
    if !PKTAP_BYTES.contains(&at) || kind != PACKET {
        // Under the number for private use, anything may be meant.
        let is_named = link_type == link::PKTAP;
        return Err(if is_named { Unread::Bad("PKTAP header") } else { Unread::Link(link_type) });
    }
    match inner {
        link::PKTAP | link::USER2 => Err(Unread::Bad("PKTAP link type")),
        _ => Ok((inner, at)),
    }
}

#[inline]
fn by_version(data: &[u8], at: usize) -> Result<(u16, usize), Unread> {
    match data.get(at).ok_or(Unread::Cut("IP"))? >> 4 {
        4 => Ok((ether_type::IPV4, at)),
        6 => Ok((ether_type::IPV6, at)),
        _ => Err(Unread::Bad("IP version")),
    }
}

pub(super) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
