//! Tests of the detection.

use airmile_model::{Position, Verdict, VerdictThresholds};
use proptest::prelude::*;

use super::thin::MOST_PENDING;
use super::*;

fn grant(tti: i64, bytes: u32) -> Grant {
    let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 10);
    grant.tbs_bytes = Some(bytes);
    grant
}

fn split(grants: &[Grant]) -> (Vec<(i64, i64, u64)>, SmallTransfers) {
    let options = DetectOptions { pause_ms: 100, min_bytes: 1_000 };
    let mut detector = TransferDetector::new(Direction::Dl, options);
    grants.iter().for_each(|g| detector.push(g));
    let small = detector.finish();
    let mut found = Vec::new();
    while let Some(a) = detector.poll() {
        found.push((a.start_tti.0, a.end_tti.0, a.bytes));
    }
    (found, small)
}

#[test]
fn splits_at_a_pause_and_counts_the_small() {
    let grants = [grant(5, 900), grant(50, 900), grant(151, 900), grant(152, 200)];
    let (found, small) = split(&grants);
    assert_eq!(found, [(5, 51, 1_800), (151, 153, 1_100)]);
    assert_eq!(small, SmallTransfers::default());
    let (found, small) = split(&[grant(5, 900), grant(500, 1_000)]);
    assert_eq!(found, [(500, 501, 1_000)]);
    assert_eq!(small, SmallTransfers { count: 1, bytes: 900 });
}

#[test]
fn splits_where_the_clock_was_set_back() {
    let at = |tti: i64, ms: i64| {
        let at = Some(Stamp::modem(ms * 1_000_000));
        Grant { at, ..grant(tti, 1_000) }
    };
    let (found, _) = split(&[at(5, 9_005), at(6, 9_006), at(8, 4_000), at(9, 4_001)]);
    assert_eq!(found, [(5, 7, 2_000), (8, 10, 2_000)]);
    // Stamps of one log may be some ms early.
    let (found, _) = split(&[at(5, 9_005), at(6, 8_900)]);
    assert_eq!(found, [(5, 7, 2_000)]);
}

/// A block every 320 ms, as of a sleeping phone, does not join two transfers.
#[test]
fn blocks_that_are_alone_end_no_pause() {
    let options = DetectOptions::default();
    let found = |data_bytes: Option<u32>| {
        let mut detector = TransferDetector::new(Direction::Dl, options);
        let large = |tti: i64| grant(tti, 30_000);
        let lone = |tti: i64| Grant { data_bytes, ..grant(tti, 400) };
        let alone = (1..7).map(|n| lone(100 + n * 320));
        let grants = [large(0), large(100)].into_iter().chain(alone);
        // The handshake of the next transfer.
        let grants = grants.chain([lone(2_260), lone(2_290), large(2_300)]);
        grants.for_each(|grant| detector.push(&grant));
        let small = detector.finish();
        let mut found = Vec::new();
        while let Some(one) = detector.poll() {
            found.push((one.start_tti.0, one.end_tti.0, one.bytes));
        }
        (found, small)
    };
    let (hidden, small) = found(None);
    assert_eq!(hidden, [(0, 101, 60_000), (2_260, 2_301, 30_800)]);
    assert_eq!(small, SmallTransfers { count: 0, bytes: 2_400 });
    assert_eq!(found(Some(400)).0, hidden);
}

#[test]
fn retransmissions_control_and_others_are_no_data() {
    let mut retx = grant(5, 900);
    retx.retx = Some(true);
    let mut control = grant(6, 900);
    control.data_bytes = Some(0);
    let mut paging = grant(7, 900);
    paging.rnti = airmile_model::RntiType::P;
    let mut uplink = grant(8, 9_000);
    uplink.dir = Direction::Ul;
    assert_eq!(split(&[retx, control, paging, uplink]).0, []);
}

/// Transfers of activity given in ms (pause before, length, bytes a ms), on a carrier
/// of a numerology: start and end in ms and bytes, and the small ones.
fn transfers_of(
    activity: &[(i64, i64, u32)],
    numerology: u8,
    options: DetectOptions,
) -> (Vec<(f64, f64, u64)>, SmallTransfers) {
    let mut detector = TransferDetector::new(Direction::Dl, options);
    let mut at_ms = 0;
    for &(pause_ms, n_ms, bytes) in activity {
        let start = TtiSpan::from_ms(at_ms + pause_ms, numerology).0;
        at_ms += pause_ms + n_ms;
        let end = TtiSpan::from_ms(at_ms, numerology).0;
        // The advance of the log ends a transfer as the next grant would.
        detector.advance(TtiIndex(start));
        for tti in start..end {
            let mut grant = grant(tti, bytes >> numerology);
            grant.position.numerology = numerology;
            detector.push(&grant);
        }
    }
    let small = detector.finish();
    let mut found = Vec::new();
    while let Some(one) = detector.poll() {
        let ms = |tti: TtiIndex| TtiSpan(tti.0).ms(numerology);
        found.push((ms(one.start_tti), ms(one.end_tti), one.bytes));
    }
    (found, small)
}

proptest! {
    /// The pause is a time: the same traffic in shorter TTIs gives the same transfers.
    #[test]
    fn the_numerology_changes_no_transfer(
        activity in prop::collection::vec((0_i64..400, 1_i64..20, 1_u32..20), 1..20),
        numerology in 1_u8..=4,
        pause_ms in 1_u32..300,
    ) {
        let activity: Vec<_> =
            activity.into_iter().map(|(pause, n, bytes)| (pause, n, bytes * 160)).collect();
        let options = DetectOptions { pause_ms, min_bytes: 5_000 };
        let lte = transfers_of(&activity, 0, options);
        prop_assert_eq!(transfers_of(&activity, numerology, options), lte);
    }
}

/// Blocks of bytes in spans of ms; of a transfer: its start, its end, its bytes and its doubtful TTIs.
fn found_of(spans: &[(std::ops::Range<i64>, usize, u32)]) -> Vec<(i64, i64, u64, i64)> {
    found_in(Direction::Dl, spans)
}

fn found_in(
    dir: Direction,
    spans: &[(std::ops::Range<i64>, usize, u32)],
) -> Vec<(i64, i64, u64, i64)> {
    let mut grants: Vec<Grant> = Vec::new();
    for (span, step, bytes) in spans {
        let known = |tti| Grant { data_bytes: Some(*bytes), dir, ..grant(tti, *bytes) };
        grants.extend(span.clone().step_by(*step).map(known));
    }
    grants.sort_by_key(|grant| grant.position.tti);
    let all = |every: i64| {
        let mut detector = TransferDetector::new(dir, DetectOptions::default());
        for grant in &grants {
            if grant.position.tti.0 % every == 0 {
                detector.advance(grant.position.tti);
            }
            detector.push(grant);
        }
        detector.finish();
        std::iter::from_fn(|| detector.poll())
            .map(|one| (one.start_tti.0, one.end_tti.0, one.bytes, one.doubtful_ttis))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(i64::MAX));
    all(7)
}

/// After an upload of 250 ms, a keep-alive of 100 bytes every 200 ms.
#[test]
fn a_tail_of_small_packets_is_no_part_of_a_transfer() {
    assert_eq!(found_of(&[(0..250, 1, 2_000), (300..3_000, 200, 100)]), [(0, 250, 500_000, 0)]);
    // A request after it, too.
    let tail = [(0..250, 1, 2_000), (260..400, 40, 100), (500..502, 1, 1_300)];
    assert_eq!(found_of(&tail), [(0, 250, 500_000, 0)]);
}

/// Some bytes every 50 ms join no two transfers.
#[test]
fn small_packets_between_two_transfers_join_nothing() {
    let two = |from: i64| [(0..300, 1, 2_000), (320..from, 50, 100), (from..from + 300, 1, 2_000)];
    assert_eq!(found_of(&two(900)), [(0, 300, 600_000, 0), (900, 1_200, 600_000, 0)]);
    // Without a whole pause between them they may be one.
    assert_eq!(found_of(&two(600)), [(0, 900, 1_200_600, 300)]);
}

/// A handshake shortly before the data may be of the transfer; keep-alives long before are not.
#[test]
fn small_packets_before_a_transfer_are_doubtful_or_no_part_of_it() {
    assert_eq!(found_of(&[(0..200, 50, 60), (200..450, 1, 2_000)]), [(0, 450, 500_240, 200)]);
    let long = found_of(&[(0..1_400, 150, 60), (1_400..1_650, 1, 2_000)]);
    assert_eq!(long, [(1_400, 1_650, 500_000, 0)]);
}

/// Polls that are more than a transfer's least bytes in time are one of their own.
#[test]
fn long_polls_do_not_join_the_next_transfer() {
    let polls = |to: i64| (0..to, 300, 400);
    let data = |from: i64| (from..from + 2_500, 1, 1_600);
    // Less than a transfer, a little of it with the first block, and more than one.
    for (to, small) in [(14_000, None), (14_600, None), (20_000, Some((0, 19_801, 26_800, 0)))] {
        let from = to + 70;
        let transfer = (from, from + 2_500, 4_000_000, 0);
        let expected: Vec<_> = small.into_iter().chain([transfer]).collect();
        assert_eq!(found_of(&[polls(to), data(from)]), expected, "{to}");
    }
    // A handshake of one round trip may be of the transfer.
    let with_handshake = [polls(20_000), (20_150..20_151, 1, 60), data(20_190)];
    assert_eq!(found_of(&with_handshake)[1], (20_150, 22_690, 4_000_060, 0));
    // Before a transfer like it, too, a third of its least bytes came.
    let few = [(0..2_400, 300, 1_300), data(2_470)];
    assert_eq!(found_of(&few), [(2_470, 4_970, 4_000_000, 0)]);
    // They go on during two transfers.
    let two = found_of(&[(0..60_000, 300, 1_200), data(20_000), data(40_150)]);
    let long = two.iter().filter(|one| one.2 > 3_000_000).map(|one| (one.0, one.1));
    assert_eq!(long.collect::<Vec<_>>(), [(20_000, 22_501), (40_150, 42_650)]);
}

/// An upload ends with its answer, and begins with its handshake; what goes on after it is none of it.
#[test]
fn small_packets_directly_around_an_upload_are_of_it() {
    // The log goes on after it.
    let found = |spans: &[_]| found_in(Direction::Ul, &[spans, &[(2_000..2_001, 1, 50)]].concat());
    let data = (200..450, 1, 2_000);
    // A handshake, status reports, and the acknowledgement of the answer.
    let whole = [(15..16, 1, 60), (180..181, 1, 60), data.clone(), (470..530, 30, 50)];
    assert_eq!(found(&whole), [(15, 501, 500_220, 0)]);
    // Behind a slow line the answer is late.
    let late = [data.clone(), (480..810, 30, 50)];
    assert_eq!(found(&late), [(200, 781, 500_550, 331)]);
    for by in [20, 150] {
        assert_eq!(found(&[data.clone(), (480..3_000, by, 50)]), [(200, 450, 500_000, 0)], "{by}");
    }
    assert_eq!(found(&[data.clone(), (700..701, 1, 50)]), [(200, 450, 500_000, 0)]);
}

/// The end of a log is no silence: what goes on up to it may go on behind it.
#[test]
fn a_part_of_a_log_gives_an_upload_the_bounds_of_the_whole() {
    let found = |by: i64, log_end: i64| {
        let mut detector = TransferDetector::new(Direction::Ul, DetectOptions::default());
        let blocks = (200..450).map(|tti| (tti, 2_000));
        for (tti, bytes) in blocks.chain((480..log_end).step_by(by as usize).map(|tti| (tti, 50))) {
            let data_bytes = Some(bytes);
            detector.push(&Grant { data_bytes, dir: Direction::Ul, ..grant(tti, bytes) });
        }
        detector.advance(TtiIndex(log_end));
        detector.finish();
        let found = std::iter::from_fn(|| detector.poll());
        found.map(|one| (one.start_tti.0, one.end_tti.0)).collect::<Vec<_>>()
    };
    for log_end in [500, 700, 900, 3_000] {
        assert_eq!(found(30, log_end), [(200, 450)], "{log_end}");
    }
    // A silence that is longer than what is between the blocks of its answer.
    assert_eq!(found(400, 520), [(200, 481)]);
}

/// So each block costs the same, however many came before it and however few bytes they have: 15 kB/s and 3 kB/s.
#[test]
fn blocks_of_few_bytes_are_kept_in_a_limited_number() {
    let options = DetectOptions { min_bytes: 10_000_000, ..DetectOptions::default() };
    for every_ttis in [2, 10] {
        let mut detector = TransferDetector::new(Direction::Dl, options);
        for tti in (0..).step_by(every_ttis).take(200_000) {
            detector.push(&Grant { data_bytes: Some(30), ..grant(tti, 30) });
            assert!(detector.pending.len() <= MOST_PENDING);
        }
        let small = detector.finish();
        assert_eq!((detector.poll(), small.bytes), (None, 200_000 * 30));
    }
}

/// However long it takes until it has the least bytes: packets of 100 bytes each 100 ms are before it.
#[test]
fn a_large_transfer_begins_with_its_data() {
    for (min_bytes, from) in [(20_000_000, 50_000), (20_000_000, 700_000), (100_000, 50_000)] {
        let options = DetectOptions { min_bytes, ..DetectOptions::default() };
        let mut detector = TransferDetector::new(Direction::Dl, options);
        let before = (0..from).step_by(100).map(|tti| (tti, 100));
        let data = (from..from + 40_000).step_by(2).map(|tti| (tti, 1_400));
        before.chain(data).for_each(|(tti, bytes)| detector.push(&grant(tti, bytes)));
        detector.finish();
        let found = detector.poll().map(|one| (one.start_tti.0, one.end_tti.0, one.bytes));
        assert_eq!(found, Some((from, from + 39_999, 28_000_000)));
    }
}

proptest! {
    /// Groups that are joined early begin no transfer.
    #[test]
    fn joined_groups_change_no_bounds(
        min_bytes in 2_000_u64..60_000,
        parts in prop::collection::vec((1_i64..150, 1_u32..3_000, 1_usize..60), 1..8),
    ) {
        let found = |joins: bool| {
            let options = DetectOptions { min_bytes, pause_ms: 200 };
            let mut detector = TransferDetector::new(Direction::Dl, options);
            let mut tti = 0;
            for (by, bytes, n) in &parts {
                for at in 0..*n {
                    tti += 1 + by * (1 + at as i64 % 3) / 3;
                    detector.push(&grant(tti, bytes / (1 + at as u32 % 4) + 1));
                    if joins {
                        detector.join_pending();
                    }
                }
            }
            let small = detector.finish();
            (std::iter::from_fn(|| detector.poll()).collect::<Vec<_>>(), small)
        };
        prop_assert_eq!(found(true), found(false));
    }
}

/// A transfer that is slow throughout is one, and so is one with a pace.
#[test]
fn a_slow_transfer_is_no_trickle() {
    assert_eq!(found_of(&[(0..5_000, 100, 1_400)]), [(0, 4_901, 70_000, 0)]);
    assert_eq!(found_of(&[(0..5_000, 40, 200)]), [(0, 4_961, 25_000, 0)]);
    let slower = [(0..1_000, 10, 1_000), (1_000..3_000, 100, 1_000)];
    assert_eq!(found_of(&slower), [(0, 2_901, 120_000, 0)]);
}

#[test]
fn a_verdict_does_not_rest_on_guessed_bounds() {
    use crate::transfer::Timeline;
    let judged_at = |waited: i64, doubtful_ttis: i64, around_ttis: i64| {
        let transfer = airmile_model::Transfer {
            id: "ul0".to_owned(),
            time: None,
            tti: Some((TtiIndex(0), TtiIndex(460))),
            bytes: None,
            dir: Some(Direction::Ul),
            unfinished: false,
        };
        let mut timeline = Timeline::new(Direction::Ul);
        timeline.set_evidence(Some(airmile_model::Evidence::BufferStatus));
        timeline.note(TtiIndex(0), None);
        timeline.note(TtiIndex(459), None);
        let burst = airmile_model::Burst {
            dir: Direction::Ul,
            timing_segment: 0,
            start_tti: TtiIndex(460 - waited),
            end_tti: TtiIndex(460),
            bytes: 500_000,
            last_bytes: 0,
            scheduled_ttis: 1,
            unknown_ttis: 0,
            opened_by: airmile_model::Bound::FirstData,
            closed_by: airmile_model::Bound::Padding,
            confidence: 1.0,
        };
        timeline.add_burst(burst);
        let thresholds = VerdictThresholds::default();
        let mut finding = timeline.findings(&[transfer], &thresholds).remove(0);
        judge_guess(&mut finding, (doubtful_ttis, around_ttis), &thresholds);
        (finding.verdict, finding.confidence, finding.notes.len())
    };
    let judged = |waited, doubtful, around| {
        let (verdict, confidence, notes) = judged_at(waited, doubtful, around);
        (verdict, confidence > 0.5, notes)
    };
    assert_eq!(judged(250, 0, 900), (Verdict::NotRadio, true, 0));
    assert_eq!(judged(250, 200, 0), (Verdict::Unknown, false, 1));
    assert_eq!(judged(20, 200, 0), (Verdict::NotRadio, true, 0));
    assert_eq!(judged(460, 200, 0), (Verdict::Radio, true, 0));
    // As sure as the least sure guess: by its data and by all around it.
    let confidence = |waited, around| judged_at(waited, 0, around).1;
    assert!(confidence(450, 0) > 0.89 && confidence(430, 0) < 0.79);
    assert!(confidence(450, 40) < 0.45 + 0.01 && confidence(450, 30) < 0.7);
    // Keep-alives follow, or its server thinks.
    assert_eq!(judged(460, 0, 40), (Verdict::Radio, true, 0));
    assert_eq!(judged(460, 0, 500), (Verdict::Radio, false, 1));
}
