//! TCP segment by segment.

use airmile_emulate::tcp::{LossDetection, TcpConfig, TcpConnection, TcpSegment, TcpState};

use crate::support::MS;
use crate::tcp::{CUBIC, RENO, SECOND, config};

/// Two connections after their handshake at 0 ns, connected directly. The given number of
/// initial segments is lost.
fn opened(
    config: &TcpConfig,
    syns_lost: u32,
    answers_lost: u32,
) -> (TcpConnection, TcpConnection, i64) {
    let (ours, theirs) = (crate::support::address(1, 40_000), crate::support::address(2, 80));
    let mut client = TcpConnection::connect(0, ours, theirs, config.clone(), 7);
    let mut server: Option<TcpConnection> = None;
    let (mut syns_lost, mut answers_lost, mut now_ns) = (syns_lost, answers_lost, 0);
    loop {
        client.handle_timeout(now_ns);
        if let Some(syn) = client.poll_transmit(now_ns) {
            if syns_lost > 0 {
                syns_lost -= 1;
            } else if let Some(server) = &mut server {
                server.handle_segment(now_ns, &syn);
            } else {
                server = TcpConnection::accept(now_ns, theirs, ours, &syn, config.clone(), 8);
            }
        }
        if let Some(server) = &mut server {
            server.handle_timeout(now_ns);
            while let Some(answer) = server.poll_transmit(now_ns) {
                if answers_lost > 0 {
                    answers_lost -= 1;
                } else {
                    client.handle_segment(now_ns, &answer);
                }
            }
        }
        if client.is_established() {
            break;
        }
        let next = [client.poll_timeout(), server.as_ref().and_then(TcpConnection::poll_timeout)];
        now_ns = next.into_iter().flatten().min().unwrap();
    }
    let mut server = server.unwrap();
    while let Some(ack) = client.poll_transmit(now_ns) {
        server.handle_segment(now_ns, &ack);
    }
    assert!(server.is_established());
    (client, server, now_ns)
}

#[test]
fn small_segments_are_lost_by_the_number_of_duplicate_acks() {
    let loss_detection = LossDetection::DupAck;
    let config = TcpConfig { loss_detection, tail_loss_probe: false, ..config(RENO) };
    let (mut client, mut server, begin_ns) = opened(&config, 0, 0);
    let mut segments = Vec::new();
    for n in 0..6 {
        assert_eq!(server.write(100), 100);
        segments.push(server.poll_transmit(begin_ns + n * MS).unwrap());
    }
    // The first is lost; each of the others has a duplicate ACK.
    let mut resent = Vec::new();
    for (n, segment) in (1..).zip(&segments[1..]) {
        let now_ns = begin_ns + 40 * MS + n * MS;
        client.handle_segment(now_ns, segment);
        let ack = client.poll_transmit(now_ns).unwrap();
        server.handle_segment(now_ns, &ack);
        server.handle_timeout(now_ns);
        while let Some(segment) = server.poll_transmit(now_ns) {
            resent.push((n, segment.payload));
        }
    }
    assert_eq!(resent, [(3, 0..100)]);
    assert_eq!((server.stats().recoveries, server.stats().rtos), (1, 0));
}

#[test]
fn after_a_lost_syn_sending_begins_with_one_segment_and_3_s() {
    // Lost SYNs, lost SYN-ACKs; initial segments of client and server, and their minimum
    // timeouts.
    let check = |syns: u32, answers: u32, client: (usize, i64), server: (usize, i64)| {
        for timestamps in [true, false] {
            let config = TcpConfig { timestamps, ..config(CUBIC) };
            let (near, far, now_ns) = opened(&config, syns, answers);
            for (mut end, (segments, rto_ns)) in [(near, client), (far, server)] {
                let got_ns = end.snapshot().rto_ns;
                end.write(100_000);
                let burst = std::iter::from_fn(|| end.poll_transmit(now_ns)).count();
                let row = format!("{syns} {answers} {timestamps} {burst} {got_ns}");
                assert_eq!(burst, segments, "{row}");
                assert!(got_ns == rto_ns, "{row}");
            }
        }
    };
    // Measured at once: 200 ms above nothing.
    check(0, 0, (10, 200 * MS), (10, 200 * MS));
    check(1, 0, (1, 3 * SECOND), (10, 200 * MS));
    // The client's timer also expires if the answer is lost.
    check(0, 1, (1, 3 * SECOND), (1, 3 * SECOND));
}

#[test]
fn only_the_next_number_resets_and_only_the_window_tells_the_time() {
    let (mut client, mut server, now_ns) = opened(&config(RENO), 0, 0);
    server.write(100);
    let data = server.poll_transmit(now_ns).unwrap();
    // Beyond the window, with a timestamp a day ahead: answered, but its timestamp is
    // ignored.
    let (val, ecr) = data.timestamps.unwrap();
    let stray = TcpSegment {
        seq: data.seq.wrapping_add(1 << 26),
        timestamps: Some((val.wrapping_add(86_400_000), ecr)),
        ..data.clone()
    };
    // Before the window: an old duplicate with such a timestamp.
    let old = TcpSegment { seq: data.seq.wrapping_sub(50), payload: 0..10, ..stray.clone() };
    for segment in [stray, old] {
        client.handle_segment(now_ns, &segment);
        assert!(client.poll_transmit(now_ns).is_some());
    }
    client.handle_segment(now_ns, &data);
    assert_eq!(client.readable_bytes(), 100, "the stray timestamp was ignored");
    // A reset within the window, but not at its start: a challenge ACK.
    let reset = |ahead: u32| TcpSegment {
        seq: data.seq.wrapping_add(100 + ahead),
        flags: airmile_emulate::tcp::Flags { rst: true, ..Default::default() },
        payload: 0..0,
        literals: Vec::new(),
        ..data.clone()
    };
    while client.poll_transmit(now_ns).is_some() {}
    client.handle_segment(now_ns, &reset(1));
    let challenge = client.poll_transmit(now_ns).unwrap();
    assert_eq!((client.state(), challenge.ack), (TcpState::Established, data.seq + 100));
    client.handle_segment(now_ns, &reset(0));
    assert_eq!(client.state(), TcpState::Closed);
}
