//! Captures alone: several transfers, and several captures.

use airmile::model::Verdict;
use airmile_testing::shared_data;

use crate::common::{diagnosis_of, library_run};

/// The session's verdict is that of most of its time, and its sentence counts the transfers.
#[test]
fn a_session_agrees_with_its_transfers() {
    let Some(run) = shared_data("ns3/file_comm_alone_pcap") else { return };
    let answer = diagnosis_of(&[run.join("pcap_ue.pcap.gz")]);
    let verdicts: Vec<Verdict> = answer.transfers.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Radio, Verdict::Radio]);
    assert_eq!(answer.session.verdict, Verdict::Radio);
    let says = &answer.session.says;
    assert!(says.contains("bottleneck of 2 of the 3 transfers"), "{says}");
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

/// Datagrams of both directions align the clocks of two captures of QUIC.
#[test]
fn clocks_are_aligned_by_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let run = library_run("quic-file", dir.path());
    let server = run.join("server.pcapng");
    let answer = diagnosis_of(&[run.join("phone.pcapng"), server.clone()]);
    let clock = answer.clocks.iter().find(|clock| server.ends_with(&clock.file)).unwrap();
    // Both are on the emulator's clock; the two directions differ by half of their round trip at most.
    let (offset_ms, error_ms) = (clock.offset_ms.unwrap(), clock.error_ms.unwrap());
    assert!(offset_ms.abs() <= error_ms && error_ms < 100.0, "{offset_ms} {error_ms}");
    let evidence = answer.transfers.iter().flat_map(|one| &one.evidence);
    assert!(evidence.clone().all(|one| !one.what.contains("the phone is assumed")));
}
