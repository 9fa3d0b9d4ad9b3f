//! A log of an emulated run returns the run's records.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::diag::LogReader;
use airmile_emulate::{RunTrace, Scenario, library, named, run};
use airmile_model::{Grant, GrantSources, Record};

use super::*;

fn trace(name: &str) -> RunTrace {
    run(&named(name).unwrap().scenario()).unwrap()
}

/// Writes a log and reads it; returns the records and the messages.
fn read_back(records: &[Record], options: Options) -> (Vec<Record>, BTreeMap<u16, u64>) {
    let bytes = write(records, &options).unwrap();
    let mut reader = LogReader::new();
    let mut read = Vec::new();
    reader.push(&bytes, &mut |tagged| {
        assert_eq!(tagged.subscription.max(1), 1);
        read.push(tagged.record);
    });
    reader.finish(&mut |tagged| read.push(tagged.record));
    let stats = reader.stats();
    assert!(!stats.problems.damaged && stats.late_records == 0, "{:?}", stats.problems);
    let mut messages = BTreeMap::new();
    for (key, count) in stats.messages {
        let code = key.code;
        assert_eq!(count.count, count.decoded, "0x{code:X}");
        *messages.entry(code).or_default() += count.count;
    }
    (read, messages)
}

/// The fields of a record that the log must return, in a comparable form: the decoder
/// makes its own stamps.
fn comparable(record: &Record) -> Record {
    let mut record = record.clone();
    match &mut record {
        Record::Grant(grant) => {
            grant.at = None;
            grant.sources = GrantSources::EMULATOR;
            if grant.dir == Direction::Ul {
                // 0xB139 has neither MCS nor NDI; the MAC layer logs a block
                // and its process when first sent.
                (grant.mcs, grant.ndi, grant.layers, grant.harq_id) = (None, None, None, None);
            }
        }
        Record::Rlc(r) => r.at = None,
        Record::BufferStatus(r) => r.at = None,
        Record::Bsr(r) => r.at = None,
        Record::MacBlock(r) => r.at = None,
        Record::Measurement(r) => {
            r.at = None;
            // A step of 0.1 dB is no multiple of a power of two.
            let tenths = |db: f32| (db * 10.0).round() / 10.0;
            r.snr_rx0_db = r.snr_rx0_db.map(tenths);
            r.snr_rx1_db = r.snr_rx1_db.map(tenths);
        }
        _ => {}
    }
    record
}

/// The records of a type by TTI, the downlink's first.
fn only(records: &[Record], name: &str) -> Vec<Record> {
    let mut only: Vec<Record> =
        records.iter().filter(|record| record.name() == name).map(comparable).collect();
    let uplink = |record: &Record| match record {
        Record::Grant(r) => r.dir == Direction::Ul,
        Record::Rlc(r) => r.dir == Direction::Ul,
        Record::MacBlock(r) => r.dir == Direction::Ul,
        _ => false,
    };
    only.sort_by_key(|record| (position(record).map(|at| at.tti), uplink(record)));
    only
}

/// The first difference is more useful than two long lists.
fn assert_same(name: &str, written: &[Record], read: &[Record]) {
    let difference = written.iter().zip(read).find(|(a, b)| a != b);
    assert_eq!(difference, None, "{name}");
    assert_eq!(written.len(), read.len(), "{name}");
}

#[test]
fn a_full_profile_gives_every_record_back() {
    // The bandwidth of a second carrier has no message here yet, nor does NR's.
    let has_messages = |scenario: &Scenario| {
        let cell = &scenario.cell;
        cell.secondary.is_none() && cell.nr.is_none() && scenario.split.is_none()
    };
    let names: Vec<_> =
        library().iter().filter(|s| has_messages(&s.scenario())).map(|s| s.name).collect();
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(scenario) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    every_record_comes_back(scenario);
                }
            });
        }
    });
}

fn every_record_comes_back(scenario: &str) {
    let records = trace(scenario).records;
    let (read, _) = read_back(&records, Options::default());
    for name in ["grant", "rlc", "buffer_status", "bsr", "mac_block", "measurement"] {
        let (written, read) = (only(&records, name), only(&read, name));
        assert_same(name, &written, &read);
    }
}

#[test]
fn hdlc_dlf_and_a_torn_start_hold_the_same() {
    let records = trace("sample-video").records;
    let hdlc = Options::default();
    let (expected, _) = read_back(&records, hdlc);
    for options in [Options { framing: Framing::Dlf, ..hdlc }, Options { torn_start: true, ..hdlc }]
    {
        assert_eq!(read_back(&records, options).0.len(), expected.len(), "{options:?}");
    }
}

#[test]
fn profiles_have_their_messages() {
    let records = trace("sample-rate-limited").records;
    let table: [(Profile, &[u16]); 3] = [
        (Profile::Lte2016, &[0xB063, 0xB126, 0xB193]),
        (
            Profile::Lte2018,
            &[
                0xB063, 0xB064, 0xB066, 0xB067, 0xB082, 0xB092, 0xB0C1, 0xB0C2, 0xB126, 0xB130,
                0xB132, 0xB139, 0xB173, 0xB193,
            ],
        ),
        (
            Profile::Lte2021,
            &[
                0xB063, 0xB064, 0xB066, 0xB067, 0xB082, 0xB092, 0xB0C1, 0xB0C2, 0xB126, 0xB130,
                0xB139, 0xB193,
            ],
        ),
    ];
    for (profile, codes) in table {
        let (read, messages) = read_back(&records, Options { profile, ..Options::default() });
        assert_eq!(messages.keys().copied().collect::<Vec<_>>(), codes, "{profile:?}");
        // Allocations and sizes are in every profile.
        let dl = |records: &[Record]| -> Vec<_> {
            let dl = |record: &Record| match record {
                Record::Grant(Grant { dir: Direction::Dl, position, n_prb, tbs_bytes, .. }) => {
                    Some((*position, *n_prb, *tbs_bytes))
                }
                _ => None,
            };
            records.iter().filter_map(dl).collect()
        };
        assert_eq!(dl(&read), dl(&records), "{profile:?}");
    }
}

#[test]
fn batches_are_written_late_as_phones_do() {
    let records = trace("sample-download").records;
    let log = {
        let mut log = LogCollector::new(&records, Profile::Lte2018).unwrap();
        records.iter().for_each(|record| log.push(record));
        log.finish()
    };
    let mut first_to_writing = Vec::new();
    for (at_ns, message) in &log {
        let Message::PdschStat(stat) = message else { continue };
        assert!(stat.records.len() <= 21);
        let written = TtiIndex((at_ns - airmile_emulate::EPOCH_NS) / 1_000_000).wrapped();
        let first = stat.records[0].tti.unwrap();
        first_to_writing.push(written.wrapping_since(first));
    }
    first_to_writing.sort_unstable();
    let median = first_to_writing[first_to_writing.len() / 2];
    assert!((20..=300).contains(&median), "{median} ms");
    assert!(*first_to_writing.last().unwrap() <= 310);
}

#[test]
fn says_what_is_missing() {
    assert_eq!(write(&[], &Options::default()), Err(ModemLogError::NoCell));
}

#[test]
fn a_log_that_grows_has_the_messages_of_the_whole_one() {
    let trace = trace("sample-upload");
    let options = Options::default();
    let end_ns = trace.records.iter().filter_map(Record::at).map(|at| at.ns).max().unwrap();
    let mut live = LiveLog::new(options);
    let mut grown = Vec::new();
    let mut records = trace.records.iter().peekable();
    let mut now_ns = airmile_emulate::EPOCH_NS;
    while now_ns < end_ns + 2_000_000_000 {
        now_ns += 1_000_000;
        let mut last_ns = 0;
        while let Some(record) = records.next_if(|r| r.at().map_or(last_ns, |at| at.ns) < now_ns) {
            last_ns = record.at().map_or(last_ns, |at| at.ns);
            live.push(record);
        }
        grown.extend(live.tick(now_ns));
    }
    let frames = |bytes: &[u8]| {
        let mut frames: Vec<Vec<u8>> = bytes.split(|b| *b == 0x7e).map(<[u8]>::to_vec).collect();
        frames.sort();
        frames
    };
    assert!(records.next().is_none());
    let whole = write(&trace.records, &options).unwrap();
    let (grown, whole) = (frames(&grown), frames(&whole));
    assert!(whole.len() > 100 && grown == whole, "{} and {} frames", grown.len(), whole.len());
}
