//! IP headers and their contents.

use super::checksum::{is_right, sum, updated};
use super::frame::Scrubbing;
use super::options;
use crate::packet::dissect::u16_at;
use crate::packet::ip::{Extension, MAX_EXTENSIONS};

/// The context for the header above IP.
#[derive(Clone, Copy)]
pub(super) struct Below {
    /// The protocol of that header.
    pub(super) protocol: u8,
    /// Bytes above IP on the wire.
    pub(super) bytes: usize,
    /// Sums of the addresses, before and after.
    pub(super) addresses: (u32, u32),
    /// Number of tunnels around it; a packet quoted by an ICMP error has the depth
    /// [`QUOTED`].
    pub(super) depth: u8,
}

/// Depth of a quoted packet: tunnels within it are not followed.
pub(super) const QUOTED: u8 = u8::MAX;

impl Scrubbing<'_> {
    pub(super) fn v4_address(&mut self, field: &mut [u8]) {
        if let Some(bytes) = field.first_chunk_mut::<4>() {
            *bytes = self.names.v4(*bytes);
            self.changes.add("ip_addresses", 1);
        }
    }

    pub(super) fn v6_address(&mut self, field: &mut [u8]) {
        if let Some(bytes) = field.first_chunk_mut::<16>() {
            *bytes = self.names.v6(*bytes);
            self.changes.add("ip_addresses", 1);
        }
    }

    /// Scrubs a packet; returns how many of its bytes are kept.
    pub(super) fn ip(&mut self, data: &mut [u8], wire: usize, depth: u8) -> usize {
        let version = data.first().map_or(0, |first| first >> 4);
        let kept = match version {
            4 => self.v4(data, wire, depth),
            6 => self.v6(data, wire, depth),
            _ => 0,
        };
        if kept > 0 {
            return kept;
        }
        // Four bytes stand for an unreadable packet, to distinguish it from an absent
        // one: its version, if valid, and nothing else.
        let kept = data.len().min(4);
        data[..kept].fill(0);
        if let Some(first) = data.first_mut().filter(|_| matches!(version, 4 | 6)) {
            *first = version << 4;
        }
        kept
    }

    fn v4(&mut self, data: &mut [u8], wire: usize, depth: u8) -> usize {
        const CHECKSUM: usize = 10;
        let Some(fixed) = data.first_chunk::<20>() else { return 0 };
        let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
        let total = match u16::from_be_bytes([fixed[2], fixed[3]]) {
            0 => wire,
            total => usize::from(total),
        };
        let (protocol, later) = (fixed[9], u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff != 0);
        if header_bytes < 20 || total < header_bytes {
            return 0;
        }
        let end = data.len().min(total);
        let (header, above) = data[..end].split_at_mut(header_bytes.min(end));
        let before = (sum(&header[12..20]), sum(header));
        self.v4_address(&mut header[12..16]);
        self.v4_address(&mut header[16..20]);
        options::ipv4(&mut header[20..], self.changes);
        let after = (sum(&header[12..20]), sum(header));
        let checksum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
        // For a wrong checksum (mostly filled in by an offload), the difference would
        // reveal the sum of the true addresses.
        let checksum = if is_right(before.1) && header.len() == header_bytes {
            updated(checksum, before.1, after.1)
        } else {
            self.names.checksum(checksum)
        };
        header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        let header_bytes = header.len();
        if later {
            return header_bytes;
        }
        let bytes = total - header_bytes;
        let below = Below { protocol, bytes, addresses: (before.0, after.0), depth };
        header_bytes + self.transport(above, below)
    }

    fn v6(&mut self, data: &mut [u8], wire: usize, depth: u8) -> usize {
        let Some(fixed) = data.first_chunk_mut::<40>() else { return 0 };
        let total = match u16::from_be_bytes([fixed[4], fixed[5]]) {
            0 => wire,
            payload => 40 + usize::from(payload),
        };
        let mut protocol = fixed[6];
        let before = sum(&fixed[8..]);
        self.v6_address(&mut fixed[8..24]);
        self.v6_address(&mut fixed[24..40]);
        let addresses = (before, sum(&fixed[8..]));
        let end = data.len().min(total);
        let mut at = 40;
        for _ in 0..MAX_EXTENSIONS {
            let Some(extension) = Extension::of(protocol) else {
                let Some(above) = data.get_mut(at..end) else { return at.min(data.len()) };
                let bytes = total.saturating_sub(at);
                return at + self.transport(above, Below { protocol, bytes, addresses, depth });
            };
            let Some(&[next, length, ..]) = data.get(at..).and_then(|d| d.first_chunk::<8>())
            else {
                return at;
            };
            let behind = at + extension.bytes(length);
            let later = extension == Extension::Fragment
                && u16_at(data, at + 2).is_some_and(|field| field & 0xfff8 != 0);
            let header_end = behind.min(data.len());
            self.extension(extension, &mut data[at..header_end]);
            protocol = next;
            at = behind;
            if later || at >= data.len() {
                break;
            }
        }
        at.min(data.len())
    }

    /// Empties identifying data in an extension header.
    fn extension(&mut self, extension: Extension, header: &mut [u8]) {
        match extension {
            Extension::Options => options::ipv6(&mut header[2..], self.changes),
            Extension::Fragment => {}
            // Addresses on the path; keys and numbers of an association; a mobile's home
            // address.
            Extension::Routing | Extension::Authentication | Extension::Mobility => {
                header[4..].fill(0);
                self.changes.add("ipv6_extension_headers", 1);
            }
        }
    }
}
