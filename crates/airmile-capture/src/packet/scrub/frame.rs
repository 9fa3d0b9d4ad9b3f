//! Link layers, in the manner of [`dissect`](crate::packet::dissect): each returns how
//! many bytes of the frame are kept.

use crate::packet::capture::Frame;
use crate::packet::dissect::{ether_type, pktap, u16_at};
use crate::packet::link;
use airmile_pseudonym::{Changes, Identity, Pseudonyms};

/// VLAN tags and MPLS labels one frame may have (as in the dissector).
const MAX_TAGS: usize = 8;

/// Bytes kept of a PKTAP header: its length, and what follows it.
const PKTAP_KEPT: usize = 12;

/// The state for one frame.
pub(super) struct Scrubbing<'a> {
    pub(super) names: &'a mut Pseudonyms,
    pub(super) changes: &'a mut Changes,
}

impl Scrubbing<'_> {
    /// Fills `out` with the kept part of a frame.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(frame.data);
        let keep = self.link(frame.link, out, frame.wire_bytes as usize);
        out.truncate(keep);
        self.changes.add("bytes_cut", (frame.data.len() - out.len()) as u64);
    }

    fn link(&mut self, link_type: u32, data: &mut [u8], wire: usize) -> usize {
        match link_type {
            link::ETHERNET => {
                let Some(header) = data.first_chunk_mut::<14>() else { return 0 };
                let protocol = u16::from_be_bytes([header[12], header[13]]);
                self.mac(&mut header[..6]);
                self.mac(&mut header[6..12]);
                self.behind(data, protocol, 14, wire)
            }
            link::RAW | link::RAW_12 | link::RAW_14 | link::IPV4 | link::IPV6 => {
                self.network(data, 0, wire)
            }
            link::LINUX_SLL => {
                let Some(header) = data.first_chunk_mut::<16>() else { return 0 };
                let protocol = u16::from_be_bytes([header[14], header[15]]);
                let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
                self.link_address(&mut header[6..14], length);
                self.behind(data, protocol, 16, wire)
            }
            link::LINUX_SLL2 => {
                let Some(header) = data.first_chunk_mut::<20>() else { return 0 };
                let protocol = u16::from_be_bytes([header[0], header[1]]);
                let length = usize::from(header[11]);
                self.link_address(&mut header[12..20], length);
                self.behind(data, protocol, 20, wire)
            }
            link::NULL | link::LOOP => self.network(data, 4, wire),
            link::PPP | link::PPP_HDLC => {
                let at = if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
                self.ppp(data, at, wire)
            }
            link::NFLOG => self.nflog(data, wire),
            link::PKTAP | link::USER2 => self.pktap(link_type, data, wire),
            _ => {
                self.changes.add("frames_of_unknown_links", 1);
                0
            }
        }
    }

    pub(super) fn mac(&mut self, address: &mut [u8]) {
        if let Some(bytes) = address.first_chunk_mut::<6>() {
            *bytes = self.names.mac(*bytes);
            self.changes.add("mac_addresses", 1);
        }
    }

    /// A cooked capture's field of eight bytes: padding could hold anything.
    fn link_address(&mut self, field: &mut [u8], length: usize) {
        if length == 6 {
            self.mac(field);
            field[6..].fill(0);
        } else {
            field.fill(0);
        }
    }

    /// Scrubs the protocol of an EtherType.
    fn behind(&mut self, data: &mut [u8], mut protocol: u16, mut at: usize, wire: usize) -> usize {
        for _ in 0..MAX_TAGS {
            match protocol {
                ether_type::IPV4 | ether_type::IPV6 => return self.network(data, at, wire),
                ether_type::VLAN | ether_type::QINQ | ether_type::QINQ_OLD => {
                    let Some(next) = u16_at(data, at + 2) else { return at };
                    protocol = next;
                    at += 4;
                }
                ether_type::MPLS => {
                    let Some(label) = data.get(at..at + 4) else { return at };
                    let bottom = label[2] & 1 == 1;
                    at += 4;
                    if bottom {
                        return self.network(data, at, wire);
                    }
                }
                ether_type::PPPOE => {
                    let Some(session) = data.get_mut(at + 2..at + 4) else { return at };
                    self.number(Identity::Session, session, "pppoe_sessions");
                    return self.ppp(data, at + 6, wire);
                }
                ether_type::ARP | ether_type::RARP => return at + self.arp(data, at),
                _ => break,
            }
        }
        self.changes.add("frames_not_ip", 1);
        at.min(data.len())
    }

    /// A number of up to eight bytes, big-endian, in place.
    pub(super) fn number(&mut self, identity: Identity, field: &mut [u8], what: &'static str) {
        let value = field.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let bytes = self.names.number(identity, value).to_be_bytes();
        let start = bytes.len().saturating_sub(field.len());
        field.copy_from_slice(&bytes[start..]);
        self.changes.add(what, 1);
    }

    fn ppp(&mut self, data: &mut [u8], at: usize, wire: usize) -> usize {
        let Some(&first) = data.get(at) else { return at.min(data.len()) };
        let (protocol, behind) = match u16_at(data, at) {
            _ if first & 1 == 1 => (u16::from(first), at + 1),
            Some(protocol) => (protocol, at + 2),
            None => return at,
        };
        match protocol {
            0x0021 | 0x0057 => self.network(data, behind, wire),
            _ => {
                self.changes.add("frames_not_ip", 1);
                behind
            }
        }
    }

    /// Attributes other than the packet hold addresses, user and prefix: their contents
    /// are zeroed.
    fn nflog(&mut self, data: &mut [u8], wire: usize) -> usize {
        const PAYLOAD: u16 = 9;
        let mut at = 4;
        loop {
            let Some(head) = data.get(at..at + 4) else { return at.min(data.len()) };
            let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
            let kind = u16::from_le_bytes([head[2], head[3]]) & 0x7fff;
            if kind == PAYLOAD {
                return self.network(data, at + 4, wire);
            }
            if length < 4 {
                return at;
            }
            let end = (at + length.next_multiple_of(4)).min(data.len());
            data[at + 4..end.max(at + 4)].fill(0);
            self.changes.add("nflog_attributes", 1);
            at = end;
        }
    }

    /// The names of processes and interfaces, and all but what the frame is read by, are zeroed.
    fn pktap(&mut self, link_type: u32, data: &mut [u8], wire: usize) -> usize {
        let Ok((inner, at)) = pktap(link_type, data) else {
            self.changes.add("frames_of_unknown_links", 1);
            return 0;
        };
        let end = at.min(data.len());
        data[PKTAP_KEPT..end].fill(0);
        self.changes.add("pktap_headers", 1);
        end + self.link(inner, &mut data[end..], wire.saturating_sub(at))
    }

    /// ARP and RARP over Ethernet (RFC 826).
    fn arp(&mut self, data: &mut [u8], at: usize) -> usize {
        const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
        let Some(arp) = data.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<28>()) else {
            return 0;
        };
        if !arp.starts_with(&ETHERNET_IPV4) {
            self.changes.add("frames_not_ip", 1);
            return 0;
        }
        self.mac(&mut arp[8..14]);
        self.v4_address(&mut arp[14..18]);
        self.mac(&mut arp[18..24]);
        self.v4_address(&mut arp[24..28]);
        28
    }

    /// An IP packet that begins at `at`.
    fn network(&mut self, data: &mut [u8], at: usize, wire: usize) -> usize {
        let Some(packet) = data.get_mut(at..) else { return data.len() };
        at + self.ip(packet, wire.saturating_sub(at), 0)
    }
}
