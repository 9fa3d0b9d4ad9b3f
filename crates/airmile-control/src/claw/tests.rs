//! Algorithm 1 by hand, and what no feedback can do.

use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_448;
const MS: i64 = 1_000_000;
const RTT_NS: i64 = 50 * MS;

fn claw() -> Claw {
    let mut claw = Claw::new(MSS, 10 * MSS, ClawOptions::default());
    // The round trip becomes known, and Cubic's window is 11 segments.
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

fn said(sequence: u64, w_claw_bytes: u64, load: f64) -> Feedback {
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
    let wireline = |w| Feedback { bottleneck: Bottleneck::Wireline, ..said(1, w, 0.3) };
    check(said(1, 200 * MSS, 0.3), (Mode::CellFree, 200));
    // Less than Cubic's, too: it is what is free. Never under two segments.
    check(said(1, 5 * MSS, 0.3), (Mode::CellFree, 5));
    check(said(1, 0, 0.3), (Mode::CellFree, 2));
    check(wireline(200 * MSS), (Mode::Cubic, 11));
    // Until it is sure that the cell is full, it keeps what Cubic has.
    check(said(1, 4 * MSS, 0.99), (Mode::Confirming, 11));
    check(said(1, 40 * MSS, 0.99), (Mode::Confirming, 40));
    // 4 MB, and 100 Mbit/s over 50 ms: 625 kB.
    check(said(1, u64::MAX, 0.0), (Mode::CellFree, 625_000 / MSS));
    check(said(1, 200 * MSS, f64::NAN), (Mode::Cubic, 11));
    check(said(1, 200 * MSS, -0.1), (Mode::Cubic, 11));
}

/// Others fill the cell: Cubic's window is the one in use, and no ACK of the two round
/// trips is lost on it. 11 segments, doubled twice (figure 7).
#[test]
fn a_cell_that_others_fill() {
    let mut claw = claw();
    for (sequence, at_ms, acked, segments) in [(1, 0, 11, 22), (2, 40, 22, 44), (3, 80, 0, 44)] {
        claw.on_feedback(at_ms * MS, &said(sequence, 4 * MSS, 1.0));
        claw.on_ack(at_ms * MS + 1, &ack(acked * MSS));
        let now = (claw.mode(), claw.cwnd_bytes() / MSS);
        assert_eq!(now, (Mode::Confirming, segments), "{at_ms}");
    }
    claw.on_feedback(100 * MS, &said(4, 4 * MSS, 1.0));
    assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::CellFull, 44 * MSS));
    claw.on_feedback(180 * MS, &said(5, 100 * MSS, 1.0));
    assert_eq!(claw.cwnd_bytes(), 100 * MSS);
    // That there is room again is sure after as long.
    for (sequence, at_ms, expected) in [
        (6, 220, (Mode::CellFull, 44)),
        (7, 310, (Mode::CellFull, 44)),
        (8, 320, (Mode::CellFree, 20)),
    ] {
        claw.on_feedback(at_ms * MS, &said(sequence, 20 * MSS, 0.5));
        assert_eq!((claw.mode(), claw.cwnd_bytes() / MSS), expected, "{at_ms}");
    }
}

/// The client's own window fills the cell: Cubic is held for two round trips, and then has
/// what it missed. 11 segments, which their own two windows of ACKs, of 20 each, double
/// twice.
#[test]
fn a_cell_that_the_flow_fills() {
    let mut claw = claw();
    for (sequence, at_ms) in [(1, 0), (2, 40), (3, 80)] {
        claw.on_feedback(at_ms * MS, &said(sequence, 20 * MSS, 1.0));
        assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::Confirming, 20 * MSS), "{at_ms}");
    }
    claw.on_ack(50 * MS, &ack(20 * MSS));
    claw.on_ack(99 * MS, &ack(20 * MSS));
    assert_eq!(claw.w_cubic_bytes(), 11 * MSS);
    claw.on_feedback(100 * MS, &said(4, 20 * MSS, 1.0));
    assert_eq!((claw.mode(), claw.cwnd_bytes()), (Mode::CellFull, 44 * MSS));
    // Once: what it grows by then are its own ACKs.
    claw.on_feedback(140 * MS, &said(5, 20 * MSS, 1.0));
    assert_eq!(claw.cwnd_bytes(), 44 * MSS);
}

/// A client that says full and empty by turns gets no more than slow start without it.
#[test]
fn swings_do_not_lift_cubic() {
    let mut claw = claw();
    let mut cubic = crate::Cubic::new(MSS, 10 * MSS, true);
    cubic.on_ack(0, &ack(MSS));
    for n in 0..400 {
        let load = f64::from(u8::from(n % 8 < 6));
        claw.on_feedback(20 * n * MS, &said(n as u64 + 1, 0, load));
        claw.on_ack(20 * n * MS + 1, &ack(MSS));
        cubic.on_ack(20 * n * MS + 1, &ack(4 * MSS));
    }
    assert!(claw.w_cubic_bytes() <= cubic.cwnd_bytes(), "{}", claw.w_cubic_bytes());
}

/// W_cubic does not run away while the client's window is the smaller one.
#[test]
fn the_shadow_grows_only_while_it_is_not_above() {
    let mut claw = claw();
    claw.on_feedback(MS, &said(1, 4 * MSS, 0.5));
    (0..100).for_each(|n| claw.on_ack(2 * MS + n, &ack(MSS)));
    assert_eq!(claw.w_cubic_bytes(), 11 * MSS);
    claw.on_feedback(3 * MS, &said(2, 400 * MSS, 0.5));
    (0..100).for_each(|n| claw.on_ack(4 * MS + n, &ack(MSS)));
    assert!(claw.w_cubic_bytes() > 11 * MSS);
}

#[test]
fn old_feedback_and_idle_radios() {
    let check = |idle: bool, at_ms: i64, expected: Mode| {
        let mut claw = claw();
        claw.on_feedback(0, &said(1, 200 * MSS, 0.3));
        if idle {
            claw.on_feedback(MS, &Feedback { idle, ..said(2, 0, 1.0) });
        }
        claw.on_ack(at_ms * MS, &ack(0));
        assert_eq!(claw.mode(), expected, "{idle} {at_ms}");
    };
    check(false, 500, Mode::CellFree);
    check(false, 501, Mode::Cubic);
    // What an idle radio says of the load is not looked at.
    check(true, 501, Mode::CellFree);
    check(true, 10_000, Mode::CellFree);
    check(true, 10_001, Mode::Cubic);
}

#[test]
fn reports_come_late_and_twice() {
    let mut claw = claw();
    claw.on_feedback(MS, &said(7, 200 * MSS, 0.3));
    claw.on_feedback(2 * MS, &said(7, 300 * MSS, 0.3));
    claw.on_feedback(3 * MS, &said(6, 300 * MSS, 0.3));
    assert_eq!(claw.cwnd_bytes(), 200 * MSS);
}

#[test]
fn whose_losses_are() {
    let check = |radio_losses, queue_losses, told_ms: i64, expected: u64| {
        let mut claw = claw();
        claw.on_feedback(0, &said(1, 100 * MSS, 0.3));
        claw.on_feedback(
            told_ms * MS,
            &Feedback { radio_losses, queue_losses, ..said(2, 100 * MSS, 0.3) },
        );
        claw.on_congestion(101 * MS, &LOSS);
        let what = format!("{radio_losses} {queue_losses} {told_ms}");
        assert_eq!(claw.cwnd_bytes() / MSS, expected, "{what}");
    };
    check(1, 0, 100, 100);
    // Unknown, or the queue before the radio: at once, to 0.7 of what Cubic had.
    check(0, 0, 100, 7);
    check(1, 1, 100, 7);
    check(0, 3, 100, 7);
    // What the radio lost two round trips ago is another loss's reason.
    check(1, 0, 0, 7);
}

/// A report that comes after the duplicate ACKs takes the reduction back, for a round trip.
#[test]
fn a_radio_loss_is_told_late() {
    let check = |told_ms: i64, queue_losses, expected: (u64, u64)| {
        let mut claw = claw();
        claw.on_feedback(0, &said(1, 100 * MSS, 0.3));
        claw.on_congestion(MS, &LOSS);
        assert_eq!(claw.cwnd_bytes() / MSS, 7);
        let late = Feedback { radio_losses: 1, queue_losses, ..said(2, 100 * MSS, 0.3) };
        claw.on_feedback(told_ms * MS, &late);
        let windows = (claw.cwnd_bytes() / MSS, claw.w_cubic_bytes() / MSS);
        assert_eq!(windows, expected, "{told_ms} {queue_losses}");
    };
    check(50, 0, (100, 11));
    // The queue's, too; and too late: the reduction has had its round trip by then.
    check(50, 1, (7, 7));
    check(52, 0, (100, 7));
}

/// One report of a radio loss excuses one loss.
#[test]
fn a_radio_loss_excuses_once() {
    let mut claw = claw();
    claw.on_feedback(0, &said(1, 100 * MSS, 0.3));
    claw.on_feedback(0, &Feedback { radio_losses: 1, ..said(2, 100 * MSS, 0.3) });
    claw.on_congestion(MS, &LOSS);
    assert_eq!(claw.cwnd_bytes(), 100 * MSS);
    claw.on_congestion(60 * MS, &LOSS);
    assert!(claw.cwnd_bytes() < 10 * MSS);
    // After a round trip the client's window is in force again.
    claw.on_feedback(120 * MS, &Feedback { radio_losses: 1, ..said(3, 90 * MSS, 0.3) });
    assert_eq!(claw.cwnd_bytes(), 90 * MSS);
}

/// Counters run since the client's program began: a connection's first report tells of no
/// loss, and hides none.
#[test]
fn counters_begin_with_the_first_report() {
    let check = |later: (u64, u64), expected: u64| {
        let mut claw = claw();
        let told = |sequence, (radio_losses, queue_losses)| Feedback {
            radio_losses,
            queue_losses,
            ..said(sequence, 100 * MSS, 0.3)
        };
        claw.on_feedback(0, &told(1, (5, 3)));
        claw.on_feedback(MS, &told(2, later));
        claw.on_congestion(2 * MS, &LOSS);
        assert_eq!(claw.cwnd_bytes() / MSS, expected, "{later:?}");
    };
    check((5, 3), 7);
    check((6, 3), 100);
    check((5, 4), 7);
}

/// The queue before the radio ran over: at once, before duplicate ACKs, and once.
#[test]
fn a_queue_that_ran_over() {
    let mut claw = claw();
    claw.on_feedback(0, &said(1, 100 * MSS, 0.3));
    for (sequence, queue_losses, at_ms) in [(2, 1, 10), (3, 2, 20), (4, 2, 30)] {
        claw.on_feedback(at_ms * MS, &Feedback { queue_losses, ..said(sequence, 100 * MSS, 0.3) });
        assert_eq!(claw.cwnd_bytes() / MSS, 7, "{at_ms}");
    }
    claw.on_congestion(40 * MS, &LOSS);
    assert_eq!((claw.cwnd_bytes() / MSS, claw.w_cubic_bytes() / MSS), (7, 7));
}

/// Where a queue stands, a loss is that queue's: calling it the radio's, before or after
/// the fact, leaves Cubic no larger than it is without a client.
#[test]
fn no_loss_is_excused_in_a_queue() {
    let (mut claw, mut cubic) = (claw(), Cubic::new(MSS, 10 * MSS, true));
    cubic.on_ack(0, &ack(MSS));
    let wireline = Feedback { bottleneck: Bottleneck::Wireline, ..said(0, 0, 0.3) };
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

/// A client that calls every loss the radio's, or whose first report lets Cubic grow and
/// then gets old, has a window no larger than the cap, and no pace above it.
#[test]
fn the_cap_is_cubics_too() {
    let limits = OperatorLimits { window_bytes: 20 * MSS, rate_bps: 10_000_000 };
    let check = |feedback: &Feedback, at_ms: i64, expected: Mode| {
        let options = ClawOptions { limits, ..ClawOptions::default() };
        let mut claw = Claw::new(MSS, 40 * MSS, options);
        claw.on_ack(0, &ack(MSS));
        // Nothing was told yet: plain Cubic, at the transport's pace.
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
    let all = said(1, u64::MAX, 0.0);
    check(&all, 10, Mode::CellFree);
    // The same report again and again, until it is too old.
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

    /// A round trip that delivers so many segments and takes so many least ones.
    fn round_trip(&mut self, now_ns: i64, segments: u64, rtts: i64, lost: bool) {
        self.sent += 400 * MSS;
        self.sequence += 1;
        self.claw.on_feedback(now_ns, &said(self.sequence, 400 * MSS, self.load));
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

/// Three round trips with a queue take its word from it, and each further time for longer.
/// What Cubic grew by meanwhile goes with it, and the window is no more than 2.5 times what
/// the path has shown.
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

/// The same where the client says that the cell is full, and where what is too much is
/// dropped, which shows a round trip later, and no queue stands.
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
    // What passes slowly without queue or loss tells nothing.
    check(0.3, 1, false, false);
}

#[test]
fn wireline_or_cell() {
    use Bottleneck::{Cellular, Unclear, Wireline};
    let check = |round_trips: &[(f64, f64, bool)], expected: Bottleneck| {
        let mut detector = BottleneckDetector::new(DetectorOptions::default());
        for (used, free, busy) in round_trips {
            detector.on_round_trip(*used, *free, *busy);
        }
        assert_eq!(detector.verdict(), expected, "{round_trips:?}");
    };
    let (short, used) = ((100.0, 1_000.0, true), (900.0, 1_000.0, true));
    check(&[], Cellular);
    check(&[short; 3], Cellular);
    // The first has nothing before it: three comparisons need four round trips.
    check(&[short; 4], Wireline);
    check(&[used; 4], Cellular);
    check(&[short, short, short, used, short], Cellular);
    // A pause tells nothing.
    check(&[short, short, (0.0, 1_000.0, false), short, short], Cellular);
    let now_this_now_that = [[short; 4], [used; 4], [short; 4], [used; 4]].concat();
    check(&now_this_now_that, Unclear);
    let mut detector = BottleneckDetector::new(DetectorOptions::default()).remembering(Wireline);
    assert_eq!(detector.on_round_trip(1.0, 2.0, true), Wireline);
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
    /// Whatever a client says and in whatever order, from its first report on window and
    /// pace are within the operator's limits, in every mode; before, it is Cubic's.
    #[test]
    fn no_feedback_passes_the_limits(
        steps in prop::collection::vec((any_feedback(), 0_u8..4, 0_i64..400), 1..60),
    ) {
        let limits = OperatorLimits { window_bytes: 60 * MSS, rate_bps: 12_000_000 };
        let options = ClawOptions { limits, ..ClawOptions::default() };
        let mut claw = Claw::new(MSS, 10 * MSS, options);
        claw.on_ack(0, &ack(MSS));
        let (mut now_ns, mut told) = (0, false);
        for (feedback, what, after_ms) in steps {
            now_ns += after_ms * MS;
            told |= what > 2;
            match what {
                0 => claw.on_congestion(now_ns, &LOSS),
                1 => claw.on_rto(now_ns, 10 * MSS, false),
                2 => claw.on_ack(now_ns, &ack(20 * MSS)),
                _ => claw.on_feedback(now_ns, &feedback),
            }
            // 12 Mbit/s over 50 ms: 75 kB, fewer than 60 segments.
            let most = if told { 75_000 } else { claw.w_cubic_bytes() };
            prop_assert!((MSS..=most).contains(&claw.cwnd_bytes()), "{claw:?}");
            let bps = claw.pacing_rate_bps();
            prop_assert!(bps.map_or(!told, |bps| bps <= limits.rate_bps), "{claw:?}");
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
