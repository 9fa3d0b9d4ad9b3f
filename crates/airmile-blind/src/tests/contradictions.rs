//! What contradicts a suspect, and for which transfers.

use super::*;

/// A connection whose request at `asked` ms is answered, after a round trip of 50 ms, by segments a ms
/// apart; both directions carry on from the offsets.
fn answer(phones: &mut CapturedPhones, flow: u64, asked: i64, segments: i64, up: i64, down: i64) {
    let of = |packet: TracedPacket| TracedPacket { flow, ..packet };
    phones.push(&of(packet(asked * MS, Direction::Ul, up, 300)));
    for n in 0..segments {
        let at = (asked + 50 + n) * MS;
        phones.push(&of(packet(at, Direction::Dl, down + n * 1_000, 1_000)));
    }
}

/// A sender restarts after its own connection's pause (RFC 5681, 4.1), whatever the phone receives on
/// others meanwhile.
#[test]
fn a_pause_is_that_of_one_connection() {
    // Answers of each connection: asked at ms, segments.
    let check = |connections: &[&[(i64, i64)]], from: i64, to: i64, expected: bool| {
        let mut phones = CapturedPhones::new();
        let mut all = Vec::new();
        for (flow, answers) in connections.iter().enumerate() {
            let (mut up, mut down) = (0, 0);
            for &(asked, segments) in *answers {
                all.push((asked, flow as u64, segments, up, down));
                (up, down) = (up + 300, down + segments * 1_000);
            }
        }
        all.sort_unstable();
        for (asked, flow, segments, up, down) in all {
            answer(&mut phones, flow, asked, segments, up, down);
        }
        let phone = phones.finish().remove(0);
        let span = phone.span(from * MS, to * MS);
        let features = Features::from_spans(&phone, &[span]).unwrap();
        assert_eq!(features.paused_before, expected, "{connections:?} {from} {to}");
    };
    check(&[&[(0, 100)]], 0, 150, false);
    check(&[&[(0, 100), (2_000, 100)]], 2_000, 2_150, true);
    // Before the pause.
    check(&[&[(0, 100), (2_000, 100)]], 0, 150, false);
    // Another connection's data fills the pause.
    check(&[&[(0, 100), (2_000, 100)], &[(100, 1_900)]], 2_000, 2_150, true);
    // A new connection does not restart, though the phone had paused.
    check(&[&[(0, 100)], &[(2_000, 100)]], 2_000, 2_150, false);
    // Nor one that had paused, and carried nothing since.
    check(&[&[(0, 100), (1_000, 100)], &[(2_000, 100)]], 2_000, 2_150, false);
}

/// Features with losses most of the time.
fn lossy(cv_short: f64, queue_ms: Option<f64>) -> Features {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    features.values = FeatureValues::UNKNOWN;
    features.values[Feature::Loss] = 0.8;
    features.values[Feature::CvShort] = cv_short;
    features.queue_ms = queue_ms;
    features
}

/// Losses are elsewhere than at a line if what a line does was measured and is not there.
#[test]
fn losses_without_a_measured_rate_contradict_no_line() {
    let check = |cv_short, queue_ms, expected| {
        assert_eq!(
            lossy(cv_short, queue_ms).loses_elsewhere(),
            expected,
            "{cv_short} {queue_ms:?}"
        );
    };
    check(0.5, Some(5.0), true);
    check(0.5, None, true);
    check(0.2, None, false);
    check(0.5, Some(30.0), false);
    check(f64::NAN, None, false);
    check(f64::NAN, Some(5.0), false);
}

/// Reno of a kernel fills 1.5 MB of a cell's queue at 8 Mbit/s, and the same before a line: recorded
/// features. Retransmissions do not show which queue was full; a policer's do.
#[test]
fn an_overflow_does_not_show_whose_queue_was_full() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    (features.transport, features.begun_before) = (TransportKind::Stamped, false);
    (features.base_rtt_ns, features.queue_ms) = (Some(55_951_000), Some(1_590.0));
    let cell = [
        0.7664, 0.0, 0.0, 0.0, 0.0302, 0.0, 0.0, 0.0151, 0.1882, 0.0, 4.2314, 5.0752, 5.0802,
        4.5682, 0.449, 0.0785, 0.0468, 0.1182, 0.0, 0.0159, 0.2995, 0.8604, 1.096, 0.9142, 3.6433,
        0.3136, 0.9195, 0.0375,
    ];
    let line = [
        0.7973, 0.0, 0.0, 0.0, 0.032, 0.0, 0.0, 0.0155, 0.1552, 0.0, 4.7207, 5.0136, 5.0183,
        4.5652, 0.4065, 0.0799, 0.049, 0.2518, 0.0, 0.0232, 0.2449, 0.9085, 1.0885, 0.0382, 3.8752,
        0.3657, 0.9649, 0.0382,
    ];
    let of = |features: &Features, suspect| {
        let all = Model::judge(features);
        all.iter().find(|one| one.suspect == suspect).unwrap().probability
    };
    features.place = CaptureSite::Phone;
    features.values = FeatureValues(cell);
    assert!((0.7..0.9).contains(&of(&features, Suspect::Wireline)));
    assert!(of(&features, Suspect::Radio) > 0.1);
    assert!(of(&Features { line_loses: true, ..features }, Suspect::Wireline) > 0.9);
    assert!(of(&Features { queue_ms: Some(10.0), ..features }, Suspect::Wireline) > 0.9);
    features.values = FeatureValues(line);
    assert!((0.6..0.9).contains(&of(&features, Suspect::Wireline)));
    assert!(Model::names(&features, &Model::judge(&features)[0]));
    // At the server nor does a queue without losses.
    features.place = CaptureSite::Server;
    for sent_again in [features.values[Feature::SentAgain], 0.0] {
        features.values[Feature::SentAgain] = sent_again;
        let first = Model::judge(&features)[0];
        assert_eq!(first.suspect, Suspect::Wireline);
        assert!((0.7..0.75).contains(&first.probability) && !Model::names(&features, &first));
        assert!(Model::names(&Features { line_loses: true, ..features }, &first));
    }
}

/// A policer drops what its own connection sends; transfers at another time know nothing of it.
#[test]
fn a_policer_acts_on_the_transfers_of_its_time() {
    let mut phones = CapturedPhones::new();
    phones.push(&packet(0, Direction::Ul, 0, 300));
    // 4 Mbit/s, 30 kB deep: a window that grows until a packet is dropped, which halves it.
    let (mut tokens, mut filled, mut window, mut offset) = (30_000_i64, 0, 10, 0);
    let mut event = None;
    for round in 0..400 {
        let before = window;
        for n in 0..before {
            let ms = 50 + round * 40 + n * 40 / before;
            tokens = (tokens + (ms - filled) * 500).min(30_000);
            filled = ms;
            if tokens < 1_000 {
                event = Some(TcpEventKind::Ahead);
                window = (before / 2).max(2);
                continue;
            }
            tokens -= 1_000;
            let event = event.take();
            phones.push(&TracedPacket { event, ..packet(ms * MS, Direction::Dl, offset, 1_000) });
            offset += 1_000;
        }
        window = if window < before { window } else { before + 2 };
    }
    answer(&mut phones, 2, 60_000, 100, 0, 0);
    let phone = phones.finish().remove(0);
    let of = |from: i64, to: i64| {
        let span = phone.span(from * MS, to * MS);
        Features::from_spans(&phone, &[span]).unwrap().line_loses
    };
    assert!(of(0, 16_050));
    assert!(!of(60_000, 60_150));
}

/// A proxy passes on what arrives slowly from a line as from a slow server.
#[test]
fn behind_a_proxy_a_pace_may_be_a_lines() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let of = |features: &Features| {
        let all = Model::judge(features);
        [Suspect::SenderLimited, Suspect::Wireline]
            .map(|suspect| all.iter().find(|one| one.suspect == suspect).unwrap().probability)
    };
    features.values.0[..Feature::CvShort as usize].fill(0.0);
    features.values[Feature::Pace] = 1.0;
    let [pace, line] = of(&features);
    assert!(pace > line, "{pace} {line}");
    features.behind_proxy = true;
    let shared = of(&features);
    assert!((shared[0] - shared[1]).abs() < 1e-9 && (shared[0] - (pace + line) / 2.0).abs() < 1e-9);
}

/// A server's capture of a line of 1 Mbit/s with 4 MB of buffer: recorded features. Its queue is longer than
/// those of the fit's lines, and it loses nothing; but one rate is no evidence for a radio link.
#[test]
fn a_queue_that_is_served_at_one_rate_is_not_the_radios() {
    let list = phone(&[(0, 50, 300)]);
    let mut features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    (features.transport, features.begun_before) = (TransportKind::Stamped, false);
    (features.base_rtt_ns, features.queue_ms) = (Some(76000000), Some(8e+03));
    features.place = CaptureSite::Server;
    features.values = FeatureValues([
        0.9899, 0.0, 0.0, 0.0, 0.007572, 0.0, 0.0, 0.002524, 0.0, 0.0, 5.059, 6.715, 7.307, 4.208,
        0.0, 0.1118, 0.02997, -0.4755, 0.0, -0.001085, 0.6588, 0.0542, 0.276, 1.675, 2.071, 0.8753,
        0.7493, 0.1043,
    ]);
    let of = |features: &Features| Model::judge(features)[0];
    let first = of(&features);
    assert!(first.suspect == Suspect::Radio && first.probability > 0.9);
    features.is_served_evenly = true;
    let first = of(&features);
    assert!(first.probability < 0.5 && !Model::names(&features, &first), "{first:?}");
    // A line that is first anyway stays as it is.
    features.values[Feature::SentAgain] = 0.5;
    let even = Model::judge(&features);
    assert_eq!(
        (even[0].suspect, even),
        (Suspect::Wireline, {
            features.is_served_evenly = false;
            Model::judge(&features)
        })
    );
}

/// A line makes up for what a later link delays; a radio link that repairs a block does not.
#[test]
fn a_line_serves_its_queue_evenly() {
    // Numbers of 0 to 7 by a linear congruential generator.
    let mut state = 1_i64;
    let mut any = || {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        state / 65_536 % 8
    };
    let check = |times: &mut dyn Iterator<Item = i64>, expected: bool| {
        let phone = acknowledged(&times.collect::<Vec<_>>());
        let features = Features::from_spans(&phone, &phone.transfers(20_000)).unwrap();
        assert_eq!(features.is_served_evenly, expected);
    };
    check(&mut (1..=900).map(|n| 82 + 10 * n), true);
    check(&mut (1..=900).map(|n| 82 + 10 * n + any()), true);
    let mut at = 82;
    let mut repairs = (1..=900).map(|_| {
        at += if any() == 0 { 24 } else { 8 };
        at
    });
    check(&mut repairs, false);
    let mut at = 82;
    let mut fades = (1..=900).map(|n| {
        at += if n / 100 % 2 == 0 { 5 } else { 15 };
        at
    });
    check(&mut fades, false);
    // No queue stands.
    check(&mut (1..=900).map(|n| 82 + n / 90), false);
}

/// A queue shows in whole segments, and in some hundred of them.
#[test]
fn too_few_packets_or_small_messages_show_no_queue() {
    let list = phone(&[(0, 50, 300)]);
    let features = Features::from_spans(&list, &list.transfers(20_000)).unwrap();
    let of_queues = |features: &Features| {
        let judged = Model::judge(features);
        assert!((judged.iter().map(|one| one.probability).sum::<f64>() - 1.0).abs() < 1e-9);
        let queues = [Suspect::Radio, Suspect::Wireline];
        let each = judged.iter().filter(|one| queues.contains(&one.suspect));
        each.map(|one| one.probability).sum::<f64>()
    };
    assert!(of_queues(&features) > 0.01);
    assert!(of_queues(&Features { bytes: 119_999, ..features }) < 0.003);
    let mut trickle = features;
    trickle.values[Feature::Batch] = (500.0_f64 / 1_500.0).ln();
    assert!(of_queues(&trickle) < 0.003);
}

/// Messages of 40 to 460 bytes at times of their own, in a capture that began within the connection.
#[test]
fn small_messages_are_no_slow_line() {
    let mut phones = CapturedPhones::new();
    let (mut at, mut down) = (0, 0);
    for n in 0..3_000_i64 {
        let bytes = 40 + n * 7_919 % 420;
        phones.push(&packet(at, Direction::Dl, down, bytes as u32));
        (at, down) = (at + (5 + n * 104_729 % 70) * MS, down + bytes);
        let mut ack = packet(at - MS, Direction::Ul, 0, 0);
        ack.ack.iter_mut().for_each(|ack| ack.offset_bytes = down);
        phones.push(&ack);
    }
    let phone = phones.finish().remove(0);
    let features = Features::from_spans(&phone, &phone.transfers(20_000)).unwrap();
    assert!(features.bytes > 500_000);
    let first = Model::judge(&features)[0];
    assert!(!matches!(first.suspect, Suspect::Radio | Suspect::Wireline), "{first:?}");
}
