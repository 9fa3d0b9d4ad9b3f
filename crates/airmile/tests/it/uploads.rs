//! Causes of uploads, by a modem log and a capture at the phone, on runs of the lab with a known cause.

use std::path::{Path, PathBuf};

use airmile::model::{Direction, Verdict};
use airmile::{Diagnosis, Inputs, Progress, RadioOptions, radio};

use crate::common::{diagnosis_of, scenario_run, without_messages};

/// A cell that carries 20 Mbit/s and more up, behind a path of 30 ms.
const CELL: &str = "duration_ms = 60000\n[cell]\nn_prb = 50\n[link]\nul_snr_mean_db = 18.0\n\
    [uplink]\nmax_prb = 40\n";
const ONE: &str =
    "[[apps]]\nname = \"up\"\nstart_ms = 300\nworkload = { kind = \"upload\", bytes = 1500000 }\n";

fn run(rest: &str, dir: &Path) -> PathBuf {
    scenario_run(&[CELL, rest].concat(), dir)
}

fn answer(run: &Path, capture: &str) -> Diagnosis {
    diagnosis_of(&["modem.mi2log", "transfers.csv", capture].map(|name| run.join(name)))
}

fn answer_of_log(run: &Path) -> Diagnosis {
    diagnosis_of(&["modem.mi2log", "transfers.csv"].map(|name| run.join(name)))
}

/// The verdict by the phone's capture, its share at least, and words of the evidence and the advice.
#[track_caller]
fn check(rest: &str, expected: Verdict, share: f64, [evidence, advice]: [&str; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let run = run(rest, dir.path());
    let found = answer(&run, "phone.pcapng");
    let one = &found.transfers[0];
    assert_eq!((one.verdict, one.finding.dir), (expected, Direction::Ul), "{:?}", one.shares);
    assert!(one.leading_share.unwrap() >= share, "{:?}", one.shares);
    let sum: f64 = one.shares.values().sum();
    assert!((sum - one.finding.duration_ms).abs() < 2.0, "{sum}: {:?}", one.shares);
    assert!(one.evidence.iter().any(|item| item.what.contains(evidence)), "{:?}", one.evidence);
    assert!(one.next_step.contains(advice), "{}", one.next_step);
    assert_eq!(found.session.verdict, expected, "{}", found.session.says);
    // A server's capture does not show what the phone waited for.
    let at_server = answer(&run, "server.pcapng");
    let stays = matches!(at_server.session.verdict, Verdict::Radio | Verdict::NotRadio);
    assert!(stays, "{}", at_server.session.says);
}

#[test]
fn the_server_s_window() {
    let rest = format!(
        "[core]\nrtt_ms = 100\n[server_tcp.receive]\nbuffer_bytes = 40000\nmax_buffer_bytes = 40000\n{ONE}"
    );
    check(&rest, Verdict::ReceiveWindow, 0.6, ["window of the server", "buffer of the server"]);
}

#[test]
fn a_far_server() {
    let rest = ["[core]\nrtt_ms = 250\n", &ONE.replace("1500000", "400000")].concat();
    check(&rest, Verdict::FirstSlowStart, 0.5, ["first slow start", "the phone's initial window"]);
}

#[test]
fn a_slow_line_behind_the_base_station() {
    let rest = ["[core.up.limit]\nrate_bps = 800000\nqueue_bytes = 400000\n", ONE].concat();
    check(&rest, Verdict::Wireline, 0.3, ["behind the base station", "behind the base station"]);
}

/// A few packets wait for a report and its grant nearly all the time, in a cell that could carry four times
/// as much.
#[test]
fn a_slow_line_whose_packets_always_wait_for_a_grant() {
    let line = "[core]\nrtt_ms = 20\n[core.up.limit]\nrate_bps = 4000000\nqueue_bytes = 150000\n\
        [phone_tcp]\ncontrol = { name = \"bbr3\" }\n";
    let rest = [line, &ONE.replace("1500000", "4000000")].concat();
    check(&rest, Verdict::Wireline, 0.4, ["behind the base station", "behind the base station"]);
    let dir = tempfile::tempdir().unwrap();
    let found = answer_of_log(&run(&rest, dir.path()));
    let one = &found.transfers[0];
    assert!(one.finding.link_demand.unwrap() > 0.9, "{:?}", one.finding);
    assert_eq!(one.verdict, Verdict::NotRadio);
    assert!(one.shares["radio"] < 0.4 * one.finding.duration_ms, "{:?}", one.shares);
    assert!(
        found.session.says.contains("waited for a report and a grant"),
        "{}",
        found.session.says
    );
}

/// With sparse reports, and with none, a slow line is not `radio`, nor does a slow cell leave the radio
/// out.
#[test]
fn sparse_buffer_status_reports() {
    let line = "[core]\nrtt_ms = 20\n[core.up.limit]\nrate_bps = 3000000\nqueue_bytes = 150000\n\
        [phone_tcp]\ncontrol = { name = \"bbr3\" }\n";
    let fast = ["[core]\nrtt_ms = 30\n[phone_tcp]\ncontrol = { name = \"bbr3\" }\n", ONE].concat();
    for (rest, max_prb, never) in
        [([line, ONE].concat(), 40, Verdict::Radio), (fast, 6, Verdict::NotRadio)]
    {
        for period in [10, 20, 320, 0] {
            let uplink = format!("max_prb = {max_prb}\nbsr_period_tti = {period}");
            let dir = tempfile::tempdir().unwrap();
            let run = scenario_run(&(CELL.replace("max_prb = 40", &uplink) + &rest), dir.path());
            let found = &answer_of_log(&run).transfers[0];
            assert_ne!(found.verdict, never, "{period}: {:?}", found.finding);
        }
    }
}

/// Behind other phones' uploads a block comes in some TTIs only, and the buffer is long.
#[test]
fn sparse_reports_in_a_shared_cell() {
    let others = "[[others]]\ncount = 3\n[[others.apps]]\nname = \"u\"\n\
        workload = { kind = \"upload\", bytes = 2000000, count = 20 }\n";
    let cell = CELL.replace("max_prb = 40", "max_prb = 40\nbsr_period_tti = 20");
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(&[&cell, "[core]\nrtt_ms = 30\n", others, ONE].concat(), dir.path());
    let found = &answer_of_log(&run).transfers[0];
    assert_eq!(found.verdict, Verdict::Radio, "{:?}", found.finding);
}

/// Without any report, what nothing shows is unknown, and not the radio's.
#[test]
fn no_buffer_status_reports() {
    let rest = "[core]\nrtt_ms = 150\n[core.up.limit]\nrate_bps = 800000\nqueue_bytes = 100000\n\
        [phone_tcp]\ncontrol = { name = \"new-reno\" }\n";
    let cell = CELL.replace("18.0", "5.0").replace("n_prb = 50", "n_prb = 25");
    let cell = cell.replace("max_prb = 40", "max_prb = 20");
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(&[&cell, rest, ONE].concat(), dir.path());
    let log = std::fs::read(run.join("modem.mi2log")).unwrap();
    std::fs::write(run.join("modem.mi2log"), without_messages(&log, |code, _| code == 0xb064))
        .unwrap();
    let found = answer(&run, "phone.pcapng");
    let one = &found.transfers[0];
    let files = ["modem.mi2log", "transfers.csv"].map(|name| run.join(name)).to_vec();
    let inputs = Inputs { files, ..Inputs::default() };
    let report = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let [limited_ms, _, ungauged_ms] = report.transfers[0].counted_ms().unwrap();
    assert!(ungauged_ms > 0.1 * one.finding.duration_ms, "{ungauged_ms}");
    assert!((one.shares["radio"] - limited_ms).abs() < 50.0, "{limited_ms}: {:?}", one.shares);
    assert!((one.shares["unknown"] - ungauged_ms).abs() < 50.0, "{ungauged_ms}: {:?}", one.shares);
}

#[test]
fn losses_and_a_cell_that_released_the_phone() {
    let rest = ["[core]\nrtt_ms = 80\n[core.up]\nloss = 0.02\n", ONE].concat();
    check(&rest, Verdict::LossRecoveryCongestion, 0.4, ["where they were lost", "airmile packets"]);
    let rest =
        ["[rrc]\nstarts_idle = true\npromotion_ms = 500\n", &ONE.replace("1500000", "40000")];
    let rest = rest.concat().replace("start_ms = 300", "start_ms = 8000");
    check(&rest, Verdict::Setup, 0.6, ["connecting to the cell", "before the upload"]);
}

#[test]
fn the_radio() {
    let rest = ["[core]\nrtt_ms = 30\n", ONE].concat();
    let rest = CELL.replace("18.0", "6.0").replace("max_prb = 40", "max_prb = 6") + &rest;
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(&rest, dir.path());
    let found = answer(&run, "phone.pcapng");
    assert_eq!(found.session.verdict, Verdict::Radio, "{}", found.session.says);
    assert!(found.transfers[0].shares["radio"] > 0.9 * found.transfers[0].finding.duration_ms);
}

/// Uploads with pauses, listed as one: the application sent nothing.
#[test]
fn an_application_that_pauses() {
    let dir = tempfile::tempdir().unwrap();
    let rest = ONE.replace("bytes = 1500000", "bytes = 200000, count = 6, gap_ms = 1000");
    let run = run(&rest, dir.path());
    let list = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let rows: Vec<Vec<&str>> = list.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let (from, to) = (rows[0][1], rows[rows.len() - 1][2]);
    let all = format!("id,start_us,end_us,bytes,dir\nall,{from},{to},1200000,ul\n");
    std::fs::write(run.join("transfers.csv"), all).unwrap();
    let found = answer(&run, "phone.pcapng");
    let one = &found.transfers[0];
    assert_eq!(one.verdict, Verdict::SenderLimited, "{:?}", one.shares);
    assert!(one.confidence > 0.9, "{}", one.confidence);
    assert!(
        one.evidence.iter().any(|item| item.what.contains("the phone's application sent nothing"))
    );
    assert!(one.next_step.contains("application on the phone"), "{}", one.next_step);
}

/// Each exchange uploads, and then downloads more on the same connection.
#[test]
fn uploads_after_downloads_on_their_connection() {
    let dir = tempfile::tempdir().unwrap();
    let exchanges = "[core]\nrtt_ms = 250\n[[apps]]\nname = \"ex\"\nstart_ms = 8000\n\
        workload = { kind = \"interactive\", request_bytes = 400000, response_bytes = 600000, \
        count = 3, gap_ms = 1500 }\n";
    let run = run(exchanges, dir.path());
    let log = std::fs::read_to_string(run.join("app.jsonl")).unwrap();
    let times_us = |event: &str| -> Vec<i64> {
        let lines = log.lines().filter(|line| line.contains(&format!("\"event\":\"{event}\"")));
        let at_ns = lines.map(|line| line.split([':', ',']).nth(1).unwrap().parse::<i64>());
        at_ns.map(|at_ns| at_ns.unwrap() / 1_000).collect()
    };
    let mut list = "id,start_us,end_us,bytes,dir\n".to_owned();
    let [asked, answered, ends] = ["request", "first_byte", "end"].map(times_us);
    for (n, ((from, between), to)) in asked.iter().zip(&answered).zip(&ends).enumerate() {
        list += &format!("u{n},{from},{between},400000,ul\nd{n},{between},{to},600000,dl\n");
    }
    std::fs::write(run.join("transfers.csv"), list).unwrap();
    let found = answer(&run, "phone.pcapng");
    let uploads = || found.transfers.iter().filter(|one| one.finding.dir == Direction::Ul);
    let verdicts: Vec<Verdict> = uploads().map(|one| one.verdict).collect();
    let expected = [Verdict::FirstSlowStart, Verdict::SlowStartRestart, Verdict::SlowStartRestart];
    assert_eq!(verdicts, expected, "{:?}", found.transfers);
    assert!(uploads().all(|one| one.leading_share.unwrap() > 0.5), "{:?}", found.transfers);
}

/// Another connection begins, asks and receives: an upload waits for none of that.
#[test]
fn requests_beside_an_upload() {
    let dir = tempfile::tempdir().unwrap();
    let requests = "[[apps]]\nname = \"get\"\nstart_ms = 500\nworkload = { kind = \"interactive\", \
        request_bytes = 300, response_bytes = 40000, count = 20, gap_ms = 400 }\n";
    let upload = ONE.replace("1500000", "400000");
    let run = run(&["[core]\nrtt_ms = 250\n", &upload, requests].concat(), dir.path());
    let list = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let uploads: Vec<&str> = list.lines().filter(|line| !line.contains(",dl,")).collect();
    std::fs::write(run.join("transfers.csv"), uploads.join("\n")).unwrap();
    let one = &answer(&run, "phone.pcapng").transfers[0];
    assert_eq!(one.verdict, Verdict::FirstSlowStart, "{:?}", one.shares);
}

/// A proxy that ends the connection reads as slowly as the line behind it: no cause is sure.
#[test]
fn a_line_behind_a_proxy_is_not_sure() {
    let dir = tempfile::tempdir().unwrap();
    let proxy = "[core.up.limit]\nrate_bps = 1500000\nqueue_bytes = 150000\n\
        [proxy]\nports = [{ port = 443, slow_start_after_idle = true }]\nbuffer_bytes = 65536\n";
    let run = run(&[proxy, ONE].concat(), dir.path());
    let found = answer(&run, "phone.pcapng");
    assert_ne!(found.session.verdict, Verdict::NotRadio, "{}", found.session.says);
    assert!(found.session.confidence <= 0.6, "{}", found.session.says);
    // One that takes it all at once answers late: the phone was connected meanwhile.
    let deep = proxy.replace("1500000", "500000").replace("65536", "4194304");
    let dir = tempfile::tempdir().unwrap();
    let found = answer(&scenario_run(&[CELL, &deep, ONE].concat(), dir.path()), "phone.pcapng");
    assert_eq!(found.session.verdict, Verdict::SenderLimited, "{}", found.session.says);
    assert!(found.session.confidence <= 0.6, "{}", found.session.says);
}

/// The phone stays connected while the server thinks, which other silences are not.
#[test]
fn a_server_that_thinks_for_seconds() {
    let app = "[[apps]]\nname = \"up\"\nstart_ms = 300\nworkload = { kind = \"interactive\", \
        request_bytes = 800000, response_bytes = 300, count = 2, gap_ms = 500, think_ms = 6000 }\n";
    check(app, Verdict::SenderLimited, 0.8, ["waited for the server's answer", "responded late"]);
}

/// Two uploads share the phone's queue, so they are judged as one.
#[test]
fn uploads_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let second = ONE.replace("300", "700").replace("\"up\"", "\"also\"");
    let cell = CELL.replace("18.0", "6.0").replace("max_prb = 40", "max_prb = 6");
    let found = answer_of_log(&scenario_run(&[&cell, ONE, &second].concat(), dir.path()));
    assert!(found.transfers.iter().all(|one| one.finding.overlapped), "{:?}", found.transfers);
    assert_eq!(found.session.verdict, Verdict::Radio, "{}", found.session.says);
    assert_eq!(found.session.dir, Some(Direction::Ul));
}

/// Neither another run's capture nor encrypted packets show what the upload waited for.
#[test]
fn packets_that_do_not_show_the_upload() {
    let [one, other, quic] = [0; 3].map(|_| tempfile::tempdir().unwrap());
    let far = ["[core]\nrtt_ms = 250\n", &ONE.replace("1500000", "400000")].concat();
    let log = run(&far, one.path());
    let window = "[server_tcp.receive]\nbuffer_bytes = 40000\nmax_buffer_bytes = 40000\n";
    let strange = run(&["[core]\nrtt_ms = 100\n", window, ONE].concat(), other.path());
    std::fs::copy(strange.join("phone.pcapng"), log.join("phone.pcapng")).unwrap();
    assert_eq!(answer(&log, "phone.pcapng").session.verdict, Verdict::NotRadio);
    let quic = run(&far.replace("start_ms", "transport = \"quic\"\nstart_ms"), quic.path());
    assert_eq!(answer(&quic, "phone.pcapng").session.verdict, Verdict::NotRadio);
}

/// The last data of each upload waits in the phone's queue before its round trip: no line is behind it.
#[test]
fn small_uploads_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let rest = ONE.replace("bytes = 1500000", "bytes = 200000, count = 6, gap_ms = 1000");
    let rest = ["[core]\nrtt_ms = 120\n", &rest].concat();
    let found = answer(&run(&rest, dir.path()), "phone.pcapng");
    for one in found.transfers.iter().skip(1) {
        let wireline = one.shares.get("wireline").copied().unwrap_or(0.0);
        assert!(wireline < 0.05 * one.finding.duration_ms, "{}: {:?}", one.id, one.shares);
        assert!(one.shares["setup"] > 100.0, "{}: {:?}", one.id, one.shares);
    }
}

/// On a connection that exists, what a released phone sends waits until it is connected, and its timer expires:
/// nothing was lost.
#[test]
fn uploads_of_a_released_phone_over_one_connection() {
    let dir = tempfile::tempdir().unwrap();
    let rrc = "[rrc]\nstarts_idle = true\npromotion_ms = 1500\ntail_ms = 8000\n";
    let rest = ONE.replace("bytes = 1500000", "bytes = 300000, count = 3, gap_ms = 12000");
    let found = answer(&run(&[rrc, &rest].concat(), dir.path()), "phone.pcapng");
    assert_eq!(found.transfers.len(), 3);
    for one in &found.transfers {
        assert!(one.shares["setup"] > 1_300.0, "{}: {:?}", one.id, one.shares);
    }
    assert_eq!(found.session.verdict, Verdict::Setup, "{}", found.session.says);
}
