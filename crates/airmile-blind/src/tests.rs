//! Phones and their transfers from synthetic packets.

use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags};
use airmile_model::{Direction, TcpEventKind};
use proptest::prelude::*;

use super::model::CoefficientTable;
use super::suspect::{N_SUSPECTS, Probabilities};
use super::*;
use airmile_wire::attribute::CaptureSite;
use airmile_wire::tcp::{TracedAck, TracedPacket};

mod contradictions;
mod datagrams;
mod requests;
mod together;

const MS: i64 = 1_000_000;

fn packet(at_ns: i64, dir: Direction, offset: i64, bytes: u32) -> TracedPacket {
    TracedPacket {
        flow: 1,
        user: 1,
        at_ns,
        dir,
        seq: SeqNum(offset as u32),
        flags: TcpFlags::ACK,
        timestamps: None,
        event: None,
        offset_bytes: offset,
        payload_bytes: bytes,
        new_bytes: bytes.into(),
        flight_bytes: bytes.into(),
        ack: Some(TracedAck {
            offset_bytes: 0,
            rwnd_bytes: Some(1 << 20),
            duplicate: false,
            flight_bytes: 0,
            sack: [(0, 0); 4],
        }),
    }
}

/// Requests and answers: `(asked at ms, first data at ms, segments a ms apart)`.
fn phone(answers: &[(i64, i64, i64)]) -> CapturedPhone {
    let mut phones = CapturedPhones::new();
    let (mut up, mut down) = (0, 0);
    for &(asked, first, segments) in answers {
        phones.push(&packet(asked * MS, Direction::Ul, up, 300));
        up += 300;
        for n in 0..segments {
            phones.push(&packet((first + n) * MS, Direction::Dl, down, 1_000));
            down += 1_000;
        }
    }
    phones.finish().remove(0)
}

/// A scan has any number of connections without an answer; those with one stay.
#[test]
fn memory_of_connections_without_an_answer() {
    let mut phones = CapturedPhones::new();
    let of = |flow: u64, packet: TracedPacket| TracedPacket { flow, ..packet };
    let syn = |flow: u64| {
        let packet = packet(flow as i64 * MS, Direction::Ul, 0, 0);
        of(flow, TracedPacket { flags: TcpFlags::SYN, ack: None, ..packet })
    };
    for flow in 0..60_000 {
        phones.push(&syn(flow));
        if flow % 1_000 == 0 {
            for n in 0..40 {
                phones.push(&of(
                    flow,
                    packet((flow as i64 + n) * MS, Direction::Dl, n * 1_000, 1_000),
                ));
            }
        }
        assert!(phones.connections() <= 8_192, "{flow}: {}", phones.connections());
    }
    let phone = phones.finish().remove(0);
    assert_eq!((phone.bytes, phone.transfers(20_000).len()), (60 * 40_000, 60));
}

#[track_caller]
fn check(answers: &[(i64, i64, i64)], expected: &[(i64, i64, u64)]) {
    let spans = phone(answers).transfers(20_000);
    let found: Vec<(i64, i64, u64)> =
        spans.iter().map(|s| (s.from_ns / MS, s.to_ns / MS, s.bytes)).collect();
    assert_eq!(found, expected);
}

/// An answer begins with its request; a pause of half a second separates two answers, a
/// shorter one does not.
#[test]
fn transfers_of_a_connection() {
    check(&[(0, 50, 100)], &[(0, 149, 100_000)]);
    check(&[(0, 50, 100), (1_000, 1_050, 30)], &[(0, 149, 100_000), (1_000, 1_079, 30_000)]);
    check(&[(0, 50, 100), (500, 550, 30)], &[(0, 579, 130_000)]);
    // Too small to count; a silence of 10 s separates without a request.
    check(&[(0, 50, 19)], &[]);
    check(&[(0, 50, 100), (1_000, 1_050, 5)], &[(0, 149, 100_000)]);
}

/// A capture may begin within an answer, with its data before an acknowledgement.
#[test]
fn data_with_time_stamps_shows_that_a_connection_has_them() {
    let mut phones = CapturedPhones::new();
    for n in 0..100 {
        let stamped = |packet| TracedPacket { timestamps: Some((n as u32, n as u32)), ..packet };
        phones.push(&stamped(packet(n * MS, Direction::Dl, n * 1_000, 1_000)));
        phones.push(&stamped(packet(n * MS + 1, Direction::Ul, 0, 0)));
    }
    let spans = phones.finish().remove(0).transfers(20_000);
    assert_eq!(spans.iter().map(|s| s.transport).collect::<Vec<_>>(), [TransportKind::Stamped]);
}

/// The response to an upload is no download.
#[test]
fn an_uploads_answer_is_left_out() {
    let mut phones = CapturedPhones::new();
    phones.push(&packet(0, Direction::Ul, 0, 300));
    phones.push(&packet(10 * MS, Direction::Dl, 0, 30_000));
    for n in 0..100 {
        phones.push(&packet((20 + n) * MS, Direction::Ul, 300 + n * 1_000, 1_000));
    }
    assert!(phones.finish()[0].transfers(20_000).is_empty());
}

/// Shares of the time follow the senders' wait reasons.
#[test]
fn a_server_that_thinks() {
    let mut phones = CapturedPhones::new();
    let syn = |at, dir| TracedPacket { flags: TcpFlags::SYN, ..packet(at, dir, 0, 0) };
    phones.push(&syn(0, Direction::Ul));
    phones.push(&syn(40 * MS, Direction::Dl));
    phones.push(&packet(40 * MS + 1, Direction::Ul, 1, 0));
    phones.push(&packet(41 * MS, Direction::Ul, 1, 300));
    for n in 0..100 {
        phones.push(&packet((1_000 + n) * MS, Direction::Dl, n * 1_000, 1_000));
    }
    let phone = phones.finish().remove(0);
    assert_eq!((phone.place, phone.base_rtt_ns), (CaptureSite::Phone, Some(40 * MS)));
    let spans = phone.transfers(20_000);
    let features = Features::from_spans(&phone, &spans).unwrap();
    // 919 of 1,099 ms: from 81 ms, a round trip after the request, to 1,000 ms.
    assert!((features.get(Feature::Idle).unwrap() - 919.0 / 1_099.0).abs() < 0.01, "{features:?}");
    assert_eq!(features.transport, TransportKind::Plain);
    assert!(
        features.get(Feature::QueueBytes).is_none() && features.get(Feature::SteadyQueue).is_none()
    );
    let first = Model::judge(&features)[0];
    assert_eq!(first.suspect, Suspect::SenderLimited, "{first:?}");
}

/// A nearby printer is no reference for a server's queue, nor for the phone's link.
#[test]
fn each_server_has_its_own_least_round_trip() {
    let host = |last: u8| Address::from(std::net::IpAddr::from([198, 51, 100, last]));
    let mut phones = CapturedPhones::new();
    let mut say = |server: u8, what: TracedPacket| {
        phones.ends = Some(if what.dir == Direction::Dl {
            [host(server), host(1)]
        } else {
            [host(1), host(server)]
        });
        phones.push(&TracedPacket { flow: server.into(), ..what });
    };
    // The server at 40 ms, the printer at 0.3.
    for (server, begun, rtt) in [(2, 0, 40 * MS), (3, 5 * MS, MS * 3 / 10)] {
        let syn = |at, dir| TracedPacket { flags: TcpFlags::SYN, ..packet(at, dir, 0, 0) };
        say(server, syn(begun, Direction::Ul));
        say(server, syn(begun + rtt, Direction::Dl));
        say(server, packet(begun + rtt + 1, Direction::Ul, 1, 0));
    }
    // Round trips of 45 ms while 30 kB come: 5 ms of queue.
    for n in 0..30_u32 {
        let sent = (100 + i64::from(n) * 10) * MS;
        let stamps = Some((n + 1, 0));
        say(2, TracedPacket { timestamps: stamps, ..packet(sent, Direction::Ul, 1, 0) });
    }
    for n in 0..30_u32 {
        let came = (145 + i64::from(n) * 10) * MS;
        let data = packet(came, Direction::Dl, 1 + i64::from(n) * 1_000, 1_000);
        say(2, TracedPacket { timestamps: Some((900, n + 1)), flight_bytes: 3_000, ..data });
    }
    let phone = phones.finish().remove(0);
    let spans = phone.transfers(20_000);
    let features = Features::from_spans(&phone, &spans).unwrap();
    assert_eq!((phone.base_rtt_ns, features.base_rtt_ns), (Some(40 * MS), Some(40 * MS)));
    assert_eq!(features.queue_ms, Some(5.0), "{features:?}");
    assert!(!Model::no_radio(&features));
}

/// Where a capture was taken, by the round trips on its two sides in microseconds.
#[test]
fn places() {
    let check = |up_us: i64, down_us: i64, expected: CaptureSite| {
        let mut phones = CapturedPhones::new();
        let syn = |at, dir| TracedPacket { flags: TcpFlags::SYN, ..packet(at, dir, 0, 0) };
        phones.push(&syn(0, Direction::Ul));
        phones.push(&syn(up_us * 1_000, Direction::Dl));
        phones.push(&packet((up_us + down_us) * 1_000, Direction::Ul, 1, 0));
        let phone = phones.finish().remove(0);
        assert_eq!(phone.place, expected, "{up_us} {down_us}");
    };
    check(40_000, 100, CaptureSite::Phone);
    check(40_000, 3_000, CaptureSite::Phone);
    check(40_000, 30_000, CaptureSite::Between);
    // In front of a cell, on a long path.
    check(200_000, 16_000, CaptureSite::Between);
    check(100, 40_000, CaptureSite::Server);
    // Two hosts of a LAN, at the client; and at the server.
    check(100, 40, CaptureSite::Phone);
    check(40, 100, CaptureSite::Between);
}

/// A round trip of 0.2 ms has no cellular link in it.
#[test]
fn no_cell_no_radio() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let radio = |features: &Features| {
        let all = Model::judge(features);
        all.iter().find(|one| one.suspect == Suspect::Radio).unwrap().probability
    };
    features.base_rtt_ns = Some(20 * MS);
    assert!(radio(&features) > 0.0);
    features.base_rtt_ns = Some(MS / 5);
    // The probability reserved for unmodelled cases.
    assert!(radio(&features) < 0.002);
    let sum: f64 = Model::judge(&features).iter().map(|one| one.probability).sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

/// Ten segments are one flight (RFC 6928): no slow start to wait for, whatever the packets of
/// simultaneous transfers show.
#[test]
fn a_transfer_within_the_initial_window_waits_for_no_slow_start() {
    let list = phone(&[(0, 50, 300)]);
    let features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let of = |bytes, suspect| {
        let all = Model::judge_transfer(&features, bytes);
        all.iter().find(|one| one.suspect == suspect).unwrap().probability
    };
    let (first, other) = (Suspect::FirstSlowStart, Suspect::Other);
    assert_eq!(of(Some(14_601), first), of(None, first));
    assert!(of(None, first) >= of(Some(14_600), first));
    assert!(of(Some(14_600), first) < 0.002);
    let sum = |bytes| of(bytes, first) + of(bytes, other);
    assert!((sum(Some(1_000)) - sum(None)).abs() < 1e-9);
}

/// At the server without a connection's start, nothing is stated at 90 %.
#[test]
fn a_servers_capture_without_the_start_is_less_sure() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    features.place = CaptureSite::Server;
    features.values[Feature::FirstSlowStart] = 1.0;
    features.values[Feature::Unknown] = 0.0;
    features.begun_before = false;
    let first = |features: &Features| Model::judge(features)[0].probability;
    let whole = first(&features);
    features.values[Feature::Unknown] = 0.1;
    let late = first(&features);
    assert!(late < 0.9 && late < whole, "{whole} {late}");
    // The sender's state may soon be known.
    features.values[Feature::Unknown] = 0.0;
    features.begun_before = true;
    assert!(first(&features) < 0.9 && first(&features) < whole);
}

/// The receive window held nothing back if it was never full, and an upload delays nothing that
/// was not sent.
#[test]
fn what_something_else_contradicts_is_not_named() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let of = |features: &Features, suspect| {
        let all = Model::judge(features);
        all.iter().find(|one| one.suspect == suspect).unwrap().probability
    };
    features.values[Feature::Unknown] = 0.0;
    features.values[Feature::ReceiveWindow] = 0.5;
    features.uploads = true;
    let all = |features: &Features| -> f64 {
        Model::judge(features).iter().map(|one| one.probability).sum()
    };
    for (suspect, contradict) in [
        (Suspect::UplinkQueue, (|one| one.uploads = false) as fn(&mut Features)),
        (Suspect::ReceiveWindow, |one| one.values[Feature::ReceiveWindow] = 0.0),
    ] {
        let mut contradicted = features;
        contradict(&mut contradicted);
        assert!(of(&contradicted, suspect) < 0.002);
        assert!((all(&contradicted) - 1.0).abs() < 1e-9);
    }
}

/// One that leads leaves nothing for the others: the arrivals are of a kind that none explains.
#[test]
fn a_contradicted_suspect_that_leads_makes_no_other_lead() {
    let mut leads = Probabilities([0.02; N_SUSPECTS]);
    let [first, second, third, ..] = Suspect::ALL;
    leads[first] = 1.0 - 0.02 * (N_SUSPECTS - 1) as f64;
    let mut trails = Probabilities([0.0; N_SUSPECTS]);
    (trails[first], trails[second], trails[third]) = (0.4, 0.45, 0.15);
    leads.strike_out(&[first]);
    assert!(leads[first] == 0.0 && leads[second] == 0.02 && leads[Suspect::Other] > 0.85);
    let mut both = trails;
    trails.strike_out(&[first]);
    assert!(trails[first] == 0.0 && (trails[second] - 0.75).abs() < 1e-9);
    assert_eq!(trails[Suspect::Other], 0.0);
    // Together they lead.
    both.strike_out(&[first, second]);
    assert!(both[first] == 0.0 && both[second] == 0.0 && both[third] == 0.15);
    assert!((both[Suspect::Other] - 0.85).abs() < 1e-9);
}

/// What was acknowledged although the capture does not show it was dropped while capturing: the
/// pause is not the sender's.
#[test]
fn a_capture_with_holes_names_nothing() {
    let of = |missing: std::ops::Range<i64>| {
        let mut phones = CapturedPhones::new();
        phones.push(&packet(0, Direction::Ul, 0, 300));
        for n in 0..2_000 {
            if !missing.contains(&n) {
                phones.push(&packet((50 + n) * MS, Direction::Dl, n * 1_000, 1_000));
            }
            let mut ack = packet((50 + n) * MS + 1, Direction::Ul, 300, 0);
            ack.ack = ack.ack.map(|ack| TracedAck { offset_bytes: (n + 1) * 1_000, ..ack });
            phones.push(&ack);
        }
        phones.finish().remove(0)
    };
    assert_eq!(of(0..0).unseen_bytes, 0);
    // A FIN behind the only data takes a sequence number.
    let mut phones = CapturedPhones::new();
    phones.push(&packet(50 * MS, Direction::Dl, 0, 6));
    let mut ack = packet(51 * MS, Direction::Ul, 0, 0);
    ack.ack = ack.ack.map(|ack| TracedAck { offset_bytes: 7, ..ack });
    phones.push(&ack);
    let phone = phones.finish().remove(0);
    assert_eq!((phone.bytes, phone.unseen_bytes), (6, 0));
    // What came before the capture began is not missing.
    assert_eq!(of(0..500).unseen_bytes, 0);
    let holed = of(900..1_300);
    assert_eq!(holed.unseen_bytes, 400_000);
    let mut features = Features::from_spans(&holed, &holed.transfers(20_000)).unwrap();
    assert!(features.damaged);
    for feature in Feature::ALL {
        features.values[feature] = 1.0;
        assert!(Model::judge(&features)[0].probability < NAMED_FROM);
    }
}

/// Constants alone: their softmax. An unknown feature has no weight.
#[test]
fn a_tables_arithmetic() {
    let mut table = CoefficientTable {
        scale: [(0.0, 0.0); N_FEATURES],
        weights: [(0.0, [0.0; N_FEATURES]); Suspect::ALL.len()],
    };
    let even = table.probabilities(&FeatureValues([1.0; N_FEATURES]));
    assert!(even.0.iter().all(|p| (p - 0.125).abs() < 1e-12));
    table.scale[0] = (1.0, 2.0);
    table.weights[0].1[0] = 1.0;
    let mut values = FeatureValues::UNKNOWN;
    assert!((table.probabilities(&values)[Suspect::ALL[0]] - 0.125).abs() < 1e-12);
    // (5 - 1) / 2 deviations: e^2 against seven ones.
    values[Feature::ALL[0]] = 5.0;
    let e2 = 2.0_f64.exp();
    assert!((table.probabilities(&values)[Suspect::ALL[0]] - e2 / (e2 + 7.0)).abs() < 1e-12);
    // 4 deviations are the most.
    values[Feature::ALL[0]] = 1e9;
    let e4 = 4.0_f64.exp();
    assert!((table.probabilities(&values)[Suspect::ALL[0]] - e4 / (e4 + 7.0)).abs() < 1e-12);
}

/// A table uses what its evidence has: round trips and headers.
#[test]
fn what_tables_use() {
    let used =
        |evidence: Evidence| Feature::ALL.into_iter().filter(|one| evidence.uses(*one)).count();
    assert_eq!(used(Evidence::Stamped), 28);
    assert_eq!(used(Evidence::Plain), 22);
    assert_eq!(used(Evidence::Datagrams), 12);
    for evidence in Evidence::ALL {
        let table = Model::table(evidence);
        for (feature, (_, deviation)) in Feature::ALL.into_iter().zip(table.scale) {
            assert!(evidence.uses(feature) || deviation == 0.0, "{feature:?}");
        }
        assert!(table.weights.iter().any(|(constant, _)| *constant != 0.0), "not fitted");
    }
}

/// Segments of 1000 bytes, sent at once by a captured server, each acknowledged at a time in ms.
fn acknowledged(times_ms: &[i64]) -> CapturedPhone {
    let mut phones = CapturedPhones::new();
    let syn = |at, dir| TracedPacket { flags: TcpFlags::SYN, ..packet(at, dir, 0, 0) };
    phones.push(&syn(0, Direction::Ul));
    phones.push(&syn(MS / 20, Direction::Dl));
    phones.push(&packet(40 * MS, Direction::Ul, 1, 0));
    phones.push(&packet(41 * MS, Direction::Ul, 1, 300));
    for (n, _) in (0..).zip(times_ms) {
        phones.push(&packet(42 * MS + n, Direction::Dl, n * 1_000, 1_000));
    }
    for (n, at) in (1..).zip(times_ms) {
        let mut ack = packet(at * MS, Direction::Ul, 301, 0);
        ack.ack = ack.ack.map(|ack| TracedAck { offset_bytes: n * 1_000, ..ack });
        phones.push(&ack);
    }
    phones.finish().remove(0)
}

/// At the server, the phone's acknowledgements stand for arrivals: data that was sent at
/// once was queued on the path, and the sender was not idle.
#[test]
fn a_capture_at_the_server_shows_the_queue() {
    let phone = acknowledged(&(1..=100).map(|n| 82 + 10 * n).collect::<Vec<_>>());
    assert_eq!(phone.place, CaptureSite::Server);
    let spans = phone.transfers(20_000);
    // From the connection's start to the last acknowledgement.
    assert_eq!(spans.iter().map(|s| s.to_ns / MS).collect::<Vec<_>>(), [1_082]);
    let features = Features::from_spans(&phone, &spans).unwrap();
    assert!(features.get(Feature::Queue).unwrap() > 0.8, "{features:?}");
    assert_eq!(Evidence::of(&features), Some(Evidence::Server));
}

fn any_packet() -> impl Strategy<Value = TracedPacket> {
    let event = prop_oneof![
        Just(None),
        Just(Some(TcpEventKind::Ahead)),
        Just(Some(TcpEventKind::RetxTimeout)),
        Just(Some(TcpEventKind::RetxFast)),
        Just(Some(TcpEventKind::Reordered)),
    ];
    let shape = (0_u64..4, 0_u64..3, any::<bool>(), any::<u8>(), event, any::<bool>());
    // Half a minute, back and forth.
    let numbers = (0_i64..30_000_000_000, 0_i64..1_000_000, 0_u32..70_000, any::<(u32, u32)>());
    (shape, numbers).prop_map(|((flow, user, down, flags, event, stamped), (at, offset, n, ts))| {
        TracedPacket {
            flow,
            user,
            flags: TcpFlags(flags),
            event,
            timestamps: stamped.then_some(ts),
            flight_bytes: u64::from(n) * 2,
            ..packet(at, if down { Direction::Dl } else { Direction::Ul }, offset, n)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// For any input: no panic, and valid probabilities.
    #[test]
    fn probabilities_are_probabilities(
        packets in proptest::collection::vec(any_packet(), 0..200),
        from in -1_000_000_000_i64..40_000_000_000,
        length in -5_i64..40_000_000_000,
    ) {
        let mut phones = CapturedPhones::new();
        for packet in &packets {
            phones.push(packet);
        }
        for phone in phones.finish() {
            let mut spans = phone.transfers(0);
            spans.push(phone.span(from, from + length));
            for part in spans.chunks(1).chain([spans.as_slice()]) {
                let Some(features) = Features::from_spans(&phone, part) else { continue };
                let all = Model::judge(&features);
                let sum: f64 = all.iter().map(|one| one.probability).sum();
                // There is no table for a monitor between the two, nor for datagrams at
                // the server.
                prop_assert_eq!(all.is_empty(), Evidence::of(&features).is_none());
                prop_assert!(all.is_empty() ||(sum - 1.0).abs() < 1e-9, "{sum} {features:?}");
                prop_assert!(all.iter().all(|one| (0.0..=1.0).contains(&one.probability)));
            }
        }
    }
}
