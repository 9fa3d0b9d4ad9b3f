//! Figures agree with the lab's truth, and with each other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use airmile::model::{Direction, Verdict};
use airmile::{
    Diagnosis, Exports, Inputs, MarkKind, Progress, RadioOptions, Subject, TransferDiagnosis,
    export, report,
};

use crate::common::{diagnosis_of, library_run, scenario_run};

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
    let marks = |names: &[&str]| {
        let report =
            report(&files(&run, names), &RadioOptions::default(), &Progress::default()).unwrap();
        let of = |kind| report.lanes.marks.iter().filter(|mark| mark.kind == kind).count();
        [MarkKind::Request, MarkKind::Wait].map(of)
    };
    let both = ["modem.mi2log", "transfers.csv", "app.jsonl", "page.har"];
    assert_eq!(marks(&both[..3]), [12, 12]);
    assert_eq!(marks(&both), [12, 12]);
}

#[test]
fn both_directions_are_in_the_headline() {
    let dir = tempfile::tempdir().unwrap();
    let answer = diagnosis_of(&[library_run("upload-beside-download", dir.path())]);
    for part in ["of the download", "The uplink was the bottleneck", "of the upload"] {
        assert!(answer.session.says.contains(part), "{part}: {}", answer.session.says);
    }
}

/// A table of blocks, by the names of its columns and its rows, with captures in addition.
fn diagnosis_of_table(
    columns: &str,
    rows: impl Iterator<Item = String>,
    captures: &[PathBuf],
) -> Diagnosis {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("grants.csv");
    let rows: Vec<String> = std::iter::once(columns.to_owned()).chain(rows).collect();
    std::fs::write(&table, rows.join("\n")).unwrap();
    diagnosis_of(&[&[table], captures].concat())
}

/// The buffer of the larger upload was not logged, and the table has no times to join a capture by.
#[test]
fn a_judged_direction_is_in_the_headline_beside_a_larger_unjudged_one() {
    let dir = tempfile::tempdir().unwrap();
    let capture = library_run("rate-limited-server", dir.path()).join("phone.pcapng");
    for captures in [&[][..], &[capture]] {
        let rows = (0..2_000).map(|tti| format!("{tti},dl,48,50,1000,0\n{tti},ul,40,50,3000,"));
        let columns = "tti,dir,n_prb,n_prb_cell,tbs_bytes,padding_bytes";
        let session = diagnosis_of_table(columns, rows, captures).session;
        let says = session.says;
        assert!(
            says.starts_with("No verdict on the upload: its evidence says why. The downlink was"),
            "{says}"
        );
        assert_eq!(says.contains("The captures were not used"), !captures.is_empty(), "{says}");
        assert_eq!(session.verdict, Verdict::Unknown);
    }
}

/// The rate of the link in a transfer's evidence, in Mbit/s.
fn link_mbps(one: &TransferDiagnosis) -> f64 {
    let mut texts = one.evidence.iter().map(|item| item.what.as_str());
    let rate = texts.find_map(|text| text.strip_prefix("the link's rate ")).unwrap();
    rate.split(' ').next().unwrap().parse().unwrap()
}

/// 10 MHz and 20 MHz with two layers of 64QAM carry more than the first cell alone could.
#[test]
fn a_measured_rate_is_not_cut_to_that_of_one_cell() {
    let rows = (0..2_000).map(|tti| {
        let padding = if tti == 1_999 { 9_000 } else { 0 };
        format!("{tti},dl,0,50,50,9172,{padding}\n{tti},dl,1,100,100,18844,{padding}")
    });
    let columns = "tti,dir,cell,n_prb,n_prb_cell,tbs_bytes,padding_bytes";
    let answer = diagnosis_of_table(columns, rows, &[]);
    let found = link_mbps(&answer.transfers[0]);
    assert!((found - 224.1).abs() < 0.5, "{found}: {:?}", answer.transfers[0].evidence);
}

/// A short queue waits for grants most of the time: what the link could carry was seen during a small part, and
/// the power of a grant of few PRBs is not that of all.
#[test]
fn an_upload_that_waited_for_grants_alone_has_no_rate_of_the_link() {
    let line = "duration_ms = 60000\n[cell]\nn_prb = 50\n[link]\nul_snr_mean_db = 18.0\n[uplink]\n\
        max_prb = 40\n[core]\nrtt_ms = 20\n[core.up.limit]\nrate_bps = 2400000\nqueue_bytes = 150000\n\
        [phone_tcp]\ncontrol = { name = \"bbr3\" }\n[[apps]]\nname = \"up\"\nstart_ms = 300\n\
        workload = { kind = \"upload\", bytes = 4000000 }\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(line, dir.path());
    let answer = diagnosis_of(&[run.join("modem.mi2log"), run.join("transfers.csv")]);
    let one = &answer.transfers[0];
    assert!(one.finding.burst_throughput_bps.is_some(), "{:?}", one.finding);
    let has_rate = one.evidence.iter().any(|item| item.what.contains("the link's rate"));
    assert!(!has_rate, "{:?}", one.evidence);
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
