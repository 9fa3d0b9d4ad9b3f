//! A study in parts has the same rows as one in one piece.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use airmile::model::{ClientBy, Problem};
use airmile::packet_study::{FlowEnds, StudyOptions};
use airmile::packets::packets;
use airmile::packets::scale::{
    BucketPart, BucketReport, DealReport, DealSource, ScaleOptions, clocks, deal, join, records_of,
    settle, split_capture, study_bucket,
};
use airmile::{PacketOptions, PacketReport, Progress, TableFormat, packet_tables};
use airmile_testing::shared_data;

/// Rows of each table as text, sorted by their text, since the order of parts is undefined.
type Rows = BTreeMap<String, Vec<String>>;

/// One packet: milliseconds, the ends, flags (`None`: UDP), sequence and acknowledgement
/// numbers, bytes of payload.
struct Sent(u64, ([u8; 4], u16), ([u8; 4], u16), Option<u8>, [u32; 2], u16);

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 17;

/// Three hours of some users: pages fetched repeatedly on few ports, so that some flows are idle,
/// some linger and some are replaced; servers that connect to phones; and peers without a known
/// port.
fn traffic() -> Vec<Sent> {
    let mut sent = Vec::new();
    for user in 0..40_u8 {
        let phone = |port: u16| ([10, 0, 0, user], 40_000 + port);
        let server = ([198, 18, 0, user % 7], 443);
        for page in 0..30_u64 {
            let at =
                u64::from(user) * 977 + page * page * 11_939 + page * u64::from(user % 5) * 9_000;
            let (a, b) = (phone((page % 4) as u16), server);
            let base = page as u32 * 1_000_000;
            sent.push(Sent(at, a, b, Some(SYN), [base, 0], 0));
            sent.push(Sent(at + 30, b, a, Some(SYN | ACK), [base + 7, base + 1], 0));
            sent.push(Sent(at + 60, a, b, Some(ACK), [base + 1, base + 8], 200));
            for n in 0..8 {
                let seq = base + 8 + 1_400 * n;
                sent.push(Sent(at + 90 + u64::from(n), b, a, Some(ACK), [seq, base + 201], 1_400));
                sent.push(Sent(
                    at + 120 + u64::from(n),
                    a,
                    b,
                    Some(ACK),
                    [base + 201, seq + 1_400],
                    0,
                ));
            }
            if page % 3 != 0 {
                let end = base + 8 + 1_400 * 8;
                sent.push(Sent(at + 400, a, b, Some(FIN), [base + 201, end], 0));
                sent.push(Sent(at + 430, b, a, Some(FIN), [end, base + 202], 0));
                // Near the end of its time in TIME-WAIT.
                sent.push(Sent(at + 61_000, a, b, Some(ACK), [base + 202, end + 1], 0));
            }
        }
        // Strays: a server that connects, and peers of which either sends first.
        let at = 500_000 + u64::from(user) * 31_000;
        if user % 4 == 0 {
            sent.push(Sent(at, server, phone(9), Some(SYN), [5, 0], 0));
            sent.push(Sent(at + 30, phone(9), server, Some(SYN | ACK), [9, 6], 0));
            sent.push(Sent(at + 4_000_000, phone(9), server, Some(ACK), [10, 6], 500));
        }
        let peers = [([203, 0, 113, user], 5_000), ([203, 0, 113, user % 9 + 100], 6_000)];
        let [a, b] = if user % 2 == 0 { peers } else { [peers[1], peers[0]] };
        for n in 0..5 {
            sent.push(Sent(at + n * 900_000, a, b, None, [0; 2], 300));
            sent.push(Sent(at + n * 900_000 + 50, b, a, None, [0; 2], 100 + u16::from(user)));
        }
    }
    sent.sort_by_key(|packet| packet.0);
    // Some are captured a little late.
    for n in (0..sent.len() - 1).step_by(97) {
        sent.swap(n, n + 1);
    }
    sent
}

/// Captures of the packets, one for each.
fn captures(dir: &Path, sent: &[Sent], files: usize) -> Vec<PathBuf> {
    let chunks = sent.chunks(sent.len().div_ceil(files)).enumerate();
    let write = |(n, sent): (usize, &[Sent])| {
        let path = dir.join(format!("{files}-{n:02}.pcap"));
        let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0, 101, 0, 0, 0]);
        sent.iter().enumerate().for_each(|(n, sent)| record(sent, n as u16, &mut bytes));
        fs::write(&path, bytes).unwrap();
        path
    };
    chunks.map(write).collect()
}

fn record(Sent(at, from, to, flags, numbers, payload): &Sent, id: u16, out: &mut Vec<u8>) {
    let above: u16 = if flags.is_some() { 32 } else { 8 };
    let (captured, wire) = (u32::from(20 + above), u32::from(20 + above + payload));
    let seconds = 1_700_000_000 + (at / 1_000) as u32;
    for word in [seconds, (at % 1_000) as u32 * 1_000, captured, wire] {
        out.extend(word.to_le_bytes());
    }
    out.extend([0x45, 0]);
    out.extend((20 + above + payload).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend([0x40, 0, 64, if flags.is_some() { 6 } else { 17 }, 0, 0]);
    out.extend(from.0.iter().chain(&to.0));
    out.extend(from.1.to_be_bytes().iter().chain(&to.1.to_be_bytes()));
    let Some(flags) = flags else {
        out.extend((8 + payload).to_be_bytes());
        return out.extend([0, 0]);
    };
    numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
    out.extend([0x80, *flags, 0x20, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    out.extend((*at as u32).to_be_bytes());
    out.extend((*at as u32).wrapping_sub(20).to_be_bytes());
}

fn text(schema: &str, row: serde_json::Map<String, serde_json::Value>) -> String {
    format!("{schema} {}", serde_json::Value::Object(row))
}

fn rows_of(batches: impl Iterator<Item = arrow_array::RecordBatch>, out: &mut Vec<String>) {
    for batch in batches {
        for row in 0..batch.num_rows() {
            let one = batch.slice(row, 1);
            let mut object = serde_json::Map::new();
            for (field, column) in batch.schema().fields().iter().zip(one.columns()) {
                object.insert(field.name().clone(), format!("{column:?}").into());
            }
            out.push(text("", object));
        }
    }
    out.sort();
}

fn whole(files: &[PathBuf]) -> (PacketReport, Rows) {
    let options = PacketOptions { threads: 1, ..PacketOptions::default() };
    let (report, tables) = packet_tables(files, &options, &Progress::default()).unwrap();
    let mut rows = Rows::new();
    for table in tables {
        let out = rows.entry(table.name.to_owned()).or_default();
        rows_of(table.batches.into_iter(), out);
    }
    rows.retain(|_, rows| !rows.is_empty());
    (report, rows)
}

/// The parts of each file: itself, or ranges of it.
fn sources(file: &Path, part_bytes: u64) -> Vec<DealSource> {
    let cuts = split_capture(file, part_bytes).unwrap();
    let size = fs::metadata(file).unwrap().len();
    if part_bytes == 0 {
        return vec![DealSource::File(file.to_owned(), None)];
    }
    assert!(!cuts.is_empty(), "{size} bytes can be cut");
    let edges: Vec<u64> = [0].into_iter().chain(cuts).chain([size]).collect();
    edges.windows(2).map(|w| DealSource::File(file.to_owned(), Some(w[0]..w[1]))).collect()
}

fn in_parts(dir: &Path, files: &[PathBuf], buckets: u32, part_bytes: u64) -> (PacketReport, Rows) {
    let options = ScaleOptions { study: StudyOptions::default(), buckets };
    let dir = tempfile::tempdir_in(dir).unwrap();
    let mut dealt: Vec<(DealReport, PathBuf)> = Vec::new();
    let mut by_file = Vec::new();
    for file in files {
        let mut parts = Vec::new();
        for source in sources(file, part_bytes) {
            let out = dir.path().join(format!("{}.parquet", dealt.len()));
            let report = deal(source, &options, &out).unwrap();
            let is_order = |one: &Problem| one.what.contains("not in order of time");
            assert!(report.file.problems.iter().all(is_order), "{:?}", report.file);
            let syns = fs::read(out.with_extension("syns")).unwrap_or_default();
            parts.push((report.clone(), syns));
            dealt.push((report, out));
        }
        by_file.push(parts);
    }
    let reports: Vec<DealReport> = dealt.iter().map(|(report, _)| report.clone()).collect();
    let (begins, end_ns) = clocks(&reports);
    let part = |n: usize, wanted: &dyn Fn(u32) -> bool| {
        let (report, path) = &dealt[n];
        let groups = report.groups.iter().enumerate().filter(|(_, group)| wanted(group.bucket));
        let groups = groups.map(|(at, _)| at).collect();
        let batches = records_of(path, groups);
        BucketPart { batches, first_packet: begins[n].0, clock_ns: begins[n].1 }
    };
    let mut strays = HashSet::new();
    for (_, path) in &dealt {
        let bytes = fs::read(path.with_extension("strays")).unwrap_or_default();
        strays.extend(
            bytes.chunks(FlowEnds::BYTES).map(|b| FlowEnds::from_bytes(b.try_into().unwrap())),
        );
    }
    let settled = dir.path().join("settled.parquet");
    let capture = (0..dealt.len()).map(|n| vec![part(n, &|_| true)]).collect();
    let groups = settle(capture, &strays, &options, &settled).unwrap();
    let tables = dir.path().join("tables");
    let mut answers: Vec<BucketReport> = Vec::new();
    for bucket in 0..buckets {
        let parts = (0..dealt.len()).map(|n| part(n, &|b| b == bucket)).collect();
        let own = groups.iter().enumerate().filter(|(_, group)| group.bucket == bucket);
        let own = records_of(&settled, own.map(|(at, _)| at).collect());
        let end_ns = end_ns.unwrap();
        let answer =
            study_bucket(bucket, parts, Some(own), &strays, end_ns, &options, &tables).unwrap();
        answers.push(answer);
    }
    let mut rows = Rows::new();
    let files: BTreeSet<&String> =
        answers.iter().flat_map(|a| a.files.iter().map(|f| &f.0)).collect();
    for file in files {
        let table = file.split('/').next().unwrap().to_owned();
        let reader = fs::File::open(tables.join(file)).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(reader);
        let batches = reader.unwrap().build().unwrap().map(Result::unwrap);
        rows_of(batches, rows.entry(table).or_default());
    }
    (join(by_file, answers, &options).unwrap(), rows)
}

#[track_caller]
fn check(one: &(PacketReport, Rows), parts: &(PacketReport, Rows)) {
    assert_eq!(one.1.keys().collect::<Vec<_>>(), parts.1.keys().collect::<Vec<_>>());
    for (table, rows) in &one.1 {
        let differ = rows.iter().zip(&parts.1[table]).find(|(a, b)| a != b);
        assert_eq!(differ, None, "{table}");
        assert_eq!(rows.len(), parts.1[table].len(), "{table}");
    }
    assert_eq!(one.0.quality, parts.0.quality);
    assert_eq!(one.0.terminations, parts.0.terminations);
    assert_eq!(one.0.flows, parts.0.flows);
    for (a, b) in one.0.summary.iter().zip(&parts.0.summary) {
        assert_eq!((a.what, a.n), (b.what, b.n));
        let (x, y) = (a.here.unwrap_or(0.0), b.here.unwrap_or(0.0));
        assert!((x - y).abs() <= 1e-9 * x.abs(), "{}: {x} and {y}", a.what);
    }
}

#[test]
fn parts_have_the_rows_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut sent = traffic();
    let alone = captures(dir.path(), &sent, 1);
    let one = whole(&alone);
    let ends: BTreeSet<&str> = one.0.terminations.keys().map(|end| end.as_str()).collect();
    assert!(ends.is_superset(&["fin", "idle", "capture_end"].into()), "{ends:?}");
    assert!(one.0.client_by.contains_key(&ClientBy::FirstPacket));
    check(&one, &in_parts(dir.path(), &alone, 1, 0));
    let files = captures(dir.path(), &sent, 13);
    let one = whole(&files);
    check(&one, &in_parts(dir.path(), &files, 1, 0));
    check(&one, &in_parts(dir.path(), &files, 8, 0));
    // Only a file in order of time is split.
    sent.sort_by_key(|packet| packet.0);
    let alone = captures(dir.path(), &sent, 1);
    check(&whole(&alone), &in_parts(dir.path(), &alone, 5, 100_000));
}

#[test]
fn tables_of_one_process_and_of_an_engine_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let files = captures(dir.path(), &traffic()[..50], 1);
    let out = dir.path().join("study");
    fs::create_dir_all(out.join("flows/day=2026-01-01/bucket=00000")).unwrap();
    let options = PacketOptions {
        output: Some((out.clone(), TableFormat::Parquet)),
        ..PacketOptions::default()
    };
    let error = packets(&files, &options, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("flows: it holds a table of a study on an engine"), "{error}");
    fs::remove_dir_all(&out).unwrap();
    packets(&files, &options, &Progress::default()).unwrap();
    assert!(out.join("flows.parquet").exists());
}

#[test]
fn captures_of_others_in_parts() {
    let Some(captures) = shared_data("pcap") else { return };
    let dir = tempfile::tempdir().unwrap();
    // In order of time, as they are read in one piece.
    let names = ["ndpi-netflix.pcap", "emu-lte_mixed.mon.pcap.gz", "drv-mirrored-twice.pcap"];
    let files: Vec<PathBuf> = names.iter().map(|name| captures.join(name)).collect();
    check(&whole(&files), &in_parts(dir.path(), &files, 3, 0));
}

/// A part's report passes as JSON: its numbers are those of the whole, to the last bit.
#[test]
fn numbers_of_reports_pass_unchanged() {
    let tick_ns = 1_053_122.612_885_953_9_f64;
    let text = serde_json::to_string(&tick_ns).unwrap();
    assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), tick_ns.to_bits());
}
