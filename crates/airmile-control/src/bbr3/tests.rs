//! Sequences by hand, and a fixed path (10).

use super::*;
use crate::CongestionKind;
use crate::pipe::{MSS, Pipe};

const MS: i64 = 1_000_000;

fn ack(segments: u64, rtt_ms: i64, pipe_segments: u64) -> AckEvent {
    AckEvent {
        acked_bytes: segments * MSS,
        rtt_ns: Some(rtt_ms * MS),
        srtt_ns: Some(rtt_ms * MS),
        pipe_bytes: pipe_segments * MSS,
        ..AckEvent::default()
    }
}

/// Past Startup: 1 MB/s and 100 ms, so a BDP of 100 segments, which are in flight.
fn at(state: State) -> Bbr3 {
    let mut bbr = Bbr3::new(MSS, 10 * MSS, 1);
    (bbr.state, bbr.full_bw_reached) = (state, true);
    (bbr.max_bw, bbr.bw) = (1e6, 1e6);
    bbr.max_bw_filter.push(0, 1e6, MAX_BW_CYCLES);
    bbr.min_rtt_ns = 1e8;
    (bbr.min_rtt_at_ns, bbr.probe_rtt_min_at_ns, bbr.probe_rtt_min_ns) = (1, 1, 1e8);
    bbr.cwnd = 200_000.0;
    bbr.window.cwnd_bytes = 200_000;
    bbr.pace = Some(1e6);
    bbr.probe_wait_ns = 2_000 * MS;
    bbr
}

fn sample(tx_in_flight: f64, lost: f64) -> RateSample {
    RateSample { tx_in_flight: tx_in_flight * 1e3, lost: lost * 1e3, ..RateSample::default() }
}

/// 4.1.2: ten segments at 0, acknowledged by twos from 100 ms on.
#[test]
fn rate_samples_by_hand() {
    let mut sampler = RateSampler::default();
    (0..10).for_each(|_| sampler.on_sent(0, MSS));
    let first = sampler.on_ack(100 * MS, &ack(2, 100, 8));
    // 2 segments in 100 ms; in flight with the last segment of the burst: 10.
    assert_eq!((first.delivery_rate, first.tx_in_flight), (20_000.0, 10_000.0));
    (0..4).for_each(|_| sampler.on_sent(100 * MS, MSS));
    let second = sampler.on_ack(110 * MS, &ack(8, 110, 4));
    assert_eq!((second.delivered, second.delivery_rate), (10_000.0, 10_000.0 / 0.11));
    // Sent at 100 ms, when 2 segments had arrived; 12 of 14 more since then, in 100 ms.
    let third = sampler.on_ack(200 * MS, &ack(4, 100, 0));
    assert_eq!((third.prior_delivered, third.delivered), (Some(2_000.0), 12_000.0));
    assert_eq!(third.delivery_rate, 120_000.0);
    // The sender had nothing to send: what it sends next is application-limited until it
    // has been acknowledged (4.1.2.4).
    let limited = AckEvent { app_limited: true, ..ack(0, 0, 0) };
    sampler.on_ack(250 * MS, &AckEvent { rtt_ns: None, ..limited });
    sampler.on_sent(300 * MS, MSS);
    assert!(sampler.on_ack(400 * MS, &ack(1, 100, 0)).is_app_limited);
    sampler.on_sent(500 * MS, MSS);
    assert!(!sampler.on_ack(600 * MS, &ack(1, 100, 0)).is_app_limited);
}

/// 5.6.2 and 5.6.4: the first pace is 2.77 windows a round trip.
#[test]
fn startup_by_hand() {
    let mut bbr = Bbr3::new(MSS, 10 * MSS, 1);
    assert_eq!(bbr.pacing_rate_bps(), None);
    (0..10).for_each(|_| bbr.on_sent(1, MSS, 0));
    bbr.on_ack(1 + 100 * MS, &ack(10, 100, 0));
    // 10 segments in 100 ms: 277 kB/s is more than 2.77 * 100 kB/s less 1 %.
    assert_eq!((bbr.pacing_rate_bps(), bbr.cwnd_bytes()), (Some(2_216_000), 20 * MSS));
    assert_eq!((bbr.max_bw, bbr.state), (100_000.0, State::Startup));
}

/// 5.3.1.2: three rounds that grow by less than a quarter fill the pipe.
#[test]
fn three_rounds_without_growth_end_startup() {
    let mut bbr = Bbr3::new(MSS, 10 * MSS, 1);
    let mut counts = Vec::new();
    for rate in [100.0, 124.0, 125.0, 150.0, 155.0, 150.0] {
        bbr.round_start = true;
        bbr.check_full_bw(&RateSample { delivery_rate: rate, ..RateSample::default() });
        counts.push((bbr.full_bw_count, bbr.full_bw_reached));
    }
    let no = [(0, false), (1, false), (0, false), (1, false), (2, false)];
    assert_eq!((&counts[..5], counts[5]), (&no[..], (3, true)));
    let mut limited = Bbr3::new(MSS, 10 * MSS, 1);
    limited.round_start = true;
    let sample = RateSample { is_app_limited: true, ..RateSample::default() };
    (0..9).for_each(|_| limited.check_full_bw(&sample));
    assert!(!limited.full_bw_reached);
}

/// 5.5.10.2: 2 of 100 segments are tolerated. Of 3, the threshold is passed after
/// (0.02 * 97 - 0) / 0.98 = 1.98 more than the 97 before them.
#[test]
fn loss_in_a_probe_bounds_what_is_in_flight() {
    let check = |lost: u64, expected: f64, state: State| {
        let mut bbr = at(State::Up);
        bbr.is_probe_sample = true;
        bbr.on_lost(0, lost as f64 * 1e3, &sample(100.0, lost as f64));
        assert!((bbr.inflight_longterm / 1e3 - expected).abs() < 0.01 || expected.is_infinite());
        assert_eq!((bbr.state, bbr.prev_too_high), (state, expected.is_finite()), "{lost}");
    };
    check(2, f64::INFINITY, State::Up);
    check(3, 98.98, State::Down);
    // Not below 0.7 of the BDP: 20 of 30 in flight lost.
    let mut bbr = at(State::Up);
    bbr.is_probe_sample = true;
    bbr.on_lost(0, 20e3, &sample(30.0, 20.0));
    assert_eq!(bbr.inflight_longterm, 70e3);
    // 5.3.3.9: 15 % of it remain free in Cruise.
    assert_eq!(bbr.inflight_with_headroom(), 59.5e3);
    // 5.5.11.2: spurious, so the probe starts again.
    bbr.on_spurious(0);
    assert!(bbr.inflight_longterm.is_infinite() && bbr.state == State::Refill);
}

/// 5.5.10.3: at the end of a round with a loss, 0.7 of the bounds, or what was delivered.
#[test]
fn loss_outside_a_probe_lowers_the_short_term_bounds() {
    for (rate, delivered, bw, inflight) in [(5e5, 5e4, 7e5, 1.4e5), (9e5, 1.8e5, 9e5, 1.8e5)] {
        let mut bbr = at(State::Cruise);
        bbr.on_lost(0, 1e3, &sample(100.0, 1.0));
        let prior_delivered = Some(bbr.loss_round_delivered);
        let end = RateSample { delivered, prior_delivered, ..sample(100.0, 1.0) };
        bbr.update_congestion_signals(&RateSample { delivery_rate: rate, ..end });
        assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm.round()), (bw, inflight));
        // 5.3.3.3: Refill forgets them.
        bbr.start_refill();
        assert!(bbr.bw_shortterm.is_infinite() && bbr.inflight_shortterm.is_infinite());
    }
}

/// 5.3.3.4: in Up the long-term bound grows by 1, 2, 4 segments for a window's worth.
#[test]
fn the_long_term_bound_grows_ever_faster() {
    let mut bbr = at(State::Refill);
    (bbr.inflight_longterm, bbr.cwnd_limited) = (1e5, true);
    bbr.cwnd = 1e5;
    bbr.round_start = true;
    bbr.update_cycle(0, &sample(100.0, 0.0));
    assert_eq!(bbr.state, State::Up);
    let mut bounds = Vec::new();
    for _ in 0..3 {
        for (newly_acked, ends) in [(bbr.cwnd - 1e3, false), (1e3, true)] {
            bbr.round_start = ends;
            bbr.probe_upward(&RateSample { newly_acked, ..sample(100.0, 0.0) });
            bbr.cwnd = bbr.inflight_longterm;
        }
        bounds.push(bbr.inflight_longterm / 1e3);
    }
    assert_eq!(bounds, [101.0, 103.0, 107.0]);
}

/// 5.3.4: after 5 s without a lower round trip half a BDP for 200 ms, then Cruise.
#[test]
fn the_minimum_round_trip_is_probed() {
    let mut bbr = at(State::Cruise);
    let step = |bbr: &mut Bbr3, at_ms: i64| {
        bbr.on_sent(at_ms * MS - 120 * MS, MSS, 0);
        bbr.on_ack(at_ms * MS, &ack(1, 120, 40));
        (bbr.state, bbr.cwnd_bytes() / MSS)
    };
    bbr.cycle_at_ns = 4_000 * MS;
    assert_eq!(step(&mut bbr, 5_000).0, State::Cruise);
    assert_eq!(step(&mut bbr, 5_001), (State::ProbeRtt, 50));
    step(&mut bbr, 5_002);
    assert_eq!(step(&mut bbr, 5_190), (State::ProbeRtt, 50));
    assert_eq!(step(&mut bbr, 5_400).0, State::Cruise);
    // The old minimum stays valid for 10 s (5.5.7.2).
    assert_eq!(bbr.min_rtt_ns, 1e8);
    assert!(bbr.cwnd_bytes() > 150 * MSS);
}

/// 5.3.3.8.3: 2 to 3 s between probes, drawn from the seed.
#[test]
fn probes_wait_as_the_seed_says() {
    let waits = |seed: u64| -> Vec<i64> {
        let mut bbr = Bbr3::new(MSS, 10 * MSS, seed);
        let draw = |_| {
            bbr.start_down(0);
            assert!(bbr.rounds_since_probe_up <= 1);
            bbr.probe_wait_ns
        };
        (0..50).map(draw).collect()
    };
    let first = waits(1);
    assert!(first.iter().all(|ns| (2_000 * MS..3_000 * MS).contains(ns)), "{first:?}");
    let mean_ms = first.iter().sum::<i64>() / 50 / MS;
    assert!((2_350..2_650).contains(&mean_ms), "{mean_ms}");
    assert_eq!(first, waits(1));
    assert_ne!(first, waits(2));
}

/// 5.6.4.4: a timeout leaves a segment; the end of the recovery restores the window.
#[test]
fn a_recovery_gives_the_window_back() {
    let mut bbr = at(State::Cruise);
    bbr.on_rto(0, 100 * MSS, false);
    assert_eq!(bbr.cwnd_bytes(), MSS);
    bbr.on_sent(MS, MSS, MSS);
    bbr.on_ack(101 * MS, &ack(1, 100, 0));
    // Two BDP, and the segment that came sooner than expected (5.5.9).
    assert_eq!(bbr.cwnd_bytes(), 201 * MSS);
    let kind = CongestionKind::Loss;
    let event = CongestionEvent { kind, flight_size_bytes: 100 * MSS, lost_bytes: MSS };
    bbr.on_congestion(200 * MS, &event);
    assert_eq!(bbr.cwnd_bytes(), 201 * MSS, "the model bounds it, not the recovery");
}

/// 10.1, 10.3, 10.11: 10 Mbit/s, 50 ms (62.5 segments) and a deep queue.
#[test]
fn holds_about_a_bdp_on_a_fixed_path() {
    let mut pipe = Pipe::new(10_000_000, 50, 2_000_000);
    let mut bbr = Bbr3::new(MSS, 10 * MSS, 1);
    pipe.run(&mut bbr, 2.0, |_, _| {});
    let (mut flight, mut seen, mut most, mut states) = (0.0, 0.0, 0.0_f64, Vec::new());
    let before = pipe.acked_bytes;
    pipe.run(&mut bbr, 20.0, |pipe, bbr| {
        let now = pipe.in_flight() as f64 / pipe.bdp_bytes();
        (flight, seen, most) = (flight + now, seen + 1.0, most.max(now));
        if states.last() != Some(&bbr.state) {
            states.push(bbr.state);
        }
    });
    let rate = (pipe.acked_bytes - before) as f64 * 8.0 / 20.0;
    // Within 2 % (10.1).
    assert!((bbr.max_bw * 8.0 / 1e7 - 1.0).abs() < 0.02, "{}", bbr.max_bw);
    assert!(rate > 0.93e7, "{rate}");
    let mean = flight / seen;
    assert!((0.9..1.2).contains(&mean) && most < 2.1, "{mean} {most}");
    let cycle = [State::Cruise, State::Refill, State::Up, State::Down, State::Cruise];
    assert!(states.windows(5).any(|five| five == cycle), "{states:?}");
    // 10.10: every 5 s.
    let probes = states.iter().filter(|state| **state == State::ProbeRtt).count();
    assert!((3..=4).contains(&probes), "{states:?}");
}

/// A tenth of a BDP of queue: the long-term bound is found, and the loss stays low.
#[test]
fn a_short_queue_bounds_the_long_term() {
    let mut pipe = Pipe::new(10_000_000, 50, 20_000);
    let mut bbr = Bbr3::new(MSS, 10 * MSS, 1);
    pipe.run(&mut bbr, 20.0, |_, _| {});
    let lost = pipe.lost_share();
    assert!(bbr.inflight_longterm < 1.6 * pipe.bdp_bytes(), "{}", bbr.inflight_longterm);
    assert!(lost < 0.02 && pipe.acked_bytes as f64 * 8.0 / 20.0 > 0.85e7, "{lost}");
}
