//! Datagrams: which are QUIC's, and how far apart they are.

use super::*;

/// Takes a datagram of a flow between the phone's port and the server's.
fn note(
    phones: &mut CapturedPhones,
    at_ns: i64,
    down: bool,
    (own_port, port): (u16, u16),
    payload: &[u8],
) {
    let phone = (Address::v4([10, 0, 0, 1]), own_port);
    let server = (Address::v4([192, 0, 2, 1]), port);
    let ends = if down { [server, phone] } else { [phone, server] };
    phones.note(&Packet::udp(at_ns, ends, 1_200, payload));
}

/// As for TCP: a pause is that of one flow, whatever comes by others meanwhile.
#[test]
fn a_pause_is_that_of_one_flow() {
    let check = |flows: &[&[(i64, i64)]], expected: bool| {
        let mut packets = Vec::new();
        for (port, stretches) in (40_000_u16..).zip(flows) {
            packets.push((0, false, port));
            let each = stretches.iter().flat_map(|(from, to)| *from..*to);
            packets.extend(each.map(|ms| (ms, true, port)));
        }
        packets.sort_unstable();
        let mut phones = CapturedPhones::new();
        for (ms, down, port) in packets {
            note(&mut phones, ms * MS, down, (port, 443), &[0xc3, 0, 0, 0, 1]);
        }
        let phone = phones.finish().swap_remove(0);
        let span = phone.span(2_000 * MS, 2_100 * MS);
        let features = Features::from_spans(&phone, &[span]).unwrap();
        assert_eq!(features.paused_before, expected, "{flows:?}");
    };
    check(&[&[(50, 2_100)]], false);
    check(&[&[(50, 100), (2_000, 2_100)]], true);
    check(&[&[(50, 100), (2_000, 2_100)], &[(100, 2_100)]], true);
    check(&[&[(50, 100)], &[(2_000, 2_100)]], false);
}

/// 1 Mbit/s: whole packets are 12 ms apart, be it by a sender's pace or by a slow line.
#[test]
fn packets_as_far_apart_as_gaps_of_harq_do_not_tell_a_line_from_a_pace() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    (features.transport, features.is_quic) = (TransportKind::Datagrams, true);
    let mut of = |rate: f64| {
        features.rate = rate;
        let suspicions = Model::judge(&features);
        let probability =
            |suspect| suspicions.iter().find(|one| one.suspect == suspect).unwrap().probability;
        let sum: f64 = suspicions.iter().map(|one| one.probability).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        (probability(Suspect::Wireline), probability(Suspect::SenderLimited))
    };
    let (line, pace) = of(1e6);
    assert_ne!(line, pace);
    let (sparse_line, sparse_pace) = of(125e3);
    assert_eq!(sparse_line, sparse_pace);
    assert!((sparse_line + sparse_pace - line - pace).abs() < 1e-9);
}

/// A call, a game or a tunnel keeps a rate of its own; QUIC is known by its first packets, or its
/// port. A capture is the server's if the answer takes less than a cell's shortest round trip, or less
/// than the client's reply.
#[test]
fn datagrams_of_unknown_protocols_name_nothing() {
    let replies = |first_byte: u8, port: u16, rtt_ms: i64, reply_ms: i64| {
        let mut phones = CapturedPhones::new();
        let payload = [first_byte, 0, 0, 0, 1];
        let mut note = |at_ns, down| note(&mut phones, at_ns, down, (40_000, port), &payload);
        note(0, false);
        note(rtt_ms * MS, true);
        note((rtt_ms + reply_ms) * MS, false);
        (1..1_000).for_each(|n| note((rtt_ms + reply_ms + 2 * n) * MS, true));
        let phone = phones.finish().swap_remove(0);
        Features::from_spans(&phone, &phone.transfers(20_000)).unwrap()
    };
    let at_server = replies(0xc3, 443, 1, 50);
    assert_eq!(at_server.base_rtt_ns, Some(50 * MS), "the client's reply");
    assert!(!Model::no_radio(&at_server));
    let replies = |first_byte, port, rtt_ms, reply_ms| {
        Evidence::of(&replies(first_byte, port, rtt_ms, reply_ms))
    };
    let of = |first_byte, port, rtt_ms| replies(first_byte, port, rtt_ms, 1);
    assert_eq!(of(0xc3, 4_433, 40), Some(Evidence::Datagrams));
    assert_eq!(of(0x43, 443, 40), Some(Evidence::Datagrams));
    assert_eq!(of(0x80, 5_004, 40), None, "RTP");
    assert_eq!(of(0x04, 51_820, 40), None, "WireGuard");
    assert_eq!(of(0xc3, 443, 1), None, "at the server");
    assert_eq!(of(0x43, 443, 1), Some(Evidence::Datagrams), "data on its way at the beginning");
    assert_eq!(replies(0xc3, 443, 12, 50), None, "at a server that takes its time");
    assert_eq!(replies(0xc3, 443, 50, 12), Some(Evidence::Datagrams), "at a slow phone");
}

/// By captures at both ends: a queue longer than what they show may still stand on a short path, and one
/// that began before them is part of the fastest packet's delay. A line limits without a queue only as a
/// policer, which drops.
#[test]
fn no_link_is_a_suspect_if_packets_never_waited() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    (features.transport, features.is_quic) = (TransportKind::Datagrams, true);
    // Of QUIC only arrivals are known.
    features.values.0[..Feature::CvShort as usize].fill(f64::NAN);
    features.begun_before = false;
    let links = |features: &Features, share, rtt_ms: i64| {
        let base_rtt_ns = Some(rtt_ms * MS);
        let suspicions = Model::judge(&Features { path_queue: share, base_rtt_ns, ..*features });
        let of =
            |suspect| suspicions.iter().find(|one| one.suspect == suspect).unwrap().probability;
        [of(Suspect::Radio), of(Suspect::Wireline)]
    };
    let alone = links(&features, None, 40);
    assert!(alone.iter().all(|p| *p > 0.01), "{alone:?}");
    assert!(links(&features, Some(0.0), 40).iter().all(|p| *p < 0.01));
    assert_eq!(links(&features, Some(0.6), 40), alone);
    assert_eq!(links(&features, Some(0.0), 15), alone);
    features.loses_on_path = true;
    let [radio, line] = links(&features, Some(0.0), 40);
    assert!(radio < 0.01 && line == alone[1], "{radio} {line}");
    features.begun_before = true;
    assert_eq!(links(&features, Some(0.0), 40), alone);
}

/// A hundred datagrams are some rounds of a slow start: their pattern is by chance.
#[test]
fn few_datagrams_name_nothing() {
    let judged = |n: i64| {
        let mut phones = CapturedPhones::new();
        let mut take = |at, down| note(&mut phones, at, down, (40_000, 443), &[0xc3, 0, 0, 0, 1]);
        take(0, false);
        (0..n).for_each(|n| take((50 + n + n / 10 * 5) * MS, true));
        let phone = phones.finish().remove(0);
        Model::judge(&Features::from_spans(&phone, &phone.transfers(20_000)).unwrap()).len()
    };
    assert_eq!((judged(99), judged(101)), (0, Suspect::ALL.len()));
}

/// 18 datagrams at 450 Mbit/s, and 20 ms later the next: a full window and its acknowledgements, or a busy
/// cell of NR. A queue that stands is no sender's.
#[test]
fn bursts_may_be_a_sender_s() {
    let mut phones = CapturedPhones::new();
    let mut take =
        |us: i64, down| note(&mut phones, us * 1_000, down, (40_000, 443), &[0xc3, 0, 0, 0, 1]);
    take(0, false);
    (0..600).for_each(|n| take(50_000 + n / 18 * 20_000 + n % 18 * 22, true));
    let phone = phones.finish().remove(0);
    let features = Features::from_spans(&phone, &phone.transfers(20_000)).unwrap();
    let of = |features: &Features| {
        let judged = Model::judge(features);
        let p = |suspect| judged.iter().find(|one| one.suspect == suspect).unwrap().probability;
        assert!(Model::names(features, &judged[0]) == (p(Suspect::Radio) > 0.6), "{judged:?}");
        [p(Suspect::Radio), p(Suspect::Other)]
    };
    let [radio, other] = of(&features);
    assert!(radio == other && radio > 0.4, "{radio} {other}");
    // By the pattern alone it is one.
    assert!(of(&Features { rate: f64::MAX, ..features })[0] > 0.8);
    assert!(of(&Features { queue_ms: Some(300.0), ..features })[0] > 0.8);
    assert_eq!(of(&Features { queue_ms: Some(2.0), ..features }), [radio, other]);
}

/// Neither loopback nor a VPN on the phone crosses a cell.
#[test]
fn connections_that_end_inside_a_host_name_nothing() {
    let mut phones = CapturedPhones::new();
    let [phone, server] =
        [(Address::v4([127, 0, 0, 1]), 40_000), (Address::v4([127, 0, 0, 1]), 4_433)];
    let mut take = |at, ends| phones.note(&Packet::udp(at, ends, 1_200, &[0xc3, 0, 0, 0, 1]));
    take(0, [phone, server]);
    (0..1_000).for_each(|n| take((50 + n) * MS, [server, phone]));
    let phone = phones.finish().remove(0);
    let features = Features::from_spans(&phone, &phone.transfers(20_000)).unwrap();
    assert_eq!((phone.place, features.is_quic), (CaptureSite::Inside, true));
    assert!(Model::judge(&Features { place: phone.place, ..features }).is_empty());

    let place = |rtts_ms: [i64; 4]| {
        let mut phones = CapturedPhones::new();
        for (flow, rtt_ms) in rtts_ms.into_iter().enumerate() {
            let server = Address::v4([50 + flow as u8, 1, 2, 3]);
            let mut take = |ms: i64, dir, flags, bytes| {
                let phone = Address::v4([10, 8, 0, 1]);
                phones.ends =
                    Some(if dir == Direction::Dl { [server, phone] } else { [phone, server] });
                let packet = packet((flow as i64 * 1_000 + ms) * MS, dir, 0, bytes);
                phones.push(&TracedPacket { flow: flow as u64, flags, ..packet });
            };
            take(0, Direction::Ul, TcpFlags::SYN, 0);
            take(rtt_ms, Direction::Dl, TcpFlags(0x12), 0);
            take(rtt_ms + 1, Direction::Ul, TcpFlags::ACK, 300);
            take(rtt_ms + 300, Direction::Dl, TcpFlags::ACK, 1_000);
        }
        phones.finish().remove(0).place
    };
    assert_eq!(
        (place([1, 2, 3, 9]), place([1, 2, 3, 40])),
        (CaptureSite::Inside, CaptureSite::Phone)
    );
}
