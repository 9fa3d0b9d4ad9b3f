//! A phone with addresses of two families.

use super::*;

/// A capture's users: one has 40 segments over IPv4, the other 20 over this family with this initial sequence number, in
/// the same 2 s; the other's handshake ends some ms after the server's part passed.
fn of_families(is_v4: bool, isn: u32, late_ms: i64) -> Vec<Phone> {
    let mut packets = Vec::new();
    for (user, segments) in [(0, 40), (1, 20)] {
        let (isn, late_ms) = if user == 0 { (1_000, 0) } else { (isn, late_ms) };
        let address = |last: u8| match user == 0 || is_v4 {
            true => Address::v4([10, 0, user as u8, last]),
            false => Address::v6([last; 16]),
        };
        let ends = [(address(1), 5_000), (address(2), 443)];
        let mut add = |ms: i64, dir, flags, n: i64, bytes: i64| {
            packets.push((
                ends,
                TracedPacket {
                    flow: user,
                    user,
                    at_ns: ms * MS,
                    dir,
                    seq: SeqNum(if dir == Direction::Dl { isn } else { 7 }),
                    flags,
                    offset_bytes: n * SEGMENT_BYTES,
                    payload_bytes: bytes as u32,
                    new_bytes: bytes as u64,
                    ack: (flags != TcpFlags::SYN).then_some(TracedAck {
                        offset_bytes: 0,
                        rwnd_bytes: Some(1_000_000),
                        duplicate: false,
                        flight_bytes: 0,
                        sack: [(0, 0); 4],
                    }),
                    ..TracedPacket::EXAMPLE
                },
            ));
        };
        add(0, Direction::Ul, TcpFlags::SYN, 0, 0);
        add(40, Direction::Dl, TcpFlags::SYN, 0, 0);
        add(40 + late_ms, Direction::Ul, TcpFlags::ACK, 0, 300);
        for n in 0..segments {
            add(100 + n * 2_000 / segments, Direction::Dl, TcpFlags::ACK, n, SEGMENT_BYTES);
        }
    }
    packets.sort_by_key(|(_, packet)| packet.at_ns);
    let mut capture = PhoneReader::new(HashSet::new(), Some(500 * MS));
    for (ends, packet) in packets {
        let down = packet.dir == Direction::Dl;
        capture.ends = Some(if down { [ends[1], ends[0]] } else { ends });
        capture.push(&packet);
    }
    capture.finish(false)
}

#[test]
fn a_phone_with_addresses_of_both_families_is_one() {
    let users = of_families(false, 2_000, 0);
    assert_eq!(users.len(), 1);
    let phone = &users[0];
    assert_eq!((phone.connections.len(), phone.hosts.len()), (2, 2));
    let bytes = 60 * SEGMENT_BYTES as u64;
    assert_eq!((phone.dl_bytes, phone.followed.total()), (bytes, bytes));
    let arrived = phone.arrivals.points().iter().map(|(_, bytes)| u64::from(*bytes));
    assert_eq!(arrived.sum::<u64>(), bytes);
    assert!(phone.others.is_some() && phone.place == CaptureSite::Phone);
    let spans = phone.waits.spans();
    assert!(spans.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
    // Two users of one family, one behind a router, and the same packets before a translation.
    assert_eq!(of_families(true, 2_000, 0).len(), 2);
    assert_eq!(of_families(false, 2_000, 30).len(), 2);
    assert_eq!(of_families(false, 1_000, 0).len(), 2);
}
