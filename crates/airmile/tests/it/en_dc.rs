//! A phone with two legs, in logs that lack a part of one, and where the clock was set back.

use std::fs;
use std::path::{Path, PathBuf};

use airmile::live::Live;
use airmile::{Inputs, Progress, RadioOptions, RadioReport, radio};

use crate::common::{library_run, without_messages};

fn report(files: &[PathBuf]) -> RadioReport {
    let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
    radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

/// Throughput time in ms, bytes and confidence of each transfer, and its scheduled share.
fn figures(report: &RadioReport) -> Vec<(Option<f64>, Option<u64>, f64, f64)> {
    let of = report.transfers.iter().zip(&report.usage);
    of.map(|(one, usage)| {
        (one.throughput_time_ms, one.bytes, one.confidence, usage.scheduled_share)
    })
    .collect()
}

/// A log without the messages of NR that were written from a time on, in nanoseconds.
fn without_nr(log: &[u8], from_ns: i64) -> Vec<u8> {
    without_messages(log, |code, ns| code >> 8 == 0xb8 && ns >= from_ns)
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> Vec<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    vec![path]
}

/// The same log twice in one file has the findings of the log twice. What LTE has in a second one that
/// lacks NR, whose TTIs are the axis, is not put into the first.
#[test]
fn each_leg_follows_a_clock_that_was_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = library_run("nsa-split-bearer", dir.path()).join("nr_modem.mi2log");
    let bytes = fs::read(&log).unwrap();
    let of = |bytes: &[u8]| figures(&report(&write(dir.path(), "log.mi2log", bytes)));
    let once = of(&bytes);
    let twice = [bytes.clone(), bytes.clone()].concat();
    // To a TTI: a leg's times are read from anchors a second apart.
    for (one, again) in once.iter().cycle().zip(of(&twice)) {
        assert!((one.0.unwrap() - again.0.unwrap()).abs() <= 1.0, "{one:?} {again:?}");
        assert!((one.2 - again.2).abs() < 0.005, "{one:?} {again:?}");
        assert_eq!((one.1, one.3), (again.1, again.3));
    }
    assert_eq!(of(&twice).len(), 2 * once.len());
    assert_eq!(of(&[bytes.clone(), without_nr(&bytes, i64::MIN)].concat()), once);
    // The transfer of the first log is decided before the second ends.
    let mut live = Live::new(RadioOptions::default()).unwrap();
    live.push(&twice[..twice.len() * 3 / 4]);
    let decided = live
        .look()
        .transfers
        .iter()
        .filter(|one| one.state == airmile::live::State::Decided)
        .count();
    assert_eq!(decided, 1);
}

/// Records of either leg show that the log covers the time, and that something was scheduled.
#[test]
fn a_leg_that_ends_leaves_the_other_to_cover_the_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("nsa-split-bearer", dir.path());
    let log = fs::read(run.join("nr_modem.mi2log")).unwrap();
    let whole = report(&[run.join("nr_modem.mi2log")]);
    let from_ns = whole.transfers[0].start_us.unwrap() * 1_000 + 2_500_000_000;
    let without_nr = report(&write(dir.path(), "log.mi2log", &without_nr(&log, from_ns)));
    let lines = fs::read_to_string(run.join("grants.csv")).unwrap();
    let lte: Vec<&str> = lines.lines().take(400).collect();
    let lte = write(dir.path(), "lte.csv", (lte.join("\n") + "\n").as_bytes()).remove(0);
    let without_lte = report(&[lte, run.join("nr_grants.csv")]);
    assert!(without_nr.evidence_counts.is_nr_first);
    assert!(!without_lte.evidence_counts.is_nr_first);
    for found in [without_nr, without_lte] {
        let one = &found.transfers[0];
        assert!(one.duration_ms > 6_000.0 && one.confidence > 0.6, "{one:?}");
        assert!(!one.notes.iter().any(|note| note.contains("does not cover")), "{one:?}");
        assert!(found.usage[0].scheduled_share > 0.3, "{:?}", found.usage[0]);
    }
}
