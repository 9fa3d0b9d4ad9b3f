//! The tracker as a whole: small logs checked by hand, and properties.

mod silences;
mod simulated;

use airmile_model::{
    Bound, Burst, Direction, Evidence, Grant, Hole, Position, Record, RlcMode, RlcPdu, TtiIndex,
};

use super::{BurstOptions, BurstTracker, EvidenceChoice};

fn at(segment: u32, tti: i64) -> Position {
    Position { timing_segment: segment, ..Position::lte(tti) }
}

fn block(tti: i64, harq_id: u8, tbs_bytes: u32, padding_bytes: u32) -> Grant {
    Grant {
        n_prb_cell: Some(50),
        tbs_bytes: Some(tbs_bytes),
        harq_id: Some(harq_id),
        retx: Some(false),
        padding_bytes: Some(padding_bytes),
        ..Grant::new(at(0, tti), Direction::Dl, 48)
    }
}

fn pdu(tti: i64, sn: u32, size_bytes: u32, poll: bool) -> RlcPdu {
    RlcPdu {
        at: None,
        position: at(0, tti),
        dir: Direction::Dl,
        bearer: 3,
        signalling: Some(false),
        mode: RlcMode::Am,
        sn: Some(sn % 1024),
        size_bytes,
        poll: Some(poll),
        resegment: false,
        status: false,
    }
}

fn run(records: &[Record], options: BurstOptions) -> Vec<Burst> {
    let mut tracker = BurstTracker::new(options);
    records.iter().for_each(|record| tracker.push(record));
    tracker.finish()
}

fn with(evidence: EvidenceChoice) -> BurstOptions {
    BurstOptions { evidence, ..BurstOptions::default() }
}

/// `(start, end, closed_by)` of bursts.
fn spans(bursts: &[Burst]) -> Vec<(i64, i64, Bound)> {
    bursts.iter().map(|b| (b.start_tti.0, b.end_tti.0, b.closed_by)).collect()
}

fn check(records: &[Record], expected: &[(i64, i64, Bound)]) {
    assert_eq!(spans(&run(records, BurstOptions::default())), expected);
}

#[test]
fn a_burst_ends_at_the_padded_block_and_counts_its_bytes() {
    let records: Vec<Record> = [(10, 0), (11, 0), (14, 0), (15, 700)]
        .map(|(tti, padding)| block(tti, 0, 1_000, padding).into())
        .to_vec();
    let bursts = run(&records, BurstOptions::default());
    assert_eq!(spans(&bursts), [(10, 15, Bound::Padding)]);
    assert_eq!((bursts[0].bytes, bursts[0].scheduled_ttis), (3_300, 3));
    assert_eq!(bursts[0].opened_by, Bound::FirstData);
}

#[test]
fn a_starved_phone_waits_for_as_long_as_its_poll_bits_say() {
    let after = |pause: i64, polled: bool| -> [Record; 4] {
        let padding = if polled { 200 } else { 0 };
        [
            block(10, 0, 1_000, padding).into(),
            pdu(10, 0, 1_000 - padding, polled).into(),
            block(10 + pause, 1, 1_000, 500).into(),
            pdu(10 + pause, 1, 500, true).into(),
        ]
    };
    check(&after(2_500, false), &[(10, 2_510, Bound::Padding)]);
    check(&after(2_500, true), &[]);
    // Longer than a log may be silent: records are missing.
    check(&after(4_000, false), &[]);
}

#[test]
fn data_may_wait_before_a_burst_of_a_leg_that_is_starved() {
    let bursts = |wait: i64, is_leg: bool| {
        let mut tracker = BurstTracker::new(BurstOptions::default());
        if is_leg {
            tracker.set_leg();
        }
        for n in 0..6 {
            let tti = 10 + 1_000 * n;
            let sn = 2 * n as u32;
            let records: [Record; 4] = [
                block(tti, 0, 1_000, 0).into(),
                pdu(tti, sn, 1_000, false).into(),
                block(tti + wait, 1, 1_000, 500).into(),
                pdu(tti + wait, sn + 1, 500, true).into(),
            ];
            records.iter().for_each(|record| tracker.push(record));
        }
        let bursts = tracker.finish();
        let unclear = bursts.iter().filter(|burst| !burst.is_clear());
        let spans: Vec<_> = unclear.map(|b| (b.start_tti.0, b.end_tti.0)).collect();
        assert_eq!(bursts.len() - spans.len(), 6);
        spans
    };
    // Up to twice the wait of the backlog.
    let spans: Vec<_> = (1..6).map(|n| (1_000 * n - 190, 1_000 * n + 10)).collect();
    assert_eq!(bursts(101, true), spans);
    assert_eq!(bursts(101, false), []);
    assert_eq!(bursts(20, true), []);
}

#[test]
fn silences_are_no_starvation() {
    // Bursts of 40 blocks, 300 ms apart; four have a pause of 60 ms, and some a gap of the log.
    let unclear = |n_gaps: i64, gap: i64, has_hole: bool| {
        let mut tracker = BurstTracker::new(BurstOptions::default());
        tracker.set_leg();
        let (mut tti, mut sn) = (10, 0);
        for burst in 0..30 {
            for n in 0..40 {
                if n == 20 && burst < 4 {
                    tti += 60;
                } else if n == 20 && burst < 4 + n_gaps {
                    let hole = Hole { at: None, position: at(0, tti + 1), n_tti: gap, why: "test" };
                    tti += gap;
                    has_hole.then(|| tracker.push(&hole.into()));
                }
                let padding = if n == 39 { 500 } else { 0 };
                tracker.push(&block(tti, (n % 8) as u8, 1_000, padding).into());
                tracker.push(&pdu(tti, sn, 1_000 - padding, n == 39).into());
                (tti, sn) = (tti + 1, sn + 1);
            }
            tti += 300;
        }
        tracker.finish().iter().filter(|burst| !burst.is_clear()).count()
    };
    for (n_gaps, gap, has_hole) in [(0, 0, false), (1, 3_500, false), (3, 10_000, false)] {
        assert_eq!(unclear(n_gaps, gap, has_hole), 0, "{n_gaps} {gap}");
    }
    assert_eq!(unclear(3, 3_500, true), 0);
    // The cell makes the phone wait.
    assert!(unclear(10, 100, false) > 20);
}

#[test]
fn a_queue_that_one_block_empties_makes_no_burst() {
    check(&[block(10, 0, 1_000, 300).into(), block(40, 1, 1_000, 300).into()], &[]);
}

#[test]
fn a_block_of_status_alone_neither_begins_nor_ends_a_burst() {
    let status = RlcPdu { status: true, sn: None, size_bytes: 4, ..pdu(12, 0, 4, false) };
    check(
        &[
            block(5, 0, 500, 496).into(),
            block(10, 1, 1_000, 0).into(),
            pdu(10, 0, 1_000, false).into(),
            block(12, 2, 1_000, 996).into(),
            status.into(),
            block(16, 3, 1_000, 400).into(),
            pdu(16, 1, 600, true).into(),
        ],
        &[(10, 16, Bound::Padding)],
    );
}

#[test]
fn a_pdu_is_traced_back_to_the_first_transmission_of_its_block() {
    // The block of TTI 11 fails and is delivered 16 TTIs later: the queue still ran empty
    // at 11.
    let lost = Grant { crc_ok: Some(false), ..block(11, 1, 1_000, 0) };
    let retx = |tti, crc_ok| Grant {
        retx: Some(true),
        padding_bytes: None,
        crc_ok: Some(crc_ok),
        ..block(tti, 1, 1_000, 0)
    };
    check(
        &[
            block(10, 0, 1_000, 0).into(),
            pdu(10, 0, 1_000, false).into(),
            Grant { padding_bytes: Some(500), ..lost }.into(),
            retx(19, false).into(),
            retx(27, true).into(),
            pdu(27, 1, 500, true).into(),
            block(60, 2, 1_000, 0).into(),
            pdu(60, 2, 1_000, false).into(),
            block(61, 3, 1_000, 10).into(),
            pdu(61, 3, 990, true).into(),
        ],
        &[(10, 11, Bound::Padding), (60, 61, Bound::Padding)],
    );
}

#[test]
fn padding_that_only_the_retransmission_shows_belongs_to_the_first_transmission() {
    // A modem logs the contents of a block once it has been received.
    let failed = |tti, harq_id| Grant {
        crc_ok: Some(false),
        padding_bytes: None,
        ..block(tti, harq_id, 1_000, 0)
    };
    let passed = |tti, harq_id, padding| Grant {
        retx: Some(true),
        crc_ok: Some(true),
        ..block(tti, harq_id, 1_000, padding)
    };
    let records: Vec<Record> = vec![
        block(10, 0, 1_000, 0).into(),
        failed(11, 1).into(),
        passed(19, 1, 600).into(),
        block(60, 2, 1_000, 0).into(),
        block(61, 3, 1_000, 0).into(),
        block(62, 4, 1_000, 500).into(),
    ];
    let padded = run(&records, with(EvidenceChoice::Padding));
    assert_eq!(spans(&padded), [(10, 11, Bound::Padding), (60, 62, Bound::Padding)]);
}

#[test]
fn a_handover_ends_a_burst_as_unknown() {
    let mut after = block(13, 0, 1_000, 0);
    after.position = at(1, 13);
    let mut last = block(14, 1, 1_000, 600);
    last.position = at(1, 14);
    check(
        &[block(10, 0, 1_000, 0).into(), block(11, 1, 1_000, 0).into(), after.into(), last.into()],
        &[(10, 12, Bound::Handover), (13, 14, Bound::Padding)],
    );
}

#[test]
fn what_reaches_back_into_a_hole_is_not_joined_over_it() {
    // Records written after the hole cover some of its TTIs.
    let hole = Hole { at: None, position: at(0, 13), n_tti: 50, why: "test" };
    check(
        &[
            hole.into(),
            block(14, 0, 1_000, 0).into(),
            block(40, 1, 1_000, 0).into(),
            block(41, 2, 1_000, 0).into(),
            block(70, 3, 1_000, 0).into(),
            block(72, 4, 1_000, 500).into(),
        ],
        &[(14, 15, Bound::LogHole), (40, 42, Bound::LogHole), (70, 72, Bound::Padding)],
    );
}

#[test]
fn a_hole_is_unknown_and_not_contention() {
    let hole = Hole { at: None, position: at(0, 13), n_tti: 50, why: "test" };
    let records: Vec<Record> = vec![
        block(10, 0, 1_000, 0).into(),
        hole.into(),
        block(70, 1, 1_000, 0).into(),
        block(72, 2, 1_000, 500).into(),
    ];
    let mut tracker = BurstTracker::new(BurstOptions::default());
    records.iter().for_each(|record| tracker.push(record));
    let bursts = tracker.finish();
    assert_eq!(spans(&bursts), [(10, 13, Bound::LogHole), (70, 72, Bound::Padding)]);
    let unknown: Vec<(TtiIndex, i64)> = std::iter::from_fn(|| tracker.poll_activity())
        .filter(|activity| activity.unknown)
        .map(|activity| (activity.start_tti, activity.n_tti))
        .collect();
    assert_eq!(unknown, [(TtiIndex(13), 50)]);
}

#[test]
fn a_second_of_silence_is_no_contention() {
    // The last PDU shows that data was left; then nothing for 5 s.
    let records = |pause: i64| -> Vec<Record> {
        [(10, 0), (11, 1), (11 + pause, 2), (12 + pause, 3)]
            .into_iter()
            .flat_map(|(tti, sn)| {
                let grant = Grant { padding_bytes: None, ..block(tti, 0, 1_000, 0) };
                [Record::Grant(grant), pdu(tti, sn, 1_000, false).into()]
            })
            .collect()
    };
    check(&records(900), &[(10, 913, Bound::End)]);
    check(&records(5_000), &[(10, 11, Bound::Gap), (5_011, 5_013, Bound::End)]);
}

#[test]
fn a_stalled_window_waits_with_data() {
    // No limit forces a poll: the sender stops after 512 PDUs (TS 36.322, 7.2),
    // asks, and goes on 24 TTIs later, when the STATUS has come.
    let records = |padding: Option<u32>| -> Vec<Record> {
        (0..700_u32)
            .flat_map(|sn| {
                let tti = i64::from(sn) + if sn < 512 { 0 } else { 24 };
                let last = sn == 699;
                let padding_bytes = padding.map(|padding| if last { padding } else { 0 });
                let grant = Grant { padding_bytes, ..block(tti, (tti % 8) as u8, 1_000, 0) };
                [grant.into(), pdu(tti, sn, 900, sn == 511 || last).into()]
            })
            .collect()
    };
    check(&records(Some(90)), &[(0, 723, Bound::Padding)]);
    check(&records(None), &[(0, 723, Bound::Poll)]);
}

#[test]
fn the_users_queue_is_empty_when_the_last_bearers_is() {
    let other = |tti, sn, poll| RlcPdu { bearer: 4, ..pdu(tti, sn, 500, poll) };
    let mut records: Vec<Record> = Vec::new();
    // Earlier records show that pauses after polls are long.
    let mut sn = 0;
    for i in 0..20_i64 {
        for (tti, poll) in [(100 + i * 50, false), (101 + i * 50, true)] {
            records.push(Grant { padding_bytes: None, ..block(tti, 0, 1_000, 0) }.into());
            records.push(pdu(tti, sn, 1_000 - u32::from(poll) * 30 * (i as u32), poll).into());
            sn += 1;
        }
    }
    for tti in 2_010..2_015 {
        records.push(Grant { padding_bytes: None, ..block(tti, tti as u8, 1_000, 0) }.into());
    }
    records.extend([
        // One bearer empties at 2012, the other at 2014.
        Record::Rlc(pdu(2_010, sn, 500, false)),
        pdu(2_011, sn + 1, 500, false).into(),
        pdu(2_012, sn + 2, 400, true).into(),
        other(2_010, 0, true).into(),
        other(2_011, 1, false).into(),
        other(2_012, 2, false).into(),
        other(2_013, 3, false).into(),
        other(2_014, 4, true).into(),
    ]);
    let bursts = run(&records, BurstOptions::default());
    let last = bursts.last().unwrap();
    assert_eq!((last.start_tti.0, last.end_tti.0), (2_010, 2_014));
}

#[test]
fn the_papers_rule_is_literal() {
    let share =
        |tti, n_prb| -> Record { Grant { n_prb: Some(n_prb), ..block(tti, 0, 1_000, 0) }.into() };
    let records = [
        share(5, 45), // 90 %: not more than
        share(10, 46),
        share(12, 10), // under 40 %, but 13 is scheduled
        share(13, 20), // 40 %: not fewer than
        share(20, 19), // ends it, before 21
        share(30, 10),
    ];
    let bursts = run(&records, with(EvidenceChoice::Paper));
    assert_eq!(spans(&bursts), [(10, 21, Bound::Fraction)]);
    assert_eq!(bursts[0].opened_by, Bound::Fraction);
}

#[test]
fn evidence_that_a_log_lacks_is_not_made_up() {
    let mut tracker = BurstTracker::new(with(EvidenceChoice::Poll));
    for tti in 0..50 {
        tracker.push(&block(tti, 0, 1_000, 0).into());
    }
    assert_eq!(tracker.finish(), []);
    assert_eq!(tracker.summary().evidence, None);
}

#[test]
fn auto_falls_back_to_padding_and_to_allocations() {
    let evidence = |padding: bool| {
        let mut tracker = BurstTracker::new(BurstOptions::default());
        for tti in 0..50 {
            let mut grant = block(tti, 0, 1_000, 0);
            grant.padding_bytes = grant.padding_bytes.filter(|_| padding);
            tracker.push(&grant.into());
        }
        tracker.finish();
        tracker.summary().evidence
    };
    assert_eq!(evidence(true), Some(Evidence::Padding));
    assert_eq!(evidence(false), Some(Evidence::Grants));
}

/// A cell that does not segment packets leaves 24 bytes of its large blocks unused while data
/// waits; a lone acknowledgement of 56 bytes leaves 22 of 78, and nothing waits after it.
#[test]
fn padding_of_much_of_a_block_before_a_long_pause_ends_a_burst() {
    let mut records: Vec<Record> = Vec::new();
    let mut tti = 0;
    for _ in 0..30 {
        for padding in [0, 24, 0, 24, 0, 24, 700] {
            records.push(block(tti, 0, 3_030, padding).into());
            tti += 1;
        }
        tti += 40;
    }
    records.push(block(tti, 0, 78, 22).into());
    for padding in [0, 24, 700] {
        records.push(block(tti + 900, 0, 3_030, padding).into());
        tti += 1;
    }
    let options = with(EvidenceChoice::Padding);
    let bursts = run(&records, options);
    let longest = bursts.iter().map(|burst| burst.end_tti.0 - burst.start_tti.0).max();
    assert_eq!((bursts.len(), longest), (31, Some(6)));
}

fn um(tti: i64, sn: u32, size_bytes: u32) -> RlcPdu {
    RlcPdu { mode: RlcMode::Um, poll: None, ..pdu(tti, sn, size_bytes, false) }
}

/// RLC UM: bursts of two blocks, every 50 TTIs; the last block of some is lost for good, and with it its
/// padding and its PDU. The next PDU's number jumps after a pause, which is no hole in the log.
#[test]
fn a_burst_of_a_bearer_without_polls_ends_with_a_lost_block() {
    let mut records: Vec<Record> = Vec::new();
    for n in 0..60_u32 {
        let tti = 50 * i64::from(n);
        let part = |grant: Grant| Grant { n_prb: Some(20), ..grant };
        records.push(block(tti, 0, 1_000, 0).into());
        records.push(um(tti, 2 * n, 1_000).into());
        let last = part(block(tti + 1, 1, 400, 30 + n));
        if n % 10 == 5 {
            let lost = Grant { crc_ok: Some(false), padding_bytes: None, ..last };
            records.push(lost.into());
        } else {
            records.push(last.into());
            records.push(um(tti + 1, 2 * n + 1, 300).into());
        }
    }
    let bursts = run(&records, BurstOptions::default());
    let lengths: Vec<i64> = bursts.iter().map(|b| b.end_tti.0 - b.start_tti.0).collect();
    assert_eq!(lengths, [1; 60]);
    let by = |by| bursts.iter().filter(|burst| burst.closed_by == by).count();
    assert_eq!((by(Bound::Padding), by(Bound::Gap), by(Bound::LogHole)), (54, 6, 0));
}

/// A block that failed at first, a pause, and PDUs that are missing: only a lost block of RLC UM had one
/// PDU, and is followed by its pause; else records are missing.
#[test]
fn a_failed_block_explains_one_pdu_of_a_bearer_without_retransmissions() {
    let has_hole = |mode: RlcMode, missing: u32, pause: i64, received_after: Option<i64>| {
        let of = |tti, sn| RlcPdu { mode, ..um(tti, sn, 1_000) };
        let mut records: Vec<Record> = Vec::new();
        for (tti, sn) in (0..100).zip(0_u32..) {
            records.push(block(tti, (tti % 8) as u8, 1_000, 0).into());
            records.push(of(tti, sn).into());
        }
        let failed = block(100, 4, 1_000, 0);
        let failed = Grant { crc_ok: Some(false), padding_bytes: None, ..failed };
        records.push(failed.into());
        if let Some(after) = received_after {
            let again = Grant { retx: Some(true), ..block(100 + after, 4, 1_000, 0) };
            records.push(again.into());
        }
        for (tti, sn) in (100 + pause..200 + pause).zip(100 + missing..) {
            records.push(block(tti, (tti % 8) as u8, 1_000, 0).into());
            records.push(of(tti, sn).into());
        }
        let mut tracker = BurstTracker::new(BurstOptions::default());
        records.iter().for_each(|record| tracker.push(record));
        tracker.finish();
        std::iter::from_fn(|| tracker.poll_activity()).any(|activity| activity.unknown)
    };
    for (mode, missing, pause, received_after, expected) in [
        (RlcMode::Um, 1, 600, None, false),
        (RlcMode::Um, 2, 600, None, true),
        (RlcMode::Um, 400, 5_000, None, true),
        (RlcMode::Um, 1, 5_000, None, true),
        (RlcMode::Um, 1, 600, Some(8), true),
        (RlcMode::Am, 1, 600, None, true),
        (RlcMode::Am, 400, 5_000, None, true),
    ] {
        let found = has_hole(mode, missing, pause, received_after);
        assert_eq!(found, expected, "{mode:?} {missing} {pause} {received_after:?}");
    }
}
