//! Packet headers (RFC 791, 8200, 9293, 768, 792).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airmile_control::qcut::{PacketInfo, TCP, UDP};

const ICMP: u8 = 1;
const ECHO_REQUEST: u8 = 8;

/// IPv6 extension headers that may precede the transport header (RFC 8200, 4).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;

/// TCP flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Kind of the SACK option (RFC 2018).
const SACK: u8 = 5;

/// A packet's addresses and the start of its transport header.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    dscp: u8,
    protocol: u8,
    /// Bytes after the IP header, according to the header.
    payload_bytes: u32,
    /// The captured part of it; empty for later fragments.
    transport: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn ip(head: &[u8]) -> Option<Ip<'_>> {
    match head.first()? >> 4 {
        4 => {
            let header = usize::from(head[0] & 0xf) * 4;
            let total = u32::from(word(head, 2)?);
            let is_first = word(head, 6)? & 0x1fff == 0;
            Some(Ip {
                from: Ipv4Addr::from(long(head, 12)?).into(),
                to: Ipv4Addr::from(long(head, 16)?).into(),
                dscp: head.get(1)? >> 2,
                protocol: *head.get(9)?,
                payload_bytes: total.saturating_sub(header as u32),
                transport: head.get(header..).filter(|_| is_first).unwrap_or_default(),
            })
        }
        6 => ip6(head),
        _ => None,
    }
}

fn ip6(head: &[u8]) -> Option<Ip<'_>> {
    let address = |at: usize| {
        let bytes: [u8; 16] = head.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(Ipv6Addr::from(bytes)))
    };
    let mut protocol = *head.get(6)?;
    let mut payload_bytes = u32::from(word(head, 4)?);
    let mut transport = head.get(40..).unwrap_or_default();
    // A truncated header ends the loop.
    while let (Some(&next), Some(&length)) = (transport.first(), transport.get(1)) {
        let bytes = match protocol {
            FRAGMENT if word(transport, 2)? >> 3 == 0 => 8,
            FRAGMENT => {
                (protocol, transport) = (next, &[]);
                break;
            }
            of if EXTENSIONS.contains(&of) => (usize::from(length) + 1) * 8,
            _ => break,
        };
        protocol = next;
        transport = transport.get(bytes..).unwrap_or_default();
        payload_bytes = payload_bytes.saturating_sub(bytes as u32);
    }
    // Traffic class: the second half of the first byte and the first of the next.
    let class = word(head, 0)? >> 4 & 0xff;
    Some(Ip {
        from: address(8)?,
        to: address(24)?,
        dscp: (class >> 2) as u8,
        protocol,
        payload_bytes,
        transport,
    })
}

/// A flow without its local address, which NAT changes after some of the places where
/// packets are seen; ports are usually unchanged.
fn flow(far: IpAddr, near_port: u16, far_port: u16, protocol: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    (far, near_port, far_port, protocol).hash(&mut hasher);
    hasher.finish()
}

fn host(far: IpAddr) -> u64 {
    let mut hasher = DefaultHasher::new();
    far.hash(&mut hasher);
    hasher.finish()
}

/// Parses an outgoing packet of `bytes` bytes; returns its properties and destination.
pub(crate) fn outgoing(head: &[u8], bytes: u32) -> (PacketInfo, Option<IpAddr>) {
    let Some(ip) = ip(head) else { return (PacketInfo { bytes, ..PacketInfo::default() }, None) };
    let has_ports = matches!(ip.protocol, TCP | UDP);
    let port = |at: usize| word(ip.transport, at).filter(|_| has_ports).unwrap_or(0);
    let (near_port, far_port) = (port(0), port(2));
    let mut info = PacketInfo {
        flow: flow(ip.to, near_port, far_port, ip.protocol),
        far: host(ip.to),
        bytes,
        protocol: ip.protocol,
        dscp: ip.dscp,
        near_port,
        far_port,
        ..PacketInfo::default()
    };
    if let Some((sequence, _, offset, flags)) = tcp(&ip) {
        let data = ip.payload_bytes.saturating_sub(offset as u32);
        info.pure_ack = data == 0 && flags & (ACK | SYN | FIN | RST) == ACK;
        // SYN and FIN count as one byte each (RFC 9293, 3.4): a handshake is a round trip,
        // too.
        let counted = data + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        info.tcp_end = (counted > 0).then(|| sequence.wrapping_add(counted));
    }
    (info, Some(ip.to))
}

/// Numbers, header length and flags.
fn tcp(ip: &Ip<'_>) -> Option<(u32, u32, usize, u8)> {
    if ip.protocol != TCP {
        return None;
    }
    let offset = usize::from(ip.transport.get(12)? >> 4) * 4;
    Some((long(ip.transport, 4)?, long(ip.transport, 8)?, offset, *ip.transport.get(13)?))
}

/// Whether an outgoing packet is an echo request with this identifier (RFC 792).
pub(crate) fn is_echo(head: &[u8], identifier: u16) -> bool {
    ip(head).is_some_and(|ip| {
        ip.protocol == ICMP
            && ip.transport.first() == Some(&ECHO_REQUEST)
            && word(ip.transport, 4) == Some(identifier)
    })
}

/// What an incoming packet acknowledges.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IncomingAnswer {
    /// Data of a flow, up to these numbers.
    Acknowledged { flow: u64, up_to: Vec<u32> },
    /// A probe: identifier and number.
    Echo(u16, u16),
}

/// Parses an incoming packet.
pub(crate) fn incoming(head: &[u8]) -> Option<IncomingAnswer> {
    let ip = ip(head)?;
    if ip.protocol == ICMP {
        // Echo reply, with any code.
        let is_reply = ip.transport.first() == Some(&0);
        return is_reply
            .then(|| Some(IncomingAnswer::Echo(word(ip.transport, 4)?, word(ip.transport, 6)?)))
            .flatten();
    }
    let (_, acknowledged, offset, flags) = tcp(&ip)?;
    if flags & ACK == 0 {
        return None;
    }
    let flow = flow(ip.from, word(ip.transport, 2)?, word(ip.transport, 0)?, TCP);
    let mut up_to = vec![acknowledged];
    up_to.extend(block_ends(ip.transport.get(20..offset).unwrap_or_default()));
    Some(IncomingAnswer::Acknowledged { flow, up_to })
}

/// Ends of the SACK blocks in the options.
fn block_ends(mut options: &[u8]) -> Vec<u32> {
    while let Some((&kind, rest)) = options.split_first() {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(*rest.first().unwrap_or(&0)).max(2),
        };
        if kind == SACK {
            let blocks = options.get(2..length).unwrap_or_default().chunks_exact(8);
            return blocks.filter_map(|block| long(block, 4)).collect();
        }
        options = options.get(length..).unwrap_or_default();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TCP from port 5000 to 443 (or back) with `data` bytes after the header.
    fn v4(flags: u8, data: u16, options: &[u8], back: bool) -> Vec<u8> {
        let length = 40 + options.len() as u16 + data;
        let mut head = vec![0x45, 46 << 2];
        head.extend(length.to_be_bytes());
        head.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
        let (near, far) = ([10, 0, 0, 2], [203, 0, 113, 1]);
        let (from, to) = if back { (far, near) } else { (near, far) };
        head.extend(from.iter().chain(&to));
        let (near, far) = (5_000_u16.to_be_bytes(), 443_u16.to_be_bytes());
        let (from, to) = if back { (far, near) } else { (near, far) };
        head.extend(from.iter().chain(&to));
        head.extend(1_000_u32.to_be_bytes());
        head.extend(2_000_u32.to_be_bytes());
        head.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0, 0, 0, 0, 0, 0]);
        head.extend(options);
        head
    }

    #[test]
    fn packets_that_go_out() {
        let read = |head: &[u8], bytes| {
            let info = outgoing(head, bytes).0;
            (info.bytes, info.dscp, info.far_port, info.pure_ack, info.tcp_end)
        };
        assert_eq!(read(&v4(ACK, 100, &[], false), 140), (140, 46, 443, false, Some(1_100)));
        assert_eq!(read(&v4(ACK, 0, &[], false), 40), (40, 46, 443, true, None));
        assert_eq!(read(&v4(SYN, 0, &[], false), 40), (40, 46, 443, false, Some(1_001)));
        assert_eq!(read(&[0x60], 40), (40, 0, 0, false, None));
        assert_eq!(read(&[], 9), (9, 0, 0, false, None));
    }

    #[test]
    fn answers_are_of_the_flow() {
        let (info, far) = outgoing(&v4(ACK, 100, &[], false), 140);
        assert_eq!(far, Some(IpAddr::from([203, 0, 113, 1])));
        let mut options = vec![1, 1, SACK, 18];
        for number in [3_000_u32, 4_000, 5_000, 6_000] {
            options.extend(number.to_be_bytes());
        }
        let expected =
            IncomingAnswer::Acknowledged { flow: info.flow, up_to: vec![2_000, 4_000, 6_000] };
        let answer = v4(ACK, 0, &options, true);
        assert_eq!(incoming(&answer), Some(expected));
        for end in 0..answer.len() {
            let _ = incoming(&answer[..end]);
            let _ = outgoing(&answer[..end], 60);
        }
        let mut echo = v4(0, 0, &[], true)[..20].to_vec();
        echo[9] = ICMP;
        echo.extend([0, 0, 0, 0, 0x12, 0x34, 0, 7]);
        assert_eq!(incoming(&echo), Some(IncomingAnswer::Echo(0x1234, 7)));
        assert!(!is_echo(&echo, 0x1234));
        echo[20] = ECHO_REQUEST;
        assert!(is_echo(&echo, 0x1234) && !is_echo(&echo, 0x1235));
    }

    #[test]
    fn headers_of_ipv6_are_passed_over() {
        let mut head = vec![0x6b, 0x80, 0, 0, 0, 28, 60, 64];
        head.extend([0x20; 32]);
        // Destination options of 8 bytes, then UDP.
        head.extend([UDP, 0, 1, 4, 0, 0, 0, 0]);
        head.extend([0x13, 0x88, 0, 53, 0, 20, 0, 0]);
        let (info, _) = outgoing(&head, 68);
        assert_eq!((info.protocol, info.near_port, info.far_port), (UDP, 5_000, 53));
        // 0xb8 is EF.
        assert_eq!(info.dscp, 46);
    }
}
