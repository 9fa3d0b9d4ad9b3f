//! Budgets of `diagnose`.

use std::fs;
use std::path::PathBuf;

use super::command::{airmile, path, sample, text};

/// A run of the lab whose log is diagnosed.
struct Run {
    _keep: tempfile::TempDir,
    dir: PathBuf,
}

impl Run {
    fn new() -> Self {
        let (_keep, dir) = sample("sample-download");
        Self { _keep, dir }
    }

    fn path(&self, name: &str) -> String {
        path(&self.dir, name)
    }

    /// Exit status and errors of a diagnosis with these options.
    fn diagnosed(&self, options: &[&str]) -> (Option<i32>, String) {
        let out = airmile(&[&["diagnose", &self.path("modem.mi2log")], options].concat());
        (out.status.code(), text(&out.stderr))
    }
}

#[test]
fn a_budget_that_can_never_be_exceeded_is_refused() {
    let run = Run::new();
    let (diagnosed, junit) = (|args: &[&str]| run.diagnosed(args), run.path("budget.xml"));
    let (code, errors) = diagnosed(&["--fail-if", "shares.server > 0.3"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("no cause `server`"), "{errors}");
    let over = ["--fail-if", "shares.radio > 0.5", "--report", "github"];
    let (code, errors) = diagnosed(&[&over[..], &["--report", &format!("junit={junit}")]].concat());
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("shares.radio is 0.9"), "{errors}");
    assert!(errors.contains("::error title=over budget"), "{errors}");
    assert!(fs::read_to_string(&junit).unwrap().contains("<failure message=\"shares.radio is"));
    assert_eq!(diagnosed(&["--report", "github"]).0, Some(2), "a report needs a budget");
}

#[test]
fn a_budget_on_an_absent_value_has_a_status_of_its_own() {
    let run = Run::new();
    let (diagnosed, junit) = (|args: &[&str]| run.diagnosed(args), run.path("budget.xml"));
    // A modem log has no pages.
    let page = ["--fail-if", "page.shares.server > 0.3"];
    let (code, errors) = diagnosed(&[&page[..], &["--report", &format!("junit={junit}")]].concat());
    assert_eq!(code, Some(7), "{errors}");
    let line = "budget cannot be evaluated (page.shares.server > 0.3): session: \
                page.shares.server is absent";
    assert!(errors.contains(line), "{errors}");
    assert!(fs::read_to_string(&junit).unwrap().contains("<error message=\"cannot be evaluated"));
    // One that is exceeded counts more.
    let (code, errors) = diagnosed(&[&page[..], &["--fail-if", "shares.radio > 0.5"]].concat());
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("budget cannot be evaluated"), "{errors}");
    // A modem log alone does not separate causes other than the radio; no time is unknown.
    assert_eq!(diagnosed(&["--fail-if", "shares.wireline > 0.5"]).0, Some(7));
    assert_eq!(diagnosed(&["--fail-if", "shares.unknown > 0.5"]).0, Some(0));
}

/// A report in which all is well is what people look at, not the exit status.
#[test]
fn a_damaged_input_is_an_error_in_the_report() {
    let run = Run::new();
    let junit = run.path("budget.xml");
    let log = fs::read(run.path("modem.mi2log")).unwrap();
    let cut = run.path("cut.mi2log");
    fs::write(&cut, &log[..log.len() / 2 - 3]).unwrap();
    let report = format!("junit={junit}");
    let diagnosed = |file: &str| {
        let out = airmile(&["diagnose", file, "--fail-if", "ms.radio > 1e9", "--report", &report]);
        (out.status.code(), fs::read_to_string(&junit).unwrap())
    };
    let (code, xml) = diagnosed(&cut);
    assert_eq!(code, Some(4), "{xml}");
    assert!(xml.contains("errors=\"1\"") && xml.contains("<error message=\"damaged: "), "{xml}");
    assert!(xml.contains("cut.mi2log"), "{xml}");
    // What cannot be read at all leaves no report of an earlier run.
    let empty = run.path("empty.mi2log");
    fs::write(&empty, "").unwrap();
    let (code, xml) = diagnosed(&empty);
    assert_eq!(code, Some(3), "{xml}");
    assert!(xml.contains("empty.mi2log: the file is empty"), "{xml}");
    // Nor does wrong usage.
    let log = run.path("modem.mi2log");
    for usage in [
        &["--fail-if", "bogus > 3"][..],
        &["--fail-if", "ms.radio > 1e9", "--from", "09:00:08", "--to", "09:00:07"],
    ] {
        fs::remove_file(&junit).unwrap();
        let out = airmile(&[&["diagnose", &log, "--report", &report][..], usage].concat());
        let xml = fs::read_to_string(&junit).unwrap();
        assert_eq!(out.status.code(), Some(2), "{xml}");
        assert!(xml.contains("<testcase name=\"usage\"") && xml.contains("<error"), "{xml}");
    }
}

#[test]
fn a_har_without_transfers_keeps_no_budget() {
    let run = Run::new();
    let har = run.path("none.har");
    fs::write(&har, r#"{"log":{"version":"1.2","entries":[]}}"#).unwrap();
    let out = airmile(&["diagnose", &har, "--fail-if", "page.load_ms > 3000"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let cached = r#"{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"_fromCache":"disk"}"#;
    fs::write(&har, format!(r#"{{"log":{{"version":"1.2","entries":[{cached}]}}}}"#)).unwrap();
    for budget in ["page.load_ms > 3000", "session.verdict == radio", "ms.radio > 5"] {
        let out = airmile(&["diagnose", &har, "--fail-if", budget]);
        assert_eq!(out.status.code(), Some(7), "{budget}: {}", text(&out.stderr));
    }
}
