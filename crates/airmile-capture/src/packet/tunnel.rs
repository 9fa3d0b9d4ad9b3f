//! Tunnels: GTP-U (TS 29.281), as carried on S1-U and N3; IP in IP (RFC 2003, RFC 2473, RFC 4213);
//! GRE (RFC 2784, RFC 2890).

use airmile_model::packet::{Packet, Transport};

use super::dissect::{ether_type, u16_at};

/// TS 29.281, 4.4.2.
pub(super) const PORT: u16 = 2152;
/// Message type of a user packet (TS 29.281, 6.1).
const G_PDU: u8 = 255;

/// Protocol numbers of IPv4 and IPv6 in IP, and of GRE (IANA).
const IP_IN_IP: [u8; 2] = [4, 41];
const GRE: u8 = 47;
/// Bits of GRE's first byte: fields of four bytes each, but the deprecated routing.
pub(super) const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
pub(super) const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;

/// The IP packet inside another one, if that is a tunnel's.
pub(super) fn inner<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    match packet.transport {
        Transport::Udp => gtp_user(packet),
        Transport::Other => packet.payload.get(above_ip(packet.protocol, packet.payload)?..),
        _ => None,
    }
}

/// Offset of the inner IP packet above IP, if `protocol` is that of a tunnel without ports.
pub(super) fn above_ip(protocol: u8, data: &[u8]) -> Option<usize> {
    let at = match protocol {
        GRE => gre_header_bytes(data)?,
        _ => IP_IN_IP.contains(&protocol).then_some(0)?,
    };
    is_ip(data, at).then_some(at)
}

/// Bytes of the header of GRE that carries IP.
fn gre_header_bytes(data: &[u8]) -> Option<usize> {
    let [flags, version, carried @ ..] = *data.first_chunk::<4>()?;
    let is_ip = matches!(u16::from_be_bytes(carried), ether_type::IPV4 | ether_type::IPV6);
    let optional = [CHECKSUM, KEY, SEQUENCE].into_iter().filter(|bit| flags & bit != 0).count();
    (is_ip && version & 0b111 == 0 && flags & ROUTING == 0).then_some(4 + 4 * optional)
}

fn is_ip(data: &[u8], at: usize) -> bool {
    data.get(at).is_some_and(|first| matches!(first >> 4, 4 | 6)) && u16_at(data, at + 2).is_some()
}

/// The user packet inside a UDP datagram, if it is GTP-U.
fn gtp_user<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    if packet.dst_port != PORT && packet.src_port != PORT {
        return None;
    }
    packet.payload.get(inner_at(packet.payload)?..)
}

/// Offset of the user packet in the payload of a GTP-U datagram.
pub(super) fn inner_at(data: &[u8]) -> Option<usize> {
    let [flags, kind, ..] = *data.first_chunk::<8>()?;
    // Version 1, protocol type GTP.
    if flags >> 4 != 0b0011 || kind != G_PDU {
        return None;
    }
    let mut at = 8;
    // If any of E, S and PN is set, the four bytes of all three are there (5.1).
    if flags & 0b111 != 0 {
        let mut next = if flags & 0b100 != 0 { *data.get(11)? } else { 0 };
        at = 12;
        while next != 0 {
            // Length in units of four bytes; the last byte is the next type.
            let length = usize::from(*data.get(at)?) * 4;
            if length == 0 {
                return None;
            }
            next = *data.get(at + length - 1)?;
            at += length;
        }
    }
    is_ip(data, at).then_some(at)
}
