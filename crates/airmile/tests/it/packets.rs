//! Captures through the facade: any compression, damage reported, tables equal in memory and on
//! disk.

mod parts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use airmile::model::ClientBy;
use airmile::{
    ArrowTable, Inputs, Limits, PacketOptions, PacketReport, Progress, TableFormat, inspect,
    packet_tables, packets,
};
use airmile_testing::shared_data;

use crate::common::diagnosis_of;

/// Our own capture of one HTTP request: five packets.
fn sample() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture/http.pcap")
}

fn study(path: &Path) -> (PacketReport, Vec<ArrowTable>) {
    let options = PacketOptions::default();
    packet_tables(&[path.to_owned()], &options, &Progress::default()).unwrap()
}

fn rows(tables: &[ArrowTable]) -> Vec<(&'static str, usize)> {
    tables.iter().map(|t| (t.name, t.n_rows())).filter(|t| t.1 > 0).collect()
}

#[test]
fn one_request_from_capture_to_tables() {
    let (report, tables) = study(&sample());
    assert_eq!((report.tcp_flows, report.users, report.quality.packets), (1, 1, 5));
    assert_eq!(report.client_by[&ClientBy::Syn], 1);
    assert_eq!(report.http_bytes["text"], 46);
    assert!(!report.damaged());
    let figure = |name: &str| report.summary.iter().find(|f| f.what == name).unwrap().here;
    assert_eq!(figure("handshake, monitor to client, median"), Some(1000.0));
    assert_eq!(figure("handshake, monitor to server, median"), None, "port 80 has a proxy");
    let expected =
        [("flows", 1), ("rtt_samples", 3), ("inflight_samples", 2), ("http", 1), ("users", 1)];
    assert_eq!(rows(&tables), expected);
}

#[test]
fn compressed_or_not_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let plain = fs::read(sample()).unwrap();
    let gz = dir.path().join("a");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plain).unwrap();
    fs::write(&gz, encoder.finish().unwrap()).unwrap();
    let zst = dir.path().join("b");
    fs::write(&zst, zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    let (expected, _) = study(&sample());
    for path in [gz, zst] {
        let (report, _) = study(&path);
        assert_eq!(report.summary, expected.summary);
        assert_eq!(report.quality, expected.quality);
    }
}

#[test]
fn a_cut_capture_is_analysed_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcap");
    let whole = fs::read(sample()).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let (report, _) = study(&path);
    assert!(report.damaged());
    assert_eq!(report.quality.packets, 4);
    let problem = &report.files[0].problems[0];
    assert!(problem.what.contains("ends inside a record"), "{problem}");
}

/// The sample with all times later, and the SYN's identification changed.
fn later(seconds: u32, other: bool) -> Vec<u8> {
    let mut bytes = fs::read(sample()).unwrap();
    let mut at = 24;
    while at < bytes.len() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (time, length) = (word(at) + seconds, word(at + 8));
        bytes[at..at + 4].copy_from_slice(&time.to_le_bytes());

        bytes[at + 16 + 5] ^= u8::from(other);
        at += 16 + length as usize;
    }
    bytes
}

#[test]
fn two_views_of_the_same_traffic_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.pcap");
    let study = |threads| {
        let options = PacketOptions { threads, ..PacketOptions::default() };
        packets::packets(&[sample(), path.clone()], &options, &Progress::default())
    };
    fs::write(&path, later(1, false)).unwrap();
    for threads in [1, 2] {
        let error = study(threads).unwrap_err().to_string();
        assert!(
            error.contains("other.pcap: 1 of its 1 connections are also in an earlier"),
            "{error}"
        );
    }
    // Another connection on the same ports counts as another.
    fs::write(&path, later(100, true)).unwrap();
    let (report, _) = study(1).unwrap();
    assert_eq!(report.quality.repeated_connections, 0);
    assert_eq!(report.quality.packets, 10);
}

/// The sample, of which each frame but the first ones has at most these bytes.
fn snapped(whole: usize, most_bytes: usize) -> Vec<u8> {
    let bytes = fs::read(sample()).unwrap();
    let (mut out, mut at, mut n) = (bytes[..24].to_vec(), 24, 0);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let kept = if n < whole { length } else { length.min(most_bytes) };
        out.extend(&bytes[at..at + 8]);
        out.extend((kept as u32).to_le_bytes());
        out.extend(&bytes[at + 12..at + 16 + kept]);
        (at, n) = (at + 16 + length, n + 1);
    }
    out
}

/// IPv4 and TCP without options are 40 bytes.
#[test]
fn a_short_snap_length_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("short.pcap");
    let inspected = || {
        let inputs = Inputs { files: vec![path.clone()], ..Inputs::default() };
        inspect(&inputs, Limits::default(), &Progress::default()).unwrap().missing
    };
    let advises = |how: &str| inspected().iter().any(|one| one.how_to_capture.contains(how));
    let figure = |report: &PacketReport| {
        report.summary.iter().find(|one| one.what == "flows with time stamps").unwrap().here
    };
    let (whole, _) = study(&sample());
    assert_eq!(figure(&whole), Some(1.0));
    // Options that are cut off may have been time stamps.
    fs::write(&path, snapped(0, 40)).unwrap();
    let (report, _) = study(&path);
    assert_eq!((report.quality.options_cut, figure(&report)), (5, None));
    let cautions = report.headline.unwrap().cautions.join(" ");
    assert!(cautions.contains("5 packets whose TCP options are cut off"), "{cautions}");
    // Frames that are cut within TCP's header are left out.
    fs::write(&path, snapped(2, 30)).unwrap();
    let (report, _) = study(&path);
    assert_eq!(report.quality.packets, 2);
    let says = "2 packets in 4.0 s: 1 TCP and 0 UDP flows of 1 user, 0 of them large downloads \
                (over 1 MB in over 5 s); 3 of 5 frames left out: cut within a header";
    assert_eq!(report.says, says);
    assert!(advises("capture longer headers") && !advises("capture while one runs"));
    let says = diagnosis_of(std::slice::from_ref(&path)).session.says;
    assert!(says.contains("3 of 5 frames are cut within a header"), "{says}");
    assert!(!says.contains("Capture while one runs"), "{says}");
}

/// Parts of a ring in another order than that of their times are one capture, as in order.
#[test]
fn files_are_read_in_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first.pcap", "second.pcap"].map(|name| dir.path().join(name));
    fs::write(&first, later(0, false)).unwrap();
    fs::write(&second, later(100, true)).unwrap();
    let read = |files: [&PathBuf; 2], threads| {
        let options = PacketOptions { threads, ..PacketOptions::default() };
        let files = files.map(Clone::clone);
        let (report, _) = packets::packets(&files, &options, &Progress::default()).unwrap();
        serde_json::to_value(&report).unwrap()
    };
    for threads in [1, 2] {
        assert_eq!(read([&first, &second], threads), read([&second, &first], threads));
    }
}

#[test]
fn what_is_no_capture_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "hello").unwrap();
    let options = PacketOptions::default();
    let error = packets::packets(&[path], &options, &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("is no packet capture"), "{error}");
}

#[test]
fn files_hold_the_rows_of_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let (_, tables) = study(&sample());
    for format in [TableFormat::Csv, TableFormat::Parquet] {
        let into = dir.path().join(format!("{format:?}"));
        let options =
            PacketOptions { output: Some((into.clone(), format)), ..PacketOptions::default() };
        let (_, written) = packets::packets(&[sample()], &options, &Progress::default()).unwrap();
        let mut found: Vec<(String, u64)> = written
            .iter()
            .map(|(path, n)| (path.file_stem().unwrap().to_string_lossy().into_owned(), *n))
            .collect();
        // Tables of an earlier run do not remain; empty tables are written, too.
        let mut expected: Vec<(String, u64)> =
            tables.iter().map(|table| (table.name.to_owned(), table.n_rows() as u64)).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
    let flows = fs::read_to_string(dir.path().join("Csv/flows.csv")).unwrap();
    assert!(flows.starts_with("flow,user,protocol,ip_version,client,client_port,server"));
    assert!(flows.lines().nth(1).unwrap().contains("10.0.0.1,40000,192.0.2.1,80,syn"));
}

/// A fragment: offset in units of eight bytes, bytes of data, whether more follow.
type Fragment = (u16, u16, bool);

/// UDP with 3000 bytes of payload in three fragments, the second ahead.
const FRAGMENTS: [Fragment; 3] = [(185, 1480, true), (0, 1480, true), (370, 48, false)];

/// A capture of fragments of one datagram, with headers only.
fn fragments(of: &[Fragment]) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(64_u32.to_le_bytes());
    bytes.extend(101_u32.to_le_bytes());
    for (n, &(offset, length, more)) in of.iter().enumerate() {
        let field = offset | if more { 0x2000 } else { 0 };
        let mut packet = vec![0x45, 0];
        packet.extend((20 + length).to_be_bytes());
        packet.extend([0, 7]);
        packet.extend(field.to_be_bytes());
        packet.extend([64, 17, 0, 0, 192, 0, 2, 1, 10, 0, 0, 1]);
        packet.extend([443_u16, 50_000, 3008, 0].map(u16::to_be_bytes).concat());
        bytes.extend(1_700_000_000_u32.to_le_bytes());
        bytes.extend((n as u32).to_le_bytes());
        bytes.extend((packet.len() as u32).to_le_bytes());
        bytes.extend(u32::from(20 + length).to_le_bytes());
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn a_fragmented_datagram_counts_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fragments.pcap");
    fs::write(&path, fragments(&FRAGMENTS)).unwrap();
    let options = PacketOptions {
        output: Some((dir.path().join("tables"), TableFormat::Csv)),
        ..PacketOptions::default()
    };
    let (report, _) = packets::packets(&[path], &options, &Progress::default()).unwrap();
    let q = report.quality;
    assert_eq!((report.udp_flows, q.packets, q.reassembled), (1, 3, 1));
    assert_eq!((q.later_fragments, q.incomplete_datagrams, q.overlapping_fragments), (0, 0, 0));
    assert_eq!(q.ip_bytes, 3068);
    let flows = fs::read_to_string(dir.path().join("tables/flows.csv")).unwrap();
    let mut lines = flows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let of = |name: &str| row[names.iter().position(|n| *n == name).unwrap()];
    assert_eq!((of("dl_bytes"), of("dl_ip_bytes"), of("dl_packets")), ("3000", "3068", "1"));
}

/// Rows and figures are the same with any number of threads, in the same order: over captures of
/// the corpus one after the other, one datagram in two files and one without its end, and captures
/// of others.
#[test]
fn any_number_of_threads_finds_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let again = dir.path().join("again.pcap");
    fs::write(&again, later(100, true)).unwrap();
    let mut files = vec![sample(), again];
    for (n, part) in [&FRAGMENTS[..2], &FRAGMENTS[2..], &FRAGMENTS[..2]].into_iter().enumerate() {
        let path = dir.path().join(format!("fragments-{n}.pcap"));
        fs::write(&path, fragments(part)).unwrap();
        files.push(path);
    }
    if let Some(captures) = shared_data("pcap") {
        let names = ["emu-lte_mixed.mon.pcap.gz", "ndpi-netflix.pcap", "drv-mirrored-twice.pcap"];
        files.extend(names.iter().map(|name| captures.join(name)));
    }
    let found = |threads: usize| {
        let into = dir.path().join(threads.to_string());
        let output = Some((into, TableFormat::Csv));
        let options = PacketOptions { output, threads, ..PacketOptions::default() };
        let (report, written) = packets::packets(&files, &options, &Progress::default()).unwrap();
        let texts: Vec<String> =
            written.iter().map(|(path, _)| fs::read_to_string(path).unwrap()).collect();
        let quality = &report.quality;
        assert!(quality.reassembled >= 1 && quality.incomplete_datagrams >= 1, "{quality:?}");
        (texts, serde_json::to_string(&report).unwrap())
    };
    let alone = found(1);
    assert!(alone.0.len() >= 4);
    for threads in [2, 3, 4] {
        let together = found(threads);
        for (table, expected) in together.0.iter().zip(&alone.0) {
            assert!(table == expected, "{threads} threads: {}", table.lines().next().unwrap());
        }
        assert_eq!(together, alone, "{threads} threads");
    }
}
