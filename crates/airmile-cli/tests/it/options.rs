//! Options that change nothing, and arguments that are wrong.

use std::fs;
use std::path::Path;

use airmile_testing::{shared, skipped};
use serde_json::Value;

use crate::command::{airmile, document, path, sample, status, text};

#[test]
fn an_option_that_changes_nothing_is_named() {
    let (_keep, run) = sample("sample-video");
    let log = path(&run, "modem.mi2log");
    let transfers = path(&run, "transfers.csv");
    for command in ["diagnose", "radio"] {
        for (args, says) in [
            (&["--rnti", "5"][..], "--rnti changes nothing: no file is a sniffer's"),
            (&["--transfers", &transfers, "--min-bytes", "999999"], "--min-bytes changes nothing"),
            (&["--transfers", &transfers, "--pause-ms", "5"], "--pause-ms changes nothing"),
            (&["--start-threshold", "0.5"], "--start-threshold changes nothing: it is for"),
        ] {
            let out = airmile(&[&[command, &log], args].concat());
            assert!(text(&out.stderr).contains(says), "{args:?}: {}", text(&out.stderr));
        }
        for args in [&["--min-bytes", "99"][..], &["--evidence", "paper", "--end-threshold", "0.5"]]
        {
            let out = airmile(&[&[command, &log], args].concat());
            assert!(!text(&out.stderr).contains("changes nothing"), "{}", text(&out.stderr));
        }
    }
}

/// Packets and applications alone have no radio; of packets, some sentences are of detected transfers
/// even where transfers are given.
#[test]
fn an_option_of_the_radio_changes_nothing_without_one() {
    let (_keep, run) = sample("page");
    let (capture, transfers) = (path(&run, "phone.pcapng"), path(&run, "transfers.csv"));
    for args in [
        ["--evidence", "paper"],
        ["--radio-at-least", "0.99"],
        ["--not-radio-below", "0.05"],
        ["--sim", "1"],
    ] {
        let out = airmile(&[&["diagnose", &capture][..], &args].concat());
        let says = format!("{} changes nothing: no file has records of the radio", args[0]);
        assert!(text(&out.stderr).contains(&says), "{args:?}: {}", text(&out.stderr));
    }
    let args = ["diagnose", &capture, "--transfers", &transfers, "--min-bytes", "999999"];
    let out = airmile(&args);
    assert!(!text(&out.stderr).contains("changes nothing"), "{}", text(&out.stderr));
}

#[test]
fn other_arguments_would_help() {
    let dir = tempfile::tempdir().unwrap();
    let into = path(dir.path(), "run");
    assert_eq!(status(&["lab", "run", "no-such", "-o", &into]), 2);
    assert_eq!(status(&["lab", "reproduce", "no-such"]), 2);
    #[cfg(feature = "network")]
    {
        let out = airmile(&["live", "--listen", "0.0.0.0:1"]);
        assert_eq!(out.status.code(), Some(2));
        let says = text(&out.stderr);
        assert!(says.contains("--token-file") && says.contains("AIRMILE_TOKEN"), "{says}");
        #[cfg(target_os = "linux")]
        assert_eq!(status(&["qcut", "run", "--up", "lo", "--metrics", "0.0.0.0:1"]), 2);
    }
    let program = env!("CARGO_BIN_EXE_airmile");
    let out = airmile(&["scrub", program, "-o", &path(dir.path(), "copy")]);
    assert!(text(&out.stderr).contains("is a program: give the log"), "{}", text(&out.stderr));
}

/// The start is that of the log, as in `decode` and `inspect`, and not that of its first block.
#[test]
fn seconds_count_from_the_start_of_the_log() {
    let (_keep, run) = sample("receive-window");
    let run = run.to_str().unwrap();
    for command in ["diagnose", "radio"] {
        let all = document(command, &[command, run]);
        let from_start = document(command, &[command, run, "--from", "0"]);
        assert_eq!(all["transfers"], from_start["transfers"], "{command}");
    }
}

/// A comparison of the first seconds has fewer transfers.
#[test]
fn a_comparison_is_limited_in_time() {
    let ((_keep, run), (_kept, page)) = (sample("sample-video"), sample("page"));
    // A run with a modem log, and one of packets alone.
    let capture = path(&page, "phone.pcapng");
    for (path, to) in [(run.to_str().unwrap(), "12"), (&capture, "0.3")] {
        let transfers = |args: &[&str]| {
            let all = document("compare", &[&["compare", path], args].concat());
            let groups = all["groups"].as_array().unwrap().iter();
            groups.map(|g| g["transfers"].as_u64().unwrap()).sum::<u64>()
        };
        let all = transfers(&[]);
        let some = transfers(&["--to", to]);
        assert!(0 < some && some < all, "{path}: {some} of {all}");
        let out = airmile(&["compare", path, "--from", "9000"]);
        let says = text(&out.stderr);
        assert!(out.status.code() == Some(3) && says.contains("from --from on"), "{says}");
    }
    assert_eq!(status(&["compare", run.to_str().unwrap(), "--from", "5", "--to", "4"]), 2);
}

/// Of an application alone there is no verdict on the link: neither in a column nor in words.
#[test]
fn a_log_of_requests_alone_has_no_table_of_unknown_verdicts() {
    let (_keep, run) = sample("page");
    let says = text(&airmile(&["diagnose", &path(&run, "page.har")]).stdout);
    assert!(says.contains("No verdict on the link"), "{says}");
    assert!(!says.contains("unknown") && !says.contains("confidence"), "{says}");
    assert!(!says.contains("adds up the time of all transfers"), "{says}");
    let says = text(&airmile(&["diagnose", run.to_str().unwrap()]).stdout);
    assert!(!says.contains("repeat it with no other"), "{says}");

    let har: Value = serde_json::from_slice(&fs::read(run.join("page.har")).unwrap()).unwrap();
    let mut long = har;
    let entries = long["log"]["entries"].as_array_mut().unwrap();
    let many: Vec<Value> = entries.iter().cycle().take(60).cloned().collect();
    *entries = many;
    let file = path(&run, "long.har");
    fs::write(&file, long.to_string()).unwrap();
    let says = text(&airmile(&["diagnose", &file]).stdout);
    assert!(says.contains("60 transfers") && !says.contains("unknown"), "{says}");
}

/// Logs of years apart are one session of three files: each has its own times.
#[test]
fn a_log_ends_after_it_begins() {
    let logs = shared().join("data/modern");
    let names = ["lte_b063_v50.qmdl", "lte_b173_v48.qmdl", "nr_b887_v2_5.qmdl"];
    let paths = names.map(|name| path(&logs, name));
    if paths.iter().any(|path| !Path::new(path).exists()) {
        return skipped("a_log_ends_after_it_begins: no shared logs");
    }
    let args = [&["inspect"][..], &paths.each_ref().map(String::as_str)].concat();
    for file in document("inspect", &args)["files"].as_array().unwrap() {
        assert!(file["end_us"].as_i64() >= file["start_us"].as_i64(), "{file}");
    }
}
