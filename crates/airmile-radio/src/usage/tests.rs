use airmile_model::Position;

use super::*;

#[test]
fn shares_over_a_span() {
    let mut bins = UsageBins::new(Direction::Dl);
    bins.set_bandwidth((Rat::Lte, 0), 0, 50);
    for tti in 0..100 {
        let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 25);
        grant.mcs = Some(10);
        grant.retx = Some(tti % 10 == 0);
        bins.push_grant(&grant, Rat::Lte);
        // The second block of an assignment repeats its PRBs.
        grant.tb = 1;
        bins.push_grant(&grant, Rat::Lte);
    }
    let usage = bins.usage(TtiIndex(0), TtiIndex(200));
    assert_eq!(usage.scheduled_share, 0.5);
    assert_eq!(usage.prb_share, Some(0.25));
    assert_eq!(usage.prb_share_when_scheduled, Some(0.5));
    assert_eq!((usage.mcs_mean, usage.retx_share), (Some(10.0), Some(0.1)));
    assert_eq!(usage.rsrp_dbm, None);
    assert_eq!(bins.usage(TtiIndex(1_000), TtiIndex(1_100)).scheduled_share, 0.0);
}

#[test]
fn spans_that_begin_and_end_within_bins() {
    let mut bins = UsageBins::new(Direction::Dl);
    bins.set_bandwidth((Rat::Lte, 0), 0, 50);
    for tti in 30..280 {
        bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25), Rat::Lte);
    }
    for (start, end, share) in [
        (30, 280, 1.0),
        (30, 80, 1.0),
        (40, 60, 1.0),
        (200, 280, 1.0),
        (0, 60, 0.5),
        (0, 300, 25.0 / 30.0),
    ] {
        let usage = bins.usage(TtiIndex(start), TtiIndex(end));
        assert_eq!(usage.scheduled_share, share, "{start} to {end}");
        assert_eq!(usage.prb_share, Some(share / 2.0), "{start} to {end}");
        assert_eq!(usage.prb_share_when_scheduled, Some(0.5), "{start} to {end}");
    }
}

/// As while a log is read: the end moves on, and what was gathered is forgotten.
#[test]
fn an_end_that_moves_while_bins_are_gathered() {
    let mut bins = UsageBins::new(Direction::Dl);
    let mut sum = UsageSum::new(TtiIndex(30), TtiIndex(30));
    for tti in 30..280 {
        bins.push_grant(&Grant::new(Position::lte(tti), Direction::Dl, 25), Rat::Lte);
        sum.set_end(TtiIndex(tti + 1));
        bins.gather(&mut sum, TtiIndex(tti - 20));
        bins.forget_before(sum.gathered_to());
    }
    sum.set_end(TtiIndex(250));
    bins.gather(&mut sum, TtiIndex(i64::MAX));
    assert_eq!(bins.conclude(&sum).scheduled_share, 1.0);
}

/// Two carriers of 50 and 100 PRBs, of which the second is scheduled in every other TTI.
#[test]
fn carriers_are_shares_of_their_own_cells() {
    let usage = |second: Option<u16>| {
        let mut bins = UsageBins::new(Direction::Dl);
        for tti in 0..100 {
            for (cell, n_prb, n_prb_cell) in [(0, 45, Some(50)), (1, 60, second)] {
                if cell == 1 && tti % 2 == 1 {
                    continue;
                }
                let position = Position { cell, ..Position::lte(tti) };
                let grant = Grant::new(position, Direction::Dl, n_prb);
                bins.push_grant(&Grant { n_prb_cell, ..grant }, Rat::Lte);
            }
        }
        bins.usage(TtiIndex(0), TtiIndex(200))
    };
    let known = usage(Some(100));
    assert_eq!((known.scheduled_share, known.cells, known.n_prb), (0.5, 2, 7_500));
    // 4,500 of 100 TTIs of 50 PRBs, and 3,000 of 50 TTIs of 100.
    assert_eq!(known.prb_share_when_scheduled, Some(0.75));
    assert_eq!(known.prb_share, Some(7_500.0 / 30_000.0));
    let unknown = usage(None);
    assert_eq!((unknown.prb_share, unknown.prb_share_when_scheduled), (None, None));
    assert_eq!(unknown.n_prb, 7_500);
}

/// All PRBs of a cell, of another width after a handover: shares are of the width in force.
#[test]
fn a_cell_of_another_width_after_a_handover() {
    let usage = |is_logged: bool, start: i64, end: i64| {
        let mut bins = UsageBins::new(Direction::Dl);
        for (segment, n_prb) in [(0_u32, 100_u16), (1, 50)] {
            if !is_logged {
                bins.set_bandwidth((Rat::Lte, 0), segment, n_prb);
            }
            for tti in 0..500 {
                let position = Position::lte(500 * i64::from(segment) + tti);
                let position = Position { timing_segment: segment, ..position };
                let grant = Grant::new(position, Direction::Dl, n_prb);
                let n_prb_cell = Some(n_prb).filter(|_| is_logged);
                bins.push_grant(&Grant { n_prb_cell, ..grant }, Rat::Lte);
            }
        }
        let usage = bins.usage(TtiIndex(start), TtiIndex(end));
        (usage.prb_share.unwrap(), usage.prb_share_when_scheduled.unwrap())
    };
    for is_logged in [true, false] {
        for (start, end) in [(0, 500), (500, 1_000), (0, 1_000), (250, 930)] {
            assert_eq!(usage(is_logged, start, end), (1.0, 1.0), "{start} to {end}");
        }
        assert_eq!(usage(is_logged, 500, 1_500), (0.5, 1.0));
    }
}

/// TTIs before any known bandwidth are of the first one, whatever comes later.
#[test]
fn a_bandwidth_that_is_known_late() {
    let mut bins = UsageBins::new(Direction::Dl);
    for (segment, n_prb_cell) in [(0, None), (1, Some(50)), (2, Some(100))] {
        let position = Position::lte(500 * i64::from(segment));
        let position = Position { timing_segment: segment, ..position };
        let grant = Grant::new(position, Direction::Dl, 20);
        bins.push_grant(&Grant { n_prb_cell, ..grant }, Rat::Lte);
    }
    let share = bins.usage(TtiIndex(0), TtiIndex(400)).prb_share_when_scheduled;
    assert_eq!(share, Some(0.4));
}

/// The rows of a table are by TTI alone: blocks of two cells may alternate.
#[test]
fn blocks_of_an_assignment_count_once_in_any_order() {
    let mut bins = UsageBins::new(Direction::Dl);
    for tti in 0..100 {
        for (cell, tb) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let position = Position { cell, ..Position::lte(tti) };
            let grant = Grant::new(position, Direction::Dl, 25);
            bins.push_grant(&Grant { tb, n_prb_cell: Some(50), ..grant }, Rat::Lte);
        }
    }
    let usage = bins.usage(TtiIndex(0), TtiIndex(100));
    assert_eq!((usage.prb_share, usage.prb_share_when_scheduled), (Some(0.5), Some(0.5)));
    assert_eq!(usage.n_prb, 5_000);
}

/// Slots of 0.5 ms are the axis; the LTE leg has half as many TTIs.
#[test]
fn each_leg_has_its_own_ttis_and_bandwidth() {
    let usage = |n_prb_cell: Option<u16>| {
        let mut bins = UsageBins::new(Direction::Dl);
        bins.set_bandwidth((Rat::Lte, 0), 0, 50);
        for tti in 0..100 {
            let position = Position { numerology: 1, ..Position::lte(tti) };
            let grant = Grant::new(position, Direction::Dl, 80);
            bins.push_grant(&Grant { n_prb_cell, ..grant.clone() }, Rat::Nr);
            if tti % 2 == 0 {
                bins.push_other_leg(&Grant { n_prb: Some(20), ..grant }, Rat::Lte, 0);
            }
        }
        bins.usage(TtiIndex(0), TtiIndex(100))
    };
    // 8,000 of 100 slots of 100 PRBs, 1,000 of 50 TTIs of 50.
    let known = usage(Some(100));
    assert_eq!(known.prb_share, Some(9_000.0 / 12_500.0));
    assert_eq!(known.prb_share_when_scheduled, known.prb_share);
    assert_eq!((usage(None).prb_share, usage(None).scheduled_share), (None, 1.0));
}
