//! Data that may wait in a silence.

use super::*;

/// By allocations alone: of a cell that cuts blocks to the queue, a whole one before a silence may have
/// left data that waits for the cell to come back.
#[test]
fn data_may_wait_in_a_silence_after_a_whole_block() {
    let unclear = |last_prb: u16, silence: i64| {
        let mut tracker = BurstTracker::new(with(EvidenceChoice::Grants));
        let mut tti = 0;
        for n in 0..12_u16 {
            for prb in [48, 48, 48, if n == 5 { last_prb } else { 10 + n }] {
                let grant =
                    Grant { padding_bytes: None, ..Grant::new(at(0, tti), Direction::Dl, prb) };
                tracker.push(&Grant { n_prb_cell: Some(50), ..grant }.into());
                tti += 1;
            }
            tti += if n == 5 { silence } else { 300 };
        }
        let bursts = tracker.finish();
        let unclear = bursts.iter().filter(|burst| !burst.is_clear());
        unclear.map(|burst| (burst.start_tti.0, burst.end_tti.0)).collect::<Vec<_>>()
    };
    let end = 6 * 4 + 5 * 300;
    assert_eq!(unclear(48, 1_200), [(end, end + 1_200)]);
    assert_eq!(unclear(20, 1_200), []);
    // The sender's own pauses are as long, and records of longer silences are missing.
    assert_eq!(unclear(48, 700), []);
    assert_eq!(unclear(48, 5_000), []);
}
