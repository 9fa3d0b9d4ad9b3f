//! Figures agree with the lab's truth, and with each other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use airmile::model::{Direction, Verdict};
use airmile::{Exports, Inputs, MarkKind, Progress, RadioOptions, Subject, export, report};

use crate::common::{diagnosis_of, library_run};

/// The rows of a truth table, by TTI.
fn rows(run: &Path, name: &str) -> Vec<(i64, Vec<String>)> {
    let text = std::fs::read_to_string(run.join(name)).unwrap();
    let mut out = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        let (tti, n): (i64, i64) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        out.extend((tti..tti + n).map(|tti| (tti, cells[2..].to_vec())));
    }
    out
}

/// Mean capacity of the cell for the phone, in bit/s, while its data waited.
fn capacity_while_waiting(run: &Path) -> f64 {
    let waits = |state: &str| state == "ACTIVE" || state == "CONTENTION";
    let queue = rows(run, "truth.csv").into_iter().filter(|(_, row)| waits(&row[1]));
    let waiting: HashSet<i64> = queue.map(|(tti, _)| tti).collect();
    let capacity = rows(run, "capacity.csv").into_iter();
    let bytes: f64 = capacity
        .filter(|(tti, row)| row[0] == "dl" && waiting.contains(tti))
        .map(|(_, row)| row[2].parse::<f64>().unwrap())
        .sum();
    bytes * 8e3 / waiting.len() as f64
}

/// Bursts of a TTI or two, each of a packet and the rest of the one before: half of their bytes leave in the
/// last TTIs, which they do not fill.
#[test]
fn the_rate_inside_short_bursts_is_the_cells() {
    let dir = tempfile::tempdir().unwrap();
    for (name, seed) in
        [("rate-limited-server", 3), ("rate-limited-server", 41), ("lossy-line", 41)]
    {
        let run = dir.path().join(format!("{name}-{seed}"));
        airmile_lab::run_scenario(name, Some(seed), &run).unwrap();
        let truth = capacity_while_waiting(&run);
        let answer = diagnosis_of(&[run.join("modem.mi2log"), run.join("transfers.csv")]);
        let found = answer.transfers[0].finding.burst_throughput_bps.unwrap();
        assert!((0.8..1.1).contains(&(found / truth)), "{name}: {found} for {truth}");
    }
}

#[test]
fn a_duration_without_a_cause_has_its_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let answer = diagnosis_of(&[library_run("rate-limited-server", dir.path())]);
    let saving = answer.transfers[0].saving().unwrap();
    let found = saving.split_once("would have taken about ").unwrap().1;
    let (ms, bounds) = found.split_once(" s (").unwrap();
    let (low, high) =
        bounds.split_once(" s) instead of 16.1 s").unwrap().0.split_once(" to ").unwrap();
    let [ms, low, high] = [ms, low, high].map(|part| part.parse::<f64>().unwrap());
    // The lab's truth is 2.5 s.
    assert!(low < ms && ms < high && (low..high).contains(&2.5), "{saving}");
    let rates =
        answer.transfers[0].evidence.iter().filter(|item| item.what.contains("link's rate"));
    assert_eq!(rates.count(), 1);
}

fn files(run: &Path, names: &[&str]) -> Inputs {
    Inputs { files: names.iter().map(|name| run.join(name)).collect(), ..Inputs::default() }
}

/// The lab's log and the HAR describe the same requests.
#[test]
fn requests_of_two_logs_are_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("page", dir.path());
    let requests = |names: &[&str]| {
        let report =
            report(&files(&run, names), &RadioOptions::default(), &Progress::default()).unwrap();
        report.lanes.marks.iter().filter(|mark| mark.kind == MarkKind::Request).count()
    };
    let both = ["modem.mi2log", "transfers.csv", "app.jsonl", "page.har"];
    assert_eq!(requests(&both[..3]), 12);
    assert_eq!(requests(&both), 12);
}

#[test]
fn both_directions_are_in_the_headline() {
    let dir = tempfile::tempdir().unwrap();
    let answer = diagnosis_of(&[library_run("upload-beside-download", dir.path())]);
    for part in ["of the download", "The uplink was the bottleneck", "of the upload"] {
        assert!(answer.session.says.contains(part), "{part}: {}", answer.session.says);
    }
}

/// The page of `radio` has the verdict that `radio` prints, without the captures' causes.
#[test]
fn the_radios_page_is_of_the_radio() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("rate-limited-server", dir.path());
    let page = dir.path().join("page.html");
    let exports = Exports { html: Some(page.clone()), perfetto: None };
    let inputs = Inputs { files: vec![run], ..Inputs::default() };
    let options = RadioOptions::default();
    let (radio, diagnosis) =
        export(&inputs, &options, &exports, Subject::Radio, &Progress::default()).unwrap();
    assert_eq!(
        (diagnosis.session.verdict, radio.transfers[0].verdict),
        (Verdict::NotRadio, Verdict::NotRadio)
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("By the radio's records alone") && !page.contains("\"sender_limited\":"));
}

/// What an upload lacks is of the uplink.
#[test]
fn advice_for_an_upload_is_of_the_uplink() {
    let name = "diag/insightshare_tmobile_nexus6p_20160118_0512.mi2log";
    let Some(log) = airmile_testing::shared_data(name) else { return };
    let answer = diagnosis_of(&[log]);
    let upload = answer.transfers.iter().find(|one| one.finding.dir == Direction::Ul).unwrap();
    assert!(upload.next_step.contains("uplink buffer (0xB066)"), "{}", upload.next_step);
    assert!(answer.session.says.contains("No verdict on the upload"), "{}", answer.session.says);
}

#[test]
fn captures_that_were_not_joined_are_the_advice() {
    let names = ["grants.csv.gz", "rlc.csv.gz", "transfers.csv", "pcap_ue.pcap.gz"];
    let path = |name: &str| airmile_testing::shared_data(&format!("ns3/case_ssr_pcap/{name}"));
    let Some(files) = names.iter().map(|name| path(name)).collect::<Option<Vec<PathBuf>>>() else {
        return;
    };
    let answer = diagnosis_of(&files);
    let not_radio = answer.transfers.iter().filter(|one| one.verdict == Verdict::NotRadio);
    assert!(not_radio.clone().count() > 0);
    for one in not_radio {
        assert!(one.next_step.starts_with("join the capture with the log"), "{}", one.next_step);
    }
    assert!(answer.session.says.contains("The captures were not used"), "{}", answer.session.says);
}

/// A link demand has one number and one unit, and what the verdict is of another name.
#[test]
fn a_link_demand_near_a_limit_is_one_number() {
    let Some(log) = airmile_testing::shared_data("diag/seoul2021_upload_500KB.mi2log") else {
        return;
    };
    let answer = diagnosis_of(&[log]);
    let texts = answer.transfers[0].evidence.iter().map(|item| item.what.as_str());
    let demands: Vec<&str> = texts.clone().filter(|text| text.contains("link demand")).collect();
    assert_eq!(demands.len(), 1, "{demands:?}");
    assert!(texts.clone().any(|text| text.contains("waited for capacity, 74.7 to 75.6 %")));
    assert!(!texts.clone().any(|text| text.contains("between 0.")));
}
