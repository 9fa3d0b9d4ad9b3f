//! `inspect` and `diagnose` on records of phones and modems since 2020.

use std::collections::BTreeMap;

use airmile::model::{Direction, Record};
use airmile::{Inputs, InspectReport, Limits, Progress, RadioOptions, diagnose, inspect};
use airmile_emulate::workload::Workload;
use airmile_testing::shared_data;

fn sample(name: &str) -> Option<Inputs> {
    let path = shared_data(&format!("modern/{name}"))?;
    Some(Inputs { files: vec![path], ..Inputs::default() })
}

fn inspected(inputs: &Inputs) -> InspectReport {
    inspect(inputs, Limits::default(), &Progress::default()).unwrap()
}

/// Code and version of the messages, with the numbers present and read.
fn messages(report: &InspectReport) -> BTreeMap<String, (u64, u64)> {
    let rows = report.files.iter().flat_map(|file| &file.messages);
    rows.map(|row| (format!("{} {}", row.code, row.version_text()), (row.count, row.decoded)))
        .collect()
}

fn has(report: &InspectReport, words: &str) {
    let found = report.can_answer.iter().any(|answer| answer.contains(words));
    assert!(found, "{words}: {:?}", report.can_answer);
}

/// The result of `diagnose`: a few blocks show no transfer, and no bottleneck may be named.
fn names_no_bottleneck(inputs: &Inputs) {
    let found = diagnose(inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(found.session.verdict, airmile::model::Verdict::Unknown);
}

fn refusal(inputs: &Inputs) -> String {
    let found = diagnose(inputs, &RadioOptions::default(), &Progress::default());
    found.err().unwrap().to_string()
}

#[test]
fn blocks_with_padding_and_poll_bits_of_0xb063_v50() {
    let Some(inputs) = sample("lte_b063_v50.qmdl") else { return };
    let report = inspected(&inputs);
    assert_eq!(messages(&report), BTreeMap::from([("0xB063 50".to_owned(), (100, 100))]));
    assert_eq!(report.files[0].records["mac_block"], 209);
    has(&report, "18 RLC PDUs with poll bits, the padding of 197 blocks");
    names_no_bottleneck(&inputs);
}

#[test]
fn allocations_of_0xb173_v48() {
    let Some(inputs) = sample("lte_b173_v48.qmdl") else { return };
    let report = inspected(&inputs);
    assert_eq!(messages(&report), BTreeMap::from([("0xB173 48".to_owned(), (1, 1))]));
    assert_eq!(report.files[0].records["grant"], 10);
    names_no_bottleneck(&inputs);
}

#[test]
fn blocks_of_nr_with_the_check_of_their_sizes() {
    let Some(inputs) = sample("nr_b887_v2_5.qmdl") else { return };
    let report = inspected(&inputs);
    assert_eq!(messages(&report), BTreeMap::from([("0xB887 2.5".to_owned(), (2, 2))]));
    assert_eq!(report.files[0].records["grant"], 6);
    has(&report, "is 0xB887 2.5 laid out as assumed: 5 of 5 new blocks");
    names_no_bottleneck(&inputs);
}

/// The last row is cut off in the source: damage, and the rest is read.
#[test]
fn a_text_export_of_both_radios() {
    let Some(inputs) = sample("qcat_blocks.txt") else { return };
    let report = inspected(&inputs);
    let messages = messages(&report);
    for (code, expected) in [("0xB063 -", (1, 1)), ("0xB173 -", (1, 1)), ("0xB887 -", (3, 3))] {
        assert_eq!(messages.get(code), Some(&expected), "{code}: {messages:?}");
    }
    let file = &report.files[0];
    assert!(file.start_us < file.end_us && file.damaged);
    assert_eq!(file.records["grant"], 5);
    has(&report, "the padding of 1 blocks");
    names_no_bottleneck(&inputs);
}

#[test]
fn a_console_trace_says_what_it_shows() {
    let Some(inputs) = sample("srsran_gnb_console.txt") else { return };
    let report = inspected(&inputs);
    assert_eq!((report.files[0].items, report.files[0].bad_items), (153, 0));
    let words = "data waited at the base station in 0 % of the rows";
    has(&report, words);
    let message = refusal(&inputs);
    assert_eq!(message.matches(words).count(), 1, "{message}");
}

#[test]
fn the_statistics_of_a_gnb_say_what_they_show() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gnb.log");
    // A long start, as real ones have.
    let start = "[NR_MAC]   TDD period index = 6\n".repeat(300);
    let report = |frame: u32, dl: u32, bytes: u32| {
        format!(
            "[NR_MAC]   Frame.Slot {frame}.0\n\
             UE 2460: dlsch_rounds {dl}/50/10/0, dlsch_errors 1, pucch0_DTX 3, BLER 0.1\n\
             UE 2460: LCID 4: TX {bytes} RX 16152 bytes\n"
        )
    };
    std::fs::write(&path, start + &report(896, 1_000, 1_000) + &report(0, 1_200, 161_000)).unwrap();
    let inputs = Inputs { files: vec![path], ..Inputs::default() };
    let report = inspected(&inputs);
    assert_eq!((&*report.files[0].kind, report.files[0].items), ("gnb_log_oai", 2));
    has(&report, "downlink 1000 kbit/s");
    let message = refusal(&inputs);
    assert!(message.contains("no slots and no queue"), "{message}");
}

#[test]
fn what_is_no_log_is_named_so() {
    for (name, words) in [("nr_vectors.json", "is JSON of no kind"), ("lte_b063_v50.hex", "kind")] {
        let Some(inputs) = sample(name) else { return };
        let report = inspected(&inputs);
        assert_eq!(report.usable_files, 0);
        assert!(report.can_answer.is_empty());
        let message = refusal(&inputs);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn single_messages_are_read_or_named_with_their_version() {
    let Some(inputs) = sample("lte_payloads") else { return };
    let mut names = BTreeMap::new();
    for file in std::fs::read_dir(&inputs.files[0]).unwrap() {
        let one = Inputs { files: vec![file.unwrap().path()], ..Inputs::default() };
        names.extend(messages(&inspected(&one)));
    }
    assert_eq!(names["0xB173 48"], (1, 1));
    for code in ["0xB16C 48", "0xB12A 161", "0xB083 48", "0xB0A1 53", "0xB0B6 56"] {
        assert_eq!(names[code].0, 1, "{names:?}");
    }
}

/// What control reads of an NR log at once is what the whole log says later: blocks of the uplink with
/// their sizes and slots, and buffer status reports.
#[test]
fn the_uplink_of_nr_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = airmile_lab::load("nr-tdd-video").unwrap();
    scenario.duration_ms = 4_000;
    scenario.apps[0].workload = Workload::Upload { bytes: 3_000_000, count: 1, gap_ms: 0 };
    let run = dir.path().join("run");
    airmile_lab::leave(&scenario, &run, false).unwrap();
    let log = std::fs::read(run.join("nr_modem.mi2log")).unwrap();
    let (mut blocks, mut reports) = (Vec::new(), Vec::new());
    let mut reader = airmile::codec::diag::PromptReader::new();
    for piece in log.chunks(1_000) {
        reader.push(piece, &mut |record| match record {
            Record::Grant(grant) => blocks.push((
                grant.at.unwrap().ns,
                grant.position.numerology,
                grant.tbs_bytes,
                grant.padding_bytes,
            )),
            Record::Bsr(report) => {
                reports.push((report.lcg, report.index, report.upper_bound_bytes))
            }
            _ => {}
        });
    }
    let (mut later_blocks, mut later_reports) = (Vec::new(), Vec::new());
    let inputs = Inputs { files: vec![run.join("nr_modem.mi2log")], ..Inputs::default() };
    airmile::read_inputs(&inputs, &Progress::default(), &mut |tagged| match &tagged.record {
        Record::Grant(grant) if grant.dir == Direction::Ul => later_blocks.push((
            grant.at.unwrap().ns,
            grant.position.numerology,
            grant.tbs_bytes,
            grant.padding_bytes,
        )),
        Record::Bsr(report) => {
            later_reports.push((report.lcg, report.index, report.upper_bound_bytes));
        }
        _ => {}
    })
    .unwrap();
    assert!(blocks.len() > 300 && !reports.is_empty(), "{} {}", blocks.len(), reports.len());
    assert_eq!(reports, later_reports);
    assert_eq!(blocks.len(), later_blocks.len());
    // The first message defines the times until a sooner one comes: up to its delay late.
    for (now, later) in blocks.iter().zip(&later_blocks) {
        assert_eq!((now.1, now.2, now.3), (later.1, later.2, later.3));
        let late_ms = (now.0 - later.0) as f64 / 1e6;
        assert!((-1.0..100.0).contains(&late_ms), "{late_ms}");
    }
    let late_ms = |at: usize| (blocks[at].0 - later_blocks[at].0) as f64 / 1e6;
    assert!(late_ms(blocks.len() - 1) < 10.0, "{}", late_ms(blocks.len() - 1));
}
