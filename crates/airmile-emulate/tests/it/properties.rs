//! Invariants of every run.

use std::collections::{BTreeMap, BTreeSet};

use airmile_emulate::workload::Workload;
use airmile_emulate::{
    AppConfig, CellConfig, Competing, CoreConfig, LinkConfig, MeasurementConfig, RlcConfig,
    RunTrace, Scenario, SchedulerKind, Traffic, TransportKind, UplinkConfig, WindowConfig, run,
    throughput_time_ms,
};
use airmile_model::{Direction, Grant, MacBlock, Record, RlcPdu, TruthRun, TtiState};
use proptest::prelude::*;
use proptest::sample::select;

fn traffic() -> impl Strategy<Value = Traffic> {
    let window = (20_000u32..400_000, any::<bool>())
        .prop_map(|(max_bytes, restart_after_idle)| WindowConfig { max_bytes, restart_after_idle });
    let id = || "t".to_owned();
    let size = || (0u32..500, 1u64..1_500_000);
    prop_oneof![
        (size(), window.clone()).prop_map(move |((start_ms, bytes), window)| {
            Traffic::Download { id: id(), start_ms, bytes, window }
        }),
        (size(), 100_000u64..50_000_000).prop_map(move |((start_ms, bytes), rate_bps)| {
            Traffic::Paced { id: id(), start_ms, bytes, rate_bps }
        }),
        (0u32..500, 1u32..6, 100_000u64..8_000_000, window.clone()).prop_map(
            move |(start_ms, segments, bitrate_bps, window)| Traffic::Video {
                id: id(),
                start_ms,
                segments,
                segment_ms: 500,
                bitrate_bps,
                buffer_ms: 1_000,
                window,
            }
        ),
        (size(), window).prop_map(move |((start_ms, bytes), window)| {
            Traffic::Upload { id: id(), start_ms, bytes, window }
        }),
    ]
}

fn competing() -> impl Strategy<Value = Vec<Competing>> {
    prop_oneof![
        Just(Vec::new()),
        (1u16..4).prop_map(|users| vec![Competing::FullBuffer { users }]),
        (1u16..4, 1_000u32..100_000, 1u32..500).prop_map(
            |(users, mean_file_bytes, mean_pause_ms)| vec![Competing::Sporadic {
                users,
                mean_file_bytes,
                mean_pause_ms
            }]
        ),
        (1u16..4, 1u32..4_000_000).prop_map(|(users, rate_bps)| vec![
            Competing::OnOff { users, rate_bps, mean_on_ms: 200, mean_off_ms: 300 },
            Competing::Video { users, segment_ms: 500, bitrate_bps: rate_bps },
        ]),
    ]
}

fn rlc() -> impl Strategy<Value = RlcConfig> {
    (prop::option::of(4u32..64), prop::option::of(5_000u64..100_000), 20u32..80).prop_map(
        |(poll_pdu, poll_byte, t_reordering_ms)| RlcConfig {
            poll_pdu,
            poll_byte,
            t_reordering_ms,
            ..RlcConfig::default()
        },
    )
}

/// A phone's TCP applications.
fn apps() -> impl Strategy<Value = Vec<AppConfig>> {
    let workload = prop_oneof![
        (1u64..1_500_000).prop_map(|bytes| Workload::File { bytes, count: 2, gap_ms: 100 }),
        (1u64..600_000).prop_map(|bytes| Workload::Upload { bytes, count: 1, gap_ms: 0 }),
        (200_000u64..4_000_000).prop_map(|rate_bps| Workload::Paced {
            bytes: 300_000,
            rate_bps,
            block_bytes: None
        }),
        (1u64..20_000).prop_map(|response_bytes| Workload::Interactive {
            period_ms: None,
            request_bytes: 300,
            response_bytes,
            count: 10,
            gap_ms: 50,
            think_ms: 10
        }),
    ];
    let transport = prop_oneof![Just(TransportKind::Tcp), Just(TransportKind::Quic)];
    let app = (0u32..500, transport, workload).prop_map(|(start_ms, transport, workload)| {
        AppConfig { name: "app".to_owned(), start_ms, port: 443, transport, workload }
    });
    prop::collection::vec(app, 1..3).prop_map(|mut apps| {
        for (n, app) in apps.iter_mut().enumerate() {
            app.name = format!("app{n}");
        }
        apps
    })
}

/// Makes ids unique.
fn numbered(mut traffic: Vec<Traffic>) -> Vec<Traffic> {
    for (n, entry) in traffic.iter_mut().enumerate() {
        let (Traffic::Download { id, .. }
        | Traffic::Paced { id, .. }
        | Traffic::Video { id, .. }
        | Traffic::Upload { id, .. }) = entry;
        *id = format!("{id}{n}");
    }
    traffic
}

prop_compose! {
    fn scenario()(
        seed in any::<u64>(),
        (n_prb, n_tx_antennas) in (select(vec![6u16, 15, 25, 50, 75, 100]), 1u8..=2),
        scheduler in select(vec![
            SchedulerKind::WholeTti,
            SchedulerKind::RoundRobin,
            SchedulerKind::PfFrequency,
            SchedulerKind::MaxCi,
            SchedulerKind::BlindEqual,
        ]),
        (snr_mean_db, fading_sigma_db) in (-4.0f64..26.0, 0.0f64..6.0),
        (grant_every_tti, sr_period_ms, rtt_ms) in (1u32..4, 5u32..40, 0u32..100),
        (dl_rlc, ul_rlc) in (rlc(), rlc()),
        competing in competing(),
        traffic in prop::collection::vec(traffic(), 1..3).prop_map(numbered),
        apps in prop::option::of(apps()),
    ) -> Scenario {
        Scenario {
            seed,
            duration_ms: 2_500,
            tail_ms: 200,
            first_tti: 9_000,
            cell: CellConfig { n_prb, n_tx_antennas, scheduler, ..CellConfig::default() },
            link: LinkConfig { snr_mean_db, fading_sigma_db, ..LinkConfig::default() },
            measurement: MeasurementConfig::default(),
            dl_rlc,
            ul_rlc,
            uplink: UplinkConfig {
                max_prb: n_prb.min(20),
                sr_period_ms,
                grant_every_tti,
                ..UplinkConfig::default()
            },
            core: CoreConfig { rtt_ms, ..CoreConfig::default() },
            competing,
            // Windows, or transports.
            traffic: if apps.is_some() { Vec::new() } else { traffic },
            apps: apps.unwrap_or_default(),
            ..Scenario::default()
        }
    }
}

fn grants(trace: &RunTrace, dir: Direction) -> impl Iterator<Item = &Grant> {
    trace.records.iter().filter_map(move |record| match record {
        Record::Grant(grant) if grant.dir == dir => Some(grant),
        _ => None,
    })
}

/// Truth by TTI.
fn by_tti(runs: &[TruthRun]) -> BTreeMap<i64, &TruthRun> {
    let ttis = |run: &TruthRun| run.tti.0..run.tti.0 + i64::from(run.n_tti);
    runs.iter().flat_map(|run| ttis(run).map(move |tti| (tti, run))).collect()
}

/// Downlink blocks that were received: TTI of the first transmission, MAC
/// block, RLC PDUs.
fn blocks(trace: &RunTrace) -> Vec<(i64, &MacBlock, Vec<&RlcPdu>)> {
    let mut first = BTreeMap::new();
    let mut blocks: Vec<(i64, &MacBlock, Vec<&RlcPdu>)> = Vec::new();
    for record in &trace.records {
        match record {
            Record::Grant(grant) if grant.dir == Direction::Dl && grant.retx == Some(false) => {
                first.insert(grant.harq_id.unwrap(), grant.position.tti.0);
            }
            Record::MacBlock(block) if block.dir == Direction::Dl => {
                blocks.push((first[&block.harq_id], block, Vec::new()));
            }
            Record::Rlc(pdu) if pdu.dir == Direction::Dl => {
                blocks.last_mut().unwrap().2.push(pdu);
            }
            _ => {}
        }
    }
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_are_conserved(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        for t in &trace.totals {
            prop_assert_eq!(t.arrived_bytes, t.delivered_bytes + t.unsent_bytes + t.in_transit_bytes + t.dropped_bytes);
        }
        // All data that was due and had enough time has arrived.
        let delivered = trace.totals[0].delivered_bytes + trace.totals[1].delivered_bytes;
        let ended: u64 = trace.transfers.iter().filter_map(|t| t.transfer.bytes).sum();
        prop_assert!(delivered >= ended);
    }

    #[test]
    fn states_add_up_to_the_run(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        for truth in [&trace.truth, &trace.ul_truth] {
            let mut next = trace.first_tti;
            for run in truth {
                prop_assert_eq!(run.tti, next);
                prop_assert_eq!(run.state == TtiState::Underflow, run.queue_bytes == 0);
                next = next.plus(run.n_tti.into());
            }
            prop_assert_eq!(next.since(trace.first_tti), i64::from(trace.n_tti));
        }
        let cell: u32 = trace.cell_use.iter().map(|run| run.n_tti).sum();
        prop_assert_eq!(cell, trace.n_tti);
    }

    #[test]
    fn throughput_time_is_the_bursts(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        // Walks the states: a burst is [first departure, LAST_ACTIVE).
        let (mut ms, mut burst) = (0, None);
        let end = trace.first_tti.plus(trace.n_tti.into());
        for (tti, run) in by_tti(&trace.truth) {
            match run.state {
                TtiState::Active => { burst.get_or_insert(tti); }
                TtiState::LastActive => ms += burst.take().map_or(0, |start| tti - start),
                TtiState::Contention => {
                    prop_assert_eq!(run.before_first_tx, Some(burst.is_none()));
                }
                TtiState::Underflow => prop_assert_eq!(burst, None),
            }
        }
        ms += burst.map_or(0, |start| end.0 - start);
        prop_assert_eq!(throughput_time_ms(&trace.truth, trace.first_tti, end), ms as f64);
        for t in &trace.transfers {
            prop_assert!((0.0..=1.0).contains(&t.link_demand()));
        }
    }

    #[test]
    fn no_tti_has_more_prbs_than_the_cell(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        let one_user = scenario.cell.scheduler == SchedulerKind::WholeTti;
        for used in &trace.cell_use {
            prop_assert!(used.n_prb <= scenario.cell.n_prb);
            prop_assert!(!one_user || used.users <= 1);
        }
        for dir in [Direction::Dl, Direction::Ul] {
            let ttis: Vec<_> = grants(&trace, dir).map(|grant| grant.position.tti).collect();
            prop_assert!(ttis.is_sorted_by(|a, b| a < b), "one block a TTI");
        }
    }

    /// TS 36.322, 5.2.2.1, with the counters at infinity: exactly the blocks
    /// that empty the queue poll.
    #[test]
    fn without_counters_a_poll_is_the_end_of_a_burst(mut scenario in scenario()) {
        scenario.dl_rlc.poll_pdu = None;
        scenario.dl_rlc.poll_byte = None;
        scenario.dl_rlc.t_poll_retransmit_ms = 100_000;
        // A block that HARQ gives up holds the window's start back, so that polls do not
        // keep it from stalling.
        scenario.cell.dl_harq_transmissions = 8;
        let trace = run(&scenario).unwrap();
        let truth = by_tti(&trace.truth);
        // 512 PDUs without an acknowledgement stall the window, which polls too. The answer to the last poll may
        // still be on its way.
        let (mut sns_without_poll, mut before_poll) = (0, 0);
        for (first_tti, _, pdus) in blocks(&trace) {
            sns_without_poll += pdus.len();
            let polls = pdus.iter().any(|pdu| pdu.poll == Some(true));
            let emptied = truth[&first_tti].state == TtiState::LastActive;
            let stalled = polls && before_poll + sns_without_poll >= 400;
            let sns: Vec<_> = pdus.iter().map(|pdu| (pdu.sn, pdu.poll, pdu.resegment)).collect();
            prop_assert!(polls == emptied || stalled, "TTI {}: {:?}, {:?}", first_tti, truth[&first_tti].state, sns);
            if polls {
                (before_poll, sns_without_poll) = (sns_without_poll, 0);
            }
        }
    }

    #[test]
    fn padding_only_when_the_queue_was_emptied(mut scenario in scenario()) {
        // A stalled window would also pad: polls keep it open.
        scenario.dl_rlc.poll_pdu = Some(32);
        let trace = run(&scenario).unwrap();
        let truth = by_tti(&trace.truth);
        // Too little for a subheader, a header with segment offset and length indicators,
        // and a byte.
        const TOO_LITTLE_BYTES: u32 = 16;
        for (first_tti, block, _) in blocks(&trace) {
            if block.padding_bytes > TOO_LITTLE_BYTES {
                let state = truth[&first_tti].state;
                let empty = matches!(state, TtiState::LastActive | TtiState::Underflow);
                prop_assert!(empty, "{:?} in TTI {}", state, first_tti);
            }
        }
    }

    #[test]
    fn retransmissions_follow_their_block_by_8_ttis_or_more(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        for dir in [Direction::Dl, Direction::Ul] {
            let mut last: BTreeMap<u8, &Grant> = BTreeMap::new();
            for grant in grants(&trace, dir) {
                if let Some(before) = last.insert(grant.harq_id.unwrap(), grant) {
                    let apart = grant.position.tti.since(before.position.tti);
                    prop_assert!(apart >= 8);
                    prop_assert_eq!(grant.ndi == before.ndi, grant.retx == Some(true));
                    if grant.retx == Some(true) {
                        prop_assert_eq!(grant.tbs_bytes, before.tbs_bytes);
                        prop_assert!(dir == Direction::Dl || apart == 8);
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace(scenario in scenario()) {
        let trace = run(&scenario).unwrap();
        prop_assert_eq!(&trace, &run(&scenario).unwrap());
        let times: Vec<_> = trace.records.iter().filter_map(Record::at).map(|at| at.ns).collect();
        prop_assert!(times.is_sorted());
        prop_assert_eq!(times.len(), trace.records.len());
    }
}

#[test]
fn the_queue_recovers_what_harq_gives_up() {
    // Below the requirement of the lowest MCS at times: RLC has to retransmit.
    let scenario = Scenario {
        seed: 5,
        duration_ms: 60_000,
        tail_ms: 500,
        first_tti: 0,
        cell: CellConfig::default(),
        link: LinkConfig { snr_mean_db: -6.0, fading_sigma_db: 6.0, ..LinkConfig::default() },
        measurement: MeasurementConfig::default(),
        dl_rlc: RlcConfig::default(),
        ul_rlc: RlcConfig::default(),
        uplink: UplinkConfig::default(),
        core: CoreConfig::default(),
        competing: Vec::new(),
        traffic: vec![Traffic::Download {
            id: "weak".to_owned(),
            start_ms: 0,
            bytes: 1_000_000,
            window: WindowConfig::default(),
        }],
        ..Scenario::default()
    };
    let trace = run(&scenario).unwrap();
    assert_eq!(trace.transfers.len(), 1, "it ends");
    let sns: Vec<_> = blocks(&trace).iter().flat_map(|(.., pdus)| pdus.clone()).cloned().collect();
    let resegmented = sns.iter().filter(|pdu| pdu.resegment).count();
    let statuses = sns.iter().filter(|pdu| pdu.status).count();
    assert!(resegmented > 0 && statuses > 0, "{resegmented} segments, {statuses} STATUS PDUs");
}

/// A case found by `bytes_are_conserved`: at the end of the run the phone holds PDUs that
/// it has acknowledged above a missing one.
#[test]
fn what_waits_for_a_missing_pdu_is_in_transit() {
    let scenario = Scenario {
        seed: 11_455_078_154_095_168_496,
        duration_ms: 2_500,
        tail_ms: 200,
        first_tti: 9_000,
        cell: CellConfig {
            n_prb: 75,
            n_tx_antennas: 1,
            scheduler: SchedulerKind::RoundRobin,
            ..CellConfig::default()
        },
        link: LinkConfig {
            snr_mean_db: -2.462_439_824_151_520_6,
            fading_sigma_db: 4.495_167_117_512_182,
            ..LinkConfig::default()
        },
        measurement: MeasurementConfig::default(),
        dl_rlc: RlcConfig {
            poll_pdu: Some(4),
            poll_byte: None,
            t_reordering_ms: 50,
            ..RlcConfig::default()
        },
        ul_rlc: RlcConfig {
            poll_pdu: None,
            poll_byte: None,
            t_reordering_ms: 20,
            ..RlcConfig::default()
        },
        uplink: UplinkConfig { sr_period_ms: 33, ..UplinkConfig::default() },
        core: CoreConfig { rtt_ms: 41, ..CoreConfig::default() },
        competing: Vec::new(),
        traffic: vec![Traffic::Download {
            id: "t".to_owned(),
            start_ms: 175,
            bytes: 939_486,
            window: WindowConfig { max_bytes: 36_200, restart_after_idle: false },
        }],
        ..Scenario::default()
    };
    let trace = run(&scenario).unwrap();
    for t in &trace.totals {
        assert_eq!(
            t.arrived_bytes,
            t.delivered_bytes + t.unsent_bytes + t.in_transit_bytes + t.dropped_bytes
        );
    }
}

#[test]
fn scenarios_are_data() {
    let text = r#"{
        "seed": 1, "duration_ms": 1000,
        "cell": {"n_prb": 100, "scheduler": "round_robin"},
        "competing": [
            {"kind": "sporadic", "users": 2, "mean_file_bytes": 1000, "mean_pause_ms": 50}
        ],
        "traffic": [{"kind": "download", "id": "file", "start_ms": 0, "bytes": 10000}]
    }"#;
    let scenario: Scenario = serde_json::from_str(text).unwrap();
    let trace = run(&scenario).unwrap();
    assert_eq!(trace.transfers[0].transfer.bytes, Some(10_000));
    let names: BTreeSet<_> = trace.records.iter().map(Record::name).collect();
    assert!(names.contains("grant") && names.contains("rlc"));
    let broken = Scenario { cell: CellConfig { n_prb: 51, ..scenario.cell }, ..scenario };
    assert_eq!(
        run(&broken).unwrap_err().to_string(),
        "cell.n_prb: must be 6, 15, 25, 50, 75 or 100"
    );
}
