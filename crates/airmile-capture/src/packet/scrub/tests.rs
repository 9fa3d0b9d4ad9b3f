use proptest::prelude::*;

use super::frame::Scrubbing;
use super::*;
use crate::packet::{CaptureReader, Captured, Frame, dissect, link};
use airmile_model::packet::{Address, Packet, Transport};
use airmile_pseudonym::{Changes, KEY_BYTES, Pseudonyms};

const KEY: [u8; KEY_BYTES] = [9; KEY_BYTES];

fn frame(link: u32, data: &[u8]) -> Frame<'_> {
    let wire_bytes = data.len() as u32;
    Frame { offset: 0, at_ns: 0, interface: 0, link, wire_bytes, data }
}

fn scrub(frame: &Frame<'_>) -> (Vec<u8>, Changes) {
    let (mut names, mut changes, mut out) = (Pseudonyms::new(&KEY), Changes::default(), Vec::new());
    Scrubbing { names: &mut names, changes: &mut changes }.frame(frame, &mut out);
    (out, changes)
}

fn of(address: Address) -> Address {
    let mut names = Pseudonyms::new(&KEY);
    match address.ip() {
        std::net::IpAddr::V4(ip) => Address::v4(names.v4(ip.octets())),
        std::net::IpAddr::V6(ip) => Address::v6(names.v6(ip.octets())),
    }
}

/// The one's complement sum of 16-bit words, folded.
fn folded(bytes: &[u8]) -> u16 {
    let mut sum = checksum::sum(bytes);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// An IPv4 packet with right checksums.
fn ipv4(protocol: u8, src: [u8; 4], dst: [u8; 4], above: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(src);
    packet.extend(dst);
    packet.extend_from_slice(above);
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let checksum = !folded(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let at = match protocol {
        6 => 36,
        17 => 26,
        _ => return packet,
    };
    let checksum = !transport_sum(&packet);
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The sum over the pseudo header and all above: 0xffff where it is right.
fn transport_sum(packet: &[u8]) -> u16 {
    let length = (packet.len() - 20) as u16;
    let pseudo = [&packet[12..20], &[0, packet[9]], &length.to_be_bytes()].concat();
    folded(&[&pseudo[..], &packet[20..]].concat())
}

fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = (20 + options.len()) / 4;
    let mut header = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2];
    header.extend([(offset as u8) << 4, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    header.extend_from_slice(options);
    header.extend_from_slice(payload);
    header
}

fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut out = [src, dst, length, 0].map(u16::to_be_bytes).concat();
    out.extend_from_slice(payload);
    out
}

const CLIENT: [u8; 4] = [10, 9, 0, 2];
const SERVER: [u8; 4] = [198, 51, 100, 7];
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: secret.example\r\nCookie: id=4711\r\n\r\n";

fn ethernet(protocol: [u8; 2], above: &[u8]) -> Vec<u8> {
    let mut out = vec![0x00, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e, 0x00, 0x16, 0x3e, 0x11, 0x22, 0x33];
    out.extend(protocol);
    out.extend_from_slice(above);
    out
}

/// Whether a scrubbed frame has the original's fields, with pseudonyms.
fn check_same(original: &Packet<'_>, scrubbed: &Packet<'_>) {
    assert_eq!((scrubbed.src, scrubbed.dst), (of(original.src), of(original.dst)));
    assert!(scrubbed.payload.is_empty() || !matches!(scrubbed.transport, Transport::Tcp(_)));
    let facts = |p: &Packet<'_>| {
        let tcp = p.tcp().map(|t| (t.seq, t.ack, t.flags, t.window));
        let ip = (p.protocol, p.ip_id, p.ip_bytes, p.fragmented, p.tunnelled);
        (ip, p.src_port, p.dst_port, p.payload_bytes, tcp, std::mem::discriminant(&p.transport))
    };
    assert_eq!(facts(original), facts(scrubbed));
}

#[test]
fn a_segment_with_payload() {
    let options = [2, 4, 5, 0xb4, 34, 6, b'k', b'o', b'o', b'k', 1, 1];
    let packet = ethernet([8, 0], &ipv4(6, CLIENT, SERVER, &tcp(&options, REQUEST)));
    let (out, changes) = scrub(&frame(link::ETHERNET, &packet));
    assert_eq!(out.len(), 14 + 20 + 32, "cut behind the TCP header");
    check_same(
        &dissect(&frame(link::ETHERNET, &packet)).unwrap(),
        &dissect(&Frame { wire_bytes: packet.len() as u32, ..frame(link::ETHERNET, &out) })
            .unwrap(),
    );
    assert_eq!(folded(&out[14..34]), 0xffff, "the IP checksum is right again");
    assert_eq!(out[54..66], [2, 4, 5, 0xb4, 1, 1, 1, 1, 1, 1, 1, 1], "the cookie is gone");
    assert_ne!(out[50..52], packet[50..52], "a checksum over payload reveals it");
    for (what, n) in [
        ("bytes_cut", REQUEST.len() as u64),
        ("ip_addresses", 2),
        ("mac_addresses", 2),
        ("tcp_options", 1),
        ("checksums_over_cut_payload", 1),
    ] {
        assert_eq!(changes.of(what), n, "{what}");
    }
}

#[test]
fn checksums_of_what_stays_whole_stay_right_and_wrong_ones_tell_nothing() {
    for wrong_by in [0, 1, 0x1234] {
        let mut packet = ipv4(6, CLIENT, SERVER, &tcp(&[], b""));
        let checksum = u16::from_be_bytes([packet[36], packet[37]]);
        packet[36..38].copy_from_slice(&checksum.wrapping_add(wrong_by).to_be_bytes());
        let (out, changes) = scrub(&frame(link::RAW, &packet));
        let field = u16::from_be_bytes([out[36], out[37]]);
        if wrong_by == 0 {
            assert_eq!(transport_sum(&out), 0xffff);
        } else {
            let name = Pseudonyms::new(&KEY).checksum(checksum.wrapping_add(wrong_by));
            assert_eq!((field, changes.of("checksums_that_were_wrong")), (name, 1));
        }
    }
    // Sent through an offload: an IP checksum of 0 stays 0.
    let mut packet = ipv4(6, CLIENT, SERVER, &tcp(&[], b""));
    packet[10..12].fill(0);
    assert_eq!(scrub(&frame(link::RAW, &packet)).0[10..12], [0, 0]);
    // UDP without a checksum has none afterwards.
    let mut packet = ipv4(17, CLIENT, SERVER, &udp(5000, 53, b""));
    packet[26..28].fill(0);
    assert_eq!(scrub(&frame(link::RAW, &packet)).0[26..28], [0, 0]);
}

#[test]
fn what_a_tunnel_carries_is_scrubbed_too() {
    let inner = ipv4(6, CLIENT, SERVER, &tcp(&[], REQUEST));
    // E bit: a QoS flow after the header; another extension with a secret.
    let mut gtp = vec![0x34, 255, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 1, 0, 0x85];
    gtp.extend([1, 0x10, 9, 0x20, 1, 0xaa, 0xbb, 0]);
    gtp.extend_from_slice(&inner);
    let packet = ipv4(17, [192, 0, 2, 1], [192, 0, 2, 2], &udp(2152, 2152, &gtp));
    let (out, changes) = scrub(&frame(link::RAW, &packet));
    assert_eq!(out.len(), 20 + 8 + 20 + 20 + 20);
    check_same(
        &dissect(&frame(link::RAW, &packet)).unwrap(),
        &dissect(&Frame { wire_bytes: packet.len() as u32, ..frame(link::RAW, &out) }).unwrap(),
    );
    assert_ne!(out[32..36], [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(out[40..48], [1, 0x10, 9, 0x20, 1, 0, 0, 0]);
    assert_eq!((changes.of("tunnel_endpoints"), changes.of("gtp_extension_headers")), (1, 1));
}

#[test]
fn what_gre_and_ip_carry_is_scrubbed_too() {
    let inner = ipv4(6, CLIENT, SERVER, &tcp(&[], REQUEST));
    let gre = [0xa0, 0, 8, 0, 0x12, 0x34, 0, 0, 0xde, 0xad, 0xbe, 0xef];
    for (protocol, header) in [(4, &[][..]), (47, &gre)] {
        let above = [header, &inner].concat();
        let packet = ipv4(protocol, [192, 0, 2, 1], [192, 0, 2, 2], &above);
        let (out, changes) = scrub(&frame(link::RAW, &packet));
        assert_eq!(out.len(), 20 + header.len() + 20 + 20);
        check_same(
            &dissect(&frame(link::RAW, &packet)).unwrap(),
            &dissect(&Frame { wire_bytes: packet.len() as u32, ..frame(link::RAW, &out) }).unwrap(),
        );
        assert_eq!(changes.of("tunnel_endpoints"), u64::from(protocol == 47));
        if protocol == 47 {
            assert_eq!(out[20..28], [0xa0, 0, 8, 0, 0, 0, 0, 0]);
            assert_ne!(out[28..32], [0xde, 0xad, 0xbe, 0xef]);
        }
    }
}

#[test]
fn what_an_error_quotes_is_scrubbed_too() {
    let quoted = ipv4(17, CLIENT, SERVER, &udp(5000, 53, b"secret.example"));
    let icmp = [&[3, 3, 1, 2, 0, 0, 0, 0], &quoted[..]].concat();
    let (out, _) = scrub(&frame(link::RAW, &ipv4(1, SERVER, CLIENT, &icmp)));
    assert_eq!(out.len(), 20 + 8 + 20 + 8, "down to the quoted UDP header");
    let names = &mut Pseudonyms::new(&KEY);
    assert_eq!(out[40..44], names.v4(CLIENT));
    assert_eq!(out[44..48], names.v4(SERVER));
    assert_eq!(folded(&out[28..48]), 0xffff);
}

#[test]
fn arp_and_options_and_other_protocols() {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 0x00, 0x16, 0x3e, 0x11, 0x22, 0x33];
    arp.extend(CLIENT);
    arp.extend([0; 6]);
    arp.extend(SERVER);
    arp.extend(b"padding of the link");
    let (out, _) = scrub(&frame(link::ETHERNET, &ethernet([8, 6], &arp)));
    let names = &mut Pseudonyms::new(&KEY);
    assert_eq!(out.len(), 14 + 28);
    assert_eq!(out[22..28], names.mac([0x00, 0x16, 0x3e, 0x11, 0x22, 0x33]));
    assert_eq!(out[28..32], names.v4(CLIENT));
    assert_eq!(out[32..38], [0; 6], "unknown stays unknown");
    // LLDP names switches: only the Ethernet header stays.
    assert_eq!(scrub(&frame(link::ETHERNET, &ethernet([0x88, 0xcc], b"switch 7"))).0.len(), 14);
    // A record route of one address, then the end.
    let mut packet = ipv4(47, CLIENT, SERVER, b"whatever GRE holds");
    packet[0] = 0x47;
    packet.splice(20..20, [7, 7, 4, 192, 0, 2, 9, 0]);
    packet[3] += 8;
    let (out, changes) = scrub(&frame(link::RAW, &packet));
    assert_eq!(out[20..], [1, 1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(changes.of("ip_options"), 1);
    // An unknown link type is left out completely.
    assert_eq!(scrub(&frame(147, b"anything")).0, b"");
}

#[test]
fn ipv6_extension_headers() {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    // Destination options: a home address (RFC 6275, 6.3) with padding.
    packet.extend([43, 2, 1, 2, 0, 0, 201, 16]);
    packet.extend([0xaa; 16]);
    // Routing, type 2: another address.
    packet.extend([17, 2, 2, 1, 0, 0, 0, 0]);
    packet.extend([0xbb; 16]);
    packet.extend(udp(5000, 53, b"secret.example"));
    let length = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    let (out, changes) = scrub(&frame(link::RAW, &packet));
    assert!(!out.contains(&0xaa) && !out.contains(&0xbb));
    assert_eq!((changes.of("ipv6_options"), changes.of("ipv6_extension_headers")), (1, 1));
    check_same(
        &dissect(&frame(link::RAW, &packet)).unwrap(),
        &dissect(&Frame { wire_bytes: packet.len() as u32, ..frame(link::RAW, &out) }).unwrap(),
    );
}

/// Frames of a capture: time, link, bytes on the wire, data.
fn frames(bytes: &[u8]) -> Vec<(i64, u32, u32, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut take = |captured: Captured<'_>| match captured {
        Captured::Frame(f) => {
            frames.push((f.at_ns, f.interface, f.link, f.wire_bytes, f.data.to_vec()));
        }
        Captured::Problem(problem) => panic!("{problem}"),
    };
    let mut reader = CaptureReader::new();
    reader.push(bytes, &mut take);
    reader.finish(&mut take);
    frames
}

fn scrub_capture(bytes: &[u8], piece: usize) -> (Vec<u8>, Changes) {
    let mut scrubber = CaptureScrubber::new(Pseudonyms::new(&KEY));
    let mut out = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        scrubber.push(piece, &mut out, &mut |_| ());
    }
    scrubber.finish(&mut out, &mut |_| ());
    (out, scrubber.changes().clone())
}

/// A pcapng, big-endian, with two interfaces that have names, comments, a name
/// resolution block, secrets, and a packet on the second interface.
fn pcapng(packet: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let length = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes(), &length[..], &body, &length].concat()
    };
    let section = [&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8], b"\0\x01\0\x08operator"];
    let interface = |link: u8, name: &[u8; 4]| {
        block(1, &[&[0, link, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4][..], name, &[0; 4]].concat())
    };
    let length = (packet.len() as u32).to_be_bytes();
    let enhanced = [&[0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 9][..], &length, &length, packet].concat();
    [
        block(0x0a0d_0d0a, &section.concat()),
        interface(1, b"eth7"),
        interface(101, b"rmn0"),
        block(4, b"\0\x01\0\x0e\xc6\x33\x64\x07secret.ex"),
        block(10, b"CLIENT_RANDOM"),
        block(6, &enhanced),
    ]
    .concat()
}

#[test]
fn containers_keep_times_lengths_and_nothing_else() {
    let packet = ipv4(6, CLIENT, SERVER, &tcp(&[], REQUEST));
    let bytes = pcapng(&packet);
    let (out, changes) = scrub_capture(&bytes, usize::MAX);
    let (before, after) = (frames(&bytes), frames(&out));
    assert_eq!(after.len(), 1);
    let (at_ns, interface, link, wire, data) = &after[0];
    assert_eq!((*at_ns, *interface, *link, *wire), (before[0].0, 0, 101, packet.len() as u32));
    assert_eq!(data.len(), 40);
    for name in ["operator", "eth7", "rmn0", "secret", "CLIENT_RANDOM", "4711"] {
        assert!(!out.windows(name.len()).any(|w| w == name.as_bytes()), "{name}");
    }
    assert_eq!(changes.of("name_resolution_blocks"), 1);
    assert_eq!(changes.of("decryption_secrets_blocks"), 1);
}

/// The second interface has the first frame; each keeps its own link type.
#[test]
fn interfaces_keep_their_link_types() {
    let packet = ipv4(6, CLIENT, SERVER, &tcp(&[], REQUEST));
    let mut bytes = pcapng(&packet);
    let ethernet = [&[2; 12], &[8, 0][..], &packet].concat();
    let padding = ethernet.len().next_multiple_of(4) - ethernet.len();
    let total = ((32 + ethernet.len() + padding) as u32).to_be_bytes();
    let length = (ethernet.len() as u32).to_be_bytes();
    let head = [&[0, 0, 0, 6][..], &total, &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9]].concat();
    bytes.extend([&head, &length[..], &length, &ethernet, &vec![0; padding], &total].concat());
    let (out, _) = scrub_capture(&bytes, usize::MAX);
    let links: Vec<u32> = frames(&out).iter().map(|frame| frame.2).collect();
    assert_eq!(links, [101, 1]);
    assert_eq!(frames(&bytes).iter().map(|frame| frame.2).collect::<Vec<_>>(), links);
}

/// Length, a packet, Ethernet, and 96 bytes with the name of a process.
fn pktap_header() -> Vec<u8> {
    let words = [108_u32, 1, 1].map(u32::to_le_bytes);
    [words.as_flattened(), &b"MobileBank".repeat(10)[..96]].concat()
}

#[test]
fn a_pktap_header_keeps_no_process() {
    let segment = ipv4(6, CLIENT, SERVER, &tcp(&[], REQUEST));
    let data = [&pktap_header(), &ethernet([8, 0], &segment)[..]].concat();
    let (out, changes) = scrub(&frame(link::PKTAP, &data));
    assert_eq!((&out[..12], &out[12..108]), (&data[..12], &[0; 96][..]));
    assert_eq!((changes.of("pktap_headers"), changes.of("mac_addresses")), (1, 2));
}

fn samples() -> Vec<(u32, Vec<u8>)> {
    let segment = ipv4(6, CLIENT, SERVER, &tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], REQUEST));
    let mut gtp = vec![0x30, 255, 0, 0, 0, 0, 0x10, 1];
    gtp.extend_from_slice(&segment);
    let quoted = [&[11, 0, 1, 2, 0, 0, 0, 0], &segment[..]].concat();
    let mut v6 = vec![0x60, 0, 0, 0, 0, 16, 44, 64];
    v6.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    v6.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2]);
    v6.extend([17, 0, 0, 1, 0, 0, 0, 7]);
    v6.extend(udp(53, 53, b""));
    vec![
        (link::ETHERNET, ethernet([8, 0], &segment)),
        (link::RAW, ipv4(17, SERVER, CLIENT, &udp(2152, 2152, &gtp))),
        (link::RAW, ipv4(1, SERVER, CLIENT, &quoted)),
        (link::ETHERNET, ethernet([0x86, 0xdd], &v6)),
        (link::LINUX_SLL2, [&[8, 0][..], &[0; 18], &segment].concat()),
        (link::PPP, [&[0xff, 0x03, 0, 0x21][..], &segment].concat()),
        (link::PKTAP, [&pktap_header(), &ethernet([8, 0], &segment)[..]].concat()),
        (link::NFLOG, [&[2, 0, 0, 0, 6, 0, 8, 0, 7, 7, 0, 0, 9, 0, 9, 0][..], &segment].concat()),
    ]
}

proptest! {
    /// For any damage to a frame: no panic, no growth, and the scrubbed frame is as
    /// readable as the original.
    #[test]
    fn any_frame(
        sample in 0usize..8, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(), more in 0u32..2000, whole: bool,
    ) {
        let (link, mut data) = samples().swap_remove(sample);
        for (at, value) in flips {
            let at = at.index(data.len());
            data[at] = value;
        }
        let wire_bytes = data.len() as u32 + more;
        if !whole {
            data.truncate(cut.index(data.len()));
        }
        let original = Frame { wire_bytes, ..frame(link, &data) };
        let (out, _) = scrub(&original);
        prop_assert!(out.len() <= data.len());
        let scrubbed = Frame { data: &out, ..original };
        if let Ok(packet) = dissect(&original) {
            check_same(&packet, &dissect(&scrubbed).unwrap());
        } else {
            prop_assert!(dissect(&scrubbed).is_err());
        }
    }

    #[test]
    fn any_pieces_give_the_same(piece in 1usize..400, payload in prop::collection::vec(any::<u8>(), 0..60)) {
        let bytes = pcapng(&ipv4(6, CLIENT, SERVER, &tcp(&[], &payload)));
        prop_assert_eq!(scrub_capture(&bytes, piece), scrub_capture(&bytes, usize::MAX));
    }
}
