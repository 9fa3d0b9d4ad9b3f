use airmile_model::packet::SeqNum;

use super::*;

/// Marks are the same, however an offload joins segments.
#[test]
fn marks_over_joined_segments() {
    let check = |ends: &[i64], expected: &[(i64, i64)]| {
        let mut marks = Marks::default();
        ends.iter().enumerate().for_each(|(i, end)| marks.add(*end, i as i64));
        assert_eq!(marks.0, expected);
    };
    check(
        &[1_000, 9_000, 10_000, 17_000],
        &[(1_000, 0), (4_096, 1), (8_192, 1), (12_288, 3), (16_384, 3)],
    );
    check(&[9_000], &[(4_096, 0), (8_192, 0), (9_000, 0)]);
    // After a hole only what one packet can hold is marked: its last 64 KiB.
    let marks: Vec<(i64, i64)> = (229..=244).map(|n| (n * 4_096, 0)).collect();
    check(&[1_000_000], &[marks, vec![(1_000_000, 0)]].concat());
}

/// Of a thousand clients of a server, those with the most bytes are kept, and the
/// one that the phone's own capture has shown.
#[test]
fn a_server_with_many_clients() {
    let mut capture = Capture::knowing(HashSet::from([77]));
    for user in 0..1000_u64 {
        let isn = if user == 3 { 77 } else { 1_000_000 + user as u32 };
        for (seq, flags, bytes) in [(isn, TcpFlags::SYN, 0), (isn + 1, TcpFlags::ACK, user)] {
            capture.push(&TracedPacket {
                flow: user,
                user,
                at_ns: user as i64 * 1_000_000,
                dir: Direction::Dl,
                seq: SeqNum(seq),
                flags,
                timestamps: None,
                event: None,
                offset_bytes: 1,
                payload_bytes: bytes as u32,
                new_bytes: bytes,
                flight_bytes: bytes,
                ack: None,
            });
        }
    }
    assert!(capture.users.len() <= MOST_USERS + MOST_USERS / 2);
    assert!(capture.users.contains_key(&3) && capture.users.contains_key(&999));
    assert!(!capture.users.contains_key(&4));
}
