//! Captures alone: what the user gives with them, and what their clocks hide.

use std::path::Path;

use airmile::model::{Direction, Verdict};
use airmile::packets::packets;
use airmile::{DetectOptions, Diagnosis, Inputs, PacketOptions, Progress, RadioOptions, diagnose};

use crate::common::diagnosis_of;

/// A run of the lab.
fn run_of(scenario: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario(scenario, None, &run).unwrap();
    (dir, run)
}

/// A pcapng of the lab, with times as by a clock with ticks of `ticks_ns`.
fn coarsen(capture: &Path, ticks_ns: u64) {
    let mut file = std::fs::read(capture).unwrap();
    let word = |file: &[u8], at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    let mut at = 0;
    while at < file.len() {
        if word(&file, at) == 6 {
            let ns = u64::from(word(&file, at + 12)) << 32 | u64::from(word(&file, at + 16));
            let ns = ns / ticks_ns * ticks_ns;
            file[at + 12..at + 16].copy_from_slice(&((ns >> 32) as u32).to_be_bytes());
            file[at + 16..at + 20].copy_from_slice(&(ns as u32).to_be_bytes());
        }
        at += word(&file, at + 4) as usize;
    }
    std::fs::write(capture, file).unwrap();
}

fn problems(answer: &Diagnosis, name: &str) -> String {
    let file = answer.files.iter().find(|file| file.path.ends_with(name)).unwrap();
    format!("{:?}", file.problems)
}

#[test]
fn a_coarse_clock_names_nothing() {
    let (_dir, run) = run_of("rate-limited-server");
    let capture = run.join("phone.pcapng");
    let fine = diagnosis_of(std::slice::from_ref(&capture));
    assert_eq!(fine.session.verdict, Verdict::SenderLimited);
    assert!(!problems(&fine, "phone.pcapng").contains("ticks"));
    let at_server = diagnosis_of(&[run.join("server.pcapng")]);
    assert!(!problems(&at_server, "server.pcapng").contains("ticks"));
    for ms in [2, 20, 100, 1_000] {
        coarsen(&capture, ms * 1_000_000);
        let answer = diagnosis_of(std::slice::from_ref(&capture));
        assert_eq!(answer.session.verdict, Verdict::Unknown, "{ms} ms");
        let problems = problems(&answer, "phone.pcapng");
        assert!(problems.contains(&format!("ticks of {ms} ms")), "{ms} ms: {problems}");
        // A study does not know the place of the capture: ticks of 2 ms may be slots.
        let (options, progress) = (PacketOptions::default(), Progress::default());
        let (study, _) = packets(std::slice::from_ref(&capture), &options, &progress).unwrap();
        let problems = format!("{:?}", study.files[0].problems);
        assert_eq!(problems.contains(&format!("ticks of {ms} ms")), ms > 2, "{ms} ms: {problems}");
    }
    // The modem log is diagnosed without it.
    let log = run.join("modem.mi2log");
    let [alone, both] = [&[log.clone()][..], &[log, capture]].map(diagnosis_of);
    let problems = problems(&both, "phone.pcapng");
    assert!(problems.contains("not used: its clock has ticks of 1000 ms"), "{problems}");
    assert_eq!(both.session.verdict, Verdict::NotRadio);
    assert_eq!(both.session.says, alone.session.says);
}

/// Its bytes, not what arrived meanwhile; uploads are listed.
#[test]
fn the_transfers_of_a_table_keep_their_bytes() {
    let (dir, run) = run_of("page");
    let table = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let path = dir.path().join("transfers.csv");
    std::fs::write(&path, &table).unwrap();
    let answer = diagnosis_of(&[run.join("phone.pcapng"), path.clone()]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|one| *one == name).unwrap();
    let given: Vec<(&str, u64)> = rows[1..]
        .iter()
        .map(|row| (row[column("id")], row[column("bytes")].parse().unwrap()))
        .collect();
    let found = answer.transfers.iter().map(|t| (t.id.as_str(), t.finding.bytes.unwrap()));
    assert_eq!(found.collect::<Vec<_>>(), given);
    // As the bytes, so the rate.
    for one in &answer.transfers {
        let rate = one.evidence.iter().find(|item| item.unit == "Mbit/s").map(|item| item.value);
        let expected = one.finding.bytes.unwrap() as f64 / 125.0 / one.finding.duration_ms;
        assert!(rate.is_none_or(|rate| (rate.unwrap() - expected).abs() < 0.01), "{rate:?}");
    }
}

#[test]
fn a_download_with_an_upload_at_the_same_time() {
    let (dir, run) = run_of("upload-beside-download");
    for capture in ["phone.pcapng", "server.pcapng"] {
        let answer = diagnosis_of(&[run.join(capture)]);
        let [one] = answer.transfers.as_slice() else { panic!("{:?}", answer.transfers) };
        let ms = one.finding.duration_ms;
        // The server's last bytes leave it most of a second before they arrive.
        let expected_ms = if capture == "phone.pcapng" { 24_294.0 } else { 23_510.0 };
        assert!((ms - expected_ms).abs() < 100.0, "{capture}: {ms}");
        assert!(!format!("{:?}", one.evidence).contains("after the last data"), "{capture}");
        assert!(answer.session.says.contains("sent 6.00 MB in uploads"), "{}", answer.session.says);
    }
    let path = dir.path().join("transfers.csv");
    std::fs::copy(run.join("transfers.csv"), &path).unwrap();
    let answer = diagnosis_of(&[run.join("phone.pcapng"), path]);
    let found = answer.transfers.iter().map(|t| (t.finding.dir, t.finding.bytes, t.verdict));
    let found: Vec<_> = found.collect();
    let upload = (Direction::Ul, Some(6_000_000), Verdict::Unknown);
    assert!(found.len() == 2 && found.contains(&upload), "{found:?}");
    assert!(answer.transfers.iter().all(|one| !one.next_step.is_empty()));
}

#[test]
fn the_pause_that_separates_transfers() {
    let (_dir, run) = run_of("slow-start-restart");
    let count = |pause_ms: u32| {
        let detect = DetectOptions { pause_ms, ..DetectOptions::default() };
        let inputs = Inputs { files: vec![run.join("phone.pcapng")], ..Inputs::default() };
        let options = RadioOptions { detect, ..RadioOptions::default() };
        diagnose(&inputs, &options, &Progress::default()).unwrap().transfers.len()
    };
    assert_eq!((count(500), count(5_000)), (13, 1));
}
