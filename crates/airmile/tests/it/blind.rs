//! Captures alone, of runs of the lab with a known cause: probabilities, or no verdict and what to
//! capture.

use std::path::{Path, PathBuf};

use airmile::model::Verdict;
use airmile::{Diagnosis, Exports, Inputs, NAMED_FROM, Progress, RadioOptions};
use airmile::{diagnose, export, report};

fn of(files: &[PathBuf]) -> Diagnosis {
    let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

fn files(run: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| run.join(name)).collect()
}

/// For each transfer and the session: probabilities add up to 1, and a named suspect has enough.
#[track_caller]
fn check_sums(answer: &Diagnosis) {
    let transfers = answer.transfers.iter().map(|t| (&t.suspects, t.verdict, t.confidence));
    let session = &answer.session;
    for (suspects, verdict, confidence) in
        transfers.chain([(&session.suspects, session.verdict, session.confidence)])
    {
        if suspects.is_empty() {
            assert_eq!(verdict, Verdict::Unknown);
            continue;
        }
        let sum: f64 = suspects.iter().map(|one| one.probability).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert!(suspects.windows(2).all(|pair| pair[0].probability >= pair[1].probability));
        assert_eq!(verdict != Verdict::Unknown, confidence >= NAMED_FROM);
    }
    for transfer in &answer.transfers {
        let sum: f64 = transfer.shares.values().sum();
        assert!((sum - transfer.finding.duration_ms).abs() < 2.0, "{sum}");
        assert!(!transfer.next_step.is_empty());
    }
}

#[track_caller]
fn check(scenario: &str, expected: Verdict) {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario(scenario, None, &run).unwrap();
    let answer = of(&files(&run, &["phone.pcapng"]));
    assert_eq!(answer.session.verdict, expected, "{scenario}: {}", answer.session.says);
    assert!(answer.missing.iter().any(|one| one.how_to_capture.contains("modem")));
    check_sums(&answer);
}

#[test]
fn lab_runs_by_the_phones_packets_alone() {
    check("busy-file", Verdict::Radio);
    check("wireline-limited", Verdict::Wireline);
    check("rate-limited-server", Verdict::SenderLimited);
    check("receive-window", Verdict::ReceiveWindow);
}

/// Contention and signal are one suspect; the document lists its causes.
#[test]
fn the_radio_is_not_parted() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("busy-file", None, &run).unwrap();
    let answer = of(&files(&run, &["phone.pcapng"]));
    let first = serde_json::to_value(&answer.session.suspects[0]).unwrap();
    assert_eq!(first["suspect"], "radio");
    assert_eq!(first["causes"], serde_json::json!(["radio_contention", "radio_signal"]));

    let html = dir.path().join("page.html");
    let exports = Exports { html: Some(html.clone()), perfetto: None };
    let inputs = Inputs { files: files(&run, &["phone.pcapng"]), ..Inputs::default() };
    export(&inputs, &RadioOptions::default(), &exports, false, &Progress::default()).unwrap();
    assert!(std::fs::read_to_string(html).unwrap().contains("By packets alone"));
    // The page draws the senders on the transfers' axis.
    let inputs = Inputs { files: files(&run, &["phone.pcapng"]), ..Inputs::default() };
    let page = report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let transfers = page.diagnosis.transfers.iter().map(|one| &one.finding);
    let last = transfers.map(|finding| finding.end_tti.0).max().unwrap();
    let drawn = page.lanes.flight_bytes.iter().filter(|point| (0..=last).contains(&point.tti));
    assert!(drawn.count() > 100);
    assert!(page.lanes.rtt_us.iter().all(|point| point.most >= point.least));
}

/// The server's capture shows which host restarts; alone it shows nothing of the air. With the
/// modem log the diagnosis is complete.
#[test]
fn what_other_captures_add() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("slow-start-restart-proxy", None, &run).unwrap();
    let both = of(&files(&run, &["phone.pcapng", "server.pcapng"]));
    check_sums(&both);
    assert_eq!(both.files.len(), 2);
    // The steps of the named transfers state which host restarts.
    let named: Vec<_> =
        both.transfers.iter().filter(|t| t.verdict == Verdict::SlowStartRestart).collect();
    assert!(named.iter().all(|t| t.next_step.contains("bypass the middlebox")), "{named:?}");

    let server = of(&files(&run, &["server.pcapng"]));
    check_sums(&server);
    // How data arrived at the phone is unknown, and therefore also which host restarts slow start
    // there.
    assert_eq!(server.session.verdict, Verdict::Unknown, "{}", server.session.says);
    let sum: f64 = server.session.suspects.iter().map(|one| one.probability).sum();
    assert!(!server.session.suspects.is_empty() && (sum - 1.0).abs() < 1e-6, "{sum}");
    assert!(server.session.says.starts_with("No verdict by packets alone"));
    assert!(server.missing[0].how_to_capture.contains("capture at the phone"));

    let seen = of(&files(&run, &["modem.mi2log", "phone.pcapng"]));
    assert!(seen.session.suspects.is_empty() && seen.session.link_demand.is_some());
}

/// For QUIC only arrivals are visible.
#[test]
fn datagrams_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("quic-file", None, &run).unwrap();
    let answer = of(&files(&run, &["phone.pcapng"]));
    check_sums(&answer);
    assert_eq!(answer.transfers.len(), 1);
    let is_named = answer.transfers[0].evidence.iter().any(|item| item.what.contains("datagrams"));
    assert!(is_named && answer.missing.iter().any(|one| one.what.contains("QUIC")));
}

/// Transfers given with the capture are analysed; their clock may be off.
#[test]
fn the_applications_transfers() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("slow-start-restart", None, &run).unwrap();
    let text = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let later = |at: usize| cells[at].parse::<i64>().unwrap() + 2_000_000;
        rows.push(format!("{},{},{},{}", cells[0], later(1), later(2), cells[5]));
    }
    let log = dir.path().join("player.csv");
    std::fs::write(&log, format!("id,start_us,end_us,bytes\n{}\n", rows.join("\n"))).unwrap();
    let answer = of(&[run.join("phone.pcapng"), log]);
    check_sums(&answer);
    assert_eq!(answer.transfers_from, "given", "{}", answer.session.says);
    assert_eq!(answer.transfers.len(), rows.len());
    assert!(answer.transfers[0].id.ends_with("-1") && answer.transfers[0].finding.bytes > Some(0));
    let first = answer.session.suspects[0].suspect;
    assert!(["slow_start_restart", "other"].contains(&first), "{}", answer.session.says);
    let clock = answer.clocks.iter().find(|clock| clock.file == "transfers").unwrap();
    assert!((clock.offset_ms.unwrap() - 2_000.0).abs() < 50.0, "{clock:?}");
}
