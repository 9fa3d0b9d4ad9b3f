//! Application logs in `diagnose` and `inspect`: alone, and with a modem log.

use std::path::{Path, PathBuf};

use airmile::model::{Direction, PlayerEventKind, TimeBase, Verdict};
use airmile::{Diagnosis, Error, Inputs, Limits, Progress, RadioOptions, diagnose, inspect, radio};

use crate::common::diagnosis_of;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../airmile-capture/tests/it/application").join(name)
}

fn inputs(files: &[PathBuf]) -> Inputs {
    Inputs { files: files.to_vec(), ..Inputs::default() }
}

/// A log alone: its transfers, the overlapping ones, and a part of the sentence.
#[test]
fn alone_it_tells_what_it_can_and_no_more() {
    let check = |name: &str, transfers: usize, overlapped: usize, says: &str| {
        let answer = diagnosis_of(&[sample(name)]);
        let session = &answer.session;
        assert_eq!((session.verdict, session.confidence), (Verdict::Unknown, 0.0), "{name}");
        assert!(session.says.contains(says), "{name}: {}", session.says);
        assert_eq!(answer.transfers.len(), transfers, "{name}");
        let n = answer.transfers.iter().filter(|t| t.finding.overlapped).count();
        assert_eq!(n, overlapped, "{name}");
        for transfer in &answer.transfers {
            assert_eq!(transfer.verdict, Verdict::Unknown);
            let sum: f64 = transfer.shares.values().sum();
            assert!((sum - transfer.finding.duration_ms).abs() < 1e-6, "{name}: {sum}");
            assert!(!transfer.evidence.is_empty() && !transfer.next_step.is_empty());
        }
        assert_eq!(answer.missing.len(), 2, "{name}");
        assert_eq!(answer.applications.len(), 1);
    };
    check("chrome.har", 2, 0, "2 transfers, 1.61 MB in 1.5 s of transfers, 8.68 Mbit/s; 1 more");
    check("firefox.har", 2, 0, "2 transfers");
    check("netlog.json", 4, 0, "4 transfers, 3.20 MB in 446 ms of");
    check("later.sqlog", 2, 0, "2 transfers, 0.05 MB");
    check("lab.jsonl", 2, 0, "playback stalled 1 time, 0.5 s; 1 change of bitrate");
    check("dashjs.jsonl", 3, 0, "playback stalled 1 time, 1.4 s");
    check("access.log", 3, 0, "3 transfers, 3.59 MB in 5.2 s of transfers");
    check("iperf3-client-reverse.json", 1, 0, "1 transfer, 25.43 MB in 2.0 s");
}

#[test]
fn urls_are_told_without_their_query_unless_asked() {
    let answer = diagnosis_of(&[sample("chrome.har")]);
    let names: Vec<_> = answer.transfers.iter().map(|t| t.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["https://a.example/?…", "https://cdn.example/v/1.m4s?…"]);
    assert!(!serde_json::to_string(&answer).unwrap().contains("secret"));
    let whole = Inputs { whole_urls: true, ..inputs(&[sample("chrome.har")]) };
    let answer = diagnose(&whole, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(answer.transfers[0].name.as_deref(), Some("https://a.example/?session=secret"));
}

/// WebPageTest's first request may be to another host: a check of certificates.
#[test]
fn a_page_has_its_own_url() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.har");
    let text = std::fs::read_to_string(sample("chrome.har")).unwrap();
    assert_eq!(diagnosis_of(&[sample("chrome.har")]).pages[0].url, "https://a.example/?…");
    let own = r#""_URL":"https://b.example/?session=secret""#;
    std::fs::write(&path, text.replace(r#""title":"a""#, own)).unwrap();
    assert_eq!(diagnosis_of(&[path]).pages[0].url, "https://b.example/?…");
}

#[test]
fn a_version_of_qlog_that_is_not_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.qlog");
    let text = r#"{"qlog_version":"draft-00","traces":[{"events":[[0,"transport","x",{}]]}]}"#;
    std::fs::write(&path, text).unwrap();
    let files = inputs(&[path]);
    let error = diagnose(&files, &RadioOptions::default(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::NothingToAnalyse(_)), "{error}");
    assert!(error.to_string().contains("qlog draft-00: 1 events are arrays"), "{error}");
}

#[test]
fn phases_are_evidence_and_setup_a_share() {
    let answer = diagnosis_of(&[sample("chrome.har")]);
    let first = &answer.transfers[0];
    // 12 ms of name lookup, 80 of handshakes.
    assert_eq!(first.shares["setup"], 92.0);
    let side = first.application.as_ref().unwrap();
    assert_eq!((side.connect_ms, side.tls_ms, side.wait_ms), (Some(39.0), Some(41.0), Some(60.0)));
    let phases = "by the application's own log: in its own queue 2 ms, name lookup 12 ms, \
                  connecting 39 ms, TLS 41 ms, sending 1 ms, wait for the first byte 60 ms, \
                  receiving 16 ms";
    assert!(first.evidence.iter().any(|item| item.what == phases), "{:#?}", first.evidence);
    assert!(first.next_step.contains("reuse connections"), "{}", first.next_step);
    // As in Python: a row per transfer, with or without phases.
    let table = airmile::ArrowTable::of_rows("transfers", &answer.transfers).unwrap();
    assert_eq!(table.n_rows(), 2);
}

/// Browsers count an upload as the wait for its answer.
#[test]
fn an_upload_is_no_wait_for_the_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(sample("firefox.har")).unwrap();
    let timings = r#""timings": { "send": 0, "wait": 880, "receive": 20 }, "time": 900"#;
    let har = dir.path().join("upload.har");
    std::fs::write(&har, text.replace(r#""time": 900"#, timings)).unwrap();
    let answer = diagnosis_of(&[har]);
    let upload = &answer.transfers[1];
    let side = upload.application.as_ref().unwrap();
    assert_eq!((side.send_ms, side.wait_ms), (Some(0.0), Some(880.0)));
    let phases = "by the application's own log: sending and the wait for the answer 880 ms, \
                  receiving 20 ms";
    assert!(upload.evidence.iter().any(|item| item.what == phases), "{:#?}", upload.evidence);
    // 130 of 1040 ms: those of the document.
    assert!(answer.session.says.contains("12 % of the"), "{}", answer.session.says);
}

#[test]
fn a_stall_is_evidence_of_the_transfer_that_it_is_in() {
    let answer = diagnosis_of(&[sample("lab.jsonl")]);
    let [first, second] = answer.transfers.as_slice() else { panic!() };
    let words = |t: &airmile::TransferDiagnosis| {
        t.evidence.iter().map(|item| item.what.clone()).collect::<Vec<_>>().join("\n")
    };
    assert!(!words(first).contains("playback stalled"));
    // From 4700 to 5230 ms; the part until 5200 is in the transfer.
    assert!(words(second).contains("stalled for 500 ms of it (1 stall)"), "{}", words(second));
    let stall = second.evidence.iter().find(|item| item.what.contains("stalled")).unwrap();
    assert_eq!((stall.from_tti.0, stall.to_tti.0), (4_700, 5_200));
    let summary = &answer.applications[0];
    assert_eq!((summary.stalls, summary.stalled_ms, summary.switches), (1, 530.0, 1));
    assert_eq!(summary.events.iter().filter(|e| e.kind == PlayerEventKind::Buffer).count(), 1);
}

#[test]
fn limits_on_the_time_count_from_the_logs_start() {
    let limits =
        Limits { from: Some(airmile::TimePoint::parse("0.5").unwrap()), ..Limits::default() };
    let options = RadioOptions { limits, ..RadioOptions::default() };
    let answer = diagnose(&inputs(&[sample("lab.jsonl")]), &options, &Progress::default()).unwrap();
    let ids: Vec<_> = answer.transfers.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["segment-2"]);
}

/// Transfers of the lab's players are those of its table, and get the same verdicts if the
/// application's log gives their times.
#[test]
fn beside_a_modem_log_it_says_which_transfers_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("sample-video", None, &run).unwrap();
    let by_table = diagnosis_of(&[run.join("modem.mi2log"), run.join("transfers.csv")]);
    let by_log = diagnosis_of(&[run.join("modem.mi2log"), run.join("app.jsonl")]);
    assert_eq!(by_log.transfers_from, "given");
    let verdicts = |answer: &Diagnosis| {
        answer.transfers.iter().map(|t| (t.id.clone(), t.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&by_log), verdicts(&by_table));
    assert!(by_log.applications[0].gave_transfers);
    // An additional table takes precedence.
    let files = ["modem.mi2log", "app.jsonl", "transfers.csv"].map(|name| run.join(name));
    let both = diagnosis_of(&files);
    assert!(!both.applications[0].gave_transfers);
    assert_eq!(verdicts(&both), verdicts(&by_table));
    assert!(both.transfers.iter().all(|t| t.application.is_some()));

    // A clock that is an hour off, and the offset that corrects it.
    const HOUR_NS: i64 = 3_600_000_000_000;
    let text = std::fs::read_to_string(run.join("app.jsonl")).unwrap();
    let late = text.lines().map(|line| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["at_ns"] = (value["at_ns"].as_i64().unwrap() + HOUR_NS).into();
        format!("{value}\n")
    });
    let path = dir.path().join("late.jsonl");
    std::fs::write(&path, late.collect::<String>()).unwrap();
    let mended =
        Inputs { application_offset_ns: -HOUR_NS, ..inputs(&[run.join("modem.mi2log"), path]) };
    let mended = diagnose(&mended, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(verdicts(&mended), verdicts(&by_table));
}

#[test]
fn radio_needs_more_than_an_applications_log() {
    let files = inputs(&[sample("chrome.har")]);
    let error = radio(&files, &RadioOptions::default(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::NothingToAnalyse(_)), "{error}");
}

#[test]
fn inspect_says_what_a_log_holds() {
    let report =
        inspect(&inputs(&[sample("iperf3-server.json")]), Limits::default(), &Progress::default())
            .unwrap();
    assert_eq!((report.files[0].kind.as_ref(), report.files[0].items), ("iperf3", 3));
    assert_eq!(report.files[0].records["rate"], 3);
    assert!(report.can_answer[0].starts_with("how long transfers took"), "{report:?}");
    let missing: Vec<_> = report.missing.iter().map(|missing| missing.what.as_str()).collect();
    assert!(missing[0].contains("radio link") && missing[1].contains("packets"), "{missing:?}");
    assert!(missing[2].contains("to better than a second"), "{missing:?}");
    assert_eq!(report.usable_files, 1);
}

#[test]
fn a_torn_log_is_damage_and_its_rest_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("torn.har");
    let whole = std::fs::read(sample("chrome.har")).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let answer = diagnosis_of(&[path]);
    assert_eq!(answer.transfers.len(), 2);
    assert!(answer.files[0].damaged);
    let problem = answer.files[0].problems.last().unwrap().to_string();
    assert!(problem.contains("the file ends inside log.entries"), "{problem}");
}

#[test]
fn times_without_a_place_are_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("player.jsonl");
    let line = |at: u32, event: &str| {
        format!("{{\"at_ms\":{at},\"event\":\"{event}\",\"loadTaskId\":1,\"bytesLoaded\":50000}}\n")
    };
    std::fs::write(&path, line(10, "onLoadStarted") + &line(110, "onLoadCompleted")).unwrap();
    let answer = diagnosis_of(&[path]);
    assert_eq!(answer.applications[0].clock, TimeBase::Unplaced);
    let transfer = &answer.transfers[0].finding;
    assert_eq!((transfer.start_us, transfer.duration_ms), (None, 100.0));
    assert_eq!(transfer.dir, Direction::Dl);
}

#[test]
fn decode_needs_records() {
    let mut out = Vec::new();
    let options = airmile::DecodeOptions {
        only: std::collections::BTreeSet::new(),
        to: airmile::DecodeTo::JsonLines,
        limits: Limits::default(),
        subscription: None,
    };
    let files = inputs(&[sample("firefox.har")]);
    let error = airmile::decode(&files, &options, &Progress::default(), &mut out).unwrap_err();
    assert!(error.to_string().contains("`airmile diagnose`"), "{error}");
    assert!(out.is_empty());
}

/// A page and a trace: both show requests without any record of the radio.
#[test]
fn a_page_and_a_trace_can_be_made_of_a_log_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (page, trace) = (dir.path().join("a.html"), dir.path().join("a.pftrace"));
    let files = inputs(&[sample("chrome.har")]);
    let export = |exports: airmile::Exports| {
        let options = RadioOptions::default();
        airmile::export(
            &files,
            &options,
            &exports,
            airmile::Subject::Diagnosis,
            &Progress::default(),
        )
    };
    export(airmile::Exports { html: Some(page.clone()), perfetto: None }).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("by the application's own log"));
    export(airmile::Exports { html: None, perfetto: Some(trace.clone()) }).unwrap();
    let bytes = std::fs::read(trace).unwrap();
    let shows = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(shows("What the page waited for") && shows("https://a.example/?"));
}

/// Two logs without a table: the first has the transfers, and both describe the player; a log named
/// for its transfers takes precedence.
#[test]
fn of_two_logs_one_has_the_transfers() {
    let har = sample("chrome.har");
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("sample-rate-limited", None, &run).unwrap();
    let other = dir.path().join("other.jsonl");
    std::fs::copy(run.join("app.jsonl"), &other).unwrap();
    let mut files = inputs(&[run.join("modem.mi2log"), run.join("app.jsonl"), other.clone()]);
    let gave = |files: &Inputs| {
        let answer = diagnose(files, &RadioOptions::default(), &Progress::default()).unwrap();
        answer.applications.iter().map(|one| one.gave_transfers).collect::<Vec<_>>()
    };
    assert_eq!(gave(&files), [true, false]);
    files.files.pop();
    files.transfers = Some(other);
    assert_eq!(gave(&files), [false, true]);
    // A log of another year is refused.
    let refused = |files: &Inputs| {
        let error = diagnose(files, &RadioOptions::default(), &Progress::default()).unwrap_err();
        error.to_string()
    };
    files.files.push(har.clone());
    assert!(refused(&files).contains("does not belong to the modem log"));
    let error = refused(&inputs(&[run.join("modem.mi2log"), har]));
    assert!(error.contains("chrome.har does not belong to the modem log"), "{error}");
}
