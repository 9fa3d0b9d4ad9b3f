use airmile_model::packet::{SeqNum, TcpFlags, Transport};

use super::*;

/// 10.0.0.1:1000 to 192.0.2.7:80, 100 bytes of payload of which none is there.
fn tcp_v4() -> Vec<u8> {
    let mut out =
        vec![0x45, 0, 0, 152, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7];
    out.extend([0x03, 0xe8, 0, 80, 0, 0, 0, 5, 0, 0, 0, 9, 0x80, 0x18, 1, 0, 0xab, 0xcd, 0, 0]);
    out.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8]);
    out
}

fn frame(link: u32, data: &[u8]) -> Frame<'_> {
    Frame { offset: 0, at_ns: 42, interface: 3, link, wire_bytes: 1500, data }
}

#[track_caller]
fn check(link: u32, head: &[u8]) {
    let data = [head, &tcp_v4()].concat();
    let packet = dissect(&frame(link, &data)).unwrap();
    assert_eq!((packet.src.to_string(), packet.src_port), ("10.0.0.1".to_owned(), 1000));
    assert_eq!((packet.dst.to_string(), packet.dst_port), ("192.0.2.7".to_owned(), 80));
    assert_eq!((packet.ip_bytes, packet.payload_bytes), (152, 100));
    assert_eq!((packet.at_ns, packet.interface, packet.ip_id), (42, 3, Some(0x1234)));
    assert!(packet.payload_cut());
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.seq, tcp.ack, tcp.window), (SeqNum(5), SeqNum(9), 256));
    assert!(tcp.flags.has(TcpFlags::ACK) && tcp.flags.has(TcpFlags::PSH));
    assert_eq!((tcp.timestamps, tcp.checksum), (Some((7, 8)), 0xabcd));
}

#[test]
fn link_layers() {
    let mac = [0; 12];
    check(link::RAW, &[]);
    check(link::ETHERNET, &[&mac[..], &[8, 0]].concat());
    check(link::ETHERNET, &[&mac[..], &[0x81, 0, 0, 5, 8, 0]].concat());
    check(
        link::ETHERNET,
        &[&mac[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 8, 0]].concat(),
    );
    check(link::ETHERNET, &[&mac[..], &[0x88, 0x47, 0, 0, 0, 9, 0, 0, 1, 9]].concat());
    check(link::ETHERNET, &[&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21]].concat());
    check(link::LINUX_SLL, &[&[0; 14][..], &[8, 0]].concat());
    check(link::LINUX_SLL2, &[&[8, 0][..], &[0; 18]].concat());
    check(link::NULL, &[2, 0, 0, 0]);
    check(link::LOOP, &[0, 0, 0, 2]);
    check(link::PPP, &[0xff, 3, 0, 0x21]);
    check(link::PPP, &[0x21]);
    check(link::PKTAP, &pktap(link::RAW_12));
    check(link::USER2, &[&pktap(link::ETHERNET)[..], &mac, &[8, 0]].concat());
    // An interface of the cell: the protocol family, in host byte order.
    check(link::PKTAP, &[&pktap(link::NULL)[..], &[2, 0, 0, 0]].concat());
    check(link::NFLOG, &[2, 0, 0, 1, 5, 0, 10, 0, b'x', 0, 0, 0, 156, 0, 9, 0]);
}

/// 108 bytes, of which all but the first three words are another's matter.
fn pktap(inner: u32) -> Vec<u8> {
    let words = [108, 1, inner].map(u32::to_le_bytes);
    [words.as_flattened(), &[0xa5; 96]].concat()
}

#[test]
fn a_number_for_private_use_is_only_read_as_pktap_if_it_looks_like_it() {
    let error = |link, data: &[u8]| dissect(&frame(link, data)).unwrap_err();
    let other = [&[7; 12][..], &tcp_v4()].concat();
    assert_eq!(error(link::USER2, &other), Unread::Link(link::USER2));
    assert_eq!(error(link::PKTAP, &other), Unread::Bad("PKTAP header"));
    assert_eq!(error(link::PKTAP, &other[..11]), Unread::Cut("PKTAP"));
    assert_eq!(error(link::PKTAP, &pktap(link::PKTAP)), Unread::Bad("PKTAP link type"));
    assert_eq!(error(link::PKTAP, &pktap(link::RAW_12)[..40]), Unread::Cut("IP"));
}

#[test]
fn gtp_is_unwrapped_with_and_without_extensions() {
    let outer = |gtp: &[u8]| {
        let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 9, 9, 9, 1, 9, 9, 9, 2];
        out.extend([0x08, 0x68, 0x08, 0x68, 0, 0, 0, 0]);
        out.extend_from_slice(gtp);
        out
    };
    check(link::RAW, &outer(&[0x30, 255, 0, 152, 0, 0, 0x10, 1]));
    check(link::RAW, &outer(&[0x32, 255, 0, 156, 0, 0, 0x10, 1, 0, 1, 0, 0]));
    let extended = [0x34, 255, 0, 160, 0, 0, 0x10, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
    check(link::RAW, &outer(&extended));
}

#[test]
fn ip_in_ip_and_gre_are_unwrapped() {
    let outer = |protocol: u8, header: &[u8]| {
        let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 9, 9, 9, 1, 9, 9, 9, 2];
        out.extend_from_slice(header);
        out
    };
    check(link::RAW, &outer(4, &[]));
    check(link::RAW, &outer(47, &[0, 0, 8, 0]));
    check(link::RAW, &outer(47, &[0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1]));
    // Ethernet in GRE, GRE of PPTP and with source routing are none.
    for header in [[0, 0, 0x65, 0x58], [0, 1, 8, 0], [0x40, 0, 8, 0]] {
        let data = [&outer(47, &header)[..], &tcp_v4()].concat();
        assert_eq!(dissect(&frame(link::RAW, &data)).unwrap().transport, Transport::Other);
    }
}

#[test]
fn ipv6_with_extension_headers() {
    let tcp = &tcp_v4()[20..];
    let mut data = vec![0x60, 0, 0, 0, 0, 8 + 32 + 60, 0, 64];
    data.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    data.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    data.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    data.extend_from_slice(tcp);
    let packet = dissect(&frame(link::RAW, &data)).unwrap();
    assert_eq!((packet.src.to_string(), packet.payload_bytes), ("2001:db8::1".into(), 60));
    assert_eq!((packet.protocol, packet.ip_id), (6, None));
}

#[test]
fn lengths_that_ip_cannot_say_come_from_the_wire() {
    let mut data = tcp_v4();
    data[2..4].fill(0);
    let mut frame = frame(link::RAW, &data);
    frame.wire_bytes = 80_052;
    assert_eq!(dissect(&frame).unwrap().payload_bytes, 80_000);
}

#[test]
fn padding_of_the_link_is_no_payload() {
    let mut data = tcp_v4();
    data[3] = 52;
    data.extend([0; 6]);
    let packet = dissect(&frame(link::RAW, &data)).unwrap();
    assert_eq!((packet.payload_bytes, packet.payload.len()), (0, 0));
}

#[test]
fn later_fragments_have_no_ports() {
    let mut data = tcp_v4();
    data[7] = 5;
    let packet = dissect(&frame(link::RAW, &data)).unwrap();
    assert_eq!((packet.transport, packet.src_port), (Transport::Fragment, 0));
}

#[test]
fn options_of_a_syn_and_sack_blocks() {
    let head = &tcp_v4()[..40];
    let with = |options: &[u8]| {
        let mut data = head.to_vec();
        data[32] = (((20 + options.len()) / 4) as u8) << 4;
        data.extend_from_slice(options);
        *dissect(&frame(link::RAW, &data)).unwrap().tcp().unwrap()
    };
    let syn = with(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
    assert_eq!((syn.mss_bytes, syn.window_scale, syn.sack_permitted), (Some(1460), Some(7), true));
    assert_eq!(syn.timestamps, Some((1, 0)));
    let sack = with(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9]);
    assert_eq!(sack.sack.as_slice(), [(SeqNum(1), SeqNum(2)), (SeqNum(5), SeqNum(9))]);
}

#[test]
fn what_cannot_be_read_is_told() {
    let mut bad = tcp_v4();
    bad[0] = 0x44;
    let mac = [0; 12];
    let check =
        |link, data: &[u8], expected| assert_eq!(dissect(&frame(link, data)), Err(expected));
    check(link::ETHERNET, &[&mac[..], &[8, 6]].concat(), Unread::NotIp(0x0806));
    check(link::ETHERNET, &[0; 13], Unread::Cut("link"));
    check(link::RAW, &tcp_v4()[..19], Unread::Cut("IPv4"));
    check(link::RAW, &tcp_v4()[..30], Unread::Cut("TCP"));
    check(link::RAW, &bad, Unread::Bad("IPv4 header length"));
    check(147, &tcp_v4(), Unread::Link(147));
}
