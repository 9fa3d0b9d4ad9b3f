use airmile_model::Bound;

use airmile_model::Verdict;

use super::*;

fn burst(start: i64, end: i64) -> Burst {
    Burst {
        dir: Direction::Dl,
        timing_segment: 0,
        start_tti: TtiIndex(start),
        end_tti: TtiIndex(end),
        bytes: 1,
        last_bytes: 0,
        scheduled_ttis: 1,
        unknown_ttis: 0,
        opened_by: Bound::FirstData,
        closed_by: Bound::Padding,
        confidence: 1.0,
    }
}

fn activity(start: i64, n_tti: i64, unknown: bool) -> Activity {
    Activity {
        timing_segment: 0,
        numerology: 0,
        start_tti: TtiIndex(start),
        n_tti,
        at_ns: Some(start * 1_000_000 + 7_000_000_000),
        bytes: 100 * n_tti as u64,
        unknown,
    }
}

fn transfer(id: &str, start: i64, end: i64) -> Transfer {
    Transfer {
        id: id.into(),
        time: None,
        tti: Some((TtiIndex(start), TtiIndex(end))),
        bytes: None,
        dir: None,
        unfinished: false,
    }
}

fn timeline() -> Timeline {
    let mut timeline = Timeline::new(Direction::Dl);
    timeline.set_evidence(Some(Evidence::Fused));
    timeline.add_burst(burst(0, 95));
    timeline.add_burst(burst(200, 210));
    timeline.add_activity(&activity(0, 50, false));
    timeline.add_activity(&activity(200, 10, false));
    timeline
}

#[test]
fn sums_the_overlap_of_bursts() {
    let found = timeline()
        .findings(&[transfer("a", 0, 100), transfer("b", 150, 250)], &VerdictThresholds::default());
    assert_eq!(found[0].throughput_time_ms, Some(95.0));
    assert_eq!(found[0].active_time_ms, Some(50.0));
    assert_eq!(found[0].bytes, Some(5_000));
    assert_eq!(found[0].verdict, Verdict::Radio);
    assert_eq!(found[0].sched_wait_ms, None);
    assert_eq!(found[1].link_demand, Some(0.1));
    assert_eq!(found[1].verdict, Verdict::NotRadio);
    assert_eq!(found[1].start_us, Some(7_150_000));
}

/// Most bytes came while the queue was empty: over the throughput time, they would be ten times the rate
/// inside bursts.
#[test]
fn bytes_outside_of_bursts_are_no_rate_of_the_link() {
    let rates = |outside_ttis: i64| {
        let mut timeline = Timeline::new(Direction::Dl);
        timeline.set_evidence(Some(Evidence::Fused));
        timeline.add_burst(Burst { bytes: 1_100, last_bytes: 100, ..burst(0, 10) });
        timeline.add_activity(&activity(0, 10 + outside_ttis, false));
        let (one, thresholds) = (transfer("a", 0, 100), VerdictThresholds::default());
        let found = timeline.findings(&[one], &thresholds);
        (found[0].link_throughput_bps, found[0].burst_throughput_bps)
    };
    assert_eq!(rates(2), (Some(960e3), Some(800e3)));
    assert_eq!(rates(90), (None, Some(800e3)));
}

#[test]
fn bytes_in_another_unit() {
    let mut timeline = Timeline::new(Direction::Dl);
    timeline.set_evidence(Some(Evidence::Fused));
    timeline.add_activity(&activity(0, 4_000, false));
    let asks = |bytes: u64, others: &[Transfer]| {
        let one = Transfer { bytes: Some(bytes), ..transfer("a", 0, 4_000) };
        let all = [&[one], others].concat();
        let found = timeline.findings(&all, &VerdictThresholds::default());
        found[0].notes.iter().any(|note| note.contains("not 400: are the given ones kilobytes"))
    };
    assert!(asks(400, &[]));
    assert!(!asks(40_000, &[]));
    // The rest is of another one.
    assert!(!asks(400, &[transfer("b", 0, 4_000)]));
}

#[test]
fn overlapping_transfers_conclude_only_that_it_is_not_the_link() {
    let found = timeline()
        .findings(&[transfer("a", 0, 100), transfer("b", 90, 250)], &VerdictThresholds::default());
    assert_eq!(found[0].verdict, Verdict::Unknown);
    assert_eq!(found[1].verdict, Verdict::NotRadio);
    assert!(found[0].overlapped && found[1].overlapped);
}

#[test]
fn a_hole_that_could_change_the_verdict_makes_it_unknown() {
    let mut timeline = timeline();
    timeline.add_activity(&activity(210, 35, true));
    let found = timeline
        .findings(&[transfer("a", 0, 100), transfer("b", 200, 250)], &VerdictThresholds::default());
    assert_eq!(found[0].verdict, Verdict::Radio);
    assert_eq!(found[1].unknown_ms, 35.0);
    assert_eq!(found[1].verdict, Verdict::Unknown);
}

/// 89.5 % to 90.5 %: mixed or radio, and never "unknown", for one missing TTI of a hundred.
#[test]
fn a_missing_tti_at_a_limit_lowers_confidence_alone() {
    let mut timeline = Timeline::new(Direction::Dl);
    timeline.set_evidence(Some(Evidence::Fused));
    timeline.add_burst(burst(2, 181));
    timeline.add_activity(&activity(0, 2, true));
    let found = timeline.findings(&[transfer("a", 0, 200)], &VerdictThresholds::default());
    assert_eq!((found[0].unknown_ms, found[0].verdict), (2.0, Verdict::Radio));
    assert!((0.4..0.6).contains(&found[0].confidence), "{}", found[0].confidence);
    assert!(found[0].notes.iter().any(|note| note.contains("between 89.5 and 90.5 %")));
}

#[test]
fn time_outside_the_log_is_unknown() {
    let mut timeline = timeline();
    timeline.note(TtiIndex(0), None);
    timeline.note(TtiIndex(299), None);
    let found = timeline.findings(
        &[transfer("a", 0, 100), transfer("b", 270, 400), transfer("c", 900, 1_000)],
        &VerdictThresholds::default(),
    );
    assert_eq!((found[0].unknown_ms, found[0].verdict), (0.0, Verdict::Radio));
    assert_eq!((found[1].unknown_ms, found[1].verdict), (100.0, Verdict::Unknown));
    assert_eq!((found[2].unknown_ms, found[2].verdict), (100.0, Verdict::Unknown));
    // Nothing was seen of it, and so neither an empty queue nor a demand of 0.
    let none = (None, None, None);
    assert_eq!((found[2].throughput_time_ms, found[2].link_demand, found[2].active_time_ms), none);
    assert!(
        found[2].notes.iter().all(|note| !note.contains("link demand")),
        "{:?}",
        found[2].notes
    );
    assert_eq!(found[1].link_demand, Some(0.0));
}

#[test]
fn a_transfer_whose_bytes_were_not_seen_is_not_judged() {
    let claimed = |bytes| Transfer { bytes: Some(bytes), ..transfer("a", 0, 100) };
    let found =
        timeline().findings(&[claimed(5_000), claimed(50_000)], &VerdictThresholds::default());
    assert!(found[0].notes.iter().all(|n| !n.contains("bytes then")));
    assert_eq!(found[1].verdict, Verdict::Unknown);
    assert!(found[1].notes.iter().any(|n| n.contains("5000 bytes then, not 50000")));
}

/// With allocations alone a pause may be a hole if bytes are missing; with marks in the
/// blocks it is not.
#[test]
fn pauses_of_a_log_that_lacks_bytes_show_no_empty_queue() {
    let check = |evidence, bytes, expected: Verdict| {
        let mut timeline = Timeline::new(Direction::Dl);
        timeline.set_evidence(Some(evidence));
        timeline.add_burst(burst(0, 600));
        timeline.add_activity(&Activity { bytes: 300_000, ..activity(0, 600, false) });
        let claimed = Transfer { bytes: Some(bytes), ..transfer("a", 0, 1_000) };
        let found = timeline.findings(&[claimed], &VerdictThresholds::default());
        assert_eq!(found[0].verdict, expected, "{evidence:?} {bytes} {:?}", found[0].notes);
    };
    check(Evidence::Grants, 290_000, Verdict::NotRadio);
    check(Evidence::Grants, 305_000, Verdict::Unknown);
    check(Evidence::Fused, 305_000, Verdict::NotRadio);
}

/// Data may have waited in a burst or not: by itself it decides nothing.
#[test]
fn an_unclear_burst_is_unknown_time() {
    let found = |unclear: (i64, i64)| {
        let mut timeline = timeline();
        let (start, end) = unclear;
        let unknown_ttis = (end - start) as u32;
        timeline.add_burst(Burst { unknown_ttis, ..burst(start, end) });
        let transfers = [transfer("a", 0, 100), transfer("b", 300, 400)];
        timeline.findings(&transfers, &VerdictThresholds::default())
    };
    let whole = &found((300, 400))[1];
    assert_eq!((whole.verdict, whole.confidence), (Verdict::Unknown, 0.0));
    assert_eq!((whole.throughput_time_ms, whole.unknown_ms), (None, 100.0));
    assert!(whole.notes.iter().any(|note| note.contains("a sender's pace")), "{:?}", whole.notes);
    assert!(whole.notes.iter().all(|note| !note.contains("missing")), "{:?}", whole.notes);
    // A small part of a transfer does not change what the rest shows.
    let part = &found((300, 340))[1];
    assert_eq!((part.verdict, part.throughput_time_ms), (Verdict::NotRadio, Some(0.0)));
    let other = &found((300, 400))[0];
    assert_eq!((other.verdict, other.unknown_ms), (Verdict::Radio, 0.0));
}

#[test]
fn one_that_had_not_ended_is_judged_so_far() {
    // Data that the application wrote need not have crossed the air.
    let cut = Transfer { unfinished: true, bytes: Some(50_000), ..transfer("a", 0, 100) };
    let found = timeline().findings(&[cut], &VerdictThresholds::default());
    assert_eq!((found[0].verdict, found[0].bytes), (Verdict::Radio, Some(5_000)));
    assert!(found[0].notes[0].contains("still in progress"), "{:?}", found[0].notes);
}

#[test]
fn a_log_that_begins_within_a_transfer_leaves_the_clock_unasked() {
    let mut timeline = timeline();
    timeline.note(TtiIndex(6), None);
    timeline.note(TtiIndex(299), None);
    let thresholds = VerdictThresholds::default();
    let found = timeline.findings(&[transfer("a", 0, 100), transfer("b", 280, 400)], &thresholds);
    assert_eq!(found[0].notes.last().unwrap(), "the log begins 6 ms after it: they are unknown");
    assert!(found[1].notes.iter().any(|n| n.contains("modem's clock?")), "{:?}", found[1].notes);
}

#[test]
fn places_transfers_by_time() {
    let at = Stamp::modem(7_100_000_000);
    assert_eq!(timeline().clock().tti_at(at.ns), Some(TtiIndex(100)));
}

/// The log's times of TTIs vary by parts of a TTI, and an interval has as many TTIs as it lasts.
#[test]
fn an_interval_has_the_ttis_of_its_duration() {
    let mut timeline = Timeline::new(Direction::Dl);
    for (tti, at_ns) in [(0, 7_000_100_000), (2_000, 9_000_000_000), (90_000, 97_090_000_000)] {
        timeline.note(TtiIndex(tti), Some(Stamp::modem(at_ns)));
    }
    let place = |from_us: i64, to_us: i64| {
        let time = Some((Stamp::modem(from_us * 1_000), Stamp::modem(to_us * 1_000)));
        let placed = timeline.place(&Transfer { time, tti: None, ..transfer("a", 0, 0) }, true);
        placed.map(|(start, end)| (start.0, end.unwrap().0))
    };
    // The start is in TTI -1 of the first anchor, and the end just in TTI 3,000 of the next one.
    assert_eq!(place(7_000_000, 10_000_000), Some((-1, 2_999)));
    assert_eq!(place(7_000_200, 7_016_700), Some((0, 17)));
    assert_eq!(place(7_000_900, 7_001_200), Some((0, 1)));
    // The clock went apart from the TTIs.
    assert_eq!(place(8_000_100, 97_090_000), Some((1_000, 90_000)));
}

#[test]
fn many_transfers_on_many_bursts_take_no_square() {
    let mut timeline = Timeline::new(Direction::Dl);
    timeline.set_evidence(Some(Evidence::Fused));
    for i in 0..1_000_000 {
        timeline.add_burst(burst(10 * i, 10 * i + 7));
        timeline.add_activity(&activity(10 * i, 7, false));
    }
    let transfers: Vec<Transfer> =
        (0..10_000).map(|i| transfer("t", 1_000 * i, 1_000 * i + 1_004)).collect();
    let found = timeline.findings(&transfers, &VerdictThresholds::default());
    assert!(found[..9_999].iter().all(|f| f.throughput_time_ms == Some(704.0)));
    assert!(found[..9_999].iter().all(|f| f.bytes == Some(70_400) && !f.overlapped));
}

#[test]
fn granted_time_leaves_the_radio_by_degrees() {
    let found = |granted: i64, ungauged: i64| {
        let mut timeline = Timeline::new(Direction::Ul);
        timeline.set_evidence(Some(Evidence::BufferStatus));
        timeline.add_burst(Burst { dir: Direction::Ul, ..burst(0, 1_000) });
        timeline.add_activity(&activity(0, 1_000, false));
        timeline.add_granted(TtiIndex(0), TtiIndex(granted), true);
        timeline.add_granted(TtiIndex(granted), TtiIndex(granted + ungauged), false);
        timeline.findings(&[transfer("a", 0, 1_000)], &VerdictThresholds::default()).remove(0)
    };
    let parts = |granted, ungauged| {
        let one = found(granted, ungauged);
        let counted = one.counted_ms().unwrap().map(f64::round);
        (one.limited_ms.unwrap(), one.granted_ms, counted, one.verdict)
    };
    let whole = [1_000.0, 0.0, 0.0];
    assert_eq!(parts(0, 0), (1_000.0, Some(0.0), whole, Verdict::Radio));
    assert_eq!(parts(100, 0), (900.0, Some(100.0), whole, Verdict::Radio));
    assert_eq!(parts(300, 0), (700.0, Some(300.0), [700.0, 300.0, 0.0], Verdict::NotRadio));
    assert_eq!(parts(200, 0), (800.0, Some(200.0), [800.0, 0.0, 200.0], Verdict::Unknown));
    // Without reports.
    assert_eq!(parts(0, 50), (950.0, None, [950.0, 0.0, 50.0], Verdict::Radio));
    assert_eq!(parts(0, 300), (700.0, None, [700.0, 0.0, 300.0], Verdict::Unknown));
    // What is measured is stated, whatever it counts for.
    let one = found(220, 0);
    assert!(one.notes[1].starts_with("during 220 of the 1000 ms"), "{:?}", one.notes);
    assert!(
        one.notes[1].ends_with(
            "44 ms for certain (not counted as the radio's), 176 ms possibly (counted as unknown)"
        ),
        "{:?}",
        one.notes
    );
    assert_eq!(
        (found(400, 401).granted_ms, found(400, 401).limited_ms),
        (Some(400.0), Some(199.0))
    );
    let by_granted = (0..100).map(|n| found(5 * n, 0));
    let by_ungauged = (0..60).map(|n| found(400, 10 * n));
    for series in [by_granted.collect::<Vec<_>>(), by_ungauged.collect()] {
        for pair in series.windows(2) {
            let [one, next] = [0, 1].map(|at: usize| pair[at].counted_ms().unwrap());
            let steps = one.iter().zip(next).map(|(a, b)| (a - b).abs());
            assert!(steps.fold(0.0, f64::max) < 40.0, "{one:?} {next:?}");
        }
    }
}
