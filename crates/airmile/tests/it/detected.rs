//! Transfers that the log alone shows: where they begin and end, from records to the verdict.

use airmile::model::Verdict;
use airmile::{Inputs, Progress, RadioOptions, radio};

/// From each block's TTI, size and padding: start, end and verdict of transfers of one direction.
fn found(dir: &str, blocks: &[(i64, u32, u32)]) -> Vec<(i64, i64, Verdict)> {
    let place = tempfile::tempdir().unwrap();
    let table = place.path().join("grants.csv");
    let mut text = "tti,time_us,dir,n_prb,n_prb_cell,tbs_bytes,padding_bytes\n".to_owned();
    for (tti, tbs_bytes, padding_bytes) in blocks {
        let time_us = 1_714_557_600_000_000 + tti * 1_000;
        text += &format!("{tti},{time_us},{dir},50,50,{tbs_bytes},{padding_bytes}\n");
    }
    std::fs::write(&table, text).unwrap();
    let inputs = Inputs { files: vec![table], ..Inputs::default() };
    let report = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let of = report.transfers.iter();
    of.map(|one| (one.start_tti.0, one.end_tti.0, one.verdict)).collect()
}

/// A short transfer begins and ends between two records, while keep-alives before it are watched.
#[test]
fn a_short_transfer_after_keep_alives_has_its_own_start() {
    let polls = (0..1_400).step_by(150).map(|tti| (tti, 100, 40));
    let data = (1_400..1_550).map(|tti| (tti, 2_000, if tti == 1_549 { 700 } else { 0 }));
    let blocks: Vec<_> = polls.chain(data).collect();
    let expected = [(1_400, 1_550, Verdict::Radio)];
    assert_eq!(found("dl", &blocks), expected);
    for next in [2_200, 3_000, 9_000] {
        assert_eq!(found("dl", &[&blocks[..], &[(next, 100, 40)]].concat()), expected, "{next}");
    }
}
