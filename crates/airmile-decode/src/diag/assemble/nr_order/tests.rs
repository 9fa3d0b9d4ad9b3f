use airmile_model::{MacBlock, RlcMode, RlcPdu, RntiType};

use super::*;

fn grant(tbs_bytes: u32, harq_id: u8) -> Grant {
    let mut grant = Grant::new(Position::default(), Direction::Dl, 1);
    grant.tbs_bytes = Some(tbs_bytes);
    grant.harq_id = Some(harq_id);
    grant
}

fn content(tbs_bytes: u32, padding_bytes: u32) -> Record {
    MacBlock {
        at: None,
        position: Position::default(),
        dir: Direction::Dl,
        rnti: RntiType::C,
        harq_id: 0,
        tbs_bytes,
        rlc_pdus: 1,
        padding_bytes,
        data_bytes: None,
        lcids: String::new(),
    }
    .into()
}

fn pdu() -> Record {
    RlcPdu {
        at: None,
        position: Position::default(),
        dir: Direction::Dl,
        bearer: 4,
        signalling: Some(false),
        mode: RlcMode::Am,
        sn: None,
        size_bytes: 500,
        poll: Some(true),
        resegment: false,
        status: false,
    }
    .into()
}

/// Padding of the grants, and processes and padding of the blocks.
fn joined(mut records: Vec<Record>) -> (Vec<Option<u32>>, Vec<(u8, u32)>) {
    join_contents(&mut records);
    let (mut grants, mut blocks) = (Vec::new(), Vec::new());
    for record in &records {
        match record {
            Record::Grant(grant) => grants.push(grant.padding_bytes),
            Record::MacBlock(block) => blocks.push((block.harq_id, block.padding_bytes)),
            _ => {}
        }
    }
    (grants, blocks)
}

#[test]
fn contents_go_to_grants_of_their_size_in_order() {
    let mut failed = grant(100, 1);
    failed.crc_ok = Some(false);
    let (grants, blocks) = joined(vec![
        content(100, 7),
        failed.into(),
        grant(100, 2).into(),
        grant(200, 3).into(),
        content(200, 9),
        grant(100, 4).into(),
        content(100, 8),
        content(100, 6),
    ]);
    assert_eq!(grants, [None, Some(7), Some(9), Some(8)]);
    // The third of 100 bytes has no grant left.
    assert_eq!(blocks, [(2, 7), (3, 9), (4, 8)]);
}

#[test]
fn without_a_grant_blocks_are_left_out_and_pdus_stay() {
    let mut records = vec![content(100, 7), pdu()];
    join_contents(&mut records);
    assert_eq!(records, [pdu()]);
}

#[test]
fn many_contents_in_a_slot_take_linear_time() {
    // In quadratic time: 10^10 comparisons.
    let n = 100_000;
    let grants = (0..n).map(|_| grant(100, 0).into());
    let (grants, blocks) = joined(grants.chain((0..n).map(|i| content(100, i))).collect());
    assert!(grants.iter().copied().eq((0..n).map(Some)));
    assert_eq!(blocks.len(), grants.len());
}

fn block(time: NrSlot, arfcn: u32) -> NrDlBlock {
    let (pci, arfcn, grant) = (Some(7), Some(arfcn), grant(100, 0));
    NrDlBlock { time, carrier: None, pci, arfcn, grant }
}

/// Timing segment, cell and ms of blocks, each written at a ms, on a carrier.
fn placed(blocks: impl IntoIterator<Item = (i64, u32)>) -> Vec<(u32, u8, i64)> {
    let (mut order, mut out) = (NrOrder::default(), Vec::new());
    let mut sink = |record: Record| {
        if let Record::Grant(Grant { position: at, .. }) = record {
            out.push((at.timing_segment, at.cell, at.tti.0 / 2));
        }
    };
    for (ms, arfcn) in blocks {
        let (frame, slot) = ((ms / 10 % 1024) as u16, (ms % 10 * 2) as u8);
        let at = Stamp::modem(ms * SUBFRAME_NS);
        order.note_clock(at.ns, at.ns);
        let time = NrSlot { frame, slot, numerology: 1 };
        order.push(SlotBatch { at, last: Some(time) }, block(time, arfcn));
        order.release(Some(at.ns), &mut sink);
    }
    order.release(None, &mut sink);
    out
}

#[test]
fn a_pause_shows_no_handover() {
    let both = |from: i64, to: i64| (from..to).map(|ms| (ms, 1 + (ms % 2) as u32));
    let first = || (0..100).map(|ms| (ms, 1));
    let check = |blocks: Vec<(i64, u32)>| {
        let right = blocks.iter().map(|(ms, arfcn)| (0, *arfcn as u8 - 1, *ms));
        assert_eq!(placed(blocks.clone()), right.collect::<Vec<_>>());
    };
    for pause_ms in [600, 1_900, 5_000, 60_000] {
        // After the first block of the second carrier; then either carrier is the next.
        for next in [0, 1] {
            let from = 100 + pause_ms + next;
            check(first().chain([(100, 2)]).chain(both(from, from + 3_000)).collect());
        }
    }
    // The log ends after it; or the first carrier pauses for 1 s, while the second one sends.
    check(first().chain([(100, 2), (101, 2)]).collect());
    check(first().chain((100..1_100).map(|ms| (ms, 2))).chain(both(1_100, 4_000)).collect());
}

#[test]
fn blocks_on_a_new_carrier_alone_show_a_handover() {
    // Also if they are sparse: from the fourth one on.
    for (every_ms, undecided) in [(10, 0), (1_280, 2)] {
        let new = (1..200).map(|i| (100 + i * every_ms, 2));
        let placed = placed((0..100).map(|ms| (ms, 1)).chain(new));
        assert!(placed[100 + undecided..].iter().all(|at| (at.0, at.1) == (1, 0)), "{placed:?}");
    }
}

#[test]
fn a_clock_that_stands_still_holds_a_limited_number() {
    let mut order = NrOrder::default();
    let time = NrSlot { frame: 0, slot: 0, numerology: 1 };
    for arfcn in 0..200_000 {
        order.push(SlotBatch { at: Stamp::modem(0), last: None }, block(time, arfcn));
        assert!(order.held.len() < MAX_HELD && order.carriers.len() <= MAX_CARRIERS);
    }
}

/// What counters state of a carrier each: of the downlink, and of the uplink.
type Counted = [Option<Vec<u64>>; 2];

/// Whether a silence of 6 s between two blocks is a hole, given what counters state before and after it, and
/// the bytes of the uplink's blocks before it.
fn is_hole(counted: [Counted; 2], ul_bytes: u32, why: &'static str) -> bool {
    let (mut order, mut out) = (NrOrder::default(), Vec::new());
    let time = |ms: i64| NrSlot { frame: (ms / 10 % 1024) as u16, slot: 0, numerology: 1 };
    let mut sink = |record: Record| match record {
        Record::Grant(grant) if grant.dir == Direction::Ul => {}
        record => out.push(matches!(record, Record::Hole(_))),
    };
    let mut written = None;
    let [before, after] = counted;
    let none = || Counted::default();
    for (ms, counted) in [(100, before), (6_100, after), (6_120, none()), (9_000, none())] {
        let at = Stamp::modem(ms * SUBFRAME_NS);
        if let Some(last_ns) = written.replace(at.ns) {
            order.note_clock(last_ns, at.ns);
            if at.ns - last_ns > 4_000_000_000 {
                order.push_hole((last_ns, at.ns), why);
            }
        }
        let batch = SlotBatch { at, last: Some(time(ms)) };
        order.push(batch, block(time(ms), 1));
        if ms == 100 {
            let tbs_bytes = Some(ul_bytes);
            let grant = Grant::new(Position::default(), Direction::Ul, 4);
            order.push_at(batch, time(ms), Grant { tbs_bytes, ..grant }.into());
        }
        order.release(Some(at.ns), &mut sink);
        for (dir, carriers) in [Direction::Dl, Direction::Ul].into_iter().zip(counted) {
            let carriers = carriers.map(|bytes| (0..).zip(bytes).collect());
            carriers.into_iter().for_each(|bytes| order.note_bytes(dir, bytes));
        }
    }
    order.release(None, &mut sink);
    // The hole is between the blocks around it.
    out == [false, false, true, false, false, false] || {
        assert_eq!(out, [false; 5]);
        false
    }
}

#[test]
fn counters_of_one_carrier_add_up() {
    let mut order = NrOrder::default();
    order.note_bytes(Direction::Dl, [(3, 5), (3, u64::MAX), (4, 1)].into_iter().collect());
    assert_eq!(order.counted[0], Some(BTreeMap::from([(3, u64::MAX), (4, 1)])));
    order.note_bytes(Direction::Dl, [(3, 5), (3, 7)].into_iter().collect());
    assert_eq!(order.counted[0], Some(BTreeMap::from([(3, 12)])));
}

#[test]
fn a_phone_that_received_nothing_in_a_silence_was_idle() {
    let is_hole = |before: Option<u64>, after: Option<u64>, why| {
        let of = |bytes: Option<u64>| [bytes.map(|bytes| vec![bytes]), None];
        is_hole([of(before), of(after)], 0, why)
    };
    assert!(!is_hole(Some(5_000_000), Some(5_000_400), "silence"));
    assert!(is_hole(Some(5_000_000), Some(5_900_000), "silence"));
    // Counters of another connection, and none.
    assert!(is_hole(Some(5_000_000), Some(400), "silence"));
    assert!(is_hole(Some(5_000_000), None, "silence"));
    assert!(is_hole(None, Some(5_000_000), "silence"));
    assert!(is_hole(Some(5_000_000), Some(5_000_400), "damaged bytes"));
}

/// In 6 s of an upload of 0.8 Mbit/s the downlink carries 12.4 kB of acknowledgements.
#[test]
fn an_upload_in_a_silence_is_no_idle_time() {
    let acks = |bytes: u64, sent: Option<u64>| [Some(vec![bytes]), sent.map(|bytes| vec![bytes])];
    let by = |sent: [Option<u64>; 2], ul_bytes: u32| {
        is_hole([acks(50_000, sent[0]), acks(62_400, sent[1])], ul_bytes, "silence")
    };
    assert!(by([Some(900_000), Some(1_500_000)], 100_000));
    assert!(!by([Some(900_000), Some(901_000)], 100_000));
    // Without the uplink's counters, its blocks before the silence show an upload.
    assert!(by([None, None], 100_000));
    assert!(!by([None, None], 3_000));
    // Counters of the uplink that do not come again.
    assert!(by([Some(900_000), None], 3_000));
}

#[test]
fn a_released_carrier_hides_no_bytes_of_another() {
    let counted = |bytes: &[u64]| [Some(bytes.to_vec()), None];
    let lost = [counted(&[5_000_000, 600_000]), counted(&[5_600_100])];
    assert!(is_hole(lost, 0, "silence"));
    let added = |second: u64| [counted(&[5_000_000]), counted(&[5_000_100, second])];
    assert!(!is_hole(added(0), 0, "silence"));
    assert!(is_hole(added(600_000), 0, "silence"));
}
