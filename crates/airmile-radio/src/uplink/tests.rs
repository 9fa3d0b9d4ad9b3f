use airmile_model::nr_tables::nr_bsr_upper_bound_bytes;
use airmile_model::tables::bsr_upper_bound_bytes;
use airmile_model::{Hole, Position};
use proptest::prelude::*;

use super::*;

fn sample(tti: i64, new_bytes: u32) -> Record {
    Record::BufferStatus(BufferStatus {
        at: None,
        position: Position::lte(tti),
        lcid: Some(3),
        priority: None,
        new_bytes,
        retx_bytes: 0,
        control_bytes: 9,
    })
}

fn sent(tti: i64) -> Record {
    let mut grant = Grant::new(Position::lte(tti), Direction::Ul, 20);
    grant.tbs_bytes = Some(1_000);
    grant.into()
}

type Spans = Vec<(i64, i64)>;

fn run(records: &[Record]) -> (Spans, Spans) {
    let mut tracker = UplinkTracker::new(UplinkOptions::default());
    records.iter().for_each(|record| tracker.push(record));
    let bursts = tracker.finish();
    let waits = std::iter::from_fn(|| tracker.poll_wait());
    (
        bursts.iter().map(|b| (b.start_tti.0, b.end_tti.0)).collect(),
        waits.map(|w| (w.start_tti.0, w.end_tti.0)).collect(),
    )
}

#[test]
fn a_burst_goes_from_the_first_block_to_the_one_that_empties_the_buffer() {
    let records = [
        sample(10, 0),
        sent(12), // nothing to send: padding
        sample(20, 3_000),
        sent(25),
        sample(30, 2_000),
        sent(31),
        sent(40),
        sample(41, 0),
        sent(45),
    ];
    assert_eq!(run(&records), (vec![(25, 40)], vec![(20, 25)]));
}

#[test]
fn all_logical_channels_count_together() {
    let other = |tti, bytes| match sample(tti, bytes) {
        Record::BufferStatus(status) => {
            Record::BufferStatus(BufferStatus { lcid: Some(4), ..status })
        }
        record => record,
    };
    let records = [
        sample(10, 500),
        other(10, 500),
        sent(11),
        sample(20, 0),
        other(20, 500),
        sent(21),
        sample(30, 0),
        other(30, 0),
    ];
    assert_eq!(run(&records).0, [(11, 21)]);
}

#[test]
fn a_hole_leaves_the_buffer_unknown() {
    let hole = Hole { at: None, position: Position::lte(30), n_tti: 100, why: "test" };
    let records =
        [sample(10, 500), sent(11), hole.into(), sample(150, 0), sample(151, 5), sent(160)];
    assert_eq!(run(&records).0, [(11, 30), (160, 161)]);
}

fn report(tti: i64, index: u8, upper_bound_bytes: Option<u32>) -> Record {
    let position = Position::lte(tti);
    Record::Bsr(BsrReport { at: None, position, lcg: 2, index, upper_bound_bytes })
}

#[test]
fn reports_stand_in_for_samples() {
    let report = |tti, index| report(tti, index, bsr_upper_bound_bytes(index));
    // The block with the report of an empty buffer emptied it.
    let records = [report(10, 40), sent(15), sent(19), report(20, 0), sent(20)];
    assert_eq!(run(&records).0, [(15, 20)]);
    // At most 4667 bytes were reported: five blocks of 1000 empty them, if their padding is unknown.
    let mut records = vec![report(10, 40)];
    records.extend((15..25).map(sent));
    assert_eq!(run(&records).0, [(15, 19)]);
    // Each block of a TTI may carry the same report.
    records.insert(1, report(10, 40));
    assert_eq!(run(&records).0, [(15, 19)]);
}

/// A block of NR, whose padding is known.
fn filled(tti: i64, padding_bytes: u32) -> Record {
    let mut grant = Grant::new(Position::lte(tti), Direction::Ul, 20);
    (grant.tbs_bytes, grant.padding_bytes) = (Some(10_000), Some(padding_bytes));
    grant.into()
}

#[test]
fn reports_of_nr_are_by_its_own_tables() {
    let report = |tti, index| report(tti, index, nr_bsr_upper_bound_bytes(index, false));
    // Index 31 is more than 150000 bytes, and 1132 at most in LTE; index 20 is 5446.
    let records = [
        report(10, 31),
        filled(10, 0),
        filled(20, 0),
        report(30, 20),
        filled(30, 0),
        // More arrived meanwhile, which triggers no report.
        filled(35, 0),
        filled(36, 1),
        report(40, 0),
        filled(40, 700),
        // All data fit into a block each.
        report(50, 0),
        filled(50, 20),
        filled(60, 0),
        filled(61, 900),
    ];
    assert_eq!(run(&records).0, [(10, 40)]);
}

#[test]
fn padding_for_a_report_that_was_not_logged_ends_a_burst() {
    let records = [filled(5, 0), report(6, 3, Some(14)), filled(6, 0), filled(9, 2), filled(12, 0)];
    assert_eq!(run(&records).0, [(5, 9)]);
}

#[test]
fn neither_blocks_nor_the_buffer_alone_are_evidence() {
    let evidence = |records: &[Record]| {
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        records.iter().for_each(|record| tracker.push(record));
        tracker.finish();
        tracker.summary().evidence
    };
    let samples = [sample(10, 900), sample(20, 900), sample(30, 0)];
    assert_eq!(evidence(&samples), None);
    assert_eq!(evidence(&[sent(10), sent(20)]), None);
    assert_eq!(evidence(&[sample(10, 900), sent(20)]), Some(Evidence::BufferStatus));
    assert_eq!(evidence(&[sent(10), report(10, 3, Some(14))]), Some(Evidence::BufferStatus));
}

proptest! {
    #[test]
    fn order_within_the_lateness_does_not_matter(
        buffer in prop::collection::vec(0_u32..3, 5..60),
        delays in prop::collection::vec(0_i64..200, 1..20),
    ) {
        let mut records = Vec::new();
        for (i, &n) in buffer.iter().enumerate() {
            let tti = 40 * i as i64;
            records.push((tti, sample(tti, n * 700)));
            records.push((tti + 3, sent(tti + 3)));
        }
        let in_order: Vec<Record> = records.iter().map(|(_, r)| r.clone()).collect();
        let mut late: Vec<(i64, Record)> = records
            .into_iter()
            .enumerate()
            .map(|(i, (tti, r))| (tti + delays[i % delays.len()], r))
            .collect();
        late.sort_by_key(|(when, _)| *when);
        let late: Vec<Record> = late.into_iter().map(|(_, r)| r).collect();
        prop_assert_eq!(run(&late), run(&in_order));
    }
}
