//! The live engine gives the same results as the file, and gives them early.

use std::fs;
use std::path::Path;

use airmile::codec::diag::{Deframer, Event};
use airmile::live::{KEPT_TRANSFERS, Live, LiveBurst, LiveView, State};
use airmile::model::{Burst, Direction};
use airmile::{Inputs, Limits, Progress, RadioOptions, TimePoint, diagnose, radio};

fn inputs(log: &Path) -> Inputs {
    Inputs { files: vec![log.to_owned()], ..Inputs::default() }
}

/// Downlink bursts, then uplink ones, each in order.
fn by_direction(bursts: &[Burst]) -> Vec<Burst> {
    let of = |dir| bursts.iter().filter(move |b| b.dir == dir).cloned();
    of(Direction::Dl).chain(of(Direction::Ul)).collect()
}

/// Feeds a log in pieces with views in between; returns all decided bursts, and the last view.
fn watch(bytes: &[u8], piece: usize, mut see: impl FnMut(&LiveView)) -> (Vec<Burst>, LiveView) {
    let mut live = Live::new(RadioOptions::default()).unwrap();
    let mut decided = Vec::new();
    for part in bytes.chunks(piece) {
        live.push(part);
        decided.extend(live.take_bursts().into_iter().map(|b| b.burst));
        see(&live.look());
    }
    let view = live.finish();
    assert!(view.bursts.iter().all(|b| b.state == State::Decided));
    decided.extend(view.bursts.iter().map(|b| b.burst.clone()));
    (by_direction(&decided), view)
}

#[test]
fn live_and_file_give_the_same_bursts() {
    let dir = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for log in crate::common::logs(dir.path()) {
        let bytes = fs::read(&log).unwrap();
        let whole = radio(&inputs(&log), &RadioOptions::default(), &Progress::default());
        // Not all real logs hold radio records.
        let Ok(whole) = whole else { continue };
        let (bursts, view) = watch(&bytes, bytes.len() / 40 + 1, |_| {});
        assert_eq!(bursts, whole.bursts, "{}", log.display());
        assert_eq!(view.evidence_counts, whole.evidence_counts, "{}", log.display());
        tried += usize::from(!bursts.is_empty());
    }
    assert!(tried >= 3);
}

#[test]
fn the_last_view_is_the_diagnosis_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("sample-download", None, dir.path()).unwrap();
    let log = dir.path().join("modem.mi2log");
    let whole = diagnose(&inputs(&log), &RadioOptions::default(), &Progress::default()).unwrap();
    let bytes = fs::read(&log).unwrap();
    let (_, view) = watch(&bytes, 20_000, |_| {});
    assert_eq!(view.session, whole.session);
    let ids = |n| view.transfers.iter().map(move |t| t.diagnosis.id.clone()).take(n);
    let file_ids = whole.transfers.iter().map(|t| t.id.clone());
    assert!(whole.transfers.len() < KEPT_TRANSFERS);
    assert_eq!(
        ids(99).collect::<std::collections::BTreeSet<_>>(),
        file_ids.collect::<std::collections::BTreeSet<_>>()
    );
}

/// The end of each frame of a log, and when it was written.
fn written(bytes: &[u8]) -> Vec<(usize, i64)> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut deframer = Deframer::new();
    // Frame by frame, except the first two, which identify the container.
    for frame in bytes.split_inclusive(|b| *b == 0x7e) {
        deframer.push(frame);
        at += frame.len();
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                out.push((at, packet.at.ns / 1_000));
            }
        }
    }
    out
}

#[test]
fn a_burst_is_seen_within_a_second_of_its_end() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("sample-video", None, dir.path()).unwrap();
    let log = dir.path().join("modem.mi2log");
    let bytes = fs::read(&log).unwrap();
    let mut live = Live::new(RadioOptions::default()).unwrap();
    let whole = radio(&inputs(&log), &RadioOptions::default(), &Progress::default()).unwrap();
    let frames = written(&bytes);
    let end = frames.last().unwrap().1;
    // Viewed every 400 ms of the modem's clock, as the engine's thread does.
    let mut seen: Vec<(i64, i64)> = Vec::new();
    let (mut from, mut due) = (0, frames[0].1);
    for (to, at) in frames {
        if at < due {
            continue;
        }
        due = at + 400_000;
        live.push(&bytes[from..to]);
        from = to;
        let bursts = live.take_bursts().into_iter().chain(live.look().bursts);
        let ended = bursts.filter(|b| b.state != State::Open && b.burst.dir == Direction::Dl);
        seen.extend(ended.map(|b| (b.burst.end_tti.0, at - b.end_us.unwrap())));
    }
    // Bursts that end with the log are only seen at its end.
    let last = live.look().intake.last_us.unwrap();
    assert!(end - last < 1_000_000);
    let long = whole.bursts.iter().filter(|b| b.dir == Direction::Dl && b.n_tti() >= 20);
    let mut late = Vec::new();
    let mut n = 0;
    for burst in long {
        let first = seen.iter().filter(|(tti, _)| *tti == burst.end_tti.0).map(|(_, us)| *us).min();
        n += 1;
        if first.is_none_or(|us| us > 1_000_000) {
            late.push((burst.start_tti, burst.end_tti, first));
        }
    }
    println!("{n} bursts, {} not seen within a second: {late:?}", late.len());
    assert!(n >= 15);
    // Later evidence moves a few ends.
    assert!(late.len() * 50 <= n, "{late:?}");
}

#[test]
fn a_modem_that_was_away_leaves_a_hole() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("sample-download", None, dir.path()).unwrap();
    let bytes = fs::read(dir.path().join("modem.mi2log")).unwrap();
    let frames = written(&bytes);
    let (cut, at) = frames[frames.len() / 2];
    let (back, _) = *frames.iter().find(|(_, us)| *us > at + 500_000).unwrap();
    let mut live = Live::new(RadioOptions::default()).unwrap();
    // In the middle of a frame.
    live.push(&bytes[..cut - 5]);
    live.note_gap();
    live.push(&bytes[back..]);
    let view = live.finish();
    assert_eq!(view.evidence_counts.holes, 1);
    // Unknown time is no throughput time: no burst extends over the gap.
    let over = |b: &&LiveBurst| b.start_us < Some(at) && b.end_us > Some(at + 400_000);
    assert_eq!(view.bursts.iter().find(over), None);
    assert!(view.bursts.iter().any(|b| b.start_us > Some(at + 400_000)));
}

#[test]
fn limits_on_the_time_are_refused() {
    let limits = Limits { from: Some(TimePoint::SinceStart(5)), ..Limits::default() };
    let error = Live::new(RadioOptions { limits, ..RadioOptions::default() }).unwrap_err();
    assert_eq!(error.to_string(), "live: --from and --to are for files");
}
