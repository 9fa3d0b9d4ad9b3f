use super::*;

/// 2 s of ACKs every 10 ms, each of two segments that passed 60 ms before (and
/// one early that took 20), and how many windows they give; `stopped` by the
/// number of the ACK.
#[track_caller]
fn check(threshold: SendRateThreshold, stopped: impl Fn(i64) -> bool, expected: usize) {
    let mut bandwidth = Bandwidth::default();
    for n in 0..200 {
        let (at_ns, took) = (n * 10_000_000, if n == 0 { 20 } else { 60 });
        let acked = Acked {
            at_ns,
            ticks: n as u32 * 10,
            edge: n * 2896,
            sent_ns: at_ns - took * 1_000_000,
            first_sent_ns: at_ns - took * 1_000_000,
            segments: 2,
            stopped: stopped(n),
        };
        bandwidth.push(&acked, threshold);
    }
    assert_eq!(bandwidth.drain_windows(1e6, true, threshold).len(), expected);
}

#[test]
fn acks_that_wait_for_the_uplink_are_no_queue_of_segments() {
    // Segments take 10 ms to the receiver, their ACKs 10 ms more, later 300.
    for (back_ms, expected) in [(10, 0), (300, 0)] {
        assert_eq!(windows_of_late_acks(10, back_ms), expected);
    }
    // The other way about, and both alike.
    assert_eq!(windows_of_late_acks(300, 10), 8);
    assert_eq!(windows_of_late_acks(150, 150), 8);
}

/// 2 s of ACKs every 10 ms of which one at the beginning took 20 ms; the number of windows.
fn windows_of_late_acks(forward_ms: i64, back_ms: i64) -> usize {
    let mut bandwidth = Bandwidth::default();
    for n in 0..200 {
        let (forward_ms, back_ms) = if n == 0 { (10, 10) } else { (forward_ms, back_ms) };
        let at_ms = n * 10;
        let sent_ns = (at_ms - back_ms - forward_ms) * 1_000_000;
        let acked = Acked {
            at_ns: at_ms * 1_000_000,
            ticks: (at_ms - back_ms + 1_000) as u32,
            edge: n * 2896,
            sent_ns,
            first_sent_ns: sent_ns,
            segments: 2,
            stopped: false,
        };
        bandwidth.push(&acked, SendRateThreshold::Auto);
    }
    bandwidth.drain_windows(1e6, true, SendRateThreshold::Auto).len()
}

#[test]
fn an_outage_counts_in_the_window_after_it() {
    // ACKs every 10 ms, none for 230 ms from 610 ms on: the queue stands all the time.
    let mut bandwidth = Bandwidth::default();
    let times = (0..62).chain(84..200).enumerate();
    for (n, at) in times {
        let at_ns = at * 10_000_000;
        let took = if n == 0 { 20 } else { 60 + i64::from(at >= 84) * 230 };
        let sent_ns = at_ns - took * 1_000_000;
        let acked = Acked {
            at_ns,
            ticks: at as u32 * 10,
            edge: n as i64 * 2896,
            sent_ns,
            first_sent_ns: sent_ns,
            segments: 2,
            stopped: false,
        };
        bandwidth.push(&acked, SendRateThreshold::Auto);
    }
    let windows = bandwidth.drain_windows(1e6, true, SendRateThreshold::Auto);
    for pair in windows.windows(2) {
        assert_eq!(pair[0].to_ns, pair[1].from_ns, "{windows:?}");
    }
    assert!(windows.len() >= 6, "{windows:?}");
}

#[test]
fn a_window_does_not_begin_where_the_reader_stopped_the_sender() {
    // Each 220 ms a pause, and ACKs 60 ms late after it: one alone, so no window.
    let mut bandwidth = Bandwidth::default();
    for n in 0..40 {
        for (after_ms, took_ms, edge, stopped) in
            [(0, 20, 0, true), (76, 76, 4_344, false), (130, 60, 8_688, true)]
        {
            let at_ms = n * 220 + after_ms;
            let sent_ns = (at_ms - took_ms) * 1_000_000;
            let acked = Acked {
                at_ns: at_ms * 1_000_000,
                ticks: at_ms as u32,
                edge: n * 8_688 + edge,
                sent_ns,
                first_sent_ns: sent_ns,
                segments: 3,
                stopped,
            };
            bandwidth.push(&acked, SendRateThreshold::Auto);
        }
    }
    assert!(bandwidth.drain_windows(1e6, true, SendRateThreshold::Auto).is_empty());
}

#[test]
fn late_acks_are_a_queue_where_the_sender_is_not_stopped() {
    check(SendRateThreshold::Auto, |_| false, 8);
    // A reader that reads every 40 ms.
    check(SendRateThreshold::Auto, |n| n % 4 == 0, 0);
    // One that pauses for half a second.
    check(SendRateThreshold::Auto, |n| (100..150).contains(&n), 6);
    check(SendRateThreshold::Fixed(1e6), |n| n % 4 == 0, 8);
}
