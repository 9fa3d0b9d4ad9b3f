//! The deframer, from outside: all containers, damage, any chunking.

use airmile_decode::diag::{Container, Deframer, Event, dlf, frame, hdlc};
use airmile_model::{Problem, Severity};
use proptest::prelude::*;

/// An event that owns its payload.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Log(u64, Log),
    Other(u64, u8, u8),
    Problem(Problem),
}

/// A log packet to be written, or read.
#[derive(Debug, Clone, PartialEq)]
struct Log {
    subscription: u8,
    code: u16,
    ts_raw: u64,
    payload: Vec<u8>,
}

fn own(event: Event<'_>) -> Owned {
    match event {
        Event::Log(log) => {
            let (subscription, code, ts_raw) = (log.subscription, log.code, log.ts_raw);
            let payload = log.payload.to_vec();
            Owned::Log(log.offset, Log { subscription, code, ts_raw, payload })
        }
        Event::Other(other) => Owned::Other(other.offset, other.subscription, other.command),
        Event::Problem(problem) => Owned::Problem(problem),
    }
}

/// All events of `bytes`, pushed in pieces of the sizes `cuts`, repeatedly.
fn run(bytes: &[u8], cuts: &[usize]) -> (Vec<Owned>, Deframer) {
    let mut deframer = Deframer::new();
    let mut out = Vec::new();
    let mut rest = bytes;
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        deframer.push(now);
        while let Some(event) = deframer.poll() {
            out.push(own(event));
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    deframer.finish();
    while let Some(event) = deframer.poll() {
        out.push(own(event));
    }
    (out, deframer)
}

const AT_ONCE: &[usize] = &[usize::MAX];

fn log() -> impl Strategy<Value = Log> {
    let code = prop_oneof![Just(0xb126_u16), Just(0xb173), Just(0xb0c0), 0xb000u16..0xb9ff];
    let byte = prop_oneof![4 => any::<u8>(), 1 => Just(0x7e), 1 => Just(0x7d), 1 => Just(0)];
    let payload = prop::collection::vec(byte, 0..80);
    // All within a day, as DLF's resynchronisation expects of a log.
    let ticks = (1u64 << 40)..(1 << 40) + 60_000_000;
    (0u8..3, code, ticks, 0u64..49_152, payload).prop_map(
        |(subscription, code, ticks, frac, payload)| {
            let ts_raw = ticks << 16 | frac;
            Log { subscription, code, ts_raw, payload }
        },
    )
}

fn some_logs(n: usize) -> Vec<Log> {
    let log = |i: usize| Log {
        subscription: (i % 3) as u8,
        code: 0xb126,
        ts_raw: (1 << 56) + ((i as u64) << 20),
        payload: (0..20 + i).map(|b| (b * 7 + i) as u8).collect(),
    };
    (0..n).map(log).collect()
}

fn hdlc_of(logs: &[Log]) -> Vec<u8> {
    let mut out = Vec::new();
    for log in logs {
        let mut packet = Vec::new();
        frame::emit_log(log.subscription, log.code, log.ts_raw, &log.payload, &mut packet);
        hdlc::encode(&packet, &mut out);
    }
    out
}

fn dlf_of(logs: &[Log]) -> Vec<u8> {
    let mut out = Vec::new();
    for log in logs {
        dlf::emit(log.code, log.ts_raw, &log.payload, &mut out);
    }
    out
}

/// Unencoded packets between other bytes, those of one SIM wrapped.
fn hdf_of(logs: &[Log], between: &[u8]) -> Vec<u8> {
    let mut out = b"HDF-like head\x10\0\x10".to_vec();
    for log in logs {
        out.extend_from_slice(between);
        frame::emit_log(log.subscription, log.code, log.ts_raw, &log.payload, &mut out);
    }
    out.extend_from_slice(between);
    out
}

fn logs_of(events: &[Owned]) -> Vec<Log> {
    let log = |event: &Owned| match event {
        Owned::Log(_, log) => Some(log.clone()),
        _ => None,
    };
    events.iter().filter_map(log).collect()
}

/// As a DLF holds them.
fn without_subscription(logs: &[Log]) -> Vec<Log> {
    logs.iter().map(|log| Log { subscription: 0, ..log.clone() }).collect()
}

fn problems_of(events: &[Owned]) -> Vec<(u64, Severity)> {
    let problem = |event: &Owned| match event {
        Owned::Problem(problem) => Some((problem.offset?, problem.severity)),
        _ => None,
    };
    events.iter().filter_map(problem).collect()
}

#[test]
fn empty_input_holds_nothing() {
    let (events, deframer) = run(&[], AT_ONCE);
    assert_eq!(events, []);
    assert_eq!(deframer.container(), None);
}

/// Truncated data at the end of a log's last part is lost, and reported as damage.
#[test]
fn a_torn_end_of_the_last_part_is_damage() {
    let whole = hdlc_of(&some_logs(4));
    for (finish, severity) in [
        (Deframer::finish as fn(&mut Deframer), Severity::Normal),
        (Deframer::finish_last, Severity::Damage),
    ] {
        let mut deframer = Deframer::new();
        deframer.push(&whole[..whole.len() - 4]);
        finish(&mut deframer);
        let mut severities = Vec::new();
        while let Some(event) = deframer.poll() {
            if let Event::Problem(problem) = event {
                severities.push(problem.severity);
            }
        }
        assert_eq!(severities, [severity]);
    }
}

#[test]
fn a_torn_first_and_last_frame_are_normal() {
    let logs = some_logs(5);
    let whole = hdlc_of(&logs);
    let (events, deframer) = run(&whole[7..whole.len() - 4], AT_ONCE);
    assert_eq!(logs_of(&events), logs[1..4]);
    let severities: Vec<_> = problems_of(&events).into_iter().map(|(_, s)| s).collect();
    assert_eq!(severities, [Severity::Normal, Severity::Normal]);
    assert_eq!(deframer.container(), Some(Container::Hdlc));
}

#[test]
fn a_bad_frame_in_the_middle_is_damage() {
    let logs = some_logs(5);
    let start = hdlc_of(&logs[..2]).len();
    let mut whole = hdlc_of(&logs);
    whole[start + 20] ^= 1;
    let (events, deframer) = run(&whole, AT_ONCE);
    assert_eq!(problems_of(&events), [(start as u64, Severity::Damage)]);
    assert_eq!(logs_of(&events).len(), 4);
    assert_eq!((deframer.counts().good_frames, deframer.counts().bad_frames), (4, 1));
    // In order: the problem is where the frame was.
    assert!(matches!(events[2], Owned::Problem(_)));
}

#[test]
fn a_leading_section_is_stepped_over() {
    let logs = some_logs(4);
    let mut whole = vec![0x20, 0, 0, 0, 1, 0x7e, 3, 4];
    whole.resize(0x20, 0x7e);
    whole.extend(hdlc_of(&logs));
    let (events, deframer) = run(&whole, AT_ONCE);
    assert_eq!(deframer.container(), Some(Container::Qmdl2));
    assert_eq!(logs_of(&events), logs);
    assert_eq!(problems_of(&events), []);
}

#[test]
fn dlf_goes_on_behind_a_wrong_length() {
    let logs = some_logs(6);
    let start = dlf_of(&logs[..2]).len();
    for wrong in [0u8, 5, 200] {
        let mut whole = dlf_of(&logs);
        whole[start] = wrong;
        let (events, deframer) = run(&whole, AT_ONCE);
        assert_eq!(deframer.container(), Some(Container::Dlf), "{wrong}");
        let mut left = without_subscription(&logs);
        left.remove(2);
        assert_eq!(logs_of(&events), left, "{wrong}");
        assert_eq!(problems_of(&events), [(start as u64, Severity::Damage)], "{wrong}");
    }
}

#[test]
fn a_dlf_record_in_place_may_have_an_odd_code() {
    let mut logs = some_logs(6);
    logs[3].code = 0x0123;
    let (events, _) = run(&dlf_of(&logs), AT_ONCE);
    assert_eq!(logs_of(&events), without_subscription(&logs));
}

#[test]
fn a_torn_last_dlf_record_is_normal() {
    let logs = some_logs(4);
    let whole = dlf_of(&logs);
    let (events, _) = run(&whole[..whole.len() - 5], AT_ONCE);
    assert_eq!(logs_of(&events), without_subscription(&logs[..3]));
    let torn = dlf_of(&logs[..3]).len() as u64;
    assert_eq!(problems_of(&events), [(torn, Severity::Normal)]);
}

#[test]
fn unencoded_packets_are_found_between_other_bytes() {
    let logs = some_logs(4);
    let whole = hdf_of(&logs, &[7, 0x10, 0, 0x10, 0, 0x10, 0x7e]);
    let (events, deframer) = run(&whole, &[3]);
    assert_eq!(deframer.container(), Some(Container::Hdf));
    assert_eq!(logs_of(&events), logs);
    assert_eq!(problems_of(&events), []);
}

#[test]
fn a_torn_last_unencoded_packet_is_normal() {
    let logs = some_logs(4);
    let whole = hdf_of(&logs, &[1, 2]);
    let (events, _) = run(&whole[..whole.len() - 5], AT_ONCE);
    assert_eq!(logs_of(&events), logs[..3]);
    let severities: Vec<_> = problems_of(&events).into_iter().map(|(_, s)| s).collect();
    assert_eq!(severities, [Severity::Normal]);
}

#[test]
fn what_only_looks_like_an_unencoded_packet_is_none() {
    let logs = some_logs(3);
    let mut between = Vec::new();
    // Lengths that differ; no log code; a stamp of 1980; a stamp of 2060.
    for (len, code, ts) in [
        (13u16, 0xb126u16, 1u64 << 56),
        (12, 0x0126, 1 << 56),
        (12, 0xb126, 9),
        (12, 0xb126, 1 << 57),
    ] {
        between.extend([0x10, 0, 12, 0]);
        between.extend(len.to_le_bytes());
        between.extend(code.to_le_bytes());
        between.extend(ts.to_le_bytes());
    }
    let (events, _) = run(&hdf_of(&logs, &between), AT_ONCE);
    assert_eq!(logs_of(&events), logs);
}

#[test]
fn hdlc_without_a_good_frame_is_not_taken_for_unencoded_packets() {
    let mut whole = hdlc_of(&some_logs(4));
    for at in 1..whole.len() {
        if whole[at] == 0x7e {
            whole[at - 1] ^= 1;
        }
    }
    let (_, deframer) = run(&whole, AT_ONCE);
    assert_ne!(deframer.container(), Some(Container::Hdf));
}

#[test]
fn garbage_is_damage() {
    let (events, _) = run(&[0x55; 4000], &[100]);
    assert_eq!(problems_of(&events), [(0, Severity::Damage)]);
    let huge = vec![0x55; 3 << 20];
    let (events, _) = run(&huge, &[1 << 16]);
    assert_eq!(problems_of(&events), [(0, Severity::Damage)]);
}

/// What happens to the bytes in transit.
#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Truncate(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let new = prop::collection::vec(any::<u8>(), 1..60);
    prop_oneof![
        (any::<usize>(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<usize>(), 1usize..60).prop_map(|(at, n)| Damage::Remove(at, n)),
        (any::<usize>(), new).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<usize>().prop_map(Damage::Truncate),
    ]
}

fn apply(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let place = |at: &usize| at % bytes.len().max(1);
        match damage {
            Damage::Flip(at, bit) => {
                let at = place(at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Damage::Remove(at, n) => {
                let at = place(at);
                bytes.drain(at..(at + n).min(bytes.len()));
            }
            Damage::Insert(at, new) => {
                let at = place(at);
                bytes.splice(at..at, new.iter().copied());
            }
            Damage::Truncate(at) => {
                let at = place(at);
                bytes.truncate(at);
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn hdlc_both_ways(logs in prop::collection::vec(log(), 1..20)) {
        let (events, deframer) = run(&hdlc_of(&logs), AT_ONCE);
        prop_assert_eq!(deframer.container(), Some(Container::Hdlc));
        prop_assert_eq!(events.len(), logs.len());
        prop_assert_eq!(logs_of(&events), logs);
    }

    #[test]
    fn dlf_both_ways(logs in prop::collection::vec(log(), 1..20)) {
        let (events, deframer) = run(&dlf_of(&logs), AT_ONCE);
        prop_assert_eq!(deframer.container(), Some(Container::Dlf));
        prop_assert_eq!(events.len(), logs.len());
        prop_assert_eq!(logs_of(&events), without_subscription(&logs));
    }

    #[test]
    fn hdf_both_ways(
        logs in prop::collection::vec(log(), 2..20),
        between in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        // Two bytes and a terminator after a packet: a frame with a bad CRC.
        prop_assume!(between.get(2) != Some(&0x7e));
        let mut logs = logs;
        for log in &mut logs {
            log.code = 0xb173;
            // Two terminators in a short file can pass for frames of HDLC.
            log.payload.iter_mut().filter(|byte| **byte == 0x7e).for_each(|byte| *byte = 0);
        }
        let (events, deframer) = run(&hdf_of(&logs, &between), AT_ONCE);
        prop_assert_eq!(deframer.container(), Some(Container::Hdf));
        prop_assert_eq!(logs_of(&events), logs);
    }

    #[test]
    fn any_chunking_gives_the_same(
        logs in prop::collection::vec(log(), 0..12),
        kind in 0u8..3,
        leading in prop::option::of(8u8..40),
        damages in prop::collection::vec(damage(), 0..5),
        cuts in prop::collection::vec(1usize..100, 1..6),
    ) {
        let mut whole = vec![];
        if let Some(leading) = leading {
            whole.extend([leading, 0, 0, 0]);
            whole.resize(leading.into(), 1);
        }
        whole.extend(match kind {
            0 => dlf_of(&logs),
            1 => hdlc_of(&logs),
            _ => hdf_of(&logs, &[0x10, 0, 3]),
        });
        let whole = apply(whole, &damages);
        let (at_once, one) = run(&whole, AT_ONCE);
        for cuts in [&cuts[..], &[1]] {
            let (pieces, two) = run(&whole, cuts);
            prop_assert_eq!(&at_once, &pieces);
            prop_assert_eq!((one.container(), one.counts()), (two.container(), two.counts()));
        }
    }

    #[test]
    fn a_flipped_bit_costs_two_frames_at_most(
        logs in prop::collection::vec(log(), 8..20), dlf: bool, at: usize, bit in 0u8..8,
    ) {
        // The frame that contains it, and the next one if it made or broke a mark.
        let whole = if dlf { dlf_of(&logs) } else { hdlc_of(&logs) };
        // A DLF length may by chance lead to another head, undetectably.
        let starts = (0..logs.len()).map(|n| dlf_of(&logs[..n]).len());
        let in_length = |start| (start..start + 2).contains(&(at % whole.len()));
        prop_assume!(!dlf || !starts.into_iter().any(in_length));
        let (events, _) = run(&apply(whole, &[Damage::Flip(at, bit)]), AT_ONCE);
        let there = logs_of(&events);
        let logs = if dlf { without_subscription(&logs) } else { logs };
        let kept = logs.iter().filter(|log| there.contains(log)).count();
        prop_assert!(kept + 2 >= logs.len(), "{kept} of {}: {:?}", logs.len(), problems_of(&events));
    }
}

#[test]
fn encrypted_packets_are_counted() {
    let mut bytes = Vec::new();
    for packet in [&[0x9e, 1, 2, 3][..], &[0x98, 1, 0, 0, 2, 0, 0, 0, 0x9e, 9], &[0x79, 0]] {
        hdlc::encode(packet, &mut bytes);
    }
    let mut reader = airmile_decode::diag::LogReader::new();
    reader.push(&bytes, &mut |record| panic!("{record:?}"));
    reader.finish(&mut |record| panic!("{record:?}"));
    let stats = reader.stats();
    assert_eq!((stats.encrypted, stats.problems.damaged), (2, false));
    assert!(
        stats.problems.kept[0].what.starts_with("2 packets are encrypted"),
        "{:?}",
        stats.problems
    );
}
