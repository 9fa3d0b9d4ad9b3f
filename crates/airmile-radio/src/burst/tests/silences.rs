//! Data that may wait in a silence.

use super::*;

/// Unclear bursts of a cell that cuts blocks to the queue, with a silence after a block of these PRBs, and its
/// holes: start relative to the silence's, and length.
fn unclear(last_prb: u16, silence: i64, holes: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut tracker = BurstTracker::new(with(EvidenceChoice::Grants));
    let mut tti = 0;
    for n in 0..12_u16 {
        for prb in [48, 48, 48, if n == 5 { last_prb } else { 10 + n }] {
            let grant = Grant { padding_bytes: None, ..Grant::new(at(0, tti), Direction::Dl, prb) };
            tracker.push(&Grant { n_prb_cell: Some(50), ..grant }.into());
            tti += 1;
        }
        for (from, n_tti) in holes.iter().filter(|_| n == 5) {
            let (position, why) = (at(0, tti + from), "silence");
            tracker.push(&Record::Hole(Hole { at: None, position, n_tti: *n_tti, why }));
        }
        tti += if n == 5 { silence } else { 300 };
    }
    let bursts = tracker.finish();
    let unclear = bursts.iter().filter(|burst| !burst.is_clear());
    unclear.map(|burst| (burst.start_tti.0, burst.end_tti.0)).collect()
}

const END: i64 = 6 * 4 + 5 * 300;

/// By allocations alone: of a cell that cuts blocks to the queue, a whole one before a silence may have
/// left data that waits for the cell to come back.
#[test]
fn data_may_wait_in_a_silence_after_a_whole_block() {
    let unclear = |last_prb, silence| unclear(last_prb, silence, &[]);
    assert_eq!(unclear(48, 1_200), [(END, END + 1_200)]);
    assert_eq!(unclear(20, 1_200), []);
    // The sender's own pauses are as long, and records of longer silences are missing.
    assert_eq!(unclear(48, 700), []);
    assert_eq!(unclear(48, 5_000), []);
}

/// Of what a hole covers it is known already that nothing is known.
#[test]
fn a_silence_counts_outside_of_holes() {
    let unclear = |holes: &[(i64, i64)]| unclear(48, 1_200, holes);
    assert_eq!(unclear(&[(0, 1_200)]), []);
    assert_eq!(unclear(&[(100, 200)]), [(END, END + 100), (END + 300, END + 1_200)]);
}
