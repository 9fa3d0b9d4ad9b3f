use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::scenario::{
    CellConfig, Competing, DrxConfig, RrcConfig, SchedulerKind, SecondaryConfig,
};
use crate::user::UserId;

/// Whether phones without traffic monitor the PDCCH at TTI 300 of a run with full buffers
/// on a secondary carrier.
fn listening(full_buffers: u16) -> Vec<bool> {
    let competing = vec![Competing::FullBuffer { users: full_buffers }];
    let secondary = Some(SecondaryConfig { competing, ..SecondaryConfig::default() });
    let drx = Some(DrxConfig { inactivity_ms: 10, ..DrxConfig::default() });
    let scenario = Scenario {
        first_tti: 0,
        cell: CellConfig { secondary, ..CellConfig::default() },
        rrc: Some(RrcConfig { starts_idle: false, drx, ..RrcConfig::default() }),
        ..Scenario::default()
    };
    let links = ["a", "b"].map(|name| (name.to_owned(), scenario.link.clone()));
    let mut cell = Cell::with_users(&scenario, &links).unwrap();
    (0..300).for_each(|_| cell.step());
    cell.bearers.iter().map(|bearer| bearer.rrc.monitors_pdcch(cell.tti)).collect()
}

#[test]
fn users_of_another_carrier_wake_no_phone() {
    assert_eq!(listening(0), [false; 3]);
    assert_eq!(listening(3), [false; 3]);
}

/// Current channels of the measured phone: downlink of each carrier, uplink, and the
/// resource block groups of the primary carrier, in dB.
fn phone_channels(cell: &Cell) -> Vec<f64> {
    let mut all: Vec<f64> =
        cell.carriers.iter().map(|carrier| carrier.fade_db(UserId::MEASURED)).collect();
    all.push(cell.bearers[0].uplink.fade_db());
    all.extend((0..17).map(|group| cell.carriers[0].offset_db(0, group)));
    all
}

/// Simulates a TTI with packets in both directions for all users.
fn step_with_packets(cell: &mut Cell, tti: i64, every: i64) {
    if tti % every == 0 {
        for user in 0..cell.users() {
            for dir in [Direction::Dl, Direction::Ul] {
                let id = (tti as u64) << 8 | (user as u64) << 1 | dir as u64;
                cell.push(UserId(user), dir, Sdu { id, bytes: 1_400 });
            }
        }
    }
    cell.step();
    while cell.poll_record().is_some() {}
    while cell.poll_delivery().is_some() {}
}

fn crowd() -> impl Strategy<Value = Vec<Competing>> {
    let one = prop_oneof![
        (1u16..4).prop_map(|users| Competing::FullBuffer { users }),
        (1u16..4).prop_map(|users| Competing::Sporadic {
            users,
            mean_file_bytes: 30_000,
            mean_pause_ms: 40
        }),
        (1u16..4).prop_map(|users| Competing::OnOff {
            users,
            rate_bps: 3_000_000,
            mean_on_ms: 50,
            mean_off_ms: 50
        }),
    ];
    prop::collection::vec(one, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Without its competitors a phone has the same channel in each TTI, although it is
    /// served in different ones; the same holds for a remaining competitor.
    #[test]
    fn who_else_is_there_changes_no_channel(
        seed in any::<u64>(),
        scheduler in select(vec![
            SchedulerKind::WholeTti, SchedulerKind::RoundRobin, SchedulerKind::PfFrequency,
            SchedulerKind::MaxCi,
        ]),
        (competing, on_secondary) in (crowd(), crowd()),
        names in prop::collection::vec("[a-d]{1,2}", 0..4),
        (every, starts_idle) in (1i64..40, any::<bool>()),
    ) {
        let secondary = SecondaryConfig { competing: on_secondary, ..SecondaryConfig::default() };
        let with = Scenario {
            seed,
            first_tti: 0,
            cell: CellConfig { scheduler, secondary: Some(secondary), ..CellConfig::default() },
            rrc: Some(RrcConfig { starts_idle, tail_ms: 60, ..RrcConfig::default() }),
            competing,
            ..Scenario::default()
        };
        let mut without = with.clone();
        without.competing.clear();
        if let Some(secondary) = &mut without.cell.secondary {
            secondary.competing.clear();
        }
        let users: Vec<(String, LinkConfig)> =
            names.into_iter().map(|name| (name, with.link.clone())).collect();
        // Only the last of them remains.
        let stays: Vec<_> = users.last().cloned().into_iter().collect();
        let mut full = Cell::with_users(&with, &users).unwrap();
        let mut empty = Cell::with_users(&without, &stays).unwrap();
        for tti in 0..600 {
            step_with_packets(&mut full, tti, every);
            step_with_packets(&mut empty, tti, every);
            prop_assert_eq!(phone_channels(&full), phone_channels(&empty), "TTI {}", tti);
            if !stays.is_empty() {
                let of = |cell: &Cell, user: usize| {
                    (cell.carriers[0].fade_db(UserId(user)), cell.bearers[user].uplink.fade_db())
                };
                prop_assert_eq!(of(&full, users.len()), of(&empty, 1), "TTI {}", tti);
            }
        }
    }

    /// PRB pairs are exclusive: in both directions and on each carrier all users together
    /// have no more than it offers, and the sums match the cell's use.
    #[test]
    fn shares_of_all_users_add_up(
        seed in any::<u64>(),
        scheduler in select(vec![
            SchedulerKind::WholeTti, SchedulerKind::RoundRobin, SchedulerKind::PfFrequency,
            SchedulerKind::MaxCi, SchedulerKind::BlindEqual,
        ]),
        (n_prb, tdd) in (select(vec![6u16, 25, 50]), select(vec![None, Some("DSUUDDSUUD")])),
        (competing, on_secondary) in (crowd(), crowd()),
        (others, every, max_prb) in (0usize..6, 1i64..20, 4u16..50),
        ul_snr_mean_db in -4.0f64..20.0,
    ) {
        let mut scenario = Scenario { seed, first_tti: 0, competing, ..Scenario::default() };
        let secondary = SecondaryConfig { competing: on_secondary, ..SecondaryConfig::default() };
        scenario.cell.scheduler = scheduler;
        scenario.cell.n_prb = n_prb;
        scenario.cell.secondary = Some(secondary.clone());
        scenario.cell.tdd = tdd.map(str::to_owned);
        scenario.uplink.max_prb = max_prb.min(n_prb);
        scenario.link.ul_snr_mean_db = ul_snr_mean_db;
        let others: Vec<_> =
            (0..others).map(|n| (n.to_string(), scenario.link.clone())).collect();
        let mut cell = Cell::with_users(&scenario, &others).unwrap();
        for tti in 0..800 {
            step_with_packets(&mut cell, tti, every);
        }
        let truth = cell.into_truth();
        let mut sums = std::collections::BTreeMap::<(i64, u8, u8), u16>::new();
        for run in &truth.allocated {
            for tti in run.tti.0..run.tti.0 + i64::from(run.n_tti) {
                *sums.entry((tti, run.dir as u8, run.carrier)).or_default() += run.n_prb;
            }
        }
        let (dl, ul) = (Direction::Dl as u8, Direction::Ul as u8);
        let uplinks = sums.iter().filter(|((_, dir, _), _)| *dir == ul);
        for ((tti, ..), sum) in uplinks {
            prop_assert!(*sum <= n_prb, "uplink, TTI {}: {} of {}", tti, sum, n_prb);
        }
        let sizes = [(&truth.cell_use, n_prb), (&truth.secondary_use, secondary.n_prb)];
        for (carrier, (runs, size)) in sizes.into_iter().enumerate() {
            for run in runs {
                prop_assert!(run.n_prb <= size);
                for tti in run.tti.0..run.tti.0 + i64::from(run.n_tti) {
                    let sum = sums.get(&(tti, dl, carrier as u8)).copied().unwrap_or(0);
                    prop_assert_eq!(sum, run.n_prb, "carrier {}, TTI {}", carrier, tti);
                }
            }
        }
        prop_assert!(sums.keys().any(|(_, dir, _)| *dir == ul), "a user has sent");
    }

    /// A block on all PRB pairs has the capacity that the truth reports; with wideband
    /// scheduling no block is larger.
    #[test]
    fn a_block_on_the_whole_carrier_is_its_capacity(
        seed in any::<u64>(),
        scheduler in select(vec![SchedulerKind::WholeTti, SchedulerKind::PfFrequency]),
        (snr_mean_db, numerology) in (0.0f64..24.0, 0u8..2),
        competing in crowd(),
    ) {
        let mut scenario = Scenario { seed, first_tti: 0, competing, ..Scenario::default() };
        scenario.link.snr_mean_db = snr_mean_db;
        scenario.cell.numerology = numerology;
        scenario.cell.scheduler = scheduler;
        let by_group = scheduler == SchedulerKind::PfFrequency;
        let mut cell = Cell::new(&scenario).unwrap();
        let mut grants = Vec::new();
        for tti in 0..600 {
            let bytes = 1_400;
            (0..4).for_each(|n| _ = cell.push(UserId::MEASURED, Direction::Dl, Sdu { id: 4 * tti + n, bytes }));
            cell.step();
            grants.extend(std::iter::from_fn(|| cell.poll_record()).filter_map(|record| {
                match record {
                    Record::Grant(g) if g.dir == Direction::Dl && g.retx == Some(false) => Some(g),
                    _ => None,
                }
            }));
            while cell.poll_delivery().is_some() {}
        }
        let truth = cell.into_truth();
        prop_assert_eq!(truth.capacity.iter().map(|run| run.n_tti).sum::<u32>(), 2 * 600);
        let mut whole = 0;
        for grant in grants {
            let tti = grant.position.tti;
            let at = |run: &&Capacity| {
                let since = tti.since(run.tti);
                run.dir == Direction::Dl && (0..i64::from(run.n_tti)).contains(&since)
            };
            let capacity = truth.capacity.iter().find(at).map(|run| run.bytes);
            prop_assert!(by_group || grant.tbs_bytes <= capacity, "{:?} {:?}", grant, capacity);
            if grant.n_prb == Some(scenario.cell.n_prb) {
                whole += 1;
                prop_assert_eq!(grant.tbs_bytes, capacity);
            }
        }
        prop_assert!(by_group || whole > 20, "{} blocks on the whole carrier", whole);
    }
}
