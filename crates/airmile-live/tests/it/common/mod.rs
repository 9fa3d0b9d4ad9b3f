//! Helpers of the tests: a log, the results for its file, and waiting.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use airmile::model::{Burst, Direction};
use airmile::{Inputs, Progress, RadioOptions, radio};
use airmile_live::snapshot::{LiveEvent, Snapshot};

/// A generated log.
pub fn sample(name: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario(name, None, dir.path()).unwrap();
    let of = |name: &str| std::fs::read(dir.path().join(name));
    of("modem.mi2log").or_else(|_| of("nr_modem.mi2log")).unwrap()
}

/// The bursts of a file with these bytes.
pub fn bursts_of_file(bytes: &[u8]) -> Vec<Burst> {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log.mi2log");
    std::fs::write(&log, bytes).unwrap();
    let inputs = Inputs { files: vec![log], ..Inputs::default() };
    radio(&inputs, &RadioOptions::default(), &Progress::default()).unwrap().bursts
}

/// Downlink bursts, then uplink ones, each in order.
pub fn by_direction(bursts: &[Burst]) -> Vec<Burst> {
    let of = |dir| bursts.iter().filter(move |b| b.dir == dir).cloned();
    of(Direction::Dl).chain(of(Direction::Ul)).collect()
}

/// The bursts that were decided, out of all events.
pub fn decided(events: impl IntoIterator<Item = std::sync::Arc<LiveEvent>>) -> Vec<Burst> {
    let bursts = events.into_iter().filter_map(|event| match &*event {
        LiveEvent::Burst(live) if live.state == airmile::live::State::Decided => {
            Some(live.burst.clone())
        }
        _ => None,
    });
    by_direction(&bursts.collect::<Vec<_>>())
}

/// Waits until a condition holds; fails after a minute.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Bytes that the engine has consumed.
pub fn taken(now: &Snapshot) -> u64 {
    now.view.intake.bytes
}

pub fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
