//! Whose losses they are, and what a report excuses.

use super::*;

#[test]
fn whose_losses_are() {
    let check = |radio_losses, queue_losses, told_ms: i64, expected: u64| {
        let mut claw = claw();
        claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
        claw.on_feedback(
            told_ms * MS,
            &Feedback { radio_losses, queue_losses, ..feedback(2, 100 * MSS, 0.3) },
        );
        claw.on_congestion(101 * MS, &LOSS);
        let what = format!("{radio_losses} {queue_losses} {told_ms}");
        assert_eq!(claw.cwnd_bytes() / MSS, expected, "{what}");
    };
    check(1, 0, 100, 100);
    // Unknown, or the queue before the radio: at once, to 0.7 of Cubic's window.
    check(0, 0, 100, 7);
    check(1, 1, 100, 7);
    check(0, 3, 100, 7);
    // A radio loss two round trips ago does not explain this loss.
    check(1, 0, 0, 7);
}

/// A report that arrives after the duplicate ACKs undoes the reduction, for one round trip.
#[test]
fn a_radio_loss_is_told_late() {
    let check = |told_ms: i64, queue_losses, expected: (u64, u64)| {
        let mut claw = claw();
        claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
        claw.on_congestion(MS, &LOSS);
        assert_eq!(claw.cwnd_bytes() / MSS, 7);
        let late = Feedback { radio_losses: 1, queue_losses, ..feedback(2, 100 * MSS, 0.3) };
        claw.on_feedback(told_ms * MS, &late);
        let windows = (claw.cwnd_bytes() / MSS, claw.w_cubic_bytes() / MSS);
        assert_eq!(windows, expected, "{told_ms} {queue_losses}");
    };
    check(50, 0, (100, 11));
    // Also for the queue; but not too late, when the reduction has lasted its round trip.
    check(50, 1, (7, 7));
    check(52, 0, (100, 7));
}

/// One report of a radio loss excuses one loss.
#[test]
fn a_radio_loss_excuses_once() {
    let mut claw = claw();
    claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
    claw.on_feedback(0, &Feedback { radio_losses: 1, ..feedback(2, 100 * MSS, 0.3) });
    claw.on_congestion(MS, &LOSS);
    assert_eq!(claw.cwnd_bytes(), 100 * MSS);
    claw.on_congestion(60 * MS, &LOSS);
    assert!(claw.cwnd_bytes() < 10 * MSS);
    // After a round trip the client's window is in force again.
    claw.on_feedback(120 * MS, &Feedback { radio_losses: 1, ..feedback(3, 90 * MSS, 0.3) });
    assert_eq!(claw.cwnd_bytes(), 90 * MSS);
}

/// Counters start with the client's program: a connection's first report neither reports
/// nor hides a loss.
#[test]
fn counters_begin_with_the_first_report() {
    let check = |later: (u64, u64), expected: u64| {
        let mut claw = claw();
        let with_losses = |sequence, (radio_losses, queue_losses)| Feedback {
            radio_losses,
            queue_losses,
            ..feedback(sequence, 100 * MSS, 0.3)
        };
        claw.on_feedback(0, &with_losses(1, (5, 3)));
        claw.on_feedback(MS, &with_losses(2, later));
        claw.on_congestion(2 * MS, &LOSS);
        assert_eq!(claw.cwnd_bytes() / MSS, expected, "{later:?}");
    };
    check((5, 3), 7);
    check((6, 3), 100);
    check((5, 4), 7);
}

/// The queue before the radio overflowed: reduced at once, before duplicate ACKs, and once.
#[test]
fn a_queue_that_ran_over() {
    let mut claw = claw();
    claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
    for (sequence, queue_losses, at_ms) in [(2, 1, 10), (3, 2, 20), (4, 2, 30)] {
        claw.on_feedback(
            at_ms * MS,
            &Feedback { queue_losses, ..feedback(sequence, 100 * MSS, 0.3) },
        );
        assert_eq!(claw.cwnd_bytes() / MSS, 7, "{at_ms}");
    }
    claw.on_congestion(40 * MS, &LOSS);
    assert_eq!((claw.cwnd_bytes() / MSS, claw.w_cubic_bytes() / MSS), (7, 7));
}

/// Cubic's window grows through the repair of a loss that is the radio's, as it would
/// without the loss; not while a queue stands, and not for any other loss.
#[test]
fn cubic_grows_through_a_radio_loss() {
    let check = |rtts: i64, losses: u64, expected: u64| {
        let mut claw = claw();
        claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
        claw.on_feedback(MS, &Feedback { radio_losses: losses, ..feedback(2, 100 * MSS, 0.3) });
        claw.on_congestion(2 * MS, &LOSS);
        let before = claw.w_cubic_bytes() / MSS;
        let rtt_ns = Some(rtts * RTT_NS);
        let repairs = AckEvent { rtt_ns, in_recovery: true, ..ack(MSS) };
        claw.on_ack(3 * MS, &repairs);
        assert_eq!(claw.w_cubic_bytes() / MSS - before, expected, "{rtts} {losses}");
    };
    check(1, 1, 1);
    check(1, 0, 0);
    check(3, 1, 0);
}

/// The report of the loss may come after the duplicate ACKs, and the repair ends with an ACK that
/// advances: later losses need a report of their own.
#[test]
fn a_late_report_excuses_until_the_repair_ends() {
    let mut claw = claw();
    claw.on_feedback(0, &feedback(1, 100 * MSS, 0.3));
    claw.on_ack(MS, &AckEvent { rtt_ns: Some(RTT_NS), ..ack(MSS) });
    claw.on_congestion(2 * MS, &LOSS);
    claw.on_feedback(3 * MS, &Feedback { radio_losses: 1, ..feedback(2, 100 * MSS, 0.3) });
    let repairs = AckEvent { rtt_ns: Some(RTT_NS), in_recovery: true, ..ack(MSS) };
    let grows = |claw: &mut Claw, now_ns: i64, ack: &AckEvent| {
        let before = claw.w_cubic_bytes();
        claw.on_ack(now_ns, ack);
        claw.w_cubic_bytes() > before
    };
    assert!(grows(&mut claw, 4 * MS, &repairs));
    assert!(grows(&mut claw, 5 * MS, &AckEvent { in_recovery: false, ..repairs }));
    assert!(!grows(&mut claw, 6 * MS, &repairs));
}

/// A client that names the wireline and blames the radio for all losses gains nothing.
#[test]
fn no_window_grows_in_recovery_on_a_wireline() {
    let mut claw = claw();
    claw.on_feedback(0, &Feedback { bottleneck: Bottleneck::Wireline, ..feedback(1, 0, 0.3) });
    let repairs = AckEvent { rtt_ns: Some(RTT_NS), in_recovery: true, ..ack(MSS) };
    let before = claw.w_cubic_bytes();
    for n in 1..20 {
        let wireline = Feedback { bottleneck: Bottleneck::Wireline, ..feedback(n + 1, 0, 0.3) };
        claw.on_feedback(100 * n as i64 * MS, &Feedback { radio_losses: n, ..wireline });
        claw.on_congestion((100 * n as i64 + 1) * MS, &LOSS);
        claw.on_ack((100 * n as i64 + 2) * MS, &repairs);
    }
    assert!(claw.w_cubic_bytes() <= before, "{}", claw.w_cubic_bytes());
}

/// With a standing queue, a loss counts as that queue's: a report that blames the radio,
/// before or after the fact, leaves Cubic no larger than without a client.
#[test]
fn no_loss_is_excused_in_a_queue() {
    let (mut claw, mut cubic) = (claw(), Cubic::new(MSS, 10 * MSS, true));
    cubic.on_ack(0, &ack(MSS));
    let wireline = Feedback { bottleneck: Bottleneck::Wireline, ..feedback(0, 0, 0.3) };
    claw.on_feedback(0, &wireline);
    let mut radio_losses = 0;
    let mut lie = |claw: &mut Claw, now_ns: i64| {
        radio_losses += 1;
        claw.on_feedback(now_ns, &Feedback { sequence: radio_losses, radio_losses, ..wireline });
    };
    for n in 1..40 {
        let now_ns = 100 * n * MS;
        let queued = AckEvent { rtt_ns: Some(3 * RTT_NS), ..ack(5 * MSS) };
        claw.on_ack(now_ns, &queued);
        cubic.on_ack(now_ns, &queued);
        if n % 4 == 0 {
            let flight = cubic.cwnd_bytes();
            let event = CongestionEvent { flight_size_bytes: flight, ..LOSS };
            lie(&mut claw, now_ns);
            claw.on_congestion(now_ns + MS, &event);
            cubic.on_congestion(now_ns + MS, &event);
            lie(&mut claw, now_ns + 10 * MS);
        }
        assert_eq!(claw.cwnd_bytes(), cubic.cwnd_bytes(), "{n}");
    }
}

/// Cubic's own window answers every loss, whatever a client reports: where it names the wireline,
/// and in a full cell with a smaller window of its own.
#[test]
fn no_report_excuses_a_loss_of_cubics_window() {
    let wireline = |sequence, radio_losses| Feedback {
        radio_losses,
        bottleneck: Bottleneck::Wireline,
        ..feedback(sequence, 100 * MSS, 0.3)
    };
    let full = |sequence, radio_losses| Feedback { radio_losses, ..feedback(sequence, 0, 1.0) };
    let free =
        |sequence, radio_losses| Feedback { radio_losses, ..feedback(sequence, 100 * MSS, 0.3) };
    type Report = fn(u64, u64) -> Feedback;
    let cases: [(Report, u64, u64); 3] = [(wireline, 11, 7), (full, 11, 7), (free, 100, 100)];
    for (report, before, after) in cases {
        let mut claw = claw();
        (0..8).for_each(|n| claw.on_feedback(n * RTT_NS / 4, &report(n as u64 + 1, n as u64)));
        assert_eq!(claw.cwnd_bytes() / MSS, before, "{:?}", report(1, 1));
        claw.on_congestion(2 * RTT_NS, &LOSS);
        assert_eq!(claw.cwnd_bytes() / MSS, after, "{:?}", report(1, 1));
    }
}
