//! Hand-computed cases of Algorithm 1, and what feedback must not be able to do.

mod losses;

use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_448;
const MS: i64 = 1_000_000;
const RTT_NS: i64 = 50 * MS;

fn claw() -> Claw {
    let mut claw = Claw::new(MSS, 10 * MSS, ClawOptions::default());
    // The first RTT sample; Cubic's window is 11 segments.
    claw.on_ack(0, &ack(MSS));
    claw
}

fn ack(acked_bytes: u64) -> AckEvent {
    AckEvent {
        acked_bytes,
        rtt_ns: Some(RTT_NS),
        srtt_ns: Some(RTT_NS),
        window_limited: true,
        ..AckEvent::default()
    }
}

fn feedback(sequence: u64, w_claw_bytes: u64, load: f64) -> Feedback {
    Feedback {
        sequence,
        w_claw_bytes,
        load,
        bottleneck: Bottleneck::Cellular,
        idle: false,
        radio_losses: 0,
        queue_losses: 0,
    }
}

const LOSS: CongestionEvent =
    CongestionEvent { kind: CongestionKind::Loss, flight_size_bytes: 100 * MSS, lost_bytes: MSS };

#[test]
fn algorithm_1() {
    let check = |feedback: Feedback, expected: (Mode, u64)| {
        let mut claw = claw();
        claw.on_feedback(MS, &feedback);
        assert_eq!((claw.mode(), claw.cwnd_bytes() / MSS), expected, "{feedback:?}");
    };
    let wireline = |w| Feedback { bottleneck: Bottleneck::Wireline, ..feedback(1, w, 0.3) };
    check(feedback(1, 200 * MSS, 0.3), (Mode::CellFree, 200));
    // Also when less than Cubic's: it is the free capacity. Never below two segments.
    check(feedback(1, 5 * MSS, 0.3), (Mode::CellFree, 5));
    check(feedback(1, 0, 0.3), (Mode::CellFree, 2));
    check(wireline(200 * MSS), (Mode::Cubic, 11));
    // Until the cell is confirmed full, Cubic's window is kept.
    check(feedback(1, 4 * MSS, 0.99), (Mode::Confirming, 11));
    check(feedback(1, 40 * MSS, 0.99), (Mode::Confirming, 40));
    // 4 MB, and 100 Mbit/s over 50 ms: 625 kB.
    check(feedback(1, u64::MAX, 0.0), (Mode::CellFree, 625_000 / MSS));
    check(feedback(1, 200 * MSS, f64::NAN), (Mode::Cubic, 11));
    check(feedback(1, 200 * MSS, -0.1), (Mode::Cubic, 11));
}

/// Other users fill the cell: Cubic's window is in use and loses no ACK of the two round
/// trips. 11 segments, doubled twice (figure 7).
#[test]
fn a_cell_that_others_fill() {
    let mut claw = claw();
    for (sequence, at_ms, acked, segments) in [(1, 0, 11, 22), (2, 40, 22, 44), (3, 80, 0, 44)] {
        claw.on_feedback(at_ms * MS, &feedback(sequence, 4 * MSS, 1.0));
        claw.on_ack(at_ms * MS + 1, &ack(acked * MSS));
        let now = (claw.mode(), claw.cwnd_bytes() / MSS);
        assert_eq!(now, (Mode::Confirming, segments), "{at_ms}");
    }
    claw.on_feedback(100 * MS, &feedback(4, 4 * MSS, 1.0));
    assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::CellFull, 44 * MSS));
    claw.on_feedback(180 * MS, &feedback(5, 100 * MSS, 1.0));
    assert_eq!(claw.cwnd_bytes(), 100 * MSS);
    // Free capacity is confirmed after the same time.
    for (sequence, at_ms, expected) in [
        (6, 220, (Mode::CellFull, 44)),
        (7, 310, (Mode::CellFull, 44)),
        (8, 320, (Mode::CellFree, 20)),
    ] {
        claw.on_feedback(at_ms * MS, &feedback(sequence, 20 * MSS, 0.5));
        assert_eq!((claw.mode(), claw.cwnd_bytes() / MSS), expected, "{at_ms}");
    }
}

/// The client's own window fills the cell: Cubic is suspended for two round trips and then
/// catches up. 11 segments, doubled twice by two windows of 20 ACKs each.
#[test]
fn a_cell_that_the_flow_fills() {
    let mut claw = claw();
    for (sequence, at_ms) in [(1, 0), (2, 40), (3, 80)] {
        claw.on_feedback(at_ms * MS, &feedback(sequence, 20 * MSS, 1.0));
        assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::Confirming, 20 * MSS), "{at_ms}");
    }
    claw.on_ack(50 * MS, &ack(20 * MSS));
    claw.on_ack(99 * MS, &ack(20 * MSS));
    assert_eq!(claw.w_cubic_bytes(), 11 * MSS);
    claw.on_feedback(100 * MS, &feedback(4, 20 * MSS, 1.0));
    assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::CellFull, 44 * MSS));
    // Only once: from then on it grows by its own ACKs.
    claw.on_feedback(140 * MS, &feedback(5, 20 * MSS, 1.0));
    assert_eq!(claw.cwnd_bytes(), 44 * MSS);
}

/// A client that alternates between full and empty gets no more than slow start would give
/// it.
#[test]
fn swings_do_not_lift_cubic() {
    let mut claw = claw();
    let mut cubic = crate::Cubic::new(MSS, 10 * MSS, true);
    cubic.on_ack(0, &ack(MSS));
    for n in 0..400 {
        let load = f64::from(u8::from(n % 8 < 6));
        claw.on_feedback(20 * n * MS, &feedback(n as u64 + 1, 0, load));
        claw.on_ack(20 * n * MS + 1, &ack(MSS));
        cubic.on_ack(20 * n * MS + 1, &ack(4 * MSS));
    }
    assert!(claw.w_cubic_bytes() <= cubic.cwnd_bytes(), "{}", claw.w_cubic_bytes());
}

/// W_cubic does not grow without bound while the client's window is the smaller one.
#[test]
fn the_shadow_grows_only_while_it_is_not_above() {
    let mut claw = claw();
    claw.on_feedback(MS, &feedback(1, 4 * MSS, 0.5));
    (0..100).for_each(|n| claw.on_ack(2 * MS + n, &ack(MSS)));
    assert_eq!(claw.w_cubic_bytes(), 11 * MSS);
    claw.on_feedback(3 * MS, &feedback(2, 400 * MSS, 0.5));
    (0..100).for_each(|n| claw.on_ack(4 * MS + n, &ack(MSS)));
    assert!(claw.w_cubic_bytes() > 11 * MSS);
}

#[test]
fn old_feedback_and_idle_radios() {
    let check = |idle: bool, at_ms: i64, expected: Mode| {
        let mut claw = claw();
        claw.on_feedback(0, &feedback(1, 200 * MSS, 0.3));
        if idle {
            claw.on_feedback(MS, &Feedback { idle, ..feedback(2, 0, 1.0) });
        }
        claw.on_ack(at_ms * MS, &ack(0));
        assert_eq!(claw.mode(), expected, "{idle} {at_ms}");
    };
    check(false, 500, Mode::CellFree);
    check(false, 501, Mode::Cubic);
    // The load reported by an idle radio is ignored.
    check(true, 501, Mode::CellFree);
    check(true, 10_000, Mode::CellFree);
    check(true, 10_001, Mode::Cubic);
}

#[test]
fn reports_come_late_and_twice() {
    let mut claw = claw();
    claw.on_feedback(MS, &feedback(7, 200 * MSS, 0.3));
    claw.on_feedback(2 * MS, &feedback(7, 300 * MSS, 0.3));
    claw.on_feedback(3 * MS, &feedback(6, 300 * MSS, 0.3));
    assert_eq!(claw.cwnd_bytes(), 200 * MSS);
}

/// A client that blames the radio for every loss, or whose first report lets Cubic grow and
/// then expires, exceeds neither the window cap nor the rate limit.
#[test]
fn the_cap_is_cubics_too() {
    let limits = OperatorLimits { window_bytes: 20 * MSS, rate_bps: 10_000_000 };
    let check = |feedback: &Feedback, at_ms: i64, expected: Mode| {
        let options = ClawOptions { limits, ..ClawOptions::default() };
        let mut claw = Claw::new(MSS, 40 * MSS, options);
        claw.on_ack(0, &ack(MSS));
        // No feedback yet: plain Cubic, at the transport's pacing rate.
        assert_eq!((claw.cwnd_bytes() / MSS, claw.pacing_rate_bps()), (41, None));
        claw.on_feedback(MS, feedback);
        assert_eq!(claw.cwnd_bytes() / MSS, 20, "{feedback:?}");
        claw.on_feedback(2 * MS, &Feedback { sequence: 2, radio_losses: 1, ..*feedback });
        claw.on_congestion(2 * MS, &LOSS);
        claw.on_feedback(3 * MS, feedback);
        (0..100).for_each(|n| claw.on_ack(at_ms * MS + n, &ack(5 * MSS)));
        let now = (claw.mode(), claw.cwnd_bytes() / MSS);
        assert_eq!(now, (expected, 20), "{feedback:?} {at_ms}");
        assert!(claw.pacing_rate_bps().is_some_and(|bps| bps <= limits.rate_bps));
    };
    let all = feedback(1, u64::MAX, 0.0);
    check(&all, 10, Mode::CellFree);
    // The same report repeated until it expires.
    check(&all, 600, Mode::Cubic);
    check(&Feedback { bottleneck: Bottleneck::Wireline, ..all }, 10, Mode::Cubic);
    check(&Feedback { load: f64::NAN, ..all }, 10, Mode::Cubic);
}

/// A connection whose client asks for 400 segments on a path that delivers fewer.
struct Short {
    claw: Claw,
    sent: u64,
    sequence: u64,
    load: f64,
}

impl Short {
    fn new(load: f64) -> Self {
        Self { claw: claw(), sent: 0, sequence: 0, load }
    }

    /// A round trip that delivers the given segments and lasts the given number of minimum
    /// RTTs.
    fn round_trip(&mut self, now_ns: i64, segments: u64, rtts: i64, lost: bool) {
        self.sent += 400 * MSS;
        self.sequence += 1;
        self.claw.on_feedback(now_ns, &feedback(self.sequence, 400 * MSS, self.load));
        if lost {
            self.claw.on_congestion(now_ns, &LOSS);
        }
        let ack = AckEvent {
            rtt_ns: Some(rtts * RTT_NS),
            delivery_rate_bps: Some(segments * MSS * 8 * 20),
            acked_to: self.sent - 400 * MSS,
            sent_to: self.sent,
            ..ack(MSS)
        };
        self.claw.on_ack(now_ns, &ack);
    }
}

/// Three round trips with a queue withdraw trust, each further time for longer. Cubic's
/// growth in that time is dropped too, and the window is at most 2.5 times what the path
/// has delivered.
#[test]
fn a_window_that_is_not_delivered() {
    let mut path = Short::new(0.3);
    for n in 0..3 {
        assert!(!path.claw.distrusts(n * RTT_NS), "{n}");
        path.round_trip(n * RTT_NS, 40, 4, false);
    }
    let now_ns = 2 * RTT_NS;
    assert!(path.claw.distrusts(now_ns) && path.claw.mode() == Mode::Cubic);
    assert!(path.claw.ssthresh_bytes() < u64::MAX, "slow start is over");
    assert!(path.claw.distrusts(now_ns + 2_999 * MS) && !path.claw.distrusts(now_ns + 3_000 * MS));
    for n in 0..3 {
        path.round_trip(4_000 * MS + n * RTT_NS, 30, 4, false);
        assert!(path.claw.cwnd_bytes() <= 100 * MSS, "{n}");
    }
    assert!(path.claw.distrusts(9_000 * MS));
}

/// The same if the client reports a full cell, and if the excess is dropped, which shows
/// one round trip later and without a standing queue.
#[test]
fn full_cells_and_policers_are_no_way_round() {
    let check = |load: f64, rtts: i64, lost: bool, expected: bool| {
        let mut path = Short::new(load);
        (0..8).for_each(|n| path.round_trip(n * RTT_NS, 40, rtts, lost && n % 2 == 1));
        assert_eq!(path.claw.distrusts(7 * RTT_NS), expected, "{load} {rtts} {lost}");
    };
    check(1.0, 4, false, true);
    check(0.3, 1, true, true);
    check(1.0, 1, true, true);
    // Slow delivery without queue or loss carries no information.
    check(0.3, 1, false, false);
}

/// A client that alternates between a large window and none is judged by the large one, also where
/// a loss or the end of a round trip is seen with the small one.
#[test]
fn swings_are_judged_by_the_larger_window() {
    let mut path = Short::new(0.3);
    for n in 0..12 {
        path.round_trip(n * RTT_NS, 40, 1, false);
        path.sequence += 1;
        let none = feedback(path.sequence, 0, 1.0);
        path.claw.on_feedback(n * RTT_NS + MS, &none);
        if n % 3 == 2 {
            path.claw.on_congestion(n * RTT_NS + 2 * MS, &LOSS);
        }
    }
    assert!(path.claw.distrusts(12 * RTT_NS));
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    let bottleneck = prop_oneof![
        Just(Bottleneck::Cellular),
        Just(Bottleneck::Wireline),
        Just(Bottleneck::Unclear)
    ];
    let counts = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    (counts, any::<f64>(), bottleneck, any::<bool>()).prop_map(
        |((sequence, w_claw_bytes, radio_losses, queue_losses), load, bottleneck, idle)| Feedback {
            sequence,
            w_claw_bytes,
            load,
            bottleneck,
            idle,
            radio_losses,
            queue_losses,
        },
    )
}

proptest! {
    /// Whatever a client reports and in whatever order, window and pacing rate stay within
    /// the operator's limits in every mode from its first report on; before it, the window
    /// is Cubic's.
    #[test]
    fn no_feedback_passes_the_limits(
        steps in prop::collection::vec((any_feedback(), 0_u8..4, 0_i64..400), 1..60),
    ) {
        let limits = OperatorLimits { window_bytes: 60 * MSS, rate_bps: 12_000_000 };
        let options = ClawOptions { limits, ..ClawOptions::default() };
        let mut claw = Claw::new(MSS, 10 * MSS, options);
        claw.on_ack(0, &ack(MSS));
        let (mut now_ns, mut has_feedback) = (0, false);
        for (feedback, what, after_ms) in steps {
            now_ns += after_ms * MS;
            has_feedback |= what > 2;
            match what {
                0 => claw.on_congestion(now_ns, &LOSS),
                1 => claw.on_rto(now_ns, 10 * MSS, false),
                2 => claw.on_ack(now_ns, &ack(20 * MSS)),
                _ => claw.on_feedback(now_ns, &feedback),
            }
            // 12 Mbit/s over 50 ms: 75 kB, fewer than 60 segments.
            let most = if has_feedback { 75_000 } else { claw.w_cubic_bytes() };
            prop_assert!((MSS..=most).contains(&claw.cwnd_bytes()), "{claw:?}");
            let bps = claw.pacing_rate_bps();
            prop_assert!(bps.map_or(!has_feedback, |bps| bps <= limits.rate_bps), "{claw:?}");
        }
    }

    /// Without feedback it is Cubic, ACK by ACK.
    #[test]
    fn without_feedback_it_is_cubic(steps in prop::collection::vec(0_u8..20, 1..200)) {
        let mut cubic = Cubic::new(MSS, 10 * MSS, true);
        let mut claw = Claw::new(MSS, 10 * MSS, ClawOptions::default());
        for (n, what) in steps.into_iter().enumerate() {
            let now_ns = n as i64 * 7 * MS;
            match what {
                0 => {
                    let flight = claw.cwnd_bytes();
                    let event = CongestionEvent { flight_size_bytes: flight, ..LOSS };
                    cubic.on_congestion(now_ns, &event);
                    claw.on_congestion(now_ns, &event);
                }
                1 => {
                    cubic.on_rto(now_ns, 5 * MSS, false);
                    claw.on_rto(now_ns, 5 * MSS, false);
                }
                _ => {
                    cubic.on_ack(now_ns, &ack(2 * MSS));
                    claw.on_ack(now_ns, &ack(2 * MSS));
                }
            }
            prop_assert_eq!(claw.cwnd_bytes(), cubic.cwnd_bytes());
        }
    }
}
