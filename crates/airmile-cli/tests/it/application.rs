//! Application logs with the command: exit statuses, queries of URLs, documents that match their
//! schemas.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn airmile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmile")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn sample(name: &str) -> String {
    let samples = "../airmile-capture/tests/it/application";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(samples).join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn exit_statuses() {
    let dir = tempfile::tempdir().unwrap();
    let torn = dir.path().join("torn.har");
    let whole = std::fs::read(sample("chrome.har")).unwrap();
    std::fs::write(&torn, &whole[..whole.len() - 300]).unwrap();
    let other = dir.path().join("other.json");
    std::fs::write(&other, r#"{"a": 1}"#).unwrap();
    let (torn, other) = (torn.to_str().unwrap(), other.to_str().unwrap());
    let (har, iperf3) = (&sample("chrome.har"), &sample("iperf3-server.json"));
    let check = |args: &[&str], expected: i32| {
        assert_eq!(airmile(args).status.code(), Some(expected), "{args:?}");
    };
    check(&["diagnose", har], 0);
    check(&["diagnose", har, "--fail-if", "duration_ms > 1000"], 1);
    check(&["diagnose", har, "--fail-if", "duration_ms > 5000"], 0);
    check(&["inspect", har, iperf3], 0);
    check(&["radio", har], 3);
    check(&["decode", har], 3);
    check(&["diagnose", other], 3);
    check(&["diagnose", torn], 4);
    check(&["inspect", torn], 4);
}

#[test]
fn a_har_of_other_types_is_an_error_with_offset_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.har");
    let path = file.to_str().unwrap();
    let check = |text: &str, status: i32, error: &str| {
        std::fs::write(&file, text).unwrap();
        let out = airmile(&["diagnose", path]);
        let errors = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{text}\n{errors}");
        assert!(errors.contains(error), "{text}\n{errors}");
    };
    let none = "page.har: byte 18: log.entries: expected an array, found a text; nothing could";
    check(r#"{"log":{"entries":"x"}}"#, 3, none);
    let entry =
        r#"{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"request":{"url":"https://a/"}}"#;
    let bad = entry.replace("\"https://a/\"", "7");
    let error = "byte 19: request.url: expected a text, found a number; the entry is left out";
    check(&format!(r#"{{"log":{{"entries":[{bad}]}}}}"#), 3, error);
    check(r#"{"log":{"entries":[]}}"#, 3, "page.har: the log has no entries");
    // The others are read.
    check(&format!(r#"{{"log":{{"entries":[{bad},{entry}]}}}}"#), 4, error);
    check(&format!(r#"{{"log":{{"entries":[{entry}]}}}}"#), 0, "");
}

#[test]
fn urls_whole_with_v_alone() {
    let printed = |args: &[&str]| String::from_utf8(airmile(args).stdout).unwrap();
    let har = &sample("chrome.har");
    for args in [&["diagnose", har.as_str()][..], &["diagnose", har, "--json"]] {
        let text = printed(args);
        assert!(text.contains("https://a.example/?…") && !text.contains("secret"), "{text}");
    }
    assert!(printed(&["diagnose", har, "-v"]).contains("https://a.example/?session=secret"));
}

#[test]
fn documents_are_as_their_schemas_say() {
    let schemas = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for name in ["inspect", "diagnose"] {
        let schema = std::fs::read_to_string(schemas.join(format!("{name}.json"))).unwrap();
        let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
        for file in ["chrome.har", "netlog.json", "later.sqlog", "dashjs.jsonl", "access.log"] {
            let out = airmile(&[name, &sample(file), "--json"]);
            let document: Value = serde_json::from_slice(&out.stdout).unwrap();
            let errors: Vec<_> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{name} {file}: {errors:#?}");
        }
    }
}
