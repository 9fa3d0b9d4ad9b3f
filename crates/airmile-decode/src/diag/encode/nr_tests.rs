//! A log of NR's messages returns their blocks.

use airmile_emulate::{RunTrace, named, run};
use airmile_model::nr_tables::{NrMcsTable, nr_mcs, nr_tbs_bits};
use airmile_model::{
    CellInfo, Direction, Grant, GrantSources, Position, Record, RntiType, Stamp, TtiIndex,
};
use proptest::prelude::*;

use super::{Options, write_nr};
use crate::diag::LogReader;

fn trace(name: &str) -> RunTrace {
    run(&named(name).unwrap().scenario()).unwrap()
}

fn read_back(lte: &[Record], nr: &[Record]) -> Vec<Record> {
    let log = write_nr(lte, nr, &Options::default()).unwrap();
    let mut reader = LogReader::new();
    let mut out = Vec::new();
    reader.push(&log, &mut |tagged| out.push(tagged.record));
    reader.finish(&mut |tagged| out.push(tagged.record));
    assert!(!reader.stats().problems.damaged);
    out
}

/// The fields of a block in a log: 0xB887 has no padding, 0xB872 only sizes, process and
/// padding.
fn comparable(grant: &Grant) -> Grant {
    let uplink = grant.dir == Direction::Ul;
    Grant {
        at: None,
        n_prb_cell: None,
        data_bytes: None,
        sources: GrantSources::default(),
        n_prb: grant.n_prb.filter(|_| !uplink),
        layers: grant.layers.filter(|_| !uplink),
        mcs: grant.mcs.filter(|_| !uplink),
        modulation: grant.modulation.filter(|_| !uplink),
        ndi: grant.ndi.filter(|_| !uplink),
        rv: grant.rv.filter(|_| !uplink),
        crc_ok: grant.crc_ok.filter(|_| !uplink),
        padding_bytes: grant.padding_bytes.filter(|_| uplink),
        ..grant.clone()
    }
}

fn blocks(records: &[Record], dir: Direction) -> Vec<Grant> {
    let of = |record: &Record| match record {
        Record::Grant(grant) if grant.dir == dir => Some(comparable(grant)),
        _ => None,
    };
    // The MAC layer builds a block of the uplink once.
    let once = |grant: &Grant| dir == Direction::Dl || grant.retx == Some(false);
    let mut out: Vec<Grant> = records.iter().filter_map(of).filter(once).collect();
    out.sort_by_key(|grant| (grant.position.tti, grant.position.cell));
    out
}

fn assert_same(name: &str, written: &[Record], read: &[Record]) {
    for dir in [Direction::Dl, Direction::Ul] {
        let (written, read) = (blocks(written, dir), blocks(read, dir));
        assert!(!written.is_empty(), "{name} {dir:?}");
        let difference = written.iter().zip(&read).find(|(a, b)| a != b);
        assert_eq!(difference, None, "{name} {dir:?}");
        assert_eq!(written.len(), read.len(), "{name} {dir:?}");
    }
}

#[test]
fn emulated_nr_cells_come_back() {
    for name in ["nr-tdd-video", "nr-two-carriers"] {
        let written = trace(name).records;
        let read = read_back(&[], &written);
        assert_same(name, &written, &read);
        let reports = |records: &[Record]| -> Vec<(TtiIndex, u8, Option<u32>)> {
            let of = |record: &Record| match record {
                Record::Bsr(r) => Some((r.position.tti, r.index, r.upper_bound_bytes)),
                _ => None,
            };
            records.iter().filter_map(of).collect()
        };
        assert_eq!(reports(&written), reports(&read), "{name}");
    }
}

#[test]
fn a_split_bearers_log_holds_both_legs() {
    let records = trace("nsa-split-bearer").records;
    let is_nr = |record: &Record| match record {
        Record::Grant(r) => r.position.cell > 0,
        Record::Rlc(r) => r.position.cell > 0,
        Record::MacBlock(r) => r.position.cell > 0,
        Record::Bsr(r) => r.position.cell > 0,
        Record::CellInfo(r) => r.cell > 0,
        _ => false,
    };
    let (nr, lte): (Vec<Record>, Vec<Record>) = records.into_iter().partition(is_nr);
    let read = read_back(&lte, &nr);
    let of_nr = |grant: &Grant| grant.position.numerology == 1;
    // The reader counts carriers of NR by themselves.
    let of_first_carrier = |grant: Grant| {
        let position = Position { cell: 0, ..grant.position };
        Grant { position, ..grant }
    };
    let written: Vec<Grant> =
        blocks(&nr, Direction::Dl).into_iter().map(of_first_carrier).collect();
    let back: Vec<Grant> = blocks(&read, Direction::Dl).into_iter().filter(of_nr).collect();
    assert_eq!(written.len(), back.len());
    assert_eq!(written.iter().zip(&back).find(|(a, b)| a != b), None);
    assert!(blocks(&read, Direction::Dl).iter().any(|grant| grant.position.numerology == 0));
}

const EPOCH_NS: i64 = 1_767_603_600_000_000_000;

/// New blocks of one carrier, by gap to the slot before, MCS, PRBs, process, padding.
fn records(numerology: u8, blocks: &[(u8, u8, u16, u8, bool)]) -> Vec<Record> {
    let cell = CellInfo {
        pci: Some(502),
        earfcn: Some(634_080),
        n_prb_dl: Some(273),
        n_prb_ul: Some(273),
        ..CellInfo::new(Stamp::modem(EPOCH_NS), 0, 0, "test")
    };
    let mut out = vec![cell.into()];
    let mut tti = 4_321;
    for &(gap, mcs, n_prb, harq_id, crc_ok) in blocks {
        tti += i64::from(gap) + 1;
        let scheme = nr_mcs(NrMcsTable::Qam256, mcs).unwrap();
        let tbs_bytes = nr_tbs_bits(scheme, 2, n_prb, 132).map(|bits| bits / 8);
        let position = Position { timing_segment: 0, cell: 0, numerology, tti: TtiIndex(tti) };
        let grant = Grant {
            at: Some(Stamp::modem(EPOCH_NS + ((tti * 1_000_000) >> numerology))),
            layers: Some(2),
            tbs_bytes,
            mcs: Some(mcs),
            modulation: Some(scheme.modulation),
            harq_id: Some(harq_id),
            ndi: Some(mcs % 2 == 0),
            rv: Some(0),
            retx: Some(false),
            crc_ok: Some(crc_ok),
            rnti: RntiType::C,
            ..Grant::new(position, Direction::Dl, n_prb)
        };
        let uplink = Grant {
            dir: Direction::Ul,
            padding_bytes: tbs_bytes.map(|bytes| bytes / 3),
            crc_ok: None,
            ..grant.clone()
        };
        out.push(uplink.into());
        out.push(grant.into());
    }
    out
}

proptest! {
    #[test]
    fn blocks_of_any_numerology_come_back(
        numerology in 0_u8..4,
        blocks in prop::collection::vec(
            (0_u8..60, 0_u8..28, 1_u16..274, 0_u8..16, any::<bool>()), 1..80,
        ),
    ) {
        let written = records(numerology, &blocks);
        assert_same("any", &written, &read_back(&[], &written));
    }
}
