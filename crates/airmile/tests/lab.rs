//! What a run of the lab leaves, and that it can be diagnosed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs::{self, File};
use std::path::Path;

use airmile::lab::run_scenario;
use airmile::model::Verdict;
use airmile::{Inputs, Progress, RadioOptions, diagnose};
use pcap_file::pcapng::{Block, PcapNgReader};

fn judge(dir: &Path) -> Verdict {
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap().session.verdict
}

/// Packets of a capture: how many, and whether their times are in order.
fn packets(path: &Path) -> (usize, bool) {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut times = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(packet.data[0], 0x45, "IPv4 without options");
            times.push(packet.timestamp);
        }
    }
    (times.len(), times.is_sorted())
}

#[test]
fn a_directory_is_diagnosed_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    for (name, expected) in [("busy-file", Verdict::Radio), ("wireline-limited", Verdict::NotRadio)]
    {
        let out = dir.path().join(name);
        let run = run_scenario(name, None, &out).unwrap();
        assert_eq!(judge(&out), expected, "{name}");
        assert!(run.files.iter().all(|file| out.join(file).is_file()));
        // Without its cause, the transfer takes less.
        let found = &run.counterfactuals[0];
        assert!(found.without_ms.unwrap() < 0.6 * found.duration_ms.unwrap(), "{found:?}");
        for capture in ["phone.pcapng", "server.pcapng"] {
            let (n, sorted) = packets(&out.join(capture));
            // 10 MB in segments of 1448 bytes, and an ACK for every second one.
            assert!(n > 9_000 && sorted, "{name} {capture}: {n}");
        }
        // The scenario file runs again to the same log.
        let again = dir.path().join("again");
        let file = out.join("scenario.toml");
        run_scenario(file.to_str().unwrap(), None, &again).unwrap();
        let read = |dir: &Path, file: &str| fs::read(dir.join(file)).unwrap();
        for file in ["modem.mi2log", "truth.csv", "app.jsonl"] {
            assert!(read(&out, file) == read(&again, file), "{name} {file}");
        }
    }
}

#[test]
fn a_link_trace_is_read_beside_its_scenario() {
    let dir = tempfile::tempdir().unwrap();
    // 1500 bytes each ms: 12 Mbit/s.
    let trace: String = (1..=1_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(dir.path().join("flat.down"), trace).unwrap();
    let file = dir.path().join("replay.toml");
    let text = "duration_ms = 20_000\nlink = { trace = { down = \"flat.down\" } }\n\
                apps = [{ name = \"file\", workload = { kind = \"file\", bytes = 6_000_000 } }]\n";
    fs::write(&file, text).unwrap();
    let out = dir.path().join("out");
    run_scenario(file.to_str().unwrap(), None, &out).unwrap();
    let table = fs::read_to_string(out.join("transfer_truth.csv")).unwrap();
    let ms: f64 = table.lines().nth(1).unwrap().rsplit(',').next().unwrap().parse().unwrap();
    // 4 s at 12 Mbit/s, with headers and slow start a little more.
    assert!((4_100.0..4_800.0).contains(&ms), "{ms}");
}

#[test]
fn errors_name_file_line_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    for (text, expected) in [
        ("[cell]\nn_prb = 51\n", "bad.toml: line 2, column 9: cell.n_prb: must be 6, 15, 25"),
        ("seeds = 1\n", "bad.toml: line 1, column 1: unknown field `seeds`"),
    ] {
        fs::write(&file, text).unwrap();
        let error = run_scenario(file.to_str().unwrap(), None, dir.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = run_scenario("no-such", None, dir.path()).unwrap_err().to_string();
    assert!(error.contains("no scenario `no-such`") && error.contains("busy-video"), "{error}");
}
