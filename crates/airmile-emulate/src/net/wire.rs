//! Converts packets to the bytes of a capture and back: IPv4 (RFC 791), TCP (RFC 9293) and
//! UDP (RFC 768), with their checksums.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use thiserror::Error;

use super::{Flags, Literal, SackBlock, TcpSegment};
use super::{IPV4_HEADER_BYTES, IpPacket, Transport, UDP_HEADER_BYTES};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Time to live of every packet sent (RFC 1700's default).
const TTL: u8 = 64;

/// Why bytes cannot be parsed as a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end early.
    #[error("byte {offset}: {field} needs {wanted} bytes and {present} are present")]
    Short {
        /// Offset of the field.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// Bytes required.
        wanted: usize,
        /// Bytes available.
        present: usize,
    },
    /// A field has an unsupported value.
    #[error("byte {offset}: {field} is {value}")]
    Value {
        /// Offset of the field.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A checksum is wrong.
    #[error("byte {offset}: {field} is wrong")]
    Checksum {
        /// Offset of the field.
        offset: usize,
        /// Name of the field.
        field: &'static str,
    },
}

impl IpPacket {
    /// The packet as bytes from the IPv4 header on. Bytes that are only counted are filler
    /// ([`bytes_of`](super::bytes_of)).
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let protocol = match &self.transport {
            Transport::Tcp(_) => PROTOCOL_TCP,
            Transport::Udp(_) => PROTOCOL_UDP,
            Transport::Raw(packet) => return packet.clone(),
        };
        let mut bytes = Vec::with_capacity(self.ip_bytes() as usize);
        // Version 4, five words of header, no type of service.
        bytes.extend([0x45, 0]);
        bytes.extend(u16_of(self.ip_bytes()).to_be_bytes());
        bytes.extend(self.ip_id.to_be_bytes());
        // Don't fragment; the checksum follows later.
        bytes.extend([0x40, 0, TTL, protocol, 0, 0]);
        bytes.extend(self.src.ip().octets());
        bytes.extend(self.dst.ip().octets());
        let sum = checksum(0, &bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());

        let ports = [self.src.port().to_be_bytes(), self.dst.port().to_be_bytes()].concat();
        let start = bytes.len();
        bytes.extend(ports);
        let checksum_at = match &self.transport {
            Transport::Tcp(segment) => {
                emit_tcp(segment, &mut bytes);
                start + 16
            }
            Transport::Udp(payload) => {
                bytes.extend(u16_of(self.ip_bytes() - IPV4_HEADER_BYTES).to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(payload);
                start + 6
            }
            Transport::Raw(_) => start,
        };
        let length = bytes.len() - start;
        let sum = checksum(pseudo_header(&self.src, &self.dst, protocol, length), &bytes[start..]);
        // RFC 768: a sum of zero is sent as all ones.
        let sum = if protocol == PROTOCOL_UDP && sum == 0 { 0xffff } else { sum };
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Parses a packet. A segment's payload becomes a literal at offset 0 of its stream.
    ///
    /// # Errors
    ///
    /// [`WireError`] if bytes are missing, a checksum is wrong, or there is something that
    /// [`emit`](Self::emit) never writes, except options, which are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let at = Reader { bytes };
        let version = at.u8(0, "IPv4 version and header length")?;
        if version != 0x45 {
            let field = "IPv4 version and header length";
            return Err(WireError::Value { offset: 0, field, value: version.into() });
        }
        let total = usize::from(at.u16(2, "IPv4 total length")?);
        let header = IPV4_HEADER_BYTES as usize;
        if total < header {
            let field = "IPv4 total length";
            return Err(WireError::Value { offset: 2, field, value: total as u32 });
        }
        let at = Reader { bytes: at.slice(0, total, "IPv4 packet")? };
        if checksum(0, &at.bytes[..header]) != 0 {
            return Err(WireError::Checksum { offset: 10, field: "IPv4 header checksum" });
        }
        let protocol = at.u8(9, "IPv4 protocol")?;
        let address = |offset, field| at.u32(offset, field).map(Ipv4Addr::from);
        let (src_ip, dst_ip) =
            (address(12, "IPv4 source address")?, address(16, "IPv4 destination address")?);
        let src = SocketAddrV4::new(src_ip, at.u16(header, "source port")?);
        let dst = SocketAddrV4::new(dst_ip, at.u16(header + 2, "destination port")?);
        let length = at.bytes.len() - header;
        let sum = checksum(pseudo_header(&src, &dst, protocol, length), &at.bytes[header..]);
        let transport = match protocol {
            PROTOCOL_TCP if sum != 0 => {
                return Err(WireError::Checksum { offset: header + 16, field: "TCP checksum" });
            }
            PROTOCOL_TCP => Transport::Tcp(parse_tcp(&at, header)?),
            PROTOCOL_UDP => Transport::Udp(parse_udp(&at, header, sum)?),
            _ => {
                let field = "IPv4 protocol";
                return Err(WireError::Value { offset: 9, field, value: protocol.into() });
            }
        };
        Ok(Self { src, dst, ip_id: at.u16(4, "IPv4 identification")?, transport })
    }
}

/// A length field, limited to its maximum: scenarios reject the segment sizes that would
/// exceed it.
fn u16_of(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn slice(&self, at: usize, n: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let present = self.bytes.len().saturating_sub(at);
        let short = WireError::Short { offset: at, field, wanted: n, present };
        self.bytes.get(at..at.saturating_add(n)).ok_or(short)
    }

    fn u8(&self, at: usize, field: &'static str) -> Result<u8, WireError> {
        self.slice(at, 1, field).map(|b| b[0])
    }

    fn u16(&self, at: usize, field: &'static str) -> Result<u16, WireError> {
        self.slice(at, 2, field).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }

    fn u32(&self, at: usize, field: &'static str) -> Result<u32, WireError> {
        self.slice(at, 4, field).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
}

/// RFC 1071, continuing from the sum `start`.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(start);
    let (pairs, rest) = bytes.as_chunks::<2>();
    sum += pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum::<u64>();
    sum += rest.first().map_or(0, |&last| u64::from(last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The pseudo header's sum: RFC 9293, 3.1; RFC 768.
fn pseudo_header(src: &SocketAddrV4, dst: &SocketAddrV4, protocol: u8, length: usize) -> u32 {
    let halves = |ip: &Ipv4Addr| (u32::from(*ip) >> 16) + (u32::from(*ip) & 0xffff);
    halves(src.ip()) + halves(dst.ip()) + u32::from(protocol) + length as u32
}

fn emit_tcp(segment: &TcpSegment, bytes: &mut Vec<u8>) {
    bytes.extend(segment.seq.to_be_bytes());
    bytes.extend(segment.ack.to_be_bytes());
    let flags = &segment.flags;
    let bits = [flags.fin, flags.syn, flags.rst, flags.psh, flags.ack];
    let bits = bits.iter().enumerate().map(|(i, &set)| u8::from(set) << i).sum();
    bytes.extend([((segment.header_bytes() / 4) as u8) << 4, bits]);
    bytes.extend(segment.window.to_be_bytes());
    // The checksum follows later; no urgent pointer.
    bytes.extend([0; 4]);
    let begin = bytes.len();
    if let Some(mss) = segment.mss_bytes {
        bytes.extend([2, 4]);
        bytes.extend(mss.to_be_bytes());
    }
    if segment.sack_permitted {
        bytes.extend([4, 2]);
    }
    if let Some((val, ecr)) = segment.timestamps {
        bytes.extend([8, 10]);
        bytes.extend(val.to_be_bytes());
        bytes.extend(ecr.to_be_bytes());
    }
    if let Some(scale) = segment.window_scale {
        bytes.extend([3, 3, scale]);
    }
    if !segment.sack.is_empty() {
        bytes.extend([5, 2 + 8 * segment.sack.len() as u8]);
        for block in &segment.sack {
            bytes.extend(block.start_seq.to_be_bytes());
            bytes.extend(block.end_seq.to_be_bytes());
        }
    }
    // No-operation padding to a whole word.
    bytes.resize(begin + (bytes.len() - begin).next_multiple_of(4), 1);
    bytes.extend(segment.payload_content());
}

fn parse_tcp(at: &Reader<'_>, start: usize) -> Result<TcpSegment, WireError> {
    let words = at.u8(start + 12, "TCP data offset")? >> 4;
    let data = start + usize::from(words) * 4;
    if words < 5 {
        let field = "TCP data offset";
        return Err(WireError::Value { offset: start + 12, field, value: words.into() });
    }
    at.slice(start, data - start, "TCP header")?;
    let bits = at.u8(start + 13, "TCP flags")?;
    let set = |bit: u8| bits & (1 << bit) != 0;
    let payload = at.slice(data, at.bytes.len() - data, "TCP payload")?;
    let mut segment = TcpSegment {
        seq: at.u32(start + 4, "TCP sequence number")?,
        ack: at.u32(start + 8, "TCP acknowledgement number")?,
        flags: Flags { fin: set(0), syn: set(1), rst: set(2), psh: set(3), ack: set(4) },
        window: at.u16(start + 14, "TCP window")?,
        payload: 0..payload.len() as u64,
        ..TcpSegment::default()
    };
    if !payload.is_empty() {
        segment.literals.push(Literal { offset: 0, bytes: Arc::from(payload) });
    }
    parse_options(&Reader { bytes: &at.bytes[..data] }, start + 20, &mut segment)?;
    Ok(segment)
}

fn parse_options(
    at: &Reader<'_>,
    mut offset: usize,
    segment: &mut TcpSegment,
) -> Result<(), WireError> {
    while offset < at.bytes.len() {
        let kind = at.u8(offset, "TCP option kind")?;
        match kind {
            0 => break,
            1 => {
                offset += 1;
                continue;
            }
            _ => {}
        }
        let length = usize::from(at.u8(offset + 1, "TCP option length")?);
        if length < 2 {
            let (field, value) = ("TCP option length", length as u32);
            return Err(WireError::Value { offset: offset + 1, field, value });
        }
        at.slice(offset, length, "TCP option")?;
        match (kind, length) {
            (2, 4) => segment.mss_bytes = Some(at.u16(offset + 2, "TCP MSS")?),
            (3, 3) => segment.window_scale = Some(at.u8(offset + 2, "TCP window scale")?),
            (4, 2) => segment.sack_permitted = true,
            (5, _) => {
                for block in (offset + 2..offset + length - 7).step_by(8) {
                    segment.sack.push(SackBlock {
                        start_seq: at.u32(block, "SACK block")?,
                        end_seq: at.u32(block + 4, "SACK block")?,
                    });
                }
            }
            (8, 10) => {
                let val = at.u32(offset + 2, "TSval")?;
                segment.timestamps = Some((val, at.u32(offset + 6, "TSecr")?));
            }
            _ => {}
        }
        offset += length;
    }
    Ok(())
}

fn parse_udp(at: &Reader<'_>, start: usize, sum: u16) -> Result<Vec<u8>, WireError> {
    let length = at.u16(start + 4, "UDP length")?;
    let header = UDP_HEADER_BYTES as usize;
    if usize::from(length) != at.bytes.len() - start {
        let field = "UDP length";
        return Err(WireError::Value { offset: start + 4, field, value: length.into() });
    }
    if sum != 0 && at.u16(start + 6, "UDP checksum")? != 0 {
        return Err(WireError::Checksum { offset: start + 6, field: "UDP checksum" });
    }
    Ok(at.slice(start + header, at.bytes.len() - start - header, "UDP payload")?.to_vec())
}
