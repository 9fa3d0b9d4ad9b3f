//! Packets as bytes: IPv4 (RFC 791) with TCP (RFC 9293) or UDP (RFC 768),
//! checksums and all.

use crate::net::{IPV4_HEADER_BYTES, Packet, Transport, UDP_HEADER_BYTES};
use crate::tcp::Segment;

/// Protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Time to live (chosen here: what Linux sends).
const TTL: u8 = 64;

impl Packet {
    /// The packet as it is on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = self.ip_bytes();
        let (protocol, mut payload) = match &self.transport {
            Transport::Tcp(segment) => (TCP, self.tcp_bytes(segment)),
            Transport::Udp(data) => (UDP, self.udp_bytes(data)),
        };
        let checksum_at = if protocol == TCP { 16 } else { 6 };
        let checksum = match (fold(self.pseudo_sum(protocol, &payload)), protocol) {
            // A sum of zero would mean that there is none (RFC 768).
            (0, UDP) => 0xffff,
            (sum, _) => sum,
        };
        payload[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut out = Vec::with_capacity(length as usize);
        // Version 4, header of 5 words; no type of service.
        out.extend([0x45, 0]);
        out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(self.ip_id.to_be_bytes());
        // Don't fragment.
        out.extend([0x40, 0, TTL, protocol, 0, 0]);
        out.extend(self.src.ip().octets());
        out.extend(self.dst.ip().octets());
        let header_checksum = fold(sum(&out[..IPV4_HEADER_BYTES as usize]));
        out[10..12].copy_from_slice(&header_checksum.to_be_bytes());
        out.extend(payload);
        out
    }

    /// Sum over pseudo-header and payload.
    fn pseudo_sum(&self, protocol: u8, payload: &[u8]) -> u64 {
        sum(&self.src.ip().octets())
            + sum(&self.dst.ip().octets())
            + u64::from(protocol)
            + payload.len() as u64
            + sum(payload)
    }

    fn udp_bytes(&self, data: &[u8]) -> Vec<u8> {
        let length = UDP_HEADER_BYTES as usize + data.len();
        let mut out = Vec::with_capacity(length);
        out.extend(self.src.port().to_be_bytes());
        out.extend(self.dst.port().to_be_bytes());
        out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        out.extend([0, 0]);
        out.extend(data);
        out
    }

    fn tcp_bytes(&self, segment: &Segment) -> Vec<u8> {
        let mut out =
            Vec::with_capacity((segment.header_bytes() + segment.payload_bytes()) as usize);
        out.extend(self.src.port().to_be_bytes());
        out.extend(self.dst.port().to_be_bytes());
        out.extend(segment.seq.to_be_bytes());
        out.extend(segment.ack.to_be_bytes());
        let words = (segment.header_bytes() / 4) as u8;
        let flags = segment.flags;
        let bits = [flags.fin, flags.syn, flags.rst, flags.psh, flags.ack];
        let control = bits.iter().enumerate().map(|(n, &set)| u8::from(set) << n).sum();
        out.extend([words << 4, control]);
        out.extend(segment.window.to_be_bytes());
        // Checksum, urgent pointer.
        out.extend([0; 4]);
        out.extend(options(segment));
        out.extend(segment.payload_content());
        out
    }
}

/// The options, padded to words with NOPs before them as hosts do.
fn options(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(mss) = segment.mss_bytes {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    if segment.sack_permitted {
        out.extend([4, 2]);
    }
    if let Some((value, echo)) = segment.timestamps {
        out.extend([8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        out.extend([3, 3, shift]);
    }
    if !segment.sack.is_empty() {
        out.extend([5, 2 + 8 * segment.sack.len() as u8]);
        for block in &segment.sack {
            out.extend(block.start_seq.to_be_bytes());
            out.extend(block.end_seq.to_be_bytes());
        }
    }
    let padding = out.len().next_multiple_of(4) - out.len();
    std::iter::repeat_n(1, padding).chain(out).collect()
}

/// Sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

/// The checksum of a sum.
const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::tcp::{Flags, SackBlock};

    fn packet(transport: Transport) -> Packet {
        let end = |last, port| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, last), port);
        Packet { src: end(1, 443), dst: end(2, 50_000), ip_id: 7, transport }
    }

    #[test]
    fn sums_are_zero_and_lengths_right() {
        let segment = Segment {
            seq: 1_000,
            ack: 2_000,
            flags: Flags { ack: true, psh: true, ..Flags::default() },
            window: 512,
            timestamps: Some((5, 6)),
            sack: vec![SackBlock { start_seq: 1, end_seq: 2 }],
            payload: 0..101,
            ..Segment::default()
        };
        for transport in [Transport::Tcp(segment), Transport::Udp(vec![0xab; 33])] {
            let packet = packet(transport);
            let bytes = packet.to_bytes();
            assert_eq!(bytes.len(), packet.ip_bytes() as usize);
            assert_eq!(fold(sum(&bytes[..20])), 0, "IP header");
            let with_pseudo = packet.pseudo_sum(bytes[9], &bytes[20..]);
            assert_eq!(fold(with_pseudo), 0, "transport");
        }
    }

    #[test]
    fn a_syn_by_hand() {
        let syn = Segment {
            seq: 0x0102_0304,
            flags: Flags { syn: true, ..Flags::default() },
            window: 0xfaf0,
            mss_bytes: Some(1_460),
            sack_permitted: true,
            window_scale: Some(7),
            ..Segment::default()
        };
        let bytes = packet(Transport::Tcp(syn)).to_bytes();
        assert_eq!(bytes[..10], [0x45, 0, 0, 52, 0, 7, 0x40, 0, 64, 6]);
        assert_eq!(
            bytes[20..36],
            [1, 0xbb, 0xc3, 0x50, 1, 2, 3, 4, 0, 0, 0, 0, 0x80, 2, 0xfa, 0xf0]
        );
        assert_eq!(bytes[40..52], [1, 1, 1, 2, 4, 5, 0xb4, 4, 2, 3, 3, 7]);
    }
}
