use airmile_model::{Hole, Position};
use proptest::prelude::*;

use super::*;

fn rlc(mode: RlcMode, tti: i64, sn: u32) -> Record {
    RlcPdu {
        at: None,
        position: Position::lte(tti),
        dir: Direction::Dl,
        bearer: 3,
        signalling: Some(false),
        mode,
        sn: Some(sn),
        size_bytes: 100,
        poll: None,
        resegment: false,
        status: false,
    }
    .into()
}

fn pdcp(tti: i64, sn: u16) -> Record {
    PdcpPdu {
        at: None,
        position: Position::lte(tti),
        dir: Direction::Dl,
        bearer: 3,
        signalling: false,
        mode: RlcMode::Am,
        sn_bits: Some(12),
        sn,
        size_bytes: 100,
        valid: true,
    }
    .into()
}

fn run(records: &[Record]) -> (RadioLoss, Vec<u32>) {
    let mut tracker = LossTracker::default();
    records.iter().for_each(|record| tracker.push(record));
    let summary = tracker.finish();
    (summary, std::iter::from_fn(|| tracker.poll()).map(|loss| loss.sn).collect())
}

#[test]
fn a_um_hole_that_stays_is_a_loss_also_over_a_wrap() {
    let sns = [1022, 1023, 1, 2];
    let mut records: Vec<_> = (0..).zip(sns).map(|(tti, sn)| rlc(RlcMode::Um, tti, sn)).collect();
    records.push(rlc(RlcMode::Um, 1_000, 3));
    let (summary, lost) = run(&records);
    assert_eq!((summary.known, summary.lost_rlc_pdus, lost), (true, 1, vec![0]));
}

#[test]
fn reordering_is_no_loss() {
    let records: Vec<_> =
        (0..).zip([5, 8, 6, 7, 9, 10]).map(|(tti, sn)| rlc(RlcMode::Um, tti * 100, sn)).collect();
    let (summary, _) = run(&records);
    assert_eq!((summary.lost_rlc_pdus, summary.bearers[0].filled), (0, 2));
    assert_eq!(summary.rlc_retx, 0);
}

#[test]
fn am_retransmissions_delay_and_do_not_lose() {
    let sns = [5, 7, 8, 6, 9, 9];
    let records: Vec<_> = (0..).zip(sns).map(|(tti, sn)| rlc(RlcMode::Am, tti * 400, sn)).collect();
    let (summary, _) = run(&records);
    assert_eq!((summary.lost_rlc_pdus, summary.rlc_retx), (0, 2));
}

#[test]
fn an_am_hole_that_the_window_left_behind_was_not_logged() {
    let numbers = (0..600).filter(|sn| *sn != 7);
    let records: Vec<_> = numbers.map(|sn| rlc(RlcMode::Am, i64::from(sn) * 10, sn)).collect();
    let (summary, lost) = run(&records);
    assert_eq!((summary.bearers[0].not_logged, lost), (1, vec![]));
}

#[test]
fn an_am_hole_open_at_a_restart_is_a_loss() {
    let before = [100, 101, 103].into_iter().zip([0, 1, 2]);
    let after = (0..20).map(|i| (i, 5_000 + i64::from(i)));
    let records: Vec<_> = before.chain(after).map(|(sn, tti)| rlc(RlcMode::Am, tti, sn)).collect();
    let (summary, lost) = run(&records);
    assert_eq!((lost, summary.bearers[0].restarts), (vec![102], 1));
    assert_eq!(summary.rlc_retx, 0);
}

#[test]
fn a_hole_in_the_log_is_no_loss() {
    let position = Position::lte(10);
    let hole = Hole { at: None, position, n_tti: 5, why: "damaged bytes" };
    let records =
        [pdcp(0, 4_090), pdcp(1, 4_091), hole.into(), pdcp(20, 3), pdcp(9_000, 4), pdcp(9_001, 6)];
    let (summary, lost) = run(&records);
    assert_eq!((summary.bearers[0].not_logged, lost), (7, vec![]));
    assert_eq!(summary.bearers[0].unresolved, 1);
}

proptest! {
    #[test]
    fn every_number_is_accounted_for(
        start in 0u16..4096,
        dropped in prop::collection::btree_set(1usize..300, 0..30),
        swaps in prop::collection::vec(1usize..300, 0..20),
    ) {
        let mut numbers: Vec<usize> = (0..400).filter(|i| !dropped.contains(i)).collect();
        for at in swaps {
            // The first one stays, as counting begins there.
            let at = at.min(numbers.len() - 2);
            numbers.swap(at, at + 1);
        }
        let mut records: Vec<_> = (0..)
            .zip(&numbers)
            .map(|(tti, i)| pdcp(tti, ((usize::from(start) + i) % 4096) as u16))
            .collect();
        // Long after, for all to be settled.
        records.push(pdcp(100_000, ((usize::from(start) + 400) % 4096) as u16));
        let (summary, lost) = run(&records);
        prop_assert_eq!(summary.lost_pdcp_pdus, dropped.len() as u64);
        let expected: Vec<u32> =
            dropped.iter().map(|i| ((usize::from(start) + i) % 4096) as u32).collect();
        prop_assert_eq!(lost, expected);
        prop_assert_eq!(summary.bearers[0].pdus, records.len() as u64);
        prop_assert_eq!(summary.bearers[0].unresolved, 0);
    }

    #[test]
    fn shifting_all_times_changes_nothing(shift in -50_000i64..50_000, gap in 1i64..3_000) {
        let of = |shift: i64| {
            run(&[pdcp(shift, 1), pdcp(shift + 5, 3), pdcp(shift + 5 + gap, 4)]).0
        };
        prop_assert_eq!(of(0), of(shift));
    }

    #[test]
    fn no_panic(numbers in prop::collection::vec((0i64..10_000, 0u32..70_000, 0u8..3), 0..200)) {
        let modes = [RlcMode::Am, RlcMode::Um, RlcMode::Tm];
        let records: Vec<_> =
            numbers.iter().map(|&(tti, sn, m)| rlc(modes[usize::from(m)], tti, sn)).collect();
        let (summary, lost) = run(&records);
        prop_assert_eq!(summary.lost_rlc_pdus, lost.len() as u64);
    }
}
