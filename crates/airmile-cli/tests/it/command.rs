//! The command's contract: documents that match their schemas, exit statuses, and the stream of
//! each output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn airmile(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
    command.args(args).stdin(Stdio::null()).env_remove("AIRMILE_TOKEN").output().unwrap()
}

pub(crate) fn status(args: &[&str]) -> i32 {
    airmile(args).status.code().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A sample of the lab, and its directory.
pub(crate) fn sample(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    assert_eq!(status(&["lab", "run", name, "-o", run.to_str().unwrap(), "-q"]), 0);
    (dir, run)
}

pub(crate) fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A `--json` document, checked against its schema.
pub(crate) fn document(name: &str, args: &[&str]) -> Value {
    let out = airmile(&[args, &["--json"]].concat());
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let schema =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!((&document["document"], &document["version"]), (&name.into(), &1.into()));
    document
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        &["--help"][..],
        &["inspect", "--help"],
        &["decode", "--help"],
        &["radio", "--help"],
        &["diagnose", "--help"],
        &["packets", "--help"],
        &["scrub", "--help"],
        &["claw", "serve", "--help"],
        &["claw", "agent", "--help"],
        &["claw", "get", "--help"],
        &["claw", "attach", "--help"],
        &["lab", "run", "--help"],
        &["lab", "reproduce", "--help"],
    ] {
        let out = airmile(command);
        assert!(out.status.success());
        assert!(text(&out.stdout).contains("Examples:"), "{command:?}");
    }
}

#[test]
fn a_sample_is_diagnosed_as_the_truth_says() {
    for (scenario, verdict) in [
        ("sample-download", "radio"),
        ("sample-rate-limited", "not_radio"),
        ("sample-video", "not_radio"),
        ("sample-upload", "radio"),
    ] {
        let (_keep, run) = sample(scenario);
        let log = path(&run, "modem.mi2log");
        let transfers = path(&run, "transfers.csv");
        let answer = document("diagnose", &["diagnose", &log, "--transfers", &transfers]);
        assert_eq!(answer["session"]["verdict"], verdict, "{scenario}");
        let truth = fs::read_to_string(run.join("transfer_truth.csv")).unwrap();
        for (found, line) in
            answer["transfers"].as_array().unwrap().iter().zip(truth.lines().skip(1))
        {
            let mut fields = line.split(',');
            assert_eq!(found["id"], fields.next().unwrap());
            let true_ms: f64 = fields.next().unwrap().parse().unwrap();
            let duration_ms = found["duration_ms"].as_f64().unwrap();
            let found_ms = found["throughput_time_ms"].as_f64().unwrap();
            assert!((found_ms - true_ms).abs() <= 0.02 * duration_ms, "{found_ms} {line}");
            let shares: f64 =
                found["shares"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum();
            assert!((shares - duration_ms).abs() < 1e-6, "shares add up to the duration");
        }
    }
}

#[test]
fn documents_have_what_the_contract_says() {
    let (_keep, run) = sample("sample-video");
    let log = path(&run, "modem.mi2log");
    let inspect = document("inspect", &["inspect", &log]);
    let file = &inspect["files"][0];
    assert_eq!(file["kind"], "modem_log_hdlc");
    assert!(file["start_us"].as_i64() < file["end_us"].as_i64());
    let codes: Vec<&str> =
        file["messages"].as_array().unwrap().iter().map(|m| m["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"0xB173"), "{codes:?}");
    assert!(!inspect["can_answer"].as_array().unwrap().is_empty());
    assert!(inspect["missing"][0]["how_to_capture"].is_string());

    let radio = document("radio", &["radio", &log]);
    let transfer = radio["transfers"][0].as_object().unwrap();
    for field in [
        "id",
        "dir",
        "start_us",
        "end_us",
        "start_tti",
        "end_tti",
        "duration_ms",
        "bytes",
        "throughput_time_ms",
        "sched_wait_ms",
        "limited_ms",
        "granted_ms",
        "active_time_ms",
        "unknown_ms",
        "link_demand",
        "link_throughput_bps",
        "evidence",
        "verdict",
        "confidence",
    ] {
        assert!(transfer.contains_key(field), "{field}");
    }
    assert!(transfer["sched_wait_ms"].is_null(), "a phone cannot measure it on the downlink");
    let burst = radio["bursts"][0].as_object().unwrap();
    for field in ["dir", "start_tti", "end_tti", "bytes", "opened_by", "closed_by"] {
        assert!(burst.contains_key(field), "{field}");
    }
    document("lab_run", &["lab", "run", "sample-video", "--force", "-o", run.to_str().unwrap()]);
    // One without known ends.
    let rows = document("lab_reproduce", &["lab", "reproduce", "bursttracker-fig3", "--quick"]);
    let rows = rows["experiments"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["paper"] == 100.0), "{rows:?}");
}

#[test]
fn experiments_are_listed_and_run_by_name() {
    let list = airmile(&["lab", "reproduce", "--list"]);
    assert!(text(&list.stdout).contains("bursttracker-table1"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let run = airmile(&["lab", "reproduce", "bursttracker-fig3", "--quick", "-o", out]);
    let printed = text(&run.stdout);
    assert!(printed.contains("whole TTIs: busy TTIs that one user has"), "{printed}");
    assert!(dir.path().join("reproduce.csv").is_file());
    assert_eq!(status(&["lab", "reproduce", "figure-99"]), 2);
}

#[test]
fn every_kind_of_evidence_can_be_asked_for() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    for (choice, evidence) in [
        ("auto", "fused"),
        ("poll", "poll"),
        ("padding", "padding"),
        ("grants", "grants"),
        ("paper", "paper"),
    ] {
        let radio = document("radio", &["radio", &log, "--evidence", choice]);
        let downlink = radio["transfers"].as_array().unwrap().iter().find(|t| t["dir"] == "dl");
        assert_eq!(downlink.unwrap()["evidence"], evidence);
    }
}

#[test]
fn exit_statuses() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    assert_eq!(status(&["diagnose", &log]), 0);
    assert_eq!(status(&["diagnose", &log, "--fail-if", "session.verdict == radio"]), 1);
    assert_eq!(status(&["diagnose", &log, "--fail-if", "link_demand < 0.1"]), 0);
    assert_eq!(status(&["diagnose", &log, "--fail-if", "linkdemand < 0.1"]), 2);
    assert_eq!(status(&["diagnose"]), 2);
    assert_eq!(status(&["radio", &log, "--evidence", "guess"]), 2);
    assert_eq!(status(&["decode", &log, "--only", "nothing"]), 2);
    assert_eq!(status(&["diagnose", "/no/such/file"]), 3);

    let mut bytes = fs::read(&log).unwrap();
    // A rotated log starts in the middle of a frame: no damage.
    let torn = path(&run, "torn.mi2log");
    fs::write(&torn, &bytes[100..]).unwrap();
    assert_eq!(status(&["diagnose", &torn]), 0);
    // One that ends in the middle of a frame has lost it.
    fs::write(&torn, &bytes[..bytes.len() - 100]).unwrap();
    let out = airmile(&["diagnose", &torn]);
    assert_eq!(out.status.code(), Some(4));
    assert!(text(&out.stderr).contains("last HDLC frame is torn"), "{}", text(&out.stderr));
    // Changed bytes in the middle are damage.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 400].iter_mut().for_each(|b| *b ^= 0x5a);
    let damaged = path(&run, "damaged.mi2log");
    fs::write(&damaged, bytes).unwrap();
    let out = airmile(&["diagnose", &damaged]);
    assert_eq!(out.status.code(), Some(4));
    assert!(text(&out.stdout).contains("Verdict: radio"), "what is readable is still used");
    assert!(text(&out.stderr).contains("byte "), "{}", text(&out.stderr));
}

#[test]
fn errors_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (path, says) in [
        (file("empty.mi2log", b""), "is empty"),
        (file("a.isf", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), ".dlf"),
        (file("a.png", b"\x89PNG\r\n\x1a\n"), "is a picture"),
        (file("a.csv", b"tti,dir\n1,dl\n"), "no known kind"),
    ] {
        let out = airmile(&["diagnose", &path]);
        assert_eq!(out.status.code(), Some(3), "{path}");
        assert!(text(&out.stderr).contains(says), "{path}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty());
        let out = airmile(&["inspect", &path]);
        assert_eq!(out.status.code(), Some(3), "inspect {path}");
        assert!(text(&out.stderr).contains(says), "{path}: {}", text(&out.stderr));
    }
}

/// A capture alone gets a verdict or candidates; one without a packet is refused.
#[test]
fn a_capture_alone() {
    let dir = tempfile::tempdir().unwrap();
    let run = path(dir.path(), "run");
    assert_eq!(status(&["lab", "run", "wireline-limited", "-o", &run]), 0);
    let phone = path(&dir.path().join("run"), "phone.pcapng");
    let out = airmile(&["diagnose", &phone]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    assert!(shown.starts_with("By packets alone, a slower link before the radio was"), "{shown}");
    assert!(shown.contains("Probabilities: wireline "), "{shown}");
    let page = path(dir.path(), "page.html");
    assert_eq!(status(&["diagnose", &phone, "--html", &page]), 0);
    assert_eq!(status(&["diagnose", &phone, "--perfetto", &path(dir.path(), "t")]), 0);
    let seen = document("inspect", &["inspect", &phone]);
    let answers = seen["can_answer"].to_string();
    assert!(answers.contains("possible bottleneck (`airmile diagnose`)"), "{answers}");
    assert!(text(&airmile(&["inspect", &phone]).stdout).contains(" frames, 0 bad"));

    let server = path(&dir.path().join("run"), "server.pcapng");
    let out = airmile(&["diagnose", &server]);
    assert_eq!(out.status.code(), Some(0));
    let shown = text(&out.stdout);
    // The queue that the server's round trips show may be a line's or a cell's.
    assert!(shown.starts_with("No verdict by packets alone"), "{shown}");
    let both = shown.contains("Probabilities: wireline 74 %, radio 25 %");
    assert!(both && shown.contains("capture at the phone"), "{shown}");

    let empty = dir.path().join("a.pcap");
    fs::write(&empty, b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0").unwrap();
    let empty = empty.to_str().unwrap();
    let out = airmile(&["diagnose", empty]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("no IP packets"), "{}", text(&out.stderr));
    assert_eq!(status(&["inspect", empty]), 3);
}

#[test]
fn numbers_under_zero_are_told_of() {
    for args in [
        &["radio", "x", "--pause-ms", "-1"][..],
        &["diagnose", "x", "--min-bytes", "-1"],
        &["diagnose", "x", "--from", "-5"],
        &["decode", "x", "--to", "-0.5"],
        &["radio", "x", "--sim", "-1"],
        &["packets", "x", "--idle-s", "-1"],
    ] {
        let out = airmile(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let message = text(&out.stderr);
        assert!(message.contains("give a number of 0 or more"), "{args:?}: {message}");
    }
    let out = airmile(&["radio", "x", "--radio-at-least", "-0.1"]);
    assert!(text(&out.stderr).contains("give a share between 0 and 1"));
}

/// `airmile diagnose X 2>&1 | head -1`: a reader that closes early is no failure.
#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    let damaged = path(&run, "damaged.mi2log");
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 400].iter_mut().for_each(|b| *b ^= 0x5a);
    fs::write(&damaged, bytes).unwrap();
    for args in [
        &["diagnose", damaged.as_str()][..],
        &["decode", &damaged],
        &["decode", &damaged, "--format", "csv", "--only", "grant"],
        &["diagnose", "/no/such/file"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_airmile"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status()
            .unwrap();
        let quiet = if args[1] == damaged { 0 } else { 3 };
        assert_eq!(status.code(), Some(quiet), "{args:?}");
    }
}

/// `-V` is one line for scripts; `--version` begins with it and describes the build.
#[test]
fn version_names_the_build() {
    let short = text(&airmile(&["-V"]).stdout);
    let long = text(&airmile(&["--version"]).stdout);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(short.lines().collect::<Vec<_>>(), lines[..1], "{long}");

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let git = Command::new("git").arg("-C").arg(&root).args(["rev-parse", "HEAD"]).output();
    let number = env!("CARGO_PKG_VERSION");
    let (version, commit) = match git {
        Ok(git) if git.status.success() && root.join(".git").exists() => {
            let commit = text(&git.stdout).trim().to_owned();
            (format!("airmile {number} ({})", &commit[..10]), commit)
        }
        _ => (format!("airmile {number}"), "unknown".to_owned()),
    };
    let features =
        if cfg!(feature = "bpf") { "features: bpf network" } else { "features: network" };
    assert_eq!(lines[..3], [version.as_str(), &format!("commit: {commit}"), features], "{long}");
    let target = lines[3].strip_prefix("target: ").unwrap();
    assert!(target.contains(std::env::consts::ARCH), "{long}");
    assert_eq!(lines.len(), 4, "{long}");
}

/// Names of rates are the glossary's in all outputs.
#[test]
fn rates_have_one_name_each() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    let answer = document("diagnose", &["diagnose", &log]);
    let shown = text(&airmile(&["diagnose", &log]).stdout);
    let table = text(&airmile(&["radio", &log]).stdout);
    let transfer = &answer["transfers"][0];
    let carried = transfer["link_throughput_bps"].as_f64().unwrap() / 1e6;
    let link = format!("{carried:.2}");
    // A report has one rate of the link, from which durations without a cause are computed.
    let rates: Vec<&str> = shown.split("the link's rate ").skip(1).collect();
    let [rate] = rates.as_slice() else { panic!("{shown}") };
    let rate: f64 = rate.split(' ').next().unwrap().parse().unwrap();
    assert!((1.0..1.25).contains(&(rate / carried)), "{rate} {carried}");
    assert!(table.contains("link throughput Mbit/s") && table.contains(&link), "{table}");
}

#[test]
fn decode_writes_lines_tables_and_parquet() {
    let (_keep, run) = sample("sample-upload");
    let log = path(&run, "modem.mi2log");
    let lines = airmile(&["decode", &log]);
    for line in text(&lines.stdout).lines().take(1_000) {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(record["type"].is_string());
    }
    let csv = airmile(&["decode", &log, "--only", "grant", "--format", "csv"]);
    let header = text(&csv.stdout).lines().next().unwrap().to_owned();
    assert!(header.starts_with("tti,time_us,"), "{header}");
    let out = path(&run, "tables");
    assert_eq!(status(&["decode", &log, "-o", &out]), 0);
    for table in ["grant", "rlc", "buffer_status", "measurement"] {
        assert!(Path::new(&out).join(format!("{table}.parquet")).exists(), "{table}");
    }
}

#[test]
fn standard_input_and_limits() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    let piped = Command::new(env!("CARGO_BIN_EXE_airmile"))
        .args(["diagnose", "-", "--json"])
        .stdin(fs::File::open(&log).unwrap())
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    let whole = document("diagnose", &["diagnose", &log]);
    assert_eq!(piped["transfers"], whole["transfers"]);
    let part = document("diagnose", &["diagnose", &log, "--from", "1", "--to", "2"]);
    let duration_ms = part["transfers"][0]["duration_ms"].as_f64().unwrap();
    assert!((900.0..=1_000.0).contains(&duration_ms), "{duration_ms}");
}

/// The files written in addition to the result: created, containing the verdict, while the result
/// is the same as without them.
#[test]
fn live_tells_each_burst_and_transfer_of_standard_input() {
    let (_dir, run) = sample("sample-rate-limited");
    let log = run.join("modem.mi2log");
    let live = |args: &[&str]| {
        let input = fs::File::open(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        let out = command.arg("live").args(args).stdin(input).output().unwrap();
        assert_eq!(out.status.code(), Some(0));
        text(&out.stdout)
    };
    let whole = airmile(&["radio", log.to_str().unwrap(), "--json"]);
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    let (bursts, transfers) = (&whole["bursts"], &whole["transfers"]);
    let n = |of: &Value| of.as_array().unwrap().len();
    let lines = live(&[]);
    let with = |word: &str| lines.lines().filter(|line| line.contains(word)).count();
    assert!(with(" burst of ") >= n(bursts) && n(bursts) > 0, "{lines}");
    assert!(with(" transfer ") >= n(transfers) && n(transfers) > 0, "{lines}");
    let events = live(&["--json"]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decided = events.filter(|e| e["event"] == "burst" && e["state"] == "decided").count();
    assert_eq!(decided, n(bursts));
    // Other addresses need a token; options for files are refused.
    assert_eq!(status(&["live", "--listen", "0.0.0.0:0"]), 2);
    assert_eq!(status(&["live", "--transfers", "x.csv"]), 2);
    assert_eq!(status(&["live", "--port", "a", "--follow", "b"]), 2);
}

#[test]
fn a_scrubbed_copy_comes_with_a_manifest_and_is_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let capture =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture/http.pcap");
    let copy = path(dir.path(), "copy.pcap");
    let args = ["scrub", capture.to_str().unwrap(), "-o", &copy];
    let report = document("scrub", &args);
    assert_eq!(report["files"][0]["output"], "copy.pcap");
    let manifest: Value =
        serde_json::from_slice(&fs::read(format!("{copy}.manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest, report);
    assert!(fs::read_to_string(format!("{copy}.key")).unwrap().starts_with("airmile-scrub-key-1 "));
    // The copy can be diagnosed.
    assert_eq!(document("packets", &["packets", &copy])["tcp_flows"], 1);
    let again = airmile(&args);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("exists already"));
    // The status shows damage.
    let torn = path(dir.path(), "torn.pcap");
    let whole = fs::read(&capture).unwrap();
    fs::write(&torn, &whole[..whole.len() - 3]).unwrap();
    let out = path(dir.path(), "torn-copy.pcap");
    let key = format!("{copy}.key");
    assert_eq!(status(&["scrub", &torn, "-o", &out, "--key", &key]), 4);
    assert_eq!(status(&["scrub", &torn, "-o", "-"]), 2);
}

/// Errors of CLAW's commands, and how to get what a plain build lacks.
#[test]
fn an_engine_needs_python_and_a_directory() {
    let capture = ["packets", "day.pcap", "--engine", "ray"];
    assert_eq!(status(&capture), 2, "without --out");
    assert_eq!(status(&["packets", "day.pcap", "--out", "x", "--workers", "2"]), 2);
    let clash = ["--out", "x", "--html", "y.html"];
    assert_eq!(status(&[&capture[..], &clash].concat()), 2);
    let done = Command::new(env!("CARGO_BIN_EXE_airmile"))
        .args([&capture[..], &["--out", "x"]].concat())
        .env("AIRMILE_PYTHON", "/nonexistent/python3")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(3));
    let message = text(&done.stderr);
    assert!(
        message.contains("--engine needs Python") && message.contains("AIRMILE_PYTHON"),
        "{message}"
    );
}
