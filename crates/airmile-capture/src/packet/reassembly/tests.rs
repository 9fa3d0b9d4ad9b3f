use proptest::prelude::*;

use super::*;
use crate::packet::link;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [192, 0, 2, 1];

/// A fragment of an IPv4 datagram: data from `from` on.
fn fragment(id: u16, protocol: u8, from: usize, more: bool, data: &[u8]) -> Vec<u8> {
    let field = (from / 8) as u16 | if more { 0x2000 } else { 0 };
    let mut packet = vec![0x45, 0];
    packet.extend(((20 + data.len()) as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(field.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(A);
    packet.extend(B);
    packet.extend_from_slice(data);
    packet
}

/// A fragment of an IPv6 datagram.
fn fragment_v6(id: u32, from: u16, more: bool, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((8 + data.len()) as u16).to_be_bytes());
    packet.extend([44, 64]);
    packet.extend([0xfd; 16]);
    packet.extend([0xfe; 16]);
    packet.extend([17, 0]);
    packet.extend((from | u16::from(more)).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend_from_slice(data);
    packet
}

/// A datagram of UDP, payload counting up.
fn udp(payload: usize) -> Vec<u8> {
    let mut data = [5000, 53, 8 + payload as u16, 0].map(u16::to_be_bytes).concat();
    data.extend((0..payload).map(|n| n as u8));
    data
}

/// A packet's fields: ports, payload on the wire and as captured, IP bytes, time.
type Fields = (u16, u16, u32, Vec<u8>, u32, i64);

/// Pushes packets, a second apart, with `snap` bytes captured of each.
fn push(packets: &[Vec<u8>], snap: usize) -> (Vec<Fields>, FragmentCounts) {
    let mut dissector = Dissector::new();
    let mut packets_out = Vec::new();
    let mut take = |read: Result<&Packet<'_>, Unread>| {
        let p = read.unwrap();
        packets_out.push((
            p.src_port,
            p.dst_port,
            p.payload_bytes,
            p.payload.to_vec(),
            p.ip_bytes,
            p.at_ns,
        ));
    };
    for (n, packet) in packets.iter().enumerate() {
        let data = &packet[..packet.len().min(snap)];
        let at_ns = n as i64 * 1_000_000_000;
        let wire_bytes = packet.len() as u32;
        let frame = Frame { offset: 0, at_ns, interface: 0, link: link::RAW, wire_bytes, data };
        dissector.push(&frame, &mut take);
    }
    dissector.finish(&mut take);
    (packets_out, dissector.counts())
}

#[test]
fn two_fragments_are_one_datagram() {
    let data = udp(100);
    let packets = [fragment(7, 17, 0, true, &data[..64]), fragment(7, 17, 64, false, &data[64..])];
    let expected = (5000, 53, 100, data[8..].to_vec(), 148, 1_000_000_000);
    for order in [[0, 1], [1, 0]] {
        let (packets_out, counts) = push(&order.map(|n| packets[n].clone()), usize::MAX);
        assert_eq!(packets_out, std::slice::from_ref(&expected));
        assert_eq!(counts, FragmentCounts { fragments: 2, datagrams: 1, ..counts });
        assert_eq!((counts.incomplete, counts.overlapping, counts.left_out), (0, 0, 0));
    }
}

#[test]
fn headers_alone_are_enough() {
    let data = udp(3000);
    let packets: Vec<Vec<u8>> = [0, 1480, 2960]
        .map(|from| fragment(7, 17, from, from < 2960, &data[from..data.len().min(from + 1480)]))
        .into();
    let (packets_out, _) = push(&packets, 40);
    // 20 bytes above IP were captured of each: 12 of payload, then a hole.
    assert_eq!(packets_out, [(5000, 53, 3000, data[8..20].to_vec(), 3068, 2_000_000_000)]);
}

#[test]
fn ipv6_and_what_is_not_fragmented() {
    let data = udp(40);
    let whole = fragment(1, 17, 0, false, &data);
    let packets =
        [fragment_v6(9, 0, true, &data[..24]), whole, fragment_v6(9, 24, false, &data[24..])];
    let (packets_out, counts) = push(&packets, usize::MAX);
    let sizes: Vec<_> = packets_out.iter().map(|p| (p.2, p.4)).collect();
    assert_eq!(sizes, [(40, 68), (40, 144)]);
    assert_eq!(counts.fragments, 2);
    // An atomic fragment is whole (RFC 6946).
    assert_eq!(push(&[fragment_v6(9, 0, false, &data)], usize::MAX).0[0].2, 40);
}

#[test]
fn of_overlaps_the_first_counts() {
    let data = udp(56);
    let mut other = data.clone();
    other[8..].fill(0xee);
    let packets = [
        fragment(7, 17, 0, true, &data[..32]),
        fragment(7, 17, 16, true, &other[16..48]),
        fragment(7, 17, 40, false, &other[40..]),
    ];
    let (packets_out, counts) = push(&packets, usize::MAX);
    assert_eq!((packets_out.len(), packets_out[0].2), (1, 56));
    assert_eq!(packets_out[0].3[..24], data[8..32]);
    assert_eq!(packets_out[0].3[24..], [0xee; 32]);
    assert_eq!(counts.overlapping, 2);
}

#[test]
fn what_never_completes_is_told() {
    let data = udp(100);
    let first = fragment(7, 17, 0, true, &data[..64]);
    let stray = fragment(8, 17, 64, false, &data[64..]);
    let (packets_out, counts) = push(&[first, stray], usize::MAX);
    assert_eq!(packets_out, [(5000, 53, 56, data[8..64].to_vec(), 84, 0)]);
    assert_eq!((counts.incomplete, counts.left_out, counts.left_out_bytes), (1, 1, 64));
}

#[test]
fn a_datagram_waits_half_a_minute() {
    let data = udp(100);
    let mut packets = vec![fragment(7, 17, 0, true, &data[..64])];
    packets.extend((0..40).map(|n| fragment(100 + n, 17, 0, false, &udp(1))));
    let (packets_out, counts) = push(&packets, usize::MAX);
    // Given up with the packet of second 31.
    assert_eq!(packets_out.iter().position(|p| p.2 == 56), Some(30));
    assert_eq!(counts.incomplete, 1);
}

#[test]
fn memory_is_bounded() {
    let mut dissector = Dissector::new();
    let data = vec![0; 1400];
    for n in 0..5000_u32 {
        let packet = fragment((n % 60_000) as u16, 17, 0, true, &data);
        let wire_bytes = packet.len() as u32;
        let frame = Frame {
            offset: 0,
            at_ns: n.into(),
            interface: 0,
            link: link::RAW,
            wire_bytes,
            data: &packet,
        };
        dissector.push(&frame, &mut |_| ());
        assert!(dissector.waiting.len() <= MAX_WAITING && dissector.kept_bytes <= MAX_KEPT_BYTES);
    }
    assert_eq!(dissector.counts().incomplete, 5000 - MAX_WAITING as u64);
}

#[test]
fn a_tunnel_that_is_fragmented_gives_its_packet() {
    let inner = fragment(3, 17, 0, false, &udp(200));
    let mut gtp = vec![0x30, 255, 0, 0, 0, 0, 0, 1];
    gtp.extend(inner);
    let mut outer = [2152, 2152, 8 + gtp.len() as u16, 0].map(u16::to_be_bytes).concat();
    outer.extend(gtp);
    let packets =
        [fragment(7, 17, 0, true, &outer[..96]), fragment(7, 17, 96, false, &outer[96..])];
    let (packets_out, counts) = push(&packets, usize::MAX);
    assert_eq!((packets_out.len(), packets_out[0].2, packets_out[0].3.len()), (1, 200, 200));
    assert_eq!((counts.datagrams, counts.left_out), (1, 0));
}

proptest! {
    /// Whatever the fragments and their order, the payload is the same.
    #[test]
    fn any_fragmentation_and_order(
        sizes in prop::collection::vec(0usize..400, 1..6),
        cuts in prop::collection::vec(1usize..20, 1..6),
        order in any::<prop::sample::Index>(), snap in prop::option::of(28usize..60),
    ) {
        let mut packets = Vec::new();
        for (id, &size) in sizes.iter().enumerate() {
            let data = udp(size);
            let mut from = 0;
            let mut cut = cuts.iter().cycle();
            while from < data.len() {
                let to = (from + cut.next().unwrap() * 8).min(data.len());
                packets.push(fragment(id as u16, 17, from, to < data.len(), &data[from..to]));
                from = to;
            }
        }
        // At most twenty-nine seconds, so that none expires.
        let n = packets.len();
        let mut shuffled = packets.clone();
        shuffled.rotate_left(order.index(n));
        if order.index(7) > 3 {
            shuffled.reverse();
        }
        let mut dissector = Dissector::new();
        let mut found = Vec::new();
        for packet in &shuffled {
            let data = &packet[..packet.len().min(snap.unwrap_or(usize::MAX))];
            let wire_bytes = packet.len() as u32;
            let frame = Frame { offset: 0, at_ns: 0, interface: 0, link: link::RAW, wire_bytes, data };
            dissector.push(&frame, &mut |read| {
                let packet = read.unwrap();
                found.push((packet.ip_id.unwrap(), packet.payload_bytes, packet.payload.len()));
            });
        }
        prop_assert!(dissector.waiting.is_empty() && dissector.kept_bytes == 0);
        found.sort_unstable();
        let sent: Vec<u32> = sizes.iter().map(|&size| size as u32).collect();
        prop_assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), sent);
        if snap.is_none() {
            prop_assert!(found.iter().all(|f| f.1 as usize == f.2));
        }
    }

    #[test]
    fn nothing_panics(packets in prop::collection::vec(
        (0u16..3, 0usize..9000, any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 0..30)) {
        let mut dissector = Dissector::new();
        let mut given = 0;
        for (n, (id, from, more, data)) in packets.iter().enumerate() {
            let packet = fragment(*id, if *from > 4000 { 6 } else { 60 }, *from, *more, data);
            let wire_bytes = packet.len() as u32;
            let at_ns = n as i64 * 5_000_000_000;
            let frame = Frame { offset: 0, at_ns, interface: 0, link: link::RAW, wire_bytes, data: &packet };
            dissector.push(&frame, &mut |_| given += 1);
        }
        dissector.finish(&mut |_| given += 1);
        prop_assert!(given <= packets.len());
        prop_assert!(dissector.waiting.is_empty() && dissector.kept_bytes == 0);
    }
}
