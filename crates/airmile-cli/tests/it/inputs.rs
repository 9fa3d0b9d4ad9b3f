//! Inputs that a command cannot use as they are given: the error states what to do.

use std::fs;
use std::process::Command;

use crate::command::{airmile, document, path, sample, status, text};

/// A tar archive of files.
fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[156] = b'0';
        header[148..156].fill(b' ');
        header[257..262].copy_from_slice(b"ustar");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend(header);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1_024, 0);
    out
}

/// The status and the errors of a command.
fn errors(args: &[&str]) -> (i32, String) {
    let out = airmile(args);
    (out.status.code().unwrap(), text(&out.stderr))
}

#[test]
fn files_that_cannot_be_used_as_given() {
    let (_keep, run) = sample("page");
    let of = |name: &str| (name.to_owned(), fs::read(run.join(name)).unwrap());
    let archive = |name: &str, files: &[&str]| {
        let files: Vec<_> = files.iter().map(|file| of(file)).collect();
        let files: Vec<_> = files.iter().map(|(n, bytes)| (n.as_str(), bytes.clone())).collect();
        fs::write(run.join(name), tar(&files)).unwrap();
        path(&run, name)
    };
    // Captures and logs of applications in an archive are named.
    let whole = archive("whole.tar", &["modem.mi2log", "page.har", "phone.pcapng"]);
    let (code, says) = errors(&["diagnose", &whole]);
    assert!(code == 0 && says.contains("page.har (har), phone.pcapng (pcapng)"), "{says}");
    let rest = archive("rest.tar", &["page.har", "phone.pcapng"]);
    let (code, says) = errors(&["diagnose", &rest]);
    assert!(code == 3 && says.contains("phone.pcapng (pcapng): unpack it"), "{says}");
    // In a directory it is as by its name: its log is read, or what it holds is named.
    for (name, bytes) in [("with", &whole), ("without", &rest)] {
        let dir = run.join(name);
        fs::create_dir(&dir).unwrap();
        fs::copy(bytes, dir.join("a.tar")).unwrap();
        fs::copy(run.join("phone.pcapng"), dir.join("phone.pcapng")).unwrap();
    }
    let (with, without) = (path(&run, "with"), path(&run, "without"));
    let by_name = document("diagnose", &["diagnose", &whole, &path(&run, "phone.pcapng")]);
    let in_directory = document("diagnose", &["diagnose", &with]);
    assert_eq!(in_directory["transfers"], by_name["transfers"]);
    let (_, says) = errors(&["diagnose", "-v", &without]);
    assert!(says.contains("phone.pcapng (pcapng): unpack it, and give them"), "{says}");
    assert!(!says.contains("without a modem log in it"), "{says}");
    let compared = document("compare", &["compare", &with, &whole]);
    for run in 0..2 {
        let seen_by = compared["runs"][run]["seen_by"].to_string();
        assert!(seen_by.contains("modem log"), "{seen_by}");
    }
    // A growing log is not an archive.
    let (code, says) = errors(&["live", "--follow", &whole]);
    assert!(code == 3 && says.contains("is an archive, which --follow does not read"), "{says}");
    // A capture from a pipe.
    for command in ["diagnose", "inspect"] {
        let piped = Command::new(env!("CARGO_BIN_EXE_airmile"))
            .args([command, "-"])
            .stdin(fs::File::open(run.join("phone.pcapng")).unwrap())
            .output()
            .unwrap();
        let says = text(&piped.stderr);
        assert_eq!(piped.status.code(), Some(3), "{command}");
        assert!(says.contains("read several times here: write it to a file"), "{says}");
    }
    // Two HARs.
    let other = path(&run, "other.har");
    fs::copy(run.join("page.har"), &other).unwrap();
    for capture in [None, Some(path(&run, "phone.pcapng"))] {
        let mut args = vec!["diagnose".to_owned(), path(&run, "page.har"), other.clone()];
        args.extend(capture);
        let (code, says) = errors(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(code == 2 && says.contains("other.har are HARs"), "{says}");
    }
}

#[test]
fn decode_takes_the_format_of_packets_from_the_name() {
    let (_keep, run) = sample("page");
    let (log, out) = (path(&run, "modem.mi2log"), path(&run, "air.pcapng"));
    assert_eq!(status(&["decode", &log, "-o", &out]), 0);
    assert!(fs::read(&out).unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    let csv = path(&run, "log.csv");
    let (code, says) = errors(&["decode", &log, "-o", &csv]);
    assert!(code == 2 && says.contains("ends in .pcapng"), "{says}");
    assert!(!run.join("log.csv").exists());
    // These packets are for Wireshark.
    for command in ["diagnose", "packets", "radio", "decode", "inspect"] {
        let says = errors(&[command, &out]);
        assert!(
            says.0 == 3 && (command == "inspect" || says.1.contains("give the modem log")),
            "{says:?}"
        );
    }
    let parquet = ["decode", &log, "--format", "parquet"];
    let (code, says) = errors(&parquet);
    assert!(code == 2 && says.contains("with -o"), "{says}");
    let tables = path(&run, "tables");
    assert_eq!(status(&[&parquet[..], &["-o", &tables]].concat()), 0);
    assert!(run.join("tables/grant.parquet").exists());
    // Nothing within the limits.
    let (code, says) = errors(&["decode", &log, "-o", &out, "--from", "9000"]);
    assert!(code == 0 && says.contains("wrote 0 packets"), "{says}");
    assert!(says.contains("0xB0C0") && says.contains("0xB063"), "{says}");
    if fs::exists("/dev/full").unwrap() {
        let (_, says) = errors(&["decode", &log, "--format", "pcapng", "-o", "/dev/full"]);
        assert!(says.contains("/dev/full"), "{says}");
    }
}

#[test]
fn limits_in_the_wrong_order_are_refused() {
    let (_keep, run) = sample("page");
    let (log, capture) = (path(&run, "modem.mi2log"), path(&run, "phone.pcapng"));
    let limits = ["--from", "09:00:08", "--to", "09:00:07"];
    for args in [
        &["diagnose", &log][..],
        &["diagnose", &capture],
        &["radio", &log],
        &["inspect", &log],
        &["packets", &capture],
        &["decode", &log],
        &["decode", &log, "--format", "pcapng"],
    ] {
        let (code, says) = errors(&[args, &limits].concat());
        assert!(code == 2 && says.contains("--from is not before --to"), "{args:?} {code} {says}");
    }
    for command in ["diagnose", "packets"] {
        let (code, says) = errors(&[command, &capture, "--from", "9000"]);
        let words = ["no IP packets from --from on", "packets are of 2026-01-05 09:00:07."];
        assert!(code == 3 && words.iter().all(|words| says.contains(words)), "{says}");
    }
    let (_, says) = errors(&["diagnose", &capture, "--from", "9000", "--time-zone", "+02:00"]);
    assert!(says.contains("packets are of 2026-01-05 11:00:07."), "{says}");
    // Another remark is no reason for it.
    let cut = path(&run, "cut.pcapng");
    let bytes = fs::read(&capture).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 3]).unwrap();
    for command in ["diagnose", "packets"] {
        let (_, says) = errors(&[command, &cut, "--from", "9000"]);
        assert!(says.contains("packets are of 2026-01-05 09:00:07."), "{says}");
    }
}

/// The first line of what to do names all kinds that are read.
#[test]
fn notes_are_of_no_known_kind() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "notes.txt");
    fs::write(&file, "what I did this morning\n").unwrap();
    let (code, says) = errors(&["diagnose", &file]);
    assert_eq!(code, 3);
    for kind in ["modem log", "packet capture (.pcap, .pcapng)", "HAR", "table"] {
        assert!(says.contains(kind), "{kind}: {says}");
    }
}

#[test]
fn the_table_states_where_its_transfers_are_from() {
    let (_keep, run) = sample("busy-file");
    for (names, from) in [
        (&["modem.mi2log"][..], "activity split at pauses"),
        (&["modem.mi2log", "phone.pcapng"], "requests and answers of the capture"),
        (&["modem.mi2log", "transfers.csv"], "as given"),
    ] {
        let files: Vec<String> = names.iter().map(|name| path(&run, name)).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let out = airmile(&[&["diagnose"], files.as_slice()].concat());
        let says = String::from_utf8(out.stdout).unwrap();
        assert!(says.contains(&format!("Transfers ({from}")), "{names:?}: {says}");
    }
}

#[test]
fn a_capture_that_is_given_twice_is_named() {
    let (_keep, run) = sample("page");
    let (capture, copy) = (path(&run, "phone.pcapng"), path(&run, "copy.pcapng"));
    fs::copy(&capture, &copy).unwrap();
    let (code, says) = errors(&["diagnose", &capture, &capture]);
    assert!(code == 0 && says.contains("not used: given twice"), "{code} {says}");
    let (code, says) = errors(&["diagnose", &capture, &copy]);
    assert!(code == 0 && says.contains("not used: it holds the same packets as"), "{code} {says}");
}

/// A gNB's statistics state no queue: the capture is diagnosed without them.
#[test]
fn statistics_of_a_gnb_leave_the_capture_its_diagnosis() {
    let (_keep, run) = sample("page");
    let reports = (0..4).map(|n| {
        format!(
            "[NR_MAC]   Frame.Slot {}.0\n\
             UE 2460: dlsch_rounds {n}00/0/0/0, dlsch_errors 0, pucch0_DTX 0\n\
             UE 2460: LCID 4: TX {n}00000 RX 0 bytes\n",
            n * 128
        )
    });
    // The statistics begin after more than 64 KB of other lines.
    let first = "[GNB_APP]   start\n[NR_PHY]   start\n[NR_MAC]   start\n";
    let log = format!("{first}{}{}", "[HW]   ready\n".repeat(10_000), reports.collect::<String>());
    let gnb = path(&run, "gnb.log");
    fs::write(&gnb, log).unwrap();
    let out = airmile(&["diagnose", &gnb, &path(&run, "phone.pcapng")]);
    let (says, why) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(0), "{why}");
    assert!(says.contains("by packets alone"), "{says}");
    let out = airmile(&["inspect", &gnb]);
    let says = text(&out.stdout);
    assert!(says.contains("OpenAirInterface gNB, 1 user") && !says.contains("LTE_"), "{says}");
}

/// A capture in monitor mode (LINKTYPE_IEEE802_11_RADIOTAP) is named.
#[test]
fn a_capture_of_wlan_frames_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "wlan.pcap");
    let mut bytes = Vec::new();
    for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 127, 1_700_000_000, 0, 8, 8] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([0, 0, 8, 0, 0, 0, 0, 0]);
    fs::write(&file, bytes).unwrap();
    for command in ["diagnose", "packets"] {
        let (code, says) = errors(&[command, &file]);
        assert!(code == 3 && says.contains("no IP packets"), "{command}: {code} {says}");
        assert!(command != "diagnose" || says.contains("802.11 frames"), "{says}");
    }
}

/// A pcap of raw IPv4 (LINKTYPE_RAW): (ms, from the client, flags, seq, ack, payload bytes).
fn raw_pcap(packets: &[(u32, bool, u8, u32, u32, u16)]) -> Vec<u8> {
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101];
    let mut out: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (n, &(ms, up, flags, seq, ack, bytes)) in (1_u16..).zip(packets) {
        let wire = 40 + bytes;
        let times = [1_700_000_000 + ms / 1_000, ms % 1_000 * 1_000, wire.into(), wire.into()];
        out.extend(times.iter().flat_map(|word| word.to_le_bytes()));
        out.extend([0x45, 0]);
        out.extend(wire.to_be_bytes());
        out.extend(n.to_be_bytes());
        out.extend([0x40, 0, 64, 6, 0, 0]);
        let (client, server) = ([10, 1, 1, 2], [192, 0, 2, 10]);
        let (ends, ports) = if up {
            ([client, server], [40_000_u16, 443])
        } else {
            ([server, client], [443, 40_000])
        };
        out.extend(ends.concat());
        out.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        out.extend([seq, ack].iter().flat_map(|number| number.to_be_bytes()));
        out.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        out.resize(out.len() + usize::from(bytes), 0);
    }
    out
}

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What `packets` says of connections that did not open, and of uploads.
#[test]
fn uploads_and_connections_that_did_not_open_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let says = |name: &str, packets: &[(u32, bool, u8, u32, u32, u16)]| {
        let file = path(dir.path(), name);
        fs::write(&file, raw_pcap(packets)).unwrap();
        let out = airmile(&["packets", &file]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let syns: Vec<_> = (0..5).map(|n| (n * 1_000, true, SYN, 100, 0, 0)).collect();
    let told = says("syns.pcap", &syns);
    assert!(told.contains("100 % of the TCP connections were not answered."), "{told}");
    let told = says("rst.pcap", &[(0, true, SYN, 100, 0, 0), (50, false, RST | ACK, 0, 101, 0)]);
    assert!(told.contains("100 % of the TCP connections were refused."), "{told}");
    let mut upload = vec![
        (0, true, SYN, 100, 0, 0),
        (50, false, SYN | ACK, 900, 101, 0),
        (51, true, ACK, 101, 901, 0),
    ];
    for n in 0..40 {
        let (ms, seq) = (100 + 400 * n, 101 + 1_000 * n);
        upload.push((ms, true, ACK, seq, 901, 1_000));
        if n % 4 == 0 {
            upload.push((ms + 300, true, ACK, seq, 901, 1_000));
        }
        upload.push((ms + 350, false, ACK, 901, seq + 1_000, 0));
    }
    let told = says("upload.pcap", &upload);
    assert!(told.contains("20 % of the segments from clients were sent again."), "{told}");
    assert!(told.contains("resent up") && !told.contains("resent down"), "{told}");
    upload.dedup_by_key(|packet| (packet.1, packet.3, packet.4, packet.5));
    let told = says("sound.pcap", &upload);
    assert!(told.contains("1 TCP flow brought 40.0 kB from clients and 0 B to them."), "{told}");
}

/// A capture holds nothing about the radio; a run that is given twice cannot differ.
#[test]
fn captures_that_cannot_answer_say_so() {
    let (_keep, run) = sample("page");
    let capture = path(&run, "phone.pcapng");
    let (code, says) = errors(&["radio", &capture]);
    assert!(code == 3 && says.contains("holds nothing about the radio"), "{code} {says}");
    let (_, says) = errors(&["compare", &capture, &capture]);
    assert!(says.contains("is given twice"), "{says}");
}

/// A pcapng of Simple Packet Blocks alone has no times.
#[test]
fn a_capture_without_times_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "simple.pcapng");
    let words = [
        [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28].as_slice(),
        &[1, 20, 101, 0, 20],
        &[3, 20, 4, 0, 20],
    ];
    let bytes: Vec<u8> = words.concat().iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(&file, bytes).unwrap();
    for command in ["packets", "diagnose", "inspect"] {
        let (code, says) = errors(&[command, &file]);
        assert!(code == 3 && says.contains("have no times"), "{command}: {code} {says}");
    }
}

/// An empty file among good ones is reported, and the exit status is that of damage.
#[test]
fn an_empty_file_stops_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("rate-limited-server", None, &run).unwrap();
    let empty = dir.path().join("empty.pcap");
    fs::write(&empty, b"").unwrap();
    let out =
        airmile(&["radio", empty.to_str().unwrap(), run.join("modem.mi2log").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    for name in ["phone.pcapng", "modem.mi2log"] {
        let out = airmile(&["diagnose", empty.to_str().unwrap(), run.join(name).to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(4), "{name}: {}", text(&out.stderr));
        assert!(text(&out.stdout).contains("Verdict: "), "{}", text(&out.stdout));
        assert!(
            text(&out.stderr).contains("the file is empty: nothing was read"),
            "{}",
            text(&out.stderr)
        );
    }
}

/// Of a directory or among named files, an empty or damaged file stops no command, and shows in the
/// status; a file of another kind is named by `inspect`.
#[test]
fn a_bad_file_stops_no_command() {
    let (_keep, run) = sample("page");
    let dir = run.with_file_name("mixed");
    fs::create_dir(&dir).unwrap();
    for name in ["modem.mi2log", "phone.pcapng"] {
        fs::copy(run.join(name), dir.join(name)).unwrap();
    }
    fs::write(dir.join("empty.pcap"), b"").unwrap();
    fs::write(dir.join("bad.gz"), b"\x1f\x8bnothing").unwrap();
    fs::write(dir.join("notes.txt"), b"what I did this morning\n").unwrap();
    let (whole, empty, bad) = (path(&dir, ""), path(&dir, "empty.pcap"), path(&dir, "bad.gz"));
    for command in ["inspect", "diagnose", "radio", "decode", "packets"] {
        let good = path(&dir, if command == "packets" { "phone.pcapng" } else { "modem.mi2log" });
        for args in [&[command, &whole][..], &[command, &good, &empty, &bad]] {
            let (code, says) = errors(args);
            assert_eq!(code, 4, "{args:?}: {says}");
            for why in ["empty.pcap: the file is empty", "bad.gz: nothing can be"] {
                assert!(says.contains(why), "{args:?}: {says}");
            }
        }
        let (code, says) = errors(&[command, &empty, &bad]);
        assert!(code == 3 && says.contains("empty.pcap: "), "{command}: {code} {says}");
    }
    let (code, says) = errors(&["compare", &whole, &path(&run, "")]);
    assert!(code == 4 && says.contains("empty.pcap: the file is empty"), "{code} {says}");
    let out = text(&airmile(&["inspect", &whole]).stdout);
    assert!(out.contains("notes.txt: unknown, 24 B\n  not used: it is of no kind"), "{out}");
    // The name of a lab run's file makes no run of its directory.
    fs::write(dir.join("page.har"), b"").unwrap();
    fs::copy(run.join("grants.csv"), dir.join("grants.csv")).unwrap();
    fs::write(dir.join("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let (code, says) = errors(&["diagnose", &whole]);
    assert!(code == 4 && says.contains("page.har: the file is empty"), "{code} {says}");
    let out = text(&airmile(&["inspect", &whole]).stdout);
    for (name, why) in [("grants.csv", "give its name alone"), ("a.png", "it is a picture")] {
        let of = out.split(name).nth(1).and_then(|rest| rest.lines().nth(1));
        assert!(of.is_some_and(|line| line.contains(why)), "{name}: {out}");
    }
    let log = path(&dir, "modem.mi2log");
    let (code, says) = errors(&["radio", &log, "--transfers", &empty]);
    assert!(code == 4 && says.contains("empty.pcap: the file is empty"), "{code} {says}");
}

/// A log's name with other content in it is a log that was lost; any other name is none.
#[test]
fn garbage_under_a_logs_name_is_damage() {
    let (_keep, run) = sample("sample-download");
    let dir = run.join("given");
    fs::create_dir(&dir).unwrap();
    fs::copy(run.join("modem.mi2log"), dir.join("modem.mi2log")).unwrap();
    fs::write(dir.join("notes.txt"), b"some notes of the drive\n").unwrap();
    assert_eq!(status(&["diagnose", &path(&dir, "")]), 0);
    fs::write(dir.join("page.HAR"), b"some notes of the drive\n").unwrap();
    let (code, says) = errors(&["diagnose", &path(&dir, "")]);
    assert!(code == 4 && says.contains("page.HAR: not used: it is of no kind"), "{code} {says}");
}

/// What `diagnose` refuses, `inspect` reports, with the same status.
#[test]
fn inspect_names_a_file_that_cannot_be_read() {
    let (_keep, run) = sample("sample-download");
    let (log, empty) = (path(&run, "modem.mi2log"), path(&run, "empty.qmdl"));
    fs::write(&empty, b"").unwrap();
    let found = document("inspect", &["inspect", &log, &empty]);
    assert_eq!(found["usable_files"], 1);
    let done = airmile(&["inspect", &log, &empty]);
    assert_eq!(done.status.code(), Some(status(&["diagnose", &log, &empty])));
    assert_eq!(done.status.code(), Some(4));
    assert!(text(&done.stderr).contains("empty.qmdl: the file is empty"), "{}", text(&done.stderr));
    let other = path(&run, "other.qmdl");
    fs::write(&other, b"no log").unwrap();
    let done = airmile(&["inspect", &log, &other]);
    assert_eq!(done.status.code(), Some(status(&["diagnose", &log, &other])));
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stderr).contains("other.qmdl cannot be used"), "{}", text(&done.stderr));
    let nothing = document("inspect", &["inspect", &empty]);
    assert_eq!(nothing["usable_files"], 0);
}

/// A subscription or a time that a log does not have gives no empty table without a word.
#[test]
fn decode_names_a_selection_without_records() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    let (code, says) =
        errors(&["decode", &log, "--sim", "7", "--only", "grant", "--format", "csv"]);
    assert!(code == 2 && says.contains("it has 1"), "{code} {says}");
    let args = ["decode", &log, "--from", "2031-01-01", "--only", "grant", "--format", "csv"];
    let (code, says) = errors(&args);
    assert!(code == 0 && says.contains("no record lies within --from"), "{code} {says}");
    assert_eq!(errors(&["decode", &log, "--from", "1", "--only", "grant"]), (0, String::new()));
}

/// Each part of a rotated log has its own records, in a directory as by name.
#[test]
fn inspect_counts_the_records_of_each_file() {
    let (_keep, run) = sample("sample-download");
    let dir = run.join("parts");
    fs::create_dir(&dir).unwrap();
    let whole = fs::read(run.join("modem.mi2log")).unwrap();
    let (first, second) = whole.split_at(whole.len() / 2);
    fs::write(dir.join("b.mi2log"), first).unwrap();
    fs::write(dir.join("a.mi2log"), second).unwrap();
    let records = |args: &[&str]| -> Vec<serde_json::Value> {
        let files = document("inspect", args)["files"].clone();
        files.as_array().unwrap().iter().map(|file| file["records"].clone()).collect()
    };
    let named = records(&["inspect", &path(&dir, "a.mi2log"), &path(&dir, "b.mi2log")]);
    assert!(named.iter().all(|of| of["grant"].as_u64() > Some(100)), "{named:?}");
    assert_eq!(records(&["inspect", &path(&dir, "")]), named);
}

/// The lab's pcapng without its first packets: no handshake shows where it was taken.
fn begun_late(pcapng: &[u8], packets: usize) -> Vec<u8> {
    const ENHANCED_PACKET: u32 = 6;
    let (mut out, mut rest, mut left) = (Vec::new(), pcapng, packets);
    let word = |at: &[u8]| u32::from_be_bytes(at.try_into().unwrap());
    while rest.len() > 8 {
        let (block, after) = rest.split_at(word(&rest[4..8]) as usize);
        if left > 0 && word(&block[..4]) == ENHANCED_PACKET {
            left -= 1;
        } else {
            out.extend(block);
        }
        rest = after;
    }
    out
}

#[test]
fn compare_uses_a_capture_without_handshakes() {
    let (_keep, run) = sample("far-server");
    let dir = run.join("late");
    fs::create_dir(&dir).unwrap();
    let whole = fs::read(run.join("phone.pcapng")).unwrap();
    for (name, without) in [("phone.pcapng", 40), ("server.pcapng", 60)] {
        fs::write(dir.join(name), begun_late(&whole, without)).unwrap();
    }
    let (code, says) = errors(&["compare", &path(&dir, ""), &path(&run, "phone.pcapng")]);
    assert_eq!(code, 0, "{says}");
    assert!(says.contains("server.pcapng: not used: no handshake in it shows"), "{says}");
    // A probe's log states its other files, too.
    let log = serde_json::json!({"document": "probe", "version": 1, "host": "a.example", "seed": 1,
        "segment_bytes": 50_000, "segments": 1, "pause_ms": 0, "rounds": 1,
        "server_restarts_after_idle": null, "connections": [{"port": 443, "tls": false, "round": 0, "server": "x", "start_us": 0,
            "connect_us": 5, "tls_us": null}],
        "transfers": [{"id": "port-443-1", "connection": 0, "turn": 1, "start_us": 0,
            "first_byte_us": 5, "end_us": 900_000, "bytes": 50_000, "pause_us": null,
            "failed": null, "arrivals": [[1, 50_000]]}]});
    let probed = run.join("probed");
    fs::create_dir(&probed).unwrap();
    fs::write(probed.join("probe.json"), serde_json::to_string_pretty(&log).unwrap()).unwrap();
    assert_eq!(errors(&["compare", &path(&probed, "")]).0, 0);
    fs::write(probed.join("phone.pcap"), b"").unwrap();
    let (code, says) = errors(&["compare", &path(&probed, "")]);
    assert!(code == 4 && says.contains("phone.pcap: the file is empty"), "{code} {says}");
}
