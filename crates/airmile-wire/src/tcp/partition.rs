//! The user of a packet, before its flow is known: so that packets can be partitioned by
//! user from any part of a capture.

use airmile_model::packet::{Address, Packet, Transport};

use super::flow::{client_by_ends, client_is_source};
use super::mix::mix;
use airmile_model::ClientBy;

/// The probable user of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketOwner {
    /// The client by the flow's ends alone, the same for all packets of a flow.
    pub client: Address,
    /// Were this packet the first of its flow, the client would be the same. If all
    /// packets between two ends are sure, so is the flow's client.
    pub sure: bool,
}

impl PacketOwner {
    /// Of a packet. `None`: it belongs to no flow.
    #[inline]
    #[must_use]
    pub fn from_packet(packet: &Packet<'_>, client_networks: &[(Address, u8)]) -> Option<Self> {
        match packet.transport {
            Transport::Tcp(_) | Transport::Udp => {}
            Transport::Icmp | Transport::Fragment | Transport::Other => return None,
        }
        let guess = client_is_source(packet, client_networks);
        let by_ends = if guess.1 == ClientBy::Syn { client_by_ends(packet) } else { guess };
        let source = match by_ends.1 {
            ClientBy::FirstPacket => (packet.src, packet.src_port) <= (packet.dst, packet.dst_port),
            _ => by_ends.0,
        };
        let client = if source { packet.src } else { packet.dst };
        Some(Self { client, sure: source == guess.0 })
    }
}

/// Assigns a user to one of `buckets`.
#[must_use]
pub fn bucket_of(client: Address, buckets: u32) -> u32 {
    let [high, low] = client.words();
    // Not the bits that assign users to partitions.
    (mix(low, high.wrapping_add(1)) >> 32) as u32 % buckets.max(1)
}

/// The two ends of a packet and its protocol, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowEnds([u8; FlowEnds::BYTES]);

impl FlowEnds {
    /// Bytes of one.
    pub const BYTES: usize = 37;

    /// Of a packet.
    #[must_use]
    pub fn from_packet(packet: &Packet<'_>) -> Self {
        let (a, b) = ((packet.src, packet.src_port), (packet.dst, packet.dst_port));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let mut bytes = [0; Self::BYTES];
        let words = [low.0.words(), high.0.words()].concat();
        let parts = words.iter().flat_map(|word| word.to_be_bytes());
        let ports = [low.1, high.1].into_iter().flat_map(u16::to_be_bytes);
        let all = parts.chain(ports).chain([packet.protocol]);
        bytes.iter_mut().zip(all).for_each(|(byte, value)| *byte = value);
        Self(bytes)
    }

    /// As bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// From bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use airmile_model::packet::{Ecn, TcpFlags, TcpHeader};

    use super::*;

    fn packet(from: (&str, u16), to: (&str, u16), flags: Option<u8>) -> Packet<'static> {
        let address = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
        let tcp = |flags| TcpHeader { flags: TcpFlags(flags), ..TcpHeader::default() };
        Packet {
            at_ns: 0,
            src: address(from.0),
            dst: address(to.0),
            src_port: from.1,
            dst_port: to.1,
            protocol: if flags.is_some() { 6 } else { 17 },
            transport: flags.map_or(Transport::Udp, |flags| Transport::Tcp(tcp(flags))),
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 40,
            payload_bytes: 0,
            payload: &[],
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }

    /// A packet from `a` to `b`, then one back: clients and whether they are sure.
    #[track_caller]
    fn check(a: (&str, u16), b: (&str, u16), flags: Option<u8>, client: &str, sure: [bool; 2]) {
        let [there, back] = [packet(a, b, flags), packet(b, a, flags)];
        assert_eq!(FlowEnds::from_packet(&there), FlowEnds::from_packet(&back));
        for (packet, sure) in [(there, sure[0]), (back, sure[1])] {
            let got = PacketOwner::from_packet(&packet, &[]).unwrap();
            assert_eq!((got.client.to_string().as_str(), got.sure), (client, sure), "{packet:?}");
        }
    }

    #[test]
    fn all_packets_of_two_ends_have_one_place() {
        const ACK: Option<u8> = Some(TcpFlags::ACK.0);
        const SYN: Option<u8> = Some(TcpFlags::SYN.0);
        let (phone, server) = (("10.0.0.9", 40_000), ("198.18.0.1", 443));
        check(phone, server, ACK, "10.0.0.9", [true, true]);
        // A SYN from the server's port makes it the client.
        check(phone, server, SYN, "10.0.0.9", [true, false]);
        check(phone, server, None, "10.0.0.9", [true, true]);
        // Two peers: the client is the one that sends first.
        let (a, b) = (("198.18.0.1", 5_000), ("198.18.0.2", 6_000));
        check(a, b, None, "198.18.0.1", [true, false]);
        check(a, b, ACK, "198.18.0.2", [true, true]);
        let (a, b) = (("198.18.0.1", 7_000), ("198.18.0.2", 7_000));
        check(a, b, ACK, "198.18.0.1", [true, false]);
    }

    #[test]
    fn networks_are_sure_and_others_are_of_no_flow() {
        let net = [(Address::v4([198, 18, 0, 0]), 24)];
        let syn = packet(("203.0.113.1", 9), ("198.18.0.9", 80), Some(TcpFlags::SYN.0));
        let got = PacketOwner::from_packet(&syn, &net).unwrap();
        assert_eq!((got.client.to_string().as_str(), got.sure), ("198.18.0.9", true));
        let icmp = Packet { transport: Transport::Icmp, ..syn };
        assert_eq!(PacketOwner::from_packet(&icmp, &net), None);
    }

    #[test]
    fn users_are_spread() {
        let mut counts = [0_u32; 16];
        for n in 0..4_096_u16 {
            let [a, b] = n.to_be_bytes();
            counts[bucket_of(Address::v4([10, 0, a, b]), 16) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (150..400).contains(n)), "{counts:?}");
    }
}
