//! The verdict for uploads by the modem's log: over NR and EN-DC against the truth, and of a log that
//! lacks what it needs.

use std::path::Path;

use airmile::{EvidenceChoice, Inputs, Limits, Progress, RadioOptions, inspect, radio};
use airmile_lab::run_scenario;
use airmile_model::Verdict;

use super::nr::{LOG, Score, of, run, score};

/// Of this bandwidth, with an upload of 8 MB where no other follows.
const NR: &str = "duration_ms = 30000\n[cell]\nn_prb = 106\nnr = { layers = 2, qam256 = true }\n";
const SPLIT: &str = "duration_ms = 30000\n[cell]\nn_prb = 50\n";
const FILE: &str =
    "[[apps]]\nname = \"up\"\nstart_ms = 1000\nworkload = { kind = \"upload\", bytes = 8000000 }\n";
const SMALL_FILES: &str = "[[apps]]\nname = \"up\"\nstart_ms = 1000\n\
    workload = { kind = \"upload\", bytes = 200000, count = 8, gap_ms = 500 }\n";

/// What, its scenario and the rest of that.
const RUNS: [(&str, &str, &str, &str); 8] = [
    ("30 kHz, DDDSU", NR, "numerology = 1\ntdd = \"DDDSU\"\n[uplink]\nmax_prb = 50\n", FILE),
    (
        "30 kHz, DDDDDDDSUU",
        NR,
        "numerology = 1\ntdd = \"DDDDDDDSUU\"\n[uplink]\nmax_prb = 50\n",
        FILE,
    ),
    ("15 kHz, FDD", NR, "[uplink]\nmax_prb = 50\n", FILE),
    (
        "30 kHz, DDDSU, files of 200 kB",
        NR,
        "numerology = 1\ntdd = \"DDDSU\"\n[uplink]\nmax_prb = 50\n",
        SMALL_FILES,
    ),
    (
        "30 kHz, DDDSU, behind a wire",
        NR,
        "numerology = 1\ntdd = \"DDDSU\"\n[uplink]\nmax_prb = 50\n[core]\nrtt_ms = 30\n[core.up.limit]\n\
            rate_bps = 3000000\nqueue_bytes = 200000\n",
        FILE,
    ),
    ("EN-DC, uplink over NR", SPLIT, "[split]\n", FILE),
    (
        "EN-DC, uplink over NR at 15 kHz",
        SPLIT,
        "[split]\n[split.cell]\nn_prb = 50\nnr = { layers = 2, qam256 = true }\n",
        FILE,
    ),
    ("EN-DC, uplink over both", SPLIT, "[split]\nuplink_threshold_bytes = 100000\n", FILE),
];

#[test]
fn verdicts_of_uploads() {
    let log = of("log", LOG, EvidenceChoice::Auto);
    let mut missed = Vec::new();
    for (what, cell, rest, app) in RUNS {
        let mut scored = Score::default();
        for seed in 20..23 {
            let (_dir, out) = run(&[cell, rest, app].concat(), seed);
            score(&out, &format!("{what}, seed {seed}"), &log, &mut scored);
        }
        let (median, Score { right, of, .. }) = (scored.median(), &scored);
        println!("| {what} | {of} | {right} | {:.2} % |", 100.0 * median);
        if median > 0.02 || right < of {
            missed.push(format!("{what}: {right} of {of}, {median:.4}"));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// A log (HDLC frames) without messages of these codes.
fn without(log: &[u8], codes: &[u16]) -> Vec<u8> {
    let keeps = |frame: &&[u8]| {
        let mut bytes = frame.iter().copied();
        let mut unescaped = std::iter::from_fn(|| match bytes.next()? {
            0x7d => bytes.next().map(|byte| byte ^ 0x20),
            byte => Some(byte),
        });
        let code = unescaped.nth(6).zip(unescaped.next()).map(<[u8; 2]>::from);
        !code.is_some_and(|code| codes.contains(&u16::from_le_bytes(code)))
    };
    log.split_inclusive(|byte| *byte == 0x7e).filter(keeps).collect::<Vec<_>>().concat()
}

/// The inputs of a run whose log lacks some codes, with that log's file.
fn without_codes(out: &Path, log: &str, dropped: &[u16]) -> Inputs {
    let file = out.join("part.mi2log");
    std::fs::write(&file, without(&std::fs::read(out.join(log)).unwrap(), dropped)).unwrap();
    let transfers = Some(out.join("transfers.csv"));
    Inputs { files: vec![file], transfers, ..Inputs::default() }
}

/// Neither samples of the buffer without blocks, nor blocks without the buffer, show what limited
/// an upload.
#[test]
fn an_upload_without_its_evidence_has_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    run_scenario("sample-upload", Some(20), &out).unwrap();
    let check = |dropped: &[u16], lacks: &str| {
        let inputs = without_codes(&out, "modem.mi2log", dropped);
        let progress = Progress::default();
        let report = radio(&inputs, &RadioOptions::default(), &progress).unwrap();
        let found = report.transfers.iter().find(|one| one.id.starts_with("upload")).unwrap();
        let expected = if lacks.is_empty() { Verdict::Radio } else { Verdict::Unknown };
        assert_eq!((found.verdict, found.confidence > 0.0), (expected, lacks.is_empty()));
        let seen = inspect(&inputs, Limits::default(), &progress).unwrap();
        let answers = seen.can_answer.iter().any(|one| one.contains("uplink the bottleneck"));
        assert_eq!(answers, lacks.is_empty(), "{dropped:X?}: {:?}", seen.can_answer);
        for missing in [seen.missing, report.missing] {
            let named = missing.iter().any(|one| one.what.contains(lacks));
            assert!(lacks.is_empty() || named, "{dropped:X?}: {missing:?}");
        }
    };
    check(&[], "");
    check(&[0xB066], "");
    check(&[0xB064], "");
    check(&[0xB064, 0xB139], "the uplink's blocks");
    check(&[0xB064, 0xB066], "the phone's uplink buffer");
}

/// A leg whose buffer is not logged may hold the data.
#[test]
fn both_legs_of_an_upload_need_evidence() {
    let text = [SPLIT, "[split]\nuplink_threshold_bytes = 100000\n", FILE].concat();
    let (_dir, out) = run(&text, 20);
    for (dropped, expected) in
        [(&[][..], Verdict::Radio), (&[0xB064, 0xB066][..], Verdict::Unknown)]
    {
        let inputs = without_codes(&out, LOG[0], dropped);
        let report = radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
        assert_eq!(report.transfers[0].verdict, expected, "{dropped:X?}");
    }
}
