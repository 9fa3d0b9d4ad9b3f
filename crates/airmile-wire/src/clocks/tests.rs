//! Known offsets and drifts are recovered.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;

/// Bursts of blocks with pauses between them, from a seed: nanoseconds and bytes.
fn bursts(seed: u64, span_s: i64) -> Vec<(i64, u32)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < span_s * S {
        at += (next() % 900) as i64 * MS;
        for _ in 0..next() % 300 {
            at += MS * (1 + (next() % 3) as i64);
            out.push((at, 500 + (next() % 2_000) as u32));
        }
    }
    out
}

/// As seen on another clock, `delay_ns` later.
fn seen(points: &[(i64, u32)], delay_ns: i64, offset_ns: i64, ppm: f64) -> Arrivals {
    let mut arrivals = Arrivals::new();
    for (at, bytes) in points {
        let at = at + delay_ns;
        let gained = (at as f64 * ppm * 1e-6) as i64;
        arrivals.add(at + offset_ns + gained, *bytes);
    }
    arrivals
}

#[test]
fn another_clocks_time_comes_back() {
    let check = |offset_ns, drift_ppm, other, expected| {
        let line = ClockLine {
            at_ns: 10 * S,
            offset_ns,
            drift_ppm,
            half_span_ns: 0,
            error_ns: 0,
            n: 1,
            rival_ns: None,
        };
        assert_eq!(line.to_reference(other), expected);
        assert_eq!(expected + line.offset_at_ns(expected), other);
    };
    check(0, 0.0, 7 * S, 7 * S);
    check(300 * MS, 0.0, 7 * S, 7 * S - 300 * MS);
    // 100 s after the middle a clock that gains 50 ppm is 5 ms ahead.
    check(0, 50.0, 110 * S + 5 * MS, 110 * S);
    check(-S, -50.0, 109 * S - 5 * MS, 110 * S);
}

#[test]
fn lines_follow_one_another() {
    let line = |at_ns, offset_ns, drift_ppm| ClockLine {
        at_ns,
        offset_ns,
        drift_ppm,
        half_span_ns: S,
        error_ns: 2,
        n: 1,
        rival_ns: None,
    };
    // 1 s ahead, and from there 20 ms late at 5 s, gaining 1 ms in 100 s.
    let both = line(4 * S, S, 0.0).then(&line(105 * S, -20 * MS, 10.0));
    assert_eq!((both.at_ns, both.offset_ns, both.error_ns), (4 * S, S - 21 * MS, 4));
}

#[test]
fn traffic_that_is_not_the_same_has_no_line() {
    let one = seen(&bursts(1, 60), 0, 0, 0.0);
    let other = seen(&bursts(2, 60), 0, 0, 0.0);
    let check = |one: &Arrivals, other: &Arrivals, expected| {
        assert_eq!(between_arrivals(one, other, 2 * S), Err(expected));
    };
    check(&one, &other, Unaligned::Unlike);
    check(&one, &Arrivals::new(), Unaligned::Nothing);
    check(&Arrivals::new(), &one, Unaligned::Nothing);
    let later = seen(&bursts(1, 60), 3_600 * S, 0, 0.0);
    check(&one, &later, Unaligned::Nothing);
}

#[test]
fn the_ways_of_a_round_trip_bound_the_offset() {
    // 20 ms there, 30 ms back, the other clock 100 ms ahead.
    let pairs = [
        PointPair { reference_ns: 0, other_ns: 120 * MS, outward: true },
        PointPair { reference_ns: 90 * MS, other_ns: 160 * MS, outward: false },
    ];
    let line = between_points(&pairs).unwrap();
    assert_eq!((line.offset_ns, line.error_ns), (95 * MS, 25 * MS));
    // A proxy in between, and two runs without one.
    assert_eq!(may_be_split(&pairs, [30 * MS, 25 * MS]), Some(true));
    assert_eq!(may_be_split(&pairs, [50 * MS, 45 * MS]), Some(false));
    assert_eq!(may_be_split(&pairs[..1], [30 * MS, 20 * MS]), None);
    assert_eq!(between_points(&pairs[..1]), Err(Unaligned::OneWay));
    assert_eq!(between_points(&[]), Err(Unaligned::Nothing));
}

/// A proxy takes an upload, and its server answers after 90 s.
#[test]
fn an_answer_after_minutes_shows_the_way_back() {
    let pairs = [
        PointPair { reference_ns: 0, other_ns: 120 * MS, outward: true },
        PointPair { reference_ns: 90_090 * MS, other_ns: 90_160 * MS, outward: false },
    ];
    let line = between_points(&pairs).unwrap();
    assert!((line.offset_ns - 95 * MS).abs() < MS && line.error_ns >= 34 * MS, "{line:?}");
    assert_eq!(may_be_split(&pairs, [30 * MS, 25 * MS]), Some(true));
}

/// Twenty minutes in which each direction is sometimes free of queues, but never both
/// within a second: the drift comes from all of it.
#[test]
fn points_with_queues_most_of_the_time() {
    let shows = |at: i64| at - 300 * MS - (at as f64 * 45e-6) as i64;
    let pairs: Vec<PointPair> = (0..12_000_i64)
        .map(|n| {
            let (at, outward) = (n * 100 * MS, n % 2 == 0);
            let second = n / 10;
            // Free in one second of seventeen, and three seconds later the other way.
            let free = second % 17 == if outward { 0 } else { 3 };
            let delay = 15 * MS + if free { 0 } else { (n * 7_919 % 90 + 10) * MS };
            let (there, here) = if outward { (at + delay, at) } else { (at, at + delay) };
            PointPair { reference_ns: here, other_ns: shows(there), outward }
        })
        .collect();
    let line = between_points(&pairs).unwrap();
    for at in [0, 600 * S, 1_200 * S] {
        let off = (line.offset_at_ns(at) - (shows(at) - at)).abs();
        assert!(off < 3 * MS && off <= line.error_ns, "{at}: {line:?}");
    }
}

/// A single transfer that matches another burst better than its own time does not move a
/// clock by seconds; an offset in the middle leaves a difference from half an hour at 50
/// ppm.
#[test]
fn little_evidence_moves_no_clock_far() {
    let busy: Vec<(i64, u32)> = (0..2_000).map(|ms| (20 * S + ms * MS, 1_000)).collect();
    let other = align_transfers(&seen(&busy, 0, 0, 0.0), &[(10 * S, 12 * S)], 30 * S);
    assert_eq!(other, Err(Unaligned::Nothing));
    let mut line = ClockLine {
        at_ns: 0,
        offset_ns: 0,
        drift_ppm: 50.0,
        half_span_ns: 1_800 * S,
        error_ns: 2 * MS,
        n: 400,
        rival_ns: None,
    };
    assert!(line.differs());
    line.half_span_ns = 10 * S;
    assert!(!line.differs());
}

/// The matching part of a capture that is much longer than the log is found.
#[test]
fn a_capture_longer_than_the_log() {
    let points = bursts(7, 600);
    let part: Vec<(i64, u32)> =
        points.iter().filter(|(at, _)| (300 * S..340 * S).contains(at)).copied().collect();
    let line = between_arrivals(&seen(&part, 0, 0, 0.0), &seen(&points, 0, 700 * MS, 0.0), 30 * S);
    assert!(line.is_ok_and(|l| (l.offset_ns - 700 * MS).abs() < 2 * MS), "{line:?}");
}

/// Downloads every two seconds fit at every even second; the nearest is taken.
#[test]
fn traffic_that_repeats_itself_is_where_the_clock_says() {
    let points: Vec<(i64, u32)> =
        (0..30).flat_map(|n| (0..300).map(move |ms| (n * 2 * S + ms * MS, 1_000))).collect();
    let reference = seen(&points, 0, 0, 0.0);
    let transfers: Vec<(i64, i64)> =
        (0..30).map(|n| (n * 2 * S + 5 * MS, n * 2 * S + 305 * MS)).collect();
    let line = align_transfers(&reference, &transfers, 30 * S);
    assert!(
        line.is_ok_and(|l| l.offset_ns.abs() < 10 * MS) || line == Err(Unaligned::Ambiguous),
        "{line:?}"
    );
    let line = between_arrivals(&reference, &seen(&points, 0, 5 * MS, 0.0), 30 * S);
    assert!(
        line.is_ok_and(|l| (l.offset_ns - 5 * MS).abs() < 2 * MS)
            || line == Err(Unaligned::Ambiguous),
        "{line:?}"
    );
}

/// Offsets of an hour, with transfers about every 20 s among unrelated bytes, by a clock
/// that gains 40 ppm: 144 ms from end to end.
#[test]
fn a_session_of_an_hour() {
    let all = bursts(11, 3_600);
    let mut transfers: Vec<(i64, i64)> = Vec::new();
    for pair in all.windows(2) {
        let (at, next) = (pair[0].0, pair[1].0);
        match transfers.last_mut() {
            Some((_, end)) if *end == at && next - at < 60 * MS => *end = next,
            _ if next - at < 60 * MS => transfers.push((at, next)),
            _ => {}
        }
    }
    transfers.retain(|(start, end)| end - start > 100 * MS);
    let shows = |at: i64| at + 700 * MS + (at as f64 * 40e-6) as i64;
    let some: Vec<(i64, i64)> = transfers
        .iter()
        .step_by(20)
        .map(|(start, end)| (shows(*start), shows(*end + MS)))
        .collect();
    // Only the bytes of transfers, and a tenth of the others.
    let own = |at: i64| transfers.iter().step_by(20).any(|(s, e)| (*s..=*e).contains(&at));
    let points: Vec<(i64, u32)> = all
        .iter()
        .enumerate()
        .filter(|(i, (at, _))| own(*at) || i / 150 % 10 == 0)
        .map(|(_, point)| *point)
        .collect();
    let line = align_transfers(&seen(&points, 0, 0, 0.0), &some, 5 * S).unwrap();
    for at in [0, 1_800 * S, 3_600 * S] {
        assert!((line.offset_at_ns(at) - (shows(at) - at)).abs() <= 5 * MS, "{at}: {line:?}");
    }
}

/// A log of four hours with intermittent traffic stays aligned at 80 ppm: over a second.
#[test]
fn a_log_of_hours() {
    let points: Vec<(i64, u32)> = (0..24)
        .flat_map(|n| bursts(n + 1, 8).into_iter().map(move |(at, b)| (at + n as i64 * 600 * S, b)))
        .collect();
    let reference = seen(&points, 0, 0, 0.0);
    let line = between_arrivals(&reference, &seen(&points, 0, -400 * MS, 80.0), 30 * S).unwrap();
    for at in [0, 7_200 * S, 13_800 * S] {
        let truth = -400 * MS + at / 1_000_000 * 80;
        assert!((line.offset_at_ns(at) - truth).abs() <= line.error_ns, "{at}: {line:?}");
    }
    assert!(line.error_ns < 5 * MS, "{line:?}");
}

/// Where two places match equally well, the nearer one is taken and the other is
/// reported.
#[test]
fn another_place_is_told() {
    let one = bursts(5, 8);
    let twice: Vec<(i64, u32)> =
        one.iter().copied().chain(one.iter().map(|(at, bytes)| (at + 20 * S, *bytes))).collect();
    let line = between_arrivals(&seen(&twice, 0, 0, 0.0), &seen(&one, 0, 3 * MS, 0.0), 30 * S);
    let line = line.unwrap();
    assert!((line.offset_ns - 3 * MS).abs() < 2 * MS, "{line:?}");
    assert!(line.rival_ns.is_some_and(|ns| (ns + 20 * S).abs() < 20 * MS), "{line:?}");
}

/// Uploads end with an answer, a round trip after their last byte: acknowledgements come until then, and
/// a close some time later. By the last byte the clock would be a round trip ahead.
#[test]
fn uploads_end_with_their_answer() {
    let (mut sent, mut came, mut uploads) = (Arrivals::new(), Arrivals::new(), Vec::new());
    for (n, start) in [0, 3_000, 7_500, 9_000].into_iter().enumerate() {
        let last = start + 900 + 37 * n as i64;
        (start..=last).for_each(|ms| sent.add(ms * MS, 1_000));
        (start + 30..last + 30).step_by(3).for_each(|ms| came.add(ms * MS, 56));
        came.add((last + 30) * MS, 215);
        came.add((last + 120 + 9 * n as i64) * MS, 60);
        uploads.push(((start - 15) * MS, (last + 31) * MS));
    }
    for offset_ms in [0, 400, -250] {
        let moved = |(start, end): &(i64, i64)| (start + offset_ms * MS, end + offset_ms * MS);
        let moved: Vec<(i64, i64)> = uploads.iter().map(moved).collect();
        let line = align_uploads([&sent, &came], &moved, 30 * S).unwrap();
        assert!((line.offset_ns - offset_ms * MS).abs() <= line.error_ns, "{line:?}");
        assert!(line.error_ns < 5 * MS, "{line:?}");
    }
    // Ends that agree with no answers: not determined.
    let other: Vec<(i64, i64)> =
        (0..).zip(&uploads).map(|(n, (from, to))| (*from, to + n * n * 17 * MS)).collect();
    assert_eq!(align_uploads([&sent, &came], &other, 30 * S), Err(Unaligned::Unlike));
    assert!(align_uploads([&sent, &Arrivals::new()], &uploads, 30 * S).is_err());
}

/// The only answer near an upload's end is of a request before it: there its bytes do not pass.
#[test]
fn an_upload_stays_where_its_bytes_pass() {
    let (mut sent, mut came) = (Arrivals::new(), Arrivals::new());
    came.add(800 * MS, 215);
    (820..1_160).for_each(|ms| sent.add(ms * MS, 1_400));
    let upload = (810 * MS, 1_170 * MS);
    assert_eq!(align_uploads([&sent, &came], &[upload], 30 * S), Err(Unaligned::Unlike));
    came.add(1_165 * MS, 215);
    let line = align_uploads([&sent, &came], &[upload], 30 * S).unwrap();
    assert!((line.offset_ns - 5 * MS).abs() < 2 * MS, "{line:?}");
    // Answers of 1.4 s, acknowledged all the time, whose ends are nearer than those of the uploads.
    let (mut sent, mut came, mut uploads) = (Arrivals::new(), Arrivals::new(), Vec::new());
    for start in [0, 4_600, 8_900] {
        (start..start + 1_440).step_by(250).for_each(|ms| sent.add(ms * MS, 60_000));
        (start + 1_700..start + 3_100).step_by(10).for_each(|ms| {
            came.add(ms * MS, 4_000);
            sent.add(ms * MS, 104);
        });
        uploads.push((start * MS, (start + 1_700) * MS));
    }
    let aligned = align_uploads([&sent, &came], &uploads, 30 * S);
    assert!(aligned.is_err_and(|why| why == Unaligned::Unlike), "{aligned:?}");
}

/// The error bounds the ends of the evidence, including the slope and few samples.
#[test]
fn an_error_of_little_evidence() {
    let check = |samples: &[(i64, i64)], error_ns| {
        assert_eq!(line::through(samples, MS).unwrap().error_ns, error_ns, "{samples:?}");
    };
    check(&[(0, 7)], MS);
    // 10 s without a known drift: 5 s at 100 ppm, and the farther sample.
    check(&[(0, 0), (10 * S, 2 * MS)], MS + 2 * MS + MS / 2);
    // Forty seconds on a line: nothing is off.
    let on: Vec<(i64, i64)> = (0..9).map(|n| (n * 5 * S, n * MS)).collect();
    check(&on, MS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn arrivals_find_offset_and_drift(
        seed in 1_u64..1_000,
        offset_ms in -1_000_i64..1_000,
        ppm in -50.0_f64..50.0,
    ) {
        let points = bursts(seed, 90);
        let reference = seen(&points, 0, 0, 0.0);
        let other = seen(&points, 0, offset_ms * MS, ppm);
        let line = between_arrivals(&reference, &other, 5 * S).unwrap();
        for at in [0, 45 * S, 90 * S] {
            let truth = offset_ms * MS + (at as f64 * ppm * 1e-6) as i64;
            prop_assert!((line.offset_at_ns(at) - truth).abs() < 2 * MS, "{line:?}, {truth}");
        }
    }

    #[test]
    fn points_find_offset_and_drift(
        seed in 1_u64..1_000,
        offset_ms in -1_000_i64..1_000,
        ppm in -50.0_f64..50.0,
    ) {
        // One-way delays of 20 ms plus queueing.
        let pairs: Vec<PointPair> = bursts(seed, 90)
            .into_iter()
            .enumerate()
            .map(|(i, (at, queue))| {
                let outward = i % 2 == 0;
                let delay = 20 * MS + i64::from(queue % 50) * MS;
                let (there, here) = if outward { (at + delay, at) } else { (at, at + delay) };
                let gained = (there as f64 * ppm * 1e-6) as i64;
                PointPair { reference_ns: here, other_ns: there + offset_ms * MS + gained, outward }
            })
            .collect();
        let line = between_points(&pairs).unwrap();
        for at in [0, 45 * S, 90 * S] {
            let truth = offset_ms * MS + (at as f64 * ppm * 1e-6) as i64;
            prop_assert!((line.offset_at_ns(at) - truth).abs() < 5 * MS, "{line:?}, {truth}");
        }
    }

    #[test]
    fn transfers_find_their_offset(seed in 1_u64..1_000, offset_ms in -1_000_i64..1_000) {
        let points = bursts(seed, 60);
        let mut transfers: Vec<(i64, i64)> = Vec::new();
        for (at, _) in &points {
            match transfers.last_mut() {
                Some((_, end)) if at - *end < 60 * MS => *end = *at,
                _ => transfers.push((*at, *at)),
            }
        }
        let moved: Vec<(i64, i64)> = transfers
            .iter()
            .map(|(start, end)| (start - 40 * MS + offset_ms * MS, end + MS + offset_ms * MS))
            .collect();
        let line = align_transfers(&seen(&points, 0, 0, 0.0), &moved, 5 * S).unwrap();
        prop_assert!((line.offset_ns - offset_ms * MS).abs() < 5 * MS, "{line:?}");
    }

    #[test]
    fn nothing_panics(points in prop::collection::vec((any::<i32>(), any::<u32>()), 0..50)) {
        let mut sorted = points.clone();
        sorted.sort_unstable();
        let mut arrivals = Arrivals::new();
        sorted.iter().for_each(|(at, bytes)| arrivals.add(i64::from(*at) * 1_000, *bytes));
        let _ = between_arrivals(&arrivals, &arrivals, S);
        let spans: Vec<(i64, i64)> =
            sorted.windows(2).map(|w| (i64::from(w[0].0), i64::from(w[1].0))).collect();
        let _ = align_transfers(&arrivals, &spans, S);
        let ends = [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (i64::MAX - 1, i64::MAX)];
        let _ = align_transfers(&arrivals, &ends, S);
    }
}

#[test]
fn a_clock_that_jumps_has_no_offset() {
    let all = bursts(1, 40);
    let radio = seen(&all, 0, 0, 0.0);
    let check = |by_ns: i64, at_ns: i64| {
        let mut capture = seen(&all, 5 * MS, 0, 0.0);
        let later = capture
            .points()
            .iter()
            .map(|(at, bytes)| (if *at > at_ns { at + by_ns } else { *at }, *bytes));
        let mut later: Vec<_> = later.collect();
        later.sort_unstable();
        capture = seen(&later, 0, 0, 0.0);
        between_arrivals(&radio, &capture, 5 * S).map(|line| line.offset_ns)
    };
    assert!(check(0, 20 * S).is_ok_and(|ns| ns.abs() < 10 * MS));
    for by_ns in [-300 * MS, 200 * MS, 500 * MS, 2 * S, 8 * S] {
        assert_eq!(check(by_ns, 15 * S), Err(Unaligned::Jumps), "{by_ns}");
    }
}

/// The acknowledgements of an upload over a slow line, one in 40 ms: neighbouring places fit nearly as
/// well, and the error covers them.
#[test]
fn a_steady_line_is_aligned_within_the_places_that_fit() {
    let random = |n: i64| (n * n * 31 + n * 17) % 7;
    let acknowledgements = |offset_ns: i64| {
        let points = (0..250).map(|n| (n * 40 * MS + random(n) * MS / 2 + offset_ns, 52));
        seen(&points.collect::<Vec<_>>(), 0, 0, 0.0)
    };
    for offset_ns in [0, -2_300 * MS] {
        let line = between_arrivals(&acknowledgements(0), &acknowledgements(offset_ns), 30 * S);
        let line = line.unwrap();
        assert!((line.offset_ns - offset_ns).abs() <= line.error_ns, "{line:?}");
        assert!((40 * MS..700 * MS).contains(&line.error_ns), "{line:?}");
    }
}

/// A narrow cell that is never idle: a packet takes several TTIs, each of which is full.
#[test]
fn a_link_that_is_never_idle_is_aligned_by_its_pauses() {
    let ahead_ns = 300 * MS;
    let (mut radio, mut capture) = (Arrivals::new(), Arrivals::new());
    let mut random = 7_u64;
    for burst in [0, 900, 4_500] {
        let (mut waiting, mut at) = (0, burst * MS);
        while at < (burst + 3_000 / (burst / 900 + 1)) * MS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = 180 + (random >> 60) as u32 * 10;
            radio.add(at, block);
            waiting += block;
            if waiting >= 1_400 {
                waiting -= 1_400;
                // HARQ and reordering delay a packet by some TTIs.
                capture.add(at + ahead_ns + (random >> 40) as i64 % 9 * MS, 1_360);
            }
            at += MS;
        }
    }
    let line = between_arrivals(&radio, &capture, 5_000 * MS).unwrap();
    assert!((line.offset_ns - ahead_ns).abs() < line.error_ns + 5 * MS, "{line:?}");
    assert!(line.error_ns < 10 * MS, "{line:?}");
}
