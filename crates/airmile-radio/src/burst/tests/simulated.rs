//! Logs of a simulated cell whose true bursts are known, and properties over them.

use airmile_model::{Burst, Grant, Hole, NrStats, Position, Record, RlcPdu, Stamp};
use proptest::prelude::*;

use super::super::epoch::Epoch;
use super::super::{BurstOptions, BurstTracker, EvidenceChoice};
use super::{at, block, pdu, run, with};

/// A cell with a queue: packets of 1400 bytes arrive in bunches, the user gets
/// a block when the cell has time for it, polls are forced each `poll_pdu`
/// PDUs. Returns records and the true bursts.
fn simulate(seed: u64, n_tti: i64, poll_pdu: u32, retx: bool) -> (Vec<Record>, Vec<(i64, i64)>) {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut random = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut records, mut truth) = (Vec::new(), Vec::new());
    let (mut queue, mut sn, mut unpolled, mut open) = (0_u32, 0, 0, None);
    for tti in 0..n_tti {
        if random(60) == 0 {
            queue += 1_400 * (1 + random(30) as u32);
        }
        if queue == 0 || random(3) == 0 {
            continue;
        }
        let sent = queue.min(2_000);
        queue -= sent;
        open.get_or_insert(tti);
        let harq_id = (tti % 8) as u8;
        let mut grant = block(tti, harq_id, 2_000, 2_000 - sent);
        let delivered = if retx && random(10) == 0 {
            grant.crc_ok = Some(false);
            let again = Grant {
                retx: Some(true),
                padding_bytes: None,
                ..block(tti + 8, harq_id, 2_000, 0)
            };
            records.push(again.into());
            tti + 8
        } else {
            tti
        };
        records.push(grant.into());
        unpolled += 1;
        let poll = queue == 0 || unpolled >= poll_pdu;
        records.push(pdu(delivered, sn, sent, poll).into());
        sn += 1;
        if poll {
            unpolled = 0;
        }
        if queue == 0 {
            truth.extend(open.take().filter(|&start| start < tti).map(|start| (start, tti)));
        }
    }
    if let Some(start) = open {
        truth.push((start, n_tti));
    }
    records.sort_by_key(tti_of);
    (records, truth)
}

fn tti_of(record: &Record) -> i64 {
    match record {
        Record::Grant(grant) => grant.position.tti.0,
        Record::Rlc(pdu) => pdu.position.tti.0,
        _ => 0,
    }
}

fn shifted(record: &Record, by: i64) -> Record {
    let mut record = record.clone();
    match &mut record {
        Record::Grant(grant) => grant.position.tti = grant.position.tti.plus(by),
        Record::Rlc(pdu) => pdu.position.tti = pdu.position.tti.plus(by),
        _ => {}
    }
    record
}

/// Throughput time of spans.
fn total(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    spans.map(|(start, end)| end - start).sum()
}

#[test]
fn fused_evidence_finds_the_true_bursts() {
    for seed in 0..8 {
        let (records, truth) = simulate(seed, 20_000, 16, false);
        let found = run(&records, BurstOptions::default());
        let found = total(found.iter().map(|b| (b.start_tti.0, b.end_tti.0)));
        let truth = total(truth.into_iter());
        // A block that fits the queue to the byte has no padding: not exact.
        assert!((found - truth).abs() * 100 < truth, "seed {seed}: {found} of {truth}");
    }
}

#[test]
fn polls_alone_come_close_although_most_are_forced() {
    for poll_pdu in [4, 16, 64] {
        let (records, truth) = simulate(7, 60_000, poll_pdu, true);
        let found = run(&records, with(EvidenceChoice::Poll));
        let found = total(found.iter().map(|b| (b.start_tti.0, b.end_tti.0)));
        let truth = total(truth.into_iter());
        assert!((found - truth).abs() * 50 < truth, "{poll_pdu}: {found} of {truth}");
    }
}

fn any_choice() -> impl Strategy<Value = EvidenceChoice> {
    prop_oneof![
        Just(EvidenceChoice::Auto),
        Just(EvidenceChoice::Poll),
        Just(EvidenceChoice::Padding),
        Just(EvidenceChoice::Grants),
        Just(EvidenceChoice::Paper),
    ]
}

/// A record of a random log: TTIs after the one before, what it is, and bytes.
type Step = (i64, u8, u32);

/// Records of two timing segments in any order: grants of two cells, PDUs, STATUS, holes and counters of NR.
fn random_log(steps: &[Step]) -> Vec<Record> {
    let (mut tti, mut sn, mut good_bytes) = (0, 0, 0);
    let at_half = steps.len() / 2;
    let each = steps.iter().enumerate().map(|(n, &(step, what, bytes))| {
        tti += step;
        let position = Position {
            cell: what % 2,
            numerology: u8::from(what == 7),
            ..at(u32::from(n > at_half), tti)
        };
        let stamp = Some(Stamp::modem(tti * 1_000_000));
        match what {
            0..=7 => {
                good_bytes += u64::from(bytes);
                let padding_bytes = (what < 4).then_some(bytes / 8 * u32::from(what));
                let known =
                    Grant { at: stamp, position, padding_bytes, ..block(tti, what, bytes, 0) };
                Grant { crc_ok: Some(bytes % 5 != 0), ..known }.into()
            }
            8..=13 => {
                sn += 1;
                let status = what == 13;
                RlcPdu { position, status, ..pdu(tti, sn, bytes, bytes % 3 == 0) }.into()
            }
            14 => Hole { at: None, position, n_tti: i64::from(bytes % 7), why: "test" }.into(),
            _ => NrStats {
                at: stamp,
                carrier: 0,
                slots: 0,
                good_blocks: 0,
                failed_blocks: 0,
                retx_blocks: 0,
                harq_failures: 0,
                good_bytes,
                padding_bytes: u64::from(bytes),
                retx_bytes: 0,
            }
            .into(),
        }
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_shift_of_time_shifts_bursts_and_nothing_else(
        seed in 0_u64..1_000,
        by in -5_000_000_000_i64..5_000_000_000,
        choice in any_choice(),
    ) {
        let (records, _) = simulate(seed, 3_000, 16, true);
        let moved: Vec<Record> = records.iter().map(|r| shifted(r, by)).collect();
        let back: Vec<Burst> = run(&moved, with(choice))
            .into_iter()
            .map(|b| Burst {
                start_tti: b.start_tti.plus(-by),
                end_tti: b.end_tti.plus(-by),
                ..b
            })
            .collect();
        prop_assert_eq!(back, run(&records, with(choice)));
    }

    #[test]
    fn taking_bursts_in_between_changes_nothing(
        seed in 0_u64..1_000,
        piece in 1_usize..200,
        epoch_rows in 1_usize..400,
        choice in any_choice(),
    ) {
        let (records, _) = simulate(seed, 3_000, 16, true);
        let options = BurstOptions { epoch_rows, ..with(choice) };
        let mut tracker = BurstTracker::new(options);
        let mut bursts = Vec::new();
        for part in records.chunks(piece) {
            part.iter().for_each(|record| tracker.push(record));
            bursts.extend(std::iter::from_fn(|| tracker.poll()));
            // A live view: what a log that ended here would give.
            let _ = tracker.clone().finish();
        }
        bursts.extend(tracker.finish());
        prop_assert_eq!(bursts, run(&records, options));
    }

    /// Records of any order, some too late: what is asked for in between changes no answer.
    #[test]
    fn asking_after_each_record_changes_nothing(
        steps in prop::collection::vec((-40_i64..50, 0_u8..18, 1_u32..2_000), 1..300),
        lateness_ms in prop::sample::select(vec![0_i64, 20, 200, 1_000]),
        epoch_rows in prop::sample::select(vec![1_usize, 7, 300]),
        choice in any_choice(),
    ) {
        let records = random_log(&steps);
        let options = BurstOptions { lateness_ms, epoch_rows, ..with(choice) };
        let answers = |asks: bool| {
            let mut tracker = BurstTracker::new(options);
            let (mut bursts, mut activities) = (Vec::new(), Vec::new());
            for record in &records {
                tracker.push(record);
                if asks {
                    bursts.extend(std::iter::from_fn(|| tracker.poll()));
                    activities.extend(std::iter::from_fn(|| tracker.poll_activity()));
                }
            }
            bursts.extend(tracker.finish());
            activities.extend(std::iter::from_fn(|| tracker.poll_activity()));
            (bursts, activities, tracker.summary())
        };
        prop_assert_eq!(answers(true), answers(false));
    }

    /// TTIs that only continue a burst are counted, and not judged one by one, where polls decide. Of
    /// some blocks the padding is unknown, and a part of the log is missing.
    #[test]
    fn counting_ttis_into_rows_changes_nothing(
        seed in 0_u64..1_000,
        epoch_rows in prop::sample::select(vec![1_usize, 7, 300, 32_768]),
        poll_pdu in 2_u32..40,
        choice in prop::sample::select(vec![EvidenceChoice::Auto, EvidenceChoice::Poll]),
        unknown_each in 1_usize..60,
        missing in prop::option::of(0_usize..2_000),
    ) {
        let (mut records, _) = simulate(seed, 3_000, poll_pdu, true);
        for record in records.iter_mut().step_by(unknown_each) {
            if let Record::Grant(grant) = record {
                grant.padding_bytes = None;
            }
        }
        if let Some((at, Record::Grant(grant))) = missing.and_then(|at| Some((at, records.get(at)?))) {
            let hole = Hole { at: None, position: grant.position, n_tti: 1, why: "test" };
            records.insert(at, Record::Hole(hole));
        }
        let options = BurstOptions { epoch_rows, ..with(choice) };
        let result_of = |mut tracker: BurstTracker| {
            let decided: Vec<_> = records
                .iter()
                .map(|record| {
                    tracker.push(record);
                    tracker.decided()
                })
                .collect();
            let bursts = tracker.finish();
            let activities: Vec<_> = std::iter::from_fn(|| tracker.poll_activity()).collect();
            (decided, bursts, activities, tracker.summary())
        };
        let mut one_by_one = BurstTracker::new(options);
        one_by_one.judge.epoch = Epoch::new(false);
        prop_assert_eq!(result_of(BurstTracker::new(options)), result_of(one_by_one));
    }

    #[test]
    fn records_within_the_lateness_may_come_in_any_order(
        seed in 0_u64..1_000,
        delays in prop::collection::vec(0_i64..300, 1..40),
        choice in any_choice(),
    ) {
        let (records, _) = simulate(seed, 4_000, 16, true);
        let mut late: Vec<(i64, Record)> = records
            .iter()
            .enumerate()
            .map(|(i, r)| (tti_of(r) + delays[i % delays.len()], r.clone()))
            .collect();
        late.sort_by_key(|(when, _)| *when);
        let late: Vec<Record> = late.into_iter().map(|(_, record)| record).collect();
        prop_assert_eq!(run(&late, with(choice)), run(&records, with(choice)));
    }

    #[test]
    fn bursts_are_in_order_apart_and_not_empty(
        seed in 0_u64..1_000,
        keep in prop::collection::vec(any::<bool>(), 1..30),
        choice in any_choice(),
    ) {
        // Any part of a log is a log.
        let (mut records, _) = simulate(seed, 3_000, 16, true);
        let mut i = 0;
        records.retain(|_| { i += 1; keep[i % keep.len()] });
        let bursts = run(&records, with(choice));
        prop_assert!(bursts.iter().all(|b| b.n_tti() > 0));
        prop_assert!(bursts.windows(2).all(|w| w[0].end_tti <= w[1].start_tti));
        prop_assert!(bursts.iter().all(|b| (0.0..=1.0).contains(&b.confidence)));
    }
}
