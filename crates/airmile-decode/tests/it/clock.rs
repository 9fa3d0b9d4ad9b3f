//! One wrong time in a log.

use airmile_decode::diag::encode::{Options, write, write_nr};
use airmile_decode::diag::{Deframer, Event, LogReader, LogStats, Tagged, time};
use airmile_model::{Position, Record};

/// Records of an emulated run.
fn records(scenario: &str) -> Vec<Record> {
    let mut scenario = airmile_emulate::named(scenario).unwrap().scenario();
    scenario.duration_ms = 4_000;
    airmile_emulate::run(&scenario).unwrap().records
}

/// A log of which the packet in the middle has another time.
fn with_one_off(log: &[u8], off_ms: i64) -> Vec<u8> {
    let packets = |each: &mut dyn FnMut(airmile_decode::diag::LogPacket<'_>)| {
        let mut deframer = Deframer::new();
        deframer.push(log);
        deframer.finish();
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                each(packet);
            }
        }
    };
    let mut n = 0;
    packets(&mut |_| n += 1);
    let (mut left, mut out) = (n / 2, Vec::new());
    packets(&mut |mut packet| {
        if left == 0 {
            packet.ts_raw = time::from_unix_ns(packet.at.ns + off_ms * 1_000_000);
        }
        left -= 1;
        packet.emit_hdlc(&mut out);
    });
    out
}

/// Place and time of each grant, and what is known of the log.
fn grants(log: &[u8]) -> (Vec<(Position, i64)>, LogStats) {
    let mut grants = Vec::new();
    let mut sink = |tagged: Tagged| {
        if let Record::Grant(grant) = tagged.record {
            grants.push((grant.position, grant.at.unwrap().ns));
        }
    };
    let mut reader = LogReader::new();
    reader.push(log, &mut sink);
    reader.finish(&mut sink);
    (grants, reader.stats())
}

/// Those before and after it agree: no grant is moved, and the log is not longer.
#[test]
fn one_wrong_time_moves_nothing() {
    let lte = write(&records("sample-download"), &Options::default()).unwrap();
    let nr = write_nr(&[], &records("nr-tdd-video"), &Options::default()).unwrap();
    for log in [lte, nr] {
        let (right, stats) = grants(&with_one_off(&log, 0));
        assert!(right.len() > 500, "{}", right.len());
        for off_ms in [-90_000, -10_000, -2_000, -1_000, -500, 500, 1_000, 2_000, 10_000, 90_000] {
            let (found, off) = grants(&with_one_off(&log, off_ms));
            assert_eq!((off.last_ns, off.late_records), (stats.last_ns, 0), "{off_ms}");
            assert_eq!(off.problems, stats.problems, "{off_ms}");
            assert_eq!(found.len(), right.len(), "{off_ms}");
            for (found, right) in found.iter().zip(&right) {
                assert_eq!(found.0, right.0, "{off_ms}");
                assert!(found.1.abs_diff(right.1) < 5_000_000, "{off_ms}: {found:?} {right:?}");
            }
        }
    }
}
