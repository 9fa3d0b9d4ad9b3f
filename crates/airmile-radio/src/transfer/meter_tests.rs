use airmile_model::{Bound, Direction, Evidence, Transfer, VerdictThresholds};
use proptest::prelude::*;

use super::*;
use crate::burst::Activity;
use crate::transfer::Timeline;

fn burst(start: i64, end: i64, bytes: u64) -> Burst {
    Burst {
        dir: Direction::Dl,
        timing_segment: 0,
        start_tti: TtiIndex(start),
        end_tti: TtiIndex(end),
        bytes,
        last_bytes: 0,
        scheduled_ttis: 1,
        unknown_ttis: 0,
        opened_by: Bound::FirstData,
        closed_by: if bytes.is_multiple_of(2) { Bound::Poll } else { Bound::Gap },
        confidence: 1.0,
    }
}

fn run(start: i64, n_tti: i64, bytes: u64, unknown: bool) -> Activity {
    Activity {
        timing_segment: 0,
        numerology: 0,
        start_tti: TtiIndex(start),
        n_tti,
        at_ns: Some(start * 1_000_000),
        bytes,
        unknown,
    }
}

fn timeline() -> Timeline {
    let mut timeline = Timeline::new(Direction::Dl);
    timeline.set_evidence(Some(Evidence::Fused));
    timeline
}

/// Spans in order: pause before, length, bytes.
fn spans() -> impl Strategy<Value = Vec<(i64, i64, u64)>> {
    prop::collection::vec((0_i64..6, 1_i64..12, 0_u64..5_000), 0..1_200)
}

fn placed(spans: &[(i64, i64, u64)], pause: i64) -> Vec<(i64, i64, u64)> {
    let mut at = 0;
    spans
        .iter()
        .map(|&(gap, n_tti, bytes)| {
            let start = at + gap + pause;
            at = start + n_tti;
            (start, n_tti, bytes)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the steps in which findings are decided and removed, the result equals
    /// that of the whole timeline.
    #[test]
    fn pieces_give_what_the_whole_gives(
        bursts in spans(),
        runs in spans(),
        transfers in prop::collection::vec((0_i64..8_000, -3_i64..3_000), 1..6),
        marks in prop::collection::vec(1_i64..900, 1..30),
        grows in any::<bool>(),
    ) {
        let bursts = placed(&bursts, 1);
        let runs = placed(&runs, 0);
        let transfers: Vec<Transfer> = transfers
            .into_iter()
            .map(|(start, n_tti)| Transfer {
                id: "t".into(),
                time: None,
                tti: Some((TtiIndex(start), TtiIndex(start + n_tti))),
                bytes: None,
                dir: None,
                unfinished: false,
            })
            .collect();
        let mut whole = timeline();
        for &(start, n_tti, bytes) in &bursts {
            whole.add_burst(burst(start, start + n_tti, bytes));
        }
        for &(start, n_tti, bytes) in &runs {
            whole.add_activity(&run(start, n_tti, bytes, bytes.is_multiple_of(7)));
        }
        let expected = whole.findings(&transfers, &VerdictThresholds::default());

        let mut pieces = timeline();
        let place = |t: &Transfer| t.tti.unwrap_or_default();
        let mut meters: Vec<TransferMeter> = transfers
            .iter()
            .map(|t| match (place(t), grows) {
                ((start, end), true) if end > start => TransferMeter::open(start, start),
                ((start, end), _) => TransferMeter::new(start, end),
            })
            .collect();
        let (mut next_burst, mut next_run, mut mark) = (0, 0, 0);
        for step in marks {
            mark += step;
            // All that begins before the mark is there, and nothing else.
            while let Some(&(start, n_tti, bytes)) = bursts.get(next_burst).filter(|b| b.0 < mark) {
                pieces.add_burst(burst(start, start + n_tti, bytes));
                next_burst += 1;
            }
            while let Some(&(start, n_tti, bytes)) = runs.get(next_run).filter(|r| r.0 < mark) {
                pieces.add_activity(&run(start, n_tti, bytes, bytes.is_multiple_of(7)));
                next_run += 1;
            }
            let decided = Decided { runs: TtiIndex(mark), bursts: TtiIndex(mark) };
            let mut kept = decided;
            for (meter, transfer) in meters.iter_mut().zip(&transfers) {
                if !meter.has_ended() {
                    meter.extend(place(transfer).1.min(TtiIndex(mark)));
                }
                pieces.gather(meter, decided);
                kept = kept.min(meter.needs());
            }
            pieces.forget_before(kept);
        }
        for &(start, n_tti, bytes) in &bursts[next_burst..] {
            pieces.add_burst(burst(start, start + n_tti, bytes));
        }
        for &(start, n_tti, bytes) in &runs[next_run..] {
            pieces.add_activity(&run(start, n_tti, bytes, bytes.is_multiple_of(7)));
        }
        for (meter, transfer) in meters.iter_mut().zip(&transfers) {
            meter.set_end(place(transfer).1);
            pieces.gather(meter, Decided::ALL);
            prop_assert!(meter.is_whole());
        }
        let metered: Vec<_> = transfers.iter().zip(meters.iter().map(Some)).collect();
        let found = pieces.conclude(&metered, &VerdictThresholds::default());
        prop_assert_eq!(found, expected);
    }
}

/// Bursts reach out of `[100, 200)` on either side: only what is inside counts.
#[test]
fn bursts_end_with_the_span() {
    for (bursts, longest, inside) in [
        (&[(0, 1_000)][..], 100, 100),
        (&[(50, 110), (150, 180)], 30, 40),
        (&[(110, 120), (190, 900)], 10, 20),
        (&[(0, 160), (190, 900)], 60, 70),
        (&[], 0, 0),
    ] {
        let mut meter = TransferMeter::new(TtiIndex(100), TtiIndex(200));
        let bursts: Vec<Burst> = bursts.iter().map(|&(from, to)| burst(from, to, 1_000)).collect();
        meter.ingest_bursts(&bursts, 1_000);
        let seen = meter.bursts();
        let found = [seen.longest_until(TtiIndex(200)), seen.inside_until(TtiIndex(200))];
        assert_eq!(found, [longest, inside], "{bursts:?}");
    }
}
