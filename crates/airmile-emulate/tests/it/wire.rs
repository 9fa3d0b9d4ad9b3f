//! Packets to bytes and back.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::tcp::{Flags, Literal, SackBlock, TcpSegment};
use proptest::prelude::*;

fn address() -> impl Strategy<Value = SocketAddrV4> {
    any::<(u32, u16)>().prop_map(|(ip, port)| SocketAddrV4::new(Ipv4Addr::from(ip), port))
}

fn segment() -> impl Strategy<Value = TcpSegment> {
    let flags = any::<(bool, bool, bool, bool, bool)>();
    let options = (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        any::<Option<(u32, u32)>>(),
        prop::collection::vec(any::<(u32, u32)>(), 0..3),
    );
    let payload = prop::collection::vec(any::<u8>(), 0..1460);
    (any::<(u32, u32, u16)>(), flags, options, payload).prop_map(
        |((seq, ack, window), (syn, is_ack, fin, rst, psh), options, bytes)| {
            let (mss_bytes, window_scale, sack_permitted, timestamps, sack) = options;
            let sack = sack
                .into_iter()
                .map(|(start_seq, end_seq)| SackBlock { start_seq, end_seq })
                .collect();
            let literals = if bytes.is_empty() {
                vec![]
            } else {
                vec![Literal { offset: 0, bytes: Arc::from(bytes.as_slice()) }]
            };
            TcpSegment {
                seq,
                ack,
                flags: Flags { syn, ack: is_ack, fin, rst, psh },
                window,
                mss_bytes,
                window_scale,
                sack_permitted,
                timestamps,
                sack,
                payload: 0..bytes.len() as u64,
                literals,
            }
        },
    )
}

fn packet() -> impl Strategy<Value = IpPacket> {
    let udp = prop::collection::vec(any::<u8>(), 0..1472).prop_map(Transport::Udp);
    let transport = prop_oneof![segment().prop_map(Transport::Tcp), udp];
    (address(), address(), any::<u16>(), transport)
        .prop_map(|(src, dst, ip_id, transport)| IpPacket { src, dst, ip_id, transport })
}

proptest! {
    #[test]
    fn parse_gives_back_what_emit_wrote(packet in packet()) {
        let bytes = packet.emit();
        prop_assert_eq!(bytes.len() as u32, packet.ip_bytes());
        prop_assert_eq!(IpPacket::parse(&bytes).unwrap(), packet);
    }

    #[test]
    fn a_changed_bit_is_seen(packet in packet(), bit in any::<prop::sample::Index>()) {
        let mut bytes = packet.emit();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(IpPacket::parse(&bytes) != Ok(packet));
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = IpPacket::parse(&bytes);
    }

    /// With a valid checksum: any header length and any options.
    #[test]
    fn any_options_are_taken_or_refused(
        words in 0u8..16,
        options in prop::collection::vec(any::<u8>(), 0..40),
        rest in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let packet = IpPacket {
            src: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            dst: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 2),
            ip_id: 0,
            transport: Transport::Tcp(TcpSegment::default()),
        };
        let mut bytes = packet.emit();
        bytes.extend(options.iter().chain(&rest));
        let total = (bytes.len() as u16).to_be_bytes();
        bytes[2..4].copy_from_slice(&total);
        bytes[32] = words << 4;
        let sum = |bytes: &[u8], start: u32| {
            let words = bytes.chunks(2).map(|w| {
                u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))
            });
            let mut sum = start + words.sum::<u32>();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            (!(sum as u16)).to_be_bytes()
        };
        bytes[10..12].fill(0);
        let header = sum(&bytes[..20], 0);
        bytes[10..12].copy_from_slice(&header);
        bytes[36..38].fill(0);
        let pseudo = 2 * (0x7f00 + 1) + 6 + (bytes.len() as u32 - 20);
        let tcp = sum(&bytes[20..], pseudo);
        bytes[36..38].copy_from_slice(&tcp);
        match IpPacket::parse(&bytes) {
            // Accepted packets can be written, and parse to the same: our options take no
            // more room than the original ones.
            Ok(packet) => {
                let written = packet.emit();
                prop_assert_eq!(packet.ip_bytes() as usize, written.len());
                prop_assert!(written.len() <= bytes.len());
                prop_assert_eq!(IpPacket::parse(&written), Ok(packet));
            }
            Err(error) => prop_assert!(!error.to_string().contains("checksum")),
        }
    }

    #[test]
    fn any_cut_is_refused(packet in packet(), at in any::<prop::sample::Index>()) {
        let bytes = packet.emit();
        prop_assert!(IpPacket::parse(&bytes[..at.index(bytes.len())]).is_err());
    }
}

#[test]
fn a_syn_by_hand() {
    let syn = TcpSegment {
        seq: 0x0102_0304,
        flags: Flags { syn: true, ..Flags::default() },
        window: 0xffff,
        mss_bytes: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((0x0a0b_0c0d, 0)),
        ..TcpSegment::default()
    };
    let packet = IpPacket {
        src: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000),
        dst: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 80),
        ip_id: 7,
        transport: Transport::Tcp(syn),
    };
    #[rustfmt::skip]
    let expected = [
        0x45, 0, 0, 60, 0, 7, 0x40, 0, 64, 6, 0x26, 0xb3, 10, 0, 0, 1, 10, 0, 0, 2,
        0x9c, 0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xff, 0xff, 0x77, 0x55, 0, 0,
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, 3, 3, 7, 1,
    ];
    assert_eq!(packet.emit(), expected);
}
