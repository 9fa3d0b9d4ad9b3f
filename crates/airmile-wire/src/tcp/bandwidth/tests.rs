use super::*;

const AUTO: SendRateThreshold = SendRateThreshold::Auto;

/// An ACK of two segments of 1448 bytes, the `n`th, at `at_ms` by the monitor; both passed it
/// `took_ms` before.
const fn ack(n: i64, at_ms: i64, took_ms: i64) -> Acked {
    let sent_ns = (at_ms - took_ms) * 1_000_000;
    Acked {
        at_ns: at_ms * 1_000_000,
        ticks: at_ms as u32,
        edge: n * 2_896,
        sent_ns,
        first_sent_ns: sent_ns,
        segments: 2,
        stopped: false,
    }
}

/// The windows of ACKs, whose clock ticks each ms.
fn windows(
    acks: impl IntoIterator<Item = Acked>,
    threshold: SendRateThreshold,
) -> Vec<BandwidthWindow> {
    let mut bandwidth = Bandwidth::default();
    acks.into_iter().for_each(|acked| bandwidth.push(&acked, threshold));
    bandwidth.drain_windows(1e6, true, threshold)
}

/// 2 s of ACKs every 10 ms, of segments that passed 60 ms before (and of early ones that took
/// 20), and how many windows they give; `stopped` by the number of the ACK.
#[track_caller]
fn check(threshold: SendRateThreshold, stopped: impl Fn(i64) -> bool, expected: usize) {
    let acks = (0..200)
        .map(|n| Acked { stopped: stopped(n), ..ack(n, n * 10, if n == 0 { 20 } else { 60 }) });
    assert_eq!(windows(acks, threshold).len(), expected);
}

#[test]
fn late_acks_are_a_queue_where_the_sender_is_not_stopped() {
    check(AUTO, |_| false, 8);
    // A reader that reads every 40 ms.
    check(AUTO, |n| n % 4 == 0, 0);
    // One that pauses for half a second.
    check(AUTO, |n| (100..150).contains(&n), 6);
    check(SendRateThreshold::Fixed(1e6), |n| n % 4 == 0, 8);
}

/// The number of windows of 2 s of ACKs every 10 ms, whose segments take `forward_ms` to the
/// receiver and that take `back_ms` themselves; of the first, both are 10 ms.
#[track_caller]
fn check_ways(forward_ms: i64, back_ms: i64, expected: usize) {
    let acks = (0..200).map(|n| {
        let (forward_ms, back_ms) = if n == 0 { (10, 10) } else { (forward_ms, back_ms) };
        let at_ms = n * 10;
        Acked { ticks: (at_ms - back_ms + 1_000) as u32, ..ack(n, at_ms, back_ms + forward_ms) }
    });
    assert_eq!(windows(acks, AUTO).len(), expected);
}

#[test]
fn acks_that_wait_for_the_uplink_are_no_queue_of_segments() {
    check_ways(10, 10, 0);
    check_ways(10, 300, 0);
    // The other way about, and both alike.
    check_ways(300, 10, 8);
    check_ways(150, 150, 8);
}

#[test]
fn an_outage_counts_in_the_window_after_it() {
    // ACKs every 10 ms, none for 230 ms from 610 ms on: the queue stands all the time.
    let acks = (0..62).chain(84..200).zip(0..).map(|(at, n)| {
        let took_ms = if n == 0 { 20 } else { 60 + i64::from(at >= 84) * 230 };
        ack(n, at * 10, took_ms)
    });
    let windows = windows(acks, AUTO);
    for pair in windows.windows(2) {
        assert_eq!(pair[0].end_ns(), pair[1].begin_ns(), "{windows:?}");
    }
    assert!(windows.len() >= 6, "{windows:?}");
}

#[test]
fn a_window_does_not_begin_where_the_reader_stopped_the_sender() {
    // Each 220 ms a pause, and ACKs 60 ms late after it: one alone, so no window.
    let acks = (0..40).flat_map(|n| {
        [(0, 20, 0, true), (76, 76, 4_344, false), (130, 60, 8_688, true)].map(
            |(after_ms, took_ms, edge, stopped)| Acked {
                edge: n * 8_688 + edge,
                segments: 3,
                stopped,
                ..ack(0, n * 220 + after_ms, took_ms)
            },
        )
    });
    assert!(windows(acks, AUTO).is_empty());
}

#[test]
fn a_pause_gives_no_second_window_of_the_acks_before_it() {
    // A queue until 480 ms; the next ACK, in the next bin, is of a segment sent after it was empty.
    let acks = (0..49).chain([70]).zip(0..);
    let acks = acks.map(|(at, n)| ack(n, at * 10, if n == 0 { 20 } else { 60 }));
    let ends: Vec<_> = windows(acks, AUTO).iter().map(BandwidthWindow::end_ns).collect();
    assert!(ends.len() == 2 && ends[0] < ends[1], "{ends:?}");
}
