//! Captures alone: several transfers, and several captures.

use std::path::{Path, PathBuf};

use airmile::Diagnosis;
use airmile::model::Verdict;
use airmile_testing::shared_data;

use crate::common::{diagnosis_of, library_run};

/// A session is not another cause's than its transfers, and its sentence counts these.
#[test]
fn a_session_agrees_with_its_transfers() {
    let Some(run) = shared_data("ns3/file_comm_alone_pcap") else { return };
    let answer = diagnosis_of(&[run.join("pcap_ue.pcap.gz")]);
    let verdicts: Vec<Verdict> = answer.transfers.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Radio, Verdict::Radio]);
    assert_eq!(answer.session.suspects[0].suspect, "radio");
    let says = &answer.session.says;
    assert!(says.contains("one by one: the radio link in 2, unknown in 1"), "{says}");
}

/// The link demand of a session is that of all its downloads together, without the pauses between them.
#[test]
fn a_session_sums_its_transfers() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("slow-start-restart", dir.path());
    let answer = diagnosis_of(&[run.join("modem.mi2log"), run.join("transfers.csv")]);
    let findings: Vec<_> = answer.transfers.iter().map(|one| &one.finding).collect();
    assert!(findings.len() > 10 && findings.iter().all(|one| !one.overlapped));
    let queued_ms: f64 = findings.iter().filter_map(|one| one.throughput_time_ms).sum();
    let duration_ms: f64 = findings.iter().map(|one| one.duration_ms).sum();
    let demand = answer.session.link_demand.unwrap();
    assert!((demand - queued_ms / duration_ms).abs() < 1e-9, "{demand} {queued_ms} {duration_ms}");
    let (first, last) = (findings[0].start_us.unwrap(), findings[12].end_us.unwrap());
    assert!(duration_ms < 0.9 * (last - first) as f64 / 1e3, "{duration_ms}");
}

/// A capture of other traffic is not used, whatever else is given.
#[test]
fn captures_of_other_connections_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let [own, other] =
        ["rate-limited-server", "middlebox-ports"].map(|name| library_run(name, dir.path()));
    let [phone, server] = ["phone.pcapng", "server.pcapng"].map(|name| own.join(name));
    let strange = other.join("server.pcapng");
    for given in [vec![phone.clone()], vec![phone, server]] {
        let without = diagnosis_of(&given);
        let with = diagnosis_of(&[given, vec![strange.clone()]].concat());
        assert_eq!(with.session, without.session);
        let problems: Vec<String> =
            with.files.last().unwrap().problems.iter().map(ToString::to_string).collect();
        let expected = "not used: it has no connection in common with";
        assert!(problems.iter().any(|one| one.starts_with(expected)), "{problems:?}");
    }
}

/// What a VPN acknowledges shows no sender: the time without a request alone has a cause. The server's
/// capture has its verdict with such a capture, too.
#[test]
fn a_capture_inside_the_phone_shows_no_sender() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("rate-limited-server", dir.path());
    let [modem, phone, server] =
        ["modem.mi2log", "phone.pcapng", "server.pcapng"].map(|name| run.join(name));
    let named = diagnosis_of(&[modem.clone(), phone.clone()]);
    assert_eq!(named.session.verdict, Verdict::SenderLimited);
    let mut bytes = std::fs::read(&phone).unwrap();
    // PCAPdroid's address instead of the phone's.
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == [10, 0, 0, 2] {
            bytes[at..at + 4].copy_from_slice(&[10, 215, 173, 1]);
        }
    }
    let inside = run.join("inside.pcapng");
    std::fs::write(&inside, bytes).unwrap();
    let answer = diagnosis_of(&[modem, inside.clone()]);
    assert_eq!(answer.session.verdict, Verdict::NotRadio);
    let shares = &answer.session.shares;
    assert!(shares["unknown"] > 0.9 * shares.values().sum::<f64>(), "{shares:?}");
    let [alone, both] = [vec![server.clone()], vec![inside, server]].map(|of| diagnosis_of(&of));
    assert_eq!(alone.session.verdict, Verdict::SenderLimited);
    assert_eq!(both.session.suspects, alone.session.suspects);
    assert_eq!(both.session.verdict, alone.session.verdict);
}

/// A copy of a capture of the lab, on a clock that is ahead. Its words are big-endian.
fn ahead(capture: &Path, ns: u64) -> PathBuf {
    let mut bytes = std::fs::read(capture).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut at = 0;
    while at < bytes.len() {
        // The time of an enhanced packet block.
        if word(&bytes, at) == 6 {
            let time: &mut [u8; 8] = (&mut bytes[at + 12..at + 20]).try_into().unwrap();
            *time = (u64::from_be_bytes(*time) + ns).to_be_bytes();
        }
        at += word(&bytes, at + 4) as usize;
    }
    let path = capture.with_extension("ahead.pcapng");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Datagrams of both directions align the clocks of two captures of QUIC.
#[test]
fn clocks_are_aligned_by_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("quic-file", dir.path());
    let phone = run.join("phone.pcapng");
    for ahead_s in [0, 5, 7_200] {
        let server = ahead(&run.join("server.pcapng"), ahead_s * 1_000_000_000);
        let answer = diagnosis_of(&[phone.clone(), server.clone()]);
        let [clock] = answer.clocks.as_slice() else { panic!("{:?}", answer.clocks) };
        let (offset_ms, error_ms) = (clock.offset_ms.unwrap(), clock.error_ms.unwrap());
        // The two directions differ by half of their round trip at most.
        assert!((offset_ms - ahead_s as f64 * 1e3).abs() <= error_ms, "{}", clock.says);
        assert!(error_ms < 35.0, "{}", clock.says);
        let [transfer] = answer.transfers.as_slice() else { panic!("{:?}", answer.transfers) };
        let says = |what: &str| transfer.evidence.iter().any(|one| one.what.contains(what));
        assert!(says("queued between server and phone") && !says("the phone is assumed"));
    }
}

/// The end of a connection is no data of its last transfer.
#[test]
fn a_late_end_of_a_connection_is_no_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("slow-start-restart", dir.path());
    let [phone, server] =
        ["phone.pcapng", "server.pcapng"].map(|name| diagnosis_of(&[run.join(name)]));
    for answer in [&phone, &server] {
        assert_eq!(answer.session.verdict, Verdict::SlowStartRestart, "{}", answer.session.says);
        let named = answer.transfers.iter().filter(|one| one.verdict == Verdict::SlowStartRestart);
        let counted = format!("of {} of the 13 transfers", named.count());
        assert!(answer.session.says.contains(&counted), "{}", answer.session.says);
    }
    let longest = |answer: &Diagnosis| {
        let each = answer.transfers.iter().map(|one| one.finding.duration_ms);
        each.fold(0.0, f64::max)
    };
    assert!((longest(&server) - longest(&phone)).abs() < 200.0, "{}", longest(&server));
}
