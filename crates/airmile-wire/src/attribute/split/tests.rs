use std::collections::BTreeMap;

use super::super::path::Passage;
use super::super::sender_model::WaitSpan;
use super::*;

#[test]
fn a_transfer_within_the_initial_window_has_no_slow_start() {
    let mut shares = Shares::default();
    shares.add(Cause::FirstSlowStart, Reason::FirstSlowStart, 0, 70);
    shares.add(Cause::Setup, Reason::Request, 70, 100);
    let check = |bytes, expected: &[(Cause, i64)]| {
        let got = shares.clone().of_bytes(bytes);
        assert_eq!(got.by_cause.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(got.by_reason.values().sum::<i64>(), 100);
    };
    check(Some(14_600), &[(Cause::Setup, 30), (Cause::Unknown, 70)]);
    check(Some(14_601), &[(Cause::FirstSlowStart, 70), (Cause::Setup, 30)]);
    check(None, &[(Cause::FirstSlowStart, 70), (Cause::Setup, 30)]);
}

#[test]
fn the_longest_unknown_span_may_have_been_slow_start() {
    let check = |unknown_ns: i64, expected| {
        let mut shares = Shares::default();
        shares.add(Cause::FirstSlowStart, Reason::FirstSlowStart, 0, 70);
        shares.add(Cause::Unknown, Reason::Unknown, 70, 70 + unknown_ns);
        let longest = shares.of_bytes(Some(1_000)).longest;
        assert_eq!(longest.into_iter().collect::<Vec<_>>(), [(Cause::Unknown, expected)]);
    };
    check(30, (0, 70));
    check(90, (70, 160));
}

const MS: i64 = 1_000_000;
const LOST: LostSegment =
    LostSegment { missed_ns: 0, again_ns: 0, queued: [false; 2], unseen: false };

/// The split of 100 ms that a sender waited for one reason, with records of an idle radio.
fn waited(reason: Reason, attribution: Attribution) -> Vec<(Cause, i64)> {
    let mut waits = WaitTimeline::default();
    waits.push(&[WaitSpan { from_ns: 0, to_ns: 100 * MS, reason }], true);
    let one = Attribution { waits, ..attribution };
    let shares = one.split(0, 100 * MS, Some(RadioEvidence::default()));
    shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS)).collect()
}

#[test]
fn a_queue_that_round_trips_do_not_show() {
    let hidden = |queue| {
        let mut one = Attribution::default();
        one.set_hidden_queue(Some(queue));
        one
    };
    let down = || hidden(HiddenQueue::Downlink);
    assert_eq!(waited(Reason::Pacing, Attribution::default()), [(Cause::SenderLimited, 100)]);
    assert_eq!(waited(Reason::Pacing, down()), [(Cause::Wireline, 100)]);
    assert_eq!(waited(Reason::LossRecovery, down()), [(Cause::Wireline, 100)]);
    assert_eq!(waited(Reason::FirstSlowStart, down()), [(Cause::FirstSlowStart, 100)]);
    assert_eq!(waited(Reason::Pacing, hidden(HiddenQueue::Uplink)), [(Cause::UplinkQueue, 100)]);
}

#[test]
fn long_round_trips_under_a_full_window_are_a_queue_unless_the_path_is_empty() {
    assert_eq!(waited(Reason::QueueOrWindow, Attribution::default()), [(Cause::Wireline, 100)]);
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let empty = Attribution::default().with_path(PathQueue::new(passages.collect()));
    assert_eq!(waited(Reason::QueueOrWindow, empty), [(Cause::ReceiveWindow, 100)]);
    // Without the radio's records the queue may be the radio's.
    let mut waits = WaitTimeline::default();
    waits.push(&[WaitSpan { from_ns: 0, to_ns: MS, reason: Reason::QueueOrWindow }], true);
    let shares = Attribution { waits, ..Attribution::default() }.split(0, MS, None);
    assert_eq!(shares.by_cause, BTreeMap::from([(Cause::ReceiveWindow, MS)]));
}

#[test]
fn a_sender_keeps_the_pace_of_a_slow_reader() {
    let check = |full_ns: i64, after: Reason, expected: &[(Cause, i64)]| {
        let mut waits = WaitTimeline::default();
        let span = |from_ns, to_ns, reason| WaitSpan { from_ns, to_ns, reason };
        waits
            .push(&[span(0, full_ns, Reason::ReceiveWindow), span(full_ns, 100 * MS, after)], true);
        let one = Attribution { waits, ..Attribution::default() }.with_round_trip(5 * MS);
        let shares = one.split(0, 100 * MS, Some(RadioEvidence::default()));
        let got = shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS));
        assert_eq!(got.collect::<Vec<_>>(), expected);
    };
    check(60 * MS, Reason::Pacing, &[(Cause::ReceiveWindow, 100)]);
    // A sender that has no data keeps no pace.
    let own = [(Cause::ReceiveWindow, 60), (Cause::SenderLimited, 40)];
    check(60 * MS, Reason::AppLimited, &own);
    // More than ten rounds.
    check(20 * MS, Reason::Pacing, &[(Cause::ReceiveWindow, 20), (Cause::SenderLimited, 80)]);
}

#[test]
fn a_lost_datagram_reduces_its_senders_window() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let path = PathQueue::new(passages.collect());
    let check = |sent_ns: Vec<i64>, reason, expected| {
        let one = Attribution::default()
            .with_path(path.clone().with_lost(0, sent_ns, 100))
            .with_round_trip(2 * MS);
        assert_eq!(waited(reason, one), [(expected, 100)]);
    };
    check(vec![90 * MS], Reason::AppLimited, Cause::LossRecoveryCongestion);
    check(vec![90 * MS], Reason::Unknown, Cause::LossRecoveryCongestion);
    check(vec![90 * MS], Reason::FirstSlowStart, Cause::LossRecoveryCongestion);
    check(vec![90 * MS], Reason::ServerThinkTime, Cause::SenderLimited);
    // More than 16 rounds before.
    check(vec![10 * MS], Reason::AppLimited, Cause::SenderLimited);
    check(Vec::new(), Reason::AppLimited, Cause::SenderLimited);
}

/// A connection begins at 20 ms, and is in its slow start from 40 to 100 ms; others are older.
#[test]
fn a_slow_start_ends_by_a_loss_of_its_own_connection() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let path = PathQueue::new(passages.collect());
    let mut waits = WaitTimeline::default();
    let span = |from_ns, to_ns, reason| WaitSpan { from_ns, to_ns, reason };
    waits.push(&[span(20 * MS, 40 * MS, Reason::Request)], true);
    waits.push(&[span(40 * MS, 100 * MS, Reason::FirstSlowStart)], true);
    for (lost_ms, expected) in [(90, Cause::LossRecoveryCongestion), (19, Cause::FirstSlowStart)] {
        let path = path.clone().with_lost(0, vec![lost_ms * MS], 100);
        let (waits, begins_ns) = (waits.clone(), vec![0, 20 * MS]);
        let one = Attribution { waits, begins_ns, path, ..Attribution::default() };
        let one = one.with_round_trip(20 * MS);
        let shares = one.split(20 * MS, 100 * MS, Some(RadioEvidence::default()));
        assert_eq!(shares.by_cause.get(&expected), Some(&(60 * MS)), "{lost_ms}");
    }
}

/// Acknowledgements wait 20 s for a line, while the phone sends a request of 600 bytes each second; or it sends
/// 10 kB in the middle.
#[test]
fn requests_of_a_long_wait_are_no_upload() {
    let second = |at: i64| at * 1_000 * MS;
    let passages = |delay: i64| {
        let each = (0..=2_200).map(move |n| n * 10 * MS).map(move |sent_ns| {
            let late = if (second(1)..second(20)).contains(&sent_ns) { delay } else { 0 };
            Passage { sent_ns, arrived_ns: sent_ns + late }
        });
        PathQueue::new(each.collect())
    };
    for (burst, expected) in [(0, Cause::Wireline), (10_000, Cause::UplinkQueue)] {
        let mut sent = ByteBins::default();
        for at in 0..20 {
            sent.add(second(at), if at == 10 { 600 + burst } else { 600 });
        }
        let mut waits = WaitTimeline::default();
        let reason = Reason::QueueUp;
        waits.push(&[WaitSpan { from_ns: second(0), to_ns: second(20), reason }], true);
        let one = Attribution { waits, ..Attribution::default() };
        let one = Attribution { ack_payload: sent, ..one.with_uplink_path(passages(50 * MS)) };
        let radio = RadioEvidence { ack_queue: Some(&[]), ..RadioEvidence::default() };
        let shares = one.split(0, second(20), Some(radio));
        assert_eq!(shares.by_cause, BTreeMap::from([(expected, second(20))]));
    }
}

/// The path from the phone, on which what is sent at `from` arrives at 70 ms.
fn queued_up(from: i64) -> PathQueue {
    let sent = (0..=100).filter(|n| !(from..70).contains(n)).map(|n| (n, n));
    let late = [(from, 70)];
    let each =
        sent.chain(late).map(|(sent, at)| Passage { sent_ns: sent * MS, arrived_ns: at * MS });
    PathQueue::new(each.collect())
}

/// One late acknowledgement does not explain all of a full window.
#[test]
fn a_full_window_beside_late_acknowledgements_is_cut_at_their_queue() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let both = Attribution::default().with_path(PathQueue::new(passages.collect()));
    let both = both.with_uplink_path(queued_up(30));
    let parts = [(Cause::ReceiveWindow, 60), (Cause::Unknown, 40)];
    assert_eq!(waited(Reason::QueueOrWindow, both.clone()), parts);
    // A window that was full by what the phone sent is the phone's.
    assert_eq!(waited(Reason::ReceiveWindow, both), [(Cause::ReceiveWindow, 100)]);
}

/// Without an upload, acknowledgements that are late behind the radio wait for a line.
#[test]
fn acknowledgements_in_a_slow_line_are_behind_no_upload() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let mut waits = WaitTimeline::default();
    let span = WaitSpan { from_ns: 0, to_ns: 100 * MS, reason: Reason::Queue };
    waits.push(&[span], true);
    let one = Attribution { waits, ..Attribution::default() };
    let one = one.with_path(PathQueue::new(passages.collect()));
    let check = |bytes: u64, radio: Option<RadioEvidence<'_>>, cause| {
        let mut one = one.clone();
        one.ack_payload.add(-2_000 * MS, bytes);
        let shares = one.split(0, 100 * MS, radio);
        assert_eq!(shares.by_cause.into_iter().collect::<Vec<_>>(), [(cause, 100 * MS)]);
    };
    let by = |ack_queue| Some(RadioEvidence { ack_queue, ..RadioEvidence::default() });
    let waiting = [RadioSpan { from_ns: -50 * MS, to_ns: 80 * MS, queued: true }];
    check(1_000, by(Some(&[])), Cause::Wireline);
    check(20_000, by(Some(&[])), Cause::UplinkQueue);
    // Its own queue may be the reason.
    check(1_000, by(Some(&waiting)), Cause::Unknown);
    check(1_000, by(None), Cause::Unknown);
    check(1_000, None, Cause::UplinkQueue);
}

/// What a line drops at the end of a flight, with nothing after it, the phone does not see.
#[test]
fn losses_that_the_phone_does_not_see_are_the_lines_if_it_was_full() {
    let check = |seen_ms: i64, radio_queued: bool, expected| {
        let burst = (0..100).map(|n| Passage { sent_ns: 100 * MS, arrived_ns: (100 + n) * MS });
        let lost =
            |again_ms: i64| LostSegment { missed_ns: 100 * MS, again_ns: again_ms * MS, ..LOST };
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 180 * MS, to_ns: 500 * MS, reason: Reason::LossRecovery };
        waits.push(&[span], true);
        let one = Attribution { waits, ..Attribution::default() }
            .with_path(PathQueue::new(burst.collect()))
            .with_lost(vec![LostSegment { missed_ns: 0, ..lost(seen_ms) }])
            .with_unseen_lost([lost(400), LostSegment { missed_ns: 420 * MS, ..lost(430) }].iter());
        let until_ms = if radio_queued { 160 } else { 110 };
        let data_queue = &[RadioSpan { from_ns: 104 * MS, to_ns: until_ms * MS, queued: true }];
        let radio = RadioEvidence { data_queue, ..RadioEvidence::default() };
        let shares = one.split(220 * MS, 500 * MS, Some(radio));
        assert_eq!(shares.by_cause, BTreeMap::from([(expected, 280 * MS)]));
    };
    check(30, false, Cause::Wireline);
    check(30, true, Cause::LossRecoveryCongestion);
    // The phone saw that one.
    check(420, false, Cause::LossRecoveryCongestion);
}

/// An upload's queue behind the radio delays all that the phone sends, as its own queue does.
#[test]
fn an_uploads_queue_on_the_wire_is_the_uplinks() {
    let check = |bytes: u64, reason, expected: &[(Cause, i64)]| {
        let passages = (-10..=200).filter(|n| *n <= 0 || *n >= 120);
        let passages = passages.map(|n| {
            let sent = if n <= 0 { n } else { n - 120 };
            Passage { sent_ns: sent * MS, arrived_ns: n * MS }
        });
        let mut ack_payload = ByteBins::default();
        ack_payload.add(0, bytes);
        let one = Attribution { ack_payload, ..Attribution::default() };
        let one = one.with_uplink_path(PathQueue::new(passages.collect()));
        assert_eq!(waited(reason, one), expected);
    };
    check(100_000, Reason::FirstSlowStart, &[(Cause::UplinkQueue, 100)]);
    check(100_000, Reason::NoRequest, &[(Cause::Setup, 100)]);
    // Acknowledgements alone.
    check(1_000, Reason::FirstSlowStart, &[(Cause::FirstSlowStart, 100)]);
}

/// What the phone sent may have waited in its queue, unless its log shows that queue to be empty.
#[test]
fn an_uplink_queue_that_was_logged_empty_is_none() {
    let reason = Reason::Queue;
    let mut waits = WaitTimeline::default();
    waits.push(&[WaitSpan { from_ns: 0, to_ns: 100 * MS, reason }], true);
    let mut ack_payload = ByteBins::default();
    ack_payload.add(0, 100_000);
    let one = Attribution { waits, ack_payload, ..Attribution::default() };
    let empty: &[RadioSpan] = &[];
    for (ack_queue, cause) in [(None, Cause::UplinkQueue), (Some(empty), Cause::Wireline)] {
        let radio = RadioEvidence { ack_queue, ..RadioEvidence::default() };
        let shares = one.split(0, 100 * MS, Some(radio));
        assert_eq!(shares.by_cause.into_iter().collect::<Vec<_>>(), [(cause, 100 * MS)]);
    }
}

/// What the phone sends may explain a queue of unknown place, not one that is known to be before the
/// radio.
#[test]
fn a_queue_before_the_radio_stays_there_during_an_upload() {
    let uploading = || {
        let mut ack_payload = ByteBins::default();
        ack_payload.add(0, 100_000);
        Attribution { ack_payload, ..Attribution::default() }
    };
    let mut hidden = uploading();
    hidden.set_hidden_queue(Some(HiddenQueue::Downlink));
    let mut drops = uploading();
    drops.set_line_drops();
    let mut behind = WaitTimeline::default();
    behind.push(&[WaitSpan { from_ns: 0, to_ns: 100 * MS, reason: Reason::Queue }], true);
    let behind = uploading().with_behind(behind);
    for (reason, one) in [
        (Reason::Pacing, hidden.clone()),
        (Reason::LossRecovery, hidden),
        (Reason::LossRecovery, drops),
        (Reason::AppLimited, behind),
    ] {
        assert_eq!(waited(reason, one), [(Cause::Wireline, 100)], "{reason:?}");
    }
    assert_eq!(waited(Reason::Queue, uploading()), [(Cause::UplinkQueue, 100)]);
    assert_eq!(waited(Reason::QueueOrWindow, uploading()), [(Cause::UplinkQueue, 100)]);
}

/// Losses are a line's where arrivals alone indicate that it drops packets, by their pace and not by round
/// trips; captures at both ends that show no queue refute it.
#[test]
fn drops_that_arrivals_indicate_need_a_queue_where_it_would_show() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let both = Attribution::default().with_path(PathQueue::new(passages.collect()));
    let (line, lost) = (Cause::Wireline, Cause::LossRecoveryCongestion);
    for (path, expected) in
        [(Attribution::default(), (line, Reason::PathPace)), (both, (lost, Reason::LossRecovery))]
    {
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 0, to_ns: 100 * MS, reason: Reason::LossRecovery };
        waits.push(&[span], true);
        let mut one = Attribution { waits, ..path };
        one.set_line_drops();
        let shares = one.split(0, 100 * MS, Some(RadioEvidence::default()));
        assert_eq!(shares.parts, BTreeMap::from([(expected, 100 * MS)]));
    }
}

/// A sender that had sent all it had waits for no acknowledgement: late ones are no queue of the uplink.
#[test]
fn late_acknowledgements_of_a_sender_without_data() {
    let passages = (0..=100).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let both = || Attribution::default().with_path(PathQueue::new(passages.clone().collect()));
    // Without its log, a queue of acknowledgements alone may be the phone's or a line's.
    assert_eq!(waited(Reason::Queue, both()), [(Cause::Unknown, 100)]);
    assert_eq!(waited(Reason::QueueOrSender, both()), [(Cause::SenderLimited, 100)]);
    let alone = waited(Reason::QueueOrSender, Attribution::default());
    assert_eq!(alone, [(Cause::Wireline, 100)]);
}

/// What a full queue of a line drops is the line's; what is lost on an empty path is not, and what is
/// lost while the radio's queue delays the data may be either's.
#[test]
fn drops_of_a_full_queue_are_its_lines() {
    let check = |delay_ms: i64, radio_queued: bool, before: &[i64], expected| {
        let each = (0..=100).map(|n| (n, if n < 50 { 0 } else { delay_ms }));
        let each = each.map(|(n, late)| Passage { sent_ns: n * MS, arrived_ns: (n + late) * MS });
        let lost = LostSegment { missed_ns: 105 * MS, again_ns: 190 * MS, ..LOST };
        let early = |ms: i64| LostSegment { missed_ns: ms * MS, again_ns: 185 * MS, ..LOST };
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 180 * MS, to_ns: 200 * MS, reason: Reason::LossRecovery };
        waits.push(&[span], true);
        let one = Attribution { waits, ..Attribution::default() }
            .with_path(PathQueue::new(each.collect()))
            .with_lost(before.iter().map(|at| early(*at)).chain([lost]).collect());
        let queued = [RadioSpan { from_ns: 100 * MS, to_ns: 110 * MS, queued: true }];
        let data_queue = if radio_queued { &queued[..] } else { &[] };
        let radio = RadioEvidence { data_queue, ..RadioEvidence::default() };
        let shares = one.split(180 * MS, 200 * MS, Some(radio));
        assert_eq!(shares.by_cause, BTreeMap::from([(expected, 20 * MS)]));
    };
    check(50, false, &[], Cause::Wireline);
    check(50, false, &[30], Cause::Wireline);
    check(0, false, &[], Cause::LossRecoveryCongestion);
    check(50, true, &[], Cause::LossRecoveryCongestion);
    // Most were lost on an empty path.
    check(50, false, &[10, 30], Cause::LossRecoveryCongestion);
}

/// Round trips alone show that queue, too, unless captures at both ends show that there was none.
#[test]
fn drops_behind_long_round_trips_are_the_lines() {
    let loss = Cause::LossRecoveryCongestion;
    let passages = (0..=300).map(|n| Passage { sent_ns: n * MS, arrived_ns: n * MS });
    let empty = PathQueue::new(passages.collect());
    let at_radio = [RadioSpan { from_ns: 80 * MS, to_ns: 110 * MS, queued: true }];
    let one_packet = [RadioSpan { from_ns: 100 * MS, to_ns: 104 * MS, queued: true }];
    for (queued, data_queue, path, expected) in [
        ([true, false], &[][..], PathQueue::default(), Cause::Wireline),
        ([false; 2], &[], PathQueue::default(), loss),
        ([true, false], &at_radio, PathQueue::default(), loss),
        ([true, false], &one_packet, PathQueue::default(), Cause::Wireline),
        // Its retransmission was queued, after the radio's queue.
        ([true; 2], &at_radio, PathQueue::default(), Cause::Wireline),
        ([true; 2], &[], empty, loss),
    ] {
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 180 * MS, to_ns: 200 * MS, reason: Reason::LossRecovery };
        waits.push(&[span], true);
        let lost = LostSegment { missed_ns: 105 * MS, again_ns: 190 * MS, queued, ..LOST };
        let one = Attribution { waits, path, ..Attribution::default() }.with_lost(vec![lost]);
        let radio = RadioEvidence { data_queue, ..RadioEvidence::default() };
        let shares = one.split(180 * MS, 200 * MS, Some(radio));
        assert_eq!(shares.by_cause, BTreeMap::from([(expected, 20 * MS)]), "{queued:?}");
        // Without records of the radio the queue may be the radio's.
        let shares = one.split(180 * MS, 200 * MS, None);
        assert_eq!(shares.by_cause, BTreeMap::from([(loss, 20 * MS)]));
    }
}

/// RLC holds back what follows a loss: captures at both ends show it as a wait between server and phone.
#[test]
fn data_held_back_after_a_radio_loss_is_in_no_lines_queue() {
    let check = |path: &PathQueue, lost_ms: i64, expected: &[(Cause, i64)]| {
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 0, to_ns: 900 * MS, reason: Reason::FirstSlowStart };
        waits.push(&[span], true);
        let one = Attribution { waits, ..Attribution::default() }.with_path(path.clone());
        let losses_ns = &[lost_ms * MS];
        let radio = RadioEvidence { losses_ns, ..RadioEvidence::default() };
        let shares = one.split(0, 900 * MS, Some(radio));
        let got = shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS));
        assert_eq!(got.collect::<Vec<_>>(), expected, "{lost_ms}");
    };
    let slow_start = |ms| (Cause::FirstSlowStart, ms);
    let short = queued_up(30);
    // Before the loss, nothing was held back.
    check(&short, 60, &[slow_start(860), (Cause::Wireline, 40)]);
    check(&short, 25, &[slow_start(860), (Cause::LossRecoveryRadio, 40)]);
    check(&short, 200, &[slow_start(860), (Cause::Wireline, 40)]);
    // What a line empties at half of the rate arrives little by little.
    let slowly = |n: i64| Passage { sent_ns: n * MS, arrived_ns: n.max(2 * n - 30) * MS };
    let line = PathQueue::new((0..70).map(slowly).collect());
    check(&line, 45, &[slow_start(843), (Cause::Wireline, 57)]);
    // Longer than the longest t-Reordering.
    let at_once = |n| Passage { sent_ns: n * MS, arrived_ns: n * MS };
    let late = Passage { sent_ns: 30 * MS, arrived_ns: 430 * MS };
    let long = (0..30).chain(430..500).map(at_once).chain([late]);
    let long = PathQueue::new(long.collect());
    check(&long, 25, &[slow_start(500), (Cause::Wireline, 400)]);
}

/// A silence of the radio is no queue of a line, if much data comes at once at its end.
#[test]
fn data_held_back_in_a_silence_is_in_no_lines_queue() {
    let check = |bytes: u64, silence: (i64, i64), expected: &[(Cause, i64)]| {
        let mut waits = WaitTimeline::default();
        let span = WaitSpan { from_ns: 0, to_ns: 900 * MS, reason: Reason::Queue };
        waits.push(&[span], true);
        let mut passed = ByteBins::default();
        passed.add(silence.1 * MS, bytes);
        let one = Attribution { waits, ..Attribution::default() }.with_passed(passed);
        let silences = [(silence.0 * MS, silence.1 * MS)];
        let radio = RadioEvidence { silences: &silences, ..RadioEvidence::default() };
        let shares = one.split(0, 900 * MS, Some(radio));
        let got = shares.by_cause.into_iter().map(|(cause, ns)| (cause, ns / MS));
        assert_eq!(got.collect::<Vec<_>>(), expected);
    };
    check(14_000, (300, 500), &[(Cause::Wireline, 700), (Cause::Unknown, 200)]);
    check(14_000, (800, 1_000), &[(Cause::Wireline, 800), (Cause::Unknown, 100)]);
    // A packet of a very slow line, or what its acknowledgement releases.
    check(1_400, (300, 500), &[(Cause::Wireline, 900)]);
    check(2_896, (300, 500), &[(Cause::Wireline, 900)]);
    // Acknowledgements of six segments at once, after a long silence and after a short one.
    check(8_688, (300, 500), &[(Cause::Wireline, 700), (Cause::Unknown, 200)]);
    check(8_688, (300, 480), &[(Cause::Wireline, 900)]);
}

/// Behind a proxy the server's own packets show until when it waited for an upload.
#[test]
fn a_server_thinks_when_it_has_the_upload() {
    let mut answers = WaitTimeline::default();
    let span = |from_ns, to_ns, reason| WaitSpan { from_ns, to_ns, reason };
    let server = [
        span(-50 * MS, 60 * MS, Reason::Handshake),
        span(60 * MS, 90 * MS, Reason::ServerThinkTime),
        span(90 * MS, 140 * MS, Reason::Pacing),
    ];
    answers.push(&server, true);
    let one = Attribution::default().with_answers(answers);
    let parts = [(Cause::SenderLimited, 40), (Cause::Wireline, 60)];
    assert_eq!(waited(Reason::ServerThinkTime, one), parts);
    let direct = waited(Reason::ServerThinkTime, Attribution::default());
    assert_eq!(direct, [(Cause::SenderLimited, 100)]);
}
