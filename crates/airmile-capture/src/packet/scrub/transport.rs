//! TCP, UDP, ICMP, GTP-U and GRE headers.

use super::checksum::{is_right, sum, updated};
use super::frame::Scrubbing;
use super::network::{Below, QUOTED};
use super::options;
use crate::packet::ip::{ICMP, ICMPV6, MAX_TUNNELS, TCP, UDP};
use crate::packet::tunnel;
use airmile_model::packet::is_long_header;
use airmile_pseudonym::Identity;

/// The contents of an ICMP message after its first eight bytes, and whether these hold
/// data themselves.
enum Icmp {
    /// The packet that caused it (RFC 792; RFC 4443, 3).
    Quote,
    /// Addresses of IPv6 (RFC 4861, 4.3 to 4.5; RFC 2710, 3).
    Addresses(usize),
    /// No data known to be harmless.
    Plain,
    /// Its second four bytes are unknown, too.
    Unknown,
}

impl Icmp {
    const fn of(protocol: u8, kind: u8) -> Self {
        match (protocol, kind) {
            (ICMP, 3 | 4 | 5 | 11 | 12) | (ICMPV6, 1..=4) => Self::Quote,
            (ICMP, 0 | 8 | 9 | 10 | 13..=18) | (ICMPV6, 128 | 129 | 133 | 134 | 143) => Self::Plain,
            (ICMPV6, 130..=132 | 135 | 136) => Self::Addresses(1),
            (ICMPV6, 137) => Self::Addresses(2),
            _ => Self::Unknown,
        }
    }
}

impl Scrubbing<'_> {
    /// Scrubs the layers above IP; returns how many bytes are kept.
    pub(super) fn transport(&mut self, data: &mut [u8], below: Below) -> usize {
        match below.protocol {
            TCP => self.tcp(data, below),
            UDP => self.udp(data, below),
            ICMP | ICMPV6 => self.icmp(data, below),
            protocol => match tunnel::above_ip(protocol, data) {
                Some(inner_at) if below.depth < MAX_TUNNELS => {
                    self.gre(&mut data[..inner_at]);
                    let wire = below.bytes.saturating_sub(inner_at);
                    inner_at + self.ip(&mut data[inner_at..], wire, below.depth + 1)
                }
                _ => {
                    self.changes.add("packets_of_other_protocols", 1);
                    0
                }
            },
        }
    }

    fn tcp(&mut self, data: &mut [u8], below: Below) -> usize {
        // A truncated header has no options.
        let header_bytes = data.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4);
        if header_bytes < 20 {
            return 0;
        }
        let keep = header_bytes.min(data.len());
        let header = &mut data[..keep];
        let before = sum(header);
        if let Some(options) = header.get_mut(20..) {
            options::tcp(options, self.changes);
        }
        let sums = (before, sum(header));
        self.checksum(header, 16, sums, below, below.bytes <= header_bytes);
        keep
    }

    fn udp(&mut self, data: &mut [u8], below: Below) -> usize {
        const HEADER: usize = 8;
        let Some((header, payload)) = data.split_first_chunk_mut::<HEADER>() else {
            return data.len();
        };
        let ports = [[header[0], header[1]], [header[2], header[3]]].map(u16::from_be_bytes);
        let sums = (sum(header), sum(header));
        self.checksum(header, 6, sums, below, below.bytes <= HEADER);
        if below.depth >= MAX_TUNNELS || !ports.contains(&tunnel::PORT) {
            return HEADER + self.quic(payload);
        }
        let Some(inner_at) = tunnel::inner_at(payload) else { return HEADER };
        self.gtp(&mut payload[..inner_at]);
        let wire = below.bytes.saturating_sub(HEADER + inner_at);
        HEADER + inner_at + self.ip(&mut payload[inner_at..], wire, below.depth + 1)
    }

    /// A long header of QUIC (RFC 8999, 5.1): keeps its form and type, and the version, by which
    /// connections are recognised; the bits under header protection are cleared (RFC 9001, 5.4.1).
    fn quic(&mut self, payload: &mut [u8]) -> usize {
        if !is_long_header(payload) {
            return 0;
        }
        payload[0] &= 0xf0;
        self.changes.add("quic_long_headers_kept", 1);
        5
    }

    /// A GTP-U header (TS 29.281, 5.1): scrubs the tunnel and, of extension headers, all
    /// but the QoS flow (TS 38.415, 5.5) and PDCP's number.
    fn gtp(&mut self, header: &mut [u8]) {
        const PDU_SESSION_CONTAINER: u8 = 0x85;
        const PDCP_NUMBER: u8 = 0xc0;
        self.number(Identity::Tunnel, &mut header[4..8], "tunnel_endpoints");
        let mut next = match header.get(11) {
            Some(&next) if header[0] & 0b100 != 0 => next,
            _ => 0,
        };
        let mut at = 12;
        while next != 0 && at < header.len() {
            let end = at + usize::from(header[at]) * 4;
            let Some(content) = header.get_mut(at + 1..end.max(at + 2) - 1) else { return };
            if !matches!(next, PDU_SESSION_CONTAINER | PDCP_NUMBER) {
                content.fill(0);
                self.changes.add("gtp_extension_headers", 1);
            }
            next = header.get(end - 1).copied().unwrap_or(0);
            at = end;
        }
    }

    /// A header of GRE (RFC 2890): scrubs its key; its checksum, of the true packet, is cleared.
    fn gre(&mut self, header: &mut [u8]) {
        let flags = header.first().copied().unwrap_or_default();
        let mut fields = header.chunks_exact_mut(4).skip(1);
        let checksum = (flags & tunnel::CHECKSUM != 0).then(|| fields.next()).flatten();
        if let Some(checksum) = checksum {
            checksum.fill(0);
        }
        let key = (flags & tunnel::KEY != 0).then(|| fields.next()).flatten();
        if let Some(key) = key {
            self.number(Identity::Tunnel, key, "tunnel_endpoints");
        }
    }

    fn icmp(&mut self, data: &mut [u8], below: Below) -> usize {
        if data.len() < 8 {
            return data.len().min(2);
        }
        let kind = Icmp::of(below.protocol, data[0]);
        let before = sum(data);
        let keep = match kind {
            Icmp::Unknown => 4,
            Icmp::Plain => 8,
            // A quote within a quote does not occur (RFC 1122, 3.2.2).
            Icmp::Quote if below.depth == QUOTED => 8,
            Icmp::Quote => {
                if (below.protocol, data[0]) == (ICMP, 5) {
                    self.v4_address(&mut data[4..8]);
                }
                8 + self.ip(&mut data[8..], below.bytes.saturating_sub(8), QUOTED)
            }
            Icmp::Addresses(n) => {
                let end = (8 + 16 * n).min(data.len());
                let whole = 8 + (end - 8) / 16 * 16;
                for address in data[8..whole].chunks_mut(16) {
                    self.v6_address(address);
                }
                whole
            }
        };
        let sums = (before, sum(data));
        let whole = below.bytes <= keep;
        // Only ICMPv6 also covers the addresses (RFC 4443, 2.3).
        let addresses = if below.protocol == ICMPV6 { below.addresses } else { (0, 0) };
        self.checksum(data, 2, sums, Below { addresses, ..below }, whole);
        keep
    }

    /// The checksum at `at`: updated if all data that it covers is kept (`whole`) and it
    /// is right, otherwise a pseudonym: the error of a wrong one would reveal the true
    /// addresses.
    fn checksum(
        &mut self,
        header: &mut [u8],
        at: usize,
        sums: (u32, u32),
        below: Below,
        whole: bool,
    ) {
        let Some(field) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
            return;
        };
        let checksum = u16::from_be_bytes(*field);
        let (before, after) = (sums.0 + below.addresses.0, sums.1 + below.addresses.1);
        // Protocol and length are included in the sum, except for ICMP over IPv4 (RFC
        // 792).
        let length = u32::try_from(below.bytes).unwrap_or(u32::MAX) & 0xffff;
        let pseudo = if below.protocol == ICMP { 0 } else { u32::from(below.protocol) + length };
        *field = match checksum {
            // No checksum (RFC 768), or one left to an offload.
            0 => 0,
            _ if whole && is_right(before + pseudo) => match updated(checksum, before, after) {
                0 => u16::MAX,
                updated => updated,
            },
            _ if whole => {
                self.changes.add("checksums_that_were_wrong", 1);
                self.names.checksum(checksum)
            }
            _ => {
                self.changes.add("checksums_over_cut_payload", 1);
                self.names.checksum(checksum)
            }
        }
        .to_be_bytes();
    }
}
