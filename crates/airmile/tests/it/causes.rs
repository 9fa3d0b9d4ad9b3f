//! Captures in addition to the modem log show the cause, on runs of the lab with a known cause, and
//! the duration of the transfer without it.

use std::path::{Path, PathBuf};

use airmile::model::{Cause, Verdict};
use airmile::{Inputs, Progress, RadioOptions, diagnose, radio};

use crate::common::{diagnosis_of, library_run, scenario_run};

fn files(run: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| run.join(name)).collect()
}

/// Milliseconds with and without the injected cause, over all transfers.
fn truth(run: &Path) -> (f64, f64) {
    let text = std::fs::read_to_string(run.join("counterfactuals.csv")).unwrap();
    let rows = text.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        Some((cells[2].parse::<f64>().ok()?, cells[3].parse::<f64>().ok()?))
    });
    rows.fold((0.0, 0.0), |(with, without), row| (with + row.0, without + row.1))
}

#[track_caller]
fn check(scenario: &str, expected: Cause) {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run(scenario, dir.path());
    let answer = diagnosis_of(std::slice::from_ref(&run));
    assert_eq!(answer.session.verdict, Verdict::from(expected), "{}", answer.session.says);
    for transfer in answer.transfers.iter().filter(|t| t.leading.is_some()) {
        let sum: f64 = transfer.shares.values().sum();
        assert!((sum - transfer.finding.duration_ms).abs() < 2.0, "{scenario}: {sum}");
    }
}

/// The PRBs of each carrier are a share of its own cell's: of two LTE carriers the share of both is
/// stated. The bandwidth of an NR cell is in no log: nothing is stated that needs it.
#[test]
fn prbs_are_shares_of_their_own_cells() {
    let dir = tempfile::tempdir().unwrap();
    let answer_of = |scenario| diagnosis_of(&[library_run(scenario, dir.path())]);
    let text = serde_json::to_string(&answer_of("two-carriers")).unwrap();
    assert!(text.contains("% of its 2 cells' PRBs while scheduled"), "{text}");
    let answer = answer_of("nsa-split-bearer");
    // Lone blocks in a transfer without given times take nothing from it.
    let inputs = Inputs {
        files: vec![dir.path().join("nsa-split-bearer/nr_modem.mi2log")],
        ..Inputs::default()
    };
    let found = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let share = found.usage[0].scheduled_share;
    // NR alone: 0.34.
    assert!((0.5..0.55).contains(&share), "{share}");
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(answer.session.verdict, Verdict::Radio, "{text}");
    let is_stated = ["PRBs while scheduled", "held the PRBs", "radio signal", "contention"];
    assert_eq!(is_stated.map(|words| text.contains(words)), [false; 4], "{text}");
    assert!(text.contains("its share of its 2 cells' PRBs is unknown"), "{text}");
    assert!(text.contains("RSRP"), "{text}");
}

#[test]
fn each_cause_is_named() {
    check("busy-file", Cause::RadioContention);
    check("weak-signal", Cause::RadioSignal);
    check("wireline-limited", Cause::Wireline);
    check("receive-window", Cause::ReceiveWindow);
    check("rate-limited-server", Cause::SenderLimited);
    check("upload-beside-download", Cause::UplinkQueue);
    check("slow-start-restart", Cause::SlowStartRestart);
    check("far-server", Cause::FirstSlowStart);
    check("lossy-line", Cause::LossRecoveryCongestion);
    check("lossy-radio", Cause::LossRecoveryRadio);
    check("idle", Cause::Setup);
    check("wireline-behind-proxy", Cause::Wireline);
    check("undesired-slow-start-far", Cause::UndesiredSlowStart);
    // The queue at the base station is never empty: the slow start after the timeout takes 17 % of
    // the time, and the radio takes precedence.
    check("undesired-slow-start", Cause::RadioSignal);
}

/// Without the server's capture a slow link behind a proxy looks like a sender with its own pace,
/// and the report states this.
#[test]
fn a_line_behind_a_proxy_is_not_sure_from_the_phone_alone() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("wireline-behind-proxy", dir.path());
    let answer = diagnosis_of(&files(&run, &["modem.mi2log", "transfers.csv", "phone.pcapng"]));
    assert_eq!(answer.session.verdict, Verdict::SenderLimited, "{}", answer.session.says);
    assert!(answer.session.confidence <= 0.6, "{}", answer.session.confidence);
    let is_proxy = |what: &str| what.contains("behind a proxy");
    assert!(answer.transfers[0].evidence.iter().any(|item| is_proxy(&item.what)));
    assert!(answer.transfers[0].next_step.contains("capture at the server"));
}

/// The leading cause's share has an interval, as has the time without it.
#[test]
fn a_share_has_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let answer = diagnosis_of(&[library_run("receive-window", dir.path())]);
    let session = &answer.session;
    let (share, low, high) = (
        session.leading_share.unwrap(),
        session.leading_share_low.unwrap(),
        session.leading_share_high.unwrap(),
    );
    assert!(low < share && share < high && high - low < 0.2, "{low} {share} {high}");
    let counterfactual = &session.counterfactuals[0];
    assert_eq!(counterfactual.of, Cause::ReceiveWindow);
    assert!(
        counterfactual.low_ms <= counterfactual.ms && counterfactual.ms <= counterfactual.high_ms
    );
}

/// Only the server's capture shows which host restarts, and the gain of a bypass is predicted
/// within 20 %.
#[test]
fn a_middlebox_is_told_by_the_servers_capture() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("slow-start-restart-proxy", dir.path());
    let both = diagnosis_of(&files(
        &run,
        &["modem.mi2log", "transfers.csv", "phone.pcapng", "server.pcapng"],
    ));
    assert_eq!(both.session.verdict, Verdict::SlowStartRestart);
    assert!(both.session.says.contains("by a middlebox"), "{}", both.session.says);

    let phone = diagnosis_of(&files(&run, &["modem.mi2log", "transfers.csv", "phone.pcapng"]));
    assert_eq!(phone.session.verdict, Verdict::SlowStartRestart);
    assert!(phone.session.says.contains("server or a middlebox"), "{}", phone.session.says);

    let server = diagnosis_of(&files(&run, &["modem.mi2log", "transfers.csv", "server.pcapng"]));
    assert_eq!(server.session.verdict, Verdict::NotRadio, "{}", server.session.says);

    let (with, without) = truth(&run);
    let saved: f64 = both
        .transfers
        .iter()
        .filter(|t| t.counterfactual_of == Some(Cause::SlowStartRestart))
        .map(|t| t.finding.duration_ms - t.counterfactual_ms.unwrap())
        .sum();
    assert!((saved / (with - without) - 1.0).abs() < 0.2, "{saved} of {}", with - without);
}

#[test]
fn a_server_that_restarts_is_told_by_its_own_capture() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("slow-start-restart", dir.path());
    let says = |names: &[&str]| diagnosis_of(&files(&run, names)).session.says;
    let whole = diagnosis_of(std::slice::from_ref(&run)).session.says;
    assert!(whole.contains("by the server, "), "{whole}");
    let both = says(&["phone.pcapng", "server.pcapng"]);
    assert!(both.contains("The server restarts it."), "{both}");
    // A middlebox looks like a server to a capture next to it, whether the modem was logged or not.
    let logged = says(&["modem.mi2log", "transfers.csv", "server.pcapng"]);
    assert!(logged.contains("by the server or a middlebox"), "{logged}");
    let alone = says(&["server.pcapng"]);
    assert!(!alone.contains("server restarts") && !alone.contains("by the server,"), "{alone}");
}

/// Runs a test's own scenario into a directory.
const SLOW_LINE: &str = "about = \"a slow line\"\nseed = 5\nduration_ms = 60_000\n\
    [core.down.limit]\nrate_bps = 4_000_000\nqueue_bytes = 150_000\n";

/// Queues are the phone's: parallel transfers from one host are judged as one.
#[test]
fn parallel_downloads_are_named_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let page = "[[apps]]\nname = \"object\"\nstart_ms = 500\nworkload = { kind = \"web\", pages = 1, \
                objects = 5, page_bytes = 5_000_000, depth = 2, lanes = 4 }\n";
    let answer = diagnosis_of(&[scenario_run(&format!("{SLOW_LINE}{page}"), dir.path())]);
    let parallel = answer.transfers.iter().filter(|one| one.finding.overlapped).count();
    assert!(parallel >= 4, "{parallel}");
    assert_eq!(answer.session.verdict, Verdict::Wireline, "{}", answer.session.says);
    assert!(answer.session.leading_share.unwrap() > 0.7, "{}", answer.session.says);
}

/// For QUIC, captures at both ends show the queue on the path, and packet sizes and times show an
/// application that sends little. A slow reader is neither: flow control is encrypted.
#[test]
fn senders_over_quic_are_followed() {
    let check = |start: &str, workload: &str, expected: Verdict| {
        let dir = tempfile::tempdir().unwrap();
        let app = format!(
            "[[apps]]\nname = \"file\"\nstart_ms = 500\ntransport = \"quic\"\nworkload = {workload}\n"
        );
        let answer = diagnosis_of(&[scenario_run(&format!("{start}{app}"), dir.path())]);
        assert_eq!(
            answer.session.verdict, expected,
            "{} {:?}",
            answer.session.says, answer.session.shares
        );
    };
    check(SLOW_LINE, "{ kind = \"file\", bytes = 4_000_000 }", Verdict::Wireline);
    let free = "about = \"a paced server\"\nseed = 6\nduration_ms = 60_000\n";
    let paced = "{ kind = \"paced\", bytes = 3_000_000, rate_bps = 2_000_000 }";
    check(free, paced, Verdict::SenderLimited);
    let read = "{ kind = \"slow-reader\", bytes = 12_000_000, read_rate_bps = 4_000_000 }";
    check(free, read, Verdict::NotRadio);
}

/// Inputs of another time are refused, with the matching offset if there is one.
#[test]
fn transfers_of_another_hour_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("wireline-limited", dir.path());
    let text = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let rows = text.lines().enumerate().map(|(n, line)| {
        let cells: Vec<&str> = line.split(',').collect();
        let later = |cell: &str| match (n, cell.parse::<i64>()) {
            (1.., Ok(us)) => (us + 3_600_000_000).to_string(),
            _ => cell.to_owned(),
        };
        // Without their TTIs, which are on the modem's own clock.
        format!("{},{},{},{}", cells[0], later(cells[1]), later(cells[2]), cells[5])
    });
    let rows: Vec<String> = rows.collect();
    let moved = dir.path().join("moved.csv");
    std::fs::write(&moved, rows.join("\n")).unwrap();
    let inputs = Inputs {
        files: vec![run.join("modem.mi2log")],
        transfers: Some(moved),
        ..Inputs::default()
    };
    let error = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("does not belong to the modem log"), "{message}");
    let added = message.split_once("matches if ").and_then(|(_, rest)| rest.split_once(" s"));
    let added_s: f64 = added.unwrap().0.parse().unwrap();
    assert!((added_s + 3_600.0).abs() < 0.1, "{message}");
}
