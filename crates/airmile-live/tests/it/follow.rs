//! A log written by another program.

use std::sync::mpsc::sync_channel;

use crate::common::{append, bursts_of_file, by_direction, decided, sample, taken, wait_until};
use airmile::RadioOptions;
use airmile_host::source::{LogSource, SourceState};
use airmile_live::engine::Engine;
use airmile_live::snapshot::LiveEvent;

#[test]
fn a_growing_file_gives_the_bursts_of_the_whole_one() {
    let bytes = sample("sample-download");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.qmdl");
    let (sender, lines) = sync_channel(1 << 16);
    let source = LogSource::Follow(path.clone());
    let mut engine = Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap();
    let published = engine.published();
    // It is not there yet.
    wait_until(
        "the file is waited for",
        || matches!(&published.now().source.state, SourceState::Waiting(why) if why != "starting"),
    );
    let mut written = 0;
    for part in bytes.chunks(bytes.len() / 7 + 1) {
        append(&path, part);
        written += part.len() as u64;
        wait_until("it is read", || taken(&published.now()) == written);
    }
    engine.stop();
    assert_eq!(published.now().source.gaps, 0);
    assert_eq!(decided(lines.try_iter()), bursts_of_file(&bytes));
}

#[test]
fn a_file_that_is_replaced_is_another_part_of_the_log() {
    let bytes = sample("sample-rate-limited");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.qmdl");
    // It is rotated within a frame.
    let half =
        bytes.len() / 2 + bytes[bytes.len() / 2..].iter().position(|b| *b == 0x7e).unwrap() - 5;
    append(&path, &bytes[..half]);
    let (sender, lines) = sync_channel(1 << 16);
    let source = LogSource::Follow(path.clone());
    let mut engine = Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap();
    let published = engine.published();
    wait_until("the first half is read", || taken(&published.now()) == half as u64);
    let next = dir.path().join("next");
    append(&next, &bytes[half..]);
    std::fs::rename(&next, &path).unwrap();
    wait_until("the rest is read", || taken(&published.now()) == bytes.len() as u64);
    engine.stop();
    let now = published.now();
    assert_eq!((now.source.gaps, now.view.evidence_counts.holes), (1, 1));
    // The cut frame is lost, as in a file, but a rotation is no damage.
    assert!(!now.view.intake.damaged, "{:?}", now.problems);
    assert_eq!(now.problems.kept, []);
    let (found, whole) = (decided(lines.try_iter()), bursts_of_file(&bytes));
    // The hole cuts one burst in two, and the lost frame can change those next to it.
    let same = whole.iter().filter(|burst| found.contains(burst)).count();
    assert!(whole.len() > 20 && whole.len() - same <= 3, "{same} of {}", whole.len());
    assert!(found.len().abs_diff(whole.len()) <= 2, "{} of {}", found.len(), whole.len());
}

/// Another log that is earlier than the first: its transfers have its own times.
#[test]
fn a_file_that_is_replaced_by_an_earlier_log_begins_anew() {
    let (bytes, first) = (sample("sample-rate-limited"), sample("sample-download"));
    // The same log, without its first second.
    let at =
        first.len() / 2 + first[first.len() / 2..].iter().position(|b| *b == 0x7e).unwrap() + 1;
    let later = &first[at..];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.qmdl");
    append(&path, later);
    let (sender, lines) = sync_channel(1 << 16);
    let source = LogSource::Follow(path.clone());
    let mut engine = Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap();
    let published = engine.published();
    wait_until("the first is read", || taken(&published.now()) == later.len() as u64);
    let next = dir.path().join("next");
    append(&next, &bytes);
    std::fs::rename(&next, &path).unwrap();
    let all = (later.len() + bytes.len()) as u64;
    wait_until("the other is read", || taken(&published.now()) == all);
    engine.stop();
    let expected = [bursts_of_file(later), bursts_of_file(&bytes)].concat();
    let events: Vec<_> = lines.try_iter().collect();
    assert_eq!(decided(events.iter().cloned()), by_direction(&expected));
    let is_named = |event: &LiveEvent| {
        matches!(event, LiveEvent::Source(status)
            if matches!(&status.state, SourceState::Connected(why) if why.contains("another log")))
    };
    assert!(events.iter().any(|event| is_named(event)));
}
