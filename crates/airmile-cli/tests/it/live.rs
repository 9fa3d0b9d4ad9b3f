//! `airmile live` as a process.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{path, sample, text};

/// A source that can never become a modem log is named, and not waited for.
#[test]
fn another_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "notes.txt");
    for (content, says) in [
        ("what I did this morning\nand in the evening\n", "none of a log's frames"),
        (
            "{\"log\": {\"version\": \"1.2\", \"entries\": []}}\n",
            "`har`, which `airmile diagnose` reads",
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        let piped = std::fs::File::open(&file).unwrap();
        for (args, stdin) in [
            (&["live", "--follow", &file][..], Stdio::null()),
            (&["live", "--json"], Stdio::from(piped)),
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
            let done = command.args(args).stdin(stdin).output().unwrap();
            let stderr = text(&done.stderr);
            assert_eq!(done.status.code(), Some(3), "{args:?}: {stderr}");
            assert!(stderr.contains(says) && stderr.contains("is not a modem log"), "{stderr}");
        }
    }
}

/// A source without a byte is no success, and a directory never becomes a log.
#[test]
fn nothing_to_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let follow = ["live", "--follow", dir.path().to_str().unwrap()];
    for (args, says) in [
        (&["live", "--json"][..], "standard input: nothing was received"),
        (&follow, "is a directory: give the modem log"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        let done = command.args(args).stdin(Stdio::null()).output().unwrap();
        let errors = text(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{args:?}: {errors}");
        assert!(errors.contains(says), "{errors}");
    }
}

/// A second Ctrl-C ends a recording at once, and one that was sent twice is one.
#[test]
fn a_second_signal_does_not_wait_for_the_end() {
    let dir = tempfile::tempdir().unwrap();
    // No port, so that it waits for a modem.
    let port = path(dir.path(), "port");
    std::fs::write(&port, "").unwrap();
    let interrupted = |out: &str, at_once: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        command.args(["record", "--port", &port, "-o", &path(dir.path(), out)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut record = command.spawn().unwrap();
        let mut says = BufReader::new(record.stderr.take().unwrap());
        says.read_line(&mut String::new()).unwrap();
        let id = record.id().to_string();
        let kill = |ids: &[&str]| {
            Command::new("kill").args(["-s", "INT"]).args(ids).status().unwrap();
        };
        if at_once {
            kill(&[&id, &id]);
        } else {
            kill(&[&id]);
            std::thread::sleep(std::time::Duration::from_millis(200));
            kill(&[&id]);
        }
        record.wait().unwrap().code()
    };
    assert_eq!(interrupted("once", true), Some(3), "nothing was received");
    // Within a second it ends by itself; a machine may be slow.
    assert!((0..10).any(|n| interrupted(&format!("again{n}"), false) == Some(130)));
}

/// A file that may still grow, and a signal: what was undecided is decided, and the status is that of
/// a log that ended.
#[test]
fn a_signal_ends_the_log() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    for signal in ["TERM", "INT"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        command.args(["live", "--follow", &log, "--json"]).stdin(Stdio::null());
        let mut live = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(live.stdout.take().unwrap()).lines();
        let events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let (mut states, mut was_undecided) = (BTreeMap::new(), false);
        for event in events.filter(|event| event["event"] == "burst") {
            states.insert(
                (event["dir"].to_string(), event["start_tti"].as_i64()),
                event["state"].to_string(),
            );
            if !was_undecided && event["state"] == "provisional" {
                was_undecided = true;
                let id = live.id().to_string();
                assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
            }
        }
        assert_eq!(live.wait().unwrap().code(), Some(0), "{signal}");
        assert!(was_undecided && states.values().all(|state| state == "\"decided\""), "{states:?}");
    }
}

/// A file that is replaced by one that is no modem log: what came before is decided, and the file is
/// named.
#[test]
fn a_log_that_becomes_another_file_is_named() {
    let (_keep, run) = sample("busy-file");
    let log = path(&run, "log.qmdl");
    let capture = std::fs::read(run.join("phone.pcapng")).unwrap();
    for (content, says) in [
        (&b"what I did this morning\n"[..], "none of a log's frames"),
        (&capture, "a packet capture"),
    ] {
        std::fs::copy(run.join("modem.mi2log"), &log).unwrap();
        let next = path(&run, "next");
        std::fs::write(&next, content).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        command.args(["live", "--follow", &log, "--json"]).stdin(Stdio::null());
        let mut live = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(live.stdout.take().unwrap()).lines();
        let events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let (mut states, mut is_replaced) = (BTreeMap::new(), false);
        for event in events.filter(|event| event["event"] == "burst") {
            if !std::mem::replace(&mut is_replaced, true) {
                std::fs::rename(&next, &log).unwrap();
            }
            let place = (event["dir"].to_string(), event["start_tti"].as_i64());
            states.insert(place, event["state"].to_string());
        }
        let done = live.wait_with_output().unwrap();
        let stderr = text(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{stderr}");
        let named = stderr.contains(&log) && stderr.contains("it was replaced, and now it ");
        assert!(named && stderr.contains(says), "{stderr}");
        assert!(states.values().all(|state| state == "\"decided\""), "{states:?}");
    }
}

/// Standard input that ends within a frame is as damaged as a file that does.
#[test]
fn a_stream_that_ends_within_a_frame_is_damaged() {
    let (_keep, run) = sample("sample-download");
    let whole = std::fs::read(run.join("modem.mi2log")).unwrap();
    let torn = path(&run, "torn.mi2log");
    for (bytes, status) in [(&whole[..], 0), (&whole[..whole.len() / 2], 4)] {
        std::fs::write(&torn, bytes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        command.args(["live", "--json"]).stdin(std::fs::File::open(&torn).unwrap());
        let done = command.output().unwrap();
        let stderr = text(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{stderr}");
        assert_eq!(
            stderr.contains("standard input: byte ") && stderr.contains("is torn"),
            status == 4
        );
    }
}

/// What `radio` prints on standard error of a file, `live` prints of the same bytes, with the same status.
#[test]
fn damage_in_a_stream_is_stated_as_in_a_file() {
    let (_keep, run) = sample("sample-download");
    let whole = std::fs::read(run.join("modem.mi2log")).unwrap();
    let log = path(&run, "modem.mi2log");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x55;
    let mut often = whole.clone();
    (1..8).for_each(|n| often[whole.len() * n / 8] ^= 0x55);
    let twice = [&whole[..], &whole].concat();
    for (bytes, status, words) in [
        (flipped, 4, "HDLC CRC"),
        (often, 4, "2 more problems (-v shows them)"),
        (twice, 0, "the clock jumps back"),
    ] {
        std::fs::write(&log, &bytes).unwrap();
        let stderr = |args: &[&str], stdin| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
            let done = command.args(args).stdin(stdin).output().unwrap();
            let says = text(&done.stderr);
            assert_eq!(done.status.code(), Some(status), "{args:?}: {says}");
            assert!(says.contains(words), "{args:?}: {says}");
            (says, text(&done.stdout))
        };
        let piped = || Stdio::from(std::fs::File::open(&log).unwrap());
        let (of_file, _) = stderr(&["radio", &log], Stdio::null());
        let (of_stream, _) = stderr(&["live"], piped());
        assert_eq!(of_stream, of_file.replace(&log, "standard input"));
        let (of_json, events) = stderr(&["live", "--json"], piped());
        assert_eq!(of_json, of_stream);
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let problems: Vec<_> = events.filter(|event| event["event"] == "problem").collect();
        assert!(problems.iter().all(|one| one["offset"].as_u64() > Some(0)), "{problems:?}");
        assert_eq!(problems.len(), of_stream.lines().count() + usize::from(words.starts_with('2')));
    }
}

/// The same log again in one file: each transfer has the times of its own part.
#[test]
fn times_after_a_clock_that_jumps_back_are_of_the_log() {
    let (_keep, run) = sample("sample-rate-limited");
    let once = std::fs::read(run.join("modem.mi2log")).unwrap();
    let log = path(&run, "twice.mi2log");
    std::fs::write(&log, [&once[..], &once].concat()).unwrap();
    let airmile = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        let stdin = std::fs::File::open(&log).unwrap();
        text(&command.args(args).stdin(stdin).output().unwrap().stdout)
    };
    let of_file: Value = serde_json::from_str(&airmile(&["radio", &log, "--json"])).unwrap();
    let file = &of_file["files"][0];
    let span = file["start_us"].as_i64().unwrap()..=file["end_us"].as_i64().unwrap();
    let check = |transfer: &Value| {
        let us = |name: &str| transfer[name].as_i64().unwrap();
        assert!(span.contains(&us("start_us")) && span.contains(&us("end_us")), "{transfer}");
        let ms = (us("end_us") - us("start_us")) as f64 / 1e3;
        assert!((ms - transfer["duration_ms"].as_f64().unwrap()).abs() <= 2.0, "{transfer}");
    };
    let transfers = of_file["transfers"].as_array().unwrap();
    assert!(transfers.len() >= 2);
    transfers.iter().for_each(check);
    let mut n = 0;
    for line in airmile(&["live", "--json"]).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["event"] == "transfer" && event["state"] == "decided" {
            check(&event);
            n += 1;
        }
        if event["event"] == "burst" {
            let us = |name: &str| event[name].as_i64().unwrap();
            assert!(span.contains(&us("start_us")) && span.contains(&us("end_us")), "{event}");
        }
    }
    assert_eq!(n, transfers.len());
}
