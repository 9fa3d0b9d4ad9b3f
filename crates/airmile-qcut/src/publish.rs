//! Rate and queue of the uplink for other programs (cake-autorate, SQM, a home's MQTT broker),
//! which own the queueing themselves.

mod mqtt;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use airmile_host::thread::StopFlag;
use airmile_host::{Attempt, files};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::kernel::{Host, UBUS, find_program};
use crate::options::PublishTo;
use crate::serve::Published;
use crate::status::GateStatus;

/// A file is replaced as often as a status is made (chosen there).
const FILE_EVERY: Duration = Duration::from_millis(200);
/// Events and messages (chosen here: each event is a process of its own).
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// A broker that cannot be reached is tried again after this (chosen here).
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The name of events on OpenWrt's bus.
const UBUS_EVENT: &str = "airmile.qcut";

/// What others need of a status: no addresses of whom anybody talks to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct UplinkReport<'a> {
    interface: &'a str,
    /// Unix time in s.
    at_s: f64,
    /// Whether anything shows rate and queue now.
    is_known: bool,
    /// `modem` or `round_trips`.
    evidence: &'a str,
    rate_kbps: u64,
    queue_bytes: u64,
    queue_delay_ms: Option<f64>,
    limit_bytes: u64,
}

impl<'a> UplinkReport<'a> {
    fn of(status: &'a GateStatus) -> Self {
        Self {
            interface: &status.interface,
            at_s: status.at_s,
            is_known: status.is_known,
            evidence: &status.evidence,
            rate_kbps: status.rate_bps / 1_000,
            queue_bytes: status.occupancy_bytes,
            queue_delay_ms: status.queue_delay_ms,
            limit_bytes: status.limit_bytes,
        }
    }
}

/// Publishes until it is dropped; files go with it.
#[derive(Debug)]
pub(crate) struct Publisher {
    stop: StopFlag,
    files: Vec<(PathBuf, thread::JoinHandle<()>)>,
}

impl Publisher {
    /// Starts a thread for each target.
    pub(crate) fn start(targets: &[PublishTo], published: &Published) -> Result<Self> {
        let mut publisher = Self { stop: StopFlag::new(), files: Vec::new() };
        for target in targets {
            let (published, stop) = (published.clone(), publisher.stop.clone());
            match target.clone() {
                PublishTo::File(path) => {
                    // At once: a path that cannot be written is an error now.
                    replace(&path, &published.now())
                        .attempt(|| format!("cannot publish to {}", path.display()))?;
                    let file = path.clone();
                    let running = start(move || {
                        each(&stop, FILE_EVERY, || drop(replace(&file, &published.now())));
                    });
                    publisher.files.push((path, running?));
                }
                PublishTo::Ubus => {
                    if find_program("ubus").is_none() {
                        let remedy = Host::here().remedy(UBUS);
                        return Err(Error::Unfit(format!("--publish ubus needs {remedy}")));
                    }
                    start(move || each(&stop, EVENT_EVERY, || send_event(&published.now())))?;
                }
                PublishTo::Mqtt { host, port, topic } => {
                    start(move || publish_messages(&stop, (&host, port), &topic, &published))?;
                }
            }
        }
        Ok(publisher)
    }
}

fn start(run: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>> {
    let thread = thread::Builder::new().name("publish".to_owned()).spawn(run);
    Ok(thread.attempt(|| "cannot start a thread".to_owned())?)
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.set();
        // Those that wait for a broker or the bus end with the process.
        for (file, running) in self.files.drain(..) {
            let _ = running.join();
            let _ = fs::remove_file(file);
        }
    }
}

/// Does something each so often until it is time to stop.
fn each(stop: &StopFlag, every: Duration, mut run: impl FnMut()) {
    while !stop.is_set() {
        run();
        thread::sleep(every);
    }
}

/// The whole status, replaced at once. Only its user reads it: it names who waits.
fn replace(path: &Path, status: &GateStatus) -> io::Result<()> {
    let text = serde_json::to_vec(status)?;
    files::replace(path, 0o600, |file| file.write_all(&text))
}

/// An event. That nobody listens is no error, and a bus that is away may come back.
fn send_event(status: &GateStatus) {
    let Ok(text) = serde_json::to_string(&UplinkReport::of(status)) else { return };
    let mut command = Command::new("ubus");
    command.args(["-t", "1", "send", UBUS_EVENT, &text]);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn publish_messages(stop: &StopFlag, to: (&str, u16), topic: &str, published: &Published) {
    while !stop.is_set() {
        if let Ok(mut broker) = mqtt::Connection::open(to) {
            while !stop.is_set() {
                let status = published.now();
                let Ok(text) = serde_json::to_vec(&UplinkReport::of(&status)) else { break };
                if broker.publish(topic, &text).is_err() {
                    break;
                }
                thread::sleep(EVENT_EVERY);
            }
        }
        thread::sleep(AGAIN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::status;

    #[test]
    fn a_file_is_replaced_and_goes_with_the_instance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("uplink.json");
        let other = dir.path().join("uplink.new");
        fs::write(&other, "another program's").unwrap();
        let published = Published::default();
        let publisher = Publisher::start(&[PublishTo::File(path.clone())], &published).unwrap();
        published.set(status());
        let read = || serde_json::from_slice::<GateStatus>(&fs::read(&path).unwrap()).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while read() != status() {
            assert!(std::time::Instant::now() < until, "{:?}", read());
            thread::sleep(Duration::from_millis(20));
        }
        drop(publisher);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&other).unwrap(), "another program's");
        let nowhere = PublishTo::File("/proc/none/x".into());
        assert!(Publisher::start(&[nowhere], &published).is_err());
    }

    #[test]
    fn a_report_has_what_a_shaper_needs_and_no_addresses() {
        let mut status = status();
        status.waiting = vec![crate::status::WaitingHost {
            to: "192.0.2.7".to_owned(),
            packets: 1,
            bytes: 1_500,
        }];
        let text = serde_json::to_string(&UplinkReport::of(&status)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rate_kbps"], 6_000);
        assert_eq!(value["queue_bytes"], 12_000);
        assert!(!text.contains("192.0.2"), "{text}");
    }
}
