//! Inputs that lack something, or are out of order, do not name a cause that they cannot show.

use std::path::Path;

use airmile::model::Verdict;
use airmile::{Inputs, Progress, RadioOptions, radio};

use crate::common::{diagnosis_of, library_run};

/// The blocks of a pcapng file in big-endian order, with whether each is a packet.
fn blocks(file: &[u8]) -> Vec<(bool, &[u8])> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let block = &file[at..at + word(file, at + 4) as usize];
        out.push((word(block, 0) == 6, block));
        at += block.len();
    }
    out
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A capture with its packets in another order: each is moved in the file as if it was up to
/// `by_ms` later, by a number that depends on its time. Time stamps stay; those of one time keep
/// their order, as in one queue of a network card.
fn disordered(capture: &Path, into: &Path, by_ms: u64) {
    let bytes = std::fs::read(capture).unwrap();
    let (mut head, mut packets) = (Vec::new(), Vec::new());
    for (is_packet, block) in blocks(&bytes) {
        if is_packet {
            let ns = u64::from(word(block, 12)) << 32 | u64::from(word(block, 16));
            let later = ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            packets.push((ns + later % (by_ms * 1_000_000), block));
        } else {
            head.extend_from_slice(block);
        }
    }
    packets.sort_by_key(|(ns, _)| *ns);
    head.extend(packets.into_iter().flat_map(|(_, block)| block));
    std::fs::write(into, head).unwrap();
}

#[test]
fn packets_out_of_order_give_the_same_result() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("weak-signal", dir.path());
    let (capture, other) = (run.join("phone.pcapng"), dir.path().join("other.pcapng"));
    let right = diagnosis_of(std::slice::from_ref(&capture));
    disordered(&capture, &other, 80);
    assert_ne!(std::fs::read(&capture).unwrap(), std::fs::read(&other).unwrap());
    let sorted = diagnosis_of(std::slice::from_ref(&other));
    assert_eq!(sorted.session.verdict, right.session.verdict);
    assert_eq!(sorted.session.confidence, right.session.confidence);
    assert!(sorted.files[0].problems.iter().any(|one| one.what.contains("put in order")));
    // Too far apart to be put in order.
    disordered(&capture, &other, 4_000);
    let lost = diagnosis_of(std::slice::from_ref(&other));
    assert_eq!(lost.session.verdict, Verdict::Unknown, "{}", lost.session.says);
    assert!(lost.files[0].problems.iter().any(|one| one.what.contains("reordercap")));
}

/// A capture with this many bytes of each packet.
fn snapped(capture: &Path, into: &Path, bytes: usize) {
    let file = std::fs::read(capture).unwrap();
    let mut out = Vec::new();
    let len = u32::try_from(32 + bytes).unwrap().to_be_bytes();
    for (is_packet, block) in blocks(&file) {
        let mut block = block.to_vec();
        if is_packet && word(&block, 20) as usize > bytes {
            block.truncate(28 + bytes);
            block.extend_from_slice(&len);
            block[4..8].copy_from_slice(&len);
            block[20..24].copy_from_slice(&u32::try_from(bytes).unwrap().to_be_bytes());
        }
        out.extend(block);
    }
    std::fs::write(into, out).unwrap();
}

#[test]
fn headers_without_their_options_name_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("rate-limited-server", dir.path());
    let (capture, cut) = (run.join("phone.pcapng"), dir.path().join("cut.pcapng"));
    let whole = diagnosis_of(std::slice::from_ref(&capture));
    assert_ne!(whole.session.verdict, Verdict::Unknown);
    // IPv4 and TCP without options; then with those that a segment has.
    snapped(&capture, &cut, 40);
    let short = diagnosis_of(std::slice::from_ref(&cut));
    assert_eq!(short.session.verdict, Verdict::Unknown, "{}", short.session.says);
    let said = |one: &airmile::Diagnosis| {
        one.files[0].problems.iter().any(|one| one.what.contains("tcpdump -s 128"))
    };
    assert!(said(&short));
    snapped(&capture, &cut, 96);
    let long = diagnosis_of(std::slice::from_ref(&cut));
    assert!(!said(&long));
    assert_eq!(long.session.verdict, whole.session.verdict);
}

/// Without the cell's bandwidth, what others held is unknown.
#[test]
fn contention_needs_the_cells_bandwidth() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("busy-file", dir.path());
    let inputs = |table: &Path| {
        let names = ["transfers.csv", "phone.pcapng", "server.pcapng"];
        let mut files = vec![table.to_owned()];
        files.extend(names.iter().map(|name| run.join(name)));
        files
    };
    let table = run.join("grants.csv");
    let whole = diagnosis_of(&inputs(&table));
    assert_eq!(whole.session.verdict, Verdict::RadioContention, "{}", whole.session.says);
    let text = std::fs::read_to_string(&table).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let at = header.iter().position(|name| *name == "n_prb_cell").unwrap();
    let without = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(n, _)| *n != at);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",") + "\n"
    };
    let other = dir.path().join("grants.csv");
    std::fs::write(&other, text.lines().map(without).collect::<String>()).unwrap();
    let unknown = diagnosis_of(&inputs(&other));
    assert_eq!(unknown.session.verdict, Verdict::Radio, "{}", unknown.session.says);
    assert!(unknown.transfers.iter().all(|one| one.leading.is_none()));
    let names: Vec<&str> = unknown.session.shares.keys().copied().collect();
    assert!(names.contains(&"radio"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("radio_")), "{names:?}");
}

/// Blocks of 9 ms alone are no transfer to judge; 9 ms that the user gives, by TTIs or times, are one.
#[test]
fn a_short_transfer_is_judged_if_it_is_given() {
    const T0_US: i64 = 1_714_557_600_000_000;
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("grants.csv");
    let verdict = |ttis: i64, given: Option<String>| {
        let row = |tti: i64| format!("{tti},{},dl,50,50,4000,0\n", T0_US + tti * 1_000);
        let head = "tti,time_us,dir,n_prb,n_prb_cell,tbs_bytes,padding_bytes\n";
        std::fs::write(&table, head.to_owned() + &(0..ttis).map(row).collect::<String>()).unwrap();
        let transfers = given.map(|text| {
            let path = dir.path().join("transfers.csv");
            std::fs::write(&path, text).unwrap();
            path
        });
        let inputs = Inputs { files: vec![table.clone()], transfers, ..Inputs::default() };
        let report = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
        let [found] = &report.transfers[..] else { panic!("{:?}", report.transfers) };
        (found.duration_ms, found.verdict)
    };
    assert_eq!(verdict(9, None), (9.0, Verdict::Unknown));
    let by_tti = "id,start_tti,end_tti\nx,1000,1009\n".to_owned();
    assert_eq!(verdict(2_000, Some(by_tti)), (9.0, Verdict::Radio));
    let (from, to) = (T0_US + 1_000_000, T0_US + 1_009_000);
    let by_time = format!("id,start_us,end_us\nx,{from},{to}\n");
    assert_eq!(verdict(2_000, Some(by_time)), (9.0, Verdict::Radio));
}
