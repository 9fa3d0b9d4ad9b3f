//! Conditions outside the lab's usual ones: hosts without TCP time stamps, short bursts, chatter
//! of a call.

use airmile::model::Verdict;
use airmile::{Inputs, Progress, RadioOptions, diagnose};

use crate::common::{diagnosis_of, scenario_run};

const NO_TIMESTAMPS: &str = "[phone_tcp]\ntimestamps = false\n[server_tcp]\ntimestamps = false\n";

fn download(name: &str, bytes: u64) -> String {
    format!(
        "[[apps]]\nname = \"{name}\"\nstart_ms = 500\n\
         workload = {{ kind = \"file\", bytes = {bytes} }}\n"
    )
}

/// Without time stamps (RFC 7323), as hosts with Windows: the server's capture shows the queue,
/// although the receive window is full.
#[test]
fn a_slow_line_is_named_without_time_stamps() {
    let line = "about = \"a slow line\"\nseed = 15\nduration_ms = 60_000\n\
                [core.down.limit]\nrate_bps = 4_000_000\nqueue_bytes = 150_000\n";
    let dir = tempfile::tempdir().unwrap();
    let run =
        scenario_run(&format!("{line}{NO_TIMESTAMPS}{}", download("file", 6_000_000)), dir.path());
    let names = ["modem.mi2log", "server.pcapng", "phone.pcapng"].map(|name| run.join(name));
    for files in [&names[..], &names[..2]] {
        let answer = diagnosis_of(files);
        assert_eq!(answer.session.verdict, Verdict::Wireline, "{}", answer.session.says);
    }
}

/// Acknowledgements wait behind an upload, in a queue after the radio: without time stamps the phone's
/// packets show neither, the server's show when each was received.
#[test]
fn late_acknowledgements_are_seen_without_time_stamps() {
    let slow_up = "about = \"an upload beside a download\"\nseed = 29\nduration_ms = 60_000\n\
                   [core.up.limit]\nrate_bps = 1_000_000\nqueue_bytes = 200_000\n";
    let upload = "[[apps]]\nname = \"up\"\nstart_ms = 900\n\
                  workload = { kind = \"upload\", bytes = 5_000_000 }\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(
        &format!("{slow_up}{NO_TIMESTAMPS}{upload}{}", download("file", 3_000_000)),
        dir.path(),
    );
    let names = ["modem.mi2log", "transfers.csv", "phone.pcapng", "server.pcapng"];
    let answer = diagnosis_of(&names.map(|name| run.join(name)));
    let file = answer.transfers.iter().find(|one| one.id == "file-1").unwrap();
    assert_eq!(file.verdict, Verdict::UplinkQueue, "{:?}", file.finding);
}

/// A slow reader stays one: the server's packets show a full window, and no late acknowledgements.
#[test]
fn a_slow_reader_is_named_without_time_stamps() {
    let start = "about = \"a slow reader\"\nseed = 30\nduration_ms = 60_000\n";
    let reader = "[[apps]]\nname = \"file\"\nstart_ms = 500\n\
                  workload = { kind = \"slow-reader\", bytes = 3_000_000, read_rate_bps = 2_000_000 }\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(&format!("{start}{NO_TIMESTAMPS}{reader}"), dir.path());
    let names = ["modem.mi2log", "transfers.csv", "phone.pcapng", "server.pcapng"];
    let answer = diagnosis_of(&names.map(|name| run.join(name)));
    assert_eq!(answer.session.verdict, Verdict::ReceiveWindow, "{}", answer.session.says);
}

/// The queue of an upload behind the radio stands when the download begins: no round trip of it is
/// short. Those of the upload are, and the server's time stamps show the way back.
#[test]
fn a_download_that_begins_behind_an_upload() {
    for (seed, rate_bps) in [(41, 600_000), (42, 1_000_000)] {
        let slow_up = format!(
            "about = \"a download behind an upload\"\nseed = {seed}\nduration_ms = 60_000\n\
             [core.up.limit]\nrate_bps = {rate_bps}\nqueue_bytes = 100_000\n\
             [[apps]]\nname = \"up\"\nstart_ms = 500\n\
             workload = {{ kind = \"upload\", bytes = 4_000_000 }}\n\
             [[apps]]\nname = \"file\"\nstart_ms = 4_000\n\
             workload = {{ kind = \"file\", bytes = 2_000_000 }}\n"
        );
        let dir = tempfile::tempdir().unwrap();
        let run = scenario_run(&slow_up, dir.path());
        let names = ["modem.mi2log", "transfers.csv", "phone.pcapng", "server.pcapng"];
        let names = names.map(|name| run.join(name));
        for files in [&names[..3], &names[..]] {
            let answer = diagnosis_of(files);
            let file = answer.transfers.iter().find(|one| one.id == "file-1").unwrap();
            assert_eq!(file.verdict, Verdict::UplinkQueue, "{:?}", file.finding);
        }
    }
}

/// The phone's packets alone show no queue without time stamps: losses may be its drops.
#[test]
fn losses_are_less_sure_where_no_queue_is_visible() {
    let line = "about = \"a slow line\"\nseed = 25\nduration_ms = 60_000\n\
                [core.down.limit]\nrate_bps = 3_000_000\nqueue_bytes = 40_000\n";
    let dir = tempfile::tempdir().unwrap();
    let run =
        scenario_run(&format!("{line}{NO_TIMESTAMPS}{}", download("file", 6_000_000)), dir.path());
    let answer = diagnosis_of(&["modem.mi2log", "phone.pcapng"].map(|name| run.join(name)));
    assert!(answer.session.confidence <= 0.6, "{}", answer.session.says);
}

/// Without time stamps a server that paces is not taken for a slow line, nor for slow start.
#[test]
fn a_paced_server_is_named_without_time_stamps() {
    let start = "about = \"a paced server\"\nseed = 16\nduration_ms = 60_000\n";
    let paced = "[[apps]]\nname = \"file\"\nstart_ms = 500\n\
                 workload = { kind = \"paced\", bytes = 3_000_000, rate_bps = 2_000_000 }\n";
    let dir = tempfile::tempdir().unwrap();
    let answer =
        diagnosis_of(&[scenario_run(&format!("{start}{NO_TIMESTAMPS}{paced}"), dir.path())]);
    assert_eq!(answer.session.verdict, Verdict::SenderLimited, "{}", answer.session.says);
}

/// A rate over a few bursts is not the link's; none is over the cell's peak. 50 PRB pairs carry at
/// most 2 blocks of 48,936 bits in a TTI (TS 36.213, table 7.1.7.2.1-1, I_TBS 33).
#[test]
fn no_rate_is_over_the_cells_peak() {
    const PEAK_BPS: f64 = 2.0 * 48_936.0 * 1e3;
    let page = "about = \"small objects\"\nseed = 17\nduration_ms = 40_000\n[[apps]]\n\
                name = \"object\"\nstart_ms = 500\nworkload = { kind = \"interactive\", \
                request_bytes = 300, response_bytes = 9_000, count = 60, gap_ms = 300 }\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(page, dir.path());
    let answer = diagnosis_of(std::slice::from_ref(&run));
    assert!(answer.transfers.len() > 20, "{}", answer.transfers.len());
    for one in &answer.transfers {
        let rates = [one.finding.link_throughput_bps, one.finding.burst_throughput_bps];
        let over = rates.into_iter().flatten().find(|rate| *rate > PEAK_BPS);
        assert_eq!(over, None, "{}: {:?}", one.id, one.finding);
    }
}

/// The packets of a call, one each 20 ms, are no transfers that a link could have limited.
#[test]
fn a_call_is_no_transfer() {
    let call = "about = \"a call\"\nseed = 18\nduration_ms = 60_000\n[[apps]]\nname = \"call\"\n\
                start_ms = 500\nworkload = { kind = \"paced\", bytes = 67_000, \
                rate_bps = 9_600, block_bytes = 24 }\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(call, dir.path());
    // The modem log alone, in which transfers have to be found.
    let answer = diagnosis_of(&[run.join("modem.mi2log")]);
    let blamed: Vec<_> =
        answer.transfers.iter().filter(|t| t.verdict == Verdict::NotRadio).collect();
    assert!(blamed.is_empty(), "{blamed:?}");
    assert_ne!(answer.session.verdict, Verdict::NotRadio, "{}", answer.session.says);
}

/// Of two captures at the phone that show the same time one is used, and the other's report says so.
#[test]
fn a_second_capture_at_the_phone_is_not_used_in_silence() {
    let start = "about = \"a download\"\nseed = 19\nduration_ms = 20_000\n";
    let dir = tempfile::tempdir().unwrap();
    let run = scenario_run(&format!("{start}{}", download("file", 500_000)), dir.path());
    let other = run.join("other.pcapng");
    std::fs::copy(run.join("phone.pcapng"), &other).unwrap();
    let names = ["modem.mi2log", "phone.pcapng", "server.pcapng", "other.pcapng"];
    let answer = diagnosis_of(&names.map(|name| run.join(name)));
    let said = answer.files.iter().filter(|file| {
        file.problems.iter().any(|one| one.what.starts_with("not used: it shows the same time"))
    });
    assert_eq!(said.count(), 1);
}

const LONG_PATH: &str =
    "about = \"losses\"\nseed = 31\nduration_ms = 60_000\n[core]\nrtt_ms = 80\n";

/// A queue of 20 ms shows in no delay, but its drops come at the line's rate: the phone's capture names the
/// line, with both captures losses without a queue, neither for certain. Losses at random are not the line's.
#[test]
fn drops_of_a_short_queue_are_not_certain() {
    let line = "[core.down.limit]\nrate_bps = 8_000_000\nqueue_bytes = 20_000\n";
    let lost = Verdict::LossRecoveryCongestion;
    for (path, verdicts, most) in
        [(line, [Verdict::Wireline, lost], 0.6), ("[core.down]\nloss = 0.02\n", [lost; 2], 1.0)]
    {
        let dir = tempfile::tempdir().unwrap();
        let run =
            scenario_run(&format!("{LONG_PATH}{path}{}", download("file", 6_000_000)), dir.path());
        let names = ["modem.mi2log", "phone.pcapng", "server.pcapng"].map(|name| run.join(name));
        for (files, verdict) in [&names[..2], &names[..]].into_iter().zip(verdicts) {
            let session = diagnosis_of(files).session;
            assert_eq!(session.verdict, verdict, "{}", session.says);
            assert!(session.confidence <= most, "{}: {}", session.says, session.confidence);
        }
    }
}

/// The server's capture of another run has the same addresses and ports.
#[test]
fn the_servers_capture_of_another_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let paced = "[[apps]]\nname = \"file\"\nstart_ms = 500\n\
                 workload = { kind = \"paced\", bytes = 3_000_000, rate_bps = 2_000_000 }\n";
    let line = "[core.down.limit]\nrate_bps = 3_000_000\nqueue_bytes = 300_000\n";
    let other = format!("{line}{}", download("file", 6_000_000));
    let [own, other] = [(31, paced), (32, &*other)].map(|(seed, rest)| {
        let start = format!("about = \"a download\"\nseed = {seed}\nduration_ms = 60_000\n");
        let out = dir.path().join(seed.to_string());
        std::fs::create_dir(&out).unwrap();
        scenario_run(&format!("{start}{rest}"), &out)
    });
    let files =
        vec![own.join("modem.mi2log"), own.join("phone.pcapng"), other.join("server.pcapng")];
    let inputs = Inputs { files, ..Inputs::default() };
    let error = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("other sequence numbers"), "{error}");
}
