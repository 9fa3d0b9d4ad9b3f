//! Files of other tools: text exports of a log, sniffers' tables.

use std::io::Read;

use airmile_decode::diag::Tagged;
use airmile_decode::sniffer::{SnifferKind, SnifferReader};
use airmile_decode::text::TextReader;
use airmile_model::{Problem, Severity, printable};

use airmile_io::{FileReport, MessageRow};

use super::{CHUNK_BYTES, Opened};

/// Reads all of an input; returns the error that ended it early, if any.
fn read_all(input: &mut impl Read, push: &mut dyn FnMut(&[u8])) -> Option<std::io::Error> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => push(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Some(error),
        }
    }
}

fn note_failure(report: &mut FileReport, failed: Option<std::io::Error>) {
    if let Some(error) = failed {
        report.problem(Problem::stopped(report.bytes, &error));
    }
}

/// Reads text exports, each by itself, in the given order.
pub(super) fn read_texts(
    texts: Vec<Opened>,
    sink: &mut dyn FnMut(Tagged),
) -> Vec<(usize, FileReport)> {
    let mut out = Vec::new();
    for Opened { order, mut input, kind } in texts {
        let mut report = FileReport::new(&input, kind);
        let mut reader = TextReader::new();
        let mut forward = |tagged: Tagged| {
            report.count(&tagged);
            sink(tagged);
        };
        let failed = read_all(&mut input, &mut |bytes| reader.push(bytes, &mut forward));
        reader.finish(&mut forward);
        let stats = reader.stats();
        report.bytes = stats.bytes;
        report.start_us = stats.first_ns.map(|ns| ns.div_euclid(1_000));
        report.end_us = stats.last_ns.map(|ns| ns.div_euclid(1_000));
        report.items = stats.packets;
        report.bad_items = stats.bad_packets;
        report.messages = stats
            .messages
            .iter()
            .map(|((code, name), count)| MessageRow {
                code: format!("0x{code:04X}"),
                name: printable(name).into_owned(),
                subpacket_version: None,
                version: None,
                major: None,
                count: count.count,
                decoded: count.decoded,
                size_check: None,
            })
            .collect();
        report.problems_of_reader(&stats.problems);
        note_failure(&mut report, failed);
        out.push((order, report));
    }
    out
}

/// Reads a sniffer's table as the grants of one RNTI.
pub(super) fn read_sniffer(
    opened: Opened,
    sniffer: SnifferKind,
    rnti: Option<u16>,
    sink: &mut dyn FnMut(Tagged),
) -> (usize, FileReport) {
    let Opened { order, mut input, kind } = opened;
    let mut report = FileReport::new(&input, kind);
    let mut reader = SnifferReader::new(sniffer);
    let failed = read_all(&mut input, &mut |bytes| reader.push(bytes));
    reader.finish(rnti, &mut |record| {
        if let Some(at) = record.at() {
            report.start_us.get_or_insert(at.micros());
            report.end_us = report.end_us.max(Some(at.micros()));
        }
        let tagged = Tagged { subscription: 0, record };
        report.count(&tagged);
        sink(tagged);
    });
    let stats = reader.stats();
    report.bytes = stats.bytes;
    report.items = stats.rows;
    report.bad_items = stats.bad_rows;
    report.problems_of_reader(&stats.problems);
    if let Some((rnti, bytes, n)) = stats.chosen {
        let what = format!(
            "grants of RNTI {rnti} ({bytes} bytes), one of {n} users; --rnti N selects another"
        );
        report.problem(Problem::of_file(Severity::Normal, what));
    }
    note_failure(&mut report, failed);
    (order, report)
}
