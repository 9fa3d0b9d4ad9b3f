use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;

const PHONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const MS: i64 = 1_000_000;

fn report() -> FeedbackReport {
    FeedbackReport {
        sequence: 0x0102,
        time_ms: 5,
        w_claw_bytes: 0x01_02_03,
        load: 0.5,
        bottleneck: Bottleneck::Wireline,
        idle: true,
        radio_losses: 9,
        queue_losses: 6,
    }
}

#[test]
fn a_report_byte_by_byte() {
    let bytes = report().encode();
    let expected =
        [1, 0b101, 125, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 5, 0, 1, 2, 3, 0, 0, 0, 9, 0, 0, 0, 6];
    assert_eq!(bytes, expected);
    assert_eq!(FeedbackReport::decode(&bytes), Ok(report()));
    let with = |at: usize, value: u8| {
        let mut bytes = bytes;
        bytes[at] = value;
        FeedbackReport::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0, 2), "byte 0, version: 2 is not allowed");
    assert_eq!(with(1, 3), "byte 1, flags: 3 is not allowed");
    assert_eq!(with(1, 8), "byte 1, flags: 8 is not allowed");
    assert_eq!(with(2, 251), "byte 2, load: 251 is not allowed");
    assert_eq!(FeedbackReport::decode(&bytes[1..]).unwrap_err().to_string(), "26 bytes, not 27");
}

#[test]
fn an_option_byte_by_byte() {
    let check = |report: FeedbackReport, expected: [u8; 8]| {
        assert_eq!(report.tcp_option(0.95), expected);
    };
    // Idle 3, radio 9 mod 8, queue 6 mod 4.
    check(report(), [253, 8, 0xC1, 0xA3, 1, 2, 3, 0b0110_0110]);
    let full = FeedbackReport { load: 0.96, idle: false, w_claw_bytes: u32::MAX, ..report() };
    check(full, [253, 8, 0xC1, 0xA3, 255, 255, 255, 0b1010_0110]);
    let mut reader = OptionReader::default();
    let read = reader.read(&full.tcp_option(0.95)).unwrap().unwrap();
    assert_eq!((read.load, read.w_claw_bytes), (1.0, (1 << 24) - 1));
    assert_eq!((read.bottleneck, read.idle), (Bottleneck::Wireline, false));
    // An idle radio reports no bottleneck.
    let idle = reader.read(&report().tcp_option(0.95)).unwrap().unwrap();
    assert_eq!((idle.bottleneck, idle.idle), (Bottleneck::Wireline, true));
    let mut other = report().tcp_option(0.95);
    other[2] = 0;
    let wrong = reader.read(&other).unwrap_err();
    assert_eq!(wrong.to_string(), "byte 2, experiment: 0 is not allowed");
}

#[test]
fn counters_of_options_get_their_high_bits_back() {
    let mut reader = OptionReader::default();
    let mut counters = |radio: u32, queue: u32| {
        let report = FeedbackReport {
            radio_losses: radio,
            queue_losses: queue,
            ..FeedbackReport::default()
        };
        let read = reader.read(&report.tcp_option(0.95)).unwrap()?;
        Some((read.sequence, read.radio_losses, read.queue_losses))
    };
    // Counted from where the connection begins.
    assert_eq!(counters(6, 3), Some((1, 0, 0)));
    assert_eq!(counters(9, 4), Some((2, 3, 1)));
    assert_eq!(counters(9, 4), Some((3, 3, 1)));
    // Overtaken.
    assert_eq!(counters(8, 4), None);
    assert_eq!(counters(10, 5), Some((4, 4, 2)));
}

fn pair() -> (FeedbackReporter, Sessions) {
    let key = FeedbackKey::new([7; 32]);
    let secret = FeedbackKey::new([8; 32]);
    let sessions = Sessions::new(secret, Some(key.clone()), SessionOptions::default());
    (FeedbackReporter::new(key, 0, 40), sessions)
}

/// Sends a hello at a time; its answer arrives 30 ms later.
fn greet(reporter: &mut FeedbackReporter, sessions: &mut Sessions, at_ns: i64) {
    let hello = reporter.send(at_ns, &report());
    let answer = sessions.ingest(at_ns, PHONE, &hello).answer.unwrap();
    assert!(answer.len() <= hello.len());
    reporter.ingest(at_ns + 30 * MS, &answer).unwrap();
}

#[test]
fn a_session() {
    let (mut reporter, mut sessions) = pair();
    greet(&mut reporter, &mut sessions, 0);
    // A hello stores nothing at the server.
    assert_eq!((sessions.by_token.len(), sessions.sessions_at(0, PHONE).count()), (0, 0));
    let datagram = reporter.send(100 * MS, &report());
    assert_eq!(datagram.len(), 79);
    let accepted = sessions.ingest(100 * MS, PHONE, &datagram).report.unwrap();
    let token = reporter.token().unwrap();
    assert_eq!((accepted.token, accepted.address, accepted.moved), (token, PHONE, false));
    assert_eq!(accepted.report, FeedbackReport { sequence: 1, ..report() });
    assert_eq!(sessions.sessions_at(100 * MS, PHONE).collect::<Vec<_>>(), [token]);
    assert_eq!(sessions.sessions_at(100 * MS, OTHER).count(), 0);
    assert_eq!(sessions.sessions_at(30_000 * MS, PHONE).count(), 0);
    let answer = sessions.answer(&accepted, ReportStatus::NoConnection).unwrap();
    reporter.ingest(120 * MS, &answer).unwrap();
    assert_eq!(reporter.status(), Some(ReportStatus::NoConnection));
    assert_eq!(reporter.min_rtt_ns(), Some(20 * MS));
}

#[test]
fn replays_reordering_and_floods() {
    let (mut reporter, mut sessions) = pair();
    greet(&mut reporter, &mut sessions, 0);
    let all: Vec<_> = (0..4).map(|_| reporter.send(100 * MS, &report())).collect();
    let mut take = |at_ms: i64, n: usize| {
        let taken = sessions.ingest(at_ms * MS, PHONE, &all[n]);
        (taken.report.is_some(), sessions.counts())
    };
    let counts = |taken, replayed, overtaken, too_many| SessionCounts {
        taken,
        replayed,
        overtaken,
        too_many,
        hellos: 1,
        ..SessionCounts::default()
    };
    assert_eq!(take(100, 1), (true, counts(1, 0, 0, 0)));
    assert_eq!(take(130, 1), (false, counts(1, 1, 0, 0)));
    assert_eq!(take(160, 0), (false, counts(1, 1, 1, 0)));
    assert_eq!(take(190, 0), (false, counts(1, 2, 1, 0)));
    assert_eq!(take(220, 2), (true, counts(2, 2, 1, 0)));
    assert_eq!(take(221, 3), (false, counts(2, 2, 1, 1)));
}

#[test]
fn a_phone_that_moves_and_a_server_that_restarts() {
    let (mut reporter, mut sessions) = pair();
    greet(&mut reporter, &mut sessions, 0);
    let datagram = reporter.send(50 * MS, &report());
    // The token has not been returned from the hello's address yet.
    assert_eq!(sessions.ingest(50 * MS, OTHER, &datagram), IngestOutcome::default());
    assert!(sessions.ingest(60 * MS, PHONE, &datagram).report.is_some());
    let datagram = reporter.send(100 * MS, &report());
    let accepted = sessions.ingest(100 * MS, OTHER, &datagram).report.unwrap();
    // The report is still about connections from the first address.
    assert_eq!((accepted.address, accepted.moved), (PHONE, true));
    reporter.ingest(120 * MS, &sessions.answer(&accepted, ReportStatus::Moved).unwrap()).unwrap();
    let hello = reporter.send(200 * MS, &report());
    let answer = sessions.ingest(200 * MS, OTHER, &hello).answer.unwrap();
    reporter.ingest(220 * MS, &answer).unwrap();
    let datagram = reporter.send(300 * MS, &report());
    let accepted = sessions.ingest(300 * MS, OTHER, &datagram).report.unwrap();
    assert_eq!((accepted.address, accepted.moved), (OTHER, false));
    // A server that does not know the session stays silent until the phone sends a new
    // hello.
    let (secret, key) = (FeedbackKey::new([9; 32]), reporter.key.clone());
    let mut restarted = Sessions::new(secret, Some(key), SessionOptions::default());
    let datagram = reporter.send(400 * MS, &report());
    assert_eq!(restarted.ingest(400 * MS, OTHER, &datagram), IngestOutcome::default());
    let hello = reporter.send(3_400 * MS, &report());
    assert!(restarted.ingest(3_400 * MS, OTHER, &hello).answer.is_some());
}

#[test]
fn what_is_not_of_the_key_changes_nothing() {
    let (mut reporter, mut sessions) = pair();
    let stranger = FeedbackKey::new([1; 32]);
    let hello = FeedbackReporter::new(stranger.clone(), 0, 1).send(0, &report());
    assert_eq!(sessions.ingest(0, PHONE, &hello), IngestOutcome::default());
    greet(&mut reporter, &mut sessions, 0);
    // An eavesdropper cannot use the token.
    let mut eavesdropper = reporter.clone();
    eavesdropper.key = stranger;
    let datagram = eavesdropper.send(100 * MS, &report());
    assert_eq!(sessions.ingest(100 * MS, PHONE, &datagram), IngestOutcome::default());
    assert_eq!(sessions.counts().forged, 2);
    assert_eq!(reporter.ingest(100 * MS, &datagram), Err(FeedbackError::Forged));
    // A hello replayed from another address creates no session.
    let hello = reporter.clone().hello(0);
    sessions.ingest(0, OTHER, &hello);
    assert_eq!(sessions.sessions_at(0, OTHER).count(), 0);
}

/// Sends a hello from an address and processes the answer there.
fn welcomed(sessions: &mut Sessions, at_ns: i64, from: IpAddr, nonce: u64) -> FeedbackReporter {
    let mut reporter = FeedbackReporter::new(FeedbackKey::new([7; 32]), 0, nonce);
    let hello = reporter.send(at_ns, &report());
    let answer = sessions.ingest(at_ns, from, &hello).answer.expect("a welcome");
    reporter.ingest(at_ns, &answer).unwrap();
    reporter
}

#[test]
fn reports_there_is_room_for_so_many() {
    let key = FeedbackKey::new([7; 32]);
    let options = SessionOptions { sessions: 3, per_address: 2, ..SessionOptions::default() };
    let mut sessions = Sessions::new(FeedbackKey::new([8; 32]), Some(key), options);
    let mut all: Vec<SessionToken> = Vec::new();
    // Starts one session at a time and address; returns which of all sessions exist, and
    // refusals.
    let mut begin = |at_ms: i64, last: u8| {
        let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let mut reporter = welcomed(&mut sessions, at_ms * MS, from, at_ms as u64);
        all.extend(reporter.token());
        sessions.ingest(at_ms * MS, from, &reporter.send(at_ms * MS, &report()));
        let is_there = |token: &SessionToken| sessions.by_token.contains_key(token);
        (all.iter().map(is_there).collect::<Vec<_>>(), sessions.counts().refused)
    };
    assert_eq!(begin(0, 1), (vec![true], 0));
    assert_eq!(begin(1, 1), (vec![true, true], 0));
    // An address has two while both report, however often a third one tries.
    assert_eq!(begin(2, 1), (vec![true, true, false], 1));
    assert_eq!(begin(3, 1), (vec![true, true, false, false], 2));
    assert_eq!(begin(4, 2), (vec![true, true, false, false, true], 2));
    // Reporting sessions keep all places until they have been silent for 20 s.
    assert_eq!(begin(5, 3), (vec![true, true, false, false, true, false], 3));
    let there = vec![false, false, false, false, true, false, true];
    assert_eq!(begin(20_004, 3), (there, 3));
}

/// A further session of a host takes the place of one that has been silent for 20 s, alone.
#[test]
fn reports_a_silent_session_gives_way_to_one_of_its_host() {
    let key = FeedbackKey::new([7; 32]);
    let options = SessionOptions { per_address: 2, ..SessionOptions::default() };
    let mut sessions = Sessions::new(FeedbackKey::new([8; 32]), Some(key), options);
    let mut begin = |at_ms: i64, nonce| {
        let mut reporter = welcomed(&mut sessions, at_ms * MS, PHONE, nonce);
        sessions.ingest(at_ms * MS, PHONE, &reporter.send(at_ms * MS, &report()));
        let token = reporter.token().expect("a token");
        (token, sessions.by_token.keys().copied().collect::<Vec<_>>())
    };
    let sorted = |mut tokens: Vec<SessionToken>| {
        tokens.sort_unstable();
        tokens
    };
    let (silent, _) = begin(0, 1);
    let (reporting, there) = begin(15_000, 2);
    assert_eq!(there, sorted(vec![silent, reporting]));
    let (_, there) = begin(20_000, 3);
    assert_eq!(there, sorted(vec![silent, reporting]));
    let (next, there) = begin(20_001, 4);
    assert_eq!(there, sorted(vec![reporting, next]));
    let (_, there) = begin(20_002, 5);
    assert_eq!(there, sorted(vec![reporting, next]));
}

/// A host receives at every address of its /64: with one session each it would take all places.
#[test]
fn reports_a_64_is_one_host() {
    let key = FeedbackKey::new([7; 32]);
    let options = SessionOptions { sessions: 40, ..SessionOptions::default() };
    let mut sessions = Sessions::new(FeedbackKey::new([8; 32]), Some(key), options);
    let mut begin = |n: u64, from: &str| {
        let from: IpAddr = from.parse().unwrap();
        let mut reporter = welcomed(&mut sessions, 0, from, n);
        let accepted = sessions.ingest(0, from, &reporter.send(0, &report())).report;
        let is_begun = accepted.map(|accepted| accepted.address) == Some(from);
        (is_begun, sessions.by_token.len(), sessions.counts().refused)
    };
    for n in 0..30_u64 {
        let (there, refused) = ((n as usize + 1).min(8), (n + 1).saturating_sub(8));
        assert_eq!(begin(n, &format!("2001:db8:0:1:{n:x}::1")), (n < 8, there, refused));
    }
    // Another /64 has places of its own, and so has each IPv4 address, also if mapped.
    assert_eq!(begin(30, "2001:db8:0:2::1"), (true, 9, 22));
    for n in 0..12 {
        let there = 10 + n as usize;
        assert_eq!(begin(31 + n, &format!("::ffff:192.0.2.{n}")), (true, there, 22));
    }
}

/// Hellos need no return path to their sender, so none is stored, however many arrive and
/// from whatever addresses.
#[test]
fn reports_hellos_of_spoofed_addresses_take_no_place() {
    let key = FeedbackKey::new([7; 32]);
    let options = SessionOptions { sessions: 2, ..SessionOptions::default() };
    let mut sessions = Sessions::new(FeedbackKey::new([8; 32]), Some(key.clone()), options);
    let mut first = welcomed(&mut sessions, 0, PHONE, 1);
    let taken = |sessions: &mut Sessions, reporter: &mut FeedbackReporter, at_ms: i64| {
        let datagram = reporter.send(at_ms * MS, &report());
        sessions.ingest(at_ms * MS, PHONE, &datagram).report.is_some()
    };
    assert!(taken(&mut sessions, &mut first, 100));
    for n in 0..20_000 {
        let from = IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n));
        let hello = FeedbackReporter::new(key.clone(), 0, n.into()).send(0, &report());
        assert!(sessions.ingest(i64::from(n), from, &hello).answer.is_some());
    }
    assert_eq!((sessions.by_token.len(), sessions.counts().refused), (1, 0));
    let mut next = welcomed(&mut sessions, 150 * MS, PHONE, 2);
    assert!(taken(&mut sessions, &mut next, 200));
    assert!(taken(&mut sessions, &mut first, 210));
}

/// A token is bound to its address, key and nonce, and starts a session within 10 s.
#[test]
fn reports_a_token_is_of_its_hello_alone() {
    let (_, mut sessions) = pair();
    let check = |sessions: &mut Sessions, from: IpAddr, at_ms: i64, is_taken: bool| {
        let mut reporter = welcomed(sessions, 0, PHONE, 9);
        // The phone's clock differs from the server's.
        let datagram = reporter.send(MS, &report());
        let outcome = sessions.ingest(at_ms * MS, from, &datagram);
        assert_eq!(outcome.report.is_some(), is_taken, "{from} {at_ms}");
        assert_eq!(sessions.by_token.len(), usize::from(is_taken));
    };
    check(&mut sessions, OTHER, 5, false);
    check(&mut sessions, PHONE, 10_001, false);
    // Another nonce with the same token and the right key.
    let mut forger = welcomed(&mut sessions, 0, PHONE, 9);
    forger.nonce += 1;
    assert_eq!(sessions.ingest(MS, PHONE, &forger.send(MS, &report())), IngestOutcome::default());
    // A token of a server that was restarted.
    let mut other =
        Sessions::new(FeedbackKey::new([9; 32]), Some(forger.key), SessionOptions::default());
    let mut reporter = welcomed(&mut other, 0, PHONE, 9);
    let datagram = reporter.send(MS, &report());
    assert_eq!(sessions.ingest(MS, PHONE, &datagram), IngestOutcome::default());
    assert_eq!(sessions.counts().forged, 4);
    check(&mut sessions, PHONE, 10_000, true);
}

/// A reporting session stays, however many hellos arrive from its address.
#[test]
fn hellos_do_not_push_out_who_has_reported() {
    let (mut reporter, mut sessions) = pair();
    greet(&mut reporter, &mut sessions, 0);
    let datagram = reporter.send(100 * MS, &report());
    assert!(sessions.ingest(100 * MS, PHONE, &datagram).report.is_some());
    for n in 2..40_u64 {
        let hello = FeedbackReporter::new(reporter.key.clone(), 0, n).send(0, &report());
        sessions.ingest(200 * MS, PHONE, &hello);
    }
    let datagram = reporter.send(300 * MS, &report());
    assert!(sessions.ingest(300 * MS, PHONE, &datagram).report.is_some());
}

/// Round trips longer than the reporting interval: the hello is repeated until its answer
/// arrives, and creates one session.
#[test]
fn a_far_server_is_greeted() {
    for rtt_ms in [30, 150, 480, 2_900] {
        let (mut reporter, mut sessions) = pair();
        let mut answers: VecDeque<(i64, Vec<u8>)> = VecDeque::new();
        let mut taken = 0;
        for n in 0..60_u8 {
            let at_ms = i64::from(n) * 100;
            while answers.front().is_some_and(|(due_ms, _)| *due_ms <= at_ms) {
                let (due_ms, answer) = answers.pop_front().unwrap();
                reporter.ingest(due_ms * MS, &answer).unwrap();
            }
            let datagram = reporter.send(at_ms * MS, &report());
            let of = sessions.ingest(at_ms * MS, PHONE, &datagram);
            let answer =
                of.report.and_then(|accepted| sessions.answer(&accepted, ReportStatus::Used));
            taken += usize::from(of.report.is_some());
            answers.extend(of.answer.or(answer).map(|answer| (at_ms + rtt_ms, answer)));
        }
        assert_eq!(sessions.by_token.len(), 1, "{rtt_ms} ms");
        assert!(taken >= 25, "{rtt_ms} ms: {taken}");
        assert!(reporter.min_rtt_ns().is_none_or(|ns| ns == rtt_ms * MS), "{rtt_ms} ms");
    }
}

#[test]
fn keys_that_a_server_hands_out() {
    let secret = FeedbackKey::new([8; 32]);
    let mut sessions = Sessions::new(secret.clone(), None, SessionOptions::default());
    let mut reporter = FeedbackReporter::new(secret.derive(5), 5, 1);
    greet(&mut reporter, &mut sessions, 0);
    // Without a shared key there is no key 0.
    let hello = FeedbackReporter::new(FeedbackKey::new([0; 32]), 0, 1).send(0, &report());
    assert_eq!(sessions.ingest(0, PHONE, &hello), IngestOutcome::default());
    assert_eq!(format!("{:?}", secret.derive(5)), "FeedbackKey(..)");
    assert_ne!(secret.derive(5), secret.derive(6));
}

#[test]
fn authenticators_are_those_of_the_standard() {
    // RFC 4231, 4.2; its key has 20 bytes.
    let mut key = [0; 32];
    key[..20].fill(0x0b);
    let sealed = FeedbackKey::new(key).seal(b"Hi There".to_vec());
    let expected = 0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b_u128.to_be_bytes();
    assert_eq!(sealed[8..], expected);
}

fn any_report() -> impl Strategy<Value = FeedbackReport> {
    let bottleneck = prop_oneof![
        Just(Bottleneck::Cellular),
        Just(Bottleneck::Wireline),
        Just(Bottleneck::Unclear)
    ];
    (any::<(u64, u32, u32, bool, u32, u32)>(), 0..=250_u8, bottleneck).prop_map(
        |(
            (sequence, time_ms, w_claw_bytes, idle, radio_losses, queue_losses),
            load,
            bottleneck,
        )| {
            let load = f64::from(load) / LOAD_STEPS;
            FeedbackReport {
                sequence,
                time_ms,
                w_claw_bytes,
                load,
                bottleneck,
                idle,
                radio_losses,
                queue_losses,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(report in any_report()) {
        prop_assert_eq!(FeedbackReport::decode(&report.encode()), Ok(report));
    }

    #[test]
    fn what_is_read_is_written(bytes in prop::collection::vec(any::<u8>(), 20..30)) {
        if let Ok(report) = FeedbackReport::decode(&bytes) {
            prop_assert_eq!(report.encode().to_vec(), bytes);
        }
    }

    /// Under any loss, duplication or delay, the sequence numbers of accepted reports only
    /// grow.
    #[test]
    fn numbers_grow(order in prop::collection::vec(0..40_usize, 1..120)) {
        let (mut reporter, mut sessions) = pair();
        greet(&mut reporter, &mut sessions, 0);
        let all: Vec<_> = (0..40).map(|_| reporter.send(MS, &report())).collect();
        let mut last = 0;
        for (n, which) in order.into_iter().enumerate() {
            let at_ns = 100 * MS * (n as i64 + 1);
            if let Some(accepted) = sessions.ingest(at_ns, PHONE, &all[which]).report {
                prop_assert!(accepted.report.sequence > last);
                last = accepted.report.sequence;
            }
        }
    }

    /// A single flipped bit anywhere gets a datagram rejected.
    #[test]
    fn no_bit_can_be_changed(bit in 0..79 * 8_usize) {
        let (mut reporter, mut sessions) = pair();
        greet(&mut reporter, &mut sessions, 0);
        let mut datagram = reporter.send(MS, &report());
        datagram[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(sessions.ingest(MS, PHONE, &datagram), IngestOutcome::default());
    }
}
