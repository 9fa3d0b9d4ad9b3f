//! Vectors of RFC 9001 and RFC 9369, appendix A, and handshakes in pieces.

use aes_gcm::aead::{Aead, Payload};
use proptest::prelude::*;

use super::*;

const DESTINATION: &str = "8394c8f03e515708";
/// A.2: a CRYPTO frame; PADDING follows up to 1162 bytes.
const FRAME: &str = "\
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
    0d0010000e0403050306030203080408050806002d00020101001c0002400100\
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";
const PAYLOAD_BYTES: usize = 1162;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Protects a packet as a sender does; `header` ends with a four-byte packet number.
fn seal(keys: &Keys, header: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    let nonce = keys.nonce(number.into());
    let payload = Payload { msg: frames, aad: header };
    let sealed = keys.packet.encrypt(&nonce.into(), payload).unwrap();
    let mask = keys.mask(&sealed[..SAMPLE_BYTES]).unwrap();
    let mut packet = [header, &sealed].concat();
    packet[0] ^= mask[0] & 0x0f;
    let number_at = header.len() - 4;
    packet[number_at..header.len()].iter_mut().zip(&mask[1..]).for_each(|(b, m)| *b ^= m);
    packet
}

/// An Initial packet of any version, with a token and frames.
fn initial(version: u32, destination: &[u8], token: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    let first = if version == V2 { 0xd3 } else { 0xc3 };
    let mut header = vec![first];
    header.extend(version.to_be_bytes());
    header.push(destination.len() as u8);
    header.extend(destination);
    header.push(0);
    header.extend((0x4000 | token.len() as u16).to_be_bytes());
    header.extend(token);
    header.extend((0x4000 | (4 + frames.len() + 16) as u16).to_be_bytes());
    header.extend(number.to_be_bytes());
    seal(&Keys::client(version, destination).unwrap(), &header, number, frames)
}

fn crypto(offset: usize, piece: &[u8]) -> Vec<u8> {
    let mut frame = vec![6];
    frame.extend((0x4000 | offset as u16).to_be_bytes());
    frame.extend((0x4000 | piece.len() as u16).to_be_bytes());
    frame.extend(piece);
    frame
}

fn names(server_name: &str, alpn: &str) -> Hello {
    Hello { server_name: Some(server_name.to_owned()), alpn: Some(alpn.to_owned()) }
}

/// Seals the vector's header and frames, compares both ends of the packet with the
/// vector's, and reads it.
#[track_caller]
fn check_vector(version: u32, header: &str, begins: &str, ends: &str) {
    let mut frames = bytes(FRAME);
    frames.resize(PAYLOAD_BYTES, 0);
    let keys = Keys::client(version, &bytes(DESTINATION)).unwrap();
    let packet = seal(&keys, &bytes(header), 2, &frames);
    assert_eq!(packet.len(), 1200);
    assert!(packet.starts_with(&bytes(begins)));
    assert!(packet.ends_with(&bytes(ends)));
    let found = Initials::default().push(&packet);
    assert_eq!(found, Some((names("example.com", "alpn"), true)));
    for end in 0..packet.len() {
        assert_eq!(Initials::default().push(&packet[..end]), None, "cut at {end}");
    }
}

#[test]
fn rfc_9001_a_2() {
    check_vector(
        V1,
        "c300000001088394c8f03e5157080000449e00000002",
        "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
        "e221af44860018ab0856972e194cd934",
    );
}

#[test]
fn rfc_9369_a_2() {
    check_vector(
        V2,
        "d36b3343cf088394c8f03e5157080000449e00000002",
        "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
        "a18b2faa745b6fe189cf772a9f84cbfc",
    );
}

/// The hello of the vectors without its frame's header.
fn hello() -> Vec<u8> {
    bytes(FRAME)[4..].to_vec()
}

#[test]
fn pieces_over_packets_in_any_order() {
    let (hello, id) = (hello(), [7; 8]);
    let (a, b) = hello.split_at(100);
    // The end comes first, after an ACK; the beginning in a datagram of two packets.
    let mut behind = vec![2, 5, 0, 0, 5, 1];
    behind.extend(crypto(100, b));
    let first = initial(V1, &id, &[], 0, &behind);
    let mut initials = Initials::default();
    assert_eq!(initials.push(&first), None);
    let again = initial(V1, &id, b"token", 1, &crypto(0, &a[..50]));
    let mut datagram = initial(V1, &[9; 20], &[], 2, &[1; 30]);
    datagram = [again, initial(V1, &id, &[], 3, &crypto(40, &a[40..])), datagram].concat();
    assert_eq!(initials.push(&datagram), Some((names("example.com", "alpn"), true)));
}

#[test]
fn a_retry_changes_the_keys() {
    let mut initials = Initials::default();
    assert_eq!(initials.push(&initial(V1, &[1; 8], &[], 0, &crypto(90, &hello()[90..]))), None);
    // Under the server's connection ID, with the hello from its beginning.
    let after = initial(V1, &[2; 5], b"retry", 1, &crypto(0, &hello()));
    assert_eq!(initials.push(&after), Some((names("example.com", "alpn"), true)));
}

#[test]
fn nothing_is_read_of_what_is_no_initial() {
    let good = initial(V1, &[1; 8], &[], 0, &crypto(0, &hello()));
    for (at, what) in [(0, 0x30), (1, 0x55), (5, 21), (good.len() - 1, 1)] {
        let mut bad = good.clone();
        bad[at] ^= what;
        assert_eq!(Initials::default().push(&bad), None, "byte {at}");
    }
    let mut over = Initials::over();
    assert_eq!(over.push(&good), None);
}

#[test]
fn memory_has_a_limit() {
    let mut initials = Initials::default();
    for number in 0..100 {
        let frame = crypto(number as usize * 1000 % 16_000, &[0; 1000]);
        initials.push(&initial(V1, &[1; 8], &[], number, &frame));
        assert!(initials.bytes <= MAX_HELLO_BYTES);
    }
    assert_eq!(initials.tried, MAX_TRIED);
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_names(
        cuts in prop::collection::vec(1_usize..241, 0..8),
        seed in any::<prop::sample::Index>(),
        v2 in any::<bool>(),
    ) {
        let hello = hello();
        let mut ends = [cuts, vec![0, hello.len()]].concat();
        ends.sort_unstable();
        let mut pieces: Vec<Vec<u8>> =
            ends.windows(2).map(|ends| crypto(ends[0], &hello[ends[0]..ends[1]])).collect();
        let turn = seed.index(pieces.len());
        pieces.rotate_left(turn);
        let mut initials = Initials::default();
        let version = if v2 { V2 } else { V1 };
        let last = pieces.iter().enumerate().filter_map(|(number, piece)| {
            let mut frames = piece.clone();
            frames.resize(1162, 0);
            initials.push(&initial(version, &[3; 8], &[], number as u32, &frames))
        }).last();
        prop_assert_eq!(last, Some((names("example.com", "alpn"), true)));
    }

    #[test]
    fn any_frames_and_any_bytes_are_read(
        frames in prop::collection::vec(any::<u8>(), 4..300),
        datagram in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut initials = Initials::default();
        initials.push(&initial(V1, &[3; 8], &[], 0, &frames));
        initials.push(&datagram);
        let mut long = datagram;
        long.splice(0..0, [0xc0, 0, 0, 0, 1]);
        initials.push(&long);
    }
}
