//! The sentences of a diagnosis match its numbers.

use std::path::PathBuf;

use airmile::{Diagnosis, Inputs, Progress, RadioOptions, diagnose, inspect, radio};

use crate::common::{diagnosis_of, library_run};

fn written(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Data waits in TTIs 100 to 2098, and a transfer is given.
fn diagnosis(start_tti: i64, end_tti: i64) -> Diagnosis {
    let dir = tempfile::tempdir().unwrap();
    let mut grants = String::from("tti,dir,n_prb,n_prb_cell,tbs_bytes,retx,padding_bytes\n");
    // The log continues after them.
    for tti in (100..2_100).chain([3_000]) {
        let padding = if tti >= 2_099 { 500 } else { 0 };
        grants.push_str(&format!("{tti},dl,48,50,1000,0,{padding}\n"));
    }
    let bytes = (end_tti.min(2_100) - start_tti) * 1_000;
    let transfers = format!("id,start_tti,end_tti,bytes\na,{start_tti},{end_tti},{bytes}\n");
    let inputs = Inputs {
        files: vec![written(&dir, "grants.csv", &grants)],
        transfers: Some(written(&dir, "transfers.csv", &transfers)),
        ..Inputs::default()
    };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

fn words(answer: &Diagnosis) -> String {
    let transfer = &answer.transfers[0];
    let evidence: Vec<&str> = transfer.evidence.iter().map(|e| e.what.as_str()).collect();
    format!("{}; {}", evidence.join("; "), transfer.next_step)
}

#[test]
fn a_given_transfer_that_the_limits_cut_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("sample-download", None, &run).unwrap();
    let [from, to] = ["1", "3"].map(|text| airmile::TimePoint::parse(text).ok());
    let limits = airmile::Limits { from, to, ..airmile::Limits::default() };
    let options = RadioOptions { limits, ..RadioOptions::default() };
    let inputs = Inputs {
        files: vec![run.join("modem.mi2log")],
        transfers: Some(run.join("transfers.csv")),
        ..Inputs::default()
    };
    let answer = diagnose(&inputs, &options, &Progress::default()).unwrap();
    assert!(answer.session.says.contains("none of the given transfers"), "{}", answer.session.says);
}

#[test]
fn verdicts_come_with_their_numbers() {
    for (start_tti, end_tti, verdict, says) in [
        // 1999 of 2400 ms.
        (100, 2_500, "mixed", "data waited during 83 % of the time, and during 17 %"),
        (100, 2_500, "mixed", "instead of 2.4 s"),
        // 1999 of 2650 ms: 0.4 % above the limit. Then 1999 of 2690 ms: 0.7 % below.
        (100, 2_750, "mixed", "close to 75 %, the limit between not radio and mixed"),
        (100, 2_790, "not_radio", "close to 75 %, the limit between not radio and mixed"),
        // The burst is longer than the transfer.
        (500, 1_500, "radio", "1 burst, 1000 ms of it inside the transfer"),
    ] {
        let answer = diagnosis(start_tti, end_tti);
        assert_eq!(answer.transfers[0].verdict.as_str(), verdict, "{start_tti} {end_tti}");
        let words = words(&answer);
        assert!(words.contains(says), "{says}: {words}");
    }
    assert!(!words(&diagnosis(100, 2_500)).contains("close to"));
}

const NR: &str = "\
17:29:19.449705\t[0xB887]\tNR5G MAC PDSCH Status
Version 131077 {
   Records[0] {
      System Time {
         Slot = 3
         Numerology =    30kHz
         Frame = 632
      }
      PDSCH Status Info[0] {
         Carrier ID = 0
         Physical cell ID = 186
         EARFCN =   644736
         TB Size =    30000
         SCS MU = 1
         MCS = 18
         Num Rbs =    4
         RNTI Type = 0
      }
   }
}
";

/// No LTE message is advised for an NR log; the grants' own message has its cell.
#[test]
fn an_nr_log_is_told_of_in_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = Inputs { files: vec![written(&dir, "nr.txt", NR)], ..Inputs::default() };
    let (options, progress) = (RadioOptions::default(), Progress::default());
    let report = radio(&inputs, &options, &progress).unwrap();
    assert!(report.evidence_counts.is_nr());
    assert_eq!(report.tti_ms, 0.5);
    let cells: Vec<_> = report.cells.iter().map(|c| (c.pci, c.earfcn)).collect();
    assert_eq!(cells, [(Some(186), Some(644_736))]);
    for missing in report.missing {
        let advice = missing.what + &missing.how_to_capture;
        assert!(!advice.contains("LTE") && !advice.contains("0xB0"), "{advice}");
    }
    let answer = diagnose(&inputs, &options, &progress).unwrap();
    assert!(words(&answer).contains("share of the cell's PRBs is unknown"), "{}", words(&answer));
}

/// Poll bits alone give bursts; `inspect` promises no more.
#[test]
fn inspect_promises_what_diagnose_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let rlc = "tti,dir,bearer,sn,size_bytes,poll\n1,dl,3,1,1000,0\n2,dl,3,2,1000,1\n";
    let inputs = Inputs { files: vec![written(&dir, "rlc.csv", rlc)], ..Inputs::default() };
    let report = inspect(&inputs, airmile::Limits::default(), &Progress::default()).unwrap();
    assert_eq!(report.usable_files, 1);
    assert!(report.can_answer[0].starts_with("when data waited"), "{:?}", report.can_answer);
    assert!(report.can_answer[0].contains("not whether the downlink was the bottleneck"));
}

/// `inspect` of a run's directory reads the captures in it, too; the server's does not lack the phone's.
#[test]
fn inspect_reads_what_diagnose_reads_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("rate-limited-server", dir.path());
    let inputs = Inputs { files: vec![run], ..Inputs::default() };
    let report = inspect(&inputs, airmile::Limits::default(), &Progress::default()).unwrap();
    assert_eq!(report.files.iter().filter(|file| file.is_capture()).count(), 2);
    let lacks = report.missing.iter().any(|one| one.what.starts_with("the phone's side"));
    assert!(!lacks, "{:?}", report.missing);
    // An unusable one is named as a directory is, not as a file that has to be.
    let empty = Inputs { files: vec![dir.path().join("empty")], ..Inputs::default() };
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let error = inspect(&empty, airmile::Limits::default(), &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("is a directory without a modem log"), "{error}");
}

/// Evidence has no parts of zero, and no name of a document.
#[test]
fn evidence_is_in_words_and_not_zero() {
    let dir = tempfile::tempdir().unwrap();
    for scenario in ["rate-limited-server", "lossy-radio"] {
        let words = words(&diagnosis_of(&[library_run(scenario, dir.path())]));
        assert!(!words.contains("(0 ms)") && !words.contains(" 0 % of blocks"), "{words}");
        assert!(!words.contains("sender_limited") && !words.contains("log_hole"), "{words}");
    }
}
