//! Wrong clocks are detected and reported, and do not change the result.

use std::path::{Path, PathBuf};

use airmile::{Inputs, Progress, RadioOptions, diagnose};
use airmile_emulate::workload::Workload;

use crate::common::{diagnosis_of, library_run};

/// The transfers of a run, on a clock that is `later_us` ahead, without TTIs.
fn transfers(run: &Path, later_us: i64) -> PathBuf {
    let text = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let mut out = String::from("id,start_us,end_us,bytes\n");
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let us = |n: usize| cells[n].parse::<i64>().unwrap() + later_us;
        out.push_str(&format!("{},{},{},{}\n", cells[0], us(1), us(2), cells[5]));
    }
    let path = run.join(format!("transfers{later_us}.csv"));
    std::fs::write(&path, out).unwrap();
    path
}

#[test]
fn transfers_of_a_clock_that_is_wrong_are_set_right() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("busy-video", None, &run).unwrap();
    let log = run.join("modem.mi2log");
    let right = diagnosis_of(&[log.clone(), transfers(&run, 0)]);
    assert!(right.clocks.iter().all(|clock| !clock.corrected), "{:?}", right.clocks);
    for later_ms in [-900, 700] {
        let wrong = diagnosis_of(&[log.clone(), transfers(&run, later_ms * 1_000)]);
        let [clock] = wrong.clocks.as_slice() else { panic!("{:?}", wrong.clocks) };
        assert!(clock.corrected, "{}", clock.says);
        let offset_ms = clock.offset_ms.unwrap();
        assert!((offset_ms - later_ms as f64).abs() < 5.0, "{}", clock.says);
        assert_eq!(wrong.session.verdict, right.session.verdict);
        for (one, other) in wrong.transfers.iter().zip(&right.transfers) {
            let apart_us = one.finding.start_us.unwrap() - other.finding.start_us.unwrap();
            assert!(apart_us.abs() < 5_000, "{}: {apart_us}", one.id);
        }
    }
}

fn run(scenario: &str, seed: u64, into: &Path) -> PathBuf {
    airmile_lab::run_scenario(scenario, Some(seed), into).unwrap();
    into.to_path_buf()
}

#[test]
fn a_capture_of_another_run_is_refused_although_the_clocks_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let video = run("busy-video", 1, &at("video"));
    for other in [run("busy-video", 2, &at("video-2")), run("web-browsing", 1, &at("pages"))] {
        let error = refusal(&[video.join("modem.mi2log"), other.join("phone.pcapng")]);
        assert!(error.contains("does not belong to the modem log"), "{error}");
        // The right pair is used.
        diagnosis_of(&[other.join("modem.mi2log"), other.join("phone.pcapng")]);
    }
}

fn refusal(files: &[PathBuf]) -> String {
    let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap_err().to_string()
}

#[test]
fn captures_of_runs_that_differ_in_their_sequence_numbers_are_not_joined() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ["busy-file", "wireline-limited"].map(|name| library_run(name, dir.path()));
    let error = refusal(&[one.join("modem.mi2log"), other.join("phone.pcapng")]);
    assert!(error.contains("does not belong to the modem log"), "{error}");
    for (one, other) in [(&one, &other), (&other, &one)] {
        let error = refusal(&[one.join("phone.pcapng"), other.join("server.pcapng")]);
        assert!(error.contains("other sequence numbers"), "{error}");
    }
}

#[test]
fn a_split_bearer_and_its_capture_are_aligned() {
    let dir = tempfile::tempdir().unwrap();
    let answer = diagnosis_of(&[library_run("nsa-split-bearer", dir.path())]);
    let phone = answer.clocks.iter().find(|clock| clock.file.ends_with("phone.pcapng")).unwrap();
    assert!(phone.offset_ms.is_some_and(|ms| ms.abs() < 5.0), "{}", phone.says);
}

/// A narrow LTE leg with others, whose scheduler shares each TTI: NR's bytes wait for it.
const UNEVEN: &str = r#"
duration_ms = 8_000
competing = [{ kind = "full_buffer", users = 2 }]
cell = { n_prb = 25, scheduler = "pf_frequency" }
link = { snr_mean_db = 10.0, shadowing_sigma_db = 4.0 }
core = { rtt_ms = 30 }
[split]
snr_offset_db = -6.0
cell = { n_prb = 51, numerology = 1, tdd = "DDDSU", nr = {}, scheduler = "max_ci" }
[[apps]]
name = "file"
start_ms = 500
workload = { kind = "file", bytes = 10_000_000 }
"#;

#[test]
fn a_split_bearer_that_delivers_unevenly_has_its_own_capture_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("uneven.toml"), UNEVEN).unwrap();
    let scenario = at("uneven.toml").display().to_string();
    let [one, other] = [(1, "one"), (2, "other")].map(|(seed, to)| run(&scenario, seed, &at(to)));
    for run in [&one, &other] {
        diagnosis_of(&[run.join("nr_modem.mi2log"), run.join("phone.pcapng")]);
    }
    let error = refusal(&[one.join("nr_modem.mi2log"), other.join("phone.pcapng")]);
    assert!(error.contains("does not belong to the modem log"), "{error}");
}

/// Six PRBs are full in each TTI: the pauses of the traffic align the clocks.
#[test]
fn a_narrow_cell_and_its_capture_are_aligned() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = airmile_lab::load("page").unwrap();
    (scenario.cell.n_prb, scenario.uplink.max_prb) = (6, 6);
    let Workload::Web(web) = &mut scenario.apps[0].workload else { panic!() };
    (web.objects, web.page_bytes) = (40, 1_500_000);
    let run = dir.path().join("run");
    airmile_lab::leave(&scenario, &run, false).unwrap();
    let answer = diagnosis_of(&[run.join("modem.mi2log"), run.join("phone.pcapng")]);
    let [clock] = answer.clocks.as_slice() else { panic!("{:?}", answer.clocks) };
    assert!(clock.offset_ms.is_some_and(|ms| ms.abs() < 5.0), "{}", clock.says);
}

/// Of an upload only acknowledgements come back: they align the phone's capture to the log, and the
/// server's to the phone's.
#[test]
fn an_upload_alone_aligns_captures_at_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = airmile_lab::load("upload-beside-download").unwrap();
    scenario.apps.remove(0);
    scenario.causes.clear();
    scenario.duration_ms = 20_000;
    let run = dir.path().join("run");
    airmile_lab::leave(&scenario, &run, false).unwrap();
    let files = ["modem.mi2log", "phone.pcapng", "server.pcapng", "transfers.csv"];
    let answer = diagnosis_of(&files.map(|name| run.join(name)));
    for (name, most_ms) in [("phone.pcapng", 5.0), ("server.pcapng", 30.0)] {
        let clock = answer.clocks.iter().find(|clock| clock.file.ends_with(name)).unwrap();
        assert!(clock.offset_ms.is_some_and(|ms| ms.abs() < most_ms), "{}", clock.says);
    }
    assert_eq!(answer.session.dir, Some(airmile_model::Direction::Ul));
    // No packet of the emulator is ECN-capable.
    assert_eq!(answer.ecn, []);

    // The uplink aligns an application's uploads. One that it cannot place hides no verdict.
    let (log, times) = (run.join("modem.mi2log"), upload_times(&run));
    let right = diagnosis_of(&[log.clone(), iperf3(&run, times, 0)]);
    let alone = diagnosis_of(std::slice::from_ref(&log));
    assert_ne!(alone.session.verdict, airmile_model::Verdict::Unknown);
    assert_eq!(right.session.verdict, alone.session.verdict, "{:?}", right.clocks);
    let late = diagnosis_of(&[log.clone(), iperf3(&run, times, 700)]);
    let [clock] = late.clocks.as_slice() else { panic!("{:?}", late.clocks) };
    assert!(!clock.says.contains("no traffic"), "{}", clock.says);
    assert_eq!(late.session.verdict, alone.session.verdict, "{}", clock.says);
}

/// Start and end of the run's upload, in ms.
fn upload_times(run: &Path) -> (i64, i64) {
    let text = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let cells: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
    let ms = |n: usize| cells[n].parse::<i64>().unwrap() / 1_000;
    (ms(1), ms(2))
}

/// A log of iperf3 of an upload, on a clock that is `late_ms` ahead.
fn iperf3(run: &Path, (start_ms, end_ms): (i64, i64), late_ms: i64) -> PathBuf {
    let seconds = (end_ms - start_ms) as f64 / 1e3;
    let sum = format!(r#"{{"end":{seconds},"bytes":6000000}}"#);
    let start = (start_ms + late_ms) as f64 / 1e3;
    let log = format!(
        r#"{{"start":{{"version":"iperf 3.12","timestamp":{{"timesecs":{start:.3}}},"test_start":{{"protocol":"TCP","num_streams":1,"reverse":0}}}},"intervals":[],"end":{{"sum_sent":{sum},"sum_received":{sum}}}}}"#
    );
    let path = run.join(format!("iperf{late_ms}.json"));
    std::fs::write(&path, log).unwrap();
    path
}

/// Without times, nothing shows when the table's records were: the missing column is named.
#[test]
fn a_table_without_times_is_not_joined_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let run = run("page", 1, &dir.path().join("run"));
    let text = std::fs::read_to_string(run.join("grants.csv")).unwrap();
    let at = text.lines().next().unwrap().split(',').position(|name| name == "time_us").unwrap();
    let without = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(n, _)| *n != at);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
    };
    let table = run.join("untimed.csv");
    std::fs::write(&table, text.lines().map(without).collect::<Vec<_>>().join("\n")).unwrap();
    let answer = diagnosis_of(&[table, run.join("phone.pcapng")]);
    let [clock] = answer.clocks.as_slice() else { panic!("{:?}", answer.clocks) };
    assert!(clock.says.contains("`time_us`"), "{}", clock.says);
    assert!(!answer.session.says.contains("did not overlap"), "{}", answer.session.says);
}
