use airmile_model::{BsrReport, Position};

use super::*;

fn wait(tti: i64) -> Burst {
    Burst {
        dir: Direction::Dl,
        timing_segment: 0,
        start_tti: TtiIndex(tti),
        end_tti: TtiIndex(tti + 100),
        bytes: 0,
        last_bytes: 0,
        scheduled_ttis: 0,
        unknown_ttis: 100,
        opened_by: Bound::Gap,
        closed_by: Bound::FirstData,
        confidence: 0.5,
    }
}

#[test]
fn blocks_without_data_leave_the_other_legs_evidence() {
    let evidence = |data_bytes: Option<u32>| {
        let axis = Timeline::new(Direction::Ul);
        let mut leg = OtherLeg::new(BurstOptions::default());
        let block = Grant::new(Position::lte(10), Direction::Ul, 3);
        leg.push(&Grant { tbs_bytes: Some(133), data_bytes, ..block }.into(), &axis);
        leg.end(&axis);
        let evidence = Some(Evidence::BufferStatus);
        let first = BurstSummary { evidence, data_ttis: 100, ..BurstSummary::default() };
        leg.summary(Direction::Ul, first).evidence
    };
    // Padding alone, and a STATUS PDU.
    assert_eq!(evidence(Some(0)), Some(Evidence::BufferStatus));
    assert_eq!(evidence(Some(2)), Some(Evidence::BufferStatus));
    assert_eq!(evidence(Some(120)), None);
    assert_eq!(evidence(None), None);
}

/// The uplink of a phone whose first leg has a burst with these granted parts, and whose other leg
/// sends blocks that a report precedes: granted parts of both, in ms.
fn granted(first: &[(i64, i64, bool)], reported: u32) -> Vec<(i64, i64, bool)> {
    let mut axis = Timeline::new(Direction::Ul);
    let at = |tti: i64| Some(Stamp::modem(tti * 500_000));
    (0..500).for_each(|ms| axis.note(TtiIndex(ms), at(2 * ms)));
    let mut leg = OtherLeg::new(BurstOptions::default());
    for n in 0..20 {
        let position = Position { numerology: 1, ..Position::lte(200 + 16 * n) };
        let mut block = Grant::new(position, Direction::Ul, 3);
        (block.at, block.tbs_bytes) = (at(200 + 16 * n), Some(2_000));
        // A block on all PRBs comes first.
        block.n_prb = Some(if n == 0 { 50 } else { 3 });
        leg.push(&block.into(), &axis);
        let at = at(200 + 16 * n);
        let upper_bound_bytes = Some(reported);
        let report = BsrReport { at, position, lcg: 2, index: 9, upper_bound_bytes };
        leg.push(&Record::Bsr(report), &axis);
    }
    leg.ul.finish().into_iter().for_each(|burst| leg.take_burst(burst, &axis));
    leg.absorb(&axis);
    let burst = Burst { dir: Direction::Ul, ..wait(0) };
    let bursts = vec![Burst { end_tti: TtiIndex(300), opened_by: Bound::FirstData, ..burst }];
    let span = |from, to| BufferWait { start_tti: TtiIndex(from), end_tti: TtiIndex(to) };
    let granted = first.iter().map(|(from, to, known)| (span(*from, *to), *known)).collect();
    let found = LegFindings { bursts, granted, ..LegFindings::default() };
    let (joined, _) = leg.join(Direction::Ul, found, Decided::ALL, &axis);
    assert!(leg.waited.is_empty(), "{:?}", leg.waited);
    let spans = joined.granted.into_iter();
    spans.map(|(span, known)| (span.start_tti.0, span.end_tti.0, known)).collect()
}

#[test]
fn data_of_a_split_bearer_waits_for_grants_alone_where_no_leg_limits_it() {
    let all = [(0, 150, true), (150, 300, false)];
    // The other leg sends from 100 ms to 252 ms, and grants a part of what was reported, or all.
    let limited = granted(&all, 90_000);
    let [(0, to, true), (from, 300, false)] = limited[..] else { panic!("{limited:?}") };
    assert!((99..=101).contains(&to) && (251..=254).contains(&from), "{limited:?}");
    let both = granted(&all, 2_000);
    assert_eq!((both[0].0, both.last().map(|one| one.1)), (0, Some(300)));
    assert!(both.iter().all(|(from, _, known)| *known == (*from < 150)), "{both:?}");
    // Nothing is granted of the first leg's data.
    assert_eq!(granted(&[], 2_000), []);
}

#[test]
fn waits_of_the_first_leg_count_while_there_is_another() {
    let mut axis = Timeline::new(Direction::Dl);
    let at = |ms: i64| Stamp::modem(ms * 1_000_000);
    axis.note(TtiIndex(0), Some(at(0)));
    let mut leg = OtherLeg::new(BurstOptions::default());
    for ms in [1_000, 3_000] {
        let position = Position { numerology: 1, ..Position::lte(2 * ms) };
        let block = Grant::new(position, Direction::Dl, 3);
        leg.push(&Grant { at: Some(at(ms)), ..block }.into(), &axis);
    }
    let bursts = [500, 950, 2_000, 12_000, 20_000].map(wait).to_vec();
    let found = LegFindings { bursts, ..LegFindings::default() };
    let (joined, _) = leg.join(Direction::Dl, found, Decided::ALL, &axis);
    let starts: Vec<i64> = joined.bursts.iter().map(|burst| burst.start_tti.0).collect();
    // Its release is known 10 s after its last block.
    assert_eq!(starts, [950, 2_000, 12_000]);
}

/// By allocations alone, of a phone that once had another leg, as of one that never had: a cell that cuts
/// blocks to the queue, with a whole block before a silence.
#[test]
fn another_leg_long_ago_hides_no_silence() {
    let unclear = |other_ms: Option<i64>| {
        let mut axis = Timeline::new(Direction::Dl);
        let at = |ms: i64| Some(Stamp::modem(ms * 1_000_000));
        axis.note(TtiIndex(-20_000), at(-20_000));
        axis.note(TtiIndex(0), at(0));
        let mut leg = OtherLeg::new(BurstOptions::default());
        let mut tracker = BurstTracker::new(BurstOptions::default());
        if let Some(ms) = other_ms {
            let position = Position { numerology: 1, ..Position::lte(2 * ms) };
            let block = Grant::new(position, Direction::Dl, 3);
            leg.push(&Grant { at: at(ms), ..block }.into(), &axis);
            tracker.set_leg();
        }
        let mut tti = 0;
        for n in 0..12_u16 {
            for prb in [48, 48, 48, if n == 5 { 48 } else { 10 + n }] {
                let block = Grant::new(Position::lte(tti), Direction::Dl, prb);
                tracker.push(&Grant { n_prb_cell: Some(50), ..block }.into());
                tti += 1;
            }
            tti += if n == 5 { 1_200 } else { 300 };
        }
        let found = LegFindings { bursts: tracker.finish(), ..LegFindings::default() };
        let (joined, _) = leg.join(Direction::Dl, found, Decided::ALL, &axis);
        let unclear = joined.bursts.into_iter().filter(|burst| !burst.is_clear());
        unclear.map(|burst| (burst.start_tti.0, burst.end_tti.0)).collect::<Vec<_>>()
    };
    assert_eq!(unclear(None), [(1_524, 2_724)]);
    assert_eq!(unclear(Some(-15_000)), [(1_524, 2_724)]);
}
