//! NR cells, two carriers, and a split bearer over LTE and NR.

use std::collections::BTreeMap;

use airmile_emulate::workload::Workload;
use airmile_emulate::{
    AppConfig, CellConfig, NrConfig, RunOutcome, RunSink, Scenario, TransportKind, UplinkConfig,
    named, run_into,
};
use airmile_model::nr_tables::nr_size_is_possible;
use airmile_model::{Direction, Grant, Record, TruthRun, TtiState};

#[derive(Debug, Default)]
struct Records(Vec<Record>);

impl RunSink for Records {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

fn run(scenario: &Scenario) -> (RunOutcome, Vec<Record>) {
    let mut records = Records::default();
    let outcome = run_into(scenario, &mut records).unwrap();
    (outcome, records.0)
}

fn grants(records: &[Record], dir: Direction) -> Vec<&Grant> {
    let of_dir = |record: &'_ Record| matches!(record, Record::Grant(grant) if grant.dir == dir);
    let grants = records.iter().filter(|record| of_dir(record));
    grants
        .filter_map(|record| match record {
            Record::Grant(grant) => Some(grant),
            _ => None,
        })
        .collect()
}

/// A file through an NR cell.
fn file(numerology: u8, tdd: Option<&str>, bytes: u64) -> Scenario {
    Scenario {
        duration_ms: 4_000,
        cell: CellConfig {
            n_prb: 66,
            numerology,
            tdd: tdd.map(str::to_owned),
            nr: Some(NrConfig::default()),
            ..CellConfig::default()
        },
        uplink: UplinkConfig { max_prb: 30, ..UplinkConfig::default() },
        apps: vec![AppConfig {
            name: "file".to_owned(),
            start_ms: 0,
            port: 443,
            transport: TransportKind::Tcp,
            workload: Workload::File { bytes, count: 1, gap_ms: 0 },
        }],
        ..Scenario::default()
    }
}

fn conserves(outcome: &RunOutcome) {
    for totals in &outcome.totals[0] {
        let gone = totals.delivered_bytes
            + totals.unsent_bytes
            + totals.in_transit_bytes
            + totals.dropped_bytes;
        assert_eq!(totals.arrived_bytes, gone, "{totals:?}");
    }
}

#[test]
fn blocks_have_sizes_of_ts_38_214_at_15_30_and_120_khz() {
    for (numerology, tdd) in [(0, None), (1, Some("DDDSU")), (3, Some("DDDSU"))] {
        let (outcome, records) = run(&file(numerology, tdd, 2_000_000));
        assert_eq!(outcome.transfers.len(), 1, "{numerology}");
        assert_eq!(outcome.slot_ns, 1_000_000 >> numerology);
        conserves(&outcome);
        for dir in [Direction::Dl, Direction::Ul] {
            let grants = grants(&records, dir);
            assert!(grants.len() > 20, "{numerology} {dir:?}: {}", grants.len());
            for grant in &grants {
                assert_eq!((grant.position.numerology, grant.n_prb_cell), (numerology, Some(66)));
                assert!(grant.harq_id.unwrap() < 16);
                if grant.retx == Some(true) {
                    continue;
                }
                let possible = nr_size_is_possible(
                    grant.tbs_bytes.unwrap(),
                    grant.mcs.unwrap(),
                    grant.modulation.unwrap(),
                    grant.layers.unwrap(),
                    grant.n_prb.unwrap(),
                );
                assert!(possible, "{numerology}: {grant:?}");
            }
        }
        let names = |name: &str| records.iter().filter(|r| r.name() == name).count();
        // 0xB066 and 0xB193 are LTE's.
        assert_eq!((names("buffer_status"), names("measurement")), (0, 0));
        assert!(names("mac_block") > 0 && names("bsr") > 0);
        let polls = records.iter().filter(|r| matches!(r, Record::Rlc(p) if p.poll == Some(true)));
        assert!(polls.count() > 0);
    }
}

#[test]
fn a_block_is_its_headers_its_sdus_and_its_padding() {
    let (_, records) = run(&file(1, Some("DDDSU"), 500_000));
    for record in &records {
        let Record::MacBlock(block) = record else { continue };
        let mut bytes = block.padding_bytes;
        for header in block.lcids.split_whitespace() {
            bytes += match header.split_once(':') {
                // R, F, LCID; L of 8 or 16 bits (TS 38.321, 6.1.2).
                Some((_, sdu)) => {
                    let sdu: u32 = sdu.parse().unwrap();
                    sdu + if sdu < 256 { 2 } else { 3 }
                }
                None if header == "63" => 1,
                None => 2,
            };
        }
        assert_eq!(bytes, block.tbs_bytes, "{block:?}");
    }
}

#[test]
fn tdd_slots_carry_one_direction() {
    let (_, records) = run(&named("nr-tdd-video").unwrap().scenario());
    for (dir, slots) in [(Direction::Dl, &[0, 1, 2][..]), (Direction::Ul, &[4][..])] {
        let grants = grants(&records, dir);
        assert!(grants.len() > 100);
        for grant in grants {
            let slot = grant.position.tti.0.rem_euclid(5);
            assert!(slots.contains(&slot), "{dir:?} {slot}");
        }
    }
}

#[test]
fn the_video_leaves_pauses_in_the_queue() {
    let (outcome, _) = run(&named("nr-tdd-video").unwrap().scenario());
    let demand: Vec<f64> = outcome.transfers.iter().map(|t| t.link_demand()).collect();
    println!("{demand:.2?}");
    assert!(outcome.transfers.len() >= 8, "{}", outcome.transfers.len());
    assert!(demand.iter().all(|demand| (0.0..=1.0).contains(demand)));
}

#[test]
fn two_carriers_serve_at_once() {
    let (outcome, records) = run(&named("nr-two-carriers").unwrap().scenario());
    assert_eq!(outcome.transfers.len(), 1);
    conserves(&outcome);
    let mut cells: BTreeMap<i64, u8> = BTreeMap::new();
    for grant in grants(&records, Direction::Dl) {
        let width = if grant.position.cell == 0 { 106 } else { 51 };
        assert_eq!(grant.n_prb_cell, Some(width));
        *cells.entry(grant.position.tti.0).or_default() |= 1 << grant.position.cell;
    }
    let of = |mask: u8| cells.values().filter(|&&cells| cells == mask).count();
    println!("primary alone {}, secondary alone {}, both {}", of(1), of(2), of(3));
    assert!(of(3) > 500, "{}", of(3));
}

/// Whether a queue holds data in a TTI.
fn holds(truth: &[TruthRun], tti: i64) -> bool {
    let at = truth.partition_point(|run| run.tti.0 + i64::from(run.n_tti) <= tti);
    truth.get(at).is_some_and(|run| run.tti.0 <= tti && run.state != TtiState::Underflow)
}

#[test]
fn a_split_bearer_goes_by_both_legs() {
    let (outcome, records) = run(&named("nsa-split-bearer").unwrap().scenario());
    assert_eq!((outcome.transfers.len(), outcome.slot_ns), (1, 500_000));
    assert_eq!(outcome.transfers[0].transfer.bytes, Some(40_000_000));
    conserves(&outcome);
    let mut bytes = [0_u64; 2];
    for grant in grants(&records, Direction::Dl) {
        // LTE is cell 0 in TTIs of 1 ms, NR cell 1 in slots.
        let position = grant.position;
        assert_eq!(position.numerology, position.cell);
        let start_ns = outcome.epoch_ns + ((position.tti.0 * 1_000_000) >> position.numerology);
        assert_eq!(grant.at.map(|at| at.ns), Some(start_ns));
        bytes[usize::from(position.cell)] += u64::from(grant.data_bytes.unwrap_or(0));
    }
    println!("data bytes by leg: {bytes:?}");
    assert!(bytes.iter().all(|&leg| leg > 4_000_000), "{bytes:?}");
    // RLC of each leg counts separately: NR's numbers have 18 bits, LTE's 10.
    let last_sn = |cell: u8| {
        let sns = records.iter().filter_map(|record| match record {
            Record::Rlc(pdu) if pdu.position.cell == cell => pdu.sn,
            _ => None,
        });
        sns.max().unwrap()
    };
    assert!(last_sn(0) < 1 << 10 && last_sn(1) > 1 << 10);
    // The bearer holds data whenever a leg does.
    let legs = &outcome.truth.legs;
    assert_eq!(
        legs.iter().map(|leg| (leg.cell, leg.numerology)).collect::<Vec<_>>(),
        [(0, 0), (1, 1)]
    );
    let (mut lte_alone, mut nr_alone) = (0, 0);
    for slot in outcome.first_tti.0..outcome.first_tti.0 + i64::from(outcome.n_tti) {
        let (lte, nr) = (holds(&legs[0].dl, slot >> 1), holds(&legs[1].dl, slot));
        lte_alone += u32::from(lte && !nr);
        nr_alone += u32::from(nr && !lte);
        // Data that arrives for a leg within a slot counts from the slot on.
        if slot % 2 == 0 && nr {
            assert!(holds(&outcome.truth.dl, slot), "{slot}");
        }
    }
    println!("slots with data in one leg alone: LTE {lte_alone}, NR {nr_alone}");
    assert!(lte_alone > 0 && nr_alone > 0, "{lte_alone} {nr_alone}");
}

#[test]
fn a_split_bearer_is_not_for_everything() {
    let split = Some(airmile_emulate::SplitConfig::default());
    let check = |change: &dyn Fn(&mut Scenario), field: &str| {
        let mut scenario = Scenario { split: split.clone(), ..Scenario::default() };
        change(&mut scenario);
        let error = scenario.validate().unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    };
    check(&|s| s.cell.numerology = 1, "cell:");
    check(&|s| s.rrc = Some(airmile_emulate::RrcConfig::default()), "rrc:");
    check(&|s| s.dl_rlc.unacknowledged = true, "dl_rlc");
    check(&|s| s.split.as_mut().unwrap().cell.nr = None, "split.cell.n");
}
