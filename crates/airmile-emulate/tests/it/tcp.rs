//! TCP over a link in virtual time.

use crate::support::{LinkConfig, MS, Pair};
use airmile_control::ControllerKind;
use airmile_emulate::tcp::{
    EventKind, LossDetection, ReceiveConfig, Retransmission, RtoConfig, RttSource, TcpConfig,
    TcpEvent, TcpState,
};
use proptest::prelude::*;

pub const SECOND: i64 = 1_000_000_000;
pub const RENO: ControllerKind = ControllerKind::NewReno;
pub const CUBIC: ControllerKind = ControllerKind::Cubic { hystart: false };
const BBR3: ControllerKind = ControllerKind::Bbr3 { seed: 1 };
const COPA: ControllerKind = ControllerKind::Copa { radio_delay_ms: 0 };
const HYSTART: ControllerKind = ControllerKind::Cubic { hystart: true };

pub fn config(control: ControllerKind) -> TcpConfig {
    TcpConfig { control, ..TcpConfig::default() }
}

/// The return path: the same delay, without a limit.
fn back(down: LinkConfig) -> LinkConfig {
    LinkConfig { rate_bps: None, queue_packets: 100_000, loss: 0.0, ..down }
}

fn pair(config: &TcpConfig, down: LinkConfig, seed: u64) -> Pair {
    Pair::new(config.clone(), config.clone(), down, back(down), seed)
}

fn events(pair: &mut Pair) -> Vec<TcpEvent> {
    pair.server.as_mut().map(|s| s.take_events()).unwrap_or_default()
}

/// Ten seconds of sending: Mbit/s of data read, segments retransmitted, packets lost by the
/// link.
fn ten_seconds(config: &TcpConfig, down: LinkConfig) -> (f64, u64, u64) {
    let mut pair = pair(config, down, 1);
    pair.to_write = u64::MAX / 2;
    pair.run(10 * SECOND);
    let stats = pair.server().stats();
    (pair.read_bytes as f64 * 8.0 / 1e7, stats.retransmissions(), pair.down.dropped)
}

#[test]
fn throughput_table() {
    // A 1,500 byte packet carries 1,448 bytes: of 10 Mbit/s 9.65 are data; less the
    // handshake and slow start, and with a shallow queue the capacity that the halved
    // window leaves idle.
    let link = LinkConfig::new;
    let lossy = LinkConfig { loss: 0.01, ..link(10_000_000, 20, 1000) };
    #[rustfmt::skip]
    let table = [
        (RENO,    link(10_000_000, 20, 50),  9.4, 9.65),
        (CUBIC,   link(10_000_000, 20, 50),  9.4, 9.65),
        (HYSTART, link(10_000_000, 20, 50),  9.4, 9.65),
        (RENO,    link(50_000_000, 10, 100), 46.0, 48.3),
        (CUBIC,   link(50_000_000, 10, 100), 46.0, 48.3),
        // A queue of a fifth of the bandwidth-delay product (33 packets).
        (RENO,    link(10_000_000, 20, 6),   7.0, 9.0),
        (CUBIC,   link(10_000_000, 20, 6),   7.5, 9.3),
        // Mathis et al. 1997: MSS / RTT * sqrt(3 / 2) / sqrt(p) = 3.5 Mbit/s
        // for 40 ms and 1 %, without the delayed ACKs' sqrt(2).
        (RENO,    lossy,                     2.5, 5.0),
        (CUBIC,   lossy,                     2.8, 5.5),
        // One packet of 33 is over BBRv3's threshold of 2 %; Copa ignores losses.
        (BBR3,    link(10_000_000, 20, 1000), 9.0, 9.65),
        (COPA,    link(10_000_000, 20, 1000), 9.0, 9.65),
        (BBR3,    lossy,                     5.5, 9.3),
        (COPA,    lossy,                     8.8, 9.65),
    ];
    for (control, down, low, high) in table {
        for loss_detection in [LossDetection::Rack, LossDetection::DupAck] {
            let config = TcpConfig { loss_detection, ..config(control) };
            let (mbps, again, lost) = ten_seconds(&config, down);
            let row = format!("{control:?} {loss_detection:?} {down:?}: {mbps:.2} Mbit/s");
            assert!((low..=high).contains(&mbps), "{row}");
            // Without reordering only lost segments are retransmitted; the last of them may
            // still be in transit.
            assert!(again <= lost + 1 && again + 60 >= lost, "{row}: {again} for {lost}");
        }
    }
}

#[test]
fn reordering_is_learnt() {
    // One packet in a hundred arrives 8 ms late, after seven others, so three duplicate
    // ACKs mark each as lost. RACK waits a quarter of a round trip once it has seen the
    // reordering.
    let late =
        LinkConfig { reorder: 0.01, reorder_ns: 8 * MS, ..LinkConfig::new(10_000_000, 20, 200) };
    let run = |loss_detection| {
        // A window that the queue can hold: nothing is lost.
        let receive = ReceiveConfig { buffer_bytes: 200_000, max_buffer_bytes: 0 };
        let config = TcpConfig { loss_detection, receive, ..config(HYSTART) };
        let mut pair = pair(&config, late, 1);
        pair.to_write = u64::MAX / 2;
        pair.run(10 * SECOND);
        assert_eq!(pair.down.dropped, 0);
        (pair.read_bytes as f64 * 8.0 / 1e7, pair.server().stats())
    };
    let (rack_mbps, rack) = run(LossDetection::Rack);
    let (_, dup_ack) = run(LossDetection::DupAck);
    assert!(rack_mbps > 9.0, "{rack_mbps}");
    assert!(rack.retransmissions() < 10, "{rack:?}");
    assert!(dup_ack.retransmissions() > 30, "{dup_ack:?}");
    // The receiver reports every duplicate, and the reductions are undone.
    assert!(dup_ack.spurious_retransmissions > 30 && dup_ack.undone > 20, "{dup_ack:?}");
}

#[test]
fn round_trips_are_measured_by_any_source() {
    // 20 ms each way and a window that builds no queue: 40 ms to a tick.
    for (rtt_source, tick_ms) in
        [(RttSource::SentTimes, 1), (RttSource::Timestamps, 1), (RttSource::Timestamps, 10)]
    {
        let config = TcpConfig {
            rtt_source,
            timestamp_tick_ns: tick_ms * MS,
            receive: ReceiveConfig { buffer_bytes: 20_000, max_buffer_bytes: 0 },
            ..config(RENO)
        };
        let mut pair = pair(&config, LinkConfig::new(10_000_000, 20, 100), 1);
        pair.to_write = u64::MAX / 2;
        pair.run(5 * SECOND);
        let srtt_ms = pair.server().snapshot().srtt_ns.unwrap_or(0) as f64 / 1e6;
        // Delayed ACKs and a segment's transmission time add a few.
        assert!((40.0 - tick_ms as f64..56.0 + tick_ms as f64).contains(&srtt_ms), "{srtt_ms}");
    }
}

#[test]
fn lost_segments_come_back_fast() {
    // Without SACK one loss a round trip (RFC 6582), with SACK all at once.
    let lost = |config: &TcpConfig, nth: &[usize]| {
        let mut pair = pair(config, LinkConfig::new(100_000_000, 50, 10_000), 1);
        pair.to_write = 400_000;
        // The second flight, of twenty, is sent at 250 ms.
        pair.run(260 * MS);
        // Drop the given packets of the next flight.
        let mut flight = Vec::new();
        while let Some(segment) = pair.down.receive(i64::MAX) {
            flight.push(segment);
        }
        for (i, segment) in flight.into_iter().enumerate() {
            if !nth.contains(&i) {
                pair.down.send(pair.now_ns, 1500, segment);
            }
        }
        pair.run_until_read(400_000, 10 * SECOND).expect("all arrives");
        let stats = pair.server().stats();
        assert_eq!(stats.rtos, 0);
        (stats.retransmissions(), stats.recoveries, pair.now_ns / MS)
    };
    for loss_detection in [LossDetection::DupAck, LossDetection::Rack] {
        let with_sack = TcpConfig { loss_detection, ..config(RENO) };
        let (again, recoveries, done_ms) = lost(&with_sack, &[3, 7, 8]);
        assert_eq!((again, recoveries), (3, 1), "{loss_detection:?}");
        let without = TcpConfig { sack: false, ..with_sack };
        let (again, recoveries, slow_ms) = lost(&without, &[3, 7, 8]);
        assert_eq!((again, recoveries), (3, 1), "{loss_detection:?}");
        assert!(slow_ms >= done_ms + 100, "a round trip for each: {done_ms}, {slow_ms}");
    }
}

#[test]
fn a_lost_tail_needs_a_probe_or_a_timeout() {
    let tail = |config: &TcpConfig| {
        let mut pair = pair(config, LinkConfig::new(100_000_000, 50, 10_000), 1);
        pair.to_write = 50_000;
        pair.run(1000 * MS);
        pair.to_write = 3 * 1448;
        pair.run(1001 * MS);
        while pair.down.receive(i64::MAX).is_some() {}
        let all = 50_000 + 3 * 1448;
        pair.run_until_read(all, 10 * SECOND).expect("all arrives");
        let stats = pair.server().stats();
        (stats.rtos, stats.probe_retransmissions, pair.now_ns / MS - 1000)
    };
    let (rtos, probes, probe_ms) = tail(&TcpConfig::default());
    assert_eq!((rtos, probes), (0, 1));
    let (rtos, probes, rto_ms) =
        tail(&TcpConfig { tail_loss_probe: false, ..TcpConfig::default() });
    assert_eq!((rtos, probes), (1, 0));
    // The probe is sent after 200 ms (2 * srtt), and its ACK shows at 300 ms that the two
    // before it are lost; they are retransmitted one a round trip (RFC 6937), and the
    // second arrives at 450 ms. The timeout expires after 300 ms (srtt + 200 ms); one
    // segment, and a round trip and a delayed ACK (40 ms) later two.
    assert!((450..=465).contains(&probe_ms), "{probe_ms}");
    assert!((490..=505).contains(&rto_ms), "{rto_ms}");
}

/// Huang et al. 2013, 5.2: one loss followed by a deep queue. The retransmission waits in
/// the queue, and the timer, which nothing restarts, expires before its ACK arrives.
#[test]
fn undesired_slow_start() {
    let run = |config: TcpConfig| {
        // 2 Mbit/s, 30 ms, a queue of two seconds that is filling.
        let down = LinkConfig::new(2_000_000, 30, 330);
        let mut pair = pair(&config, down, 1);
        pair.to_write = u64::MAX / 2;
        pair.run(2 * SECOND);
        // One packet is lost.
        let lost = pair.down.receive(i64::MAX).expect("a packet is on its way");
        drop(lost);
        events(&mut pair);
        // Then the link slows down to a quarter.
        pair.down.config.rate_bps = Some(500_000);
        pair.run(12 * SECOND);
        let events = events(&mut pair);
        events.iter().any(|e| {
            matches!(e.kind, EventKind::RtoExpired { in_recovery: true, dup_acks, .. } if dup_acks > 3)
        })
    };
    let old = TcpConfig {
        control: CUBIC,
        receive: ReceiveConfig { buffer_bytes: 4 << 20, max_buffer_bytes: 0 },
        ..TcpConfig::of_2013()
    };
    assert!(run(old.clone()), "the timer is not restarted by duplicate ACKs");
    let new = TcpConfig { control: CUBIC, receive: old.receive.clone(), ..TcpConfig::default() };
    assert!(!run(new), "round trips from SACK keep the timer up");
}

#[test]
fn restarts_after_idle_if_told_to() {
    for slow_start_after_idle in [true, false] {
        let config = TcpConfig { slow_start_after_idle, ..config(HYSTART) };
        let mut pair = pair(&config, LinkConfig::new(100_000_000, 50, 10_000), 1);
        pair.to_write = 3_000_000;
        pair.run(20 * SECOND);
        let before = pair.server().snapshot().cwnd_bytes;
        events(&mut pair);
        pair.to_write = 100_000;
        pair.run(20 * SECOND + MS);
        let after = pair.server().snapshot().cwnd_bytes;
        let restarted = events(&mut pair)
            .into_iter()
            .any(|e| matches!(e.kind, EventKind::Restarted { cwnd_bytes: 14_480, .. }));
        assert!(before > 100_000, "{before}");
        assert_eq!(restarted, slow_start_after_idle);
        assert_eq!(after == 14_480, slow_start_after_idle, "{after}");
    }
}

#[test]
fn a_slow_reader_shuts_the_window() {
    let small = TcpConfig {
        receive: ReceiveConfig { buffer_bytes: 65_536, max_buffer_bytes: 0 },
        ..TcpConfig::default()
    };
    let down = LinkConfig::new(50_000_000, 20, 1000);
    let mut pair = Pair::new(TcpConfig::default(), small, down, back(down), 1);
    pair.to_write = u64::MAX / 2;
    pair.read_rate_bps = Some(2_000_000);
    pair.run(10 * SECOND);
    let mbps = pair.read_bytes as f64 * 8.0 / 1e7;
    assert!((1.9..=2.0).contains(&mbps), "{mbps}");
    let stats = pair.server().stats();
    assert!(stats.rwnd_limited_ns > 9 * SECOND, "{stats:?}");
    assert_eq!(stats.retransmissions(), 0);
}

#[test]
fn a_shut_window_is_probed() {
    let small = TcpConfig {
        receive: ReceiveConfig { buffer_bytes: 20_000, max_buffer_bytes: 0 },
        ..TcpConfig::default()
    };
    let down = LinkConfig::new(50_000_000, 20, 1000);
    let mut pair = Pair::new(TcpConfig::default(), small, down, back(down), 1);
    pair.to_write = 100_000;
    pair.read_rate_bps = Some(0);
    pair.run(5 * SECOND);
    assert_eq!(pair.read_bytes, 0);
    // The last 1,176 bytes of the window after 240 ms (RFC 9293, 3.8.6.2.1), then probes
    // after 480, 960 and 1920 ms (3.8.6.1).
    assert_eq!(pair.server().snapshot().acked_bytes, 20_000);
    assert_eq!(pair.server().stats().window_probes, 3);
    pair.read_rate_bps = None;
    // The window update is lost: the probe finds the open window.
    pair.up.config.loss = 1.0;
    pair.run(5 * SECOND + 10 * MS);
    pair.up.config.loss = 0.0;
    assert!(pair.run_until_read(100_000, 60 * SECOND).is_some());
}

#[test]
fn the_receive_buffer_grows_with_what_is_read() {
    // 100 ms and 100 Mbit/s: 1.25 MB in flight; 64 KiB at first.
    let down = LinkConfig::new(100_000_000, 50, 2000);
    let run = |max_buffer_bytes| {
        let receive = ReceiveConfig { buffer_bytes: 65_535, max_buffer_bytes };
        let config = TcpConfig { receive, ..TcpConfig::default() };
        let mut pair = pair(&config, down, 1);
        pair.to_write = u64::MAX / 2;
        pair.run(10 * SECOND);
        pair.read_bytes as f64 * 8.0 / 1e7
    };
    let fixed = run(0);
    assert!((4.9..5.3).contains(&fixed), "65,535 bytes a round trip: {fixed}");
    let tuned = run(6 << 20);
    assert!(tuned > 85.0, "{tuned}");
}

#[test]
fn pacing_spreads_a_window() {
    // Windows of ten, twenty and more at once overflow a queue of four packets; paced ones
    // do not (the first round trip is the handshake's).
    let lost = |pacing_percent| {
        let receive = ReceiveConfig { buffer_bytes: 60_000, max_buffer_bytes: 0 };
        let config = TcpConfig { pacing_percent, receive, ..config(RENO) };
        let mut pair = pair(&config, LinkConfig::new(10_000_000, 50, 4), 1);
        pair.to_write = u64::MAX / 2;
        pair.run(2 * SECOND);
        pair.down.dropped
    };
    assert_eq!(lost(Some(120)), 0);
    assert!(lost(None) > 0);
}

#[test]
fn nagle_waits_for_a_full_segment() {
    // 100 bytes every 10 ms over a round trip of 100 ms.
    let segments = |nagle| {
        let mut pair =
            pair(&TcpConfig { nagle, ..config(RENO) }, LinkConfig::new(10_000_000, 50, 50), 1);
        pair.run(200 * MS);
        for i in 1..=100 {
            pair.to_write = 100;
            pair.run((200 + 10 * i) * MS);
        }
        pair.run(3 * SECOND);
        assert_eq!(pair.read_bytes, 10_000);
        pair.server().stats().data_segments_sent
    };
    assert_eq!(segments(false), 100);
    assert!((8..=12).contains(&segments(true)), "{}", segments(true));
}

#[test]
fn limited_transmit_keeps_the_ack_clock_of_small_windows() {
    // Three segments in flight, the first lost: only two duplicate ACKs, unless they
    // release two more segments (RFC 3042).
    let rtos = |limited_transmit| {
        let config = TcpConfig {
            limited_transmit,
            initial_window_segments: 3,
            loss_detection: LossDetection::DupAck,
            tail_loss_probe: false,
            ..config(RENO)
        };
        let mut pair = pair(&config, LinkConfig::new(10_000_000, 50, 50), 1);
        pair.to_write = 20 * 1448;
        pair.run(155 * MS);
        assert!(pair.down.receive(i64::MAX).is_some());
        pair.run_until_read(20 * 1448, 20 * SECOND).expect("all arrives");
        pair.server().stats().rtos
    };
    assert_eq!(rtos(true), 0);
    assert_eq!(rtos(false), 1);
}

#[test]
fn a_silent_peer_is_probed() {
    let config = TcpConfig { keep_alive_ns: Some(SECOND), ..config(RENO) };
    let mut pair = pair(&config, LinkConfig::new(10_000_000, 20, 100), 1);
    pair.to_write = 1000;
    pair.run(10 * SECOND);
    assert_eq!(pair.server().state(), TcpState::Established);
    pair.up.config.loss = 1.0;
    pair.down.config.loss = 1.0;
    pair.run(30 * SECOND);
    assert!(pair.server().is_closed() && pair.client.is_closed());
}

#[test]
fn closes_on_both_sides() {
    let config = TcpConfig { time_wait_ns: SECOND, ..TcpConfig::default() };
    let mut pair = pair(&config, LinkConfig::new(10_000_000, 20, 100), 1);
    pair.to_write = 10_000;
    pair.finish = true;
    pair.run(500 * MS);
    assert_eq!(pair.read_bytes, 10_000);
    // The server finished first and waits; the client is closed.
    assert_eq!(pair.server().state(), TcpState::TimeWait);
    assert_eq!(pair.client.state(), TcpState::Closed);
    pair.run(3 * SECOND);
    assert!(pair.server().is_closed() && pair.client.is_closed());
}

#[test]
fn gives_up_on_a_dead_peer() {
    let rto = RtoConfig { max_retries: 3, ..RtoConfig::default() };
    let config = TcpConfig { rto, ..TcpConfig::default() };
    let mut pair = pair(&config, LinkConfig::new(10_000_000, 20, 100), 1);
    pair.to_write = u64::MAX / 2;
    pair.run(SECOND);
    pair.down.config.loss = 1.0;
    pair.run(60 * SECOND);
    assert!(events(&mut pair).iter().any(|e| e.kind == EventKind::TimedOut));
    assert!(pair.server().is_closed());
}

#[test]
fn a_delay_spike_is_undone() {
    // All packets are delayed by 1.5 s: the timer expires, although nothing was lost.
    let mut pair = pair(&config(HYSTART), LinkConfig::new(20_000_000, 20, 1000), 1);
    pair.to_write = u64::MAX / 2;
    pair.run(2 * SECOND);
    let before = pair.server().snapshot();
    pair.down.hold(2 * SECOND, 1500 * MS);
    pair.run(4 * SECOND);
    let stats = pair.server().stats();
    let events = events(&mut pair);
    assert!(stats.rtos >= 1 && stats.undone >= 1, "{stats:?}");
    assert!(
        events
            .iter()
            .any(|e| matches!(e.kind, EventKind::Retransmitted { kind: Retransmission::Rto, .. }))
    );
    assert!(pair.server().snapshot().cwnd_bytes >= before.cwnd_bytes);
    assert!(stats.retransmissions() < 20, "not the whole window: {stats:?}");
}

#[test]
fn the_timestamp_clock_ticks_as_told() {
    for tick_ms in [1, 4, 10] {
        let config = TcpConfig { timestamp_tick_ns: tick_ms * MS, ..TcpConfig::default() };
        let mut pair = pair(&config, LinkConfig::new(10_000_000, 20, 100), 1);
        pair.to_write = 2_000_000;
        pair.keep_trace = true;
        pair.run(SECOND);
        let vals: Vec<(i64, u32)> = pair
            .trace
            .iter()
            .filter(|(_, down, _)| *down)
            .filter_map(|(at_ns, _, s)| Some((*at_ns, s.timestamps?.0)))
            .collect();
        let (first, last) = (vals[0], vals[vals.len() - 1]);
        let ticks = i64::from(last.1.wrapping_sub(first.1));
        assert!((ticks - (last.0 - first.0) / (tick_ms * MS)).abs() <= 1);
        assert!(vals.windows(2).all(|w| w[1].1.wrapping_sub(w[0].1) < 1000));
    }
}

#[test]
fn the_same_seed_gives_the_same_segments() {
    let run = |seed| {
        let down = LinkConfig { loss: 0.02, ..LinkConfig::new(10_000_000, 20, 30) };
        let mut pair = pair(&config(HYSTART), down, seed);
        pair.to_write = 1_000_000;
        pair.keep_trace = true;
        pair.run(5 * SECOND);
        pair.trace
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the network does, all bytes arrive once and in order, including literals.
    #[test]
    fn all_bytes_arrive_once(
        seed in any::<u64>(),
        loss in 0.0..0.25f64,
        duplicate in 0.0..0.2f64,
        reorder in 0.0..0.3f64,
        queue_packets in 2usize..60,
        bytes in 1u64..300_000,
        sack: bool,
        timestamps: bool,
        rack: bool,
        buffer_bytes in 3_000u64..100_000,
        control in prop::sample::select(vec![RENO, CUBIC, HYSTART]),
    ) {
        let loss_detection = if rack { LossDetection::Rack } else { LossDetection::DupAck };
        let rto = RtoConfig { max_retries: 60, max_ns: 2 * SECOND, ..RtoConfig::default() };
        let receive = ReceiveConfig { buffer_bytes, max_buffer_bytes: 2 * buffer_bytes };
        let config = TcpConfig {
            sack, timestamps, loss_detection, control, rto, receive,
            time_wait_ns: 60 * SECOND,
            ..TcpConfig::default()
        };
        let down = LinkConfig {
            loss, duplicate, reorder, reorder_ns: 30 * MS,
            ..LinkConfig::new(10_000_000, 20, queue_packets)
        };
        let mut pair = Pair::new(config.clone(), config, down, down, seed);
        pair.to_write = bytes;
        pair.finish = true;
        pair.run(600 * SECOND);
        prop_assert_eq!(pair.read_bytes, bytes);
        prop_assert!(pair.client.is_read_to_end());
        prop_assert!(pair.client.is_closed() && pair.server().is_closed());
        prop_assert_eq!(pair.server().snapshot().acked_bytes, bytes);
    }
}
