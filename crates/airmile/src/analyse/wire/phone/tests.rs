use airmile_model::packet::SeqNum;

use super::*;

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
