//! `airmile packets --html`: the page, its document against the schema, and errors.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use airmile::{Document, PacketOptions, Progress, study};
use serde_json::Value;

/// A capture of one HTTP request: five packets.
fn sample() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture/http.pcap")
}

fn airmile(args: &[&str], stdin: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
    command.arg("packets").args(args).stdin(stdin).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn the_document_is_as_its_schema_says() {
    let options = PacketOptions::default();
    let (study, _) = study(&[sample()], &options, &[], &Progress::default()).unwrap();
    let document = serde_json::to_value(Document::new("study", &study)).unwrap();
    let schema = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/study.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(document["flows"].as_array().unwrap().len(), 1);
}

#[test]
fn the_page_is_made_beside_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (sample, html) = (sample(), path(dir.path(), "study.html"));
    let capture = sample.to_str().unwrap();
    let alone = airmile(&[capture, "--json"], Stdio::null());
    let both = airmile(&[capture, "--json", "--html", &html, "--flow", "0"], Stdio::null());
    assert_eq!((both.status.code(), text(&both.stderr)), (Some(0), String::new()));
    assert_eq!(alone.stdout, both.stdout);
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("<title>http.pcap - airmile</title>"));
    assert!(page.contains("id=\"airmile-study\">"));
}

#[test]
fn standard_input_gives_all_but_the_flows() {
    let dir = tempfile::tempdir().unwrap();
    let html = path(dir.path(), "study.html");
    let stdin = Stdio::from(File::open(sample()).unwrap());
    let out = airmile(&["-", "--html", &html], stdin);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(fs::read_to_string(&html).unwrap().contains("id=\"airmile-study\">"));
}

#[test]
fn a_damaged_capture_gives_a_page_and_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let (cut, html) = (path(dir.path(), "cut.pcap"), path(dir.path(), "study.html"));
    let whole = fs::read(sample()).unwrap();
    fs::write(&cut, &whole[..whole.len() - 3]).unwrap();
    assert_eq!(airmile(&[&cut, "--html", &html], Stdio::null()).status.code(), Some(4));
    assert!(fs::metadata(&html).unwrap().len() > 10_000);
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (sample, html) = (sample(), path(dir.path(), "study.html"));
    let capture = sample.to_str().unwrap();
    for (args, words) in [
        (&[capture, "--flow", "0"][..], "--html"),
        (&[capture, "--html", &html, "--flow", "10.0.0.1"], "10.0.0.1:40000-192.0.2.1:443"),
        (&[capture, "--html", &html, "--flow", "99"], "--flow 99: no such flow"),
        (&[capture, "--html", capture], "is one of the files to read"),
        (&[capture, "--html", "-"], "name a file"),
    ] {
        let out = airmile(args, Stdio::null());
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(words), "{args:?}: {message}");
    }
    assert!(!Path::new(&html).exists(), "no file is left");
}

/// The terminal's table and the page's facts state the same rate: payload over duration.
#[test]
fn a_flow_has_one_rate() {
    let (_keep, run) = crate::command::sample("page-slow-server");
    let capture = run.join("server.pcapng");
    let (study, _) =
        study(std::slice::from_ref(&capture), &PacketOptions::default(), &[], &Progress::default())
            .unwrap();
    let document = serde_json::to_value(Document::new("study", &study)).unwrap();
    let shown = text(&airmile(&[capture.to_str().unwrap()], Stdio::null()).stdout);
    let flows = document["flows"].as_array().unwrap();
    assert!(flows.len() >= 3, "{}", flows.len());
    for flow in flows {
        let fact = |name: &str| flow["facts"][name].as_f64().unwrap();
        let rate = format!("{:.2}", fact("bytes") * 8.0 / fact("duration_ms") / 1e3);
        let id = flow["flow"].to_string();
        let row = shown.lines().find(|line| line.split_whitespace().next() == Some(&id)).unwrap();
        assert!(row.split_whitespace().any(|cell| cell == rate), "{rate}: {row}");
    }
}
