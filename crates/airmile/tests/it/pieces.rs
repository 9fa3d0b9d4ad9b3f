//! One engine: input in any pieces gives the same records and findings, and a log's tables give the
//! same as the log.

use std::fs;
use std::path::PathBuf;

use airmile::codec::diag::{LogReader, Tagged};
use airmile::model::Severity;
use airmile::{
    FileReport, Inputs, Limits, Progress, RadioOptions, RadioReport, TimePoint, inspect, radio,
};

fn records(bytes: &[u8], pieces: impl Iterator<Item = usize>) -> Vec<Tagged> {
    let mut reader = LogReader::new();
    let mut out = Vec::new();
    let mut left = bytes;
    for n in pieces {
        let (now, later) = left.split_at(n.min(left.len()));
        reader.push(now, &mut |tagged| out.push(tagged));
        left = later;
        if left.is_empty() {
            break;
        }
    }
    reader.finish(&mut |tagged| out.push(tagged));
    out
}

#[test]
fn any_pieces_give_the_same_records() {
    let dir = tempfile::tempdir().unwrap();
    for log in crate::common::logs(dir.path()) {
        let bytes = fs::read(&log).unwrap();
        let whole = records(&bytes, std::iter::repeat(bytes.len()));
        assert!(!whole.is_empty(), "{}", log.display());
        for step in [1, 7, 4_096] {
            let pieces = records(&bytes, std::iter::repeat(step));
            assert!(whole == pieces, "{} in pieces of {step}", log.display());
        }
        let uneven = records(&bytes, (1..).map(|i: usize| i * 7_919 % 1_500 + 1));
        assert!(whole == uneven, "{} in uneven pieces", log.display());
    }
}

fn run(files: &[PathBuf], options: &RadioOptions) -> RadioReport {
    let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
    radio(&inputs, options, &Progress::default()).unwrap()
}

#[test]
fn a_log_and_the_tables_made_from_it_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    // The samples have all kinds of records; the others are long.
    for scenario in airmile_lab::scenarios().iter().filter(|s| s.name.starts_with("sample-")) {
        let into = dir.path().join(scenario.name);
        airmile_lab::run_scenario(scenario.name, None, &into).unwrap();
        let options = RadioOptions::default();
        let log = run(&[into.join("modem.mi2log")], &options);
        let tables = run(&[into.join("grants.csv"), into.join("rlc.csv")], &options);
        let downlink = |report: &RadioReport| -> Vec<(i64, i64)> {
            let bursts = report.bursts.iter().filter(|b| b.dir.as_str() == "dl");
            bursts.map(|b| (b.start_tti.0, b.end_tti.0)).collect()
        };
        assert_eq!(downlink(&log), downlink(&tables), "{}", scenario.name);
    }
}

#[test]
fn a_compressed_log_and_its_parts_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("run");
    airmile_lab::run_scenario("sample-video", None, &into).unwrap();
    let log = into.join("modem.mi2log");
    let bytes = fs::read(&log).unwrap();
    let packed = into.join("log.zst");
    fs::write(&packed, zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    let options = RadioOptions::default();
    let whole = run(&[log], &options);
    assert_eq!(whole.transfers, run(&[packed], &options).transfers);
    // As a logger rotates: cut between two frames, given in either order.
    let middle = bytes.len() / 2;
    let cut = middle + bytes[middle..].iter().position(|b| *b == 0x7e).unwrap() + 1;
    let parts = [into.join("a.qmdl"), into.join("b.qmdl")];
    fs::write(&parts[0], &bytes[..cut]).unwrap();
    fs::write(&parts[1], &bytes[cut..]).unwrap();
    let rotated = run(&parts, &options);
    assert!((&rotated.transfers, &rotated.bursts) == (&whole.transfers, &whole.bursts));
    let swapped = run(&[parts[1].clone(), parts[0].clone()], &options);
    assert_eq!(swapped.transfers, whole.transfers);
    // Cut within a frame; `inspect` reads what the others read.
    fs::write(&parts[0], &bytes[..cut - 9]).unwrap();
    fs::write(&parts[1], &bytes[cut - 9..]).unwrap();
    let limits = Limits { to: Some(TimePoint::SinceStart(2_000_000_000)), ..Limits::default() };
    let of = |files: &[PathBuf]| {
        let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
        inspect(&inputs, limits, &Progress::default()).unwrap()
    };
    let (rotated, whole) = (of(&parts), of(&[into.join("modem.mi2log")]));
    assert_eq!(rotated.evidence_counts, whole.evidence_counts);
    let damaged = |file: &FileReport| file.problems.iter().any(|p| p.severity == Severity::Damage);
    assert!(!rotated.files.iter().any(damaged), "{:?}", rotated.files);
    let grants: Vec<u64> = rotated.files.iter().map(|file| file.records["grant"]).collect();
    assert_eq!(grants.iter().sum::<u64>(), whole.files[0].records["grant"]);
    assert!(grants[0].abs_diff(grants[1]) < grants[0] / 2, "{grants:?}");
}

/// Logs of two phones do not overlap in time, years apart, but their modems write other versions.
#[test]
fn logs_of_two_phones_are_not_joined() {
    let names = ["mi_att", "pixelxl_2018_download", "mi_xiaomi_mi10_20201116_123302"];
    let logs = names.map(|name| airmile_testing::shared_data(&format!("diag/{name}.mi2log")));
    let Some(files) = logs.into_iter().collect::<Option<Vec<_>>>() else { return };
    let inputs = Inputs { files, ..Inputs::default() };
    let error = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap_err();
    let error = error.to_string();
    for part in ["mi_att.mi2log and ", "are logs of two phones: message 0xB", "one phone at a time"]
    {
        assert!(error.contains(part), "{error}");
    }
}

/// Two phones' modems may have the same versions, years apart; but a phone may also have been off.
#[test]
fn logs_that_are_days_apart_are_read_with_a_warning() {
    let Some(old) = airmile_testing::shared_data("diag/pixelxl_2018_download.mi2log") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("sample-rate-limited", None, dir.path()).unwrap();
    let report = run(&[dir.path().join("modem.mi2log"), old], &RadioOptions::default());
    let what = |at: usize| report.files[at].problems.iter().map(|one| one.what.as_str());
    assert!(what(0).any(|what| what.contains(" days after the end of ")), "{:?}", report.files);
    assert!(!what(1).any(|what| what.contains(" after the end of ")), "{:?}", report.files);
}

#[test]
fn the_same_log_twice_is_refused_and_rows_may_come_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("run");
    airmile_lab::run_scenario("sample-download", None, &into).unwrap();
    let log = into.join("modem.mi2log");
    let inputs = Inputs { files: vec![log.clone(), log], ..Inputs::default() };
    let error = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("overlap in time"), "{error}");

    let table = fs::read_to_string(into.join("grants.csv")).unwrap();
    let mut rows: Vec<&str> = table.lines().collect();
    rows[1..].reverse();
    let turned = into.join("turned.csv");
    fs::write(&turned, rows.join("\n")).unwrap();
    let options = RadioOptions::default();
    let straight = run(&[into.join("grants.csv")], &options);
    assert_eq!(run(&[turned], &options).transfers, straight.transfers);
}
