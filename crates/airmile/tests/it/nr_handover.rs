//! Transfers of an NR log with a handover, on one frequency and to another.

use airmile::model::{CellInfo, Direction, Record, Stamp};
use airmile::{Inputs, Progress, RadioOptions, radio};
use airmile_decode::diag::encode::{Options, write_nr};

/// A pause in ms between two transfers.
const PAUSE_NS: i64 = 700_000_000;

/// The NR-ARFCN of the first cell.
const ARFCN: u32 = 634_080;

/// The emulated NR log; or one in which another cell serves the phone after the first long pause, with
/// this NR-ARFCN and an SFN that is ahead by some slots. Returns the transfers of both directions: start in
/// ms after the first one, duration and throughput time in ms, bytes.
fn transfers(next: Option<(u32, i64)>) -> Vec<(f64, f64, f64, u64)> {
    let mut scenario = airmile_emulate::named("nr-tdd-video").unwrap().scenario();
    scenario.duration_ms = 20_000;
    let records = airmile_emulate::run(&scenario).unwrap().records;
    let cell = |pci, arfcn, ns| CellInfo {
        pci: Some(pci),
        earfcn: Some(arfcn),
        ..CellInfo::new(Stamp::modem(ns), 0, 0, "test")
    };
    let mut written: Vec<Record> = vec![cell(500, ARFCN, 0).into()];
    let (mut last_ns, mut shift) = (None, None);
    for record in records {
        let Record::Grant(mut grant) = record else { continue };
        let ns = grant.at.unwrap().ns;
        // Control blocks come in a pause, too, one in each DRX cycle.
        let is_data =
            grant.dir == Direction::Dl && grant.tbs_bytes.is_some_and(|bytes| bytes >= 1_000);
        let is_pause = is_data && last_ns.replace(ns).is_some_and(|last| ns - last > PAUSE_NS);
        if let Some((arfcn, slots)) = next.filter(|_| is_pause && shift.is_none()) {
            shift = Some(slots);
            written.push(cell(501, arfcn, ns).into());
        }
        grant.position.tti = grant.position.tti.plus(shift.unwrap_or(0));
        written.push(grant.into());
    }
    assert_eq!(shift.is_some(), next.is_some());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("nr.mi2log");
    std::fs::write(&file, write_nr(&[], &written, &Options::default()).unwrap()).unwrap();
    let inputs = Inputs { files: vec![file], ..Inputs::default() };
    let report = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let first_us = report.transfers.iter().filter_map(|t| t.start_us).min().unwrap();
    let of = |t: &airmile::model::TransferFinding| {
        let start_ms = (t.start_us.unwrap() - first_us) as f64 / 1e3;
        (start_ms, t.duration_ms, t.throughput_time_ms.unwrap(), t.bytes.unwrap())
    };
    report.transfers.iter().map(of).collect()
}

#[test]
fn a_handover_between_transfers_changes_none_of_them() {
    let plain = transfers(None);
    assert!(plain.len() > 1, "{plain:?}");
    for next in [(ARFCN, 7_778), (ARFCN, 800), (640_000, 7_778), (640_000, 800), (640_000, -800)] {
        let edited = transfers(Some(next));
        assert_eq!(plain.len(), edited.len(), "{next:?}: {plain:?} {edited:?}");
        for (plain, edited) in plain.iter().zip(&edited) {
            let differences = [plain.0 - edited.0, plain.1 - edited.1, plain.2 - edited.2];
            let is_same = differences.iter().all(|ms| ms.abs() <= 1.0) && plain.3 == edited.3;
            assert!(is_same, "{next:?}: {plain:?} {edited:?}");
        }
    }
}
