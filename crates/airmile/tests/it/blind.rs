//! Captures alone, of runs of the lab with a known cause: probabilities, or no verdict and what to
//! capture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile::model::{Cause, Verdict};
use airmile::{Diagnosis, Exports, Inputs, NAMED_FROM, Progress, RadioOptions, Subject};
use airmile::{export, report};

use airmile_testing::shared_data;

use crate::common::diagnosis_of;

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
    if let [only] = answer.transfers.as_slice() {
        assert_eq!((only.verdict, only.confidence), (session.verdict, session.confidence));
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
    let answer = diagnosis_of(&files(&run, &["phone.pcapng"]));
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

/// Most of the time is that of losses, which the radio caused: no slow line.
#[test]
fn losses_without_a_queue_are_no_slow_line() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("lossy-radio", None, &run).unwrap();
    for captures in [&["phone.pcapng"][..], &["server.pcapng"], &["phone.pcapng", "server.pcapng"]]
    {
        let answer = diagnosis_of(&files(&run, captures));
        assert_eq!(answer.session.verdict, Verdict::Unknown, "{captures:?}");
        assert!(answer.session.says.contains("Packets are lost on the path"), "{captures:?}");
        check_sums(&answer);
    }
}

/// Losses are no suspect of the model; what they take of the time is stated.
#[test]
fn losses_are_stated() {
    let dir = tempfile::tempdir().unwrap();
    let answer = |loss: f64, captures: &[&str]| {
        let text = format!(
            "seed = 7\nname = \"lossy\"\n[core]\nrtt_ms = 60\n[core.down]\nloss = {loss:?}\n[[apps]]\nname \
             = \"file\"\nstart_ms = 500\nworkload = {{ kind = \"file\", bytes = 2_000_000 }}\n"
        );
        let run = dir.path().join(format!("{loss}"));
        let scenario = airmile_emulate::Scenario::from_toml(&text).unwrap();
        airmile_lab::leave(&scenario, &run, true).unwrap();
        diagnosis_of(&files(&run, captures)).session.says
    };
    for captures in [&["phone.pcapng"][..], &["server.pcapng"], &["phone.pcapng", "server.pcapng"]]
    {
        let lossy = answer(0.03, captures);
        assert!(lossy.contains("Packets are lost on the path"), "{captures:?}: {lossy}");
        assert!(lossy.ends_with("A modem log shows whether the radio lost them."), "{lossy}");
    }
    let clean = answer(0.0, &["phone.pcapng"]);
    assert!(!clean.contains("lost"), "{clean}");
}

/// Contention and signal are one suspect; the document lists its causes.
#[test]
fn the_radio_is_not_parted() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("busy-file", None, &run).unwrap();
    let answer = diagnosis_of(&files(&run, &["phone.pcapng"]));
    let first = serde_json::to_value(&answer.session.suspects[0]).unwrap();
    assert_eq!(first["suspect"], "radio");
    assert_eq!(first["causes"], serde_json::json!(["radio_contention", "radio_signal"]));

    let html = dir.path().join("page.html");
    let exports = Exports { html: Some(html.clone()), perfetto: None };
    let inputs = Inputs { files: files(&run, &["phone.pcapng"]), ..Inputs::default() };
    export(&inputs, &RadioOptions::default(), &exports, Subject::Diagnosis, &Progress::default())
        .unwrap();
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
    let both = diagnosis_of(&files(&run, &["phone.pcapng", "server.pcapng"]));
    check_sums(&both);
    assert_eq!(both.files.len(), 2);
    // The steps of the named transfers state which host restarts.
    let named: Vec<_> =
        both.transfers.iter().filter(|t| t.verdict == Verdict::SlowStartRestart).collect();
    assert!(named.iter().all(|t| t.next_step.contains("bypass the middlebox")), "{named:?}");

    let server = diagnosis_of(&files(&run, &["server.pcapng"]));
    check_sums(&server);
    // How data arrived at the phone is unknown, and therefore also which host restarts slow start
    // there.
    assert_eq!(server.session.verdict, Verdict::Unknown, "{}", server.session.says);
    let sum: f64 = server.session.suspects.iter().map(|one| one.probability).sum();
    assert!(!server.session.suspects.is_empty() && (sum - 1.0).abs() < 1e-6, "{sum}");
    assert!(server.session.says.starts_with("No verdict by packets alone"));
    assert!(server.missing[0].how_to_capture.contains("capture at the phone"));

    let seen = diagnosis_of(&files(&run, &["modem.mi2log", "phone.pcapng"]));
    assert!(seen.session.suspects.is_empty() && seen.session.link_demand.is_some());
    assert_eq!(seen.transfers_from, "captured");
    let log = diagnosis_of(&files(&run, &["modem.mi2log"]));
    assert_eq!(log.transfers_from, "detected");
}

/// For QUIC only arrivals are visible.
#[test]
fn datagrams_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("quic-file", None, &run).unwrap();
    let answer = diagnosis_of(&files(&run, &["phone.pcapng"]));
    check_sums(&answer);
    assert_eq!(answer.transfers.len(), 1);
    let is_named = answer.transfers[0].evidence.iter().any(|item| item.what.contains("datagrams"));
    assert!(is_named && answer.missing.iter().any(|one| one.what.contains("QUIC")));

    // The server's capture beside it, in either order, is known as such.
    for names in [["phone.pcapng", "server.pcapng"], ["server.pcapng", "phone.pcapng"]] {
        let both = diagnosis_of(&files(&run, &names));
        assert_eq!(both.transfers[0].finding, answer.transfers[0].finding, "{names:?}");
        let problems = |name: &str| {
            let file = both.files.iter().find(|file| file.path.ends_with(name)).unwrap();
            file.problems.iter().map(ToString::to_string).collect::<Vec<_>>().concat()
        };
        let found = ["phone.pcapng", "server.pcapng"].map(problems);
        assert!(found.iter().all(String::is_empty), "{names:?}: {found:?}");
    }
    let server = diagnosis_of(&files(&run, &["server.pcapng"]));
    assert!(server.session.says.contains("taken at the server"), "{}", server.session.says);

    // Signal and contention take almost the same time: both are stated, and the costlier mended first.
    let whole = diagnosis_of(std::slice::from_ref(&run));
    let (says, next) = (&whole.session.says, &whole.transfers[0].next_step);
    assert!(says.contains("Almost as long: radio contention, 48 %."), "{says}");
    assert!(next.starts_with("other users hold the cell"), "{next}");
    assert!(next.contains("Almost as long: radio signal. For it: the signal limits it"), "{next}");
    assert_eq!(whole.transfers[0].counterfactual_of, Some(Cause::RadioContention));
}

/// Uploads are not diagnosed, whichever log gives them.
#[test]
fn an_upload_of_the_applications_log() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let text = "seed = 7\nname = \"upload\"\n[core]\nrtt_ms = 60\n[[apps]]\nname = \"upload\"\n\
                start_ms = 500\nworkload = { kind = \"upload\", bytes = 2_000_000 }\n";
    let scenario = airmile_emulate::Scenario::from_toml(text).unwrap();
    airmile_lab::leave(&scenario, &run, true).unwrap();
    let alone = diagnosis_of(&files(&run, &["phone.pcapng"]));
    assert!(alone.session.says.contains("show an upload of 2.00 MB"), "{}", alone.session.says);
    let start_us = alone.files[0].start_us.unwrap();
    let sum = r#"{"end":5,"bytes":1000000}"#;
    let log = format!(
        r#"{{"start":{{"version":"iperf 3.12","timestamp":{{"timesecs":{}}},"test_start":{{"protocol":"TCP","num_streams":1,"reverse":0}}}},"intervals":[],"end":{{"sum_sent":{sum},"sum_received":{sum}}}}}"#,
        start_us / 1_000_000
    );
    std::fs::write(run.join("iperf.json"), log).unwrap();
    let answer = diagnosis_of(&files(&run, &["iperf.json", "phone.pcapng"]));
    let [upload] = answer.transfers.as_slice() else { panic!("{:?}", answer.transfers) };
    assert_eq!((upload.verdict, answer.session.verdict), (Verdict::Unknown, Verdict::Unknown));
    assert!(upload.suspects.is_empty() && answer.clocks.is_empty(), "{:?}", answer.clocks);
    let says: Vec<&str> = upload.evidence.iter().map(|item| item.what.as_str()).collect();
    assert!(says[0].contains("1.60 Mbit/s"), "{says:?}");
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
    let answer = diagnosis_of(&[run.join("phone.pcapng"), log]);
    check_sums(&answer);
    assert_eq!(answer.transfers_from, "given", "{}", answer.session.says);
    assert_eq!(answer.transfers.len(), rows.len());
    assert!(answer.transfers[0].id.ends_with("-1") && answer.transfers[0].finding.bytes > Some(0));
    let first = answer.session.suspects[0].suspect;
    assert!(["slow_start_restart", "other"].contains(&first), "{}", answer.session.says);
    let clock = answer.clocks.iter().find(|clock| clock.file == "transfers").unwrap();
    assert!((clock.offset_ms.unwrap() - 2_000.0).abs() < 50.0, "{clock:?}");
}

/// A download of `n` segments, one in 2 ms, with round trips of `rtt_us`: raw IPv4 in a pcap file.
fn download(rtt_us: u32, n: u32, [to_phone, from_phone]: [bool; 2]) -> Vec<u8> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let mut file: Vec<u8> = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101_u32]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let mut packet = |at_us: u32, down: bool, flags: u8, seq: u32, ack: u32, payload: u16| {
        if !(if down { to_phone } else { from_phone }) {
            return;
        }
        let (own, peer) =
            if down { ([192, 0, 2, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [192, 0, 2, 1]) };
        let (from, to) = if down { (80_u16, 40_000_u16) } else { (40_000, 80) };
        let mut ip = vec![0x45, 0];
        ip.extend((40 + payload).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(own.into_iter().chain(peer));
        ip.extend(from.to_be_bytes().into_iter().chain(to.to_be_bytes()));
        ip.extend(seq.to_be_bytes().into_iter().chain(ack.to_be_bytes()));
        ip.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        ip.resize(ip.len() + usize::from(payload), 0);
        let len = u32::try_from(ip.len()).unwrap();
        let head = [1_700_000_000 + at_us / 1_000_000, at_us % 1_000_000, len, len];
        file.extend(head.iter().flat_map(|word| word.to_le_bytes()));
        file.extend(ip);
    };
    packet(0, false, SYN, 0, 0, 0);
    packet(rtt_us, true, SYN | ACK, 0, 1, 0);
    packet(rtt_us + 10, false, ACK, 1, 1, 0);
    packet(rtt_us + 20, false, ACK, 1, 1, 200);
    for at in 0..n {
        let at_us = 2 * rtt_us + 2_000 * at;
        packet(at_us, true, ACK, 1 + 1_000 * at, 201, 1_000);
        packet(at_us + 10, false, ACK, 201, 1 + 1_000 * (at + 1), 0);
    }
    file
}

/// Round trips that no cell has: the advice is not to log a modem.
#[test]
fn a_path_without_a_cell_gets_other_advice() {
    let dir = tempfile::tempdir().unwrap();
    for (rtt_us, modem) in [(1_000, false), (40_000, true)] {
        let capture = dir.path().join("phone.pcap");
        std::fs::write(&capture, download(rtt_us, 1_000, [true; 2])).unwrap();
        let answer = diagnosis_of(&[capture]);
        let how =
            |needle: &str| answer.missing.iter().any(|one| one.how_to_capture.contains(needle));
        assert_eq!(how("modem"), modem, "{:?}", answer.missing);
        assert_eq!(how("Wi-Fi"), !modem, "{:?}", answer.missing);
        assert!(answer.transfers.iter().all(|one| modem || !one.next_step.contains("modem")));
    }
}

/// The packets of one direction alone show no round trips: no suspect is named.
#[test]
fn one_direction_gives_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    for ways in [[true, false], [false, true]] {
        let capture = dir.path().join("phone.pcap");
        std::fs::write(&capture, download(40_000, 1_000, ways)).unwrap();
        let answer = diagnosis_of(std::slice::from_ref(&capture));
        assert_eq!(answer.session.verdict, Verdict::Unknown);
        assert!(answer.session.says.contains("one direction"), "{}", answer.session.says);
        assert!(answer.missing.iter().any(|one| one.what.contains("other direction")));
        let problems = format!("{:?}", answer.files[0].problems);
        assert!(!problems.contains("dropped"), "{problems}");
    }
}

/// A sender restarts slow start after idle time alone (RFC 5681, 4.1).
#[test]
fn without_a_pause_nothing_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("phone.pcap");
    std::fs::write(&capture, download(40_000, 1_000, [true; 2])).unwrap();
    let answer = diagnosis_of(&[capture]);
    let restart = answer.session.suspects.iter().find(|one| one.suspect == "slow_start_restart");
    assert!(restart.unwrap().probability < 0.01, "{:?}", answer.session.suspects);
}

/// Two captures of the same packets: the geometric means of what each of them says, unless these raise the
/// phone's first suspect. Behind a proxy that splits connections, the server's shows other ones, and says
/// nothing of the phone's.
#[test]
fn both_captures_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    for (scenario, same) in [("busy-file", true), ("slow-start-restart-proxy", false)] {
        let run = dir.path().join(scenario);
        airmile_lab::run_scenario(scenario, None, &run).unwrap();
        let of = |names: &[&str]| -> BTreeMap<&'static str, f64> {
            let suspects = diagnosis_of(&files(&run, names)).session.suspects;
            suspects.into_iter().map(|one| (one.suspect, one.probability)).collect()
        };
        let (phone, server) = (of(&["phone.pcapng"]), of(&["server.pcapng"]));
        let both = of(&["phone.pcapng", "server.pcapng"]);
        let means = phone.iter().map(|(name, p)| (*name, (p * server[name]).sqrt()));
        let sum: f64 = means.clone().map(|(_, mean)| mean).sum();
        let pooled: BTreeMap<&str, f64> = means.map(|(name, mean)| (name, mean / sum)).collect();
        assert_ne!(phone, server);
        let first = phone.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        let raises = same && pooled[first.0] > *first.1;
        let pooled = if raises { phone.clone() } else { pooled };
        // Behind the proxy, a sender's pace may be a line's.
        let (expected, error) = if same { (&pooled, 1e-9) } else { (&phone, 1e-5) };
        let is_pace = |name: &str| !same && ["sender_limited", "wireline"].contains(&name);
        for (name, p) in expected.iter().filter(|(name, _)| !is_pace(name)) {
            assert!((both[name] - p).abs() < error, "{scenario}, {name}: {both:?}, {expected:?}");
        }
    }
}

const ENDS: [&str; 2] = ["pcap_ue.pcap.gz", "pcap_server.pcap.gz"];
const IN_FRONT_OF_CELL: &str = "pcap_core.pcap.gz";

/// ns-3's cell limited these downloads. A capture in front of it replaces no other, and does not show that
/// the radio was idle.
#[test]
fn a_capture_in_front_of_the_cell_is_not_the_phones() {
    let Some(run) = shared_data("ns3/case_nossr_pcap") else { return };
    for ends in [&ENDS[..], &ENDS[..1], &ENDS[1..]] {
        let alone = diagnosis_of(&files(&run, ends));
        let with = diagnosis_of(&files(&run, &[ends, &[IN_FRONT_OF_CELL]].concat()));
        let of = |answer: &Diagnosis| -> Vec<_> {
            answer.transfers.iter().map(|one| (one.verdict, one.suspects.clone())).collect()
        };
        assert_eq!(of(&alone), of(&with), "{ends:?}");
        assert!(of(&with).iter().all(|(verdict, _)| *verdict != Verdict::Wireline), "{ends:?}");
        let between = with.files.iter().find(|file| file.path.ends_with(IN_FRONT_OF_CELL)).unwrap();
        let problems = between.problems.iter().map(ToString::to_string).collect::<String>();
        assert!(problems.contains("taken between phone and server"), "{problems}");
    }
}

/// Without a verdict, restarts after pauses that took much of the time are stated.
#[test]
fn restarts_after_pauses_are_stated() {
    let session = |run: &str, end: &str| {
        let run = shared_data(&format!("ns3/{run}"))?;
        let session = diagnosis_of(&files(&run, &[end])).session;
        Some((session.verdict, session.says))
    };
    for end in [ENDS[0], ENDS[1]] {
        let Some((verdict, says)) = session("case_ssr_pcap", end) else { return };
        assert_eq!(verdict, Verdict::Unknown);
        assert!(says.contains("After pauses, 7 of 7 transfers grew from an initial"), "{says}");
        let (_, says) = session("case_nossr_pcap", end).unwrap();
        assert!(!says.contains("After pauses"), "{says}");
    }
}

/// A server's capture names nothing that the phone's own does not have first.
#[test]
fn a_cause_is_named_by_the_phones_capture_too() {
    let Some(run) = shared_data("ns3/file_comm_alone_pcap") else { return };
    let [phone, both] = [&ENDS[..1], &ENDS].map(|names| diagnosis_of(&files(&run, names)));
    let first = |answer: &Diagnosis, at: usize| answer.transfers[at].suspects[0].suspect;
    assert_eq!((first(&phone, 0), first(&both, 0)), ("other", "wireline"));
    assert!(both.transfers[0].suspects[0].probability >= 0.7);
    assert_eq!(both.transfers[0].verdict, Verdict::Unknown);
    assert_eq!((first(&phone, 1), both.transfers[1].verdict), ("radio", Verdict::Radio));
}
